"""The names of a posterior: which there are, what they promise, and which have changed."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from edgewise import posterior as package
from edgewise.errors import DataError
from edgewise.posterior import Posterior, columns, diagnostics, renamed, summaries
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.reweighting import ReweightedInclusion
from helpers import fake_posterior

GIVEN = {"draws", "features", "names", "levels", "statistics", "prior", "info", "scales"}
ATTRIBUTES = {
    *("n_chains", "n_draws", "n_variables", "n_cliques", "n_edges", "candidates", "inclusion"),
    *("inclusion_rate", "slab_scale", "median_model", "n_candidates", "n_unlisted"),
    *("groups", "strata", "imputed"),
}
METHODS = {
    *("coupling", "edge_values", "pair_values", "reweighted_inclusion", "biases", "draws_of", "summary"),
    *("bias_summary", "graph", "graphs", "neighbourhood", "centrality", "probability", "model", "mixture"),
    *("to_datatree", "save", "coupling_matrix", "thresholds", "threshold_summary"),
    *("sparse_pair_values", "attribute_summary", "communities", "sensitivity"),
    *("group_summary", "group_bias_summary", "of_group", "of_stratum"),
}


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return fake_posterior(5, 2, 60, seed=1)


@pytest.fixture(scope="module")
def triples() -> Posterior:
    return fake_posterior(5, 2, 60, seed=2, order=3)


def test_there_are_these_names_and_no_others(posterior):
    public = {name for name in dir(posterior) if not name.startswith("_")}
    assert public == GIVEN | ATTRIBUTES | METHODS


def test_methods_take_options_and_attributes_do_not(posterior):
    # Communities are worked out anew at every call, and there may be none to ask for.
    for name in METHODS - {"communities"}:
        assert len(inspect.signature(getattr(posterior, name)).parameters) > 0, name
    for name in GIVEN | ATTRIBUTES:
        assert not callable(getattr(posterior, name)), name


def test_draws_have_chains_and_draws_in_front(posterior):
    for values in (
        posterior.draws_of((0, 1)),
        posterior.biases(),
        posterior.inclusion_rate,
        posterior.slab_scale,
        posterior.n_edges,
    ):
        assert values.shape[:2] == (2, 60)


@pytest.mark.parametrize("column", columns.COLUMNS)
def test_every_column_over_candidates_and_over_pairs(posterior, triples, column):
    for one in (posterior, triples):
        values = one.edge_values(column)
        assert values.shape == (one.n_cliques,) == one.candidates.shape
        matrix = one.pair_values(column)
        assert matrix.shape == (5, 5)
        for k in range(10):
            i, j = one.features.clique(k)
            np.testing.assert_array_equal([matrix[i, j], matrix[j, i]], [values[k]] * 2)
        assert (np.diag(matrix) == ("" if values.dtype == object else 0)).all()
    table = posterior.summary()
    if column in table:
        np.testing.assert_array_equal(table[column].to_numpy(), posterior.edge_values(column))


def test_options_of_columns(posterior):
    np.testing.assert_array_equal(
        posterior.edge_values("hdi_low", coding="ising", probability=0.5),
        posterior.summary(coding="ising", probability=0.5).hdi_low,
    )
    strict = posterior.edge_values("evidence", thresholds=(2, 1e6))
    assert not np.char.startswith(strict.astype(str), "strong").any()
    with pytest.raises(DataError, match="no column 'meen'; choose one of inclusion, mcse"):
        posterior.edge_values("meen")
    with pytest.raises(DataError, match="no statistic 'inclusion'"):
        posterior.coupling("inclusion")
    with pytest.raises(DataError, match="strictly between"):
        posterior.edge_values("hdi_low", probability=1)


def test_what_is_given_away_is_a_copy(posterior):
    for column in columns.COLUMNS:
        before = posterior.edge_values(column)
        posterior.edge_values(column)[:] = "" if before.dtype == object else 7
        np.testing.assert_array_equal(posterior.edge_values(column), before)
    with pytest.raises(ValueError, match="read-only"):
        posterior.candidates[0] = "other"


OLD_CALLS = {
    "evidence": ((3, 10),),
    "clique_statistic": ("mean", True),
    "pair_matrix": (np.ones(10),),
    **dict.fromkeys(("labels", "edge_count", "edge_count_probability", "density", "transitions"), ()),
    "shared_clique_probability": (),
}


@pytest.mark.parametrize("name", sorted(renamed.POSTERIOR))
def test_old_names_work_and_say_the_new_one(posterior, name):
    now, _ = renamed.POSTERIOR[name]
    with pytest.warns(DeprecationWarning, match="use") as caught:
        value = getattr(posterior, name)
    (only,) = caught
    assert str(only.message) == f"Posterior.{name} will go in the next version: use {now}."
    assert only.filename == __file__
    assert callable(value) == (name in OLD_CALLS)
    assert (value(*OLD_CALLS[name]) if callable(value) else value) is not None


def test_old_names_give_the_old_numbers(posterior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        np.testing.assert_array_equal(posterior.inclusion_probability, posterior.edge_values("inclusion"))
        np.testing.assert_array_equal(
            posterior.clique_statistic("sd", given_inclusion=True), posterior.edge_values("sd_if_included")
        )
        np.testing.assert_array_equal(posterior.bias, posterior.biases().mean(axis=(0, 1)))
        np.testing.assert_array_equal(posterior.edge_count(), posterior.n_edges)
        assert posterior.density().mean == pytest.approx(posterior.n_edges.mean() / posterior.n_cliques)
        assert posterior.density().sd == pytest.approx(posterior.n_edges.std(ddof=1) / posterior.n_cliques)
        probability = posterior.edge_count_probability()
        assert probability.sum() == pytest.approx(1)
        number = posterior.n_edges[0, 0]
        assert probability[number] == (posterior.n_edges == number).mean()
        assert sum(posterior.transitions()).tolist() == posterior.edge_values("flips").tolist()
        assert len(posterior.edge_sums) == 2
        np.testing.assert_array_equal(posterior.edge_sums[1]["tries"], posterior._edge_sums["tries"][1])


def test_the_old_name_of_reweighted_inclusion(posterior):
    result = ReweightedInclusion(0.1, np.zeros((2, 2)), np.ones(1), 5.0)
    with pytest.warns(DeprecationWarning, match="use edge_inclusion"):
        assert result.inclusion_probability is result.edge_inclusion


def test_an_unknown_name_is_an_attribute_error(posterior):
    with pytest.raises(AttributeError, match="'Posterior' object has no attribute 'nothing'"):
        _ = posterior.nothing


def test_copies_and_pickles(posterior):
    diagnose(posterior)
    for again in (copy.copy(posterior), copy.deepcopy(posterior), pickle.loads(pickle.dumps(posterior))):
        assert again.summary().equals(posterior.summary())


def test_a_diagnosis_is_computed_once(monkeypatch):
    posterior = fake_posterior(5, 2, 60, seed=1)
    calls = []
    original = diagnostics.examine
    monkeypatch.setattr(diagnostics, "examine", lambda one: calls.append(one) or original(one))
    first = diagnose(posterior)
    first.table.loc[:, "mean"] = 0.0
    first.notes.append("mine")
    second = diagnose(posterior)
    assert calls == [posterior]
    assert second.table["mean"].any()
    assert "mine" not in second.notes
    assert diagnose(posterior, target_ess=1e9).light == "red"
    assert len(calls) == 1


def test_intervals_and_moments_are_computed_once(monkeypatch):
    posterior = fake_posterior(5, 2, 60, seed=1)
    posterior.summary()

    def again(*arguments: object) -> None:
        raise AssertionError("computed twice")

    for name in ("moments", "quantities_of_order", "indicator_quality", "log10_bayes_factors"):
        monkeypatch.setattr(summaries, name, again)
    posterior.summary()
    posterior.edge_values("hdi_low")
    assert posterior.median_model is posterior.median_model
    with pytest.raises(AssertionError, match="twice"):
        posterior.edge_values("hdi_low", probability=0.5)


def imported(path: Path) -> set[str]:
    """Modules of the folder that a module of it imports when it runs, wherever the import stands."""
    folder = "edgewise.posterior"
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in typing_only and node.module is not None:
            if node.module == folder:
                found |= {alias.name for alias in node.names}
            elif node.module.startswith(f"{folder}."):
                found.add(node.module.split(".")[2])
    return found


def test_imports_within_the_folder_point_one_way():
    folder = Path(package.__file__).parent
    waiting = {path.stem: imported(path) for path in folder.glob("*.py") if path.stem != "__init__"}
    while waiting:
        free = {name for name, needs in waiting.items() if not needs & waiting.keys()}
        assert free, f"these import each other: {sorted(waiting)}"
        waiting = {name: needs for name, needs in waiting.items() if name not in free}
