"""A setting that cannot work is refused where it is read, with its name and what would do."""

from __future__ import annotations

from dataclasses import fields

import pytest

from include.settings import SettingError, Settings

REFUSED = {
    "no bytes at all": ("BATCH_BYTES", "0", "give a number above 0, up to .*, like 268435456"),
    "parts of no length": ("SPLIT_BYTES", "-1", "give a number above 0"),
    "no line fits": ("MAX_LINE_BYTES", "0", "give a number above 0"),
    "a lease that is over at once": ("LEASE_S", "0", "give a number above 0, up to .*, like 60"),
    "no messages": ("KAFKA_BATCH_MESSAGES", "0", "give a number above 0"),
    "never tried": ("WEBHOOK_ATTEMPTS", "0", "give a number above 0"),
    "due all the time": ("EXPECTED_EVERY_S", "0", "give a number above 0"),
    "silent at once": ("SILENT_AFTER_S", "-120", "give a number above 0"),
    "no hour": ("SILENT_STORE_HOURS", "0", "give a number above 0"),
    "more seconds than a time can hold": ("IDLE_AFTER_S", "99999999999999", "give a number from 0 to 316224000"),
    "a clock that runs backwards": ("WATERMARK_DELAY_S", "-30", "give a number from 0"),
    "more than all": ("QUARANTINE_CRITICAL", "20", "give a share from 0 to 1, like 0.2"),
    "no number": ("LATE_WARNING", "nan", "give a share from 0 to 1"),
    "beyond any temperature": ("HIGHEST_TEMPERATURE_C", "inf", "give a temperature in °C"),
    "the wrong way round": ("LOWEST_TEMPERATURE_C", "70", "70 lies above COLDSTORE_HIGHEST_TEMPERATURE_C 60"),
}


@pytest.mark.parametrize(("name", "value", "told"), REFUSED.values(), ids=REFUSED)
def test_a_number_that_cannot_work_is_refused(name: str, value: str, told: str) -> None:
    with pytest.raises(SettingError, match=f"COLDSTORE_{name}.*{told}"):
        Settings.from_env({f"COLDSTORE_{name}": value})


@pytest.mark.parametrize("name", ["LAKE", "LANDING"])
@pytest.mark.parametrize("folder", ["a*b", "a?b", "a[1]", "a{b}", "a^b", "a|b", "a\\b", "a%41"])
def test_a_folder_that_spark_or_delta_would_misread_is_refused(name: str, folder: str) -> None:
    with pytest.raises(SettingError, match=f"COLDSTORE_{name} .* name another place"):
        Settings.from_env({f"COLDSTORE_{name}": f"/lakes/{folder}"})


def test_a_folder_may_have_a_name_that_people_give() -> None:
    for folder in ("a b", "Kühlhaus #1", "100 %", "a+b,c=d"):
        assert Settings.from_env({"COLDSTORE_LAKE": f"/lakes/{folder}"}).lake == f"/lakes/{folder}"


def test_every_default_may_be_given_and_so_may_none_and_all() -> None:
    Settings.from_env({f"COLDSTORE_{setting.name.upper()}": str(setting.default) for setting in fields(Settings)})
    Settings.from_env({"COLDSTORE_ALLOWED_LATENESS_S": "0", "COLDSTORE_QUARANTINE_CRITICAL": "1", "COLDSTORE_LATE_WARNING": "0"})
