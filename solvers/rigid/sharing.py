"""Bodies that touch the same particles: what presses on one presses on the other too.

In the metric of the sweeps (`coupling`) the levers G_a and G_b of a particle that touches two bodies join the equations
of both,

    sum_b (M_a delta_ab + S_ab) z_b = f_a,    S_ab = sum V G_a G_b^T / D.

If each left to the others what it would remove alone, a layer of water between two light crates would be pushed too
far, and farther in each sweep. They are solved by conjugate gradients, from the motion of each body alone. Links of a
mechanism take part by its own coordinates (`articulation`).
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import block_diag, bsr_array

from pliant.boundary.wall_sides import SIDES
from pliant.solvers.rigid.articulation import Articulation

SIX = 6
ACCURATE = 1e-4  # of the residuals of motions


@dataclasses.dataclass(frozen=True)
class Shared:
    """Pairs of bodies that touch the same particles, sorted: begin and end of those in a list of sides, one of each."""

    pairs: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 2), int))
    rows: tuple = ()
    layout: dict[str, Any] = dataclasses.field(default_factory=dict)  # found once, and the same for a step

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
        if not self.layout:
            self.layout.update(_layout(self.pairs, np.concatenate([np.zeros(0, int), *(g.rows for g in joined)])))
        bodies, single, K, places = (self.layout[name] for name in ("bodies", "single", "matrix", "places"))
        n, k = len(bodies), len(between)
        K.data[places[:n]], K.data[places[n : n + k]] = A[bodies], between
        K.data[places[n + k :]] = between.transpose(0, 2, 1)
        J = block_diag([np.eye(SIX * len(single)), *(links.J for links in joined)], format="csr") if joined else None
        first = SIX * len(single)
        parts = np.cumsum([first, *(len(links.A) for links in joined)])
        inverse = np.linalg.inv(A[single])
        inverses = [np.linalg.inv(links.A + links.gathered(A[links.rows])) for links in joined]

        def apply(u: np.ndarray) -> np.ndarray:
            found: np.ndarray = K @ u if J is None else J.T @ (K @ (J @ u))
            for links, begin, end in zip(joined, parts[:-1], parts[1:], strict=True):
                found[begin:end] += links.A @ u[begin:end]
            return found

        def alone(r: np.ndarray) -> np.ndarray:
            found = np.empty_like(r)
            np.matmul(inverse, r[:first].reshape(-1, SIX, 1), out=found[:first].reshape(-1, SIX, 1))
            for own, begin, end in zip(inverses, parts[:-1], parts[1:], strict=True):
                found[begin:end] = own @ r[begin:end]
            return found

        f = wanted[bodies].ravel()
        u = _conjugate_gradients(apply, alone, f if J is None else J.T @ f)
        z[bodies] = (u if J is None else J @ u).reshape(-1, SIX)


def _layout(pairs: np.ndarray, linked: np.ndarray) -> dict[str, Any]:
    """Who takes part, links last; the matrix, still empty; and where its blocks are: of bodies, of pairs, of pairs the
    other way round."""
    single = np.setdiff1d(pairs, linked)
    bodies = np.concatenate([single, linked])
    n, place = len(bodies), np.zeros(int(bodies.max()) + 1, int)
    place[bodies] = np.arange(n)
    one, other = place[pairs].T
    row, column = np.concatenate([np.arange(n), one, other]), np.concatenate([np.arange(n), other, one])
    order = np.lexsort((column, row))
    empty, starts = np.zeros((len(order), SIX, SIX)), np.searchsorted(row[order], np.arange(n + 1))
    matrix = bsr_array((empty, column[order], starts), shape=(SIX * n, SIX * n))
    return {"bodies": bodies, "single": single, "matrix": matrix, "places": np.argsort(order)}


def _conjugate_gradients(apply: Callable[[np.ndarray], np.ndarray], alone: Callable[[np.ndarray], np.ndarray],
                         f: np.ndarray) -> np.ndarray:  # fmt: skip
    """Preconditioned by `alone`. SciPy's takes four times as long for so few unknowns."""
    u = alone(f)
    r = f - apply(u)
    goal, way, before = ACCURATE * float(np.linalg.norm(f)), np.zeros_like(f), 1.0
    for k in range(len(f)):
        if float(np.linalg.norm(r)) <= goal:
            break
        z = alone(r)
        now = float(r @ z)
        way = z + (now / before if k else 0.0) * way
        pushed = apply(way)
        step = now / float(way @ pushed)
        u, r, before = u + step * way, r - step * pushed, now
    return u
