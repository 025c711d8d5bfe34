"""Volumes by integration, for shapes without a closed form."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COARSE_CELLS = 32  # along the longest side, before refinement
MOST_POINTS = 600_000  # evaluated in one level: bounds time and memory
MOST_LEVELS = 8


def cell_centres(lower: Array, cell: Array, counts: NDArray[np.int64]) -> Array:
    """(n, 3) centres of a block of `counts` cells of size `cell`, the first at the corner `lower`."""
    axes = [lower[k] + cell[k] * (np.arange(counts[k]) + 0.5) for k in range(3)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def near_cubes(bounds: Array, cells: float) -> tuple[Array, NDArray[np.int64]]:
    """Size and counts of nearly cubic cells that fill a box, `cells` of them along its longest side."""
    size = bounds[1] - bounds[0]
    counts = np.maximum(1, np.ceil(cells * size / size.max() - 1e-9)).astype(np.int64)
    return size / counts, counts


def integrate_volume(signed_distance: Callable[[Any], Array], bounds: Array) -> float:
    """Volume [m^3] of d < 0 by octree refinement.

    d is 1-Lipschitz, so a cell whose centre has |d| >= half its diagonal is wholly in or out. The others are
    split; on the last level each counts with the fraction clip(1/2 - d/width, 0, 1), exact for a flat surface
    along the grid and second order otherwise.
    """
    if not np.isfinite(bounds).all():
        return float("inf")
    if (bounds[1] <= bounds[0]).any():
        return 0.0
    cell, counts = near_cubes(bounds, COARSE_CELLS)
    centres, total = cell_centres(bounds[0], cell, counts), 0.0
    for level in range(MOST_LEVELS):
        d, one = signed_distance(centres), float(cell.prod())
        cut = np.abs(d) < 0.5 * np.linalg.norm(cell)
        total += one * np.count_nonzero(~cut & (d < 0.0))
        if 8 * np.count_nonzero(cut) > MOST_POINTS or level == MOST_LEVELS - 1:
            return total + one * float(np.clip(0.5 - d[cut] / np.cbrt(one), 0.0, 1.0).sum())
        cell = 0.5 * cell
        children = cell_centres(-cell, cell, np.array([2, 2, 2]))
        centres = (centres[cut][:, None, :] + children).reshape(-1, 3)
    return total


def count_volume(inside: Callable[[Any], NDArray[np.bool_]], bounds: Array, points: int = 300_000) -> float:
    """Volume [m^3] by stratified counting: one random point in each cell of a grid, hence no bias on flat faces.

    Only the cells on the surface scatter: the relative error is of the order points^(-2/3), below 0.1 % here.
    """
    size = bounds[1] - bounds[0]
    if (size <= 0.0).any():
        return 0.0
    cell, counts = near_cubes(bounds, float(np.cbrt(points * size.max() ** 3 / size.prod())))
    jitter = np.random.default_rng(0).uniform(-0.5, 0.5, (int(counts.prod()), 3))
    hits = np.count_nonzero(inside(cell_centres(bounds[0], cell, counts) + jitter * cell))
    return float(hits * cell.prod())
