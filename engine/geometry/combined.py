"""Union, intersection and difference of solids.

With the distances a and b: min(a, b), max(a, b) and max(a, -b). The sign is exact; the value is a 1-Lipschitz
bound that never exceeds the true distance (near an edge made by the operation it may be smaller).

Where faces of both shapes coincide, the bound is zero though nothing ends there: a cup whose hollow ends just at its
rim would have a lid. `exact_distance` knows better: what is far from the surface that is drawn, and where the sign does
not change across the face that the bound tells of, has the distance from that surface.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.options import REQUIRED, param
from pliant.geometry import drawing
from pliant.geometry.shapes import Array, Shape, as_points
from pliant.geometry.surface import Surface

THIN = 1e-6  # of the size: what is thinner is a matter of rounding


class _Combined(Shape):
    """Two solids that make one."""

    a: Shape = param(REQUIRED, "first shape", kind="any")
    b: Shape = param(REQUIRED, "second shape", kind="any")

    def problems(self) -> list[str]:
        found = super().problems()
        for name in ("a", "b"):
            child = getattr(self, name)
            if isinstance(child, Shape):
                found += child.problems()
            elif child is not REQUIRED:
                found.append(f"{type(self).__name__}: {name} must be a shape, got {child!r}")
            if isinstance(child, Shape) and child.wanted_particles() is not None:
                found.append(f"{type(self).__name__}: a mesh that is part of it cannot tell how many particles it has")
        return found

    def warnings(self) -> list[str]:
        return self.a.warnings() + self.b.warnings()

    @cached_property
    def _drawn(self) -> tuple[Surface | None, float]:
        """Its surface without faces of no thickness, and how finely that is known [m]; None if it is thinner than
        that."""
        bounds = self.bounds()
        size = float(np.ptp(bounds, axis=0).max())
        vertices, faces = drawing.march(lambda x: self.signed_distance(x) + THIN * size, bounds)
        return Surface(vertices, faces, bare=True) if len(faces) else None, drawing.march_cell(bounds)

    def exact_distance(self, points: ArrayLike) -> Array:
        x = as_points(points)
        bound = self.signed_distance(x)
        if not len(x) or not np.isfinite(self.bounds()).all():
            return bound
        surface, fine = self._drawn
        if surface is None:
            return bound
        away = surface.distance(x)
        doubtful = np.flatnonzero(away - np.abs(bound) > fine)
        if len(doubtful):
            false = doubtful[~self._ends(x[doubtful], bound[doubtful], fine)]
            bound[false] = away[false] * self._side(x[false], fine)
        return bound

    def _side(self, x: Array, fine: float) -> Array:
        """(n,) -1 inside and 1 outside, by what is around x: the point itself may lie on a face between two parts."""
        around = 1e-2 * fine * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
        inside = self.signed_distance((x[:, None] + around).reshape(-1, 3)).reshape(-1, 4) < 0
        return np.where(inside.sum(axis=1) > 2, -1.0, 1.0)

    def _ends(self, x: Array, bound: Array, fine: float) -> NDArray[np.bool_]:
        """(n,) whether something ends at the face that the bound tells of: thinner parts than are drawn."""
        side = np.where(bound < 0, -1.0, 1.0)
        normal = drawing.slopes(self.signed_distance, x, 1e-3 * fine)
        at = x - bound[:, None] * normal
        found = np.zeros(len(x), bool)
        for step in (1e-3, 1e-2, 0.1, 0.3, 1.0):
            found |= side * self.signed_distance(at - (side * step * fine)[:, None] * normal) < -THIN * fine
        return found

    def outline(self) -> Array:
        return drawing.visible(np.concatenate([self.a.outline(), self.b.outline()]), self.signed_distance)


class Union(_Combined):
    """All that is in one of two shapes or in both: a | b."""

    def signed_distance(self, points: ArrayLike) -> Array:
        return np.minimum(self.a.signed_distance(points), self.b.signed_distance(points))

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        return self.a.inside(points) | self.b.inside(points)

    def support(self, directions: ArrayLike) -> Array:
        return np.maximum(self.a.support(directions), self.b.support(directions))


class Intersection(_Combined):
    """What two shapes share: a & b."""

    def problems(self) -> list[str]:
        found = super().problems()
        if not found and (self.bounds()[0] >= self.bounds()[1]).any():
            found.append(f"Intersection: a ({type(self.a).__name__}) and b ({type(self.b).__name__}) do not overlap")
        return found

    def signed_distance(self, points: ArrayLike) -> Array:
        return np.maximum(self.a.signed_distance(points), self.b.signed_distance(points))

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        return self.a.inside(points) & self.b.inside(points)

    def support(self, directions: ArrayLike) -> Array:
        """At most the smaller of the two: a bound."""
        return np.minimum(self.a.support(directions), self.b.support(directions))


class Difference(_Combined):
    """What is in the first shape but not in the second: a - b."""

    def signed_distance(self, points: ArrayLike) -> Array:
        return np.maximum(self.a.signed_distance(points), -self.b.signed_distance(points))

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        return self.a.inside(points) & ~self.b.inside(points)

    def support(self, directions: ArrayLike) -> Array:
        return self.a.support(directions)
