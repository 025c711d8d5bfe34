"""Volume maps: walls and obstacles as one smooth field that particles sample once a step.

Sand and elastic bodies have these walls. Liquids take the distance of the map, and see their images (`images`).

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

from collections.abc import Callable
from typing import Any

import numpy as np
import taichi as ti

from pliant.boundary.distance_map import (
    BLOCK,
    NODES,
    Blocks,
    Directory,
    DistanceMap,
    Places,
    node_at,
    sample,
    spline_coefficients,
)
from pliant.core.backend import Reals, RealTable, Vectors, upload, vec3
from pliant.core.smoothing import Smoothing

STEEP = 1.08  # how much steeper than Q(2 phi) the wall is: see above
REACH = 0.5 + 0.5 / STEEP  # in spacings: where the mirrored layer is a support h = 2 d away
KNOWN = 1.4  # in spacings: up to where images need the distance (`images.IMAGE_REACH`)
DEPTH = 0.75  # in spacings: how deep inside the wall the map still knows the way out; a step moves 0.4 d at most
TABLE = 512
STENCIL = 6  # quadrature points per spacing in the wall integral
FLAT = 5e-3  # in spacings: a neighborhood this close to a plane is one
EDGE = 0.84  # share of the integral's excess over a flat wall; a lattice in a right-angled edge then has density 1.01


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


class VolumeMap(DistanceMap):
    """The field of one wall. `signed_distance` is negative inside the solid of the wall; beyond the map lies free
    space, or the wall itself when the solid is the outside of a container (`solid_beyond`)."""

    def __init__(self, signed_distance: Callable[[np.ndarray], np.ndarray], bounds: np.ndarray, spacing: float,
                 smoothing: Smoothing, solid_beyond: bool, key: str = ""):  # fmt: skip
        self.smoothing = smoothing
        super().__init__(signed_distance, bounds, spacing, KNOWN, DEPTH, solid_beyond, key)

    def _refine(self, origin: np.ndarray, place: Any, directory: Any, values: Any, spline: Any) -> None:
        """Effective distances in place of the true ones."""
        offset, weight = _quadrature(self.smoothing, self.spacing)
        effective = ti.ndarray(ti.f32, values.shape)
        _effective_distance(place, vec3(*origin), self.cell, self.spacing, self.far, self.beyond, upload(offset, vec3),
                            upload(weight, ti.f32), upload(wall_profile(self.smoothing), ti.f32), directory, values,
                            spline, effective)  # fmt: skip
        spline_coefficients(place, directory, effective, spline)
