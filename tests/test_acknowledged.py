"""P16: which episodes an acknowledgement is about."""

from __future__ import annotations

import pytest

from include.acknowledged import said_of
from tests.lakes import moment

CASES = {
    "the episode itself": (("10:00", "10:10"), ("10:00", "10:10"), True),
    "the episode itself, still open": (("10:00", "10:10"), ("10:00", None), True),
    "it was moved forward": (("10:00", "10:10"), ("10:09", "10:20"), True),
    "it was moved back": (("10:00", "10:10"), ("09:50", "10:01"), True),
    "the reading that ended it begins the next": (("10:00", "10:10"), ("10:10", None), False),
    "the reading that began it ended the one before": (("10:00", "10:10"), ("09:50", "10:00"), False),
    "it had just begun": (("10:00", "10:00"), ("10:00", None), True),
    "it had just begun and was moved back": (("10:00", "10:00"), ("09:59", None), True),
    "a moment itself": (("10:00", "10:00"), ("10:00", "10:00"), True),
    "a moment that was moved": (("10:00", "10:00"), ("10:01", "10:01"), False),
    "a moment at the end of another episode": (("10:00", "10:10"), ("10:10", "10:10"), False),
}


@pytest.mark.parametrize(("seen", "episode", "holds"), CASES.values(), ids=CASES)
def test_what_was_said_of_an_episode_holds_for_what_overlaps_it(
    seen: tuple[str, str], episode: tuple[str, str | None], holds: bool
) -> None:
    of = {"rule": "missed_heartbeat", "sensor_id": "s"}
    said = {**of, "started_at": moment(seen[0]), "seen_until": moment(seen[1]), "acknowledged_at": moment("12:00")}
    alert = {**of, "started_at": moment(episode[0]), "ended_at": episode[1] and moment(episode[1])}
    assert said_of(alert, [said]) == ([said] if holds else [])
    assert said_of({**alert, "sensor_id": "another"}, [said]) == []
