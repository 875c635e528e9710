"""Checkpoints of every engine, damaged and forged, and the draws that come of them."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.fuzz.outcome import Escaped, worded
from benchmarks.fuzz.recipe import Recipe
from benchmarks.fuzz.tables import rows_of
from edgewise.errors import FileError


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

    def _problem(self, name: str) -> Any:
        return _problem(4)

    def _run(self, engine: str, path: Path, draws: int) -> str:
        from edgewise.run.chains import run
        from edgewise.run.options import RunOptions

        options = RunOptions(
            engine=engine.partition(" ")[0], settings=self.ENGINES[engine], checkpoint=path, chains=2,
            min_draws=draws, max_draws=draws, target_ess=None, seed=3, progress=False, n_jobs=1,
        )  # fmt: skip
        result = run(self._problem(engine), options)
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


class MoreCheckpoints(CheckpointFolder):
    """The same for what the chains of a run share, larger cliques and variables with any levels."""

    ENGINES: ClassVar[dict[str, dict[str, int]]] = {
        "surrogate": {"warm_up": 40, "particles": 64},
        "exact by elimination": {"warm_up": 20, "particles": 64},
        "exact levels": {"warm_up": 20},
        "particle triples": {"warm_up": 60, "particles": 64},
        "exact triples": {"warm_up": 20},
    }

    def _problem(self, name: str) -> Any:
        from edgewise.engines.protocol import Problem
        from edgewise.features import Features, level_statistics
        from edgewise.priors import Prior
        from edgewise.scales import Scale, Scales

        if name != "exact levels":
            return _problem(21 if "elimination" in name else 4, 3 if "triples" in name else 2)
        scales = Scales(
            (Scale("ordinal", (1, 2, 3)), Scale("nominal", ("a", "b", "c")), Scale("binary", (0, 1)))
        )
        rng, features = np.random.default_rng(1), Features.pairs(3)
        rows = np.stack([rng.integers(0, scale.n_levels, 40) for scale in scales], axis=1)
        statistics = level_statistics(rows, None, scales, features)
        return Problem(features, statistics, Prior().resolve(features), None, scales)


def _problem(p: int, largest: int = 2) -> Any:
    from edgewise.data import read_data
    from edgewise.engines.protocol import Problem
    from edgewise.features import Features, sufficient_statistics
    from edgewise.priors import Prior

    data = read_data(rows_of(np.random.default_rng(1), p=p), constant="keep")
    features = Features.up_to(p, largest)
    return Problem(features, sufficient_statistics(data, features), Prior().resolve(features))
