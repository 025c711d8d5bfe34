"""An elastic body that is held at a point, by a spring to the particles around it.

The spring of `grip` (1), with the mass M of the whole body. The force is bounded by F_max: ten times the weight, or
less if the body is so soft that this would stretch the part that is held by more than `STRAIN`.

Few particles are held, and their own mass may be a thousandth of M. As if alone they would need steps dt << 1 / (1000
w); and an implicit step that takes them for free would let them hardly feel the spring. But elasticity hands a kick on
within the step: a force f over dt leaves the held particles with the velocity dt f / m, where m is the mass that moves
along, from theirs in a soft body to that of all in a rigid one, which turns as well (`Elasticity.yielding`, found
once). What else acts on
them has answered the last force f_0. So

    u' = u + dt (f - f_0) / m,    f = k (e - dt u') - c u'
    f = (k e - (c + dt k) u + b f_0) / (1 + b),    b = dt (c + dt k) / m.                                 (2)

This is backward Euler in the spring, for any step. In equilibrium u = 0 and f = f_0, hence f = k e: a body hangs as low
as (1) says, however long the step. While it moves, f comes later than (1) says by b dt, which is a small part of 1 / w
unless m is a very small part of M.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World
from pliant.errors import PliantError
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.interaction.grip import STRENGTH, Grip, bounded

LEAST_STRENGTH = 4.0  # times the weight is what the hand may always pull with, however soft the body
LIFT = 2.0  # times the weight is what the part that is held should bear
STRAIN = 0.5  # by which the hand may stretch that part
HANDFUL = 3.0  # spacings: the least radius of what is held of a body,
PALM = 0.15  # of its size (the cube root of its volume) is the usual one,
EMBRACE = 0.5  # and the most, for what is very soft
FEWEST = 8  # particles to be held, if there are as many
EVENLY = 1.001  # and those as far away as the last of these, up to round-off
THREAD = 1e-4  # of the largest moment of inertia: less is round-off, as a thread has about itself
BODY_SUMS = 19  # see _sum_body
SUMS = 7  # mass, mass times way to the target (3), momentum (3)


@ti.kernel
def _find(n: ti.i32, count: ti.i32, wraps: ti.template(), period: Vectors, held: Ints, slot: Ints, m: Reals,
          inverse_density: Reals, x: Vectors, v: Vectors, goal: Vectors, place: Ints, sums: Reals):  # fmt: skip
    """Where the held particles are among all, and the sums over them. `held` numbers them by their elastic slot."""
    for i in range(n):
        if slot[i] >= 0:
            if held[slot[i]] >= 0:
                place[held[slot[i]]] = i
    ti.loop_config(serialize=True)
    for _ in range(1):
        mass, way, momentum = 0.0, vec3(0.0), vec3(0.0)
        for k in range(count):
            i = place[k]
            if inverse_density[i] > 0.0:
                mass += m[i]
                way += m[i] * difference(goal[0], x[i], wraps, period)
                momentum += m[i] * v[i]
        sums[0] = mass
        for a in ti.static(range(3)):
            sums[1 + a], sums[4 + a] = way[a], momentum[a]


@ti.kernel
def _pull(count: ti.i32, place: Ints, inverse_density: Reals, ax: ti.f32, ay: ti.f32, az: ti.f32, v: Vectors):
    for k in range(count):
        if inverse_density[place[k]] > 0.0:
            v[place[k]] += vec3(ax, ay, az)


@ti.kernel
def _sum_body(n: ti.i32, number: ti.i32, body: Ints, m: Reals, x: Vectors, v: Vectors, origin: Vectors,
              out: RealTable):  # fmt: skip
    """Of one body, in blocks: mass, m x (3), m v (3), m x cross v (3) and m x x^T (9), with x from the origin."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        mass, place, momentum, spin, second = 0.0, vec3(0.0), vec3(0.0), vec3(0.0), mat3(0.0)
        for i in range(lo, hi):
            if body[i] == number:
                arm = x[i] - origin[0]
                mass += m[i]
                place += m[i] * arm
                momentum += m[i] * v[i]
                spin += m[i] * arm.cross(v[i])
                second += m[i] * arm.outer_product(arm)
        out[b, 0] = mass
        for a in ti.static(range(3)):
            out[b, 1 + a], out[b, 4 + a], out[b, 7 + a] = place[a], momentum[a], spin[a]
            for c in ti.static(range(3)):
                out[b, 10 + 3 * a + c] = second[a, c]


@ti.kernel
def _turn(n: ti.i32, number: ti.i32, body: Ints, x: Vectors, turn: Vectors, v: Vectors):
    """Adds a rotation: `turn` is its centre and the change of angular velocity."""
    for i in range(n):
        if body[i] == number:
            v[i] += turn[1].cross(x[i] - turn[0])


class GrabSpring(Grip):
    """An elastic body, by a spring to some of its particles. `force` is what it pulled with in the last step [N]."""

    def __init__(self, world: World, settings: Any, elasticity: Elasticity, number: int, point: np.ndarray,
                 radius: float | None, let_go: Callable[[Grip], None]):  # fmt: skip
        p = world.particles
        self.number, rows = number, p.rows_of(number)
        free = rows[p.read("inverse_density", rows) > 0]
        if not len(free):
            raise PliantError(f"{world.bodies[number].name}: all of its particles are fixed or moved by a function, so "
                              "it cannot be grabbed")  # fmt: skip
        super().__init__(world, settings, point, float(p.read("V", rows).sum(dtype=float)) ** (1 / 3), let_go)
        self.force, self.radius = np.zeros(3), radius
        self._goal, self._sums = ti.ndarray(vec3, 1), ti.ndarray(ti.f32, SUMS)
        self._turn, self._body_sums = ti.ndarray(vec3, 2), ti.ndarray(ti.f32, (BLOCKS, BODY_SUMS))
        self.bind(world, settings, elasticity)
        self._take(free, point)
        self._look()

    def bind(self, world: World, settings: Any, elasticity: Elasticity | None) -> None:
        super().bind(world, settings, elasticity)
        assert elasticity is not None
        self.elasticity = elasticity
        self._laws: Any = None
        p, rows = world.particles, world.particles.rows_of(self.number)
        self.mass = float(p.read("m", rows[p.read("inverse_density", rows) > 0]).sum(dtype=float))
        if self.radius is None:
            self.radius = self._usual_radius()
        weight = self.mass * self.gravity
        self.strongest = min(max(self._bearable(self.radius), LEAST_STRENGTH * weight), STRENGTH * weight)  # F_max [N]

    def _usual_radius(self) -> float:
        """As much as a hand takes; and more of what is so soft that the hand would stretch it too far by its weight."""
        soft = math.sqrt(LIFT * self.mass * self.gravity / self._bearable(1.0))
        hand = min(max(PALM * self.size, soft), EMBRACE * self.size)
        return max(HANDFUL * self.world.bodies[self.number].spacing, hand)

    def _bearable(self, radius: float) -> float:
        """The force [N] that stretches a rod of this radius by STRAIN."""
        return math.pi * radius**2 * STRAIN * float(self.world.materials[self.world.bodies[self.number].material].young)

    def _take(self, rows: np.ndarray, point: np.ndarray) -> None:
        """Chooses the particles: those around the nearest one, as they are at rest, so that nothing is taken along that
        only happens to be near."""
        p = self.world.particles
        x, rest, m = (p.read(name, rows).astype(float) for name in ("x", "rest", "m"))
        away = np.linalg.norm(self.world.neighbors.shortest(x - point), axis=1)
        nearest = int(np.argmin(away))
        apart = np.linalg.norm(self.world.neighbors.shortest(rest - rest[nearest]), axis=1)
        enough = np.sort(apart)[min(FEWEST, len(rows)) - 1]
        chosen = apart <= max(self.radius, EVENLY * enough)
        self._hold(rows[chosen])
        self._target = self._point = point if away[nearest] <= self.radius else x[nearest]
        self._offset = np.average(self.world.neighbors.shortest(self._point - x[chosen]), axis=0, weights=m[chosen])

    def _hold(self, rows: np.ndarray) -> None:
        """Holds these particles, by the elastic slots that they have now."""
        p = self.world.particles
        self._ids, self.taken = p.read("id", rows), p.read("slot", rows)
        held = np.full(self.elasticity.bodies.n, -1, np.int32)
        held[self.taken] = np.arange(len(self.taken))
        self._held, self._place = upload(held, ti.i32), ti.ndarray(ti.i32, len(self.taken))

    def members_changed(self) -> None:
        """Elastic bodies have come or gone, and slots with them; what is gone cannot be held."""
        p, rows = self.world.particles, self.world.particles.rows_of(self.number)
        if len(rows):
            self._hold(rows[np.isin(p.read("id", rows), self._ids)])
        else:
            self.release()

    @property
    def point(self) -> np.ndarray:
        self._look()
        return self._point.copy()

    def _look(self) -> None:
        """Finds the held particles: their mass, and way to the target and velocity of their middle."""
        p, near = self.world.particles, self.world.neighbors
        self._goal.from_numpy((self._target - self._offset)[None].astype(np.float32))
        _find(p.n, len(self.taken), near.wraps, near.period, self._held, p.slot, p.m, p.inverse_density, p.x, p.v,
              self._goal, self._place, self._sums)  # fmt: skip
        sums = self._sums.to_numpy().astype(float)
        self._held_mass = sums[0]
        if self._held_mass > 0:  # they may all have been fixed since
            self._way, self._u = sums[1:4] / sums[0], sums[4:] / sums[0]
            self._point = self._target - self._way

    def after_neighbors(self) -> None:
        """Before anything acts, while velocities are those at which the particles came here."""
        self._look()

    def run(self, dt: float) -> None:
        if self._held_mass == 0:
            self.force = np.zeros(3)
            return
        if self._laws is not self.elasticity.laws:
            self._weigh()
        if self._loose:
            self._slow_turning(dt)
        k, c = self.mass * self.w**2, 2 * self.mass * self.w
        b = dt * (c + dt * k) / self._along
        force = (k * self.within(self._way) - (c + dt * k) * self._u + b * self.force) / (1 + b)  # (2)
        self.force = bounded(force, self.strongest)
        p = self.world.particles
        _pull(len(self.taken), self._place, p.inverse_density, *(dt * self.force / self._held_mass), p.v)

    def _weigh(self) -> None:
        """The mass that moves along with the held particles in a step, m in (2): once, and again when the stiffness of
        bodies or which particles are fixed has changed."""
        p, free = self.world.particles, self.elasticity.free
        self._laws = self.elasticity.laws
        own = p.read("slot", p.rows_of(self.number))
        self._loose = bool(free[own].all()) and not self.world.neighbors.wraps
        self._along = 1.0 / self.elasticity.yielding(self.taken[free[self.taken]])

    def _motion(self) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Mass of the body, its centre, inertia and angular momentum about that."""
        p = self.world.particles
        self._goal.from_numpy(self._point[None].astype(np.float32))
        _sum_body(p.n, self.number, p.body, p.m, p.x, p.v, self._goal, self._body_sums)
        sums = self._body_sums.to_numpy().sum(axis=0, dtype=float)
        mass, place, momentum = sums[0], sums[1:4] / sums[0], sums[4:7]
        second = sums[10:].reshape(3, 3) - mass * np.outer(place, place)
        J = np.trace(second) * np.eye(3) - second
        return mass, self._goal.to_numpy()[0] + place, J, sums[7:10] - np.cross(place, momentum)

    def _slow_turning(self, dt: float) -> None:
        """A body that hangs by a point would swing for long. As far as it turns as a whole, it is slowed at the rate
        2 w at which (1) slows what it moves by, backward Euler again, and comes to rest in some tenths of a second.
        A rotation about its centre neither strains a body nor changes its momentum."""
        p = self.world.particles
        _, middle, J, spin = self._motion()
        change = -2 * self.w * dt / (1 + 2 * self.w * dt) * (np.linalg.pinv(J, rcond=THREAD, hermitian=True) @ spin)
        self._turn.from_numpy(np.array([middle, change], np.float32))
        _turn(p.n, self.number, p.body, p.x, self._turn, p.v)

    def max_dt(self) -> float:
        way = self.within(self.world.neighbors.shortest(self._target - self._point))
        return self.step_at(0.5 * self.w * float(np.linalg.norm(way)))

