"""What pressure sees of elastic bodies: their surfaces and what lies behind them, and no pairs of their own."""

from typing import Any, Protocol

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Points, Reals, RealTable, Spans, Vectors, vec3, vec4
from pliant.core.fields import gather
from pliant.core.neighbors import difference, difference_of_points
from pliant.core.reduce import BLOCKS, add_up, block
from pliant.core.speedups import light
from pliant.core.world import Coupling, World
from pliant.solvers.elasticity import balance
from pliant.solvers.elasticity.balance import Balance
from pliant.solvers.elasticity.compliance import Compliance
from pliant.solvers.elasticity.momentum import Momenta
from pliant.solvers.elasticity.rubbing import Rubbing
from pliant.solvers.elasticity.settling import CALM, SETTLING
from pliant.solvers.pressure import sweeps
from pliant.solvers.stage import Stage, material_table

TOUCH = 0.05  # density ratio by walls and other solids from which on they count as touching
CROWDED = 1.2  # a density ratio above this is no contact but an overlap, and undone bit by bit
SHARE = 0.05  # of the motion in a step that contacts may be left wrong by
REST = 3e-4  # in sqrt(g d): a motion this slow is rest, and is left no more wrong than a faster one
NOISE = 1e-7  # what single precision leaves
OWN = 2.0  # in supports: particles of one body nearer than this at rest never press on each other
FLUID = -1.0  # in place of the number of a body
PUSHED, SOLID = range(2)  # what is counted of elastic particles: pushed by anything, and by solids


@light
@ti.kernel
def _pack_rest(n: ti.i32, elastic: Reals, material: Ints, body: Ints, rest: Vectors, packed: Points):
    """Rest positions, and beside them the body, or FLUID for what is not elastic: one load brings in both."""
    for i in range(n):
        packed[i] = vec4(rest[i], ti.select(elastic[material[i]] != 0.0, ti.cast(body[i], ti.f32), FLUID))


@ti.kernel
def _part_own(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
              factor: Reals, w: ti.template(), h: ti.f32, sigma: ti.f32, reach: ti.f32, rest: Points, V: Reals,
              rest_density: Reals, edge: Reals, wall: Reals, solid_density: Reals, density: Reals):  # fmt: skip
    """Edges and corners have fewer neighbors than a plane surface, which leaves room for the fluid that surrounds them.
    On a wall or a solid they would sink in by as much, so there they count as a plane surface."""
    for i in range(n):
        if rest[i][3] != FLUID:
            rho, touching = rest_density[i], wall[i]
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if j != i:
                    d = difference_of_points(rest[i], rest[j], wraps, period)
                    if d[3] == 0.0 and d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < reach * reach:
                        factor[k] = 0.0
                    else:
                        more = V[j] * sigma * w(difference(x[i], x[j], wraps, period).norm() / h)
                        rho += more
                        touching += ti.select(rest[j][3] != FLUID, more, 0.0)
            solid_density[i] = touching
            density[i] = ti.min(rho + edge[i] * ti.min(touching / TOUCH, 1.0), CROWDED)


@light
@ti.kernel
def _survey(n: ti.i32, slot: Ints, D: Reals, solid_density: Reals, pushed: Ints, partial: RealTable, sums: Reals):
    """Which elastic particles have something to push against, and how many of each block: anything, and solids."""
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        total, solid = 0.0, 0.0
        for i in range(lo, hi):
            if slot[i] >= 0:
                pushed[slot[i]] = ti.cast(D[i] > 0.0, ti.i32)
                total += ti.select(D[i] > 0.0, 1.0, 0.0)
                solid += ti.select(D[i] > 0.0 and solid_density[i] > 0.0, 1.0, 0.0)
        partial[s, PUSHED], partial[s, SOLID] = total, solid
    ti.loop_config(serialize=True)
    for k in range(2):
        add_up(k, partial, sums)


@light
@ti.kernel
def _take(n: ti.i32, place: Ints, m: Reals, inverse_density: Reals, a: Vectors, force: Vectors):
    for e in range(n):
        force[e] = ti.select(inverse_density[place[e]] > 0.0, m[e] * a[place[e]], vec3(0.0))


@light
@ti.kernel
def _give(n: ti.i32, place: Ints, inverse_density: Reals, moved: Vectors, a: Vectors):
    for e in range(n):
        i = place[e]
        a[i] = ti.select(inverse_density[i] > 0.0, moved[e], vec3(0.0))


@light
@ti.kernel
def _accept(n: ti.i32, place: Ints, v: Vectors, v_elastic: Vectors, D: Reals):
    for e in range(n):
        v_elastic[place[e]] = v[place[e]]
        D[place[e]] = 0.0


@light
@ti.kernel
def _stay(n: ti.i32, place: Ints, a: Vectors):
    for e in range(n):
        a[place[e]] = vec3(0.0)


class Answering(Protocol):
    """What knows how elastic bodies answer impulses."""

    solids: list[int]
    bodies: Any
    momenta: Momenta
    compliance: Compliance | None

    def answer(self, turned: bool = False) -> None: ...

    def find_response(self) -> int: ...


class ElasticContact(Coupling):
    """An elastic body answers pressures as a whole, within the step, as elasticity answers all else that acts on it.

    Displacements beside dt v, which take compression out of fluids, leave it where it is: they are no motion, and would
    change the elastic energy and the angular momentum.
    """

    after_warm_start = True

    def __init__(self, world: World, elasticity: Answering):
        self.world, self.elasticity = world, elasticity
        self._partial, self._sums = ti.ndarray(ti.f32, (BLOCKS, 2)), np.zeros(2, np.float32)
        self.rubbing = Rubbing(world)
        self.balance = Balance(world, self.rubbing)
        self.touches_solids = False  # walls, or other elastic bodies
        self.condensed: Compliance | None = None

    def prepare(self) -> bool:
        self.idle = False
        if not self.elasticity.solids:
            return False
        p, bodies = self.world.particles, self.elasticity.bodies
        _survey(p.n, p.slot, p.D, p.solid_density, bodies.pushed, self._partial, self._sums)
        pushed, solid = bool(self._sums[PUSHED] > 0), bool(self._sums[SOLID] > 0)
        self.idle, self.touches_solids = bodies.n == p.n and not pushed, solid
        compliance = self.elasticity.compliance if pushed else None
        self.condensed = compliance if compliance is not None and compliance.find_contacts() else None
        self._begun = False
        self.rubbing.prepare(solid)
        self.balance.prepare(pushed)
        return pushed

    @property
    def turns(self) -> bool:
        """Whether friction acts in this step, which turns bodies by their surfaces."""
        return self.touches_solids and self.rubbing.acts

    def warm_start(self, dt: float) -> None:
        self._spins_known = False
        if self.turns:
            self.rubbing.warm_start(dt, self.elasticity.momenta)

    def push(self, dt: float, step: float) -> None:
        if self.turns:
            if not self._spins_known:
                self._find_spins()
            self.rubbing.push(dt, step, self.elasticity.momenta)

    def _find_spins(self) -> None:
        """How bodies turn as a whole, now that elasticity has acted."""
        p, bodies, momenta = self.world.particles, self.elasticity.bodies, self.elasticity.momenta
        gather("vector", bodies.n, bodies.place, [(p.v, bodies.correction)])
        momenta.measure(bodies.correction)
        momenta.spin.copy_from(momenta.motion)
        self._spins_known = True

    def tally(self, dt: float, step: float, least: float, sums: np.ndarray) -> None:
        if not self.touches_solids:
            return
        self.balance.tally(dt, step, least, self.elasticity.momenta)
        sums[sweeps.LENGTH] += self.balance.sums[balance.LENGTH]
        sums[sweeps.CURVATURE] += self.balance.sums[balance.CURVATURE]

    def unsettled(self, dt: float, tolerance: float) -> bool:
        """Whether solids in contact still slip or close by more than a share of their motion, or of what one could see.
        What settles may be left wrong by no more than settling takes out of it, or the error of each step would keep it
        moving."""
        if not self.touches_solids:
            return False
        d, speed = self.world.spacing, self.balance.mean(balance.SPEED)
        free_fall = float(np.sqrt(np.linalg.norm(self.world.gravity) * d))
        share = min(SHARE, SETTLING * dt) if speed < CALM * free_fall else SHARE
        goal = min(max(share * max(speed, REST * free_fall) * dt / d, NOISE), tolerance)
        return self.balance.mean(balance.ERROR) > goal

    def constrain(self, a: ti.Ndarray, moving: bool = True) -> None:
        p, bodies = self.world.particles, self.elasticity.bodies
        if not moving:
            _stay(bodies.n, bodies.place, a)
            return
        if self.condensed is not None:
            if not self._begun:
                self.condensed.begin(p)
                self._begun = True
            self.condensed.answer(p, a, self.turns)
            return
        _take(bodies.n, bodies.place, bodies.mass, p.inverse_density, a, bodies.force)
        self.elasticity.answer(turned=self.turns)
        _give(bodies.n, bodies.place, p.inverse_density, bodies.correction, a)

    def finish(self, dt: float) -> None:
        if self.condensed is not None and self._begun:
            self.condensed.spread(self.world.particles, dt, self.elasticity.find_response)
        if self.turns:
            self.rubbing.finish(dt)
        self.balance.find_forces(self.turns, self.elasticity.momenta)
        p, bodies = self.world.particles, self.elasticity.bodies
        _accept(bodies.n, bodies.place, p.v, p.v_elastic, p.D)


class RestPairs(Stage):
    """Changes factors of pairs and densities: takes pairs that belong together at rest out of the pressure solve.

    What a solid's particles do to each other is the business of elasticity: their density counts as it was at rest, so
    that pressure is left with fluids, other bodies, and far parts of the same body. A solid thus keeps its own
    Poisson ratio (the flaw named in Kugelstadt 2021, Section 10).
    """

    name, place, rank = "rest pairs", "contact", 10

    def __init__(self, world: World):
        super().__init__(world, None)
        self._elastic = material_table(world, "elastic")
        self._packed = ti.ndarray(vec4, world.particles.capacity)

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        if self._packed.shape[0] < p.capacity:
            self._packed = ti.ndarray(vec4, p.capacity)
        _pack_rest(p.n, self._elastic, p.material, p.body, p.rest, self._packed)
        _part_own(p.n, *w.neighbors.pairs, w.neighbors.smoothing.w, w.h, w.neighbors.sigma, OWN * w.h, self._packed,
                  p.V, p.rest_density, p.edge, p.wall_density, p.solid_density, p.density)  # fmt: skip
