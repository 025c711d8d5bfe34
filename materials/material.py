"""What a material is to the rest of the engine."""

from typing import ClassVar

from pliant.core.options import Options


class Material(Options):
    """Base of all materials. Solvers never ask for its class: they read its parameters, and these traits."""

    store: ClassVar[str] = "particles"  # in which its bodies live; "walls" are walls
    fluid_like: ClassVar[bool] = True  # lies against the walls of its container, and has no surface of its own
    liquid: ClassVar[bool] = False  # may be drawn as one surface
    elastic: ClassVar[bool] = False  # has a rest shape, and `shear`, `lame_lambda`, `zero_energy`, `neighbors`
    frictional: ClassVar[bool] = True  # is something that sand can rub against
    free: ClassVar[bool] = False  # moves as a whole, as forces make it
    colors: ClassVar[str] = "water"  # colour map in which its bodies are drawn unless told otherwise

    @property
    def has_particles(self) -> bool:
        """Whether its bodies consist of particles."""
        return self.store == "particles"

    @property
    def is_wall(self) -> bool:
        return self.store == "walls"

    @property
    def driven(self) -> bool:
        """Whether a mechanism moves it, which forces on it act on."""
        return False

    @property
    def roughness(self) -> float:
        """Coulomb coefficient among its own particles, and on walls that have none of their own."""
        return 0.0

    @property
    def has_yield_stress(self) -> bool:
        """Whether it bears shear stress while it flows: as sand does, and neither fluids nor what is elastic do."""
        return self.roughness > 0.0 or getattr(self, "cohesion", 0.0) > 0.0
