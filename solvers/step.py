"""The time step: the stages of a scene, one after the other in the order of `stage.ORDER`."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, Vectors, sync, upload
from pliant.core.neighbors import INVERSE_LENGTH, LENGTH
from pliant.core.speedups import light
from pliant.core.world import World
from pliant.solvers.pressure.base import PressureSolver
from pliant.solvers.stage import ORDER, SolveResult, Stage, position


class NeighborSearch(Stage):
    """Sorts the particles, and finds lists, gradients and densities."""

    name = place = "neighbors"

    def run(self, dt: float) -> None:
        self.world.neighbors.update(self.world.low, self.world.high)


class WallSampling(Stage):
    """Finds what walls add to densities and gradients, and their velocities, friction and drag at the particles."""

    name = place = "walls"

    def run(self, dt: float) -> None:
        self.world.walls.sample(self.world.time)


@light
@ti.kernel
def _rub(n: ti.i32, dt: ti.f32, rubs: Reals, material: Ints, inverse_density: Reals, friction: Reals, push: Vectors,
         facing: Vectors, moving: Vectors, slide: Vectors, v: Vectors):  # fmt: skip
    """Coulomb: walls slow tangential motion by at most friction times the impulse of their pressure. Elastic bodies see
    to it themselves (`elasticity.rubbing`)."""
    for i in range(n):
        pressed = push[i].norm()
        if friction[i] * pressed > 0.0 and rubs[material[i]] > 0.0 and push[i].dot(facing[i]) > 0.0:
            normal = push[i] / pressed
            sliding = v[i] - moving[i]
            sliding -= sliding.dot(normal) * normal
            speed = sliding.norm()
            impulse = dt * inverse_density[i] * pressed * friction[i]
            dv = -ti.min(impulse / ti.max(speed, 1e-12), 1.0) * sliding
            v[i] += dv
            slide[i] += dv / dt


@light
@ti.kernel
def _advance(n: ti.i32, dt: ti.f32, period: Vectors, v: Vectors, shift: Vectors, x: Vectors):
    for i in range(n):
        moved = x[i] + dt * v[i] + shift[i]
        x[i] = moved - period[LENGTH] * ti.floor(moved * period[INVERSE_LENGTH])


class Advance(Stage):
    """Friction of walls slows velocities, where the pressure solver does not see to it; then forces on walls are known,
    positions and walls move, and walls put back and stop what came too close."""

    name = place = "advance"

    def __init__(self, world: World, pressure: PressureSolver):
        super().__init__(world, None)
        self.pressure = pressure
        self._rubs = upload(np.array([not m.elastic for m in world.materials], float), ti.f32)

    def run(self, dt: float) -> None:
        world, p = self.world, self.world.particles
        world.walls.find_pushes()
        if world.walls.rough and not self.pressure.solves_friction:
            _rub(p.n, dt, self._rubs, p.material, p.inverse_density, p.wall_friction, p.wall_push, p.wall_normal,
                 p.wall_velocity, p.wall_slide, p.v)  # fmt: skip
        world.walls.feel(dt)
        _advance(p.n, dt, world.neighbors.period, p.v, p.shift, p.x)
        world.walls.advance(dt)


class Step:
    """One step of the whole scene. Keeps what `sim.stats` reports: seconds by stage and how the solves ended."""

    def __init__(self, world: World, pressure: PressureSolver, stages: Iterable[Stage]):
        self.world, self.pressure = world, pressure
        own = [NeighborSearch(world, None), WallSampling(world, None), *pressure.stages(), Advance(world, pressure)]
        self.stages = sorted([*own, *(part for stage in stages for part in stage.parts())], key=position)
        self.seconds: dict[str, float] = {}
        self.loaded: dict[str, SolveResult] = {}  # how solves had ended when the state was saved

    def insert(self, stage: Stage) -> None:
        """Lets a stage take part from the next step on."""
        self.stages = sorted([*self.stages, stage], key=position)

    def remove(self, stage: Stage) -> None:
        self.stages.remove(stage)

    def births(self, dt: float) -> None:
        """The stages that let particles come and go, before the state is what a step starts from."""
        self.seconds.clear()
        self._run("births", "births", dt)

    def __call__(self, dt: float) -> None:
        self._run("prescribed", "walls", dt)
        for stage in self.stages:
            stage.after_neighbors()
        self._run("contact", ORDER[-1], dt)

    def _run(self, first: str, last: str, dt: float) -> None:
        """The stages from one place to another, both included."""
        places = ORDER[ORDER.index(first) : ORDER.index(last) + 1]
        for stage in [stage for stage in self.stages if stage.place in places]:
            with self.timed(stage.name):
                stage.run(dt)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measures one stage."""
        start = time.perf_counter()
        yield
        sync()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    @property
    def results(self) -> dict[str, SolveResult]:
        """How the solves of the last step ended, by name."""
        return self.loaded | {name: result for stage in self.stages for name, result in stage.results.items()}

    @property
    def notes(self) -> list[str]:
        return [note for stage in self.stages for note in stage.notes]

    def max_dt(self) -> float:
        """Bound on the time step [s] by all stages."""
        return min(stage.max_dt() for stage in self.stages)
