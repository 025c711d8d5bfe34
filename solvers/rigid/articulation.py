"""Mechanisms: walls that move together, by few generalised velocities u, and respond together to what acts on them.

The walls of a mechanism, its links, have the velocities and spins J u. With its effective inertia A, which counts the
masses of its links and whatever else resists (dampers, servos, constraints), forces and torques F on the links change
these by

    dt W F,    W = J A^-1 J^T,                                                                          (1)

which is what M^-1 is for a rigid body: links join in the pressure solve as rigid bodies do (`coupling`). Where that
needs (M + S)^-1 f with S of each body by itself, the same for links is

    J (A + J^T S J)^-1 J^T f.                                                                           (2)

To contacts with rigid bodies each link is a body of its own, whose mass and inertia are such that it yields no less
than the link does (`find_bodies`). What a mechanism really does is its own business: it hears of the forces, and moves.
Were its response W' and the response of what it pushes 1 / m, an error of its force would be multiplied by
(W - W') / (W + 1 / m) from one step to the next: this is stable whenever the links are thought to yield more than half
as much as they do, however light they are.
"""

import numpy as np

from pliant.core.world import World

STEADY = 0.5  # share of itself by which a force may have changed in a step to be reckoned with in the next one
STIFFEST = 1e-6  # of the largest inverse inertia of a link: the least that one has about any axis
LATEST = 0.02  # what acts in the last instant would act in no substep
EVEN = 0.5  # where they act all through it
SINGULAR = 1e-6  # of the largest: smaller singular values count as none


class Articulation:
    """Base of mechanisms. `begin` sets J and A for a step."""

    def __init__(self, rows: np.ndarray, parts: np.ndarray):
        """`rows` are the numbers of the walls that are its links; `parts` has those at its base as well, which stand
        still. The parts do not touch each other: that is its own business."""
        self.rows, self.parts = rows, parts
        self.J, self.A = np.zeros((6 * len(rows), 0)), np.zeros((0, 0))
        self.alone = np.zeros((len(rows), 6, 6))  # response of each link to what acts on it alone
        self.early = np.full(len(rows), EVEN)  # mean share of the step that was still to come when contacts acted

    def begin(self, dt: float, lasting: np.ndarray) -> np.ndarray:
        """Finds J and A for a step of dt [s], and (k, 6) where nothing but the `lasting` forces and torques (k, 6) on
        its links will bring their velocities and spins, less what (1) makes of all that acted in the last step."""
        raise NotImplementedError

    def advance(self, dt: float, forces: np.ndarray, contacts: np.ndarray) -> None:
        """Moves by a step under the forces and torques (k, 6) on its links, and those of contacts, which act when
        `early` tells."""
        raise NotImplementedError

    def carry(self, impulses: np.ndarray) -> None:
        """Takes impulses (k, 6) that came too late for the step: they act in the next one [N s, N m s]."""
        raise NotImplementedError

    def poses(self) -> tuple[np.ndarray, np.ndarray]:
        """(k, 3) by how much the pivots of its links have moved since they were built [m], and (k, 3, 3) rotations."""
        raise NotImplementedError

    def motion(self) -> np.ndarray:
        """(k, 6) velocities of the pivots, and spins."""
        raise NotImplementedError

    # --- response ---------------------------------------------------------------------------------------

    def respond(self, forces: np.ndarray) -> np.ndarray:
        """(k, 6) accelerations of links by forces and torques (k, 6), Eq. 1."""
        return (self.J @ np.linalg.solve(self.A, self.J.T @ forces.ravel())).reshape(-1, 6)

    def solve(self, S: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """(k, 6) the same where matrices S (k, 6, 6) add to the inertia, Eq. 2."""
        A = self.A + self.gathered(S)
        return (self.J @ np.linalg.solve(A, self.J.T @ forces.ravel())).reshape(-1, 6)

    def gathered(self, S: np.ndarray) -> np.ndarray:
        """J^T S J."""
        G = self.J.reshape(-1, 6, self.J.shape[1])
        found: np.ndarray = np.einsum("kia,kij,kjb->ab", G, S, G)
        return found

    def find_bodies(self) -> None:
        """Finds what its links are to contacts: bodies with an inverse mass m, equal in all directions, and an inverse
        inertia C about a centre at `offset` d from the pivot, which yield no less than the links do. With the response
        (A B; B^T C) of a link about that centre, B the velocity by a torque,

            (A B; B^T C)  <=  (1 + r) (m 0; 0 C),    m = max eig A,    r = |B C^-1/2| m^-1/2 <= 1.

        The centre is where B is least: that of mass for what is free, and the axis for what hangs on a hinge, where B
        is zero."""
        G = self.J.reshape(-1, 6, self.J.shape[1])
        self.alone = W = G @ np.linalg.solve(self.A, G.transpose(0, 2, 1))
        k = len(W)
        self.offset, self.inverse_mass, self.inverse_inertia = np.zeros((k, 3)), np.zeros(k), np.zeros((k, 3, 3))
        for i, (A, B, C) in enumerate(zip(W[:, :3, :3], W[:, :3, 3:], W[:, 3:, 3:], strict=True)):
            crosses = np.array([cross_matrix(axis) @ C for axis in np.eye(3)]).reshape(3, 9)  # [d]x C of d along each
            d = np.linalg.lstsq(crosses.T, B.ravel(), rcond=SINGULAR)[0]
            D = cross_matrix(d)
            A, B = A + B @ D - D @ B.T - D @ C @ D, B - D @ C
            m, turning = np.linalg.eigvalsh(A)[-1], np.linalg.eigvalsh(C)[-1]
            least = STIFFEST * max(turning, m)  # what turns about its middle yields to no force there
            m, C = max(m, least), C + least * np.eye(3)
            r = 0.0
            if m > 0.0:
                r = min(np.sqrt(np.linalg.eigvalsh(B @ np.linalg.solve(C, B.T))[-1] / m), 1.0)
            self.offset[i], self.inverse_mass[i], self.inverse_inertia[i] = d, (1 + r) * m, (1 + r) * C

    def yielding(self, forces: np.ndarray) -> np.ndarray:
        """(k, 6) accelerations of the pivots of these bodies by forces and torques (k, 6) about the pivots."""
        F, T = forces[:, :3], forces[:, 3:] - np.cross(self.offset, forces[:, :3])
        turning = np.einsum("kij,kj->ki", self.inverse_inertia, T)
        return np.hstack((self.inverse_mass[:, None] * F - np.cross(turning, self.offset), turning))


    def find_timing(self, dt: float, moved: np.ndarray, impulses: np.ndarray) -> None:
        """Finds when contacts acted, by what they did to these bodies (k, 6): where they `moved` them, which is the
        inverse inertia times the integral of f (dt - t), and the integral of f itself, about the centres."""
        given = np.hstack((self.inverse_mass[:, None] * impulses[:, :3],
                           np.einsum("kij,kj->ki", self.inverse_inertia, impulses[:, 3:])))  # fmt: skip
        whole = dt * (given * impulses).sum(axis=1)
        part = (moved * impulses).sum(axis=1)
        self.early = np.clip(np.divide(part, whole, out=np.full(len(whole), EVEN), where=whole > 0.0), LATEST, 1.0)


def still_acting(force: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Forces and torques (n, 6) that are about what they were in the step before; zeros in place of the others."""
    change = np.linalg.norm(force - before, axis=1)
    return np.where((change <= STEADY * np.linalg.norm(force, axis=1))[:, None], force, 0.0)


def cross_matrix(d: np.ndarray) -> np.ndarray:
    """The matrix of the cross product with d."""
    return np.array([[0.0, -d[2], d[1]], [d[2], 0.0, -d[0]], [-d[1], d[0], 0.0]])


def articulations(world: World) -> list[Articulation]:
    """The mechanisms of a scene, which stores may have."""
    return [one for store in world.stores.values() for one in getattr(store, "articulations", ())]
