"""Sums whose result does not depend on the number of threads.

Atomic float sums come out in the order in which threads arrive. Here the particles are cut into
`BLOCKS` fixed pieces, each is summed in order, and the pieces are added in order: the same input
gives the same bits on any number of threads, which exact restarts rely on.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import ROUNDS, Reals, RealTable, Vectors, vec3
from pliant.core.speedups import light

BLOCKS = 2 * ROUNDS  # enough that threads share them
LEAST = 16  # particles of a block, while there are any


@ti.func
def block_size(n: ti.i32) -> ti.i32:
    return ti.max((n + BLOCKS - 1) // BLOCKS, LEAST)


@ti.func
def block(b: ti.i32, n: ti.i32):
    """First and one-past-last particle of block b."""
    size = block_size(n)
    return ti.min(b * size, n), ti.min((b + 1) * size, n)


@ti.func
def blocks(n: ti.i32) -> ti.i32:
    """How many blocks have particles."""
    return (n + block_size(n) - 1) // block_size(n)


@ti.func
def add_up(k: ti.i32, partial: ti.template(), sums: ti.template()):
    """One of the sums over all blocks."""
    total = 0.0
    for b in range(BLOCKS):
        total += partial[b, k]
    sums[k] = total


@light
@ti.kernel
def _extent(n: ti.i32, x: Vectors, v: Vectors, partial: RealTable, out: Reals):
    """Corners of the box, the square of the largest speed, and how many numbers are none."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        low, high, speed2, bad = vec3(1e30), vec3(-1e30), 0.0, 0
        for i in range(lo, hi):
            low, high = ti.min(low, x[i]), ti.max(high, x[i])
            speed2 = ti.max(speed2, v[i].dot(v[i]))
            for k in ti.static(range(3)):
                bad += is_bad(x[i][k]) | is_bad(v[i][k])
        for k in ti.static(range(3)):
            partial[b, k], partial[b, 3 + k] = low[k], high[k]
        partial[b, 6], partial[b, 7] = speed2, ti.cast(bad, ti.f32)
    ti.loop_config(serialize=True)
    for k in range(8):
        total = partial[0, k]
        for b in range(1, BLOCKS):
            more = partial[b, k]
            total = ti.select(k < 3, ti.min(total, more), ti.select(k < 7, ti.max(total, more), total + more))
        out[k] = total


@ti.func
def is_bad(value: ti.f32) -> ti.i32:
    """1 for NaN and infinities. Looks at the exponent bits, because fast-math folds `value != value` away."""
    return ti.cast((ti.bit_cast(value, ti.i32) & 0x7F800000) == 0x7F800000, ti.i32)


class Extent:
    """Bounding box, largest speed and number of NaNs of the particles, in one pass."""

    def __init__(self) -> None:
        self.partial = ti.ndarray(ti.f32, (BLOCKS, 8))
        self.found = np.zeros(8, np.float32)  # of NumPy, so that the host reads them at no cost

    def measure(self, n: int, x: ti.Ndarray, v: ti.Ndarray) -> tuple[np.ndarray, np.ndarray, float, int]:
        _extent(n, x, v, self.partial, self.found)
        if not n:
            return np.zeros(3), np.zeros(3), 0.0, 0
        found = self.found.astype(float)
        return found[:3], found[3:6], float(np.sqrt(found[6])), int(found[7])
