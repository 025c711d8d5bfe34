"""Threads that stay together through many short passes over the same data, on a CPU.

To wake Taichi's workers for a loop, and to wait for them, costs 20 to 30 microseconds; a sweep of a pressure solve over
ten thousand particles has two loops of 150. So all sweeps are one loop with a round for each worker (`rounds`,
`member`), and workers do the passes together: each pass is cut into shares, which they take one by one
(`next_share`), each its own part first and then what is left of the others'. Who finds nothing more to take waits until
all shares are done (`wait_for`).

Kernels that are written without all this are rewritten to it by `crew`.

Nobody waits for a worker that has no share in hand: one that comes late, or never, finds everything done by the others.
So it does not matter how many threads there really are, and nothing can lock up. Which worker does a share must not
matter for the result, and what is decided in between is decided by the one who ends the last share of a pass (`end`).

The `desk` is an array of zeros with PLACES entries for each counter: one for each worker and two more for each pass.
"""

import ast
import functools
from typing import Any

import numpy as np
import taichi as ti

from pliant.core import backend, crew, speedups
from pliant.core.backend import ROUNDS, Ints

PLACES = 16  # numbers of a line of the cache: counters must not share one
MOST_PASSES = 16  # of a kernel that is rewritten
SHARES_EACH = 16  # of a pass for each worker: few enough to take, and enough that none waits long for another


def _places(workers: int, passes: int) -> int:
    return passes * (workers + 2) * PLACES


@functools.cache
def _desk(workers: int, passes: int) -> np.ndarray:
    return np.zeros(_places(workers, passes), np.int32)


def clean_desk(workers: int, passes: int) -> np.ndarray:
    """For so many workers and passes; one launch at a time has it."""
    desk = _desk(workers, passes)
    desk.fill(0)
    return desk


@ti.func
def rounds(workers: ti.i32) -> ti.i32:
    """Of a parallel loop in which each worker has one."""
    result = workers
    if ti.static(backend.shares_loops()):
        result = workers * ROUNDS
    return result


@ti.func
def member(turn: ti.i32, workers: ti.i32) -> ti.i32:
    """The worker that has come to a round, always the same number for the same thread; -1 if there is nothing to do in
    it. If one thread gets two rounds, the second finds everything done."""
    result = turn
    if ti.static(backend.shares_loops()):
        result = ti.select(turn % ROUNDS == 0, ti.global_thread_idx() % workers, -1)
    return result


@ti.func
def shares_of(workers: ti.i32) -> ti.i32:
    """Into how many shares a pass is cut."""
    return SHARES_EACH * workers


@ti.func
def begin_of(share: ti.i32, shares: ti.i32, first: ti.i32, end: ti.i32) -> ti.i32:
    """Where a share of the elements from `first` to `end` begins."""
    elements = ti.max(end - first, 0)
    return first + elements // shares * share + ti.min(share, elements % shares)


@ti.func
def next_share(step: ti.i32, worker: ti.i32, workers: ti.i32, shares: ti.i32, desk: ti.template()) -> ti.i32:
    """A share of a pass that nobody has taken yet; -1 if there is none."""
    found, k, counters = -1, 0, step * (workers + 2)
    while k < workers and found < 0:
        owner = (worker + k) % workers
        first, end = owner * shares // workers, (owner + 1) * shares // workers
        mine = first + ti.atomic_add(desk[(counters + owner) * PLACES], 1)
        if mine < end:
            found = mine
        k += 1
    return found


@ti.func
def end(step: ti.i32, workers: ti.i32, desk: ti.template()) -> ti.i32:
    """Notes that a share of a pass is done; returns how many were before."""
    return ti.atomic_add(desk[(step * (workers + 2) + workers) * PLACES], 1)


@ti.func
def wait_for(step: ti.i32, many: ti.i32, workers: ti.i32, desk: ti.template()):
    """Until so many shares of a pass are done."""
    while ti.atomic_add(desk[(step * (workers + 2) + workers) * PLACES], 0) < many:
        pass


@ti.func
def tell(step: ti.i32, value: ti.i32, workers: ti.i32, desk: ti.template()):
    """Writes down what was decided in a pass."""
    ti.atomic_add(desk[(step * (workers + 2) + workers + 1) * PLACES], value)


@ti.func
def told(step: ti.i32, workers: ti.i32, desk: ti.template()) -> ti.i32:
    """What was decided in a pass."""
    return ti.atomic_add(desk[(step * (workers + 2) + workers + 1) * PLACES], 0)


class Crew:
    """The threads of the CPU: kernels' twins in which they stay together (`crew`), and what these take beside their
    arguments."""

    def __init__(self, workers: int):
        self.workers = workers
        self._desk = ti.ndarray(ti.i32, _places(workers, MOST_PASSES))
        counters = backend.host_view(self._desk)
        assert counters is not None  # this is a CPU
        self._counters = counters

    def twin(self, kernel: Any) -> Any:
        """None if the kernel stays as it is."""
        passes = 0

        def rewrite(definition: ast.FunctionDef) -> None:
            nonlocal passes
            passes = crew.rewrite(definition)

        names = {"rounds": rounds, "member": member, "shares_of": shares_of, "begin_of": begin_of, "finish": end,
                 "next_share": next_share, "wait_for": wait_for}  # fmt: skip
        types = dict(zip(crew.PARAMETERS, (Ints, ti.i32), strict=True))
        functions = {f"_crew_{name}": function for name, function in names.items()}
        twin = speedups.rewritten(kernel, rewrite, types, functions)
        if not 0 < passes <= MOST_PASSES:
            return None
        twin.passes = passes
        return twin

    def extras(self, twin: Any) -> tuple:
        """The other arguments of a launch."""
        self._counters[: _places(self.workers, twin.passes)] = 0
        return self._desk, self.workers
