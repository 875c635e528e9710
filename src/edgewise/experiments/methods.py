"""The methods of the paper behind one interface: density, couplings, conditional log-likelihood.

"Bayes" is a mixture of posterior draws and "Bayes PM" the median model of the same fit; with the suffix
"p0" the inclusion probability is fixed. "Exact" is the exact engine, "Algorithm 1" the paper's own
approximate sampler; without either word the particle engine draws. "Wain Max" and "Wain Min" are node-wise
lassos and "MLE" the pseudo-likelihood lasso, each along a whole path of penalties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.experiments.data import Case, case
from edgewise.experiments.profiles import Profile
from edgewise.experiments.runner import Task
from edgewise.model.mrf import MRF

ENGINE_WORDS = {"particle": "", "exact": " Exact", "langevin": " Algorithm 1"}
LASSOS = ("Wain Max", "Wain Min", "MLE")
# Parameters in 0/1 coding; what lies outside counts in the last bin.
BINS = np.round(np.arange(-6.0, 8.01, 0.1), 1)
DRAWS = 5
# From this p0 on most candidates are active, and an iteration costs ten to fifty times as much.
DENSE = 0.5

Found = tuple[dict[str, Any], dict[str, np.ndarray]]


def bayes_name(engine: str, fixed: bool, median: bool) -> str:
    """Name of a Bayesian method, as the paper has it.

    >>> bayes_name("exact", True, False)
    'Bayes Exact p0'
    """
    return f"Bayes{' PM' if median else ''}{ENGINE_WORDS[engine]}{' p0' if fixed else ''}"


def score(case: Case, model: Any, density: float, selected: MRF) -> dict[str, float]:
    """What every method is judged by.

    Parameters
    ----------
    case : Case
    model : MRF or list of MRF
        Predicts the test rows.
    density : float
    selected : MRF
        Its edges are the ones found.
    """
    from edgewise.evaluate import edge_scores
    from edgewise.predict.scores import conditional_log_likelihood

    row = {"density": float(density), "edges": float(len(selected.cliques))}
    row["cll"] = float(conditional_log_likelihood(model, case.test, case.groups).mean())
    if case.truth is not None:
        found = edge_scores(case.truth, selected)
        row |= {name: found[name] for name in ("precision", "recall", "f1")}
        true, rest = true_error(case.truth, selected)
        row |= {"true_edge_size": true, "other_edge_size": rest}
    return row


def true_error(truth: MRF, model: MRF) -> tuple[float, float]:
    """Mean |coupling| of the true edges over their true mean, and of the other pairs over the same mean."""
    upper = np.triu_indices(truth.n_variables, 1)
    true, found = np.abs(truth.coupling[upper]), np.abs(model.coupling[upper])
    scale = true[true > 0].mean()
    return float(found[true > 0].mean() / scale), float(found[true == 0].mean() / scale)


def bayes(
    kind: str,
    rows: int,
    replicate: int,
    seed: int,
    engine: str,
    p0: float | None,
    draws: int,
    thin: int,
    warm_up: int,
    chains: int,
    mixture: int,
    place: dict[str, Any],
    prior: dict[str, float] | None = None,
    scored: bool = True,
    generated: int = 0,
) -> Found:
    """Fit one posterior; both "Bayes" and "Bayes PM" are read from it."""
    from edgewise.estimators import SpikeSlabMRF

    here = case(kind, rows, replicate, seed, **place)
    fitted = SpikeSlabMRF(
        engine,
        chains=chains,
        min_draws=draws,
        max_draws=draws,
        thin=thin,
        target_ess=None,
        prior=_prior(p0, prior or {}),
        settings={"warm_up": warm_up},
        n_jobs=1,
        random_state=_number(seed, DRAWS, rows, replicate),
        progress=False,
        constant="keep",
    ).fit(here.train)
    posterior = fitted.posterior_
    median = posterior.median_model
    share = posterior.n_edges / posterior.n_cliques
    density = float(share.mean())
    values: dict[str, Any] = {
        "density": density,
        "density_sd": float(share.std(ddof=1)),
        "p0": float(posterior.inclusion_rate.mean()),
        "sigma0": float(posterior.slab_scale.mean()),
        "source": here.source,
    } | _quality(posterior)
    if here.truth is not None:
        from edgewise.evaluate import average_precision

        values["average_precision"] = average_precision(here.truth, posterior.inclusion)
    if scored:
        values["scores"] = {
            "Bayes": score(here, posterior.mixture(mixture), density, median),
            "Bayes PM": score(here, median, median.density, median),
        }
    arrays = {
        "inclusion": posterior.edge_values("inclusion").astype(np.float32),
        "mean": posterior.edge_values("mean_if_included").astype(np.float32),
        "sd": posterior.edge_values("sd_if_included").astype(np.float32),
    }
    if posterior.n_cliques <= 100:
        edges = [posterior.draws_of(posterior.features.clique(k)) for k in range(posterior.n_cliques)]
        arrays["histogram"] = np.array(
            [np.histogram(np.clip(edge[edge != 0], -5.99, 7.99), BINS)[0] for edge in edges], np.int32
        )
    if kind == "lattice":
        values["width"], values["median_edges"] = _width(median), len(median.cliques)
    if generated:
        from edgewise.predict.mixtures import sample_rows

        models = posterior.mixture(mixture)
        arrays["samples Bayes"] = sample_rows(models, generated, np.random.default_rng([seed, 1]))
        arrays["samples Bayes PM"] = sample_rows([median], generated, np.random.default_rng([seed, 2]))
    return values, arrays


def _number(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def _prior(p0: float | None, changed: dict[str, float]) -> Any:
    from edgewise.priors import BetaInclusion, FixedInclusion, GammaSlab, Prior

    values = {"a": 5.0, "b": 5.0, "c": 5.0, "d": 5.0} | changed
    inclusion = FixedInclusion(p0) if p0 is not None else BetaInclusion(values["a"], values["b"])
    return Prior(inclusion=inclusion, slab=GammaSlab(values["c"], values["d"]))


def _quality(posterior: Any) -> dict[str, float]:
    """Worst R-hat and least effective number of draws among the uncertain edges and the edge count."""
    from edgewise.draws.statistics import stopping_statistics

    seen = stopping_statistics(posterior.draws, posterior.n_cliques)
    return {"ess": seen.min_bulk_ess, "r_hat": seen.max_rhat, "uncertain": float(seen.n_uncertain)}


def _width(model: MRF) -> int:
    from edgewise.exact.inference import elimination_width

    return int(elimination_width(model))


def lasso(
    kind: str,
    rows: int,
    replicate: int,
    seed: int,
    method: str,
    path: int,
    place: dict[str, Any],
    densities: tuple[float, ...] = (),
    generated: int = 0,
) -> Found:
    """Fit one whole path; "Wain" gives both of its combinations, "MLE" one model per penalty."""
    from dataclasses import replace

    from edgewise.baselines.lassos import NodewiseLasso, PseudoLikelihoodLasso
    from edgewise.errors import DataError
    from edgewise.evaluate import average_precision

    here = case(kind, rows, replicate, seed, **place)
    options: dict[str, Any] = {"n_lambdas": path, "lambda_ratio": 0.003, "constant": "keep"}
    estimator = PseudoLikelihoodLasso if method == "MLE" else NodewiseLasso
    whole = estimator(**options).fit(here.train).path_
    paths = {"MLE": whole}
    if method != "MLE":
        paths = {
            "Wain Max": replace(whole, combine="max"),
            "Wain Min": replace(whole, combine="min"),
        }
    values: dict[str, Any] = {"paths": {}, "average_precision": {}, "widths": {}}
    arrays: dict[str, np.ndarray] = {}
    for name, each in paths.items():
        table = []
        for model, lam in zip(each.models(), each.lambdas):
            table.append({"lam": float(lam)} | score(here, model, model.density, model))
        values["paths"][name] = table
        if here.truth is not None:
            values["average_precision"][name] = average_precision(here.truth, each)
        if kind == "lattice":
            best = int(np.argmax([row["cll"] for row in table]))
            values["widths"][name] = _width(each.model(best))
        for density in densities:
            try:
                model = each.at_density(density)
            except DataError:
                continue
            label = f"{name} {density:g}"
            arrays[label] = model.coupling[np.triu_indices(model.n_variables, 1)].astype(np.float32)
            values.setdefault("at", {})[label] = score(here, model, model.density, model)
            if generated:
                from edgewise.predict.mixtures import sample_rows

                number = LASSOS.index(name)
                arrays[f"samples {label}"] = sample_rows(
                    [model], generated, np.random.default_rng([seed, 10 + number])
                )
    return values, arrays


# The tasks that several figures share


def place(profile: Profile, kind: str, data: str | None) -> dict[str, Any]:
    """What `case` must know besides kind, size, replicate and seed."""
    if kind == "mnist":
        return {"test_rows": profile.mnist_test_rows, "images": profile.images, "data": data}
    return {"test_rows": profile.test_rows, "side": profile.side}


def bayes_task(
    profile: Profile,
    seed: int,
    kind: str,
    rows: int,
    replicate: int,
    p0: float | None,
    *,
    engine: str = "particle",
    data: str | None = None,
    prior: dict[str, float] | None = None,
    label: str = "",
    generated: int = 0,
) -> Task:
    """The task of one posterior."""
    chains, thin = (profile.fixed_chains if kind != "block" and p0 is not None else 2), 1
    mixture = profile.mnist_mixture if kind == "mnist" else profile.mixture
    draws, warm_up = profile.draws[kind], profile.warm_up[kind]
    if kind != "block" and p0 is not None and p0 >= DENSE:
        draws, warm_up = int(draws * profile.dense_share), int(warm_up * profile.dense_share)
    if engine == "exact":
        draws, warm_up = profile.exact_draws, min(500, profile.exact_draws)
    if engine == "langevin":
        total = profile.langevin_iterations if kind == "block" else profile.langevin_lattice
        chains, warm_up = 1, total // 10
        draws = min(9000, max(8, (total - warm_up) // 1000))
        thin = (total - warm_up) // draws
    key = f"{kind}-n{rows}-r{replicate}-{engine}-{'learned' if p0 is None else f'p0_{p0:g}'}{label}"
    arguments: dict[str, Any] = {
        "kind": kind,
        "rows": rows,
        "replicate": replicate,
        "seed": seed,
        "engine": engine,
        "p0": p0,
        "draws": draws,
        "thin": thin,
        "warm_up": warm_up,
        "chains": chains,
        "mixture": mixture,
        "place": place(profile, kind, data),
    }
    if prior:
        arguments["prior"] = prior
    if generated:
        arguments["generated"] = generated
    iterations = chains * (warm_up + draws * thin)
    each = seconds_per_iteration(kind, rows, engine, p0, profile.side)
    return Task(key, "methods:bayes", arguments, iterations * each + scoring_seconds(profile, kind, mixture))


def lasso_task(
    profile: Profile,
    seed: int,
    kind: str,
    rows: int,
    replicate: int,
    method: str,
    *,
    data: str | None = None,
    densities: tuple[float, ...] = (),
    generated: int = 0,
    label: str = "",
) -> Task:
    """The task of one path; `method` is "Wain" or "MLE"."""
    arguments: dict[str, Any] = {
        "kind": kind,
        "rows": rows,
        "replicate": replicate,
        "seed": seed,
        "method": method,
        "path": profile.path,
        "place": place(profile, kind, data),
    }
    if densities:
        arguments |= {"densities": list(densities), "generated": generated}
    cost = {"block": 0.2, "lattice": 4.0, "mnist": 6.0 + rows / 30}[kind]
    models = profile.path * (2 if method == "Wain" else 1)
    return Task(
        f"{kind}-n{rows}-r{replicate}-{method.lower()}{label}",
        "methods:lasso",
        arguments,
        cost + scoring_seconds(profile, kind, models),
    )


def seconds_per_iteration(kind: str, rows: int, engine: str, p0: float | None, side: int) -> float:
    """Estimated time of one iteration on one idle core, for the budget that is printed."""
    dense = 0.0 if p0 is None else max(0.0, p0 - 0.1)
    if engine == "exact":
        return 0.4e-3
    if engine == "langevin":
        return 9e-6 if kind == "block" else 50e-6
    if kind == "block":
        return 1e-3 * (1 + rows / 500)
    if kind == "lattice":
        return 4e-3 * (side / 10) ** 2 * (1 + rows / 125) * (1 + 25 * dense + 25 * dense**2)
    return 26e-3 * (1 + rows / 125) * (1 + 5 * dense)


def scoring_seconds(profile: Profile, kind: str, models: int) -> float:
    """Estimated time to predict the test rows with so many models."""
    if kind == "block":
        return 2e-3 * models
    return models * (profile.test_rows if kind == "lattice" else profile.mnist_test_rows) * 20e-6
