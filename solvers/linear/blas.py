"""BLAS and LAPACK through the pointers that SciPy publishes for compiled code: unlike `scipy.linalg.blas` these calls
leave Python's lock to other threads, and take parts of matrices without copying them."""

import contextlib
import ctypes
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

BLOCK = 256  # columns or rows of a matrix that one thread works on at a time


def blocks(n: int) -> list[slice]:
    """Parts of n columns or rows that do not depend on the number of threads."""
    return [slice(k, min(k + BLOCK, n)) for k in range(0, n, BLOCK)]


def _pointer(name: str) -> Callable:
    table = cython_lapack if name == "dpotrf" else cython_blas
    capsule = table.__pyx_capi__[name]
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    signature = ctypes.pythonapi.PyCapsule_GetName(ctypes.py_object(capsule))
    address = ctypes.pythonapi.PyCapsule_GetPointer(ctypes.py_object(capsule), ctypes.c_char_p(signature))
    return ctypes.CFUNCTYPE(None)(address)


_routine = {name: _pointer(name) for name in ("dgemm", "dtrsm", "dpotrf", "sgemm")}


def fortran(name: str, *given: Any) -> None:
    """Fortran takes everything by address, and a matrix with the distance of its columns."""
    passed: list[Any] = []
    real = ctypes.c_float if name.startswith("s") else ctypes.c_double
    for value in given:
        if isinstance(value, np.ndarray):
            distance = max(value.strides[1] // value.itemsize, 1)
            passed += [ctypes.c_void_p(value.ctypes.data), ctypes.byref(ctypes.c_int(distance))]
        elif isinstance(value, str):
            passed.append(ctypes.c_char_p(value.encode()))
        elif isinstance(value, float):
            passed.append(ctypes.byref(real(value)))
        else:
            passed.append(ctypes.byref(value if isinstance(value, ctypes.c_int) else ctypes.c_int(value)))
    _routine[name](*passed)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Holds SciPy's OpenBLAS to one thread, where it can be found."""
    spec = importlib.util.find_spec("scipy.linalg._fblas")  # links to the library
    library = ctypes.CDLL(spec.origin if spec else None)
    names = (f"{prefix}openblas_{{}}_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("", "64_"))
    name = next((name for name in names if hasattr(library, name.format("set"))), None)
    if name is None:
        yield
        return
    before = getattr(library, name.format("get"))()
    getattr(library, name.format("set"))(1)
    try:
        yield
    finally:
        getattr(library, name.format("set"))(before)
