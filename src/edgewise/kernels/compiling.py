"""How kernels are compiled, and small arrays that live on the stack.

A kernel works on arrays that its caller owns and makes none of its own. So nothing has to count references
to arrays, which in a chain of microsecond moves took as long as the moves themselves; a kernel that tries to
make an array does not compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from edgewise.kernels.cache import on_disk


def kernel(function: Callable[..., Any] | None = None, *, arrays: bool = False, **options: Any) -> Any:
    """Compile a function that runs without the interpreter and without counting references.

    With `arrays` it may make arrays, and counts references to them.
    """
    decorate = on_disk(njit(nogil=True, _nrt=arrays, **options))
    return decorate if function is None else decorate(function)


def _on_stack(element: types.Type, rows: Any, columns: Any) -> Any:
    """Signature and code of an uninitialised array in the frame of the calling function."""
    sizes = [size for size in (rows, columns) if size is not None]
    if not all(isinstance(size, types.IntegerLiteral) for size in sizes):
        raise RequireLiteralValue("the size of an array on the stack must be a constant")
    shape = [size.literal_value for size in sizes]
    array_type = types.Array(element, len(shape), "C")

    def codegen(context: Any, builder: Any, signature: Any, _: Any) -> Any:
        data_type = context.get_data_type(element)
        count = int(np.prod(shape))
        data = cgutils.alloca_once(builder, data_type, size=count)
        array = make_array(array_type)(context, builder)
        itemsize = context.get_abi_sizeof(data_type)
        word = types.intp
        strides = [itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
        populate_array(
            array,
            data=builder.bitcast(data, array.data.type),
            shape=[context.get_constant(word, size) for size in shape],
            strides=[context.get_constant(word, stride) for stride in strides],
            itemsize=context.get_constant(word, itemsize),
            meminfo=None,
        )
        return array._getvalue()

    return array_type(*sizes), codegen


@intrinsic(prefer_literal=True)
def small(typingctx, size):
    """An uninitialised float64 array of constant size, for the time of the call."""
    return _on_stack(types.float64, size, None)


@intrinsic(prefer_literal=True)
def lanes_of_terms(typingctx, rows, columns):
    """An uninitialised float32 array (rows, columns) of constant size, for the time of the call."""
    return _on_stack(types.float32, rows, columns)
