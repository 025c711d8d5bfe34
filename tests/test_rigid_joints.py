"""Joints: pendulums, chains, motors, limits and springs against closed forms and a reference integrator."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pliant.solvers.rigid.joints import joint, joints, places, speeds
from pliant.solvers.rigid.solver import RigidSolver
from pliant.tools.rigid_contacts import Things, tilt

G = 9.81
ROD = ("box", (0.02, 0.5, 0.02))


class Run:
    def __init__(self, things, *rows, gravity=G, e=0.0, ignored=()):
        self.things, self.bodies, self.solver = things, things.bodies(), RigidSolver()
        self.joints = joints([joint(self.bodies, *args, **named) for args, named in rows])
        self.gravity, self.how = gravity, (0.02, 0.5, e, ignored)
        self.time, self.forces = 0.0, None

    def go(self, time, dt=5e-3, look=lambda: None):
        b = self.bodies
        for _ in range(round(time / dt)):
            dv = np.zeros_like(b.center)
            dv[b.inverse_mass > 0, 1] = -dt * self.gravity
            contacts = self.things.contacts(b, *self.how)
            self.forces = self.solver.step(b, contacts, self.joints, dt, dv, np.zeros_like(dv))
            self.time += dt
            look()
        return b

    @property
    def position(self):
        return self.solver.rows.turned

    @property
    def speed(self):
        return speeds(self.joints, self.bodies)


def hung(degrees):
    """A rod that hangs by its end, and where its lower end is."""
    things, R = Things(), tilt(np.radians(degrees))
    things.add(ROD, R @ [0, -0.5, 0], 1.0, rotation=R)
    return things, R @ [0, -1.0, 0]


@pytest.mark.parametrize("degrees, ratio", [(10, 1.00191), (45, 1.03997), (90, 1.18034)])
def test_periods_of_a_compound_pendulum(degrees, ratio):
    """T / T0, T0 = 2 pi sqrt(I / (m g d)); and its energy stays."""
    things, _ = hung(degrees)
    run, angles = Run(things, (("hinge", -1, 0, (0, 0, 0)), {"axis": (0, 0, 1)})), []
    inertia = things.rows[0][5][2, 2] + 0.25
    run.go(8.0, look=lambda: angles.append(run.position[0]))
    a = np.array(angles) + np.radians(degrees)
    k = np.flatnonzero((a[:-1] > 0) & (a[1:] <= 0))
    period = np.diff(k + a[k] / (a[k] - a[k + 1])).mean() * 5e-3
    assert period == pytest.approx(ratio * 2 * np.pi * np.sqrt(inertia / (G * 0.5)), rel=1e-4)
    assert max(angles[-500:]) == pytest.approx(0.0, abs=1e-3)
    assert np.linalg.norm(places(run.joints, run.bodies).apart) < 1e-5


def double_pendulum(t1, t2, inertia):
    """Two rods of 1 m and 1 kg, by Lagrange's equations."""

    def rate(_, y):
        a, b, u, v = y
        M = [[inertia + 1.25, 0.5 * np.cos(a - b)], [0.5 * np.cos(a - b), inertia + 0.25]]
        force = [-0.5 * np.sin(a - b) * v**2 - 1.5 * G * np.sin(a), 0.5 * np.sin(a - b) * u**2 - 0.5 * G * np.sin(b)]
        return [u, v, *np.linalg.solve(M, force)]

    return solve_ivp(rate, (0, 3.01), [t1, t2, 0, 0], rtol=1e-9, atol=1e-9, dense_output=True).sol


@pytest.mark.parametrize("dt", [2e-3, 5e-3])
def test_a_double_pendulum_follows_a_reference(dt):
    """For 3 s, from 120 and 60 degrees, within 0.2 % of its length."""
    t1, t2 = np.radians(120), np.radians(60)
    things, end = hung(120)
    things.add(ROD, end + tilt(t2) @ [0, -0.5, 0], 1.0, rotation=tilt(t2))
    run = Run(things, (("hinge", -1, 0, (0, 0, 0)), {"axis": (0, 0, 1)}), (("hinge", 0, 1, end), {"axis": (0, 0, 1)}),
              ignored=[(0, 1)])  # fmt: skip
    true, worst = double_pendulum(t1, t2, things.rows[0][5][2, 2]), []

    def look():
        a, b, _, _ = true(run.time)
        tip = run.bodies.center[1] + run.bodies.rotation[1] @ [0, -0.5, 0]
        worst.append(np.abs(tip - [np.sin(a) + np.sin(b), -np.cos(a) - np.cos(b), 0]).max())

    run.go(3.0, dt, look)
    assert max(worst) < 2e-3 * 2.0


@pytest.mark.parametrize("last", [1.0, 1000.0])
def test_a_chain_does_not_stretch(last):
    """Ten links that swing from the horizontal, also with a thousandfold weight at the end."""
    things, worst = Things(), []
    for k in range(10):
        things.add(("box", (0.1, 0.02, 0.02)), (0.1 + 0.2 * k, 0, 0), last if k == 9 else 1.0)
    pairs = [(k, k + 1) for k in range(9)]
    run = Run(things, *((("ball", k - 1, k, (0.2 * k, 0, 0)), {}) for k in range(10)), ignored=pairs)
    run.things.contacts = lambda bodies, *_: Things().contacts(bodies)  # links do not touch
    run.go(1.5, look=lambda: worst.append(np.linalg.norm(places(run.joints, run.bodies).apart, axis=1).sum()))
    assert max(worst) < 1e-3 * 2.0


@pytest.mark.parametrize("kind", ["hinge", "slider"])
def test_motors(kind):
    """The greatest force until the speed is reached, then that speed; and a given force."""
    things = Things()
    things.add(("box", (0.1, 0.2, 0.1)), (0, 0, 0), 2.0)
    inert = things.rows[0][5][1, 1] if kind == "hinge" else 2.0
    run = Run(things, ((kind, -1, 0, (0, 0, 0)), {"axis": (0, 1, 0), "speed": 1.0, "most": 2 * inert}), gravity=0.0)
    run.go(0.25)
    assert run.speed[0] == pytest.approx(0.5, rel=1e-4)
    assert run.forces.drive[0] == pytest.approx(2 * inert, rel=1e-4)
    run.go(0.75)
    assert run.speed[0] == pytest.approx(1.0, rel=1e-5)
    assert run.position[0] == pytest.approx(0.75, rel=1e-4)
    assert run.forces.drive[0] == pytest.approx(0.0, abs=1e-4)
    run = Run(things, ((kind, -1, 0, (0, 0, 0)), {"axis": (0, 1, 0), "force": 2 * inert}), gravity=0.0)
    run.go(0.5)
    assert run.speed[0] == pytest.approx(1.0, rel=1e-4)
    assert run.position[0] == pytest.approx(0.25, rel=1e-3)


def test_a_motor_lifts_what_it_can():
    """At the hinge of a rod: m g l / 2 is too much for one motor and not for another."""
    for most, lifted in ((0.5 * G * 0.99, False), (0.5 * G * 1.3, True)):
        things, _ = hung(90)
        run = Run(things, (("hinge", -1, 0, (0, 0, 0)), {"axis": (0, 0, 1), "speed": 0.5, "most": most}))
        run.go(0.5)
        assert (run.position[0] > 0.0) == lifted
        assert abs(run.forces.drive[0]) <= most * (1 + 1e-5)


def test_limits_of_a_hinge_and_their_torque():
    things = Things()
    things.add(("box", (0.5, 0.05, 0.05)), (0.5, 0, 0), 1.0)
    lowest = []
    run = Run(things, (("hinge", -1, 0, (0, 0, 0)), {"axis": (0, 0, 1), "limits": (-0.5, 0.7)}))
    run.go(2.0, look=lambda: lowest.append(run.position[0]))
    assert min(lowest) > -0.501
    assert run.position[0] == pytest.approx(-0.5, abs=1e-5)
    assert run.forces.joint_torque[0] == pytest.approx([0, 0, 0.5 * G * np.cos(0.5)], abs=1e-3)
    assert run.forces.joint_force[0] == pytest.approx([0, G, 0], abs=1e-3)
    assert run.forces.torque[0] == pytest.approx([0, 0, 0], abs=1e-3)


def test_limits_of_a_slider():
    things = Things()
    things.add(("ball", 0.1), (0, 0, 0), 1.0)
    run = Run(things, (("slider", -1, 0, (0, 0, 0)), {"axis": (0, 1, 0), "limits": (-0.3, 0.3)}))
    run.go(1.0)
    assert run.position[0] == pytest.approx(-0.3, abs=1e-5)
    assert run.forces.force[0] == pytest.approx([0, G, 0], abs=1e-3)


def test_turns_are_counted():
    """Two and a half turns each way, and no limit stops what it does not mean."""
    for sense in (1, -1):
        things = Things()
        things.add(("ball", 0.1), (0, 0, 0), 1.0, spin=(0, sense * 5 * np.pi, 0))
        run = Run(things, (("hinge", -1, 0, (0, 0, 0)), {"axis": (0, 1, 0), "limits": (-17, 17)}), gravity=0.0)
        run.go(1.0)
        assert run.position[0] == pytest.approx(sense * 5 * np.pi, abs=1e-3)


def test_a_spring_keeps_its_period_and_amplitude():
    """T = 2 pi sqrt(m / k), 10 s at 5 ms; stiff ones are stable."""
    things, ways = Things(), []
    things.add(("ball", 0.1), (0, -1, 0), 2.0)
    at = ((0, 0, 0), (0, -1, 0))
    run = Run(things, (("spring", -1, 0, at), {"stiffness": 200.0, "length": 0.8}))
    rest = -0.8 - 2 * G / 200
    run.go(10.0, look=lambda: ways.append(run.bodies.center[0, 1] - rest))
    d = np.array(ways)
    k = np.flatnonzero((d[:-1] < 0) & (d[1:] >= 0))
    assert np.diff(k - d[k] / (d[k + 1] - d[k])).mean() * 5e-3 == pytest.approx(2 * np.pi * np.sqrt(2 / 200), rel=1e-4)
    assert d[-200:].max() == pytest.approx(abs(-1 - rest), rel=1e-3)
    run = Run(things, (("spring", -1, 0, at), {"stiffness": 1e9, "damping": 1e4, "length": 1.0}))
    assert run.go(1.0).center[0, 1] == pytest.approx(-1.0, abs=1e-3)


def test_a_damped_spring_settles_as_it_should():
    """x = x0 exp(-c t / 2m) cos(...): the logarithmic decrement."""
    things, ways = Things(), []
    things.add(("ball", 0.1), (0, -1.1, 0), 1.0)
    how = {"stiffness": 100.0, "damping": 1.0, "length": 1.0}
    run = Run(things, (("spring", -1, 0, ((0, 0, 0), (0, -1.1, 0))), how), gravity=0.0)
    run.go(2.0, 2e-3, look=lambda: ways.append(-1 - run.bodies.center[0, 1]))
    t, w = 2e-3 * np.arange(1, 1001), np.sqrt(100 - 0.25)
    true = 0.1 * np.exp(-0.5 * t) * (np.cos(w * t) + 0.5 / w * np.sin(w * t))
    assert np.abs(ways - true).max() < 1e-3 * 0.1


def test_a_distance_is_kept():
    """A ball on a thread: T0 of a mathematical pendulum at 10 degrees."""
    things, ways = Things(), []
    start = tilt(np.radians(10)) @ [0, -1, 0]
    things.add(("ball", 0.01), start, 1.0)
    run = Run(things, (("distance", -1, 0, ((0, 0, 0), start)), {}))
    run.go(6.0, look=lambda: ways.append(run.bodies.center[0, 0]))
    x = np.array(ways)
    k = np.flatnonzero((x[:-1] > 0) & (x[1:] <= 0))
    period = np.diff(k + x[k] / (x[k] - x[k + 1])).mean() * 5e-3
    assert period == pytest.approx(1.00191 * 2 * np.pi / np.sqrt(G), rel=1e-4)
    assert np.linalg.norm(run.bodies.center[0]) == pytest.approx(1.0, abs=1e-5)


def test_a_fast_top_precesses():
    """At m g l / (I3 omega3)."""
    things, angles, R, w = Things(), [], tilt(np.radians(90)), 150.0
    axis = R @ [0, 1, 0]
    things.add(("ball", 0.01), 0.1 * axis, 1.0, rotation=R, inertia=np.diag([0.0011, 0.002, 0.0011]))
    rate = G * 0.1 / (0.002 * w)
    run = Run(things, (("ball", -1, 0, (0, 0, 0)), {}))
    b = run.bodies
    b.spin[0] = w * axis + [0, rate, 0]
    b.velocity[0] = np.cross(b.spin[0], 0.1 * axis)
    run.go(1.0, 2e-3, look=lambda: angles.append(np.arctan2(-b.center[0, 2], b.center[0, 0])))
    turned = np.unwrap(angles)
    assert (turned[-1] - turned[0]) / (499 * 2e-3) == pytest.approx(rate, rel=2e-3)
    assert abs(b.center[0, 1]) < 1e-3


def test_what_is_joined_rigidly_hangs_as_one():
    """Three boxes on a wall: the forces and torques of each joint; and a loop, whose equations are redundant."""
    things = Things()
    for k in range(3):
        things.add(("box", (0.1, 0.1, 0.1)), (0.1 + 0.2 * k, 0, 0), 1.0 + k)
    rows = [(("fixed", k - 1, k, (0.2 * k, 0, 0)), {}) for k in range(3)]
    run = Run(things, *rows, ignored=[(0, 1), (1, 2)])
    run.go(0.5)
    assert run.forces.joint_force[:, 1] == pytest.approx([6 * G, 5 * G, 3 * G], rel=1e-4)
    torque = G * (1 * 0.1 + 2 * 0.3 + 3 * 0.5)
    assert run.forces.joint_torque[0] == pytest.approx([0, 0, torque], rel=1e-4, abs=1e-3)
    assert run.bodies.center[:, 1] == pytest.approx([0, 0, 0], abs=1e-6)
    run = Run(things, *rows, (("fixed", -1, 2, (0.6, 0, 0)), {}), ignored=[(0, 1), (1, 2)])
    run.go(0.5)
    assert run.bodies.center[:, 1] == pytest.approx([0, 0, 0], abs=1e-5)
    assert run.forces.joint_force[[0, 3], 1].sum() == pytest.approx(6 * G, rel=1e-3)


def test_joints_between_free_bodies_keep_their_momenta():
    rng, things = np.random.default_rng(1), Things()
    for k in range(4):
        v, w = rng.normal(size=(2, 3))
        things.add(("box", (0.1, 0.03, 0.05)), (0.2 * k, 0, 0), 1.0 + k, velocity=v, spin=w)
    things.contacts = lambda bodies, *_: Things().contacts(bodies)
    motor = {"axis": (0, 1, 0), "speed": 2.0, "most": 0.1}
    run = Run(things, (("ball", 0, 1, (0.1, 0, 0)), {}), (("hinge", 1, 2, (0.3, 0, 0)), motor),
              (("fixed", 2, 3, (0.5, 0, 0)), {}), gravity=0.0)  # fmt: skip

    def momenta():
        b = run.bodies
        m, I = 1 / b.inverse_mass, b.rotation @ b.inertia @ np.swapaxes(b.rotation, 1, 2)
        turning = np.einsum("nij,nj->i", I, b.spin) + (m[:, None] * np.cross(b.center, b.velocity)).sum(axis=0)
        return np.concatenate(((m[:, None] * b.velocity).sum(axis=0), turning))

    before = momenta()
    run.go(1.0)
    assert momenta() == pytest.approx(before, abs=2e-5 * 10)


def test_contacts_and_joints_together():
    """A rod on a hinge lies on a ball that stands on the floor: half of its weight each."""
    things = Things()
    things.add(("plane", (0, 1, 0)), (0, 0, 0))
    things.add(("box", (0.1, 0.1, 0.1)), (0.9, 0.1, 0), 2.0)
    things.add(("box", (0.5, 0.05, 0.05)), (0.5, 0.25, 0), 1.0)
    run = Run(things, (("hinge", -1, 2, (0, 0.25, 0)), {"axis": (0, 0, 1)}))
    run.go(1.0)
    assert run.forces.joint_force[0, 1] + run.forces.force[0, 1] * -1 == pytest.approx(3 * G, rel=1e-3)
    assert run.bodies.center[2, 1] == pytest.approx(0.25, abs=1e-4)
    assert np.abs(run.bodies.spin).max() < 1e-3


def test_a_restart_with_joints_is_exact():
    runs = []
    for restarted in (False, True):
        things, end = hung(100)
        things.add(ROD, end + [0, -0.5, 0], 1.0)
        run = Run(things, (("hinge", -1, 0, (0, 0, 0)), {"axis": (0, 0, 1), "limits": (-1.5, 0.5)}),
                  (("ball", 0, 1, end), {}), ignored=[(0, 1)])  # fmt: skip
        run.go(0.5)
        if restarted:
            saved, run.solver = run.solver.save(), RigidSolver()
            run.solver.restore(saved)
        runs.append(run.go(0.5).rotation.tobytes())
    assert runs[0] == runs[1]
