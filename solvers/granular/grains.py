"""Grains: many small points for each particle of a granular medium, carried by it and otherwise falling freely (Neder
2024, Section 5.12, after Ihmsen et al. 2013). They are what is seen of the medium; it does not feel them.

Eq. 42 and 43 blend between the two motions by distances from single particles, so that grains creep in a pile at rest
and fall in its pores. Here the fill of the medium decides (see `grain_field`): inside, a grain moves with the medium;
outside, it falls. What falls into the medium stops there, what the medium loses flies on at the speed it had; a lone
particle does not fill, so that its grains scatter.

Walls hold grains back by their true distance, with a grain's radius between (in place of Eq. 44 and 45). A grain loses
the speed at which it meets a wall, and by Coulomb's law a share of that at which it slides: none where nothing presses
it on, so that no vertical wall holds it. Fast grains are followed along their way, and thin walls are not jumped.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import taichi as ti
from scipy.spatial import cKDTree

from pliant.boundary.distance_map import FAR, Blocks, Directory, DistanceMap
from pliant.boundary.walls import PIVOT, PLACE, POSE, SPIN, VELOCITY, Wall, rotation, side_at
from pliant.core.backend import Ints, Vectors, upload, vec3
from pliant.core.neighbors import INVERSE, INVERSE_LENGTH, LENGTH, ORIGIN, difference, triple
from pliant.core.world import World
from pliant.solvers.granular.grain_field import LOG, GrainField, Nodes, field_at, slot_at

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
          v: Vectors, watch: Ints, still: ti.f32, calm: Ints):  # fmt: skip
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
def _keep_out(first: ti.i32, last: ti.i32, again: ti.i32, dt: ti.f32, least: ti.f32, clearance: ti.f32,
              friction: ti.f32, stride: ti.f32, wraps: ti.template(), period: Vectors, old_x: Vectors, x: Vectors,
              v: Vectors, watch: Ints, flat: ti.template(), sides: ti.i32, pose: Vectors, planes: Vectors, cell: ti.f32,
              spacing: ti.f32, beyond: ti.f32, directory: Directory, spline: Blocks):  # fmt: skip
    """Puts grains that are nearer than `least` to one wall back to the clearance. A round looks at those that are
    watched by `again` or more, and has those that it moves looked at in the next."""
    for i in range(first, last):
        if watch[i] >= again:
            R = rotation(pose)
            nearest = -1.0
            if ti.static(flat):  # most grains are near no wall: a first look that costs little
                local = R.transpose() @ (x[i] - pose[PLACE]) + pose[PIVOT]
                nearest = least
                for k in range(sides):
                    nearest = ti.min(nearest, (local - planes[2 * k]).dot(planes[2 * k + 1]))
            if nearest < least:
                for k in range(sides):
                    arm = x[i] - pose[PLACE]
                    wall_v = pose[VELOCITY] + pose[SPIN].cross(arm)
                    y, distance, outward, strides = x[i], 0.0, vec3(0.0), 1
                    way = vec3(0.0)
                    if ti.static(not flat):  # along the way relative to the wall, to the first place that is too near
                        way = difference(x[i], old_x[i], wraps, period) - dt * wall_v
                        strides = ti.max(ti.min(ti.ceil(way.norm() / stride, ti.i32), MOST_STRIDES), 1)
                    for s in range(1, strides + 1):
                        y = x[i] - (1.0 - s / ti.cast(strides, ti.f32)) * way
                        local = R.transpose() @ (y - pose[PLACE]) + pose[PIVOT]
                        distance, outward = side_at(k, local, flat, pose, planes, cell, spacing, beyond, directory,
                                                    spline)  # fmt: skip
                        if distance < least:
                            break
                    if distance < least and outward.norm() > 0.0:
                        out = (R @ outward).normalized()
                        slip = v[i] - wall_v
                        stop = ti.min(slip.dot(out), 0.0)
                        slip -= slip.dot(out) * out
                        cut = ti.min(-friction * stop / ti.max(slip.norm(), 1e-12), 1.0) * slip
                        x[i] = y + (clearance - distance) * out - dt * cut
                        v[i] = v[i] - stop * out - cut
                        watch[i] = ti.max(again, LANDING) + 1


@dataclasses.dataclass
class GrainBody:
    """The grains of one body: `first` to `last` of all, how many each particle has, and the volume of a particle."""

    number: int  # of the body
    first: int
    last: int
    per_particle: int
    volume: float  # [m^3]
    roughness: float  # Coulomb coefficient on walls that have none of their own

    @property
    def radius(self) -> float:
        """Of a grain [m], half the edge of its share of the volume."""
        return float(0.5 * (self.volume / self.per_particle) ** (1 / 3))


class Grains:
    """All grains of a scene: positions `x` [m] and velocities `v` [m/s], in the order in which they were made.

    `distances` gives, for each wall in the order of `world.walls`, the function that knows its true distance, the box
    around it, whether the wall goes on beyond, and the key to keep its map by.
    """

    def __init__(self, world: World, bodies: Sequence[GrainBody], distances: Sequence[tuple[Callable, Any, bool, str]]):
        self.world, self.bodies = world, list(bodies)
        self.n = bodies[-1].last
        self.x, self.v, self._x, self._v = (ti.ndarray(vec3, self.n) for _ in range(4))
        self._watch = ti.ndarray(ti.i32, self.n)
        self._gravity = upload(world.gravity[None], vec3)
        crowd = np.zeros(len(world.materials))
        self._walls = [self._wall(wall, *d) for wall, d in zip(world.walls.walls, distances, strict=True)]
        self._told: dict[str, np.ndarray] = {}
        self.field = GrainField(world, upload(crowd, ti.f32))
        for body in bodies:
            crowd[body.number] = body.per_particle / body.volume * np.prod(self.field.size)
        self.field.crowd.from_numpy(crowd.astype(np.float32))

    def _wall(self, wall: Wall, distance: Callable, bounds: Any, solid_beyond: bool, key: str) -> tuple:
        """A wall as `side_at` takes it, with the map of its true distances: effective ones are for particles."""
        pose, d = ti.ndarray(vec3, POSE), self.world.spacing
        nothing, nowhere = ti.ndarray(ti.f32, (1, 1)), ti.ndarray(ti.i32, (1, 1, 1))
        if wall.planes is not None:
            planes = upload(wall.planes.reshape(-1, 3), vec3)
            return True, len(wall.planes), pose, planes, d, d, FAR * d, nowhere, nothing, np.zeros(3)
        m = DistanceMap(distance, bounds, FINE * d, KNOWN, DEPTH, solid_beyond, key)
        return False, 1, pose, ti.ndarray(vec3, 2), m.cell, FINE * d, m.beyond, m.directory, m.spline, m.origin

    def _place(self) -> list[tuple]:
        """Tells the device where the walls are now; those at rest are told once."""
        sides = []
        for wall, (*arguments, origin) in zip(self.world.walls.walls, self._walls, strict=True):
            rows = [origin, wall.pivot, wall.pivot + wall.shift, wall.velocity, wall.spin, *wall.rotation]
            values = np.array(rows, np.float32)
            told = self._told.get(wall.name)
            if told is None or not np.array_equal(values, told):
                arguments[2].from_numpy(values)
                self._told[wall.name] = values
            sides.append(tuple(arguments))
        return sides

    def set(self, x: np.ndarray, v: np.ndarray) -> None:
        """Puts all grains there [m], at these velocities [m/s]."""
        self.x.from_numpy(np.ascontiguousarray(x, np.float32))
        self.v.from_numpy(np.ascontiguousarray(v, np.float32))

    def advance(self, dt: float, low: np.ndarray, high: np.ndarray) -> None:
        """Moves the grains by the step that the particles, which were in the box low..high, and the walls have made."""
        near, stride = self.world.neighbors, STRIDE * self.world.spacing
        self._x, self.x, self._v, self.v = self.x, self._x, self.v, self._v
        sides = self._place()
        largest, still = max(body.radius for body in self.bodies), STILL * self.world.spacing / dt
        self.field.find(dt, low, high, self.n, self._x, sides, largest + HOP * stride, still)
        _move(self.n, dt, self._gravity, stride, near.period, *self.field.arguments, self._x, self._v, self.x, self.v,
              self._watch, still, self.field.calm)  # fmt: skip
        _land(self.n, dt, stride, near.period, *self.field.arguments, self._x, self.x, self.v, self._watch)
        for again in [WALLS] + [LANDING + k for k in range(1, ROUNDS)] * (len(sides) > 1):
            for wall, side in zip(self.world.walls.walls, sides, strict=True):
                for body in self.bodies:
                    friction = body.roughness if wall.friction is None else wall.friction
                    least = body.radius * (1.0 if again == WALLS else 1.0 - SLACK)
                    _keep_out(body.first, body.last, again, dt, least, body.radius, friction, stride, near.wraps,
                              near.period, self._x, self.x, self.v, self._watch, *side)  # fmt: skip

    def follow(self, number: int, x: np.ndarray, name: str, change: np.ndarray) -> None:
        """Moves the grains of a body ("x"), or changes their velocities ("v"), as somebody has just done with its
        particles, which were at `x` (n, 3) [m]: each as the nearest particle."""
        values = getattr(self, name).to_numpy()
        for body in self.bodies:
            if body.number == number:
                own = slice(body.first, body.last)
                values[own] += change[cKDTree(x).query(self.x.to_numpy()[own], workers=-1)[1]]
        getattr(self, name).from_numpy(values)

    def undo(self) -> None:
        """Takes the last step back."""
        self._x, self.x, self._v, self.v = self.x, self._x, self.v, self._v
