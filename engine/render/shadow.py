"""Soft shadows for spheres: GGUI casts none, and without them neither a splash nor a floor has depth.

Every occluder is splatted into a height map across the light's direction. A particle with enough map above it is
darkened through its colour; the map's blurred outline is the shadow on the ground.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.core.backend import Reals, task, turns
from pliant.render.picture import Points, Surface, Triple

_MAX_CELLS = 768  # along the longer side of the map: about two pixels of a 1280-wide picture per cell
_EMPTY = -1e30
_BIAS = 4.0  # how many radii an occluder must stand above a particle: neighbors in the same surface do not count
_TAPS = 3  # half-width, in cells, of the window over which a particle's shadow is averaged
_BLUR = 3  # half-width, in cells, of the filters that soften the outline
_MAX_SAMPLES = 200_000  # on triangles of coarse meshes; of glossy ones that are fine, the vertices sample them
_LIFT = 2.0  # in cells of the map or edges of a mesh, whichever are longer

Grid: TypeAlias = ti.types.ndarray(dtype=ti.f32, ndim=2)
Rows: TypeAlias = ti.types.ndarray(dtype=ti.math.vec3, ndim=1)
Table: TypeAlias = ti.types.ndarray(dtype=ti.i64, ndim=2)


@dataclass
class ShadowMap:
    """Heights towards the light over a grid: row i, column j stands for a = origin[0] + i cell, b = origin[1] + j cell.

    `axes` rows are a, b and the direction to the light; `cover` is the blurred outline in 0..1.
    """

    axes: np.ndarray
    origin: np.ndarray
    cell: float
    heights: np.ndarray
    cover: np.ndarray

    def terms(self) -> tuple:
        """What kernels want to know of it."""
        return self.heights, *map(ti.math.vec3, self.axes), ti.math.vec2(self.origin), self.cell


def shadow_map(direction: Triple, points: list[Points], surfaces: list[Surface]) -> ShadowMap | None:
    """The map seen from `direction`, or None if there is nothing that could cast a shadow."""
    groups, meshes = [(p.x, p.radius) for p in points if len(p.x)], []
    for surface in surfaces:
        if len(surface.faces) and surface.fine:
            groups.append((surface.vertices, surface.edge))
        elif len(surface.faces):
            meshes.append(surface)
    if not groups and not meshes:
        return None
    axes = _axes(direction)
    clouds = [x.T.copy() for x in [x for x, _ in groups] + [s.vertices for s in meshes]]  # extremes are found faster so
    corners = np.array([(x.min(axis=1), x.max(axis=1)) for x in clouds])
    low, high = corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)
    box = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    flat = box @ axes[:2].T
    size = float(np.ptp(flat, axis=0).max())
    cell = max(size / _MAX_CELLS, min((r for _, r in groups), default=0.0), 1e-9)
    edge = max([r for _, r in groups], default=0.0) + 12 * cell  # room for the blur
    origin = flat.min(axis=0) - edge
    shape = np.ceil((np.ptp(flat, axis=0) + 2 * edge) / cell).astype(int) + 1
    heights = np.full(shape, _EMPTY, np.float32)
    groups += [(_samples(s, cell), cell) for s in meshes]
    for x, radius in groups:
        _splat(x, radius, heights, *map(ti.math.vec3, axes), ti.math.vec2(origin), cell)
    return ShadowMap(axes, origin, cell, heights, _blurred((heights > _EMPTY).astype(np.float32)))


def shaded(points: Points, shadows: ShadowMap | None, strength: float) -> np.ndarray:
    """The particles' colours, darkened by up to `strength` where something stands between them and the light."""
    colors = np.asarray(points.colors)
    if shadows is None or not len(points.x):
        return colors
    colors = colors.copy()
    bias = _BIAS * max(points.radius, shadows.cell)
    _shade(points.x, colors, bias, strength, *shadows.terms())
    return colors


def shadows_on(surface: Surface, normals: np.ndarray, shadows: ShadowMap | None, strength: float) -> np.ndarray:
    """How much of the light (n,) shadows leave to the vertices, as if each were a particle lifted off the surface:
    slopes would otherwise shade themselves in stripes."""
    left = np.ones(len(surface.vertices), np.float32)
    if shadows is not None and len(left):
        size = max(surface.edge, 2.0 * shadows.cell)
        _shade_lifted(surface.vertices, normals, _LIFT * size, left, _BIAS * size, strength, *shadows.terms())
    return left


def _axes(direction: Triple) -> np.ndarray:
    light = np.asarray(direction, float) / np.linalg.norm(direction)
    a = np.cross(light, (0.0, 0.0, 1.0) if abs(light[2]) < 0.9 else (1.0, 0.0, 0.0))
    a /= np.linalg.norm(a)
    return np.array([a, np.cross(light, a), light])


def _areas(surface: Surface) -> np.ndarray:
    areas = np.empty(len(surface.faces), np.float32)
    _measure(surface.vertices, np.ascontiguousarray(surface.faces), areas)
    return areas


def _samples(surface: Surface, spacing: float) -> np.ndarray:
    """Points on the triangles, about one per `spacing` squared, the same ones every time."""
    area = _areas(surface)
    spacing = max(spacing, float(np.sqrt(area.sum() / _MAX_SAMPLES)))
    which = np.repeat(np.arange(len(area)), np.ceil(area / spacing**2).astype(int))
    samples = np.empty((len(which), 3), np.float32)
    places = np.random.default_rng(0).random((len(which), 2), np.float32)
    _sample(surface.vertices, np.ascontiguousarray(surface.faces), which, places, samples)
    return samples


def _blurred(image: np.ndarray) -> np.ndarray:
    """Three box filters in each direction: close to a Gaussian, at a cost that does not depend on its width."""
    for _ in range(6):
        turned = np.empty(image.shape[::-1], np.float32)
        _filter(image, turned)
        image = turned
    return image


@ti.kernel
def _filter(image: Grid, turned: Grid):
    """Means of each row over 2 _BLUR + 1 cells, as columns."""
    for turn in range(turns(image.shape[0])):
        i, total = task(turn), 0.0
        if i < image.shape[0]:
            for j in range(image.shape[1] + _BLUR):
                if j < image.shape[1]:
                    total += image[i, j]
                if j > 2 * _BLUR:
                    total -= image[i, j - 2 * _BLUR - 1]
                if j >= _BLUR:
                    turned[j - _BLUR, i] = total / (2 * _BLUR + 1)


@ti.kernel
def _measure(x: Rows, faces: Table, areas: Reals):
    for m in areas:
        a, b, c = x[faces[m, 0]], x[faces[m, 1]], x[faces[m, 2]]
        areas[m] = (b - a).cross(c - a).norm() / 2


@ti.kernel
def _sample(x: Rows, faces: Table, which: ti.types.ndarray(dtype=ti.i64, ndim=1), places: Grid, samples: Rows):
    for k in samples:
        m, u, v = which[k], places[k, 0], places[k, 1]
        if u + v > 1:
            u, v = 1 - u, 1 - v
        a, b, c = x[faces[m, 0]], x[faces[m, 1]], x[faces[m, 2]]
        samples[k] = a + u * (b - a) + v * (c - a)


@ti.kernel
def _splat(
    x: Rows, radius: ti.f32, heights: Grid, a: ti.math.vec3, b: ti.math.vec3, light: ti.math.vec3,
    origin: ti.math.vec2, cell: ti.f32,
):  # fmt: skip
    for k in x:
        centre = (ti.Vector([x[k].dot(a), x[k].dot(b)]) - origin) / cell
        low, high = ti.floor(centre - radius / cell + 0.5, ti.i32), ti.floor(centre + radius / cell + 0.5, ti.i32)
        for i in range(ti.max(low[0], 0), ti.min(high[0] + 1, heights.shape[0])):
            for j in range(ti.max(low[1], 0), ti.min(high[1] + 1, heights.shape[1])):
                if heights[i, j] < x[k].dot(light):  # mostly not, and a look is cheaper than an atomic operation
                    ti.atomic_max(heights[i, j], x[k].dot(light))


@ti.func
def _left(
    p: ti.math.vec3, bias: ti.f32, strength: ti.f32, heights: ti.template(), a: ti.math.vec3, b: ti.math.vec3,
    light: ti.math.vec3, origin: ti.math.vec2, cell: ti.f32,
) -> ti.f32:  # fmt: skip
    """The share of light that shadows leave to a point."""
    centre = ti.floor((ti.Vector([p.dot(a), p.dot(b)]) - origin) / cell + 0.5, ti.i32)
    height, hidden = p.dot(light), 0.0
    for i in range(ti.max(centre[0] - _TAPS, 0), ti.min(centre[0] + _TAPS + 1, heights.shape[0])):
        for j in range(ti.max(centre[1] - _TAPS, 0), ti.min(centre[1] + _TAPS + 1, heights.shape[1])):
            # Rises over one radius of height, so that the edge of a shadow does not flicker in a film.
            hidden += ti.math.clamp((heights[i, j] - height) * 4.0 / bias - 3.0, 0.0, 1.0)
    return 1.0 - strength * hidden / (2 * _TAPS + 1) ** 2


@ti.kernel
def _shade(
    x: Rows, colors: Rows, bias: ti.f32, strength: ti.f32, heights: Grid, a: ti.math.vec3, b: ti.math.vec3,
    light: ti.math.vec3, origin: ti.math.vec2, cell: ti.f32,
):  # fmt: skip
    for k in x:
        colors[k] *= _left(x[k], bias, strength, heights, a, b, light, origin, cell)


@ti.kernel
def _shade_lifted(
    x: Rows, normals: Rows, lift: ti.f32, left: Reals, bias: ti.f32, strength: ti.f32, heights: Grid, a: ti.math.vec3,
    b: ti.math.vec3, light: ti.math.vec3, origin: ti.math.vec2, cell: ti.f32,
):  # fmt: skip
    for k in x:
        left[k] = _left(x[k] + lift * normals[k], bias, strength, heights, a, b, light, origin, cell)
