"""A posterior in the terminal, in words and a table, and the same as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.cli.messages import in_options, session
from edgewise.errors import printable

if TYPE_CHECKING:
    import pandas
    from rich.console import Console

    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior

COLOURS = {"green": "green", "amber": "yellow", "red": "red"}
WIDE = 500
_FACTS = ("engine", "seed", "stop_reason", "interrupted", "warm_up_unfinished", "seconds", "command")


def console() -> Console:
    """Standard output: coloured and wrapped in a terminal, plain and one line per thing elsewhere."""
    from edgewise.run.console import Console

    terminal = sys.stdout.isatty()
    return Console(
        width=None if terminal else WIDE, soft_wrap=not terminal, highlight=False, markup=False, emoji=False
    )


def write_json(value: Any) -> None:
    """Write JSON to standard output; numbers that are none become null."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=1)
    # JSON spells some control characters out itself; the others stand in strings, where it may.
    print("".join(c if c == printable(c) else f"\\u{ord(c):04x}" for c in text))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def answer(posterior: Posterior) -> str:
    """The answer in one sentence: how many edges, with which evidence."""
    from edgewise.plots.source import categories
    from edgewise.plots.style import SET_BY_PRIOR

    found = categories(posterior)
    count = {word: int((found == word).sum()) for word in set(found.tolist())}
    noun = "edge" if posterior.features.pairs_only else "clique"
    strong = count.get("strong presence", 0)
    text = (
        f"{strong:,} {noun}{'s' * (strong != 1)} included with strong evidence, {count.get('presence', 0):,} "
        f"with some; {count.get('inconclusive', 0):,} undecided; {count.get('absence', 0):,} excluded with "
        f"some evidence, {count.get('strong absence', 0):,} with strong."
    )
    if count.get(SET_BY_PRIOR):
        text += f" {count[SET_BY_PRIOR]:,} set by the prior."
    return text


def ordered_edges(posterior: Posterior, coding: str) -> pandas.DataFrame:
    """The table of edges, most probable first."""
    table = posterior.summary(coding=coding)
    order = np.lexsort((-table["mean"].abs().to_numpy(), -table["inclusion"].to_numpy()))
    return table.iloc[order]


def show_posterior(
    posterior: Posterior,
    found: Diagnostics,
    *,
    coding: str = "binary",
    top: int = 15,
    rest: str = "--top 0 shows all",
) -> None:
    """Print the answer, the quality of the draws and the most probable edges."""
    from rich.text import Text

    out = console()
    rows = float(posterior.statistics.n_rows)
    noun = "edge" if posterior.features.pairs_only else "clique"
    out.print(
        f"{rows:,.10g} rows, {posterior.n_variables:,} variables, {posterior.n_cliques:,} candidate {noun}s; "
        f"{posterior.n_chains} chains x {posterior.n_draws:,} draws ({posterior.info.get('engine', '?')})"
    )
    out.print(Text(answer(posterior), "bold"))
    number = posterior.n_edges
    low, high = np.quantile(number, [0.025, 0.975])
    out.print(
        f"Number of {noun}s: {number.mean():,.1f} on average, {low:,.0f} to {high:,.0f} with 95 % certainty."
    )
    line = Text("Quality of the computation: ")
    line.append(found.light, f"bold {COLOURS[found.light]}")
    out.print(line.append(f", {found.meaning}."))
    for message in found.messages:
        out.print(f"  {in_options(message)}")
    table = ordered_edges(posterior, coding)
    shown = table if top == 0 else table.head(top)
    if len(shown):
        out.print()
        out.print(_edge_table(shown, noun, coding))
    if len(table) > len(shown):
        out.print(f"... and {len(table) - len(shown):,} more ({rest}).")


def _edge_table(table: pandas.DataFrame, noun: str, coding: str) -> Any:
    from rich.table import Table
    from rich.text import Text

    symbol = "coupling" if coding == "binary" else "coupling J"
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column(noun, overflow="fold")
    for heading in ("probability", "Bayes factor", symbol, "95 % interval", "R-hat"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("evidence", no_wrap=True)
    rows: Any = table.itertuples()
    for row in rows:
        r_hat = "" if math.isnan(row.r_hat) else f"{row.r_hat:.3f}"
        grid.add_row(
            Text(printable(str(row.edge), keep="")),
            f"{row.inclusion:.3f}",
            bayes_factor(row.log10_bf, row.bf_bound),
            f"{row.mean:+.2f}",
            f"[{row.hdi_low:+.2f}, {row.hdi_high:+.2f}]",
            r_hat,
            "set by the prior" if row.bf_bound == "prior" else str(row.evidence),
        )
    return grid


def bayes_factor(log10: float, bound: str) -> str:
    """A Bayes factor for reading.

    >>> bayes_factor(0.5, ""), bayes_factor(5.2, ">"), bayes_factor(-2.0, "")
    ('3.2', '> 10^5.2', '1/100')
    """
    if bound == "prior" or math.isnan(log10):
        return ""
    size = abs(log10)
    if size < 0.02:
        return "1.0"
    number = f"10^{size:.1f}" if size >= 4 else f"{10**size:,.0f}" if size >= 1 else f"{10**size:.1f}"
    if log10 < 0:
        # Below one the bound turns round with the fraction: at most 1/100.
        number = f"1/{number}"
    return f"{bound} {number}" if bound in ("<", ">") else number


def posterior_as_dict(posterior: Posterior, found: Diagnostics, coding: str = "binary") -> dict[str, Any]:
    """Everything `show_posterior` says, for programs."""
    info = posterior.info
    table = ordered_edges(posterior, coding)
    return {
        "variables": list(posterior.names),
        "rows": float(posterior.statistics.n_rows),
        "candidates": posterior.n_cliques,
        "chains": posterior.n_chains,
        "draws": posterior.n_draws,
        **{key: info.get(key) for key in _FACTS},
        "answer": answer(posterior),
        "edge_count_mean": float(posterior.n_edges.mean()),
        "quality": {
            "light": found.light,
            "messages": [in_options(message) for message in found.messages],
            "max_r_hat": found.max_r_hat,
            "min_ess": found.min_ess,
        },
        "notes": list(info.get("notes", [])),
        "warnings": list(session.warnings),
        "coding": coding,
        "edges": table.to_dict("records"),
    }
