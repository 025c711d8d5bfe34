"""Where a matrix is too large to be factorised: the same interface as `cholesky`, solved by conjugate gradients."""

import numpy as np
import taichi as ti
from scipy import sparse

from pliant.core.backend import Ints, Reals, Vectors, upload, vec3
from pliant.core.fields import gather, scatter_vectors
from pliant.core.speedups import light
from pliant.solvers.linear.cg import ConjugateGradient

TOLERANCE, MAX_ITERATIONS = 1e-5, 1000


@ti.kernel
def _multiply(n: ti.i32, start: Ints, column: Ints, value: Reals, u: Vectors, out: Vectors):
    for i in range(n):
        total = vec3(0.0)
        for k in range(start[i], start[i + 1]):
            total += value[k] * u[column[k]]
        out[i] = total


@light
@ti.kernel
def _divide(n: ti.i32, diagonal: Reals, r: Vectors, z: Vectors):
    for i in range(n):
        z[i] = r[i] / diagonal[i]


class Iterative:
    """A sparse matrix to solve with. Nothing is prepared and nothing kept from solve to solve."""

    method = "conjugate gradients, preconditioned by the diagonal"
    seconds = 0.0

    def __init__(self, matrix: sparse.spmatrix):
        self.matrix = matrix.tocsr()

    @property
    def bytes(self) -> int:
        return 8 * self.matrix.nnz

    def bind(self, places: np.ndarray) -> "IterativeSolver":
        return IterativeSolver(self.matrix, places)


class IterativeSolver:
    """Solves for one copy of a body after the other."""

    def __init__(self, matrix: sparse.csr_matrix, places: np.ndarray):
        self.n = matrix.shape[0]
        self.start, self.column = upload(matrix.indptr, ti.i32), upload(matrix.indices, ti.i32)
        self.value, self.diagonal = upload(matrix.data, ti.f32), upload(matrix.diagonal(), ti.f32)
        self.places = [upload(row, ti.i32) for row in places]
        self.arrays = [ti.ndarray(vec3, max(self.n, 1)) for _ in range(5)]
        self.cg = ConjugateGradient(TOLERANCE, MAX_ITERATIONS)
        self.iterations = 0  # of the last solve, all copies together

    def solve(self, rhs: ti.Ndarray, out: ti.Ndarray) -> None:
        """out[places] = matrix^-1 rhs[places]."""
        solution, residual, direction, image, z = self.arrays
        self.iterations = 0
        for place in self.places:
            gather("vector", self.n, place, [(rhs, residual)])
            solution.fill(0.0)
            self.iterations += self.cg.solve(
                self.n, solution, residual, direction, image, z,
                multiply=lambda u, image: _multiply(self.n, self.start, self.column, self.value, u, image),
                precondition=lambda r, z: _divide(self.n, self.diagonal, r, z),
            )  # fmt: skip
            scatter_vectors(self.n, place, solution, out)
