"""Sums whose result does not depend on the number of threads.

Atomic float sums come out in the order in which threads arrive. Here the particles are cut into
`BLOCKS` fixed pieces, each is summed in order, and the pieces are added in order: the same input
gives the same bits on any number of threads, which exact restarts rely on.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import ROUNDS, RealTable, Vectors, vec3
from pliant.core.speedups import light

BLOCKS = 2 * ROUNDS  # enough that threads share them


@ti.func
def block(b: ti.i32, n: ti.i32):
    """First and one-past-last particle of block b."""
    size = (n + BLOCKS - 1) // BLOCKS
    return ti.min(b * size, n), ti.min((b + 1) * size, n)


@light
@ti.kernel
def _extent(n: ti.i32, x: Vectors, v: Vectors, out: RealTable):
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
            out[b, k], out[b, 3 + k] = low[k], high[k]
        out[b, 6], out[b, 7] = speed2, ti.cast(bad, ti.f32)


@ti.func
def is_bad(value: ti.f32) -> ti.i32:
    """1 for NaN and infinities. Looks at the exponent bits, because fast-math folds `value != value` away."""
    return ti.cast((ti.bit_cast(value, ti.i32) & 0x7F800000) == 0x7F800000, ti.i32)


class Extent:
    """Bounding box, largest speed and number of NaNs of the particles, in one pass."""

    def __init__(self) -> None:
        self.partial = ti.ndarray(ti.f32, (BLOCKS, 8))

    def measure(self, n: int, x: ti.Ndarray, v: ti.Ndarray) -> tuple[np.ndarray, np.ndarray, float, int]:
        _extent(n, x, v, self.partial)
        rows = self.partial.to_numpy()
        if not n:
            return np.zeros(3), np.zeros(3), 0.0, 0
        low, high = rows[:, :3].min(axis=0), rows[:, 3:6].max(axis=0)
        return low.astype(float), high.astype(float), float(np.sqrt(rows[:, 6].max())), int(rows[:, 7].sum())
