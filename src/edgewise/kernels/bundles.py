"""Named tuples of a kernel, handed from function to function by their address.

Numba hands a tuple over by its members, and an array by seven numbers: a chain with its rules and its source
of means is hundreds of arguments, which every call packs and every function unpacks. Nearly all that the
compiler then did was to remove them again. The named tuples of the kernels stay where the entry has put them
instead, and a function reads of them what it needs. They do not change while an entry runs, only what their
arrays hold, and the compiler is told so.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.boxing import unbox_tuple
from numba.core.datamodel import register_default
from numba.core.datamodel.models import PrimitiveModel, StructModel
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, unbox

PACKAGE = __name__.rpartition(".")[0]


class Bundle(types.NamedTuple):
    """Type of a named tuple that a module of kernels defines."""

    def __init__(self, members: Any, kind: type) -> None:
        super().__init__(members, kind)
        # Names of functions are made of those of their arguments.
        self.name = f"{kind.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:12]}"


_typeof_tuple = typeof_impl.dispatch(tuple)


@typeof_impl.register(tuple)
def _typeof(value: Any, context: Any) -> Any:
    found = _typeof_tuple(value, context)
    if isinstance(found, types.BaseNamedTuple) and found.instance_class.__module__.startswith(PACKAGE):
        return Bundle(tuple(found), found.instance_class)
    return found


class Members(StructModel):
    """The members of a bundle, side by side."""

    def __init__(self, manager: Any, bundle: Bundle) -> None:
        super().__init__(manager, bundle, list(zip(bundle.fields, bundle.types)))


@register_default(Bundle)
class Address(PrimitiveModel):
    """Where the members of a bundle are."""

    def __init__(self, manager: Any, bundle: Bundle) -> None:
        super().__init__(manager, bundle, Members(manager, bundle).get_value_type().as_pointer())


@unbox(Bundle)
def _unbox(bundle: Bundle, value: Any, tools: Any) -> NativeValue:
    """The members in the frame of whoever calls an entry."""
    members = unbox_tuple(types.NamedTuple(bundle.types, bundle.instance_class), value, tools)
    place = cgutils.alloca_once_value(tools.builder, members.value)
    return NativeValue(place, is_error=members.is_error, cleanup=members.cleanup)


@lower_getattr_generic(Bundle)
def _member(context: Any, builder: Any, bundle: Bundle, address: Any, name: str) -> Any:
    number = bundle.fields.index(name)
    kind, place = bundle.types[number], cgutils.gep_inbounds(builder, address, 0, number)
    if isinstance(kind, types.Array) and not context.enable_nrt:
        return _array(context, builder, kind, place)
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, Bundle):
        return impl_ret_borrowed(context, builder, kind, builder.load(place))
    return impl_ret_borrowed(context, builder, kind, _read(builder, place))


def _read(builder: Any, place: Any) -> Any:
    """What never changes while an entry runs."""
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _array(context: Any, builder: Any, kind: types.Array, place: Any) -> Any:
    """An array without an owner, of which only what its type leaves open is read."""
    model = context.data_model_manager[kind]
    where = {name: model.get_field_position(name) for name in ("data", "shape", "strides", "nitems")}
    word = context.get_value_type(types.intp)
    itemsize = ir.Constant(word, context.get_abi_sizeof(context.get_data_type(kind.dtype)))

    def read(name: str, *axis: int) -> Any:
        return _read(builder, cgutils.gep_inbounds(builder, place, 0, where[name], *axis))

    shape = [read("shape", axis) for axis in range(kind.ndim)]
    known: list[Any] = [None if part.is_pointer else ir.Undefined for part in model.get_value_type().elements]
    known[model.get_field_position("itemsize")] = itemsize
    strides, count = [itemsize], shape[0]
    for size in shape[1:]:
        count = builder.mul(count, size)
    if kind.layout == "C":
        for size in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], size))
    else:
        strides = [read("strides", axis) for axis in range(kind.ndim)]
    known[where["strides"]] = [ir.Undefined] * (kind.ndim - 1) + [itemsize]
    known[where["shape"]] = [ir.Undefined] * kind.ndim
    made = ir.Constant(model.get_value_type(), known)
    made = builder.insert_value(made, count, where["nitems"])
    made = builder.insert_value(made, read("data"), where["data"])
    for axis in range(kind.ndim):
        made = builder.insert_value(made, shape[axis], [where["shape"], axis])
        if strides[axis] is not itemsize:
            made = builder.insert_value(made, strides[axis], [where["strides"], axis])
    return made
