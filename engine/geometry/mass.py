"""Mass properties: what a solid of density 1 weighs, where its centre of mass is, and how it resists turning.

With the second moments C = int r r^T dV about the centre of mass, the inertia is tr(C) 1 - C, along the world's axes.
Bodies turn by these, so a mesh has them exactly, by the divergence theorem: a closed surface is the signed sum of the
tetrahedra between its triangles and one point.
"""

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import PliantError
from pliant.geometry.volumes import Moments

Array = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class MassProperties:
    """Of a solid of density 1: `volume` [m^3], `center` of mass (3,) [m], and `inertia` (3, 3) [m^5] about it, along
    the axes of the world. Times the density, these are mass [kg] and inertia [kg m^2]."""

    volume: float
    center: Array
    inertia: Array

    @classmethod
    def of_moments(cls, moments: Moments) -> "MassProperties":
        """By the parallel axes theorem."""
        if not 0.0 < moments.volume < np.inf:
            raise PliantError("a shape that is empty or infinite has no mass properties")
        arm = moments.first / moments.volume
        second = moments.second - moments.volume * np.outer(arm, arm)
        second = 0.5 * (second + second.T)  # to the last bit
        return cls(moments.volume, moments.origin + arm, np.trace(second) * np.eye(3) - second)

    def placed(self, scale: float, R: Array, t: Array) -> "MassProperties":
        """Those of the solid x = s R x_local + t: volumes grow as s^3, inertias as s^5."""
        inertia = scale**5 * R @ self.inertia @ R.T
        return MassProperties(scale**3 * self.volume, scale * R @ self.center + t, 0.5 * (inertia + inertia.T))

    def about(self, point: ArrayLike) -> Array:
        """The inertia (3, 3) about another point [m^5]."""
        r = self.center - np.asarray(point, dtype=float)
        return self.inertia + self.volume * ((r @ r) * np.eye(3) - np.outer(r, r))


def round_solid(volume: float, center: ArrayLike, axis: str, axial: float, across: float) -> MassProperties:
    """A solid of revolution by its inertias about its axis and across it, per volume [m^2]."""
    diagonal = np.full(3, across)
    diagonal["xyz".index(axis)] = axial
    return MassProperties(volume, np.array(center, dtype=float), volume * np.diag(diagonal))


def mesh_moments(vertices: Array, faces: NDArray[np.int64], areas: Array, origin: Array) -> Moments:
    """Of a closed surface, by its area vectors (f, 3), which look outward. A tetrahedron (0, a, b, c) of volume V has
    the first moment V s / 4 and the second V (a a^T + b b^T + c c^T + s s^T) / 20, s = a + b + c."""
    corners, middles = vertices[faces] - origin, vertices[faces].mean(axis=1) - origin
    V, s = np.einsum("ij,ij->i", middles, areas) / 3.0, 3.0 * middles
    second = np.einsum("i,ikj,ikl->jl", V, corners, corners) + np.einsum("i,ij,il->jl", V, s, s)
    volume = float(np.einsum("ij,ij->", middles, areas) / 3.0)
    return Moments(origin, volume, np.einsum("i,ij->j", V, s) / 4.0, second / 20.0)
