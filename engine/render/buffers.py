"""Fields that GGUI draws from.

GGUI also takes NumPy arrays, but then instantiates a kernel anew for each frame (Taichi 1.7.4). Fields do not, but can
neither grow nor be freed cheaply, and each new one compiles once; so each buffer doubles its capacity when it must: a
film does that a few times at its start and then never again.
"""

import ctypes
import sys

import numpy as np
import taichi as ti

from pliant.render.shadow import Rows

_FIRST_CAPACITY = 3 * 1024


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h


def keep_heap(size: int) -> None:
    """Lets blocks of up to `size` bytes come from memory that the process already has.

    Each picture is read back into a new array. Above 32 MB glibc asks the system for fresh pages every time, and
    touching these for the first time takes as long as all the rest of the reading.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library: it costs speed, nothing else
    mallopt(_M_MMAP_THRESHOLD, size + (1 << 20))
    mallopt(_M_TRIM_THRESHOLD, 2 * size + (1 << 20))


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
