"""A running scene: the clock, the frames and the guard. The physics is in `pliant.solvers`."""

import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from pliant.boundary.wall import Wall
from pliant.core import backend
from pliant.core.cache import cache_folder
from pliant.core.console import console, say
from pliant.core.reduce import Extent
from pliant.core.registry import load_plugins
from pliant.core.smoothing import smoothing
from pliant.core.store import Store
from pliant.errors import PliantError, SimulationError, broken_down, unknown_name
from pliant.render.vulkan import describe_gpu
from pliant.run.frames import Canvas, Frame
from pliant.scene import assembly, changes
from pliant.scene.scene import Body, Scene
from pliant.sim import building, checkpoint
from pliant.sim.checkpoint import Checkpoint
from pliant.sim.rigid_views import JointView, RigidView
from pliant.sim.robot_views import RobotView
from pliant.sim.stats import Stats
from pliant.sim.views import BodyView, ProbeView, SourceView, StoreView, WallView
from pliant.solvers.births.options import Source
from pliant.solvers.births.sources import Sources
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.interaction.grab import take
from pliant.solvers.interaction.grip import Grip
from pliant.solvers.pressure.base import PressureSolver
from pliant.solvers.probes.options import Probe
from pliant.solvers.probes.probes import Probes
from pliant.solvers.rigid.options import Joint
from pliant.solvers.robots.options import Robot
from pliant.solvers.robots.store import Robots
from pliant.solvers.stage import SolveResult, Stage, wanted_stages
from pliant.solvers.step import Step

LEAST_FRAME_SHARE = 1e-6  # a rest of a frame shorter than this share of it counts as round-off
FASTEST = 1.8e19  # [m/s]: beyond, the square of a speed overflows single precision
SHORTEST = 4e-3  # of a spacing: below the speed that moves a particle by this in the shortest step, nothing explodes
EXPLOSION = 100.0  # times the speed that gravity, walls and initial velocities can explain


class Simulation:
    """What `scene.build` returns. `step`, `run` and `frames` move time on; `sim[body]` reads and writes particles."""

    def __init__(self, scene: Scene, backend_name: str | None = None, saved: Checkpoint | None = None,
                 quiet: bool = False):  # fmt: skip
        _start(backend_name)
        load_plugins()
        self.scene, self._quiet = scene, quiet
        self.notes: list[str] = []
        self.step_count, self.dt = 0, 0.0
        self._notes_seen = 0  # of those of the stages
        self._stop = False  # a callback's wish to end `run` or `frames`
        self.watchers: list[Callable[[Any], Any]] = []  # callbacks of whoever runs it, not part of the scene
        self.grips: list[Grip] = []  # of `grab`, until they are released
        self.canvas = Canvas(self)
        self._given_speed = 0.0  # [m/s] that particles have from outside: see speed_limit
        self._free_dt = 0.0  # the last step that was not cut short to end on a frame
        w = smoothing(scene.settings.smoothing)
        self.samples = assembly.fill_bodies(scene, self.notes) if saved is None else saved.samples(scene)
        for body in scene.bodies:
            self.notes += [f"{body.name}: {sentence}" for sentence in body.shape.warnings()]
        maps: dict[str, Any] = {}
        walls = [assembly.build_wall(b, scene.spacing, w, maps, scene.has_particles) for b in scene.bodies
                 if b.material.is_wall]  # fmt: skip
        self._assemble(walls, saved, {})
        if saved is None:  # otherwise they were told before it was saved
            self._tell(self.notes)
        self.collect_notes()

    # --- making it --------------------------------------------------------------------------------------

    def _assemble(self, walls: list[Wall], saved: Checkpoint | None, cache: dict[str, list]) -> None:
        """Makes the stores and what moves them, at the start or as they were when the state was saved."""
        scene, settings = self.scene, self.scene.settings
        materials = [body.material for body in scene.bodies]
        self.samples = [dataclasses.replace(s, material=m) for s, m in zip(self.samples, materials, strict=True)]
        kinds = wanted_stages(materials, settings)
        self.world = building.make_world(scene, self.samples, walls, kinds, cache)
        if saved is None:
            building.fill_world(self.world, self.samples)
        else:
            checkpoint.restore(saved, self)
        self.prescribed = building.make_prescribed(self.world, scene, self.samples)
        self.pressure: PressureSolver = settings.pressure.solver(self.world)
        self._step = Step(self.world, self.pressure, [self.prescribed, *(kind(self.world, settings) for kind in kinds)])
        self._extent = Extent()
        if saved is not None:
            checkpoint.restore_stages(saved, self)
            given = self._given_speed
        self.measure()
        if saved is not None:
            self._given_speed = given

    @property
    def volumes(self) -> dict[str, float]:
        """Volume of a particle of each body [m^3]."""
        return {samples.name: samples.volume_each for samples in self.samples}

    # --- changing it ------------------------------------------------------------------------------------

    def collect_notes(self) -> None:
        """Adds what the solvers have noticed since to `notes`, and prints it unless the simulation is to be quiet."""
        found = self._step.notes
        new, self._notes_seen = [note for note in found if note not in self.notes], len(found)
        self.notes += new
        self._tell(new)

    def _tell(self, notes: list[str]) -> None:
        for note in notes if not self._quiet else ():
            say(note)

    def change(self, body: Body | Source | Joint | str | None = None, **values: Any) -> None:
        """Changes parameters from the next step on: `sim.change(gravity=(0, 0, 0))` those of the scene,
        `sim.change(duck, young=1e5)` those of the material of a body, `sim.change(tap, velocity=(0, -3, 0))` those of
        an emitter, `sim.change(door, speed=2.0)` those of a joint. Everything else stays as it is.

        Parameters have the units and ranges that `Scene` and the materials give them. Those that say where particles
        are (particle_radius, smoothing, periodic, inside_out, grains) cannot change.
        """
        changes.apply(self, body, values)

    def grab(self, body: Body | str, point: Any, radius: float | None = None) -> Grip:
        """Takes hold of a body, or of that of this name, at a point [m], as with a hand. Assign `grip.target` [m] where
        the hand is to go, as often as you like; steps then move the body after it, until `grip.release()`.

        An elastic body is pulled by a spring to its particles within `radius` [m] of the one nearest to the point (None
        takes as much of it as a hand would), which lifts it as well as it can be lifted and does not tear it. A rigid
        body is pulled at the point, hangs from it, and flies on when it is released. Fluids and sand, whichever was
        named, are stirred: what is within `radius` of the hand takes on its velocity. A wall, or a rigid body that is
        fixed, is led by the hand, without turning, through whatever is there, and stays where it is released. The hand
        is no part of the state: `save` leaves it out.
        """
        self[body]  # or there is none, which is told  # noqa: B018
        name = body.name if isinstance(body, Body) else str(body)
        grip = take(self.world, self.scene.settings, self.elasticity, name, point, radius, self._let_go)
        self.grips.append(grip)
        self._step.insert(grip)
        return grip

    def _let_go(self, grip: Grip) -> None:
        self.grips.remove(grip)
        self._step.remove(grip)
        given = self._given_speed
        self.measure()  # the hand no longer explains the speeds that it gave
        self._given_speed = max(given, self._given_speed)

    def rebuild(self, saved: Checkpoint) -> None:
        """Makes all solvers anew, of the parameters that the scene has now, and goes on from a state of its own."""
        walls = self.world.walls.walls
        for wall in walls:
            for name, value in assembly.wall_values(self.scene.body(wall.name)).items():
                setattr(wall, name, value)
        self._assemble(walls, saved, self.world.cache)
        for grip in self.grips:
            grip.bind(self.world, self.scene.settings, self.elasticity)
            self._step.insert(grip)
        self.collect_notes()

    def add_particles(self, body: int, x: np.ndarray, v: np.ndarray) -> None:
        """Adds particles of a body, by its number, at places x (n, 3) [m] with velocities v (n, 3) [m/s]."""
        self.world.add_particles(body, x, v)
        self._members_changed()
        self.measure()

    def remove_particles(self, rows: np.ndarray) -> None:
        """Takes particles out, by their rows."""
        self.world.remove_particles(rows)
        self._members_changed()
        self.measure()

    def _members_changed(self) -> None:
        """Lets everybody know that particles have come or gone: grips last, which hold on to what the others move."""
        others = [stage for stage in self.stages if stage not in self.grips]
        for stage in (*others, *self.grips):
            stage.members_changed()

    # --- what there is ----------------------------------------------------------------------------------

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
        return next((stage for stage in self.stages if isinstance(stage, Elasticity)), None)

    @property
    def particles(self) -> int:
        """Number of particles."""
        return self.world.particles.n

    @property
    def stages(self) -> list[Stage]:
        """The stages of a step, in their order."""
        return self._step.stages

    def stage(self, name: str) -> Stage:
        """One of them by name."""
        found = next((stage for stage in self.stages if stage.name == name), None)
        if found is None:
            raise PliantError(unknown_name("stage", name, [stage.name for stage in self.stages]))
        return found

    @property
    def stores(self) -> dict[str, Store]:
        """All that has a state, by name: particles, walls, and what else this scene has."""
        return self.world.stores

    @property
    def seconds(self) -> dict[str, float]:
        """Wall-clock time of the last step by stage [s]."""
        return self._step.seconds

    @property
    def results(self) -> dict[str, SolveResult]:
        """How the solves of the last step ended, by name."""
        return self._step.results

    @results.setter
    def results(self, results: dict[str, SolveResult]) -> None:
        self._step.loaded = results

    @property
    def clock(self) -> dict[str, Any]:
        """Everything that decides on the next step beside the stores, as plain values."""
        return {"time": self.time, "step": self.step_count, "dt": self.dt, "free_dt": self._free_dt,
                "given_speed": self._given_speed}  # fmt: skip

    @clock.setter
    def clock(self, state: dict[str, Any]) -> None:
        self.world.time, self.step_count, self.dt = state["time"], state["step"], state["dt"]
        self._free_dt, self._given_speed = state["free_dt"], state["given_speed"]

    def __getitem__(self, body: Body | Source | Probe | Joint | str) -> Any:
        name = body.name if isinstance(body, (Body, Source, Probe, Joint, Robot)) else str(body)
        number = self.world.body_number(name)
        if number is not None:
            return BodyView(self, number)
        for wall in self.world.walls.walls:
            if wall.name == name:
                body = self.scene.body(name)
                return RigidView(self, wall, body) if body.material.free else WallView(wall, body)
        for store in self.world.stores.values():
            if name in store.names:
                if isinstance(store, Probes):
                    return ProbeView(store.recorders[name])
                if isinstance(store, Robots):
                    return RobotView(self, store.robot(name))
                return SourceView(store, name) if isinstance(store, Sources) else StoreView(store, name)
        settings = self.scene.settings
        for joint in settings.joints:
            if joint.name == name:
                return JointView(self, joint)
        known = [one.name for one in (*self.scene.bodies, *settings.sources, *settings.probes, *settings.joints,
                                      *settings.robots)]  # fmt: skip
        raise PliantError(unknown_name("body", str(name), dict.fromkeys(known)))

    def save(self, path: str | Path) -> None:
        """Writes the whole state to one file; `pliant.load` goes on from it exactly, to the last bit on the CPU."""
        checkpoint.capture(self)(path)

    @property
    def stats(self) -> Stats:
        """Numbers of the last step: seconds by stage, iterations, density errors, momentum, energy."""
        return Stats.of(self)

    # --- moving on --------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Looks at all particles anew; needed after positions or velocities were changed from outside."""
        self._accept(math.inf)
        energy = self.elasticity.energy() if self.elasticity else 0.0
        mass = float(self.world.particles.numpy("m").sum()) if energy > 0 else 1.0
        self._given_speed = self._speed + math.sqrt(2 * max(energy / mass, 0.0))

    def find_neighbors(self) -> None:
        """Finds neighbors, densities and what walls add to these for the particles where they are now, as a step does
        at its beginning. Nothing moves."""
        self.measure()
        self.world.neighbors.update(self.world.low, self.world.high)
        self.world.walls.sample(self.time)
        self._accept(math.inf)

    def next_dt(self) -> float:
        """The step that the CFL condition, the forces and the bounds allow: dt (|v| + g dt) = cfl d."""
        s = self.scene.settings
        if s.dt is not None:
            return float(s.dt)
        g, d = float(np.linalg.norm(self.world.gravity)), s.cfl * self.scene.spacing
        for wall in self.world.walls.walls:
            wall.set_velocity(self.time)
        v = max(self._speed, self.world.walls.speed, self.prescribed.fastest(self.time))
        dt = 2 * d / (v + math.sqrt(v * v + 4 * g * d)) if v + g > 0 else s.max_dt
        with self._threads():
            dt = min(dt, s.max_dt, self._step.max_dt())
        if self._free_dt:
            dt = min(dt, s.growth * self._free_dt)
        return max(dt, s.min_dt)

    def step(self, dt: float | None = None) -> None:
        """Moves on by one time step (`dt` [s] overrides the adaptive one)."""
        if dt is not None:
            _finite("dt", dt)
        self._move(dt, self.next_dt())

    def _move(self, dt: float | None, free: float) -> None:
        """One step of dt [s], or of what is `free` to be chosen."""
        self.dt = min(free, dt) if dt is not None else free
        if self.step_count == 0:
            _announce_compilation()
        with self._threads():
            self._births()
        with self._threads():
            self._move_on()
        self.world.time += self.dt
        self.step_count += 1
        self._free_dt = free if self.step_count > 1 else self.dt
        callbacks = (*self.scene.callbacks, *self.watchers)
        self._stop = any([callback(self) is False for callback in callbacks])  # a list: all are called

    def _move_on(self) -> None:
        """One step of what is there, and a look at what has become of it."""
        limit = self.speed_limit()
        try:
            self._step(self.dt)
        except Exception:  # a function of the user's, or memory: nothing of this step remains
            self._rollback()
            raise
        self._accept(limit)

    def _threads(self) -> AbstractContextManager[None]:
        """One thread works where that is faster than to share out little: by what all stores have together."""
        return backend.threads_for(sum(getattr(store, "n", 0) for store in self.stores.values()))

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
            left, free = end - self.time, self.next_dt()
            steps = max(math.ceil(left / free - 1e-9), 1)
            self._move(left / steps if steps <= 2 else None, free)
            if self._stop and end - self.time > LEAST_FRAME_SHARE * (end - begun):
                return False
        self.world.time = end
        return True

    def _births(self) -> None:
        """Particles come and go before the state is what the step starts from."""
        before = [store.version for store in self.stores.values()]
        self._step.births(self.dt)
        if before != [store.version for store in self.stores.values()]:
            self._members_changed()
            self._accept(math.inf)
        if len(self._step.notes) > self._notes_seen:
            self.collect_notes()

    def _accept(self, limit: float) -> None:
        """The guard: keeps a copy of a state that is sound; otherwise puts the last such copy back and says where it
        broke down."""
        p = self.world.particles
        low, high, speed, bad = self._extent.measure(p.n, p.x, p.v)
        if bad or not math.isfinite(speed) or speed > limit:
            broken = self._broken(limit)
            self._rollback()
            raise SimulationError(self._blame(broken))
        for trouble in filter(None, (store.trouble() for store in self.world.stores.values())):
            self._rollback()
            raise SimulationError(broken_down(self.time, trouble))
        self.world.low, self.world.high, self._speed = low, high, speed
        for store in self.world.stores.values():
            store.backup()
        self._remembered = [(stage, stage.save()) for stage in self.stages]

    def _rollback(self) -> None:
        """Puts everything back to the last good state."""
        for store in self.world.stores.values():
            store.rollback()
        for stage, kept in self._remembered:
            if kept:
                stage.restore(kept)

    def speed_limit(self) -> float:
        """Speeds that nothing can explain: not a fall (so far, or through the whole scene), the walls, the wind, or the
        speeds that particles were given or are led at."""
        g, size = float(np.linalg.norm(self.world.gravity)), float(np.linalg.norm(self.world.high - self.world.low))
        fall = max(math.sqrt(2 * g * size), g * self.time)
        led = self._speed if self.prescribed.active else 0.0
        slowest = SHORTEST * self.scene.spacing / self.scene.settings.min_dt
        blown = sum(stage.speed for stage in self.stages)
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
        body, before = p.bodies[int(p.numpy("body")[first])], p.numpy("x")[first]
        return (
            f"the simulation broke down at t = {self.time:.4g} s: {int(broken.sum()):,} particles, first in {body!r} "
            f"near ({before[0]:.3g}, {before[1]:.3g}, {before[2]:.3g}); the state is that of the last good step. "
            f"Try a smaller max_dt (now {self.scene.settings.max_dt:g} s), a lower viscosity or stiffness, or look "
            "for bodies that are squeezed with no way out."
        )


def load(path: str | Path, scene: Scene | None = None, backend: str | None = None) -> Simulation:
    """The simulation that `sim.save` wrote, to go on with.

    `scene` is needed only where functions belong to it, motions or callbacks, which no file can hold: make it again
    as it was. Which particles are fixed is part of the state. `backend` as for `Scene.build`.
    """
    saved = checkpoint.read(path)
    return Simulation(saved.live_scene(scene), backend, saved)


def _finite(name: str, value: Any) -> None:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise PliantError(f"{name} must be a positive number, got {value!r}")


def _start(name: str | None) -> None:
    """Starts the backend, and tells once which one "gpu" is."""
    running, name = backend.started(), name or backend.usual()
    backend.start(name)
    if name == "gpu" and running is None:
        say(f"backend 'gpu' is {describe_gpu(str(backend.started()))}.")


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
