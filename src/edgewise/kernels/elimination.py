"""Log Z of a sparse graph by eliminating one variable after another: eqs. (3.3) and (3.4) of docs/method.md.

The work has three parts. The *plan* (``ordering.py``) finds an order of elimination from the graph alone and
counts its cells; a graph that needs more than the room allows ends there. The *layout* writes down each bag
and the candidates placed in it. The *tables* are then products and sums of exponentials, without a logarithm
or an exponential per cell. Where parameters are so large that products could leave the range of floating
point numbers, the same tables are computed in log space instead.

Graphs are rows of bits, 64 to a word. After the plan everything is numbered by position in the order: bag k
is position k with ``near[begin[k] : begin[k + 1]]``, its neighbours at elimination, first eliminated first.
Neighbour j is bit j of a cell of the bag's tables ``zero`` and ``one``, for x_k = 0 and x_k = 1. The message
of a bag goes to its first neighbour, and is stored in two halves, for that variable at 0 and at 1. Its block
of memory is used again once it has been read, so that the messages in use stay in the cache.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels.bits import bit, lowest_one, without_lowest
from edgewise.kernels.compiling import entry, kernel
from edgewise.kernels.ordering import plan_elimination

EliminationRoom = namedtuple(
    "EliminationRoom",
    "limit rows orders keys degree position rank ranked bits begin near child sibling placed after reach "
    "factor zero one index start vacant link pool kept held field",
)

# Variables that are held, of a graph that is too wide otherwise: at each of their states the rest is summed.
MOST_HELD = 5

# Products of a table stay within exp(-SAFE) and exp(SAFE); floating point numbers end at exp(709).
SAFE = 600.0

# Runs of at least two to this power get a loop of their own; shorter ones are done four cells at once.
LONG = 4


def elimination_room(n_variables: int, n_candidates: int, max_cells: int) -> EliminationRoom:
    """Scratch for graphs of up to `n_candidates` active candidates whose bags have up to `max_cells` cells.

    It takes about 14 bytes per cell and holds nothing between calls.
    """
    words = max(1, -(-n_variables // 64))
    half = max(1, max_cells // 2)
    bag = min(n_variables, max(1, int(max_cells).bit_length() - 1))
    return EliminationRoom(
        limit=max_cells,
        rows=np.zeros((3, n_variables, words), np.uint64),
        orders=np.zeros((2, n_variables), np.int64),
        keys=np.zeros(n_variables, np.int64),
        degree=np.zeros(n_variables, np.int64),
        position=np.zeros(n_variables, np.int64),
        rank=np.zeros(n_variables, np.int64),
        ranked=np.zeros(n_variables, np.int64),
        bits=np.zeros(words, np.uint64),
        begin=np.zeros(n_variables + 1, np.int64),
        near=np.zeros(n_variables * bag, np.int64),
        child=np.zeros(n_variables, np.int64),
        sibling=np.zeros(n_variables, np.int64),
        placed=np.zeros(n_variables, np.int64),
        after=np.zeros(max(1, n_candidates), np.int64),
        reach=np.zeros(n_variables),
        factor=np.zeros(max(1, bag)),
        zero=np.zeros(half),
        one=np.zeros(half),
        index=np.zeros(half, np.int32),
        start=np.zeros(n_variables, np.int64),
        vacant=np.zeros(bag + 1, np.int64),
        link=np.zeros(n_variables, np.int64),
        pool=np.zeros(half),
        kept=np.zeros(max(1, n_candidates), np.int64),
        held=np.zeros(MOST_HELD, np.int64),
        field=np.zeros(n_variables),
    )


@kernel
def lay_out_bags(which, room):
    """Write down neighbours and children of every bag, by position in the order."""
    rows = room.rows[which]
    order = room.orders[which]
    p, words = rows.shape
    for k in range(p):
        room.position[order[k]] = k
        room.child[k] = -1
    for w in range(words):
        room.bits[w] = np.uint64(0)
    filled = 0
    for k in range(p):
        room.begin[k] = filled
        for w in range(words):
            rest = rows[order[k], w]
            while rest != np.uint64(0):
                place = room.position[(w << 6) + lowest_one(rest)]
                room.bits[place >> 6] |= bit(place)
                rest = without_lowest(rest)
        for w in range(words):
            rest = room.bits[w]
            while rest != np.uint64(0):
                room.near[filled] = (w << 6) + lowest_one(rest)
                filled += 1
                rest = without_lowest(rest)
            room.bits[w] = np.uint64(0)
        if filled > room.begin[k]:
            receiver = room.near[room.begin[k]]
            room.sibling[k] = room.child[receiver]
            room.child[receiver] = k
    room.begin[p] = filled


@kernel
def place_candidates(listed, count, members, room):
    """Place every active candidate where the first of its variables is eliminated."""
    for k in range(room.placed.shape[0]):
        room.placed[k] = -1
    for entered in range(count):
        a = listed[entered]
        first = room.position[members[a, 0]]
        for l in range(1, members.shape[1]):
            if members[a, l] >= 0:
                first = min(first, room.position[members[a, l]])
        room.after[entered] = room.placed[first]
        room.placed[first] = entered


@kernel
def products_are_safe(bias, theta, listed, members, order, room):
    """Whether every product that the tables meet is within floating point range, whatever its order.

    A message varies by no more than the parameters that join its variables with those eliminated;
    ``reach[u]`` is the sum of their sizes for one variable. With messages scaled to a maximum of one, the
    logarithm of any partial product in bag k is within the bias, the reach of k, and the reach of its
    neighbours with the parameters of the bag added.
    """
    reach = room.reach
    for k in range(reach.shape[0]):
        reach[k] = 0.0
    for k in range(reach.shape[0]):
        total = abs(bias[order[k]]) + reach[k]
        entered = room.placed[k]
        while entered >= 0:
            a = listed[entered]
            for l in range(members.shape[1]):
                if members[a, l] >= 0:
                    reach[room.position[members[a, l]]] += abs(theta[a])
            entered = room.after[entered]
        for n in range(room.begin[k], room.begin[k + 1]):
            total += reach[room.near[n]]
        if not total <= SAFE:  # as with a parameter that is not a number
            return False
    return True


@kernel
def neighbour_bit(place, k, room):
    """The bit of a neighbour in the cells of bag k, and nothing for k itself."""
    if place == k:
        return 0
    j = room.begin[k]
    while room.near[j] != place:
        j += 1
    return 1 << (j - room.begin[k])


@kernel
def clique_cell(a, k, members, room):
    """The cell of bag k where the other variables of a candidate placed there are one, and no others."""
    cell = 0
    for l in range(members.shape[1]):
        if members[a, l] >= 0:
            cell |= neighbour_bit(room.position[members[a, l]], k, room)
    return cell


@kernel
def align(c, k, room):
    """Where the cells of bag k read the message of its child c.

    Returns the length of the runs of cells that are aligned alike, and how far the message moves with each of
    the two lowest bits of a cell. The index has one entry per run. Runs shorter than four are put together
    to runs of four; the message moves by one along a longer run, or stands still.
    """
    begin, end = room.begin[k], room.begin[k + 1]
    q, q_end = room.begin[c] + 1, room.begin[c + 1]
    moves = begin < end and q < q_end and room.near[begin] == room.near[q]
    n = begin
    while n < end and (q < q_end and room.near[n] == room.near[q]) == moves:
        n += 1
        q += moves
    if n - begin < LONG:
        n = begin
        q = room.begin[c] + 1
    size = 1
    offset = 1 << (q - room.begin[c] - 1)
    first, second = np.int64(moves), 2 * np.int64(moves)
    index = room.index
    index[0] = 0
    while n < end:
        step = 0
        if q < q_end and room.near[n] == room.near[q]:
            step = offset
            offset <<= 1
            q += 1
        if n == begin:
            first = step
        elif n == begin + 1:
            second = step
        else:
            for s in range(size):
                index[size + s] = index[s] + step
            size <<= 1
        n += 1
    return (1 << (end - begin)) // size, first, second


@kernel
def clear_pool(room):
    """Forget all messages."""
    for width in range(room.vacant.shape[0]):
        room.vacant[width] = -1


@kernel
def take_block(k, width, used, room):
    """Find room for the message of bag k: the block of one that has been read, or beyond those in use."""
    c = room.vacant[width]
    if c < 0:
        room.start[k] = used
        return used + (1 << width)
    room.start[k] = room.start[c]
    room.vacant[width] = room.link[c]
    return used


@kernel
def give_back(c, room):
    """The message of bag c has been read."""
    width = room.begin[c + 1] - room.begin[c]
    room.link[c] = room.vacant[width]
    room.vacant[width] = c


@kernel
def multiply_run(x, y):
    """Multiply one run by another."""
    for s in range(x.shape[0]):
        x[s] *= y[s]


@kernel
def scale_run(x, f):
    """Multiply a run by a number."""
    for s in range(x.shape[0]):
        x[s] *= f


@kernel
def multiply_four(x, y0, y1, y2, y3):
    """Multiply a run of four; all is read before anything is written, so that it is done at once."""
    x0 = x[0] * y0
    x1 = x[1] * y1
    x2 = x[2] * y2
    x3 = x[3] * y3
    x[0] = x0
    x[1] = x1
    x[2] = x2
    x[3] = x3


@kernel
def multiply_in(table, message, index, run, first, second):
    """Multiply half a message into one of the tables of its receiver; the rest is from :func:`align`."""
    runs = table.shape[0] // run
    if run > 4 and first:
        for r in range(runs):
            multiply_run(table[r * run : (r + 1) * run], message[index[r] : index[r] + run])
    elif run > 4:
        for r in range(runs):
            scale_run(table[r * run : (r + 1) * run], message[index[r]])
    elif run == 4 and first and second:
        for r in range(runs):
            m = message[index[r] : index[r] + 4]
            multiply_four(table[4 * r : 4 * r + 4], m[0], m[1], m[2], m[3])
    elif run == 4 and first:
        for r in range(runs):
            m = message[index[r] : index[r] + 2]
            multiply_four(table[4 * r : 4 * r + 4], m[0], m[1], m[0], m[1])
    elif run == 4 and second:
        for r in range(runs):
            m = message[index[r] : index[r] + 2]
            multiply_four(table[4 * r : 4 * r + 4], m[0], m[0], m[1], m[1])
    elif run == 4:
        for r in range(runs):
            m = message[index[r]]
            multiply_four(table[4 * r : 4 * r + 4], m, m, m, m)
    else:
        table[0] *= message[0]
        if run == 2:
            table[1] *= message[first]


@kernel
def add_up(zero, one):
    """Sum a variable out; returns the largest entry."""
    if zero.shape[0] < 4:
        top = 0.0
        for s in range(zero.shape[0]):
            zero[s] += one[s]
            top = zero[s] if zero[s] > top else top
        return top
    # Four lanes, lest every comparison wait for the one before it.
    top0, top1, top2, top3 = 0.0, 0.0, 0.0, 0.0
    for s in range(0, zero.shape[0], 4):
        x0 = zero[s] + one[s]
        x1 = zero[s + 1] + one[s + 1]
        x2 = zero[s + 2] + one[s + 2]
        x3 = zero[s + 3] + one[s + 3]
        zero[s] = x0
        zero[s + 1] = x1
        zero[s + 2] = x2
        zero[s + 3] = x3
        top0 = x0 if x0 > top0 else top0
        top1 = x1 if x1 > top1 else top1
        top2 = x2 if x2 > top2 else top2
        top3 = x3 if x3 > top3 else top3
    top0 = top1 if top1 > top0 else top0
    top2 = top3 if top3 > top2 else top2
    return top2 if top2 > top0 else top0


@kernel
def double(table, half, factor):
    """The cells that have one more bit, from those without it."""
    below = table[:half]
    above = table[half : 2 * half]
    for s in range(half):
        above[s] = below[s] * factor


@kernel
def send(total, factor, low, high):
    """Store a message in halves, scaled."""
    for r in range(low.shape[0]):
        low[r] = total[2 * r] * factor
        high[r] = total[2 * r + 1] * factor


@kernel
def eliminate_in_products(bias, theta, listed, members, order, room):
    """The tables (3.3) and messages (3.4) as products and sums, every message scaled to a maximum of one."""
    log_z = 0.0
    scale = 1.0
    used = 0
    clear_pool(room)
    for k in range(order.shape[0]):
        width = room.begin[k + 1] - room.begin[k]
        size = 1 << width
        zero = room.zero[:size]
        one = room.one[:size]
        for j in range(width):
            room.factor[j] = 1.0
        larger = False
        entered = room.placed[k]
        while entered >= 0:
            a = listed[entered]
            cell = clique_cell(a, k, members, room)
            if cell & (cell - 1) == 0:
                room.factor[lowest_one(np.uint64(cell))] *= math.exp(theta[a])
            else:
                larger = True
            entered = room.after[entered]
        one[0] = math.exp(bias[order[k]])
        for j in range(width):
            double(one, 1 << j, room.factor[j])
        if larger:
            entered = room.placed[k]
            while entered >= 0:
                a = listed[entered]
                cell = clique_cell(a, k, members, room)
                if cell & (cell - 1) != 0:
                    f = math.exp(theta[a])
                    s = cell
                    while s < size:
                        one[s] *= f
                        s = (s + 1) | cell
                entered = room.after[entered]
        for s in range(size):
            zero[s] = 1.0
        c = room.child[k]
        while c >= 0:
            run, first, second = align(c, k, room)
            half = 1 << (room.begin[c + 1] - room.begin[c] - 1)
            at = room.start[c]
            multiply_in(zero, room.pool[at : at + half], room.index, run, first, second)
            multiply_in(one, room.pool[at + half : at + 2 * half], room.index, run, first, second)
            give_back(c, room)
            c = room.sibling[c]
        top = add_up(zero, one)
        if width > 0:
            half = size >> 1
            used = take_block(k, width, used, room)
            at = room.start[k]
            send(zero, 1.0 / top, room.pool[at : at + half], room.pool[at + half : at + size])
        scale *= top
        if scale > 1e10 or scale < 1e-10:
            log_z += math.log(scale)
            scale = 1.0
    return log_z + math.log(scale)


@kernel
def log_add_exp(a, b):
    """log(exp(a) + exp(b))."""
    top = a if a > b else b
    return top + math.log1p(math.exp(-abs(a - b)))


@kernel
def eliminate_in_logs(bias, theta, listed, members, order, room):
    """The tables (3.3) and messages (3.4) in log space: slower, and for parameters of any size."""
    log_z = 0.0
    used = 0
    clear_pool(room)
    for k in range(order.shape[0]):
        width = room.begin[k + 1] - room.begin[k]
        size = 1 << width
        zero, one = room.zero, room.one
        for s in range(size):
            zero[s] = 0.0
            one[s] = bias[order[k]]
        entered = room.placed[k]
        while entered >= 0:
            a = listed[entered]
            cell = clique_cell(a, k, members, room)
            s = cell
            while s < size:
                one[s] += theta[a]
                s = (s + 1) | cell
            entered = room.after[entered]
        c = room.child[k]
        while c >= 0:
            run, first, second = align(c, k, room)
            half = 1 << (room.begin[c + 1] - room.begin[c] - 1)
            for s in range(size):
                r = s % run
                along = first * r if run > 4 else first * (r & 1) + second * (r >> 1)
                at = room.start[c] + room.index[s // run] + along
                zero[s] += room.pool[at]
                one[s] += room.pool[at + half]
            give_back(c, room)
            c = room.sibling[c]
        if width == 0:
            log_z += log_add_exp(zero[0], one[0])
        else:
            used = take_block(k, width, used, room)
            for s in range(size):
                at = room.start[k] + (s >> 1) + (s & 1) * (size >> 1)
                room.pool[at] = log_add_exp(zero[s], one[s])
    return log_z


@kernel
def eliminate(bias, theta, listed, members, which, room):
    """Log Z along an order whose bags are laid out and whose candidates are placed."""
    order = room.orders[which]
    if products_are_safe(bias, theta, listed, members, order, room):
        return eliminate_in_products(bias, theta, listed, members, order, room)
    return eliminate_in_logs(bias, theta, listed, members, order, room)


@kernel
def hold_one(held, count, members, room):
    """Hold the variable with most of the pairs ``kept[:count]``: they go behind the others; how many stay."""
    degree = room.degree
    for i in range(degree.shape[0]):
        degree[i] = 0
    for n in range(count):
        degree[members[room.kept[n], 0]] += 1
        degree[members[room.kept[n], 1]] += 1
    busiest = 0
    for i in range(1, degree.shape[0]):
        busiest = i if degree[i] > degree[busiest] else busiest
    room.held[held] = busiest
    n = 0
    while n < count:
        a = room.kept[n]
        if members[a, 0] == busiest or members[a, 1] == busiest:
            count -= 1
            room.kept[n], room.kept[count] = room.kept[count], a
        else:
            n += 1
    return count


@kernel
def field_of(state, held, bias, theta, inside, count, members, room):
    """The log potential of a state of the held variables, and the biases that it leaves to the others."""
    potential = 0.0
    for i in range(bias.shape[0]):
        room.field[i] = bias[i]
    for n in range(inside, count):
        a = room.kept[n]
        i, j = members[a, 0], members[a, 1]
        first, second = -1, -1
        for h in range(held):
            first = h if room.held[h] == i else first
            second = h if room.held[h] == j else second
        if first >= 0 and second >= 0:
            potential += theta[a] if (state >> first) & (state >> second) & 1 else 0.0
        elif first >= 0:
            room.field[j] += theta[a] if (state >> first) & 1 else 0.0
        else:
            room.field[i] += theta[a] if (state >> second) & 1 else 0.0
    for h in range(held):
        potential += bias[room.held[h]] if (state >> h) & 1 else 0.0
        # Alone and undecided it adds log 2, which is taken off.
        room.field[room.held[h]] = 0.0
        potential -= math.log(2.0)
    return potential


@kernel
def log_partition_by_holding(bias, theta, listed, count, members, room):
    """Log Z of pairs that are too wide, with the sum over some busy variables outermost (3.9), and its cells.

    NaN where holding as many as :data:`MOST_HELD` does not make the rest narrow enough.
    """
    for n in range(count):
        room.kept[n] = listed[n]
    inside, cells = count, room.limit + 1
    for h in range(MOST_HELD):
        inside = hold_one(h, inside, members, room)
        which, cells = plan_elimination(room.kept, inside, members, room)
        if cells <= room.limit:
            held = h + 1
            lay_out_bags(which, room)
            place_candidates(room.kept, inside, members, room)
            total = -math.inf
            for state in range(1 << held):
                potential = field_of(state, held, bias, theta, inside, count, members, room)
                part = eliminate(room.field, theta, room.kept, members, which, room)
                total = potential + part if state == 0 else log_add_exp(total, potential + part)
            return total, cells << held
    return math.nan, cells


@kernel
def log_partition_by_elimination(bias, theta, listed, count, members, room):
    """Log Z of the model of the active candidates ``listed[:count]`` by (3.3) and (3.4), and its cells.

    Graphs of pairs whose cells pass the limit of the room are summed in parts (3.9). Log Z is NaN where the
    parts pass it too, a matter of the graph alone: neither of parameters nor of the order of the list. The
    cells then are those counted when the limit was passed.
    """
    which, cells = plan_elimination(listed, count, members, room)
    if cells > room.limit:
        if members.shape[1] > 2:
            return math.nan, cells
        return log_partition_by_holding(bias, theta, listed, count, members, room)
    lay_out_bags(which, room)
    place_candidates(listed, count, members, room)
    return eliminate(bias, theta, listed, members, which, room), cells


@entry
def log_partition_of(bias, theta, listed, count, members, room):
    """:func:`log_partition_by_elimination` for Python."""
    return log_partition_by_elimination(bias, theta, listed, count, members, room)
