"""Checkpoints made or damaged by others: an error that names the directory, and no kernel sees the rest."""

from __future__ import annotations

import io
import json
import os
import shutil
import warnings
import zipfile

import numpy as np
import pytest

from edgewise.data import read_data
from edgewise.engines.protocol import Problem
from edgewise.errors import FileError
from edgewise.features import Features, sufficient_statistics
from edgewise.priors import Prior
from edgewise.run.chains import run
from edgewise.run.checkpoint import Checkpoint
from edgewise.run.options import RunOptions
from levels import level_problem

ENGINES = {
    "exact": ("exact", 2, {"warm_up": 20}),
    "particle": ("particle", 2, {"warm_up": 60, "particles": 64}),
    "particle on triples": ("particle", 3, {"warm_up": 60, "particles": 64}),
    "langevin": ("langevin", 2, {"warm_up": 20, "thin": 2, "particles": 16}),
    "levels": ("exact", 2, {"warm_up": 20}),
    "stretches": ("surrogate", 2, {"warm_up": 20, "particles": 64}),
}


def problem(name):
    prior = Prior(forced=[(0, 1)], forbidden=[(2, 3)], edge_probability={(1, 2): 0.7})
    if name == "levels":
        return level_problem(prior)
    data = read_data(np.random.default_rng(0).integers(0, 2, (40, 5)))
    features = Features.up_to(5, ENGINES[name][1])
    return Problem(features, sufficient_statistics(data, features), prior.resolve(features))


def go_on(path, name, draws=12):
    engine, _, settings = ENGINES[name]
    options = RunOptions(
        engine=engine, settings=settings, checkpoint=path, chains=2, min_draws=draws, max_draws=draws,
        target_ess=None, seed=3, progress=False, n_jobs=1,
    )  # fmt: skip
    return run(problem(name), options)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    made = {}

    def original(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("made") / "c"
            go_on(made[name], name, draws=8)
        return made[name]

    return original


def rewrite(path, change, kind="generation"):
    """Change the arrays and the manifest of the newest file of a kind; every checksum is right again."""
    for old in sorted(path.glob("generation-*.npz"))[:-1]:
        old.unlink()
    file = max(path.glob(f"{kind}-*.npz"))
    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    manifest = json.loads(arrays.pop("manifest").tobytes()) if kind == "generation" else None
    change(arrays, manifest)
    if manifest is not None:
        arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    np.savez(file, **arrays)


@pytest.fixture
def copied(originals, tmp_path):
    def copy(name):
        shutil.rmtree(tmp_path / "c", ignore_errors=True)
        shutil.copytree(originals(name), tmp_path / "c")
        return tmp_path / "c"

    return copy


def test_a_rewritten_checkpoint_goes_on(copied):
    for name in ENGINES:
        path = copied(name)
        rewrite(path, lambda arrays, manifest: None)
        assert len(go_on(path, name).draws[0]) == 12


NASTY = {
    "shorter": lambda a: a[..., :-1].copy() if a.ndim else a[None],
    "longer": lambda a: np.concatenate([a, a], axis=-1) if a.ndim else a[None],
    "flat": lambda a: a.reshape(1, -1) if a.ndim < 2 else a.reshape(-1),
    "empty": lambda a: np.zeros(0, a.dtype),
    "of another type": lambda a: a.astype(np.float32 if a.dtype != np.float32 else np.float64),
    "minus one": lambda a: np.full_like(a, -1) if a.dtype.kind != "u" else np.full_like(a, 0),
    "huge": lambda a: np.full_like(
        a, np.inf if a.dtype.kind == "f" else 1 if a.dtype.kind == "b" else np.iinfo(a.dtype).max
    ),
    "large": lambda a: np.full_like(a, 1e300 if a.dtype == np.float64 else 2**30),
    "not a number": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a + a.dtype.type(1),
    "zero": np.zeros_like,
    "one": np.ones_like,
    "one entry": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size // 2, 77, a).astype(a.dtype),
}


# Triples differ from pairs in the graph alone, whose lists have no other shape.
TRIED = [
    (name, kind)
    for name in ENGINES
    for kind in NASTY
    if "triples" not in name or kind in ("minus one", "huge", "large", "one entry")
]


@pytest.mark.parametrize(("name", "kind"), TRIED)
def test_no_array_of_a_state_reaches_a_kernel_unchecked(copied, name, kind):
    with np.load(max(copied(name).glob("generation-*.npz")), allow_pickle=False) as archive:
        keys = [key for key in archive if key.startswith("chain1.")]
    refused = []
    for key in keys:
        path = copied(name)
        rewrite(path, lambda arrays, _, key=key: arrays.update({key: NASTY[kind](arrays[key])}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = go_on(path, name)
            except FileError as error:
                refused.append((key, str(path) in str(error)))
            else:
                for draws in result.draws:
                    assert len(draws) == 12
                    assert np.isfinite(draws.values).all()
                    assert np.isfinite(draws.biases).all()
    assert len(refused) > 4, refused
    assert all(named for _, named in refused)


@pytest.mark.parametrize("name", ENGINES)
def test_a_state_that_lost_an_array(copied, name):
    with np.load(max(copied(name).glob("generation-*.npz")), allow_pickle=False) as archive:
        keys = [key for key in archive if key.startswith("chain0.") and "budgeted" not in key]
    for key in keys:
        path = copied(name)

        def lose(arrays, manifest, key=key):
            del arrays[key]
            manifest["arrays"].remove(key)

        rewrite(path, lose)
        with pytest.raises(FileError, match="is missing"):
            go_on(path, name)


def swap_listed(arrays, manifest):
    arrays["chain0.listed"][[0, 1]] = arrays["chain0.listed"][[1, 0]]


def forget_a_neighbour(arrays, manifest):
    arrays["chain0.degree"][np.argmax(arrays["chain0.degree"])] -= 1


def activate_the_forbidden(arrays, manifest):
    # (2, 3) is candidate 7 of the pairs of five.
    count = arrays["chain0.counts"][0]
    arrays["chain0.listed"][count] = 7
    arrays["chain0.place"][7] = count
    arrays["chain0.counts"] += 1


def couple_the_inactive(arrays, manifest):
    arrays["chain0.theta"][arrays["chain0.place"] < 0] = 1.0


def run_ahead(arrays, manifest):
    arrays["chain0.iteration"] = arrays["chain0.iteration"] + 1000


def never_ending(arrays, manifest):
    arrays["chain0.iteration"] = np.array(2**62)


def miscounted(arrays, manifest):
    arrays["chain0.counts"][1] += 1


@pytest.mark.parametrize(
    "change",
    [swap_listed, forget_a_neighbour, activate_the_forbidden, couple_the_inactive, run_ahead, never_ending,
     miscounted],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_states_that_contradict_themselves(copied, change):
    path = copied("exact")
    rewrite(path, change)
    with pytest.raises(FileError, match=r"is damaged: nothing can go on from chain 0"):
        go_on(path, "exact")


def another_strength(arrays, manifest):
    arrays["chain0.theta"][0] += 1e-3  # the first pair is forced, and has a matrix


def a_matrix_without_its_candidate(arrays, manifest):
    arrays["chain0.blocks"][:] = 0.5


def centred_outside(arrays, manifest):
    arrays["chain0.score_centres"][0, 0] = 1.5


@pytest.mark.parametrize(
    "change",
    [swap_listed, couple_the_inactive, another_strength, a_matrix_without_its_candidate, centred_outside],
    ids=lambda change: change.__name__,
)
def test_states_with_matrices_that_contradict_themselves(copied, change):
    path = copied("levels")
    rewrite(path, change)
    with pytest.raises(FileError, match=r"is damaged: nothing can go on from chain 0"):
        go_on(path, "levels")


MANIFESTS = {
    "an absolute path": lambda m: m["segments"][0].update(file="/etc/passwd"),
    "a path upwards": lambda m: m["segments"][0].update(file="../c/draws-00000001.npz"),
    "a generation as a segment": lambda m: m["segments"][0].update(file="generation-00000001.npz"),
    "a number as a segment": lambda m: m["segments"][0].update(file=5),
    "the same segment for ever": lambda m: m.update(segments=m["segments"] * 1000),
    "segments that are a number": lambda m: m.update(segments=7),
    "segments without draws": lambda m: m["segments"][0].pop("draws"),
    "draws of more chains": lambda m: m["segments"][0].update(draws=[8, 8, 8]),
    "draws in words": lambda m: m["segments"][0].update(draws=["8", "8"]),
    "chains below zero": lambda m: m.update(chains=-1),
    "very many chains": lambda m: m.update(chains=10**12),
    "chains in words": lambda m: m.update(chains="2"),
    "true chains": lambda m: m.update(chains=True),
    "no identity": lambda m: m.update(identity=None),
    "an identity that is a list": lambda m: m.update(identity=[1]),
    "no notes": lambda m: m.pop("notes"),
    "notes without thin": lambda m: m["notes"].pop("thin"),
    "thin of zero": lambda m: m["notes"].update(thin=0),
    "thin in words": lambda m: m["notes"].update(thin="1"),
    "seconds that are not a number": lambda m: m["notes"].update(seconds=float("nan")),
    "a seed that is a mapping": lambda m: m["identity"].update(seed={}),
    "a seed below zero": lambda m: m["identity"].update(seed=-1),
    "arrays that are a number": lambda m: m.update(arrays=5),
    "an identity without end": lambda m: m.update(identity=nested(900)),
}


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("what", MANIFESTS)
def test_manifests_that_make_no_sense(copied, what):
    path = copied("exact")
    rewrite(path, lambda arrays, manifest: MANIFESTS[what](manifest))
    with pytest.raises(FileError, match=r"damaged|another fit"):
        go_on(path, "exact")


DRAWS = {
    "a negative candidate": lambda a: a["chain0.indices"].__setitem__(0, -1),
    "a candidate too many": lambda a: a["chain0.indices"].__setitem__(0, 10),
    "sizes that fall": lambda a: a["chain0.indptr"].__setitem__(1, 10**6),
    "no sizes": lambda a: a.update({"chain0.indptr": np.zeros(0, np.int64)}),
    "sizes in another type": lambda a: a.update({"chain0.indptr": a["chain0.indptr"].astype(float)}),
    "biases of another model": lambda a: a.update({"chain0.biases": a["chain0.biases"][:, :-1]}),
    "a parameter that is NaN": lambda a: a["chain0.values"].__setitem__(0, np.nan),
    "p0 above one": lambda a: a["chain0.inclusion_rate"].__setitem__(0, 2.0),
}


@pytest.mark.parametrize("what", DRAWS)
def test_segments_that_are_no_draws(copied, what):
    path = copied("exact")
    rewrite(path, lambda arrays, _: DRAWS[what](arrays), kind="draws")
    with pytest.raises(FileError, match=r"is damaged \(draws-0"):
        go_on(path, "exact")


MATRICES = {
    "no matrices": lambda a: a.pop("chain0.blocks"),
    "no places": lambda a: a.pop("chain0.block_indptr"),
    "neither": lambda a: [a.pop("chain0.blocks"), a.pop("chain0.block_indptr")],
    "an entry that is NaN": lambda a: a["chain0.blocks"].__setitem__(0, np.nan),
    "an entry of another matrix": lambda a: a["chain0.blocks"].__setitem__(0, 9.0),
    "places that fall": lambda a: a["chain0.block_indptr"].__setitem__(1, -5),
    "places beyond the end": lambda a: a["chain0.block_indptr"].__setitem__(-1, 10**9),
    "fewer entries": lambda a: a.update({"chain0.blocks": a["chain0.blocks"][:-1]}),
    "entries in another type": lambda a: a.update({"chain0.blocks": a["chain0.blocks"].astype(np.float32)}),
    "entries with two axes": lambda a: a.update({"chain0.blocks": a["chain0.blocks"][None]}),
    "thresholds of another model": lambda a: a.update({"chain0.biases": a["chain0.biases"][:, :5]}),
}


@pytest.mark.parametrize("what", MATRICES)
def test_segments_whose_matrices_are_wrong(copied, what):
    path = copied("levels")
    rewrite(path, lambda arrays, _: MATRICES[what](arrays), kind="draws")
    with pytest.raises(FileError, match=r"is damaged \(draws-0"):
        go_on(path, "levels")


def test_matrices_where_no_candidate_has_one(copied):
    def add(arrays, _):
        arrays["chain0.blocks"], arrays["chain0.block_indptr"] = np.zeros(0), np.zeros(9, np.int64)

    path = copied("exact")
    rewrite(path, add, kind="draws")
    with pytest.raises(FileError, match="no candidate has one"):
        go_on(path, "exact")


# Archives.


def header(descr="'<f8'", shape="(10,)"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        header() + bytes(79),
        header(shape="(10**10,)"),
        header(shape=f"({2**62},)"),
        header(shape="(-1, -80)") + bytes(640),
        header(descr="'|O'", shape="(1,)") + bytes(8),
        header(descr="[('a', '<f8')]", shape="(1,)") + bytes(8),
        header(shape="(" * 200 + ")" * 200),
        b"\x93NUMPY\x09\x00" + bytes(100),
        b"",
    ],
)
def test_arrays_that_are_not_what_they_claim(copied, content):
    path = copied("exact")
    file = max(path.glob("generation-*.npz"))
    for old in sorted(path.glob("generation-*.npz"))[:-1]:
        old.unlink()
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("chain0.more.npy", content)
    with pytest.raises(FileError, match=f"{file.name}"):
        go_on(path, "exact")


def test_an_archive_that_unpacks_to_more_than_it_is(tmp_path):
    (tmp_path / "c").mkdir()
    bomb = io.BytesIO()
    np.save(bomb, np.zeros(1 << 27, np.uint8))
    with zipfile.ZipFile(tmp_path / "c" / "generation-00000000.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.npy", bomb.getvalue())
    with pytest.raises(FileError, match="claims more than it holds"):
        Checkpoint.open(tmp_path / "c", {})


def test_links_and_pipes_in_a_checkpoint_are_not_followed(copied, tmp_path):
    path = copied("exact")
    rewrite(path, lambda arrays, manifest: None)
    file = max(path.glob("draws-*.npz"))
    content = file.read_bytes()
    (tmp_path / "secret.npz").write_bytes(content)
    file.unlink()
    file.symlink_to(tmp_path / "secret.npz")
    with pytest.raises(FileError, match=file.name):
        go_on(path, "exact")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(FileError, match=f"{file.name}.* is not a file"):
        go_on(path, "exact")


@pytest.mark.parametrize("kind", NASTY)
def test_nothing_that_chains_share_reaches_a_kernel_unchecked(copied, kind):
    with np.load(max(copied("stretches").glob("shared-*.npz")), allow_pickle=False) as archive:
        keys = list(archive)
    refused = []
    for key in keys:
        path = copied("stretches")
        rewrite(path, lambda arrays, _, key=key: arrays.update({key: NASTY[kind](arrays[key])}), "shared")
        try:
            result = go_on(path, "stretches")
        except FileError as error:
            refused.append(str(path) in str(error))
        else:
            assert all(np.isfinite(draws.values).all() for draws in result.draws)
    assert len(refused) > 4
    assert all(refused)


def test_a_surrogate_that_contradicts_itself_is_refused(copied):
    for key, change in (
        ("precision", lambda a: a[::-1].copy()),
        ("precision", lambda a: -a),
        ("pull", lambda a: a + 1e300),
        ("sweep", lambda a: a + 1e9),
        ("round", lambda a: a + 1),
    ):
        path = copied("stretches")
        rewrite(
            path,
            lambda arrays, _, key=key, change=change: arrays.update({key: change(arrays[key])}),
            "shared",
        )
        with pytest.raises(FileError, match=r"what its chains share|chain 0"):
            go_on(path, "stretches")


def test_a_chain_in_another_round_than_what_it_knows_is_refused(copied):
    for add in (-1, 1, 10**6):
        path = copied("stretches")
        rewrite(
            path, lambda arrays, _, add=add: arrays.update({"chain1.round": arrays["chain1.round"] + add})
        )
        with pytest.raises(FileError, match=r"chain 1 \(it is in round"):
            go_on(path, "stretches")
