"""What a material is to the rest of the engine."""

from typing import ClassVar

from pliant.core.options import Options


class Material(Options):
    """Base of all materials. `sampled` ones are filled with particles, the others act as walls. What `flows` lies
    against the walls of its container, what does not has a surface of its own that its particles should follow. What
    `grips` is something that sand can rub against."""

    sampled: ClassVar[bool] = True
    flows: ClassVar[bool] = True
    grips: ClassVar[bool] = True
    colors: ClassVar[str] = "water"  # in which its bodies are drawn unless told otherwise

    @property
    def roughness(self) -> float:
        """Coulomb coefficient among its own particles, and on walls that have none of their own."""
        return 0.0

    @property
    def stands(self) -> bool:
        """Whether it bears shear stress while it flows: as sand does, and neither fluids nor what is elastic do."""
        return self.roughness > 0.0 or getattr(self, "cohesion", 0.0) > 0.0
