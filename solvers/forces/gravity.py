"""Gravity."""

from collections.abc import Sequence
from typing import Any

import taichi as ti

from pliant.core.backend import Reals, Vectors, vec3
from pliant.solvers.stage import Force


@ti.kernel
def _add(n: ti.i32, change: vec3, inverse_density: Reals, v: Vectors):
    for i in range(n):
        if inverse_density[i] > 0.0:
            v[i] += change


class Gravity(Force):
    """v += dt g."""

    name = "gravity"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(settings.gravity)

    def run(self, dt: float) -> None:
        p = self.world.particles
        _add(p.n, vec3(*(dt * self.world.gravity)), p.inverse_density, p.v)
