"""What a material is to the rest of the engine."""

from typing import ClassVar

from pliant.options import Options


class Material(Options):
    """Base of all materials. `sampled` ones are filled with particles, the others act as walls."""

    sampled: ClassVar[bool] = True
