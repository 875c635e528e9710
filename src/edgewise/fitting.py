"""From a checked table to a posterior: the question, in which everything is worked out once, and its answer.

`SpikeSlabMRF` and the command both go through here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edgewise.blanks import statistics_of
from edgewise.data import Data
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import (
    FeatureArgument,
    Features,
    Statistics,
    check_laid_out,
    resolve_features,
    sufficient_statistics,
)
from edgewise.posterior.imputed import Imputed
from edgewise.posterior.listing import listed
from edgewise.posterior.posterior import Posterior
from edgewise.priors import Prior, ResolvedPrior
from edgewise.run.chains import RunResult, run
from edgewise.run.forecast import draws_wanted, rounded_up
from edgewise.run.options import RunOptions
from edgewise.run.stopping import R_HAT_APART, goal, quantity, stuck, wanting
from edgewise.scales import BINARY, check_cliques


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of some data.

    Attributes
    ----------
    problem : Problem
        What the engines are told.
    prior : Prior
        The prior as the user wrote it.
    names, levels : tuple
        Of the variables.
    notes : mapping
        What the posterior remembers of the data: digest, number of rows, what was done at the door.
    """

    problem: Problem
    prior: Prior
    names: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    notes: Mapping[str, Any]


def pose(data: Data, prior: Prior | None = None, features: FeatureArgument | Features = None) -> Question:
    """Lay out candidates and prior over the variables and sum up the data."""
    prior = prior or Prior()
    candidates = resolve_features(features, data.n_variables, data.names)
    if features is None and not data.scales.all_binary:
        check_laid_out(data.n_variables)
    resolved = prior.resolve(candidates, data.names)
    if candidates.unlisted and data.scales.all_binary:
        resolved = resolved.condensed()
        if data.unknown is not None:
            raise DataError(
                "Blank cells cannot be drawn where the candidates are more pairs than are laid out; leave "
                "their rows out with missing='drop', or take at most a thousand columns."
            )
    # The labels of the rows are no business of an engine.
    rows = replace(data, group=None, group_name=None)
    scales = None if data.scales.all_binary else data.scales
    if scales is not None:
        check_cliques(scales, candidates.members, data.names)
    strata: tuple[Statistics, ...] = ()
    group_of: tuple[int, ...] = ()
    if data.strata is not None:
        _check_strata(data, candidates, resolved)
        strata = tuple(sufficient_statistics(part, candidates) for part in data.parts())
        group_of = data.strata.layout.group_of
    problem = Problem(candidates, statistics_of(data, candidates), resolved, rows, scales, strata, group_of)
    notes = {
        "data_digest": rows.digest(),
        "n_rows": data.n_rows,
        "notes": list(data.notes),
        "group_name": data.group_name,
        **({"blanks": [str(label) for label in data.blanks]} if data.blanks else {}),
        **({} if data.strata is None else {"strata": data.strata.layout.to_dict()}),
    }
    return Question(problem, prior, data.names, data.levels, notes)


def _check_strata(data: Data, candidates: Features, prior: ResolvedPrior) -> None:
    """Refuse what cannot be divided yet, with the way out."""
    assert data.strata is not None
    what = "Comparing groups" if data.strata.layout.compares else "Adjusting"
    if data.unknown is not None:
        cells = int(data.unknown_cells().sum())
        raise DataError(
            f"{what} takes complete rows, and {cells:,} cells are blank; leave their rows out with "
            "missing='drop'."
        )
    if not data.scales.all_binary:
        several = [name for name, scale in zip(data.names, data.scales) if scale.kind != BINARY]
        raise DataError(
            f"{what} takes variables with two levels, and {several[0]!r} has more; cut all levels in two "
            f"with "
            "binarize='>...', or leave such columns out with drop_columns."
        )
    if data.strata.layout.compares and not prior.plain:
        raise DataError(
            "Comparing groups knows one normal slab and one inclusion probability; leave communities, "
            "attributes, heavier tails and slabs of single edges out of the prior, or hold the groups fixed "
            "with adjust."
        )
    if data.strata.layout.compares and candidates.max_order > 2:
        raise DataError("Groups are compared pair by pair; leave features out, so that candidates are pairs.")
    _check_table(what, candidates.n_variables, len(data.strata.layout.rows))


def _check_table(what: str, p: int, strata: int) -> None:
    """Refuse more states than are summed in each stratum, before any long work."""
    from edgewise.engines.exact import LARGEST, MOST_CELLS

    most = LARGEST
    while strata * 2**most > MOST_CELLS:
        most -= 1
    if p <= most:
        return
    fewer = "fewer groups" if what.startswith("Comparing") else "fewer combinations of the covariates"
    or_fewer = f", or {fewer}" if most < LARGEST else ""
    raise DataError(
        f"{what} sums over all states of the variables in each stratum; with {strata} strata that is "
        f"possible for up to {most} variables, and this table has {p}. Choose up to {most} of its "
        f"columns{or_fewer}."
    )


def answer(
    question: Question, options: RunOptions, previous: RunResult | None = None
) -> tuple[Posterior, RunResult]:
    """Draw; give the posterior, and the run to go on from."""
    identity = {"data": question.notes["data_digest"], "prior": question.prior.to_dict()}
    result = run(question.problem, options, identity=identity, previous=previous)
    if previous is not None:
        # Going on names the engine; why it was chosen was said before.
        result.info["engine_reason"] = previous.info["engine_reason"]
    problem, draws, sums, notes = question.problem, result.draws, result.edge_sums, dict(question.notes)
    features, statistics = problem.features, problem.statistics
    if features.unlisted and problem.all_binary:
        found = listed(problem, draws, sums)
        features, statistics, draws, sums = found.features, found.statistics, found.draws, found.edge_sums
        notes |= found.notes
    posterior = Posterior(
        draws,
        features,
        question.names,
        question.levels,
        statistics,
        question.prior,
        {**result.info, **notes},
        sums,
        result.counters,
        problem.scales,
        _imputed(question, result),
    )
    posterior._result = result
    return posterior, result


def _imputed(question: Question, result: RunResult) -> Imputed | None:
    """What the chains have found of the blank cells, if there are any."""
    patterns, rows = question.problem.blanks, question.problem.rows
    if patterns is None or rows is None:
        return None
    return Imputed.of(patterns, rows.places, result.states, question.names, question.levels)


def time_left(options: RunOptions, since: float) -> RunOptions:
    """The options with what is left of `max_time`, counted from the moment `since`."""
    if options.max_time is None:
        return options
    return replace(options, max_time=max(1e-9, options.max_time - (time.monotonic() - since)))


def shortfall(question: Question, result: RunResult, options: RunOptions) -> str | None:
    """What is missing when a fit stopped before it was as precise as asked, and what helps, in words."""
    info, seen, wanted = result.info, result.last_look, goal(options)
    if info["warm_up_unfinished"]:
        return f"{info['stop_message']} Allow more time, or go on from here with extend(draws=...)."
    if seen is None or wanted is None or info["stop_reason"] not in ("max_draws", "max_time"):
        return None
    lacking = wanting(wanted, seen, lambda k: quantity(question.problem.features, question.names, k))
    if not lacking:
        return None
    more = rounded_up(draws_wanted(wanted, seen) - seen.draws)
    apart = seen.r_hat >= R_HAT_APART
    remedy = (
        f"Go on with extend(draws={more}), or raise max_draws or max_time: at this pace it takes about so "
        "many draws more of each chain."
    )
    if apart:
        remedy = f"{stuck(info['engine'], question.problem.features.n_variables)} {remedy}"
    return f"The fit stopped before it was as precise as asked: {'; '.join(lacking)}. {remedy}"
