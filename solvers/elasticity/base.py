"""What all methods for elastic solids share: the bodies at rest, contact, and the laws of motion they must keep."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.core.backend import upload
from pliant.core.fields import Field
from pliant.core.options import Options, param, positive
from pliant.core.world import World
from pliant.solvers.elasticity import balance, rubbing
from pliant.solvers.elasticity.body import ElasticBodies, Law, settle
from pliant.solvers.elasticity.compliance import Compliance
from pliant.solvers.elasticity.contact import ElasticContact, RestPairs
from pliant.solvers.elasticity.momentum import Momenta
from pliant.solvers.elasticity.rest import Rest, rest_pose
from pliant.solvers.elasticity.settling import CALM, SETTLING, Settling
from pliant.solvers.stage import Stage

DT = 2e-3  # default elastic step [s]: that of Kugelstadt 2021, Section 9
SCALED = 1e-6  # of the velocities of a body: they differ by no more from a multiple of what they were
SAME = 1e-3  # in spacings: rest shapes that differ by less are one


class ElasticityOptions(Options):
    """Base of what `Scene(elasticity=...)` takes."""

    dt_elastic: float | None = positive(
        None, "step of the elastic solve, apart from the adaptive step of everything else, which it bounds; longer is "
        "steadier and damps more, but beyond twice the actual step it lets stiff motions overshoot; None takes the "
        "scene's dt if that is fixed, else 2 ms or max_dt if less", "s",
        high=0.1, optional=True, source="Kugelstadt 2021, Algorithm 1, lines 11, 12")  # fmt: skip

    numerical_damping: float = param(
        0.5, "how much of what is fast compared with the step it damps: 1 is backward Euler; 0 is second order, keeps "
        "energy, for what must vibrate or bounce true; from 0.5 on kinetic and elastic energy together never grow", "1",
        low=0.0, high=1.0, source="Newmark 1959, with beta = (1 + numerical_damping)^2 / 4")  # fmt: skip

    @property
    def implicitness(self) -> float:
        """beta: the matrix of a step is M + beta dt^2 K."""
        return 0.25 * (1.0 + self.numerical_damping) ** 2

    @property
    def explicit_control(self) -> bool:
        """Whether zero-energy modes are held by explicit forces (Ganzenmüller 2015)."""
        return False

    def step(self, settings: Any) -> float:
        """The elastic step [s]."""
        return float(self.dt_elastic or settings.dt or min(DT, settings.max_dt))


class Elasticity(Stage):
    """Base of the methods. Changes velocities: each step elasticity takes those it left behind the step before
    (`v_elastic`) and all that has acted since (`dv_external`: gravity, viscosity, pressure), and finds the velocities
    that answer both. So what acts goes through the body in the same step, and at rest stresses balance it whatever the
    step: elasticity comes after the pressures of the last step have acted.

    Pressure comes after that. What its sweeps do to a body goes through the same matrix within the step (`contact`,
    `momentum`); how light a particle of a surface appears to them by itself is in `effective_inverse_density`, by which
    they choose their steps.
    """

    name = place = "elasticity"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("slot", "int", "", "place of an elastic particle among all of these", carried=True, initial=-1),
        Field("rest", "vector", "m", "position at rest", carried=True),
        Field("v_elastic", "vector", "m/s", "velocity that elasticity left an elastic particle with", carried=True),
        Field("effective_inverse_density", "real", "m^3/kg", "of a particle together with what moves along with it",
              carried=True),
        *rubbing.FIELDS,
        *balance.FIELDS,
        Field("vibration", "real", "m/s", "root mean square of what damping has left of its body's vibration",
              carried=True),
        Field("solid_density", "real", "1", "density ratio by walls and other solids than its own body"),
        Field("rest_density", "real", "1", "density ratio by its own body at rest", carried=True),
        Field("edge", "real", "1", "what its density ratio lacks to that of a plane surface", carried=True),
    )  # fmt: skip
    options: ClassVar[type[ElasticityOptions] | None] = None  # None: no method of its own

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return type(settings.elasticity) is cls.options and any(material.elastic for material in materials)

    @classmethod
    def fill(cls, world: World, rows: np.ndarray) -> None:
        """At the start the shape of a body is its rest shape."""
        p = world.particles
        for field, source in (("rest", "x"), ("v_elastic", "v"), ("effective_inverse_density", "inverse_density")):
            p.write(field, rows, p.read(source, rows))

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.settings, self.dt = settings.elasticity, settings.elasticity.step(settings)
        self.contact = ElasticContact(world, self)
        world.couplings.append(self.contact)
        self._take_bodies()

    def _present(self) -> list[int]:
        """The elastic bodies that have particles now."""
        world, counts = self.world, self.world.particles.population
        return [b for b, body in enumerate(world.bodies) if world.materials[body.material].elastic and counts[b]]

    def _take_bodies(self) -> None:
        """Takes over the elastic bodies that are there."""
        world, near = self.world, self.world.neighbors
        self.solids = self._present()
        self.rests = self._rest_poses([world.particles.rows_of(b) for b in self.solids])
        if self.solids:
            self.bodies = ElasticBodies(world.particles, self.rests, self.solids, near.wraps, near.period)
        self.refresh()

    def members_changed(self) -> None:
        if self._present() != self.solids:
            self._take_bodies()

    def parts(self) -> list[Stage]:
        return [RestPairs(self.world), self]

    def _rest_poses(self, rows: list[np.ndarray]) -> list[Rest]:
        """Rest poses, and the density ratios that belong to them. Of bodies that are one shape in several places only
        the first is worked out, and that once."""
        w, p = self.world, self.world.particles
        made: list[tuple[int | None, Rest, np.ndarray, np.ndarray]] = w.cache.setdefault("rest poses", [])
        rests = []
        for b, mine in zip(self.solids, rows, strict=True):
            X, nearest = p.read("rest", mine).astype(float), self._material(b).neighbors
            known = next((m for m in made if m[0] == nearest and m[1].is_at(X, SAME * w.spacing)), None)
            if known is None:
                V = p.read("V", mine).astype(float)
                known = (nearest, *self._rest_pose(X, V, nearest, w.bodies[b].spacing))
                made.append(known)
                self._tell_of_thin_parts(b, known[1])
            else:
                X = self._take_shape(mine, known[1])
            rests.append(known[1].moved(X))
            p.write("rest_density", mine, known[2])
            p.write("edge", mine, known[3])
        return rests

    def _take_shape(self, rows: np.ndarray, rest: Rest) -> np.ndarray:
        """Gives a body the rest shape that it shares, for what it is off by (`SAME`) would strain it; returns where it
        is then. A body that has moved keeps what it has: it was given the shape when it was new."""
        p = self.world.particles
        x, X = p.read("x", rows), p.read("rest", rows)
        if np.array_equal(x, X):
            X = (X[0].astype(float) + (rest.X - rest.X[0])).astype(np.float32)
            for field in ("x", "rest"):
                p.write(field, rows, X)
        return X.astype(float)

    def _material(self, b: int) -> Any:
        return self.world.materials[self.world.bodies[b].material]

    def _rest_pose(self, X: np.ndarray, V: np.ndarray, nearest: int | None,  # noqa: N803
                   spacing: float) -> tuple[Rest, np.ndarray, np.ndarray]:  # fmt: skip
        """The rest pose, the density ratio that each particle has by it, and what edges lack to a plane surface."""
        near = self.world.neighbors
        pose = rest_pose(X, V.sum(), spacing, near.smoothing, nearest, near.periods)
        whole = rest_pose(X, V.sum(), self.world.spacing, near.smoothing, None, near.periods)  # as pressure sees it
        ratio = np.minimum(whole.density_ratio(V, near.smoothing, self.world.h), 1.0)
        plane = 1.0 - float(near.smoothing.plane_sum(np.array([1.0]))[0])
        edge = np.where(whole.normals.any(axis=1), plane - ratio, 0.0)
        return pose, ratio, edge

    def _tell_of_thin_parts(self, b: int, rest: Rest) -> None:
        counts = np.bincount(rest.rank, minlength=4)
        kinds = ["lonely", "in threads", "in sheets one particle thick"]
        thin = [f"{counts[k]:,} {kinds[k]}" for k in (2, 1, 0) if counts[k]]
        if thin:
            name, parts = self.world.bodies[b].name, " and ".join(thin)
            self.notes.append(f"{name}: of its {rest.n:,} particles {parts} have too few neighbors around them for a "
                              "solid; they resist stretching, and bending by zero_energy alone. A smaller "
                              "particle_radius makes them solid.")  # fmt: skip

    def refresh(self) -> None:
        """Takes over the stiffness of the bodies and which of their particles are free, once one of these changed."""
        self._changed = bool(self.solids)
        self.compliance: Compliance | None = None  # where answers can be condensed to those who touch
        self.laws = [Law.of(self._material(b)) for b in self.solids]
        if not self.solids:
            return
        self._find_free()
        explicit = self.dt if self.settings.explicit_control else None
        shares = self.bodies.set_laws(self.laws, self.free, explicit)
        for b, law, share in zip(self.solids, self.laws, shares, strict=True):
            if share < 1.0:
                name, alpha = self.world.bodies[b].name, law.zero_energy
                self.notes.append(f"{name}: of zero_energy={alpha:g} only {share * alpha:.2g} is stable in explicit "
                                  f"steps of {self.dt:g} s, and taken.")  # fmt: skip

    def after_neighbors(self) -> None:
        """Takes over what follows from a change of stiffness or of fixed particles, once a step needs it."""
        if self._changed:
            self.find_effective_densities()
            self._changed = False

    def find_effective_densities(self) -> None:
        """Finds `particles.effective_inverse_density`."""
        self.world.particles.effective_inverse_density.copy_from(self.world.particles.inverse_density)

    def energy(self) -> float:
        """Elastic energy [J]."""
        return self.bodies.energy() if self.solids else 0.0

    def deformation(self, b: int) -> tuple[np.ndarray, np.ndarray]:
        """Deformation gradients and rotations (n, 3, 3) of one body as it is now."""
        self.bodies.find_places()
        self.bodies.predict_positions(0.0)
        self.bodies.find_forces(1.0)
        k = self.solids.index(b)
        mine = slice(*self.bodies.starts[k : k + 2])
        return self.bodies.F.to_numpy()[mine], self.bodies.R.to_numpy()[mine]

    def _find_free(self) -> None:
        """Which particles have no prescribed motion, in the bodies' order, and which bodies are free altogether."""
        self.free = self.bodies.read("inverse_density") > 0
        starts = self.bodies.starts
        spans = [(a, b) for a, b in zip(starts[:-1], starts[1:], strict=True) if self.free[a:b].all()]
        spans *= not self.world.neighbors.wraps  # what reaches across a period has no one centre to turn about
        self.momenta = Momenta(spans, self.bodies.n)
        self._set_damping()

    def _set_damping(self) -> None:
        """Damping of each particle, and what the motion of its body as a whole is measured by: by all of a free body,
        and by what holds any other."""
        spans = list(zip(self.bodies.starts[:-1], self.bodies.starts[1:], strict=True))
        rates, mass = np.zeros(self.bodies.n), self.bodies.read("m").astype(float)
        for b, (first, last) in zip(self.solids, spans, strict=True):
            rates[first:last] = self._material(b).damping
            if not self.free[first:last].all():
                mass[first:last] *= ~self.free[first:last]
        self._damped = bool(rates.any()) and not self.world.neighbors.wraps
        self.frames = self.momenta if self.momenta.bodies == len(spans) else Momenta(spans, self.bodies.n)
        self.settling = Settling(self.frames, self.momenta, self.bodies.n)
        self._damping, self._frame_mass = upload(rates, ti.f32), upload(mass, ti.f32)

    def run(self, dt: float) -> None:
        if not self.solids:
            return
        p, bodies, share = self.world.particles, self.bodies, dt / self.dt
        bodies.find_places()
        self.momenta.look(p, bodies.place, bodies.mass)
        if self._damped:
            self._damp(dt)
        bodies.predict_positions(self.settings.numerical_damping * self.dt, share)
        self.solve()
        self.momenta.measure(bodies.dv_external)
        if self.contact.turns:
            self.momenta.turn(p, self.dt)
        self.momenta.keep(bodies.dv)
        settle(bodies.n, share, bodies.place, p.inverse_density, bodies.dv, p.v_elastic, p.v)

    def _damp(self, dt: float) -> None:
        """Slows vibrations: velocities as far as they differ from the motion of the body as a whole, or of what holds
        it. Where it touches solids, what none can see decays faster, rocking too (`settling`)."""
        w, b = self.world, self.bodies
        if self.frames is not self.momenta:
            self.frames.look(w.particles, b.place, self._frame_mass)
        calm = CALM * float(np.sqrt(np.linalg.norm(w.gravity) * w.spacing))
        settles = calm > 0.0 and self.contact.touches_solids
        if settles:
            self.settling.run(dt, w.gravity, calm, self._damping, b, w.particles)
        self.frames.slow(dt, self._damping, calm, SETTLING if settles else 0.0, self.settling.load, b.mass, b.dv,
                         w.particles)  # fmt: skip

    def yielding(self, slots: np.ndarray) -> float:
        """The velocity at which a step leaves particles of a body per impulse spread over them by their mass [1/kg], in
        the direction in which that is most: as if they were alone in a soft body, as if they were all of it in a rigid
        one."""
        bodies = self.bodies
        mass = bodies.mass.to_numpy()[slots].astype(float)
        along = mass / mass.sum()
        bodies.find_places()
        bodies.predict_positions(0.0)
        bodies.find_forces(1.0)  # for the rotations as they are
        self.momenta.look(self.world.particles, bodies.place, bodies.mass)
        columns = []
        for axis in np.eye(3):
            push = np.zeros((bodies.n, 3), np.float32)
            push[slots] = np.outer(along, axis)
            bodies.force.from_numpy(push)
            self.answer()
            columns.append(along @ bodies.correction.to_numpy()[slots])
        yields = np.array(columns, float)
        return float(np.linalg.eigvalsh(0.5 * (yields + yields.T))[-1])

    def answer(self, turned: bool = False) -> None:
        """Turns the impulses in `bodies.force` into the changes of velocity that they make in a step, in
        `bodies.correction`: as a rigid body answers what of them moves it as a whole, and elastically the rest. Couples
        on its particles turn it as a whole, if it is `turned`."""
        self.momenta.part(self.bodies.force)
        if turned:
            self.momenta.turn(self.world.particles, 1.0)
        self.bodies.correction.fill(0.0)
        self.find_response()
        self.momenta.keep(self.bodies.correction)

    def take_velocities(self, rows: np.ndarray, before: np.ndarray) -> None:
        """Hears that velocities were given from outside. Those that are a share of what they were `before`, as when a
        body is brought to rest, are its own from now on; anything else is an impulse, which it answers in the next step
        as it answers all that acts on it."""
        p = self.world.particles
        now, own = p.read("v", rows).astype(float), p.read("v_elastic", rows).astype(float)
        square = float((before.astype(float) ** 2).sum())
        share = float((now * before).sum()) / square if square > 0.0 else 0.0
        if 0.0 <= share <= 1.0 and float(np.abs(now - share * before).max(initial=0.0)) <= SCALED * square**0.5:
            p.write("v_elastic", rows, share * own)

    def solve(self) -> None:
        """Finds `bodies.dv` from the state at `bodies.x_predicted`."""
        raise NotImplementedError

    def find_response(self) -> int:
        """Turns the impulses [N s] in `bodies.force` into the changes of velocity that they alone make in a step, in
        `bodies.correction`, which holds a guess before; returns the number of solves."""
        raise NotImplementedError

    def max_dt(self) -> float:
        return self.dt
