"""Posteriors made or damaged by others: an error that names the file, and nothing else happens."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import struct
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

import edgewise
from edgewise.errors import DataError, FileError
from edgewise.posterior import Posterior, container, foreign, storage
from edgewise.posterior.container import MARK
from edgewise.posterior.imputed import Imputed
from edgewise.priors import AttributeInclusion, BlockInclusion, Prior
from helpers import fake_posterior

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def made():
    return fake_posterior(5, 2, 6, order=3, seed=2)


def parts(posterior):
    contents = storage.Contents(
        posterior.draws, posterior.features, posterior.names, posterior.levels, posterior.statistics,
        posterior.prior, posterior.info, posterior._edge_sums, posterior._counters,
        imputed=posterior.imputed,
    )  # fmt: skip
    layout = storage._arrays(contents)
    arrays = {name: values.copy() for name, (_, values) in layout.items() if name != "metadata"}
    return arrays, json.loads(storage._metadata(contents))


def sealed(content: bytes, index: bytes, length: int | None = None) -> bytes:
    """Bytes with an index and the digest that belongs to them."""
    whole = content + index + struct.pack("<Q", len(index) if length is None else length)
    return whole + hashlib.sha256(whole).digest() + MARK


def forge(path, arrays, record, **header):
    """A file with a valid digest and these contents, without any HDF5 in it."""
    content = b"\x89HDF\r\n\x1a\n" + bytes(88)
    index = {}
    arrays = {**arrays, "metadata": np.frombuffer(json.dumps(record).encode(), np.uint8)}
    for name, values in arrays.items():
        values = np.ascontiguousarray(values)
        pieces = [[len(content), values.nbytes, 0]] if values.size else []
        index[name] = {
            "type": values.dtype.str, "shape": list(values.shape), "chunk": None, "pieces": pieces,
        }  # fmt: skip
        content += values.tobytes()
    top = {"title": storage.FORMAT, "format_version": storage.FORMAT_VERSION, "arrays": index, **header}
    path.write_bytes(sealed(content, json.dumps(top).encode()))
    return path


def test_a_forged_file_that_is_right_opens(tmp_path, made):
    arrays, record = parts(made)
    again = edgewise.load_posterior(forge(tmp_path / "f.nc", arrays, record))
    assert again.summary().equals(made.summary())


def put(name, place, value):
    def change(arrays, record):
        arrays[name][place] = value

    return change


def replace(name, function):
    def change(arrays, record):
        arrays[name] = function(arrays[name])

    return change


def write(key, value):
    def change(arrays, record):
        target = record
        *way, last = key.split(".")
        for step in way:
            target = target[step]
        target[last] = value

    return change


def drop(name):
    def change(arrays, record):
        del arrays[name]

    return change


BAD_CONTENTS = {
    "a negative candidate": put("clique_index", 0, -1),
    "a candidate too many": put("clique_index", 0, 10**9),
    "candidates in disorder": replace("clique_index", lambda a: a[::-1].copy()),
    "candidates that are no integers": replace("clique_index", lambda a: a.astype(float)),
    "sizes that are NaN": replace("row_size", lambda a: np.full(a.shape, np.nan)),
    "a negative size": put("row_size", (0, 0), -5),
    "a huge size": put("row_size", (0, 0), 2**31 - 1),
    "sizes on one axis": replace("row_size", np.ravel),
    "no chains": replace("row_size", lambda a: a[:0]),
    "no draws": replace("row_size", lambda a: a[:, :0]),
    "couplings too few": replace("coupling", lambda a: a[:-1]),
    "couplings too many": replace("coupling", lambda a: np.append(a, 0.0)),
    "a coupling that is NaN": put("coupling", 0, np.nan),
    "single precision": replace("coupling", lambda a: a.astype(np.float32)),
    "biases of another model": replace("bias", lambda a: a[..., :-1]),
    "a bias without end": put("bias", (0, 0, 0), np.inf),
    "p0 above one": put("inclusion_rate", (0, 0), 1.5),
    "p0 NaN": put("inclusion_rate", (0, 0), np.nan),
    "no slab": put("slab_scale", (0, 0), 0.0),
    "a slab without end": put("slab_scale", (0, 0), np.inf),
    "a variable that is not there": put("clique_members", (0, 1), 5),
    "a variable below zero": put("clique_members", (0, 0), -1),
    "a candidate of one variable twice": put("clique_members", (0, 1), 0),
    "the same candidate twice": put("clique_members", 1, [0, 1, -1]),
    "a hole in a candidate": replace("clique_members", lambda a: a[:, [0, 2, 1]].copy()),
    "no candidates": replace("clique_members", lambda a: a[:0]),
    "wide candidates": replace("clique_members", lambda a: np.full((len(a), 900), -1, np.int32)),
    "sums of fewer variables": replace("data_singles", lambda a: a[:-1]),
    "sums of fewer candidates": replace("data_cliques", lambda a: a[:-1]),
    "more ones than rows": put("data_singles", 0, 1e9),
    "a sum that is NaN": put("data_cliques", 0, np.nan),
    "totals of fewer chains": replace("sum_tries", lambda a: a[:1]),
    "totals that are NaN": put("sum_tries", (0, 0), np.nan),
    "no totals": drop("sum_tries"),
    "no biases": drop("bias"),
    "an empty name": write("names", ["a", "", "c", "d", "e"]),
    "the same name twice": write("names", ["a", "b", "c", "d", "a"]),
    "notes that are nothing": write("info.notes", None),
    "no names": write("names", None),
    "names that are numbers": write("names", [1, 2, 3, 4, 5]),
    "too few names": write("names", ["a", "b"]),
    "a name for every letter": write("names", "abcde"),
    "levels of three": write("levels", [[0, 1, 2]] * 5),
    "levels that are lists": write("levels", [[[0], [1]]] * 5),
    "rows as text": write("n_rows", "many"),
    "rows without end": write("n_rows", float("inf")),
    "rows below zero": write("n_rows", -3),
    "rows true": write("n_rows", True),
    "more rows than a float": write("n_rows", 10**400),
    "no prior": write("prior", None),
    "a prior of another kind": write("prior.inclusion", {"kind": "__import__", "a": 1}),
    "a prior with other fields": write("prior.slab", {"kind": "FixedSlab", "nothing": 1}),
    "a scale of nothing": write("prior.slab", {"kind": "FixedSlab", "sigma0": "x"}),
    "a forced stranger": write("prior.forced", [["nobody", "x1"]]),
    "a forced number": write("prior.forced", 7),
    "a matrix of odds that fits nothing": write("prior.edge_probability", [[0.5]]),
    "facts that are a list": write("info", [1]),
    "an engine that is a list": write("info.engine", ["exact"]),
    "seconds as text": write("info.seconds", "x"),
    "versions as text": write("info.versions", "x"),
    "notes as a number": write("info.notes", 5),
    "notes that are no text": write("info.notes", [5]),
    "counters of another number of chains": write("counters", [{}]),
    "counters as text": write("counters", ["x", "y"]),
    "a counter as text": write("counters", [{"a": "x"}, {}]),
    "axes as text": write("edge_sums", {"tries": "chain"}),
    "axes of other names": write("edge_sums", {"tries": ["draw", "clique"]}),
    "totals of another name": write("edge_sums", {"../../etc/passwd": ["chain", "clique"]}),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_CONTENTS)
def test_what_is_no_posterior_is_refused(tmp_path, made, what):
    arrays, record = parts(made)
    BAD_CONTENTS[what](arrays, record)
    path = forge(tmp_path / "odd.nc", arrays, record)
    with pytest.raises(FileError, match=r"odd\.nc is a posterior.* but not a consistent one"):
        edgewise.load_posterior(path)


@pytest.fixture(scope="module")
def models():
    """Posteriors whose priors of inclusion learn something of their own."""
    plain = fake_posterior(4, 2, 6, seed=2)
    labels = np.array([[0, 0, 1, 0], [0, 1, 1, 2]] * 3, np.int16)
    table = {"kind": dict(zip(plain.names, "xyxy"))}
    kept = {
        "communities": (BlockInclusion(), labels),
        "attributes": (AttributeInclusion("same(kind)", table), np.ones((6, 2))),
    }
    return {
        name: Posterior(
            [dataclasses.replace(chain, model_state=state) for chain in plain.draws],
            plain.features, plain.names, prior=Prior(inclusion=inclusion), info=dict(plain.info),
        )
        for name, (inclusion, state) in kept.items()
    }  # fmt: skip


BAD_MODELS = {
    "a community below zero": ("communities", put("model_state", (0, 0, 0), -1)),
    "more communities than variables": ("communities", put("model_state", (0, 0, 0), 4)),
    "communities in halves": ("communities", replace("model_state", lambda a: a + 0.5)),
    "communities of fewer variables": ("communities", replace("model_state", lambda a: a[:, :, :3])),
    "communities of fewer draws": ("communities", replace("model_state", lambda a: a[:, :3])),
    "communities of one chain": ("communities", replace("model_state", lambda a: a[:1])),
    "communities on two axes": ("communities", replace("model_state", lambda a: a[0])),
    "no communities": ("communities", drop("model_state")),
    "communities of a prior without": (
        "communities",
        write("prior.inclusion", {"kind": "BetaInclusion", "a": 5.0, "b": 5.0}),
    ),
    "no mean of communities": ("communities", write("prior.inclusion.mean_communities", float("nan"))),
    "a slab for an inclusion": (
        "communities",
        write("prior.inclusion", {"kind": "CauchySlab", "scale": 1.0}),
    ),
    "coefficients that are NaN": ("attributes", replace("model_state", lambda a: a * np.nan)),
    "huge coefficients": ("attributes", replace("model_state", lambda a: a * 1e9)),
    "a coefficient too few": ("attributes", replace("model_state", lambda a: a[:, :, :1])),
    "attributes of some": ("attributes", write("prior.inclusion.table", {"kind": {"a": "x"}})),
    "other attributes": ("attributes", write("prior.inclusion.terms", "same(other)")),
    "attributes in another file": ("attributes", write("prior.inclusion.table", "/etc/hostname")),
    "attributes without end": ("attributes", write("prior.inclusion.table", "/dev/zero")),
}


@pytest.mark.parametrize("what", BAD_MODELS)
def test_models_of_inclusion_that_do_not_fit_are_refused(tmp_path, models, what):
    which, change = BAD_MODELS[what]
    arrays, record = parts(models[which])
    assert edgewise.load_posterior(forge(tmp_path / "good.nc", arrays, record)).n_draws == 6
    change(arrays, record)
    with pytest.raises(FileError, match=r"odd\.nc is a posterior.* but not a consistent one"):
        edgewise.load_posterior(forge(tmp_path / "odd.nc", arrays, record))


@pytest.fixture(scope="module")
def imputed():
    """A posterior with blanks in two rows: one cell in the first of them, two in the other."""
    plain = fake_posterior(4, 2, 6, seed=2)
    sums = np.tile([[0.25, 0.75]], (2, 3, 3, 1)) * 100
    blank = Imputed(
        np.array([3, 8]), np.array([1, 0]), np.array([0, 2, 3]), np.array([0, 3, 2]), sums,
        np.full(2, 100.0), tuple(plain.names), ((0, 1),) * 4,
    )  # fmt: skip
    return Posterior(
        plain.draws, plain.features, plain.names, prior=plain.prior, info=dict(plain.info), imputed=blank
    )


BAD_BLANKS = {
    "a variable too many": put("imputed_variable", 0, 4),
    "a variable below zero": put("imputed_variable", 0, -1),
    "a variable twice in a row": put("imputed_variable", 0, 3),
    "a pattern too many": put("imputed_pattern", 0, 2),
    "a pattern below zero": put("imputed_pattern", 0, -1),
    "a row below zero": put("imputed_row", 0, -1),
    "a row twice": put("imputed_row", 0, 8),
    "cells in disorder": put("imputed_start", 1, 3),
    "cells without end": put("imputed_start", 2, 2**30),
    "no rows": replace("imputed_row", lambda a: a[:0]),
    "no sums": drop("imputed_sums"),
    "sums of one chain": replace("imputed_sums", lambda a: a[:1]),
    "sums of more levels": replace("imputed_sums", lambda a: np.concatenate([a, a], axis=3)),
    "a probability above one": put("imputed_sums", (0, 0, 0, 0), 101.0),
    "probabilities of less than one": put("imputed_sums", (0, 0, 0, 0), 0.0),
    "sums that are NaN": put("imputed_sums", (1, 2, 0, 0), np.nan),
    "no iterations": put("imputed_ticks", 0, 0.0),
    "iterations without end": put("imputed_ticks", 0, np.inf),
}


@pytest.mark.parametrize("what", BAD_BLANKS)
def test_blank_cells_that_make_no_sense_are_refused(tmp_path, imputed, what):
    arrays, record = parts(imputed)
    found = edgewise.load_posterior(forge(tmp_path / "good.nc", arrays, record)).imputed
    assert found.chance(8, found.names[3]) == {0: 0.25, 1: 0.75}
    BAD_BLANKS[what](arrays, record)
    with pytest.raises(FileError, match=r"odd\.nc is a posterior.* but not a consistent one"):
        edgewise.load_posterior(forge(tmp_path / "odd.nc", arrays, record))


def test_a_prior_that_is_all_but_sure_has_odds(tmp_path, models):
    arrays, record = parts(models["communities"])
    record["prior"]["inclusion"]["a"] = 10**30
    assert len(edgewise.load_posterior(forge(tmp_path / "sure.nc", arrays, record)).summary()) == 6


@pytest.mark.parametrize("text", [b"", b"[]", b"nonsense", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000])
def test_metadata_that_are_no_record(tmp_path, made, text):
    arrays, _ = parts(made)
    path = forge(tmp_path / "odd.nc", arrays, {})
    content = path.read_bytes()
    start = content.index(b"{}")
    index = json.loads(content[start + 2 : -56])
    index["arrays"]["metadata"].update(shape=[len(text)], pieces=[[start, len(text), 0]] if text else [])
    path.write_bytes(sealed(content[:start] + text, json.dumps(index).encode()))
    with pytest.raises(FileError, match=r"odd\.nc is (a posterior|damaged)"):
        edgewise.load_posterior(path)


BAD_INDEXES = {
    "a length of another sign": lambda a: a.update(shape=[-1]),
    "a length that is no number": lambda a: a.update(shape=["x"]),
    "a huge array": lambda a: a.update(shape=[2**61]),
    "a huge array that fits": lambda a: a.update(shape=[2**61], pieces=[[0, 2**62 - 1, 0]]),
    "a length beyond all integers": lambda a: a.update(shape=[10**30]),
    "very many axes": lambda a: a.update(shape=[1] * 5000),
    "a piece outside": lambda a: a.update(pieces=[[10**9, 8, 0]]),
    "a piece before the file": lambda a: a.update(pieces=[[-8, 8, 0]]),
    "no pieces": lambda a: a.update(pieces=[]),
    "half a piece": lambda a: a.update(pieces=[[96]]),
    "objects": lambda a: a.update(type="|O"),
    "records": lambda a: a.update(type="f8,f8"),
    "a type that is half a tuple": lambda a: a.update(type="<f8,,"),
    "no type": lambda a: a.update(type="nothing"),
    "dates": lambda a: a.update(type="<M8[s]"),
    "chunks without length": lambda a: a.update(chunk=[0]),
    "chunks of a bomb": lambda a: a.update(chunk=[2**40]),
    "a field too many": lambda a: a.update(more=1),
    "a field too few": lambda a: a.pop("chunk"),
}


@pytest.mark.parametrize("what", BAD_INDEXES)
def test_an_index_that_makes_no_sense(tmp_path, made, what):
    arrays, record = parts(made)
    path = forge(tmp_path / "odd.nc", arrays, record)
    content = path.read_bytes()
    length = struct.unpack("<Q", content[-56:-48])[0]
    end = len(content) - 56 - length
    index = json.loads(content[end:-56])
    BAD_INDEXES[what](index["arrays"]["coupling"])
    path.write_bytes(sealed(content[:end], json.dumps(index).encode()))
    with pytest.raises(FileError, match=r"odd\.nc is damaged: "):
        edgewise.load_posterior(path)


@pytest.mark.parametrize("index", [b"", b"5", b"[]", b"{}", b'{"arrays": 5}', b"[" * 100_000])
def test_an_index_that_is_none(tmp_path, index):
    path = tmp_path / "odd.nc"
    path.write_bytes(sealed(b"\x89HDF\r\n\x1a\n" + bytes(88), index))
    with pytest.raises(FileError, match=r"odd\.nc is"):
        edgewise.load_posterior(path)
    path.write_bytes(sealed(b"\x89HDF\r\n\x1a\n" + bytes(88), index, 2**63))
    with pytest.raises(FileError, match="impossible length"):
        edgewise.load_posterior(path)


def test_a_chunk_that_unpacks_to_more_than_it_should(tmp_path, made):
    import zlib

    arrays, record = parts(made)
    path = forge(tmp_path / "odd.nc", arrays, record)
    content = path.read_bytes()
    end = len(content) - 56 - struct.unpack("<Q", content[-56:-48])[0]
    index = json.loads(content[end:-56])
    bomb = zlib.compress(bytes(1 << 28))
    entry = index["arrays"]["clique_index"]
    entry.update(chunk=entry["shape"], pieces=[[end, len(bomb), 0]])
    path.write_bytes(sealed(content[:end] + bomb, json.dumps(index).encode()))
    with pytest.raises(FileError, match="another length"):
        edgewise.load_posterior(path)


def test_bytes_that_belong_to_nothing_are_not_even_read(tmp_path):
    path = tmp_path / "odd.nc"
    index = json.dumps({"title": storage.FORMAT, "arrays": {}}).encode()
    with open(path, "wb") as file:
        file.write(b"\x89HDF\r\n\x1a\n" + bytes(88))
        file.seek(1 << 38)
        file.write(index + struct.pack("<Q32s16s", len(index), bytes(32), MARK))
    with pytest.raises(FileError, match="belong to nothing"):
        edgewise.load_posterior(path)


def test_a_single_changed_byte_is_always_found(tmp_path, made):
    path = tmp_path / "posterior.nc"
    made.save(path)
    content = path.read_bytes()
    for place in np.linspace(8, len(content) - 17, 400).astype(int):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        with pytest.raises(FileError, match=r"posterior\.nc is (damaged|truncated)"):
            edgewise.load_posterior(path)


def test_large_arrays_lie_in_many_chunks(tmp_path, monkeypatch, made):
    monkeypatch.setattr(container, "_BLOCK", 64)
    made.save(tmp_path / "posterior.nc")
    again = edgewise.load_posterior(tmp_path / "posterior.nc")
    assert again.summary().equals(made.summary())
    with h5py.File(tmp_path / "posterior.nc") as file:
        assert file["clique_index"].id.get_num_chunks() > 3


def test_what_could_not_be_read_back_is_not_written(tmp_path, made):
    odd = Posterior(made.draws, made.features, made.names, info={"seconds": "many"})
    with pytest.raises(DataError, match="seconds"):
        odd.save(tmp_path / "odd.nc")
    odd = Posterior(made.draws, made.features, made.names, prior=Prior(forced=[("nobody", "x1")]))
    with pytest.raises(DataError, match="nobody"):
        odd.save(tmp_path / "odd.nc")
    assert not list(tmp_path.iterdir())


# Files without an index go through HDF5, in a process of its own.


@pytest.fixture
def plain(tmp_path):
    """A file as an earlier version wrote it."""
    path = tmp_path / "plain.nc"
    path.write_bytes((FIXTURES / "pairs-0.2.0.nc").read_bytes())
    return path


def test_a_bit_on_which_hdf5_never_ends(plain, monkeypatch):
    content = bytearray(plain.read_bytes())
    content[3036] ^= 2
    plain.write_bytes(content)
    monkeypatch.setattr(foreign, "DEADLINE_SECONDS", 2.0)
    started = time.monotonic()
    with pytest.raises(
        FileError, match=r"plain\.nc is damaged: the HDF5 library (does not come to an end|fails)"
    ):
        edgewise.load_posterior(plain)
    assert time.monotonic() - started < 60


def external_link(file, secret):
    del file["coupling"]
    file["coupling"] = h5py.ExternalLink(str(secret), "/coupling")


def soft_link(file, secret):
    del file["coupling"]
    file["coupling"] = h5py.SoftLink("/bias")


def external_storage(file, secret):
    shape = file["coupling"].shape
    del file["coupling"]
    file.create_dataset("coupling", shape, "f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def virtual(file, secret):
    shape = file["coupling"].shape
    del file["coupling"]
    layout = h5py.VirtualLayout(shape, "f8")
    layout[...] = h5py.VirtualSource(str(secret), "coupling", shape)
    file.create_virtual_dataset("coupling", layout)


def a_group(file, secret):
    del file["coupling"]
    file.create_group("coupling")


def a_huge_array(file, secret):
    del file["coupling"]
    file.create_dataset("coupling", (1 << 40,), "f8", chunks=(1 << 10,), compression="gzip")


def a_bomb(file, secret):
    del file["clique_index"]
    file.create_dataset(
        "clique_index", data=np.zeros(1 << 26, np.int32), compression="gzip", chunks=(1 << 20,)
    )


def texts(file, secret):
    del file["coupling"]
    file.create_dataset("coupling", data=["a", "b"], dtype=h5py.string_dtype())


def a_long_title(file, secret):
    file.attrs["title"] = "x" * 60_000


def many_titles(file, secret):
    file.attrs["title"] = ["edgewise posterior"] * 3


def a_version_in_words(file, secret):
    file.attrs["format_version"] = "two"


def no_checksum(file, secret):
    del file.attrs["checksum"]


CHANGES = [
    external_link, soft_link, external_storage, virtual, a_group, a_huge_array, a_bomb, texts, a_long_title,
    many_titles, a_version_in_words, no_checksum,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_hdf5_files_that_point_elsewhere_or_claim_too_much(plain, tmp_path, change):
    secret = tmp_path / "secret.nc"
    secret.write_bytes(plain.read_bytes())
    with h5py.File(plain, "a") as file:
        change(file, secret)
    with pytest.raises(FileError, match=r"plain\.nc is"):
        edgewise.load_posterior(plain)


def test_a_pipe_does_not_keep_us_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    with pytest.raises(FileError, match=r"pipe\.nc is not a file"):
        edgewise.load_posterior(tmp_path / "pipe.nc")
    with pytest.raises(FileError, match="/dev/zero is not a file"):
        edgewise.load_posterior("/dev/zero")
    with pytest.raises(FileError, match="is not a path"):
        edgewise.load_posterior("a\0b")


def test_the_child_finds_its_libraries_without_an_installed_package(plain, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h5py.py").write_text("raise SystemExit('not this one')")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert edgewise.load_posterior(plain.name).n_variables == 6
