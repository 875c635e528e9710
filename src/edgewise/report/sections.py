"""The parts of the report that hold numbers: sparsity, groups, diagnostics, predictive checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.plots.traces import prior_density
from edgewise.report import charts
from edgewise.report.words import LIGHTS
from edgewise.scales import BINARY, NOMINAL

if TYPE_CHECKING:
    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior

Wording = Callable[[str], str]
"""How a message is said: in the words of Python, or in options of the command."""
MOST_ROWS = 30
SLOWEST = 12
MOST_CHECKED = 300
"""Variables up to which the page makes new data to compare with."""


def hyper(posterior: Posterior) -> str:
    """Posteriors of the number of edges, p0 and sigma0."""
    counts = posterior.n_edges
    parts = [
        charts.histogram(
            counts,
            "number of edges",
            f"Posterior of the number of edges: mean {counts.mean():.1f}, standard deviation "
            f"{counts.std():.1f}.",
            whole=True,
        )
    ]
    for parameter, values, label in (
        ("p0", posterior.inclusion_rate, "inclusion rate p0"),
        ("sigma0", posterior.slab_scale, "slab scale sigma0 (log odds)"),
    ):
        if np.ptp(values) == 0:
            continue
        places = np.linspace(values.min(), values.max(), 80)
        density = prior_density(posterior, parameter, places)
        low, high = np.quantile(values, [0.025, 0.975])
        caption = (
            f"Posterior of {label.split(' (')[0]}: mean {values.mean():.3f}, "
            f"95 % between {low:.3f} and {high:.3f}."
        )
        if density is not None:
            caption += " Dashed: the prior."
        parts.append(
            charts.histogram(
                values, label, caption, prior=None if density is None else np.stack([places, density])
            )
        )
    return f'<div class="charts">{"".join(parts)}</div>'


def diagnostics(posterior: Posterior, found: Diagnostics, learned: str, wording: Wording = str) -> str:
    """The traffic light with its meaning, what was learned, the messages, the table and the traces."""
    light = (
        f'<div class="light" data-light="{found.light}"><svg viewBox="0 0 34 34" role="img" '
        f'aria-label="{found.light}">{LIGHTS[found.light]}</svg>'
        f"<span><strong>{found.light.capitalize()}</strong>: {escape(found.meaning)}. {learned}</span></div>"
    )
    messages = "".join(f'<p class="box">{escape(wording(message))}</p>' for message in found.messages)
    traces = "".join(
        (
            charts.trace(posterior.n_edges, "number of edges", "Number of edges along the chains."),
            charts.trace(
                posterior.inclusion_rate, "inclusion rate p0", "Inclusion rate p0 along the chains."
            ),
            charts.trace(posterior.slab_scale, "slab scale sigma0", "Slab scale sigma0 along the chains."),
        )
    )
    return (
        light
        + messages
        + _numbers(found)
        + "<h3>Traces</h3><p class='hint'>Chains that have converged look alike: one level, one "
        "spread, no drift.</p>" + f'<div class="charts">{traces}</div>'
    )


def _numbers(found: Diagnostics) -> str:
    """The slowest quantities, and the rates of the engine."""
    number = len(found.columns["quantity"])
    shown = {name: list(values[: 3 + SLOWEST]) for name, values in found.columns.items()}
    for name in ("flips_up", "flips_down"):
        shown[name][:3] = [None] * 3
    words = "The number of edges, p0 and sigma0, and the edges with fewest effective draws"
    if number > 3 + SLOWEST:
        words += f" ({SLOWEST} of {number - 3:,} that flip)"
    rates = ", ".join(f"{escape(name.replace('_', ' '))} {value:.3g}" for name, value in found.rates.items())
    rates = f'<p class="hint">Engine: {rates}.</p>' if rates else ""
    return (
        '<p class="hint">R-hat compares the chains (1 is perfect agreement, below 1.01 wanted); ESS is '
        "the number "
        f"of independent draws they are worth; MCSE is the error left in the mean. {words}:</p>"
        + frame(shown, "Numbers behind the light")
        + rates
    )


def frame(columns: Mapping[str, Sequence[Any]], caption: str) -> str:
    """Columns of equal length as a plain HTML table with everything escaped."""
    text = {name for name, values in columns.items() if any(isinstance(value, str) for value in values)}
    heads = "".join(
        f'<th scope="col"{" class=word" * (name in text)}>{escape(name.replace("_", " "))}</th>'
        for name in columns
    )
    rows = "".join(
        "<tr>" + "".join(_cell(name, value) for name, value in zip(columns, values)) + "</tr>"
        for values in zip(*columns.values())
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="plain-table"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(column: str, value: Any) -> str:
    if isinstance(value, str):
        return f'<td class="name" title="{escape(value)}">{escape(value)}</td>'
    if value is None or value != value:
        return "<td>–</td>"
    if isinstance(value, int | np.integer) or column.startswith(("ess", "flips")):
        return f"<td>{value:,.0f}</td>"
    return f"<td>{value:,.3f}</td>"


def groups(data: Any) -> str:
    """Share of ones of every variable in each group of rows; nothing without groups."""
    labels = getattr(data, "group", None)
    if labels is None:
        return ""
    labels = np.asarray(labels, str)
    kinds, owner = np.unique(labels, return_inverse=True)
    if not 2 <= len(kinds) <= 8:
        return ""
    weights = np.ones(data.n_rows) if data.weights is None else np.asarray(data.weights, float)
    size = np.bincount(owner, weights, len(kinds))
    names, columns, variables = _places_on_scales(data)
    known = ~data.unknown_cells()
    shares = np.array(
        [
            np.bincount(owner, weights * column * known[:, i], len(kinds))
            / np.maximum(np.bincount(owner, weights * known[:, i], len(kinds)), 1e-300)
            for column, i in zip(columns, variables)
        ]
    )
    spread = np.ptp(shares, axis=1)
    order = np.argsort(-spread, kind="stable")[:MOST_ROWS]
    what = "Share of ones (the second level) of every variable"
    if not data.scales.all_binary:
        what = (
            "Share of the second level of every binary variable and of every level of a nominal one, and the "
            "mean place of an ordinal one on its scale in per cent,"
        )
    name = escape(str(getattr(data, "group_name", None) or "group"))
    head = "".join(f'<th scope="col">{escape(kind)} ({count:,.6g})</th>' for kind, count in zip(kinds, size))
    rows = "".join(
        f'<tr><td class="name">{escape(str(names[j]))}</td>'
        + "".join(f"<td>{100 * share:.0f} %</td>" for share in shares[j])
        + f"<td>{100 * spread[j]:.0f}</td></tr>"
        for j in order
    )
    more = f" The {MOST_ROWS} with the largest differences are shown." if len(spread) > MOST_ROWS else ""
    return (
        '<section id="groups" aria-labelledby="groups-title"><h2 id="groups-title">Groups of rows</h2>'
        f'<p class="hint">{what} by <b>{name}</b>, which '
        "labels the rows "
        f"and was not used in the fit.{more}</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Shares by group"><table '
        'class="plain-table">'
        f'<thead><tr><th class="word" scope="col">variable</th>{head}<th scope="col">difference '
        "(points)</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div></section>"
    )


def _places_on_scales(data: Any) -> tuple[list[str], list[np.ndarray], list[int]]:
    """Columns between 0 and 1, and their variables: bits, places on scales, levels of a nominal variable."""
    names: list[str] = []
    columns: list[np.ndarray] = []
    variables: list[int] = []
    for j, (name, scale) in enumerate(zip(data.names, data.scales)):
        codes = data.column(j)
        if scale.kind == NOMINAL:
            names += [f"{name} = {label}" for label in data.levels[j]]
            columns += [(codes == level).astype(float) for level in range(scale.n_levels)]
            variables += [j] * scale.n_levels
        else:
            names.append(name)
            columns.append(codes if scale.kind == BINARY else scale.scores[codes, 0])
            variables.append(j)
    return names, columns, variables


def imputed(posterior: Posterior) -> str:
    """Which share of every column was blank, and how well the blanks are known; nothing without blanks."""
    found = posterior.imputed
    if found is None:
        return ""
    rows = max(float(posterior.statistics.n_rows), 1.0)
    counts = dict(sorted(found.blanks.items(), key=lambda part: -part[1]))
    shown = list(counts)[:MOST_ROWS]
    lines = "".join(
        f'<tr><td class="name">{escape(name)}</td><td>{counts[name]:,}</td>'
        f"<td>{100 * counts[name] / rows:.1f} %</td></tr>"
        for name in shown
    )
    more = f" The {MOST_ROWS} columns with most blanks are shown." if len(counts) > len(shown) else ""
    return (
        '<section id="blanks"><h2>What was blank</h2>'
        f"<p>{found.n_cells:,} cells in {found.n_rows:,} rows were blank. They were drawn along with "
        "everything else, each given the other answers of its row, so that every number on this page allows "
        "for what they might have been. This takes the blanks to be missing at random: given the answers "
        "that are there, whether a cell is blank must not depend on what would have stood in it. "
        f"{escape(found.mixing)} The probability of every level of every blank cell is in imputed.csv.{more}"
        '</p><div class="scroll" tabindex="0" role="region" aria-label="Blank cells of the columns">'
        '<table class="plain-table"><thead><tr><th scope="col" class="word">variable</th>'
        '<th scope="col">blank cells</th><th scope="col">share of the rows</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div></section>"
    )


def predictive(posterior: Posterior, data: Any) -> str:
    """Posterior predictive check against the data of the fit; nothing without data."""
    if data is None or posterior.n_variables > MOST_CHECKED:
        return ""
    from edgewise.posterior.diagnostics import predictive_check

    models = int(np.clip(3000 // posterior.n_variables, 20, 50))
    check = predictive_check(posterior, data, n_models=models, sweeps=50, max_rows=1000)
    several = check.levels is not None
    words = {"means": "variables", "pairs": "pairs", "triples": "triples", "ones": "number of ones per row"}
    if several:
        words |= {"means": "levels", "pairs": "pairs of levels", "ones": "sum of the levels of a row"}
    rows = []
    for kind, part in check.parts().items():
        if not len(part.observed):
            continue
        label, z = check.worst(kind)
        rows.append(
            f'<tr><td class="word">{words[kind]}</td><td>{len(part.observed):,}</td>'
            f"<td>{part.inside:.0%}</td>"
            f'<td class="name" title="{escape(label)}">{escape(label)}</td><td>{z:+.1f}</td></tr>'
        )
    pictures = "".join(
        charts.scatter(part.observed, part.mean, "in the data", "in the model", caption)
        for part, caption in (
            (check.means, f"Frequency of {'every level' if several else 'ones'} of every variable."),
            (
                check.pairs,
                f"Frequency of {'all pairs of levels' if several else 'joint ones'} of every pair.",
            ),
            (check.triples, "Frequency of joint ones of triples."),
        )
        if len(part.observed)
    )
    return (
        '<section id="predictive" aria-labelledby="predictive-title">'
        '<h2 id="predictive-title">Does the model look like the data?</h2>'
        f'<p class="hint">{check.n_models} data sets of {check.n_rows:,} rows were drawn from the posterior '
        f"({escape(check.method)} sampling). If the model fits, about {check.probability:.0%} of the "
        "frequencies in "
        "the data lie within the range of these data sets, and dots lie on the line.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Predictive check"><table '
        'class="plain-table">'
        f'<thead><tr><th class="word" scope="col">frequency of {"" if several else "ones of"}</th>'
        '<th scope="col">compared</th>'
        '<th scope="col">within range</th><th class="word" scope="col">farthest</th><th '
        'scope="col">z</th></tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div><div class="charts">{pictures}</div></section>'
    )
