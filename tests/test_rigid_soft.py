"""Rigid bodies with elastic bodies and sand: collisions of all pairs, friction, grip, rest, restarts."""

import itertools

import numpy as np
import pytest

import pliant as pl
from pliant.scenes import excavator, gripper
from pliant.tools.validation import rigid_soft

G = 9.81


@pytest.mark.parametrize("pressure", [
    pytest.param(pl.DFSPH(), id="DFSPH"), pytest.param(pl.IISPH(), id="IISPH", marks=pytest.mark.slow)])  # fmt: skip
@pytest.mark.parametrize("one, other", list(itertools.combinations_with_replacement(rigid_soft.KINDS, 2)))
def test_collisions_keep_momentum_and_angular_momentum(one, other, pressure):
    """Of every pair, rough, off-centre and askew; and no energy comes from nowhere. What seeps into sand takes its
    angular momentum from particle to particle."""
    scene, cube = pl.Scene(particle_radius=0.02, gravity=(0, 0, 0), pressure=pressure), pl.Box(size=(0.2, 0.2, 0.2))
    scene.add(cube.translate((-0.25, 0.03, 0.02)), rigid_soft.material(one, 0.5), name="a", velocity=(2, 0, 0))
    scene.add(cube.rotate("y", 20), rigid_soft.material(other, 0.5), name="b")
    sim = scene.build(quiet=True)
    first = sim.stats
    push = first.momentum[0]
    while sim.time < 0.1:
        sim.step()
        now = sim.stats
        assert np.abs(now.momentum - first.momentum).max() < 1e-6 * push
        turned = np.abs(now.angular_momentum - first.angular_momentum).max() / (0.2 * push)
        assert turned < (2e-3 if {one, other} == {"fluid", "sand"} else 1e-4)
        assert now.energy < first.energy * (1 + 1e-5)


@pytest.mark.parametrize("what", ["soft on fixed", "soft on free", "rigid on soft"])
def test_blocks_stick_below_the_angle_of_friction(what):
    """And their velocities are zero, as their motion is."""
    moved, acceleration = rigid_soft.down_the_slope(what, 0.5, 25.0, 0.3)  # 26.6 degrees
    assert moved < 0.02 * rigid_soft.D
    assert abs(acceleration) < 0.05


def stack(young=1e5):
    """A crate of rubber between two of wood, on a floor."""
    scene = pl.Scene(particle_radius=0.01)
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    for k, material in enumerate((pl.Rigid(density=600), pl.Elastic(young=young, friction=0.5), pl.Rigid(density=600))):
        scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0, 0.05 + 0.1 * k, 0)), material, name=f"crate{k}")
    return scene


def test_soft_and_rigid_crates_rest_on_each_other(tmp_path):
    """They stand still, and bear each other's weights; action is reaction; a restart is exact."""
    sim = stack().build(quiet=True)
    sim.run(seconds=0.6)
    sim.save(tmp_path / "state.npz")
    first, again = [sim[f"crate{k}"].position for k in (0, 2)], pl.load(tmp_path / "state.npz")
    for one in (sim, again):
        one.run(seconds=0.1)
    for name in ("crate0", "crate2"):
        np.testing.assert_array_equal(sim[name].position, again[name].position)
        np.testing.assert_array_equal(sim[name].force, again[name].force)
        assert np.abs(sim[name].velocity).max() < 1e-3
    assert np.abs(np.array(first) - [sim[f"crate{k}"].position for k in (0, 2)]).max() < 5e-5
    top, soft = G * sim["crate2"].mass, G * float(sim["crate1"].mass.sum(dtype=float))
    assert sim["crate2"].force[1] == pytest.approx(top, rel=0.01)
    assert sim["crate0"].force[1] == pytest.approx(-top - soft, rel=0.01)
    assert sim["crate0"].contacts["floor"][1] == pytest.approx(2 * top + soft, rel=0.01)
    for name, force in sim["crate1"].contacts.items():
        np.testing.assert_allclose(force, -sim[name].force, atol=1e-3 * top)


def test_friction_of_an_elastic_body_acts_at_the_surface_of_a_wall():
    """A roller that is held and turns drags a block along at the speed of its surface, and feels the torque F R."""
    scene, R = pl.Scene(particle_radius=0.01, gravity=(0, -G, 0)), 0.1
    roller = scene.add(pl.Cylinder(radius=R, height=0.3, axis="z"), pl.Rigid(friction=0.5), name="roller")
    roller.move(lambda t: ((0, 0, 0), (0, 0, -20.0)))
    block = pl.Box(size=(0.3, 0.08, 0.12), center=(0, R + 0.04, 0))
    scene.add(block, pl.Elastic(young=1e6, friction=0.5), name="block")
    sim, torque, force = scene.build(quiet=True), 0.0, 0.0
    while sim.time < 0.04:
        sim.step()
        torque, force = torque + sim["roller"].torque[2], force + sim["roller"].force[0]
    assert force < 0 and torque == pytest.approx(-R * force, rel=0.03)


@pytest.mark.parametrize("options, height", [
    pytest.param({"drop": 0.0}, 0.39, marks=pytest.mark.slow),
    pytest.param({"drop": 0.0, "friction": 0.05}, 0.1, marks=pytest.mark.slow)])  # fmt: skip
def test_fingers_lift_what_friction_can_bear(options, height):
    sim = gripper.build(radius=0.016, **options).build(quiet=True)
    sim.run(seconds=1.6)
    gripper.check(sim)
    assert sim["ball"].x[:, 1].mean() == pytest.approx(height, abs=0.05)


def crate_on_sand(density, buried=False):
    scene, side = pl.Scene(particle_radius=0.02), 0.4
    crate = pl.Box(size=(0.16, 0.16, 0.16), center=(0, 0.12 if buried else 0.2, 0))
    bed = pl.Box(size=(side, 0.24 if buried else 0.12, side), center=(0, 0.12 if buried else 0.06, 0))
    scene.add(pl.Box(size=(side, 0.8, side), center=(0, 0.4, 0)), pl.Boundary(inside_out=True), name="box")
    scene.add(bed - crate if buried else bed, pl.Granular(), name="sand")
    scene.add(crate, pl.Rigid(density=density, friction=0.5), name="crate")
    return scene


@pytest.mark.parametrize("density, buried", [(300.0, False), (3000.0, False), (100.0, True)])
def test_a_crate_rests_on_sand_and_in_it(density, buried):
    """Heavy or light, it bears its weight, and does not rock; a light one in the sand breaks nothing and stays."""
    sim = crate_on_sand(density, buried).build(quiet=True)
    sim.run(seconds=0.8)
    first = sim["crate"].position
    sim.run(seconds=0.2)
    crate = sim["crate"]
    assert np.abs(crate.position - first).max() < 2e-4
    assert np.abs(crate.spin).max() < 0.01
    assert crate.force[1] == pytest.approx(G * crate.mass, rel=0.02)
    total = G * (crate.mass + float(sim["sand"].mass.sum(dtype=float)))
    assert -sim["box"].force[1] == pytest.approx(total, rel=0.01)


def test_the_bucket_goes_where_its_hinges_take_it():
    """By joints alone: the path of the excavator, from the angles that its motors have gone through."""
    t = np.linspace(0.0, 3.2, 3201)
    turned = np.trapezoid([excavator.speeds(s) for s in t], t, axis=0)
    wanted = np.diff(excavator.angles(t[-1]), prepend=0.0) - np.diff(excavator.angles(0.0), prepend=0.0)
    np.testing.assert_allclose(turned, wanted, atol=1e-4)
