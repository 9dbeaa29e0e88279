"""What the lake remembers of a topic, and what became of the topic since (P1): nothing that was deleted unread goes unnoticed.

A topic that was deleted and made anew starts a new *life*: its offsets begin again, so its rows get another source. One whose oldest messages
were deleted before they were read goes on with those that are left. In both cases the stream's old checkpoint no longer fits, and a new one is begun.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace

from spark_jobs.runtime import storage
from spark_jobs.runtime.broker import Topic
from spark_jobs.runtime.lake import Lake

Offsets = dict[int, int]  # by partition


@dataclass(frozen=True)
class Life:
    topic: str
    id: str
    life: int  # counted from 1
    checkpoint: int  # counted from 1
    starts: Offsets  # where that checkpoint starts; a partition that is not in it, at its beginning

    @property
    def suffix(self) -> str:
        """Tells its sources from those of an earlier life."""
        return f"@{self.life}" if self.life > 1 else ""


def first(topic: Topic) -> Life:
    """Seen for the first time: what was deleted before that is not ours to miss."""
    return Life(topic.name, topic.id, 1, 1, topic.begins)


def after(known: Life, taken: Offsets, topic: Topic) -> tuple[Life, str]:
    """The topic's life from here on, and what has to be reported; empty where all is well."""
    if known.id and topic.id and known.id != topic.id:
        return _made_anew(known, taken, topic, "was deleted and made anew")
    if cut := [partition for partition, until in taken.items() if topic.ends.get(partition, 0) < until]:
        ends = ", ".join(f"{partition} at {topic.ends.get(partition, 0):,} (read up to {taken[partition]:,})" for partition in cut)
        return _made_anew(
            known, taken, topic, f"ends before what was read of it: partition {ends}; it was made anew, or its broker lost messages"
        )
    stood = {partition: taken.get(partition, 0) for partition in topic.begins}
    lost = {partition: first - stood[partition] for partition, first in topic.begins.items() if first > stood[partition]}
    if not lost:
        return replace(known, id=known.id or topic.id), ""
    which = ", ".join(f"partition {partition}, offsets {stood[partition]} to {topic.begins[partition] - 1}" for partition in sorted(lost))
    starts = {partition: max(first, stood[partition]) for partition, first in topic.begins.items()}
    text = (
        f"topic {topic.name} lost up to {_messages(sum(lost.values()))} before they were read ({which}): deleted by the broker, most "
        "likely by the topic's retention. What is left is taken. Lengthen the retention, or take passes more often."
    )
    return behind(known, starts), text


def _messages(count: int) -> str:
    return f"{count:,} message{'s' * (count != 1)}"


def behind(known: Life, taken: Offsets) -> Life:
    """The same life with a new checkpoint that starts there."""
    return replace(known, checkpoint=known.checkpoint + 1, starts=known.starts | taken)


def _made_anew(known: Life, taken: Offsets, topic: Topic, what: str) -> tuple[Life, str]:
    stood = ", ".join(f"{partition}: {until}" for partition, until in sorted(taken.items())) or "nothing"
    text = (
        f"topic {topic.name} {what}. Whatever it still held beyond what was read (next offset by partition: {stood}) is lost to the lake. It is read "
        f"from its beginning, and its rows have the source {topic.name}-…@{known.life + 1}."
    )
    return Life(topic.name, topic.id, known.life + 1, known.checkpoint + 1, topic.begins), text


def remembered(lake: Lake, topic: str) -> Life | None:
    text = storage.read_text(lake.place(*_place(topic)))
    if text is None:
        return None
    fields = json.loads(text)
    return Life(**{**fields, "starts": {int(partition): offset for partition, offset in fields["starts"].items()}})


def remember(lake: Lake, life: Life) -> None:
    lake.write_text(json.dumps(asdict(life)), *_place(life.topic))


def forget_checkpoints(lake: Lake) -> None:
    """Every topic goes on with a new checkpoint, behind the last of its messages that the lake has."""
    for name in storage.names(lake.place("control", "topics")):
        if life := remembered(lake, name.removesuffix(".json")):
            remember(lake, behind(life, _kept(lake, life)))


def _kept(lake: Lake, life: Life) -> Offsets:
    kept = lake.table("raw_messages", ["source", "position"]).group_by("source").aggregate([("position", "max")]).to_pylist()
    partition = re.compile(rf"{re.escape(life.topic)}-(\d+){re.escape(life.suffix)}")
    return {int(found[1]): row["position_max"] + 1 for row in kept if (found := partition.fullmatch(row["source"]))}


def _place(topic: str) -> tuple[str, ...]:
    return "control", "topics", f"{topic}.json"
