"""Names beside nodes and lines around nodes, in plain geometry: nothing covers anything it need not cover.

All lengths are in one unit, points of a figure for instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# How far the middle of a line is moved aside, in parts of its length, in the order of trying.
BENDS = (0.0, 0.1, -0.1, 0.2, -0.2, 0.06, -0.06, 0.15, -0.15, 0.32, -0.32, 0.45, -0.45)
# Where a name may stand, as a direction from its node; the first are preferred.
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.75, 0.75), (-0.75, 0.75), (0.75, -0.75), (-0.75, -0.75))
LETTER = 0.56
LINE = 1.25
MOST_BENT = 4_000


class Place(NamedTuple):
    """Where a name stands: the middle of its box, and half its width and height."""

    x: float
    y: float
    half_width: float
    half_height: float


def curves(positions: np.ndarray, pairs: np.ndarray, clearance: float, steps: int = 15) -> np.ndarray:
    """Lines between nodes (k, steps, 2), bent where they would run through a third node.

    Parameters
    ----------
    positions : (p, 2) array
        The nodes.
    pairs : (k, 2) array
        Ends of the lines.
    clearance : float
        How near a line may come to the middle of a node that is not its own.
    """
    start, along = positions[pairs[:, 0]], positions[pairs[:, 1]] - positions[pairs[:, 0]]
    aside = np.stack([-along[:, 1], along[:, 0]], axis=1)
    t = np.linspace(0, 1, steps)[None, :, None]
    straight: np.ndarray = start[:, None] + t * along[:, None]
    if len(pairs) > MOST_BENT or len(positions) < 3:
        return straight
    result, best = straight.copy(), np.full(len(pairs), -1.0)
    for bend in BENDS:
        waiting = np.flatnonzero(best < clearance)
        if not len(waiting):
            break
        tried = straight[waiting] + 4 * t * (1 - t) * bend * aside[waiting, None]
        free = np.array([_clearance(line, positions, pairs[k]) for line, k in zip(tried, waiting)])
        better = free > best[waiting] + (0.0 if bend == 0 else 1e-9)
        result[waiting[better]] = tried[better]
        best[waiting[better]] = free[better]
    return result


def _clearance(line: np.ndarray, positions: np.ndarray, ends: np.ndarray) -> float:
    """Least distance of a line from the nodes that are not its ends."""
    step = np.diff(line, axis=0)
    length = np.maximum((step**2).sum(1), 1e-12)
    from_start = positions[:, None] - line[None, :-1]
    share = np.clip((from_start * step).sum(2) / length, 0, 1)
    gap = from_start - share[..., None] * step
    distance = np.sqrt((gap**2).sum(2)).min(1)
    distance[ends] = np.inf
    return float(distance.min())


def names(
    positions: np.ndarray,
    radii: np.ndarray,
    texts: Sequence[str],
    font: float,
    lines: np.ndarray,
    box: tuple[float, float, float, float],
    order: Sequence[int],
    force: bool = False,
) -> list[Place | None]:
    """Places for names that cover no other name, no node and as few lines as can be.

    Names are placed in the given `order`; one that finds no free place is left out (None), unless `force`
    asks for the least bad place. `lines` (k, steps, 2) are sampled as :func:`curves` gives them, and
    `box` (left, bottom, right, top) is what names must stay inside.
    """
    points = lines.reshape(-1, 2)
    middle = (positions.min(0) + positions.max(0)) / 2
    taken: list[Place] = []
    result: list[Place | None] = [None] * len(texts)
    for i in order:
        width, height = LETTER * font * max(len(texts[i]), 1) / 2, LINE * font / 2
        best, least = None, np.inf
        for number, side in enumerate(SIDES):
            away = radii[i] + 0.25 * font
            x = positions[i, 0] + side[0] * (away + width)
            y = positions[i, 1] + side[1] * (away + height)
            if abs(side[0]) != 1 and side[0]:
                y = positions[i, 1] + side[1] * (away + 0.6 * height)
            place = Place(float(x), float(y), width, height)
            cost = _cost(place, i, positions, radii, points, taken, box)
            # A little rather outwards, and in the order of the sides.
            outwards = side[0] * (positions[i, 0] - middle[0]) + side[1] * (positions[i, 1] - middle[1])
            cost += 0.02 * number - 0.3 * np.sign(outwards)
            if cost < least:
                best, least = place, cost
        if best is not None and (least < COVERED - 1 or force):
            taken.append(best)
            result[i] = best
    return result


COVERED = 500.0


def _cost(
    place: Place,
    own: int,
    positions: np.ndarray,
    radii: np.ndarray,
    points: np.ndarray,
    taken: Sequence[Place],
    box: tuple[float, float, float, float],
) -> float:
    x, y, width, height = place
    left, bottom, right, top = box
    cost = 0.0
    if x - width < left or x + width > right or y - height < bottom or y + height > top:
        cost += COVERED
    for other in taken:
        if abs(x - other.x) < width + other.half_width and abs(y - other.y) < height + other.half_height:
            cost += COVERED
    near = np.maximum(np.abs(positions - [x, y]) - [width, height], 0)
    covered = (near**2).sum(1) < radii**2
    covered[own] = False
    cost += COVERED * float(covered.sum())
    if len(points):
        inside = (np.abs(points[:, 0] - x) < width) & (np.abs(points[:, 1] - y) < height)
        cost += min(float(inside.sum()), 20.0)
    return cost
