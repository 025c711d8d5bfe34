"""What flies free keeps its centre of mass and its angular momentum, whatever displacements do inside it.

A displacement s_i beside dt v_i changes angular momentum by sum m_i s_i x v_i, for no reason: s is no motion. And
sum m s vanishes but for what elastic bodies, which stay where they are, and `correction.spread` leave. In a pool that
does no harm, for walls take up what comes. But a drop that is struck would gain or lose 1e-4 of m v R.

So each group of particles that touches neither walls nor what is prescribed is moved as a whole,

    s'_i = s_i - sum m s / sum m,    v'_i = v_i + w x r_i,    r_i = x_i + s'_i - c,    J w = -sum m s' x v - dL,

with the centre c and the moments of inertia J = sum m (r.r - r r^T) of the group. Both are rigid, so that neither
densities nor strains change, and momentum stays as it is. (Giving it back pair by pair is viscosity: displacements of a
full box have a large uniform pressure.) dL is what the shear stresses of sand have added to the angular momentum of its
group in this step: forces between its particles, which do not act along the lines that join them.

Rigid bodies that fly free belong to the groups that they touch, with their own inertia in J. In a scene that is
periodic along one axis groups turn about that axis alone, and are told apart by their places across it. Where more is
periodic, nothing turns.
"""

import dataclasses
import itertools

import numpy as np
import taichi as ti
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pliant.boundary.wall_sides import Sides
from pliant.boundary.wall_table import WallTable, wall_of
from pliant.core.backend import Ints, Reals, Spans, vec3
from pliant.core.fields import Field
from pliant.core.speedups import light
from pliant.core.world import World

FIELDS = (Field("held", "int", "", "1 where it touches, by neighbors of neighbors, a wall or what is prescribed"),)

# Half of the 26 cells around one: each pair of cells is found once
AROUND = np.array([o for o in itertools.product((0, -1, 1), repeat=3) if o > (0, 0, 0)])
TINY = 1e-9  # of the largest moment of inertia: two particles have none about their line


@light
@ti.kernel
def _hold(n: ti.i32, wall_density: Reals, inverse_density: Reals, held: Ints):
    for i in range(n):
        held[i] = ti.cast(wall_density[i] > 0.0 or inverse_density[i] == 0.0, ti.i32)


@light
@ti.kernel
def _let_go(n: ti.i32, inverse_density: Reals, loose: Ints, t: WallTable, c: Sides, held: Ints):
    """Those who see no walls but rigid bodies that fly free."""
    for i in range(n):
        if held[i] != 0 and inverse_density[i] > 0.0:
            held[i] = 0
            for s in range(c.side_count[i]):
                if loose[wall_of(c.side_number[i, s], t)] == 0:
                    held[i] = 1


@light
@ti.kernel
def _pass_on(n: ti.i32, span: Spans, neighbor: Ints, held: Ints, changed: Ints):
    """Who has a neighbor that is held is held. Threads may see each other's news early or late: that changes how often
    this must be repeated, and not what comes out in the end."""
    changed[0] = 0
    for i in range(n):
        if held[i] == 0:
            k, end = span[i][0], span[i][1]
            while k < end and held[neighbor[k]] == 0:
                k += 1
            if k < end:
                held[i], changed[0] = 1, 1


@dataclasses.dataclass
class Moving:
    """What moves freely, one a row: particles, then rigid bodies."""

    group: np.ndarray  # (n,)
    m: np.ndarray  # (n,) [kg]
    x: np.ndarray  # (n, 3) [m]
    v: np.ndarray  # (n, 3) [m/s]
    s: np.ndarray  # (n, 3) displacement beside dt v [m]
    inertia: np.ndarray  # (n, 3, 3) about x [kg m^2]
    gained: np.ndarray  # (n, 3) angular momentum that it has got for no reason [kg m^2/s]


class FreeGroups:
    """Those of a scene, in each step anew. `sheared` scenes have stresses whose torques count."""

    def __init__(self, world: World, sheared: bool):
        self.world, self.sheared = world, sheared
        self._v = ti.ndarray(vec3, 1)
        self._motion = np.zeros((0, 6))

    def begin(self) -> None:
        """Remembers velocities as they are before pressures and stresses act."""
        if not self.sheared:
            return
        p = self.world.particles
        if self._v.shape[0] != p.v.shape[0]:
            self._v = ti.ndarray(vec3, p.v.shape[0])
        self._v.copy_from(p.v)
        self._motion = self.world.walls.motion

    def keep_angular_momentum(self) -> None:
        """Takes out of `particles.shift`, and gives to velocities, what leaves free groups their centre and spin."""
        world, p, near = self.world, self.world.particles, self.world.neighbors
        periodic = near.periods > 0
        if periodic.sum() > 1:
            return
        rows, bodies, touching = self._find()
        if not len(rows):
            return  # as in a pool
        x = p.numpy("x")[rows]
        if not np.isfinite(x).all():
            return  # the step will be taken back
        moving = self._moving(rows, bodies, touching, groups(x * ~periodic, world.h))
        known = np.isfinite(moving.v).all() and np.isfinite(moving.s).all()
        if not known or not (moving.s.any() or moving.gained.any()):
            return  # nothing free is displaced, or the step has broken down and will be taken back
        s, dv, w = rigid_answer(moving, np.array([periodic.sum() == periodic[k] for k in range(3)], float))
        k, states = len(rows), world.walls.states
        p.write("shift", rows, s[:k])
        p.write("v", rows, moving.v[:k] + dv[:k])
        states.shift[bodies] += s[k:]
        states.velocity[bodies] += dv[k:]
        states.spin[bodies] += w[k:]

    def _find(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The particles that are free; the walls that are free rigid bodies and touch some of them; and pairs (n, 2)
        of a particle and a wall that touch."""
        p, near, walls = self.world.particles, self.world.neighbors, self.world.walls
        loose, changed = walls.loose.copy(), np.ones(1, np.int32)
        touching = walls.touching() if loose.any() else np.zeros((0, 2), np.int64)
        while True:
            _hold(p.n, p.wall_density, p.inverse_density, p.held)
            if loose.any():
                _let_go(p.n, p.inverse_density, loose.astype(np.int32), walls.table, walls.sides, p.held)
            changed[0] = 1
            while changed[0]:
                _pass_on(p.n, near.span, near.neighbor, p.held, changed)
            held = p.numpy("held") != 0
            caught = loose & np.isin(np.arange(len(loose)), touching[held[touching[:, 0]], 1])
            if not caught.any():
                break
            loose &= ~caught
        touching = touching[loose[touching[:, 1]]]
        return np.flatnonzero(~held), np.unique(touching[:, 1]), touching

    def _moving(self, rows: np.ndarray, bodies: np.ndarray, touching: np.ndarray, group: np.ndarray) -> Moving:
        """Particles and rigid bodies as one, those in one group that touch the same body."""
        world, p, n = self.world, self.world.particles, len(rows)
        x, v, s, m = (p.numpy(name)[rows].astype(float) for name in ("x", "v", "shift", "m"))
        gained = np.zeros((n, 3))
        if self.sheared:
            gained = m[:, None] * np.cross(x, v - self._v.to_numpy()[rows])
        if not len(bodies):
            return Moving(group, m, x, v, s, np.zeros((n, 3, 3)), gained)
        walls, motion = world.walls, world.walls.motion[bodies]
        mass = np.array([walls.walls[k].mass for k in bodies])
        inertia = np.array([walls.walls[k].inertia for k in bodies])
        R, center = walls.states.rotation[bodies], (walls.pivots + walls.states.shift)[bodies]
        inertia = R @ inertia @ R.transpose(0, 2, 1)
        own = np.zeros((len(bodies), 3))
        if self.sheared:
            change = motion - self._motion[bodies]
            own = mass[:, None] * np.cross(center, change[:, :3]) + np.einsum("nij,nj->ni", inertia, change[:, 3:])
        first = int(group.max()) + 1
        nodes = first + len(bodies)
        edges = group[np.searchsorted(rows, touching[:, 0])], first + np.searchsorted(bodies, touching[:, 1])
        graph = coo_array((np.ones(len(touching)), edges), shape=(nodes, nodes))
        joined = connected_components(graph, directed=False)[1]
        return Moving(joined[np.concatenate([group, np.arange(first, nodes)])], np.concatenate([m, mass]),
                      np.concatenate([x, center]), np.concatenate([v, motion[:, :3]]),
                      np.concatenate([s, np.zeros((len(bodies), 3))]),
                      np.concatenate([np.zeros((n, 3, 3)), inertia]), np.concatenate([gained, own]))  # fmt: skip


def groups(x: np.ndarray, h: float) -> np.ndarray:
    """The number of the group (n,) to which each particle at x (n, 3) belongs: those closer than h are of one group.
    Found by cells of that width, so that some that are up to two cells apart are joined as well."""
    cell = np.floor((x - x.min(axis=0)) / h).astype(np.int64) + 1
    places = cell.max(axis=0) + 2
    weights = np.array([places[1] * places[2], places[2], 1])
    cells, member = np.unique(cell @ weights, return_inverse=True)
    wanted = cells[:, None] + AROUND @ weights
    found = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    one, k = np.nonzero(cells[found] == wanted)
    graph = coo_array((np.ones(len(one)), (one, found[one, k])), shape=(len(cells), len(cells)))
    return connected_components(graph, directed=False)[1][member]


def rigid_answer(a: Moving, turns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Displacements s', changes of velocities and of spins (n, 3) by the formulas above. `turns` (3,) is 1 for axes
    about which groups may turn, 0 for others."""

    def total(values: np.ndarray) -> np.ndarray:
        """Sums over each group, in the order of the rows."""
        columns = values.reshape(len(values), -1).T
        sums = np.stack([np.bincount(a.group, column) for column in columns], axis=-1)
        return sums.reshape(-1, *values.shape[1:])

    m, mass = a.m[:, None], np.bincount(a.group, a.m)[:, None]
    s = a.s - (total(m * a.s) / mass)[a.group]
    r = a.x + s - (total(m * a.x) / mass)[a.group]
    square = np.einsum("nk,nk->n", r, r)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None, :]
    J = total(m[:, :, None] * square + a.inertia) * np.outer(turns, turns)
    lost = total(m * np.cross(s, a.v) + a.gained)
    w = -np.einsum("gij,gj->gi", np.linalg.pinv(J, rcond=TINY, hermitian=True), lost)[a.group]
    return s, np.cross(w, r), w
