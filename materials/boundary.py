"""Walls, containers and obstacles."""

from typing import ClassVar

from pliant.materials.material import Material
from pliant.options import nonnegative, param


class Boundary(Material):
    """A rigid wall, at rest or moved by `body.move`. With `inside_out` the shape is the hollow of a container."""

    sampled: ClassVar[bool] = False

    inside_out: bool = param(False, "the wall is everything outside the shape")
    friction: float = nonnegative(0.0, "Coulomb coefficient between particles and wall", "1", high=100.0)
    no_slip: bool = param(True, "viscous fluids stick to the wall; False lets them slide")
