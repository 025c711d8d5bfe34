"""How each particle of an elastic body has moved since rest: its deformation gradient, from positions alone.

F_i = sum_j (x_j - x_i) g_ij^T with the corrected gradients g_ij of the rest pose (Kugelstadt et al. 2021, Eq. 9; see
`solvers/elasticity/rest.py`). Nothing else is needed, so that skins of a run that is read from its files move as they
did while it was simulated.

**Thin parts.** Where neighbors lie in a plane or on a line, or there are none, F_i is known on these directions alone.
The others are taken from neighbors that know more, from one to the next as far as it takes: the mean P of their
gradients, turned by the least rotation Q that brings the directions that are known to where they are,

    F_i = F_i S_i + Q P (1 - S_i),

which is exact where the motion is affine. A body without any solid part has nothing to start from: a sheet keeps its
thickness and its normal, a thread turns by the least rotation, a lonely particle does not turn.
"""

import numpy as np
import scipy.sparse as sp
import taichi as ti
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from pliant.core.backend import Ints, Matrices, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.smoothing import Smoothing
from pliant.solvers.elasticity.rest import Rest, rest_pose

SOLID = 3  # directions that have neighbors at a particle whose gradient is known as a whole
NEAREST = 4  # solid particles that a part out of touch with them is completed from
LEAST = 1e-12  # what is shorter than this has no direction; gradients are about one


@ti.kernel
def _gradients(n: ti.i32, start: Ints, neighbor: Ints, g: Vectors, x: Vectors, F: Matrices):
    """F_i = sum_j (x_j - x_i) g_ij^T."""
    for i in range(n):
        total = mat3(0.0)
        for e in range(start[i], start[i + 1]):
            total += (x[neighbor[e]] - x[i]).outer_product(g[e])
        F[i] = total


@ti.func
def _turned(v: vec3, a: vec3, b: vec3):
    """v, turned by the least rotation that takes the direction of a to that of b; none if either has none."""
    result = v
    la, lb = a.norm(), b.norm()
    if la > LEAST and lb > LEAST:
        u, w = a / la, b / lb
        c, axis = u.dot(w), u.cross(w)
        if c > -0.999999:
            result = c * v + axis.cross(v) + axis.dot(v) / (1.0 + c) * axis
        else:  # half a turn about any axis across
            across = vec3(1.0, 0.0, 0.0)
            if ti.abs(u[0]) > 0.6:
                across = vec3(0.0, 1.0, 0.0)
            p = u.cross(across).normalized()
            result = 2.0 * p.dot(v) * p - v
    return result


@ti.kernel
def _complete(n: ti.i32, thin: Ints, rank: Ints, axes: Matrices, start: Ints, parent: Ints, share: Reals,
              F: Matrices):  # fmt: skip
    """Completes the gradients of thin parts, one particle after the other: each needs those before it."""
    ti.loop_config(serialize=True)
    for k in range(n):
        i = thin[k]
        P = ti.Matrix.identity(ti.f32, 3)
        if start[k + 1] > start[k]:
            P = mat3(0.0)
            for e in range(start[k], start[k + 1]):
                P += share[e] * F[parent[e]]
        t, s, u = axes[k][:, 0], axes[k][:, 1], axes[k][:, 2]  # known directions first
        if rank[k] == 2:
            image = _turned(P @ u, (P @ t).cross(P @ s), (F[i] @ t).cross(F[i] @ s))
            F[i] = (F[i] @ t).outer_product(t) + (F[i] @ s).outer_product(s) + image.outer_product(u)
        elif rank[k] == 1:
            along, before = F[i] @ t, P @ t
            second, third = _turned(P @ s, before, along), _turned(P @ u, before, along)
            F[i] = along.outer_product(t) + second.outer_product(s) + third.outer_product(u)
        else:
            F[i] = P


@ti.kernel
def _maps(n: ti.i32, x: Vectors, X: Vectors, F: Matrices, maps: RealTable):
    """Rows (F_j, x_j - F_j X_j) of the motion X -> F_j (X - X_j) + x_j."""
    for j in range(n):
        c = x[j] - F[j] @ X[j]
        for a in ti.static(range(3)):
            maps[j, 9 + a] = c[a]
            for b in ti.static(range(3)):
                maps[j, 3 * a + b] = F[j][a, b]


class Motion:
    """The affine motion of the surroundings of each particle of a body, all relative to a point at rest and one now,
    which keeps single precision precise far away from the origin."""

    def __init__(self, X: np.ndarray, volume: float, spacing: float, smoothing: Smoothing,  # noqa: N803
                 nearest: int | None = None):  # fmt: skip
        rest = rest_pose(X, volume, spacing, smoothing, nearest)
        self.n, self.middle = rest.n, X.mean(axis=0)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rest.i, minlength=rest.n))])
        self._rows = upload(starts, ti.i32), upload(rest.j, ti.i32), upload(rest.corrected, vec3)
        self._thin, self.thin = _thin_parts(rest), int(np.count_nonzero(rest.rank < SOLID))
        self._X, self._x = upload(X - self.middle, vec3), ti.ndarray(vec3, max(rest.n, 1))
        self.F = ti.ndarray(mat3, max(rest.n, 1))
        self.maps = ti.ndarray(ti.f32, (max(rest.n, 1), 12))

    def find(self, x: np.ndarray, F: np.ndarray | None = None) -> np.ndarray:  # noqa: N803
        """Fills `maps` for particles at x (n, 3) [m], with F (n, 3, 3) where it is known already; returns the point
        that the motions are relative to now."""
        x = np.asarray(x, dtype=float)
        sane = x[np.isfinite(x).all(axis=1)]  # what blew up must not take the others with it
        centre = sane.mean(axis=0) if len(sane) else np.zeros(3)
        self._x.from_numpy(np.ascontiguousarray(x - centre, np.float32))
        if F is None:
            _gradients(self.n, *self._rows, self._x, self.F)
        else:
            self.F.from_numpy(np.ascontiguousarray(F, np.float32))
        if self.thin:
            _complete(self.thin, *self._thin, self.F)
        _maps(self.n, self._x, self._X, self.F, self.maps)
        return centre


def _thin_parts(rest: Rest) -> tuple:
    """Arguments of `_complete`: particles that are not solid, those first that others depend on."""
    order: list[np.ndarray] = []
    parents: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # of each wave: how many each has, which, and shares
    done = _roots(rest)
    order.append(np.flatnonzero(done & (rest.rank < SOLID)))
    parents.append((np.zeros(len(order[0]), int), np.zeros(0, int), np.zeros(0)))
    lost = _out_of_touch(rest, done)
    if len(lost):
        known = np.flatnonzero(done)
        count = min(NEAREST, len(known))
        r, k = cKDTree(rest.X[known]).query(rest.X[lost], list(range(1, count + 1)))
        order.append(lost)
        parents.append((np.full(len(lost), count), known[k].ravel(), _shares(r).ravel()))
        done[lost] = True
    start, last = np.searchsorted(rest.i, np.arange(rest.n + 1)), np.flatnonzero(done)
    while not done.all():
        beside = rest.j[_ranges(start, last)]
        last = np.unique(beside[~done[beside]])
        pairs = _ranges(start, last)
        pairs = pairs[done[rest.j[pairs]]]
        whose = np.searchsorted(last, rest.i[pairs])
        weight = 1.0 / np.linalg.norm(rest.Xij[pairs], axis=1)
        order.append(last)
        parents.append((np.bincount(whose), rest.j[pairs], weight / np.bincount(whose, weight)[whose]))
        done[last] = True
    thin = np.concatenate(order)
    counts, which, shares = (np.concatenate(part) for part in zip(*parents, strict=True))
    axes = np.linalg.eigh(rest.S[thin])[1][:, :, ::-1]  # the directions that are known have eigenvalue one, not zero
    return (upload(thin, ti.i32), upload(rest.rank[thin], ti.i32), upload(axes, mat3),
            upload(np.concatenate([[0], np.cumsum(counts)]), ti.i32), upload(which, ti.i32),
            upload(shares, ti.f32))  # fmt: skip


def _ranges(start: np.ndarray, which: np.ndarray) -> np.ndarray:
    """The numbers start[k] to start[k + 1] - 1 for each of these k, one after the other."""
    count = start[which + 1] - start[which]
    ends = np.cumsum(count)
    return np.repeat(start[which] - ends + count, count) + np.arange(ends[-1] if len(ends) else 0)


def _shares(r: np.ndarray) -> np.ndarray:
    """Shares of particles at distances r (m, k), the nearer the larger."""
    weight = 1.0 / np.maximum(r, LEAST * np.maximum(r.max(axis=1, keepdims=True), LEAST))
    return weight / weight.sum(axis=1, keepdims=True)


def _roots(rest: Rest) -> np.ndarray:
    """Particles (n,) that need no others: the solid ones; without any, all of the sheets; without these, one."""
    best = int(rest.rank.max())
    if best >= 2:
        return rest.rank == best
    return np.arange(rest.n) == int(np.argmax(rest.rank))


def _out_of_touch(rest: Rest, roots: np.ndarray) -> np.ndarray:
    """One particle, the best-known, of each part of the body that no chain of neighbors joins to a root."""
    graph = sp.csr_matrix((np.ones(len(rest.i)), (rest.i, rest.j)), (rest.n, rest.n))
    count, part = connected_components(graph, directed=False)
    rooted = np.zeros(count, bool)
    rooted[part[roots]] = True
    by_rank = np.argsort(-rest.rank, kind="stable")
    first = by_rank[np.unique(part[by_rank], return_index=True)[1]]
    return first[~rooted[part[first]]]
