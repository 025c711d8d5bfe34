"""Coulomb coefficients of pairs: what a scene says of two bodies, or what follows from their materials."""

import math
from collections.abc import Iterable, Mapping
from typing import Any


def coefficient(a: Any, b: Any) -> float:
    """Between two materials: the geometric mean of their coefficients; where one has none of its own, the other's; and
    where neither has, what grains are to each other, or none. A rigid body's is one between solids: liquids at rest
    bear no shear, and a crate that hangs on the water beside it would float too high."""
    if any(m.liquid for m in (a, b)) and any(m.free for m in (a, b)):
        return 0.0
    own = [material.friction for material in (a, b) if getattr(material, "friction", None) is not None]
    if own:
        return math.sqrt(own[0] * own[-1])
    return max(getattr(material, "roughness", 0.0) for material in (a, b))


class Frictions:
    """Of all bodies and walls of a scene, by name. `given` are coefficients of pairs that the scene names."""

    def __init__(self, materials: Mapping[str, Any], given: Iterable[tuple[str, str, float]]):
        self.materials = dict(materials)
        self.given = {frozenset((a, b)): float(mu) for a, b, mu in given}

    def between(self, a: str, b: str) -> float:
        """The coefficient of two bodies; of a body with itself, if both are one."""
        given = self.given.get(frozenset((a, b)))
        return coefficient(self.materials[a], self.materials[b]) if given is None else given
