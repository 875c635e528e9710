"""Posteriors over variables with any levels: every number against the draws, and files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import edgewise
from edgewise import MRF, Posterior
from edgewise.draws import Draws
from edgewise.errors import DataError, FileError
from edgewise.features import Features, Statistics
from edgewise.posterior import storage
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.verdict import judge
from edgewise.scales import BINARY_SCALE, Scale, Scales
from levels import NAMES, SCALES, level_posterior, level_rows


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return level_posterior()


def matrices(posterior: Posterior, clique: int) -> np.ndarray:
    """Matrix of a pair in every draw, zero where absent, by walking through the draws."""
    i, j = posterior.features.clique(clique)
    shape = SCALES[i].dimension, SCALES[j].dimension
    size = SCALES.dimensions(posterior.features.members)
    found = []
    for chain in posterior.draws:
        for t in range(len(chain)):
            indices, values = chain.active(t)
            place, matrix = int(chain.block_indptr[t]), np.zeros(shape)
            for a, value in zip(indices.tolist(), values.tolist()):
                if a == clique:
                    matrix = chain.blocks[place : place + size[a]] if size[a] > 1 else np.array(value)
                place += size[a] if size[a] > 1 else 0
            found.append(matrix.reshape(shape))
    return np.array(found)


def test_a_coupling_matrix_is_that_of_the_draws(posterior):
    for clique in range(posterior.n_cliques):
        i, j = posterior.features.clique(clique)
        every = matrices(posterior, clique)
        found = posterior.coupling_matrix(NAMES[i], NAMES[j])
        expected = SCALES[i].scores @ every.mean(axis=0) @ SCALES[j].scores.T
        expected = expected - expected.mean(axis=0) - expected.mean(axis=1, keepdims=True) + expected.mean()
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert found.index.tolist() == list(SCALES[i].labels)
        assert found.columns.tolist() == list(SCALES[j].labels)
        assert (found.index.name, found.columns.name) == (NAMES[i], NAMES[j])
        np.testing.assert_allclose(posterior.coupling_matrix(j, i), found.T)
        given = posterior.coupling_matrix(i, j, given_inclusion=True)
        share = (every != 0).any(axis=(1, 2)).mean()
        np.testing.assert_allclose(given * share, found, atol=1e-12)


def test_statistics_of_a_coupling_matrix(posterior):
    clique = posterior.features.index(("city", "job"), NAMES)
    every = matrices(posterior, clique)
    centre = [scale.scores - scale.scores.mean(axis=0) for scale in (SCALES[1], SCALES[3])]
    cells = np.einsum("ak,tkl,bl->tab", centre[0], every, centre[1])
    table = {name: posterior.coupling_matrix("city", "job", name) for name in ("sd", "median")}
    np.testing.assert_allclose(table["sd"], cells.std(axis=0, ddof=1))
    np.testing.assert_allclose(table["median"], np.median(cells, axis=0))
    low = posterior.coupling_matrix("city", "job", "hdi_low", probability=0.8)
    high = posterior.coupling_matrix("city", "job", "hdi_high", probability=0.8)
    inside = ((cells >= low.to_numpy()) & (cells <= high.to_numpy())).mean(axis=0)
    assert (inside >= 0.8).all()
    assert (inside < 0.9).all()
    with pytest.raises(DataError, match="no statistic 'mode'"):
        posterior.coupling_matrix("city", "job", "mode")
    with pytest.raises(DataError, match="no variable named 'town'"):
        posterior.coupling_matrix("town", "job")
    with pytest.raises(DataError, match="two or more different variables"):
        posterior.coupling_matrix("job", "job")


def test_a_pair_that_is_never_there():
    posterior = level_posterior()
    lost = posterior.features.index(("city", "job"), NAMES)
    draws = [without(chain, lost, posterior._dimension) for chain in posterior.draws]
    other = Posterior(draws, posterior.features, NAMES, scales=SCALES)
    assert (other.coupling_matrix("city", "job").to_numpy() == 0).all()
    assert np.isnan(other.coupling_matrix("city", "job", given_inclusion=True).to_numpy()).all()
    assert other.edge_values("mean")[lost] == 0


def without(chain: Draws, clique: int, dimension: np.ndarray) -> Draws:
    """The same draws without a candidate."""
    kept = chain.indices != clique
    size = np.where(dimension > 1, dimension, 0)[chain.indices]
    draw = np.repeat(np.arange(len(chain)), chain.n_edges)
    counts = np.bincount(draw[kept], minlength=len(chain))
    entries = np.bincount(draw[kept], size[kept], minlength=len(chain)).astype(int)
    return replace(
        chain,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        indices=chain.indices[kept],
        values=chain.values[kept],
        blocks=chain.blocks[np.repeat(kept, size)],
        block_indptr=np.concatenate([[0], np.cumsum(entries)]),
    )


def test_strengths_and_couplings_of_the_summary(posterior):
    table = posterior.summary()
    nominal = np.isin(table["variable_1"], ["city", "job"]) | np.isin(table["variable_2"], ["city", "job"])
    assert table["measure"].tolist() == np.where(nominal, "strength", "coupling").tolist()
    for clique in range(posterior.n_cliques):
        every = matrices(posterior, clique)
        value = np.sqrt((every**2).mean(axis=(1, 2))) if nominal[clique] else every[:, 0, 0]
        assert table["mean"][clique] == pytest.approx(value.mean())
        assert table["median"][clique] == pytest.approx(np.median(value))
        np.testing.assert_allclose(posterior.draws_of(posterior.features.clique(clique)).ravel(), value)
    assert (table["hdi_low"][nominal] >= 0).all()
    assert table["inclusion"][posterior.features.index(("city", "job"), NAMES)] > 0.9
    assert "measure" not in with_two_levels().summary()


def with_two_levels() -> Posterior:
    return Posterior([Draws.concatenate([one_draw()] * 8)], Features.pairs(2), ("a", "b"))


def one_draw() -> Draws:
    return Draws(
        np.array([0, 1]), np.array([0], np.int32), np.ones(1), np.zeros((1, 2)), np.full(1, 0.5), np.ones(1)
    )


def test_thresholds_of_every_level(posterior):
    table = posterior.threshold_summary(0.9)
    pairs = [(name, label) for name, scale in zip(NAMES, SCALES) for label in scale.labels]
    assert list(zip(table["variable"], table["level"])) == pairs
    start = SCALES.bias_start
    for i, (name, scale) in enumerate(zip(NAMES, SCALES)):
        drawn = posterior.thresholds(name)
        assert drawn.shape == (2, 60, scale.n_levels)
        for chain, part in zip(posterior.draws, drawn):
            np.testing.assert_allclose(part, chain.biases[:, start[i] : start[i + 1]] @ scale.basis.T)
        own = table[table["variable"] == name]
        np.testing.assert_allclose(own["mean"], drawn.mean(axis=(0, 1)), atol=1e-12)
        assert (own["hdi_low"] <= own["median"]).all()
        assert (own["median"] <= own["hdi_high"]).all()
        if scale.kind in ("ordinal", "nominal"):
            np.testing.assert_allclose(drawn.sum(axis=2), 0.0, atol=1e-9)
            assert own["ess_bulk"].gt(5).all()
    fixed = table[(table["mean"] == 0) & (table["sd"] == 0)]
    assert list(zip(fixed["variable"], fixed["level"])) == [("smoker", "no"), ("sleep", 2)]
    assert fixed["r_hat"].isna().all()
    assert table.drop(fixed.index)["r_hat"].notna().all()


def test_what_only_two_levels_have_is_refused(posterior):
    for ask in (posterior.biases, posterior.bias_summary):
        with pytest.raises(DataError, match=r"A bias is for variables with two levels, and 'mood' has 3"):
            ask()
    with pytest.raises(DataError, match=r"The Ising coding is for variables with two levels"):
        posterior.coupling(coding="ising")
    with pytest.raises(DataError, match="no sign"):
        posterior.centrality("expected influence")
    assert len(posterior.centrality("strength")) == 5
    assert len(posterior.centrality("closeness")) == 5


def test_models_of_draws_and_of_the_median(posterior):
    joined = Draws.concatenate(posterior.draws)
    for position in (0, 59, 60, 119):
        model = posterior.model(position)
        assert model.scales == SCALES
        np.testing.assert_array_equal(model.biases, joined.biases[position])
        indices, values = joined.active(position)
        assert model.cliques == tuple(posterior.features.clique(int(k)) for k in indices)
        np.testing.assert_allclose(model.strengths, values)
    assert len(posterior.mixture(7)) == 7
    median = posterior.median_model
    assert isinstance(median, MRF)
    assert MRF.from_json(median.to_json()) == median
    kept = np.flatnonzero(posterior.edge_values("inclusion") >= 0.5)
    assert median.cliques == tuple(posterior.features.clique(int(k)) for k in kept)
    for place, k in enumerate(kept):
        every = matrices(posterior, int(k))
        there = (every != 0).any(axis=(1, 2))
        np.testing.assert_allclose(median.matrix(place), every[there].mean(axis=0))
        i, j = posterior.features.clique(int(k))
        np.testing.assert_allclose(
            median.coupling_matrix(i, j), posterior.coupling_matrix(i, j, given_inclusion=True), atol=1e-12
        )


def test_graphs_light_and_headline(posterior, tmp_path):
    graph = posterior.graph()
    assert graph.nodes["job"]["kind"] == "nominal"
    assert graph.nodes["job"]["levels"] == ["none", "part", "full", "own"]
    np.testing.assert_allclose(
        graph.nodes["job"]["thresholds"], posterior.thresholds("job").mean(axis=(0, 1)), atol=1e-12
    )
    assert graph.edges["city", "job"]["measure"] == "strength"
    assert graph.edges["mood", "sleep"]["measure"] == "coupling"
    posterior.median_model.to_graphml(tmp_path / "m.graphml")
    assert MRF.from_graphml(tmp_path / "m.graphml") == posterior.median_model
    assert posterior.probability(lambda drawn: drawn.has_edge("city", "job")) > 0.9
    assert judge(posterior).found.light in ("red", "amber")
    assert len(posterior.graphs()) > 0
    assert "measure" in posterior._repr_html_()
    tree = posterior.to_datatree([("city", "job")])
    assert tree["posterior"]["bias"].sizes["level"] == 16
    assert "job = part" in tree["posterior"]["level"].values


def test_a_variable_that_never_varies_is_said():
    from levels import level_problem

    rows = level_rows()
    rows[:, 3], rows[:, 4] = 2, 1
    problem = level_problem(rows=rows)
    made = level_posterior(10)
    still = Posterior(made.draws, made.features, NAMES, None, problem.statistics, scales=SCALES)
    assert any(
        "2 variables do not vary in the data (job, sleep)" in text for text in diagnose(still).messages
    )
    assert not any("vary" in text for text in diagnose(made).messages)


def test_a_posterior_needs_what_its_levels_ask_for(posterior):
    with pytest.raises(DataError, match="4 scales"):
        Posterior(posterior.draws, posterior.features, NAMES, scales=SCALES[:4])
    labels = [("a", "b", "c"), *(scale.labels for scale in SCALES[1:])]
    with pytest.raises(DataError, match="'mood' has 3 levels, and its labels are"):
        Posterior(posterior.draws, posterior.features, NAMES, labels, scales=SCALES)


# Files.


@pytest.fixture
def saved(posterior, tmp_path):
    posterior.save(tmp_path / "posterior.nc")
    return tmp_path / "posterior.nc"


def test_a_file_gives_everything_back(posterior, saved):
    again = edgewise.load_posterior(saved)
    assert again.scales == SCALES
    assert again.levels == posterior.levels
    for one, other in zip(posterior.draws, again.draws):
        for name in ("indptr", "indices", "values", "biases", "blocks", "block_indptr", "slab_scale"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert again.summary().equals(posterior.summary())
    assert again.threshold_summary().equals(posterior.threshold_summary())
    assert again.coupling_matrix("city", "job").equals(posterior.coupling_matrix("city", "job"))
    assert again.median_model == posterior.median_model
    np.testing.assert_array_equal(again.statistics.singles, posterior.statistics.singles)
    np.testing.assert_array_equal(again.statistics.cliques, posterior.statistics.cliques)


def test_labels_of_numpy_and_other_types(tmp_path):
    scales = Scales((Scale("ordinal", tuple(np.arange(3))), Scale("ordinal", (1.5, True, "x")), BINARY_SCALE))
    features = Features.pairs(3)
    count = 4
    draws = Draws(
        np.zeros(count + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros((count, 5)),
        np.full(count, 0.5), np.ones(count),
    )  # fmt: skip
    Posterior([draws], features, ("a", "b", "c"), scales=scales).save(tmp_path / "p.nc")
    again = edgewise.load_posterior(tmp_path / "p.nc")
    assert again.levels == ((0, 1, 2), (1.5, True, "x"), (0, 1))
    assert again.draws[0].blocks is None


def contents_of(posterior: Posterior) -> tuple[dict, dict]:
    contents = storage.Contents(
        posterior.draws, posterior.features, posterior.names, posterior.levels, posterior.statistics,
        posterior.prior, posterior.info, posterior._edge_sums, posterior._counters, posterior.scales,
    )  # fmt: skip
    arrays = {name: values.copy() for name, (_, values) in storage._arrays(contents).items()}
    return arrays, json.loads(bytes(arrays["metadata"]))


def first_scale(**changes):
    return lambda arrays, record: record["scales"][0].update(changes)


WRONG = {
    "no matrices": lambda arrays, record: arrays.pop("matrix"),
    "fewer entries": lambda arrays, record: arrays.update(matrix=arrays["matrix"][:-1]),
    "entries that are no numbers": lambda arrays, record: arrays["matrix"].__setitem__(3, np.nan),
    "entries of another strength": lambda arrays, record: arrays["matrix"].__setitem__(3, 5.0),
    "entries in single precision": lambda arrays, record: arrays.update(
        matrix=arrays["matrix"].astype(np.float32)
    ),
    "a candidate too many": lambda arrays, record: arrays["clique_index"].__setitem__(0, 77),
    "a negative candidate": lambda arrays, record: arrays["clique_index"].__setitem__(0, -1),
    "biases of two levels": lambda arrays, record: arrays.update(bias=arrays["bias"][:, :, :5]),
    "sums of two levels": lambda arrays, record: arrays.update(data_cliques=arrays["data_cliques"][:10]),
    "sums beyond the rows": lambda arrays, record: arrays["data_singles"].__setitem__(0, -121.0),
    "no scales": lambda arrays, record: record.update(scales=None),
    "scales of fewer variables": lambda arrays, record: record["scales"].pop(),
    "scales that are a number": lambda arrays, record: record.update(scales=3),
    "a scale that is a list": lambda arrays, record: record.update(scales=[[]] * 5),
    "a kind that there is not": first_scale(kind="cardinal"),
    "a kind that is a number": first_scale(kind=1),
    "a label too many": first_scale(labels=["low", "middle", "high", "top"]),
    "a label twice": first_scale(labels=["low", "low", "high"]),
    "a label that is a list": first_scale(labels=["low", "middle", ["high"]]),
    "very many labels": first_scale(labels=list(range(10**5))),
    "positions that fall": first_scale(positions=[2, 1, 0]),
    "positions beyond reason": first_scale(positions=[0, 1, 10**30]),
    "positions in words": first_scale(positions=["0", "1", "2"]),
    "a reference of an ordinal scale": first_scale(reference=1),
    "a scale without labels": lambda arrays, record: record["scales"][0].pop("labels"),
    "other labels than the levels": lambda arrays, record: record["levels"].__setitem__(0, ["a", "b", "c"]),
    "scales where all have two levels": lambda arrays, record: record.update(
        scales=[{"kind": "binary", "labels": [0, 1], "positions": [0, 1]}] * 5
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_contradicts_itself_is_refused(posterior, tmp_path, monkeypatch, what):
    arrays, record = contents_of(posterior)
    WRONG[what](arrays, record)
    arrays["metadata"] = np.frombuffer(json.dumps(record).encode(), np.uint8)
    path = forge(tmp_path / "forged.nc", arrays, monkeypatch)
    with pytest.raises(FileError, match=r"forged\.nc is a posterior"):
        edgewise.load_posterior(path)


def test_the_forger_writes_what_can_be_read(posterior, tmp_path, monkeypatch):
    arrays, _ = contents_of(posterior)
    again = edgewise.load_posterior(forge(tmp_path / "forged.nc", arrays, monkeypatch))
    assert again.summary().equals(posterior.summary())


def forge(path, arrays, monkeypatch):
    """A file with these arrays, whose digest and index are right."""
    layout = {
        name: (tuple(f"{name}_{axis}" for axis in range(values.ndim)), values)
        for name, values in arrays.items()
    }
    monkeypatch.setattr(storage, "_arrays", lambda contents: layout)
    monkeypatch.setattr(storage, "_contents", lambda arrays, record: None)
    storage.write(type("Nothing", (), {"info": {}, "names": []})(), path)
    monkeypatch.undo()
    return path


def test_statistics_of_nothing_have_the_sizes_of_the_levels(posterior):
    made = Posterior(posterior.draws, posterior.features, NAMES, scales=SCALES)
    assert isinstance(made.statistics, Statistics)
    assert len(made.statistics.singles) == SCALES.n_biases
