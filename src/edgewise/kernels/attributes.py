"""Attributes: a logistic regression of inclusion as its prior (docs/method.md, 2.11).

What is known of the two variables of a pair (the same subscale, a distance) says how likely it is to be
active; with which weights is learned. Pairs with the same attributes count together. The posterior of
the coefficients given the graph is log-concave; each is drawn by slice sampling (Neal 2003).

``Regression``: ``inside[a]`` whether candidate a belongs to the model, ``row[a]`` the row of the ``design``
that it has; ``room[r]`` how many candidates have row r; ``mean[k]`` and ``sd[k]`` the normal prior of
coefficient k. Scratch: ``edges[r]`` active candidates and ``linear[r]`` present log odds of the row.

The coefficients of a chain are kept in ``chain.hyper`` behind p0 and sigma0.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels.codes import INCLUSION_RATE, MODEL_STATE
from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import uniform

Regression = namedtuple("Regression", "inside row design room mean sd edges linear")
SWEEPS = 3
# First width of a slice in units of the prior's, and most steps out of it.
WIDTH = 1.0
STEPS_OUT = 50
MOST_SHRINKS = 200


def empty_regression(inside: np.ndarray, design: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> Regression:
    """A regression of the candidates that are `inside`, whose attributes are the rows of `design`."""
    rows, number = np.unique(design[inside], axis=0, return_inverse=True)
    row = np.zeros(len(inside), np.int64)
    row[inside] = number.ravel()
    return Regression(
        np.ascontiguousarray(inside),
        row,
        np.ascontiguousarray(rows, float),
        np.bincount(row[inside], minlength=len(rows)).astype(float),
        np.ascontiguousarray(mean, float),
        np.ascontiguousarray(sd, float),
        edges=np.zeros(len(rows)),
        linear=np.zeros(len(rows)),
    )


@kernel
def log_one_plus_exp(x):
    """log(1 + e^x)."""
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


@kernel
def log_conditional(model, k, shift, value):
    """Log density of coefficient `k` at `value`, which is by `shift` away from the present linear terms."""
    z = (value - model.mean[k]) / model.sd[k]
    total = -0.5 * z * z
    for r in range(model.room.shape[0]):
        linear = model.linear[r] + shift * model.design[r, k]
        total += model.edges[r] * linear - model.room[r] * log_one_plus_exp(linear)
    return total


@kernel
def slice_coefficient(model, k, present, stream):
    """A draw of coefficient `k` given the others."""
    level = log_conditional(model, k, 0.0, present) + math.log(uniform(stream))
    width = WIDTH * model.sd[k]
    low = present - width * uniform(stream)
    high = low + width
    for _ in range(STEPS_OUT):
        if log_conditional(model, k, low - present, low) <= level:
            break
        low -= width
    for _ in range(STEPS_OUT):
        if log_conditional(model, k, high - present, high) <= level:
            break
        high += width
    for _ in range(MOST_SHRINKS):
        value = low + (high - low) * uniform(stream)
        if log_conditional(model, k, value - present, value) > level:
            return value
        if value < present:
            low = value
        else:
            high = value
    return present


@kernel
def draw_regression(model, graph, hyper, log_odds, stream):
    """Draw the coefficients given the graph, and lay out the log odds that they make."""
    for r in range(model.room.shape[0]):
        model.edges[r] = 0.0
        model.linear[r] = 0.0
        for k in range(model.mean.shape[0]):
            model.linear[r] += hyper[MODEL_STATE + k] * model.design[r, k]
    for position in range(graph.counts[0]):
        a = graph.listed[position]
        if model.inside[a]:
            model.edges[model.row[a]] += 1.0
    for _ in range(SWEEPS):
        for k in range(model.mean.shape[0]):
            present = hyper[MODEL_STATE + k]
            value = slice_coefficient(model, k, present, stream)
            for r in range(model.room.shape[0]):
                model.linear[r] += (value - present) * model.design[r, k]
            hyper[MODEL_STATE + k] = value
    total, count = 0.0, 0.0
    for r in range(model.room.shape[0]):
        total += model.room[r] * math.exp(-log_one_plus_exp(-model.linear[r]))
        count += model.room[r]
    for a in range(model.inside.shape[0]):
        if model.inside[a]:
            log_odds[a] = model.linear[model.row[a]]
    if count > 0.0:
        hyper[INCLUSION_RATE] = min(max(total / count, 1e-15), 1.0 - 1e-15)
