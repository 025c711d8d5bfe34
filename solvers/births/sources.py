"""Everything by which particles come and go, as a store, and the stages that let them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.core.backend import vec3
from pliant.core.fields import Field
from pliant.core.reduce import BLOCKS
from pliant.core.store import Store
from pliant.core.world import BodySamples, World
from pliant.errors import PliantError
from pliant.solvers.births import nozzle
from pliant.solvers.births.meter import Meter
from pliant.solvers.births.nozzle import Nozzle
from pliant.solvers.births.options import Arrival, Drain, Emitter
from pliant.solvers.births.region import Region
from pliant.solvers.stage import Stage, material_table

BODY_GAP = 0.7  # in spacings: a body appears where nothing is nearer than this,
WALL_GAP = 0.35  # nor a wall nearer than this


class Waiting:
    """A body that is still to appear: its particles at x (n, 3) [m], which of them are fixed, and its velocity."""

    def __init__(self, arrival: Arrival, number: int):
        self.arrival, self.number = arrival, number
        self.x, self.fixed, self.velocity = np.zeros((0, 3)), np.zeros(0, bool), np.zeros(3)
        self.due, self.waits = True, 0

    def save(self) -> dict[str, np.ndarray]:
        return {"state": np.array([self.due, self.waits], float), "x": self.x, "fixed": self.fixed,
                "velocity": self.velocity}  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.due, self.waits = bool(arrays["state"][0]), int(arrays["state"][1])
        self.x, self.fixed, self.velocity = arrays["x"], arrays["fixed"], arrays["velocity"]


class Sink:
    """A drain at work: what has gone into it, of each body."""

    def __init__(self, drain: Drain, world: World):
        self.drain, self.meter = drain, Meter()
        self.taken = np.zeros(len(world.bodies), int)


class Sources(Store):
    """Nozzles, bodies that are still to appear, and drains, and what has passed through each."""

    name = "sources"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return bool(getattr(settings, "sources", ()))

    @classmethod
    def build(cls, world: World, bodies: Sequence[BodySamples]) -> "Sources":
        return cls(world, [body for body in bodies if body.material.is_wall])

    def __init__(self, world: World, walls: Sequence[BodySamples]):
        self.world, self.region = world, Region(world, walls)
        self.nozzles = [Nozzle(s, world) for s in world.sources if isinstance(s, Emitter)]
        self.sinks = [Sink(s, world) for s in world.sources if isinstance(s, Drain)]
        self.waiting = [Waiting(s, self._number(s.name)) for s in world.sources if isinstance(s, Arrival)]
        self.notes: list[str] = []
        self._good: dict[str, np.ndarray] = {}

    def _number(self, name: str) -> int:
        number = self.world.body_number(name)
        assert number is not None
        return number

    def fill(self, bodies: Sequence[BodySamples]) -> None:
        """Keeps the particles of the bodies that are still to appear."""
        for one in self.waiting:
            body = next(body for body in bodies if body.name == one.arrival.name)
            one.x, one.fixed, one.velocity = body.x, body.fixed, body.velocity

    # --- what happens -----------------------------------------------------------------------------------

    def take_out(self, t: float) -> None:
        """Particles in drains are gone, elastic bodies as a whole once their centre of mass is in one."""
        p = self.world.particles
        for sink in self.sinks:
            shape, wall = sink.drain.shape, self.world.walls.find(sink.drain.moves_with)
            pose = wall.pose() if wall is not None and wall.moved else None
            rows = self.region.rows_in(p, shape.bounds(), pose, shape.inside)
            if len(rows):
                rows = self._whole(sink, rows, pose)
            if len(rows):
                sink.meter.add(t, len(rows), float(p.read("V", rows).sum(dtype=float)))
                sink.taken += np.bincount(p.read("body", rows), minlength=len(sink.taken))
                self.world.remove_particles(rows)

    def _whole(self, sink: Sink, rows: np.ndarray, pose: np.ndarray | None) -> np.ndarray:
        """Of these rows those of what flows, and all rows of the elastic bodies that have entered."""
        world, p = self.world, self.world.particles
        elastic = np.array([bool(world.materials[body.material].elastic) for body in world.bodies])
        body = p.read("body", rows)
        found = [rows[~elastic[body]]]
        for number in np.unique(body[elastic[body]]):
            mine = p.rows_of(int(number))
            middle = np.average(p.read("x", mine).astype(float), axis=0, weights=p.read("m", mine))
            if pose is not None:
                middle = (middle - pose[:3, 3]) @ pose[:3, :3]
            if sink.drain.shape.inside(middle[None])[0]:
                found.append(mine)
        return np.concatenate(found)

    def let_appear(self, t: float) -> None:
        """Bodies whose time has come appear, once there is room."""
        for one in self.waiting:
            if one.due and t >= one.arrival.time:
                if self._has_room(one.x):
                    v = np.broadcast_to(one.velocity, one.x.shape)
                    self.world.add_particles(one.number, one.x, v, one.fixed)
                    one.due, one.waits, one.x, one.fixed = False, 0, one.x[:0], one.fixed[:0]
                else:
                    one.waits += 1
                    if one.waits == nozzle.PATIENCE:
                        self.notes.append(f"{one.arrival.name}: its place is occupied at t = {t:.3g} s; it appears as "
                                          "soon as there is room.")  # fmt: skip

    def _has_room(self, x: np.ndarray) -> bool:
        """Whether a body may appear here; walls at rest have been seen to when it was filled."""
        d = self.world.spacing
        return self.region.is_free_of_particles(x, BODY_GAP * d) and self.region.is_free_of_walls(x, WALL_GAP * d, True)

    def emit(self, number: int, t: float) -> None:
        """A nozzle lets the layers out that are due."""
        one, p = self.nozzles[number], self.world.particles
        for x in one.advance(t, self.region):
            x = x[: one.left]
            frame = one.frame()
            v = frame[nozzle.VELOCITY] + np.cross(frame[nozzle.SPIN], x - frame[nozzle.ORIGIN])
            rows = self.world.add_particles(one.number, x, v)
            p.write("nozzle", rows, np.full(len(rows), number))
            one.members += len(x)
            one.meter.add(t, len(x), len(x) * one.volume_each)
        if one.waits >= nozzle.PATIENCE and not one.told:
            one.told = True
            self.notes.append(f"{one.emitter.name}: something is in its way at t = {t:.3g} s, or its body is full; it "
                              "waits until there is room.")  # fmt: skip

    # --- the protocol of stores -------------------------------------------------------------------------

    def waiting_bodies(self) -> dict[int, np.ndarray]:
        return {one.number: one.x for one in self.waiting if one.due}

    @property
    def names(self) -> list[str]:
        return [n.emitter.name for n in self.nozzles] + [sink.drain.name for sink in self.sinks]

    def save(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        for one in self.nozzles:
            arrays |= {f"{one.emitter.name}/state": one.save(), f"{one.emitter.name}/meter": one.meter.save()}
        for sink in self.sinks:
            arrays |= {f"{sink.drain.name}/taken": sink.taken.copy(), f"{sink.drain.name}/meter": sink.meter.save()}
        for body in self.waiting:
            arrays |= {f"{body.arrival.name}/{key}": values for key, values in body.save().items()}
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        try:
            for one in self.nozzles:
                one.restore(arrays[f"{one.emitter.name}/state"])
                one.meter.restore(arrays[f"{one.emitter.name}/meter"])
            for sink in self.sinks:
                sink.taken = arrays[f"{sink.drain.name}/taken"].copy()
                sink.meter.restore(arrays[f"{sink.drain.name}/meter"])
            for body in self.waiting:
                own = f"{body.arrival.name}/"
                body.restore({key.removeprefix(own): a for key, a in arrays.items() if key.startswith(own)})
        except (LookupError, ValueError) as error:
            raise PliantError(f"it does not hold the emitters and drains of the scene ({error})") from error

    def backup(self) -> None:
        self._good = self.save()

    def rollback(self) -> None:
        self.restore(self._good)


class Births(Stage):
    """Changes the number of particles: drains take them, bodies appear, nozzles let layers out."""

    name = place = "births"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("nozzle", "int", "", "the nozzle that it is still in, -1 outside", carried=True, initial=-1),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return Sources.wanted(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        store = world.stores[Sources.name]
        assert isinstance(store, Sources)
        self.store, self._cfl, self._longest = store, settings.cfl, settings.dt or settings.max_dt
        self.notes = store.notes
        count = max(len(store.nozzles), 1)
        self.frame, self.numbers = ti.ndarray(vec3, nozzle.FRAME * count), ti.ndarray(ti.f32, (count, nozzle.NUMBERS))
        self._partial = np.zeros((BLOCKS, 2 * count), np.float32)

    def parts(self) -> list[Stage]:
        return [self, Nozzles(self)] if self.store.nozzles else [self]

    def run(self, dt: float) -> None:
        store, t = self.store, self.world.time
        for one in store.nozzles:
            one.set_flow(t)  # before anything happens: a user's function may fail
        store.take_out(t)
        store.let_appear(t)
        self._measure(t)
        for number in range(len(store.nozzles)):
            store.emit(number, t)
        if any(one.members for one in store.nozzles):
            self.upload()

    def upload(self) -> None:
        """Tells the device where the nozzles are and what they do."""
        nozzles, t = self.store.nozzles, self.world.time
        self.frame.from_numpy(np.concatenate([one.frame() for one in nozzles]).astype(np.float32))
        self.numbers.from_numpy(np.array([one.numbers(t) for one in nozzles], np.float32))

    def _measure(self, t: float) -> None:
        """Finds how far the newest layers have come."""
        nozzles, p, near = self.store.nozzles, self.world.particles, self.world.neighbors
        for one in nozzles:
            one.predict(t)
        if not any(one.members for one in nozzles):
            return
        self.upload()
        nozzle.survey(p.n, len(nozzles), near.wraps, near.period, p.nozzle, p.x, self.frame, self.numbers,
                      self._partial)  # fmt: skip
        sums = self._partial.sum(axis=0, dtype=float)
        for k, one in enumerate(nozzles):
            members = round(sums[2 * k + 1])
            one.measured(sums[2 * k] / max(members, 1), members, t)

    def max_dt(self) -> float:
        """What leaves a nozzle, now or within the longest step, moves no further than the CFL condition lets it."""
        t, fastest = self.world.time, 0.0
        for one in self.store.nozzles:
            for when in (t, max(t, one.emitter.start)):
                if one.is_open(when) and when <= t + self._longest:
                    fastest = max(fastest, float(np.linalg.norm(one.emitter.velocity_at(when))))
        self.speed = fastest
        return self._cfl * self.world.spacing / fastest if fastest > 0 else float("inf")


class Nozzles(Stage):
    """Changes velocities and inverse densities of what is in a nozzle: whatever other forces have done."""

    name, place, rank = "nozzles", "forces", 1000

    def __init__(self, births: Births):
        super().__init__(births.world, None)
        self.births, self._density = births, material_table(births.world, "density")
        self._obstructed = np.zeros(len(births.store.nozzles), np.int32)

    @property
    def _active(self) -> bool:
        return any(one.members for one in self.births.store.nozzles)

    def run(self, dt: float) -> None:
        if self._active:
            p, near = self.world.particles, self.world.neighbors
            coupled = "effective_inverse_density" in p.schema
            nozzle.drive(p.n, near.wraps, near.period, p.nozzle, p.material, self._density, p.x, self.births.frame,
                         self.births.numbers, p.inverse_density,
                         p.effective_inverse_density if coupled else p.inverse_density, p.v)  # fmt: skip

    def after_neighbors(self) -> None:
        self._obstructed[:] = 0
        if self._active:
            p, near = self.world.particles, self.world.neighbors
            nozzle.look(p.n, *near.pairs, p.nozzle, self.world.spacing, self.births.frame, self._obstructed)
        for one, count in zip(self.births.store.nozzles, self._obstructed, strict=True):
            one.blocked = int(count) > nozzle.OBSTRUCTED * one.members
