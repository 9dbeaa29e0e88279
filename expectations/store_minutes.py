"""store_minutes: each minute stands once, together they hold every reading, and the sensors report."""

from expectations.vocabulary import at_least, critical, none, suite, warning

STORE_MINUTES = suite(
    "store_minutes",
    critical(none("doubled_keys", "each store and minute stands once")),
    critical(none("out_of_range", "every value is in its range")),
    critical(none("unaccounted", "the minutes hold every reading once")),
    warning(at_least("completeness", lambda limits: limits.completeness_warning, "sensors report by their cadence", worst_of="by_store")),
)
