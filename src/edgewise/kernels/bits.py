"""Sets as bits of uint64 words, 64 to a word."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.compiling import kernel

BITS = 64


@intrinsic
def popcount(typingctx, bits):
    """Number of ones among the bits of a uint64."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def lowest_one(typingctx, bits):
    """Place of the lowest one among the bits of a uint64, which has one."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), codegen


@kernel
def bit(i):
    """The word that has variable `i` alone, among the 64 of its word."""
    return np.uint64(1) << np.uint64(i & 63)


@kernel
def without_lowest(bits):
    """The word without its lowest one."""
    return bits & (bits - np.uint64(1))
