"""What pressure sees of elastic bodies: their surfaces, as heavy as what lies behind, and no pairs of their own."""

from typing import Protocol

import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors
from pliant.core.neighbors import difference
from pliant.core.world import Coupling, World
from pliant.solvers.stage import Stage, material_table

TOUCH = 0.05  # density ratio by walls and other solids from which on they count as touching
CROWDED = 1.2  # a density ratio above this is no contact but an overlap, and undone bit by bit
OWN = 2.0  # in supports: particles of one body nearer than this at rest never press on each other


@ti.kernel
def _part_own(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
              factor: RealTable, w: ti.template(), h: ti.f32, sigma: ti.f32, reach: ti.f32, elastic: Reals,
              material: Ints, body: Ints, V: Reals, rest: Vectors, rest_density: Reals, edge: Reals, wall: Reals,
              density: Reals):  # fmt: skip
    """Edges and corners have fewer neighbors than a plane surface, which leaves room for the fluid that surrounds them.
    On a wall or a solid they would sink in by as much, so there they count as a plane surface."""
    for i in range(n):
        if elastic[material[i]] != 0.0:
            rho, touching = rest_density[i], wall[i]
            for k in range(count[i]):
                j = neighbor[i, k]
                if j != i:
                    apart = difference(rest[i], rest[j], wraps, period)
                    if body[j] == body[i] and elastic[material[j]] != 0.0 and apart.dot(apart) < reach * reach:
                        factor[i, k] = 0.0
                    else:
                        more = V[j] * sigma * w(difference(x[i], x[j], wraps, period).norm() / h)
                        rho += more
                        touching += ti.select(elastic[material[j]] != 0.0, more, 0.0)
            density[i] = ti.min(rho + edge[i] * ti.min(touching / TOUCH, 1.0), CROWDED)


@ti.kernel
def _hand_on(n: ti.i32, slot: Ints, inverse_density: Reals, effective_inverse_density: Reals, v_elastic: Vectors,
             v: Vectors):  # fmt: skip
    for i in range(n):
        if slot[i] >= 0 and 0.0 < effective_inverse_density[i] < inverse_density[i]:
            v[i] = v_elastic[i] + (v[i] - v_elastic[i]) * (inverse_density[i] / effective_inverse_density[i])


@ti.kernel
def _scale(n: ti.i32, inverse_density: Reals, effective_inverse_density: Reals, a: Vectors):
    for i in range(n):
        if inverse_density[i] > 0.0:
            a[i] *= effective_inverse_density[i] / inverse_density[i]


class ElasticSurface(Coupling):
    """A particle of the surface moves as one with what lies behind it: pressure takes it for as heavy as that."""

    diagonal = True

    def __init__(self, world: World):
        self.world = world

    def constrain(self, a: ti.Ndarray) -> None:
        p = self.world.particles
        _scale(p.n, p.inverse_density, p.effective_inverse_density, a)


class Renewing(Protocol):
    """What has to be made anew now and then."""

    def renew(self) -> None: ...


class SurfaceImpulse(Stage):
    """Changes velocities: pressure has moved the surface of a body as one with what lies behind; now the surface gets
    the whole impulse, and elasticity hands it on. Then the effective inverse densities of surfaces are taken over, if
    stiffness or fixed particles have changed."""

    name, place, rank = "surface impulse", "contact", 0

    def __init__(self, world: World, elasticity: Renewing):
        super().__init__(world, None)
        self.elasticity = elasticity

    def run(self, dt: float) -> None:
        p = self.world.particles
        _hand_on(p.n, p.slot, p.inverse_density, p.effective_inverse_density, p.v_elastic, p.v)
        self.elasticity.renew()


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

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        _part_own(p.n, *w.neighbors.pairs, w.neighbors.smoothing.w, w.h, w.neighbors.sigma, OWN * w.h, self._elastic,
                  p.material, p.body, p.V, p.rest, p.rest_density, p.edge, p.wall_density, p.density)  # fmt: skip

