"""Rigid bodies and what flows or is soft: buoyancy, added mass, momentum, levers, restarts."""

import numpy as np
import pytest

import pliant as pl
from pliant.boundary.walls import SIDES

G = 9.81


def pool(density, shape, depth=0.24, radius=0.015, size=0.48, **more):
    """A body in the middle of a pool."""
    scene = pl.Scene(particle_radius=radius, **more)
    tank = pl.Box(size=(size, 3 * depth, size), center=(0, 1.5 * depth, 0))
    scene.add(tank, pl.Boundary(inside_out=True), name="pool")
    scene.add(pl.Box(size=(size, depth, size), center=(0, depth / 2, 0)), pl.Fluid(), name="water")
    scene.add(shape, pl.Rigid(density=density), name="body")
    return scene


@pytest.mark.parametrize("density", [1.0, 300.0, 3000.0])
def test_a_ball_let_go_under_water_starts_as_its_added_mass_lets_it(density):
    """a = g (rs - rf) / (rs + rf / 2), also for a body a thousand times lighter than water."""
    scene = pool(density, pl.Sphere(radius=0.09, center=(0, 0.3, 0)), depth=0.6, radius=0.015, size=0.6)
    scene.body("body").fix()
    sim = scene.build(quiet=True)
    sim.run(seconds=0.3)
    sim["body"].release()
    start, times, speeds = sim.time, [], []
    while sim.time < start + 0.02:
        sim.step()
        times.append(sim.time - start)
        speeds.append(sim["body"].velocity[1])
    times, speeds = np.array(times), np.array(speeds)
    acceleration = (times @ speeds) / (times @ times)
    assert acceleration == pytest.approx(G * (1000 - density) / (density + 500), rel=0.1)


def test_a_crate_floats_as_deep_as_it_is_heavy():
    height = 0.12
    scene = pool(600.0, pl.Box(size=(0.24, height, 0.24), center=(0, 0.24 + 0.1 * height, 0)))
    sim = scene.build(quiet=True)
    sim.run(seconds=1.0)
    lows = []
    while sim.time < 2.0:
        sim.step()
        x = sim["water"].x
        level = np.percentile(x[np.abs(x[:, [0, 2]]).max(axis=1) > 0.16, 1], 97) + 0.015
        lows.append(level - sim["body"].position[1] + height / 2)
    assert np.mean(lows) / height == pytest.approx(0.6, abs=0.06)
    assert sim["body"].rotation[1, 1] > 0.98
    assert -sim["pool"].force[1] == pytest.approx(
        G * (sim["water"].mass.sum(dtype=float) + sim["body"].mass), rel=0.15)  # fmt: skip


def test_levers_are_derivatives_of_densities():
    """Moved and turned a little, a body changes the densities of the particles around it by just that much."""
    scene = pool(500.0, pl.Box(size=(0.15, 0.15, 0.15), center=(0.02, 0.13, 0)).rotate("z", 20), gravity=(0, 0, 0))
    scene.add(pl.Box(size=(0.09, 0.09, 0.09), center=(0.19, 0.34, 0)), pl.Elastic(), name="jelly")
    sim = scene.build(quiet=True)
    sim.step()
    world, p = sim.world, sim.world.particles
    body, coupling = world.walls.find("body"), world.couplings[0]

    def densities():
        sim.find_neighbors()
        coupling.begin(1e-3)
        sim.pressure.prepare()
        order = np.argsort(p.numpy("id"))
        return p.numpy("wall_density").astype(float)[order], order

    rng = np.random.default_rng(0)
    U, T = rng.normal(size=3), 5 * rng.normal(size=3)
    shift, rotation, step = body.shift.copy(), body.rotation.copy(), 3e-5
    _, order = densities()
    touched = coupling._touched.to_numpy()[: coupling._count]
    linear, angular = coupling._linear.to_numpy(), coupling._angular.to_numpy()
    sides, number = world.walls.sides["side_count"].to_numpy(), world.walls.sides["side_number"].to_numpy()
    own = world.walls.places.first[body.number]
    expected = np.zeros(p.n)
    for i in touched:
        for s in range(sides[i]):
            if number[i, s] == own:
                expected[i] -= linear[i, s] @ U + angular[i, s] @ T
    expected = expected[order]
    found = []
    for way in (1, -1):
        angle = way * step * np.array(T)
        K = np.array([[0, -angle[2], angle[1]], [angle[2], 0, -angle[0]], [-angle[1], angle[0], 0]])
        body.shift, body.rotation = shift + way * step * U, (np.eye(3) + K + K @ K / 2) @ rotation
        found.append(densities()[0])
    change = (found[0] - found[1]) / (2 * step)
    assert SIDES >= 2 and (np.abs(expected) > 0).sum() > 100
    assert np.abs(change - expected).max() < 0.03 * np.abs(expected).max()


def scene_of_all():
    """Water, a floating and a sinking body with friction, a jelly and a hinge: all that couples."""
    scene = pl.Scene(particle_radius=0.025)
    scene.add(pl.Box(size=(0.6, 0.8, 0.5), center=(0, 0.4, 0)), pl.Boundary(inside_out=True, friction=0.3), name="tank")
    scene.add(pl.Box(size=(0.6, 0.25, 0.5), center=(0, 0.125, 0)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.2, 0.12, 0.2), center=(-0.15, 0.36, 0)), pl.Rigid(density=400, friction=0.4), name="raft")
    scene.add(pl.Sphere(radius=0.08, center=(0.15, 0.36, 0.05)), pl.Rigid(density=2000, friction=0.4), name="ball")
    scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(-0.15, 0.5, 0)), pl.Elastic(young=1e5, friction=0.5), name="jelly")
    flap = scene.add(pl.Box(size=(0.06, 0.3, 0.3), center=(0.02, 0.35, 0)), pl.Rigid(density=700), name="flap")
    scene.hinge(flap, None, at=(0.02, 0.48, 0), axis="z", name="hinge")
    return scene


def test_a_restart_is_exact(tmp_path):
    sim = scene_of_all().build(quiet=True)
    for _ in range(40):
        sim.step()
    sim.save(tmp_path / "state.npz")
    again = pl.load(tmp_path / "state.npz")
    for _ in range(20):
        sim.step()
        again.step()
    for name in ("raft", "ball", "flap"):
        for value in ("position", "rotation", "velocity", "spin", "force"):
            np.testing.assert_array_equal(getattr(sim[name], value), getattr(again[name], value))
    for name in ("water", "jelly"):
        np.testing.assert_array_equal(sim[name].x, again[name].x)


def test_a_weightless_ball_in_honey_does_not_shake():
    """Viscous drag, which is explicit, would throw what is lighter than the layer of liquid around it to and fro."""
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Box(size=(0.48, 0.9, 0.48), center=(0, 0.45, 0)), pl.Boundary(inside_out=True), name="pool")
    scene.add(pl.Box(size=(0.48, 0.4, 0.48), center=(0, 0.2, 0)), pl.Fluid(viscosity=5e-3), name="honey")
    scene.add(pl.Sphere(radius=0.09, center=(0, 0.2, 0)), pl.Rigid(density=1.0), name="ball")
    sim = scene.build(quiet=True)
    speeds = []
    for _ in range(12):
        sim.step()
        speeds.append(sim["ball"].velocity[1])
    assert min(speeds) > 0 and np.diff(speeds).min() > -0.2 * max(speeds)
