"""What became of a topic since it was last read: gone on, lost messages, made anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from include.settings import Settings
from spark_jobs.runtime.broker import Topic
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.topic_life import Life, after, first, remember, remembered

KNOWN = Life("t", "id-1", 1, 1, {0: 3, 1: 0})
TAKEN = {0: 7, 1: 0}


def the_topic(begins: dict[int, int], ends: dict[int, int], id: str = "id-1") -> Topic:
    return Topic("t", id, begins, ends)


CASES = {
    "nothing happened": (the_topic({0: 3, 1: 0}, {0: 7, 1: 0}), KNOWN, ""),
    "messages came": (the_topic({0: 3, 1: 0}, {0: 9, 1: 4}), KNOWN, ""),
    "what was read was deleted": (the_topic({0: 7, 1: 0}, {0: 7, 1: 0}), KNOWN, ""),
    "a partition was added": (the_topic({0: 3, 1: 0, 2: 0}, {0: 7, 1: 0, 2: 5}), KNOWN, ""),
    "the broker tells no id": (the_topic({0: 3, 1: 0}, {0: 8, 1: 0}, id=""), KNOWN, ""),
    "unread messages were deleted": (
        the_topic({0: 9, 1: 2}, {0: 20, 1: 2}), replace(KNOWN, checkpoint=2, starts={0: 9, 1: 2}),
        "topic t lost up to 4 messages before they were read (partition 0, offsets 7 to 8, partition 1, offsets 0 to 1)",
    ),
    "only one partition lost some": (
        the_topic({0: 3, 1: 1}, {0: 7, 1: 5}), replace(KNOWN, checkpoint=2, starts={0: 7, 1: 1}),
        "topic t lost up to 1 message before they were read (partition 1, offsets 0 to 0)",
    ),
    "an added partition lost some before it was seen": (
        the_topic({0: 3, 1: 0, 2: 5}, {0: 7, 1: 0, 2: 6}), replace(KNOWN, checkpoint=2, starts={0: 7, 1: 0, 2: 5}), "topic t lost up to 5 messages"
    ),
    "it was made anew": (
        the_topic({0: 0}, {0: 50}, id="id-2"), Life("t", "id-2", 2, 2, {0: 0}),
        "topic t was deleted and made anew. Whatever it still held beyond what was read (next offset by partition: 0: 7, 1: 0) is lost",
    ),
    "it ends before what was read": (
        the_topic({0: 0, 1: 0}, {0: 6, 1: 0}, id=""), Life("t", "", 2, 2, {0: 0, 1: 0}),
        "topic t ends before what was read of it: partition 0 at 6 (read up to 7)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("topic", "life", "report"), CASES.values(), ids=CASES)
def test_a_topics_life_goes_on(topic: Topic, life: Life, report: str) -> None:
    found, said = after(KNOWN, TAKEN, topic)
    assert found == life and said.startswith(report) and bool(said) == bool(report)


def test_what_was_deleted_before_a_topic_was_first_seen_is_not_missed() -> None:
    topic = the_topic({0: 40}, {0: 50})
    life = first(topic)
    assert after(life, life.starts, topic) == (life, "")


def test_what_is_remembered_is_what_was(tmp_path: Path) -> None:
    lake = Lake(None, Settings(lake=str(tmp_path)))
    assert remembered(lake, "t") is None
    remember(lake, KNOWN)
    assert remembered(lake, "t") == KNOWN and KNOWN.suffix == "" and replace(KNOWN, life=2).suffix == "@2"
