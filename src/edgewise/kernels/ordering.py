"""In which order to eliminate the variables of a graph, found from the graph alone (docs/method.md, 3).

Graphs are rows of bits. The cells of an order are the sum of 2^|bag| over its bags; a graph that needs more
than the room allows is noticed here, before any table is made.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.bits import bit, lowest_one, popcount, without_lowest
from edgewise.kernels.compiling import entry, kernel

# Key of a variable that is eliminated.
GONE = 1 << 62


@kernel
def draw_rows(listed, count, members, rows):
    """Rows of neighbours of the graph that joins the variables of every active candidate."""
    for i in range(rows.shape[0]):
        for w in range(rows.shape[1]):
            rows[i, w] = np.uint64(0)
    for entered in range(count):
        a = listed[entered]
        for k in range(members.shape[1]):
            i = np.int64(members[a, k])
            for l in range(k):
                j = np.int64(members[a, l])
                if i >= 0 and j >= 0:
                    rows[i, j >> 6] |= bit(j)
                    rows[j, i >> 6] |= bit(i)


@kernel
def least(keys):
    """The smallest key."""
    found = keys[0]
    for i in range(1, keys.shape[0]):
        found = keys[i] if keys[i] < found else found
    return found


@kernel
def count_degree(row):
    """Number of neighbours in a row."""
    degree = 0
    for w in range(row.shape[0]):
        degree += popcount(row[w])
    return degree


@kernel
def order_by_degree(rows, order, keys, done, cells, limit, up_to):
    """Eliminate the variable of fewest neighbours, again and again, smaller index first.

    Stops at variables of more than `up_to` neighbours, or when the cells pass `limit`. A row stays as it was
    when its variable was eliminated: its bag. Returns how many are eliminated and their cells.
    """
    p, words = rows.shape
    for i in range(p):
        if keys[i] != GONE:
            keys[i] = count_degree(rows[i]) * p + i
    while done < p:
        key = least(keys)
        v = key % p
        degree = key // p
        if degree > up_to:
            break
        cells += 1 << min(degree + 1, 60)
        if cells > limit:
            break
        keys[v] = GONE
        order[done] = v
        done += 1
        for w in range(words):
            rest = rows[v, w]
            while rest != np.uint64(0):
                u = (w << 6) + lowest_one(rest)
                rest = without_lowest(rest)
                for x in range(words):
                    rows[u, x] |= rows[v, x]
                rows[u, w] &= ~bit(u)
                rows[u, v >> 6] &= ~bit(v)
                keys[u] = count_degree(rows[u]) * p + u
    return done, cells


@kernel
def missing_pairs(v, rows):
    """Number of pairs of neighbours of `v` that are strangers."""
    words = rows.shape[1]
    total = 0
    for w in range(words):
        rest = rows[v, w]
        while rest != np.uint64(0):
            u = (w << 6) + lowest_one(rest)
            rest = without_lowest(rest)
            for x in range(words):
                total += popcount(rows[v, x] & ~rows[u, x])
            total -= 1
    return total // 2


@kernel
def join(u, w, rows, degree, keys, per_fill, per_degree):
    """Make two strangers neighbours, and keep the keys of all whom that concerns."""
    common = 0
    for x in range(rows.shape[1]):
        both = rows[u, x] & rows[w, x]
        common += popcount(both)
        while both != np.uint64(0):
            keys[(x << 6) + lowest_one(both)] -= per_fill
            both = without_lowest(both)
    keys[u] += (degree[u] - common) * per_fill + per_degree
    keys[w] += (degree[w] - common) * per_fill + per_degree
    degree[u] += 1
    degree[w] += 1
    rows[u, w >> 6] |= bit(w)
    rows[w, u >> 6] |= bit(u)


@kernel
def order_by_fill(rows, order, keys, degree, done, cells, limit):
    """Eliminate the variable that joins fewest strangers; ties by degree, then by index.

    A key is (strangers joined, degree, index) as one number, and changes with every edge that comes or goes.
    Arguments and result are those of :func:`order_by_degree`.
    """
    p, words = rows.shape
    per_degree = p
    per_fill = p * p
    for i in range(p):
        if keys[i] != GONE:
            degree[i] = count_degree(rows[i])
            keys[i] = missing_pairs(i, rows) * per_fill + degree[i] * per_degree + i
    while done < p:
        key = least(keys)
        v = key % p
        cells += 1 << min(degree[v] + 1, 60)
        if cells > limit:
            break
        keys[v] = GONE
        order[done] = v
        done += 1
        for w in range(words):
            rest = rows[v, w]
            while rest != np.uint64(0):
                u = (w << 6) + lowest_one(rest)
                rest = without_lowest(rest)
                rows[u, v >> 6] &= ~bit(v)
                degree[u] -= 1
                strangers = 0
                for x in range(words):
                    strangers += popcount(rows[u, x] & ~rows[v, x])
                keys[u] -= strangers * per_fill + per_degree
        if key >= per_fill:
            for w in range(words):
                rest = rows[v, w]
                while rest != np.uint64(0):
                    u = (w << 6) + lowest_one(rest)
                    rest = without_lowest(rest)
                    # The later ones only: the earlier ones have been joined with all.
                    strangers = rest & ~rows[u, w]
                    for x in range(w, words):
                        if x > w:
                            strangers = rows[v, x] & ~rows[u, x]
                        while strangers != np.uint64(0):
                            other = (x << 6) + lowest_one(strangers)
                            strangers = without_lowest(strangers)
                            join(u, other, rows, degree, keys, per_fill, per_degree)
    return done, cells


@kernel
def plan_elimination(listed, count, members, room):
    """Find an order of elimination; returns which of the two in the room to take, and its cells.

    Variables with up to two neighbours go first, which costs no width. Of what is left, fewest neighbours
    and fewest strangers joined are both tried, and the order of fewer cells is taken. Where both need more
    cells than the limit, so does the count that is returned: the smaller of the two when they passed it.
    """
    rows = room.rows[0]
    p, words = rows.shape
    keys = room.keys
    for i in range(p):
        keys[i] = 0
    draw_rows(listed, count, members, rows)
    done, cells = order_by_degree(rows, room.orders[0], keys, 0, 0, room.limit, 2)
    if done == p or cells > room.limit:
        return 0, cells
    for k in range(done):
        room.orders[1, k] = room.orders[0, k]
    for i in range(p):
        room.position[i] = keys[i]
        for w in range(words):
            room.rows[1, i, w] = rows[i, w]
    _, by_degree = order_by_degree(rows, room.orders[0], keys, done, cells, room.limit, p)
    for i in range(p):
        keys[i] = room.position[i]
    bound = min(room.limit, by_degree)
    _, by_fill = order_by_fill(room.rows[1], room.orders[1], keys, room.degree, done, cells, bound)
    if by_fill < by_degree:
        return 1, by_fill
    return 0, by_degree


@entry
def count_cells(listed, count, members, room):
    """Cells of the order that :func:`plan_elimination` finds."""
    return plan_elimination(listed, count, members, room)[1]
