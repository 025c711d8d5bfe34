"""Walls, containers and obstacles."""

import math
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
    contact_angle: float | None = param(None, "angle at which the surface of a liquid with surface tension meets the "
                                        "wall, measured inside the liquid; None is 90: no wetting", "degree", low=0.0,
                                        high=180.0, optional=True,
                                        source="water on glass 0 to 30, on wax 105, on lotus leaves 160")  # fmt: skip

    @property
    def wetting(self) -> float:
        """Cosine of the contact angle."""
        return cosine_of_contact(self.contact_angle)


def cosine_of_contact(angle: float | None) -> float:
    """Of a contact angle [degrees]; None does not wet, to the last bit."""
    return 0.0 if angle is None or angle == 90.0 else math.cos(math.radians(angle))
