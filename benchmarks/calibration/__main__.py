"""Command line of the calibration."""

from __future__ import annotations

import argparse
import math
import time

from benchmarks.calibration import kinds, lattices, levels, page, triples, worlds, wrong

PARTS = {
    "wrong": wrong.grow,
    "worlds": worlds.grow,
    "levels": levels.grow,
    "kinds": kinds.grow,
    "triples": triples.grow,
    "lattices": lattices.grow,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description="Calibration of the engines, from where it stopped, and docs/calibration.md.",
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all if none is named")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="by the clock; 0 writes the page alone"
    )
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    for part in given.parts or PARTS:
        PARTS[part](end)
    page.write()


if __name__ == "__main__":
    main()
