"""A scene: what there is before time begins. Everything wrong with it is told at once, before any work."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.boundary.wall import FASTEST, FASTEST_SPIN
from pliant.core.backend import SHARE_OF_MEMORY, available_memory
from pliant.core.options import Options, param, positive
from pliant.core.particles import BYTES_EACH
from pliant.core.smoothing import SMOOTHINGS, SPACINGS_PER_SUPPORT
from pliant.errors import PliantError, SceneError, SimulationError, unknown_name
from pliant.geometry import METHODS, Empty, MassProperties, Shape, estimate_count
from pliant.materials import Air, Material
from pliant.render import Camera, CameraPath, Light, Look, Orbit
from pliant.render.colors import COLOR_MAPS
from pliant.scene import joints, probes, robots, sources
from pliant.solvers.births.options import Drain
from pliant.solvers.elasticity import ElasticityOptions, Split
from pliant.solvers.pressure.base import PressureOptions
from pliant.solvers.pressure.dfsph import DFSPH
from pliant.solvers.probes.options import Probe
from pliant.solvers.robots.options import Robot

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

BYTES_PER_ELASTIC = 1024  # more for each elastic particle, its matrix apart
BYTES_PER_STANDING = 256  # more for each particle that bears shear stress as sand does
BYTES_PER_GRAIN = 80  # its state twice, and a copy for a frame
BYTES_PER_WALL_BLOCK = 35_000  # of a volume map while it is built: about two blocks of 10^3 nodes lie on the surface,
BYTES_PER_BLOCK = 100  # and of every block of four spacings in its bounds it is asked whether it does
FARTHEST = 1e6  # in spacings from the origin: there, positions in single precision are good to 6 % of a spacing
ROUGHEST = 100.0  # coefficient of friction
FILE_NAME = re.compile(r"\w[\w .+-]{0,99}")
LONGEST_NAME = 200  # bytes: file systems allow 255, and a number and an ending come behind it
NUMBERED = re.compile(r"(.+?)((_surface|_skin|_grains)?_\d{4,}|_surface|_skin|_grains)")  # files of a body are named so
LEAST_PERIOD = 3  # in supports: fewer, and a particle would meet two images of the same neighbor


class Settings(Options):
    """Settings of a whole scene."""

    particle_radius: float = param(0.02, "radius r of a particle; spacing 2r, support 4r", "m", low=1e-9, high=1e4)
    gravity: tuple = param((0.0, -9.81, 0.0), "acceleration of gravity; y is up", "m/s^2", kind="vector", low=-1e6,
                           high=1e6)  # fmt: skip
    pressure: Any = param(DFSPH(), "pressure solver", kind="any")
    elasticity: Any = param(Split(), "solver of elastic solids", kind="any")
    air: Any = param(None, "the air, which drags on what flows: pl.Air(...); None leaves it out", kind="any")
    dt: Any = positive(None, "fixed time step; None adapts it to the CFL condition", "s", high=1.0, optional=True)
    cfl: float = positive(0.4, "share of a particle diameter that the fastest particle moves in a step", "1", high=1.0,
                          source="Monaghan 1992")  # fmt: skip
    min_dt: float = positive(1e-6, "shortest adaptive time step", "s", high=1.0)
    max_dt: float = positive(5e-3, "longest adaptive time step", "s", high=1.0)
    growth: float = param(1.2, "largest growth of the time step from one step to the next", "1", low=1.0, high=10.0)
    smoothing: str = param("cubic_spline", "smoothing function", choices=tuple(SMOOTHINGS))
    periodic: tuple = param((None, None, None), "period along each axis, None where there is none; the domain then "
                            "starts at 0", "m", kind="any")  # fmt: skip
    sources: tuple = param((), "by which particles come and go: `scene.emit` and `scene.drain` make them", kind="any")
    probes: tuple = param((), "what is measured and recorded: `scene.probe` makes them", kind="any")
    joints: tuple = param((), "what holds rigid bodies together: `scene.hinge`, `ball` and others make them",
                          kind="any")  # fmt: skip
    robots: tuple = param((), "mechanisms that MuJoCo moves: `scene.add(pl.Robot(...))` adds them", kind="any")
    frictions: tuple = param((), "Coulomb coefficients of pairs of bodies, (name, name, coefficient): `scene.friction` "
                             "makes them", "1", kind="any")  # fmt: skip

    def problems(self) -> list[str]:
        found = [sentence.replace("Settings", "Scene") for sentence in super().problems()]
        if not isinstance(self.pressure, PressureOptions):
            found.append(f"Scene: pressure must be a pressure solver such as pl.DFSPH(), got {self.pressure!r}")
        else:
            found += self.pressure.problems()
        if not isinstance(self.elasticity, ElasticityOptions):
            found.append(f"Scene: elasticity must be a solver such as pl.Split(), got {self.elasticity!r}")
        else:
            found += self.elasticity.problems()
        if isinstance(self.air, Air):
            found += self.air.problems()
        elif self.air is not None:
            found.append(f"Scene: air must be a pl.Air(...) or None, got {self.air!r}")
        if not found and self.dt is not None and self.dt > self.elasticity.step(self) * (1 + 1e-6):
            found.append(f"Scene: dt must not exceed dt_elastic, got {self.dt!r} and {self.elasticity.dt_elastic!r}")
        if not found and self.min_dt > self.max_dt:
            found.append(f"Scene: min_dt must not exceed max_dt, got {self.min_dt!r} and {self.max_dt!r}")
        return found + self._period_problems()

    def _period_problems(self) -> list[str]:
        try:
            periods = [None if p is None else float(p) for p in self.periodic if not isinstance(p, str)]
            good = len(periods) == 3 and all(p is None or np.isfinite(p) for p in periods)
        except (TypeError, ValueError):
            good, periods = False, []
        if not good:
            return [f"Scene: periodic must hold a length or None for each of the three axes, got {self.periodic!r}"]
        if any("particle_radius must" in sentence for sentence in super().problems()):
            return []
        d = 2 * self.particle_radius
        shortest, longest = LEAST_PERIOD * SPACINGS_PER_SUPPORT * d, FARTHEST * d
        return [
            f"Scene: a period must be at least {shortest:g} m ({shortest / self.particle_radius:g} particle radii) and "
            f"at most {longest:g} m, got {p:g}"
            for p in periods
            if p is not None and not shortest * (1 - 1e-6) <= p <= longest
        ]


class Body:
    """What `scene.add` returns: the handle of one body."""

    def __init__(self, name: str, shape: Any, material: Any, velocity: Any, colors: str = "water", shown: Any = None,
                 particle_radius: Any = None, sampling: str | None = None,
                 spin: Any = None):  # fmt: skip
        # as the user gave them: see `problems`
        self.name, self.shape, self.material, self.velocity, self.spin = name, shape, material, velocity, spin
        self.colors, self.shown, self.particle_radius, self.sampling = colors, shown, particle_radius, sampling
        self.fixed: Any = None
        self.motion: Callable[[float], Any] | None = None
        self.pivot: Any = None
        self.tinted = False  # whether its colour map was chosen

    def fix(self, mask: Any = True) -> "Body":
        """Holds particles in place: `mask` is a function of the rest positions (n, 3), an array, or True for all. A
        rigid body is held as a whole."""
        self.fixed = mask
        return self

    def move(self, motion: Callable[[float], Any], pivot: Any = None) -> "Body":
        """Moves a wall, a rigid body, or the fixed particles of a body, at the velocity `motion(t)` [m/s].

        The function may also return a pair of velocity and angular velocity [rad/s] about `pivot`
        (by default the middle of the body), which moves along. A rigid body turns about its centre of mass.
        """
        self.motion, self.pivot = self._guarded(motion) if callable(motion) else motion, pivot
        return self

    def _guarded(self, motion: Callable[[float], Any]) -> Callable[[float], Any]:
        """The user's own function: whatever it raises, or returns that is no velocity, becomes one sentence."""
        from pliant.boundary.wall import rigid_velocity

        def velocity(t: float) -> Any:
            try:
                return rigid_velocity(motion(t))
            except Exception as error:
                raise SimulationError(f"{self.name}: its motion fails at t = {t:g} s: {error}") from error

        return velocity

    @property
    def particles(self) -> int | None:
        """How many particles its shape asks for."""
        return self.shape.wanted_particles() if isinstance(self.shape, Shape) else None

    @property
    def spacing_by_count(self) -> float | None:
        """Distance of so many particles at rest [m], if the mesh is sound and to be filled."""
        if self.particles is None or self.shape.problems() or not getattr(self.material, "has_particles", False):
            return None
        return float((self.shape.volume() / self.particles) ** (1 / 3))

    def mass_properties(self) -> MassProperties:
        """Of its shape, which has to enclose a volume."""
        try:
            found = self.shape.mass_properties()
        except PliantError as error:
            raise SceneError([f"{self.name}: its shape encloses no volume, so that it has no mass"]) from error
        if not np.linalg.eigvalsh(found.inertia)[0] > 0.0:
            raise SceneError([f"{self.name}: its shape is too thin to have an inertia; make it thicker"])
        return found

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong with this body."""
        if isinstance(self.shape, Material) and isinstance(self.material, Shape):
            return [f"{self.name}: add takes first the shape and then the material, got them the other way round"]
        shape = self.shape.problems() if isinstance(self.shape, Shape) else [
            f"the first argument of add must be a shape such as pl.Box(...), got {self.shape!r}"]  # fmt: skip
        material = self.material.problems() if isinstance(self.material, Material) else [
            f"the second argument of add must be a material such as pl.Fluid(...), got {self.material!r}"]  # fmt: skip
        found = shape + material + ([] if material else self._rigid_problems())
        if isinstance(self.shape, Empty) and not material and not self.material.fluid_like:
            found.append(f"{type(self.material).__name__} needs a shape; only fluids and sand can begin as nothing")
        if isinstance(self.shown, Shape):
            shown = self.shown.problems()
            if not shown and not np.isfinite(self.shown.bounds()).all():
                shown = [f"what is shown must be finite, got {type(self.shown).__name__}"]
            if not material and not self.material.is_wall and not self.material.elastic:
                shown.append("shown belongs to walls and elastic bodies; other particles are shown as these")
            elif not (shown or shape or material or self.material.is_wall) and _apart(self.shape, self.shown):
                shown.append("what is shown of an elastic body must lie where the body is, not apart from it")
            found += shown
        elif self.shown is not None:
            found.append(f"shown must be a shape such as pl.Mesh(...) or None, got {self.shown!r}")
        if not is_vector(self.velocity, FASTEST):
            found.append(f"velocity must be three numbers within {FASTEST:g} m/s, got {self.velocity!r}")
        if self.pivot is not None and not is_vector(self.pivot):
            found.append(f"pivot must be three finite numbers or None, got {self.pivot!r}")
        if self.motion is not None:
            found += self._motion_problems()
        if not material and self.material.is_wall and (self.sampling or self.particles):
            found.append("a wall has no particles; leave out their number and sampling")
        if not shape and not material and not self.material.is_wall and not np.isfinite(self.shape.bounds()).all():
            found.append(f"{type(self.shape).__name__} is infinite and cannot be filled with particles; use it as a "
                         "pl.Boundary, or cut a block out of it with & pl.Box(...)")  # fmt: skip
        return [f"{self.name}: {sentence}" for sentence in found]

    def _rigid_problems(self) -> list[str]:
        """What is wrong with what only rigid bodies have, or with what they cannot have."""
        if not self.material.free:
            wrong = f"only rigid bodies, pl.Rigid(...), have a spin at the start, got {self.spin!r}"
            return [] if self.spin is None else [wrong]
        found = []
        if self.spin is not None and not is_vector(self.spin, FASTEST_SPIN):
            found.append(f"spin must be three numbers within {FASTEST_SPIN:g} rad/s, got {self.spin!r}")
        if self.fixed is not None and not isinstance(self.fixed, (bool, np.bool_)):
            found.append("a rigid body is held as a whole: fix() takes no mask")
        if self.pivot is not None:
            found.append("a rigid body is moved about its centre of mass; leave out the pivot")
        if isinstance(self.shape, Shape) and not self.shape.problems() and not np.isfinite(self.shape.bounds()).all():
            found.append(f"{type(self.shape).__name__} is infinite and has no mass; use it as a pl.Boundary, or cut a "
                         "block out of it with & pl.Box(...)")  # fmt: skip
        return found

    def _motion_problems(self) -> list[str]:
        if not callable(self.motion):
            return [f"move needs a function of time, got {self.motion!r}"]
        try:
            self.motion(0.0)
        except SimulationError as error:
            return [str(error).removeprefix(f"{self.name}: ")]
        return []


def _can_move(body: Body) -> bool:
    """Whether a body has particles at the start or is rigid, as far as it is sound."""
    sound = isinstance(body.material, Material)
    if not sound or body.material.free or body.material.driven:
        return True
    return body.material.has_particles and not isinstance(body.shape, Empty)


def _apart(one: Shape, other: Shape) -> bool:
    """Whether the boxes around two shapes do not touch."""
    (low, high), (bottom, top) = one.bounds(), other.bounds()
    return bool(((low > top) | (high < bottom)).any())


def is_vector(value: Any, limit: float = np.inf) -> bool:
    """Whether it is three finite numbers, none beyond the limit."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return False
    if array.shape != (3,) or array.dtype.kind not in "iuf":
        return False
    return bool((np.isfinite(array) & (np.abs(array) <= limit)).all())


class Scene(joints.Joining):
    """Bodies, walls and settings. `build` checks everything and makes it run.

    Takes the parameters of `Settings` by name: Scene(particle_radius=0.02, gravity=(0, -9.81, 0), ...).
    """

    def __init__(self, **settings: Any):
        self.settings = Settings(**settings)
        self._radius_given = "particle_radius" in settings
        self.bodies: list[Body] = []
        self.callbacks: list[Callable[[Any], Any]] = []
        self.camera: Any = None  # a pliant.Camera, Orbit or CameraPath; None frames the scene automatically
        self.lights: Any = None  # a list of pliant.Light, the first of which casts the shadows; None takes the usual
        self.look: Any = None  # a pliant.Look, how pictures look; None takes the usual
        self.source: Path | str | None = None
        self._problems: list[str] = []

    def add(self, shape: Shape | Robot | None, material: Material | None = None, name: str | None = None,
            velocity: Any = (0.0, 0.0, 0.0), colors: str | None = None, shown: Shape | None = None,
            particle_radius: float | None = None, sampling: str | None = None, spin: Any = None,
            **unknown: Any) -> Any:  # fmt: skip
        """Adds a body of that shape and material, moving at `velocity` [m/s] at the start, and a rigid body turning at
        `spin` [rad/s] about its centre of mass. None in place of the shape makes a body of fluid or sand without
        particles, for emitters to fill.

        `colors` names the colour map in which pictures show the speed of its particles; if it is not given, sand is
        drawn in "sand" and all else in "water"; to a wall or a rigid body it gives one colour. `shown` is the shape of
        a wall or an elastic body in pictures and exports, if it is not the one that acts: a fine mesh for a coarse one,
        or a part of it. That of an elastic body follows its particles.
        `particle_radius` [m] gives an elastic body finer particles than the scene's, down to half of theirs; so does
        `pl.Mesh(..., particles=...)`. `sampling` is how the shape is filled: "fitted" to its surface (Kugelstadt 2021,
        Section 7; usual for elastic bodies and for fluids in round containers), "regular" (usual for other fluids) or
        "blue_noise" (after Jiang 2015).

        A `pl.Robot(...)` alone adds a robot: a wall for each of its geoms. Returns a `Body`, or the `Robot`.
        """
        if isinstance(shape, Robot):
            given = {"material": material, "shown": shown, "particle_radius": particle_radius, "sampling": sampling,
                     "spin": spin, **unknown}  # fmt: skip
            return robots.add(self, shape, name, colors, [key for key, value in given.items() if value is not None])
        name = self.free_name(name, type(material).__name__.lower() if isinstance(material, Material) else "body")
        known = [p for p in inspect.signature(Scene.add).parameters if p not in ("self", "unknown")]
        self._problems += [f"{name}: add has no " + unknown_name("parameter", k, known)[8:] for k in unknown]
        tinted = colors is not None
        colors = getattr(material, "colors", "water") if colors is None else colors
        if colors not in COLOR_MAPS:
            self._problems.append(f"{name}: " + unknown_name("colour map", str(colors), COLOR_MAPS))
        if sampling is not None and sampling not in METHODS:
            self._problems.append(f"{name}: " + unknown_name("sampling", str(sampling), METHODS))
        shape = Empty() if shape is None else shape
        body = Body(name, shape, material, velocity, colors, shown, particle_radius, sampling, spin)
        body.tinted = tinted
        self.bodies.append(body)
        return body

    def emit(self, shape: Any, body: Any, velocity: Any = None, start: float = 0.0, stop: float | None = None,
             volume: float | None = None, at: Any = None, name: str | None = None, moves_with: Any = None,
             **more: Any) -> Any:  # fmt: skip
        """Lets particles come while the scene runs.

        With a nozzle (`pl.Disc`, `pl.Rectangle`, or a `pl.Face` of a mesh) a body of fluid or sand flows out of it, or
        a new one of that material: at `velocity` [m/s], three numbers or a function of time that returns them, from
        `start` until `stop` [s], or until that `volume` [m^3] has come. The flow is area times speed. The nozzle may
        move and turn with a wall (`moves_with`); its velocity is then relative to it. What blocks a nozzle is waited
        for. Returns an `Emitter`: `sim[emitter].volume`, `.rate`, `.waiting`.

        With a shape, a material and times `at=[0.0, 0.5, 1.0]` [s], whole bodies appear one after the other, called
        `name1`, `name2` and so on, at `velocity` [m/s]; `more` is what `add` takes. If something is in their place,
        they wait. Returns the list of bodies.
        """
        if at is not None:
            extra = {"velocity": (0.0, 0.0, 0.0) if velocity is None else velocity}
            given = {"start": start, "stop": stop, "volume": volume, "moves_with": moves_with}
            wrong = [k for k, v in given.items() if v is not None and (k, v) != ("start", 0.0)]
            if wrong or sources.is_nozzle(shape):
                self.note_problem(f"emit: with at=, whole bodies appear, which takes a shape to fill and no "
                                  f"{wrong[0] if wrong else 'nozzle'}")  # fmt: skip
                return []
            return sources.add_arrivals(self, shape, body, at, name, extra | more)
        known = [p for p in inspect.signature(Scene.emit).parameters if p not in ("self", "more")]
        for unknown in more:
            self.note_problem("emit has no " + unknown_name("parameter", unknown, known)[8:])
        values = {"velocity": (0.0, -1.0, 0.0) if velocity is None else velocity, "start": start, "stop": stop,
                  "volume": volume}  # fmt: skip
        return sources.add_emitter(self, shape, body, name, moves_with, values)

    def drain(self, shape: Any, name: str | None = None, moves_with: Any = None) -> Drain:
        """What enters the region `shape` is gone: fluids and sand particle by particle, elastic bodies as a whole once
        their centre of mass is in it. The region may move and turn with a wall. Returns a `Drain`: `sim[drain].volume`,
        `.rate`, `.count`."""
        return sources.add_drain(self, shape, name, moves_with)

    def probe(self, quantity: str, at: Any = None, on: Any = None, through: Any = None, of: Any = None,
              every: float | None = None, window: float | None = None, name: str | None = None,
              **unknown: Any) -> Probe:  # fmt: skip
        """Measures and records a quantity while the scene runs; nothing that happens depends on it.

        At points, `at=(x, y, z)` or a list of these [m]: "pressure" [Pa], "velocity" [m/s] and "density" [kg/m^3],
        each a mean over the particles within the support, weighted by V_j W (Shepard 1968; walls do not count), and
        "elevation" [m], how high the surface of the fluid stands over the point, against gravity: that of the highest
        layer of three particles or more, or of the lowest if all are thinner. Spray (less dense than half the rest
        density) does not count. Where nothing is near, no particle within about a spacing, pressure is 0 Pa, that of
        the air, and all else NaN. On a patch of a wall, `on=pl.Disc(...)` or
        `pl.Rectangle(...)`: the mean "pressure" [Pa], which is the normal force over the area, and the "force" (3,) [N]
        on it, friction included; it moves with the wall. Through a section, a Disc or Rectangle with a normal: "flow",
        volume [m^3/s] and mass [kg/s] per time, positive along the normal, and their totals [m^3], [kg].

        `of` is the body that is measured, at points and sections; all fluids and sand if not given. `every` [s] is the
        time between samples (every step if not given): each is taken after the first step that ends at a multiple of it
        or later, at that time, and no step is cut short for it. `window` [s] makes each the mean over so much time
        before it, with every step weighing as much as it is long. Returns a `Probe`: `sim[probe].times`, `.values` and
        `.value`, the last. Runs write `probes/<name>.csv` and `.npz`.
        """
        known = [p for p in inspect.signature(Scene.probe).parameters if p not in ("self", "unknown")]
        for key in unknown:
            self.note_problem("probe has no " + unknown_name("parameter", key, known)[8:])
        of = of.name if isinstance(of, Body) else of
        values = {"at": at, "on": on, "through": through, "of": of, "every": every, "window": window}
        return probes.add(self, quantity, self.free_name(name, "probe"), values)

    def friction(self, a: Any, b: Any, mu: float) -> None:
        """Coulomb's coefficient `mu` [1], 0 to 100, between two bodies or a body and a wall, in place of what their
        materials say; of a body with itself, if both are one."""
        names = tuple(one.name if isinstance(one, Body) else str(one) for one in (a, b))
        if isinstance(mu, bool) or not isinstance(mu, (int, float, np.number)) or not 0 <= mu <= ROUGHEST:
            self.note_problem(f"friction of {names[0]!r} on {names[1]!r} must be a number from 0 to {ROUGHEST:g}, got "
                              f"{mu!r}")  # fmt: skip
            return
        others = tuple(pair for pair in self.settings.frictions if frozenset(pair[:2]) != frozenset(names))
        self.settings = self.settings.replaced(frictions=(*others, (*names, float(mu))))

    def free_name(self, name: Any, kind: str) -> str:
        """A name for a new body, emitter, drain, probe or joint: the one that is wanted, with what is wrong with it
        noted, or one of its kind that nobody has."""
        s = self.settings
        taken = {one.name for one in (*self.bodies, *s.sources, *s.probes, *s.joints, *s.robots)}
        if name is None:
            return next(f"{kind}{k}" for k in range(1, len(taken) + 2) if f"{kind}{k}" not in taken)
        if not isinstance(name, str) or not FILE_NAME.fullmatch(name) or len(name.encode()) > LONGEST_NAME:
            self.note_problem("a name may hold up to 100 letters, digits, spaces and _ . + - (files bear it), got "
                              f"{name!r}")  # fmt: skip
        elif name in taken:
            word = "joint" if kind in joints.MAKERS else kind
            two = f"two {word}s, or a {word} and a body," if word in ("joint", "probe", "robot") else "two bodies"
            self.note_problem(f"{two} are called {name!r}; names must differ")
        elif name.casefold() in {other.casefold() for other in taken}:
            self.note_problem(f"{name!r} differs from another name in capitals only; to some file systems they are "
                              "one")  # fmt: skip
        return str(name)

    def note_problem(self, sentence: str) -> None:
        """Remembers something wrong, to be told with everything else when the scene is built."""
        self._problems.append(sentence)

    def body(self, name: str) -> Body:
        """The body of this name."""
        return next(body for body in self.bodies if body.name == name)

    def on_step(self, callback: Callable[[Any], Any]) -> None:
        """Calls `callback(sim)` after every step; if it returns False, `run` and `frames` end there."""
        self.callbacks.append(callback)

    @property
    def spacing(self) -> float:
        """Distance of particles at rest [m]."""
        return 2 * self.settings.particle_radius

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong with the scene; empty when it can be built."""
        self._take_radius()
        found = self.settings.problems()
        found += self._problems
        found += [sentence for body in self.bodies for sentence in body.problems()]
        found += self._radius_problems()
        found += self._name_problems()
        found += [f"on_step needs a function of the simulation, got {c!r}" for c in self.callbacks if not callable(c)]
        found += self._picture_problems()
        if not any(map(_can_move, self.bodies)) and not self.settings.sources:
            found.append("the scene has no particles and no rigid bodies; add a body such as scene.add(pl.Box(...), "
                         "pl.Fluid())")  # fmt: skip
        known = [body.name for body in self.bodies]
        for name in dict.fromkeys(n for pair in self.settings.frictions for n in pair[:2] if n not in known):
            found.append(f"friction: {unknown_name('body', name, known)}")
        found += probes.problems(self) + joints.problems(self) + robots.problems(self)
        if not found:
            found += sources.problems(self) + probes.patch_problems(self)
        if not found:
            found += self._copies()
            materials = [body.material for body in self.bodies]
            found += [f"Scene: {sentence}" for sentence in self.settings.pressure.cannot(materials)]
        return found or self._wind_problems() + self._size_problems()

    def spacing_of(self, body: Body) -> float:
        """Distance of the particles of a body at rest [m]."""
        if body.particle_radius is not None:
            return 2 * float(body.particle_radius)
        return body.spacing_by_count or self.spacing

    def _take_radius(self) -> None:
        """Without a particle_radius of its own, a scene has that of its body of so many particles, the coarsest one."""
        spacings = [s for body in self.bodies if (s := body.spacing_by_count)]
        if spacings and not self._radius_given:
            self.settings = Settings(**(self.settings.values() | {"particle_radius": max(spacings) / 2}))

    def _radius_problems(self) -> list[str]:
        """Particles of another size than the scene's: only elastic bodies may have them, and only somewhat finer."""
        coarsest, found = self.settings.particle_radius, []
        for body in self.bodies:
            by_count, r = body.spacing_by_count, body.particle_radius
            if r is not None and by_count is not None:
                found.append(f"{body.name}: its number of particles tells their size; leave out its particle_radius")
            elif by_count is not None:
                r = 0.5 * by_count
            if r is None or r == coarsest:
                continue
            if not getattr(body.material, "elastic", False):
                found.append(f"{body.name}: only elastic bodies may have a particle_radius of their own")
            elif not isinstance(r, (int, float)) or isinstance(r, bool) or not 0.5 * coarsest <= r <= coarsest:
                of = f"that of {body.particles:,} particles" if by_count else "particle_radius"
                found.append(f"{body.name}: {of} must lie between half the scene's and the scene's, "
                             f"{0.5 * coarsest:g} and {coarsest:g} m, got {r!r}")  # fmt: skip
        return found

    def _name_problems(self) -> list[str]:
        """Names whose files would overwrite those of another body."""
        names = {body.name for body in self.bodies}
        matches = [(name, NUMBERED.fullmatch(name)) for name in sorted(names)]
        return [f"{name}: its files would get the names of those of {match[1]!r}; choose another name"
                for name, match in matches if match and match[1] in names]  # fmt: skip

    def _copies(self) -> list[str]:
        """Rigid bodies in the place of another one of the same shape: nothing says in which way to push them apart."""
        alike: dict[str, list[str]] = {}
        for body in self.bodies:
            if body.material.free:
                alike.setdefault(body.shape.key(), []).append(body.name)
        return [f"{names[1]}: it is in the very place of {first}, which has the same shape"
                + f", as {len(names) - 2:,} more are" * (len(names) > 2) + "; move them apart"
                for first, names in ((found[0], found) for found in alike.values()) if len(names) > 1]  # fmt: skip

    def _wind_problems(self) -> list[str]:
        """What is wrong with a wind that is a function, where the bodies are."""
        air = self.settings.air
        if air is None or not callable(air.velocity):
            return []
        middles = [body.shape.bounds().mean(axis=0) for body in self.bodies if body.material.has_particles]
        try:
            air.blowing(np.array(middles), 0.0)
        except SimulationError as error:
            return [str(error)]
        return []

    def _picture_problems(self) -> list[str]:
        """What is wrong with camera, lights and look."""
        lights = self.lights if isinstance(self.lights, (list, tuple)) else [self.lights] * (self.lights is not None)
        parts: list[tuple[Any, Any, str, str]] = [
            (self.camera, (Camera, Orbit, CameraPath), "camera", "a pl.Camera, pl.Orbit or pl.CameraPath"),
            (self.look, Look, "look", "a pl.Look"),
            *((light, Light, "lights", "a list of pl.Light") for light in lights),
        ]
        found: list[str] = []
        for value, kinds, name, wanted in parts:
            if isinstance(value, kinds):
                found += value.problems()
            elif value is not None or name == "lights":
                found.append(f"{name} must be {wanted} or None, got {value!r}")
        return found

    def _size_problems(self) -> list[str]:
        found, farthest = [], FARTHEST * self.spacing
        sampled = [body for body in self.bodies if body.material.has_particles]
        for body in sampled:
            far = float(np.abs(body.shape.bounds()).max())
            if far > farthest:
                found.append(f"{body.name}: it reaches {far:.3g} m from the origin, where single precision cannot tell "
                             f"particles {self.spacing:g} m apart; keep within {farthest:.3g} m")  # fmt: skip
        free = SHARE_OF_MEMORY * available_memory()
        needed, enough = self._bytes(self.spacing), self.spacing
        while self._bytes(enough) > free:
            enough *= 1.1
        if needed > free:
            count = sum(_count(body, self.spacing_of(body)) for body in sampled)
            found.append(f"{count:.3g} particles and the walls need about {needed / 2**30:.3g} GiB of memory and may "
                         f"use {free / 2**30:.3g} GiB; use a particle_radius of {enough / 2:.2g} m or more, or smaller "
                         "bodies")  # fmt: skip
        return found

    @property
    def has_particles(self) -> bool:
        """Whether there is, or may come, more than walls and rigid bodies."""
        return bool(self.settings.sources) or not all(body.material.is_wall for body in self.bodies)

    def _bytes(self, spacing: float) -> float:
        """Memory for the particles, and for the maps of the walls while they are built."""
        total, block = 0.0, 4 * spacing
        for body in self.bodies:
            a, b, c = np.ptp(body.shape.bounds(), axis=0) / block + 1
            if body.material.has_particles:
                each = BYTES_EACH + BYTES_PER_ELASTIC * body.material.elastic
                each += BYTES_PER_STANDING * body.material.has_yield_stress
                each += BYTES_PER_GRAIN * getattr(body.material, "grains", 0)
                total += each * _count(body, spacing * self.spacing_of(body) / self.spacing)
            elif np.isfinite(a) and self.has_particles:
                total += BYTES_PER_BLOCK * a * b * c + BYTES_PER_WALL_BLOCK * 2 * (a * b + b * c + c * a)
        return total

    def build(self, backend: str | None = None, quiet: bool = False) -> "Simulation":
        """Checks the scene, samples its bodies and returns a `Simulation`; raises `SceneError` with all problems.

        `backend` is what computes: "cpu", "cuda", "vulkan", "metal", or "gpu" for the GPU there is. If it is not given,
        the variable PLIANT_BACKEND of the environment may name it; otherwise it is the CPU.
        What it notices, such as particles that were left out, is printed on standard error unless `quiet`, and is in
        `sim.notes` in any case.
        """
        from pliant.sim.simulation import Simulation

        if backend is not None and not isinstance(backend, str):
            raise PliantError(f"backend must be text such as 'cpu', got {backend!r}")
        problems = self.problems()
        if problems:
            raise SceneError(problems)
        return Simulation(self, backend, quiet=quiet)


def _count(body: Body, spacing: float) -> float:
    """Estimated number of particles, however absurd."""
    return float(min(estimate_count(body.shape, spacing), 10**99))
