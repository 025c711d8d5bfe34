"""Bodies that share particles: what presses on one and is pressed by another too.

In the metric of the sweeps (`coupling`), the levers G_a and G_b of a particle that touches two bodies, or two links of
a mechanism, join the equations of both:

    sum_b (M_a delta_ab + S_ab) z_b = f_a,    S_ab = sum V G_a G_b^T / D.

Without S_ab light bodies would be moved by pressures that each believes it alone removes. Mechanisms take part with
their own coordinates (`articulation`). Few particles are shared, so this is done on the host.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_diag, coo_array
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

    def prepare(self, linear: np.ndarray, angular: np.ndarray, masses: np.ndarray,
                mechanisms: Sequence[Articulation]) -> None:  # fmt: skip
        """Takes the levers of all particles, and the masses (n, 6, 6) of all bodies, for the sweeps of a step."""
        self._levers = [np.hstack((linear[self.particle, s], angular[self.particle, s])) for s in self.sides]
        shared = np.concatenate(self.owners)
        joined = [links for links in mechanisms if np.isin(links.rows, shared).any()]
        self.bodies = np.unique(np.concatenate([shared, *(links.rows for links in joined)]))
        a, b = (np.searchsorted(self.bodies, owner) for owner in self.owners)
        n = len(self.bodies)
        self._pairs, self._pair = np.unique(a * n + b, return_inverse=True)
        self._take_coordinates(masses, joined)

    def _take_coordinates(self, masses: np.ndarray, joined: Sequence[Articulation]) -> None:
        """The matrix J that makes motions (6n) of the coordinates of bodies and mechanisms, and their inertia."""
        parts, inertias, at = [], [], 0
        linked = np.concatenate([np.zeros(0, int), *(links.rows for links in joined)])
        for k in np.flatnonzero(~np.isin(self.bodies, linked)).tolist():
            parts.append((SIX * k + np.arange(SIX), at, np.eye(SIX)))
            inertias.append(masses[self.bodies[k]])
            at += SIX
        for links in joined:
            rows = SIX * np.searchsorted(self.bodies, links.rows)[:, None] + np.arange(SIX)
            parts.append((rows.ravel(), at, links.J))
            inertias.append(links.A)
            at += len(links.A)
        rows = np.concatenate([np.repeat(own, J.shape[1]) for own, _, J in parts])
        columns = np.concatenate([np.tile(begin + np.arange(J.shape[1]), len(J)) for _, begin, J in parts])
        values = np.concatenate([J.ravel() for *_, J in parts])
        self._J = coo_array((values, (rows, columns)), shape=(SIX * len(self.bodies), at)).tocsr()
        self._inertia = block_diag(inertias, format="csr")

    def solve(self, weight: np.ndarray, S: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """(n, 6) how the `bodies` move by forces (n, 6), with S (n, 6, 6) of each, where the shared particles weigh
        V / D."""
        n = len(self.bodies)
        blocks = np.zeros((len(self._pairs), SIX, SIX))
        np.add.at(blocks, self._pair, np.einsum("k,ki,kj->kij", weight, *self._levers))
        one, other, own = self._pairs // n, self._pairs % n, np.arange(n)
        data = np.concatenate([S, blocks, blocks.transpose(0, 2, 1)])
        rows, columns = np.concatenate([own, one, other]), np.concatenate([own, other, one])
        inner = np.arange(SIX)
        place = (SIX * rows[:, None, None] + inner[:, None] + 0 * inner, SIX * columns[:, None, None] + inner
                 + 0 * inner[:, None])  # fmt: skip
        B = coo_array((data.ravel(), (place[0].ravel(), place[1].ravel())), shape=(SIX * n, SIX * n)).tocsr()
        u = _solved(self._inertia + self._J.T @ B @ self._J, self._J.T @ forces.ravel())
        return np.asarray(self._J @ u).reshape(n, SIX)


def _solved(A: Any, f: np.ndarray) -> np.ndarray:
    """The solution, group by group of those that hang together."""
    A, u = A.tocsr(), np.zeros_like(f)
    count, group = connected_components(A, directed=False)
    for own in np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=count))[:-1]):
        inner = A[own][:, own]
        if len(own) > LARGE:
            u[own] = splu(inner.tocsc()).solve(f[own])
        else:
            u[own] = cho_solve(cho_factor(inner.toarray()), f[own])
    return u
