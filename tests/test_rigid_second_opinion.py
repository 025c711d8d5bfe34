"""The same rigid scenes in MuJoCo and in Pliant agree, in what does not depend on how soft MuJoCo's contacts are."""

import numpy as np
import pytest

import pliant as pl

mujoco = pytest.importorskip("mujoco", reason="the second opinion is MuJoCo's: pip install pliant[robots]")

G = 9.81
STEP = 2e-4  # of MuJoCo [s]
# Contacts of MuJoCo as stiff as its step lets them be, with cones of friction; z is up there, y here.
HEAD = f"""<mujoco><option timestep="{STEP}" integrator="implicitfast" cone="elliptic" impratio="50"/>
<default><geom solref="0.001 1" condim="{{condim}}" friction="{{mu}} 0 0"/></default><worldbody>
<geom type="plane" size="1 1 1"/>"""


def theirs(bodies, seconds, condim=3, mu=0.5, gravity=(0, 0, -G), **start):
    """MuJoCo's data after so many seconds."""
    model = mujoco.MjModel.from_xml_string(HEAD.format(condim=condim, mu=mu) + bodies + "</worldbody></mujoco>")
    model.opt.gravity = gravity
    data = mujoco.MjData(model)
    for name, value in start.items():
        getattr(data, name)[:] = value
    for _ in range(round(seconds / STEP)):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return data


def ours(gravity=(0, -G, 0), mu=0.5, floor=True):
    scene = pl.Scene(particle_radius=0.02, gravity=gravity)
    if floor:
        scene.add(pl.Plane(), pl.Boundary(friction=mu), name="floor")
    return scene


def turned(gravity):
    """A vector of MuJoCo's in the axes here."""
    return gravity[0], gravity[2], -gravity[1]


@pytest.mark.parametrize("degrees, mu", [(30, 0.3), (20, 0.3), (10, 0.3)])
def test_a_box_on_an_incline(degrees, mu):
    a = np.radians(degrees)
    gravity = (G * np.sin(a), 0, -G * np.cos(a))  # the plane is level, and gravity tilted
    box = '<body name="box" pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1" mass="1"/></body>'
    data = theirs(box, 0.6, mu=mu, gravity=gravity)
    scene = ours(turned(gravity), mu)
    body = scene.add(pl.Box(size=(0.4, 0.2, 0.4), center=(0, 0.1, 0)), pl.Rigid(mass=1, friction=mu))
    sim = scene.build(quiet=True)
    sim.run(0.6)
    fast = max(G * (np.sin(a) - mu * np.cos(a)), 0) * 0.6
    assert sim[body].velocity[0] == pytest.approx(data.qvel[0], rel=0.02, abs=0.01)
    assert sim[body].velocity[0] == pytest.approx(fast, rel=0.01, abs=2e-3)


@pytest.mark.parametrize("degrees, mu", [(20, 0.5), (50, 0.1)])
def test_a_ball_rolls_or_slips_down_an_incline(degrees, mu):
    a = np.radians(degrees)
    gravity = (G * np.sin(a), 0, -G * np.cos(a))
    ball = '<body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>'
    data = theirs(ball, 0.5, mu=mu, gravity=gravity)
    scene = ours(turned(gravity), mu)
    body = scene.add(pl.Sphere(radius=0.1, center=(0, 0.1, 0)), pl.Rigid(mass=1, friction=mu))
    sim = scene.build(quiet=True)
    sim.run(0.5)
    assert sim[body].velocity[0] == pytest.approx(data.qvel[0], rel=0.02)
    assert sim[body].spin[2] == pytest.approx(-data.qvel[4], rel=0.02)


def test_a_stack_of_boxes_carries_its_weights():
    masses = (1.0, 2.0, 0.5, 1.0)
    boxes = "".join(f'<body name="b{k}" pos="0 0 {0.1 + 0.2 * k}"><freejoint/><geom type="box" size="0.1 0.1 0.1" '
                    f'mass="{m}"/></body>' for k, m in enumerate(masses))  # fmt: skip
    data = theirs(boxes, 1.0)
    supports = [0.0] * len(masses)  # of each box, by what lies below it
    for k in range(data.ncon):
        wrench = np.zeros(6)
        mujoco.mj_contactForce(data.model, data, k, wrench)
        upper = max(data.contact[k].geom1, data.contact[k].geom2) - 1
        supports[upper] += wrench[0]
    scene = ours()
    for k, m in enumerate(masses):
        scene.add(pl.Box(size=(0.2,) * 3, center=(0, 0.1 + 0.2 * k, 0)), pl.Rigid(mass=m), name=f"b{k}")
    sim = scene.build(quiet=True)
    sim.run(1.0)
    for k in range(len(masses)):
        mine = sim[f"b{k}"].contacts["floor" if k == 0 else f"b{k - 1}"][1]
        assert mine == pytest.approx(supports[k], rel=0.02) and mine == pytest.approx(G * sum(masses[k:]), rel=0.01)


@pytest.mark.parametrize("angle", [0.1, 1.5, 3.0])
def test_a_pendulum(angle):
    bob = """<body name="bob" pos="0 0 2"><joint type="hinge" axis="0 1 0"/>
    <geom type="box" size="0.05 0.05 0.2" pos="0 0 -0.3" mass="1"/></body>"""
    data = theirs(bob, 1.5, qpos=[angle])
    scene = ours(floor=False)
    away = np.array([-np.sin(angle), -np.cos(angle), 0])
    box = pl.Box(size=(0.1, 0.4, 0.1)).rotate("z", -np.degrees(angle)).translate(tuple(0.3 * away + [0, 2, 0]))
    body = scene.add(box, pl.Rigid(mass=1), name="bob")
    hinge = scene.hinge(body, None, at=(0, 2, 0), axis="z")
    sim = scene.build(quiet=True)
    sim.run(1.5)
    assert np.radians(sim[hinge].angle) == pytest.approx(angle - data.qpos[0], abs=0.02 * angle)
    assert sim[hinge].speed == pytest.approx(-data.qvel[0], abs=0.02 * max(abs(data.qvel[0]), 3 * angle))


def test_a_double_pendulum():
    """Before its motion is chaotic."""
    arm = '<geom type="box" size="0.03 0.03 0.2" pos="0 0 -0.2" mass="1"/>'
    both = f"""<body name="a" pos="0 0 2"><joint type="hinge" axis="0 1 0"/>{arm}
    <body name="b" pos="0 0 -0.4"><joint type="hinge" axis="0 1 0"/>{arm}</body></body>"""
    data = theirs(both, 1.0, qpos=[1.2, 0.6])
    scene, at, turn, names = ours(floor=False), np.array([0, 2.0, 0]), 0.0, []
    for k, angle in enumerate((1.2, 0.6)):
        turn += angle
        way = np.array([-np.sin(turn), -np.cos(turn), 0])
        box = pl.Box(size=(0.06, 0.4, 0.06)).rotate("z", -np.degrees(turn)).translate(tuple(at + 0.2 * way))
        names.append(scene.add(box, pl.Rigid(mass=1), name=f"b{k}"))
        scene.hinge(names[k], names[k - 1] if k else None, at=tuple(at), axis="z")
        at = at + 0.4 * way
    sim = scene.build(quiet=True)
    sim.run(1.0)
    for k, body in enumerate(names):
        place = data.geom_xpos[k + 1]
        assert sim[body].position[:2] == pytest.approx([place[0], place[2]], abs=0.02)


def test_a_box_thrown_spins_freely_and_flips():
    spin = np.array([0.3, 8.0, 0.2])  # mostly about the axis of the middle inertia
    box = '<body name="box" pos="0 0 5"><freejoint/><geom type="box" size="0.05 0.1 0.2" mass="1"/></body>'
    data = theirs(box, 1.5, gravity=(0, 0, 0), qvel=[1, 0, 0, *spin])
    scene = ours((0, 0, 0), floor=False)
    body = scene.add(pl.Box(size=(0.1, 0.4, 0.2), center=(0, 5, 0)), pl.Rigid(mass=1), velocity=(1, 0, 0),
                     spin=turned(spin))  # fmt: skip
    sim = scene.build(quiet=True)
    sim.run(1.5)
    w = data.xmat[1].reshape(3, 3) @ data.qvel[3:]
    assert sim[body].position == pytest.approx([1.5, 5, 0], abs=1e-3)
    assert sim[body].spin == pytest.approx(turned(w), abs=0.03 * np.linalg.norm(spin))
    one = np.array([turned(axis) for axis in data.xmat[1].reshape(3, 3).T])  # the axes of the box, here
    assert np.abs(one @ sim[body].rotation @ np.array([turned(a) for a in np.eye(3)]).T - np.eye(3)).max() < 0.05


def test_balls_collide_off_centre_without_friction():
    """The push is along the line of centres in both, however much of the speed MuJoCo's soft contact gives back."""
    balls = """<body name="a" pos="0 0 5"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
    <body name="b" pos="0.4 0 5.1"><freejoint/><geom type="sphere" size="0.1" mass="3"/></body>"""
    data = theirs(balls, 0.5, condim=1, gravity=(0, 0, 0), qvel=[1] + [0] * 11)
    scene = ours((0, 0, 0), floor=False)
    a = scene.add(pl.Sphere(radius=0.1, center=(0, 5, 0)), pl.Rigid(mass=1, friction=0.0), velocity=(1, 0, 0))
    b = scene.add(pl.Sphere(radius=0.1, center=(0.4, 5.1, 0)), pl.Rigid(mass=3, friction=0.0))
    sim = scene.build(quiet=True)
    sim.run(0.5)
    pushed = np.array(turned(data.qvel[6:9]))
    line = sim[b].velocity / np.linalg.norm(sim[b].velocity)
    assert line == pytest.approx(pushed / np.linalg.norm(pushed), abs=0.02)
    assert line == pytest.approx([np.sqrt(0.75), 0.5, 0], abs=0.01)
    assert sim[a].velocity + 3 * sim[b].velocity == pytest.approx([1, 0, 0], abs=1e-5)
