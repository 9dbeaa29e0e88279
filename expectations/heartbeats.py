"""heartbeats: each sensor has one state."""

from expectations.vocabulary import critical, none, suite

HEARTBEATS = suite(
    "heartbeats",
    critical(none("doubled_keys", "each sensor stands once")),
    critical(none("out_of_range", "every value is in its range")),
)
