"""What can go wrong, how it is recognised, and what is safe to do then: one entry for each failure that the incident page and docs/runbook.md know."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIGNALS = {137: "SIGKILL", -9: "SIGKILL", 143: "SIGTERM", -15: "SIGTERM"}
HIDDEN = re.compile("SECRET|PASSWORD|TOKEN|ACCESS_KEY|SQL_ALCHEMY_CONN|WEBHOOK_URL", re.IGNORECASE)
CLEAR = "Clear the task in Airflow (or let the next run take what is left): nothing is lost or doubled by it."


@dataclass(frozen=True)
class Kind:
    name: str  # also the section of the runbook
    sign: str  # found in what the driver said at last
    advice: tuple[str, ...]  # the first is the one to follow
    cause: str = ""  # empty: the driver's own line says it


KINDS = (
    Kind(
        "held",
        r"to publish it all the same: make accept",
        (
            "Look at the failed check in Data Docs, and at the lines it is about. Remove the cause; the next run then publishes this one's data, too.",
            "To publish it as it is: make accept run={run_id} by=… why=…",
            "If quarantined lines have become valid (a rule, a setting): make replay",
        ),
    ),
    Kind(
        "out-of-memory",
        r"java\.lang\.OutOfMemoryError|MemoryError|Cannot allocate memory|Could not (reserve enough|allocate compressed class) space|insufficient memory for the Java",
        (
            "Take smaller batches (COLDSTORE_BATCH_BYTES), or give the driver more memory (spark.driver.memory in spark_jobs/spark-defaults.conf, then make setup). "
            + CLEAR,
        ),
        "The driver ran out of memory.",
    ),
    Kind(
        "lease-taken",
        r"the lake is being written by",
        ("Wait for the driver that is named, then clear the task. If its machine is gone, its lease runs out by itself within a minute.",),
    ),
    Kind("lease-lost", r"has lost its lease|slept past its lease|another driver", (CLEAR,)),
    Kind(
        "storage",
        r"the S3 server .* cannot be used",
        ("Put right what the line names (key, bucket, endpoint, network); make doctor tells whether it is. " + CLEAR,),
    ),
    Kind("disk-full", r"less than \d+ MB left|No space left on device", ("Free some space on the disk that is named. " + CLEAR,)),
    Kind(
        "checkpoint", r"is damaged, so Spark cannot tell what is new", ("make recover, then clear the task: no line is lost or doubled.",)
    ),
    Kind(
        "missing-column",
        r"\w+\.csv line 1: the column \w+ is missing",
        ("Put the column into the header of that file in <lake>/reference; its cells may stay empty. Then clear the task.",),
    ),
    Kind("reference-file", r"\w+\.csv line \d+: ", ("Correct that line of the file in <lake>/reference, then clear the task.",)),
    Kind(
        "kafka",
        r"Kafka at .* cannot be asked",
        ("See to the broker, or to the COLDSTORE_KAFKA_ settings. " + CLEAR + " Messages wait in the topic.",),
    ),
    Kind(
        "cluster",
        r"Spark does not start on",
        ("Start the cluster, or correct COLDSTORE_MASTER or the connection coldstore_spark. " + CLEAR,),
    ),
    Kind("superseded", r"a later one has taken its place", ("Nothing: the later run takes what was left. Do not clear this one.",)),
    Kind(
        "difference",
        r"are not as a rebuild makes them",
        (
            "If a reference file, a rule or a setting was changed on purpose: trigger rebuild_day for that day, read the comparison, approve it.",
            "If nothing was changed, keep the lake as it is and report it: live runs and rebuilds must agree.",
        ),
    ),
    Kind(
        "stale",
        r"The published data are .* old",
        (
            "Open coldstore_pipeline in Airflow: where a task failed, its Incident says what to do; where the DAG is paused, switch it on. make status shows the last runs.",
        ),
    ),
    Kind(
        "no-comparison",
        r"\.json is not there: clear the task compare_day",
        ("Clear the task compare_day and all after it: it writes the comparison anew.",),
    ),
    Kind(
        "not-delivered",
        r"The run is published; what waits goes out with the next one",
        ("The run is published. Events wait and go out with the next run; see to the receiver.",),
    ),
)
KILLED = Kind(
    "killed",
    "",
    (CLEAR, "If it happens again: the machine may be short of memory (make doctor; the kernel's log says whether it killed the process)."),
    "The driver was ended from outside ({signal}) before it could say why.",
)
UNKNOWN = Kind("unknown", "", (CLEAR, "If it happens again, the last lines below are for whoever looks after the code."))


def kind_of(exit_code: int | None, lines: Sequence[str]) -> Kind:
    text = "\n".join(lines)
    for kind in KINDS:
        if re.search(kind.sign, text):
            return kind
    return KILLED if exit_code in SIGNALS else UNKNOWN


def cause(kind: Kind, exit_code: int | None, lines: Sequence[str]) -> str:
    """One plain sentence."""
    if kind.cause:
        return kind.cause.format(signal=SIGNALS.get(exit_code or 0, "a signal"))
    said = [line.strip() for line in lines if line.strip()]
    found = next((line for line in reversed(said) if kind.sign and re.search(kind.sign, line)), said[-1] if said else "")
    return found or f"The job ended with exit code {exit_code} and said nothing."


def scrubbed(text: str, environment: Mapping[str, str]) -> str:
    """Without the secrets that stand in the environment."""
    for name, value in environment.items():
        if HIDDEN.search(name) and len(value) >= 6:
            text = text.replace(value, "***")
    return text
