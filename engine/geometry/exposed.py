"""The part of a surface that bounds its inside: without what lies within the solid where shells overlap.

Distances to a hidden triangle would be taken for distances to the surface. A triangle is hidden if both its sides are
inside, |w| > 1/2. And it is no surface if the winding number is the same on both sides: another one in its plane looks
the other way, as where a polygon with a bay was cut into triangles that all meet in one corner. Triangles that are
hidden in part are divided along the cut, by halving their sides.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SAME = 0.5  # change of the winding number through a triangle below which there is none; a lone triangle has 1
LIFT, LEAST_LIFT = 1e-3, 2e-6  # of the root of a triangle's area, and of the size of all: where w is asked for
HALVINGS = 3  # a cut is followed to 1/8 of the pieces
MOST_PIECES = 400_000  # bounds time and memory where very many triangles are cut
FINE, ENOUGH = 4_000, 30_000  # pieces of a surface that are looked at, at least and at most
# Barycentric coordinates of the places of a piece that have to agree: near the corners, and the middle.
PLACES = np.array([(0.98, 0.01, 0.01), (0.01, 0.98, 0.01), (0.01, 0.01, 0.98), (1 / 3, 1 / 3, 1 / 3)])


def winding_beside(
    corners: Array, winding: Callable[[Array], Array], size: float, places: Array
) -> tuple[Array, Array]:
    """(f, k) winding numbers just above and below k places of the triangles (f, 3, 3); above is where normals point."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    normal = 0.5 * np.cross(b - a, c - a)
    area = np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
    lift = normal * (np.maximum(LIFT * np.sqrt(area), LEAST_LIFT * size) / area)[:, None]
    points = np.einsum("kj,fjd->fkd", places, corners)
    above, below = (winding((points + side * lift[:, None, :]).reshape(-1, 3)) for side in (1.0, -1.0))
    return above.reshape(len(corners), -1), below.reshape(len(corners), -1)


def bounds_inside(above: Array, below: Array) -> Flags:
    """Whether a triangle bounds the inside, by the winding numbers on its two sides."""
    buried = (np.abs(above) > 0.5) & (np.abs(below) > 0.5)
    return ~buried & (np.abs(below - above) > SAME)


def exposed(vertices: Array, faces: Integers, winding: Callable[[Array], Array], size: float) -> tuple[Array, Integers]:
    """Triangles, each with corners of its own, of the part of a surface that bounds its inside."""
    corners, done = pieces_of(vertices, faces), []
    for halving in range(HALVINGS + 1):
        agree = bounds_inside(*winding_beside(corners, winding, size, PLACES))
        done.append(corners[agree.all(axis=1)])
        cut = agree.any(axis=1) & ~agree.all(axis=1)
        if not cut.any():
            break
        if halving == HALVINGS or 4 * np.count_nonzero(cut) > MOST_PIECES:
            done.append(corners[cut & agree[:, -1]])
            break
        corners = _quartered(corners[cut])
    pieces = np.concatenate(done)
    return pieces.reshape(-1, 3), np.arange(3 * len(pieces)).reshape(-1, 3)


def _quartered(corners: Array) -> Array:
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ab, bc, ca = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
    return np.concatenate([np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])


def pieces_of(vertices: Array, faces: Integers) -> Array:
    """(k, 3, 3) corners of the triangles, quartered until there are enough of them."""
    corners = vertices[faces]
    while len(corners) < FINE:
        corners = _quartered(corners)
    return corners


def shares(vertices: Array, faces: Integers, winding: Callable[[Array], Array], size: float) -> tuple[float, float]:
    """Parts of the area above which the winding number is not 0, and which do not bound the inside."""
    corners = pieces_of(vertices, faces[:: 1 + len(faces) // ENOUGH])
    above, below = (w[:, 0] for w in winding_beside(corners, winding, size, PLACES[-1:]))
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    uneven, hidden = np.abs(above) > 0.5, ~bounds_inside(above, below)
    return float(area[uneven].sum() / area.sum()), float(area[hidden].sum() / area.sum())
