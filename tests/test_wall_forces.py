"""Forces on walls: the opposite of what walls do to particles, to round-off, and right by closed forms."""

import numpy as np
import pytest

import pliant as pl
from pliant.tools.validation.flow import imbalance, mean_forces

G = 9.81
MATERIALS = {
    "water": pl.Fluid(), "explicit": pl.Fluid(viscosity=1e-3, viscosity_solver="explicit"),
    "implicit": pl.Fluid(viscosity=0.1, viscosity_solver="implicit"), "sand": pl.Granular(),
    "damp sand": pl.Granular(cohesion=500),
}  # fmt: skip


@pytest.mark.parametrize("material, solver", [*((name, pl.DFSPH()) for name in MATERIALS), ("water", pl.IISPH()),
                                              ("sand", pl.IISPH())])  # fmt: skip
def test_impulses_and_momentum_agree(material, solver):
    """Walls that are rough, round and flat, at rest and moving, one in the corner of another."""
    scene = pl.Scene(particle_radius=0.03, pressure=solver)
    scene.add(pl.Box(size=(0.9, 1, 0.5), center=(0.45, 0.5, 0.25)), pl.Boundary(inside_out=True, friction=0.3),
              name="tank")  # fmt: skip
    scene.add(pl.Sphere(radius=0.15, center=(0.6, 0.15, 0.25)), pl.Boundary(friction=0.5, no_slip=False), name="ball")
    paddle = scene.add(pl.Box(size=(0.1, 0.3, 0.5), center=(0.85, 0.15, 0.25)), pl.Boundary(), name="paddle")
    paddle.move(lambda t: (-0.5, 0, 0))
    scene.add(pl.Box(size=(0.4, 0.5, 0.5), center=(0.2, 0.25, 0.25)), MATERIALS[material])
    assert imbalance(scene.build(quiet=True), ["tank", "ball", "paddle"], 0.3) < 2e-6


@pytest.mark.parametrize("solver", [pl.DFSPH(), pl.IISPH()], ids=["DFSPH", "IISPH"])
def test_impulses_of_an_elastic_body_and_its_momentum_agree(solver):
    """A block that strikes the floor with an edge, slides, rocks and comes to rest: in each step the floor gets what
    the block loses, by contact, by friction, and by what brings it to rest."""
    scene = pl.Scene(particle_radius=0.01, pressure=solver)
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    block = pl.Box(size=(0.12, 0.06, 0.08), center=(0, 0.032, 0)).rotate("z", 5)
    scene.add(block, pl.Elastic(), name="block", velocity=(0.5, -0.3, 0))
    assert imbalance(scene.build(quiet=True), ["floor"], 0.1) < 3e-5  # it is struck with up to ten times its weight


def test_each_wall_gets_its_own_share():
    """Water between two planes and four walls: the floor carries the weight, opposite sides the same."""
    scene, d = pl.Scene(particle_radius=0.015), 0.03
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    for k, (x, z) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        scene.add(pl.Plane(normal=(x, 0, z), point=(-0.15 * x, 0, -0.15 * z)), pl.Boundary(), name=f"side{k}")
    water = scene.add(pl.Box(size=(10 * d, 6 * d, 10 * d), center=(0, 3 * d, 0)), pl.Fluid())
    sim = scene.build()
    sim.run(0.8)
    force = mean_forces(sim, ["floor", "side0", "side1"], 0.4)
    weight = G * sim[water].mass.sum(dtype=float)
    assert -force["floor"][1] == pytest.approx(weight, rel=0.01)
    assert np.abs(force["floor"][[0, 2]]).max() < 0.01 * weight
    assert -force["side0"][0] == pytest.approx(0.5 * 1000 * G * (6 * d) ** 2 * 10 * d, rel=0.08)
    assert force["side1"][0] == pytest.approx(-force["side0"][0], rel=0.03)


def test_the_torque_is_about_the_pivot():
    """A slab that carries a cube of water beside its middle."""
    scene = pl.Scene(particle_radius=0.01)
    scene.add(pl.Box(size=(0.1, 0.6, 0.1), center=(0.3, 0.3, 0)), pl.Boundary(inside_out=True), name="tank")
    water = scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0.3, 0.05, 0)), pl.Fluid())
    scene.body("tank").pivot = (0.0, 0.0, 0.0)
    sim = scene.build()
    sim.run(0.2)
    weight, turn, seconds = G * sim[water].mass.sum(dtype=float), np.zeros(3), 0.0
    for _ in range(150):
        sim.step()
        turn, seconds = turn + sim.dt * sim["tank"].torque, seconds + sim.dt
    np.testing.assert_allclose(turn / seconds, [0, 0, -0.3 * weight], atol=0.02 * weight * 0.3)


def test_what_keep_out_stops_is_counted():
    """A particle without neighbors meets a wall: nothing but the wall can stop it."""
    scene = pl.Scene(particle_radius=0.01, gravity=(0, 0, 0), dt=1e-3)
    scene.add(pl.Plane(), pl.Boundary(), name="ground")
    drop = scene.add(pl.Box(size=(0.02, 0.02, 0.02), center=(0, 0.05, 0)), pl.Fluid(), velocity=(0, -2, 0))
    sim = scene.build()
    mass, impulse = float(sim[drop].mass.sum()), 0.0
    for _ in range(60):
        sim.step()
        impulse += sim.dt * sim["ground"].force[1]
    assert impulse == pytest.approx(-mass * (sim[drop].v[0, 1] + 2), rel=1e-5)


def test_a_sphere_under_water_has_its_buoyancy():
    """It is 8 particles wide: with the way these lie around it its buoyancy scatters by 1 % (5.6 wide: by 2 to 5)."""
    scene = pl.Scene(particle_radius=0.00875)
    scene.add(pl.Box(size=(0.3, 0.5, 0.3), center=(0, 0.25, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Sphere(radius=0.07, center=(0.005, 0.13, 0)), pl.Boundary(), name="ball")
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0, 0.15, 0)), pl.Fluid())
    sim = scene.build(quiet=True)
    sim.run(0.8)
    force = mean_forces(sim, ["ball"], 0.3)["ball"]
    assert force[1] == pytest.approx(1000 * G * 4 / 3 * np.pi * 0.07**3, rel=0.03)


def test_fingers_carry_what_they_hold():
    """Two rough plates squeeze a soft cube and hold it: their friction is its weight."""
    scene = pl.Scene(particle_radius=0.01)
    cube = scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0, 0.3, 0)), pl.Elastic(density=300, young=5e4), name="cube")
    for name, side in (("left", -1), ("right", 1)):
        plate = pl.Box(size=(0.06, 0.16, 0.16), center=(side * 0.0825, 0.3, 0))
        scene.add(plate, pl.Boundary(friction=1.5), name=name).move(
            lambda t, s=side: (-s * 0.05 if t < 0.2 else 0, 0, 0))  # fmt: skip
    sim = scene.build(quiet=True)
    sim.run(0.5)
    height = sim[cube].x[:, 1].mean()
    force = mean_forces(sim, ["left", "right"], 0.4)
    weight = G * sim[cube].mass.sum(dtype=float)
    assert -(force["left"][1] + force["right"][1]) == pytest.approx(weight, rel=0.1)
    assert -force["left"][0] == pytest.approx(force["right"][0], rel=0.02)
    assert force["right"][0] > weight / (2 * 1.5)
    assert sim[cube].x[:, 1].mean() == pytest.approx(height, abs=0.02)


def test_forces_are_part_of_the_state(tmp_path):
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Plane(), pl.Boundary(), name="ground")
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(0, 0.1, 0)), pl.Fluid())
    sim = scene.build()
    sim.run(0.05)
    sim.save(tmp_path / "state.npz")
    np.testing.assert_array_equal(pl.load(tmp_path / "state.npz")["ground"].force, sim["ground"].force)
    assert sim["ground"].force[1] < 0
