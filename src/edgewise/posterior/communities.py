"""Communities of variables: what the draws of a block model say of the partition (docs/method.md, 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgewise.errors import DataError
from edgewise.priors.communities import BlockLayout, first_labels

if TYPE_CHECKING:
    import pandas

    from edgewise.posterior.posterior import Posterior

# Partitions that a candidate is compared with, and cells of their tables at a time.
MOST_SAMPLES = 400
MOST_CELLS = 4e7
MOST_PASSES = 20
LINKAGE_CUTS = 15


@dataclass(frozen=True, eq=False)
class Communities:
    """The posterior of the partition of the variables into communities.

    Attributes
    ----------
    names : tuple of str
        Names of the variables.
    partition : int array (p,)
        The partition with the least expected variation of information from that of a draw (8.5),
        communities numbered from the largest.
    together : float array (p, p)
        Probability that two variables are in the same community.
    number : float array (p + 1,)
        Posterior probability of each number of communities that have members.
    prior_number : float array (p + 1,)
        The same before the data.
    number_ess : float
        Effective draws of the number of communities.
    """

    names: tuple[str, ...]
    partition: np.ndarray
    together: np.ndarray
    number: np.ndarray
    prior_number: np.ndarray
    number_ess: float

    @property
    def members(self) -> list[tuple[str, ...]]:
        """Names of the variables of every community of :attr:`partition`, the largest first."""
        return [
            tuple(np.array(self.names, object)[self.partition == k])
            for k in range(int(self.partition.max()) + 1)
        ]

    @property
    def log10_bf(self) -> np.ndarray:
        """Log10 Bayes factor of each number of communities against all others (8.6): (p + 1,).

        Of a number that no draw has it is the one of a single effective draw, an upper bound.
        """
        least = 1 / (self.number_ess + 1)
        share = np.clip(self.number, least, 1 - least)
        prior = np.clip(self.prior_number, 1e-300, 1 - 1e-16)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log10(share / (1 - share)) - np.log10(prior / (1 - prior)))

    def __str__(self) -> str:
        shown = [
            f"{k} ({self.number[k]:.2f})" for k in np.argsort(-self.number)[:3] if self.number[k] > 0.005
        ]
        parts = [f"  {k + 1}: {', '.join(group)}" for k, group in enumerate(self.members)]
        note = [self.note] if self.note else []
        return "\n".join([f"Number of communities (probability): {', '.join(shown)}", *note, *parts])

    @property
    def note(self) -> str:
        """Why the partition has not the most probable number of communities; empty if it has."""
        count, likely = len(self.members), int(self.number.argmax())
        if count == likely:
            return ""
        return (
            f"The partition closest to all draws has {count}, though {likely} "
            f"{'is' if likely == 1 else 'are'} most probable: "
            + (
                "the draws split off variables, but not the same ones."
                if count < likely
                else "the draws merge communities, but not the same ones."
            )
        )

    def table(self) -> pandas.DataFrame:
        """One row per variable: its community, and how firmly it belongs there.

        ``together`` is the mean probability of being with the others of its community, ``elsewhere`` the
        largest such mean over the other communities.
        """
        import pandas

        count = int(self.partition.max()) + 1
        own, other = np.ones(len(self.names)), np.zeros(len(self.names))
        for i in range(len(self.names)):
            for k in range(count):
                rest = (self.partition == k) & (np.arange(len(self.names)) != i)
                if not rest.any():
                    continue
                mean = float(self.together[i, rest].mean())
                if k == self.partition[i]:
                    own[i] = mean
                else:
                    other[i] = max(other[i], mean)
        return pandas.DataFrame(
            {"variable": self.names, "community": self.partition + 1, "together": own, "elsewhere": other}
        )

    def number_table(self) -> pandas.DataFrame:
        """One row per number of communities: prior and posterior probability, and the Bayes factor."""
        import pandas

        shown = np.flatnonzero((self.number > 0) | (self.prior_number > 0.001))
        shown = shown[shown > 0]
        return pandas.DataFrame(
            {
                "communities": shown,
                "prior": self.prior_number[shown],
                "posterior": self.number[shown],
                "log10_bf": self.log10_bf[shown],
            }
        )


def communities(posterior: Posterior) -> Communities:
    """The communities of a posterior; see :meth:`edgewise.Posterior.communities`."""
    from edgewise.draws.convergence import effective_draws

    model = posterior._resolved_prior.model
    if not isinstance(model, BlockLayout):
        raise DataError(
            "This posterior knows no communities of variables: fit with Prior(inclusion=BlockInclusion()), "
            "on the command line --communities."
        )
    states = np.stack([chain.model_state for chain in posterior.draws if chain.model_state is not None])
    number = states.max(axis=2) + 1
    p = posterior.n_variables
    known, counts = np.unique(canonical(states.reshape(-1, p)), axis=0, return_counts=True)
    share = counts / counts.sum()
    together = np.zeros((p, p))
    for partition, weight in zip(known, share):
        together += weight * (partition[:, None] == partition)
    varies = np.ptp(number) > 0
    return Communities(
        posterior.names,
        point_partition(known, share, together),
        together,
        np.bincount(number.ravel(), minlength=p + 1) / number.size,
        model.prior_number,
        float(effective_draws(number[None].astype(float))[0]) if varies else float(number.size),
    )


def canonical(states: np.ndarray) -> np.ndarray:
    """Rows of labels, numbered in each row in the order in which they appear."""
    rows, inverse = np.unique(states, axis=0, return_inverse=True)
    return np.array([first_labels(row) for row in rows])[inverse.ravel()]


def point_partition(known: np.ndarray, share: np.ndarray, together: np.ndarray) -> np.ndarray:
    """The partition with the least expected variation of information (8.5), the largest community first.

    The candidates are the partitions of draws and cuts of a tree of the variables; the best one is improved
    by moving variables one at a time.
    """
    p = known.shape[1]
    order = np.argsort(-share, kind="stable")
    fit = max(20, min(MOST_SAMPLES, int(MOST_CELLS / (p * 100))))
    chosen = order[:fit]
    samples, weight = known[chosen], share[chosen] / share[chosen].sum()
    table = np.zeros((len(samples), p, int(samples.max()) + 1))
    np.put_along_axis(table, samples[:, :, None], 1.0, axis=2)
    candidates = [*known[order[:60]], *_cuts(together)]
    losses = [expected_variation(partition, table, weight) for partition in candidates]
    best = np.array(candidates[int(np.argmin(losses))])
    least = min(losses)
    for _ in range(MOST_PASSES):
        before = least
        for i in range(p):
            for k in range(int(best.max()) + 2):
                trial = best.copy()
                trial[i] = k
                loss = expected_variation(trial, table, weight)
                if loss < least - 1e-12:
                    best, least = first_labels(trial), loss
                    break
        if least == before:
            break
    sizes = np.bincount(best)
    rank = np.empty(len(sizes), int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return np.asarray(rank[best])


def expected_variation(partition: np.ndarray, table: np.ndarray, weight: np.ndarray) -> float:
    """Expected variation of information of a partition from samples, but for what it does not depend on.

    ``table[s, i, k]`` says whether sample s has variable i in community k.
    """
    from scipy.special import xlogy

    p = len(partition)
    own = np.zeros((p, int(partition.max()) + 1))
    own[np.arange(p), partition] = 1.0
    joint = np.einsum("ik,sil->skl", own, table, optimize=True)
    sizes = own.sum(axis=0)
    return float((xlogy(sizes, sizes).sum() - 2 * weight @ xlogy(joint, joint).sum(axis=(1, 2))) / p)


def _cuts(together: np.ndarray) -> list[np.ndarray]:
    """Partitions of a tree of the variables by how often they are together."""
    from scipy.cluster.hierarchy import average, cut_tree
    from scipy.spatial.distance import squareform

    p = len(together)
    if p < 3:
        return [np.zeros(p, int), np.arange(p)]
    distance = np.clip(1 - (together + together.T) / 2, 0, 1)
    np.fill_diagonal(distance, 0.0)
    tree = average(squareform(distance, checks=False))
    return [first_labels(cut_tree(tree, [k]).ravel()) for k in range(1, min(LINKAGE_CUTS, p) + 1)]
