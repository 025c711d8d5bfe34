"""Fields that GGUI draws from.

GGUI also takes NumPy arrays, but then instantiates a kernel anew for each frame (Taichi 1.7.4). Fields do not, but can
neither grow nor be freed cheaply, and each new one compiles once; so each buffer doubles its capacity when it must: a
film does that a few times at its start and then never again.
"""

import numpy as np
import taichi as ti

from pliant.render.shadow import Rows

_FIRST_CAPACITY = 3 * 1024


class Buffer:
    """A few vector fields of one capacity, filled together: positions first, then colours or whatever goes along."""

    def __init__(self):
        self._capacity = 0
        self._fields = ()

    def fill(self, *arrays: np.ndarray) -> tuple[ti.MatrixField, ...]:
        """Copy arrays (n, 3) to the front of the fields, as many as arrays were given, and return these."""
        if len(arrays[0]) > self._capacity:
            self._capacity = max(_FIRST_CAPACITY, self._capacity)
            while self._capacity < len(arrays[0]):
                self._capacity *= 2
            self._fields = tuple(ti.Vector.field(3, ti.f32, self._capacity) for _ in arrays)
        for array, target in zip(arrays, self._fields, strict=True):
            _copy(np.ascontiguousarray(array, np.float32), target)
        return self._fields


@ti.kernel
def _copy(source: Rows, target: ti.template()):
    for i in source:
        target[i] = source[i]
