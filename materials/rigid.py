"""Bodies that move and turn as a whole, as forces make them."""

from typing import Any, ClassVar

from pliant.core.options import nonnegative, param, positive
from pliant.materials.boundary import cosine_of_contact
from pliant.materials.material import Material

USUAL_DENSITY = 1000.0  # [kg/m^3]: that of water, unless a density or a mass is given


class Rigid(Material):
    """A rigid body of any shape: a crate, a wheel, a hull. `density` or `mass` says how heavy it is, one of both."""

    store: ClassVar[str] = "walls"
    fluid_like: ClassVar[bool] = False
    free: ClassVar[bool] = True
    inside_out: ClassVar[bool] = False

    density: float | None = positive(None, "density; 1000 unless a mass is given", "kg/m^3", high=1e6, optional=True)
    mass: float | None = positive(None, "mass of the whole body, in place of a density", "kg", high=1e15, optional=True)
    friction: float | None = param(None, "Coulomb coefficient on what touches it, liquids aside; None is as rough to "
                                   "sand as its own grains, has that of the other where it has one, and is smooth to "
                                   "all else", "1", low=0.0, high=100.0, optional=True)  # fmt: skip
    restitution: float = nonnegative(0.0, "speed after an impact over that before; of two bodies the larger one counts",
                                     "1", high=1.0, source="steel on steel 0.9, wood 0.5, clay 0")  # fmt: skip
    no_slip: bool = param(True, "viscous fluids stick to it; False lets them slide")
    contact_angle: float | None = param(None, "angle at which the surface of a liquid with surface tension meets it, "
                                        "measured inside the liquid; None is 90: no wetting", "degree", low=0.0,
                                        high=180.0, optional=True)  # fmt: skip

    def __post_init__(self) -> None:
        if self.density is None and self.mass is None:
            object.__setattr__(self, "density", USUAL_DENSITY)

    def problems(self) -> list[str]:
        found = super().problems()
        if self.density is not None and self.mass is not None:
            found.append(f"Rigid: it takes a density or a mass, not both, got {self.density!r} and {self.mass!r}")
        return found

    def replaced(self, **values: Any) -> Any:
        """A copy with other values: a new mass takes the place of the density, and the other way round."""
        given = [name for name in ("density", "mass") if values.get(name) is not None]
        if len(given) == 1:
            values = {"density": None, "mass": None} | values
        return super().replaced(**values)

    def mass_of(self, volume: float) -> float:
        """Mass [kg] of a body of that volume [m^3]."""
        return float(self.mass if self.mass is not None else self.density * volume)  # type: ignore[operator]

    @property
    def wetting(self) -> float:
        """Cosine of the contact angle."""
        return cosine_of_contact(self.contact_angle)
