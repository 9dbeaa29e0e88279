"""readings: each stands once, is possible, came in time, and the newest is fresh."""

from expectations.vocabulary import at_most, critical, none, suite, warning

READINGS = suite(
    "readings",
    critical(none("doubled_keys", "each sensor and time stands once")),
    critical(none("out_of_range", "every value is in its range")),
    warning(at_most("late_share", lambda limits: limits.late_warning, "readings arrive in time")),
    warning(at_most("age_s", lambda limits: limits.stale_after_s, "the newest reading is fresh", unit="s")),
)
