"""One value per candidate, by name: the columns of the summary, each computed alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from edgewise.draws import convergence
from edgewise.errors import DataError
from edgewise.kernels.codes import FORBIDDEN, FORCED
from edgewise.posterior import summaries
from edgewise.posterior.levels import only_binary
from edgewise.reading import physical_memory

if TYPE_CHECKING:
    import scipy.sparse

    from edgewise.posterior.posterior import Posterior

CODINGS = ("binary", "ising")
STATISTICS = ("mean", "sd", "median", "hdi_low", "hdi_high")
GIVEN = "_if_included"
# In the order of the summary's table, which has the moments of the included draws only.
SUMMARY = (
    *("inclusion", "mcse", "log10_bf", "bf_bound", "evidence"),
    *STATISTICS,
    *("mean_if_included", "sd_if_included", "r_hat", "ess_bulk", "flips", "note"),
)
COLUMNS = (*SUMMARY, "frequency", *(f"{name}{GIVEN}" for name in STATISTICS[2:]))


def edge_column(
    posterior: Posterior, name: str, coding: str, thresholds: tuple[float, float], probability: float
) -> np.ndarray:
    """One column: (M,); see :meth:`edgewise.Posterior.edge_values`."""
    scale = coding_scale(posterior, coding)
    if name in STATISTICS:
        return scale * _statistic(posterior, name, False, checked_share(probability))
    if name.removesuffix(GIVEN) in STATISTICS:
        return scale * _statistic(posterior, name.removesuffix(GIVEN), True, checked_share(probability))
    if name == "evidence":
        weak, strong = thresholds
        if not 1 < weak <= strong < np.inf:
            raise DataError(f"thresholds must be two ascending Bayes factors above 1, not {thresholds!r}.")
        factors, bound = posterior._bayes_factors
        return summaries.evidence_category(factors, (weak, strong), bound)
    if name not in _PLAIN:
        raise DataError(f"There is no column {name!r}; choose one of {', '.join(COLUMNS)}.")
    return _PLAIN[name](posterior)


def pair_matrix(posterior: Posterior, values: np.ndarray) -> np.ndarray:
    """Lay values of the candidates (M,) out as a symmetric matrix; larger cliques are left out."""
    needed, memory = 8 * posterior.n_variables**2, physical_memory()
    if needed > memory / 4:
        raise DataError(
            f"A matrix of all pairs of {posterior.n_variables:,} variables takes {needed / 1e9:,.1f} GB, and "
            f"this machine has {memory / 1e9:,.0f}. sparse_pair_values('inclusion') has the same values as a "
            "sparse matrix, summary() and edge_values('inclusion') have them as a table and as a vector."
        )
    members = posterior.features.members
    pairs = slice(None) if posterior.features.pairs_only else members[:, 2] < 0
    size = (posterior.n_variables, posterior.n_variables)
    matrix = np.full(size, "", object) if values.dtype == object else np.zeros(size)
    first, second = members[pairs, 0], members[pairs, 1]
    matrix[first, second] = matrix[second, first] = values[pairs]
    return matrix


def sparse_matrix(posterior: Posterior, values: np.ndarray) -> scipy.sparse.csr_array:
    """The same as a sparse matrix."""
    from scipy.sparse import coo_array

    members = posterior.features.members
    pairs = slice(None) if posterior.features.pairs_only else members[:, 2] < 0
    i, j, there = members[pairs, 0], members[pairs, 1], values[pairs]
    size = (posterior.n_variables, posterior.n_variables)
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    return coo_array((np.concatenate([there, there]), ends), shape=size).tocsr()


def coding_scale(posterior: Posterior, coding: str) -> float:
    """What a parameter in 0/1 coding is multiplied by in `coding`."""
    if coding not in CODINGS:
        raise DataError(f"coding must be 'binary' (0/1) or 'ising' (-1/+1), not {coding!r}.")
    if coding == "ising":
        only_binary(posterior, "The Ising coding", "coding='binary'")
    if coding == "ising" and not posterior.features.pairs_only:
        raise DataError(
            "The Ising coding exists for pairs only: a clique of three in 0/1 coding spreads over its "
            "pairs and single variables in -1/+1 coding, so that even the graph would differ. "
            "Use coding='binary'."
        )
    return 1.0 if coding == "binary" else 0.25


def checked_share(probability: float) -> float:
    """The content of an interval, if it is one."""
    if not 0 < probability < 1:
        raise DataError(f"probability must lie strictly between 0 and 1, not {probability!r}.")
    return probability


def signed(value: float, digits: int = 2) -> str:
    """A coupling for reading: with its sign, and zero without one.

    >>> signed(0.004), signed(-0.004), signed(-1.5)
    ('0.00', '0.00', '-1.50')
    """
    text = f"{value:+.{digits}f}"
    return text if text.strip("+-0.") else text[1:]


def _statistic(posterior: Posterior, name: str, given_inclusion: bool, probability: float) -> np.ndarray:
    if name in ("mean", "sd"):
        return posterior._moments(given_inclusion)[name == "sd"]
    found = posterior._intervals(given_inclusion, probability)
    return found[("median", "hdi_low", "hdi_high").index(name)]


def _notes(posterior: Posterior) -> np.ndarray:
    """In words, what R-hat and ESS cannot say of each indicator; empty where they say it all."""
    table = posterior._table
    counts = table.counts
    ups, downs = summaries.transitions(table)
    total = f"{table.total:,} draw{'s' * (table.total != 1)}"
    notes = np.full(table.n_cliques, "", object)
    notes[counts == 0] = f"never active in {total}: no flips, so R-hat does not apply"
    notes[counts == table.total] = f"active in all {total}: no flips, so R-hat does not apply"
    stuck = np.flatnonzero((ups + downs == 0) & (counts > 0) & (counts < table.total))
    for clique in stuck:
        notes[clique] = (
            f"never flips within a chain: active in {counts[clique] // table.n_draws} of {table.n_chains} "
            "chains and absent in the others, so the chains disagree"
        )
    if table.n_draws < convergence.FEWEST_DRAWS:
        notes[(counts > 0) & (counts < table.total)] = f"too few draws for R-hat ({table.n_draws} per chain)"
    status = posterior._resolved_prior.status
    notes[status == FORCED] = "forced by the prior"
    notes[status == FORBIDDEN] = "forbidden by the prior"
    return notes


# The columns without options; copies, because the posterior keeps the originals.
_PLAIN: dict[str, Callable[[Posterior], np.ndarray]] = {
    "inclusion": lambda posterior: posterior._edge_inclusion.copy(),
    "frequency": lambda posterior: posterior._table.counts / posterior._table.total,
    "mcse": lambda posterior: posterior._quality.mcse.copy(),
    "log10_bf": lambda posterior: posterior._bayes_factors[0].copy(),
    "bf_bound": lambda posterior: posterior._bayes_factors[1].copy(),
    "r_hat": lambda posterior: posterior._quality.r_hat.copy(),
    "ess_bulk": lambda posterior: posterior._quality.ess.copy(),
    "flips": lambda posterior: np.add(*summaries.transitions(posterior._table)),
    "note": _notes,
}
