"""Other priors from the same draws or from new chains: against fits under those priors."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from edgewise import SpikeSlabMRF, datasets, exact, load_posterior, plots
from edgewise.cli import app
from edgewise.errors import DataError
from edgewise.posterior.reweighting import errors, log_prior, weights
from edgewise.posterior.sensitivity import AGAIN, DRAW, default_priors
from edgewise.priors import (
    AttributeInclusion,
    BetaInclusion,
    BlockInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    GammaSlab,
    Prior,
)
from edgewise.report import write_report

SETTINGS = {"random_state": 1, "progress": False}


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    model = datasets.random_model(6, 2.0, kind="ring", seed=4, coupling_sd=1.0, field_sd=0.4)
    return exact.sample(model, 250, np.random.default_rng(4))


@pytest.fixture(scope="module")
def model(rows) -> SpikeSlabMRF:
    return SpikeSlabMRF(**SETTINGS, min_draws=3000).fit(rows)


PRIORS = {
    "near": Prior(BetaInclusion(4, 5)),
    "half": Prior(FixedInclusion(0.5)),
    "heavy": Prior(slab=CauchySlab(1.0)),
    "far": Prior(BetaInclusion(1, 60), FixedSlab(0.3)),
}


@pytest.fixture(scope="module")
def found(model):
    return model.posterior_.sensitivity(PRIORS)


def test_against_fits_under_each_prior(model, rows, found):
    assert found.how[:2] == ("as fitted", "reweighted")
    assert found.how[4] == "new chains"
    for k, prior in enumerate(PRIORS.values(), 1):
        other = (
            SpikeSlabMRF(prior=prior, **{**SETTINGS, "random_state": 2}, min_draws=3000).fit(rows).posterior_
        )
        error = np.hypot(found.mcse[k], other.edge_values("mcse"))
        z = (found.inclusion[k] - other.edge_values("inclusion")) / error
        assert np.abs(z).max() < 4.5, (found.labels[k], z)
        assert abs(found.n_edges[k] - other.n_edges.mean()) < 0.5
    # Negative control: the draws as they are do not tell of the prior that is far away.
    z = (found.inclusion[0] - found.inclusion[4]) / np.hypot(found.mcse[0], found.mcse[4])
    assert np.abs(z).max() > 9


def test_what_is_too_far_is_refused_and_never_extrapolated(model, rows):
    found = model.posterior_.sensitivity(PRIORS, draw=False)
    assert found.how[4] == "refused"
    assert np.isnan(found.inclusion[4]).all()
    assert np.isnan(found.n_edges[4])
    assert set(found.evidence[4]) == {""}
    assert found.table()["how"].tolist() == list(found.how)
    assert weights(model.posterior_, Prior(BlockInclusion())) is None
    sure = SpikeSlabMRF(prior=Prior(forced=[(0, 1)]), **SETTINGS).fit(rows)
    assert weights(sure.posterior_, Prior()) is None


SUBSCALE = {"subscale": {f"x{i}": "ab"[i % 2] for i in range(6)}}
MODELS = {
    "communities": BlockInclusion(2.0, 1.0, 1.0, 3.0),
    "attributes": AttributeInclusion("same(subscale)", SUBSCALE),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_inclusion_cancels_where_both_priors_have_it(rows, name):
    inclusion, settings = MODELS[name], {**SETTINGS, "min_draws": 3000}
    posterior = SpikeSlabMRF(prior=Prior(inclusion), **settings).fit(rows).posterior_
    same = weights(posterior, Prior(inclusion))
    assert same is not None
    assert np.allclose(same.draw * len(same.draw), 1)
    assert weights(posterior, Prior(replace(inclusion, **_other(name)))) is None
    other = Prior(inclusion, GammaSlab(8, 9))
    found = posterior.sensitivity({"other": other}, draw=False)
    assert found.how[1] == "reweighted"
    again = SpikeSlabMRF(prior=other, **{**settings, "random_state": 2}).fit(rows).posterior_
    error = np.hypot(found.mcse[1], again.edge_values("mcse"))
    assert (np.abs(found.inclusion[1] - again.edge_values("inclusion")) / error).max() < 4.5
    # Negative control: the draws as they are do not have that slab's answer.
    narrow = Prior(inclusion, FixedSlab(0.3))
    again = SpikeSlabMRF(prior=narrow, **{**settings, "random_state": 3}).fit(rows).posterior_
    error = np.hypot(found.mcse[1], again.edge_values("mcse"))
    assert (np.abs(found.inclusion[1] - again.edge_values("inclusion")) / error).max() > 5


def _other(name: str) -> dict[str, object]:
    return {"concentration": 2.0} if name == "communities" else {"p0": 0.2}


@pytest.mark.filterwarnings("ignore::edgewise.errors.EdgewiseWarning")
def test_an_engine_that_takes_too_long_or_no_such_prior_refuses_at_once(rows, model):
    """Langevin would warm up a million times for each prior, and knows normal slabs only."""
    slow = {**SETTINGS, "engine": "langevin", "max_draws": 100, "min_draws": 50, "chains": 2}
    settings = {"warm_up": 200, "thin": 5}
    posterior = SpikeSlabMRF(**slow, settings=settings).fit(rows).posterior_
    found = posterior.sensitivity({"far": PRIORS["far"], "heavy": Prior(slab=CauchySlab(1.0))})
    assert found.how == ("as fitted", "refused", "refused")
    assert all("langevin" in reason and reason.endswith(AGAIN) for reason in found.reason[1:])


def test_one_far_prior_does_not_cost_the_others_where_cells_were_blank(rows):
    table = rows.astype(float)
    table[::9, 2] = np.nan
    posterior = SpikeSlabMRF(**SETTINGS).fit(table).posterior_
    found = posterior.sensitivity({"near": PRIORS["near"], "far": PRIORS["far"]})
    assert found.how == ("as fitted", "reweighted", "refused")
    assert "blank" in found.reason[2]
    assert found.reason[2].endswith(AGAIN)
    assert "Nothing could be computed for 'far'" in found.headline()
    assert AGAIN in str(found)
    # Without a word of draw=False, which would not help.
    assert posterior.sensitivity({"far": PRIORS["far"]}, draw=False).reason[1].endswith(AGAIN)


def test_new_chains_that_are_stopped_early_are_no_answer(rows):
    posterior = SpikeSlabMRF(**SETTINGS).fit(rows).posterior_
    # As if it had come from a file, with an engine that has to learn anew.
    posterior._result, posterior.info["engine"], posterior.info["settings"] = None, "particle", {}
    found = posterior.sensitivity({"far": PRIORS["far"]}, max_time=1e-6)
    assert found.how[1] == "refused"
    assert "max_time" in found.reason[1]


def test_what_is_wrong_is_said_by_name_before_anything_is_computed(model):
    ask = model.posterior_.sensitivity
    with pytest.raises(DataError, match="'as fitted' is what the prior of the fit is called"):
        ask({"as fitted": PRIORS["far"]})
    with pytest.raises(DataError, match="as a list"):
        ask(PRIORS["far"])
    with pytest.raises(DataError, match="must be a text, not 3"):
        ask({3: PRIORS["far"]})
    with pytest.raises(DataError, match=r"no option 'max_tim'; they have .*max_time"):
        ask({"far": PRIORS["far"]}, max_tim=3)
    with pytest.raises(DataError, match="nobody"):
        ask({"near": PRIORS["near"], "wrong": Prior(forced=[("nobody", "x1")])})


def test_an_edge_that_is_known_has_its_place_too(rows):
    posterior = SpikeSlabMRF(prior=Prior(forced=[(0, 1)]), **SETTINGS).fit(rows).posterior_
    found = posterior.sensitivity({"near": Prior(BetaInclusion(4, 5), forced=[(0, 1)])}, draw=False)
    assert sorted(found.order) == list(range(15))


def test_monte_carlo_noise_is_no_change_of_verdict(found):
    """A probability near a threshold has two words in two runs, and says the same."""
    low, high = 0.749, 0.751
    inclusion = np.full((2, 15), low)
    inclusion[1] = high
    evidence = np.full((2, 15), "inconclusive", object)
    evidence[1] = "presence"
    two = {"labels": found.labels[:2], "priors": found.priors[:2], "how": found.how[:2], "reason": ("", "")}
    parts = {"inclusion": inclusion, "evidence": evidence, "log10_bf": found.log10_bf[:2]}
    noisy = replace(found, **two, **parts, mcse=np.full((2, 15), 0.01))
    assert (noisy.changes == 0).all()
    assert noisy.headline().startswith("0 of 15 edges change")
    exact = replace(noisy, mcse=np.full((2, 15), 0.0005))
    assert (exact.changes == 1).all()


def test_where_nothing_could_be_computed_it_is_said(model, tmp_path):
    refused = model.posterior_.sensitivity({"far": PRIORS["far"]}, draw=False)
    assert refused.reason[1].endswith(DRAW)
    assert refused.headline() == f"Nothing could be computed for any other prior ('far'). {DRAW}"
    for question in ("evidence", "inclusion", "edges"):
        title = plots.sensitivity(refused, question=question).get_title()
        assert "Nothing could be computed" in title
        assert "0 of 15" not in title
    page = write_report(model, tmp_path / "report.html", sensitivity=refused).read_text("utf-8")
    assert "Nothing could be computed for any other prior" in page
    assert "of 15 edges change" not in page
    model.posterior_.save(tmp_path / "posterior.nc")
    asked = ["sensitivity", str(tmp_path / "posterior.nc"), "--no-draw", "--sigma0", "0.2"]
    done = CliRunner().invoke(app, asked)
    assert "Nothing could be computed" in done.output
    assert "Leave out --no-draw" in " ".join(done.output.split())
    assert "draw=False" not in done.output
    assert "of 15 edges" not in done.output


def test_errors_of_weighted_probabilities_know_that_draws_go_along_with_their_weights(model):
    posterior = model.posterior_
    same = weights(posterior, posterior.prior)
    plain = errors(posterior._table, same, posterior._quality)
    assert np.allclose(plain, posterior._quality.mcse, rtol=0.5)
    # Between the chains, each weighted for itself, the probabilities differ by about two of these errors.
    found = weights(posterior, PRIORS["half"])
    table, share = posterior._table, found.draw.reshape(posterior.n_chains, -1)
    active = table.dense(np.arange(15), indicator=True)
    each = (share * active).sum(axis=2) / share.sum(axis=1)
    error = errors(table, found, posterior._quality)
    moving = posterior._quality.varies & (error > 0.003)
    ratio = each.std(axis=1, ddof=1)[moving] / 2 / error[moving]
    assert 0.5 < np.sqrt((ratio**2).mean()) < 1.8


def test_weights_of_the_same_prior_are_equal_and_known_ones_are_right(model):
    posterior = model.posterior_
    same = weights(posterior, posterior.prior)
    assert same is not None
    assert same.share == pytest.approx(1)
    # Under fixed p0 and sigma0 the density is a product over the candidates.
    resolved = Prior(FixedInclusion(0.3), FixedSlab(0.7)).resolve(posterior.features, posterior.names)
    draws = posterior.draws[0][:50]
    density = log_prior(resolved, draws, np.ones(15, int))
    for t in range(50):
        values = draws.active(t)[1]
        expected = len(values) * np.log(0.3) + (15 - len(values)) * np.log(0.7)
        expected += (-0.5 * (values / 0.7) ** 2 - np.log(0.7 * np.sqrt(2 * np.pi))).sum()
        expected += (-0.5 * (draws.biases[t] / 10) ** 2 - np.log(10 * np.sqrt(2 * np.pi))).sum()
        assert density[t] == pytest.approx(expected)


def test_a_saved_posterior_answers_too(model, tmp_path, found):
    model.posterior_.save(tmp_path / "posterior.nc")
    again = load_posterior(tmp_path / "posterior.nc").sensitivity({"far": PRIORS["far"]})
    assert again.how == ("as fitted", "new chains")
    assert np.abs(again.inclusion[1] - found.inclusion[4]).max() < 0.1


def test_tables_pictures_and_report(found, model, tmp_path):
    edges = found.edges()
    assert list(edges.columns) == [*found.labels, "changes"]
    assert edges["changes"].is_monotonic_decreasing
    assert found.edges("evidence").shape == (15, 6)
    with pytest.raises(DataError, match="choose inclusion"):
        found.edges("colour")
    for question in ("evidence", "inclusion", "edges"):
        plots.sensitivity(found, question=question)
    page = write_report(model, tmp_path / "report.html", sensitivity=found).read_text("utf-8")
    assert 'id="sensitivity"' in page
    assert "new chains" in page


def test_the_command(model, tmp_path):
    model.posterior_.save(tmp_path / "posterior.nc")
    (tmp_path / "sparse.toml").write_text('[inclusion]\nkind = "BetaInclusion"\na = 4\nb = 5\n')
    arguments = ["sensitivity", str(tmp_path / "posterior.nc"), "--no-draw", "--p0", "0.4"]
    arguments += ["--prior", str(tmp_path / "sparse.toml"), "-o", str(tmp_path / "edges.csv")]
    done = CliRunner().invoke(app, [*arguments, "--plot", str(tmp_path / "s.png")])
    assert done.exit_code == 0, done.output
    assert "p0 = 0.4" in done.output
    assert "sparse" in done.output
    assert (tmp_path / "s.png").stat().st_size > 5000
    assert (tmp_path / "edges.csv").read_text("utf-8-sig").startswith("edge,prior,how,inclusion")
    assert "--no-draw" not in done.output
    changed = CliRunner().invoke(app, ["sensitivity", str(tmp_path / "posterior.nc"), "--beta", "1,60"])
    assert "edge that changes" in changed.output
    assert "inconclusive" in changed.output
    wrong = CliRunner().invoke(app, ["sensitivity", str(tmp_path / "posterior.nc"), "--beta", "1", "60"])
    assert wrong.exit_code == 2
    assert "with a comma" in wrong.output


def test_priors_of_the_command_have_names_of_their_own(model, tmp_path):
    model.posterior_.save(tmp_path / "posterior.nc")
    files = [tmp_path / "d1" / "a.toml", tmp_path / "d2" / "a.toml", tmp_path / "as fitted.toml"]
    for number, path in enumerate(files):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'[inclusion]\nkind = "BetaInclusion"\na = {4 + number}\nb = 5\n')
    arguments = ["sensitivity", str(tmp_path / "posterior.nc"), "--json", "--quiet", "--seed", "3"]
    arguments += [word for path in files for word in ("--prior", str(path))]
    arguments += ["--student", "4,1", "--slab", "6,5", "--slab", "5,6", "--beta", "4,5", "--max-time", "60"]
    arguments += ["--plot", str(tmp_path / "s.png"), "--question", "inclusion"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    names = [row["prior"] for row in told["priors"]]
    assert names[0] == "as fitted"
    assert set(map(str, files)) <= set(names)
    assert {"p0 ~ Beta(4, 5)", "Student(4, 1)", "1/sigma0^2 ~ Gamma(6, 5)"} <= set(names)
    assert len(names) == len(set(names)) == 8
    assert {"mean", "mcse", "evidence", "inclusion", "log10_bf"} <= set(told["edges"][0])
    assert len(told["edges"][0]["mean"]) == 8


def test_default_priors_have_another_gamma_slab():
    assert "1/sigma0^2 ~ Gamma(1, 1)" in default_priors(Prior())
