"""The only place that starts Taichi, and the types that kernels share.

Kernels are plain functions of `ti.ndarray`s: their compiled form does not depend on the number of
particles, so the offline cache serves every scene and arrays may grow without recompiling.
"""

import contextlib
import ctypes
import importlib
import io
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import taichi as ti

from pliant.core import speedups
from pliant.core.choices import BACKEND_NAMES, BACKEND_VARIABLE, BACKENDS, TAICHI_TESTED
from pliant.core.console import native_silence
from pliant.core.memory import available_memory as available_memory  # beside the share of it below
from pliant.errors import PliantError, unknown_name

ARCHS = {name: getattr(ti, name) for name in BACKENDS}
GPUS = ("cuda", "metal", "vulkan")  # backend="gpu" means the first of these that works here

vec3 = ti.types.vector(3, ti.f32)
ivec2 = ti.types.vector(2, ti.i32)
ivec3 = ti.types.vector(3, ti.i32)
ivec4 = ti.types.vector(4, ti.i32)
vec4 = ti.types.vector(4, ti.f32)
vec6 = ti.types.vector(6, ti.f32)
ivec8 = ti.types.vector(8, ti.i32)
vec8 = ti.types.vector(8, ti.f32)
mat3 = ti.types.matrix(3, 3, ti.f32)
mat4 = ti.types.matrix(4, 4, ti.f32)

Reals = ti.types.ndarray(dtype=ti.f32, ndim=1)
Ints = ti.types.ndarray(dtype=ti.i32, ndim=1)
Spans = ti.types.ndarray(dtype=ivec2, ndim=1)
Vectors = ti.types.ndarray(dtype=vec3, ndim=1)
Points = ti.types.ndarray(dtype=vec4, ndim=1)  # 16 bytes each: one load brings in a whole one
Matrices = ti.types.ndarray(dtype=mat3, ndim=1)
SymmetricMatrices = ti.types.ndarray(dtype=vec6, ndim=1)  # diagonal, then yz, zx, xy
VectorTable = ti.types.ndarray(dtype=vec3, ndim=2)
IntTable = ti.types.ndarray(dtype=ti.i32, ndim=2)
RealTable = ti.types.ndarray(dtype=ti.f32, ndim=2)

# Particles that a CPU thread takes at a time. Taichi's own choice gives each thread one piece of the loop, so the
# slowest one is waited for, and leaves loops of less than 512 rounds to a single thread.
CHUNK = 256

# A thread takes 512 rounds of a loop at a time, whatever `block_dim` says (Taichi 1.7.4). A loop over fewer and longer
# tasks has `turns` rounds, of which each does the `task` that falls to it, if there is one.
ROUNDS = 512
SHARES = 32  # among which tasks are dealt out: enough that no thread waits long for the last (see `mixed`)
DEAL = SHARES * ROUNDS  # tasks, at most, that are dealt out together

SHARE_OF_MEMORY = 0.8  # of what is free that a scene may take

# Seconds that a process takes, at most, to write what it has compiled, behind a lock.
LOCKED = 30.0

_started: str | None = None
_slow_because = ""


speedups.know_classes_quickly()  # before the first kernel


def start(backend: str | None = None) -> None:
    """Starts Taichi once, where "gpu" is the GPU there is, and None the usual one. Asking again for the same backend
    does nothing; for another one is an error.

    A second `ti.init` would leave all earlier arrays dangling, so it is refused instead.
    """
    global _started
    backend = backend or usual()
    check_name(backend)
    if backend == "gpu":
        backend = _started if _started in GPUS else _find_gpu()
    if _started == backend:
        return
    if _started is not None:
        raise PliantError(f"Pliant already runs on {_started!r} in this process; start a new process for {backend!r}.")
    if ti.lang.impl.get_runtime().prog is not None:
        raise PliantError("Taichi was started before Pliant; let pliant.build(backend=...) start it instead of "
                          "ti.init.")  # fmt: skip
    if not is_supported(backend):
        raise PliantError(f"backend {backend!r} is not available on this machine; use backend='cpu'.")
    _open_kernel_cache()
    with contextlib.redirect_stdout(io.StringIO()):  # "[Taichi] Starting on arch=x64", whatever the log level
        ti.init(arch=ARCHS[backend], default_fp=ti.f32, default_ip=ti.i32, offline_cache=True, log_level=ti.WARN,
                cpu_block_dim_adaptive=False, default_cpu_block_dim=CHUNK)  # fmt: skip
    _started = backend
    _speed_up(check=".".join(map(str, ti.__version__)) != TAICHI_TESTED)


def _speed_up(check: bool) -> None:
    """Does quickly what Taichi does slowly, unless it turns out that Taichi has changed."""
    global _slow_because
    _free_vectors()
    try:
        _fill_vectors_directly()
        _tell_places_shortly()
        speedups.read_sources_once()
        speedups.launch_quickly(keep=_started == "cpu")
        speedups.serialise_twins()
        if _started == "cpu":
            _access_elements_directly()
            _copy_memory_directly()
            _spread_workers()
            team = importlib.import_module("pliant.core.team")  # by name, because it needs this module
            speedups.threads.crew = team.Crew(workers())
        if check:
            importlib.import_module("pliant.core.launch_check").check()  # by name, because it needs this module
    except Exception as error:  # whatever a Taichi makes of it that we have not seen
        speedups.undo()
        _slow_because = str(error) or type(error).__name__


def slow_because() -> str:
    """Why kernels are launched in Taichi's own way, which is slow; nothing if they are not."""
    return _slow_because


def usual() -> str:
    """The backend where none is named: what runs already, or else what the environment says, or else the CPU."""
    return _started or os.environ.get(BACKEND_VARIABLE) or "cpu"


def check_name(backend: str) -> None:
    """Refuses what is no backend on any machine."""
    if backend not in BACKEND_NAMES:
        raise PliantError(unknown_name("backend", backend, BACKEND_NAMES))


def started() -> str | None:
    """The backend that runs in this process, by its own name even if "gpu" was asked for; None before `start`."""
    return _started


def kernel_cache() -> Path:
    """Where compiled kernels are kept from one process to the next."""
    return Path(os.environ.get("TI_OFFLINE_CACHE_FILE_PATH") or ti.lang.impl.default_cfg().offline_cache_file_path)


def _open_kernel_cache() -> None:
    """Takes away the lock that a process has left which was killed while it wrote its kernels: Taichi 1.7.4 would never
    read or write them again, and compile everything in every process."""
    lock = kernel_cache() / "ticache.lock"
    with contextlib.suppress(OSError):
        if time.time() - lock.stat().st_mtime > LOCKED:
            lock.unlink()


def is_supported(backend: str) -> bool:
    """Whether this machine has what the backend needs. Drivers that are missing are not complained about."""
    with native_silence():
        return bool(ti.lang.misc.is_arch_supported(ARCHS[backend]))


def _find_gpu() -> str:
    found = next((name for name in GPUS if is_supported(name)), None)
    if found is None:
        raise PliantError("backend 'gpu' is not available on this machine, which has no driver for CUDA, Metal or "
                          "Vulkan; use backend='cpu'.")  # fmt: skip
    return found


def _free_vectors() -> None:
    """Lets arrays of vectors and matrices go when nobody needs them: Taichi 1.7.4 frees those of numbers only."""
    for kind in (ti.lang.matrix.VectorNdarray, ti.lang.matrix.MatrixNdarray):
        if not hasattr(kind, "__del__"):
            kind.__del__ = ti.lang._ndarray.ScalarNdarray.__del__


@ti.kernel
def _fill_elements(array: ti.types.ndarray(), value: ti.f32):
    for I in ti.grouped(array):
        array[I] = value


def _fill_vectors_directly() -> None:
    """Fills arrays of vectors and matrices without compiling: Taichi 1.7.4 passes the value as a template argument, a
    new object in every call, and so compiles a kernel each time (1 ms) and keeps it for ever (8 kB)."""
    has_fill = ti.lang.impl.current_cfg().arch in (ti.x64, ti.cuda)  # where Taichi fills memory without a kernel

    def fill(self: Any, value: float) -> None:
        if self.dtype != ti.f32:
            raise NotImplementedError("only arrays of 32-bit reals can be filled")
        if has_fill:
            ti.lang.impl.get_runtime().prog.fill_float(self.arr, value)
        else:
            _fill_elements(self, value)

    for kind in (ti.lang.matrix.VectorNdarray, ti.lang.matrix.MatrixNdarray):
        speedups.replace(kind, "_fill_by_kernel", fill)


def _access_elements_directly() -> None:
    """Reads and writes single elements (`array[0]`) where they are. Taichi 1.7.4 makes a buffer for each of them, and
    the list of buffers that it has on the CPU only grows, by 50 bytes each time."""

    class HostAccessor:
        def __init__(self, array: Any):
            self.values = _memory_of(array)

        def getter(self, *key: int) -> Any:
            return self.values[key].item()

        def setter(self, value: Any, *key: int) -> None:
            self.values[key] = value

    speedups.replace(ti.lang._ndarray, "NdarrayHostAccessor", HostAccessor)


def _memory_of(array: Any) -> np.ndarray:
    """The memory of one of Taichi's own arrays on the CPU."""
    shape, kind = array.total_shape(), ti.lang.util.to_numpy_type(array.element_data_type())
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    address = ti.lang.impl.get_runtime().prog.get_ndarray_data_ptr_as_int(array)
    return np.frombuffer((ctypes.c_byte * size).from_address(address), kind).reshape(shape)


def _memory(array: ti.Ndarray) -> np.ndarray:
    """The same of an array that Python knows: it stays where it is while it lives."""
    found = array.__dict__.get("_memory")
    if found is None:
        found = array.__dict__["_memory"] = _memory_of(array.arr)
    return found


def _copy_memory_directly() -> None:
    """Copies whole arrays to, from and among each other where they are, and fills them there: Taichi launches a kernel
    for most of that."""

    def to_numpy(self: Any) -> np.ndarray:
        return _memory(self).copy()

    def from_numpy(self: Any, values: np.ndarray) -> None:
        memory = _memory(self)
        if values.shape != memory.shape:
            raise ValueError(f"an array of shape {memory.shape} cannot take values of shape {values.shape}")
        memory[...] = values

    def copy_from(self: Any, other: Any) -> None:
        from_numpy(self, _memory(other))

    def fill(self: Any, value: float) -> None:
        _memory(self).fill(value)

    for kind in (ti.lang._ndarray.ScalarNdarray, ti.lang.matrix.VectorNdarray, ti.lang.matrix.MatrixNdarray):
        for function in (to_numpy, from_numpy, copy_from, fill):
            speedups.replace(kind, function.__name__, function)


def host_view(array: ti.Ndarray) -> np.ndarray | None:
    """The elements of a device array where they are, to be read and written at once while the array lives: on the CPU.
    None elsewhere, where kernels have to fetch them."""
    return _memory(array) if _started == "cpu" and not _slow_because else None


def _tell_places_shortly() -> None:
    """Notes file and line of what is compiled, for errors: Taichi also wraps and underlines the source of every single
    expression, whether it is ever shown or not, which takes an eighth of the time until a kernel is ready."""

    def place(self: Any, node: Any) -> str:
        line = self.src[node.lineno - 1].strip() if node.lineno <= len(self.src) else ""
        return f'File "{self.file}", line {node.lineno + self.lineno_offset}, in {self.func.func.__name__}: {line}\n'

    speedups.replace(ti.lang.ast.ast_transformer_utils.ASTTransformerContext, "get_pos_info", place)


def _spread_workers() -> None:
    """Gives each worker thread a core of its own, where the system lets us.

    Workers sleep between kernels, and Linux likes to wake them all on the core that woke them: kernels of a few
    milliseconds were seen to run on one of two cores from start to end. Taichi makes its workers last.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    workers, cores = ti.lang.impl.current_cfg().cpu_max_num_threads, sorted(os.sched_getaffinity(0))
    threads = sorted(int(name) for name in os.listdir("/proc/self/task"))[1:]
    if workers != len(cores) or len(threads) < workers:
        return
    for thread, core in zip(threads[-workers:], cores, strict=True):
        try:
            os.sched_setaffinity(thread, {core})
        except OSError:
            return  # it costs speed, nothing else


def shares_loops() -> bool:
    """Whether several threads of a CPU share the kernel that is launched, and maybe compiled."""
    return _started == "cpu" and speedups.threads.way != speedups.ALONE


def deals() -> bool:
    """Whether tasks have to be dealt out, as they must where Taichi shares loops among threads of a CPU. A GPU takes
    them as they come, and so do threads that stay together."""
    return _started == "cpu" and speedups.threads.way == speedups.ORDINARY


@ti.func
def turns(tasks: ti.i32) -> ti.i32:
    """How many rounds a loop needs, so that all threads take part in so many tasks."""
    rounds = tasks
    if ti.static(deals()):
        rounds = (tasks + DEAL - 1) // DEAL * DEAL
    return rounds


@ti.func
def task(turn: ti.i32) -> ti.i32:
    """The task of one of these rounds, each a different one; those beyond the last are none."""
    result = turn
    if ti.static(deals()):
        first = turn // DEAL * DEAL
        result = first + mixed((turn - first) // ROUNDS) + turn % ROUNDS * SHARES
    return result


@ti.func
def share(turn: ti.i32, tasks: ti.i32) -> ti.i32:
    """The same, where tasks of a share follow each other, because such tasks read much of the same."""
    result = turn
    if ti.static(deals()):
        shares, first = SHARES * ((tasks + DEAL - 1) // DEAL), turn // DEAL * SHARES
        each = (tasks + shares - 1) // shares
        place = (first + mixed(turn // ROUNDS - first)) * each + turn % ROUNDS
        result = ti.select(turn % ROUNDS < each, place, tasks)
    return result


@ti.func
def desk_of(turn: ti.i32, task: ti.i32) -> ti.i32:
    """A number below `desks` that tasks have in common only if one thread does them one after the other: of the share
    of a loop on a CPU, or of the thread. On a GPU each task has its own."""
    result = task
    if ti.static(_started == "cpu"):
        result = turn // ROUNDS
    if ti.static(_started == "cpu" and speedups.threads.way == speedups.TOGETHER):
        result = ti.global_thread_idx()
    return result


def desks(tasks: int) -> int:
    """How many desks so many tasks need."""
    return max(-(-tasks // DEAL) * SHARES, workers()) if _started == "cpu" else tasks


@ti.func
def mixed(share: ti.i32) -> ti.i32:
    """The shares in another order, with their five bits reversed: each thread takes some that follow each other, and so
    gets tasks from all over, the first ones too, which may be the longest or all there are."""
    return (share & 1) << 4 | (share & 2) << 2 | (share & 4) | (share & 8) >> 2 | (share & 16) >> 4


@ti.func
def vector_at(array: ti.template(), i: ti.i32):
    """An element of an array of vectors of three, by its components (see `speedups.with_vectors`)."""
    return vec3(array[i][0], array[i][1], array[i][2])


@ti.func
def set_vector(array: ti.template(), i: ti.i32, value: ti.template()):
    """Writes an element in this way."""
    for k in ti.static(range(3)):
        array[i][k] = value[k]


def threads_for(elements: int) -> contextlib.AbstractContextManager[None]:
    """While it lasts, kernels run in one thread or in all, as suits so many elements on the CPU."""
    return speedups.threads.among(elements if _started == "cpu" else math.inf)


def runs_alone(kernel: Any) -> bool:
    """Whether a kernel runs in the calling thread now."""
    return speedups.threads.alone(kernel._primal)


def workers() -> int:
    """Threads of the CPU that can do a kernel together (`core.team`); none on a GPU."""
    return ti.lang.impl.current_cfg().cpu_max_num_threads if _started == "cpu" else 0


def sync() -> None:
    """Waits for the device, so that host clocks measure device work (free on the CPU)."""
    if _started != "cpu":
        ti.sync()


def upload(values: np.ndarray, kind: Any) -> ti.Ndarray:
    """A device array with these values (at least one element: empty arrays cannot be passed to kernels)."""
    shape = values.shape[:-2] if kind is mat3 else values.shape[:-1] if kind in (vec3, ivec3, vec4) else values.shape
    array = ti.ndarray(kind, tuple(max(s, 1) for s in shape))
    if values.size:
        array.from_numpy(np.ascontiguousarray(values, np.int32 if kind in (ti.i32, ivec3) else np.float32))
    return array


def reupload(array: ti.Ndarray | None, values: np.ndarray, kind: Any) -> ti.Ndarray:
    """Numbers into the first elements of an array that is used again; a larger one where they do not fit, for what
    Taichi takes to make one is worth hundreds of small copies."""
    if array is None or len(values) > array.shape[0]:
        array = ti.ndarray(kind, (max(2 * len(values), 1), *values.shape[1:]))
    memory = host_view(array)
    if memory is not None:
        memory[: len(values)] = values
    else:
        padded = array.to_numpy()
        padded[: len(values)] = values
        array.from_numpy(padded)
    return array
