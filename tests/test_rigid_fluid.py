"""Rigid bodies and what flows or is soft: buoyancy, added mass, momentum, levers, restarts."""

import numpy as np
import pytest

import pliant as pl
from pliant.boundary.wall_sides import SIDES
from pliant.core.frictions import Frictions

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


@pytest.mark.parametrize("density", [1.0, 300.0])
def test_light_crates_side_by_side_are_stable(density):
    """The particles between them touch both, so that neither is pushed as if it were alone."""
    scene = pool(density, pl.Box(size=(0.12,) * 3, center=(-0.0615, 0.15, 0)), radius=0.02, depth=0.36)
    scene.add(pl.Box(size=(0.12,) * 3, center=(0.0615, 0.15, 0)), pl.Rigid(density=density), name="other")
    sim = scene.build(quiet=True)
    for _ in range(30):
        sim.step()
        assert sim.stats.iterations["divergence"] < 40 and sim.stats.max_speed < 4.0
    assert sim["body"].position[1] > 0.155 and sim["other"].position[1] > 0.155


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


def test_liquids_do_not_hold_bodies_by_coulomb_friction():
    """What a crate has with solids: water at rest bears no shear. Where the scene names the pair, its number counts."""
    names = {"crate": pl.Rigid(friction=0.4), "water": pl.Fluid(), "sand": pl.Granular(), "floor": pl.Boundary()}
    assert Frictions(names, ()).between("crate", "water") == 0.0
    assert Frictions(names, ()).between("crate", "sand") == Frictions(names, ()).between("crate", "floor") == 0.4
    assert Frictions(names, [("crate", "water", 0.2)]).between("water", "crate") == 0.2


@pytest.mark.parametrize("pressure", [pl.DFSPH(), pl.IISPH()])
def test_the_force_on_a_held_body_is_its_buoyancy(pressure):
    scene = pool(500.0, pl.Box(size=(0.18, 0.12, 0.18), center=(0, 0.12, 0)), pressure=pressure)
    scene.body("body").fix()
    sim = scene.build(quiet=True)
    sim.run(seconds=0.5)
    impulse, twist, start = np.zeros(3), np.zeros(3), sim.time
    while sim.time < start + 0.2:
        sim.step()
        impulse, twist = impulse + sim.dt * sim["body"].force, twist + sim.dt * sim["body"].torque
    lift = 1000 * G * 0.18**2 * 0.12
    force = impulse / (sim.time - start)
    assert force[1] == pytest.approx(lift, rel=0.05) and np.abs(force[[0, 2]]).max() < 0.02 * lift
    assert np.abs(twist).max() / (sim.time - start) < 0.005 * lift


@pytest.mark.parametrize("liquid, pressure", [(pl.Fluid(viscosity=0.2), pl.DFSPH()), (pl.Fluid(), pl.IISPH()),
                                              (pl.Fluid(surface_tension=0.5), pl.DFSPH())])  # fmt: skip
def test_a_spinning_drum_drags_what_surrounds_it_and_all_momenta_stay(liquid, pressure):
    """Nothing else is there: what the drum loses the liquid gets, by drag, by pressure and by surface tension."""
    scene = pl.Scene(particle_radius=0.02, gravity=(0, 0, 0), pressure=pressure)
    drum = scene.add(pl.Cylinder(radius=0.08, height=0.2, axis="z"), pl.Rigid(density=700), spin=(0, 0, 8), name="drum")
    water = scene.add(pl.Box(size=(0.4, 0.4, 0.28)), liquid, name="water")
    sim = scene.build(quiet=True)
    before, spun = sim.stats.angular_momentum, sim[drum].spin[2]
    while sim.time < 0.1:
        sim.step()
    stats = sim.stats
    assert np.abs(stats.momentum).max() < 1e-5 * np.abs(before).max() / 0.1
    assert np.abs(stats.angular_momentum - before).max() < 0.02 * np.abs(before).max()
    x, v = sim[water].x, sim[water].v
    turned = (sim[water].mass * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0])).sum()
    if liquid.viscosity > 0.1:
        assert sim[drum].spin[2] < 0.8 * spun and turned > 0.2 * before[2]


@pytest.mark.parametrize("density", [1.0, 10_000.0])
@pytest.mark.parametrize("pressure", [pl.DFSPH(), pl.IISPH()])
def test_what_is_light_or_heavy_is_as_stable(density, pressure):
    """A body of a thousandth, and one of ten times the density of water with surface tension fall into it: neither is
    thrown about, and none of the water gets into it."""
    half = 0.06
    scene = pool(density, pl.Box(size=(0.12, 0.12, 0.12), center=(0.03, 0.33, 0)).rotate("z", 15), pressure=pressure)
    scene.body("water").material = pl.Fluid(surface_tension=0.07)
    sim = scene.build(quiet=True)
    fastest = 0.0
    while sim.time < 0.8:
        sim.step()
        fastest = max(fastest, float(np.linalg.norm(sim["body"].velocity)), float(np.abs(sim["water"].v).max()) / 3)
    local = np.abs((sim["water"].x - sim["body"].position) @ sim["body"].rotation).max(axis=1)
    assert fastest < 2.5 and local.min() > half - 0.008
    height = float(sim["body"].position[1])
    assert height > 0.25 if density < 1000 else height == pytest.approx(half, abs=0.01)


def test_a_thin_hull_stays_dry():
    """An open box, whose walls are a spacing thick, floats empty as deep as its weight says, and none gets through."""
    outer, thick, radius = np.array([0.27, 0.15, 0.27]), 0.03, 0.015
    center = np.array([0, 0.26, 0])
    hollow = pl.Box(size=tuple(outer - (2 * thick, 0, 2 * thick)), center=tuple(center + (0, thick, 0)))
    scene = pool(500.0, pl.Box(size=tuple(outer), center=tuple(center)) - hollow, radius=radius)
    boat = scene.body("body")
    boat.material = pl.Rigid(mass=0.5 * 1000 * outer.prod())
    scene.body("water").shape = scene.body("water").shape - pl.Box(size=tuple(outer), center=tuple(center))
    sim = scene.build(quiet=True)
    volume = sim["water"].mass.sum(dtype=float) / 1000
    sim.run(seconds=1.0)
    middle = scene.body("body").shape.mass_properties().center - center
    local = (sim["water"].x - sim["body"].position) @ sim["body"].rotation + middle
    assert not (np.abs(local) < outer / 2).all(axis=1).any(), "water is in the boat"
    bottom = sim["body"].position[1] - middle[1] - outer[1] / 2
    level = (volume - outer[0] * outer[2] * bottom) / (0.48**2 - outer[0] * outer[2])
    assert (level - bottom) / outer[1] == pytest.approx(0.5, abs=0.06) and sim["body"].rotation[1, 1] > 0.98


def test_two_that_touch_under_water_come_to_rest():
    """No water gets between faces that touch: the lower one bears up to all that weighs on the upper one, its own
    weight and the water above it, and at least its weight less its buoyancy."""
    scene = pool(2000.0, pl.Box(size=(0.15, 0.09, 0.15), center=(0, 0.045, 0)))
    scene.add(pl.Box(size=(0.12, 0.09, 0.12), center=(0.02, 0.136, 0)), pl.Rigid(density=1500, friction=0.5),
              name="top")  # fmt: skip
    sim = scene.build(quiet=True)
    sim.run(seconds=0.7)
    area, low, high = 0.12**2, 0.09, 0.18
    level = (sim["water"].mass.sum(dtype=float) / 1000 + (0.15**2 + area) * 0.09) / 0.48**2
    least, most = 500 * G * area * low, (1500 * low + 1000 * (level - high)) * G * area
    force, start = 0.0, sim.time
    while sim.time < start + 0.3:
        sim.step()
        force += sim.dt * sim["top"].contacts["body"][1] / 0.3
    assert least < force < 1.05 * most
    assert max(np.linalg.norm(sim[name].velocity) for name in ("body", "top")) < 0.01
