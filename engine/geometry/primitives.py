"""Primitive solids with exact signed distances, closed-form volumes and support functions.

Distances: reduce the point by symmetry (octant of a box, half-plane through the axis of a round solid), where the
nearest surface point is found by inspection. The same results are in I. Quilez, "distance functions".
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.options import REQUIRED, param, positive
from pliant.errors import PliantError
from pliant.geometry import drawing
from pliant.geometry.mass import MassProperties, round_solid
from pliant.geometry.shapes import AXES, Array, Shape, Vector, as_points

Triangles = tuple[Array, NDArray[np.int64]]

ORIGIN = (0.0, 0.0, 0.0)
PLANE_PATCH = 5.0  # half side [m] of the square that is drawn for an infinite plane


def _center() -> Vector:
    return param(ORIGIN, "position of the centre", "m", kind="vector")  # type: ignore[no-any-return]


def _axis() -> str:
    return param("y", "direction of the axis of symmetry", choices=tuple(AXES))  # type: ignore[no-any-return]


def _meridian(points: ArrayLike, center: Vector, axis: str) -> tuple[Array, Array]:
    """Distance from the axis and height along it: the half-plane to which a round solid reduces."""
    p = as_points(points) - np.asarray(center)
    k = "xyz".index(axis)
    return np.hypot(p[:, k - 2], p[:, k - 1]), p[:, k]


def _block_distance(q: Array) -> Array:
    """Distance from a block |p| <= b, where q = |p| - b: |max(q, 0)| outside, max(q) inside."""
    return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)


class Box(Shape):
    """A rectangular block along the axes."""

    size: Vector = positive(REQUIRED, "edge lengths", "m", kind="vector")
    center: Vector = _center()

    def signed_distance(self, points: ArrayLike) -> Array:
        return _block_distance(np.abs(as_points(points) - np.asarray(self.center)) - 0.5 * np.asarray(self.size))

    def support(self, directions: ArrayLike) -> Array:
        u = as_points(directions)
        return u @ np.asarray(self.center) + np.abs(u) @ (0.5 * np.asarray(self.size))

    def volume(self) -> float:
        return float(np.prod(np.asarray(self.size, dtype=float)))

    def mass_properties(self) -> MassProperties:
        """m (b^2 + c^2) / 12 about the edge a, and so on."""
        squares, volume = np.asarray(self.size, dtype=float) ** 2, self.volume()
        inertia = np.diag(volume * (squares.sum() - squares) / 12.0)
        return MassProperties(volume, np.array(self.center, dtype=float), inertia)

    def outline(self) -> Array:
        return drawing.box_edges(self.bounds())

    def triangles(self) -> Triangles:
        return drawing.box_triangles(self.bounds())


class Sphere(Shape):
    """A ball."""

    radius: float = positive(REQUIRED, "radius", "m")
    center: Vector = _center()

    def signed_distance(self, points: ArrayLike) -> Array:
        return np.linalg.norm(as_points(points) - np.asarray(self.center), axis=1) - self.radius

    def support(self, directions: ArrayLike) -> Array:
        u = as_points(directions)
        return u @ np.asarray(self.center) + self.radius * np.linalg.norm(u, axis=1)

    def volume(self) -> float:
        return 4.0 / 3.0 * np.pi * self.radius**3

    def mass_properties(self) -> MassProperties:
        """2/5 m r^2."""
        share = 0.4 * self.radius**2
        return round_solid(self.volume(), self.center, "y", share, share)

    def outline(self) -> Array:
        return np.concatenate([drawing.circle(self.radius, 0.0, self.center, axis) for axis in AXES])

    def triangles(self) -> Triangles:
        return drawing.revolve(drawing.arc(self.radius, -90, 90), self.center, "y")


class Cylinder(Shape):
    """A solid circular cylinder with flat ends."""

    radius: float = positive(REQUIRED, "radius", "m")
    height: float = positive(REQUIRED, "length along the axis", "m")
    center: Vector = _center()
    axis: str = _axis()

    def signed_distance(self, points: ArrayLike) -> Array:
        r, h = _meridian(points, self.center, self.axis)
        return _block_distance(np.stack([r - self.radius, np.abs(h) - 0.5 * self.height], axis=1))

    def support(self, directions: ArrayLike) -> Array:
        r, h = _meridian(directions, ORIGIN, self.axis)
        return as_points(directions) @ np.asarray(self.center) + self.radius * r + 0.5 * self.height * np.abs(h)

    def volume(self) -> float:
        return np.pi * self.radius**2 * self.height

    def mass_properties(self) -> MassProperties:
        """m r^2 / 2 about the axis, m (3 r^2 + h^2) / 12 across."""
        r, h = self.radius, self.height
        return round_solid(self.volume(), self.center, self.axis, r**2 / 2.0, (3.0 * r**2 + h**2) / 12.0)

    def outline(self) -> Array:
        ends = (-0.5 * self.height, 0.5 * self.height)
        circles = [drawing.circle(self.radius, h, self.center, self.axis) for h in ends]
        return np.concatenate([*circles, drawing.rails(self.radius, self.height, self.center, self.axis)])

    def triangles(self) -> Triangles:
        r, h = self.radius, 0.5 * self.height
        return drawing.revolve(np.array([(0.0, -h), (r, -h), (r, h), (0.0, h)]), self.center, self.axis)


class Capsule(Shape):
    """A cylinder with hemispherical ends: all points within `radius` of a segment of length `height`."""

    radius: float = positive(REQUIRED, "radius of the body and of its round ends", "m")
    height: float = positive(REQUIRED, "length of the straight part", "m")
    center: Vector = _center()
    axis: str = _axis()

    def signed_distance(self, points: ArrayLike) -> Array:
        r, h = _meridian(points, self.center, self.axis)
        return np.hypot(r, np.maximum(np.abs(h) - 0.5 * self.height, 0.0)) - self.radius

    def support(self, directions: ArrayLike) -> Array:
        u = as_points(directions)
        along = 0.5 * self.height * np.abs(_meridian(u, ORIGIN, self.axis)[1])
        return u @ np.asarray(self.center) + self.radius * np.linalg.norm(u, axis=1) + along

    def volume(self) -> float:
        return np.pi * self.radius**2 * (self.height + 4.0 / 3.0 * self.radius)

    def mass_properties(self) -> MassProperties:
        """A cylinder and two half balls, whose centres of mass lie 3/8 r beyond its ends."""
        r, h, volume = self.radius, self.height, self.volume()
        ends = 4.0 * r / (3.0 * h + 4.0 * r)  # share of the volume
        axial = (1.0 - ends) * r**2 / 2.0 + ends * 0.4 * r**2
        across = (1.0 - ends) * (3.0 * r**2 + h**2) / 12.0 + ends * (0.4 * r**2 + h**2 / 4.0 + 0.375 * h * r)
        return round_solid(volume, self.center, self.axis, axial, across)

    def _profile(self) -> Array:
        lift = np.array([0.0, 0.5 * self.height])
        return np.concatenate([drawing.arc(self.radius, -90, 0) - lift, drawing.arc(self.radius, 0, 90) + lift])

    def outline(self) -> Array:
        ends = (-0.5 * self.height, 0.5 * self.height)
        circles = [drawing.circle(self.radius, h, self.center, self.axis) for h in ends]
        return np.concatenate([*circles, drawing.meridians(self._profile(), self.center, self.axis)])

    def triangles(self) -> Triangles:
        return drawing.revolve(self._profile(), self.center, self.axis)


class Torus(Shape):
    """A ring: all points within `tube` of a circle."""

    radius: float = positive(REQUIRED, "radius of the centre line of the tube", "m")
    tube: float = positive(REQUIRED, "radius of the tube, at most that of the ring", "m")
    center: Vector = _center()
    axis: str = _axis()

    def problems(self) -> list[str]:
        found = super().problems()
        if not found and self.tube > self.radius:
            found.append(f"Torus: tube must be at most radius ({self.radius:g} m), got {self.tube:g}")
        return found

    def signed_distance(self, points: ArrayLike) -> Array:
        r, h = _meridian(points, self.center, self.axis)
        return np.hypot(r - self.radius, h) - self.tube

    def support(self, directions: ArrayLike) -> Array:
        u = as_points(directions)
        ring = self.radius * _meridian(u, ORIGIN, self.axis)[0]
        return u @ np.asarray(self.center) + ring + self.tube * np.linalg.norm(u, axis=1)

    def volume(self) -> float:
        """2 pi^2 R r^2 (Pappus)."""
        return 2.0 * np.pi**2 * self.radius * self.tube**2

    def mass_properties(self) -> MassProperties:
        """m (R^2 + 3/4 r^2) about the axis, m (R^2 / 2 + 5/8 r^2) across."""
        R2, r2 = self.radius**2, self.tube**2
        return round_solid(self.volume(), self.center, self.axis, R2 + 0.75 * r2, 0.5 * R2 + 0.625 * r2)

    def _profile(self) -> Array:
        return drawing.arc(self.tube, -180, 180) + np.array([self.radius, 0.0])

    def outline(self) -> Array:
        rings = [(self.radius + self.tube, 0.0), (self.radius, self.tube), (self.radius, -self.tube)]
        if self.tube < self.radius:
            rings.append((self.radius - self.tube, 0.0))
        circles = [drawing.circle(r, h, self.center, self.axis) for r, h in rings]
        return np.concatenate([*circles, drawing.meridians(self._profile(), self.center, self.axis)])

    def triangles(self) -> Triangles:
        return drawing.revolve(self._profile(), self.center, self.axis)


class Plane(Shape):
    """The half-space on the far side of `normal`: solid ground for the normal (0, 1, 0)."""

    normal: Vector = param((0.0, 1.0, 0.0), "direction out of the solid", kind="vector")
    point: Vector = param(ORIGIN, "a point of the surface", "m", kind="vector")

    def problems(self) -> list[str]:
        found = super().problems()
        if not found and not np.any(self.normal):
            found.append(f"Plane: normal must not be zero, got {self.normal!r}")
        return found

    def _unit(self) -> Array:
        return np.asarray(self.normal) / np.linalg.norm(self.normal)

    def signed_distance(self, points: ArrayLike) -> Array:
        return (as_points(points) - np.asarray(self.point)) @ self._unit()

    def support(self, directions: ArrayLike) -> Array:
        """Bounded along the normal only, which keeps the bounds of a block cut by a plane tight."""
        u = as_points(directions)
        along = u @ self._unit()
        outward = along >= np.linalg.norm(u, axis=1) * (1.0 - 1e-12)
        return np.where(outward, along * (self._unit() @ np.asarray(self.point)), np.inf)

    def bounds(self) -> Array:
        """Infinite in all directions."""
        return np.array([[-np.inf] * 3, [np.inf] * 3])

    def middle(self) -> Array:
        return np.asarray(self.point, dtype=float)

    def volume(self) -> float:
        return float("inf")

    def mass_properties(self) -> MassProperties:
        raise PliantError("a Plane is infinite and has no mass properties")

    def _corners(self) -> Array:
        n = self._unit()
        a = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        a /= np.linalg.norm(a)
        b = np.cross(n, a)
        return np.asarray(self.point) + PLANE_PATCH * np.stack([-a - b, a - b, a + b, -a + b])

    def outline(self) -> Array:
        """A square patch around `point`."""
        corners = self._corners()
        return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)

    def triangles(self) -> Triangles:
        return self._corners(), np.array([[0, 1, 2], [0, 2, 3]])


class Empty(Shape):
    """Nothing: the shape of a body that has no particles at the start, because emitters bring them."""

    def signed_distance(self, points: ArrayLike) -> Array:
        return np.full(len(as_points(points)), np.inf)

    def bounds(self) -> Array:
        return np.zeros((2, 3))

    def volume(self) -> float:
        return 0.0

    def mass_properties(self) -> MassProperties:
        raise PliantError("an empty shape has no mass properties")

    def outline(self) -> Array:
        return np.zeros((0, 2, 3))

    def triangles(self) -> Triangles:
        return np.zeros((0, 3)), np.zeros((0, 3), np.int64)
