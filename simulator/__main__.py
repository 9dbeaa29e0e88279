"""`python -m simulator --lake DIR`: simulate the next hours and say what was written."""

import sys

from simulator.arguments import parse
from simulator.options import OptionsError
from simulator.simulation import simulate
from simulator.summary import summary


def main() -> int:
    options = parse()
    try:
        delivery = simulate(options)
    except (OptionsError, OSError) as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 2 if isinstance(error, OptionsError) else 1
    print("\n".join(summary(delivery, options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
