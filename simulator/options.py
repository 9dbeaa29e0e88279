"""What can be asked of the simulator; every value is checked before anything is written."""

from dataclasses import dataclass, fields
from pathlib import Path

from simulator import timestamps

FORMATS = ("plain", "gz", "zst")
LINE_FAULTS = ("duplicates", "conflicts", "late", "out_of_order", "wrong_clock", "bad", "odd", "blank")
BAD_KINDS = (
    "malformed_json",
    "not_an_object",
    "invalid_utf8",
    "line_too_long",
    "missing",
    "wrong_type",
    "bad_event_ts",
    "temperature_out_of_range",
    "battery_out_of_range",
    "several",
)
DEFAULT_START = "2025-11-08T06:00:00Z"
MOST_SENSORS = 200_000
# Two minutes of readings in a file: with four, every fourth reading would already count as late when they arrive.
DEFAULT_FILE_MINUTES = 2.0
BULK_LINES_PER_FILE, FEWEST_BULK_FILES = 250_000, 8


class OptionsError(ValueError):
    """A value that makes no sense; the message is one line for the person who gave it."""


@dataclass(frozen=True)
class Options:
    lake: Path
    landing: Path | None = None
    truth: Path | None = None
    stores: int = 12
    sensors: int = 8
    start: str | None = None
    hours: float = 2.0
    readings: int | None = None
    cadence: float = 30.0
    seed: int = 7
    file_minutes: float | None = None
    files_by: str | None = None
    formats: tuple[str, ...] = FORMATS
    duplicates: float = 0.004
    conflicts: float = 0.001
    late: float = 0.002
    out_of_order: float = 0.004
    wrong_clock: float = 0.001
    bad: float = 0.004
    odd: float = 0.004
    blank: float = 0.001
    bad_kinds: tuple[str, ...] = BAD_KINDS
    truncated: float = 0.0
    silent: float = 0.03
    cut_off_hours: float = 0.5
    input_stop_minutes: float = 4.0

    @property
    def landing_root(self) -> Path:
        return self.landing or self.lake / "landing"

    @property
    def lines_per_hour(self) -> float:
        """About; silences and stops of the usual lengths take some readings away, copies bring some."""
        heard = (1 - 0.55 * self.silent) * (1 - min(0.25, self.input_stop_minutes / 360))
        return self.stores * self.sensors * 3600 / self.cadence * heard * (1 + self.duplicates + self.conflicts + self.blank)

    def end_ms(self, start_ms: int) -> int:
        """Where this call ends; for a number of readings where a file ends, so that no large file is left over."""
        if self.readings is None:
            return start_ms + round(self.hours * timestamps.HOUR)
        wanted_ms = start_ms + round(self.readings / self.lines_per_hour * timestamps.HOUR)
        return max(round(wanted_ms / self.file_ms), start_ms // self.file_ms + 1) * self.file_ms

    @property
    def cadence_ms(self) -> int:
        return round(self.cadence * timestamps.SECOND)

    @property
    def file_ms(self) -> int:
        minutes = self.file_minutes
        if minutes is None:
            filling = round(min(BULK_LINES_PER_FILE, (self.readings or 0) / FEWEST_BULK_FILES) / self.lines_per_hour * 60)
            minutes = float(min(60, max(DEFAULT_FILE_MINUTES, filling)))
        return round(minutes * timestamps.MINUTE)

    @property
    def one_file_for_all_stores(self) -> bool:
        return (self.files_by or ("store" if self.readings is None else "all")) == "all"

    def check(self) -> None:
        for problem in (*self._bad_numbers(), *self._bad_choices()):
            raise OptionsError(problem)

    def _bad_numbers(self) -> list[str]:
        shares = [(name, getattr(self, name)) for name in (*LINE_FAULTS, "truncated", "silent")]
        problems = [f"{name} is a share between 0 and 1, not {share:g}" for name, share in shares if not 0 <= share <= 1]
        together = sum(getattr(self, name) for name in LINE_FAULTS)
        ranges = [
            ("stores", self.stores, 1, 10_000),
            ("sensors", self.sensors, 1, 10_000),
            ("hours", self.hours, 0.01, 100_000),
            ("readings", self.readings or 1, 1, 10**11),
            ("cadence", self.cadence, 1, 3_600),
            ("seed", self.seed, 0, 2**63 - 1),
            ("file_minutes", self.file_minutes or 1, 0.05, 1_440),
            ("cut_off_hours", self.cut_off_hours, 0, 1_000),
            ("input_stop_minutes", self.input_stop_minutes, 0, 10_000),
        ]
        for name, value, low, high in ranges:
            if not low <= value <= high:
                problems.append(f"{name} must lie between {low:,} and {high:,}, not {value:g}")
        if together > 1:
            problems.append(f"the shares of the line faults add up to {together:g}; a line has one fault at most, so 1 is the limit")
        if self.stores * self.sensors > MOST_SENSORS:
            problems.append(f"stores x sensors is {self.stores * self.sensors:,}; the simulator handles up to {MOST_SENSORS:,} sensors")
        return problems

    def _bad_choices(self) -> list[str]:
        problems = []
        for name, chosen, known in (("formats", self.formats, FORMATS), ("bad_kinds", self.bad_kinds, BAD_KINDS)):
            unknown = [value for value in chosen if value not in known]
            if unknown or not chosen:
                problems.append(f"{name}: {unknown[0] if unknown else 'nothing'!r} is not one of {', '.join(known)}")
        if self.files_by not in (None, "store", "all"):
            problems.append(f"files_by is store or all, not {self.files_by!r}")
        if self.start is not None:
            try:
                timestamps.from_iso(self.start)
            except ValueError:
                problems.append(f"start {self.start!r} is not an ISO 8601 time such as {DEFAULT_START}")
        return problems


OPTION_NAMES = tuple(field.name for field in fields(Options))
