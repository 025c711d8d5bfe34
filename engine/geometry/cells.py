"""Surfaces in vtu and vtk files: polygons as they are, volume cells by their boundary. The files are read by meshio."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pliant.errors import PliantError
from pliant.geometry.repair import merge_points, unique_rows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# The corners of each side of a cell, as VTK numbers them. Higher-order cells name their corners first.
SIDES: dict[str, tuple[tuple[int, ...], ...]] = {
    "tetra": ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
    "hexahedron": ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
    "wedge": ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0)),
    "pyramid": ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
}
CORNERS = {"tetra": 4, "hexahedron": 8, "wedge": 6, "pyramid": 5, "triangle": 3, "quad": 4}
SKIPPED = ("vertex", "line", "line3", "poly_line", "polyline")  # neither surface nor volume
EMPTY = -1  # stands for the fourth corner of a triangle among quads


def read_cells(path: Path) -> tuple[Array, Integers]:
    """Vertices and triangles of a file. If it has volume cells, their outward boundary, and its polygons are left out:
    they only mark parts of that boundary."""
    import meshio

    mesh = meshio.read(path)
    points = np.zeros((len(mesh.points), 3))
    points[:, : mesh.points.shape[1]] = mesh.points
    solids, flat = [], []
    for block in mesh.cells:
        kind, cells = re.sub(r"\d+$", "", block.type), np.asarray(block.data)
        if kind in SIDES:
            solids.append((kind, cells[:, : CORNERS[kind]].astype(np.int64)))
        elif kind in CORNERS or kind == "polygon":
            flat.append(cells[:, : CORNERS.get(kind, cells.shape[1])].astype(np.int64))
        elif block.type not in SKIPPED:
            raise PliantError(f"{path.name} has cells of type {block.type!r}, which are not understood; "
                              f"use {', '.join(CORNERS)} or polygon")  # fmt: skip
    if solids:
        return points, _boundary(points, solids)
    fans = [p[:, [0, k, k + 1]] for p in flat for k in range(1, p.shape[1] - 1)]
    return points, np.concatenate(fans) if fans else np.zeros((0, 3), dtype=np.int64)


def _boundary(points: Array, solids: list[tuple[str, Integers]]) -> Integers:
    """Triangles of the sides that belong to one cell only, looking away from the middle of that cell."""
    _, index = merge_points(points)  # cells may each have points of their own
    sides, away = [], []
    for kind, cells in solids:
        middle = points[cells].mean(axis=1)
        for side in SIDES[kind]:
            corners = np.full((len(cells), 4), EMPTY, dtype=np.int64)
            corners[:, : len(side)] = cells[:, side]
            sides.append(corners)
            away.append(points[cells[:, side]].mean(axis=1) - middle)
    corners, direction = np.concatenate(sides), np.concatenate(away)
    same = np.sort(np.where(corners == EMPTY, EMPTY, index[corners]), axis=1)
    _, inverse = unique_rows(same)
    outer = np.bincount(inverse)[inverse] == 1
    corners, direction = corners[outer], direction[outer]
    a, b, c = (points[corners[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), direction) < 0.0
    quads = corners[:, 3] != EMPTY
    triangles = np.concatenate([corners[:, [0, 1, 2]], corners[quads][:, [0, 2, 3]]])
    turned = np.concatenate([inward, inward[quads]])
    triangles[turned] = triangles[turned][:, ::-1]
    return triangles
