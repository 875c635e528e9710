"""Posterior files, damaged and forged, and what users do with them."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.outcome import Escaped, worded
from benchmarks.fuzz.recipe import Recipe
from edgewise.errors import FileError

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"


class PosteriorFile:
    """``load_posterior`` and what users do next: summary, diagnosis, report, predictions."""

    OLD = "pairs-0.2.0.nc"

    def __init__(self) -> None:
        from edgewise.posterior import storage

        self.folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        posterior = self._posterior()
        posterior.save(self.folder / "good.nc")
        self.good = (self.folder / "good.nc").read_bytes()
        self.answer = _answer(posterior)
        self.old = (FIXTURES / self.OLD).read_bytes()
        self.old_answer = _answer(_loaded(FIXTURES / self.OLD))
        contents = storage.read(self.folder / "good.nc")
        layout = storage._arrays(contents)
        self.arrays = {name: values for name, (_, values) in layout.items() if name != "metadata"}
        self.record = json.loads(storage._metadata(contents))

    def _posterior(self) -> Any:
        return _small_posterior()

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
        path.write_bytes(forged(arrays, record))
        return self._use(path, None)

    def _use(self, path: Path, answer: str | None) -> str:
        try:
            posterior = _loaded(path)
        except FileError as error:
            if path.name not in str(error):
                raise Escaped(f"the file is not named: {error}") from error
            return worded(error)
        found = _answer(posterior)
        # One in sixteen: a report takes a second.
        if answer is None and found.startswith("0"):
            from edgewise.report.build import build_report

            build_report(posterior)
        if answer is not None and found != answer:
            raise Escaped("a damaged posterior gives other numbers")
        return "read, the same" if answer is not None else "read"


class LevelsFile(PosteriorFile):
    """The same for variables with any levels."""

    OLD = "triples-0.2.0.nc"

    def _posterior(self) -> Any:
        return _loaded(FIXTURES / "levels-0.3.0.nc")


class ModelsFile(PosteriorFile):
    """The same where the prior of inclusion has learned communities of the variables."""

    def _posterior(self) -> Any:
        from dataclasses import replace

        from edgewise.posterior import Posterior
        from edgewise.priors import BlockInclusion, CauchySlab, Prior

        plain = _small_posterior()
        states = np.array([[0, 0, 1, 0], [0, 1, 1, 2]] * 10, np.int16)
        return Posterior(
            [replace(chain, model_state=states) for chain in plain.draws],
            plain.features,
            plain.names,
            prior=Prior(inclusion=BlockInclusion(), slab=CauchySlab(), edge_slab={("a", "b"): (0.5, 1.0)}),
            info=dict(plain.info),
        )


class AttributesFile(PosteriorFile):
    """The same where it has learned what attributes of the variables say."""

    def _posterior(self) -> Any:
        from dataclasses import replace

        from edgewise.posterior import Posterior
        from edgewise.priors import AttributeInclusion, Prior

        plain = _small_posterior()
        table = {"kind": dict(zip(plain.names, "xyxy")), "age": dict(zip(plain.names, range(4)))}
        inclusion = AttributeInclusion("same(kind) + distance(age)", table)
        return Posterior(
            [replace(chain, model_state=np.ones((20, 3))) for chain in plain.draws],
            plain.features,
            plain.names,
            prior=Prior(inclusion=inclusion),
            info=dict(plain.info),
        )


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


def forged(arrays: dict[str, np.ndarray], record: Any) -> bytes:
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
