"""Preconditioned conjugate gradients on vector fields, matrix-free, with sums that do not depend on threads."""

from collections.abc import Callable

import taichi as ti

from pliant.core.backend import Reals, Vectors
from pliant.core.reduce import BLOCKS, block
from pliant.core.speedups import light

ROUND_OFF = 1e-4  # of the square of the tolerance: what single precision can be asked for


@light
@ti.kernel
def _dot(n: ti.i32, a: Vectors, b: Vectors, partial: Reals):
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        total = 0.0
        for i in range(lo, hi):
            total += a[i].dot(b[i])
        partial[s] = total


@light
@ti.kernel
def _difference(n: ti.i32, a: Vectors, b: Vectors, out: Vectors):
    for i in range(n):
        out[i] = a[i] - b[i]


@light
@ti.kernel
def _subtract(n: ti.i32, image: Vectors, residual: Vectors):
    for i in range(n):
        residual[i] -= image[i]


@light
@ti.kernel
def _move(n: ti.i32, length: ti.f32, direction: Vectors, image: Vectors, solution: Vectors, residual: Vectors):
    for i in range(n):
        solution[i] += length * direction[i]
        residual[i] -= length * image[i]


@light
@ti.kernel
def _turn(n: ti.i32, share: ti.f32, z: Vectors, direction: Vectors):
    for i in range(n):
        direction[i] = z[i] + share * direction[i]


class ConjugateGradient:
    """Solves A x = b for a symmetric positive definite A given by `multiply(u, out)`.

    `tolerance` is the residual's norm over the right-hand side's, both in the norm of the preconditioner. Where the
    state before is given as well, the residual must also be below `of_change` times that of the state before.
    """

    def __init__(self, tolerance: float, max_iterations: int, of_change: float = 1.0):
        self.tolerance, self.max_iterations, self.of_change = tolerance, max_iterations, of_change
        self.partial = ti.ndarray(ti.f32, BLOCKS)

    def _dot(self, n: int, a: ti.Ndarray, b: ti.Ndarray) -> float:
        _dot(n, a, b, self.partial)
        return float(self.partial.to_numpy().sum(dtype=float))

    def solve(self, n: int, solution: ti.Ndarray, residual: ti.Ndarray, direction: ti.Ndarray, image: ti.Ndarray,
              z: ti.Ndarray, multiply: Callable, precondition: Callable,
              old: ti.Ndarray | None = None) -> int:  # fmt: skip
        """On entry `solution` is the guess and `residual` the right-hand side; returns the number of iterations."""
        precondition(residual, z)
        wanted = self.tolerance**2 * self._dot(n, residual, z)
        if old is not None:
            multiply(old, image)
            _difference(n, residual, image, direction)
            precondition(direction, z)
            wanted = min(wanted, max(self.of_change**2 * self._dot(n, direction, z), ROUND_OFF * wanted))
        multiply(solution, image)
        _subtract(n, image, residual)
        precondition(residual, z)
        rz = self._dot(n, residual, z)
        _turn(n, 0.0, z, direction)
        for iteration in range(self.max_iterations):
            if rz <= wanted:
                return iteration
            multiply(direction, image)
            curvature = self._dot(n, direction, image)
            if curvature <= 0.0:
                return iteration
            _move(n, rz / curvature, direction, image, solution, residual)
            precondition(residual, z)
            old, rz = rz, self._dot(n, residual, z)
            _turn(n, rz / old, z, direction)
        return self.max_iterations
