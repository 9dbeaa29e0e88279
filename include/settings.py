"""Every setting, its default and its environment variable (`COLDSTORE_` and the field's name in capitals)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

PREFIX = "COLDSTORE_"
S3 = "s3a://"
NOT_IN_PLACES = re.compile(r"[*?\[\]{}^|\\]|%[0-9A-Fa-f]{2}")  # Spark's patterns, and what Delta reads as an escape or cannot read at all
PROJECT = Path(__file__).resolve().parent.parent


class SettingError(ValueError):
    """A setting that cannot be used; the message names it and says what would do."""


@dataclass(frozen=True)
class Settings:
    # places
    lake: str = str(PROJECT / "lake")
    landing: str = ""  # empty: <lake>/landing
    archive: str = ""  # empty: a file that was taken stays where it is
    # where Spark runs; in Airflow the connection says it
    master: str = ""  # empty: as spark-defaults.conf says, local[*]
    spark_conf: str = ""  # a file with Spark's properties for that place
    # this run
    as_of: str = ""  # the run's clock; Airflow passes the end of the data interval
    run_id: str = ""  # Airflow passes its own; empty: pass-<number>
    # input
    batch_bytes: int = 256 * 1024 * 1024  # landing bytes per micro-batch
    split_bytes: int = 16 * 1024 * 1024  # a larger plain file is read by several tasks
    max_line_bytes: int = 64 * 1024
    future_tolerance_s: int = 300
    lowest_temperature_c: float = -90.0
    highest_temperature_c: float = 60.0
    # event time
    watermark_delay_s: int = 30
    idle_after_s: int = 600
    allowed_lateness_s: int = 120
    silent_store_hours: int = 24  # a store silent for longer is no longer written down minute by minute
    door_gap_s: int = 120  # door-open readings at most this far apart are of one session
    # sensors without a word of their own in the inventory
    silent_after_s: int = 120
    expected_every_s: int = 60
    # checks
    quarantine_critical: float = 0.20
    quarantine_critical_lines: int = 100
    quarantine_warning: float = 0.02
    completeness_warning: float = 0.90
    late_warning: float = 0.10
    stale_after_s: int = 1800
    # a rebuild from Airflow that changes more rows than this waits for a person's approval
    rebuild_approval_rows: int = 100
    # the lease on the lake
    lease_s: int = 60
    # alerts by webhook; address and secret are kept out of whatever prints the settings
    webhook_url: str = field(default="", repr=False)  # empty: nothing is sent
    webhook_secret: str = field(default="", repr=False)
    webhook_timeout_s: float = 5.0  # one attempt
    webhook_attempts: int = 4  # for one event in one run
    webhook_budget_s: float = 120.0  # one run; what is left goes out with the next
    # Kafka; user and password are kept out of whatever prints the settings
    kafka_servers: str = ""  # like broker-1:9092,broker-2:9092; empty: no Kafka
    kafka_topic: str = "coldstore_sensors"  # one reading per message
    kafka_alerts_topic: str = ""  # like coldstore_alerts; empty: no alerts are sent there
    kafka_batch_messages: int = 1_000_000  # per micro-batch
    kafka_timeout_s: float = 15.0  # for the broker's answer
    kafka_security: str = "PLAINTEXT"  # or SSL, SASL_PLAINTEXT, SASL_SSL
    kafka_user: str = field(default="", repr=False)
    kafka_password: str = field(default="", repr=False)
    kafka_ca_file: str = ""  # whom to trust, PEM; empty: whom the machine trusts

    @staticmethod
    def from_env(env: Mapping[str, str] = os.environ) -> Settings:
        given = {}
        for setting in fields(Settings):
            text = env.get(PREFIX + setting.name.upper(), "")
            if text == "":
                continue
            kind: type = type(setting.default)
            try:
                given[setting.name] = kind(text)
            except ValueError:
                raise SettingError(f"{PREFIX}{setting.name.upper()}={text!r} is not a number; give one like {setting.default}.") from None
            if kind in (int, float) and (wanted := _missed(setting.name, given[setting.name])):
                raise SettingError(f"{PREFIX}{setting.name.upper()}={text!r} cannot work; give {wanted}, like {setting.default}.")
        settings = Settings(**given)
        if settings.lowest_temperature_c > settings.highest_temperature_c:
            raise SettingError(
                f"COLDSTORE_LOWEST_TEMPERATURE_C {settings.lowest_temperature_c:g} lies above COLDSTORE_HIGHEST_TEMPERATURE_C "
                f"{settings.highest_temperature_c:g}: no reading could be taken. Change one of them."
            )
        lake, landing = rooted(settings.lake), rooted(settings.landing or f"{settings.lake}/landing")
        archive = rooted(settings.archive) if settings.archive else ""
        for name, place in (("LAKE", lake), ("LANDING", landing)):
            if odd := NOT_IN_PLACES.search(place):
                raise SettingError(
                    f"{PREFIX}{name} {place} has {odd[0]} in it, which Spark or Delta take for something else; name another place."
                )
        if archive and archive.startswith(S3) != landing.startswith(S3):
            raise SettingError(f"COLDSTORE_ARCHIVE {archive} must lie where the landing folder {landing} lies: both local, or both on S3.")
        if archive and f"{archive}/".startswith(f"{landing}/"):
            raise SettingError(
                f"COLDSTORE_ARCHIVE {archive} lies in the landing folder {landing}, where its files would be taken again; name another place."
            )
        return Settings(**{**settings.__dict__, "lake": lake, "landing": landing, "archive": archive})

    def __getstate__(self) -> dict[str, Any]:
        """What goes along with a function to Spark's executors, on other machines perhaps: none of what is kept out of print."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self) if setting.repr}

    @property
    def places(self) -> list[str]:
        """All that a run reads files from or writes them to, each once."""
        return list(dict.fromkeys(place for place in (self.lake, self.landing, self.archive) if place))

    @property
    def alert_sinks(self) -> tuple[str, ...]:
        """Where what changes in the alerts is sent."""
        given = (("webhook", self.webhook_url), ("kafka", self.kafka_alerts_topic))
        return tuple(sink for sink, place in given if place)

    @property
    def late_after_s(self) -> int:
        """A reading is late when it arrives this long after its minute's end, or later."""
        return self.watermark_delay_s + self.allowed_lateness_s


SHARES = ("quarantine_critical", "quarantine_warning", "completeness_warning", "late_warning")
TEMPERATURES = ("lowest_temperature_c", "highest_temperature_c")
MAY_BE_ZERO = (
    "future_tolerance_s", "watermark_delay_s", "idle_after_s", "allowed_lateness_s", "door_gap_s", "quarantine_critical_lines", "rebuild_approval_rows",
)  # fmt: skip
TEN_YEARS_S = 10 * 366 * 86_400
LARGEST = {"_s": TEN_YEARS_S, "_hours": TEN_YEARS_S // 3600, "_line_bytes": 1 << 30}  # more does not fit into a time, or into memory


def _missed(name: str, value: float) -> str:
    """What the number should have been; empty where it can be used. NaN never can."""
    if name in SHARES:
        return "" if 0 <= value <= 1 else "a share from 0 to 1"
    if name in TEMPERATURES:
        return "" if -1000 <= value <= 1000 else "a temperature in °C"
    largest = next((most for ending, most in LARGEST.items() if name.endswith(ending)), (1 << 63) - 1)
    if name in MAY_BE_ZERO:
        return "" if 0 <= value <= largest else f"a number from 0 to {largest}"
    return "" if 0 < value <= largest else f"a number above 0, up to {largest}"


def rooted(place: str) -> str:
    """A local path made absolute and without `..`, as Spark has it, so that a job may run in any folder; a place on an S3 server as a URI of the one kind that Spark knows."""
    scheme, is_uri, rest = place.partition("://")
    if not is_uri or scheme == "file":
        return os.path.abspath(Path(rest if is_uri else place).expanduser())
    if scheme not in ("s3", "s3a") or not rest.strip("/"):
        raise SettingError(f"{place!r} is no place for a lake; give a folder, or a bucket like s3a://bucket/folder.")
    return f"{S3}{rest.rstrip('/')}"


def utc(text: str) -> datetime:
    """An ISO 8601 time with an offset or Z, in UTC; a date or a time without offset is refused."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SettingError(f"{text!r} is not a time; write one like 2025-11-08T15:30:00Z.") from None
    if moment.tzinfo is None:
        raise SettingError(f"{text!r} has no offset; write one like 2025-11-08T15:30:00Z.")
    return moment.astimezone(UTC)


def iso(moment: datetime) -> str:
    """A time as people and ids write it: 2025-11-08T15:32:12.123Z, whole seconds without the fraction."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return text.replace(".000Z", "Z")


@dataclass(frozen=True)
class Clock:
    """The run's explicit clock; nothing else tells a transform what time it is."""

    as_of: datetime
    settings: Settings

    @property
    def heard_until(self) -> datetime:
        return self.as_of - timedelta(seconds=self.settings.watermark_delay_s)

    @property
    def idle_frontier(self) -> datetime:
        """A silent store cannot hold its windows open beyond this."""
        return self.as_of - timedelta(seconds=self.settings.idle_after_s)
