"""runs: every line that was read is booked once."""

from expectations.vocabulary import critical, none, suite

RUNS = suite(
    "runs",
    critical(none("imbalance", "books balance")),
)
