"""Settings of the exact engine, for two levels and for more."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExactSettings:
    """Settings of the exact engine; nobody needs to touch them.

    Attributes
    ----------
    warm_up : int
        Iterations before the first kept draw.
    thin : int
        Iterations between kept draws.
    swaps : int
        Swaps tried per iteration; -1 is one for every four variables.
    scan_floor : float
        Smallest share of the iterations in which the indicator of a hopeless candidate is decided.
    """

    warm_up: int = 500
    thin: int = 1
    swaps: int = -1
    scan_floor: float = 0.2
