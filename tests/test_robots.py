"""Robots: MuJoCo moves the links, and everything in the scene acts on them."""

import sys

import numpy as np
import pytest

import pliant as pl
from pliant.solvers.rigid.articulation import Articulation

pytest.importorskip("mujoco", reason="robots are moved by MuJoCo: pip install pliant[robots]")

G = 9.81
# Gravity of the scene takes the place of that of the model, and y is up: the model's (x, y, z) is (x, z, -y) here.
FREE = """<mujoco><option timestep="0.0025" integrator="implicitfast"/><worldbody>
<body name="b" pos="0 0 {y}"><freejoint/>
<geom type="box" size="{h} {h} {h}" density="{density}"/></body></worldbody></mujoco>"""
LIFT = """<mujoco><option integrator="implicitfast"/><worldbody><body name="deck" pos="0 0 0.5">
<joint name="lift" type="slide" axis="0 0 1"/><geom type="box" size="0.3 0.3 0.02" mass="{mass}"/></body></worldbody>
<actuator><position name="servo" joint="lift" kp="20000" kv="300"/></actuator></mujoco>"""
ARM = """<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>
<geom name="foot" type="box" size="0.05 0.05 0.02" pos="0 0 0.45"/>
<body name="upper" pos="0 0 0.4"><joint name="shoulder" type="hinge" axis="0 1 0" damping="0.02"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" density="800"/>
<body name="hand" pos="0 0 -0.2"><joint name="elbow" type="hinge" axis="0 1 0" damping="0.02"/>
<geom name="palm" type="box" size="0.02 0.08 0.08" pos="0 0 -0.08" density="{density}"/>
<geom name="tip" type="sphere" size="0.03" pos="0 0 -0.18" density="{density}"/></body></body></worldbody>
<actuator><position name="s" joint="shoulder" kp="60" kv="3"/>
<position name="e" joint="elbow" kp="30" kv="1"/></actuator>
<sensor><jointpos name="bend" joint="elbow"/></sensor></mujoco>"""


def swing(t):
    return [0.6 * np.sin(4 * t), 0.3 * np.sin(4 * t)]


def alone(model, **more):
    """A robot over a floor."""
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Plane(), pl.Boundary(friction=0.6), name="floor")
    return scene, scene.add(pl.Robot(model, **more), name="arm")


def stirring(density=500.0, control=swing):
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Box(size=(0.9, 0.8, 0.36), center=(0, 0.4, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.9, 0.24, 0.36), center=(0, 0.12, 0)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.12,) * 3, center=(0.3, 0.3, 0)), pl.Rigid(density=400), name="crate")
    arm = scene.add(pl.Robot(ARM.format(density=density), position=(-0.1, 0.1, 0), control=control), name="arm")
    return scene, arm


# --- motion -----------------------------------------------------------------------------------------


def test_links_move_as_mujoco_moves_them_where_nothing_touches():
    import mujoco

    scene, arm = alone(ARM.format(density=500), position=(0.3, 1.0, 0.2), rotation=((0, 1, 0), 90), control=swing)
    sim = scene.build(quiet=True)
    model = mujoco.MjModel.from_xml_string(ARM.format(density=500))
    data = mujoco.MjData(model)
    while sim.time < 0.3:
        data.ctrl[:] = swing(sim.time)
        sim.step()
        substeps = max(int(np.ceil(sim.dt / 0.002 - 1e-9)), 1)
        model.opt.timestep = sim.dt / substeps
        for _ in range(substeps):
            mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    assert np.abs(sim[arm].qpos - data.qpos).max() < 1e-12 and np.abs(sim[arm].qvel - data.qvel).max() < 1e-10
    x, y, z = data.body("hand").xpos  # up is z, then a quarter of a turn about y
    assert sim[arm].links["hand"].position == pytest.approx([0.3 - y, 1.0 + z, 0.2 - x], abs=1e-12)
    assert sim["arm.hand.tip"].position == pytest.approx(_tip(sim[arm].links["hand"]), abs=1e-9)
    assert sim[arm].sensors["bend"] == pytest.approx(sim[arm].qpos[1:], abs=1e-12)


def _tip(hand):
    return hand.position + hand.rotation @ [0, 0, -0.18]


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_scaled_pendulum_swings_as_long_as_its_length_wants(scale):
    model = """<mujoco><worldbody><body name="bob" pos="0 0 1"><joint type="hinge" axis="0 1 0"/>
    <geom type="sphere" size="0.05" pos="0 0 -0.5" mass="1"/></body></worldbody></mujoco>"""
    scene, arm = alone(model, scale=scale, position=(0, 1, 0))
    sim = scene.build(quiet=True)
    sim[arm].qpos = [0.05]
    times, before = [], 0.05
    while len(times) < 2:
        sim.step()
        now = sim[arm].qpos[0]
        if now * before < 0:
            times.append(sim.time - sim.dt * now / (now - before))
        before = now
    inertia = 0.25 + 0.4 * 0.05**2  # of unit mass, about the axis, with the model's lengths
    assert 2 * (times[1] - times[0]) == pytest.approx(2 * np.pi * np.sqrt(scale * inertia / (0.5 * G)), rel=5e-3)


def test_shapes_of_all_kinds_become_walls():
    model = """<mujoco><asset><mesh name="wedge" vertex="0 0 0  0.2 0 0  0 0.2 0  0 0 0.2"/></asset><worldbody>
    <geom type="plane" size="1 1 1"/><body name="a" pos="0 0 1"><freejoint/>
    <geom name="one" type="sphere" size="0.1"/><geom type="box" size="0.1 0.2 0.05" pos="0.3 0 0" euler="30 0 0"/>
    <geom type="cylinder" size="0.05 0.2" pos="0.6 0 0"/><geom type="ellipsoid" size="0.1 0.05 0.2" pos="0.9 0 0"/>
    <geom type="mesh" mesh="wedge" pos="1.2 0 0"/><geom type="capsule" size="0.05 0.1" pos="1.5 0 0"/>
    <geom name="painted" type="box" size="1 1 1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    scene, arm = alone(model)
    volumes = {body.name: body.shape.volume() for body in scene.bodies if body.name.startswith("arm.a")}
    expected = {"one": 4 / 3 * np.pi * 1e-3, "2": 0.2 * 0.4 * 0.1, "3": np.pi * 0.05**2 * 0.4,
                "4": 4 / 3 * np.pi * 1e-3, "5": 0.2**3 / 6, "6": np.pi * 0.05**2 * (0.2 + 4 / 3 * 0.05)}  # fmt: skip
    assert volumes == {f"arm.a.{name}": pytest.approx(volume, rel=0.01) for name, volume in expected.items()}
    sim = scene.build(quiet=True)
    assert sim["arm.a.2"].position == pytest.approx([0.3, 1, 0]) and "arm.world" in [b.name for b in scene.bodies]
    assert sim["arm.a.5"].mesh.vertices.min(axis=0)[0] == pytest.approx(1.2 - 0.05 + 0.05, abs=0.06)


# --- contacts with rigid bodies ---------------------------------------------------------------------


@pytest.mark.parametrize("deck, crate", [(1.0, 1.0), (0.1, 20.0), (20.0, 0.1)])
def test_a_deck_on_a_servo_bears_a_crate(deck, crate):
    scene, arm = alone(LIFT.format(mass=deck))
    box = scene.add(pl.Box(size=(0.2,) * 3, center=(0, 0.63, 0)), pl.Rigid(mass=crate, friction=0.5), name="crate")
    sim = scene.build(quiet=True)
    sim.run(0.8)
    assert sim[arm].links["deck"].force == pytest.approx([0, -crate * G, 0], abs=3e-3 * crate * G)
    assert sim[arm].qpos[0] == pytest.approx(-(deck + crate) * G / 20000, rel=5e-3)
    assert sim[box].position[1] - sim["arm.deck"].position[1] == pytest.approx(0.12, abs=2e-4)
    assert sim[box].contacts["arm.deck"][1] == pytest.approx(crate * G, rel=3e-3)


@pytest.mark.parametrize("link, ball", [(1.0, 1.0), (0.001, 10.0), (10.0, 0.1)])
def test_impacts_of_links_keep_momentum(link, ball):
    scene = pl.Scene(particle_radius=0.02, gravity=(0, 0, 0))
    model = f"""<mujoco><worldbody><body name="b"><freejoint/>
    <geom type="sphere" size="0.1" mass="{link}"/></body></worldbody></mujoco>"""
    arm = scene.add(pl.Robot(model), name="arm")
    scene.add(pl.Sphere(radius=0.1, center=(0.3, 0, 0)), pl.Rigid(mass=ball), name="ball")
    sim = scene.build(quiet=True)
    sim[arm].qvel = [1, 0, 0, 0, 0, 0]
    sim.run(0.3)
    u, v = sim[arm].links["b"].velocity, sim["ball"].velocity
    assert link * u + ball * v == pytest.approx([link, 0, 0], abs=1e-6 * link)
    assert u == pytest.approx(v, abs=1e-3) and v[0] == pytest.approx(link / (link + ball), rel=1e-3)


def test_a_link_that_is_free_comes_to_rest_on_the_ground():
    scene, arm = alone(FREE.format(y=0.3, h=0.1, density=500).replace('name="b"', 'name="b" euler="20 10 0"'))
    sim = scene.build(quiet=True)
    sim.run(1.0)
    link = sim[arm].links["b"]
    assert link.position[1] == pytest.approx(0.1, abs=2e-4) and np.abs(sim[arm].qvel).max() < 1e-3
    assert link.force == pytest.approx([0, 500 * 0.2**3 * G, 0], abs=0.05)


def test_a_light_arm_presses_on_the_ground_with_what_its_motor_gives():
    model = """<mujoco><worldbody><body name="a" pos="0 0 0.3"><joint name="h" type="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02" mass="{}"/></body></worldbody>
    <actuator><motor joint="h"/></actuator></mujoco>"""
    for mass in (0.003, 0.3):
        scene, arm = alone(model.format(mass), control=[3.0], friction=0.0)
        sim = scene.build(quiet=True)
        sim.run(0.6)
        q = sim[arm].qpos[0]
        assert abs(sim[arm].qvel[0]) < 1e-3 and 0.3 - 0.5 * np.sin(q) == pytest.approx(0.02, abs=1e-3)
        expected = (3 + mass * G * 0.25 * np.cos(q)) / (0.5 * np.cos(q))
        assert sim[arm].links["a"].force == pytest.approx([0, expected, 0], rel=5e-3, abs=1e-2)


def test_a_body_that_hangs_on_a_link_pulls_at_it():
    scene, arm = alone(LIFT.format(mass=1.0), position=(0, 0.5, 0))
    box = scene.add(pl.Box(size=(0.1,) * 3, center=(0, 0.6, 0)), pl.Rigid(mass=2.0), name="box")
    scene.distance(box, "arm.deck", at=((0, 0.65, 0), (0, 0.98, 0)))
    sim = scene.build(quiet=True)
    sim.run(0.5)
    assert sim[arm].links["deck"].force == pytest.approx([0, -2 * G, 0], abs=0.05)


# --- water ------------------------------------------------------------------------------------------


def floating(density, robot):
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Box(size=(0.54, 0.7, 0.54), center=(0, 0.35, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.54, 0.36, 0.54), center=(0, 0.18, 0)), pl.Fluid(), name="water")
    if robot:
        scene.add(pl.Robot(FREE.format(y=0.42, h=0.1, density=density)), name="arm")
        return scene.build(quiet=True), "arm.b"
    scene.add(pl.Box(size=(0.2,) * 3, center=(0, 0.42, 0)), pl.Rigid(density=density), name="box")
    return scene.build(quiet=True), "box"


@pytest.mark.parametrize("density", [5.0, 600.0])
def test_a_free_link_floats_as_a_rigid_body_does(density):
    """The same box, once moved by Pliant and once by MuJoCo, falls into the water and rises."""
    ways = []
    for robot in (False, True):
        sim, name = floating(density, robot)
        way = []
        for _ in range(4):
            sim.run(0.1)
            way.append(sim[name].position[1])
        ways.append(np.array(way))
    tolerance = 0.012 if density > 100 else 0.03  # what is light jumps out of the water
    assert np.abs(ways[0] - ways[1]).max() < tolerance


def test_links_far_lighter_than_water_are_stable():
    """A paddle of a thousandth of the density of water stirs it as one of half of it does: servos lead both."""
    turned = []
    for density in (1.0, 500.0):
        scene, arm = stirring(density)
        sim = scene.build(quiet=True)
        turned.append([])
        for _ in range(4):
            sim.run(0.1)
            assert sim.stats.max_speed < 2.5
            turned[-1].append(sim[arm].qpos)
    assert np.abs(np.subtract(*turned)).max() < 0.1


@pytest.mark.parametrize("density", [1.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_a_sphere_let_go_under_water_starts_as_its_added_mass_lets_it(density):
    """a = g (rho_w - rho) / (rho + rho_w / 2), on a slider."""
    ball = f"""<mujoco><option integrator="implicitfast"/><worldbody><body name="b" pos="0 0 0.3">
    <joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size="0.09" density="{density}"/></body></worldbody>
    <actuator><general joint="z" gaintype="affine" gainprm="0 -5000 -200"/></actuator></mujoco>"""  # holds if it is 1
    scene = pl.Scene(particle_radius=0.015)
    scene.add(pl.Box(size=(0.6, 0.9, 0.6), center=(0, 0.45, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.6, 0.6, 0.6), center=(0, 0.3, 0)), pl.Fluid(), name="water")
    arm = scene.add(pl.Robot(ball), name="arm")
    sim = scene.build(quiet=True)
    sim[arm].ctrl = [1]
    sim.run(0.2)  # held until the water has come to rest
    sim[arm].ctrl = [0]
    start, times, speeds = sim.time, [], []
    while sim.time < start + 0.02:
        sim.step()
        times.append(sim.time - start)
        speeds.append(sim[arm].qvel[0])
    acceleration = (np.array(times) @ speeds) / (np.array(times) @ times)
    assert acceleration == pytest.approx((1000 - density) * G / (density + 500), rel=0.1)


def test_what_water_does_is_what_the_link_feels():
    """A deck on a servo under water: buoyancy and weight of what is above."""
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Box(size=(0.32, 0.6, 0.32), center=(0, 0.3, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.32, 0.4, 0.32), center=(0, 0.2, 0)), pl.Fluid(viscosity=1e-4), name="water")
    model = """<mujoco><option integrator="implicitfast"/><worldbody><body name="f" pos="0 0 0.2">
    <joint name="z" type="slide" axis="0 0 1"/><geom type="box" size="0.06 0.06 0.06" mass="0.1"/></body></worldbody>
    <actuator><position joint="z" kp="2000" kv="60"/></actuator></mujoco>"""
    arm = scene.add(pl.Robot(model), name="arm")
    sim = scene.build(quiet=True)
    sim.run(0.5)
    loads = []
    for _ in range(40):
        sim.step()
        loads.append(sim[arm].links["f"].force[1])
    assert np.mean(loads) == pytest.approx(1000 * G * 0.12**3, rel=0.06)
    assert sim[arm].qpos[0] == pytest.approx((np.mean(loads) - 0.1 * G) / 2000, rel=0.05)


# --- state ------------------------------------------------------------------------------------------


def test_a_saved_robot_goes_on_bit_for_bit(tmp_path, assert_same_state):
    sim = stirring()[0].build(quiet=True)
    sim.run(0.25)
    sim.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz", scene=stirring()[0])
    assert_same_state(sim, other)
    assert sim["arm"].sensors["bend"] == other["arm"].sensors["bend"]
    for one in (sim, other):
        one.run(0.1)
    assert_same_state(sim, other)


def test_checkpoints_hold_the_model_with_its_files(tmp_path, assert_same_state):
    folder = tmp_path / "model"
    (folder / "meshes").mkdir(parents=True)
    vertices, faces = pl.Box(size=(0.2, 0.2, 0.2)).triangles()
    lines = [f"v {x} {y} {z}" for x, y, z in vertices] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    (folder / "meshes" / "Cube.obj").write_text("\n".join(lines))
    (folder / "assets.xml").write_text('<mujoco><asset><mesh file="Cube.obj"/></asset></mujoco>')
    (folder / "arm.xml").write_text("""<mujoco><compiler meshdir="meshes"/><include file="assets.xml"/><worldbody>
    <body name="b" pos="0 0 0.4"><freejoint/><geom type="mesh" mesh="Cube" density="500"/></body>
    </worldbody></mujoco>""")
    sim = alone(str(folder / "arm.xml"), control=[])[0].build(quiet=True)
    sim.run(0.2)
    sim.save(tmp_path / "state.npz")
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    other = pl.load(tmp_path / "state.npz")
    for one in (sim, other):
        one.run(0.2)
    assert_same_state(sim, other)
    assert sim["arm"].links["b"].position[1] == pytest.approx(0.1, abs=1e-3)


def test_a_step_that_breaks_down_leaves_the_last_good_state(assert_same_state):
    def control(t):
        if t > 0.1:
            raise RuntimeError("the cable is cut")
        return swing(t)

    sim, twin = stirring(control=control)[0].build(quiet=True), stirring()[0].build(quiet=True)
    with pytest.raises(pl.SimulationError, match=r"arm: its control fails at t = 0\.1.* s: the cable is cut"):
        sim.run(0.2)
    while twin.time < sim.time:
        twin.step()
    assert np.array_equal(sim["arm"].qpos, twin["arm"].qpos) and np.array_equal(sim["water"].x, twin["water"].x)


def test_positions_velocities_and_controls_can_be_assigned():
    scene, arm = alone(ARM.format(density=500), position=(0, 0.5, 0))
    sim = scene.build(quiet=True)
    sim[arm].qpos = [np.pi / 2, 0]
    assert sim["arm.hand.tip"].position == pytest.approx([-0.38, 0.9, 0], abs=1e-9)
    sim[arm].qvel = [1.0, 0.0]
    assert sim["arm.hand.tip"].velocity == pytest.approx([0, 0.38, 0], abs=1e-9)
    assert sim[arm].links["hand"].spin == pytest.approx([0, 0, -1], abs=1e-12)
    sim[arm].ctrl = {"e": 0.5}
    assert sim[arm].actuators == ["s", "e"] and sim[arm].ctrl == pytest.approx([0, 0.5])
    sim.run(1.0)
    assert sim[arm].qpos[1] == pytest.approx(0.5, abs=0.02)


def test_controls_see_the_state():
    seen = []

    def control(t, state):
        seen.append((t, state.sensors["bend"].copy(), state.qpos.copy()))
        return {"s": 0.3}

    sim = alone(ARM.format(density=500), control=control)[0].build(quiet=True)
    sim.run(0.1)
    assert [t for t, *_ in seen[-3:]] == sorted({t for t, *_ in seen[-3:]})
    assert all(bend == pytest.approx(qpos[1:]) for _, bend, qpos in seen)


# --- what may be wrong ------------------------------------------------------------------------------


def sentences(**more):
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    model = more.pop("mjcf", ARM.format(density=500))
    scene.add(pl.Robot(model, **more), name="arm")
    with pytest.raises(pl.SceneError) as error:
        scene.build()
    return [line for line in str(error.value).splitlines() if "arm" in line]


@pytest.mark.parametrize(
    "given, says",
    [
        ({"mjcf": "nowhere.xml"}, "arm: the MJCF file nowhere.xml cannot be read: No such file or directory"),
        ({"mjcf": "<mujoco><worldbody>"}, "arm: its MJCF is broken XML: no element found: line 1, column 19"),
        ({"mjcf": "<robot/>"}, "arm: a Robot needs MJCF, whose outermost element is <mujoco>; it is <robot> here"),
        ({"mjcf": "<mujoco><worldbod/></mujoco>"}, "arm: MuJoCo cannot make a model of the MJCF: XML Error: Schema"),
        ({"mjcf": '<mujoco><asset><mesh file="a.stl"/></asset></mujoco>'},
         "the mesh file a.stl of the MJCF cannot be read"),
        ({"mjcf": '<mujoco><include file="b.xml"/></mujoco>'}, "arm: the MJCF file b.xml cannot be read"),
        ({"mjcf": "<mujoco/>"}, "arm: it has no geoms that collide, so that nothing in the scene would meet it"),
        ({"mjcf": 7}, "arm: the first value of Robot must be the name of an MJCF file, or XML text, got 7"),
        ({"control": [1.0]}, "its control fails at t = 0 s: controls must be 2 numbers, for s, e, or a dict by name;"),
        ({"control": {"elbw": 1}}, "arm: its control fails at t = 0 s: unknown actuator 'elbw'"),
        ({"control": lambda t: [0.0, np.nan]}, "arm: its control fails at t = 0 s: controls must be 2 numbers"),
        ({"control": lambda t: {"s": "fast"}}, "its control fails at t = 0 s: s needs a finite number, got 'fast'"),
        ({"control": lambda t: 1 / 0}, "arm: its control fails at t = 0 s: division by zero"),
        ({"rotation": 90}, "rotation must be a pair of axis and degrees, such as ((0, 1, 0), 90), or None, got 90"),
        ({"scale": -1}, "arm: scale must be in (0, 1e+06], got -1"),
        ({"position": (0, np.nan, 0)}, "arm: position must be three numbers, got (0, nan, 0) (not a number)"),
        ({"friction": -0.5}, "arm: friction must be in [0, 100], got -0.5"),
    ],
)  # fmt: skip
def test_wrong_robots_are_told_in_a_sentence(given, says):
    found = sentences(**given)
    assert len(found) == 1 and says in found[0], found


def test_all_that_is_wrong_is_told_at_once():
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Robot("nowhere.xml"), name="arm")
    scene.add(pl.Robot("nowhere.xml", scale=0), name="arm")
    scene.add(pl.Robot(LIFT.format(mass=1)), pl.Rigid(), name="deck", spin=(0, 0, 1))
    with pytest.raises(pl.SceneError) as error:
        scene.build()
    told = ("called 'arm'", "scale must be", "nowhere.xml cannot be read", "leave out material", "leave out spin")
    for words in told:
        assert words in str(error.value)


def test_wrong_names_and_numbers_while_it_runs():
    scene, arm = alone(ARM.format(density=500))
    sim = scene.build(quiet=True)
    with pytest.raises(pl.PliantError, match="unknown link 'hnd'; did you mean 'hand'"):
        sim[arm].links["hnd"].position  # noqa: B018
    with pytest.raises(pl.PliantError, match=r"arm.qpos needs 2 numbers within 1e\+06, got \[1\]"):
        sim[arm].qpos = [1]
    with pytest.raises(pl.PliantError, match="arm.ctrl: unknown actuator 'x'"):
        sim[arm].ctrl = {"x": 1}
    with pytest.raises(pl.PliantError, match="arm.links cannot be assigned; qpos, qvel and ctrl can"):
        sim[arm].links = 1
    with pytest.raises(pl.PliantError, match="is a link of a robot"):
        sim.grab("arm.hand.tip", (0, 0, 0))
    with pytest.raises(pl.PliantError, match="arm.qvel needs 2 numbers"):
        sim[arm].qvel = [1e300, 0]
    sim.step()
    before, sim[arm].ctrl = sim[arm].qpos, [1e10, 0]
    with pytest.raises(pl.SimulationError, match="arm broke down in MuJoCo"):
        sim.step()
    assert np.array_equal(sim[arm].qpos, before)


def test_without_mujoco_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    found = sentences()
    assert len(found) == 1 and "pip install pliant[robots]" in found[0]


def test_links_respond_as_constrained_rigid_bodies_do():
    """`find_bodies` bounds the response of random links from above, and is exact for a hinge about its axis."""
    rng = np.random.default_rng(1)
    for m in (1, 2, 5):
        links = Articulation(np.arange(3), np.arange(3))
        L = rng.normal(size=(m, m))
        links.J, links.A = rng.normal(size=(18, m)), L @ L.T + 0.1 * np.eye(m)
        links.find_bodies()
        for k in range(3):
            F = np.zeros((3, 6))
            for _ in range(20):
                F[k] = rng.normal(size=6)
                assert links.respond(F)[k] @ F[k] <= links.yielding(F)[k] @ F[k] * (1 + 1e-6)
    hinge = Articulation(np.arange(1), np.arange(1))
    hinge.J, hinge.A = np.array([[0.0, 0.5, 0, 0, 0, 1]]).T, np.array([[0.1]])  # half a metre from an axis along z
    hinge.find_bodies()
    assert hinge.offset[0] == pytest.approx([-0.5, 0, 0], abs=1e-6)
    F = np.array([[0, 3.0, 0, 0, 0, 0.7]])
    assert hinge.yielding(F) == pytest.approx(hinge.respond(F), rel=1e-4)
