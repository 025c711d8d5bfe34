"""What a material is to the rest of the engine."""

from typing import ClassVar

from pliant.options import Options


class Material(Options):
    """Base of all materials. `sampled` ones are filled with particles, the others act as walls. What `flows` lies
    against the walls of its container, what does not has a surface of its own that its particles should follow."""

    sampled: ClassVar[bool] = True
    flows: ClassVar[bool] = True

    @property
    def roughness(self) -> float:
        """Coulomb coefficient against walls that have none of their own."""
        return 0.0
