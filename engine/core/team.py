"""Threads that stay together through many short passes over the same data, on a CPU.

To wake Taichi's workers for a loop, and to wait for them, costs 20 to 30 microseconds; a sweep of a pressure solve over
ten thousand particles has two loops of 150. So all sweeps are one loop with a round for each worker (`rounds`,
`member`), and workers do the passes together: each pass is cut into shares, which they take one by one
(`next_share`), each its own part first and then what is left of the others'. Who finds nothing more to take waits until
all shares are done (`wait_for`).

Nobody waits for a worker that has no share in hand: one that comes late, or never, finds everything done by the others.
So it does not matter how many threads there really are, and nothing can lock up. Which worker does a share must not
matter for the result, and what is decided in between is decided by the one who ends the last share of a pass (`end`).

The `desk` is an array of zeros with PLACES entries for each counter: one for each worker and two more for each pass.
"""

import functools

import numpy as np
import taichi as ti

from pliant.core import backend
from pliant.core.backend import ROUNDS

PLACES = 16  # numbers of a line of the cache: counters must not share one
SHARES_EACH = 16  # of a pass for each worker: few enough to take, and enough that none waits long for another


@functools.cache
def _desk(workers: int, passes: int) -> np.ndarray:
    return np.zeros((passes * (workers + 2)) * PLACES, np.int32)


def clean_desk(workers: int, passes: int) -> np.ndarray:
    """For so many workers and passes; one launch at a time has it."""
    desk = _desk(workers, passes)
    desk.fill(0)
    return desk


@ti.func
def rounds(workers: ti.i32) -> ti.i32:
    """Of a parallel loop in which each worker has one."""
    result = workers
    if ti.static(backend.deals()):
        result = workers * ROUNDS
    return result


@ti.func
def member(turn: ti.i32) -> ti.i32:
    """The worker of a round; -1 if it is nobody's."""
    result = turn
    if ti.static(backend.deals()):
        result = ti.select(turn % ROUNDS == 0, turn // ROUNDS, -1)
    return result


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
