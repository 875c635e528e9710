"""Other priors from the same draws or from new chains: against fits under those priors."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from edgewise import SpikeSlabMRF, datasets, exact, load_posterior, plots
from edgewise.cli import app
from edgewise.errors import DataError
from edgewise.posterior.reweighting import log_prior, weights
from edgewise.priors import BetaInclusion, BlockInclusion, CauchySlab, FixedInclusion, FixedSlab, Prior
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
