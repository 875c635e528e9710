"""Puts the report together: words, numbers, script and style in one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise._version import __version__
from edgewise.atomic import replacing
from edgewise.data.problems import counted
from edgewise.paths import as_path
from edgewise.plots.groups import Groups
from edgewise.plots.source import as_posterior
from edgewise.posterior.verdict import judge
from edgewise.report import differences, models, sections, words
from edgewise.report.payload import as_json, make_payload

if TYPE_CHECKING:
    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior
    from edgewise.posterior.sensitivity import Sensitivity

SCRIPTS = (
    *("common.js", "placing.js", "saving.js", "gestures.js", "network.js"),
    *("panel.js", "table.js", "evidence.js", "main.js"),
)


def write_report(
    posterior: Posterior,
    path: str | os.PathLike[str],
    *,
    data: Any = None,
    title: str | None = None,
    command: str | None = None,
    thresholds: tuple[float, float] = (3, 10),
    grid: tuple[int, int] | None = None,
    groups: Groups | None = None,
    sensitivity: Sensitivity | None = None,
) -> Path:
    """Write the report of a posterior as one self-contained HTML file.

    Parameters
    ----------
    posterior : Posterior or fitted SpikeSlabMRF
        What to report.
    path : path
        The file; an existing one is replaced in one step.
    data : BinaryData, optional
        The data of the fit; adds the predictive check, and the shares by group where rows have labels.
    title : str, optional
        Title of the page.
    command : str, optional
        The command that made the posterior; by default what the posterior remembers.
    thresholds : pair of float
        Bayes factors from which evidence counts, and counts as strong.
    grid : (rows, columns), optional
        Draw the network over the pixel grid of image data.
    groups : sequence or mapping from name, optional
        One label per variable, shown as the colour of its node; communities by default.
    sensitivity : Sensitivity, optional
        What other priors would say (:meth:`edgewise.Posterior.sensitivity`); adds a section.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.report import write_report
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_report(model, f"{directory}/report.html", data=people, title="Diabetes").name
    'report.html'
    """
    path = as_path(path, "the page to write")
    page = build_report(
        as_posterior(posterior),
        data=data,
        title=title,
        command=command,
        thresholds=thresholds,
        grid=grid,
        groups=groups,
        sensitivity=sensitivity,
    )
    return write_page(page, path)


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """Write a page; an existing one is replaced in one step."""
    path = as_path(path, "the page to write")
    with replacing(path, "utf-8") as file:
        file.write(page)
    return path


def build_report(
    posterior: Posterior,
    *,
    data: Any = None,
    title: str | None = None,
    command: str | None = None,
    thresholds: tuple[float, float] = (3, 10),
    grid: tuple[int, int] | None = None,
    groups: Groups | None = None,
    sensitivity: Sensitivity | None = None,
    found: Diagnostics | None = None,
    wording: sections.Wording = str,
) -> str:
    """Return the page of :func:`write_report` as text.

    `found` is the diagnosis where it is known, and `wording` says messages in the words of the caller.
    """
    verdict = judge(posterior, found, thresholds)
    found = verdict.found
    script = "(function () {\n'use strict';\n" + "\n".join(asset(name) for name in SCRIPTS) + "})();\n"
    title = title or "Which variables depend on each other directly?"
    parts = {
        "policy": _policy(script),
        "version": escape(__version__),
        "title": escape(title),
        "style": asset("style.css"),
        "subtitle": _subtitle(posterior),
        "question": words.question(posterior),
        "light": found.light,
        "banner": words.banner(found),
        "answer": words.answer(posterior, verdict, thresholds, wording),
        "edge_help": words.edge_help(posterior),
        "evidence_help": words.evidence_help(thresholds),
        "differences": differences.section(posterior, thresholds),
        "hyper": sections.hyper(posterior),
        "groups": models.inclusion(posterior)
        + models.other_priors(sensitivity, wording)
        + sections.groups(data),
        "imputed": sections.imputed(posterior),
        "diagnostics": sections.diagnostics(posterior, found, verdict.learned, wording),
        "predictive": sections.predictive(posterior, data),
        "notes": words.notes([wording(note) for note in _all_notes(posterior, data, found)]),
        "methods": words.methods(posterior, thresholds, words.quality(found, posterior)),
        "reproduce": words.reproduce(posterior, command),
        "footer": f"Made by edgewise {escape(__version__)}. "
        "This page is one file and loads nothing from elsewhere.",
        "payload": as_json(make_payload(posterior, thresholds=thresholds, grid=grid, groups=groups)),
        "script": script,
    }
    # One pass over the template: text that was filled in is never searched for placeholders again.
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))
    return page.encode("utf-8", "replace").decode("utf-8")


def asset(name: str) -> str:
    """Text of one of the page's parts."""
    return (resources.files("edgewise.report") / "assets" / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Content security policy: this script, inline style, and nothing from anywhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"


def _subtitle(posterior: Posterior) -> str:
    rows = float(posterior.statistics.n_rows)
    parts = [
        f"{counted(posterior.n_variables, 'variable')}, {rows:,.10g} row{'s' * (rows != 1)}, "
        f"{counted(posterior.n_candidates, 'candidate edge')}"
    ]
    if posterior.info.get("created"):
        parts.append(str(posterior.info["created"])[:10])
    return escape(" · ".join(parts))


def _all_notes(posterior: Posterior, data: Any, found: Any) -> list[str]:
    """Notes of the data door, of the fit and of the diagnostics, each once."""
    info = posterior.info
    messages = [*info.get("notes", []), *getattr(data, "notes", ()), *found.messages, *found.notes]
    if info.get("stop_message") and info.get("stop_reason") != "target_ess":
        messages.append(info["stop_message"])
    return list(dict.fromkeys(str(message) for message in messages))
