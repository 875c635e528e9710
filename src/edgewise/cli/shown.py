"""A posterior in the terminal, in words and a table, and the same as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.cli.messages import MOST_COLUMNS, in_options, session
from edgewise.errors import printable
from edgewise.posterior.columns import signed

if TYPE_CHECKING:
    import pandas
    from rich.console import Console

    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior

COLOURS = {"green": "green", "amber": "yellow", "red": "red"}
BANNERS = {"amber": "black on yellow", "red": "white on red"}
WIDE = 500
# Letters that the names of an edge should have, where they are that long.
LEAST_NAMES = 34
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

    from edgewise.data.problems import counted
    from edgewise.posterior.approximation import sentence
    from edgewise.posterior.verdict import judge

    out, verdict = console(), judge(posterior, found)
    show_banner(out, found)
    rows = float(posterior.statistics.n_rows)
    noun = "edge" if posterior.features.pairs_only else "clique"
    chains = f"{counted(posterior.n_chains, 'chain')} x {counted(posterior.n_draws, 'draw')}"
    candidates = counted(posterior.n_candidates, f"candidate {noun}")
    out.print(
        f"{rows:,.10g} row{'s' * (rows != 1)}, {counted(posterior.n_variables, 'variable')}, "
        f"{candidates}{never_active(posterior)}; "
        f"{chains} ({posterior.info.get('engine', '?')})"
    )
    out.print(Text(verdict.answer, "bold" if found.light == "green" else "dim"))
    number = posterior.n_edges
    low, high = np.quantile(number, [0.025, 0.975])
    if not verdict.withheld:
        out.print(
            f"Number of {noun}s: {number.mean():,.1f} on average, {low:,.0f} to {high:,.0f} with 95 % "
            "certainty."
        )
    if posterior.groups:
        from edgewise.report.differences import answer

        out.print(Text(answer(posterior), "bold" if found.light == "green" else "dim"))
    line = Text("Quality of the computation: ")
    line.append(found.light, f"bold {COLOURS[found.light]}")
    out.print(line.append(f", {found.meaning}. {verdict.learned}"))
    if verdict.nothing_excluded:
        out.print(in_options(verdict.nothing_excluded))
    approximated = sentence(posterior)
    for message in [approximated] * (found.light == "green") + found.messages:
        if message:
            out.print(f"  {in_options(message)}")
    table = ordered_edges(posterior, coding)
    shown = table if top == 0 else table.head(top)
    if len(shown):
        out.print()
        if verdict.withheld:
            out.print(Text("Where the chains are so far; not to be quoted:", "dim"))
        out.print(_edge_table(shown, noun, coding, out), style="" if found.light == "green" else "dim")
    if len(table) > len(shown):
        out.print(f"... and {len(table) - len(shown):,} more ({rest}).")
    _show_model(posterior, out)


def _show_model(posterior: Posterior, out: Console) -> None:
    """What a model of inclusion has learned: communities, or the coefficients of attributes."""
    from edgewise.priors import AttributeInclusion, BlockInclusion

    if isinstance(posterior.prior.inclusion, BlockInclusion):
        out.print()
        out.print(printable(str(posterior.communities()), keep="\n"))
    elif isinstance(posterior.prior.inclusion, AttributeInclusion):
        out.print()
        out.print("Attributes of pairs (change of the log odds of inclusion):")
        table: Any = posterior.attribute_summary()
        for row in table.itertuples():
            out.print(
                f"  {printable(str(row.attribute), keep='')}: {signed(row.mean)} ({signed(row.hdi_low)} to "
                f"{signed(row.hdi_high)} with 95 % certainty)"
            )


def show_banner(out: Console, found: Diagnostics) -> None:
    """Say before everything else that the result is not to be trusted, where it is not."""
    from rich.text import Text

    if found.banner:
        word, _, rest = found.banner.partition(":")
        line = Text(f" {word.upper()} ", f"bold {BANNERS[found.light]}")
        out.print(line.append(f" {rest.strip()}", f"bold {COLOURS[found.light]}"))
        out.print()


def _edge_table(table: pandas.DataFrame, noun: str, coding: str, out: Console) -> Any:
    from rich.table import Table
    from rich.text import Text

    # Two lines of headings: no column is wider than what stands in it.
    coupling = "coupling" if coding == "binary" else "coupling\nJ"
    matrices = "strength" in set(table.get("measure", ()))
    if matrices:
        coupling = "strength" if (table["measure"] == "strength").all() else "coupling,\nstrength"
    headings = ("prob.", "Bayes\nfactor", coupling, "95 %\ninterval", "evidence")
    rows: Any = table.itertuples()

    def size(row: Any, value: float) -> str:
        return f"{value:.2f}" if matrices and row.measure == "strength" else signed(value)

    cells = [
        (
            f"{row.inclusion:.3f}",
            bayes_factor(row.log10_bf, row.bf_bound),
            size(row, row.mean),
            f"{size(row, row.hdi_low)} to {size(row, row.hdi_high)}",
            "set by the prior" if row.bf_bound == "prior" else str(row.evidence),
        )
        for row in rows
    ]
    edges = [printable(str(edge), keep="") for edge in table["edge"]]
    kept = list(range(len(headings)))
    room = _room(headings, cells, kept, out)
    if room < min(max(map(len, edges)), LEAST_NAMES):
        # A narrow terminal: names that can be told apart are worth more than the interval.
        kept.remove(3)
        room = _room(headings, cells, kept, out)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column(noun, no_wrap=True)
    for k in kept:
        grid.add_column(headings[k], justify="left" if headings[k] == "evidence" else "right", no_wrap=True)
    for edge, row_cells in zip(edges, cells):
        grid.add_row(Text(fitted(edge, room)), *(row_cells[k] for k in kept))
    return grid


def _room(headings: Sequence[str], cells: Sequence[Sequence[str]], kept: Sequence[int], out: Console) -> int:
    """How many letters the other columns leave for the name of an edge."""
    widest = [max(len(word) for row in cells for word in (row[k], *headings[k].split())) for k in kept]
    return max(12, min(out.width, MOST_COLUMNS) - sum(widest) - 2 * len(kept))


def fitted(edge: str, room: int) -> str:
    """The name of an edge in at most `room` letters, its longer names shortened.

    >>> fitted("sleep -- a name that is very long indeed", 24)
    'sleep -- a name that is…'
    """
    if len(edge) <= room:
        return edge
    names = edge.split(" -- ")
    share, short = (room - 4 * (len(names) - 1)) // len(names), []
    # What short names leave over is given to the others.
    spare = sum(max(0, share - len(name)) for name in names)
    longer = max(1, sum(len(name) > share for name in names))
    for name in names:
        most = share + spare // longer
        short.append(name if len(name) <= most else name[: max(1, most - 1)].rstrip() + "…")
    return " -- ".join(short)


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


def never_active(posterior: Posterior) -> str:
    """In brackets, how many candidates have no row because no draw has them."""
    count = posterior.n_unlisted
    return f" ({count:,} of them never active)" if count else ""


def posterior_as_dict(posterior: Posterior, found: Diagnostics, coding: str = "binary") -> dict[str, Any]:
    """Everything `show_posterior` says, for programs."""
    from edgewise.posterior.verdict import judge

    info = posterior.info
    table = ordered_edges(posterior, coding)
    verdict = judge(posterior, found)
    return {
        "variables": list(posterior.names),
        "rows": float(posterior.statistics.n_rows),
        "candidates": posterior.n_candidates,
        "never_active": posterior.n_unlisted,
        "chains": posterior.n_chains,
        "draws": posterior.n_draws,
        **{key: info.get(key) for key in _FACTS},
        "answer": verdict.answer,
        "nothing_excluded": in_options(verdict.nothing_excluded),
        "decided": None if verdict.withheld else verdict.decided,
        "edge_count_mean": float(posterior.n_edges.mean()),
        "quality": {
            "light": found.light,
            "banner": found.banner,
            "messages": [in_options(message) for message in found.messages],
            "max_r_hat": found.max_r_hat,
            "min_ess": found.min_ess,
        },
        "notes": list(info.get("notes", [])),
        "warnings": list(session.warnings),
        "coding": coding,
        **_model_as_dict(posterior),
        "edges": table.to_dict("records"),
        **({"groups": posterior.group_summary().to_dict("records")} if posterior.groups else {}),
    }


def _model_as_dict(posterior: Posterior) -> dict[str, Any]:
    """What a model of inclusion has learned, for programs."""
    from edgewise.priors import AttributeInclusion, BlockInclusion

    if isinstance(posterior.prior.inclusion, BlockInclusion):
        found = posterior.communities()
        return {
            "communities": {
                "members": found.members,
                "number": found.number_table().to_dict("records"),
                "variables": found.table().to_dict("records"),
            }
        }
    if isinstance(posterior.prior.inclusion, AttributeInclusion):
        return {"attributes": posterior.attribute_summary().to_dict("records")}
    return {}
