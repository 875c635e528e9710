"""Communities, attributes and slabs from the estimator and the command to file, words and pictures."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.legend import Legend
from sklearn.base import clone

from edgewise import MRF, SpikeSlabMRF, exact, load_posterior, plots
from edgewise.errors import DataError, FileError
from edgewise.features import Features
from edgewise.posterior.communities import point_partition
from edgewise.posterior.verdict import judge
from edgewise.priors import (
    AttributeInclusion,
    BlockInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    Prior,
    StudentSlab,
    read_prior,
)
from edgewise.report import write_report

NAMES = list("abcdefgh")
SCALE = dict(zip(NAMES, "sssstttt"))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    pairs = [(i, j) for i in range(8) for j in range(i + 1, 8) if (i < 4) == (j < 4)]
    model = MRF(np.full(8, -1.2), pairs, np.full(len(pairs), 0.9))
    return pd.DataFrame(exact.sample(model, 400, np.random.default_rng(0)), columns=NAMES)


@pytest.fixture(scope="module")
def grouped(table) -> SpikeSlabMRF:
    prior = Prior(BlockInclusion(), CauchySlab(1.0), edge_slab={("a", "b"): (1.0, 0.5)})
    return SpikeSlabMRF(prior=prior, random_state=1, progress=False).fit(table)


def test_communities_to_file_and_back(grouped, tmp_path):
    grouped.posterior_.save(tmp_path / "posterior.nc")
    again = load_posterior(tmp_path / "posterior.nc")
    assert again.prior == grouped.posterior_.prior
    found = again.communities()
    assert sorted(found.members) == [("a", "b", "c", "d"), ("e", "f", "g", "h")]
    np.testing.assert_array_equal(found.together, grouped.posterior_.communities().together)
    assert found.number.sum() == pytest.approx(1)
    assert found.prior_number.sum() == pytest.approx(1)
    assert found.log10_bf[2] > 0 > found.log10_bf[1]
    assert list(found.table()["community"]) == [found.partition[i] + 1 for i in range(8)]
    assert "a, b, c, d" in str(found)
    page = write_report(again, tmp_path / "report.html").read_text("utf-8")
    assert 'id="communities"' in page
    assert "stochastic block model" in page
    assert "Cauchy" in page
    plots.communities(again)
    legend = plots.network(again).get_legend()
    assert legend is None or "community 1" in [text.get_text() for text in legend.get_texts()]


@pytest.fixture(scope="module")
def single(table) -> SpikeSlabMRF:
    """Communities where there is one only."""
    prior = Prior(BlockInclusion(mean_communities=1.01), FixedSlab(1.0))
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 8)), columns=NAMES)
    return SpikeSlabMRF(prior=prior, random_state=1, progress=False).fit(rows)


def test_methods_name_what_there_is(grouped, single, table, tmp_path):
    page = write_report(grouped.posterior_, tmp_path / "report.html").read_text("utf-8")
    methods = page.partition('id="methods-text"')[2].partition("</div>")[0]
    assert "uncertain edges, the number of edges and the number of communities, rank" in methods
    assert "p<sub>0</sub> and σ<sub>0</sub>" not in methods
    assert "of their own for the parameters of a – b (N(1, 0.5<sup>2</sup>))" in methods
    prior = Prior(edge_probability={("a", "b"): 0.9, ("c", "<d>"): 0.25}, slab=FixedSlab(1.0))
    renamed = table.rename(columns={"d": "<d>"})
    posterior = SpikeSlabMRF(prior=prior, random_state=1, progress=False).fit(renamed).posterior_
    page = write_report(posterior, tmp_path / "report.html").read_text("utf-8")
    methods = page.partition('id="methods-text"')[2].partition("</div>")[0]
    assert "the number of edges and p<sub>0</sub>, rank" in methods
    assert "prior probabilities of their own for a – b (0.9), c – &lt;d&gt; (0.25)" in methods


def test_there_is_no_p0_to_plot(grouped, table):
    for call in (plots.inclusion_rate, lambda one: plots.trace(one, parameter="p0")):
        with pytest.raises(DataError, match="has no p0: its prior is a block model"):
            call(grouped)
    assert plots.trace_panels(grouped).shape == (2, 2)
    prior = Prior(AttributeInclusion("scale", SCALE))
    told = SpikeSlabMRF(prior=prior, random_state=1, progress=False).fit(table)
    with pytest.raises(DataError, match="has no p0: its prior is a regression"):
        plots.inclusion_rate(told)


def test_one_community_has_no_colour(single, tmp_path):
    posterior = single.posterior_
    assert len(posterior.communities().members) == 1
    for axes in (plots.network(posterior), plots.evidence_network(posterior)):
        texts = [text.get_text() for legend in axes.figure.findobj(Legend) for text in legend.get_texts()]
        assert not [text for text in texts if "community" in text]
    assert plots.communities(posterior).get_title() == "Communities: all variables in one"
    page = write_report(posterior, tmp_path / "report.html").read_text("utf-8")
    assert "Nodes of the network have these colours" not in page
    assert "community 1" not in page


def test_number_and_partition_that_differ_are_explained(grouped):
    found = grouped.posterior_.communities()
    assert found.note == ""
    number = np.zeros(9)
    number[[2, 3]] = 0.4, 0.6
    other = replace(found, number=number)
    assert "has 2, though 3 are most probable: the draws split off variables" in other.note
    assert other.note in str(other)
    number = np.zeros(9)
    number[1] = 1.0
    assert "has 2, though 1 is most probable: the draws merge" in replace(found, number=number).note


def test_attributes(table, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("item,scale\n" + "".join(f"{name},{label}\n" for name, label in SCALE.items()))
    prior = Prior(AttributeInclusion("scale", path), StudentSlab(4, 1))
    model = SpikeSlabMRF(prior=prior, random_state=1, progress=False).fit(table)
    told = model.posterior_.attribute_summary().set_index("attribute")
    assert told.loc["same scale", "mean"] > 0.5
    model.posterior_.save(tmp_path / "posterior.nc")
    path.unlink()
    again = load_posterior(tmp_path / "posterior.nc")
    pd.testing.assert_frame_equal(again.attribute_summary().set_index("attribute"), told)
    page = write_report(again, tmp_path / "report.html").read_text("utf-8")
    assert 'id="attributes"' in page
    assert "same scale" in page
    with pytest.raises(DataError, match="knows no communities"):
        again.communities()


@pytest.mark.parametrize(
    ("terms", "values", "words"),
    [
        ("scale", {**SCALE, "z": "s"}, "given for 'z', and there is no such variable"),
        ("scale", {**SCALE, "b": ""}, "blank for 'b'"),
        ("scale", dict.fromkeys(NAMES, "s"), "is 's' for all variables"),
        ("other", {"scale": SCALE}, "no attribute 'other'"),
        ("distance(scale)", SCALE, "not numbers"),
        ("scale", dict(zip(NAMES, itertools.cycle((1e308, -1e308)))), "too far apart"),
        ("scale * 2)", SCALE, "is no attribute of a pair"),
        ("scale + scale", SCALE, "name the same twice"),
    ],
)
def test_attributes_that_cannot_be(table, terms, values, words):
    with pytest.raises(DataError, match=words):
        SpikeSlabMRF(prior=Prior(AttributeInclusion(terms, values)), progress=False).fit(table)


@pytest.mark.parametrize(
    ("terms", "columns", "words"),
    [
        (
            "same(s) + same(t)",
            {"s": "aaaabbbb", "t": "xxxxyyyy"},
            "'same s' and 'same t' tell the same pairs",
        ),
        (
            "same(u) + same(s) + distance(t)",
            {"u": "aabbaabb", "s": "aaaabbbb", "t": (0, 0, 0, 0, 3, 3, 3, 3)},
            "attributes 'same s' and 'distance of t' tell",
        ),
        (
            "distance(one) + distance(two) + distance(sum)",
            {"one": range(8), "two": [k**2 for k in range(8)], "sum": [k + k**2 for k in range(8)]},
            "'distance of one', 'distance of two' and 'distance of sum' depend on each other",
        ),
    ],
)
def test_attributes_that_say_the_same_are_named(table, terms, columns, words):
    values = {name: dict(zip(NAMES, column)) for name, column in columns.items()}
    with pytest.raises(DataError, match=words):
        SpikeSlabMRF(prior=Prior(AttributeInclusion(terms, values)), progress=False).fit(table)
    alone = Prior(AttributeInclusion(terms.rpartition(" + ")[0], values))
    assert alone.resolve(Features.pairs(8), NAMES).model is not None


def test_nested_parameters_and_clones():
    model = SpikeSlabMRF(prior=Prior(FixedInclusion(0.5), FixedSlab(1.0)))
    other = clone(model).set_params(prior__inclusion__p0=0.1, prior__slab__sigma0=2.0, chains=2)
    assert (other.prior.inclusion.p0, other.prior.slab.sigma0, other.chains) == (0.1, 2.0, 2)
    assert model.prior.inclusion.p0 == 0.5
    assert model.get_params()["prior__inclusion__p0"] == 0.5
    with pytest.raises(DataError, match="FixedInclusion has no 'a'; it has p0"):
        model.set_params(prior__inclusion__a=3)


def test_a_prior_as_a_file(tmp_path):
    path = tmp_path / "prior.toml"
    path.write_text(
        'forced = [["a", "b"]]\nedge_slab = [[["a", "c"], [0.8, 0.3]]]\n'
        'edge_probability = [[["b", "c"], 0.9]]\n[inclusion]\nkind = "BlockInclusion"\na = 2\n'
        '[slab]\nkind = "CauchySlab"\nscale = 0.5\n'
    )
    prior = read_prior(path)
    assert prior.inclusion == BlockInclusion(2)
    assert prior.slab == CauchySlab(0.5)
    assert list(prior.forced) == [("a", "b")]
    assert prior.edge_slab == {("a", "c"): (0.8, 0.3)}
    assert Prior.from_dict(prior.to_dict()) == prior
    for text, words in (
        ("[slab]\nkind = 'Wide'\n", "slab has no kind 'Wide'"),
        ("[slab]\nkind = 'CauchySlab'\nwidth = 2\n", "CauchySlab has no 'width'"),
        ("[slope]\nx = 1\n", "A prior has no 'slope'"),
        ("edge_slab = [3]\n", "edge_slab is a list of entries"),
        ("what is this", "cannot be read"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=words):
            read_prior(path)


def test_the_closest_partition_is_that_of_clear_draws():
    rng = np.random.default_rng(0)
    truth = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    draws = np.array([np.where(rng.random(8) < 0.15, rng.integers(0, 3, 8), truth) for _ in range(400)])
    known, counts = np.unique(draws, axis=0, return_counts=True)
    together = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    found = point_partition(known, counts / counts.sum(), together)
    assert ((found[:, None] == found) == (truth[:, None] == truth)).all()


def test_absence_depends_on_the_slab():
    """The example of docs/howto/prior.md, with its numbers."""
    linked = [(0, 1), (0, 7), (1, 3), (1, 6), (2, 4), (3, 5), (4, 7)]
    truth = MRF(np.full(8, -1.0), linked, np.full(len(linked), 1.0))
    rows = exact.sample(truth, 200, np.random.default_rng(1))
    counts, verdicts = [], []
    for prior in (Prior(), Prior(slab=FixedSlab(2.5))):
        posterior = SpikeSlabMRF(prior=prior, random_state=1, progress=False).fit(rows).posterior_
        counts.append(int(posterior.summary()["evidence"].str.contains("absence").sum()))
        verdicts.append(judge(posterior).nothing_excluded)
    assert counts == [0, 18]
    assert "with 200 rows and a slab of width 0.95" in verdicts[0]
    assert verdicts[1] == ""
