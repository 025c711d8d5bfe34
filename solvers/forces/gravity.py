"""Gravity."""

from typing import Any

import taichi as ti

from pliant.core.backend import Reals, Vectors, vec3
from pliant.solvers.forces.force import Force


@ti.kernel
def _add(n: ti.i32, change: vec3, mobility: Reals, v: Vectors):
    for i in range(n):
        if mobility[i] > 0.0:
            v[i] += change


class Gravity(Force):
    """v += dt g."""

    name = "gravity"

    @classmethod
    def wanted(cls, materials: tuple, settings: Any) -> bool:
        return any(settings.gravity)

    def apply(self, dt: float) -> dict[str, float]:
        p = self.world.particles
        _add(p.n, vec3(*(dt * self.world.gravity)), p.mobility, p.v)
        return {}
