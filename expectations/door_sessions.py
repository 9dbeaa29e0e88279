"""door_sessions: each session stands once, and ends where it started or later."""

from expectations.vocabulary import critical, none, suite

DOOR_SESSIONS = suite(
    "door_sessions",
    critical(none("doubled_keys", "each sensor and start stands once")),
    critical(none("out_of_range", "every value is in its range")),
)
