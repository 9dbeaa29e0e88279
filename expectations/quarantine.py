"""quarantine: how much of the input could not be read."""

from expectations.vocabulary import at_most, critical, suite, warning

QUARANTINE = suite(
    "quarantine",
    critical(
        at_most(
            "share",
            lambda limits: limits.quarantine_critical,
            "the input can be read",
            judged_from=("lines", lambda limits: limits.quarantine_critical_lines),
        )
    ),
    warning(at_most("share", lambda limits: limits.quarantine_warning, "few lines are quarantined")),
)
