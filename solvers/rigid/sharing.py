"""Bodies that touch the same particles: what presses on one presses on the other too.

In the metric of the sweeps (`coupling`) the levers G_a and G_b of a particle that touches two bodies join the equations
of both,

    sum_b (M_a delta_ab + S_ab) z_b = f_a,    S_ab = sum V G_a G_b^T / D.

If each left to the others what it would remove alone, a layer of water between two light crates would be pushed too
far, and farther in each sweep. They are solved by conjugate gradients, from the motion of each body alone. Links of a
mechanism take part by its own coordinates (`articulation`).
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.sparse import block_diag, bsr_array
from scipy.sparse.linalg import LinearOperator, cg

from pliant.boundary.walls import SIDES
from pliant.solvers.rigid.articulation import Articulation

SIX = 6
ACCURATE = 1e-5  # of the residuals of motions


@dataclasses.dataclass(frozen=True)
class Shared:
    """Pairs of bodies that touch the same particles, sorted: begin and end of those in a list of sides, one of each."""

    pairs: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 2), int))
    rows: tuple = ()

    @classmethod
    def of(cls, sides: np.ndarray, owners: np.ndarray) -> "Shared":
        """From the sides that particles see, SIDES times the particle and which of its sides, and whose they are."""
        order = np.argsort(sides, kind="stable")
        sides, owners, found = sides[order], owners[order], [np.zeros((0, 2), int)]
        for apart in range(1, min(SIDES, len(sides))):
            same = np.flatnonzero(sides[apart:] // SIDES == sides[:-apart] // SIDES)
            found.append(np.stack([same, same + apart], axis=1))
        entries = np.concatenate(found)
        entries = entries[owners[entries[:, 0]] != owners[entries[:, 1]]]
        if not len(entries):
            return cls()
        swapped = owners[entries[:, 0]] > owners[entries[:, 1]]
        entries[swapped] = entries[swapped][:, ::-1]
        n = int(owners.max()) + 1
        code = owners[entries[:, 0]].astype(np.int64) * n + owners[entries[:, 1]]
        order = np.lexsort((sides[entries[:, 0]], code))
        code, entries = code[order], entries[order]
        pair, begin = np.unique(code, return_index=True)
        end = np.append(begin[1:], len(code))
        one, other = (np.ascontiguousarray(sides[entries[:, k]], np.int32) for k in range(2))
        return cls(np.stack(np.divmod(pair, n), axis=1), (begin.astype(np.int32), end.astype(np.int32), one, other))

    def solve(self, A: np.ndarray, between: np.ndarray, wanted: np.ndarray, mechanisms: Sequence[Articulation],
              z: np.ndarray) -> None:  # fmt: skip
        """Puts into z (n, 6) the motions of those in the pairs, whose blocks are A (n, 6, 6) and, of pairs, `between`;
        A of links is without masses, for these are their mechanism's."""
        joined = [links for links in mechanisms if np.isin(links.rows, self.pairs).any()]
        linked = np.concatenate([np.zeros(0, int), *(links.rows for links in joined)])
        single = np.setdiff1d(self.pairs, linked)
        bodies = np.concatenate([single, linked])
        place = np.zeros(len(A), int)
        place[bodies] = np.arange(len(bodies))
        K = _block_matrix(A[bodies], place[self.pairs], between)
        J = block_diag([np.eye(SIX * len(single)), *(links.J for links in joined)], format="csr") if joined else None
        inertia = [links.A for links in joined]
        first = SIX * len(single)
        parts = np.cumsum([first, *(len(own) for own in inertia)])
        inverse = np.linalg.inv(A[single])
        inverses = [np.linalg.inv(links.A + links.gathered(A[links.rows])) for links in joined]

        def apply(u: np.ndarray) -> np.ndarray:
            found = K @ u if J is None else J.T @ (K @ (J @ u))
            for own, begin, end in zip(inertia, parts[:-1], parts[1:], strict=True):
                found[begin:end] += own @ u[begin:end]
            return found

        def alone(r: np.ndarray) -> np.ndarray:
            found = np.empty_like(r)
            found[:first] = np.einsum("nij,nj->ni", inverse, r[:first].reshape(-1, SIX)).ravel()
            for own, begin, end in zip(inverses, parts[:-1], parts[1:], strict=True):
                found[begin:end] = own @ r[begin:end]
            return found

        f = wanted[bodies].ravel()
        f, size = f if J is None else J.T @ f, (int(parts[-1]),) * 2
        u = cg(LinearOperator(size, apply), f, rtol=ACCURATE, M=LinearOperator(size, alone), maxiter=size[0])[0]
        z[bodies] = (u if J is None else J @ u).reshape(-1, SIX)


def _block_matrix(diagonal: np.ndarray, pairs: np.ndarray, between: np.ndarray) -> bsr_array:
    """The symmetric matrix with these blocks on its diagonal (n, 6, 6) and those `between` pairs (k, 2)."""
    n, (one, other) = len(diagonal), pairs.T
    blocks = np.concatenate([diagonal, between, between.transpose(0, 2, 1)])
    row, column = np.concatenate([np.arange(n), one, other]), np.concatenate([np.arange(n), other, one])
    order = np.lexsort((column, row))
    starts = np.searchsorted(row[order], np.arange(n + 1))
    return bsr_array((blocks[order], column[order], starts), shape=(SIX * n, SIX * n))
