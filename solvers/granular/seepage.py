"""Water in the pores of sand: it seeps in and through, bears its part of the pressure, and comes out again.

Sand and the water in its pores are one particle: between grains of a millimetre, water that moves otherwise than they
do is stopped within milliseconds. What is left of its own motion is seepage, slow and without inertia. So each particle
of sand knows how much water it holds, w of at most n V (n is the porosity), and the pressure u of that water, and

- *effective stress* (Terzaghi 1923): of the pressure p of a particle the water bears u. Friction knows p - u only. Sand
  under water is no firmer than on land however deep it lies, and where u comes up to p it flows: quicksand.
- *seepage* (Darcy): volume flows between particles k and l by the difference of u - rho g.x. After Brookshaw 1985,

      Q_kl = V_k (m_k + m_l) |W'| V_l / r (U_k - U_l),    U = u - rho g.x.

- *mobility* m = |q| / |grad U| by Ergun 1952, |grad U| = A q + B q^2, for grains of diameter D and a viscosity mu:

      A = 150 mu (1 - n)^2 / (n^3 D^2),    B = 1.75 rho (1 - n) / (n^3 D).

  What is not full lets less through: m s^3 at a saturation s = w / (n V), of the particle from which it comes.
- *incompressible*: pores do not hold more than they have room for, and where they are not full the pressure is that of
  air. So 0 <= u perpendicular to n V - w >= 0 at the end of a step. It is solved for by projected sweeps, as the
  pressures of liquids are (`pressure.projection`), and begins with the pressures of the last step.
- *free water* next to the sand has u = p, as its mean over the last sqrt(d / g) or so, since p jitters. It gives or
  takes volume: its particles shrink until what is left joins another, or grow and are parted in two. (There is no
  resistance on its side of a pair: 4 m_k in place of m_k + m_l.)
- *in the open* u = 0. What comes out there gathers until it is enough for a particle of water.

Volume is kept, in water and pores together, and so is momentum: what passes takes its velocity along. Capillarity is
left out. Of several liquids the first one seeps, and what has the same density and viscosity.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, RealTable, Spans, Vectors, ivec2, upload, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World
from pliant.solvers.granular.pore_water import (
    SAND,
    WATER,
    is_porous,
    law_of,
    liquid_of,
    seeps,
    wet,
    wet_what_lies_under_water,
)
from pliant.solvers.stage import SolveResult, Stage

ROLE, POROSITY, VISCOUS, INERTIAL, DENSITY, WHOLE = range(6)  # columns of the table of materials (`law_of`)
TOLERANCE = 2e-3  # mean error of the pore pressure, in rho g d
LEAST_WEIGHT = 0.1  # the least g [m/s^2] by which that is measured
MAX_SWEEPS = 100
LONGEST_STEP, SHORTEST_STEP = 20.0, 0.1
OPEN = 0.93  # density ratio below which sand is in the open: it is 0.85 in the uppermost layer of a lattice
GENTLE = 1e-3  # of the weight of water: the least gradient by which Ergun's mobility is found
MOST_TAKEN = 0.3  # share of a particle of water that may seep away in a step
SMALL, FAT = 0.5, 1.5  # in volumes of a particle of water: smaller ones join others, larger ones are parted
APART = 0.25  # distance of the two halves from where the whole was [spacings]
ROOM = 0.7  # spacings from a drop that comes out of sand to all else
OUTSIDE = 0.9  # distance from sand at which water appears [spacings]
TINY = 1e-30

LENGTH, CURVATURE, ERROR, MEMBERS, SUMS = range(5)
GOING, GROWN, DRIPPING = range(3)  # events

Pores: TypeAlias = ti.types.argpack(mobility=Reals, D=Reals, change=Reals, residual=Reals, before=Reals)


@ti.func
def water_potential(i: ti.i32, rho: ti.f32, gravity: ti.template(), x: ti.template(), u: ti.template()):
    """U = u - rho g.x, of pores or of free water."""
    return u[i] - rho * gravity[0].dot(x[i])


@ti.func
def conductance(i: ti.i32, j: ti.i32, factor: ti.f32, law: ti.template(), material: ti.template(), V: ti.template(),
                mobility: ti.template()):  # fmt: skip
    """Q_ij over the difference of potentials, for pores that are full; zero where nothing seeps."""
    one, other = law[material[i], ROLE], law[material[j], ROLE]
    result = 0.0
    if one == SAND and other == SAND:
        result = mobility[i] + mobility[j]
    elif one * other == SAND * WATER:
        result = 4.0 * mobility[i] * mobility[j]  # of free water it is the share that may leave
    return -V[i] * factor * result


@ti.func
def passing(i: ti.i32, law: ti.template(), material: ti.template(), V: ti.template(), water: ti.template()):
    """The share of its mobility that a particle has as far as it is full."""
    result = 1.0
    if law[material[i], ROLE] == SAND:
        s = ti.min(ti.max(water[i] / (law[material[i], POROSITY] * V[i]), 0.0), 1.0)
        result = s * s * s
    return result


@ti.func
def inflow(i: ti.i32, row: ivec2, rho: ti.f32, gravity: ti.template(), law: ti.template(),
           material: ti.template(), x: ti.template(), neighbor: ti.template(), factor: ti.template(), V: ti.template(),
           u: ti.template(), water: ti.template(), v: ti.template(), mobility: ti.template()):  # fmt: skip
    """Volume per time that comes in, less what goes out; and the same times the velocity of whence it comes."""
    own = water_potential(i, rho, gravity, x, u)
    share = passing(i, law, material, V, water)
    net, carried = 0.0, vec3(0.0)
    for k in range(row[0], row[1]):
        j = neighbor[k]
        T = conductance(i, j, factor[k], law, material, V, mobility)
        if T > 0.0:
            drop = water_potential(j, rho, gravity, x, u) - own
            if drop > 0.0:
                Q = T * passing(j, law, material, V, water) * drop
                net += Q
                carried += Q * v[j]
            else:
                net += T * share * drop
                carried += T * share * drop * v[i]
    return net, carried


@ti.kernel
def _survey(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
            factor: Reals, density: Reals, wall_density: Reals, dt: ti.f32, recent: ti.f32, rho: ti.f32,
            gravity: Vectors, law: RealTable, material: Ints, V: Reals, p: Reals, u: Reals, in_open: Ints,
            c: Pores):  # fmt: skip
    """Who is in the open, mobilities, the shares of free water that may leave, and the diagonal."""
    least = GENTLE * rho * gravity[0].norm()
    for i in range(n):
        if law[material[i], ROLE] == WATER:
            u[i] += recent * (ti.max(p[i], 0.0) - u[i])
    for i in range(n):
        in_open[i], c.mobility[i], c.D[i] = 0, 0.0, 0.0
        if law[material[i], ROLE] == SAND:
            steep = vec3(0.0)
            own = water_potential(i, rho, gravity, x, u)
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if law[material[j], ROLE] > 0.0:
                    drop = water_potential(j, rho, gravity, x, u) - own
                    steep += factor[k] * drop * difference(x[i], x[j], wraps, period)
            in_open[i] = ti.cast(density[i] + wall_density[i] < OPEN, ti.i32)
            A, B = law[material[i], VISCOUS], law[material[i], INERTIAL]
            c.mobility[i] = 2.0 / (A + ti.sqrt(A * A + 4.0 * B * ti.max(steep.norm(), least)))
        elif law[material[i], ROLE] == WATER:
            c.mobility[i] = 1.0
    for i in range(n):
        if law[material[i], ROLE] == WATER:
            own, most = water_potential(i, rho, gravity, x, u), 0.0
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if law[material[j], ROLE] == SAND:
                    T = -4.0 * V[i] * factor[k] * c.mobility[j]
                    most += dt * T * ti.max(own - water_potential(j, rho, gravity, x, u), 0.0)
            c.mobility[i] = ti.min(MOST_TAKEN * V[i] / ti.max(most, TINY), 1.0)
    for i in range(n):
        if law[material[i], ROLE] == SAND:
            for k in range(span[i][0], span[i][1]):
                c.D[i] += conductance(i, neighbor[k], factor[k], law, material, V, c.mobility)
            c.D[i] *= dt / (law[material[i], POROSITY] * V[i])


@ti.kernel
def _sweep(n: ti.i32, x: Vectors, span: Spans, neighbor: Ints, factor: Reals, dt: ti.f32, step: ti.f32,
           rho: ti.f32, gravity: Vectors, law: RealTable, material: Ints, V: Reals, v: Vectors, u: Reals, water: Reals,
           in_open: Ints, c: Pores, partial: RealTable):  # fmt: skip
    """One projected step u <- u + step residual / D, the residuals after it (what is too much, in volumes of the
    pores), and sums. With a step of zero it finds the residuals as they are."""
    for i in range(n):
        if law[material[i], ROLE] == SAND:
            old, new = u[i], 0.0
            if in_open[i] == 0 and c.D[i] > 0.0:
                new = old
                if step > 0.0:
                    new = ti.max(old + step * c.residual[i] / c.D[i], 0.0)
            u[i], c.change[i], c.before[i] = new, new - old, c.residual[i]
    for i in range(n):
        if law[material[i], ROLE] == SAND:
            net, _ = inflow(i, span[i], rho, gravity, law, material, x, neighbor, factor, V, u, water, v,
                            c.mobility)  # fmt: skip
            c.residual[i] = (water[i] + dt * net) / (law[material[i], POROSITY] * V[i]) - 1.0
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        length, curvature, error, members = 0.0, 0.0, 0.0, 0.0
        for i in range(lo, hi):
            if law[material[i], ROLE] == SAND and in_open[i] == 0 and c.D[i] > 0.0:
                length += c.D[i] * c.change[i] ** 2
                curvature -= c.change[i] * (c.residual[i] - c.before[i])
                error += ti.select(u[i] > 0.0, ti.abs(c.residual[i]), ti.max(c.residual[i], 0.0)) / c.D[i]
                members += 1.0
        partial[s, LENGTH], partial[s, CURVATURE] = length, curvature
        partial[s, ERROR], partial[s, MEMBERS] = error, members


@ti.kernel
def _transfer(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
              factor: Reals, dt: ti.f32, rho: ti.f32, gravity: Vectors, law: RealTable, material: Ints, V: Reals,
              v: Vectors, u: Reals, water: Reals, ids: Ints, seeped: Reals, seeped_v: Vectors,
              heir: Ints, c: Pores):  # fmt: skip
    """What passes in this step, with its velocity, and to whom water that is nearly gone leaves the rest: to
    the nearest water that is not, or to the nearest sand."""
    for i in range(n):
        seeped[i], seeped_v[i] = 0.0, vec3(0.0)
        if law[material[i], ROLE] > 0.0:
            net, carried = inflow(i, span[i], rho, gravity, law, material, x, neighbor, factor, V, u, water, v,
                                  c.mobility)  # fmt: skip
            seeped[i], seeped_v[i] = dt * net, dt * carried
    for i in range(n):
        heir[i] = -1
        if law[material[i], ROLE] == WATER and V[i] + seeped[i] < SMALL * law[material[i], WHOLE]:
            nearest = 1e30
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                role, r = law[material[j], ROLE], difference(x[i], x[j], wraps, period).norm()
                if role == SAND:
                    r += 1e10  # water goes first
                lasting = role == SAND or V[j] + seeped[j] >= SMALL * law[material[j], WHOLE]
                if role > 0.0 and j != i and r < nearest and lasting:
                    nearest, heir[i] = r, ids[j]


@ti.kernel
def _settle_accounts(n: ti.i32, rho: ti.f32, whole: ti.f32, law: RealTable, material: Ints, in_open: Ints, heir: Ints,
                     V: Reals, m: Reals, inverse_density: Reals, effective: Reals, v: Vectors, water: Reals,
                     seeped: Reals, seeped_v: Vectors, events: Ints):  # fmt: skip
    """Takes over what has passed into volumes, masses and velocities; counts who is to go, to be parted, to drip."""
    for k in range(3):
        events[k] = 0
    for i in range(n):
        role, before = law[material[i], ROLE], m[i]
        if role == SAND:
            water[i] = ti.max(water[i] + seeped[i], 0.0)
            m[i] = V[i] * law[material[i], DENSITY] + rho * water[i]
            if inverse_density[i] > 0.0:
                inverse_density[i] = V[i] / m[i]
                effective[i] = inverse_density[i]
            if in_open[i] == 1 and water[i] - law[material[i], POROSITY] * V[i] >= whole:
                events[DRIPPING] += 1
        elif role == WATER:
            V[i] = ti.max(V[i] + seeped[i], 0.0)
            m[i] = rho * V[i]
            if heir[i] >= 0:
                events[GOING] += 1
            elif V[i] > FAT * law[material[i], WHOLE]:
                events[GROWN] += 1
        if role > 0.0 and inverse_density[i] > 0.0:
            v[i] = (before * v[i] + rho * seeped_v[i]) / ti.max(m[i], TINY)
        seeped[i], seeped_v[i] = 0.0, vec3(0.0)


class Seepage(Stage):
    """Finds pore pressures and what water passes. Changes nothing else: volumes, masses and velocities follow before
    the next step (`SeepageTransfer`)."""

    name, place, rank = "seepage", "forces", 900
    fields: ClassVar[tuple[Field, ...]] = (
        Field("water", "real", "m^3", "water in its pores", carried=True),
        Field("seeped", "real", "m^3", "water that has come in this step", carried=True),
        Field("seeped_v", "vector", "m^4/s", "that water times the velocity of whence it has come", carried=True),
        Field("heir", "int", "", "the id of who gets what is left of nearly used up water, -1 for none", carried=True,
              initial=-1),
        Field("in_open", "int", "", "1 for sand in the open", carried=True),
        Field("mobility", "real", "m^2/(Pa s)", "seepage per gradient of pressure; of water the share that may leave"),
        Field("pore_D", "real", "1/Pa", "seepage: diagonal of its system"),
        Field("pore_change", "real", "Pa", "seepage: last change of the pore pressure"),
        Field("pore_residual", "real", "1", "seepage: what is too much for the pores, in their volume"),
        Field("pore_before", "real", "1", "seepage: the same a sweep before"),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(map(is_porous, materials)) and any(m.liquid for m in materials)

    @classmethod
    def fill(cls, world: World, rows: np.ndarray) -> None:
        """Sand that is said to be wet begins so, or that lies under water at the start."""
        for number, material in enumerate(world.materials):
            if is_porous(material) and material.saturation:
                mine = rows[world.particles.read("material", rows) == number]
                wet(world, mine, material.saturation)
        if not world.time:
            wet_what_lies_under_water(world)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.waters = [k for k, body in enumerate(world.bodies) if seeps(world, world.materials[body.material])]
        self.rho, self.whole = liquid_of(world).density, world.bodies[self.waters[0]].volume_each
        self.law = upload(np.array([law_of(world, body) for body in world.bodies]), ti.f32)
        self.gravity = upload(np.array([world.gravity]), vec3)
        self._partial = np.zeros((BLOCKS, SUMS), np.float32)
        self._pores: tuple = (None, None)

    def parts(self) -> list[Stage]:
        return [self, SeepageTransfer(self)]

    @property
    def pores(self) -> Pores:
        """What kernels take as one; made anew when the particles' arrays have grown."""
        p = self.world.particles
        if self._pores[0] != p.capacity:
            self._pores = p.capacity, Pores(mobility=p.mobility, D=p.pore_D, change=p.pore_change,
                                            residual=p.pore_residual, before=p.pore_before)  # fmt: skip
        return self._pores[1]

    def run(self, dt: float) -> None:
        p, near, d = self.world.particles, self.world.neighbors, self.world.spacing
        g = float(np.linalg.norm(self.world.gravity))
        recent = min(dt * float(np.sqrt(g / d)), 1.0) if g else 1.0
        state = (self.rho, self.gravity, self.law, p.material, p.V)
        _survey(p.n, *near.pairs, p.density, p.wall_density, dt, recent, *state, p.p, p.pore_pressure, p.in_open,
                self.pores)  # fmt: skip
        lists = (p.x, near.span, near.neighbor, near.factor)
        weight = self.rho * max(g, LEAST_WEIGHT) * d
        sweeps, step = -1, 0.0
        while True:
            _sweep(p.n, *lists, dt, step, *state, p.v, p.pore_pressure, p.water, p.in_open, self.pores,
                   self._partial)  # fmt: skip
            length, curvature, error, members = self._partial.sum(axis=0, dtype=float)
            sweeps += 1
            error /= max(members, 1.0) * weight
            if error <= TOLERANCE or sweeps == MAX_SWEEPS:
                break
            step = min(max(length / curvature, SHORTEST_STEP), LONGEST_STEP) if curvature > 0.0 else 1.0
        self.results[self.name] = SolveResult(sweeps, float(error), float(error), bool(error <= TOLERANCE))
        _transfer(p.n, *near.pairs, dt, *state, p.v, p.pore_pressure, p.water, p.id, p.seeped,
                  p.seeped_v, p.heir, self.pores)  # fmt: skip


class SeepageTransfer(Stage):
    """Changes volumes, masses and velocities of sand and water by what has passed in the last step; takes out water
    that is all gone into pores, parts what has grown, and lets drops come out of sand that overflows."""

    name, place, rank = "seepage transfer", "births", -100

    def __init__(self, seepage: Seepage):
        super().__init__(seepage.world, None)
        self.seepage, self._events = seepage, np.zeros(3, np.int32)

    def run(self, dt: float) -> None:
        s, p = self.seepage, self.world.particles
        effective = p.effective_inverse_density if "effective_inverse_density" in p.schema else p.inverse_density
        _settle_accounts(p.n, s.rho, s.whole, s.law, p.material, p.in_open, p.heir, p.V, p.m, p.inverse_density,
                         effective, p.v, p.water, p.seeped, p.seeped_v, self._events)  # fmt: skip
        if self._events[GOING]:
            self._join()
        if self._events[GROWN]:
            self._part()
        if self._events[DRIPPING]:
            self._drip()

    def _join(self) -> None:
        """What is left of nearly used up water becomes part of its heir, with its momentum."""
        p, rho = self.world.particles, self.seepage.rho
        rows = np.concatenate([p.rows_of(number) for number in self.seepage.waters])
        heir = p.read("heir", rows)
        going, heir = rows[heir >= 0], heir[heir >= 0]
        order = p.rows_by_id()
        ids = p.numpy("id")[order]
        place = np.minimum(np.searchsorted(ids, heir), len(ids) - 1)
        there = ids[place] == heir  # the others have been taken out since, and what would join them waits for a step
        going, to = going[there], order[place[there]]
        V, share = p.read("V", going).astype(float), np.zeros(p.n)
        momentum = np.zeros((p.n, 3))
        np.add.at(share, to, V)
        np.add.at(momentum, to, rho * V[:, None] * p.read("v", going))
        takers = np.unique(to)
        mass = p.read("m", takers).astype(float)
        field = np.where(np.isin(p.read("body", takers), self.seepage.waters), "V", "water")
        for name in ("V", "water"):
            own = takers[field == name]
            p.write(name, own, p.read(name, own) + share[own])
        total = mass + rho * share[takers]
        p.write("v", takers, (mass[:, None] * p.read("v", takers) + momentum[takers]) / total[:, None])
        p.write("m", takers, total)
        self.world.remove_particles(going)

    def _part(self) -> None:
        """What has grown becomes two, side by side."""
        p, s = self.world.particles, self.seepage
        for number in s.waters:
            rows = p.rows_of(number)
            rows = rows[p.read("V", rows) > FAT * self.world.bodies[number].volume_each]
            half, aside = p.read("V", rows) / 2, APART * self.world.spacing * directions(p.read("id", rows))
            x, v = p.read("x", rows), p.read("v", rows)
            p.write("x", rows, x + aside)
            made = self.world.add_particles(number, x - aside, v)
            for both in (rows, made):
                p.write("V", both, half)
                p.write("m", both, s.rho * half)
            p.write("p", made, p.read("p", rows))

    def _drip(self) -> None:
        """Sand in the open that holds a particle of water more than its pores lets it go, towards where there is
        room, once there is."""
        p, s, world = self.world.particles, self.seepage, self.world
        room = np.array([getattr(m, "porosity", 0.0) if is_porous(m) else np.inf for m in world.materials])
        over = p.numpy("water") - room[p.numpy("material")] * p.numpy("V")
        rows = np.flatnonzero((over >= s.whole) & (p.numpy("in_open") == 1)).astype(np.int32)
        rows = rows[np.argsort(p.read("id", rows))]
        drops = p.read("x", rows) + OUTSIDE * world.spacing * self._outwards(rows)
        free = self._free(drops)
        if not free.any():
            return
        rows, drops = rows[free], drops[free]
        v, water = p.read("v", rows), p.read("water", rows)
        p.write("water", rows, water - s.whole)
        p.write("m", rows, p.read("m", rows) - s.rho * s.whole)
        world.add_particles(s.waters[0], drops, v)

    def _free(self, drops: np.ndarray) -> np.ndarray:
        """Which of the places have room for a drop, beside all particles and the drops before it. Squeezed in between
        others it would be under megapascals at once, and blow the sand apart."""
        taken = self.world.particles.numpy("x").astype(float)
        free = np.zeros(len(drops), bool)
        for k, drop in enumerate(drops):
            dx = self.world.neighbors.shortest(np.concatenate([taken, drops[:k][free[:k]]]) - drop)
            free[k] = (dx**2).sum(axis=1).min() > (ROOM * self.world.spacing) ** 2
        return free

    def _outwards(self, rows: np.ndarray) -> np.ndarray:
        """Directions (n, 3) away from the particles around, along walls."""
        p = self.world.particles
        x = p.numpy("x").astype(float)
        out = np.zeros((len(rows), 3))
        for k, row in enumerate(rows):
            dx = self.world.neighbors.shortest(x[row] - x)
            r = np.linalg.norm(dx, axis=1)
            close = (r < self.world.h) & (r > 0)
            out[k] = (dx[close] * (1 - r[close] / self.world.h)[:, None] / r[close][:, None]).sum(axis=0)
        away = p.read("wall_normal", rows)
        out -= np.minimum((out * away).sum(axis=1, keepdims=True), 0.0) * away  # not into walls
        size = np.linalg.norm(out, axis=1, keepdims=True)
        up = -self.world.gravity / max(float(np.linalg.norm(self.world.gravity)), TINY)
        return np.where(size > 0, out / np.maximum(size, TINY), up)


def directions(ids: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3), even on the sphere, one for each number."""
    turn, height = 2 * np.pi * ((ids * 0.6180339887) % 1.0), 2 * ((ids * 0.7548776662) % 1.0) - 1
    flat = np.sqrt(1 - height**2)
    return np.stack([flat * np.cos(turn), height, flat * np.sin(turn)], axis=1)
