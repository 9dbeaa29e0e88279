"""The command line: every option of the simulator, in the words of the person who types it."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from simulator.options import BAD_KINDS, DEFAULT_START, LINE_FAULTS, Options, OptionsError
from simulator.state import kept_options

DESCRIPTION = """\
Simulate cold stores: sensor readings with all their faults, as landing files with true arrival stamps, and the reference files.
A later call on the same lake goes on where the last one stopped, with the same options unless others are given."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"simulator: {message} (--help lists the options)", file=sys.stderr)
        sys.exit(2)


def parse(arguments: list[str] | None = None) -> Options:
    """Options from the command line, over those of the last call on this lake, over the defaults."""
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    everywhere = given.pop("faults", None)
    lake = given.pop("lake")
    try:
        kept: dict[str, Any] = kept_options(lake)
        if kept.get("landing"):
            kept["landing"] = Path(kept["landing"])
        if everywhere is not None:
            kept |= dict.fromkeys(LINE_FAULTS, everywhere)
        options = Options(lake=lake, **(kept | given))
        options.check()
    except OptionsError as error:
        parser.error(str(error))
    return options


def _folder(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(
            f"{text} is no folder of this machine; simulate into one, then copy its landing and reference folders there"
        )
    return Path(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _parser() -> Parser:
    usual = Options(lake=Path())
    parser = Parser(
        prog="python -m simulator",
        description=DESCRIPTION,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=34, width=120),
    )

    def add(group: Any, name: str, metavar: str, kind: Any, text: str, shows: object = None) -> None:
        group.add_argument(name, metavar=metavar, type=kind, help=text if shows is None else f"{text} ({shows})")

    places = parser.add_argument_group("places")
    places.add_argument("--lake", metavar="DIR", type=_folder, required=True, help="the lake; its sample.json says where to go on")
    add(places, "--landing", "DIR", _folder, "where the landing files go", "LAKE/landing")
    add(places, "--truth", "FILE", Path, "also write what must become of every line, as JSON lines")
    add(places, "--formats", "LIST", _names, "files take turns among these", "plain,gz,zst")
    add(places, "--file-minutes", "M", float, "minutes in a file; beyond 2 some readings arrive too late", 2)
    places.add_argument("--files-by", choices=("store", "all"), help="a file for each store, or one for all (store; with --readings: all)")

    size = parser.add_argument_group("size")
    add(size, "--stores", "N", int, "number of stores", usual.stores)
    add(size, "--sensors", "N", int, "sensors in each store", usual.sensors)
    add(size, "--start", "TIME", str, "when it begins, ISO 8601", DEFAULT_START)
    add(size, "--hours", "H", float, "how long", usual.hours)
    add(size, "--readings", "N", int, "instead of --hours: as long as it takes for about N lines, in large files")
    add(size, "--cadence", "S", float, "seconds between two readings of a sensor", usual.cadence)
    add(size, "--seed", "N", int, "the same seed gives the same bytes", usual.seed)

    lines = parser.add_argument_group("faults of lines, each the share of readings that has it")
    add(lines, "--faults", "SHARE", float, "all shares of this group at once")
    add(lines, "--duplicates", "SHARE", float, "sent twice: at once, or again hours later", usual.duplicates)
    add(lines, "--conflicts", "SHARE", float, "sent twice, and the second says something else", usual.conflicts)
    add(lines, "--late", "SHARE", float, "minutes or hours late", usual.late)
    add(lines, "--out-of-order", "SHARE", float, "in the wrong place of its file", usual.out_of_order)
    add(lines, "--wrong-clock", "SHARE", float, "event time in the future", usual.wrong_clock)
    add(lines, "--bad", "SHARE", float, "not a reading, for a reason of quarantine", usual.bad)
    add(lines, "--odd", "SHARE", float, "unusual and good all the same", usual.odd)
    add(lines, "--blank", "SHARE", float, "followed by a blank line", usual.blank)
    add(lines, "--bad-kinds", "LIST", _names, f"which bad lines: {', '.join(BAD_KINDS)}", "all")

    more = parser.add_argument_group("faults of sensors, stores and files")
    add(more, "--silent", "SHARE", float, "sensors that fall silent in each two hours", usual.silent)
    add(more, "--cut-off-hours", "H", float, "one store is cut off for so long and uploads afterwards", usual.cut_off_hours)
    add(more, "--input-stop-minutes", "M", float, "all input stops for so long", usual.input_stop_minutes)
    add(more, "--truncated", "SHARE", float, "gz and zst files that break off", usual.truncated)
    return parser
