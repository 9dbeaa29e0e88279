"""alerts: each episode stands once, with a rule, a severity and a status that exist."""

from expectations.vocabulary import critical, none, suite

ALERTS = suite(
    "alerts",
    critical(none("doubled_keys", "each alert stands once")),
    critical(none("out_of_range", "every value is in its range")),
)
