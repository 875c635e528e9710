"""Where the nodes go: positions that are a function of the inclusion probabilities and nothing else.

No random start is used, and edges count by their probability rather than by a cut-off, so that two fits of
the same data with different seeds give nearly the same picture.
"""

from __future__ import annotations

import numpy as np

from edgewise.errors import DataError

WEAK = 0.2
"""Probability below which an edge no longer pulls its ends together."""
APART = 30
"""Number of nodes from which groups are set apart."""
MANY = 150
"""Number of linked nodes from which networkx finds the groups."""
GAP = 1.5
"""How much farther apart nodes of different groups are."""
WEAK_LENGTH = 3.5
"""Length of an edge of that probability; certain edges have length 1."""


def circle(n_nodes: int) -> np.ndarray:
    """Positions on the unit circle, clockwise from the top, in the order of the columns."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(n_nodes) / max(n_nodes, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def grid(rows: int, columns: int, n_nodes: int | None = None) -> np.ndarray:
    """Positions of pixels, row by row from the top left, one unit apart.

    >>> grid(2, 2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]
    """
    if n_nodes is not None and rows * columns != n_nodes:
        raise DataError(
            f"A grid of {rows} x {columns} has {rows * columns} places and there are {n_nodes} variables; "
            "give the rows and columns of the images."
        )
    down, across = np.divmod(np.arange(rows * columns), columns)
    return np.stack([across, 0.0 - down], axis=1).astype(float)


def stress(inclusion: np.ndarray, iterations: int = 150) -> np.ndarray:
    """Positions whose distances match the lengths of the shortest paths between the nodes.

    Parameters
    ----------
    inclusion : (p, p) array
        Symmetric inclusion probabilities.
    iterations : int
        Most steps of stress majorisation (Gansner, Koren & North 2004); fewer beyond 400 nodes.

    Returns
    -------
    (p, 2) array
        Centred, within the unit disc, turned to be as close as possible to :func:`circle`.
    """
    count = len(inclusion)
    reference = circle(count)
    if count < 3:
        return reference
    distance = path_lengths(inclusion)
    if count >= APART:
        # Groups stand apart, so that their few links among each other are seen.
        group = communities(inclusion)
        alone = np.bincount(group, minlength=count)[group] < 2
        near = (group[:, None] == group) | alone[:, None] | alone
        distance = np.where(near, distance, GAP * distance)
    positions = _turn(_scaled_eigenvectors(distance), reference)
    # A trace of the circle separates nodes that the distances cannot tell apart.
    positions = positions + 0.01 * distance.mean() * reference
    pull = np.zeros_like(distance)
    off = ~np.eye(count, dtype=bool)
    pull[off] = distance[off] ** -2.0
    # The Laplacian is singular along translations only; adding a constant fixes the centre.
    solver = np.linalg.inv(np.diag(pull.sum(1)) - pull + 1.0 / count)
    wanted = pull * distance
    for _ in range(iterations if count <= 400 else max(30, iterations * 400 // count)):
        square = (positions**2).sum(1)
        norm = np.sqrt(np.maximum(square[:, None] + square - 2 * positions @ positions.T, 0))
        ratio = np.divide(wanted, norm, out=np.zeros_like(norm), where=norm > 1e-9)
        update = solver @ (ratio.sum(1)[:, None] * positions - ratio @ positions)
        update -= update.mean(0)
        moved = np.abs(update - positions).max()
        positions = update
        if moved < 1e-5 * distance.max():
            break
    positions = _spread(_turn(positions, reference))
    result: np.ndarray = positions / max(np.sqrt((positions**2).sum(1)).max(), 1e-12)
    return result


def communities(inclusion: np.ndarray) -> np.ndarray:
    """Group of every node in the graph of the edges that are more probable than not, the largest first.

    Groups maximise modularity greedily; nodes without an edge are each a group of their own.
    """
    linked = np.triu(np.nan_to_num(inclusion), 1) >= 0.5
    linked = linked | linked.T
    result = np.arange(len(linked))
    inside = np.flatnonzero(linked.any(0))
    if len(inside):
        found = _greedy(linked[np.ix_(inside, inside)])
        found = sorted(found, key=lambda group: (-len(group), min(group)))
        number = np.concatenate([np.full(len(group), k) for k, group in enumerate(found)])
        result[inside[np.concatenate(found)]] = number
        # Nodes without an edge come after all groups.
        alone = np.flatnonzero(~linked.any(0))
        result[alone] = len(found) + np.arange(len(alone))
    return result


def _greedy(linked: np.ndarray) -> list[np.ndarray]:
    """Groups of greedy modularity (Clauset, Newman & Moore 2004), merged two by two while that helps."""
    if len(linked) > MANY:
        from networkx import from_numpy_array
        from networkx.algorithms.community import greedy_modularity_communities

        return [np.array(sorted(group)) for group in greedy_modularity_communities(from_numpy_array(linked))]
    # In small graphs a matrix does it, and networkx takes a tenth of a second to load.
    share = linked / linked.sum()
    ends = share.sum(0)
    groups = [np.array([node]) for node in range(len(linked))]
    while len(groups) > 1:
        gain = np.where(share > 0, share - np.outer(ends, ends), -np.inf)
        np.fill_diagonal(gain, -np.inf)
        first, second = sorted(divmod(int(gain.argmax()), len(groups)))
        if not gain[first, second] > 0:
            break
        share[first] += share[second]
        share[:, first] += share[:, second]
        ends[first] += ends[second]
        share = np.delete(np.delete(share, second, 0), second, 1)
        ends = np.delete(ends, second)
        groups[first] = np.concatenate([groups[first], groups.pop(second)])
    return groups


def _spread(positions: np.ndarray, rounds: int = 60) -> np.ndarray:
    """Push nodes apart that stand closer than their share of the picture allows."""
    count = len(positions)
    size = np.ptp(positions, axis=0).max()
    least = 0.55 * size / np.sqrt(count)
    positions = positions.copy()
    for _ in range(rounds):
        gap = positions[:, None] - positions
        distance = np.sqrt((gap**2).sum(2))
        np.fill_diagonal(distance, np.inf)
        near = distance < least
        if not near.any():
            break
        push = np.zeros_like(distance)
        push[near] = (least - distance[near]) / np.maximum(distance[near], 1e-9 * size)
        positions += 0.25 * (push[..., None] * gap).sum(1)
    return positions


def path_lengths(inclusion: np.ndarray) -> np.ndarray:
    """Shortest-path lengths when an edge is the longer the less probable it is.

    Nodes without a path are set about as far apart as an ordinary pair with a path.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    probability = np.where(np.isfinite(inclusion), inclusion, 0.0)
    rows, columns = np.nonzero(np.triu(probability, 1) > WEAK)
    values = np.clip(probability[rows, columns], WEAK, 1.0)
    lengths = 1 + (WEAK_LENGTH - 1) * np.log(values) / np.log(WEAK)
    graph = csr_array((lengths, (rows, columns)), shape=probability.shape)
    distance = np.asarray(shortest_path(graph, directed=False))
    reached = np.isfinite(distance)
    distance[~reached] = max(WEAK_LENGTH, np.quantile(distance[reached], 0.6))
    return distance


def _scaled_eigenvectors(distance: np.ndarray) -> np.ndarray:
    """Classical scaling: the two leading axes of the doubly centred squared distances."""
    square = distance**2
    centred = -0.5 * (square - square.mean(0) - square.mean(1)[:, None] + square.mean())
    values, vectors = np.linalg.eigh(centred)
    result: np.ndarray = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-12))
    return result


def _turn(positions: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Centre, then turn or mirror the positions to lie closest to the reference (Procrustes)."""
    centred = positions - positions.mean(0)
    left, _, right = np.linalg.svd(centred.T @ reference)
    result: np.ndarray = centred @ (left @ right)
    return result
