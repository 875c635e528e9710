"""What is fuzzed: each target makes an input of a recipe, uses it as a user would, and says what came of it.

An outcome is a short text: ``refused: ...`` with the words of edgewise's own errors, or what was accepted.
:class:`Escaped` is a finding: another exception, or an answer that silently differs from the original's.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import struct
import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.fuzz.recipe import Recipe
from edgewise.errors import DataError, FileError

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
CELLS = (
    "0", "1", "yes", "no", "", " ", "NA", "nan", "?", "2", "1.0", "-1", "1e400", "9007199254740993", "é",
    "\0", '"', "=1+1", "x" * 200,
)  # fmt: skip
SEPARATORS = (",", ";", "\t", "|", ", ", "\n", "\r\n", "\r", '"', "")


class Escaped(Exception):
    """Something that no user should see."""


def worded(error: BaseException) -> str:
    """An error without what differs from input to input."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|-?\d[\d.,e+-]*", "_", str(error))
    return f"refused: {type(error).__name__} {text[:110]}".replace("\n", " ")


def rows_of(rng: np.random.Generator, n: int = 30, p: int = 4) -> np.ndarray:
    rows = (rng.random((n, p)) < 0.5).astype(int)
    rows[:, 1] = np.where(rng.random(n) < 0.8, rows[:, 0], rows[:, 1])
    return rows


class Door:
    """``read_data``: text, archives and arrays."""

    def __init__(self) -> None:
        import gzip

        import pandas as pd

        table = pd.DataFrame(rows_of(np.random.default_rng(1)), columns=list("abcd"))
        words = table.replace({0: "no, never", 1: "yes"})
        self.good: dict[str, bytes] = {"csv": table.to_csv(index=False).encode()}
        self.good["words"] = words.to_csv(index=False).encode()
        self.good["gz"] = gzip.compress(self.good["csv"])
        for kind, writer in (("npz", np.savez_compressed), ("npy", None)):
            buffer = io.BytesIO()
            if writer is None:
                np.save(buffer, table.to_numpy())
            else:
                writer(buffer, X=table.to_numpy())
            self.good[kind] = buffer.getvalue()
        try:
            buffer = io.BytesIO()
            words.to_parquet(buffer)
            self.good["parquet"] = buffer.getvalue()
        except ImportError:
            pass
        self.frame = table

    def __call__(self, data: bytes) -> str:
        recipe = Recipe(data)
        kind = recipe.below(4)
        source: Any
        if kind == 0:
            source = recipe.damage(self.good[recipe.choose(sorted(self.good))])
        elif kind == 1:
            pieces = [recipe.choose((*CELLS, *SEPARATORS, *SEPARATORS)) for _ in range(recipe.below(60))]
            source = "".join(pieces).encode()
        elif kind == 2:
            width = 1 + recipe.below(5)
            lines = [
                recipe.choose((",", ";", "\t")).join(recipe.choose(CELLS) for _ in range(width))
                for _ in range(recipe.below(12))
            ]
            source = "\n".join(lines).encode()
        else:
            return self._read(recipe.alter(self.frame.to_numpy()), recipe)
        found = self._read(io.BytesIO(source), Recipe(data[::-1]))
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(source)
            again = self._read(file.name, Recipe(data[::-1]))
        if found.startswith("refused") != again.startswith("refused"):
            raise Escaped(f"a file is {again!r} and the same bytes are {found!r}")
        if not found.startswith("refused") and found != again:
            raise Escaped(f"a file gives {again} and the same bytes {found}")
        return found.partition(" #")[0]

    def _read(self, source: Any, recipe: Recipe) -> str:
        from edgewise.data import read_data

        options = {
            "missing": recipe.choose(("error", "drop")),
            "constant": recipe.choose(("error", "keep", "drop")),
        }
        if recipe.below(4) == 0:
            options[recipe.choose(("columns", "drop_columns", "names", "group"))] = recipe.choose(
                ("a", ["a", "b"], [0, 1], [-1], 5, [[]], ["nobody"], None, list("wxyz"))
            )
        try:
            read = read_data(source, **options)
        except (DataError, FileError) as error:
            return worded(error)
        values = read.values()
        if values.size and values.max() > 1:
            raise Escaped("a cell is neither 0 nor 1")
        return f"read #{read.digest()[:12]}"


class PosteriorFile:
    """``load_posterior`` and what users do next: summary, diagnosis, report, predictions."""

    def __init__(self) -> None:
        from edgewise.posterior import storage

        self.folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        posterior = _small_posterior()
        posterior.save(self.folder / "good.nc")
        self.good = (self.folder / "good.nc").read_bytes()
        self.answer = _answer(posterior)
        self.old = (FIXTURES / "pairs-0.2.0.nc").read_bytes()
        self.old_answer = _answer(_loaded(FIXTURES / "pairs-0.2.0.nc"))
        contents = storage.read(self.folder / "good.nc")
        layout = storage._arrays(contents)
        self.arrays = {name: values for name, (_, values) in layout.items() if name != "metadata"}
        self.record = json.loads(storage._metadata(contents))

    def __call__(self, data: bytes) -> str:
        recipe = Recipe(data)
        path = self.folder / "input.nc"
        kind = recipe.below(100)
        if kind < 40:
            path.write_bytes(recipe.damage(self.good))
            return self._use(path, self.answer)
        if kind < 42:  # a process of its own for each
            path.write_bytes(recipe.damage(self.old))
            return self._use(path, self.old_answer)
        if kind < 60:
            end = len(self.good) - 56
            changed = recipe.damage(self.good[: end + 8])
            path.write_bytes(changed + hashlib.sha256(changed).digest() + self.good[-16:])
            return self._use(path, None)
        arrays, record = dict(self.arrays), self.record
        for _ in range(1 + recipe.below(2)):
            if recipe.below(2):
                name = recipe.choose(sorted(arrays))
                arrays[name] = recipe.alter(arrays[name])
            else:
                record = recipe.alter_json(record)
        path.write_bytes(_forged(arrays, record))
        return self._use(path, None)

    def _use(self, path: Path, answer: str | None) -> str:
        try:
            posterior = _loaded(path)
        except FileError as error:
            if path.name not in str(error):
                raise Escaped(f"the file is not named: {error}") from error
            return worded(error)
        found = _answer(posterior)
        if answer is None and found.startswith("0"):  # one in sixteen: a report takes a second
            from edgewise.report.build import build_report

            build_report(posterior)
        if answer is not None and found != answer:
            raise Escaped("a damaged posterior gives other numbers")
        return "read, the same" if answer is not None else "read"


def _small_posterior() -> Any:
    from edgewise.draws import Draws
    from edgewise.features import Features
    from edgewise.posterior import Posterior

    rng = np.random.default_rng(3)
    chains = []
    for _ in range(2):
        on = rng.random((20, 6)) < 0.4
        chains.append(
            Draws(
                np.concatenate([[0], np.cumsum(on.sum(axis=1))]),
                np.nonzero(on)[1].astype(np.int32),
                rng.normal(size=on.sum()),
                rng.normal(size=(20, 4)),
                rng.random(20),
                1 + rng.random(20),
            )
        )
    sums = [{"tries": np.full(6, 20.0), "inclusion": np.full(6, 8.0)} for _ in range(2)]
    info = {
        "engine": "exact",
        "seed": 1,
        "seconds": 1.5,
        "settings": {},
        "versions": {"numpy": "2"},
        "notes": ["a"],
    }
    return Posterior(
        chains,
        Features.pairs(4),
        list("abcd"),
        info=info,
        edge_sums=sums,
        counters=[{"iterations": 20.0}] * 2,
    )


def _loaded(path: Path) -> Any:
    from edgewise import load_posterior

    return load_posterior(path)


def _answer(posterior: Any) -> str:
    """Digest of what a user sees of a posterior."""
    from edgewise.posterior.diagnostics import diagnose

    digest = hashlib.sha256(posterior.summary().to_csv().encode())
    digest.update(np.ascontiguousarray(posterior.coupling()).tobytes())
    digest.update(repr(posterior).encode())
    diagnose(posterior)
    posterior.median_model  # noqa: B018
    return digest.hexdigest()


def _forged(arrays: dict[str, np.ndarray], record: Any) -> bytes:
    from edgewise.posterior import container, storage

    content, index = b"\x89HDF\r\n\x1a\n" + bytes(88), {}
    arrays = {**arrays, "metadata": np.frombuffer(json.dumps(record).encode(), np.uint8)}
    for name, values in arrays.items():
        values = np.ascontiguousarray(values)
        index[name] = {
            "type": values.dtype.str,
            "shape": list(values.shape),
            "chunk": None,
            "pieces": [[len(content), values.nbytes, 0]] if values.size else [],
        }
        content += values.tobytes()
    header = {"title": storage.FORMAT, "format_version": storage.FORMAT_VERSION, "arrays": index}
    text = json.dumps(header).encode()
    whole = content + text + struct.pack("<Q", len(text))
    return whole + hashlib.sha256(whole).digest() + container.MARK


class CheckpointFolder:
    """``--resume``: a damaged or forged checkpoint of each engine, and the draws that come of it."""

    ENGINES: ClassVar[dict[str, dict[str, int]]] = {
        "exact": {"warm_up": 20},
        "particle": {"warm_up": 60, "particles": 64},
        "langevin": {"warm_up": 20, "thin": 2, "particles": 16},
    }

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        self.good: dict[str, dict[str, bytes]] = {}
        self.answer: dict[str, str] = {}
        for engine in self.ENGINES:
            path = self.folder / engine
            self._run(engine, path, 6)
            self._run(engine, path, 8)
            self.good[engine] = {file.name: file.read_bytes() for file in path.glob("*.npz")}
            self.answer[engine] = self._run(engine, path, 10)

    def _run(self, engine: str, path: Path, draws: int) -> str:
        from edgewise.data import read_data
        from edgewise.engines.protocol import Problem
        from edgewise.features import Features, sufficient_statistics
        from edgewise.priors import Prior
        from edgewise.run.chains import run
        from edgewise.run.options import RunOptions

        data = read_data(rows_of(np.random.default_rng(1)), constant="keep")
        features = Features.pairs(4)
        problem = Problem(features, sufficient_statistics(data, features), Prior().resolve(features))
        options = RunOptions(
            engine=engine, settings=self.ENGINES[engine], checkpoint=path, chains=2, min_draws=draws,
            max_draws=draws, target_ess=None, seed=3, progress=False, n_jobs=1,
        )  # fmt: skip
        result = run(problem, options)
        digest = hashlib.sha256()
        for chain in result.draws:
            if len(chain) != draws or not (
                np.isfinite(chain.values).all() and np.isfinite(chain.biases).all()
            ):
                raise Escaped("a resumed run has too few draws, or such as are no numbers")
            for part in (chain.indptr, chain.indices, chain.values, chain.biases):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def __call__(self, data: bytes) -> str:
        recipe = Recipe(data)
        engine = recipe.choose(sorted(self.good))
        path = self.folder / "input"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        good = self.good[engine]
        for name, content in good.items():
            (path / name).write_bytes(content)
        name = recipe.choose(sorted(good))
        damaged = recipe.below(2) == 0
        if damaged:
            (path / name).write_bytes(recipe.damage(good[name]))
        else:
            self._forge(path, name, recipe)
        try:
            found = self._run(engine, path, 10)
        except FileError as error:
            if str(path) not in str(error):
                raise Escaped(f"the checkpoint is not named: {error}") from error
            return worded(error)
        if damaged and found != self.answer[engine]:
            raise Escaped("a damaged checkpoint gives other draws")
        return f"went on, {'the same' if found == self.answer[engine] else 'forged'}"

    @staticmethod
    def _forge(path: Path, name: str, recipe: Recipe) -> None:
        with np.load(path / name, allow_pickle=False) as archive:
            arrays = dict(archive)
        key = recipe.choose(sorted(arrays))
        if key == "manifest":
            record = recipe.alter_json(json.loads(arrays[key].tobytes()))
            arrays[key] = np.frombuffer(json.dumps(record).encode(), np.uint8)
        else:
            arrays[key] = recipe.alter(arrays[key])
        np.savez(path / name, **arrays)  # type: ignore[arg-type]


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
        (self.folder / "odd.nc").write_bytes(_forged(self.files.arrays, recipe.alter_json(self.files.record)))
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


TARGETS = {"door": Door, "posterior": PosteriorFile, "checkpoint": CheckpointFolder, "command": Command}


def tried(target: Any, data: bytes) -> str:
    """The outcome of one input; whatever is no error of edgewise's own has escaped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return str(target(data))
        except Escaped:
            raise
        except MemoryError as error:
            raise Escaped("out of memory") from error
        except Exception as error:
            raise Escaped(f"{type(error).__name__}: {error}") from error
