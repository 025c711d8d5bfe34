"""Incompressible Newtonian liquid."""

from typing import ClassVar

from pliant.core.options import nonnegative, param, positive
from pliant.materials.material import Material


class Fluid(Material):
    """An incompressible liquid: water by default. Honey: Fluid(density=1420, viscosity=7e-3)."""

    liquid: ClassVar[bool] = True
    frictional: ClassVar[bool] = False

    density: float = positive(1000.0, "rest density", "kg/m^3", high=1e6)
    viscosity: float = nonnegative(1e-6, "kinematic viscosity", "m^2/s", high=1e3, source="water at 20 C: 1.0e-6")
    surface_tension: float = nonnegative(0.0, "surface tension; water against air: 0.072", "N/m", high=1e3,
                                         source="water 0.072, oil 0.03, mercury 0.48")  # fmt: skip
    damping: float = nonnegative(
        0.05, "numerical viscosity at the scale of particles, in units of d sqrt(|g| d): it calms the jitter of "
        "particles about their places, and fades as d^1.5 when they get smaller", "1", high=10.0)  # fmt: skip
    micropolar: float = nonnegative(
        0.0, "transfer coefficient nu_t between the flow and the spins of its particles: spins take energy from the "
        "flow at first, and keep it turning later", "m^2/s", high=1e3, source="Bender et al. 2019")  # fmt: skip
    microinertia: float = positive(
        2.0, "inertia of these spins, Theta = <r^2> of what turns, in units of d^2", "1", high=1e4,
        source="Bender et al. 2019 have 2, in units of their own")  # fmt: skip
    viscosity_solver: str = param(
        "auto", "explicit (Morris et al. 1997) is cheap and accurate for thin liquids; implicit (after Weiler et al. "
        "2018) is stable for any viscosity and keeps angular momentum, so that thick liquids coil; auto takes the "
        "explicit one where it is stable at the largest step", choices=("auto", "explicit", "implicit"),
    )  # fmt: skip
