"""Micropolar fluids: what they must conserve, the continuum limit, and energy that only falls."""

import numpy as np
import pytest

import pliant as pl

D = 0.05


def drop(nu=0.01, inertia=2.0, **settings):
    """A drop with disordered positions, velocities and spins."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), **settings)
    scene.add(pl.Sphere(radius=0.2), pl.Fluid(viscosity=0.0, damping=0.0, micropolar=nu, microinertia=inertia),
              name="water")  # fmt: skip
    sim = scene.build(quiet=True)
    rng, water = np.random.default_rng(0), sim["water"]
    water.x = water.x + rng.uniform(-0.2, 0.2, (len(water), 3)) * D
    water.v = rng.normal(size=(len(water), 3)) + np.cross((1.0, 4.0, -2.0), water.x)
    if nu > 0:
        sim.world.particles.set("spin", rng.normal(size=(len(water), 3)) / D)
    sim.find_neighbors()
    return sim


def totals(sim, inertia=2.0):
    """Momentum, angular momentum with that of spins, and energy with theirs."""
    p = sim.world.particles
    m, x, v, spin = (p.numpy(k).astype(float) for k in ("m", "x", "v", "spin"))
    theta = inertia * D**2
    return ((m[:, None] * v).sum(0), (m[:, None] * (np.cross(x, v) + theta * spin)).sum(0),
            0.5 * (m * ((v**2).sum(1) + theta * (spin**2).sum(1))).sum())  # fmt: skip


def test_momentum_and_angular_momentum_are_kept_and_energy_falls():
    sim = drop()
    stage, m = sim.stage("micropolar"), sim["water"].mass.sum(dtype=float)
    p, L, energy = totals(sim)
    for _ in range(20):
        stage.run(2e-3)
        now = totals(sim)
        assert now[2] < energy
        energy = now[2]
    assert np.abs(now[0] - p).max() < 1e-6 * m
    assert np.abs(now[1] - L).max() < 1e-6 * m * 0.2


def test_a_drop_that_turns_with_its_spins_is_left_alone():
    sim = drop()
    turning = np.array((0.0, 0.0, 3.0))
    sim["water"].v = np.cross(turning, sim["water"].x)
    sim.world.particles.set("spin", np.tile(turning, (len(sim["water"]), 1)))
    sim.find_neighbors()
    before = sim["water"].v.copy()
    sim.stage("micropolar").run(2e-3)
    np.testing.assert_allclose(sim["water"].v, before, atol=1e-5)


def test_spins_follow_the_curl_of_a_shear_flow_and_drive_it():
    """Theta d omega/dt = nu_t (curl v - 2 omega); dv/dt = nu_t curl omega where velocities are zero."""
    n, nu = 8, 1e-3
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), periodic=(n * D, n * D, n * D))
    scene.add(pl.Box(size=(n * D,) * 3, center=(n * D / 2,) * 3), pl.Fluid(viscosity=0.0, damping=0.0, micropolar=nu),
              name="water")  # fmt: skip
    sim, k, dt = scene.build(quiet=True), 2 * np.pi / (n * D), 1e-4
    water, p = sim["water"], sim.world.particles
    sim.find_neighbors()
    y = p.numpy("x")[:, 1]
    v = np.zeros((p.n, 3), np.float32)
    v[:, 0] = np.sin(k * y)
    p.set("v", v)
    sim.stage("micropolar").run(dt)
    found = p.numpy("spin")[:, 2] * 2 * D**2 / (dt * nu)
    shape = -k * np.cos(k * y)
    assert (found @ shape) / (shape @ shape) == pytest.approx(1.0, abs=0.15)  # 8 spacings a wave: sin(k d) / (k d)
    p.set("v", 0 * v)
    spin = 0 * v
    spin[:, 2] = np.sin(k * y)
    p.set("spin", spin)
    sim.stage("micropolar").run(dt)
    found, shape = p.numpy("v")[:, 0] / (dt * nu), k * np.cos(k * y)
    assert (found @ shape) / (shape @ shape) == pytest.approx(1.0, abs=0.15)
    assert len(water) == p.n


def test_restart_is_exact(tmp_path):
    sim = drop()
    for _ in range(3):
        sim.step()
    sim.save(tmp_path / "state.npz")
    again = pl.load(tmp_path / "state.npz")
    for each in (sim, again):
        for _ in range(3):
            each.step()
    assert np.array_equal(sim["water"].v, again["water"].v)
    assert np.array_equal(sim.world.particles.by_id("spin"), again.world.particles.by_id("spin"))


def test_transfer_bounds_the_time_step():
    assert drop(nu=0.1).next_dt() <= 0.2 * D**2 / 0.1
    assert all(stage.name != "micropolar" for stage in drop(nu=0.0).stages)
