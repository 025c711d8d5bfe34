"""The rest pose of an elastic body: who is whose neighbor, volumes, corrected gradients, and the constant matrix.

Everything here is worked out once, in double precision (Kugelstadt et al. 2021, Sections 3 and 4). With the corrected
gradients g_ij = V_j L_i grad W_ij (Eq. 7,
                                    8) the deformation gradient is F_i = sum_j (x_j - x_i) g_ij^T (Eq. 9).  # fmt: skip

**Volumes.** Eq. 5 gives particles at the surface too much, and so the body. But their gradients look inwards, by 0.18
spacings at a plane, and show too little of a bending. So the surplus is kept there and taken from the particles below:
the total is exact, and a beam of five particles across bends by what it should within a percent. Without the surplus it
is 15 % too soft, and with all volumes scaled alike its error shrinks as slowly as the spacing.

**Thin parts.** Where neighbors lie in a plane, on a line or nowhere, the matrix of Eq. 8 is singular. There L_i is the
inverse on the directions that have neighbors, which a projection S_i keeps, and the particle is a piece of sheet or
thread: it is stretched and sheared within S_i alone, and thins out freely (see `Elastic.lame_lambda`). Bending is then
left to the zero-energy term.
"""

import dataclasses

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pliant.core.smoothing import SPACINGS_PER_SUPPORT, Smoothing
from pliant.geometry.quality import FLAT

Array = NDArray[np.float64]

SURFACE = 0.1  # share of the gradients of all neighbors that must not cancel out at a particle of the surface
LEAST_VOLUME = 0.3  # of the mean: what a particle keeps whatever its neighbors take


@dataclasses.dataclass(frozen=True)
class Rest:
    """A body at rest. Pairs (i, j) are sorted by i and appear both ways."""

    X: Array  # positions (n, 3) [m]
    V: Array  # volumes (n,) [m^3], their sum the volume of the body
    L: Array  # corrections (n, 3, 3); zero along directions without neighbors
    rank: NDArray[np.int64]  # how many directions have neighbors (n,)
    i: NDArray[np.int64]
    j: NDArray[np.int64]
    Xij: Array  # X_i - X_j (pairs, 3) [m]
    slope: Array  # W'(r) / r [1/m^5]: grad W_ij = slope Xij
    zero_energy_weight: Array  # V_i V_j W_ij / r^2 [m] of a pair (Eq. 20), without alpha mu

    @property
    def n(self) -> int:
        return len(self.X)

    def is_at(self, X: Array, tolerance: float) -> bool:  # noqa: N803
        """Whether X is the same shape, wherever it is."""
        return self.X.shape == X.shape and bool(np.abs((X - X[0]) - (self.X - self.X[0])).max() < tolerance)

    def moved(self, X: Array) -> "Rest":  # noqa: N803
        """The same shape elsewhere."""
        return dataclasses.replace(self, X=X)

    def density_ratio(self, V: Array, smoothing: Smoothing, h: float) -> Array:  # noqa: N803
        """sum_j V_j W_ij, the particle itself included, for the volumes V that pressure works with."""
        r = np.linalg.norm(self.Xij, axis=1)
        return np.bincount(self.i, V[self.j] * smoothing.W(r, h), self.n) + V * smoothing.W(np.zeros(1), h)

    @property
    def S(self) -> Array:  # noqa: N802
        """Projections on the directions that have neighbors (n, 3, 3)."""
        return np.einsum("nab,nbc->nac", self.L, np.linalg.pinv(self.L, hermitian=True))

    @property
    def normals(self) -> Array:
        """Outward unit normals at the surface, zero elsewhere (n, 3)."""
        towards = self.sum_over_pairs((self.V[self.j] * self.slope)[:, None] * self.Xij)
        lean = np.linalg.norm(towards, axis=1, keepdims=True)
        full = np.abs(self.V[self.j] * self.slope) * np.linalg.norm(self.Xij, axis=1)
        total = np.bincount(self.i, full, self.n)[:, None]
        return np.where(lean > SURFACE * total, towards / np.maximum(lean, 1e-300), 0.0)

    def sum_over_pairs(self, values: Array) -> Array:
        """Sum over the neighbors of each particle."""
        flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
        sums = [np.bincount(self.i, column, self.n) for column in flat.T]
        return np.stack(sums, axis=-1).astype(float).reshape(self.n, *values.shape[1:])

    @property
    def second(self) -> Array:
        """sum_j hold_ij Xij Xij^T (n, 3, 3)."""
        return self.sum_over_pairs(self.zero_energy_weight[:, None, None] * self.Xij[:, :, None] * self.Xij[:, None, :])

    @property
    def corrected(self) -> Array:
        """The corrected gradients g_ij (pairs, 3) [1/m]."""
        return self.V[self.j, None] * np.einsum("eab,eb->ea", self.L[self.i], self.slope[:, None] * self.Xij)

    @property
    def gradients(self) -> list[sp.csr_matrix]:
        """Matrices G_a with (G_a x)_i = sum_j (x_j - x_i) g_ij,a: derivatives along the three axes."""
        g = self.corrected
        return [self.differences(-g[:, a]) for a in range(3)]

    def differences(self, weights: Array) -> sp.csr_matrix:
        """The matrix with (D x)_i = sum_j weights_ij (x_i - x_j)."""
        return (sp.diags(np.bincount(self.i, weights, self.n).astype(float))
                - sp.csr_matrix((weights, (self.i, self.j)), (self.n, self.n))).tocsr()  # fmt: skip


def rest_pose(X: Array, volume: float, spacing: float, smoothing: Smoothing, nearest: int | None = None,
              periods: Array | None = None) -> Rest:  # fmt: skip
    """The rest pose of particles at X with that volume together."""
    X = np.asarray(X, dtype=float)
    h, n = SPACINGS_PER_SUPPORT * spacing, len(X)
    i, j, Xij = _pairs(X, h, periods)
    r = np.linalg.norm(Xij, axis=1)
    W = smoothing.W(r, h)
    V = _volumes(i, j, W, 1.0 / (np.bincount(i, W, n) + smoothing.W(np.zeros(1), h)), volume)
    if nearest is not None:
        keep = _nearest(i, j, r, nearest, n)
        i, j, Xij, r, W = i[keep], j[keep], Xij[keep], r[keep], W[keep]
    step = 1e-4 * h
    slope = (smoothing.W(r + step, h) - smoothing.W(np.abs(r - step), h)) / (2 * step * r)
    rest = Rest(X, V, np.zeros((n, 3, 3)), np.zeros(n, int), i, j, Xij, slope, V[i] * V[j] * W / r**2)
    C = -rest.sum_over_pairs((V[j] * slope)[:, None, None] * Xij[:, :, None] * Xij[:, None, :])
    values, axes = np.linalg.eigh(C)
    full = values > FLAT * np.maximum(values[:, -1:], 1e-300)
    inverse = np.where(full, 1.0 / np.where(full, values, 1.0), 0.0)
    L = np.einsum("nak,nk,nbk->nab", axes, inverse, axes)
    return dataclasses.replace(rest, L=L, rank=full.sum(axis=1))


def _pairs(X: Array, h: float, periods: Array | None) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """All pairs closer than h, both ways, sorted; particles at the same place are no neighbors. Those of a lattice
    that are just h apart, where W is zero, must not be in or out by round-off."""
    reach = h * (1 - 1e-3)
    if periods is None or not np.any(periods):
        found = cKDTree(X).query_pairs(reach, output_type="ndarray")
        Xij = X[found[:, 0]] - X[found[:, 1]]
    else:
        wrapped = np.where(periods > 0, np.mod(X, np.where(periods > 0, periods, 1.0)), X - X.min(axis=0))
        found = cKDTree(wrapped, boxsize=periods).query_pairs(reach, output_type="ndarray")
        Xij = wrapped[found[:, 0]] - wrapped[found[:, 1]]
        Xij -= periods * np.round(Xij / np.where(periods > 0, periods, np.inf))
    apart = np.linalg.norm(Xij, axis=1) > 1e-3 * h
    found, Xij = found[apart].astype(np.int64), Xij[apart]
    i, j = np.concatenate([found[:, 0], found[:, 1]]), np.concatenate([found[:, 1], found[:, 0]])
    order = np.lexsort((j, i))
    return i[order], j[order], np.concatenate([Xij, -Xij])[order]


def _volumes(i: NDArray, j: NDArray, W: Array, eq5: Array, volume: float) -> Array:  # noqa: N803
    """Volumes by Eq. 5, what is too much taken from those neighbors that have less of it."""
    n = len(eq5)
    surplus = eq5 * n / volume - 1.0
    flow = W * np.maximum(surplus[i] - surplus[j], 0.0)
    total = np.bincount(i, flow, n)
    keeps = np.where(total > 0, np.maximum(surplus, 0.0), 0.0)
    gives = np.bincount(j, flow * (keeps / np.where(total > 0, total, 1.0))[i], n)
    V = np.clip(1.0 + keeps - gives, LEAST_VOLUME, None)
    return V * volume / V.sum()


def _nearest(i: NDArray, j: NDArray, r: Array, count: int, n: int) -> NDArray[np.bool_]:
    """Pairs in which one is among the `count` nearest of the other: symmetric, or forces would not balance. Neighbors
    as far as the last one counted are counted too, so that a lattice keeps its symmetry."""
    order = np.lexsort((r, i))
    start = np.searchsorted(i, np.arange(n))
    end = np.append(start[1:], len(i))
    last = np.minimum(start + count, end) - 1
    has = end > start
    reach = np.zeros(n)
    reach[has] = r[order][last[has]] * (1 + 1e-4)
    return (r <= reach[i]) | (r <= reach[j])


def distances(X: Array, Y: Array) -> Array:  # noqa: N803
    """Distances (n, 3), point by point, of X from Y once a rigid motion has brought it as near as can be (Kabsch
    1976)."""
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    U, _, Vt = np.linalg.svd(A.T @ B)
    return A @ (U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt) - B


def congruent(X: Array, Y: Array, tolerance: float) -> bool:  # noqa: N803
    """Whether a rigid motion takes X to Y."""
    return bool(np.abs(distances(X, Y)).max(initial=0.0) < tolerance)


def stiffness(rest: Rest, shear: float, zero_energy: float, weight: Array) -> sp.csc_matrix:
    """K of the energy x^T K x / 2 = sum_i weight_i (shear V_i |F_i|^2 / 2 + zero_energy E^ze_i), for one component of x
    (Eq. 29): `shear` is 2 mu [Pa], `zero_energy` is alpha mu [Pa].

    With Y_a x = sum_j hold_ij Xij,a (x_i - x_j) the zero-energy part is
    sum_j hold_ij |F_i Xij - x_ij|^2 = F_i second F_i^T - 2 F_i . Y_i + sum_j hold_ij |x_ij|^2, which needs no matrix of
    all pairs of neighbors."""
    G, second, w = rest.gradients, rest.second, sp.diags(weight)
    half = []
    for a in range(3):
        weighted = rest.differences(rest.zero_energy_weight * rest.Xij[:, a])
        mine = sp.diags(0.5 * shear * rest.V) @ G[a] - zero_energy * weighted
        half.append(w @ (mine + 0.5 * zero_energy * sum(sp.diags(second[:, a, b]) @ G[b] for b in range(3))))
    product = (sp.vstack(G).T.tocsr() @ sp.vstack(half).tocsr()).tocsr()
    pairs = rest.zero_energy_weight * (weight[rest.i] + weight[rest.j])
    return (product + product.T + zero_energy * rest.differences(pairs)).tocsc()
