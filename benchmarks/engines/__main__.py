"""Command line of the engine benchmarks."""

from __future__ import annotations

import argparse
import importlib

TABLES = ("accuracy", "speed", "kernel", "recovery", "growth", "robust", "bias", "memory")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines")
    parser.add_argument("tables", nargs="*", default=["all"], choices=[*TABLES, "all"])
    parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--stored", action="store_true", help="print what is stored, compute nothing")
    arguments = parser.parse_args()
    for name in TABLES if "all" in arguments.tables else arguments.tables:
        print(f"\n## {name}\n", flush=True)
        module = importlib.import_module(f"benchmarks.engines.{name}")
        module.main(arguments)


if __name__ == "__main__":
    main()
