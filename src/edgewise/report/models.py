"""The part of the report on a model of inclusion: communities of variables, or their attributes."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.priors import AttributeInclusion, BlockInclusion

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior
    from edgewise.posterior.sensitivity import Sensitivity

MOST_EDGES = 25


def inclusion(posterior: Posterior) -> str:
    """The section; nothing where all pairs share one inclusion probability."""
    if isinstance(posterior.prior.inclusion, BlockInclusion):
        return _communities(posterior)
    if isinstance(posterior.prior.inclusion, AttributeInclusion):
        return _attributes(posterior)
    return ""


def other_priors(found: Sensitivity | None, wording: Callable[[str], str] = str) -> str:
    """What other priors would say; nothing where nobody has asked."""
    if found is None:
        return ""
    hint = (
        f"{escape(wording(found.headline()))} Draws were weighted where a prior is close, and new chains "
        "drawn where it is not; “effective draws” are those that carry the weight. A verdict counts as "
        "changed if the category of evidence differs and the probabilities are more than two Monte Carlo "
        "errors apart."
    )
    rows = []
    table: Any = found.table()
    for row in table.itertuples():
        numbers = [(row.effective_draws, 0), (row.n_edges, 1)]
        numbers += [(count, 0) for count in (row.present, row.absent, row.undecided)]
        cells = ("–" if x != x else f"{x:,.{digits}f}" for x, digits in numbers)
        rows.append((str(row.prior), str(row.how), *cells, wording(str(row.reason))))
    head = ("prior", "how", "effective draws", "expected edges", "present", "absent", "undecided", "remark")
    if not any(found.reason):
        head, rows = head[:-1], [row[:-1] for row in rows]
    body = _table("Priors", head, rows)
    if len(found.known) < 2:
        return _section("sensitivity", "Other priors", hint, body)
    changing = [k for k in found.order if found.changes[k] > 0][:MOST_EDGES]
    labels = tuple(escape(found.labels[k]) for k in found.known)
    if changing:
        words = [
            (str(found.candidates[a]), *(str(found.evidence[k, a]) for k in found.known)) for a in changing
        ]
        body += _table("Verdicts that change with the prior", ("edge", *labels), words)
    edges = [
        (str(found.candidates[a]), *(f"{found.inclusion[k, a]:.2f}" for k in found.known))
        for a in found.order[:MOST_EDGES]
    ]
    body += _table("Inclusion probabilities under each prior", ("edge", *labels), edges)
    return _section("sensitivity", "Other priors", hint, body)


def _section(name: str, title: str, hint: str, body: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>'
        f'<p class="hint">{hint}</p>{body}</section>'
    )


def _table(label: str, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    cells = "".join(
        "<tr>"
        + "".join(
            f'<td class="name">{escape(value)}</td>'
            if isinstance(value, str)
            else f"<td>{_number(value)}</td>"
            for value in row
        )
        + "</tr>"
        for row in rows
    )
    titles = "".join(f'<th scope="col"{" class=word" * (k == 0)}>{name}</th>' for k, name in enumerate(head))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="plain-table">'
        f"<thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table></div>"
    )


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:.2f}"


def _communities(posterior: Posterior) -> str:
    found = posterior.communities()
    likely = int(found.number.argmax())
    hint = (
        f"The data put the number of communities at {likely} with probability {found.number[likely]:.2f} "
        f"({found.prior_number[likely]:.2f} before the data). The partition below is the one closest to all "
        "draws; “together” is how probably a variable is with the others of its community, “elsewhere” how "
        "probably it is with those of the next best."
        + (" Nodes of the network have these colours." if len(found.members) > 1 else "")
        + (f" {escape(found.note)}" if found.note else "")
    )
    table: Any = found.table().sort_values(["community", "together"], ascending=[True, False])
    rows = [
        (str(row.variable), int(row.community), row.together, row.elsewhere) for row in table.itertuples()
    ]
    numbers = [
        (str(row.communities), row.prior, row.posterior, row.log10_bf)
        for row in found.number_table().itertuples()
    ]
    body = _table("Communities of variables", ("variable", "community", "together", "elsewhere"), rows)
    head = ("number of communities", "prior", "posterior", "log10 Bayes factor")
    return _section("communities", "Communities", hint, body + _table("Number of communities", head, numbers))


def _attributes(posterior: Posterior) -> str:
    hint = (
        "How much an attribute of a pair changes the log odds that its variables are linked, and the "
        "interval that holds 95 % of the posterior; “average pair” is the level of all."
    )
    rows = [
        (str(row.attribute), row.mean, row.hdi_low, row.hdi_high, row.positive, row.prior_sd)
        for row in posterior.attribute_summary().itertuples()
    ]
    head = ("attribute", "mean", "from", "to", "P(above 0)", "prior sd")
    return _section("attributes", "Attributes", hint, _table("Attributes of pairs", head, rows))
