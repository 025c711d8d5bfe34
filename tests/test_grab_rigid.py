"""Grabbing rigid bodies: the spring against its closed form, momentum, throwing, obstacles, pins, joints."""

import numpy as np
import pytest

import pliant as pl

SIDE = 0.2
G = 9.81
TOP = (0.0, 1.0 + SIDE / 2, 0.0)


def crate(gravity=(0, -G, 0), dt=None, floor=False, size=(SIDE, SIDE, SIDE), **material):
    """A crate in mid-air, at (0, 1, 0)."""
    scene = pl.Scene(particle_radius=0.02, gravity=gravity, dt=dt)
    if floor:
        scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    scene.add(pl.Box(size=size, center=(0, 1, 0)), pl.Rigid(**(material or {"density": 500.0})), name="crate")
    return scene


def run(sim, seconds):
    end = sim.time + seconds
    while sim.time < end - 1e-9:
        sim.step()


@pytest.mark.parametrize("mass", [1e-3, 4.0, 1e6])
def test_a_lifted_crate_follows_the_closed_form(mass):
    """y = y_end + (y_0 - y_end) (1 + w t) exp(-w t), with y_end the target less g / w^2, whatever the mass."""
    sim = crate(dt=1e-3, mass=mass).build(quiet=True)
    grip, way, worst = sim.grab("crate", TOP), 0.1, 0.0
    grip.target = np.add(TOP, (0, way, 0))
    sag = G / grip.w**2
    while sim.time < 0.4:
        sim.step()
        wt = grip.w * sim.time
        expected = way - sag - (way - sag) * (1 + wt) * np.exp(-wt)
        worst = max(worst, abs(sim["crate"].position[1] - 1 - expected))
    assert worst < 0.02 * way
    assert np.linalg.norm(grip.force) == pytest.approx(mass * G, rel=0.02)


@pytest.mark.parametrize("dt", [1e-3, 5e-3, 0.1])
def test_it_hangs_as_low_as_the_spring_says_whatever_the_step(dt):
    sim = crate(dt=dt).build(quiet=True)
    grip = sim.grab("crate", TOP)
    run(sim, 2.0)
    sag = G / grip.w**2
    assert sim["crate"].position == pytest.approx((0, 1 - sag, 0), abs=0.01 * sag)
    assert grip.force == pytest.approx([0, sim["crate"].mass * G, 0], rel=0.01, abs=0.01)


def test_the_impulse_of_the_hand_is_the_change_of_momentum():
    sim = crate(gravity=(0, 0, 0)).build(quiet=True)
    corner = np.array([SIDE / 2, 1 + SIDE / 2, SIDE / 2])
    grip = sim.grab("crate", corner)
    grip.target = corner + (0.3, 0.4, 0.1)
    given, turned = np.zeros(3), np.zeros(3)
    for _ in range(40):
        place = sim["crate"].position
        sim.step()
        given += sim.dt * grip.force
        middle = 0.5 * (place + sim["crate"].position)
        turned += sim.dt * (grip.torque + np.cross(middle, grip.force))
    assert np.linalg.norm(given) > 0.5  # N s
    assert sim["crate"].momentum == pytest.approx(given, abs=1e-5 * np.linalg.norm(given))
    assert sim["crate"].angular_momentum == pytest.approx(turned, abs=0.02 * np.linalg.norm(turned))


def test_it_swings_when_held_by_a_corner_and_comes_to_rest_below_the_hand():
    sim = crate().build(quiet=True)
    corner = np.array([SIDE / 2, 1 + SIDE / 2, SIDE / 2])
    grip = sim.grab("crate", corner)
    fastest = 0.0
    for _ in range(200):
        sim.step()
        fastest = max(fastest, float(np.linalg.norm(sim["crate"].spin)))
    assert fastest > 2.0  # rad/s
    run(sim, 6.0)
    hung = sim["crate"].position - grip.point
    assert hung == pytest.approx((0, -np.sqrt(3) * SIDE / 2, 0), abs=0.02 * SIDE)
    assert np.linalg.norm(sim["crate"].spin) < 0.05


def test_it_flies_on_when_it_is_let_go():
    sim = crate().build(quiet=True)
    grip = sim.grab("crate", (0, 1, 0))
    while sim.time < 0.3:
        grip.target = (2.0 * sim.time, 1 + sim.time, 0)
        sim.step()
    before = sim["crate"].velocity
    assert before == pytest.approx((2, 1, 0), abs=0.15)
    grip.release()
    assert sim.grips == []
    t = sim.time
    run(sim, 0.2)
    assert sim["crate"].velocity == pytest.approx(before - (0, G * (sim.time - t), 0), abs=1e-5)
    with pytest.raises(pl.PliantError, match="this grip was released"):
        grip.target = (0, 0, 0)


def test_a_wall_stops_it_and_the_hand_is_not_stronger_than_it_is():
    scene = crate()
    scene.add(pl.Box(size=(0.05, 2, 2), center=(0.4, 1, 0)), pl.Boundary(), name="wall")
    sim = scene.build(quiet=True)
    grip = sim.grab("crate", (0, 1, 0))
    grip.target = (5, 1, 0)
    for _ in range(200):
        sim.step()
        assert sim["crate"].position[0] < 0.4 - 0.025 - SIDE / 2 + 0.002
        assert np.linalg.norm(grip.force) <= grip.strongest * (1 + 1e-9)
    assert sim["crate"].position[0] > 0.4 - 0.025 - SIDE / 2 - 0.005
    assert grip.strongest == pytest.approx(10 * sim["crate"].mass * G)


def test_what_is_pulled_less_than_it_weighs_stays_on_the_floor():
    scene = crate(floor=True)
    sim = scene.build(quiet=True)
    sim["crate"].position = (0, SIDE / 2, 0)
    grip = sim.grab("crate", (0, SIDE, 0))
    grip.target = (0, SIDE + 0.5 * G / grip.w**2, 0)  # half of the weight
    for _ in range(100):
        sim.step()
        assert sim["crate"].position[1] == pytest.approx(SIDE / 2, abs=1e-4)
    assert grip.force[1] == pytest.approx(0.5 * sim["crate"].mass * G, rel=0.3)


def test_a_pinned_body_stays_and_is_led_as_walls_are():
    sim = crate().build(quiet=True)
    grip = sim.grab("crate", TOP)
    run(sim, 0.1)
    sim["crate"].fix()
    place = sim["crate"].position
    grip.target = (1, 2, 0)
    run(sim, 0.1)
    assert np.array_equal(sim["crate"].position, place) and not grip.force.any()
    grip.release()
    assert sim["crate"].fixed
    led = sim.grab("crate", place)
    led.target = place + (0.2, 0, 0)
    run(sim, 0.6)
    led.release()
    assert sim["crate"].position == pytest.approx(place + (0.2, 0, 0), abs=0.005) and sim["crate"].fixed
    sim["crate"].release()
    run(sim, 0.1)
    assert sim["crate"].velocity[1] < -0.5 * 0.1 * G


def test_a_door_swings_on_its_hinge():
    scene = crate(size=(0.4, 0.6, 0.04))
    scene.hinge("crate", None, at=(-0.2, 1, 0), axis="y", name="door")
    sim = scene.build(quiet=True)
    grip = sim.grab("crate", (0.2, 1, 0))
    grip.target = (-0.2, 1, -0.4)  # a quarter of a turn
    run(sim, 1.0)
    assert sim["door"].angle == pytest.approx(90, abs=1)
    assert sim["door"].position == pytest.approx((-0.2, 1, 0), abs=1e-3)


def test_a_chain_is_lifted_by_one_of_its_links():
    scene = pl.Scene(particle_radius=0.02)
    links = [scene.add(pl.Box(size=(0.05, 0.2, 0.05), center=(0, 1 - 0.2 * k, 0)), pl.Rigid(mass=1.0), name=f"link{k}")
             for k in range(6)]  # fmt: skip
    for k in range(5):
        scene.ball(links[k + 1], links[k], at=(0, 0.9 - 0.2 * k, 0))
    sim = scene.build(quiet=True)
    grip = sim.grab("link0", (0, 1.1, 0))
    run(sim, 2.0)
    assert grip.mass == pytest.approx(6.0)
    assert grip.force == pytest.approx((0, 6 * G, 0), abs=0.05 * 6 * G)
    assert 1.1 - grip.point[1] < 3 * G / grip.w**2  # the hand does not foresee the other links
    assert np.linalg.norm(sim["link5"].velocity) < 0.05


def test_the_hold_outlasts_a_change_of_parameters_and_is_no_part_of_the_state(tmp_path):
    sim = crate().build(quiet=True)
    grip = sim.grab("crate", TOP)
    run(sim, 0.5)
    sim.change("crate", density=1000.0)
    run(sim, 0.5)
    assert grip.force[1] == pytest.approx(SIDE**3 * 1000 * G, rel=0.02)
    sim.save(tmp_path / "held.npz")
    loaded = pl.load(tmp_path / "held.npz")
    run(loaded, 0.1)
    assert loaded["crate"].velocity[1] < -0.5 * 0.1 * G


def test_taking_and_letting_go_leaves_no_trace():
    one, other = crate().build(quiet=True), crate().build(quiet=True)
    other.grab("crate", TOP).release()
    for sim in (one, other):
        run(sim, 0.05)
    assert one["crate"].position.tobytes() == other["crate"].position.tobytes()


def test_a_point_far_away_means_the_reach_of_the_body():
    sim = crate().build(quiet=True)
    grip = sim.grab("crate", (5, 1, 0))
    assert grip.point == pytest.approx((np.sqrt(3) * SIDE / 2, 1, 0)) and grip.target == pytest.approx(grip.point)
