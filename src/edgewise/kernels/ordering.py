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
# A graph of so many cells is worth some more orders, which break ties otherwise: a quarter of the cells is
# saved where they are tried. One that would be refused is worth many.
WORTH_MORE = 1 << 21
MORE_ORDERS, MANY_ORDERS = 8, 32


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
def order_by_fill(rows, order, keys, degree, rank, ranked, done, cells, limit):
    """Eliminate the variable that joins fewest strangers; ties by degree, then by rank.

    A key is (strangers joined, degree, rank) as one number, and changes with every edge that comes or goes;
    ``ranked`` has the variables in the order of their ranks. Other arguments and the result are those of
    :func:`order_by_degree`.
    """
    p, words = rows.shape
    per_degree = p
    per_fill = p * p
    for i in range(p):
        if keys[i] != GONE:
            degree[i] = count_degree(rows[i])
            keys[i] = missing_pairs(i, rows) * per_fill + degree[i] * per_degree + rank[i]
    while done < p:
        key = least(keys)
        v = ranked[key % p]
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
def shuffle_ranks(seed, rank, ranked):
    """Ranks in an order that looks random, and is always the same for a seed; the next seed."""
    p = rank.shape[0]
    for i in range(p):
        ranked[i] = i
    for last in range(p - 1, 0, -1):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        other = (seed >> 8) % (last + 1)
        ranked[last], ranked[other] = ranked[other], ranked[last]
    for k in range(p):
        rank[ranked[k]] = k
    return seed


@kernel
def begin_again(which, base, saved, room):
    """Put what is left of the graph after its first variables into a slot of the room."""
    for i in range(room.keys.shape[0]):
        room.keys[i] = saved[i]
        for w in range(room.rows.shape[2]):
            room.rows[which, i, w] = room.rows[base, i, w]


@kernel
def try_more_orders(best, cells, done, begun, room):
    """Orders that break ties otherwise, for a graph that needs many cells; the slot of the best, its cells.

    Which orders are tried depends on nothing but the graph.
    """
    seed = 1
    for tried in range(MANY_ORDERS):
        if tried >= MORE_ORDERS and cells <= room.limit:
            break
        seed = shuffle_ranks(seed, room.rank, room.ranked)
        other = 1 - best
        begin_again(other, 2, room.position, room)
        bound = min(room.limit, cells)
        _, found = order_by_fill(
            room.rows[other], room.orders[other], room.keys, room.degree, room.rank, room.ranked, done,
            begun, bound,
        )  # fmt: skip
        if found < cells:
            best, cells = other, found
    return best, cells


@kernel
def plan_elimination(listed, count, members, room):
    """Find an order of elimination; returns which of the two in the room to take, and its cells.

    Variables with up to two neighbours go first, which costs no width. Of what is left, fewest neighbours
    and fewest strangers joined are both tried, and the order of fewer cells is taken; where that is still
    many, some more orders of the second kind. Where all need more cells than the limit, so does the count
    that is returned: the smallest of them when they passed it.
    """
    rows = room.rows[0]
    p, words = rows.shape
    keys = room.keys
    for i in range(p):
        keys[i] = 0
    draw_rows(listed, count, members, rows)
    done, begun = order_by_degree(rows, room.orders[0], keys, 0, 0, room.limit, 2)
    if done == p or begun > room.limit:
        return 0, begun
    for k in range(done):
        room.orders[1, k] = room.orders[0, k]
    for i in range(p):
        room.position[i] = keys[i]
        room.rank[i] = i
        room.ranked[i] = i
        for w in range(words):
            room.rows[2, i, w] = rows[i, w]
    _, by_degree = order_by_degree(rows, room.orders[0], keys, done, begun, room.limit, p)
    begin_again(1, 2, room.position, room)
    bound = min(room.limit, by_degree)
    _, by_fill = order_by_fill(
        room.rows[1], room.orders[1], keys, room.degree, room.rank, room.ranked, done, begun, bound
    )
    best, cells = (1, by_fill) if by_fill < by_degree else (0, by_degree)
    if cells > WORTH_MORE:
        return try_more_orders(best, cells, done, begun, room)
    return best, cells


@entry
def count_cells(listed, count, members, room):
    """Cells of the order that :func:`plan_elimination` finds."""
    return plan_elimination(listed, count, members, room)[1]
