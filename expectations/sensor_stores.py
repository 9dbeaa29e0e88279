"""sensor_stores: which sensor spoke from which store stands once."""

from expectations.vocabulary import critical, none, suite

SENSOR_STORES = suite(
    "sensor_stores",
    critical(none("doubled_keys", "each sensor and store stands once")),
    critical(none("out_of_range", "every value is in its range")),
)
