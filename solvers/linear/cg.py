"""Preconditioned conjugate gradients on vector fields, matrix-free, with sums that do not depend on threads."""

from collections.abc import Callable

import taichi as ti

from pliant.backend import RealTable, Vectors
from pliant.reduce import BLOCKS, block


@ti.kernel
def _dots(n: ti.i32, a: Vectors, b: Vectors, c: Vectors, partial: RealTable):
    """<a, b> and <a, c>."""
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        first, second = 0.0, 0.0
        for i in range(lo, hi):
            first += a[i].dot(b[i])
            second += a[i].dot(c[i])
        partial[s, 0], partial[s, 1] = first, second


@ti.kernel
def _subtract(n: ti.i32, image: Vectors, residual: Vectors):
    for i in range(n):
        residual[i] -= image[i]


@ti.kernel
def _move(n: ti.i32, length: ti.f32, direction: Vectors, image: Vectors, solution: Vectors, residual: Vectors):
    for i in range(n):
        solution[i] += length * direction[i]
        residual[i] -= length * image[i]


@ti.kernel
def _turn(n: ti.i32, share: ti.f32, z: Vectors, direction: Vectors):
    for i in range(n):
        direction[i] = z[i] + share * direction[i]


class ConjugateGradient:
    """Solves A x = b for a symmetric positive definite A given by `multiply(u, out)`.

    `tolerance` is the residual's norm over the right-hand side's, both in the norm of the preconditioner.
    """

    def __init__(self, tolerance: float, max_iterations: int):
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.partial = ti.ndarray(ti.f32, (BLOCKS, 2))

    def _dot(self, n: int, a: ti.Ndarray, b: ti.Ndarray, c: ti.Ndarray) -> tuple[float, float]:
        _dots(n, a, b, c, self.partial)
        first, second = self.partial.to_numpy().sum(axis=0, dtype=float)
        return float(first), float(second)

    def solve(self, n: int, solution: ti.Ndarray, residual: ti.Ndarray, direction: ti.Ndarray, image: ti.Ndarray,
              z: ti.Ndarray, multiply: Callable, precondition: Callable) -> int:  # fmt: skip
        """On entry `solution` is the guess and `residual` the right-hand side; returns the number of iterations."""
        precondition(residual, z)
        scale, _ = self._dot(n, residual, z, z)
        multiply(solution, image)
        _subtract(n, image, residual)
        precondition(residual, z)
        rz, _ = self._dot(n, residual, z, z)
        _turn(n, 0.0, z, direction)
        for iteration in range(self.max_iterations):
            if rz <= self.tolerance**2 * scale:
                return iteration
            multiply(direction, image)
            curvature, _ = self._dot(n, direction, image, image)
            if curvature <= 0.0:
                return iteration
            _move(n, rz / curvature, direction, image, solution, residual)
            precondition(residual, z)
            old, (rz, _) = rz, self._dot(n, residual, z, z)
            _turn(n, rz / old, z, direction)
        return self.max_iterations
