"""Bodies that share particles: what presses on one and is pressed by another too.

In the metric of the sweeps (`coupling`), the levers G_a and G_b of a particle that touches two bodies, or two links of
a mechanism, join the equations of both:

    sum_b (M_a delta_ab + S_ab) z_b = f_a,    S_ab = sum V G_a G_b^T / D.

Without S_ab light bodies would be moved by pressures that each believes it alone removes. Mechanisms take part with
their own coordinates (`articulation`). Few particles are shared, so this is done on the host.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from pliant.boundary.walls import SIDES
from pliant.solvers.rigid.articulation import Articulation

SIX = 6
LARGE = 240  # unknowns from which on a group of bodies is solved with sparse matrices


class Sharing:
    """The particles of a step that touch several bodies which can move."""

    def __init__(self, pairs: np.ndarray, owner: np.ndarray):
        """`pairs` are SIDES times the particle and its side, of the walls `owner`."""
        particle = pairs // SIDES
        order = np.argsort(particle, kind="stable")
        particle, side, owner = particle[order], pairs[order] % SIDES, owner[order]
        first, second = [], []
        for ahead in range(1, SIDES):
            k = np.flatnonzero(particle[ahead:] == particle[:-ahead])
            first.append(k)
            second.append(k + ahead)
        a, b = np.concatenate(first), np.concatenate(second)
        different = owner[a] != owner[b]
        a, b = a[different], b[different]
        self.particle, self.sides = particle[a], (side[a], side[b])
        self.owners = owner[a].astype(int), owner[b].astype(int)

    def __len__(self) -> int:
        return len(self.particle)

    def take_levers(self, linear: np.ndarray, angular: np.ndarray) -> None:
        """Notes the levers of all pairs of bodies, from the tables of all particles."""
        self._levers = [np.hstack((linear[self.particle, s], angular[self.particle, s])) for s in self.sides]

    def solve(self, weight: np.ndarray, masses: np.ndarray, S: np.ndarray, forces: np.ndarray,
              mechanisms: Sequence[Articulation]) -> np.ndarray:  # fmt: skip
        """(n, 6) how all bodies move by forces (n, 6), where the shared particles weigh V / D. `masses` (n, 6, 6) are
        zero for what cannot move; links of mechanisms have those of these."""
        n = len(forces)
        J, start = _coordinates(masses, mechanisms)
        rows, columns, values = _entries(masses, J, start, S, mechanisms)
        a, b = self.owners
        blocks = np.einsum("k,ki,kj->kij", weight, *self._levers)
        pair, number = np.unique(a * n + b, return_inverse=True)
        summed = np.zeros((len(pair), SIX, SIX))
        np.add.at(summed, number, blocks)
        for one, other, block in zip((pair // n).tolist(), (pair % n).tolist(), summed, strict=True):
            local = J[one].T @ block @ J[other]
            for p, q, entries in ((one, other, local), (other, one, local.T)):
                grid = np.meshgrid(start[p] + np.arange(len(entries)), start[q] + np.arange(entries.shape[1]),
                                   indexing="ij")  # fmt: skip
                rows.append(grid[0].ravel())
                columns.append(grid[1].ravel())
                values.append(entries.ravel())
        size = int(start[-1])
        A = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(size, size))
        f = np.zeros(size)
        for k in range(n):
            if J[k].shape[1]:
                f[start[k] : start[k] + J[k].shape[1]] += J[k].T @ forces[k]
        u = _solved(A, f)
        return np.array([J[k] @ u[start[k] : start[k] + J[k].shape[1]] for k in range(n)])


def _coordinates(masses: np.ndarray, mechanisms: Sequence[Articulation]) -> tuple[list[np.ndarray], np.ndarray]:
    """Of each body the matrix J (6, m) of its motion by the coordinates of its group, and where these begin; the last
    number is how many there are."""
    n, at = len(masses), 0
    J, start = [np.zeros((SIX, 0))] * n, np.zeros(n + 1, int)
    for k in np.flatnonzero(masses[:, 0, 0] > 0).tolist():
        J[k], start[k] = np.eye(SIX), at
        at += SIX
    for links in mechanisms:
        for row, own in zip(links.rows.tolist(), links.J.reshape(-1, SIX, links.J.shape[1]), strict=True):
            J[row], start[row] = own, at
        at += links.J.shape[1]
    start[n] = at
    return J, start


def _entries(masses: np.ndarray, J: list[np.ndarray], start: np.ndarray, S: np.ndarray,
             mechanisms: Sequence[Articulation]) -> tuple[list, list, list]:  # fmt: skip
    """Rows, columns and values of what bodies and mechanisms have by themselves."""
    rows, columns, values = [], [], []
    own = [(start[k], masses[k] + S[k]) for k in np.flatnonzero(masses[:, 0, 0] > 0).tolist()]
    for links in mechanisms:
        if len(links.rows):
            inner = sum((J[k].T @ S[k] @ J[k] for k in links.rows.tolist()), links.A)
            own.append((start[links.rows[0]], inner))
    for at, block in own:
        grid = np.meshgrid(*[at + np.arange(len(block))] * 2, indexing="ij")
        rows.append(grid[0].ravel())
        columns.append(grid[1].ravel())
        values.append(block.ravel())
    return rows, columns, values


def _solved(A: coo_array, f: np.ndarray) -> np.ndarray:
    """The solution, group by group of those that hang together."""
    A = A.tocsr()
    u = np.zeros_like(f)
    count, group = connected_components(A, directed=False)
    for own in np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=count))[:-1]):
        inner = A[own][:, own]
        if len(own) > LARGE:
            u[own] = splu(inner.tocsc()).solve(f[own])
        else:
            u[own] = cho_solve(cho_factor(inner.toarray()), f[own])
    return u
