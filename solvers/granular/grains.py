"""Grains: many small points for each particle of a granular medium, carried by it and otherwise falling freely (Neder
2024, Section 5.12, after Ihmsen et al. 2013). They are what is seen of the medium; it does not feel them.

Eq. 42 and 43 blend between the two motions by distances from single particles, so that grains creep in a pile at rest
and fall in its pores. Here the fill of the medium decides (see `grain_field`): inside, a grain moves with the medium;
outside, it falls, and feels the air where there is some. What falls into the medium stops there, what the medium loses
flies on at the speed it had; a lone particle does not fill, so that its grains scatter.

Walls hold grains back by their true distance, with a grain's radius between (in place of Eq. 44 and 45). A grain loses
the speed at which it meets a wall, and by Coulomb's law a share of that at which it slides: none where nothing presses
it on, so that no vertical wall holds it. Fast grains are followed along their way, and thin walls are not jumped.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti
from scipy.spatial import cKDTree

from pliant.boundary.distance_map import DistanceMap
from pliant.boundary.wall import stopped
from pliant.boundary.wall_table import (
    TableOfWalls,
    WallTable,
    candidate,
    candidates,
    is_plane,
    side_at,
    velocity_of,
    within,
)
from pliant.core.backend import Ints, Reals, RealTable, Vectors, upload, vec3
from pliant.core.data import GRAINS, Cloud, CloudStyle
from pliant.core.fields import Field
from pliant.core.neighbors import INVERSE, INVERSE_LENGTH, LENGTH, ORIGIN, difference, triple
from pliant.core.store import ArrayStore
from pliant.core.world import BodySamples, World, wall_distance
from pliant.materials.air import Air
from pliant.solvers.forces.drag import Wind
from pliant.solvers.granular.grain_field import LOG, GrainField, Nodes, field_at, slot_at
from pliant.solvers.granular.grain_sampling import sample_grains
from pliant.solvers.stage import Stage

FILLED = 0.5  # fill from which on the medium carries a grain: that of its surface, see `grain_field`
STRIDE = 0.5  # in spacings: what moves further in a step is looked after at points so far apart
MOST_STRIDES = 16
ROUNDS = 4  # where walls meet at acute angles, grains are pushed from one to the other
WALLS, LANDING = 1, 2  # may be near walls; fall so fast that they may also miss the medium. Above: were put back
SLACK = 0.02  # share of the clearance that later rounds leave
STILL = 1e-6  # in spacings: what moves less in a step stands still. It would be lost in single precision anyway
HOP = 0.5  # in strides: what moves less and is far from walls is not looked at
FINE = 0.5  # in spacings: that of the maps of round walls, whose nodes are half of it apart
KNOWN, DEPTH = 3.9, 2.0  # in those: how far in front of the surface and behind it they are made


@ti.kernel
def _move(n: ti.i32, dt: ti.f32, gravity: Vectors, stride: ti.f32, period: Vectors, grid: Vectors, shape: Ints,
          wraps: ti.template(), directory: Ints, values: Nodes, near: Ints, old_x: Vectors, old_v: Vectors, x: Vectors,
          v: Vectors, watch: Ints, still: ti.f32, calm: Ints, windy: ti.template(), body: Ints, drag: Reals,
          air: Vectors):  # fmt: skip
    """Eq. 42, with 0 or 1 for eta. Notes what is to be looked at again: see the names of `watch`. What rests in a calm
    block stays where it is: most of a pile, most of the time."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for i in range(n):
        at = old_x[i]
        if old_v[i].dot(old_v[i]) <= still * still:
            block = ti.floor((at - grid[ORIGIN]) * grid[INVERSE], ti.i32) >> LOG
            slot = slot_at(block, dims, periodic, wraps, directory)
            if slot >= 0:
                if calm[slot] == 1:
                    x[i], v[i], watch[i] = at, vec3(0.0), 0
                    continue
        speed, fill, slot = field_at(at, i, grid, dims, periodic, wraps, directory, values)
        seen = WALLS
        if fill < FILLED:
            speed = old_v[i] + dt * gravity[0]
            if ti.static(windy):  # as `drag` does with particles, by the exact solution for drag alone
                against = air[i] - speed
                c = dt * drag[body[i]] * against.norm()
                speed += c / (1.0 + c) * against
        way = dt * speed
        if way.dot(way) < (HOP * stride) ** 2:
            if slot >= 0:
                seen = near[slot] * WALLS
        elif fill < FILLED and way.dot(way) > stride * stride:
            seen = LANDING
        at += way
        if ti.static(wraps):
            at -= period[LENGTH] * ti.floor(at * period[INVERSE_LENGTH])
        x[i], v[i], watch[i] = at, speed, seen


@ti.kernel
def _land(n: ti.i32, dt: ti.f32, stride: ti.f32, period: Vectors, grid: Vectors, shape: Ints, wraps: ti.template(),
          directory: Ints, values: Nodes, near: Ints, old_x: Vectors, x: Vectors, v: Vectors, watch: Ints):  # fmt: skip
    """What falls fast may meet the medium on its way: there it stops."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for i in range(n):
        if watch[i] == LANDING:
            way = dt * v[i]
            strides = ti.min(ti.ceil(way.norm() / stride, ti.i32), MOST_STRIDES)
            for k in range(1, strides):
                at = old_x[i] + k / ti.cast(strides, ti.f32) * way
                speed, fill, _ = field_at(at, i, grid, dims, periodic, wraps, directory, values)
                if fill >= FILLED:
                    at += dt * (strides - k) / strides * speed
                    x[i], v[i] = at - period[LENGTH] * ti.floor(at * period[INVERSE_LENGTH]), speed
                    break


@ti.kernel
def _keep_out(n: ti.i32, again: ti.i32, dt: ti.f32, slack: ti.f32, body: Ints, radius: Reals, friction: RealTable,
              stride: ti.f32, wraps: ti.template(), period: Vectors, old_x: Vectors, x: Vectors, v: Vectors,
              watch: Ints, t: WallTable):  # fmt: skip
    """Puts grains that are nearer to a wall than their radius, less the share `slack`, back to it. A round looks at
    those that are watched by `again` or more, and has those that it moves looked at in the next."""
    for i in range(n):
        if watch[i] >= again:
            clearance = radius[body[i]]
            least = clearance * (1.0 - slack)
            walls, offset = candidates(x[i], t)
            for k in range(walls):
                wall = candidate(k, offset, t)
                wall_v = velocity_of(wall, x[i], t)
                whole = difference(x[i], old_x[i], wraps, period) - dt * wall_v  # the way relative to the wall
                if within(wall, x[i], clearance + whole.norm(), t):
                    for side in range(t.side_begin[wall], t.side_begin[wall + 1]):
                        y, distance, outward = x[i], 0.0, vec3(0.0)
                        way, strides = vec3(0.0), 1
                        if not is_plane(side, t):  # to the first place on the way that is too near
                            way = difference(x[i], old_x[i], wraps, period) - dt * wall_v
                            strides = ti.max(ti.min(ti.ceil(way.norm() / stride, ti.i32), MOST_STRIDES), 1)
                        for s in range(1, strides + 1):
                            y = x[i] - (1.0 - s / ti.cast(strides, ti.f32)) * way
                            distance, outward = side_at(side, y, t)
                            if distance < least:
                                break
                        if distance < least and outward.norm() > 0.0:
                            out = outward.normalized()
                            slip = v[i] - velocity_of(wall, x[i], t)
                            push, rub = stopped(slip, out, friction[wall, body[i]])
                            x[i] = y + (clearance - distance) * out + dt * rub
                            v[i] = v[i] + push + rub
                            watch[i] = ti.max(again, LANDING) + 1


@dataclasses.dataclass
class GrainBody:
    """The grains of one body: how many each particle has, the volume of a particle, and what they rub with."""

    name: str  # of the body
    number: int  # of the body among those of particles
    per_particle: int
    volume: float  # [m^3]
    roughness: float  # Coulomb coefficient on walls that have none of their own
    colors: str
    density: float  # [kg/m^3]

    @property
    def radius(self) -> float:
        """Of a grain [m], half the edge of its share of the volume."""
        return float(0.5 * (self.volume / self.per_particle) ** (1 / 3))


class Grains(ArrayStore):
    """All grains of a scene. They are never sorted."""

    name = "grains"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("x", "vector", "m", "position", carried=True),
        Field("v", "vector", "m/s", "velocity", carried=True),
        Field("air", "vector", "m/s", "velocity of the air"),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(getattr(material, "grains", 0) for material in materials)

    @classmethod
    def build(cls, world: World, bodies: Sequence[BodySamples]) -> "Grains":
        walls = [body for body in bodies if body.material.is_wall]
        return cls(world, walls)

    def __init__(self, world: World, walls: Sequence[BodySamples]):
        self.groups = [GrainBody(body.name, number, int(material.grains), body.volume_each, material.roughness,
                                 body.colors, material.density)
                       for number, body in enumerate(world.bodies)
                       if getattr(material := world.materials[body.material], "grains", 0)]  # fmt: skip
        super().__init__([group.name + GRAINS for group in self.groups])
        self.world, spacing = world, FINE * world.spacing
        self._gravity = upload(world.gravity[None], vec3)
        maps = [None if wall.planes is not None else _distances(body, world.spacing)
                for wall, body in zip(world.walls.walls, walls, strict=True)]  # fmt: skip
        reach = KNOWN * spacing + MOST_STRIDES * STRIDE * world.spacing  # of grains on the longest way that is followed
        self._walls = TableOfWalls(world.walls.walls, maps, spacing, reach)
        self.wind: Wind | None = None
        self._drag = upload(np.zeros(len(self.groups)), ti.f32)
        self._radius = upload(np.array([group.radius for group in self.groups]), ti.f32)
        between = world.frictions.between
        rubbing = [[between(w.name, g.name) for g in self.groups] for w in world.walls.walls]
        self._friction = upload(np.array(rubbing) if rubbing else np.zeros((1, 1)), ti.f32)
        crowd = np.zeros(len(world.bodies))
        self.field = GrainField(world, upload(crowd, ti.f32))
        for group in self.groups:
            crowd[group.number] = group.per_particle / group.volume * np.prod(self.field.size)
        self.field.crowd.from_numpy(crowd.astype(np.float32))

    def reserve(self, count: int) -> None:
        grows = count > self.capacity
        super().reserve(count)
        if grows:
            self._x, self._v, self._watch = (self._allocate(kind) for kind in ("vector", "vector", "int"))
            self._advanced = False

    def expose(self, air: Air) -> None:
        """Lets the air drag on grains in free flight by their own diameter D, or by that which it is told: each is as
        heavy as its share of the medium, and slows down by 3/4 rho_air C_D |v|^2 / (rho D) (see `drag`)."""
        self.wind = Wind(air)
        pull = [0.75 * air.density * air.drag / (group.density * (air.grain or 2 * group.radius))
                for group in self.groups]  # fmt: skip
        self._drag = upload(np.array(pull), ti.f32)

    def fill(self, bodies: Sequence[BodySamples]) -> None:
        """Grains spread evenly through each body."""
        for k, group in enumerate(self.groups):
            body = next(b for b in bodies if b.name == group.name)
            x = sample_grains(body, bodies, self.world.spacing, group.radius)
            self.add(k, {"x": x, "v": np.broadcast_to(body.velocity, x.shape)})

    def styles(self) -> list[CloudStyle]:
        return [CloudStyle(g.name + GRAINS, g.colors, g.radius, fluid=False, grains=True) for g in self.groups]

    def clouds(self) -> dict[str, Cloud]:
        found = super().clouds()
        for cloud in found.values():
            cloud.fields["id"] = np.arange(len(cloud.x), dtype=np.int32)
        return found

    def backup(self) -> None:
        """The last step but one is there anyway: see `advance`."""
        self._advanced = False

    def rollback(self) -> None:
        if self._advanced:
            self._swap()
            self._advanced = False

    def _swap(self) -> None:
        """Lets the state and that before the last step change places."""
        for now, before in (("x", "_x"), ("v", "_v")):
            one, other = getattr(self, now), getattr(self, before)
            setattr(self, now, other)
            setattr(self, before, one)

    def advance(self, dt: float) -> None:
        """Moves the grains by the step that the particles and the walls have made."""
        world, near, stride = self.world, self.world.neighbors, STRIDE * self.world.spacing
        self._swap()
        self._advanced = True
        self._walls.update(world.walls.poses)
        walls = self._walls.table if self._walls.walls else None
        largest, still = max(group.radius for group in self.groups), STILL * world.spacing / dt
        self.field.find(dt, world.low, world.high, self.n, self._x, walls, largest + HOP * stride, still)
        _move(self.n, dt, self._gravity, stride, near.period, *self.field.arguments, self._x, self._v, self.x, self.v,
              self._watch, still, self.field.calm, self.wind is not None, self.body, self._drag, self.air)  # fmt: skip
        _land(self.n, dt, stride, near.period, *self.field.arguments, self._x, self.x, self.v, self._watch)
        rounds = [WALLS] + [LANDING + k for k in range(1, ROUNDS)] * (len(self._walls.walls) > 1)
        for again in rounds if self._walls.walls else ():
            slack = 0.0 if again == WALLS else SLACK
            _keep_out(self.n, again, dt, slack, self.body, self._radius, self._friction, stride, near.wraps,
                      near.period, self._x, self.x, self.v, self._watch, self._walls.table)  # fmt: skip

    def follow(self, number: int, x: np.ndarray, name: str, change: np.ndarray) -> None:
        """Moves the grains of a body ("x"), or changes their velocities ("v"), as somebody has just done with its
        particles, which were at `x` (n, 3) [m]: each as the nearest particle."""
        for k, group in enumerate(self.groups):
            if group.number == number and len(x):
                rows = self.rows_of(k)
                nearest = cKDTree(x).query(self.read("x", rows), workers=-1)[1]
                self.write(name, rows, self.read(name, rows) + change[nearest])

    def particles_added(self, body: int, x: np.ndarray, v: np.ndarray) -> None:
        """New particles of a body bring their grains along: evenly in a cube around each, the same every time."""
        for k, group in enumerate(self.groups):
            if group.number == body:
                places = around(group.per_particle) * group.volume ** (1 / 3)
                self.add(k, {"x": (x[:, None] + places).reshape(-1, 3), "v": np.repeat(v, group.per_particle, axis=0)})

    def particles_removed(self, body: int, x: np.ndarray) -> None:
        """Particles of a body that go take as many grains with them as they have brought: the nearest ones."""
        for k, group in enumerate(self.groups):
            if group.number == body and len(x):
                rows = self.rows_of(k)
                away = cKDTree(x).query(self.read("x", rows), workers=-1)[0]
                gone = np.argsort(away, kind="stable")[: group.per_particle * len(x)]
                self.remove(rows[gone])


class GrainMotion(Stage):
    """Moves the grains, which nothing else reads."""

    name = place = "grains"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return Grains.wanted(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.air: Air | None = settings.air

    @property
    def grains(self) -> Grains:
        grains = self.world.stores[Grains.name]
        assert isinstance(grains, Grains)
        return grains

    def after_neighbors(self) -> None:
        """Finds the air around each grain. A user's function may fail: nothing has been changed yet."""
        if self.air is not None:
            if self.grains.wind is None:
                self.grains.expose(self.air)
            assert self.grains.wind
            self.grains.wind.blow(self.grains, self.world.time)

    def run(self, dt: float) -> None:
        self.grains.advance(dt)


@functools.cache
def around(count: int) -> np.ndarray:
    """So many places in a unit cube about its middle, spread evenly (Martin Roberts' R3 sequence)."""
    g = 1.22074408460575947536  # the root of g^4 = g + 1
    return (0.5 + np.arange(1, count + 1)[:, None] / g ** np.arange(1, 4)) % 1.0 - 0.5


def _distances(body: BodySamples, spacing: float) -> DistanceMap:
    """The true distances of a round wall: the effective ones of its volume map are for particles."""
    key = f"{body.shape.key()} {body.material.inside_out} {spacing!r}"
    return DistanceMap(functools.partial(wall_distance, body), body.shape.bounds(), FINE * spacing, KNOWN, DEPTH,
                       bool(body.material.inside_out), key)  # fmt: skip
