"""Potentials of levels and of states: what parameters make of them, and the probabilities that follow."""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel


@kernel
def level_potentials(levels, basis, bias_start, bias, potentials):
    """Thresholds of all levels (``potentials[i, c]``) from the coordinates ``bias`` in their basis."""
    for i in range(levels.shape[0]):
        begin = bias_start[i]
        for c in range(levels[i]):
            total = 0.0
            for t in range(bias_start[i + 1] - begin):
                total += basis[i, c, t] * bias[begin + t]
            potentials[i, c] = total


@kernel
def normalise(logs, size):
    """Make probabilities of the first `size` log weights, in their place."""
    top = logs[0]
    for s in range(size):
        top = logs[s] if logs[s] > top else top
    total = 0.0
    for s in range(size):
        logs[s] = math.exp(logs[s] - top)
        total += logs[s]
    for s in range(size):
        logs[s] /= total
