"""A scene: what there is before time begins. Everything wrong with it is told at once, before any work."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pliant.errors import SceneError, unknown_name
from pliant.geometry import Shape, estimate_count
from pliant.materials import Material
from pliant.options import Options, param, positive
from pliant.smoothing import SMOOTHINGS, SPACINGS_PER_SUPPORT
from pliant.solvers.pressure.dfsph import DFSPH

BYTES_PER_PARTICLE = 1024  # neighbour lists included; measured by `pliant bench fluid`
SHARE_OF_MEMORY = 0.8
LEAST_PERIOD = 3  # in supports: fewer, and a particle would meet two images of the same neighbour


class Settings(Options):
    """Settings of a whole scene."""

    particle_radius: float = positive(0.02, "radius r of a particle; spacing 2r, support 4r", "m", high=1e4)
    gravity: tuple = param((0.0, -9.81, 0.0), "acceleration of gravity; y is up", "m/s^2", kind="vector", low=-1e6,
                           high=1e6)  # fmt: skip
    pressure: Any = param(DFSPH(), "pressure solver", kind="any")
    dt: Any = positive(None, "fixed time step; None adapts it to the CFL condition", "s", high=1.0, optional=True)
    cfl: float = positive(0.4, "share of a particle diameter that the fastest particle moves in a step", "1", high=1.0,
                          source="Monaghan 1992")  # fmt: skip
    min_dt: float = positive(1e-6, "shortest adaptive time step", "s", high=1.0)
    max_dt: float = positive(5e-3, "longest adaptive time step", "s", high=1.0)
    growth: float = param(1.2, "largest growth of the time step from one step to the next", "1", low=1.0, high=10.0)
    smoothing: str = param("cubic_spline", "smoothing function", choices=tuple(SMOOTHINGS))
    periodic: tuple = param((None, None, None), "period along each axis, None where there is none; the domain then "
                            "starts at 0", "m", kind="any")  # fmt: skip

    def problems(self) -> list[str]:
        found = [sentence.replace("Settings", "Scene") for sentence in super().problems()]
        if not isinstance(self.pressure, DFSPH):
            found.append(f"Scene: pressure must be a pressure solver such as pl.DFSPH(), got {self.pressure!r}")
        else:
            found += self.pressure.problems()
        if not found and self.min_dt > self.max_dt:
            found.append(f"Scene: min_dt must not exceed max_dt, got {self.min_dt!r} and {self.max_dt!r}")
        return found or self._period_problems()

    def _period_problems(self) -> list[str]:
        shortest = LEAST_PERIOD * SPACINGS_PER_SUPPORT * 2 * self.particle_radius
        try:
            periods = [None if p is None else float(p) for p in self.periodic]
            good = len(periods) == 3 and all(p is None or np.isfinite(p) for p in periods)
        except (TypeError, ValueError):
            good, periods = False, []
        if not good:
            return [f"Scene: periodic must hold a length or None for each of the three axes, got {self.periodic!r}"]
        return [
            f"Scene: a period must be at least {shortest:g} m (12 particle radii times two), got {p:g}"
            for p in periods
            if p is not None and p < shortest * (1 - 1e-6)
        ]


class Body:
    """What `scene.add` returns: the handle of one body."""

    def __init__(self, name: str, shape: Shape, material: Material, velocity: Any):
        self.name, self.shape, self.material, self.velocity = name, shape, material, velocity
        self.fixed: Any = None
        self.motion: Callable[[float], Any] | None = None
        self.pivot: Any = None

    def fix(self, mask: Any = True) -> "Body":
        """Holds particles in place: `mask` is a function of the rest positions (n, 3), an array, or True for all."""
        self.fixed = mask
        return self

    def move(self, motion: Callable[[float], Any], pivot: Any = None) -> "Body":
        """Moves a wall, or the fixed particles of a body, at the velocity `motion(t)` [m/s].

        The function may also return a pair of velocity and angular velocity [rad/s] about `pivot`
        (by default the middle of the body), which moves along.
        """
        self.motion, self.pivot = motion, pivot
        return self

    def problems(self, periodic: bool) -> list[str]:
        """One sentence for each thing that is wrong with this body."""
        shape = self.shape.problems() if isinstance(self.shape, Shape) else [
            f"the first argument of add must be a shape such as pl.Box, got {self.shape!r}"]  # fmt: skip
        material = self.material.problems() if isinstance(self.material, Material) else [
            f"the second argument of add must be a material such as pl.Fluid, got {self.material!r}"]  # fmt: skip
        found = shape + material
        if np.shape(self.velocity) != (3,) or not np.isfinite(np.asarray(self.velocity, dtype=float)).all():
            found.append(f"velocity must be three finite numbers, got {self.velocity!r}")
        if self.motion is not None:
            found += self._motion_problems()
        if not shape and not material and self.material.sampled and not np.isfinite(self.shape.bounds()).all():
            found.append(f"{type(self.shape).__name__} is infinite and cannot be filled with particles")
        return [f"{self.name}: {sentence}" for sentence in found]

    def _motion_problems(self) -> list[str]:
        from pliant.walls import rigid_velocity

        if not callable(self.motion):
            return [f"move needs a function of time, got {self.motion!r}"]
        try:
            rigid_velocity(self.motion(0.0))
        except Exception as error:  # noqa: BLE001 - the user's own function: whatever it raises is reported
            return [f"its motion fails at t = 0: {error}"]
        return []


class Scene:
    """Bodies, walls and settings. `build` checks everything and makes it run.

    Takes the parameters of `Settings` by name: Scene(particle_radius=0.02, gravity=(0, -9.81, 0), ...).
    """

    def __init__(self, **settings: Any):
        self.settings = Settings(**settings)
        self.bodies: list[Body] = []
        self.callbacks: list[Callable[[Any], Any]] = []
        self.camera: Any = None  # a pliant.Camera, or None to frame the scene automatically
        self.source: Path | str | None = None
        self._problems: list[str] = []

    def add(self, shape: Shape, material: Material, name: str | None = None, velocity: Any = (0.0, 0.0, 0.0),
            **unknown: Any) -> Body:  # fmt: skip
        """Adds a body of that shape and material, moving at `velocity` [m/s] at the start."""
        kind = type(material).__name__.lower()
        taken = {body.name for body in self.bodies}
        if name is None:
            name = next(f"{kind}{k}" for k in range(1, len(self.bodies) + 2) if f"{kind}{k}" not in taken)
        elif name in taken:
            self._problems.append(f"two bodies are called {name!r}; names must differ")
        known = [p for p in inspect.signature(Scene.add).parameters if p not in ("self", "unknown")]
        self._problems += [f"{name}: add has no " + unknown_name("parameter", k, known)[8:] for k in unknown]
        body = Body(str(name), shape, material, velocity)
        self.bodies.append(body)
        return body

    def on_step(self, callback: Callable[[Any], Any]) -> None:
        """Calls `callback(sim)` after every step; if it returns False, `run` and `frames` end there."""
        self.callbacks.append(callback)

    @property
    def spacing(self) -> float:
        """Distance of particles at rest [m]."""
        return 2 * self.settings.particle_radius

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong with the scene; empty when it can be built."""
        found = self.settings.problems()
        found += self._problems
        found += [sentence for body in self.bodies for sentence in body.problems(False)]
        found += [f"on_step needs a function of the simulation, got {c!r}" for c in self.callbacks if not callable(c)]
        if not any(isinstance(body.material, Material) and body.material.sampled for body in self.bodies):
            found.append("the scene has no particles; add a body such as scene.add(pl.Box(...), pl.Fluid())")
        return found or self._memory_problems()

    def _memory_problems(self) -> list[str]:
        counts = {b.name: estimate_count(b.shape, self.spacing) for b in self.bodies if b.material.sampled}
        total, free = sum(counts.values()), available_memory()
        if total * BYTES_PER_PARTICLE <= SHARE_OF_MEMORY * free:
            return []
        radius = self.settings.particle_radius * (total * BYTES_PER_PARTICLE / SHARE_OF_MEMORY / free) ** (1 / 3)
        return [
            f"{total:,} particles need about {total * BYTES_PER_PARTICLE / 2**30:.1f} GiB and {free / 2**30:.1f} GiB "
            f"are free; use a particle_radius of {radius:.2g} m or more"
        ]

    def build(self, backend: str = "cpu") -> Any:
        """Checks the scene, samples its bodies and returns a `Simulation`; raises `SceneError` with all problems."""
        from pliant.simulation import Simulation

        problems = self.problems()
        if problems:
            raise SceneError(problems)
        return Simulation(self, backend)


def available_memory() -> float:
    """Free memory in bytes; infinite where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return float("inf")


