"""A solid bounded by triangles, from a file or from arrays; scans with holes are welcome."""

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import PliantError
from pliant.geometry.meshfile import Triangles, describe, read_triangles
from pliant.geometry.shapes import Array, Shape, Vector, as_points
from pliant.geometry.surface import Surface
from pliant.options import REQUIRED, param, positive

# V / A^(3/2) is 0.094 for a ball and 0.02 for a rod of a hundred radii; a sheet that bulges by 2 % has 0.005.
THINNEST_OPEN = 0.005
THINNEST_CLOSED = 1e-9
LARGEST = 1e30  # [m]: beyond, volumes overflow


class _Factor(float):
    """`mesh.scale` is the number that was given, and still `mesh.scale(2)` magnifies as for every shape."""

    owner: Shape

    def __call__(self, factor: float, about: Vector | None = None) -> Shape:
        return Shape.scale(self.owner, factor, about)


class Mesh(Shape):
    """A solid given by its surface. The file is read when it is first needed.

    Inside is where the winding number exceeds 1/2, which is robust against holes, overlapping shells and
    inverted faces. After scaling about the origin, the centre of the bounding box is moved to `center`.
    """

    source: Any = param(REQUIRED, "file name (obj, ply, stl, off, glb, vtu) or pair (vertices, faces)", kind="any")
    scale: float = positive(1.0, "magnification about the origin")  # type: ignore[assignment]
    center: Vector | None = param(
        None, "where the centre of the bounding box goes; unmoved if not given", "m", kind="vector", optional=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.source, (tuple, list)):  # the caller may change his arrays later
            copies = tuple(np.array(part) if isinstance(part, np.ndarray) else part for part in self.source)
            object.__setattr__(self, "source", copies)
        if isinstance(self.scale, (int, float, np.number)) and not isinstance(self.scale, bool):
            factor = _Factor(self.scale)
            factor.owner = self
            object.__setattr__(self, "scale", factor)

    def values(self) -> dict[str, Any]:
        """With the triangles in place of the file, which may change or move away."""
        return super().values() | {"source": self._triangles}

    def problems(self) -> list[str]:
        found = super().problems()
        return found if found else [f"Mesh: {sentence}" for sentence in self._loaded[1:] if sentence]

    def warnings(self) -> list[str]:
        surface, problem = self._loaded
        if problem or surface is None or surface.closed:
            return []
        return [
            f"{describe(self.source)} is open with {surface.boundary_edges} boundary edges; "
            "its inside is where the winding number exceeds 1/2"
        ]

    @cached_property
    def _triangles(self) -> Triangles:
        return read_triangles(self.source)

    @cached_property
    def _loaded(self) -> tuple[Surface | None, str]:
        """The placed surface, and what is wrong with it."""
        try:
            vertices, faces = self._triangles
        except PliantError as error:
            return None, str(error)
        if float(self.scale) * np.abs(vertices[faces]).max() > LARGEST:
            return None, f"{describe(self.source)} reaches beyond {LARGEST:g} m; use a smaller scale"
        vertices = float(self.scale) * vertices
        if self.center is not None:
            used = vertices[faces].reshape(-1, 3)
            vertices = vertices + (np.asarray(self.center) - 0.5 * (used.min(axis=0) + used.max(axis=0)))
        surface = Surface(vertices, faces)
        return surface, _emptiness(surface, describe(self.source))

    @property
    def surface(self) -> Surface:
        """The cleaned, outward surface; refuses in one sentence if there is none."""
        found = self.problems()
        surface = None if found else self._loaded[0]
        if surface is None:
            raise PliantError(found[0])
        return surface

    def signed_distance(self, points: ArrayLike) -> Array:
        return self.surface.signed_distance(as_points(points))

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        return self.surface.inside(as_points(points))

    def support(self, directions: ArrayLike) -> Array:
        return np.array([(self.surface.vertices @ u).max() for u in as_points(directions)])

    def volume(self) -> float:
        return self.surface.volume

    def outline(self) -> Array:
        return self.surface.feature_edges()

    def triangles(self) -> tuple[Array, NDArray[np.int64]]:
        return self.surface.vertices, self.surface.faces

    def key(self) -> str:
        """Hash of the placed triangles, whichever file they came from."""
        surface = self.surface
        parts = (b"Mesh", surface.vertices.astype("<f8").tobytes(), surface.faces.astype("<i8").tobytes())
        return hashlib.sha256(b"|".join(parts)).hexdigest()


def _emptiness(surface: Surface, name: str) -> str:
    """One sentence if the surface has no inside to speak of."""
    if not len(surface.faces):
        return f"{name} has only triangles without area"
    thinnest = THINNEST_CLOSED if surface.closed else THINNEST_OPEN
    if abs(surface.volume) > thinnest * surface.area**1.5:
        return ""
    if surface.closed:
        return f"{name} encloses no volume: it is flat"
    return (
        f"{name} encloses no volume: it is open with {surface.boundary_edges} boundary edges; "
        "close it, or give it a thickness, in a modelling program"
    )
