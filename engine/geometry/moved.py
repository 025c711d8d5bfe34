"""Translated, rotated and uniformly scaled solids: x = s R x_local + t."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from pliant.core.options import REQUIRED, param, positive
from pliant.geometry.mass import MassProperties
from pliant.geometry.shapes import Array, Shape, Vector, as_points


class Moved(Shape):
    """A shape in another place. A subclass gives `placement`."""

    shape: Shape = param(REQUIRED, "the shape that is moved", kind="any")

    def problems(self) -> list[str]:
        found = super().problems()
        if isinstance(self.shape, Shape):
            return found + self.shape.problems()
        return found + [f"{type(self).__name__}: shape must be a shape, got {self.shape!r}"]

    def warnings(self) -> list[str]:
        return self.shape.warnings()

    def placement(self) -> tuple[float, Array, Array]:
        """Scale s, rotation R (3, 3) and translation t (3,) [m] of x = s R x_local + t."""
        raise NotImplementedError

    def wanted_particles(self) -> int | None:
        return self.shape.wanted_particles()

    def to_world(self, points: Array) -> Array:
        """Points (..., 3) of the shape's own frame, placed."""
        s, R, t = self.placement()
        return s * points @ R.T + t

    def to_local(self, points: ArrayLike) -> Array:
        s, R, t = self.placement()
        return (as_points(points) - t) @ R / s

    def signed_distance(self, points: ArrayLike) -> Array:
        return self.placement()[0] * self.shape.signed_distance(self.to_local(points))

    def exact_distance(self, points: ArrayLike) -> Array:
        return self.placement()[0] * self.shape.exact_distance(self.to_local(points))

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        return self.shape.inside(self.to_local(points))

    def support(self, directions: ArrayLike) -> Array:
        """h(u) = s h_local(R^T u) + t . u."""
        s, R, t = self.placement()
        u = as_points(directions)
        return s * self.shape.support(u @ R) + u @ t

    def volume(self) -> float:
        return self.placement()[0] ** 3 * self.shape.volume()

    def mass_properties(self) -> MassProperties:
        return self.shape.mass_properties().placed(*self.placement())

    def middle(self) -> Array:
        return self.to_world(self.shape.middle())

    def outline(self) -> Array:
        return self.to_world(self.shape.outline())

    def triangles(self) -> tuple[Array, NDArray[np.int64]]:
        vertices, faces = self.shape.triangles()
        return self.to_world(vertices), faces

    def skin(self) -> tuple[Array, NDArray[np.int64], dict[str, NDArray[Any]]]:
        vertices, faces, fields = self.shape.skin()
        if "normal" in fields:
            fields = fields | {"normal": fields["normal"] @ self.placement()[1].T}
        return self.to_world(vertices), faces, fields


class Translated(Moved):
    """A shape moved by an offset."""

    offset: Vector = param(REQUIRED, "by how much it is moved", "m", kind="vector")

    def placement(self) -> tuple[float, Array, Array]:
        return 1.0, np.eye(3), np.asarray(self.offset, dtype=float)

    def to_local(self, points: ArrayLike) -> Array:
        return as_points(points) - np.asarray(self.offset, dtype=float)  # a product with 1 takes ten times as long


class Rotated(Moved):
    """A shape turned around an axis."""

    axis: Vector = param(REQUIRED, "direction of the axis, right-handed", kind="vector")
    degrees: float = param(REQUIRED, "angle", "degrees")
    about: Vector | None = param(
        None, "a point on the axis; the centre of the bounding box if not given", "m", kind="vector", optional=True
    )

    def problems(self) -> list[str]:
        found = super().problems()
        if not found and not np.any(self.axis):
            found.append(f"Rotated: axis must not be zero, got {self.axis!r}")
        return found

    def placement(self) -> tuple[float, Array, Array]:
        unit = np.asarray(self.axis) / np.linalg.norm(self.axis)
        R = Rotation.from_rotvec(np.radians(self.degrees) * unit).as_matrix()
        fixed = self.shape.middle() if self.about is None else np.asarray(self.about)
        return 1.0, R, fixed - R @ fixed


class Scaled(Moved):
    """A shape magnified by a factor."""

    factor: float = positive(REQUIRED, "magnification")
    about: Vector | None = param(
        None, "the point that stays; the centre of the bounding box if not given", "m", kind="vector", optional=True
    )

    def placement(self) -> tuple[float, Array, Array]:
        fixed = self.shape.middle() if self.about is None else np.asarray(self.about)
        return float(self.factor), np.eye(3), (1.0 - self.factor) * fixed
