"""Every kind of plot: it draws what it says, stands alone and survives awkward posteriors."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from importlib import resources

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.text import Text

from edgewise import MRF, Posterior, plots
from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.plots import layout, placing
from edgewise.plots.source import edge_view
from edgewise.plots.style import COMMUNITIES, NEGATIVE, POSITIVE
from edgewise.plots.traces import prior_density, rank_shares
from edgewise.priors import BetaInclusion, BlockInclusion, FixedInclusion, FixedSlab, GammaSlab, Prior
from helpers import fake_posterior, sparse_draws

LONG = [
    "a very long name of a variable that never seems to end",
    "<script>alert(1)</script>",
    "$broken \\frac{ math$ and $more",
    "=1+1",
    "tab\tand\nline",
    "_hidden",
    "日本",
]


def no_edges() -> Posterior:
    """A posterior in which no edge is ever active and p0 and sigma0 are constant."""
    chains = [sparse_draws(np.zeros((30, 10)), np.zeros((30, 5))) for _ in range(2)]
    return Posterior(chains, Features.pairs(5), list("abcde"))


CASES = {
    "five": lambda: fake_posterior(5, draws=50),
    "long names": lambda: fake_posterior(7, draws=50, names=LONG),
    "two hundred": lambda: fake_posterior(200, chains=2, draws=10),
    "no edges": no_edges,
    "triples": lambda: fake_posterior(5, draws=50, order=3),
}


@pytest.fixture(scope="module", params=list(CASES))
def posterior(request):
    return CASES[request.param]()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def options(kind: str, posterior: Posterior) -> dict:
    if kind == "predictive":
        return {"data": np.random.default_rng(0).integers(0, 2, (20, posterior.n_variables)), "n_models": 2}
    if kind == "precision-recall":
        bias = posterior.biases().mean(axis=(0, 1))
        return {"truth": MRF.from_coupling(bias, 1.0 * (posterior.inclusion > 0.3))}
    if kind == "samples":
        return {"shape": (1, posterior.n_variables), "sweeps": 1, "count": 3}
    return {}


def ready(kind: str, posterior: Posterior) -> Posterior:
    """The posterior, or where a plot shows what a block model has learned one with communities."""
    if kind != "communities":
        return posterior
    if not posterior.features.pairs_only:
        pytest.skip("communities are those of pairs")
    rng, p = np.random.default_rng(0), posterior.n_variables
    truth = np.arange(p) % 3
    states = [
        np.where(rng.random((len(chain), p)) < 0.1, 0, truth).astype(np.int16) for chain in posterior.draws
    ]
    chains = [replace(chain, model_state=state) for chain, state in zip(posterior.draws, states)]
    return Posterior(chains, posterior.features, posterior.names, prior=Prior(BlockInclusion()))


# Pictures of compared groups are tested beside such fits (tests/api/test_groups_fit.py).
KINDS = [kind for kind in plots.PLOTS if not kind.startswith("difference-")]


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_stands_alone(kind, posterior):
    posterior = ready(kind, posterior)
    ax = plots.PLOTS[kind](posterior, **options(kind, posterior))
    assert ax.get_title().strip()
    assert not ax.axison or kind == "samples" or (ax.get_xlabel().strip() and ax.get_ylabel().strip())
    ax.figure.canvas.draw()  # names with broken mathematics in them would fail here


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_draws_into_the_given_axes(kind):
    posterior = ready(kind, fake_posterior(5, draws=30))
    _, (left, right) = pyplot.subplots(1, 2)
    made = plots.PLOTS[kind](posterior, ax=left, **options(kind, posterior))
    assert made is left
    assert not right.get_title()
    assert len(pyplot.get_fignums()) == 1


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9])
def test_network_draws_the_edges_of_the_threshold(threshold):
    posterior = fake_posterior(12, seed=3)
    ax = plots.network(posterior, threshold=threshold)
    lines = [part for part in ax.collections if isinstance(part, LineCollection)]
    assert (
        sum(len(part.get_segments()) for part in lines)
        == (posterior.edge_values("inclusion") >= threshold).sum()
    )


def test_network_shows_sign_by_colour_strength_by_width_and_doubt_by_dashes():
    coupling = np.zeros((100, 3))
    coupling[:, 0] = 2.0
    coupling[:, 1] = -1.0
    coupling[np.random.default_rng(0).permutation(100)[:55], 2] = 1.0
    posterior = Posterior([sparse_draws(coupling, np.zeros((100, 3)))], Features.pairs(3), ["a", "b", "c"])
    ax = plots.network(posterior, layout="circle", threshold=0.5)
    places = layout.circle(3)
    seen = {}
    for part in ax.collections:
        if isinstance(part, LineCollection):
            for segment, width in zip(part.get_segments(), part.get_linewidths()):
                ends = tuple(sorted(int(np.argmin(((places - end) ** 2).sum(1))) for end in segment[[0, -1]]))
                seen[ends] = (
                    to_rgba(part.get_colors()[0])[:3],
                    width,
                    part.get_linestyles()[0][1] is not None,
                )
    assert seen[0, 1][0] == to_rgba(POSITIVE)[:3]
    assert seen[0, 2][0] == to_rgba(NEGATIVE)[:3]
    assert seen[0, 1][1] > seen[0, 2][1]
    assert [seen[edge][2] for edge in ((0, 1), (0, 2), (1, 2))] == [False, False, True]


def test_network_of_a_single_model_draws_its_edges():
    model = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, -2.0], ["a", "b", "c"])
    ax = plots.network(model)
    assert "2 edges" in ax.get_title()
    assert sum(len(part.get_segments()) for part in ax.collections if isinstance(part, LineCollection)) == 2


def test_network_over_the_pixel_grid():
    posterior = fake_posterior(12, draws=30)
    ax = plots.network(posterior, grid=(3, 4))
    squares = [part for part in ax.collections if len(part.get_paths()) == 12]
    assert squares
    with pytest.raises(DataError, match="3 x 3 has 9 places and there are 12"):
        plots.network(posterior, grid=(3, 3))


def test_network_refuses_layouts_that_do_not_fit():
    posterior = fake_posterior(4, draws=20)
    with pytest.raises(DataError, match="no layout 'spiral'"):
        plots.network(posterior, layout="spiral")
    with pytest.raises(DataError, match="no position for 'x3'"):
        plots.network(posterior, layout={"x0": (0, 0), "x1": (0, 1), "x2": (1, 1)})
    with pytest.raises(DataError, match=r"shape \(3, 2\)"):
        plots.network(posterior, layout=np.zeros((3, 2)))


def test_forced_edges_are_not_called_inconclusive():
    posterior = fake_posterior(5, draws=40, prior=Prior(forced=[("x0", "x1")]))
    view = edge_view(posterior)
    assert view.evidence[0] == "set by the prior"
    assert set(view.evidence[1:]) <= set(plots.style.EVIDENCE_COLOURS)


def spread(first: np.ndarray, second: np.ndarray) -> float:
    """Root mean square movement of the nodes, in units of the picture's radius."""
    return float(np.sqrt(((first - second) ** 2).sum(1).mean()))


def test_layout_hardly_moves_with_the_noise_of_another_seed():
    rng = np.random.default_rng(5)
    truth = np.triu(np.where(rng.random((20, 20)) < 0.15, 0.95, 0.02), 1)
    truth = truth + truth.T
    draws = 2000

    def estimate() -> np.ndarray:
        noisy = np.triu(rng.binomial(draws, truth) / draws, 1)
        return noisy + noisy.T

    base = layout.stress(estimate())
    moved = [spread(base, layout.stress(estimate())) for _ in range(5)]
    assert max(moved) < 0.05
    order = rng.permutation(20)
    assert spread(base, layout.stress(truth[np.ix_(order, order)])) > 0.3
    np.testing.assert_array_equal(layout.stress(truth), layout.stress(truth))


def test_layout_puts_neighbours_closer_than_strangers():
    inclusion = np.zeros((30, 30))
    inclusion[np.arange(29), np.arange(1, 30)] = 1.0
    places = layout.stress(inclusion + inclusion.T)
    gaps = np.sqrt(((places[:, None] - places[None]) ** 2).sum(2))
    assert gaps[np.arange(29), np.arange(1, 30)].max() < gaps[0, 29] / 5
    assert gaps[np.arange(28), np.arange(2, 30)].min() > gaps[np.arange(29), np.arange(1, 30)].min()


def test_communities_are_those_of_the_probable_edges_and_stand_apart():
    inclusion = np.full((40, 40), 0.05)
    inclusion[:20, :20] = inclusion[20:, 20:] = 0.9
    inclusion[3, 27] = inclusion[27, 3] = 0.9
    np.fill_diagonal(inclusion, 0.0)
    group = layout.communities(inclusion)
    assert len(set(group[:20])) == len(set(group[20:])) == 1
    assert group[0] != group[39]
    places = layout.stress(inclusion)
    within = np.sqrt(((places[:20] - places[:20].mean(0)) ** 2).sum(1)).mean()
    between = np.sqrt(((places[:20].mean(0) - places[20:].mean(0)) ** 2).sum())
    assert between > 1.5 * within


@pytest.mark.parametrize("seed", range(4))
def test_communities_are_as_good_as_those_of_networkx(seed):
    import networkx
    from networkx.algorithms.community import greedy_modularity_communities, modularity

    sizes = [12, 9, 7, 5]
    graph = networkx.stochastic_block_model(sizes, 0.35 * np.eye(4) + 0.03, seed=seed)
    graph.add_nodes_from([33, 34])
    group = layout.communities(networkx.to_numpy_array(graph, nodelist=range(35)))
    mine = modularity(graph, [set(np.flatnonzero(group == k)) for k in set(group)])
    assert mine >= 0.97 * modularity(graph, greedy_modularity_communities(graph))
    assert group[33] != group[34]
    # The largest first, and none left out.
    counts = np.bincount(group)
    assert (np.diff(counts) <= 0).all()
    # A control: groups at random are no communities.
    shuffled = np.random.default_rng(seed).permutation(group)
    assert modularity(graph, [set(np.flatnonzero(shuffled == k)) for k in set(group)]) < 0.5 * mine


def test_lines_go_round_third_nodes_and_names_cover_nothing():
    positions = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 0.0], [50.0, 80.0]])
    pairs = np.array([[0, 1], [0, 3]])
    lines = placing.curves(positions, pairs, clearance=8.0)
    assert placing._clearance(lines[0], positions, pairs[0]) >= 8.0
    straight = positions[0] + np.linspace(0, 1, 15)[:, None] * (positions[3] - positions[0])
    np.testing.assert_allclose(lines[1], straight)
    # A control: the straight line runs through the third node.
    assert placing._clearance(positions[[0, 1]], positions, pairs[0]) == 0.0
    rng = np.random.default_rng(0)
    crowd = rng.uniform(0, 300, (60, 2))
    radii = np.full(60, 4.0)
    texts = [f"variable {k}" for k in range(60)]
    places = placing.names(crowd, radii, texts, 8.0, np.zeros((0, 15, 2)), (-50, -50, 350, 350), range(60))
    written = [place for place in places if place is not None]
    assert 15 < len(written) < 60
    for k, one in enumerate(written):
        for other in written[:k]:
            assert (
                abs(one.x - other.x) >= one.half_width + other.half_width
                or abs(one.y - other.y) >= one.half_height + other.half_height
            )
    forced = placing.names(
        crowd, radii, texts, 8.0, np.zeros((0, 15, 2)), (-50, -50, 350, 350), range(60), True
    )
    assert None not in forced


@pytest.mark.parametrize(
    "kind", ["network", "evidence", "evidence-network", "forest", "inclusion", "centrality", "structures"]
)
def test_pictures_of_a_result_that_is_not_green_are_marked(kind):
    def marks(posterior):
        return [text for text in plots.PLOTS[kind](posterior).texts if text.get_gid() == "light"]

    assert marks(fake_posterior(6, draws=100, persistence=0.99))[0].get_text().startswith("red: ")
    assert not marks(fake_posterior(6, draws=1500, persistence=0.0))


def test_a_red_picture_counts_nothing():
    def words(kind, posterior):
        ax = plots.PLOTS[kind](posterior)
        return " ".join([ax.get_title(), *(text.get_text() for text in ax.get_legend().get_texts())])

    for kind in ("network", "evidence-network", "evidence"):
        red = words(kind, fake_posterior(8, draws=100, seed=2, persistence=0.99))
        assert not re.search(r"(presence|positive|absence): \d|\d edges", red), red
        assert re.search(
            r"(presence|positive): \d", words(kind, fake_posterior(8, draws=1500, persistence=0.0))
        )


def crosses(first, second):
    """Whether two lines (2, 2) cross inside."""

    def side(a, b, c):
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    (a, b), (c, d) = first, second
    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def test_names_of_the_evidence_plot_stand_apart_and_their_lines_do_not_cross():
    posterior = fake_posterior(20, draws=1500, persistence=0.0, names=[f"variable {k}" for k in range(20)])
    ax = plots.edge_evidence(posterior, labels=12)
    ax.figure.canvas.draw()
    assert len(ax.texts) == 12
    # Of the words alone, without their lines.
    boxes = [Text.get_window_extent(text, ax.figure.canvas.get_renderer()) for text in ax.texts]
    points = [ax.transData.transform(text.xy) for text in ax.texts]
    lines = [(point, (box.x0, (box.y0 + box.y1) / 2)) for point, box in zip(points, boxes)]
    frame = ax.get_window_extent()
    for k, box in enumerate(boxes):
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1 + 1
        assert max(point[0] for point in points) < box.x0
        for j in range(k):
            assert not crosses(lines[k], lines[j])
            assert box.y1 <= boxes[j].y0 + 1 or boxes[j].y1 <= box.y0 + 1
    # A control: with two names exchanged, lines do cross.
    swapped = [(point, lines[-1 - k][1]) for k, point in enumerate(points)]
    assert any(crosses(one, other) for k, one in enumerate(swapped) for other in swapped[:k])


def test_centrality_shows_the_table_and_the_most_central_variables():
    posterior = fake_posterior(12, draws=200, persistence=0.0)
    ax = plots.centrality(posterior, measure="degree", variables=5)
    table = posterior.centrality("degree").sort_values("mean", ascending=False).head(5)
    points = ax.collections[-1].get_offsets()
    np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(table["mean"]))
    assert {tick.get_text() for tick in ax.get_yticklabels()} == set(table["variable"])
    assert "5 most central of 12" in ax.get_title()
    with pytest.raises(DataError, match="no centrality 'fame'"):
        plots.centrality(posterior, measure="fame")


def test_structures_show_which_graphs_are_probable_and_where_they_differ():
    # Three candidates: the first always there, the second in two draws of three, the third never.
    values = np.zeros((300, 3))
    values[:, 0] = 1.0
    values[:200, 1] = -0.5
    chains = [sparse_draws(values, np.zeros((300, 3))) for _ in range(2)]
    ax = plots.structures(Posterior(chains, Features.pairs(3), ["a", "b", "c"]))
    bars = [patch.get_height() for patch in ax.patches]
    np.testing.assert_allclose(bars[1] / bars[0], 0.5)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[3:] == ["a – c"]
    assert names[2] == "0.67"
    filled, hollow = ax.collections
    np.testing.assert_array_equal(filled.get_offsets()[:, 0], [0])
    np.testing.assert_array_equal(hollow.get_offsets()[:, 0], [1])
    assert "1 edge is in all of them" in ax.get_xlabel()
    assert "2 different graphs in 600 draws" in ax.get_title()


def test_colours_of_communities_are_those_of_the_report():
    style = (resources.files("edgewise.report") / "assets" / "style.css").read_text("utf-8")
    told = [found.upper() for found in re.findall(r"\.group-\d+ \{ fill: (#\w+); \}", style)]
    assert told == list(COMMUNITIES)


@pytest.mark.parametrize("draw", [plots.network, plots.evidence_network])
def test_no_line_runs_through_a_third_node(draw):
    posterior = fake_posterior(30, draws=400, persistence=0.0)
    ax = draw(posterior)
    ax.figure.canvas.draw()
    nodes = next(part for part in ax.collections if len(part.get_offsets()) == 30)
    places = ax.transData.transform(nodes.get_offsets())
    radius = np.sqrt(nodes.get_sizes().max()) / 2 * ax.figure.dpi / 72
    through = total = 0
    for part in ax.collections:
        for line in part.get_segments() if isinstance(part, LineCollection) else ():
            line = ax.transData.transform(line)
            ends = [int(np.argmin(((places - end) ** 2).sum(1))) for end in (line[0], line[-1])]
            total += 1
            through += placing._clearance(line, places, np.array(ends)) < 0.9 * radius
    straight = sum(
        placing._clearance(places[list(pair)], places, np.array(pair)) < 0.9 * radius
        for pair in edge_view(posterior).pairs.tolist()
    )
    assert total > 20
    assert through <= (0 if draw is plots.network else 0.01 * total)
    # A control: straight lines would.
    assert straight > 0.01 * len(edge_view(posterior).pairs)


def test_the_network_shows_what_there_is_evidence_for_and_all_plots_share_one_layout():
    posterior = fake_posterior(12, draws=1500, persistence=0.0)
    drawn = np.isin(posterior.edge_values("evidence"), ("presence", "strong presence")).sum()
    ax, other = plots.network(posterior), plots.evidence_network(posterior)
    lines = [part for part in ax.collections if isinstance(part, LineCollection)]
    assert sum(len(part.get_segments()) for part in lines) == drawn
    nodes = [
        next(part.get_offsets() for part in one.collections if len(part.get_offsets()) == 12)
        for one in (ax, other)
    ]
    np.testing.assert_array_equal(*nodes)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_layout_of_few_nodes_is_finite(count):
    assert np.isfinite(layout.stress(np.zeros((count, count)))).all()


def test_clustering_puts_blocks_side_by_side():
    blocks = np.arange(12) % 3
    inclusion = 1.0 * (blocks[:, None] == blocks)
    order = plots.matrix.cluster_order(inclusion)
    assert (np.diff(blocks[order]) != 0).sum() == 2


def test_trace_and_rank_show_every_chain():
    posterior = fake_posterior(6, chains=3, draws=60)
    ax = plots.trace(posterior, parameter=("x0", "x1"))
    assert len(ax.lines) == 3
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), posterior.draws_of(("x0", "x1"))[1])
    ax = plots.trace(posterior, parameter="x0 -- x1")
    np.testing.assert_array_equal(ax.lines[2].get_ydata(), posterior.draws_of(("x0", "x1"))[2])
    with pytest.raises(DataError, match="nothing called 'sigma'"):
        plots.trace(posterior, parameter="sigma")
    assert plots.trace_panels(posterior).shape == (3, 2)


def test_rank_shares_agree_for_equal_chains_and_differ_for_shifted_ones():
    rng = np.random.default_rng(0)
    equal = rng.integers(0, 5, (4, 4000)).astype(float)
    shares = rank_shares(equal, 10)
    np.testing.assert_allclose(shares.sum(1), 1)
    sd = np.sqrt(0.1 * 0.9 / 4000)
    assert np.abs(shares - 0.1).max() < 5 * sd
    shifted = equal + np.arange(4)[:, None]
    assert np.abs(rank_shares(shifted, 10) - 0.1).max() > 20 * sd


@pytest.mark.parametrize("parameter", ["p0", "sigma0"])
def test_prior_curves_are_densities(parameter):
    posterior = fake_posterior(4, draws=10, prior=Prior(BetaInclusion(2, 7), GammaSlab(3, 2)))
    places = np.linspace(1e-4, 1 - 1e-4 if parameter == "p0" else 60, 400_000)
    density = prior_density(posterior, parameter, places)
    assert np.trapezoid(density, places) == pytest.approx(1, abs=2e-3)
    fixed = fake_posterior(4, draws=10, prior=Prior(FixedInclusion(0.3), FixedSlab(2.0)))
    assert prior_density(fixed, parameter, places) is None


def test_precision_recall_of_a_known_ranking():
    truth = MRF([0.0] * 3, [(0, 1), (0, 2)], [1.0, 1.0])
    scores = np.array([[0, 0.9, 0.2], [0.9, 0, 0.5], [0.2, 0.5, 0]])
    ax = plots.precision_recall({"scores": scores, "point": (0.5, 0.25)}, truth=truth)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.5, 0.5, 1])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, 0.5, 2 / 3])
    assert ax.lines[1].get_xdata().tolist() == [0.5]
    with pytest.raises(DataError, match="needs truth="):
        plots.precision_recall({"scores": scores})


def test_density_curve_draws_lines_points_and_the_truth():
    curves = {"path": ([0.3, 0.1, 0.2], [-3.0, -1.0, -2.0], [0.1, 0.1, 0.1]), "Bayes": (0.2, -0.5)}
    ax = plots.density_curve(curves, true_density=0.15)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [-1, -2, -3])
    assert ax.lines[-1].get_xdata()[0] == 0.15
    assert "density" in ax.get_xlabel()


def test_calibration_shows_the_observed_shares():
    truth = MRF([0.0] * 4, [(0, 1), (0, 2), (0, 3)], [1.0, 1.0, 1.0])
    scores = np.zeros((4, 4))
    rows, columns = np.triu_indices(4, 1)
    scores[rows, columns] = scores[columns, rows] = [0.95, 0.95, 0.05, 0.05, 0.05, 0.05]
    ax = plots.calibration(scores, truth=truth)
    np.testing.assert_allclose(ax.lines[1].get_xdata(), [0.05, 0.95])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0.25, 1.0])
    with pytest.raises(DataError, match="needs truth="):
        plots.calibration(scores)


def test_images_land_on_their_places():
    rows = np.eye(6)
    ax = plots.image_sheet(rows, (2, 3), across=3)
    sheet = ax.images[0].get_array()
    assert sheet.shape == (2 * 3 + 1, 3 * 4 + 1)
    assert sheet[1, 1] == 1  # first image, first pixel
    assert sheet[5, 11] == 1  # last image of the second line, last pixel
    with pytest.raises(DataError, match="2 x 2 have 4 pixels"):
        plots.image_sheet(rows, (2, 2))


def test_samples_follow_the_models():
    strong = np.full((50, 1), 8.0)
    posterior = Posterior(
        [sparse_draws(strong, np.column_stack([np.full(50, -4.0)] * 2))], Features.pairs(2), ["a", "b"]
    )
    sheet = plots.samples(posterior, shape=(1, 2), count=40, sweeps=60).images[0].get_array()
    down, across = sheet.shape[0] // 2, sheet.shape[1] // 3
    pairs = np.array([sheet[1 + 2 * r, 1 + 3 * c : 3 + 3 * c] for r in range(down) for c in range(across)])
    pairs = pairs[~np.isnan(pairs).any(1)]
    assert (pairs[:, 0] == pairs[:, 1]).mean() > 0.8
    assert 0.1 < pairs.mean() < 0.9
    with pytest.raises(DataError, match="not a square image"):
        plots.samples(posterior)


def test_predictive_check_needs_data_and_knows_its_kinds():
    posterior = fake_posterior(5, draws=20)
    with pytest.raises(DataError, match="needs data="):
        plots.predictive(posterior)
    with pytest.raises(DataError, match="no predictive check of 'fours'"):
        plots.predictive(posterior, kind="fours")
    data = np.random.default_rng(0).integers(0, 2, (30, 5))
    axes = plots.predictive_panels(posterior, data=data, n_models=5)
    assert axes.shape == (2, 2)
    assert all("Predictive check" in ax.get_title() for ax in axes.flat)


def test_plots_refuse_what_has_no_edges():
    with pytest.raises(DataError, match="was given int"):
        plots.network(3)
    with pytest.raises(DataError, match="was given MRF"):
        plots.forest(MRF([0.0, 0.0], [(0, 1)], [1.0]))
    with pytest.raises(DataError, match="needs a posterior"):
        plots.evidence_network(MRF([0.0, 0.0], [(0, 1)], [1.0]))


def test_plotting_and_reporting_do_not_import_numba(tmp_path):
    path = tmp_path / "posterior.nc"
    fake_posterior(5, draws=20).save(path)
    code = f"""
import sys, matplotlib
matplotlib.use("Agg")
import edgewise
from edgewise import plots, report
posterior = edgewise.load_posterior({str(path)!r})
for kind in ("network", "inclusion", "evidence", "forest", "trace"):
    plots.PLOTS[kind](posterior)
report.write_report(posterior, {str(tmp_path / "report.html")!r})
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
