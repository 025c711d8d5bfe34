"""Nozzles: layers of particles that follow each other at the distance at which area times speed is the flow.

A layer is a pattern of N points in the plane of the nozzle. With the volume V of a particle and the area A, layers that
are N V / A apart carry the flow A u at any speed u and in any step: whenever the newest layer has moved on by that
much, the next one is put behind it, to the fraction of a step, so that there is neither a gap nor an overlap.

The first two layers are still in the nozzle. They move at its velocity, whatever acts on them, as a support h of two
spacings needs it: what flows freely never sees a layer appear. To the pressure solve they are not prescribed but heavy
(`PUMP`): a nozzle that works against a pressure slows down instead of compressing what cannot be compressed, and the
solve has a solution even in a tank that is full. While something lies in its way, the flow waits.
"""

import numpy as np
import taichi as ti

from pliant.boundary.wall import Wall
from pliant.core.backend import Ints, Reals, RealTable, Spans, Vectors
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World
from pliant.solvers.births.meter import Meter
from pliant.solvers.births.options import Emitter
from pliant.solvers.births.region import Region

PUMP = 0.01  # inverse density of what is in a nozzle, relative to its own
LAYERS = 2  # that are still in the nozzle
GAP = 0.5  # in spacings: what is nearer to a particle in the nozzle is in its way,
BEHIND = 0.6  # and so is what is so far behind the nozzle where a layer is due
OBSTRUCTED = 0.2  # share of its particles with something in their way at which a nozzle waits: a few push it aside
CLEAR = 0.65  # in spacings: how far the first layer keeps from what is there already
WALL_CLEAR = 0.25  # in spacings: the same from walls, which put back what is nearer
STALLED = 0.1  # of its speed: a nozzle that is slower is held up
PATIENCE = 20  # steps that it is held up before it is told
ORIGIN, NORMAL, VELOCITY, SPIN, FRAME = range(5)  # rows of a nozzle's frame, and their number
LAYER, OFFSET, OPEN, NUMBERS = range(4)  # columns of its numbers


@ti.kernel
def survey(n: ti.i32, nozzles: ti.i32, wraps: ti.template(), period: Vectors, nozzle: Ints, x: Vectors, frame: Vectors,
           numbers: RealTable, partial: RealTable):  # fmt: skip
    """How far the newest layer of each nozzle has come: sums over all particles in it of that, and their number."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        for k in range(2 * nozzles):
            partial[b, k] = 0.0
        for i in range(lo, hi):
            e = nozzle[i]
            if e >= 0:
                away = difference(x[i], frame[FRAME * e + ORIGIN], wraps, period).dot(frame[FRAME * e + NORMAL])
                layers = ti.round((away - numbers[e, OFFSET]) / numbers[e, LAYER])
                partial[b, 2 * e] += away - layers * numbers[e, LAYER]
                partial[b, 2 * e + 1] += 1.0


@ti.kernel
def drive(n: ti.i32, wraps: ti.template(), period: Vectors, nozzle: Ints, material: Ints, density: Reals, x: Vectors,
          frame: Vectors, numbers: RealTable, inverse_density: Reals, effective_inverse_density: Reals,
          v: Vectors):  # fmt: skip
    """Gives what is in a nozzle its velocity; what has left it, or is in one that has closed, is free from now on."""
    for i in range(n):
        e = nozzle[i]
        if e >= 0:
            arm = difference(x[i], frame[FRAME * e + ORIGIN], wraps, period)
            free = 1.0 / density[material[i]]
            gone = arm.dot(frame[FRAME * e + NORMAL]) >= (LAYERS - 1e-3) * numbers[e, LAYER]
            if gone or numbers[e, OPEN] == 0.0:
                nozzle[i] = -1
            else:
                v[i] = frame[FRAME * e + VELOCITY] + frame[FRAME * e + SPIN].cross(arm)
                free *= PUMP
            inverse_density[i], effective_inverse_density[i] = free, free


@ti.kernel
def look(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
         factor: Reals, nozzle: Ints, spacing: ti.f32, frame: Vectors, obstructed: Ints):  # fmt: skip
    """How many particles of each nozzle have something in their way that is not theirs: too close to them, or behind
    them where the next layer is due."""
    for i in range(n):
        e = nozzle[i]
        if e >= 0:
            normal, found = frame[FRAME * e + NORMAL], 0
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if nozzle[j] != e:
                    way = difference(x[j], x[i], wraps, period)
                    along = way.dot(normal)
                    beside = (way - along * normal).norm()
                    away = difference(x[j], frame[FRAME * e + ORIGIN], wraps, period).dot(normal)
                    behind = along < 0.0 and beside < GAP * spacing and away > -BEHIND * spacing
                    if way.norm() < GAP * spacing or behind:
                        found = 1
            if found == 1:
                ti.atomic_add(obstructed[e], 1)


class Nozzle:
    """An emitter at work."""

    def __init__(self, emitter: Emitter, world: World):
        self.emitter, self.world = emitter, world
        number = world.body_number(emitter.body)
        assert number is not None
        self.number, self.volume_each = number, world.bodies[number].volume_each
        self.spacing = self.volume_each ** (1 / 3)
        self.axes, self.origin = emitter.axes(), emitter.shape.middle()
        self.points = emitter.shape.points(self.spacing) @ self.axes[:2]
        self.layer = len(self.points) * self.volume_each / emitter.shape.area()  # distance of layers [m]
        self.meter, self.flow = Meter(), np.zeros(3)
        # How far the newest layer has come [m], at which time [s]. A layer stands for what is half of it ahead and half
        # of it behind: so the first one comes once half of it has.
        self.offset, self.until = -0.5 * self.layer, 0.0
        self.members, self.pace = 0, 0.0  # particles in the nozzle, and their speed [m/s]
        self.blocked, self.waits, self.told = False, 0, False

    # --- where it is and how it flows -------------------------------------------------------------------

    @property
    def wall(self) -> Wall | None:
        """The wall that it moves with."""
        return self.world.walls.find(self.emitter.moves_with)

    def set_flow(self, t: float) -> None:
        """Takes the velocity at time t [s]; nothing else changes, whatever a user's function raises."""
        open_now = self.is_open(t)
        self.flow = self.emitter.flow_at(t, self.axes[2]) if open_now else np.zeros(3)

    def is_open(self, t: float) -> bool:
        """Whether it is time for it to flow."""
        stop = self.emitter.stop
        return t >= self.emitter.start and (stop is None or t < stop) and self.left > 0

    @property
    def left(self) -> int:
        """Particles that are still to come."""
        if self.emitter.volume is None:
            return 1 << 60
        return max(round(self.emitter.volume / self.volume_each) - self.meter.count, 0)

    @property
    def speed(self) -> float:
        """At which layers leave it [m/s]."""
        return float(self.flow @ self.axes[2])

    @property
    def waiting(self) -> bool:
        """Whether something holds it up."""
        return self.waits > 0

    @property
    def held(self) -> bool:
        """Whether the next layer is due and something is in its way."""
        return self.blocked and self.offset >= self.layer

    def frame(self) -> np.ndarray:
        """(FRAME, 3) where it is, how it is turned, and how what is in it moves."""
        wall, flow = self.wall, np.zeros(3) if self.held else self.flow
        if wall is None:
            return np.array([self.origin, self.axes[2], flow, np.zeros(3)])
        wall.set_velocity(self.world.time)
        origin, turned = wall.placed(self.origin), wall.rotation
        moved = wall.velocity + np.cross(wall.spin, origin - wall.pivot - wall.shift)
        return np.array([origin, turned @ self.axes[2], turned @ flow + moved, wall.spin])

    def numbers(self, t: float) -> np.ndarray:
        return np.array([self.layer, self.offset, float(self.is_open(t))])

    # --- what it does -----------------------------------------------------------------------------------

    def advance(self, t: float, region: Region) -> list[np.ndarray]:
        """The points (n, 3) of the layers that are due at time t, once it is known how far the newest one has come
        (`offset`, `members`)."""
        due: list[np.ndarray] = []
        if self.is_open(t) and self.speed > 0:
            clear = True
            if not self.members and self.offset >= 0:  # the first layer of a nozzle that is empty
                clear = self._is_clear(self._layer(), region)
                due = [self._layer()] * clear
                self.offset *= clear
            while clear and self.offset >= self.layer and not self.blocked:
                self.offset -= self.layer
                due.append(self._layer())
            self.waits = self.waits + 1 if self.held or not clear else self.waits
        self.until = t
        return due

    def predict(self, t: float) -> None:
        """Where the newest layer would be by now if nothing had held it up."""
        self.offset += self.speed * (t - max(self.until, self.emitter.start)) if self.is_open(t) else 0.0

    def measured(self, offset: float, members: int, t: float) -> None:
        """Takes how far the newest layer has come, by the particles in the nozzle."""
        self.members, self.pace = members, 0.0
        if members and t > self.until:
            drift = (offset - self.offset) / (t - self.until)  # beside what was predicted
            self.pace = self.speed + drift if self.speed > 0 else 0.0
            self.offset, self.waits = offset, self.waits + 1 if self.pace < STALLED * self.speed else 0

    def _layer(self) -> np.ndarray:
        """The points of a layer that has come as far as `offset`."""
        x = self.origin + self.points + self.offset * self.flow / self.speed  # it may leave the nozzle obliquely
        return x if self.wall is None else self.wall.placed(x)

    def _is_clear(self, x: np.ndarray, region: Region) -> bool:
        """Whether nothing is where a first layer is to be, and as far ahead as the nozzle reaches."""
        ahead = self.frame()[NORMAL] * self.layer
        way = np.concatenate([x + k / 2 * ahead for k in range(2 * LAYERS + 1)])
        return (region.is_free_of_particles(way, CLEAR * self.spacing)
                and region.is_free_of_walls(x, WALL_CLEAR * self.spacing))  # fmt: skip

    # --- state ------------------------------------------------------------------------------------------

    def save(self) -> np.ndarray:
        return np.array([self.offset, self.until, self.pace, self.members, self.blocked, self.waits, self.told], float)

    def restore(self, saved: np.ndarray) -> None:
        self.offset, self.until, self.pace = (float(a) for a in saved[:3])
        self.members, self.waits = int(saved[3]), int(saved[5])
        self.blocked, self.told = bool(saved[4]), bool(saved[6])
