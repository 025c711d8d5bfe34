"""Elastic solids: rubber, jelly, wood."""

from typing import ClassVar

from pliant.core.options import nonnegative, param, positive
from pliant.materials.material import Material


class Elastic(Material):
    """A corotated linearly elastic solid (Kugelstadt et al. 2021). Rubber by default; jelly: Elastic(young=1e4)."""

    fluid_like: ClassVar[bool] = False
    elastic: ClassVar[bool] = True
    renamed: ClassVar[dict[str, str]] = {"neighbours": "neighbors"}

    density: float = positive(1000.0, "rest density", "kg/m^3", high=1e6)
    young: float = positive(1e6, "Young's modulus: stress over strain of a bar that is pulled", "Pa", high=1e12,
                            source="jelly 1e4, rubber 1e6 to 1e7, wood 1e10")  # fmt: skip
    poisson: float = param(0.3, "Poisson's ratio: how much thinner a bar gets when it is pulled", "1", low=-0.9,
                           high=0.495, source="cork 0, steel 0.3, rubber 0.49, auxetic foam -0.5")  # fmt: skip
    friction: float | None = param(None, "Coulomb coefficient of its surface; two that touch have the geometric mean "
                                   "of both, None takes the other's, and without any they slide", "1", low=0.0,
                                   high=100.0, optional=True, source="ice 0.03, wood 0.4, rubber 0.8 to 1")  # fmt: skip
    damping: float = nonnegative(2.0, "rate at which the amplitudes of its vibrations decay, beside what the step "
                                 "damps (`numerical_damping`); its motion as a whole is not damped. Where it lies on "
                                 "something, vibrations too slow to be seen decay faster, at up to 40/s, and so does "
                                 "rocking on a wall, so that it comes to rest; 0 turns off both", "1/s",
                                 high=1e6)  # fmt: skip
    zero_energy: float = nonnegative(1.0, "stiffness alpha, relative to the shear modulus, against motions of "
                                     "particles that no strain shows; 0 lets them be", "1", high=1e3,
                                     source="Kugelstadt 2021, Eq. 20")  # fmt: skip
    neighbors: int | None = param(None, "only the nearest so many rest neighbors of each particle act on it (and "
                                   "those it is among the nearest of): less memory, less accurate; None takes all "
                                   "within the support", "1", kind="integer", low=6, high=1000, optional=True,
                                   source="Kugelstadt 2021, Section 9 uses 10")  # fmt: skip

    @property
    def shear(self) -> float:
        """Lamé's mu [Pa]."""
        return self.young / (2 * (1 + self.poisson))

    def lame_lambda(self, dimensions: int = 3) -> float:
        """Lamé's lambda [Pa]: of a solid, of a sheet that is free to get thinner (plane stress), or of a thread."""
        mu, nu = self.shear, self.poisson
        solid = self.young * nu / ((1 + nu) * (1 - 2 * nu))
        return {3: solid, 2: 2 * mu * solid / (solid + 2 * mu), 1: self.young - 2 * mu, 0: 0.0}[dimensions]
