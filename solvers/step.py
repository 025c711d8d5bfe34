"""The time step, as one visible list (Kugelstadt 2021, Algorithm 1; Bender and Koschier 2017, Algorithm 1)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Reals, Vectors, sync
from pliant.core.neighbors import INVERSE_LENGTH, LENGTH
from pliant.core.world import World
from pliant.solvers.forces.force import Force
from pliant.solvers.granular.grains import Grains
from pliant.solvers.pressure.base import Outcome


@ti.kernel
def _rub(n: ti.i32, dt: ti.f32, p: Reals, mobility: Reals, friction: Reals, gradient: Vectors, moving: Vectors,
         v: Vectors):  # fmt: skip
    """Coulomb: walls slow tangential motion by at most friction times the impulse of their pressure."""
    for i in range(n):
        push = gradient[i].norm()
        if friction[i] * push > 0.0:
            normal = gradient[i] / push
            sliding = v[i] - moving[i]
            sliding -= sliding.dot(normal) * normal
            speed = sliding.norm()
            impulse = dt * mobility[i] * p[i] * push * friction[i]
            v[i] -= ti.min(impulse / ti.max(speed, 1e-12), 1.0) * sliding


@ti.kernel
def _advance(n: ti.i32, dt: ti.f32, period: Vectors, v: Vectors, shift: Vectors, x: Vectors):
    for i in range(n):
        moved = x[i] + dt * v[i] + shift[i]
        x[i] = moved - period[LENGTH] * ti.floor(moved * period[INVERSE_LENGTH])


class Step:
    """One step of the whole scene. Keeps what `sim.stats` reports: seconds by stage and how the solves ended."""

    def __init__(self, world: World, pressure: Any, forces: list[Force], grains: Grains | None = None):
        self.world, self.pressure, self.forces, self.grains = world, pressure, forces, grains
        self.seconds: dict[str, float] = {}
        self.numbers: dict[str, float] = {}
        self.density: Outcome | None = None
        self.divergence: Outcome | None = None

    def __call__(self, dt: float, low: np.ndarray, high: np.ndarray) -> None:
        world, p = self.world, self.world.particles
        self.seconds.clear()
        with self.stage("neighbours"):
            world.neighbors.update(low, high)
        with self.stage("boundaries"):
            world.walls.feel(world.time)
        with self.stage("neighbours"):
            for force in self.forces:
                force.meet()
        self.act(dt, feeling_pressure=False)
        with self.stage("pressure"):
            self.pressure.prepare()
            self.pressure.guess(dt)
        self.act(dt, feeling_pressure=True)
        with self.stage("pressure"):
            self.divergence = self.pressure.remove_divergence(dt)
        with self.stage("density"):
            self.density = self.pressure.remove_compression()
        with self.stage("advance"):
            if world.walls.rough and not self.pressure.friction:
                _rub(p.n, dt, p.p, self.pressure.ease, p.wall_friction, p.wall_gradient, p.wall_velocity, p.v)
            _advance(p.n, dt, world.neighbors.period, p.v, p.shift, p.x)
            world.walls.advance(dt)
        if self.grains is not None:
            with self.stage("grains"):
                self.grains.advance(dt, low, high)

    def act(self, dt: float, feeling_pressure: bool) -> None:
        """Forces that come before the guess of the pressure, or after it."""
        for force in self.forces:
            if force.feels_pressure == feeling_pressure:
                with self.stage(force.name):
                    self.numbers.update(force.apply(dt))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measures one stage."""
        start = time.perf_counter()
        yield
        sync()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
