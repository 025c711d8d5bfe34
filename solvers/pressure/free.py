"""What flies free keeps its centre of mass and its angular momentum, whatever displacements do inside it.

A displacement s_i beside dt v_i changes angular momentum by sum m_i s_i x v_i, for no reason: s is no motion. And
sum m s vanishes but for what elastic bodies, which stay where they are, and `correction.spread` leave. In a pool that
does no harm, for walls take up what comes. But a drop that is struck would gain or lose 1e-4 of m v R.

So each group of particles that touches neither walls nor what is prescribed is moved as a whole,

    s'_i = s_i - sum m s / sum m,    v'_i = v_i + w x r_i,    r_i = x_i + s'_i - c,    J w = -sum m s' x v,

with the centre c and the moments of inertia J = sum m (r.r - r r^T) of the group. Both are rigid, so that neither
densities nor strains change, and momentum stays as it is. (Giving it back pair by pair is viscosity: displacements of a
full box have a large uniform pressure.) In a scene that is periodic along one axis groups turn about that axis alone,
and are told apart by their places across it. Where more is periodic, nothing turns.
"""

import itertools

import numpy as np
import taichi as ti
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pliant.core.backend import Ints, Reals, Spans
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


def keep_angular_momentum(world: World) -> None:
    """Takes out of `particles.shift`, and gives to `particles.v`, what leaves free groups their centre and spin."""
    p, near = world.particles, world.neighbors
    periodic = near.periods > 0
    if periodic.sum() > 1:
        return
    changed = np.ones(1, np.int32)
    _hold(p.n, p.wall_density, p.inverse_density, p.held)
    while changed[0]:
        _pass_on(p.n, near.span, near.neighbor, p.held, changed)
    rows = np.flatnonzero(p.numpy("held") == 0)
    if not len(rows):
        return  # as in a pool
    x, v, s, m = (p.numpy(name)[rows].astype(float) for name in ("x", "v", "shift", "m"))
    if not s.any() or not (np.isfinite(v).all() and np.isfinite(s).all()):
        return  # nothing free is displaced, or the step has broken down and will be taken back
    turns = np.array([periodic.sum() == periodic[k] for k in range(3)], float)
    s, dv = rigid_answer(groups(x * ~periodic, world.h), m, x, v, s, turns)
    p.write("shift", rows, s)
    p.write("v", rows, v + dv)


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


def rigid_answer(group: np.ndarray, m: np.ndarray, x: np.ndarray, v: np.ndarray, s: np.ndarray, turns: np.ndarray
                 ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Displacements s' and changes of velocities by the formulas above, for particles (n,) of some groups. `turns` (3,)
    is 1 for axes about which they may turn, 0 for others."""

    def total(values: np.ndarray) -> np.ndarray:
        """Sums over each group, in the order of the particles."""
        columns = values.reshape(len(values), -1).T
        sums = np.stack([np.bincount(group, m * column) for column in columns], axis=-1)
        return sums.reshape(-1, *values.shape[1:])

    mass = np.bincount(group, m)[:, None]
    s = s - (total(s) / mass)[group]
    r = x + s - (total(x) / mass)[group]
    square = np.einsum("nk,nk->n", r, r)
    J = total(square[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None, :]) * np.outer(turns, turns)
    w = -np.einsum("gij,gj->gi", np.linalg.pinv(J, rcond=TINY, hermitian=True), total(np.cross(s, v)))
    return s, np.cross(w[group], r)
