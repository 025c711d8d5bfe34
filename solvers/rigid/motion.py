"""Free rotation: bodies on which no contact and no joint acts.

The angular momentum L is constant, so the motion is that of the attitude alone: the principal axes p_k of a body turn
with the angular velocity sum_k (p_k . L / I_k) p_k. The energy is a sum of three parts, (p_k . L)^2 / (2 I_k), each of
which alone would turn the body about p_k at a constant rate. One after the other, forwards and backwards (Touma and
Wisdom 1994; Dullweber, Leimkuhler and McLachlan 1997), and five such steps composed to the fourth order (Suzuki 1990):
symplectic, so the energy does not drift, and L is that of the start by construction.
"""

import numpy as np

LARGEST_TURN = 0.2  # [rad] in one composed step: the energy then errs by less than 1e-5 (tests/test_rigid_motion.py)
SUZUKI = 1 / (4 - 4 ** (1 / 3))
WEIGHTS = (SUZUKI, SUZUKI, 1 - 4 * SUZUKI, SUZUKI, SUZUKI)
LEAST_MOMENT = 1e-9  # of the largest: a thread has no inertia about itself, and would turn at any rate


def principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments (n, 3) [kg m^2] and axes (n, 3, 3), as columns, in the frames of bodies."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]  # right-handed
    return np.maximum(moments, LEAST_MOMENT * moments[:, 2:] + np.finfo(float).tiny), axes


def _turn_about(k: int, h: float, P: np.ndarray, L: np.ndarray, moments: np.ndarray) -> None:
    """Turns all bodies about their k-th principal axes, for a time h."""
    angle = h * np.einsum("ij,ij->i", P[:, k], L) / moments[:, k]
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    i, j = (k + 1) % 3, (k + 2) % 3
    P[:, i], P[:, j] = c * P[:, i] + s * P[:, j], c * P[:, j] - s * P[:, i]


def orthonormal(R: np.ndarray) -> np.ndarray:
    """The rotations nearest to what are rotations but for round-off (one step of Newton for the polar factor)."""
    return 0.5 * R @ (3 * np.eye(3) - np.swapaxes(R, 1, 2) @ R)


def rotate_freely(rotation: np.ndarray, spin: np.ndarray, moments: np.ndarray, axes: np.ndarray, dt: float,
                  dw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Rotations and angular velocities after a step, from those at its start. What changed the angular velocities by
    `dw` acts half before and half after the motion (Verlet), as a torque that is constant in the world."""
    P = np.swapaxes(rotation @ axes, 1, 2).copy()  # P[:, k] is the k-th principal axis in the world

    def momentum(w: np.ndarray) -> np.ndarray:
        return np.einsum("ikj,ik->ij", P, moments * np.einsum("ikj,ij->ik", P, w))

    dL = momentum(dw)
    L = momentum(spin) + 0.5 * dL
    rate = np.abs(np.einsum("ikj,ij->ik", P, L) / moments).max(initial=0.0)
    # |L| / I_1 bounds what the rate may become where the body flips over
    rate = max(rate, float((np.linalg.norm(L, axis=1) / moments[:, 1]).max(initial=0.0)))
    steps = max(int(np.ceil(rate * dt / LARGEST_TURN)), 1)
    for _ in range(steps):
        for weight in WEIGHTS:
            h = weight * dt / steps
            for k, share in ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5)):
                _turn_about(k, share * h, P, L, moments)
    L = L + 0.5 * dL
    w = np.einsum("ikj,ik->ij", P, np.einsum("ikj,ij->ik", P, L) / moments)
    return orthonormal(np.swapaxes(P, 1, 2) @ np.swapaxes(axes, 1, 2)), w
