"""Random numbers for the kernels: one scalar stream per chain and one small stream per particle lane.

The scalar stream is xoshiro256++ (state: uint64[4]); the lanes are xoshiro128+ (state: uint32[4, n]), laid
out so that a loop over the particles vectorises. Both are plain arrays, so a chain can be saved and goes on
with the same numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.compiling import kernel

# Expected successes from which a binomial draw is made by rejection.
FEW = 20.0


@intrinsic
def int_bits_as_float(typingctx, bits):
    """Read the bits of an int32 as a float32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), codegen


def scalar_stream(seed: np.random.SeedSequence) -> np.ndarray:
    """State of a scalar stream."""
    return seed.generate_state(4, np.uint64)


def lane_streams(seed: np.random.SeedSequence, n: int) -> np.ndarray:
    """States of `n` independent lanes."""
    return np.ascontiguousarray(seed.generate_state(4 * n, np.uint32).reshape(4, n))


@kernel
def _rotate(x, k):
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@kernel
def next_bits(stream):
    """64 random bits (xoshiro256++)."""
    result = _rotate(stream[0] + stream[3], 23) + stream[0]
    t = stream[1] << np.uint64(17)
    stream[2] ^= stream[0]
    stream[3] ^= stream[1]
    stream[1] ^= stream[2]
    stream[0] ^= stream[3]
    stream[2] ^= t
    stream[3] = _rotate(stream[3], 45)
    return result


@kernel
def uniform(stream):
    """Uniform on the open interval (0, 1)."""
    return (np.float64(next_bits(stream) >> np.uint64(12)) + 0.5) * (1.0 / 4503599627370496.0)


@kernel
def below(stream, n):
    """Uniform integer in [0, n)."""
    k = np.int64(uniform(stream) * n)
    return k if k < n else n - 1


@kernel
def normal(stream):
    """Standard normal (Box-Muller, one value per call so that there is nothing else to save)."""
    return math.sqrt(-2.0 * math.log(uniform(stream))) * math.cos(2.0 * math.pi * uniform(stream))


@kernel
def gamma_above_one(stream, shape):
    """Gamma with unit rate for shape >= 1 (Marsaglia & Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


@kernel
def draw_log_gamma(shape, stream):
    """Logarithm of a Gamma(shape, rate 1) variable, which itself may be too small for a float."""
    if shape < 1.0:
        return math.log(gamma_above_one(stream, shape + 1.0)) + math.log(uniform(stream)) / shape
    return math.log(gamma_above_one(stream, shape))


@kernel
def few_successes(stream, n, p):
    """Binomial by inversion, for p at most one half and n p below FEW."""
    odds = p / (1.0 - p)
    term = math.exp(n * math.log1p(-p))
    left = uniform(stream)
    k = 0
    while left > term and k < n:
        left -= term
        k += 1
        term *= (n - k + 1) / k * odds
    return k


@kernel
def many_successes(stream, n, p):
    """Binomial by transformed rejection (Hoermann 1993, BTRD without its table), for n p of FEW and more."""
    spread = math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    log_odds = math.log(p) - math.log1p(-p)
    mode = math.floor((n + 1) * p)
    top = math.lgamma(mode + 1.0) + math.lgamma(n - mode + 1.0)
    while True:
        u = uniform(stream) - 0.5
        v = uniform(stream)
        edge = 0.5 - abs(u)
        k = math.floor((2.0 * a / edge + b) * u + centre)
        if edge >= 0.07 and v <= squeeze:
            return k
        if k < 0 or k > n:
            continue
        density = top - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0) + (k - mode) * log_odds
        if math.log(v * alpha / (a / (edge * edge) + b)) <= density:
            return k


@kernel
def binomial(stream, n, p):
    """Number of successes of `n` tries; its cost does not grow with `n`."""
    if p <= 0.0 or n <= 0:
        return 0
    if p >= 1.0:
        return n
    less = p if p <= 0.5 else 1.0 - p
    k = many_successes(stream, n, less) if n * less >= FEW else few_successes(stream, n, less)
    return k if p <= 0.5 else n - k


@kernel
def lane_uniform(lanes, s):
    """Next uniform float32 in [0, 1) of lane `s` (xoshiro128+)."""
    s0 = lanes[0, s]
    s1 = lanes[1, s]
    s2 = lanes[2, s]
    s3 = lanes[3, s]
    result = np.uint32(s0 + s3)
    t = np.uint32(s1 << np.uint32(9))
    s2 = np.uint32(s2 ^ s0)
    s3 = np.uint32(s3 ^ s1)
    s1 = np.uint32(s1 ^ s2)
    s0 = np.uint32(s0 ^ s3)
    s2 = np.uint32(s2 ^ t)
    s3 = np.uint32((s3 << np.uint32(11)) | (s3 >> np.uint32(21)))
    lanes[0, s] = s0
    lanes[1, s] = s1
    lanes[2, s] = s2
    lanes[3, s] = s3
    return np.float32(np.int32(result >> np.uint32(8))) * np.float32(1.0 / 16777216.0)


@kernel
def fast_exp(x):
    """exp of a float32 to about 2e-7, the argument held within +-86; vectorises."""
    y = x * np.float32(1.4426950408889634)
    y = y if y < np.float32(125.0) else np.float32(125.0)
    y = y if y > np.float32(-125.0) else np.float32(-125.0)
    k = np.int32(y + np.float32(127.0))
    f = y - np.float32(np.int32(k - np.int32(127)))
    r = np.float32(1.8775767e-3)
    r = r * f + np.float32(8.9893397e-3)
    r = r * f + np.float32(5.5826318e-2)
    r = r * f + np.float32(2.4015361e-1)
    r = r * f + np.float32(6.9315308e-1)
    r = r * f + np.float32(9.9999994e-1)
    return r * int_bits_as_float(np.int32(k << np.int32(23)))
