"""What Taichi 1.7.4 does slowly in Python, done quickly: defining, compiling and launching kernels.

Nothing here changes what a kernel computes. Whatever is out of the ordinary goes Taichi's own way, and all of it if
Taichi has changed (`launch_check`): what is put in the place of Taichi's own parts is noted (`replace`), to be undone.
"""

import ast
import contextlib
import functools
import inspect
import itertools
import linecache
import math
import operator
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from taichi._lib import core as taichi_core
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

_replaced: list[tuple[Any, str, Any]] = []  # whose part, its name, and what it was


def replace(owner: Any, name: str, part: Any) -> None:
    """Puts a part of our own in the place of one of Taichi's."""
    _replaced.append((owner, name, owner.__dict__.get(name)))
    setattr(owner, name, part)


def undo() -> None:
    """Puts Taichi's own parts back."""
    while _replaced:
        owner, name, part = _replaced.pop()
        if part is None:
            delattr(owner, name)
        else:
            setattr(owner, name, part)


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

    replace(kernel_impl, "_inside_class", inside_class)


# --- compilation ------------------------------------------------------------------------------------


@functools.cache
def _source(func: Any) -> tuple[str, list[str], int, str]:
    """File, lines, number of the first line, and text of a function."""
    lines, first = inspect.getsourcelines(func)
    lines = [textwrap.fill(line, tabsize=4, width=9999) for line in lines]  # as Taichi does
    return inspect.getsourcefile(func) or "", lines, first, textwrap.dedent("\n".join(lines))


def _definition(func: Any) -> ast.Module:
    tree = ast.parse(_source(func)[3])  # anew, because what is made of it is noted in it
    tree.body[0].decorator_list = []  # type: ignore[attr-defined]
    return tree


def read_sources_once() -> None:
    """Keeps the source of a function that kernels call: Taichi looks for its file among all modules and cuts it out of
    that file for every single call, which takes a third of the time until a kernel is ready. Kernels may have been
    `rewritten`."""

    def tree_and_context(self: Any, excluded_parameters: Any = (), is_kernel: bool = True, arg_features: Any = None,
                         args: Any = None, ast_builder: Any = None, is_real_function: bool = False) -> Any:  # fmt: skip
        file, lines, first, _ = _source(self.func)
        tree, known = _definition(self.func), kernel_impl._get_global_vars(self.func)
        if is_kernel or is_real_function:
            known |= {self.arguments[i].name: args[i] for i in self.template_slot_locations}
        if "rewrite" in self.__dict__:
            self.rewrite(tree.body[0])
            known |= self.names
        return tree, kernel_impl.ASTTransformerContext(
            excluded_parameters=excluded_parameters, is_kernel=is_kernel, func=self, arg_features=arg_features,
            global_vars=known, argument_data=args, src=lines, start_lineno=first, file=file, ast_builder=ast_builder,
            is_real_function=is_real_function)  # fmt: skip

    replace(kernel_impl, "_get_tree_and_ctx", tree_and_context)


def _copy(kernel: Any) -> Any:
    """The same kernel, not yet compiled."""
    copy = kernel_impl.Kernel(kernel.func, kernel.autodiff_mode, kernel.classkernel)
    copy.vectors, copy.long = kernel.__dict__.get("vectors", False), kernel.__dict__.get("long", False)
    return copy


def rewritten(kernel: Any, rewrite: Callable[[ast.FunctionDef], Any], types: dict[str, Any], names: dict[str, Any]
              ) -> Any:  # fmt: skip
    """A kernel whose definition is rewritten before it is compiled. It takes further arguments, of these types, and
    knows more names."""
    twin = _copy(kernel)
    twin.rewrite, twin.names = rewrite, names
    twin.arguments += [kernel_impl.KernelArgument(type_, name) for name, type_ in types.items()]
    twin.mapper = kernel_impl.TaichiCallableTemplateMapper(twin.arguments, twin.template_slot_locations)
    rewrite(_definition(kernel.func).body[0])  # type: ignore[arg-type]
    return twin


# --- threads ----------------------------------------------------------------------------------------

COMMON = 900  # elements up to which one thread is the fastest...
LIGHT = 12_000  # ...and for kernels that do little with each
ORDINARY, ALONE, TOGETHER = range(3)  # ways in which a kernel runs: as Taichi has it, in one thread, in a crew


class Threads:
    """How many threads a kernel runs in. To wake and wait for the workers costs 20 to 90 microseconds a loop, more than
    one over a few thousand particles takes; so a kernel has a twin whose loops run in the calling thread. And it has
    one for many elements, which wakes the workers but once for all of its loops (`team.Crew`).

    It is chosen by the number of `elements` that there are. Results may differ in what is rounded, so that this must
    follow from the scene alone, never from the machine.
    """

    def __init__(self) -> None:
        self.elements = math.inf
        self.crew: Any = None
        self.way = ORDINARY  # of the kernel that is launched, and maybe compiled

    @contextlib.contextmanager
    def among(self, elements: float) -> Iterator[None]:
        """Chooses for so many elements: one thread for none, and Taichi's own way for infinitely many."""
        before, self.elements = self.elements, elements
        try:
            yield
        finally:
            self.elements = before

    def alone(self, kernel: Any) -> bool:
        """Whether a kernel runs in the calling thread now."""
        return self.elements <= kernel.__dict__.get("few", COMMON)

    def choose(self, kernel: Any, args: tuple) -> tuple[Any, tuple]:
        """The twin to launch, and with what."""
        if self.elements == math.inf:
            self.way = ORDINARY
            return kernel, args
        known = kernel.__dict__
        if self.alone(kernel):
            self.way = ALONE
            if "solo" not in known:
                known["solo"] = _copy(kernel)
                known["solo"].serial = True
            return known["solo"], args
        if "together" not in known:
            known["together"] = self.crew.twin(kernel) if self.crew else None
        twin = known["together"]
        self.way = ORDINARY if twin is None else TOGETHER
        return (kernel, args) if twin is None else (twin, args + self.crew.extras(twin))


threads = Threads()


def alone_up_to(elements: int) -> Callable[[Any], Any]:
    """Marks a kernel that runs in one thread up to so many elements."""

    def mark(kernel: Any) -> Any:
        kernel._primal.few = elements
        return kernel

    return mark


light = alone_up_to(LIGHT)  # marks a kernel that does little with each element: it looks at no pairs


# --- vectors ----------------------------------------------------------------------------------------

CPUS = (taichi_core.x64, taichi_core.arm64)
_compiling = threading.RLock()


def with_vectors(kernel: Any) -> Any:
    """Marks a kernel that keeps vectors of four in registers of the CPU, so that one instruction does all components.
    Taichi takes vectors apart, and what LLVM puts together again depends on the CPU, from nothing to loops over four or
    eight neighbors at a time that are slower than one by one.

    LLVM takes it that vectors in memory begin at multiples of their size, rounded up to a power of two. So in these
    kernels vectors of other sizes than two and four are read and written by components (`backend.vector_at`,
    `set_vector`), vectors are in Taichi's own arrays, and none is carried from outside into a parallel loop. Of vectors
    Taichi 1.7.4 then knows sums, differences, products, quotients, least and greatest, comparisons within `select`,
    roots and `round`; not the unary minus (nor `-=`, which is made of it), `abs` or casts, which end the process.
    """
    kernel._primal.vectors = True
    return kernel


def long(kernel: Any) -> Any:
    """Marks a kernel of hundreds of lines in one loop: Taichi's own optimisation passes, quadratic in places, would
    take minutes to find what LLVM finds as well."""
    kernel._primal.long = True
    return kernel


@contextlib.contextmanager
def vectors_of(kernel: Any) -> Iterator[None]:
    """Compiles as is right for a kernel, while it lasts; other threads wait, because there is one setting for all."""
    config = impl.current_cfg()
    with _compiling:
        config.real_matrix_scalarize = not (kernel.__dict__.get("vectors") and config.arch in CPUS)
        config.advanced_optimization = not kernel.__dict__.get("long")
        try:
            yield
        finally:
            config.real_matrix_scalarize = config.advanced_optimization = True


def serialise_twins() -> None:
    """Makes loops serial while a twin is compiled."""
    ordinary = ASTTransformer.build_For

    def build_for(ctx: Any, node: ast.For) -> Any:
        if getattr(impl.get_runtime().current_kernel, "serial", False):  # also in functions that it calls
            ctx.ast_builder.parallelize(1)
            ctx.ast_builder.strictly_serialize()
        return ordinary(ctx, node)

    replace(ASTTransformer, "build_For", staticmethod(build_for))


# --- launch -----------------------------------------------------------------------------------------
# Taichi looks at every argument several times in every call, 100 to 200 microseconds for most kernels. What it finds
# depends on the types of arguments alone, and on the values of templates: these are the signature of a call. A kernel
# that was called once with a signature is launched at once when it is called with the same again.

ARRAYS = (ScalarNdarray, VectorNdarray, MatrixNdarray)
NUMBERS = frozenset((float, int, bool, np.float32, np.float64, np.int32, np.int64))
TEMPLATES = frozenset((float, int, bool, str, type(None), FunctionType))  # told apart by their values
LARGEST = np.iinfo(np.int32).max  # elements of a NumPy array: Taichi warns of more
REAL, INT, UNSIGNED, ARRAY, PACK, TEMPLATE, KINDS = range(7)  # kinds of parameters

WITH_GRADIENT = -1
REAL_BYTES = 4  # of all that kernels take: numbers of 32 bits
MOST_CONTEXTS = 16  # that are kept of a kernel

_kinds: dict[Any, int] = {}
_counter = itertools.count()


def _kind(array: Ndarray) -> int:
    """A number for all arrays of one type of elements and number of dimensions."""
    if array.grad is not None:
        return WITH_GRADIENT
    return _kinds.setdefault((array.element_type, len(array.shape)), len(_kinds))


def _number(owner: Any) -> int:
    """A number that no other array and no other pack ever has."""
    return next(_counter)


_number_of = operator.attrgetter("_number")
_set_member_itself = ArgPack.__setitem__


def _set_member(pack: ArgPack, name: str, value: Any) -> None:
    """As Taichi does; the pack is then another one."""
    pack.__dict__.pop("_number", None)
    _set_member_itself(pack, name, value)


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
            for member in arg._ArgPack__entries.values():
                if type(member) in ARRAYS:
                    found.append(member._kind)
                elif type(member) in NUMBERS:
                    found.append(type(member))
                else:
                    return None
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
                _set_host_array(context, place, axes, arg)
            else:
                context.set_arg_ndarray(place, arg.arr)
        elif kind == PACK:
            packed += _arrays_in(arg)
            context.set_arg_argpack(place, arg._ArgPack__argpack)
        elif kind != TEMPLATE:
            _set_number(context, kind, place, arg)
    for k, array in enumerate(packed, first):
        context.set_arg_ndarray((k,), array.arr)
    prog = impl.get_runtime().prog
    _run(prog.compile_kernel(prog.config(), prog.get_device_caps(), compiled), context)


def _run(code: Any, context: Any) -> None:
    try:
        impl.get_runtime().prog.launch_kernel(code, context)
    except Exception as error:
        raise handle_exception_from_cpp(error) from None


def _set_number(context: Any, kind: int, place: tuple[int], value: Any) -> None:
    if kind == REAL:
        context.set_arg_float(place, float(value))
    elif kind == INT:
        context.set_arg_int(place, int(value))
    else:
        context.set_arg_uint(place, int(value))


def _set_host_array(context: Any, place: tuple[int], axes: int, array: np.ndarray) -> None:
    shape = array.shape[: array.ndim - axes]
    context.set_arg_external_array_with_shape(place, array.ctypes.data, array.nbytes, shape, 0)


def _arrays_in(pack: ArgPack) -> list[Ndarray]:
    return [member for member in pack._ArgPack__entries.values() if type(member) in ARRAYS]


class Launches:
    """The calls of one kernel that were made before: by signature, what was compiled for it, and by the arrays
    themselves, what was launched.

    Taichi takes a microsecond for each array of a launch. On the CPU a launch that is kept (`contexts`) has them all,
    and needs nothing but the numbers of the next call. Arrays are given there by their addresses: what Taichi makes of
    its own handles it puts into their place, which would be wrong the second time.
    """

    def __init__(self, kernel: Any):
        ordinary = kernel.autodiff_mode == AutodiffMode.NONE and kernel.return_type is None
        found = _slots(kernel) if ordinary else None
        self.ordinary, self.slots = found is not None, found or []
        self.places = sum(slot.kind != TEMPLATE for slot in self.slots)
        self.ready: dict[tuple, Any] = {}
        self.compiled = kernel.compiled_kernels  # another dictionary after `ti.reset`
        self.contexts: dict[tuple, tuple[Any, Any, list]] = {}
        places = {kind: [k for k, slot in enumerate(self.slots) if slot.kind == kind] for kind in range(KINDS)}
        self.numbers = [k for kind in (REAL, INT, UNSIGNED) for k in places[kind]]
        self.arrays, self.packs, self.templates = places[ARRAY], places[PACK], places[TEMPLATE]
        self._tell_hosts_apart(())

    def _tell_hosts_apart(self, args: tuple) -> None:
        """Notes which arrays are NumPy's: they are passed anew in each launch. Contexts have places for them."""
        self.contexts.clear()
        self.hosts = [k for k in self.arrays if args and type(args[k]) is np.ndarray]
        own = [k for k in self.packs + self.arrays if k not in self.hosts]
        self.pick = operator.itemgetter(*own) if len(own) > 1 else lambda args: [args[k] for k in own]

    def key(self, args: tuple) -> tuple | None:
        """What tells this call apart from all that need another context; None if it has to be looked at closely."""
        try:
            found = list(map(_number_of, self.pick(args)))
            for k in self.hosts:
                arg = args[k]
                if not arg.flags.c_contiguous or arg.size > LARGEST:
                    return None
                found += (arg.dtype, arg.shape)
        except AttributeError:
            self._tell_hosts_apart(args)
            return None
        for k in self.templates:
            kind = type(args[k])
            if kind not in TEMPLATES:
                return None
            found += (kind, args[k])
        found += [type(args[k]) for k in self.numbers]
        return tuple(found)

    def keep(self, key: tuple, compiled: Any, args: tuple) -> None:
        """Makes the context of later calls."""
        prog, context, packed = impl.get_runtime().prog, compiled.make_launch_context(), []
        for k in self.packs:
            context.set_arg_argpack(self.slots[k].place, args[k]._ArgPack__argpack)
            packed += _arrays_in(args[k])
        places = [(self.slots[k].place, args[k]) for k in self.arrays if k not in self.hosts]
        for place, array in places + [((k,), array) for k, array in enumerate(packed, self.places)]:
            address = prog.get_ndarray_data_ptr_as_int(array.arr)
            size = int(np.prod(array.arr.total_shape())) * REAL_BYTES
            context.set_arg_external_array_with_shape(place, address, size, array.shape, 0)
        if len(self.contexts) >= MOST_CONTEXTS:  # of arrays that are no more, or that change places all the time
            self.contexts.clear()
        setters = {REAL: context.set_arg_float, INT: context.set_arg_int, UNSIGNED: context.set_arg_uint}
        numbers = [(k, setters[self.slots[k].kind], self.slots[k].place) for k in self.numbers]
        code = prog.compile_kernel(prog.config(), prog.get_device_caps(), compiled)
        self.contexts[key] = code, context, numbers

    def launch(self, ready: tuple[Any, Any, list], args: tuple) -> None:
        """Launches a call that has a context."""
        code, context, numbers = ready
        for k, setter, place in numbers:
            setter(place, args[k])
        for k in self.hosts:
            _set_host_array(context, self.slots[k].place, self.slots[k].axes, args[k])
        _run(code, context)


def launch_quickly(keep: bool) -> None:
    """Launches a kernel at once if it was called with arguments of the same types before; with what is left of the last
    launch (`Launches`) if arrays are to be found where they are, and so may be kept: in one thread, for two would write
    their numbers into one context."""
    slow, thread = kernel_impl.Kernel.__call__, threading.get_ident()

    def call(self: Any, *args: Any, **names: Any) -> Any:
        self, args = threads.choose(self, args)
        launches, runtime = self.__dict__.get("launches"), self.runtime
        if launches is None or launches.compiled is not self.compiled_kernels:
            launches = self.launches = Launches(self)
        slots, taped = launches.slots, runtime.target_tape or runtime.fwd_mode_manager
        if not launches.ordinary or names or len(args) != len(slots) or taped:
            with vectors_of(self):
                return slow(self, *args, **names)
        key = launches.key(args) if keep and threading.get_ident() == thread else None
        ready = launches.contexts.get(key)
        if ready is not None:
            return launches.launch(ready, args)
        with vectors_of(self):
            return unusual(self, launches, key, args)

    def unusual(self: Any, launches: Launches, key: tuple | None, args: tuple) -> Any:
        slots = launches.slots
        signature = _signature(slots, args)
        if signature is None:
            return slow(self, *args)
        compiled = launches.ready.get(signature)
        if compiled is not None:
            if key is not None:
                launches.keep(key, compiled, args)
                return launches.launch(launches.contexts[key], args)
            return _launch(compiled, slots, launches.places, args)
        result = slow(self, *args)
        if not self.has_print and WITH_GRADIENT not in signature:
            launches.ready[signature] = self.compiled_kernels[self.ensure_compiled(*args)]
        return result

    for owner, name, find in ((Ndarray, "_kind", _kind), (Ndarray, "_number", _number), (ArgPack, "_number", _number)):
        kept = functools.cached_property(find)
        kept.__set_name__(owner, name)
        replace(owner, name, kept)
    replace(ArgPack, "__setitem__", _set_member)
    replace(kernel_impl.Kernel, "__call__", call)
