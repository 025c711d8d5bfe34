"""Fills a shape with particles on a regular lattice, without changing its volume."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import PliantError
from pliant.geometry.moved import Moved
from pliant.geometry.primitives import Box
from pliant.geometry.shapes import Shape
from pliant.geometry.volumes import cell_centres

Array = NDArray[np.float64]

GOOD, FAIR = 3e-3, 1e-2  # relative error of the particle volume: stops the search, is kept if nothing is better
STRETCH = 0.02  # largest relative change of the lattice spacing,
FLAT_STRETCH = 0.04  # and across flat ends, where the two other axes can make up for it
FLAT_PART = 0.1  # of a face of the bounds that the shape must touch to have a flat end there
FACTORS = (1.0, 0.995, 1.005, 0.99, 1.01, 0.985, 1.015, 0.98, 1.02)
SHIFTS = (*itertools.product((0.0, 0.5), repeat=3), (0.25, 0.25, 0.25), (0.4, 0.2, 0.1), (0.1, 0.3, 0.4))
SLAB = 400_000  # lattice points tested at a time: bounds memory


def estimate_count(shape: Shape, spacing: float) -> int:
    """How many particles `sample_regular` will make: exact for a box, volume / spacing^3 otherwise."""
    check(shape, spacing)
    if isinstance(shape, Moved):
        return estimate_count(shape.shape, spacing / shape.placement()[0])
    if isinstance(shape, Box):
        return int(np.prod([int(n) for n in _box_counts(shape, spacing)], dtype=object))
    return round(shape.volume() / spacing**3)


def sample_regular(shape: Shape, spacing: float) -> tuple[Array, float]:
    """Particle centres (n, 3) [m] and the volume [m^3] that each stands for: n times this is the shape's volume.

    A box is filled evenly, n_k = max(1, round(L_k / spacing)) cells along each axis. Other shapes take the points
    of a lattice fitted to their bounds. A moved shape is sampled in its own frame: the lattice moves with it.
    """
    check(shape, spacing)
    if isinstance(shape, Moved):
        factor = shape.placement()[0]
        points, each = sample_regular(shape.shape, spacing / factor)
        return shape.to_world(points), each * factor**3
    check_size(shape, spacing)
    volume = shape.volume()
    if isinstance(shape, Box):
        counts = _box_counts(shape, spacing).astype(np.int64)
        points = cell_centres(shape.bounds()[0], np.asarray(shape.size) / counts, counts)
    else:
        points = _best_lattice(shape, spacing, volume)
    return points, volume / len(points)


def check(shape: Any, spacing: Any) -> None:
    """Refuses what cannot be filled."""
    if not isinstance(spacing, (int, float, np.number)) or not 0.0 < spacing < np.inf:
        raise PliantError(f"spacing must be a positive number of metres, got {spacing!r}")
    if not isinstance(shape, Shape):
        raise PliantError(f"only a shape can be filled with particles, got {shape!r}")
    problems = shape.problems()
    if problems:
        raise PliantError("; ".join(problems))
    if not np.isfinite(shape.volume()):
        raise PliantError(f"{type(shape).__name__} is infinite and cannot be filled with particles; cut it with a Box")


def check_size(shape: Shape, spacing: float) -> None:
    """Refuses a shape that is smaller than a particle."""
    if shape.volume() < 0.5 * spacing**3:
        raise PliantError(
            f"{type(shape).__name__} of volume {shape.volume():.3g} m^3 is smaller than one particle of spacing "
            f"{spacing:.3g} m; use a smaller particle_radius"
        )


def _box_counts(box: Box, spacing: float) -> Array:
    return np.maximum(1.0, np.round(np.asarray(box.size) / spacing))


def _best_lattice(shape: Shape, spacing: float, volume: float) -> Array:
    """The first lattice whose particle count fits the volume, or the best of all that were tried."""
    best, least = np.zeros((0, 3)), np.inf
    for flat in (_flat_axes(shape, spacing), np.zeros(3, dtype=bool)):
        for corner, cell, counts in _lattices(shape.bounds(), spacing, flat):
            points = _lattice_inside(shape, corner, cell, counts)
            each = volume / max(1, len(points))
            error = max(abs(each / cell.prod() - 1.0), abs(each / spacing**3 - 1.0) - STRETCH)
            if len(points) and error < least:
                best, least = points, error
            if least < GOOD:
                return best
        if least < FAIR:
            return best
    if not len(best):
        raise PliantError(
            f"{type(shape).__name__} is thinner than one particle of spacing {spacing:.3g} m; "
            "use a smaller particle_radius"
        )
    return best


def _flat_axes(shape: Shape, spacing: float) -> NDArray[np.bool_]:
    """(3,) whether the shape ends flat on both faces of its bounds across each axis, as a cylinder does on one."""
    bounds = shape.bounds()
    size, skin = bounds[1] - bounds[0], 1e-3 * spacing
    flat = []
    for k in range(3):
        counts = np.where(np.arange(3) == k, 1, 16)
        cell = np.where(np.arange(3) == k, 2.0 * skin, size / 16)  # one layer, its centres a skin below the face
        upper = bounds[0] + np.where(np.arange(3) == k, size - 2.0 * skin, 0.0)
        parts = [shape.inside(cell_centres(corner, cell, counts)).mean() for corner in (bounds[0], upper)]
        flat.append(min(parts) > FLAT_PART)
    return np.array(flat)


def _lattices(
    bounds: Array, spacing: float, flat: NDArray[np.bool_]
) -> Iterator[tuple[Array, Array, NDArray[np.int64]]]:
    """Lattices (corner, cell, counts) to try: first the one that fills the bounds with whole cells, then shifted and
    slightly stretched ones, all about the centre. Across flat ends the whole cells stay, so that the last layer
    lies half a cell below the end."""
    size, middle = bounds[1] - bounds[0], 0.5 * (bounds[0] + bounds[1])
    most = np.where(flat, FLAT_STRETCH, STRETCH)
    fitted = np.clip(size / np.maximum(1.0, np.round(size / spacing)), (1 - most) * spacing, (1 + most) * spacing)
    shifts = dict.fromkeys(tuple(np.where(flat, 0.0, shift)) for shift in SHIFTS)
    for factor, shift in itertools.product(FACTORS[: 1 if flat.all() else None], shifts):
        stretched = np.clip(factor * fitted, (1.0 - STRETCH) * spacing, (1.0 + STRETCH) * spacing)
        cell = np.where(flat, fitted, stretched)
        whole = np.round(size / cell).astype(np.int64)
        counts = whole + 2 * (np.abs(whole * cell - size) > 1e-9 * size) + 2 * (np.asarray(shift) > 0.0)
        yield middle - 0.5 * counts * cell + np.asarray(shift) * cell, cell, counts


def _lattice_inside(shape: Shape, corner: Array, cell: Array, counts: NDArray[np.int64]) -> Array:
    """The cell centres that lie inside, tested slab by slab."""
    thick = max(1, int(SLAB // (counts[1] * counts[2])))
    found = []
    for i in range(0, int(counts[0]), thick):
        slab = np.array([min(thick, counts[0] - i), counts[1], counts[2]])
        points = cell_centres(corner + np.array([i * cell[0], 0.0, 0.0]), cell, slab)
        found.append(points[shape.inside(points)])
    return np.concatenate(found)
