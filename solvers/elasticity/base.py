"""What all methods for elastic solids share: the bodies at rest, contact, and the laws of motion they must keep."""

from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.core.backend import ROUNDS, Ints, IntTable, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.neighbors import difference
from pliant.core.options import Options, positive
from pliant.core.particles import Field
from pliant.core.world import World
from pliant.materials import Elastic
from pliant.solvers.elasticity.body import ElasticBodies, Law, settle
from pliant.solvers.elasticity.rest import Rest, rest_pose
from pliant.solvers.forces.force import Force

DT = 2e-3  # default elastic step [s]: that of Kugelstadt 2021, Section 9
TOUCH = 0.05  # density ratio by walls and other solids from which on they count as touching
CROWDED = 1.2  # a density ratio above this is no contact but an overlap, and undone bit by bit
OWN = 2.0  # in supports: particles of one body nearer than this at rest never press on each other
PIECES = 32  # a body's sums are added up in so many pieces, whatever the number of threads
SAME = 1e-3  # in spacings: rest shapes that differ by less are one


class ElasticityOptions(Options):
    """Base of what `Scene(elasticity=...)` takes."""

    dt_elastic: float | None = positive(
        None, "step of the elastic solve, apart from the adaptive step of everything else, which it bounds; longer is "
        "steadier and damps more, but beyond twice the actual step it lets stiff motions overshoot; None takes the "
        "scene's dt if that is fixed, else 2 ms or max_dt if less", "s",
        high=0.1, optional=True, source="Kugelstadt 2021, Algorithm 1, lines 11, 12")  # fmt: skip

    @property
    def explicit_control(self) -> bool:
        """Whether zero-energy modes are held by explicit forces (Ganzenmüller 2015)."""
        return False

    def step(self, settings: Any) -> float:
        """The elastic step [s]."""
        return float(self.dt_elastic or settings.dt or min(DT, settings.max_dt))


@ti.kernel
def _part_own(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
              factor: RealTable, w: ti.template(), h: ti.f32, sigma: ti.f32, reach: ti.f32, solid: Ints, body: Ints,
              V: Reals, rest: Vectors, rest_density: Reals, edge: Reals, wall: Reals, density: Reals):  # fmt: skip
    """Takes pairs that belong together at rest out of the pressure solve.

    What a solid's particles do to each other is the business of elasticity: their density counts as it was at rest, so
    that pressure is left with fluids, other bodies, and far parts of the same body. A solid thus keeps its own
    Poisson ratio (the flaw named in Kugelstadt 2021, Section 10).

    Edges and corners have fewer neighbours than a plane surface, which leaves room for the fluid that surrounds them.
    On a wall or a solid they would sink in by as much, so there they count as a plane surface."""
    for i in range(n):
        if solid[body[i]] != 0:
            rho, touching = rest_density[i], wall[i]
            for k in range(count[i]):
                j = neighbor[i, k]
                if j != i:
                    apart = difference(rest[i], rest[j], wraps, period)
                    if body[j] == body[i] and apart.dot(apart) < reach * reach:
                        factor[i, k] = 0.0
                    else:
                        more = V[j] * sigma * w(difference(x[i], x[j], wraps, period).norm() / h)
                        rho += more
                        touching += ti.select(solid[body[j]] != 0, more, 0.0)
            density[i] = ti.min(rho + edge[i] * ti.min(touching / TOUCH, 1.0), CROWDED)


@ti.kernel
def _hand_on(n: ti.i32, mobility: Reals, ease: Reals, settled: Vectors, v: Vectors):
    """Pressure has moved the surface of a body as one with what lies behind; now the surface gets the whole impulse,
    and elasticity hands it on."""
    for i in range(n):
        if ease[i] > 0.0 and ease[i] < mobility[i]:
            v[i] = settled[i] + (v[i] - settled[i]) * (mobility[i] / ease[i])


SUMS = 16  # of a piece: m, m x (3), m v (3), m x cross v (3), inertia (6)


@ti.kernel
def _keep_momenta(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, kick: Vectors, piece: RealTable,
                  motion: RealTable, change: Vectors):  # fmt: skip
    """Takes out of the velocity changes of each free body what changes its momentum or angular momentum by other than
    the kicks: elastic forces are internal, whatever the rotations that a step holds fast and the precision of a solve
    make of it."""
    ti.loop_config(block_dim=ROUNDS)
    for round in range(bodies * PIECES * ROUNDS):
        if round % ROUNDS == 0:
            sum_mass(round // ROUNDS, extent, place, m, x, piece)
    for b in range(bodies):
        for k in range(4):
            motion[b, k] = added_up(b, k, piece)
        origin = x[place[extent[b, 0]]]
        for a in ti.static(range(3)):
            motion[b, 1 + a] = origin[a] + motion[b, 1 + a] / ti.max(motion[b, 0], 1e-30)
    ti.loop_config(block_dim=ROUNDS)
    for round in range(bodies * PIECES * ROUNDS):
        if round % ROUNDS == 0:
            sum_momenta(round // ROUNDS, extent, place, m, x, kick, change, motion, piece)
    for b in range(bodies):
        find_motion(b, piece, motion)
    ti.loop_config(block_dim=ROUNDS)
    for round in range(bodies * PIECES * ROUNDS):
        if round % ROUNDS == 0:
            s = round // ROUNDS
            b = s // PIECES
            lo, hi = piece_of(s, extent)
            push, spin = triple(motion, b, 4), triple(motion, b, 7)
            for e in range(lo, hi):
                change[e] -= push + spin.cross(x[place[e]] - triple(motion, b, 1))


@ti.func
def triple(table: ti.template(), row: ti.i32, k: ti.template()):
    return vec3(table[row, k], table[row, k + 1], table[row, k + 2])


@ti.func
def sum_mass(s: ti.i32, extent: ti.template(), place: ti.template(), m: ti.template(), x: ti.template(),
             piece: ti.template()):  # fmt: skip
    """Mass and centre of one piece of a body."""
    lo, hi = piece_of(s, extent)
    mass, centre = 0.0, vec3(0.0)
    origin = x[place[extent[s // PIECES, 0]]]
    for e in range(lo, hi):
        i = place[e]
        mass += m[i]
        centre += m[i] * (x[i] - origin)
    piece[s, 0] = mass
    for a in ti.static(range(3)):
        piece[s, 1 + a] = centre[a]


@ti.func
def sum_momenta(s: ti.i32, extent: ti.template(), place: ti.template(), m: ti.template(), x: ti.template(),
                kick: ti.template(), change: ti.template(), motion: ti.template(), piece: ti.template()):  # fmt: skip
    """What a piece of a body gains in momentum and angular momentum beside the kicks, and minus sum m r r^T."""
    lo, hi = piece_of(s, extent)
    centre = triple(motion, s // PIECES, 1)
    push, turn, inertia = vec3(0.0), vec3(0.0), mat3(0.0)
    for e in range(lo, hi):
        i = place[e]
        arm = x[i] - centre
        push += m[i] * (change[e] - kick[e])
        turn += m[i] * arm.cross(change[e] - kick[e])
        inertia -= m[i] * arm.outer_product(arm)
    for a in ti.static(range(3)):
        piece[s, 4 + a], piece[s, 7 + a] = push[a], turn[a]
        piece[s, 10 + a], piece[s, 13 + a] = inertia[a, a], inertia[a, (a + 1) % 3]


@ti.func
def find_motion(b: ti.i32, piece: ti.template(), motion: ti.template()):
    """The rigid motion that has these momenta: velocity of the centre, and angular velocity."""
    push, turn, J = vec3(0.0), vec3(0.0), mat3(0.0)
    for a in ti.static(range(3)):
        push[a], turn[a] = added_up(b, 4 + a, piece), added_up(b, 7 + a, piece)
        J[a, a] = added_up(b, 10 + a, piece)
        J[a, (a + 1) % 3] = added_up(b, 13 + a, piece)
        J[(a + 1) % 3, a] = J[a, (a + 1) % 3]
    size = -J.trace()
    for a in ti.static(range(3)):
        J[a, a] += size * (1.0 + 1e-6)  # a thread has no inertia about itself
    spin = vec3(0.0)
    if size > 0.0:
        spin = (J / size).inverse() @ turn / size
    for a in ti.static(range(3)):
        motion[b, 4 + a], motion[b, 7 + a] = push[a] / ti.max(motion[b, 0], 1e-30), spin[a]


@ti.func
def piece_of(s: ti.i32, extent: ti.template()):
    """First and one-past-last particle of a piece of a body."""
    first, last = extent[s // PIECES, 0], extent[s // PIECES, 1]
    size = (last - first + PIECES - 1) // PIECES
    k = s % PIECES
    return ti.min(first + k * size, last), ti.min(first + (k + 1) * size, last)


@ti.func
def added_up(b: ti.i32, k: ti.i32, piece: ti.template()):
    total = 0.0
    for s in range(b * PIECES, (b + 1) * PIECES):
        total += piece[s, k]
    return total


class Elasticity(Force):
    """Base of the methods. Each step elasticity takes the velocities it left behind the step before (`settled_v`) and
    all that has acted since (`kick`: gravity, viscosity, pressure), and finds the velocities that answer both. So kicks
    go through the body in the same step, and at rest stresses balance them whatever the step.

    Pressure comes after that and knows nothing of stiffness: it would stop a particle of the surface as if it were
    alone. So it takes it for as heavy as what moves along with it when its face is pushed (`ease`), and the impulse
    that this makes is handed to the particle at the beginning of the next step.
    """

    name, rank = "elasticity", 50
    feels_pressure = True  # at rest, contact and stress then balance in every step, and no layer is kicked about
    fields: ClassVar[tuple[Field, ...]] = (
        Field("rest", "vector", "m", "position at rest", carried=True),
        Field("settled_v", "vector", "m/s", "velocity that elasticity left an elastic particle with", carried=True),
        Field("ease", "real", "m^3/kg", "mobility of a particle together with what moves along with it", carried=True),
        Field("rest_density", "real", "1", "density ratio by its own body at rest", carried=True),
        Field("edge", "real", "1", "what its density ratio lacks to that of a plane surface", carried=True),
    )
    options: ClassVar[type[ElasticityOptions] | None] = None  # None: no method of its own

    @classmethod
    def wanted(cls, materials: tuple, settings: Any) -> bool:
        return type(settings.elasticity) is cls.options and any(isinstance(m, Elastic) for m in materials)

    @classmethod
    def fill(cls, world: World) -> None:
        """At the start the shape of a body is its rest shape."""
        world.particles.set("rest", world.particles.numpy("x"))
        world.particles.set("settled_v", world.particles.numpy("v"))
        world.particles.set("ease", world.particles.numpy("mobility"))

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.settings, self.dt = settings.elasticity, settings.elasticity.step(settings)
        p = world.particles
        body, rest = p.by_id("body"), p.by_id("rest").astype(float)
        self.solids = [b for b, material in enumerate(world.materials) if isinstance(material, Elastic)]
        ids = [np.flatnonzero(body == b) for b in self.solids]
        self.rests = self._rest_poses(ids, rest, p.by_id("V"))
        self.bodies = ElasticBodies(p, self.rests, np.concatenate(ids), world.neighbors.wraps, world.neighbors.period)
        self._solid = upload(np.array([isinstance(m, Elastic) for m in world.materials]), ti.i32)
        self.refresh()

    def _rest_poses(self, ids: list[np.ndarray], rest: np.ndarray, V: np.ndarray) -> list[Rest]:
        """Rest poses, and the density ratios that belong to them. Of bodies that are one shape in several places only
        the first is worked out, and that once."""
        w, p = self.world, self.world.particles
        made: list[tuple[int | None, Rest, np.ndarray, np.ndarray]] = w.kept.setdefault("rest poses", [])
        rests, density, edge = [], np.zeros(p.n), np.zeros(p.n)
        for b, mine in zip(self.solids, ids, strict=True):
            X, nearest = rest[mine], w.materials[b].neighbours
            known = next((m for m in made if m[0] == nearest and m[1].is_at(X, SAME * w.spacing)), None)
            if known is None:
                known = (nearest, *self._rest_pose(X, V[mine].astype(float), nearest, w.spacings[b]))
                made.append(known)
                self._tell_of_thin_parts(b, known[1])
            rests.append(known[1].moved(X))
            density[mine], edge[mine] = known[2], known[3]
        p.set_by_id("rest_density", density)
        p.set_by_id("edge", edge)
        return rests

    def _rest_pose(self, X: np.ndarray, V: np.ndarray, nearest: int | None,  # noqa: N803
                   spacing: float) -> tuple[Rest, np.ndarray, np.ndarray]:  # fmt: skip
        """The rest pose, the density ratio that each particle has by it, and what edges lack to a plane surface."""
        near = self.world.neighbors
        pose = rest_pose(X, V.sum(), spacing, near.smoothing, nearest, near.periods)
        whole = rest_pose(X, V.sum(), self.world.spacing, near.smoothing, None, near.periods)  # as pressure sees it
        ratio = np.minimum(whole.density_ratio(V, near.smoothing, self.world.h), 1.0)
        plane = 1.0 - float(near.smoothing.plane_sum(np.array([1.0]))[0])
        edge = np.where(whole.normals.any(axis=1), np.maximum(plane - ratio, 0.0), 0.0)
        return pose, ratio, edge

    def _tell_of_thin_parts(self, b: int, rest: Rest) -> None:
        counts = np.bincount(rest.rank, minlength=4)
        kinds = ["lonely", "in threads", "in sheets one particle thick"]
        thin = [f"{counts[k]:,} {kinds[k]}" for k in (2, 1, 0) if counts[k]]
        if thin:
            self.notes.append(f"{self.world.names[b]}: of its {rest.n:,} particles {' and '.join(thin)} have too few "
                              "neighbours around them for a solid; they resist stretching, and bending by zero_energy "
                              "alone. A smaller particle_radius makes them solid.")  # fmt: skip

    def refresh(self) -> None:
        """Takes over the stiffness of the bodies and which of their particles are free, once one of these changed."""
        self._changed = True
        self.laws = [Law.of(self.world.materials[b]) for b in self.solids]
        self._find_free()
        explicit = self.dt if self.settings.explicit_control else None
        shares = self.bodies.set_laws(self.laws, self.free, explicit)
        for b, law, share in zip(self.solids, self.laws, shares, strict=True):
            if share < 1.0:
                self.notes.append(f"{self.world.names[b]}: of zero_energy={law.hold:g} only {share * law.hold:.2g} is "
                                  f"stable in explicit steps of {self.dt:g} s, and taken.")  # fmt: skip

    def renew(self) -> None:
        """What follows from a change, once the next step needs it."""
        self.world.particles.ease.copy_from(self.world.particles.mobility)

    def energy(self) -> float:
        """Elastic energy [J]."""
        return self.bodies.energy()

    def deformation(self, b: int) -> tuple[np.ndarray, np.ndarray]:
        """Deformation gradients and rotations (n, 3, 3) of one body as it is now."""
        self.bodies.look_ahead(0.0)
        self.bodies.find_forces(1.0)
        k = self.solids.index(b)
        mine = slice(*self.bodies.starts[k : k + 2])
        return self.bodies.F.to_numpy()[mine], self.bodies.R.to_numpy()[mine]

    def _find_free(self) -> None:
        """Which particles have no prescribed motion, in the bodies' order, and which bodies are free altogether."""
        self.free = self.world.particles.by_id("mobility")[self.bodies.ids] > 0
        starts = self.bodies.starts
        spans = [(a, b) for a, b in zip(starts[:-1], starts[1:], strict=True) if self.free[a:b].all()]
        spans *= not self.world.neighbors.wraps  # what reaches across a period has no one centre to turn about
        self._extent = upload(np.array(spans or [(0, 0)], np.int32), ti.i32)
        self._loose = len(spans)
        self._piece = ti.ndarray(ti.f32, (max(len(spans), 1) * PIECES, SUMS))
        self._motion = ti.ndarray(ti.f32, (max(len(spans), 1), SUMS))

    def meet(self) -> None:
        w, p = self.world, self.world.particles
        _hand_on(p.n, p.mobility, p.ease, p.settled_v, p.v)
        if self._changed:
            self.renew()
            self._changed = False
        _part_own(p.n, *w.neighbors.pairs, w.neighbors.smoothing.w, w.h, w.neighbors.sigma, OWN * w.h, self._solid,
                  p.body, p.V, p.rest, p.rest_density, p.edge, p.wall_density, p.density)  # fmt: skip

    def apply(self, dt: float) -> dict[str, float]:
        p, bodies, share = self.world.particles, self.bodies, dt / self.dt
        bodies.look_ahead(self.dt, share)
        numbers = self.solve()
        if self._loose:
            _keep_momenta(self._loose, self._extent, bodies.place, p.m, p.x, bodies.kick, self._piece, self._motion,
                          bodies.change)  # fmt: skip
        settle(bodies.n, share, bodies.place, p.mobility, bodies.change, p.settled_v, p.v)
        return numbers

    def yielding(self, ids: np.ndarray) -> float:
        """The velocity at which a step leaves particles of a body per impulse spread over them by their mass [1/kg]: as
        if they were alone in a soft body, as if they were all of it in a rigid one."""
        bodies, mine = self.bodies, self.bodies.slot.to_numpy()[ids]
        mass = bodies.mass.to_numpy()[mine].astype(float)
        along = mass / mass.sum()
        bodies.look_ahead(0.0)
        bodies.find_forces(1.0)  # for the rotations as they are
        push = np.zeros((bodies.n, 3), np.float32)
        push[mine] = along[:, None] / np.sqrt(3.0)  # along no axis, for a method may answer each in its own way
        bodies.force.from_numpy(push)
        bodies.correction.fill(0.0)
        self.answer()
        return float(along @ bodies.correction.to_numpy()[mine].sum(axis=1)) / np.sqrt(3.0)

    def start_anew(self, ids: slice) -> None:
        """Takes the velocities of these particles as they are, after they were given from outside."""
        p = self.world.particles
        settled = p.by_id("settled_v")
        settled[ids] = p.by_id("v")[ids]
        p.set_by_id("settled_v", settled)

    def solve(self) -> dict[str, float]:
        """Finds `bodies.change` from the state at `bodies.ahead`; returns numbers for `sim.stats`."""
        raise NotImplementedError

    def answer(self) -> int:
        """Turns the impulses [N s] in `bodies.force` into the changes of velocity that they alone make in a step, in
        `bodies.correction`, which holds a guess before; returns the number of solves."""
        raise NotImplementedError

    def longest_step(self) -> float:
        return self.dt
