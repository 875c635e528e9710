"""Claims of section 6.5: images."""

from __future__ import annotations

import numpy as np

from edgewise.experiments.claims import (
    FAILS,
    HOLDS,
    Tables,
    Unmeasured,
    claim,
    graded,
    graded_small,
    joined,
    wins,
)
from edgewise.experiments.claims_prediction import RULE_ROBUST, robustness


def _ranges(tables: Tables, low: float, high: float, method: str) -> tuple[str, list[float]]:
    texts, shares = [], []
    for rows, one in tables["fig10"].groupby("rows"):
        found = wins(one, low, high, method)
        if found.total:
            texts.append(f"N = {rows}: {found.words}")
            shares.append(found.won / found.total)
    return ", ".join(texts), shares


@claim(
    "images: sparse and dense",
    "6.5",
    "fig10",
    "On images Bayes is ahead of L1 in the sparse and in the dense range.",
    'Of the comparisons below density 0.1 and above 0.4 "Bayes p0" wins 80 % in each range and size '
    "(partly: 60 % on average). Past the end of a path its densest model stands in.",
)
def images_ahead(tables: Tables) -> tuple[str, str]:
    """Comparisons outside the middle range."""
    sparse, one = _ranges(tables, 0.0, 0.1, "Bayes p0")
    dense, other = _ranges(tables, 0.4, 1.0, "Bayes p0")
    if not one or not other:
        raise Unmeasured
    shares = one + other
    text = f"won when sparse: {sparse}; when dense: {dense}"
    return text, HOLDS if min(shares) >= 0.8 else graded(float(np.mean(shares)), 1.1, 0.6)


@claim(
    "images: robust",
    "6.5",
    "fig10",
    "On images Bayes PM too is robust against under- and over-fitting.",
    f'{RULE_ROBUST}: "Bayes p0" and "Bayes PM p0" at each size (partly: some of these).',
)
def images_robust(tables: Tables) -> tuple[str, str]:
    """Losses along p0 and along the paths."""
    return robustness((f"N = {rows}", one) for rows, one in tables["fig10"].groupby("rows"))


@claim(
    "images: Bayes PM",
    "6.5",
    "fig10",
    "On images the parameters of Bayes PM are not good enough in the middle range of densities.",
    'Between densities 0.1 and 0.4 "Bayes PM p0" loses 80 % of the comparisons at equal density with MLE and '
    "Wain Max at each size (partly: 60 %).",
)
def images_median(tables: Tables) -> tuple[str, str]:
    """Median models against paths in the middle."""
    text, shares = _ranges(tables, 0.1, 0.4, "Bayes PM p0")
    return f"comparisons won: {text}", joined([graded_small(share, 0.2, 0.4) for share in shares])


@claim(
    "images: median model at density 0.2",
    "6.5",
    "fig11",
    "At density 0.2 Bayes PM does not score higher than MLE.",
    "Its score is at most that of MLE (partly: at most 0.05 nats more).",
)
def images_level(tables: Tables) -> tuple[str, str]:
    """Scores of the two models of Figure 11."""
    score = tables["fig11_likeness"].set_index("method")["cll"]
    text = f"Bayes PM {score['Bayes PM']:.3f}, MLE {score['MLE']:.3f}"
    return text, graded_small(score["Bayes PM"] - score["MLE"], 0.0, 0.05)


@claim(
    "images: samples",
    "6.5",
    "fig11",
    "At density 0.2 images sampled from Bayesian models look better than those of L1 models.",
    "Samples of both Bayesian models are nearer to real images, and their pairs of pixels nearer in "
    "frequency, than those of every L1 model (partly: some of this).",
)
def images_samples(tables: Tables) -> tuple[str, str]:
    """Distances of samples from real images."""
    table = tables["fig11_likeness"].set_index("method")
    verdicts = []
    for name in ("nearest", "pair_error"):
        others = table.loc[
            [method for method in ("Wain Max", "Wain Min", "MLE") if method in table.index], name
        ]
        for method in ("Bayes", "Bayes PM"):
            verdicts.append(HOLDS if table.loc[method, name] < others.min() else FAILS)
    listed = [
        f"{method} {row['nearest']:.1f} / {row['pair_error']:.3f} / {row['ink']:.2f}"
        for method, row in table.iterrows()
    ]
    words = "pixels to the nearest real image / rms error of pairs / share of ink"
    return f"{words}: {', '.join(listed)}", joined(verdicts)
