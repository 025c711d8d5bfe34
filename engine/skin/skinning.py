"""Skins: fine surfaces that follow the particles of elastic bodies (Kugelstadt et al. 2021, Section 8).

A vertex k that was at X_k at rest is now at

    x_k = s_k sum_j V_j W(X_kj) (F_j X_kj + x_j),    s_k = 1 / sum_j V_j W(X_kj),    X_kj = X_k - X_j    (Eq. 38, 39)

where the paper prints X_ij for X_kj. The weights are those at rest and their sum is one, so a skin never tears, and
affine motions come out exactly. With the affine maps X -> F_j X + c_j, c_j = x_j - F_j X_j, a vertex only blends maps.

Vertices farther than REACH spacings from every particle have a wider W, which just reaches the nearest ones: weights
change smoothly from one vertex to the next, wherever they are.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import taichi as ti
from scipy.spatial import cKDTree

from pliant.core.backend import Ints, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.data import TriMesh
from pliant.core.rotation import cofactor
from pliant.core.smoothing import SPACINGS_PER_SUPPORT, Smoothing
from pliant.errors import PliantError
from pliant.skin.fit import Motion
from pliant.skin.refine import Corners

REACH = 1.5  # in spacings: vertices nearer to a particle than this have the support of Eq. 39,
BEYOND = SPACINGS_PER_SUPPORT - REACH  # others reach so much farther than to the nearest particle
MOST_FAR = 64  # particles that a vertex out of reach follows, the nearest ones
MOST_CELLS = 200  # along each side of the grid in which particles are looked up
CHUNK = 50_000  # vertices out of reach that are looked up at a time
LARGEST = 2**31 - 1  # weights that the tables can count
NORMAL, UV = "normal", "uv"  # fields of a skin


@ti.kernel
def _look(n: ti.i32, filling: ti.template(), w: ti.template(), h: ti.f32, reach: ti.f32, grid: Vectors, sides: Ints,
          first: Ints, order: Ints, X: Vectors, V: Reals, at: Vectors, start: Ints, count: Ints, nearest: Reals,
          particle: Ints, weight: Reals):  # fmt: skip
    """Counts the particles within h of each vertex and finds how far the nearest is; or (`filling`) lists them with
    their weights V_j W(X_kj) / sum_j V_j W(X_kj), for vertices with a particle in reach."""
    for k in range(n):
        home = ti.cast(ti.floor((at[k] - grid[0]) / grid[1][0]), ti.i32)
        low, high = ti.max(home - 1, 0), ti.min(home + 2, ti.Vector([sides[0], sides[1], sides[2]]))
        found, total, least = 0, 0.0, ti.math.inf
        if not ti.static(filling) or nearest[k] <= reach:
            for a, b in ti.ndrange((low[0], high[0]), (low[1], high[1])):
                row = (a * sides[1] + b) * sides[2]
                for e in range(first[row + low[2]], first[row + ti.max(low[2], high[2])]):
                    r = (at[k] - X[order[e]]).norm()
                    least = ti.min(least, r)
                    if r < h:
                        if ti.static(filling):
                            particle[start[k] + found], weight[start[k] + found] = order[e], V[order[e]] * w(r / h)
                            total += V[order[e]] * w(r / h)
                        found += 1
        if ti.static(filling):
            for e in range(start[k], start[k] + found):
                weight[e] /= total
        else:
            count[k], nearest[k] = found, least


@ti.kernel
def _blend(n: ti.i32, turning: ti.template(), start: Ints, particle: Ints, weight: Reals, X: Vectors, maps: RealTable,
           shift: Vectors, normal: Vectors, x: RealTable, turned: RealTable):  # fmt: skip
    """x_k = sum_j w_kj (F_j X_k + c_j) (Eq. 39), and (`turning`) normals, by the cofactors of sum_j w_kj F_j."""
    for k in range(n):
        m = ti.Vector([0.0] * 12)
        for e in range(start[k], start[k + 1]):
            for c in ti.static(range(12)):
                m[c] += weight[e] * maps[particle[e], c]
        B = mat3(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8])
        moved = B @ X[k] + vec3(m[9], m[10], m[11]) + shift[0]
        for c in ti.static(range(3)):
            x[k, c] = moved[c]
        if ti.static(turning):
            image = cofactor(B) @ normal[k]
            size = image.norm()
            for c in ti.static(range(3)):
                turned[k, c] = ti.select(size > 0.0, image[c] / size, 0.0)


@ti.kernel
def _spread(n: ti.i32, columns: ti.i32, start: Ints, particle: Ints, weight: Reals, values: RealTable, out: RealTable):
    """sum_j w_kj f_j."""
    for k in range(n):
        for c in range(columns):
            total = 0.0
            for e in range(start[k], start[k + 1]):
                total += weight[e] * values[particle[e], c]
            out[k, c] = total


class Skin:
    """A surface that follows the particles of an elastic body. Made once, from both at rest; Taichi must be running.

    vertices (n, 3) [m] and faces (k, 3): the surface at rest. X: particles at rest (m, 3) [m]. V: their volumes (m,)
    [m^3]. spacing: their distance d [m]; the support of W is 2 d. fields: of the vertices, by name; `normal` (n, 3), if
    there is one, is turned along, the others, such as texture coordinates `uv` (n, 2), stay what they are. nearest:
    neighbors that gradients are found from, as `Elastic(neighbors=...)`; None for all.

    In a periodic scene particles never jump by a period, and so skins do not either.
    """

    def __init__(self, vertices: Any, faces: Any, X: Any, V: Any, spacing: float, smoothing: Smoothing,  # noqa: N803
                 fields: Mapping[str, Any] | None = None, nearest: int | None = None):  # fmt: skip
        self.fields = {name: np.array(values) for name, values in (fields or {}).items()}
        at, self.faces = _checked_mesh(vertices, faces, self.fields)
        X, V = _checked_particles(X, V, spacing)  # noqa: N806
        self.n, self.rest, self.particles = len(at), at, len(X)
        self.motion = Motion(X, float(V.sum()), spacing, smoothing, nearest)
        self._corners: Corners | None = None
        own = self.fields.get(NORMAL)
        self._own_normals = own is not None
        self._normal = upload(np.zeros((1, 3)) if own is None else own, vec3)
        local = at - self.motion.middle
        self._at, self._shift = upload(local, vec3), ti.ndarray(vec3, 1)
        self._table = _weights(local, self._at, X - self.motion.middle, V, spacing, smoothing)

    def pose(self, x: Any, F: Any = None) -> np.ndarray:  # noqa: N803
        """Where the vertices are (n, 3) [m], in single precision, when the particles are at x (m, 3) [m].

        F (m, 3, 3) are their deformation gradients, where they are known already; else they are found from x.
        """
        return self._pose(x, F)[0]

    def _pose(self, x: Any, F: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
        """Vertices and, if the mesh brought its own, normals."""
        x = np.asarray(x)
        if x.shape != (self.particles, 3) or x.dtype.kind not in "fiu":
            raise PliantError(f"a skin on {self.particles:,} particles needs their positions ({self.particles}, 3), "
                              f"got {x.dtype} {x.shape}")  # fmt: skip
        if F is not None and np.shape(F) != (self.particles, 3, 3):
            raise PliantError(f"a skin on {self.particles:,} particles needs gradients ({self.particles}, 3, 3), "
                              f"got {np.shape(F)}")  # fmt: skip
        self._shift.from_numpy(self.motion.find(x, F)[None].astype(np.float32))
        out = np.empty((max(self.n, 1), 3), np.float32)
        turned = np.empty((max(self.n, 1) if self._own_normals else 1, 3), np.float32)
        _blend(self.n, self._own_normals, *self._table, self._at, self.motion.maps, self._shift, self._normal, out,
               turned)  # fmt: skip
        return out[: self.n], turned[: self.n]

    def mesh(self, x: Any, F: Any = None, values: Mapping[str, np.ndarray] | None = None) -> TriMesh:  # noqa: N803
        """The surface when the particles are at x, with its normals, and with `values` of the particles, by name, at
        its vertices."""
        vertices, normals = self._pose(x, F)
        if not self._own_normals:
            normals = self.corners.at_vertices(self.corners.normals(vertices))
        spread = {name: self.spread(v) for name, v in (values or {}).items()}
        return TriMesh(vertices, self.faces, self.fields | {NORMAL: normals} | spread)

    @property
    def corners(self) -> Corners:
        """Which corners share a normal; worked out when first asked for."""
        if self._corners is None:
            self._corners = Corners(self.rest, self.faces)
        return self._corners

    def split(self, mesh: TriMesh) -> TriMesh:
        """A mesh of this skin as it is best drawn: cut open along sharp edges, where each side has its own normals."""
        if self._own_normals or len(self.corners.vertex) == self.n:
            return mesh
        which = self.corners.vertex
        fields = {name: v[which] for name, v in mesh.fields.items()} | {NORMAL: self.corners.normals(mesh.vertices)}
        return TriMesh(mesh.vertices[which], self.corners.faces, fields)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of the particles (m, ...) at the vertices (n, ...), in single precision."""
        values = np.asarray(values)
        rows = np.ascontiguousarray(values.reshape(self.particles, -1), np.float32)
        out = np.empty((max(self.n, 1), rows.shape[1]), np.float32)
        _spread(self.n, rows.shape[1], *self._table, rows, out)
        return out[: self.n].reshape(self.n, *values.shape[1:])

    @property
    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each vertex k the entries start[k] to start[k + 1] of which particles it follows, and their weights."""
        start, particle, weight = (table.to_numpy() for table in self._table)
        return start[: self.n + 1], particle[: start[self.n]], weight[: start[self.n]]


def _checked_mesh(vertices: Any, faces: Any, fields: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    at, faces = np.array(vertices, dtype=float), np.array(faces)
    if at.ndim != 2 or at.shape[1:] != (3,):
        raise PliantError(f"the vertices of a skin must be numbers of shape (n, 3), got shape {at.shape}")
    if faces.ndim != 2 or faces.shape[1:] != (3,) or faces.dtype.kind not in "iu":
        raise PliantError(f"the faces of a skin must be whole numbers of shape (m, 3), got {faces.dtype} {faces.shape}")
    if faces.size and not 0 <= int(faces.min()) <= int(faces.max()) < len(at):
        raise PliantError(f"the faces of a skin must name vertices 0 to {len(at) - 1}, got {faces.min()} to "
                          f"{faces.max()}")  # fmt: skip
    if not np.isfinite(at[faces]).all():
        raise PliantError("the vertices of a skin must be finite numbers, got NaN or infinity")
    at[~np.isfinite(at).all(axis=1)] = 0.0  # vertices without a face may be anything
    for name, values in fields.items():
        if values.shape[:1] != (len(at),):
            raise PliantError(f"the field {name!r} of a skin must have a row for each of its {len(at)} vertices, got "
                              f"shape {values.shape}")  # fmt: skip
    if NORMAL in fields and fields[NORMAL].shape != at.shape:
        raise PliantError(f"the normals of a skin must have shape {at.shape}, got {fields[NORMAL].shape}")
    return at, faces.astype(np.int32)


def _checked_particles(X: Any, V: Any, spacing: float) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
    X, V = np.array(X, dtype=float), np.array(V, dtype=float)  # noqa: N806
    if X.ndim != 2 or X.shape[1:] != (3,) or not len(X) or not np.isfinite(X).all():
        raise PliantError(f"a skin needs one or more particles at finite positions (n, 3), got shape {X.shape}")
    if V.shape != (len(X),) or not (np.isfinite(V) & (V > 0)).all():
        raise PliantError(f"a skin needs a positive volume for each of {len(X)} particles, got shape {V.shape}")
    if not np.isfinite(spacing) or not spacing > 0:
        raise PliantError(f"the spacing of particles must be a positive number, got {spacing!r}")
    return X, V


def _weights(local: np.ndarray, at: ti.Ndarray, X: np.ndarray, V: np.ndarray, spacing: float,  # noqa: N803
             smoothing: Smoothing) -> tuple[ti.Ndarray, ti.Ndarray, ti.Ndarray]:  # fmt: skip
    """Which particles each vertex follows: starts, particles and weights, as `Skin.weights` tells them."""
    n, h = len(local), SPACINGS_PER_SUPPORT * spacing
    share = V / V.mean()
    grid = (*_grid(X, h), upload(X, vec3), upload(share, ti.f32), at)
    count, nearest = np.zeros(max(n, 1), np.int32), np.zeros(max(n, 1), np.float32)
    none, nothing = np.zeros(1, np.int32), np.zeros(1, np.float32)
    _look(n, False, smoothing.w, h, REACH * spacing, *grid, none, count, nearest, none, nothing)
    far = np.flatnonzero(nearest[:n] > np.float32(REACH * spacing))
    lists = [_far(local[part], X, share, spacing, smoothing) for part in np.split(far, range(CHUNK, len(far), CHUNK))]
    count[far] = np.concatenate([(weight > 0).sum(axis=1) for _, weight in lists])
    start = np.concatenate([[0], np.cumsum(count[:n], dtype=np.int64)])
    if start[-1] > LARGEST:
        raise PliantError(f"a skin of {n:,} vertices on particles as close as these is too large; use fewer vertices")
    particle, weight = np.zeros(max(start[-1], 1), np.int32), np.zeros(max(start[-1], 1), np.float32)
    starts = start.astype(np.int32)
    _look(n, True, smoothing.w, h, REACH * spacing, *grid, starts, count, nearest, particle, weight)
    for part, (which, shares) in zip(np.split(far, range(CHUNK, len(far), CHUNK)), lists, strict=True):
        used = shares > 0
        place = (starts[part][:, None] + np.cumsum(used, axis=1) - 1)[used]
        particle[place], weight[place] = which[used], shares[used]
    return upload(starts, ti.i32), upload(particle, ti.i32), upload(weight, ti.f32)


def _grid(X: np.ndarray, h: float) -> tuple:  # noqa: N803
    """Particles by cells no smaller than h: corner and size, cells along each side, where the particles of each cell
    begin in their order."""
    low, extent = X.min(axis=0) - 1e-3 * h, np.ptp(X, axis=0)
    size = max(h, float(extent.max()) / MOST_CELLS) * (1 + 1e-3)
    sides = np.floor((extent + 2e-3 * h) / size).astype(int) + 1
    cell = np.minimum(np.floor((X - low) / size).astype(int), sides - 1) @ [sides[1] * sides[2], sides[2], 1]
    order = np.argsort(cell, kind="stable")
    first = np.searchsorted(cell[order], np.arange(sides.prod() + 1))
    return (upload(np.array([low, [size] * 3]), vec3), upload(sides, ti.i32), upload(first, ti.i32),
            upload(order, ti.i32))  # fmt: skip


def _far(local: np.ndarray, X: np.ndarray, share: np.ndarray, spacing: float,  # noqa: N803
         smoothing: Smoothing) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The particles that vertices out of reach follow and their weights, both (n, k); zero for those not followed."""
    r, which = cKDTree(X).query(local, list(range(1, min(MOST_FAR, len(X)) + 1)))
    weight = share[which] * smoothing.profile(r / (r[:, :1] + BEYOND * spacing))
    return which, weight / weight.sum(axis=1, keepdims=True)
