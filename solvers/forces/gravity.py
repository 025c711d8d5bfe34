"""Gravity."""

from collections.abc import Sequence
from typing import Any

import taichi as ti

from pliant.core.backend import Reals, Vectors, vec3
from pliant.core.speedups import light
from pliant.solvers.stage import Force


@light
@ti.kernel
def _add(n: ti.i32, x: ti.f32, y: ti.f32, z: ti.f32, inverse_density: Reals, v: Vectors):
    for i in range(n):
        if inverse_density[i] > 0.0:
            v[i] += vec3(x, y, z)


class Gravity(Force):
    """v += dt g."""

    name = "gravity"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(settings.gravity)

    def run(self, dt: float) -> None:
        p = self.world.particles
        _add(p.n, *(dt * self.world.gravity).tolist(), p.inverse_density, p.v)
