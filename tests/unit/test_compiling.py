"""Kernels make no arrays of their own but small ones on the stack."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import NumbaError

from edgewise.kernels.compiling import kernel, lanes_of_terms, small


@kernel
def cumulated(x, out):
    """Sums of x, by way of two arrays on the stack."""
    first = small(3)
    second = lanes_of_terms(2, 4)
    for k in range(3):
        first[k] = x[k] + (first[k - 1] if k else 0.0)
    for row in range(2):
        for k in range(4):
            second[row, k] = 10 * row + k
    for k in range(3):
        out[k] = first[k] + second[1, 3]


def test_arrays_on_the_stack():
    out = np.empty(3)
    for _ in range(3):
        cumulated(np.array([1.0, 2.0, 4.0]), out)
        np.testing.assert_array_equal(out, [14.0, 16.0, 20.0])


def test_a_kernel_cannot_make_an_array():
    @kernel
    def makes(n):
        return np.zeros(n).sum()

    with pytest.raises(NumbaError, match="array passed into the function"):
        makes(3)


def test_the_size_must_be_a_constant():
    @kernel
    def varies(n):
        return small(n)[0]

    with pytest.raises(NumbaError, match="constant"):
        varies(3)
