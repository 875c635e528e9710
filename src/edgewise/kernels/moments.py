"""Moments of the features over particles, counted in bit-packed words (docs/method.md, 10).

Sixty-four particles share a word; a feature of several variables is the AND of theirs, and the joint moment
of two features is the number of bits that their words have in common.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.bits import BITS, popcount
from edgewise.kernels.compiling import entry, kernel, loop

# Two tiles of a few thousand particles stay in the first-level cache.
TILE = 32


@loop
def pack(x, words):
    """Pack states (float32 0/1, a multiple of 64 of them) into words."""
    for w in range(words.shape[0]):
        word = np.uint64(0)
        for b in range(BITS):
            if x[BITS * w + b] > np.float32(0.5):
                word |= np.uint64(1) << np.uint64(b)
        words[w] = word


@loop
def join(words, other):
    """words &= other."""
    for w in range(words.shape[0]):
        words[w] &= other[w]


@loop
def count_ones(words):
    """Number of bits set."""
    total = 0
    for w in range(words.shape[0]):
        total += popcount(words[w])
    return total


@kernel
def pack_features(X, members, words):
    """Words of all features: the variables, then the cliques `members`."""
    p = X.shape[0]
    for i in range(p):
        pack(X[i], words[i])
    for k in range(members.shape[0]):
        own = words[p + k]
        first = words[members[k, 0]]
        for w in range(own.shape[0]):
            own[w] = first[w]
        for m in range(1, members.shape[1]):
            if members[k, m] >= 0:
                join(own, words[members[k, m]])


@kernel
def add_means(words, means):
    """Add the number of particles that show each feature."""
    for f in range(words.shape[0]):
        means[f] += count_ones(words[f])


@loop
def add_common(rows, columns, counts):
    """Add to `counts` the number of bits that each of `rows` has in common with each of `columns`."""
    for f in range(rows.shape[0]):
        for g in range(columns.shape[0]):
            total = 0
            for w in range(rows.shape[1]):
                total += popcount(rows[f, w] & columns[g, w])
            counts[f, g] += np.int32(total)


@kernel
def add_products(words, counts):
    """Add the number of particles that show each two features; the lower triangle, in tiles."""
    for f in range(0, words.shape[0], TILE):
        rows = words[f : f + TILE]
        for g in range(0, f + 1, TILE):
            columns = words[g : g + TILE]
            add_common(rows, columns, counts[f : f + TILE, g : g + TILE])


@entry
def count_rows(X, members, words, counts, products):
    """Add up features, and products of every two of them, over states (p, n) as over particles."""
    pack_features(X, members, words)
    add_means(words, counts)
    add_products(words, products)


@entry
def covariance_of(products, squares, particles, kept, result):
    """Average covariance within snapshots, both triangles, from the lower ones of their summed products.

    `squares` are the sums over snapshots of the products of counts.
    """
    scale = 1.0 / (kept * (particles - 1.0))
    for f in range(result.shape[0]):
        for g in range(f + 1):
            value = (products[f, g] - squares[f, g] / particles) * scale
            result[f, g] = value
            result[g, f] = value


@entry
def single_precision(matrix, result):
    """The lower triangle of a matrix, mirrored: symmetric to the last bit."""
    for f in range(result.shape[0]):
        for g in range(f + 1):
            value = np.float32(matrix[f, g])
            result[f, g] = value
            result[g, f] = value
