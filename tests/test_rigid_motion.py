"""Free rotation of rigid bodies: what is conserved, and when a body flips."""

import numpy as np
import pytest

from pliant.solvers.rigid.motion import principal, rotate_freely

INERTIA = np.diag([1.0, 2.0, 3.0])


def run(inertia, spin, dt, time, look=lambda R, w: None):
    n = len(inertia)
    R, w = np.tile(np.eye(3), (n, 1, 1)), np.array(spin, float)
    moments, axes = principal(inertia)
    for _ in range(round(time / dt)):
        R, w = rotate_freely(R, w, moments, axes, dt, np.zeros((n, 3)))
        look(R, w)
    return R, w


def energy(inertia, R, w):
    local = np.einsum("nji,nj->ni", R, w)
    return 0.5 * np.einsum("ni,nij,nj->n", local, inertia, local)


def momentum(inertia, R, w):
    return np.einsum("nij,njk,nlk,nl->ni", R, inertia, R, w)


def test_tumbling_bodies_keep_energy_and_angular_momentum():
    """100 s at 5 ms, slow and fast, and bodies whose axes lie anyhow."""
    rng = np.random.default_rng(1)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    inertia = np.array([INERTIA, turned @ np.diag([0.2, 0.5, 0.6]) @ turned.T, np.diag([1.0, 1.0, 1.9])])
    spin = np.array([[0.1, 1, 0.2], [3.0, -8.0, 20.0], [10.0, 1.0, -30.0]])
    R0 = np.tile(np.eye(3), (3, 1, 1))
    E0, L0, worst = energy(inertia, R0, spin), momentum(inertia, R0, spin), [0.0, 0.0]

    def look(R, w):
        worst[0] = max(worst[0], np.max(np.abs(energy(inertia, R, w) / E0 - 1)))
        worst[1] = max(worst[1], np.max(np.linalg.norm(momentum(inertia, R, w) - L0, axis=1)) / 20)

    R, _ = run(inertia, spin, 5e-3, 20, look)
    assert worst[0] < 2e-5, worst
    assert worst[1] < 1e-11, worst
    assert np.allclose(np.swapaxes(R, 1, 2) @ R, np.eye(3), atol=1e-13)


def test_a_body_flips_about_its_middle_axis_in_time():
    """I = (1, 2, 3), omega = (0.01, 1, 0): half of T = 41.509 s lies between flips (validation/formulas.md)."""
    ups = []
    run(INERTIA[None], [[0.01, 1.0, 0.0]], 5e-3, 65, lambda R, w: ups.append((R[0].T @ w[0])[1]))
    ups = np.array(ups)
    crossings = np.flatnonzero(np.diff(np.sign(ups))) * 5e-3
    assert len(crossings) == 3
    assert np.diff(crossings) == pytest.approx([41.509 / 2] * 2, rel=1e-3)


def test_a_constant_torque_about_a_principal_axis():
    moments, axes = principal(INERTIA[None])
    R, w, dt = np.eye(3)[None], np.zeros((1, 3)), 5e-3
    for _ in range(200):
        R, w = rotate_freely(R, w, moments, axes, dt, np.array([[0.0, 0.0, 2.0 * dt]]))
    assert w[0] == pytest.approx([0, 0, 2.0], abs=1e-12)
    angle = np.arctan2(R[0, 1, 0], R[0, 0, 0])
    assert angle == pytest.approx(1.0, abs=1e-9)  # alpha t^2 / 2: exact for Verlet


def test_a_body_that_is_a_thread_turns_about_the_others_only():
    R, w = run(np.diag([0.0, 1.0, 1.0])[None], [[0.0, 2.0, 0.0]], 5e-3, 1.0)
    assert w[0] == pytest.approx([0, 2, 0], abs=1e-9)
