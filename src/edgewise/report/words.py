"""The sentences of the report: what was asked, the answer, the methods, how to do it again.

Everything returned here is HTML; whatever comes from the data or the user passes through ``escape``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.kernels.codes import SEPARATE
from edgewise.posterior.columns import signed
from edgewise.posterior.levels import STRENGTH, measures
from edgewise.posterior.verdict import SET_BY_PRIOR, WORDS, Verdict
from edgewise.priors.attributes import AttributeLayout
from edgewise.priors.communities import BlockLayout
from edgewise.priors.words import inclusion_words, slab_words
from edgewise.report import charts, kinds

if TYPE_CHECKING:
    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior

ENGINES = {
    "exact": "a Metropolis-within-Gibbs sampler with the partition function computed exactly, by enumeration "
    "or by elimination along the graph",
    "surrogate": "a Gibbs sampler on an averaged quadratic approximation of the log partition function, so "
    "that the likelihood is approximated to second order",
    "particle": "a reversible-jump sampler whose likelihood ratios are estimated with weighted persistent "
    "Gibbs particles",
    "langevin": "Langevin dynamics for the parameters and reversible jumps for the structure, with gradients "
    "from persistent Gibbs samples (Algorithm 1 of Chen & Welling, 2012)",
}


QUALITY = {"green": "good", "amber": "usable with care", "red": "not good enough yet"}
# Candidates with priors of their own that are named one by one.
FEW_NAMED = 6
LIGHTS = {
    "green": '<circle cx="17" cy="17" r="15" fill="#009e73"/>'
    '<path d="M9 18l6 6 11-13" fill="none" stroke="#fff" stroke-width="4"/>',
    "amber": '<path d="M17 2L33 32H1Z" fill="#e69f00"/>'
    '<path d="M17 12v9m0 4v3" stroke="#222" stroke-width="3.5"/>',
    "red": '<rect x="2" y="2" width="30" height="30" fill="#c0392b"/>'
    '<path d="M10 10l14 14m0-14l-14 14" stroke="#fff" stroke-width="4"/>',
}
# Notes of the door that a methods paragraph must not leave out.
LEFT_OUT = (
    "rows are complete and stay",
    "without any answer left out",
    "of weight zero left out",
    "constant columns left out",
)


STOP_REASONS = {
    "target_ess": "every edge was known as precisely as asked",
    "max_draws": "the largest number of draws was reached",
    "max_time": "the time allowed was used up",
    "interrupted": "it was interrupted",
}


def paragraphs(*texts: str) -> str:
    """Join sentences that are HTML already into paragraphs."""
    return "".join(f"<p>{text}</p>" for text in texts if text)


def plural(count: int, noun: str) -> str:
    """Count and noun.

    >>> plural(1, "edge"), plural(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def label(posterior: Posterior, clique: int) -> str:
    """Name of a candidate, escaped."""
    return " – ".join(f"<b>{escape(posterior.names[i])}</b>" for i in posterior.features.clique(clique))


def question(posterior: Posterior) -> str:
    """What was asked."""
    rows = float(posterior.statistics.n_rows)
    candidates = "pairs" if posterior.features.pairs_only else "cliques"
    sizes = "" if posterior.features.pairs_only else f" of two to {posterior.features.max_order} variables"
    return paragraphs(
        f"Which of {kinds.variables(posterior)}{kinds.level_range(posterior)} depend on each other "
        "<em>directly</em>, "
        "that is, when all other variables are held fixed; how strongly; and how sure can we be? "
        f"The data are {rows:,.10g} rows; every one of {posterior.n_candidates:,} "
        f"{candidates}{sizes} was a candidate.{_never_active(posterior)}"
    )


def _never_active(posterior: Posterior) -> str:
    """What is common to the pairs that have no row."""
    count, draws = posterior.n_unlisted, posterior.n_chains * posterior.n_draws
    if not count:
        return ""
    share = float(posterior.info.get("rest_inclusion", 0.0))
    return (
        f" {count:,} of them were active in none of the {draws:,} draws and have no row here; the "
        f"probability of such a pair is {share:.2g} on average, as far as births tried it."
    )


def banner(found: Diagnostics) -> str:
    """What stands above everything else where the light is not green."""
    if not found.banner:
        return ""
    word, _, rest = found.banner.partition(":")
    return (
        f'<div class="banner {found.light}" role="alert"><svg viewBox="0 0 34 34" role="img" '
        f'aria-label="{found.light}">'
        f"{LIGHTS[found.light]}</svg><p><strong>{word}:</strong>{escape(rest)} "
        '<a href="#diagnostics">What helps</a>.</p></div>'
    )


def answer(
    posterior: Posterior,
    verdict: Verdict,
    thresholds: tuple[float, float],
    wording: Callable[[str], str] = str,
) -> str:
    """The answer in plain words, with the counts by category; withheld while the light is red."""
    counts = verdict.counts
    some, strong = thresholds
    noun = "edge" if posterior.features.pairs_only else "clique"
    learned = (
        f'<p>{verdict.learned} Quality of the computation: <a href="#diagnostics">'
        f"{QUALITY[verdict.found.light]} ({verdict.found.light})</a>.</p>"
    )
    if verdict.withheld:
        return f'<p class="lead withheld">{verdict.answer}</p>{learned}'
    shown = [word for word in WORDS if counts[word] or word != SET_BY_PRIOR]
    bar = charts.count_bar(
        [counts[word] for word in shown], [_css_class(word) for word in shown], [f"{word}" for word in shown]
    )
    number = posterior.n_edges
    low, high = np.quantile(number, [0.025, 0.975]).astype(int)
    span = f"{low:,}" if low == high else f"between {low:,} and {high:,}"
    texts = [
        f"The network as a whole has {span} {noun}s with 95 % probability (mean {number.mean():,.1f}, "
        f"{100 * number.mean() / max(posterior.n_candidates, 1):.1f} % of the candidates).",
        _strongest(posterior),
        f"“Some” evidence means that the data have changed the odds of the {noun} by a Bayes factor of "
        f"{some:g} or more, “strong” by {strong:g} or more; in between the data cannot tell. "
        f"Excluded is a finding of its own: it is not the same as undecided.",
        escape(wording(verdict.nothing_excluded)),
    ]
    grey = "" if verdict.found.light == "green" else " withheld"
    counted = f'<div class="counted{grey}"><p class="lead">{verdict.answer}</p>{bar}</div>'
    return counted + learned + paragraphs(*texts)


def _css_class(word: str) -> str:
    return "prior" if word == SET_BY_PRIOR else word.replace(" ", "-")


def _strongest(posterior: Posterior) -> str:
    inclusion = posterior.edge_values("inclusion")
    given = np.nan_to_num(posterior.edge_values("mean_if_included"))
    sure = np.flatnonzero(inclusion >= 0.5)
    if not len(sure):
        return "No single edge is more likely present than absent."
    order = sure[np.argsort(-np.abs(given[sure]), kind="stable")][:3]
    measure = measures(posterior)

    def size(k: int) -> str:
        if measure[k] == STRENGTH:
            return f"strength {given[k]:.2f}"
        return f"{'positive' if given[k] > 0 else 'negative'}, {_signed(given[k])}"

    parts = [
        f"{label(posterior, int(k))} ({size(k)}, inclusion probability {inclusion[k]:.2f})" for k in order
    ]
    example = ""
    if not posterior.scales.all_binary:
        words = kinds.reading(posterior, int(order[0]), float(given[order[0]]))
        example = f" In words, for the first: {escape(words)}, all else being equal." if words else ""
    return f"The strongest among the probable ones: {'; '.join(parts)}.{example} {kinds.unit(posterior)}"


def _signed(value: float) -> str:
    return signed(value).replace("-", "−")


def edge_help(posterior: Posterior) -> str:
    """How to read the edge table."""
    return (
        "PIP: posterior inclusion probability, with its Monte Carlo error (MCSE). BF: Bayes factor for "
        "presence, "
        f"with &lt; and &gt; where the number of draws gives only a bound. {_coding(posterior)}"
        "; R-hat and ESS are blank where an indicator never flips."
        ' <span class="screen-only">Click a heading to sort, a row to select its first variable in the '
        "network.</span>"
    )


def _coding(posterior: Posterior) -> str:
    if not posterior.scales.all_binary:
        text = "Couplings are log odds between the ends of both scales"
        return text + ("; with a nominal variable, strengths of matrices" * kinds.has_matrices(posterior))
    text = "Couplings are log odds in 0/1 coding"
    return text + (" (divide by 4 for Ising couplings)" if posterior.features.pairs_only else "")


def evidence_help(thresholds: tuple[float, float]) -> str:
    """How to read the evidence plot."""
    return (
        "Each dot is a listed edge: up means evidence for it, down evidence against it, and the middle band "
        f"(Bayes factor below {thresholds[0]:g} either way) that the data cannot tell."
    )


def prior_words(posterior: Posterior) -> str:
    """The prior in words."""
    prior = posterior.prior
    noun = "edge" if posterior.features.pairs_only else "clique"
    inclusion, slab = inclusion_words(prior.inclusion, noun), slab_words(prior.slab)
    several = not posterior.scales.all_binary
    biases = "differences of the thresholds of two levels" if several else "biases"
    words = f"{inclusion}; {slab}; {biases} were N(0, {prior.bias.sd:g}<sup>2</sup>)"
    special = []
    if prior.forced:
        special.append(f"{plural(len(prior.forced), noun)} always included")
    if prior.forbidden:
        special.append(f"{plural(len(prior.forbidden), noun)} always excluded")
    if prior.edge_probability is not None:
        special.append(_single_probabilities(posterior, noun))
    if prior.edge_slab:
        special.append(_single_slabs(posterior, noun))
    return words + (f"; {', '.join(special)}" if special else "")


def _single_probabilities(posterior: Posterior, noun: str) -> str:
    """Prior probabilities of single candidates, by name if few."""
    prior = posterior._resolved_prior
    own = (prior.status == SEPARATE) & (True if prior.model is None else ~prior.model.inside)
    chosen = np.flatnonzero(own)
    cliques = chosen if prior.listed is None else prior.listed[chosen]
    if not 0 < len(chosen) <= FEW_NAMED:
        return f"single {noun}s with prior probabilities of their own"
    each = [
        f"{_name(posterior, int(clique))} ({1 / (1 + np.exp(-prior.log_odds[k])):.3g})"
        for k, clique in zip(chosen, cliques)
    ]
    return f"prior probabilities of their own for {', '.join(each)}"


def _single_slabs(posterior: Posterior, noun: str) -> str:
    """Slabs of single candidates, by name if few."""
    given = posterior.prior.edge_slab or {}
    if len(given) > FEW_NAMED:
        return f"{plural(len(given), noun)} with priors of their own for the parameter"
    each = [
        f"{_name(posterior, posterior.features.index(clique, posterior.names))} "
        f"(N({mean:g}, {sd:g}<sup>2</sup>))"
        for clique, (mean, sd) in given.items()
    ]
    return f"priors of their own for the parameters of {', '.join(each)}"


def _name(posterior: Posterior, clique: int) -> str:
    return escape(" – ".join(posterior.names[i] for i in posterior.features.clique(clique)))


def methods(posterior: Posterior, thresholds: tuple[float, float], quality: str = "") -> str:
    """The methods paragraph: model, priors, engine, draws, convergence, versions."""
    info = posterior.info
    pairs = posterior.features.pairs_only
    order = "pairwise" if pairs else f"{posterior.features.max_order}-way"
    energy = (
        "θ<sub>ij</sub> x<sub>i</sub> x<sub>j</sub>"
        if pairs
        else "θ<sub>α</sub> ∏<sub>i∈α</sub> x<sub>i</sub>"
    )
    formula = (
        f" (Ising or Boltzmann machine), P(x) ∝ exp(Σ θ<sub>i</sub> x<sub>i</sub> + Σ {energy}) with x in "
        "{0, 1}"
    )
    if not posterior.scales.all_binary:
        formula = f", {kinds.model(posterior)}"
    engine = str(info.get("engine", "unknown"))
    how = ENGINES.get(engine, "Markov chain Monte Carlo")
    if posterior._approximation is not None:
        how += f" ({escape(posterior._approximation.words(posterior._candidate_name))})"
    chain = f"{plural(posterior.n_chains, 'chain')} of {posterior.n_draws:,} kept draws"
    details = []
    if info.get("warm_up_unfinished"):
        made = escape(_pretty(info.get("warm_up_done", 0)))
        details.append(f"from inside warm-up, which was not finished after {made} iterations")
    elif info.get("warm_up") is not None:
        details.append(f"after {escape(_pretty(info['warm_up']))} iterations of warm-up")
    if info.get("thin") is not None and info.get("thin") != 1:
        details.append(f"one draw every {escape(_pretty(info['thin']))} iterations")
    if info.get("seed") is not None:
        details.append(f"seed {escape(str(info['seed']))}")
    reason = str(info.get("stop_reason") or "")
    stop = f" Sampling ended because {escape(STOP_REASONS.get(reason, _lowered(reason)))}." if reason else ""
    versions = info.get("versions") or {}
    software = ", ".join(f"{escape(str(name))} {escape(str(value))}" for name, value in versions.items())
    some, strong = thresholds
    couplings = "couplings and strengths of matrices" if kinds.has_matrices(posterior) else "couplings"
    text = paragraphs(
        f"We modelled {kinds.variables(posterior)}{kinds.level_range(posterior)} "
        f"({float(posterior.statistics.n_rows):,.10g} rows) by a {order} Markov random field{formula}, and "
        "inferred its "
        "structure and parameters jointly under a spike-and-slab prior (Chen &amp; Welling, 2012): "
        f"{prior_words(posterior)}.{strata_words(posterior)}{_left_out(posterior)}{_imputed(posterior)}",
        f"The posterior was sampled with edgewise’s “{escape(engine)}” engine, {how}: {chain}"
        + (f" ({', '.join(details)})" if details else "")
        + f".{stop}{' ' + quality if quality else ''}",
        "We report posterior inclusion probabilities and Bayes factors of presence against absence, called "
        f"evidence from {some:g} and strong evidence from {strong:g}, and their inverses for absence; "
        f"{couplings} "
        "are averaged over structures, with 95 % highest-density intervals.",
        f"Software: {software}." if software else "",
        "Reference: Y. Chen and M. Welling (2012). Bayesian structure learning for Markov random "
        "fields with a "
        "spike and slab prior. <em>Uncertainty in Artificial Intelligence</em> 28.",
    )
    return f'<div class="prose" id="methods-text">{text}</div>'


def strata_words(posterior: Posterior) -> str:
    """Which covariates were held fixed and which groups compared, in sentences; empty without any."""
    layout = posterior.strata
    if layout is None:
        return ""
    text = ""
    if layout.covariates:
        binned = [
            f"{escape(name)} cut at {', '.join(f'{cut:g}' for cut in cuts)}"
            for name, cuts in zip(layout.covariates, layout.edges)
            if cuts is not None
        ]
        text += (
            f" We adjusted for {escape(', '.join(layout.covariates))}: biases were free in each of "
            f"{layout.n_strata} strata and couplings shared"
            + (f" ({'; '.join(binned)})" if binned else "")
            + "."
        )
    if layout.compares:
        prior = posterior._resolved_prior.difference
        each = ", ".join(
            f"{escape(label)} ({rows:,g} rows)" for label, rows in zip(layout.groups, layout.rows_of_groups)
        )
        rate = f"q<sub>0</sub> = {prior.q0:g}"
        if not prior.fixed_q0:
            rate = f"q<sub>0</sub> ~ Beta({prior.beta_a:g}, {prior.beta_b:g})"
        scale = f"σ<sub>D</sub> = {prior.scale:g}"
        if not prior.fixed_scale:
            scale = (
                f"σ<sub>D</sub><sup>−2</sup> ~ Gamma(shape {prior.gamma_shape:g}, rate {prior.gamma_rate:g})"
            )
        text += (
            f" Groups of {escape(layout.group_name)} were compared: {each}. Each pair was absent, present "
            f"with "
            f"one coupling in all groups, or, with probability {rate} if present, with couplings that "
            f"differ; the "
            f"difference of two groups was N(0, σ<sub>D</sub><sup>2</sup>), {scale}. Biases were free in "
            f"each "
            "group."
        )
    return text


def _imputed(posterior: Posterior) -> str:
    """What was assumed of the blank cells."""
    found = posterior.imputed
    if found is None:
        return ""
    cells = float(posterior.statistics.n_rows) * posterior.n_variables
    return (
        f" {found.n_cells:,} blank cells ({100 * found.n_cells / max(cells, 1.0):.1f} %) in {found.n_rows:,} "
        "rows were taken to be missing at random and imputed jointly with the graph and its parameters, each "
        "given the other answers of its row, so that all uncertainty includes theirs."
    )


def _left_out(posterior: Posterior) -> str:
    """Which rows and columns of the table were not used."""
    kept = [str(note) for note in posterior.info.get("notes", ()) if any(part in note for part in LEFT_OUT)]
    return "".join(f" {escape(_used(note))}." for note in kept)


def _used(note: str) -> str:
    """A note of the door in the past tense.

    >>> _used("232 of 435 rows are complete and stay"), _used("constant columns left out: a")
    ('232 of 435 rows were complete and used', 'Constant columns were left out: a')
    """
    note = note.replace("are complete and stay", "were complete and used")
    note = re.sub(r"(rows? without any answer) left out", r"\1 were left out", note)
    note = re.sub(r"(columns|row|rows of weight zero|row of weight zero) left out", r"\1 were left out", note)
    return note[:1].upper() + note[1:]


def quality(found: Any, posterior: Posterior) -> str:
    """One sentence on convergence for the methods paragraph."""
    if found.warm_up_unfinished or not np.isfinite(found.max_r_hat):
        return "The draws are too few to judge convergence."
    prior = posterior._resolved_prior
    *judged, last = [
        "the uncertain edges",
        "the number of edges",
        *(["p<sub>0</sub>"] if not prior.fixed_p0 else []),
        *(["σ<sub>0</sub>"] if not prior.fixed_sigma0 else []),
        *(["the number of communities"] if isinstance(prior.model, BlockLayout) else []),
        *(["the coefficients of attributes"] if isinstance(prior.model, AttributeLayout) else []),
    ]
    return (
        f"Over {', '.join(judged)} and {last}, rank-normalised split "
        f"R-hat was at most {found.max_r_hat:.3f} and the bulk effective sample size at least "
        f"{found.min_ess:,.0f}."
    )


def _pretty(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_pretty(part) for part in value)
    return (
        f"{value:,}"
        if isinstance(value, int) and value > 9999 and not isinstance(value, bool)
        else str(value)
    )


def _lowered(text: str) -> str:
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def notes(messages: Sequence[str]) -> str:
    """All notes of the data door and the fit, and all warnings."""
    if not messages:
        return "<p>Nothing was dropped, changed or left undone.</p>"
    return "<ul>" + "".join(f"<li>{escape(str(message))}</li>" for message in messages) + "</ul>"


def reproduce(posterior: Posterior, command: str | None) -> str:
    """The command or code that makes this posterior again, and the data's fingerprint."""
    info = posterior.info
    command = command or info.get("command")
    if command:
        text = f"<pre><code>{escape(str(command))}</code></pre>"
    else:
        text = f"<pre><code>{escape(_python_call(posterior))}</code></pre>"
    facts = []
    if info.get("data_digest"):
        facts.append(f"Fingerprint of the data (SHA-256): <code>{escape(str(info['data_digest']))}</code>.")
    if info.get("created"):
        facts.append(f"Made {escape(str(info['created']))}.")
    if info.get("seconds") is not None:
        facts.append(f"The fit took {float(info['seconds']):,.1f} seconds.")
    settings = info.get("settings") or {}
    if settings:
        listed = ", ".join(f"{escape(str(k))} = {escape(_pretty(v))}" for k, v in settings.items())
        facts.append(f"Engine settings: {listed}.")
    if info.get("engine_reason"):
        facts.append(f"Engine chosen because: {escape(_lowered(str(info['engine_reason'])))}.")
    facts.append("The same seed gives the same draws on the same kind of machine with the same versions.")
    return text + paragraphs(" ".join(facts))


def _python_call(posterior: Posterior) -> str:
    info = posterior.info
    prior = posterior.prior
    arguments = [f"engine={info.get('engine', 'auto')!r}", f"chains={posterior.n_chains}"]
    if info.get("seed") is not None:
        arguments.append(f"random_state={info['seed']!r}")
    arguments.append(f"prior=Prior({prior.inclusion!r}, {prior.slab!r}, {prior.bias!r})")
    return (
        "from edgewise import SpikeSlabMRF\nfrom edgewise.priors import *\n\n"
        f"SpikeSlabMRF({', '.join(arguments)}).fit(data)"
    )
