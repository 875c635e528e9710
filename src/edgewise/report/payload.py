"""The numbers behind the interactive parts of the report, chosen and packed to stay small."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.plots import layout
from edgewise.plots.groups import Groups, learned_groups, node_groups
from edgewise.plots.source import conditional_means
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.levels import STRENGTH, matrix_draws, measures
from edgewise.posterior.verdict import WORDS, categories, present
from edgewise.report.kinds import level_shares

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

MOST_EDGES = 15_000
"""Number of edges the page lists at most; all of them up to 173 variables."""

MOST_MATRICES, LEAST_PROBABLE = 500, 0.05
"""Matrices of pairs that the page holds at most, and the probability from which it does."""


def make_payload(
    posterior: Posterior,
    *,
    thresholds: tuple[float, float] = (3, 10),
    grid: tuple[int, int] | None = None,
    groups: Groups | None = None,
) -> dict[str, Any]:
    """Everything the page's script reads.

    Edges are listed from a PIP `floor` upwards, the lowest hundredth that keeps their number within
    `MOST_EDGES`; the slider begins there, so that the number of drawn edges is always the posterior's own.
    """
    probability = posterior.edge_values("inclusion")
    members = posterior.features.members
    is_pair = np.ones(len(members), bool) if posterior.features.pairs_only else members[:, 2] < 0
    floor, listed = choose_edges(probability, conditional_means(posterior))
    words = categories(posterior, thresholds)
    codes = _codes(words)
    start = float(np.clip(0.5, floor, 1.0))
    there = present(words, probability)
    degree = expected_degree(posterior)
    groups = learned_groups(posterior) if groups is None else groups
    group, labels = node_groups(posterior.names, posterior.inclusion, groups)
    found = diagnose(posterior)
    return {
        "names": list(posterior.names),
        "high": [str(labels[-1]) for labels in posterior.levels],
        "frequency": _frequencies(posterior),
        "levels": _levels(posterior),
        "degree": _rounded(degree, 3),
        "positions": _positions(posterior, grid).round(4).tolist(),
        "grid": grid,
        "group": group.tolist(),
        "groups": labels,
        "light": found.light,
        "mark": f"{found.light}: {'; '.join(found.reasons)}" if found.light != "green" else "",
        "pairs": int(is_pair.sum()),
        "larger": int((~is_pair).sum()),
        "unlisted": int(len(probability) - len(listed)),
        "hidden": int((probability[is_pair] >= floor).sum() - is_pair[listed].sum()),
        "floor": floor,
        "slider": [floor, start],
        "conclusive": int(there[is_pair].sum()),
        "thresholds": list(thresholds),
        "counts": [int((codes == code).sum()) for code in range(len(WORDS))],
        "interval": "95 % HDI",
        "matrices": _matrices(posterior, listed, probability),
        "edges": {**_edge_columns(posterior, listed, codes), "found": there[listed].astype(int).tolist()},
    }


def choose_edges(
    probability: np.ndarray, strength: np.ndarray, most: int = MOST_EDGES
) -> tuple[float, np.ndarray]:
    """The PIP floor of the page and the edges at or above it, most probable first.

    Should even the edges of probability one be too many, the strongest of them are kept.
    """
    for hundredth in range(101):
        floor = hundredth / 100
        chosen = np.flatnonzero(probability >= floor)
        if len(chosen) <= most:
            break
    order = np.lexsort((-np.abs(strength[chosen]), -probability[chosen]))
    return floor, chosen[order][:most]


def expected_degree(posterior: Posterior) -> np.ndarray:
    """Expected number of active cliques at each variable: the sum of their inclusion probabilities."""
    degree = np.zeros(posterior.n_variables)
    inclusion = posterior.edge_values("inclusion")
    for column in posterior.features.members.T:
        inside = column >= 0
        degree += np.bincount(column[inside], inclusion[inside], minlength=posterior.n_variables)
    return degree


def _codes(words: np.ndarray) -> np.ndarray:
    codes = np.zeros(len(words), int)
    for code, word in enumerate(WORDS):
        codes[words == word] = code
    return codes


def _edge_columns(posterior: Posterior, listed: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    members = posterior.features.members[listed]
    frequency = posterior.edge_values("frequency")
    varies = (frequency > 0) & (frequency < 1)

    def part(name: str, digits: int) -> list[float | None]:
        return _rounded(posterior.edge_values(name)[listed], digits)

    def quality(name: str, digits: int) -> list[float | None]:
        return _rounded(np.where(varies, posterior.edge_values(name), np.nan)[listed], digits)

    return {
        "members": [[i for i in row if i >= 0] for row in members.tolist()],
        # Full precision: the page compares these with the slider exactly as the posterior would.
        "pip": posterior.edge_values("inclusion")[listed].tolist(),
        "mcse": part("mcse", 4),
        "bf": part("log10_bf", 3),
        "bound": [str(mark) for mark in posterior.edge_values("bf_bound")[listed]],
        "evidence": codes[listed].tolist(),
        "mean": part("mean", 3),
        "low": part("hdi_low", 3),
        "high": part("hdi_high", 3),
        "given": part("mean_if_included", 3),
        "rhat": quality("r_hat", 3),
        "ess": quality("ess_bulk", 0),
    }


def _rounded(values: np.ndarray, digits: int) -> list[float | None]:
    return [None if value != value else value for value in np.round(values.astype(float), digits).tolist()]


def _frequencies(posterior: Posterior) -> list[float | None]:
    rows = float(posterior.statistics.n_rows)
    if rows <= 0 or not posterior.scales.all_binary:
        return [None] * posterior.n_variables
    return _rounded(posterior.statistics.singles / rows, 4)


def _levels(posterior: Posterior) -> list[Any] | None:
    """Shares of the levels of every variable, where some have more than two."""
    if posterior.scales.all_binary:
        return None
    shares = level_shares(posterior)
    return [part and [[label, round(share, 4)] for label, share in part] for part in shares]


def _matrices(posterior: Posterior, listed: np.ndarray, probability: np.ndarray) -> dict[str, Any] | None:
    """Mean matrices, given inclusion, of the listed pairs that have one, by their place in the list."""
    measure = measures(posterior)
    chosen = [
        (place, int(k))
        for place, k in enumerate(listed.tolist())
        if measure[k] == STRENGTH and probability[k] >= LEAST_PROBABLE
    ][:MOST_MATRICES]
    if not chosen:
        return None
    found = {}
    for place, k in chosen:
        i, j = posterior.features.clique(k)
        table = matrix_draws(posterior, i, j)[0]
        if len(table):
            found[str(place)] = np.round(table.mean(axis=0), 3).tolist()
    return found


def _positions(posterior: Posterior, grid: tuple[int, int] | None) -> np.ndarray:
    """Places as in all plots of the posterior, with the vertical axis of a page, which points down."""
    places = layout.stress(posterior.inclusion) if grid is None else layout.grid(*grid, posterior.n_variables)
    return places * [1, -1] + 0.0


def as_json(payload: dict[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign, escape in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(sign, escape)
    return text.encode("utf-8", "replace").decode("utf-8")
