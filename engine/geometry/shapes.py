"""The base of all shapes: an immutable solid, described by its signed distance (negative inside)."""

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.options import Options
from pliant.geometry import drawing
from pliant.geometry.mass import MassProperties
from pliant.geometry.volumes import Moments, integrate_moments

Array: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = Sequence[float] | NDArray[Any]  # three numbers

AXES: dict[str, Vector] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def as_points(points: ArrayLike) -> Array:
    """(n, 3) contiguous float64, from one point or many."""
    return np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 3)


class Shape(Options):
    """A solid. Combine with `a | b`, `a - b`, `a & b`; place with `translate`, `rotate`, `scale`.

    A subclass gives `signed_distance` and `support`; everything else has a default built on these two.
    """

    def __post_init__(self) -> None:
        # A list or array the caller may change later becomes a tuple.
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, rule = getattr(self, field.name), field.metadata.get("rule")
            if rule and rule.kind == "vector" and isinstance(value, (list, np.ndarray)):
                object.__setattr__(self, field.name, tuple(np.asarray(value, dtype=object).tolist()))

    def signed_distance(self, points: ArrayLike) -> Array:
        """(n,) distance [m] of (n, 3) points to the surface, negative inside; never more than the true distance."""
        raise NotImplementedError

    def exact_distance(self, points: ArrayLike) -> Array:
        """The same without a bound's false zeros: what walls take, at the cost of a surface that has to be found."""
        return self.signed_distance(points)

    def support(self, directions: ArrayLike) -> Array:
        """h(u) = max over the shape of u . x [m], for each of the (n, 3) directions; inf where it is unbounded."""
        raise NotImplementedError

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        """(n,) whether each point lies in the shape."""
        return self.signed_distance(points) < 0.0

    def bounds(self) -> Array:
        """(2, 3) lower and upper corner [m] of an axis-aligned box around the shape."""
        return np.stack([-self.support(-np.eye(3)), self.support(np.eye(3))])

    def middle(self) -> Array:
        """(3,) centre of the bounding box [m]: the fixed point of `rotate` and `scale`."""
        lower, upper = self.bounds()
        finite = np.isfinite(lower) & np.isfinite(upper)
        return np.where(finite, 0.5 * (np.where(finite, lower, 0.0) + np.where(finite, upper, 0.0)), 0.0)

    def volume(self) -> float:
        """Enclosed volume [m^3]."""
        return self._integrated.volume

    def mass_properties(self) -> MassProperties:
        """Volume, centre of mass and inertia for a density of 1; refuses in one sentence if it has none."""
        return MassProperties.of_moments(self._integrated)

    @cached_property
    def _integrated(self) -> Moments:
        return integrate_moments(self.signed_distance, self.bounds())

    def wanted_particles(self) -> int | None:
        """How many particles it asks for when it is filled; None if that is left to their spacing."""
        return None

    def warnings(self) -> list[str]:
        """One sentence for each thing that is allowed but worth knowing."""
        return []

    def outline(self) -> Array:
        """(m, 2, 3) line segments of a wireframe drawing."""
        raise NotImplementedError

    def triangles(self) -> tuple[Array, NDArray[np.int64]]:
        """Vertices (n, 3) and faces (m, 3) of the surface, for drawing."""
        return drawing.march(self.signed_distance, self.bounds())

    def skin(self) -> tuple[Array, NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Vertices (n, 3) [m], faces (m, 3) and fields of the vertices by name, such as `uv` (n, 2) and `normal`
        (n, 3), of the surface that an elastic body of this shape shows."""
        return *self.triangles(), {}

    def key(self) -> str:
        """Content hash: equal for shapes of the same class and parameters, in any process."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            digest.update(f"|{field.name}=".encode() + _content(getattr(self, field.name)))
        return digest.hexdigest()

    def __or__(self, other: Any) -> "Shape":
        return self._combined("Union", other)

    def __sub__(self, other: Any) -> "Shape":
        return self._combined("Difference", other)

    def __and__(self, other: Any) -> "Shape":
        return self._combined("Intersection", other)

    def _combined(self, name: str, other: Any) -> Any:
        from pliant.geometry import combined

        return getattr(combined, name)(self, other) if isinstance(other, Shape) else NotImplemented

    def translate(self, offset: Vector) -> "Shape":
        """The shape moved by `offset` [m]."""
        from pliant.geometry.moved import Translated

        return Translated(self, offset)

    def rotate(self, axis: Vector | str, degrees: float, about: Vector | None = None) -> "Shape":
        """The shape turned right-handedly around `axis` ("x", "y", "z" or a vector) through `about`.

        Without `about` it turns in place, around the centre of its bounding box.
        """
        from pliant.geometry.moved import Rotated

        direction: Any = AXES.get(axis, axis) if isinstance(axis, str) else axis  # an unknown letter is reported later
        return Rotated(self, direction, degrees, about)

    def scale(self, factor: float, about: Vector | None = None) -> "Shape":
        """The shape magnified by `factor`, in place (around the centre of its bounding box) or `about` a point."""
        from pliant.geometry.moved import Scaled

        return Scaled(self, factor, about)


def _content(value: Any) -> bytes:
    """Bytes that are equal for equal parameters, however they were written: 1, 1.0 and np.float32(1)."""
    if isinstance(value, Shape):
        return value.key().encode()
    if value is None or isinstance(value, str):
        return repr(value).encode()
    try:
        return (np.asarray(value, dtype="<f8") + 0.0).tobytes()  # + 0.0 turns -0.0 into 0.0
    except (TypeError, ValueError):
        return repr(value).encode()
