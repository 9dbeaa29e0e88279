"""outages: each silence stands once, and ends after it started."""

from expectations.vocabulary import critical, none, suite

OUTAGES = suite(
    "outages",
    critical(none("doubled_keys", "each sensor and start stands once")),
    critical(none("out_of_range", "every value is in its range")),
)
