"""Sand, gravel, grain: matter that flows when pushed hard enough, and otherwise stands."""

import math
from typing import ClassVar

from pliant.core.options import nonnegative, param, positive
from pliant.materials.material import Material


class Granular(Material):
    """A granular medium with Drucker-Prager friction (Neder 2024). Dry sand by default; gravel: friction_angle=42."""

    colors: ClassVar[str] = "sand"

    density: float = positive(1600.0, "bulk density, the pores included", "kg/m^3", high=1e6,
                              source="dry sand 1500 to 1700")  # fmt: skip
    friction_angle: float = param(35.0, "angle of internal friction, at which a poured pile rests", "degree", low=0.0,
                                  high=75.0, source="glass beads 22, sand 30 to 35, gravel 40 to 45")  # fmt: skip
    cohesion: float = nonnegative(0.0, "shear stress that it bears without pressure: 0 when dry, some 1000 when damp",
                                  "Pa", high=1e9, source="Alduan and Otaduy 2011, Section 4.3")  # fmt: skip
    porosity: float = param(0.4, "share of pores in its volume, which water may fill", "1", low=0.05, high=0.95,
                            source="sand 0.35 to 0.45")  # fmt: skip
    grain_diameter: float = positive(5e-4, "diameter of its grains, by which water seeps through it", "m", high=1.0,
                                     source="Ergun 1952; fine sand 2e-4, coarse sand 1e-3, gravel 1e-2")  # fmt: skip
    saturation: float | None = param(None, "share of the pores that water fills at the start; None: all of it in what "
                                     "lies under water, and none elsewhere", "1", low=0.0, high=1.0,
                                     optional=True)  # fmt: skip
    damping: float = nonnegative(0.05, "numerical viscosity at the scale of particles, as that of Fluid", "1",
                                 high=10.0)  # fmt: skip
    grains: int = param(0, "grains shown for each particle; 0 shows the particles themselves", "1", kind="integer",
                        low=0, high=1000, source="Neder 2024, Section 5.12 takes 7 N, N = 5 to 10")  # fmt: skip

    @property
    def roughness(self) -> float:
        """The tangent of its angle."""
        return math.tan(math.radians(self.friction_angle))

    @property
    def yield_slope(self) -> float:
        """Largest shear stress over pressure at which it stands, |s| / (sqrt(2) p): see `solvers.pressure.friction`.
        Not more than on the cone around the Mohr-Coulomb pyramid of its angle, which is the smaller one above 50
        degrees: there the tangent would let columns stand by themselves."""
        sine = math.sin(math.radians(self.friction_angle))
        return min(self.roughness, 2 * math.sqrt(3) * sine / (3 - sine))
