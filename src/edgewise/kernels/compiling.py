"""How kernels are compiled, how a question is answered by type, and small arrays that live on the stack.

A kernel works on arrays that its caller owns and makes none of its own. So nothing has to count references
to arrays, which in a chain of microsecond moves took as long as the moves themselves; a kernel that tries to
make an array does not compile.

Only an *entry* can be called from Python. All others are called by kernels, and Numba would nevertheless
optimise each of them together with everything below it, and turn it into machine code that nobody runs.
:func:`kernel` leaves that out: its code is checked and typed, and optimised once, inside the entry that needs
it, with the same results. Passes of the compiler that look for what no kernel contains are left out as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numba import _dynfunc, njit, types
from numba.core import cgutils, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.environment import lookup_environment
from numba.core.errors import RequireLiteralValue
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

from edgewise.kernels import bundles as bundles  # says how named tuples are handed over
from edgewise.kernels.cache import on_disk


class LinkedLibrary(JITCodeLibrary):
    """Code that is linked into entries: neither optimised by itself nor made executable."""

    apart = False
    whole = False

    def finalize(self) -> None:
        """Nothing is linked or optimised here."""
        self._raise_if_finalized()
        self._finalized = True

    def add_ir_module(self, module: Any) -> None:
        """Take the code of the function."""
        for function in module.functions:
            if self.whole and not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(module)

    def _optimize_functions(self, module: Any) -> None:
        """Nor is the function alone."""
        module.data_layout = self._codegen._data_layout

    def own_module(self) -> Any:
        """The code of this function alone, fit for linking."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """With all that it calls, for a library that is no entry."""
        module = self.own_module().clone()
        for library in link_below(self._linking_libraries, module)[0]:
            module.link_in(library._get_module_for_linking(), preserve=True)
        return module


def link_below(libraries: Sequence[Any], module: Any) -> tuple[list[Any], set[str]]:
    """Link kernels, and the kernels that these call, into a module.

    Returns the other libraries that they use, and the names of the functions that are to stay apart.
    """
    kernels: dict[str, LinkedLibrary] = {}
    others: dict[Any, None] = {}
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if not isinstance(library, LinkedLibrary):
            others[library] = None
        elif library not in kernels.values():
            defined = [f.name for f in library.own_module().functions if not f.is_declaration]
            kernels |= dict.fromkeys(defined, library)
            waiting += library._linking_libraries
    # The linker leaves out what is not referred to when its turn comes, so it is asked by name.
    while wanted := [f.name for f in module.functions if f.is_declaration and f.name in kernels]:
        for library in dict.fromkeys(kernels[name] for name in wanted):
            module.link_in(library.own_module(), preserve=True)
    return list(others), {name for name, library in kernels.items() if library.apart}


class EntryLibrary(JITCodeLibrary):
    """Code that Python calls, with everything below it."""

    def finalize(self) -> None:
        """Link each kernel once, then optimise all of them together."""
        self._linking_libraries, self._apart = link_below(self._linking_libraries, self._final_module)
        super().finalize()

    def _optimize_final_module(self) -> None:
        # Called when all is linked. Numba would run into a function that is not there.
        missing = [
            f.name for f in self._final_module.functions if f.is_declaration and f.name.startswith("_ZN")
        ]
        if missing:
            raise RuntimeError(f"{self.name} calls functions that are not linked: {', '.join(missing)}")
        self._optimize()

    def _optimize(self) -> None:
        super()._optimize_final_module()


class LeanEntryLibrary(EntryLibrary):
    """An entry without references to count, hence without any to prune: one pass of optimisation will do."""

    def _optimize(self) -> None:
        # Nobody else calls the kernels in here: arguments that they do not use need not be handed to them.
        # Nor may others find them by their names, under which they expect all arguments.
        for function in self._final_module.functions:
            if function.linkage.name == "linkonce_odr" and function.name not in self._apart:
                function.linkage = "internal"
                function.name = f"inside.{function.name}"
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class LinkedLowering(NativeLowering):
    """Lowering that ends with code to link."""

    _name = "edgewise_linked_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower, and register the code with those who call it."""
        context = state.targetctx
        state.library = LinkedLibrary(context.codegen(), state.func_id.func_qualname)
        state.library.apart = state.func_id.func in _apart
        state.library.whole = state.func_id.func in _whole
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        described = lowered.fndesc
        # Callers know a function by this object; it is never called itself.
        known_as = _dynfunc.make_function(
            described.lookup_module(), described.qualname, "", 0, lowered.env, (state.library,)
        )
        context.insert_user_function(known_as, described, [state.library])
        state["cr"] = _LowerResult(described, lowered.call_helper, cfunc=known_as, env=lowered.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """Lowering of an entry, which also gives the linked functions their environments."""

    _name = "edgewise_entry_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower, then find the environments that the code refers to."""
        kind = EntryLibrary if state.flags.nrt else LeanEntryLibrary
        state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv"):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    state.library.codegen.set_env(variable.name, environment)
        return True


# What these look for stands in no kernel: closures, with, raise, array expressions, inlined or literal
# arguments. Each of them walks through the whole function.
UNUSED_PASSES = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.NoPythonSupportedFeatureValidation,
    typed_passes.DumpParforDiagnostics,
)


class QuickFlags(Flags):
    """Flags that are compared quickly: Numba does so thousands of times for every kernel."""

    __slots__ = ()
    _hash = hash(Flags())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Flags) and self._values == other._values) or super().__eq__(other)


def _compiler(lowering: type) -> type:
    """A compiler like Numba's own with another lowering."""

    class Compiler(CompilerBase):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.state.flags = QuickFlags(self.state.flags)

        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            unused = () if self.state.flags.nrt else UNUSED_PASSES
            passes.passes = [(lowering, why) if which is NativeLowering else (which, why)
                             for which, why in passes.passes if which not in unused]  # fmt: skip
            passes._finalized = False
            passes.finalize()
            return [passes]

    return Compiler


LINKED = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
          "pipeline_class": _compiler(LinkedLowering)}  # fmt: skip
CALLABLE = {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": _compiler(EntryLowering)}


def kernel(function: Callable[..., Any] | None = None, *, arrays: bool = False, **options: Any) -> Any:
    """Compile a function for other kernels to call.

    It runs without the interpreter and without counting references; with `arrays` it may make arrays, and
    counts references to them.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        made = njit(_nrt=arrays, **LINKED, **options)(function)
        if isinstance(made, Dispatcher):  # not with NUMBA_DISABLE_JIT
            made.add_overload = partial(_remember, made)
            made._compile_for_args = partial(_refuse, made)
            made.get_call_template = partial(_as_any, made)
        return made

    return decorate if function is None else decorate(function)


def _remember(made: Any, compiled: Any) -> None:
    """Keep compiled code for kernels to find, and out of the reach of calls from Python."""
    made.overloads[tuple(compiled.signature.args)] = compiled


def _as_any(made: Any, arguments: Any, keywords: Any) -> Any:
    """A call with a constant is one with any number: there is no version of the code for each constant."""
    chosen = tuple(types.unliteral(kind) for kind in arguments)
    return Dispatcher.get_call_template(
        made, chosen, {name: types.unliteral(kind) for name, kind in dict(keywords).items()}
    )


def _refuse(made: Any, *_: Any, **__: Any) -> None:
    raise TypeError(f"{made.py_func.__name__} can be called by kernels only; exposed() makes it callable.")


def loop(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A kernel that runs over particles: its loop is compiled best in a function of its own."""

    def decorate(function: Callable[..., Any]) -> Any:
        _apart.add(function)
        return kernel(function, **options)

    return decorate if function is None else decorate(function)


def long(function: Callable[..., Any]) -> Any:
    """A kernel beside whose work a call is nothing: it is not copied into those who call it."""
    _whole.add(function)
    return kernel(function)


_apart: set[Callable[..., Any]] = set()
_whole: set[Callable[..., Any]] = set()


def entry(function: Callable[..., Any] | None = None, *, arrays: bool = False, **options: Any) -> Any:
    """Compile a function for Python to call, and keep the result on disk."""
    decorate = on_disk(njit(_nrt=arrays, **CALLABLE, **options))
    return decorate if function is None else decorate(function)


def exposed(function: Any) -> Any:
    """A kernel made callable from Python, for tests and measurements."""
    chosen = function.targetoptions
    options = {name: chosen[name] for name in ("_nrt", "fastmath", "error_model") if name in chosen}
    return njit(**CALLABLE, **options)(function.py_func)


def question(stub: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function a question to its first argument, answered by type when compiled.

    The types are named tuples; :func:`answer` says how each of them answers.
    """
    stub.answers = {}  # type: ignore[attr-defined]

    def choose(asked: Any, *_: Any) -> Any:
        return stub.answers.get(getattr(asked, "instance_class", None))  # type: ignore[attr-defined]

    overload(stub, jit_options={"_nrt": False, **LINKED}, strict=False)(choose)
    return stub


def answer(stub: Any, *kinds: type) -> Callable[[Any], Any]:
    """Register a function as the answer of the named tuples `kinds` to a question."""

    def register(function: Any) -> Any:
        wanted, given = inspect.signature(stub), inspect.signature(function)
        if len(wanted.parameters) != len(given.parameters):
            raise TypeError(f"{function.__name__} must take what {stub.__name__} takes: {wanted}")
        for kind in kinds:
            stub.answers[kind] = function
        return function

    return register


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
def whole(typingctx, size):
    """An uninitialised int64 array of constant size, for the time of the call."""
    return _on_stack(types.int64, size, None)


@intrinsic(prefer_literal=True)
def lanes_of_terms(typingctx, rows, columns):
    """An uninitialised float32 array (rows, columns) of constant size, for the time of the call."""
    return _on_stack(types.float32, rows, columns)
