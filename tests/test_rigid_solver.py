"""The rigid solver: friction, piles, impacts, and what must stay as it is."""

import copy

import numpy as np
import pytest

from pliant.core import backend
from pliant.solvers.rigid.solver import RigidSolver
from pliant.tools.rigid_contacts import Things, tilt

G = 9.81
FLOOR = ("plane", (0, 1, 0))


class Run:
    """Things in motion, with the force of contacts at the end."""

    def __init__(self, things, gravity=(0, -G, 0), mu=0.5, e=0.0, margin=0.02):
        self.things, self.bodies, self.solver = things, things.bodies(), RigidSolver()
        self.gravity, self.how = np.array(gravity, float), (margin, mu, e)
        self.forces = self.contacts = None

    def step(self, dt):
        b = self.bodies
        dv = np.where((b.inverse_mass > 0)[:, None], dt * self.gravity, 0.0)
        self.contacts = self.things.contacts(b, *self.how)
        self.forces = self.solver.step(b, self.contacts, None, dt, dv, np.zeros_like(dv))

    def go(self, time, dt=5e-3, look=lambda: None):
        for _ in range(round(time / dt)):
            self.step(dt)
            look()
        return self.bodies

    def energy(self):
        b, free = self.bodies, self.bodies.inverse_mass > 0
        m, I = 1 / b.inverse_mass[free], (b.rotation @ b.inertia @ np.swapaxes(b.rotation, 1, 2))[free]
        moving = 0.5 * (m * np.square(b.velocity[free]).sum(axis=1)).sum()
        turning = 0.5 * np.einsum("ni,nij,nj->", b.spin[free], I, b.spin[free])
        return moving + turning - (m * (b.center[free] @ self.gravity)).sum()

    def momenta(self):
        b = self.bodies
        m, I = 1 / b.inverse_mass, b.rotation @ b.inertia @ np.swapaxes(b.rotation, 1, 2)
        arm = b.center - b.center[0].round()
        turning = np.einsum("nij,nj->i", I, b.spin) + (m[:, None] * np.cross(arm, b.velocity)).sum(axis=0)
        return (m[:, None] * b.velocity).sum(axis=0), turning


def on_incline(shape, height, degrees, **how):
    things, R = Things(), tilt(np.radians(degrees))
    things.add(FLOOR, (0, 0, 0), rotation=R)
    things.add(shape, R @ [0, height, 0], 1.0, rotation=R)
    return Run(things, **how), -R[:, 0]


def pile(n, size=0.1):
    things = Things()
    things.add(FLOOR, (0, 0, 0))
    for k in range(n):
        things.add(("box", (size, size, size)), (0, size * (1 + 2 * k), 0), 4.0)
    return things


@pytest.mark.parametrize("dt", [5e-3, 1e-3, 2e-4])
def test_a_box_slides_down_an_incline(dt):
    """a = g (sin - mu cos)."""
    run, down = on_incline(("box", (0.1, 0.05, 0.1)), 0.05, 30, mu=0.3)
    run.go(0.3, dt)
    a = G * (np.sin(np.radians(30)) - 0.3 * np.cos(np.radians(30)))
    assert run.bodies.velocity[1] @ down == pytest.approx(0.3 * a, rel=2e-3)
    assert np.linalg.norm(run.bodies.spin[1]) < 1e-3


@pytest.mark.parametrize("degrees", [10, 26])
def test_a_box_sticks_below_the_angle_of_friction(degrees):
    """tan 26.6 = 0.5: no creep in 10 s."""
    run, down = on_incline(("box", (0.1, 0.05, 0.1)), 0.05, degrees)
    run.go(0.1)
    before = run.bodies.center[1].copy()
    run.go(9.9)
    assert np.linalg.norm(run.bodies.center[1] - before) < 1e-6
    assert run.forces.force[1] == pytest.approx([0, G, 0], abs=1e-4)


@pytest.mark.parametrize("degrees", [10, 30])
def test_a_ball_rolls_down_an_incline(degrees):
    """a = 5/7 g sin."""
    run, down = on_incline(("ball", 0.1), 0.1, degrees)
    run.go(1.0)
    assert run.bodies.velocity[1] @ down == pytest.approx(5 / 7 * G * np.sin(np.radians(degrees)), rel=1e-3)
    assert np.linalg.norm(run.bodies.spin[1]) * 0.1 == pytest.approx(run.bodies.velocity[1] @ down, rel=1e-3)


def test_a_sliding_ball_begins_to_roll():
    """At 5/7 of its speed, whatever the friction is."""
    things = Things()
    things.add(FLOOR, (0, 0, 0))
    things.add(("ball", 0.1), (0, 0.1, 0), 1.0, velocity=(2, 0, 0))
    run = Run(things, mu=0.2)
    run.go(0.1)
    assert run.bodies.velocity[1, 0] == pytest.approx(2 - 0.2 * G * 0.1, rel=2e-3)
    run.go(0.9)
    assert run.bodies.velocity[1, 0] == pytest.approx(10 / 7, rel=1e-3)


def test_ten_boxes_stand_and_carry_their_weights():
    run = Run(pile(10))
    start = run.bodies.center.copy()
    run.go(1.0)
    c, force = run.contacts, run.forces.contact
    for k in range(10):
        assert force[(c.a == k) & (c.b == k + 1)].sum(axis=0)[1] == pytest.approx(4 * G * (10 - k), rel=1e-3)
    assert np.abs(run.bodies.center - start).max() < 1e-3 * 0.2
    assert np.abs(run.bodies.velocity).max() < 1e-2
    assert run.forces.force[1:] == pytest.approx(np.tile([0, 4 * G, 0], (10, 1)), abs=0.1)


def test_piles_stand_while_steps_vary():
    run, rng = Run(pile(4)), np.random.default_rng(2)
    start = run.bodies.center.copy()
    for _ in range(250):
        run.step(10 ** rng.uniform(-5, np.log10(5e-3)))
    assert np.abs(run.bodies.center - start).max() < 1e-4
    assert run.forces.contact[run.contacts.a == 0].sum(axis=0)[1] == pytest.approx(16 * G, rel=0.02)


def test_a_pile_falls_where_friction_does_not_hold_it():
    """A box that stands over the edge of another by more than a half tips over."""
    things = Things()
    things.add(FLOOR, (0, 0, 0))
    things.add(("box", (0.1, 0.1, 0.1)), (0, 0.1, 0), 50.0)
    things.add(("box", (0.1, 0.1, 0.1)), (0.12, 0.3, 0), 1.0)
    run = Run(things, mu=0.8)
    run.go(0.3)
    assert run.bodies.spin[2, 2] < -1.0
    assert abs(run.bodies.spin[1]).max() < 0.1


@pytest.mark.parametrize("e", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("shape", [("ball", 0.1), ("box", (0.1, 0.1, 0.1))])
def test_restitution(shape, e):
    """A fall of 0.5 m: it comes up to e^2 of that, by h < v h of a substep."""
    things, heights = Things(), []
    things.add(FLOOR, (0, 0, 0))
    things.add(shape, (0, 0.6, 0), 1.0)
    run = Run(things, e=e)
    run.go(0.9, 2e-3, lambda: heights.append(run.bodies.center[1, 1] - 0.1))
    touched = int(np.argmin(np.array(heights) > 4e-3))
    assert max(heights[touched + 3 :]) == pytest.approx(0.5 * e**2, abs=4e-3)
    assert np.abs(run.bodies.spin[1]).max() < 1e-3


@pytest.mark.parametrize("balls", [1, 2, 3])
def test_newtons_cradle(balls):
    """As many leave as came, at their speed."""
    things = Things()
    for k in range(5):
        start = 0.1 * k - (0.033 if k < balls else 0)
        things.add(("ball", 0.05), (start, 0, 0), 1.0, velocity=(1.0 if k < balls else 0, 0, 0))
    run = Run(things, gravity=(0, 0, 0), e=1.0)
    run.go(0.2)
    assert run.bodies.velocity[:, 0] == pytest.approx([0.0] * (5 - balls) + [1.0] * balls, abs=1e-5)


def test_a_pair_collides_as_newton_says():
    """v2 = (1 + e) v / 2 for equal masses; and for others."""
    for mass in (1.0, 1e-3, 1e3):
        things = Things()
        things.add(("ball", 0.05), (-0.11, 0, 0), 1.0, velocity=(1, 0, 0))
        things.add(("ball", 0.05), (0, 0, 0), mass)
        run = Run(things, gravity=(0, 0, 0), e=0.6)
        run.go(0.05)
        assert run.bodies.velocity[1, 0] == pytest.approx(1.6 / (1 + mass), rel=1e-5)


@pytest.mark.parametrize("e", [0.0, 0.6])
def test_free_bodies_keep_their_momenta_and_gain_no_energy(e):
    """Spinning balls of different masses and sizes that collide with friction, far from the origin."""
    rng, things, hits, energies = np.random.default_rng(4), Things(), [], []
    for k in range(8):
        place = 0.4 * (np.array([k % 2, k // 2 % 2, k // 4]) - 0.5) + 0.03 * rng.normal(size=3)
        size, spin = 0.08 + 0.01 * k, 5 * rng.normal(size=3)
        things.add(("ball", size), place + [1e5, 0, 0], 1.0 + k, velocity=-6 * place, spin=spin)
    run = Run(things, gravity=(0, 0, 0), e=e, mu=0.4)
    P, L = run.momenta()

    def look():
        hits.append(np.abs(run.forces.contact).sum() > 0)
        energies.append(run.energy())

    run.go(0.5, look=look)
    after = run.momenta()
    assert sum(hits) > 5
    assert after[0] == pytest.approx(P, abs=1e-5 * 40)  # of a sum of the sizes of all momenta of 40 N s
    assert after[1] == pytest.approx(L, abs=1e-4)
    assert np.diff(energies).max() < 1e-4 * energies[0]
    assert energies[-1] < energies[0]


def test_a_heavy_box_on_a_light_one_and_the_reverse():
    for masses in ((1.0, 1e6), (1e6, 1.0)):
        things, fastest = Things(), []
        things.add(FLOOR, (0, 0, 0))
        for k, mass in enumerate(masses):
            things.add(("box", (0.1, 0.1, 0.1)), (0, 0.1 + 0.2 * k, 0), mass)
        run = Run(things)
        run.go(0.5, look=lambda run=run, fastest=fastest: fastest.append(np.abs(run.bodies.velocity).max()))
        assert max(fastest) < 2.5  # of free fall through the light one: 2 m/s
        assert run.bodies.center[2, 1] > 0.09


def test_what_overlaps_at_the_start_is_pushed_apart_gently():
    things, fastest = Things(), []
    things.add(FLOOR, (0, 0, 0))
    things.add(("ball", 0.1), (0, 0.05, 0), 1.0)
    things.add(("ball", 0.1), (0.05, 0.15, 0), 1.0)
    run = Run(things)
    run.go(0.2, look=lambda: fastest.append(np.abs(run.bodies.velocity).max()))
    b = run.bodies
    assert np.linalg.norm(b.center[2] - b.center[1]) > 0.199 and b.center[1, 1] > 0.099
    assert max(fastest) < 1.5


def test_prescribed_bodies_move_as_told_and_carry_others():
    """A belt takes a box along by friction, and feels no force."""
    things = Things()
    things.add(FLOOR, (0, 0, 0), velocity=(0.5, 0, 0))
    things.add(("box", (0.1, 0.1, 0.1)), (0, 0.1, 0), 1.0)
    run = Run(things, mu=0.3)
    run.go(0.1)
    assert run.bodies.velocity[1, 0] == pytest.approx(0.3 * G * 0.1, rel=1e-2)
    run.go(0.4)
    assert run.bodies.velocity[1, 0] == pytest.approx(0.5, abs=1e-4)
    assert run.bodies.center[0, 0] == pytest.approx(0.25, rel=1e-12)


def test_a_restart_is_exact():
    one = Run(pile(3), mu=0.3)
    one.bodies.spin[2] = (0.3, 0.5, 0.1)
    one.go(0.1)
    other = Run(pile(3), mu=0.3)
    other.bodies = copy.deepcopy(one.bodies)
    other.solver.restore({name: values.copy() for name, values in one.solver.save().items()})
    for run in (one, other):
        run.go(0.1)
    for name in ("center", "rotation", "velocity", "spin"):
        assert getattr(one.bodies, name).tobytes() == getattr(other.bodies, name).tobytes()


def test_results_do_not_depend_on_threads():
    results = []
    for elements in (0, 10**6):
        run = Run(pile(3), mu=0.3)
        run.bodies.spin[2] = (0.3, 0.5, 0.1)
        with backend.threads_for(elements):
            results.append(run.go(0.1).center.tobytes())
    assert results[0] == results[1]


def test_sudden_forces_act_at_the_start_of_a_step():
    """An oscillator by a force from outside neither gains nor loses amplitude, and gravity alone is exact."""
    things = Things()
    things.add(("ball", 0.1), (0.1, 0, 0), 1.0)
    b, solver, dt, w = things.bodies(), RigidSolver(), 5e-3, 20.0
    none, zero, ways = things.contacts(b), np.zeros((1, 3)), []
    for _ in range(4000):
        solver.step(b, none, None, dt, -(w**2) * dt * b.center, zero, steady=np.zeros((len(zero), 6)))
        ways.append(b.center[0, 0])
    assert max(ways[-200:]) == pytest.approx(0.1, rel=1e-2)
    run = Run(things)
    run.go(1.0)
    assert run.bodies.center[0, 1] == pytest.approx(-0.5 * G, rel=1e-12)
