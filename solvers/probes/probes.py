"""The probes of a scene, as a store, and the stage that lets them measure."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.boundary.wall_patches import WallPatch
from pliant.core import fields
from pliant.core.backend import upload, vec3
from pliant.core.fields import Field
from pliant.core.reduce import BLOCKS
from pliant.core.store import Store
from pliant.core.world import BodySamples, World
from pliant.errors import PliantError
from pliant.solvers.probes import points, sections
from pliant.solvers.probes.options import Probe
from pliant.solvers.probes.patches import find_wall, wall_patch
from pliant.solvers.probes.recorder import Recorder
from pliant.solvers.stage import Stage

BEFORE = "x_before"


class OnWall:
    """A probe on a patch: which wall that is, and which of the patches of that wall."""

    def __init__(self, wall: int, number: int, patch: WallPatch):
        self.wall, self.number, self.patch = wall, number, patch


class Probes(Store):
    """What all probes have recorded, and where those on walls are."""

    name = "probes"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return bool(getattr(settings, "probes", ()))

    @classmethod
    def build(cls, world: World, bodies: Sequence[BodySamples]) -> "Probes":
        return cls(world, [body for body in bodies if body.material.is_wall])

    def __init__(self, world: World, walls: Sequence[BodySamples]):
        self.recorders = {probe.name: Recorder(probe) for probe in world.probes}
        self.on_walls: dict[str, OnWall] = {}
        patches: list[list[WallPatch]] = [[] for _ in walls]
        for probe in world.probes:
            if probe.on is not None:
                number, _ = find_wall(walls, probe.on)
                patch = wall_patch(walls[number], probe.on, world.spacing)
                self.on_walls[probe.name] = OnWall(number, len(patches[number]), patch)
                patches[number].append(patch)
        world.walls.set_patches(patches)

    # --- the protocol of stores -------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return list(self.recorders)

    def save(self) -> dict[str, np.ndarray]:
        return {f"{name}/{key}": values for name, one in self.recorders.items() for key, values in one.save().items()}

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        try:
            for name, one in self.recorders.items():
                own = f"{name}/"
                one.restore({key.removeprefix(own): a for key, a in arrays.items() if key.startswith(own)})
        except (LookupError, ValueError) as error:
            raise PliantError(f"it does not hold what the probes of the scene have recorded ({error})") from error

    def backup(self) -> None:
        for one in self.recorders.values():
            one.backup()

    def rollback(self) -> None:
        for one in self.recorders.values():
            one.rollback()


class Measuring(Stage):
    """Changes nothing but what probes have recorded: looks at the state that the step has led to."""

    name = place = "probes"
    fields: ClassVar[tuple[Field, ...]] = (Field(BEFORE, "vector", "m", "position at the start of the step"),)

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return Probes.wanted(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        store = world.stores[Probes.name]
        assert isinstance(store, Probes)
        self.store = store
        at = [one for one in store.recorders.values() if one.probe.at is not None]
        self._points = Places(world, [one for one in at if one.probe.quantity != "elevation"])
        self._columns = Places(world, [one for one in at if one.probe.quantity == "elevation"])
        self._sections = [one for one in store.recorders.values() if one.probe.through is not None]
        self._table = upload(np.array([sections.section_row(r.probe.through) for r in self._sections]).reshape(-1, 15),
                             ti.f32)  # fmt: skip
        self._counts = upload(np.array([counted(world, r.probe) for r in self._sections] or [np.zeros(1)]), ti.i32)
        self._passed = np.zeros((BLOCKS, 2 * max(len(self._sections), 1)), np.float32)
        self._moved = np.zeros((BLOCKS, 1), np.float32)
        g = np.linalg.norm(world.gravity)
        up = -world.gravity / g if g > 0 else np.array([0.0, 1.0, 0.0])  # y is up where nothing falls
        self._up = upload(up[None], vec3)
        d = world.spacing
        self._least = float(d**3 * world.neighbors.smoothing.W(np.array(d), world.h))  # one particle, a spacing away

    def after_neighbors(self) -> None:
        p = self.world.particles
        fields.copy("vector", p.n, [(p.x, p.x_before)])

    def run(self, dt: float) -> None:
        t = self.world.time + dt
        self._measure_points(t, dt)
        self._measure_flow(t, dt)
        for name, one in self.store.on_walls.items():
            recorder, force = self.store.recorders[name], self.world.walls.walls[one.wall].patch_force[one.number]
            if recorder.wants(t):
                normal = self.world.walls.walls[one.wall].rotation @ one.patch.axes[2]
                pressure = recorder.probe.quantity == "pressure"
                recorder.take(t, dt, np.array([-force @ normal / one.patch.area]) if pressure else force)

    def _measure_points(self, t: float, dt: float) -> None:
        """One launch for all points and one for all columns, if a sample of one is due."""
        around: tuple = ()
        for places, sample in ((self._points, self._sample), (self._columns, self._level)):
            wanting = [recorder for recorder in places.recorders if recorder.wants(t)]
            if wanting:
                around = around or self._around()
                found = sample(places, around)
                for recorder in wanting:
                    recorder.take(t, dt, found[recorder.probe.name])

    def _around(self) -> tuple:
        """What kernels that look around places take after these."""
        p, near = self.world.particles, self.world.neighbors
        points.farthest_move(p.n, near.wraps, near.period, p.x, p.x_before, self._moved)
        # what is faster than a support in a step is lost spray, and not worth a look at all cells of the scene
        reach = near.h + min(float(np.sqrt(self._moved.max())) * (1 + 1e-5), near.h)
        return (reach, near.wraps, near.period, near.start, near.grid, near.shape, near.smoothing.w, near.h, near.sigma,
                p.x, p.V, p.m, p.p, p.v, p.density, p.wall_density, p.body)  # fmt: skip

    def _sample(self, places: "Places", around: tuple) -> dict[str, np.ndarray]:
        """What the probes at points measure, by name."""
        points.sample_points(places.count, *around, places.at, places.counts, places.out)
        weight = places.out[:, points.WEIGHT].astype(float)
        near = weight > self._least
        sums = places.out[:, 1:].astype(float) / np.where(near, weight, 1.0)[:, None]
        found = {"pressure": np.where(near, sums[:, 0], 0.0)[:, None],  # of the air, if nothing is there
                 "velocity": np.where(near[:, None], sums[:, 1:4], np.nan),
                 "density": np.where(near, sums[:, 4], np.nan)[:, None]}  # fmt: skip
        return {r.probe.name: found[r.probe.quantity][rows].ravel() for r, rows in places.rows()}

    def _level(self, places: "Places", around: tuple) -> dict[str, np.ndarray]:
        """How high the surface stands over the points of each probe, by name."""
        points.find_levels(places.count, self.world.spacing, self._least, *around, places.at, self._up,
                           places.counts, places.out)  # fmt: skip
        height = np.where(places.out[:, 1] > 0, places.out[:, 0], np.nan).astype(float)
        return {r.probe.name: height[rows] for r, rows in places.rows()}

    def _measure_flow(self, t: float, dt: float) -> None:
        """Totals have to know of every step."""
        if not self._sections:
            return
        p, near = self.world.particles, self.world.neighbors
        sections.pass_sections(p.n, len(self._sections), self.world.spacing, near.wraps, near.period, p.x, p.x_before,
                               p.V, p.m, p.body, self._table, self._counts, self._passed)  # fmt: skip
        passed = self._passed.sum(axis=0, dtype=float).reshape(-1, 2)
        for recorder, volume_and_mass in zip(self._sections, passed, strict=True):
            recorder.total = recorder.total + volume_and_mass
            if recorder.wants(t):
                recorder.take(t, dt, volume_and_mass / dt)


class Places:
    """The points of several probes, for one launch: where they are, and which bodies count at each."""

    def __init__(self, world: World, recorders: list[Recorder]):
        self.recorders = recorders
        at = [recorder.probe.points for recorder in recorders]
        self.count, self._ends = sum(map(len, at)), np.cumsum([len(x) for x in at])
        counts = [counted(world, r.probe) for r, x in zip(recorders, at, strict=True) for _ in range(len(x))]
        self.at = upload(np.concatenate([np.zeros((0, 3)), *at]), vec3)
        self.counts = upload(np.array(counts or [np.zeros(1)]), ti.i32)
        self.out = np.zeros((max(self.count, 1), points.SUMS), np.float32)

    def rows(self) -> list[tuple[Recorder, slice]]:
        """The rows of each probe."""
        return [(r, slice(end - len(r.probe.points), end)) for r, end in zip(self.recorders, self._ends, strict=True)]


def counted(world: World, probe: Probe) -> np.ndarray:
    """Which bodies a probe measures: 1 or 0 for each."""
    return np.array([int(world.materials[body.material].fluid_like if probe.of is None else body.name == probe.of)
                     for body in world.bodies])  # fmt: skip
