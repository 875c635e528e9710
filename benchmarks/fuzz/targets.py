"""What is fuzzed: each target makes an input of a recipe, uses it as a user would, and says what came of it.

An outcome is a short text: ``refused: ...`` with the words of edgewise's own errors, or what was accepted.
:class:`Escaped` is a finding: another exception, or an answer that silently differs from the original's.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from benchmarks.fuzz.checkpoints import CheckpointFolder, MoreCheckpoints
from benchmarks.fuzz.outcome import Escaped
from benchmarks.fuzz.posteriors import AttributesFile, LevelsFile, ModelsFile, PosteriorFile, forged
from benchmarks.fuzz.recipe import Recipe
from benchmarks.fuzz.tables import Door, Memory


class Command:
    """The command line: any words after ``edgewise``, on good, damaged and missing files."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        self.files = PosteriorFile()
        self.door = Door()
        (self.folder / "table.csv").write_bytes(self.door.good["csv"])
        (self.folder / "good.nc").write_bytes(self.files.good)

    def __call__(self, data: bytes) -> str:
        from typer.testing import CliRunner

        from edgewise.cli import app

        recipe = Recipe(data)
        (self.folder / "odd.nc").write_bytes(forged(self.files.arrays, recipe.alter_json(self.files.record)))
        (self.folder / "odd.csv").write_bytes(recipe.damage(self.door.good["csv"]))
        files = ("table.csv", "odd.csv", "good.nc", "odd.nc", "good.nc", "odd.nc", "nothing", "", "-", "x\0y")
        command = recipe.choose(
            ("summary", "plot", "report", "compare", "predict", "sample", "export", "simulate", "fit")
        )
        words = [command]
        for _ in range(1 + recipe.below(3)):
            name = recipe.choose(files)
            words.append(str(self.folder / name) if "." in name else name)
        if command == "export":
            words.insert(1, recipe.choose(("weights", "edges", "graphml", "draws", "nothing")))
        options = (
            "-o", "--coding", "--top", "--seed", "--json", "--missing", "--format", "--draws", "--rows",
            "--p0", "--grid", "--kind", "--edge", "--help", "--nothing", "-n",
        )  # fmt: skip
        for _ in range(recipe.below(3)):
            words += [
                recipe.choose(options),
                str(recipe.choose((1, 0, -1, "x", "nan", "ising", "out.csv", "\x1b[31m", "é"))),
            ]
        if command == "fit":
            words += ["--engine", "exact", "--draws", "4", "--max-draws", "4", "--chains", "1", "--overwrite"]
        if (
            command in ("report", "plot", "export", "fit", "predict", "sample", "simulate")
            and "-o" not in words
        ):
            words += [
                "-o",
                str(self.folder / recipe.choose(("out.html", "out.csv", "out.png", "out.nc", "out"))),
            ]
        words = [
            word.replace("out", str(self.folder / "out")) if word == "out.csv" else word for word in words
        ]
        with contextlib.chdir(self.folder):
            result = CliRunner().invoke(app, words, input="a,b\n1,0\n0,1\n")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise Escaped(f"edgewise {' '.join(words)!r}: {result.exception!r}") from result.exception
        if "\x1b[31m" in result.output:
            raise Escaped(f"edgewise {' '.join(words)!r} writes control characters")
        if "Traceback" in result.output or "should not have happened" in result.output:
            raise Escaped(f"edgewise {' '.join(words)!r}: {result.output[-200:]}")
        return f"{command} ends with {result.exit_code}"


TARGETS = {
    "door": Door,
    "memory": Memory,
    "posterior": PosteriorFile,
    "levels": LevelsFile,
    "communities": ModelsFile,
    "attributes": AttributesFile,
    "checkpoint": CheckpointFolder,
    "engines": MoreCheckpoints,
    "command": Command,
}
