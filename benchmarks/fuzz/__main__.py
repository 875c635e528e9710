"""Fuzz everything that reads, each target in a process of its own with a deadline and a limit of memory.

    python -m benchmarks.fuzz --seconds 3600              all targets in turn, with hypothesis
    python -m benchmarks.fuzz door --engine atheris       one target, guided by coverage; needs atheris
    python -m benchmarks.fuzz posterior --repeat FILE     one input again

Printed for each target: inputs tried, distinct outcomes, what escaped (an exception that is not edgewise's
own, or an answer that silently differs), crashes of the interpreter, inputs beyond the deadline, and the
largest memory. Inputs that broke something are kept in the directory --found; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.fuzz.outcome import Escaped, tried
from benchmarks.fuzz.targets import TARGETS

DEADLINE = 60.0  # the library that reads foreign files has 30 of its own
SETTING_UP = 300.0
MEMORY = 6 << 30
LENGTHS = (24, 120)


@dataclass
class Report:
    """What came of the inputs of one target."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    escaped: Counter[str] = field(default_factory=Counter)
    crashes: int = 0
    hangs: int = 0
    slowest: float = 0.0
    megabytes: float = 0.0

    def broken(self) -> int:
        return sum(self.escaped.values()) + self.crashes + self.hangs

    def line(self) -> str:
        return (
            f"{self.name:<11}{self.inputs:>9,} inputs in {self.seconds:6,.0f} s  "
            f"{len(self.outcomes):>4} outcomes  "
            f"{sum(self.escaped.values())} escaped  {self.crashes} crashes  {self.hangs} hangs  "
            f"slowest {self.slowest:.1f} s  peak {self.megabytes:,.0f} MB"
        )


def work(name: str, seed: int, engine: str, seconds: float, pipe: Connection) -> None:
    """In the child: inputs without end, each announced before it is tried."""
    os.nice(10)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    watching: Any = contextlib.nullcontext()
    if engine == "atheris":
        import atheris

        watching = atheris.instrument_imports(include=["edgewise"])
    with watching:
        target = TARGETS[name]()
        with contextlib.suppress(Escaped):
            tried(target, bytes(LENGTHS[0]))  # what is imported on first use
    pipe.send(("ready", "", 0.0))

    def one(data: bytes) -> None:
        pipe.send(("try", data, 0.0))
        try:
            kind, text = "outcome", tried(target, data)
        except Escaped as error:
            kind, text = "escaped", str(error)
        pipe.send((kind, text, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))

    if engine == "atheris":
        atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}", f"-max_len={LENGTHS[1]}"], one)
        atheris.Fuzz()
        return
    import hypothesis
    from hypothesis import strategies

    while True:
        seed += 1
        examples = hypothesis.given(strategies.binary(min_size=LENGTHS[0], max_size=LENGTHS[1]))(one)
        hypothesis.seed(seed)(
            hypothesis.settings(
                max_examples=300,
                database=None,
                deadline=None,
                phases=[hypothesis.Phase.generate],
                suppress_health_check=list(hypothesis.HealthCheck),
            )(examples)
        )()


def fuzz(name: str, seconds: float, seed: int, engine: str, found: Path) -> Report:
    """Try inputs for some seconds, in a new process after each that broke one."""
    report = Report(name)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=work, args=(name, seed + report.inputs, engine, end - time.monotonic(), theirs)
        )
        child.start()
        theirs.close()
        begun = time.monotonic()
        data, since, limit = b"", begun, SETTING_UP
        try:
            while time.monotonic() < end or data:
                if not ours.poll(max(0.0, since + limit - time.monotonic())):
                    report.hangs += 1
                    keep(found, name, data, "hang")
                    break
                kind, content, megabytes = ours.recv()
                report.slowest = max(report.slowest, time.monotonic() - since if kind != "ready" else 0.0)
                since, limit = time.monotonic(), DEADLINE
                if kind == "ready":
                    begun = since
                elif kind == "try":
                    data = content
                    report.inputs += 1
                    continue
                report.megabytes = max(report.megabytes, megabytes)
                if kind == "outcome":
                    report.outcomes[content] += 1
                elif kind == "escaped":
                    report.escaped[content[:200].encode("ascii", "backslashreplace").decode()] += 1
                    keep(found, name, data, "escaped")
                data = b""
        except EOFError:
            child.join(5)
            if data:
                report.crashes += 1
                keep(found, name, data, "crash")
            elif time.monotonic() < end - 5 and child.exitcode:
                print(f"{name}: the worker ended with {child.exitcode} before its first input")
                report.crashes += 1
                break
        finally:
            report.seconds += time.monotonic() - begun
            if child.is_alive():
                child.kill()
            child.join()
    return report


def keep(folder: Path, name: str, data: bytes, what: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}-{what}-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz everything that reads.")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all of them if none is named")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["hypothesis", "atheris"], default="hypothesis")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="where breaking inputs go")
    parser.add_argument("--repeat", type=Path, help="one input again, in this process")
    parser.add_argument("--outcomes", action="store_true", help="list every outcome")
    given = parser.parse_args()
    names = given.targets or list(TARGETS)
    if given.repeat is not None:
        print(tried(TARGETS[names[0]](), given.repeat.read_bytes()))
        return 0
    broken = 0
    for name in names:
        report = fuzz(name, given.seconds / len(names), given.seed, given.engine, given.found)
        broken += report.broken()
        print(report.line(), flush=True)
        for text, count in report.escaped.most_common(20):
            print(f"    escaped {count} times: {text}", flush=True)
        if given.outcomes:
            for text, count in report.outcomes.most_common():
                print(f"    {count:>7,} {text}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
