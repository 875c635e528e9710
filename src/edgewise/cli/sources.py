"""What can be compared: posteriors, lassos and models, seen as the same few matrices."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.cli.opened import open_posterior
from edgewise.errors import DataError, FileError, printable
from edgewise.posterior.columns import signed

if TYPE_CHECKING:
    from edgewise.model.mrf import MRF

BEYOND = 4.0  # standard errors


def read_model(path: Path) -> MRF:
    """A model from its JSON file."""
    from edgewise.model.mrf import MRF

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise FileError(f"{path} cannot be read: {reason}; give a model as a JSON file.") from None
    try:
        return MRF.from_json(text)
    except FileError as error:
        raise FileError(f"{path}: {error}") from None


def read_groups(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Group of every variable, from a CSV file with two columns; lines of other names are left out."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise FileError(
            f"{path} cannot be read: {reason}; --color-by takes a CSV file with the name and the group of "
            "every variable."
        ) from None
    lines = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    short = next((k for k, row in enumerate(lines, 1) if len(row) < 2), None)
    if short is not None:
        raise FileError(f"{path}, line {short}: there is no second column; write the name and the group.")
    found = {row[0].strip(): row[1].strip() for row in lines}
    missing = [name for name in names if name.strip() not in found]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        known = ", ".join(list(found)[:5]) + (", ..." if len(found) > 5 else "")
        raise DataError(
            f"{path} has no group for {missing[0]!r}{more}; it has {known or 'no lines'}. Give one line for "
            "every variable: its name and its group."
        )
    return {name: found[name.strip()] for name in names}


def read_source(path: Path) -> Any:
    """A posterior, or a model where the file ends in .json."""
    return read_model(path) if path.suffix.lower() == ".json" else open_posterior(path)


@dataclass
class View:
    """Names, and matrices (p, p) of probabilities (0 and 1 for a single model), couplings and errors."""

    names: list[str]
    probability: np.ndarray
    coupling: np.ndarray
    error: np.ndarray

    def reordered(self, names: list[str]) -> View:
        """The same for some of the variables."""
        order = [self.names.index(name) for name in names]
        part = np.ix_(order, order)
        return View(names, self.probability[part], self.coupling[part], self.error[part])


def view(source: Any) -> View:
    """The matrices of a posterior, a fitted lasso or a model."""
    if hasattr(source, "edge_values"):
        error = np.nan_to_num(source.pair_values("mcse"))
        return View(list(source.names), source.inclusion, source.coupling(), error)
    model = getattr(source, "model_", source)
    names = [f"x{i}" for i in range(model.n_variables)] if model.names is None else list(model.names)
    coupling = model.coupling
    return View(names, (coupling != 0).astype(float), coupling, np.zeros_like(coupling))


@dataclass
class Comparison:
    """Two sources over the variables they share.

    Attributes
    ----------
    labels : pair of str
        What to call them.
    only : list of str
        Variables that one of them has and the other has not.
    facts : dict
        Counts of edges and differences.
    pairs : list of dict
        One per pair of variables, the largest difference first.
    """

    labels: tuple[str, str]
    sources: tuple[Any, Any]
    names: list[str]
    only: list[str]
    facts: dict[str, Any]
    pairs: list[dict[str, Any]]
    scores: dict[str, dict[str, float]] = field(default_factory=dict)

    def add_truth(self, truth: MRF) -> None:
        """Add the scores of both against the true model."""
        from edgewise.evaluate.scores import SCORES, edge_scores

        for label, source in zip(self.labels, self.sources):
            known = view(source).names
            if truth.names is not None and list(truth.names) != known:
                raise DataError(f"The true model and {label} must have the same variables in the same order.")
            scores = edge_scores(truth, getattr(source, "model_", source))
            self.scores[label] = {name: scores[name] for name in SCORES}

    def as_dict(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "first": self.labels[0],
            "second": self.labels[1],
            "variables": self.names,
            "left_out": self.only,
            **self.facts,
            "pairs": self.pairs,
            **({"scores": self.scores} if self.scores else {}),
        }


def compare_sources(first: Any, second: Any, labels: tuple[str, str], threshold: float = 0.5) -> Comparison:
    """Compare two sources pair by pair."""
    views = view(first), view(second)
    shared = [name for name in views[0].names if name in set(views[1].names)]
    only = [name for name in [*views[0].names, *views[1].names] if name not in set(shared)]
    if len(shared) < 2:
        raise DataError(
            f"{labels[0]} and {labels[1]} have {len(shared)} variables in common; two or more are needed. "
            f"The first ones are {', '.join(views[0].names[:4])} and {', '.join(views[1].names[:4])}."
        )
    a, b = (part.reordered(shared) for part in views)
    i, j = np.triu_indices(len(shared), 1)
    probability = np.stack([a.probability[i, j], b.probability[i, j]])
    coupling = np.stack([a.coupling[i, j], b.coupling[i, j]])
    there = probability >= threshold
    difference = probability[1] - probability[0]
    error = np.hypot(a.error[i, j], b.error[i, j])
    facts: dict[str, Any] = {
        "compared_pairs": len(i),
        "edges_first": int(there[0].sum()),
        "edges_second": int(there[1].sum()),
        "edges_both": int(there.all(axis=0).sum()),
        "edges_only_first": int((there[0] & ~there[1]).sum()),
        "edges_only_second": int((there[1] & ~there[0]).sum()),
        "largest_probability_difference": float(np.abs(difference).max()),
        "coupling_rms_difference": float(np.sqrt(np.mean((coupling[1] - coupling[0]) ** 2))),
    }
    both = hasattr(first, "edge_values") and hasattr(second, "edge_values")
    if both:
        same = first.info.get("data_digest")
        facts["same_data"] = same is not None and same == second.info.get("data_digest")
        beyond = np.abs(difference) > BEYOND * np.maximum(error, 1e-3)
        facts["beyond_monte_carlo_error"] = int(beyond.sum())
    order = np.lexsort((-np.abs(coupling[1] - coupling[0]), -np.abs(difference)))
    pairs = [
        {
            "edge": f"{shared[i[k]]} -- {shared[j[k]]}",
            "probability_first": float(probability[0, k]),
            "probability_second": float(probability[1, k]),
            "coupling_first": float(coupling[0, k]),
            "coupling_second": float(coupling[1, k]),
            "monte_carlo_error": float(error[k]) if both else None,
        }
        for k in order
    ]
    return Comparison(labels, (first, second), shared, only, facts, pairs)


def show_comparison(result: Comparison, top: int) -> None:
    """Print a comparison."""
    from rich.table import Table
    from rich.text import Text

    from edgewise.cli.shown import console

    out, facts = console(), result.facts
    first, second = result.labels
    out.print(f"{len(result.names):,} variables, {facts['compared_pairs']:,} pairs: {first} and {second}")
    out.print(
        Text(
            f"{facts['edges_both']:,} edges in both, {facts['edges_only_first']:,} only in {first}, "
            f"{facts['edges_only_second']:,} only in {second}.",
            "bold",
        )
    )
    out.print(
        f"Root mean square difference of the couplings: {facts['coupling_rms_difference']:.3f}; largest "
        f"difference of probabilities: {facts['largest_probability_difference']:.3f}."
    )
    if "beyond_monte_carlo_error" in facts:
        data = "the same data" if facts["same_data"] else "different data"
        out.print(
            f"They were fitted to {data}; {facts['beyond_monte_carlo_error']:,} pairs differ by more than "
            f"{BEYOND:g} Monte Carlo errors."
        )
    shown = result.pairs if top == 0 else result.pairs[:top]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("largest differences", overflow="fold")
    for heading in ("probability", "", "coupling", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row("", "first", "second", "first", "second")
    for pair in shown:
        numbers = [f"{pair['probability_first']:.3f}", f"{pair['probability_second']:.3f}"]
        numbers += [signed(pair["coupling_first"]), signed(pair["coupling_second"])]
        table.add_row(Text(printable(pair["edge"], keep="")), *numbers)
    out.print()
    out.print(table)
    if result.scores:
        scores = Table(box=None, pad_edge=False, header_style="bold")
        scores.add_column("against the truth")
        for label in result.labels:
            scores.add_column(label, justify="right", overflow="fold")
        for name in next(iter(result.scores.values())):
            values = [result.scores[label][name] for label in result.labels]
            scores.add_row(name, *("" if np.isnan(value) else f"{value:.3f}" for value in values))
        out.print()
        out.print(scores)
