"""A running scene: the clock, the frames and the guard. The physics is in `pliant.solvers`."""

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import taichi as ti

from pliant.boundary.volume_map import wall_profile
from pliant.boundary.walls import FIELDS as WALL_FIELDS
from pliant.boundary.walls import Wall, Walls
from pliant.core import backend
from pliant.core.cache import cache_folder
from pliant.core.console import console
from pliant.core.neighbors import Neighbors
from pliant.core.particles import Particles
from pliant.core.reduce import Extent
from pliant.core.smoothing import smoothing
from pliant.core.world import World
from pliant.errors import PliantError, SimulationError, unknown_name
from pliant.run.frames import Canvas, Frame
from pliant.scene import assembly, changes
from pliant.scene.grain_sampling import make_grains
from pliant.scene.scene import Body, Scene
from pliant.sim import checkpoint
from pliant.sim.checkpoint import Checkpoint
from pliant.sim.stats import Stats
from pliant.sim.views import BodyView, WallView
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.forces.force import wanted_forces
from pliant.solvers.interaction.grab import take
from pliant.solvers.interaction.grip import Grip
from pliant.solvers.prescribed import Prescribed
from pliant.solvers.step import Step

LEAST_FRAME_SHARE = 1e-6  # a rest of a frame shorter than this share of it counts as round-off
FASTEST = 1.8e19  # [m/s]: beyond, the square of a speed overflows single precision
SHORTEST = 4e-3  # of a spacing: below the speed that moves a particle by this in the shortest step, nothing explodes
EXPLOSION = 100.0  # times the speed that gravity, walls and initial velocities can explain


class Simulation:
    """What `scene.build` returns. `step`, `run` and `frames` move time on; `sim[body]` reads and writes particles."""

    def __init__(self, scene: Scene, backend_name: str = "cpu", saved: Checkpoint | None = None):
        backend.start(backend_name)
        self.scene = scene
        self.notes: list[str] = []
        self.step_count, self.dt = 0, 0.0
        self._stop = False  # a callback's wish to end `run` or `frames`
        self.watchers: list[Callable[[Any], Any]] = []  # callbacks of whoever runs it, not part of the scene
        self.grips: list[Grip] = []  # of `grab`, until they are released
        self.canvas = Canvas(self)
        self._given_speed = 0.0  # [m/s] that particles have from outside: see _speed_limit
        self._free_dt = 0.0  # the last step that was not cut short to end on a frame
        w = smoothing(scene.settings.smoothing)
        self.fillings = assembly.fill_bodies(scene, self.notes) if saved is None else saved.fillings(scene)
        for body in scene.bodies:
            self.notes += [f"{body.name}: {sentence}" for sentence in body.shape.warnings()]
        walls = [assembly.build_wall(b, scene.spacing, w) for b in scene.bodies if not b.material.sampled]
        self._assemble(walls, saved, {})

    def _assemble(self, walls: list[Wall], saved: Checkpoint | None, kept: dict[str, list]) -> None:
        """Makes the particles and what moves them, at the start or as they were when the state was saved."""
        scene, settings = self.scene, self.scene.settings
        w = smoothing(settings.smoothing)
        materials = tuple(filling.body.material for filling in self.fillings)
        forces = wanted_forces(materials, settings)
        fields = [*WALL_FIELDS, *settings.pressure.fields(materials), *(f for force in forces for f in force.fields)]
        particles = Particles(sum(len(f.x) for f in self.fillings), fields)
        self.world = World(
            particles,
            Neighbors(particles, w, scene.spacing, tuple(settings.periodic)),
            Walls(particles, walls, scene.spacing, wall_profile(w), [m.roughness for m in materials]),
            scene.spacing, np.asarray(settings.gravity, dtype=float), materials,
            tuple(filling.body.name for filling in self.fillings),
            tuple(scene.spacing_of(filling.body) for filling in self.fillings), kept=kept,
        )  # fmt: skip
        self._ranges = self._count()
        if saved is None:
            self._fill(particles)
            for force in forces:
                force.fill(self.world)
        else:
            checkpoint.fill(saved, particles)
        self.prescribed = Prescribed(self.world, [f.body.motion for f in self.fillings], self._pivots())
        solids = [b for b in scene.bodies if not b.material.sampled]
        self.grains = make_grains(self.world, self.fillings, solids, sown=saved is None)
        self._step = Step(self.world, settings.pressure.solver(self.world), [f(self.world, settings) for f in forces],
                          self.grains)  # fmt: skip
        self.notes += [note for force in self._step.forces for note in force.notes]
        self._extent = Extent()
        self._good = particles.copies()
        if saved is None:
            self.measure()
        else:
            checkpoint.restore(saved, self)

    def change(self, body: Body | str | None = None, **values: Any) -> None:
        """Changes parameters from the next step on: `sim.change(gravity=(0, 0, 0))` those of the scene,
        `sim.change(duck, young=1e5)` those of the material of a body. Everything else stays as it is.

        Parameters have the units and ranges that `Scene` and the materials give them. Those that say where particles
        are (particle_radius, smoothing, periodic, inside_out, grains) cannot change.
        """
        changes.apply(self, body, values)

    def grab(self, body: Body | str, point: Any, radius: float | None = None) -> Grip:
        """Takes hold of a body, or of that of this name, at a point [m], as with a hand. Assign `grip.target` [m] where
        the hand is to go, as often as you like; steps then move the body after it, until `grip.release()`.

        An elastic body is pulled by a spring to its particles within `radius` [m] of the one nearest to the point (None
        takes as much of it as a hand would), which lifts it as well as it can be lifted and does not tear it. Fluids
        and sand, whichever was named, are stirred: what is within `radius` of the hand takes on its velocity. A wall is
        led by the hand, without turning, through whatever is there, and stays where it is released. The hand is no
        part of the state: `save` leaves it out.
        """
        self[body]  # or there is none, which is told  # noqa: B018
        name = body.name if isinstance(body, Body) else str(body)
        grip = take(self.world, self.scene.settings, self.elasticity, name, point, radius, self._let_go)
        self.grips.append(grip)
        self._step.forces.insert(0, grip)
        return grip

    def _let_go(self, grip: Grip) -> None:
        self.grips.remove(grip)
        self._step.forces.remove(grip)
        given = self._given_speed
        self.measure()  # the hand no longer explains the speeds that it gave
        self._given_speed = max(given, self._given_speed)

    def rebuild(self, saved: Checkpoint) -> None:
        """Makes all solvers anew, of the parameters that the scene has now, and goes on from a state of its own."""
        walls = self.world.walls.walls
        for wall in walls:
            material = next(b.material for b in self.scene.bodies if b.name == wall.name)
            wall.friction, wall.no_slip = material.friction, bool(material.no_slip)
        self._assemble(walls, saved, self.world.kept)
        for grip in self.grips:
            grip.bind(self.world, self.scene.settings, self.elasticity)
        self._step.forces[:0] = self.grips

    def _count(self) -> dict[str, tuple[int, int]]:
        """First and last id of each body's particles."""
        ends = np.cumsum([len(f.x) for f in self.fillings]).tolist()
        return {f.body.name: (end - len(f.x), end) for f, end in zip(self.fillings, ends, strict=True)}

    def _fill(self, particles: Particles) -> None:
        sizes = [len(f.x) for f in self.fillings]
        volume = np.repeat([f.volume_each for f in self.fillings], sizes)
        density = np.repeat([f.body.material.density for f in self.fillings], sizes)
        fixed = np.concatenate([assembly.fixed_mask(f.body, f.x) for f in self.fillings])
        particles.set("x", np.concatenate([f.x for f in self.fillings]))
        particles.set("v", np.repeat([np.asarray(f.body.velocity, dtype=float) for f in self.fillings], sizes, axis=0))
        particles.set("V", volume)
        particles.set("m", particles.numpy("V") * density)  # as `changes.weighed` has it, to the last bit
        particles.set("mobility", np.where(fixed, 0.0, 1.0 / density))
        particles.set("body", np.repeat(np.arange(len(sizes)), sizes))
        particles.set("id", np.arange(particles.n))

    def _pivots(self) -> np.ndarray:
        return np.array([f.x.mean(axis=0) if f.body.pivot is None else f.body.pivot for f in self.fillings])

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.world.time

    @property
    def stopped(self) -> bool:
        """Whether a callback asked to stop after the last step."""
        return self._stop

    @property
    def elasticity(self) -> Elasticity | None:
        """The solver of elastic bodies, if there are any."""
        return next((force for force in self._step.forces if isinstance(force, Elasticity)), None)

    @property
    def particles(self) -> int:
        """Number of particles."""
        return self.world.particles.n

    def measure(self) -> None:
        """Looks at all particles anew; needed after positions or velocities were changed from outside."""
        self._accept(math.inf, None)
        stored = self.elasticity.energy() / float(self.world.particles.numpy("m").sum()) if self.elasticity else 0.0
        self._given_speed = self._speed + math.sqrt(2 * max(stored, 0.0))

    def next_dt(self) -> float:
        """The step that the CFL condition, the forces and the bounds allow: dt (|v| + g dt) = cfl d."""
        s = self.scene.settings
        if s.dt is not None:
            return float(s.dt)
        g, d = float(np.linalg.norm(self.world.gravity)), s.cfl * self.scene.spacing
        for wall in self.world.walls.walls:
            wall.set_velocity(self.time)
        v = max(self._speed, self.world.walls.speed, self.prescribed.speed(self.time))
        dt = 2 * d / (v + math.sqrt(v * v + 4 * g * d)) if v + g > 0 else s.max_dt
        dt = min(dt, s.max_dt, *(force.longest_step() for force in self._step.forces))
        if self._free_dt:
            dt = min(dt, s.growth * self._free_dt)
        return max(dt, s.min_dt)

    def step(self, dt: float | None = None) -> None:
        """Moves on by one time step (`dt` [s] overrides the adaptive one)."""
        if dt is not None:
            _finite("dt", dt)
        free = self.next_dt()
        self.dt = min(free, dt) if dt is not None else free
        if self.step_count == 0:
            _announce_compilation()
        limit = self._speed_limit()
        self.prescribed.apply(self.time, self.dt)
        self._step(self.dt, self._low, self._high)
        self._accept(limit, self.world.neighbors.order)
        self.world.time += self.dt
        self.step_count += 1
        self._free_dt = free if self.step_count > 1 else self.dt
        callbacks = (*self.scene.callbacks, *self.watchers)
        self._stop = any([callback(self) is False for callback in callbacks])  # a list: all are called

    def run(self, seconds: float) -> None:
        """Moves on by that much simulated time [s]."""
        _finite("seconds", seconds)
        self._until(self.time + seconds, self.time)

    def frames(self, seconds: float, fps: float = 60.0) -> Iterator[Frame]:
        """Yields a `Frame` for the state now and then after each 1/fps of simulated time."""
        _finite("seconds", seconds)
        _finite("fps", fps)
        yield Frame(self, 0)
        yield from self.frames_between(self.time, fps, range(1, max(round(seconds * fps), 1) + 1))

    def frames_between(self, start: float, fps: float, indices: range) -> Iterator[Frame]:
        """Yields the frames of these indices, where frame k is due at start + k / fps [s]. Wherever it begins, even in
        the middle of a frame, the steps are those of one uninterrupted run."""
        for k in indices:
            if not self._until(start + k / fps, start + (k - 1) / fps):
                return
            yield Frame(self, k)
            if self._stop:
                return

    def _until(self, end: float, begun: float) -> bool:
        """Steps until `end`, in even steps towards it. False when a callback asked to stop before."""
        self._stop = False
        while end - self.time > LEAST_FRAME_SHARE * (end - begun):
            left = end - self.time
            steps = max(math.ceil(left / self.next_dt() - 1e-9), 1)
            self.step(left / steps if steps <= 2 else None)
            if self._stop and end - self.time > LEAST_FRAME_SHARE * (end - begun):
                return False
        self.world.time = end
        return True

    def _accept(self, limit: float, order: ti.Ndarray | None) -> None:
        """The guard: keeps a copy of a state that is sound; otherwise puts the last such copy back and says where it
        broke down. `order` is that of the sort since then, if there was one."""
        p = self.world.particles
        low, high, speed, bad = self._extent.measure(p.n, p.x, p.v)
        if bad or not math.isfinite(speed) or speed > limit:
            broken = self._broken(limit)
            self._restore(order)
            raise SimulationError(self._blame(broken))
        self._low, self._high, self._speed = low, high, speed
        for name, copy in self._good.items():
            copy.copy_from(getattr(p, name))
        self._good_places = [(wall.shift, wall.rotation) for wall in self.world.walls.walls]

    def _speed_limit(self) -> float:
        """Speeds that nothing can explain: not a fall (so far, or through the whole scene), the walls, the wind, or the
        speeds that particles were given or are led at."""
        g, size = float(np.linalg.norm(self.world.gravity)), float(np.linalg.norm(self._high - self._low))
        fall = max(math.sqrt(2 * g * size), g * self.time)
        led = self._speed if self.prescribed.active else 0.0
        slowest = SHORTEST * self.scene.spacing / self.scene.settings.min_dt
        blown = sum(force.speed for force in self._step.forces)
        return max(EXPLOSION * (fall + blown + self.world.walls.speed + self._given_speed + led), slowest)

    def _broken(self, limit: float) -> np.ndarray:
        """Which particles are nowhere, or faster than the limit."""
        x, v = (self.world.particles.numpy(name).astype(float) for name in ("x", "v"))
        speed = np.sqrt((v**2).sum(axis=1))
        return ~np.isfinite(x).all(axis=1) | ~(speed <= min(limit, FASTEST))

    def _blame(self, broken: np.ndarray) -> str:
        """One sentence on particles that broke down, after the last good state was put back."""
        p = self.world.particles
        first = int(np.argmax(broken))
        body, before = self.fillings[int(p.numpy("body")[first])].body.name, p.numpy("x")[first]
        return (
            f"the simulation broke down at t = {self.time:.4g} s: {int(broken.sum()):,} particles, first in {body!r} "
            f"near ({before[0]:.3g}, {before[1]:.3g}, {before[2]:.3g}); the state is that of the last good step. "
            f"Try a smaller max_dt (now {self.scene.settings.max_dt:g} s), a lower viscosity or stiffness, or look "
            "for bodies that are squeezed with no way out."
        )

    def _restore(self, order: ti.Ndarray | None) -> None:
        """Puts particles and walls back to the last good state."""
        p = self.world.particles
        if order is None:
            for name, copy in self._good.items():
                getattr(p, name).copy_from(copy)
        else:
            p.reorder_from(order, self._good)
            if self.grains is not None:
                self.grains.undo()
        for wall, (shift, rotation) in zip(self.world.walls.walls, self._good_places, strict=True):
            wall.shift, wall.rotation = shift, rotation

    def __getitem__(self, body: Body | str) -> Any:
        name = body.name if isinstance(body, Body) else str(body)
        if name in self._ranges:
            return BodyView(self, name, *self._ranges[name])
        for wall in self.world.walls.walls:
            if wall.name == name:
                return WallView(wall, next(b for b in self.scene.bodies if b.name == name))
        raise PliantError(unknown_name("body", str(name), [b.name for b in self.scene.bodies]))

    def save(self, path: str | Path) -> None:
        """Writes the whole state to one file; `pliant.load` goes on from it exactly, to the last bit on the CPU."""
        checkpoint.capture(self)(path)

    @property
    def stats(self) -> Stats:
        """Numbers of the last step: seconds by stage, iterations, density errors, momentum, energy."""
        return Stats.of(self)


def load(path: str | Path, scene: Scene | None = None, backend: str = "cpu") -> Simulation:
    """The simulation that `sim.save` wrote, to go on with.

    `scene` is needed only where functions belong to it, motions or callbacks, which no file can hold: make it again
    as it was. Which particles are fixed is part of the state.
    """
    saved = checkpoint.read(path)
    return Simulation(saved.live_scene(scene), backend, saved)


def _finite(name: str, value: Any) -> None:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise PliantError(f"{name} must be a positive number, got {value!r}")


def _announce_compilation() -> None:
    """A cold compile takes a while; it is announced once for each version of the code."""
    source = Path(__file__).parents[1]
    stamp = hashlib.sha256("".join(f"{p.name}{p.stat().st_mtime_ns}" for p in sorted(source.rglob("*.py"))).encode())
    marker = cache_folder() / f"compiled-{stamp.hexdigest()[:16]}"
    if not marker.exists():
        console.print("Compiling kernels for this machine (once, some ten seconds) ...")
        try:
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.write_text(time.strftime("%F %T"))
        except OSError:
            return

