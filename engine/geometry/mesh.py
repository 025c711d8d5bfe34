"""A solid bounded by triangles, from a file or from arrays; scans with holes are welcome."""

import dataclasses
import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.options import REQUIRED, param, positive
from pliant.errors import PliantError
from pliant.geometry.mass import MassProperties
from pliant.geometry.meshfile import MeshData, describe, read_mesh
from pliant.geometry.repair import area_vectors
from pliant.geometry.shapes import Array, Shape, Vector, as_points
from pliant.geometry.surface import Surface

# V / A^(3/2) is 0.094 for a ball and 0.02 for a rod of a hundred radii; a sheet that bulges by 2 % has 0.005.
THINNEST_OPEN = 0.005
THINNEST_CLOSED = 1e-9
WORTH_SAYING = 1e-4  # part of the area inside the solid: less is a matter of rounding
LARGEST = 1e30  # [m]: beyond, volumes overflow
MOST_PARTICLES = 10**8  # that may be asked for

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0, "in": 0.0254, "ft": 0.3048}  # [m]
# Row k: coordinate k in Pliant, where y is up, by those of a file with another axis up. All are proper rotations.
UP = {
    "y": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),  # (x, y, z)
    "z": ((1, 0, 0), (0, 0, 1), (0, -1, 0)),  # (x, z, -y), as Blender and CAD programs need it
    "x": ((0, -1, 0), (1, 0, 0), (0, 0, 1)),  # (-y, x, z)
    "-y": ((1, 0, 0), (0, -1, 0), (0, 0, -1)),  # (x, -y, -z)
    "-z": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),  # (x, -z, y)
    "-x": ((0, 1, 0), (-1, 0, 0), (0, 0, 1)),  # (y, -x, z)
}


class _Factor(float):
    """`mesh.scale` is the number that was given, and still `mesh.scale(2)` magnifies as for every shape."""

    owner: Shape

    def __call__(self, factor: float, about: Vector | None = None) -> Shape:
        return Shape.scale(self.owner, factor, about)


class Mesh(Shape):
    """A solid given by its surface. The file is read when it is first needed.

    Inside is where the winding number differs from 0 by more than 1/2, which is robust against holes, overlapping
    shells and inverted faces; `warnings()` says what was found. A shell within another one whose faces look into it is
    a cavity. Volume cells (vtu, vtk) count by their boundary, and a glb scene by all its surfaces, each in its place.

    A file's points are turned so that its `up` becomes y: z up gives (x, z, -y), x up (-y, x, z), -y up (x, -y, -z),
    -z up (x, -z, y) and -x up (y, -x, z). After that they are multiplied by unit and scale, about the origin, and then
    the centre of the bounding box is moved to `center`.
    """

    source: Any = param(REQUIRED, "file name (obj, ply, stl, off, glb, gltf, vtu, vtk), or pair (vertices, faces), or "
                        "(vertices, faces, uv, normal)", kind="any")  # fmt: skip
    scale: float = positive(1.0, "magnification about the origin")  # type: ignore[assignment]
    center: Vector | None = param(
        None, "where the centre of the bounding box goes; unmoved if not given", "m", kind="vector", optional=True
    )
    unit: str = param("m", "what a length of 1 in the file means", choices=tuple(UNITS))
    up: str = param("y", "the axis that points up in the file; glb files have y by definition", choices=tuple(UP))
    particles: int | None = param(
        None, "number of particles wanted when it is filled; by the scene's spacing if not given",
        low=1, high=MOST_PARTICLES, kind="integer", optional=True,
    )  # fmt: skip

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
        data = self._data
        plain = data.uv is None and data.normal is None
        return super().values() | {"source": tuple(data[:2] if plain else data)}

    def problems(self) -> list[str]:
        found = super().problems()
        return found if found else [f"Mesh: {sentence}" for sentence in self._loaded[1:] if sentence]

    def warnings(self) -> list[str]:
        surface, problem = self._loaded
        return [] if problem or surface is None else findings(surface, describe(self.source))

    @cached_property
    def _data(self) -> MeshData:
        return read_mesh(self.source)

    @cached_property
    def _placed(self) -> Array:
        """All vertices of the file (n, 3), turned, magnified and moved; those without a face may be anything."""
        data = self._data
        factor = float(self.scale) * UNITS[self.unit]
        with np.errstate(invalid="ignore", over="ignore"):  # of vertices without a face
            vertices = factor * (data.vertices @ np.array(UP[self.up], dtype=float).T)
            if self.center is not None:
                used = vertices[data.faces].reshape(-1, 3)
                vertices = vertices + (np.asarray(self.center) - 0.5 * (used.min(axis=0) + used.max(axis=0)))
        return vertices

    def wanted_particles(self) -> int | None:
        return self.particles

    def centred(self) -> "Mesh":
        """The same mesh around the origin: what its copies in other places have in common."""
        twin = dataclasses.replace(self, center=(0.0, 0.0, 0.0))  # type: ignore[type-var]
        twin.__dict__["_data"] = self._data  # read once
        return twin

    @cached_property
    def _loaded(self) -> tuple[Surface | None, str]:
        """The placed surface, and what is wrong with it."""
        try:
            vertices, faces = self._data[:2]
        except PliantError as error:
            return None, str(error)
        if float(self.scale) * UNITS[self.unit] * np.abs(vertices[faces]).max() > LARGEST:
            return None, f"{describe(self.source)} reaches beyond {LARGEST:g} m; use a smaller scale"
        surface = Surface(self._placed, faces)
        return surface, _emptiness(surface, describe(self.source))

    def skin(self) -> tuple[Array, NDArray[np.int64], dict[str, Array]]:
        """The surface for drawing: vertices (n, 3) [m] and faces (m, 3) in the order of the file, looking outward, and
        per vertex "uv" (n, 2) and "normal" (n, 3) if the file has them. Along seams, vertices are double."""
        turned, data = self.surface.repairs.turned, self._data
        faces = np.where(turned[:, None], data.faces[:, ::-1], data.faces)
        fields = {} if data.uv is None else {"uv": data.uv}
        if data.normal is not None:
            fields["normal"] = _outward(data.normal @ np.array(UP[self.up], dtype=float).T, self._placed, faces)
        return self._placed, faces, fields

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

    def mass_properties(self) -> MassProperties:
        return MassProperties.of_moments(self.surface.moments)

    def outline(self) -> Array:
        return self.surface.outline()

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


def _outward(normals: Array, vertices: Array, faces: NDArray[np.int64]) -> Array:
    """Normals of vertices, turned where they look against the faces around them."""
    corners, area = faces.reshape(-1), np.repeat(area_vectors(vertices, faces), 3, axis=0)
    mean = np.stack([np.bincount(corners, weights=area[:, k], minlength=len(vertices)) for k in range(3)], axis=1)
    return np.where((np.einsum("ij,ij->i", normals, mean) < 0.0)[:, None], -normals, normals)


def findings(surface: Surface, name: str) -> list[str]:
    """One sentence for each thing about a surface that is allowed but worth knowing, and how it was handled."""
    found, repairs = [], surface.repairs
    faces, turned = len(repairs.turned), int(np.count_nonzero(repairs.turned))
    if surface.boundary_edges > repairs.one_sided:
        found.append(f"{name} is open with {surface.boundary_edges - repairs.one_sided} boundary edges; "
                     "its inside is where the winding number exceeds 1/2")  # fmt: skip
    if repairs.one_sided:
        found.append(f"{name} is one-sided, no orientation fits along {repairs.one_sided} edges; its inside is where "
                     "the winding number exceeds 1/2, which may not be what was meant")  # fmt: skip
    if turned == faces:
        found.append(f"all {faces} faces of {name} looked inward and were turned")
    elif turned:
        found.append(f"{turned} of the {faces} faces of {name} looked the wrong way and were turned")
    if repairs.duplicates:
        found.append(f"{repairs.duplicates} faces of {name} repeat another one, or lie back to back with it, "
                     "and were left out")  # fmt: skip
    if repairs.loose:
        found.append(f"{repairs.loose} faces of {name} are open sheets beside closed shells, and were left out")
    if repairs.nested:
        solid = repairs.nested - repairs.cavities
        found.append(f"{name} has {repairs.nested} of its {repairs.shells} shells inside another one (cavities, whose "
                     f"faces look inward: {repairs.cavities}; solid: {solid})")  # fmt: skip
    if surface.overlap > WORTH_SAYING:
        found.append(f"{name} runs through itself or its shells overlap, {surface.overlap:.1%} of its area inside; "
                     "what is inside twice counts once, and only the outer surface counts for distances")  # fmt: skip
    return found
