"""runs: every line that was read is booked once, and the topic lost none before it was read (how often it did is counted)."""

from expectations.vocabulary import critical, none, suite, warning

RUNS = suite(
    "runs",
    critical(none("imbalance", "books balance")),
    warning(none("topic_losses", "the Kafka topic lost no message unread")),
)
