"""Arithmetic over weighted particles of a model of pairs, vectorised (docs/method.md, 7).

Means are Rao-Blackwellised: the states of the variables that a line touches are replaced by their
conditional distribution given the particle's other variables, which the fields F give in closed form. A
move by t changes the weights by ``h_s = E[exp(t d) | rest]`` instead of exp(t d), and the touched variables
are redrawn from their new conditional.

Symbols: ``x, f`` rows of the states X and fields F (``gibbs.py``), ``w`` the weights; functions work on the
particles `begin` to `end`. Cells of two or three binary variables count the first fastest.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.compiling import lanes_of_terms, loop
from edgewise.kernels.gibbs import fill
from edgewise.kernels.random import fast_exp, lane_uniform, uniform

# error_model="numpy" below: a division that may raise keeps a loop from being vectorised.
# Terms of so many particles at a time lie on the stack: a row of them fits into the first-level cache.
CHUNK = 2048
# The product of three exponentials of this size is still a finite float32 (e^88).
FIELD_LIMIT = np.float32(28.0)


@loop
def limited(x):
    """Hold a field within a range whose exponentials multiply safely."""
    x = x if x < FIELD_LIMIT else FIELD_LIMIT
    return x if x > -FIELD_LIMIT else -FIELD_LIMIT


@loop
def lane_sum(x):
    """Sum in eight lanes, in an order fixed by the code rather than by the compiler."""
    zero = np.float32(0.0)
    a0, a1, a2, a3, a4, a5, a6, a7 = zero, zero, zero, zero, zero, zero, zero, zero
    whole = x.shape[0] // 8 * 8
    for s in range(0, whole, 8):
        a0 += x[s]
        a1 += x[s + 1]
        a2 += x[s + 2]
        a3 += x[s + 3]
        a4 += x[s + 4]
        a5 += x[s + 5]
        a6 += x[s + 6]
        a7 += x[s + 7]
    total = np.float64(a0) + a1 + a2 + a3 + a4 + a5 + a6 + a7
    for s in range(whole, x.shape[0]):
        total += x[s]
    return total


@loop(error_model="numpy")
def pair_cells(xi, xj, fi, fj, w, theta, begin, end, cells):
    """Weighted probabilities of (x_i, x_j) = 00, 10, 01, 11 over one group."""
    coupling = np.float32(theta)
    factor = np.float32(math.exp(min(max(theta, -28.0), 28.0)))
    one = np.float32(1.0)
    total10 = 0.0
    total01 = 0.0
    total11 = 0.0
    total = 0.0
    terms = lanes_of_terms(3, CHUNK)
    t0, t1, t2 = terms[0], terms[1], terms[2]
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        yi, yj, gi, gj, v = xi[low:high], xj[low:high], fi[low:high], fj[low:high], w[low:high]
        for s in range(v.shape[0]):
            ea = fast_exp(limited(gi[s] - coupling * yj[s]))
            eb = fast_exp(limited(gj[s] - coupling * yi[s]))
            eab = ea * eb * factor
            r = v[s] / (one + ea + eb + eab)
            t0[s] = ea * r
            t1[s] = eb * r
            t2[s] = eab * r
        total10 += lane_sum(t0[: high - low])
        total01 += lane_sum(t1[: high - low])
        total11 += lane_sum(t2[: high - low])
        total += lane_sum(v)
    cells[1] = total10 / total
    cells[2] = total01 / total
    cells[3] = total11 / total
    cells[0] = max(0.0, 1.0 - cells[1] - cells[2] - cells[3])


@loop(error_model="numpy")
def keep_growth(weight, before, after, terms, s):
    """Terms w^2, w h, w h^2 and w / h of particle `s`, whose growth is h = after / before."""
    h = after / before
    wh = weight * h
    terms[0, s] = weight * weight
    terms[1, s] = wh
    terms[2, s] = wh * h
    terms[3, s] = weight * (before / after)


@loop
def add_growth(v, terms, sums):
    """Add the weights and the terms of one chunk to the sums."""
    sums[0] += lane_sum(v)
    for k in range(4):
        sums[k + 1] += lane_sum(terms[k, : v.shape[0]])


@loop(error_model="numpy")
def pair_growth(xi, xj, fi, fj, w, theta, factors, begin, end, sums):
    """Sums over one group of w, w^2, w h, w h^2 and w / h, with h the particle's growth under `factors`."""
    coupling = np.float32(theta)
    factor = np.float32(math.exp(min(max(theta, -28.0), 28.0)))
    one = np.float32(1.0)
    g0 = np.float32(factors[0])
    g1 = np.float32(factors[1])
    g2 = np.float32(factors[2])
    g3 = np.float32(factors[3]) * factor
    fill(sums, 0.0)
    terms = lanes_of_terms(4, CHUNK)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        yi, yj, gi, gj, v = xi[low:high], xj[low:high], fi[low:high], fj[low:high], w[low:high]
        for s in range(v.shape[0]):
            ea = fast_exp(limited(gi[s] - coupling * yj[s]))
            eb = fast_exp(limited(gj[s] - coupling * yi[s]))
            eab = ea * eb
            before = one + ea + eb + eab * factor
            after = g0 + g1 * ea + g2 * eb + g3 * eab
            keep_growth(v[s], before, after, terms, s)
        add_growth(v, terms, sums)


@loop(error_model="numpy")
def pair_follow(xi, xj, fi, fj, w, theta, change, factors, shift_i, shift_j, lanes, change_i, change_j):
    """Weights, states and own fields of a pair after a move: coupling by `change`, biases by the shifts."""
    coupling = np.float32(theta)
    moved = np.float32(theta + change)
    factor = np.float32(math.exp(min(max(theta, -28.0), 28.0)))
    one = np.float32(1.0)
    zero = np.float32(0.0)
    g0 = np.float32(factors[0])
    g1 = np.float32(factors[1])
    g2 = np.float32(factors[2])
    g3 = np.float32(factors[3]) * factor
    bi = np.float32(shift_i)
    bj = np.float32(shift_j)
    for s in range(xi.shape[0]):
        a = fi[s] - coupling * xj[s]
        b = fj[s] - coupling * xi[s]
        ea = fast_exp(limited(a))
        eb = fast_exp(limited(b))
        eab = ea * eb
        k1 = g1 * ea
        k3 = g3 * eab
        after = g0 + k1 + g2 * eb + k3
        w[s] *= after / (one + ea + eb + eab * factor)
        u = lane_uniform(lanes, s) * after
        new_i = one if u < k1 + k3 else zero
        # Given x_i, the rest of the same uniform number decides x_j.
        rest = u if new_i > zero else u - (k1 + k3)
        new_j = one if rest < (k3 if new_i > zero else g2 * eb) else zero
        change_i[s] = new_i - xi[s]
        change_j[s] = new_j - xj[s]
        xi[s] = new_i
        xj[s] = new_j
        fi[s] = a + bi + moved * new_j
        fj[s] = b + bj + moved * new_i


@loop(error_model="numpy")
def single_mean(f, w, sign, begin, end):
    """Weighted probability that a variable is one (`sign` 1) or zero (-1), over one group."""
    one = np.float32(1.0)
    turn = np.float32(-sign)
    total = 0.0
    hits = 0.0
    terms = lanes_of_terms(1, CHUNK)[0]
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        g, v = f[low:high], w[low:high]
        for s in range(v.shape[0]):
            terms[s] = v[s] / (one + fast_exp(turn * g[s]))
        total += lane_sum(v)
        hits += lane_sum(terms[: high - low])
    return hits / total


@loop(error_model="numpy")
def single_growth(f, w, outside, inside, begin, end, sums):
    """As :func:`pair_growth` for one variable: growth `outside` where it is zero, `inside` where one.

    One exponential overflows later than three multiplied: the bias of a constant column may lie far out.
    """
    one = np.float32(1.0)
    g0 = np.float32(outside)
    g1 = np.float32(inside)
    fill(sums, 0.0)
    terms = lanes_of_terms(4, CHUNK)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        g, v = f[low:high], w[low:high]
        for s in range(v.shape[0]):
            e = fast_exp(g[s])
            before = one + e
            after = g0 + g1 * e
            keep_growth(v[s], before, after, terms, s)
        add_growth(v, terms, sums)


@loop(error_model="numpy")
def single_follow(x, f, w, shift, outside, inside, lanes, change):
    """Weights, states and field of one variable after its bias moved by `shift`."""
    one = np.float32(1.0)
    zero = np.float32(0.0)
    g0 = np.float32(outside)
    g1 = np.float32(inside)
    b = np.float32(shift)
    for s in range(x.shape[0]):
        e = fast_exp(f[s])
        after = g0 + g1 * e
        w[s] *= after / (one + e)
        new = one if lane_uniform(lanes, s) * after < g1 * e else zero
        change[s] = new - x[s]
        x[s] = new
        f[s] += b


@loop(error_model="numpy")
def relative_ess(w, begin, end):
    """Effective share of the particles of one group, (sum w)^2 / (n sum w^2), and their mean weight."""
    first = 0.0
    second = 0.0
    terms = lanes_of_terms(1, CHUNK)[0]
    for low in range(begin, end, CHUNK):
        v = w[low : min(low + CHUNK, end)]
        for s in range(v.shape[0]):
            terms[s] = v[s] * v[s]
        first += lane_sum(v)
        second += lane_sum(terms[: v.shape[0]])
    return first * first / (second * (end - begin)), first / (end - begin)


@loop
def resample(X, F, w, begin, end, stream, offspring, dead, parent):
    """Systematic resampling within one group; all weights become one.

    Particles that survive stay where they are and the others are overwritten; the last three arguments are
    working space of n whole numbers each.
    """
    total = 0.0
    for s in range(begin, end):
        total += w[s]
    count = end - begin
    target = uniform(stream)
    running = 0.0
    placed = 0
    for s in range(begin, end):
        running += w[s] / total * count
        offspring[s] = 0
        while placed < count and target < running:
            offspring[s] += 1
            placed += 1
            target += 1.0
    offspring[end - 1] += count - placed
    replaced = 0
    giver = begin
    for s in range(begin, end):
        if offspring[s] == 0:
            while offspring[giver] < 2:
                giver += 1
            offspring[giver] -= 1
            dead[replaced] = s
            parent[replaced] = giver
            replaced += 1
    for i in range(X.shape[0]):
        x, f = X[i], F[i]
        for k in range(replaced):
            x[dead[k]] = x[parent[k]]
            f[dead[k]] = f[parent[k]]
    for s in range(begin, end):
        w[s] = np.float32(1.0)


@loop
def log_growth(sums, N, noise):
    """N log of the weighted mean growth (7.1), and the variances of its noise forwards and in reverse (7.2).

    ``sums`` are those of :func:`pair_growth`. The reverse variance follows from the same particles because
    E'[g] = E[h g] / E[h] for any function g of the other variables, E' being the mean after the move.
    """
    weight, square, first, second, inverse = sums[0], sums[1], sums[2], sums[3], sums[4]
    effective = weight * weight / square
    forward = max(0.0, weight * second / (first * first) - 1.0) / effective
    reverse = max(0.0, inverse * first / (weight * weight) - 1.0) / effective
    noise[0] = N * N * forward
    noise[1] = N * N * reverse
    return N * (math.log(first / weight) + 0.5 * forward)


@loop
def triple_factors(theta_ij, theta_jk):
    """The two couplings of a triple and their exponentials, as float32."""
    factor_ij = np.float32(math.exp(min(max(theta_ij, -15.0), 15.0)))
    factor_jk = np.float32(math.exp(min(max(theta_jk, -15.0), 15.0)))
    return np.float32(theta_ij), np.float32(theta_jk), factor_ij, factor_jk


@loop
def triple_weights(xi, xj, xk, fi, fj, fk, s, couplings):
    """Weights of the states 1..7 of (i, j, k) in particle `s` relative to state 0; (i, k) is absent."""
    ij, jk, factor_ij, factor_jk = couplings
    limit = np.float32(18.0)
    a = fi[s] - ij * xj[s]
    b = fj[s] - ij * xi[s] - jk * xk[s]
    c = fk[s] - jk * xj[s]
    ei = fast_exp(a if a < limit else limit)
    ej = fast_exp(b if b < limit else limit)
    ek = fast_exp(c if c < limit else limit)
    k6 = ej * ek * factor_jk
    return ei, ej, ei * ej * factor_ij, ek, ei * ek, k6, k6 * ei * factor_ij


@loop(error_model="numpy")
def triple_cells(i, j, k, X, F, w, theta_ij, theta_jk, begin, end, cells):
    """Weighted probabilities of the eight states x_i + 2 x_j + 4 x_k over one group."""
    couplings = triple_factors(theta_ij, theta_jk)
    one = np.float32(1.0)
    fill(cells, 0.0)
    total = 0.0
    terms = lanes_of_terms(7, CHUNK)
    t1, t2, t3, t4, t5, t6, t7 = terms[0], terms[1], terms[2], terms[3], terms[4], terms[5], terms[6]
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        xi, xj, xk = X[i, low:high], X[j, low:high], X[k, low:high]
        fi, fj, fk = F[i, low:high], F[j, low:high], F[k, low:high]
        v = w[low:high]
        for s in range(v.shape[0]):
            k1, k2, k3, k4, k5, k6, k7 = triple_weights(xi, xj, xk, fi, fj, fk, s, couplings)
            r = v[s] / (one + k1 + k2 + k4 + k3 + k5 + k6 + k7)
            t1[s] = k1 * r
            t2[s] = k2 * r
            t3[s] = k3 * r
            t4[s] = k4 * r
            t5[s] = k5 * r
            t6[s] = k6 * r
            t7[s] = k7 * r
        total += lane_sum(v)
        for state in range(1, 8):
            cells[state] += lane_sum(terms[state - 1, : high - low])
    rest = 1.0
    for state in range(1, 8):
        cells[state] /= total
        rest -= cells[state]
    cells[0] = max(0.0, rest)


@loop(error_model="numpy")
def triple_growth(i, j, k, X, F, w, theta_ij, theta_jk, factors, begin, end, sums):
    """As :func:`pair_growth` for the eight states of three variables."""
    couplings = triple_factors(theta_ij, theta_jk)
    one = np.float32(1.0)
    g0, g1 = np.float32(factors[0]), np.float32(factors[1])
    g2, g3 = np.float32(factors[2]), np.float32(factors[3])
    g4, g5 = np.float32(factors[4]), np.float32(factors[5])
    g6, g7 = np.float32(factors[6]), np.float32(factors[7])
    fill(sums, 0.0)
    terms = lanes_of_terms(4, CHUNK)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        xi, xj, xk, v = X[i, low:high], X[j, low:high], X[k, low:high], w[low:high]
        fi, fj, fk = F[i, low:high], F[j, low:high], F[k, low:high]
        for s in range(v.shape[0]):
            k1, k2, k3, k4, k5, k6, k7 = triple_weights(xi, xj, xk, fi, fj, fk, s, couplings)
            before = one + k1 + k2 + k4 + k3 + k5 + k6 + k7
            after = g0 + g1 * k1 + g2 * k2 + g4 * k4 + g3 * k3 + g5 * k5 + g6 * k6 + g7 * k7
            keep_growth(v[s], before, after, terms, s)
        add_growth(v, terms, sums)


@loop
def scale(target, factor):
    """target *= factor."""
    for s in range(target.shape[0]):
        target[s] *= factor


@loop
def add_constant(target, amount):
    """target += amount."""
    for s in range(target.shape[0]):
        target[s] += amount
