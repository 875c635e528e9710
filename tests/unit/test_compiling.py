"""Entries, kernels that only kernels call, answers by type, and arrays on the stack."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba.core.errors import NumbaError

from edgewise.kernels.compiling import answer, entry, exposed, kernel, lanes_of_terms, question, small


@entry
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
    @entry
    def makes(n):
        return np.zeros(n).sum()

    with pytest.raises(NumbaError, match="array passed into the function"):
        makes(3)


def test_the_size_must_be_a_constant():
    @entry
    def varies(n):
        return small(n)[0]

    with pytest.raises(NumbaError, match="constant"):
        varies(3)


Plain = namedtuple("Plain", "values")
Scaled = namedtuple("Scaled", "values factor")


@question
def value_at(source, k):
    """A question for the tests."""


@answer(value_at, Plain)
def _plain_value(source, k):
    return source.values[k]


@answer(value_at, Scaled)
def _scaled_value(source, k):
    return source.factor * source.values[k]


@kernel
def doubled(source, k):
    return 2.0 * value_at(source, k)


@entry
def asked(source, k):
    return doubled(source, k)


def test_the_answer_is_chosen_by_type():
    values = np.array([1.0, 2.0, 4.0])
    assert asked(Plain(values), 2) == 8.0
    assert asked(Scaled(values, 10.0), 1) == 40.0
    assert len(asked.signatures) == 2
    assert exposed(doubled)(Plain(values), 0) == 2.0


def test_a_question_nobody_answers_does_not_compile():
    with pytest.raises(NumbaError, match="value_at"):
        asked(namedtuple("Stranger", "values")(np.zeros(2)), 0)


def test_an_answer_takes_what_the_question_takes():
    with pytest.raises(TypeError, match=r"must take what value_at takes: \(source, k\)"):
        answer(value_at, Plain)(lambda source: 0.0)


def test_a_kernel_is_not_for_python():
    for _ in range(2):
        with pytest.raises(TypeError, match=r"doubled can be called by kernels only; exposed\(\)"):
            doubled(Plain(np.zeros(2)), 0)
