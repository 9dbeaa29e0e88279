"""store_trends: each window stands once, and its temperatures are possible ones."""

from expectations.vocabulary import critical, none, suite

STORE_TRENDS = suite(
    "store_trends",
    critical(none("doubled_keys", "each store and window stands once")),
    critical(none("out_of_range", "every value is in its range")),
)
