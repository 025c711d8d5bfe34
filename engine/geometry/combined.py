"""Union, intersection and difference of solids.

With the distances a and b: min(a, b), max(a, b) and max(a, -b). The sign is exact; the value is a 1-Lipschitz
bound that never exceeds the true distance (near an edge made by the operation it may be smaller).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.options import REQUIRED, param
from pliant.geometry import drawing
from pliant.geometry.shapes import Array, Shape


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
