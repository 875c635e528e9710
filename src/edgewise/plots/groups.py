"""Which colour a node has: its community, or a group that the user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots import layout
from edgewise.plots.style import COMMUNITIES, NODE, colour
from edgewise.priors import BlockInclusion

Groups = Sequence[Any] | Mapping[str, Any]


def node_groups(
    names: Sequence[str], inclusion: np.ndarray, given: Groups | None = None
) -> tuple[np.ndarray, list[str] | None]:
    """Number of every node's group, and the labels of the groups.

    Without `given` groups they are the communities of the probable edges, which have no labels; a node that
    is alone in its community has the number -1, and so have all of them where every given label is empty.
    """
    if given is None:
        group = layout.communities(inclusion)
        alone = np.bincount(group, minlength=len(names))[group] < 2
        return np.where(alone, -1, group), None
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing:
            raise DataError(f"There is no group for the variable {missing[0]!r}; give one for each.")
        given = [given[name] for name in names]
    if len(given) != len(names):
        raise DataError(f"There are {len(given)} group labels for {len(names)} variables; give one for each.")
    if not any(str(label) for label in given):
        return np.full(len(names), -1), None
    labels = list(dict.fromkeys(str(label) for label in given))
    return np.array([labels.index(str(label)) for label in given], int), labels


def learned_groups(source: Any) -> list[str] | None:
    """The communities that a block model has learned, as labels of the variables; None without one.

    A single community tells no variable from another: its labels are empty, and it has no colour.
    """
    posterior = getattr(source, "posterior_", source)
    if not isinstance(getattr(getattr(posterior, "prior", None), "inclusion", None), BlockInclusion):
        return None
    partition = posterior.communities().partition
    return [""] * len(partition) if partition.max() == 0 else [f"community {k + 1}" for k in partition]


def node_colours(group: np.ndarray, named: bool) -> list[str]:
    """Colours of their own for groups with a name and for communities."""
    if named:
        return [colour(k) for k in group.tolist()]
    return [NODE if k < 0 else COMMUNITIES[k % len(COMMUNITIES)] for k in group.tolist()]
