"""Walls, containers and obstacles."""

from typing import ClassVar

from pliant.core.options import param
from pliant.materials.material import Material


class Boundary(Material):
    """A rigid wall, at rest or moved by `body.move`. With `inside_out` the shape is the hollow of a container."""

    store: ClassVar[str] = "walls"
    fluid_like: ClassVar[bool] = False

    inside_out: bool = param(False, "the wall is everything outside the shape")
    friction: float | None = param(None, "Coulomb coefficient between particles and wall; None is as rough to sand as "
                                   "its own grains, and smooth to all else", "1", low=0.0, high=100.0,
                                   optional=True)  # fmt: skip
    no_slip: bool = param(True, "viscous fluids stick to the wall; False lets them slide")
