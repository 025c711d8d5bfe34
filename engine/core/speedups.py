"""What Taichi 1.7.4 does slowly in Python, done quickly: defining, compiling and launching kernels.

Nothing here changes what a kernel computes. Whatever is out of the ordinary goes Taichi's own way.
"""

import ast
import functools
import inspect
import linecache
import sys
import textwrap
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from taichi.lang import impl, kernel_impl
from taichi.lang._ndarray import Ndarray, ScalarNdarray
from taichi.lang.argpack import ArgPack, ArgPackType
from taichi.lang.ast.ast_transformer import ASTTransformer
from taichi.lang.enums import AutodiffMode
from taichi.lang.exception import handle_exception_from_cpp
from taichi.lang.matrix import MatrixNdarray, MatrixType, VectorNdarray
from taichi.lang.util import cook_dtype
from taichi.types import ndarray_type, primitive_types
from taichi.types.utils import is_signed

# --- definition -------------------------------------------------------------------------------------


def know_classes_quickly() -> None:
    """Tells whether a kernel or function is defined in a class as Taichi does, by the line that its definition is at,
    but without going through all modules for it, which takes 1 ms for each of the hundreds there are."""

    def inside_class(level_of_class_stackframe: int) -> bool:
        try:
            frame = sys._getframe(level_of_class_stackframe)
        except ValueError:  # nobody is that far up
            return False
        file = frame.f_code.co_filename
        linecache.checkcache(file)  # a scene that is read again may have changed
        line = linecache.getline(file, frame.f_lineno).strip()
        return any(pattern.match(line) for pattern in kernel_impl._KERNEL_CLASS_STACKFRAME_STMT_RES)

    kernel_impl._inside_class = inside_class


# --- compilation ------------------------------------------------------------------------------------


def read_sources_once() -> None:
    """Keeps the source of a function that kernels call: Taichi looks for its file among all modules and cuts it out of
    that file for every single call, which takes a third of the time until a kernel is ready."""

    @functools.cache
    def source(func: Any) -> tuple[str, list[str], int, str]:
        lines, first = inspect.getsourcelines(func)
        lines = [textwrap.fill(line, tabsize=4, width=9999) for line in lines]  # as Taichi does
        return inspect.getsourcefile(func) or "", lines, first, textwrap.dedent("\n".join(lines))

    def tree_and_context(self: Any, excluded_parameters: Any = (), is_kernel: bool = True, arg_features: Any = None,
                         args: Any = None, ast_builder: Any = None, is_real_function: bool = False) -> Any:  # fmt: skip
        file, lines, first, text = source(self.func)
        tree = ast.parse(text)  # anew, because what is made of it is noted in it
        tree.body[0].decorator_list = []  # type: ignore[attr-defined]
        known = kernel_impl._get_global_vars(self.func)
        if is_kernel or is_real_function:
            known |= {self.arguments[i].name: args[i] for i in self.template_slot_locations}
        return tree, kernel_impl.ASTTransformerContext(
            excluded_parameters=excluded_parameters, is_kernel=is_kernel, func=self, arg_features=arg_features,
            global_vars=known, argument_data=args, src=lines, start_lineno=first, file=file, ast_builder=ast_builder,
            is_real_function=is_real_function)  # fmt: skip

    kernel_impl._get_tree_and_ctx = tree_and_context


# --- one thread -------------------------------------------------------------------------------------


class OneThread:
    """Kernels whose loops run in the calling thread. To wake the workers and to wait for them costs 20 to 30
    microseconds a loop, as much as a loop over some thousand particles takes. A kernel has a twin without that."""

    def __init__(self) -> None:
        self.active = False  # whether twins are called, and compiled

    def twin(self, kernel: Any) -> Any:
        """The same kernel, compiled with serial loops."""
        known = kernel.__dict__
        if "twin" not in known:
            known["twin"] = kernel_impl.Kernel(kernel.func, kernel.autodiff_mode, kernel.classkernel)
            known["twin"].serial = True
            known["twin"].twin = known["twin"]
        return known["twin"]


one_thread = OneThread()


def serialise_twins() -> None:
    """Makes loops serial while a twin is compiled."""
    ordinary = ASTTransformer.build_For

    def build_for(ctx: Any, node: ast.For) -> Any:
        if getattr(impl.get_runtime().current_kernel, "serial", False):  # also in functions that it calls
            ctx.ast_builder.parallelize(1)
            ctx.ast_builder.strictly_serialize()
        return ordinary(ctx, node)

    ASTTransformer.build_For = staticmethod(build_for)


# --- launch -----------------------------------------------------------------------------------------
# Taichi looks at every argument several times in every call, 100 to 200 microseconds for most kernels. What it finds
# depends on the types of arguments alone, and on the values of templates: these are the signature of a call. A kernel
# that was called once with a signature is launched at once when it is called with the same again.

ARRAYS = (ScalarNdarray, VectorNdarray, MatrixNdarray)
NUMBERS = (float, int, bool, np.float32, np.float64, np.int32, np.int64)
TEMPLATES = (float, int, bool, str, type(None), FunctionType)  # that are what they are: told apart by their values
LARGEST = np.iinfo(np.int32).max  # elements of a NumPy array: Taichi warns of more
REAL, INT, UNSIGNED, ARRAY, PACK, TEMPLATE = range(6)  # kinds of parameters

WITH_GRADIENT = -1

_kinds: dict[Any, int] = {}


def _kind(array: Ndarray) -> int:
    """A number for all arrays of one type of elements and number of dimensions."""
    if array.grad is not None:
        return WITH_GRADIENT
    return _kinds.setdefault((array.element_type, len(array.shape)), len(_kinds))


class Slot(NamedTuple):
    """A parameter of a kernel: its kind, its place among the arguments that are no templates, and, for arrays, how many
    of a NumPy array's last axes are one element's."""

    kind: int
    place: tuple[int]
    axes: int = 0


def _slots(kernel: Any) -> list[Slot] | None:
    """The parameters of a kernel; None if some of them are of kinds that are not known here."""
    slots: list[Slot] = []
    for argument in kernel.arguments:
        needed, place = argument.annotation, (sum(slot.kind != TEMPLATE for slot in slots),)
        if isinstance(needed, kernel_impl.template):
            slots.append(Slot(TEMPLATE, place))
        elif id(needed) in primitive_types.real_type_ids:
            slots.append(Slot(REAL, place))
        elif id(needed) in primitive_types.integer_type_ids:
            slots.append(Slot(INT if is_signed(cook_dtype(needed)) else UNSIGNED, place))
        elif isinstance(needed, ndarray_type.NdarrayType):
            slots.append(Slot(ARRAY, place, needed.dtype.ndim if isinstance(needed.dtype, MatrixType) else 0))
        elif isinstance(needed, ArgPackType):
            members = needed.members.values()  # numbers are in the pack already, and only arrays have to be passed
            if not all(isinstance(m, ndarray_type.NdarrayType) or id(m) in primitive_types.type_ids for m in members):
                return None
            slots.append(Slot(PACK, place))
        else:
            return None
    return slots


class Pack(NamedTuple):
    """What of a pack a launch needs: its part of the signature, and its arrays in their order."""

    signature: tuple | None
    arrays: list[Any]


def _packed(pack: ArgPack) -> Pack:
    """Looked at once, until a member is set anew."""
    known = pack.__dict__.get("_launched")
    if known is None:
        members = pack._ArgPack__entries.values()
        kinds = [member._kind if type(member) in ARRAYS else type(member) for member in members]
        ordinary = all(kind in NUMBERS or type(kind) is int and kind != WITH_GRADIENT for kind in kinds)
        known = Pack(tuple(kinds) if ordinary else None, [m.arr for m in members if type(m) in ARRAYS])
        pack.__dict__["_launched"] = known
    return known


def _signature(slots: list[Slot], args: tuple) -> tuple | None:
    """What the way of a call depends on; None if it has to be Taichi's own."""
    found: list[Any] = []
    for arg, slot in zip(args, slots, strict=True):
        kind, type_ = slot.kind, type(arg)
        if kind == ARRAY:
            if type_ in ARRAYS:
                found.append(arg._kind)
            elif type_ is np.ndarray and arg.flags.c_contiguous and arg.size <= LARGEST:
                found.append((arg.dtype, arg.ndim, arg.shape[arg.ndim - slot.axes :]))
            else:
                return None
        elif kind == PACK:
            if not isinstance(arg, ArgPack):
                return None
            pack = _packed(arg)
            if pack.signature is None:
                return None
            found.append(pack.signature)
        elif kind == TEMPLATE:
            if type_ not in TEMPLATES:
                return None
            found += (type_, arg)
        elif type_ in NUMBERS:
            found.append(type_)
        else:
            return None
    return tuple(found)


def _launch(compiled: Any, slots: list[Slot], first: int, args: tuple) -> None:
    """As `Kernel.launch_kernel`, for arguments that were looked at. Arrays in packs come after all others: the first of
    them has the place `first`."""
    context, packed = compiled.make_launch_context(), []
    for arg, (kind, place, axes) in zip(args, slots, strict=True):
        if kind == ARRAY:
            if type(arg) is np.ndarray:
                shape = arg.shape[: arg.ndim - axes]
                context.set_arg_external_array_with_shape(place, arg.ctypes.data, arg.nbytes, shape, 0)
            else:
                context.set_arg_ndarray(place, arg.arr)
        elif kind == REAL:
            context.set_arg_float(place, float(arg))
        elif kind == INT:
            context.set_arg_int(place, int(arg))
        elif kind == PACK:
            packed += _packed(arg).arrays
            context.set_arg_argpack(place, arg._ArgPack__argpack)
        elif kind == UNSIGNED:
            context.set_arg_uint(place, int(arg))
    for k, array in enumerate(packed, first):
        context.set_arg_ndarray((k,), array)
    prog = impl.get_runtime().prog
    try:
        prog.launch_kernel(prog.compile_kernel(prog.config(), prog.get_device_caps(), compiled), context)
    except Exception as error:
        raise handle_exception_from_cpp(error) from None


class Launches:
    """The calls of one kernel that were made before: by signature, what was compiled for it."""

    def __init__(self, kernel: Any):
        ordinary = kernel.autodiff_mode == AutodiffMode.NONE and kernel.return_type is None
        self.slots = _slots(kernel) if ordinary else None
        self.places = sum(slot.kind != TEMPLATE for slot in self.slots or ())
        self.ready: dict[tuple, Any] = {}
        self.compiled = kernel.compiled_kernels  # another dictionary after `ti.reset`


def launch_quickly() -> None:
    """Launches a kernel at once if it was called with arguments of the same types before."""
    slow = kernel_impl.Kernel.__call__

    def call(self: Any, *args: Any, **names: Any) -> Any:
        if one_thread.active:
            self = one_thread.twin(self)
        launches, runtime = self.__dict__.get("launches"), self.runtime
        if launches is None or launches.compiled is not self.compiled_kernels:
            launches = self.launches = Launches(self)
        slots = launches.slots
        if slots is None or names or len(args) != len(slots) or runtime.target_tape or runtime.fwd_mode_manager:
            return slow(self, *args, **names)
        signature = _signature(slots, args)
        if signature is None:
            return slow(self, *args)
        compiled = launches.ready.get(signature)
        if compiled is not None:
            return _launch(compiled, slots, launches.places, args)
        result = slow(self, *args)
        if not self.has_print and WITH_GRADIENT not in signature:
            launches.ready[signature] = self.compiled_kernels[self.ensure_compiled(*args)]
        return result

    set_member = ArgPack.__setitem__

    def set_and_forget(self: ArgPack, key: str, value: Any) -> None:
        self.__dict__.pop("_launched", None)
        set_member(self, key, value)

    ArgPack.__setitem__ = set_and_forget
    kind = functools.cached_property(_kind)
    kind.__set_name__(Ndarray, "_kind")
    Ndarray._kind = kind
    kernel_impl.Kernel.__call__ = call
