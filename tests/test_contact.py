"""Elastic bodies that touch walls and each other: impulses, friction, rest, and what users read of it."""

import dataclasses
import math

import numpy as np
import pytest

import pliant as pl
from pliant.core.frictions import Frictions, coefficient
from pliant.solvers.elasticity.settling import CALM
from pliant.tools.validation.contact import rocked, tower

D = 0.02
G = 9.81


def block_on_floor(degrees=0.0, mu=None, size=(6, 3, 4), young=1e6, **more):
    """A block of so many particles on a plane that gravity is tilted against."""
    tilt = math.radians(degrees)
    scene = pl.Scene(particle_radius=D / 2, gravity=(G * math.sin(tilt), -G * math.cos(tilt), 0), **more)
    scene.add(pl.Plane(), pl.Boundary(friction=mu), name="floor")
    shape = pl.Box(size=tuple(k * D for k in size), center=(0, size[1] * D / 2, 0))
    scene.add(shape, pl.Elastic(young=young), name="block")
    return scene


def run(sim, seconds):
    end = sim.time + seconds
    while sim.time < end - 1e-9:
        sim.step()


# --- impulses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pressure", [pl.DFSPH(), pl.IISPH()], ids=["DFSPH", "IISPH"])
@pytest.mark.parametrize("young", [1e5, 1e8])
def test_what_falls_a_little_does_not_hop(young, pressure):
    """Let go 1 mm above the floor it never rises above that, and no energy comes from nowhere."""
    d, r = 0.01, 0.04
    scene = pl.Scene(particle_radius=d / 2, pressure=pressure)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Sphere(radius=r, center=(0, r + 1e-3, 0)), pl.Elastic(young=young, density=600), name="ball")
    sim = scene.build()
    height = float(sim["ball"].x[:, 1].mean())
    first = sim.stats.potential_energy
    for _ in range(100):
        sim.step()
        stats = sim.stats
        assert sim["ball"].x[:, 1].mean() < height + 1e-6
        assert stats.potential_energy + stats.kinetic_energy + stats.elastic_energy < first * (1 + 1e-4)


def test_what_a_callback_adds_acts_as_it_is():
    """A force on some particles, given as changes of velocity, moves the whole body as Newton says, in that step."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Box(size=(0.2, 0.1, 0.1)), pl.Elastic(young=1e8), name="bar")
    sim = scene.build()
    sim.step()
    mass, end = sim["bar"].mass.astype(float), sim["bar"].rest[:, 0] > 0.2 / 2 - D
    v = sim["bar"].v
    v[end] += (0.0, 0.3, 0.0)
    sim["bar"].v = v
    sim.step()
    now, x = sim["bar"].v.astype(float), sim["bar"].x.astype(float)
    push = 0.3 * mass[end].sum()
    assert mass @ now[:, 1] == pytest.approx(push, rel=1e-5)
    arm = x - np.average(x, axis=0, weights=mass)
    lever = float(np.average(sim["bar"].rest[end, 0], weights=mass[end]))
    assert (mass * (arm[:, 0] * now[:, 1] - arm[:, 1] * now[:, 0])).sum() == pytest.approx(push * lever, rel=1e-3)


def test_a_load_given_by_a_callback_bends_a_beam_as_it_should():
    """A cantilever with a load at its tip: deflection F L^3 / (3 E I), whatever the step."""
    d, length, high, young = 0.01, 0.2, 0.04, 1e6
    load = 0.3 * 3 * young * high**4 / 12 / length**2 * 0.1  # 3 % of the length
    found = []
    for dt in (4e-3, 1e-2):
        scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), dt=dt)
        beam = pl.Box(size=(length + 2 * d, high, high), center=(length / 2 - d, 0, 0))
        handle = scene.add(beam, pl.Elastic(young=young, poisson=0.0, damping=8.0), name="beam")
        handle.fix(lambda x: x[:, 0] < 0)
        sim = scene.build()
        tip = sim["beam"].rest[:, 0] > length - d
        each = load / float(sim["beam"].mass[tip].sum())
        for _ in range(round(1.6 / dt)):
            v = sim["beam"].v
            v[tip] -= (0.0, each * dt, 0.0)
            sim["beam"].v = v
            sim.step()
        found.append(-float((sim["beam"].x - sim["beam"].rest)[tip, 1].mean()) / length)
    assert found == pytest.approx([0.03, 0.03], rel=0.1) and found[0] == pytest.approx(found[1], rel=0.03)


# --- rest and friction ------------------------------------------------------------------------------


@pytest.mark.parametrize("young, dt", [(1e6, 5e-3), (1e9, 5e-3)])
def test_what_lies_is_still(young, dt):
    sim = block_on_floor(young=young, dt=dt).build()
    run(sim, 0.5)
    assert sim.stats.kinetic_energy < 1e-8 * float(sim["block"].mass.sum()) * G * D


def test_static_friction_sticks_and_sliding_friction_slides():
    angle = math.degrees(math.atan(0.7))
    below, above = (block_on_floor(angle + more, 0.7, dt=4e-3).build() for more in (-1, 3))
    start = float(below["block"].x[:, 0].mean())
    run(below, 0.4)
    assert abs(float(below["block"].x[:, 0].mean()) - start) < 0.02 * D
    assert np.abs(below["block"].v).max() < 1e-3
    run(above, 0.2)
    early, t = float(above["block"].v[:, 0].mean()), above.time
    run(above, 0.2)
    tilt = math.radians(angle + 3)
    exact = G * (math.sin(tilt) - 0.7 * math.cos(tilt))
    assert (float(above["block"].v[:, 0].mean()) - early) / (above.time - t) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("mu, stays", [(0.5, True), (0.0, False)])
def test_a_block_on_a_block(mu, stays):
    """At 15 degrees: with friction 0.5 it stays, and pushes the lower one; without, it slides off."""
    scene = block_on_floor(15, 1.0, size=(10, 3, 6), dt=4e-3)
    scene.add(pl.Box(size=(4 * D, 3 * D, 4 * D), center=(0, 4.5 * D, 0)), pl.Elastic(), name="top")
    scene.friction("block", "top", mu)
    sim = scene.build()
    start = float(sim["top"].x[:, 0].mean())
    run(sim, 0.3)
    moved = float(sim["top"].x[:, 0].mean()) - start
    exact = 0.5 * G * math.sin(math.radians(15)) * sim.time**2
    assert moved == pytest.approx(0.0, abs=0.05 * D) if stays else moved == pytest.approx(exact, rel=0.1)


def test_a_ball_rolls():
    """On a rough slope a ball turns as fast as it moves."""
    tilt, r, d = math.radians(15), 0.05, 0.0125
    scene = pl.Scene(particle_radius=d / 2, gravity=(G * math.sin(tilt), -G * math.cos(tilt), 0),
                     elasticity=pl.Split(numerical_damping=0.0))  # fmt: skip
    scene.add(pl.Plane(), pl.Boundary(friction=1.0), name="slope")
    scene.add(pl.Sphere(radius=r, center=(0, r, 0)), pl.Elastic(young=1e6), name="ball")
    sim = scene.build()
    run(sim, 0.2)
    x, v = sim["ball"].x.astype(float), sim["ball"].v.astype(float)
    arm, u = x - x.mean(axis=0), v - v.mean(axis=0)
    spin = (arm[:, 0] * u[:, 1] - arm[:, 1] * u[:, 0]).sum() / (arm[:, :2] ** 2).sum()
    assert v[:, 0].mean() == pytest.approx(5 / 7 * G * math.sin(tilt) * sim.time, rel=0.2)  # bumpy
    assert -spin * r == pytest.approx(v[:, 0].mean(), rel=0.1)


@pytest.mark.parametrize("mu", [0.2, None])
def test_a_block_slides_on_sand_by_its_own_coefficient(mu):
    """A block that is pushed over a bed of sand slows down by mu g; by that of the sand, if it has none of its own."""
    d, angle = 0.03, 30.0
    scene = pl.Scene(particle_radius=d / 2)
    scene.add(pl.Box(size=(0.9, 0.6, 0.24), center=(0, 0.3, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.9, 0.12, 0.24), center=(0, 0.06, 0)), pl.Granular(friction_angle=angle), name="sand")
    scene.add(pl.Box(size=(0.24, 0.09, 0.15), center=(-0.2, 0.165, 0)), pl.Elastic(friction=mu), name="block")
    sim = scene.build()
    run(sim, 0.2)
    sim["block"].v = sim["block"].v + (1.0, 0.0, 0.0)
    run(sim, 0.02)
    fast, began = float(sim["block"].v[:, 0].mean()), sim.time
    run(sim, 0.08)
    found = (fast - float(sim["block"].v[:, 0].mean())) / (sim.time - began) / G
    assert found == pytest.approx(math.tan(math.radians(angle)) if mu is None else mu, rel=0.25)


def test_what_vibrates_on_a_floor_comes_to_rest_unless_its_damping_is_off():
    """Vibrations too slow to be seen decay faster than those that can be, in what lies and where damping is on."""
    energies = {}
    for damping in (2.0, 0.0):
        sim = block_on_floor(young=2e4, dt=4e-3, size=(4, 3, 4), elasticity=pl.Split(numerical_damping=0.0)).build()
        sim["block"].material = dataclasses.replace(sim["block"].material, damping=damping)
        run(sim, 0.8)
        energies[damping] = sim.stats.kinetic_energy / (float(sim["block"].mass.sum()) * G * D)
    assert energies[2.0] < 1e-5 < energies[0.0]


def test_damping_is_a_rate():
    """Vibrations decay as exp(-damping t), translation and rotation do not."""
    amplitudes = []
    for damping in (0.0, 10.0):
        scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=1e-3, elasticity=pl.Split(numerical_damping=0.0))
        scene.add(pl.Box(size=(8 * D, 3 * D, 3 * D)), pl.Elastic(young=1e5, damping=damping), name="bar")
        sim = scene.build()
        x = sim["bar"].x
        sim["bar"].v = np.stack([x[:, 0], 0 * x[:, 0], 0 * x[:, 0]], axis=1) + (1.0, 0.0, 0.0)
        most = 0.0
        for _ in range(150):
            sim.step()
            if sim.time > 0.1:
                most = max(most, float(np.ptp(sim["bar"].v[:, 0])))
        amplitudes.append(most)
        assert sim["bar"].v[:, 0].mean() == pytest.approx(1.0, rel=1e-5)
    assert amplitudes[1] / amplitudes[0] == pytest.approx(math.exp(-10.0 * 0.11), rel=0.15)


def test_what_rocks_on_its_feet_comes_to_rest():
    """Nearly all of a tower that rocks moves as a rigid body does. It is at rest all the same, to 1e-8 m g d; without
    what brings it to rest it has a thousand times that."""
    assert rocked(1e6, 4e-3, 0.5) < 1e-8


def test_what_stands_on_an_edge_tips():
    """Two feet in a line carry it, and its centre of mass is beside them: it falls as a rigid body does that turns
    about the line of its feet, from rest, by theta'' = g (r . e) / k^2; nothing of that is damped."""
    sim = tower(1e7, 4e-3, [(-2.5, -2.5), (-2.5, 2.5)], 0.0)
    d, x = sim.scene.spacing, sim["tower"].x.astype(float)
    height, (px, py) = float(x[:, 1].mean()), (-2.5 * d, 0.2 * d)
    r = x[:, :2] - (px, py)
    turn = G * float(r[:, 0].mean()) / float((r**2).sum(axis=1).mean())
    run(sim, 0.2)
    fallen = height - float(sim["tower"].x[:, 1].mean())
    assert fallen == pytest.approx(0.5 * turn * sim.time**2 * float(r[:, 0].mean()), rel=0.35)


def test_balls_roll_on_though_slowly():
    """A ball that rolls at two thirds of the speed that counts as calm is not braked by what brings others to rest. It
    is no sphere: steps of a hundredth of a spacing in its surface make it slower or faster by up to a half."""
    radii, d = (0.036, 0.038, 0.04, 0.042), 0.005
    scene = pl.Scene(particle_radius=d / 2, dt=4e-3)
    scene.add(pl.Plane(), pl.Boundary(friction=1.0), name="floor")
    for k, r in enumerate(radii):
        scene.add(pl.Sphere(radius=r, center=(0, r, 0.1 * k)), pl.Elastic(young=1e6), name=f"ball{k}")
    sim, speed = scene.build(), 2 / 3 * CALM * math.sqrt(G * d)
    run(sim, 0.1)
    balls = [sim[f"ball{k}"] for k in range(len(radii))]
    for r, ball in zip(radii, balls, strict=True):
        arm = ball.x - ball.x.mean(axis=0)
        ball.v = speed * np.stack([1 + arm[:, 1] / r, -arm[:, 0] / r, 0 * arm[:, 0]], axis=1)
    run(sim, 0.1)
    left = [float(ball.v[:, 0].mean()) / speed for ball in balls]
    assert min(left) > 0.4 and 0.6 < np.mean(left) < 1.2, left


def test_a_crowded_particle_of_a_surface_touches_where_others_do():
    """Where a surface is crowded, its density at rest is that of the inside. It must not keep away from a wall for
    that: particles at half a spacing from the wall are in contact, and none farther than others."""
    d = 0.02
    scene = pl.Scene(particle_radius=d / 2)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    block = scene.add(pl.Box(size=(5 * d, 3 * d, 5 * d), center=(0, 1.5 * d, 0)), pl.Elastic(young=1e6))
    sim = scene.build()
    stage, rest = sim.elasticity, sim[block].rest.astype(float)
    squeezed = rest * (0.8, 1.0, 0.8)  # as many particles on less of a surface
    _, ratio, edge = stage._rest_pose(squeezed, np.full(len(rest), d**3), None, d)
    low = squeezed[:, 1] < d
    plane = 1.0 - float(sim.world.neighbors.smoothing.plane_sum(np.array([1.0]))[0])
    middle = low & (np.abs(squeezed[:, [0, 2]]) < d).all(axis=1)
    assert ratio[middle].max() > plane + 0.1  # crowded
    np.testing.assert_allclose((ratio + edge)[low], plane, rtol=1e-6)


# --- shapes and pairs ---------------------------------------------------------------------------------


def test_bodies_of_one_shape_begin_without_strain(tmp_path, assert_same_state):
    """They share the rest shape of the first, which is theirs to a thousandth of a spacing only. In stiff ones that
    would be energy; so they take on that shape. Once they have moved they keep what they have, a restart included."""
    scene = pl.Scene(particle_radius=0.005, gravity=(0, 0, 0), dt=1e-3)
    for k, place in enumerate([(-0.04, 0, 0), (0.0413, 0.02, 0.0071)]):
        ball = pl.Sphere(radius=0.04).rotate("y", 0.002 * k).translate(place)  # off by 3e-4 of a spacing
        scene.add(ball, pl.Elastic(young=1e9), name=f"ball{k}", velocity=(1 - k, 0, 0))
    sim = scene.build()
    x = [sim[f"ball{k}"].x.astype(float) for k in range(2)]
    off = np.abs((x[0] - x[0][0]) - (x[1] - x[1][0])).max()
    assert off < 1e-7  # rounded, at 0.1 m
    assert sim.stats.elastic_energy < 1e-5 * sim.stats.kinetic_energy
    for steps in (0, 3):
        for _ in range(steps):
            sim.step()
        sim.save(tmp_path / "state.npz")
        other = pl.load(tmp_path / "state.npz")
        assert_same_state(sim, other)
        sim.step()
        other.step()
        assert_same_state(sim, other)


def test_each_pair_has_its_own_coefficient_though_they_are_of_one_material():
    """Two slabs of one material object on a slope: the pair that the scene names sticks, the other slides."""
    degrees, rubber = 20.0, pl.Elastic(young=1e6)
    tilt = math.radians(degrees)
    scene = pl.Scene(particle_radius=D / 2, gravity=(G * math.sin(tilt), -G * math.cos(tilt), 0), dt=4e-3)
    scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0, 1.0, 3.0)), pl.Fluid(), name="water")  # not all are elastic
    scene.add(pl.Plane(), pl.Boundary(friction=1.0), name="slope")
    for k, z in enumerate((-4 * D, 4 * D)):
        scene.add(pl.Box(size=(6 * D, 3 * D, 4 * D), center=(0, 1.5 * D, z)), rubber, name=f"under{k}")
        scene.add(pl.Box(size=(4 * D, 2 * D, 4 * D), center=(0, 4 * D, z)), rubber, name=f"top{k}")
    scene.friction("top1", "under1", 0.8)
    sim = scene.build()
    start = [float(sim[f"top{k}"].x[:, 0].mean()) for k in range(2)]
    run(sim, 0.12)
    moved = [float(sim[f"top{k}"].x[:, 0].mean()) - start[k] for k in range(2)]
    assert moved[0] == pytest.approx(0.5 * G * math.sin(tilt) * sim.time**2, rel=0.15) and abs(moved[1]) < 0.05 * D


# --- what users read and write ----------------------------------------------------------------------


def test_forces_of_contact_and_who_pushes():
    scene = block_on_floor(10, 0.8, size=(6, 3, 6), dt=4e-3)
    scene.add(pl.Box(size=(4 * D, 2 * D, 4 * D), center=(0, 4 * D, 0)), pl.Elastic(friction=0.8), name="top")
    sim = scene.build()
    assert not sim["block"].contact_force.any() and sim["block"].contacts == {}
    run(sim, 0.4)
    weights = {name: sim.world.gravity * float(sim[name].mass.sum()) for name in ("block", "top")}
    scale = float(np.linalg.norm(weights["block"]))
    for name, weight in weights.items():
        np.testing.assert_allclose(sim[name].contact_force.sum(axis=0), -weight, atol=2e-3 * scale)
    np.testing.assert_allclose(sim["block"].contacts["top"], weights["top"], atol=2e-3 * scale)
    np.testing.assert_allclose(sim["block"].contacts["top"], -sim["top"].contacts["block"], atol=1e-5 * scale)
    np.testing.assert_allclose(sim["block"].contacts["floor"], -sim["floor"].force, atol=1e-4 * scale)
    with pytest.raises(pl.PliantError, match="not elastic"):
        flat = pl.Scene(particle_radius=D / 2)
        flat.add(pl.Box(size=(0.1, 0.1, 0.1)), pl.Fluid(), name="water")
        _ = flat.build()["water"].contact_force


def test_coefficients_of_pairs():
    rough, smooth, plain, sand = (pl.Elastic(friction=0.9), pl.Elastic(friction=0.1), pl.Elastic(),
                                  pl.Granular(friction_angle=45))  # fmt: skip
    assert coefficient(rough, smooth) == pytest.approx(0.3)
    assert coefficient(rough, plain) == coefficient(plain, rough) == pytest.approx(0.9)
    assert coefficient(plain, plain) == 0.0
    assert coefficient(pl.Boundary(), sand) == pytest.approx(1.0)
    assert coefficient(pl.Boundary(friction=0.2), sand) == pytest.approx(0.2)
    pairs = Frictions({"a": rough, "b": smooth}, [("b", "a", 0.5)])
    assert pairs.between("a", "b") == pairs.between("b", "a") == 0.5 and pairs.between("a", "a") == pytest.approx(0.9)


def test_what_is_wrong_with_friction_is_told():
    scene = block_on_floor()
    scene.friction("block", "flor", 0.5)
    scene.friction("block", "floor", -1.0)
    scene.friction("block", "floor", "much")
    with pytest.raises(pl.SceneError) as caught:
        scene.build()
    assert "flor" in str(caught.value) and "'floor'" in str(caught.value)
    assert "got -1.0" in str(caught.value) and "got 'much'" in str(caught.value)


def test_pairs_survive_a_checkpoint(tmp_path, assert_same_state):
    scene = block_on_floor(10, 1.0)
    scene.friction("block", "floor", 0.1)
    sim = scene.build()
    run(sim, 0.1)
    sim.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    assert other.scene.settings.frictions == (("block", "floor", 0.1),)
    run(sim, 0.05)
    run(other, 0.05)
    assert_same_state(sim, other)
