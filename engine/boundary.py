"""Volume maps: walls and obstacles as one smooth field that particles sample once a step.

After Bender et al. 2019 and Neder 2024 (Section 5.11, Eq. 35-39), with a change that removes the step
between the first and the second layer of particles above a flat floor. There the wall is one point of
volume V_B at the closest surface point; here it is the fluid's own mirror image. A particle at distance
phi from a flat wall sees the image of its layer at distance 2 phi, so the wall adds

    beta(phi) = Q(2 phi),    Q(z) = sum of V W over a square lattice plane at distance z,

to its density ratio. At phi = d/2 this is exactly what a lattice that went on into the wall would add, the
second layer (phi = 3d/2) feels nothing, and the slope there, -1.02 / d, makes the wall carry the weight of the
column at the true hydrostatic pressure. Below d/2 the profile goes on as a straight line, so that the push
never weakens. In a fluid that has moved, first layers are no lattice: their particles stand at 0.52 to 0.55 d on
average, where the slope is less, and the wall's pressure would read 4 to 13 % high. STEEP makes up for it.

In front of anything but a plane (edges, corners, curvature) more or less of the wall is in reach: this is
Eq. 35, with the kernel K(z) = beta''(z) / (2 pi z) whose half-space integral is beta. The map stores the
distance at which a flat wall would add as much, the effective distance, on a sparse grid of spacing d/2:

    wall density = beta(phi),    its gradient = beta'(phi) grad phi.

Quadratic B-splines interpolate it: exact for a plane, whatever the resolution, and with a continuous gradient
in a corner, where phi is a smooth minimum of the distances to the walls. The gradient is that of the
interpolated field, so the wall is a true potential and the pressure system stays symmetric.

Planes and box-shaped containers need no map: `walls` adds up their planes.
"""

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import taichi as ti

from pliant.backend import Reals, RealTable, Vectors, ivec3, mat3, vec3
from pliant.smoothing import Smoothing

BLOCK = 8  # nodes along a block's edge, beside one more on each side that its splines reach
SIDE = BLOCK + 2
NODES = SIDE**3
CELLS_PER_SPACING = 2
STEEP = 1.08  # how much steeper than Q(2 phi) the wall is: see above
REACH = 0.5 + 0.5 / STEEP  # in spacings: where the mirrored layer is a support h = 2 d away
DEPTH = 0.75  # in spacings: how deep inside the wall the map still knows the way out; a step moves 0.4 d at most
FAR = 4.0  # in spacings: distances are cut off here
TABLE = 512
STENCIL = 6  # quadrature points per spacing in the wall integral
FLAT = 5e-3  # in spacings: a neighbourhood this close to a plane is one
EDGE = 0.84  # share of the integral's excess over a flat wall; a lattice in a right-angled edge then has density 1.01
OUTSIDE, INSIDE, BEYOND = -1, -2, -3  # directory entries of blocks without nodes
MAP_VERSION = 6

Directory: TypeAlias = ti.types.ndarray(dtype=ti.i32, ndim=3)
Places: TypeAlias = ti.types.ndarray(dtype=ivec3, ndim=1)
Blocks: TypeAlias = ti.types.ndarray(dtype=ti.f32, ndim=2)


def wall_profile(smoothing: Smoothing) -> np.ndarray:
    """beta and its slope for phi from d/2 to REACH, in units of d: a table of TABLE + 1 rows."""
    phi = np.linspace(0.5, REACH, TABLE + 1)
    step = 1e-4
    slope = (mirrored(smoothing, phi + step) - mirrored(smoothing, phi - step)) / (2 * step)
    return np.stack([mirrored(smoothing, phi), slope], axis=1)


def mirrored(smoothing: Smoothing, phi: np.ndarray) -> np.ndarray:
    """What the mirror image of a layer at distance phi >= d/2, in units of d, adds to its density ratio."""
    return smoothing.plane_sum(1 + 2 * STEEP * (phi - 0.5))


@ti.func
def profile(phi: ti.f32, table: ti.template()):
    """beta(phi) and d beta / d phi for phi in units of the spacing; a straight line below d/2."""
    t = ti.max(phi - 0.5, 0.0) * (TABLE / (REACH - 0.5))
    k = ti.min(ti.floor(t, ti.i32), TABLE - 1)
    a = ti.min(t - k, 1.0)
    beta = table[k, 0] * (1.0 - a) + table[k + 1, 0] * a
    slope = table[k, 1] * (1.0 - a) + table[k + 1, 1] * a
    return beta + slope * ti.min(phi - 0.5, 0.0), slope


@ti.func
def inverse_profile(beta: ti.f32, table: ti.template()):
    """The phi, in units of the spacing, at which a flat wall adds beta > 0."""
    phi = 0.5 + (beta - table[0, 0]) / table[0, 1]
    if phi > 0.5:
        lo, hi = 0.5, REACH
        for _ in range(24):
            middle = 0.5 * (lo + hi)
            if profile(middle, table)[0] > beta:
                lo = middle
            else:
                hi = middle
        phi = 0.5 * (lo + hi)
    return phi


@ti.func
def sample(x: vec3, origin: vec3, cell: ti.f32, far: ti.f32, beyond: ti.f32, directory: ti.template(),
           spline: ti.template()):  # fmt: skip
    """Distance at x and its gradient from the 27 spline coefficients around x; constant where there are none."""
    u = (x - origin) / cell
    nearest = ti.round(u, ti.i32)
    b = ti.floor(ti.cast(nearest, ti.f32) / BLOCK, ti.i32)
    block = BEYOND
    if (b >= 0).all() and b[0] < directory.shape[0] and b[1] < directory.shape[1] and b[2] < directory.shape[2]:
        block = directory[b]
    value, gradient = beyond, vec3(0.0)
    if block == OUTSIDE:
        value = far
    elif block == INSIDE:
        value = -far
    elif block >= 0:
        t = u - nearest
        w = (0.5 * (0.5 - t) ** 2, 0.75 - t**2, 0.5 * (0.5 + t) ** 2)
        s = ((t - 0.5) / cell, -2.0 * t / cell, (t + 0.5) / cell)
        base = nearest - b * BLOCK
        first = base[0] + SIDE * (base[1] + SIDE * base[2])
        value = 0.0
        for k in ti.static(range(3)):
            for j in ti.static(range(3)):
                row = first + SIDE * (j + SIDE * k)
                a, c, e = spline[block, row], spline[block, row + 1], spline[block, row + 2]
                along = w[0][0] * a + w[1][0] * c + w[2][0] * e
                value += along * w[j][1] * w[k][2]
                gradient += vec3((s[0][0] * a + s[1][0] * c + s[2][0] * e) * w[j][1] * w[k][2],
                                 along * s[j][1] * w[k][2], along * w[j][1] * s[k][2])  # fmt: skip
    return value, gradient


@ti.func
def node_at(node: ti.i32):
    """Coordinates of a stored node relative to its block's first own node."""
    return ti.Vector([node % SIDE - 1, node // SIDE % SIDE - 1, node // SIDE**2 - 1])


@ti.kernel
def _spline_coefficients(place: Places, directory: Directory, values: Blocks, spline: Blocks):
    """c = phi - (second differences of phi) / 8: with these the spline passes through phi up to fourth order.
    Where a difference would need a node of a missing block it is left out; nobody samples there."""
    for b, node in ti.ndrange(place.shape[0], NODES):
        o = node_at(node)
        own = values[b, node]
        correction = 0.0
        for axis in ti.static(range(3)):
            total, found = -2.0 * own, 0
            for side in ti.static((-1, 1)):
                q = place[b] * BLOCK + o
                q[axis] += side
                c = ti.floor(ti.cast(q, ti.f32) / BLOCK, ti.i32)
                if ((c >= 0).all() and c[0] < directory.shape[0] and c[1] < directory.shape[1]
                        and c[2] < directory.shape[2]):  # fmt: skip
                    if directory[c] >= 0:
                        l = q - c * BLOCK + 1
                        total += values[directory[c], l[0] + SIDE * (l[1] + SIDE * l[2])]
                        found += 1
            correction += ti.select(found == 2, total, 0.0)
        spline[b, node] = own - correction / 8.0


@ti.func
def solid_share(phi: ti.f32, width: ti.f32):
    """Share of a quadrature cell of that width that lies in the wall."""
    return ti.min(ti.max(0.5 - phi / width, 0.0), 1.0)


@ti.func
def is_flat(x: vec3, p: ti.f32, n: vec3, spacing: ti.f32, origin: vec3, cell: ti.f32, far: ti.f32, beyond: ti.f32,
            directory: ti.template(), spline: ti.template()):  # fmt: skip
    """Whether the surface around x is a plane: probes at the 26 directions of a cube's corners, edges and faces."""
    deviation = 0.0
    for k in range(27):
        o = spacing * ti.cast(ti.Vector([k % 3 - 1, k // 3 % 3 - 1, k // 9 - 1]), ti.f32)
        value, _ = sample(x + o, origin, cell, far, beyond, directory, spline)
        flat = p + n.dot(o)
        if ti.abs(flat) < 1.5 * spacing:
            deviation = ti.max(deviation, ti.abs(value - flat))
    return deviation < FLAT * spacing


@ti.kernel
def _effective_distance(place: Places, origin: vec3, cell: ti.f32, spacing: ti.f32, far: ti.f32, beyond: ti.f32,
                        offsets: Vectors, weights: Reals, table: RealTable, directory: Directory, phi: Blocks,
                        spline: Blocks, effective: Blocks):  # fmt: skip
    """Eq. 35 at every node near the wall: integrates K over the wall and over the flat wall at the same distance
    with the same points, so that errors of quadrature cancel, and turns their ratio into a distance."""
    width = 1.5 * spacing / STENCIL
    for b, node in ti.ndrange(place.shape[0], NODES):
        x = origin + (place[b] * BLOCK + node_at(node)) * cell
        p = phi[b, node]
        effective[b, node] = p
        if ti.abs(p) < REACH * spacing:
            _, n = sample(x, origin, cell, far, beyond, directory, spline)
            n = n / ti.max(n.norm(), 1e-6)
            if not is_flat(x, p, n, spacing, origin, cell, far, beyond, directory, spline):
                here, flat = 0.0, 0.0
                for k in range(offsets.shape[0]):
                    flat += weights[k] * solid_share(p + n.dot(offsets[k]), width)
                    there, _ = sample(x + offsets[k], origin, cell, far, beyond, directory, spline)
                    here += weights[k] * solid_share(there, width)
                if here > 1e-6 and flat > 1e-6:
                    beta = profile(p / spacing, table)[0] * (1.0 + EDGE * (here / flat - 1.0))
                    effective[b, node] = ti.max(spacing * inverse_profile(beta, table), -REACH * spacing)


def _quadrature(smoothing: Smoothing, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and weights for the kernel K(z) = beta''(z) / (2 pi z); it lives in d/2 < z < d, because the straight
    part of beta below d/2 has no curvature."""
    k = np.arange(-STENCIL, STENCIL + 1) / STENCIL
    offset = np.stack(np.meshgrid(k, k, k, indexing="ij"), -1).reshape(-1, 3)
    z = np.linalg.norm(offset, axis=1)
    shell = (z >= 0.5) & (z < REACH)
    z, step = z[shell], 1e-3
    images = [mirrored(smoothing, z + k * step) for k in (-1, 0, 1)]
    curvature = (images[0] - 2 * images[1] + images[2]) / step**2
    return offset[shell] * spacing, np.clip(curvature, 0, None) / (2 * np.pi * z) / STENCIL**3


def cache_folder() -> Path:
    """Where maps are kept between runs: PLIANT_CACHE, or the user's cache folder."""
    given = os.environ.get("PLIANT_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "pliant"


def upload(values: np.ndarray, kind: Any) -> ti.Ndarray:
    """A device array with these values (at least one element: empty arrays cannot be passed to kernels)."""
    shape = values.shape[:-2] if kind is mat3 else values.shape[:-1] if kind in (vec3, ivec3) else values.shape
    array = ti.ndarray(kind, tuple(max(s, 1) for s in shape))
    if values.size:
        array.from_numpy(np.ascontiguousarray(values, np.int32 if kind in (ti.i32, ivec3) else np.float32))
    return array


class VolumeMap:
    """The sampled field of one wall. `signed_distance` is negative inside the solid of the wall.

    `bounds` is the box that contains the surface; beyond the map lies free space, or the wall itself
    when the solid is the outside of a container (`solid_beyond`). Maps are cached on disk under `key`.
    """

    def __init__(self, signed_distance: Callable[[np.ndarray], np.ndarray], bounds: np.ndarray, spacing: float,
                 smoothing: Smoothing, solid_beyond: bool, key: str = ""):  # fmt: skip
        self.spacing, self.cell, self.far = spacing, spacing / CELLS_PER_SPACING, FAR * spacing
        self.beyond = -self.far if solid_beyond else self.far
        stored = self._load(key) if key else None
        if stored is None:
            stored = self._compute(signed_distance, bounds, smoothing)
            if key:
                self._store(key, stored)
        self.origin, self.blocks = stored["origin"], len(stored["spline"])
        self.directory, self.spline = upload(stored["directory"], ti.i32), upload(stored["spline"], ti.f32)

    def _compute(self, signed_distance: Any, bounds: np.ndarray, smoothing: Smoothing) -> dict[str, np.ndarray]:
        margin = (DEPTH + REACH) * self.spacing
        origin = np.asarray(bounds[0], dtype=float) - margin
        dims = np.ceil((bounds[1] + margin - origin) / (BLOCK * self.cell)).astype(int) + 1
        near, blocks = self._directory(signed_distance, origin, dims)
        distances = self._distances(signed_distance, origin, blocks)
        offset, weight = _quadrature(smoothing, self.spacing)
        place, directory = upload(blocks, ivec3), upload(near, ti.i32)
        phi, spline, effective = (upload(distances, ti.f32) for _ in range(3))
        if len(blocks):
            _spline_coefficients(place, directory, phi, spline)
            _effective_distance(place, vec3(*origin), self.cell, self.spacing, self.far, self.beyond,
                                upload(offset, vec3), upload(weight, ti.f32), upload(wall_profile(smoothing), ti.f32),
                                directory, phi, spline, effective)  # fmt: skip
            _spline_coefficients(place, directory, effective, spline)
        return {"origin": origin, "directory": near, "spline": spline.to_numpy()[: len(blocks)]}

    def _directory(self, signed_distance: Any, origin: np.ndarray, dims: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which blocks come near the surface, and the places of those that do."""
        place = np.stack(np.meshgrid(*[np.arange(k) for k in dims], indexing="ij"), -1).reshape(-1, 3)
        middle = (BLOCK - 1) / 2  # a block owns what is nearest to its nodes
        phi = signed_distance(origin + (place * BLOCK + middle) * self.cell)
        half_diagonal = np.sqrt(3) / 2 * BLOCK * self.cell
        near = (phi < REACH * self.spacing + half_diagonal) & (phi > -DEPTH * self.spacing - half_diagonal)
        directory = np.where(phi > 0, OUTSIDE, INSIDE).astype(np.int32)
        directory[near] = np.arange(near.sum())
        return directory.reshape(dims), place[near]

    def _distances(self, signed_distance: Any, origin: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        k = np.arange(-1, BLOCK + 1)
        z, y, x = np.meshgrid(k, k, k, indexing="ij")  # x runs fastest in a block
        nodes = np.stack([x, y, z], -1).reshape(1, -1, 3)
        phi = np.empty((len(blocks), NODES), np.float32)
        for lo in range(0, len(blocks), 512):  # bounds the memory of the query
            points = origin + (blocks[lo : lo + 512, None, :] * BLOCK + nodes) * self.cell
            phi[lo : lo + 512] = signed_distance(points.reshape(-1, 3)).reshape(-1, NODES)
        return np.clip(phi, -self.far, self.far)

    @staticmethod
    def _path(key: str) -> Path:
        return cache_folder() / "maps" / f"{hashlib.sha256(f'{MAP_VERSION} {key}'.encode()).hexdigest()[:32]}.npz"

    def _load(self, key: str) -> dict[str, np.ndarray] | None:
        try:
            with np.load(self._path(key)) as stored:
                return {name: stored[name] for name in ("origin", "directory", "spline")}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # absent or damaged: computed anew

    def _store(self, key: str, arrays: dict[str, np.ndarray]) -> None:
        """A cache only saves time, so a full or read-only disk is no reason to stop."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            os.replace(file.name, path)
        except OSError:
            return

    @property
    def bytes(self) -> int:
        return 4 * (self.blocks * NODES + int(np.prod(self.directory.shape)))
