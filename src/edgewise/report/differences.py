"""The part of the report about groups: how they differ, in words, pictures and a table."""

from __future__ import annotations

import base64
import io
import itertools
from html import escape
from typing import TYPE_CHECKING

from edgewise.posterior.groups import ANSWERS
from edgewise.posterior.verdict import judge
from edgewise.report.sections import frame

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

MOST_ROWS = 40
MOST_PICTURES = 3
MOST_DRAWN = 60


def answer(posterior: Posterior, thresholds: tuple[float, float] = (3, 10)) -> str:
    """How many edges differ between the groups, in one or two sentences; withheld while the light is red."""
    layout = posterior.strata
    assert layout is not None
    each = zip(layout.groups, layout.rows_of_groups)
    sizes = ", ".join(f"{label} ({rows:,g} rows)" for label, rows in each)
    verdict = judge(posterior)
    if verdict.withheld:
        return f"Groups of {layout.group_name}: {sizes}. How they differ is not said while the light is red."
    table = posterior.group_summary(thresholds).drop_duplicates("edge")
    count = {word: int((table["answer"] == word).sum()) for word in ANSWERS}
    strong, some = count[ANSWERS[4]], count[ANSWERS[3]]
    same = count[ANSWERS[0]] + count[ANSWERS[1]]
    text = (
        f"Groups of {layout.group_name}: {sizes}. Of {len(table):,} pairs, {strong:,} "
        f"{'differs' if strong == 1 else 'differ'} between the groups with strong evidence, {some:,} with "
        f"some; for {same:,} there is evidence against a difference; {count[ANSWERS[2]]:,} are undecided."
    )
    return f"Provisionally: {text}" if verdict.found.light == "amber" else text


def section(posterior: Posterior, thresholds: tuple[float, float]) -> str:
    """The section "How the groups differ"; nothing where none were compared."""
    if not posterior.groups:
        return ""
    table = posterior.group_summary(thresholds)
    table = table.sort_values("different", ascending=False, kind="stable").head(MOST_ROWS)
    several = len(posterior.groups) > 2
    columns = {
        "edge": table["edge"].tolist(),
        **({"groups": [f"{a}, {b}" for a, b in zip(table["group_1"], table["group_2"])]} if several else {}),
        **{state: table[state].tolist() for state in ("absent", "same", "different")},
        "log10 BF of difference": table["log10_bf_different"].tolist(),
        "answer": table["answer"].tolist(),
        ("in the first" if several else f"in {posterior.groups[0]}"): table["coupling_1"].tolist(),
        ("in the second" if several else f"in {posterior.groups[1]}"): table["coupling_2"].tolist(),
        "difference": table["difference"].tolist(),
        "from": table["hdi_low"].tolist(),
        "to": table["hdi_high"].tolist(),
    }
    biases = posterior.group_bias_summary().head(MOST_ROWS * 3)
    bias_columns = {
        "variable": biases["variable"].tolist(),
        **(
            {"groups": [f"{a}, {b}" for a, b in zip(biases["group_1"], biases["group_2"])]} if several else {}
        ),
        "difference of biases": biases["difference"].tolist(),
        "from": biases["hdi_low"].tolist(),
        "to": biases["hdi_high"].tolist(),
    }
    hint = (
        "Every pair is absent in all groups, there with the same coupling in all, or there with couplings "
        "that "
        "differ; the three probabilities add up to one. A Bayes factor of difference is that against the "
        "better "
        "of the other two. Differences are the second group less the first, zero where a pair does not "
        "differ, "
        "with 95 % intervals. What differs in how often something occurs, rather than in what it goes "
        "together "
        "with, stands in the biases below."
    )
    return (
        '<section id="differences" aria-labelledby="differences-title">'
        '<h2 id="differences-title">How the groups differ</h2>'
        f"<p>{escape(answer(posterior, thresholds))}</p>{_pictures(posterior, thresholds)}"
        f'<p class="hint">{hint}</p>{frame(columns, "Differences of couplings")}'
        "<h3>Biases</h3>"
        '<p class="hint">Log odds of a variable where all others are zero, in the network of its group.</p>'
        f"{frame(bias_columns, 'Differences of biases')}</section>"
    )


def _pictures(posterior: Posterior, thresholds: tuple[float, float]) -> str:
    """Networks of two groups and of their difference side by side, for some pairs of groups."""
    if posterior.n_variables > MOST_DRAWN:
        return ""
    from edgewise.plots.differences import group_networks

    parts = []
    for pair in list(itertools.combinations(posterior.groups, 2))[:MOST_PICTURES]:
        figure = group_networks(posterior, between=pair, thresholds=thresholds)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=110)
        text = base64.b64encode(drawn.getvalue()).decode()
        words = f"Networks of {pair[0]} and {pair[1]} in one layout, and the edges that differ between them."
        parts.append(
            f'<figure><img alt="{escape(words)}" style="max-width:100%" src="data:image/png;base64,{text}">'
            f"<figcaption>{escape(words)}</figcaption></figure>"
        )
    return "".join(parts)
