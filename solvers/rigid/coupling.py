"""Rigid bodies in the pressure solve: in each sweep they answer what presses on them, as particles do.

With the levers G of the particles that touch a body (`levers`) and its mass matrix M of six rows, changes dq of
pressures (times dt^2) move it by

    M (U, T) = sum V dq G,    and by that change density ratios by  -G . (U, T).

So K = K of the particles + G M^-1 G^T V, which is symmetric. A body that is light beside the particles that touch it
is hard for sweeps that look at each particle by itself: all of them push it at once, and each thinks that it alone
does. The metric of the sweeps is therefore not the diagonal D, but P = D + G M^-1 G^T V. By Woodbury's identity

    P^-1 r = D^-1 (r - G z),    (M + sum V G G^T / D) z = sum V G r / D,

sums over those whose pressures can change: z is how the body would move if pressures removed all of the residuals,
and what that motion removes is left to it (`foresee`). Light bodies then take as many sweeps as heavy ones. Bodies
that touch the same particles are one such system (`sharing`).

Pressures are cut off at zero, though, and what a cut takes away moves a light body far. In a step s along the
residuals the pressures q of some particles C end at zero, and

    (M + sum V G G^T / D) z = sum V G r / D - sum_C V G q / s,    the former sums without C,

where C depends on z in turn: it is found by Newton's method (semi-smooth: Qi and Sun 1993), mostly in two or three
rounds. This is the projection onto q >= 0 in the metric P. Only what is light beside the particles around it needs it.

Sand and elastic bodies rub on a rigid body, by tractions that are found in the same sweeps: these move it too, and
what they rub against moves with it. All else that walls do to particles (viscosity, what puts back those that came
too close) acts on it at the end of the step (`remainder`), so that momentum is kept to round-off.
"""

from collections.abc import Callable

import numpy as np
import taichi as ti

from pliant.boundary.wall_sides import SIDES
from pliant.boundary.walls import Walls
from pliant.core.backend import host_view, vec3
from pliant.core.world import Coupling, World
from pliant.solvers.pressure import sweeps
from pliant.solvers.rigid import levers
from pliant.solvers.rigid.articulation import articulations
from pliant.solvers.rigid.sharing import Shared
from pliant.solvers.stage import material_table

# Tractions of sand, which act at its particles (0), and of elastic bodies, at the surface (1)
TRACTIONS = {"wall_traction": 0.0, "wall_rub": 1.0}
LIGHT = 10.0  # times its own mass is what touches a body that counts as light
ROUNDS, SETTLED = 8, 1e-4  # of finding out which pressures change; share of a motion that is no change any more
# Sweeps of a step in which sand touches a rigid body. Few of its particles do, and their error counts little in the
# mean: after 5 sweeps a box on sand rocks for ever, at 0.05 rad/s, after 20 a coarse one does; after 30 they rest.
LEAST_ON_SAND = 30


class RigidCoupling(Coupling):
    """What is pressed against a rigid body moves it, within the step."""

    after_warm_start = True  # particles follow pressures as they do beside any wall

    def __init__(self, world: World):
        self.world, self.articulations = world, articulations(world)
        self.given = np.zeros((len(world.walls.walls), levers.SIX))  # impulses in this step [N s, N m s]
        self._before = np.zeros((len(world.walls.walls), levers.SIX))  # velocities when particles were told of them
        self._carried = self._moved = self._drawn = self._pressed = self._before
        self._shift = world.walls.states.shift  # where bodies were at the start of the step
        self._changes: ti.Ndarray | None = None
        self._touched, self._count = ti.ndarray(ti.i32, 1), 0
        self._linear, self._angular = ti.ndarray(vec3, (1, SIDES)), ti.ndarray(vec3, (1, SIDES))
        self._frictional, self._sweeps, self._responds = False, 0, False
        self._slid, self._told = self._before, False  # times dt, what has slid along bodies and moved them
        self._dt, self._chunks, self._shared = 0.0, (np.zeros(0, np.int32),) * 3, Shared()
        self._touching = self._first = self._alone = np.zeros(0, int)  # bodies, their first chunks, who shares nothing
        self._nu = material_table(world, "viscosity")
        self._thick = any(getattr(material, "viscosity", 0.0) for material in world.materials)

    @property
    def touched(self) -> np.ndarray:
        """Numbers of the free bodies that particles touch in this step."""
        return self._touching

    def begin(self, dt: float) -> None:
        """Finds who touches free bodies, once particles have been told of their velocities as they are."""
        self._dt, walls = dt, self.world.walls
        self._before = self._carried = self.world.walls.motion
        self._shift = walls.states.shift.copy()
        self.given = np.zeros_like(self._before)
        self._slid, self._told = np.zeros_like(self._before), False
        self._masses, free, self._single = mass_matrices(walls), walls.free, walls.rigid
        self._inverse = np.zeros_like(self._masses)
        self._inverse[self._single] = np.linalg.inv(self._masses[self._single])
        for links in self.articulations:
            self._inverse[links.rows] = links.alone
        walls.lightness = self._inverse.reshape(-1, 36).astype(np.float32)
        if self._count:
            self.world.particles.body_response.fill(0.0)
        self._responds = False  # whether the field has something other than zeros
        begin, end, owner = walls.chunks
        mine = free[owner] if len(owner) else np.zeros(0, bool)
        self._chunks, self._count, self._shared = (begin[mine], end[mine], owner[mine]), 0, Shared()
        self._touching = self._first = np.zeros(0, int)
        if mine.any():
            pairs = np.concatenate([_part(walls.pairs, b, e) for b, e in _runs(*self._chunks[:2])])
            touched = np.unique(pairs // SIDES).astype(np.int32)
            self._first = np.flatnonzero(np.diff(self._chunks[2], prepend=-1))
            self._touching = self._chunks[2][self._first]
            self._shared = Shared.of(pairs, np.repeat(owner[mine], end[mine] - begin[mine]))
            self._alone = np.setdiff1d(self._touching[self._single[self._touching]], self._shared.pairs)
            self._count = len(touched)
            if self._touched.shape[0] < self._count:
                self._touched = ti.ndarray(ti.i32, 2 * self._count)
            self._touched.from_numpy(np.resize(touched, self._touched.shape[0]))

    def foresee_drag(self) -> None:
        """Lets viscous liquids meet bodies as these will move once the drag has acted: (M + dt C) (U, T) = dt f, with
        the drag f and its coefficients C. Explicit drag would throw a light body to and fro. What the liquid then loses
        is just what moves the body so (`drag`)."""
        if not self._count or not self._thick:
            return
        self._carry(self.world.walls.motion - self._carried)
        p, walls, (begin, end, owner) = self.world.particles, self.world.walls, self._chunks
        sums = np.zeros((len(owner), levers.DRAGS), np.float32)
        levers.drag_on(len(owner), begin, end, owner, walls.pairs, p.x, p.m, p.material, self._nu, p.wall_drag,
                       p.wall_velocity, p.v, p.inverse_density, walls.table, walls.sides, sums)  # fmt: skip
        bodies = self.touched
        moved = self._solve(self._dt * self._by_wall(sums), drag_matrices, bodies[self._single[bodies]])
        self._carry(moved)
        self._carried = self.world.walls.motion + moved

    def drag(self) -> None:
        """What has slid along bodies so far in this step moves them."""
        if self._count:
            p = self.world.particles
            slid = -self._dt * self._dt * self._dragged(p.wall_slide, p.m, 0.0)
            self._move(slid - self._slid)
            self._slid = slid

    def accelerations(self, forces: np.ndarray) -> np.ndarray:
        """(n, 6) what forces and torques do to each body."""
        found: np.ndarray = np.einsum("nij,nj->ni", self._inverse, forces)
        for links in self.articulations:
            found[links.rows] = links.respond(forces[links.rows])
        return found

    def remainder(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, 6) impulses that are left once bodies have moved, and what they change of the velocities of those that
        are no links. What acted before acts where they were; its moment about the centre is another one now."""
        walls = self.world.walls
        left = walls.impulses - self.given
        before = left - walls.stopping
        left[:, 3:] -= np.cross(walls.states.shift - self._shift, before[:, :3])
        found, bodies = np.zeros_like(left), np.flatnonzero(walls.rigid & left.any(axis=1))
        if len(bodies):
            found[bodies] = np.linalg.solve(mass_matrices(walls)[bodies], left[bodies, :, None])[..., 0]
        return left, found

    def prepare(self) -> bool:
        """Finds the levers."""
        world, walls, p = self.world, self.world.walls, self.world.particles
        self._frictional, self._sweeps = False, 0
        if not self._count:
            return False
        if self._linear.shape[0] < p.capacity:
            self._linear, self._angular = (ti.ndarray(vec3, (p.capacity, SIDES)) for _ in range(2))
        levers.find_levers(self._count, self._touched, p.x, world.spacing, walls.table, walls.sides, walls.profile,
                           self._linear, self._angular)  # fmt: skip
        if walls.images is not None:
            walls.images.find_levers(self._touched, self._count, self._linear, self._angular)
        return True

    # --- what the pressure solver asks ------------------------------------------------------------------

    def warm_start(self, dt: float) -> None:
        """The pressures of the last step act, and the tractions of what rubs: elastic bodies come after this."""
        p = self.world.particles
        impulse = self._pushed_back(p.xq)
        for name, at_surface in TRACTIONS.items():
            if name in p.schema:
                impulse += dt * dt * self._dragged(getattr(p, name), p.V, at_surface)
        self._move(impulse)

    def tell_motion(self) -> None:
        """Densities change by how velocities have changed since particles were told of them (`wall_flux`)."""
        if not self._told:
            self.drag()  # of elastic bodies that have settled on it: at the end of the step it would be a blow
            self._told = True
        self._carry_on()
        self._respond(self.world.walls.motion - self._before)

    def foresee(self, moving: bool, changes: ti.Ndarray, least: float, step: float) -> None:
        self._changes = changes
        self._frictional = changes is not self.world.particles.xq  # those are sweeps of sand
        self._sweeps += self._frictional
        if not moving:
            self._respond(np.zeros_like(self._before))
            return
        z, light = self._foreseen(least, 0.0)
        self._respond(z)
        for _ in range(ROUNDS if light and step > 0.0 else 0):
            before = z
            z, _ = self._foreseen(least, step)
            self._respond(z)
            if np.abs(z - before).max() <= SETTLED * np.abs(z).max():
                break

    def _foreseen(self, least: float, step: float) -> tuple[np.ndarray, bool]:
        """z, and whether one of the bodies is light beside the particles that touch it."""
        p, (begin, end, owner) = self.world.particles, self._chunks
        sums = np.zeros((len(owner), levers.SUMS), np.float32)
        levers.gather(len(owner), begin, end, self.world.walls.pairs, p.V, p.D, p.residual, p.q, p.inside, least, step,
                      p.body_response, self._linear, self._angular, sums)  # fmt: skip
        total, shared = self._by_wall(sums), self._shared
        touching = symmetric(total[:, levers.SIX :])
        light = bool((touching[:, 0, 0] > LIGHT * self._masses[:, 0, 0])[self.world.walls.free].any())
        z = self._solve(total, symmetric, self._alone)
        if len(shared.pairs):
            between = np.zeros((len(shared.pairs), levers.SIX * levers.SIX), np.float32)
            levers.gather_shared(len(between), *shared.rows, p.V, p.D, p.residual, p.q, p.inside, least, step,
                                 p.body_response, self._linear, self._angular, between)  # fmt: skip
            shared.solve(self._masses + touching, between.reshape(-1, levers.SIX, levers.SIX), total[:, : levers.SIX],
                         self.articulations, z)  # fmt: skip
        return z, light

    def constrain(self, a: ti.Ndarray, moving: bool = True) -> None:
        """Displacements of particles beside dt v leave bodies where they are: they are no motion."""
        self._moved = self._drawn = self._pressed = np.zeros_like(self._before)
        if moving:
            p = self.world.particles
            self._pressed = self._pushed_back(self._changes)
            tractions = {name: at for name, at in TRACTIONS.items() if name in p.schema}
            for name, at_surface in tractions.items():
                self._drawn = self._drawn + self._dragged(getattr(p, f"{name}_change"), p.V, at_surface)
            self._moved = self._move(self._pressed + self._drawn)
            if tractions:
                self._carry_on()
        self._respond(self._moved)

    def tally(self, dt: float, step: float, least: float, sums: np.ndarray) -> None:
        """The length of a step in the metric P; for friction, whose steps are the shorter ones of Barzilai and Borwein,
        the work of tractions on bodies."""
        volume = self.world.spacing**3
        work, drawn = self._pressed * self.accelerations(self._pressed), self._drawn * self._moved
        sums[sweeps.LENGTH] += float((drawn if self._frictional else work).sum()) / volume
        if not self._frictional:
            sums[sweeps.CURVATURE] += float(drawn.sum()) / volume
        else:
            p, walls, (begin, end, owner) = self.world.particles, self.world.walls, self._chunks
            seen = np.zeros((len(owner), 1), np.float32)
            levers.slips_seen(len(owner), begin, end, owner, walls.pairs, p.x, p.V, p.inverse_density,
                              p.wall_traction_change, p.a, walls.table, walls.sides, self._moved.astype(np.float32),
                              seen)  # fmt: skip
            sums[sweeps.CURVATURE] += float(seen.sum()) / volume

    def unsettled(self, dt: float, tolerance: float) -> bool:
        return self._frictional and self._sweeps < LEAST_ON_SAND

    def finish(self, dt: float) -> None:
        self._carry_on()
        self.world.particles.body_response.fill(0.0)
        self._responds = False

    # --- parts ------------------------------------------------------------------------------------------

    def _respond(self, motion: np.ndarray) -> None:
        walls, moves = self.world.walls, bool(motion.any())
        if not (moves or self._responds):
            return  # nothing to tell, as before
        self._responds = moves
        levers.respond(self._count, self._touched, walls.table, walls.sides, self._linear, self._angular,
                       motion.astype(np.float32), self.world.particles.body_response)  # fmt: skip

    def _carry_on(self) -> None:
        """What particles rub against moves with the bodies."""
        motion = self.world.walls.motion
        if self.world.walls.rough:
            self._carry(motion - self._carried)
        self._carried = motion

    def _carry(self, change: np.ndarray) -> None:
        """Adds changes of velocities (n, 6) to the velocity of walls as particles know it."""
        p, walls = self.world.particles, self.world.walls
        levers.carry(self._count, self._touched, p.x, p.material, walls.at_surface, walls.table, walls.sides,
                     change.astype(np.float32), p.wall_velocity)  # fmt: skip

    def _pushed_back(self, changes: ti.Ndarray) -> np.ndarray:
        """(n, 6) what changes of dt^2 p do to each body [N s^2, N m s^2]."""
        begin, end, owner = self._chunks
        sums = np.zeros((len(owner), levers.SIX), np.float32)
        levers.push_back(len(owner), begin, end, self.world.walls.pairs, self.world.particles.V,
                         changes is self.world.particles.xq, changes, self._linear, self._angular, sums)  # fmt: skip
        return self._by_wall(sums)

    def _dragged(self, traction: ti.Ndarray, amount: ti.Ndarray, at_surface: float) -> np.ndarray:
        """The same of tractions per amount, a volume or a mass."""
        p, walls, (begin, end, owner) = self.world.particles, self.world.walls, self._chunks
        sums = np.zeros((len(owner), levers.SIX), np.float32)
        levers.drag_along(len(owner), begin, end, owner, walls.pairs, p.x, amount, p.inverse_density,
                          traction, at_surface, walls.table, walls.sides, sums)  # fmt: skip
        return self._by_wall(sums)

    def _solve(self, total: np.ndarray, matrices: Callable[[np.ndarray], np.ndarray],
               bodies: np.ndarray) -> np.ndarray:  # fmt: skip
        """(n, 6) how these bodies, and all mechanisms, move by the forces that begin the rows of `total`, where
        `matrices` of the rest of these add to their inertias."""
        found = np.zeros_like(self._before)
        A = self._masses[bodies] + matrices(total[bodies, levers.SIX :])
        found[bodies] = np.linalg.solve(A, total[bodies, : levers.SIX, None])[..., 0]
        for links in self.articulations:
            own = total[links.rows]
            found[links.rows] = links.solve(matrices(own[:, levers.SIX :]), own[:, : levers.SIX])
        return found

    def _by_wall(self, sums: np.ndarray) -> np.ndarray:
        """Sums of chunks, which are sorted by walls, wall by wall."""
        total = np.zeros((len(self._before), sums.shape[1]))
        total[self._touching] = np.add.reduceat(sums, self._first, axis=0, dtype=float)
        return total

    def _move(self, impulse: np.ndarray) -> np.ndarray:
        """Lets impulses times dt act; returns what they move the bodies by, times dt [m, rad]."""
        moved = self.accelerations(impulse)
        states = self.world.walls.states
        states.velocity += moved[:, :3] / self._dt
        states.spin += moved[:, 3:] / self._dt
        self.given += impulse / self._dt
        return moved


def mass_matrices(walls: Walls) -> np.ndarray:
    """(n, 6, 6) mass and inertia about the centre of each rigid body, along the world's axes; zeros for walls."""
    found, free = np.zeros((len(walls.walls), levers.SIX, levers.SIX)), walls.rigid
    R = walls.states.rotation[free]
    bodies = [wall for wall, own in zip(walls.walls, free, strict=True) if own]
    inertia = np.array([wall.inertia for wall in bodies]).reshape(-1, 3, 3)
    mass = np.array([wall.mass for wall in bodies])
    found[free, :3, :3] = mass[:, None, None] * np.eye(3)
    found[free, 3:, 3:] = R @ inertia @ R.transpose(0, 2, 1)
    return found


def drag_matrices(rows: np.ndarray) -> np.ndarray:
    """(n, 6, 6) how much less the drag on a body is by its own motion, from the sums of `levers.drag_on` (n, 10)."""
    w, wr = rows[:, 0, None, None], rows[:, 1:4]
    found = np.zeros((len(rows), levers.SIX, levers.SIX))
    found[:, :3, :3] = w * np.eye(3)
    x, y, z = wr.T
    o = np.zeros_like(x)
    cross = np.moveaxis(np.array([[o, -z, y], [z, o, -x], [-y, x, o]]), 2, 0)  # torque of a force along each axis
    found[:, 3:, :3], found[:, :3, 3:] = cross, cross.transpose(0, 2, 1)
    upper = np.triu_indices(3)
    square = np.zeros((len(rows), 3, 3))
    square[:, upper[0], upper[1]] = square[:, upper[1], upper[0]] = rows[:, 4:]
    found[:, 3:, 3:] = square
    return found


def symmetric(rows: np.ndarray) -> np.ndarray:
    """Matrices (n, 6, 6) from rows (n, 21) of their upper halves."""
    found, upper = np.zeros((len(rows), levers.SIX, levers.SIX)), np.triu_indices(levers.SIX)
    found[:, upper[0], upper[1]] = rows
    found[:, upper[1], upper[0]] = rows
    return found


def _runs(begin: np.ndarray, end: np.ndarray) -> list[tuple[int, int]]:
    """Chunks that follow each other, as one."""
    first = np.flatnonzero(np.concatenate([[True], begin[1:] != end[:-1]]))
    last = np.concatenate([first[1:], [len(begin)]]) - 1
    return list(zip(begin[first].tolist(), end[last].tolist(), strict=True))


def _part(array: ti.Ndarray, begin: int, end: int) -> np.ndarray:
    """Some rows of an array on the device."""
    memory = host_view(array)
    return (array.to_numpy() if memory is None else memory)[begin:end]
