"""Rigid bodies and joints as scenes say them: what is built, viewed, changed, saved, written, and what is refused."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import pliant as pl
from pliant.commands import cli
from pliant.io.usd_reader import read_usd
from pliant.solvers.rigid.options import Joint

NAN = math.nan
CRATE = pl.Box(size=(0.2, 0.3, 0.4), center=(1, 1, 0.5))


def scene_of(material=None, **more):
    """A floor and a crate on it, without a particle."""
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    crate = scene.add(more.pop("shape", CRATE), material or pl.Rigid(density=500), name="crate", **more)
    return scene, crate


def built(material=None, **more):
    scene, crate = scene_of(material, **more)
    return scene.build(quiet=True), crate


def wall_of(sim, name="crate"):
    return sim.world.walls.find(name)


def only(scene):
    with pytest.raises(pl.SceneError) as caught:
        scene.build()
    (sentence,) = caught.value.problems
    assert "\n" not in sentence and 10 < len(sentence) < 300
    return sentence


# --- what is built ----------------------------------------------------------------------------------


def test_a_rigid_body_is_a_wall_with_mass():
    sim, _ = built(pl.Rigid(density=500, friction=0.4, restitution=0.2), velocity=(1, 0, 0), spin=(0, 3, 0))
    wall = wall_of(sim)
    np.testing.assert_allclose(wall.pivot, (1, 1, 0.5))
    assert wall.mass == pytest.approx(12.0) and wall.restitution == 0.2 and wall.free
    np.testing.assert_allclose(wall.inertia, np.diag([0.25, 0.2, 0.13]), atol=1e-15)
    np.testing.assert_array_equal(wall.velocity, (1, 0, 0))
    np.testing.assert_array_equal(wall.spin, (0, 3, 0))
    floor = wall_of(sim, "floor")
    assert floor.mass == math.inf and not floor.free and not floor.inertia.any()


def test_density_or_mass():
    assert pl.Rigid().density == 1000.0 and pl.Rigid(mass=2.0).density is None
    assert wall_of(built(pl.Rigid(mass=3.0))[0]).mass == 3.0
    assert pl.Rigid(mass=3.0).replaced(density=5.0).mass is None
    heavy = wall_of(built(pl.Rigid(mass=6.0))[0]).inertia
    np.testing.assert_allclose(heavy, 2 * wall_of(built(pl.Rigid(mass=3.0))[0]).inertia)


def test_the_pivot_is_the_centre_of_mass_and_the_extent_reaches_all_of_it():
    shape = pl.Box(size=(0.4, 0.2, 0.2)) | pl.Box(size=(0.2, 0.6, 0.2), center=(0.1, 0.4, 0))
    wall = wall_of(built(shape=shape)[0])
    one, two = 0.4 * 0.2 * 0.2, 0.2 * 0.6 * 0.2
    assert wall.pivot == pytest.approx((0.1 * two / (one + two), 0.4 * two / (one + two), 0), abs=1e-3)
    corners = np.array([(-0.2, -0.1, 0.1), (0.2, 0.7, 0.1)])
    assert wall.extent >= np.linalg.norm(corners - wall.pivot, axis=1).max() - 1e-9


def test_bodies_of_one_shape_share_their_map():
    """And particles feel each where it is."""
    scene = pl.Scene(particle_radius=0.03)
    for k, x in enumerate((1.0, 3.123)):
        scene.add(pl.Box(size=(0.2, 0.3, 0.4), center=(x, 1, 0.5)), pl.Rigid(), name=f"crate{k}")
        scene.add(pl.Box(size=(0.12, 0.12, 0.12), center=(x + 0.16, 1, 0.5)), pl.Fluid(), name=f"water{k}",
                  sampling="regular")  # fmt: skip
    sim = scene.build(quiet=True)
    one, other = (wall_of(sim, name).map for name in ("crate0", "crate1"))
    assert one.spline is other.spline and other.origin - one.origin == pytest.approx((2.123, 0, 0))
    sim.find_neighbors()
    p = sim.world.particles
    felt = [p.numpy("wall_density")[p.rows_of(k)] for k in range(2)]
    assert felt[0].max() > 0.1
    np.testing.assert_allclose(felt[0], felt[1], atol=1e-4)


def test_particles_keep_clear_of_rigid_bodies():
    scene, _ = scene_of()
    scene.add(pl.Box(size=(0.6, 0.6, 0.6), center=(1, 1, 0.5)), pl.Fluid(), name="water")
    sim = scene.build(quiet=True)
    assert (CRATE.signed_distance(sim["water"].x) > 0).all() and any("overlaps crate" in note for note in sim.notes)


@pytest.mark.parametrize("material", [pl.Boundary(), pl.Fluid(), pl.Elastic(young=1e5)])
def test_only_rigid_bodies_are_free_and_spin(material):
    assert not material.free and pl.Rigid().free and pl.Rigid().is_wall and not pl.Rigid().has_particles
    scene, _ = scene_of()
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(3, 1, 1)), material, name="other", spin=(0, 1, 0))
    assert only(scene).startswith("other: only rigid bodies, pl.Rigid(...), have a spin")


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(("material", "more", "sentence"), [
    (pl.Rigid(density=500, mass=2.0), {}, "Rigid: it takes a density or a mass, not both, got 500 and 2.0"),
    (pl.Rigid(mass=0), {}, "Rigid: mass must be in (0, 1e+15] kg, got 0"),
    (pl.Rigid(mass=-1.0), {}, "Rigid: mass must be in"),
    (pl.Rigid(density=NAN), {}, "Rigid: density must be a number, got nan"),
    (pl.Rigid(restitution=1.5), {}, "Rigid: restitution must be in [0, 1], got 1.5"),
    (pl.Rigid(frictoin=1), {}, "Rigid has no parameter 'frictoin'; did you mean 'friction'?"),
    (None, {"spin": (0, NAN, 0)}, "crate: spin must be three numbers within 1e+06 rad/s"),
    (None, {"spin": 3.0}, "crate: spin must be three numbers"),
    (None, {"velocity": (0, math.inf, 0)}, "crate: velocity must be three numbers"),
    (None, {"spni": (0, 1, 0)}, "crate: add has no parameter 'spni'; did you mean 'spin'?"),
    (None, {"shape": pl.Plane()}, "crate: Plane is infinite and has no mass; use it as a pl.Boundary"),
    (None, {"shape": None}, "crate: Rigid needs a shape"),
    (None, {"shape": pl.Box((1, 1, 1)) - pl.Box((2, 2, 2))}, "crate: its shape encloses no volume, so that it has no"),
    (None, {"shape": pl.Mesh(([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))}, "encloses no volume: it is open"),
    (pl.Rigid(mass=1e-300), {}, "crate: its mass of 1e-300 kg and its size make it so hard or so easy to turn"),
    (None, {"particle_radius": 0.02}, "only elastic bodies may have a particle_radius"),
])  # fmt: skip
def test_wrong_rigid_bodies_are_told_in_one_sentence(material, more, sentence):
    assert sentence in only(scene_of(material, **more)[0])


def test_masks_and_pivots_make_no_sense():
    scene, crate = scene_of()
    crate.fix(lambda x: x[:, 0] > 0)
    assert only(scene) == "crate: a rigid body is held as a whole: fix() takes no mask"
    scene, crate = scene_of()
    crate.move(lambda t: (1, 0, 0), pivot=(0, 0, 0))
    assert only(scene) == "crate: a rigid body is moved about its centre of mass; leave out the pivot"


def test_a_scene_needs_particles_or_rigid_bodies():
    scene = pl.Scene()
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    assert "no particles and no rigid bodies" in only(scene)


# --- without particles ------------------------------------------------------------------------------


def test_rigid_bodies_alone_step_are_drawn_saved_and_loaded(tmp_path, assert_same_state):
    sim, crate = built(pl.Rigid(mass=2.0), spin=(0, 1, 0))
    for _ in range(3):
        sim.step()
    assert sim.particles == 0 and sim.stats.momentum == pytest.approx(sim[crate].momentum)
    next(sim.frames(0.01)).write(tmp_path, "vtu,npz,ply,obj,png", 160, 90)
    assert (tmp_path / "frame_0000.png").stat().st_size > 0 and (tmp_path / "crate_0000.obj").exists()
    sim.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    assert_same_state(sim, other)
    sim.step()
    other.step()
    assert_same_state(sim, other)
    assert other["crate"].mass == 2.0


def test_only_the_world():
    """Not even a floor."""
    scene = pl.Scene()
    scene.add(pl.Sphere(radius=0.1), pl.Rigid(), name="ball")
    sim = scene.build(quiet=True)
    sim.run(0.02)
    assert sim["ball"].mass == pytest.approx(4 / 3 * math.pi)


def test_files_of_a_run_hold_poses(tmp_path):
    pytest.importorskip("pxr")
    (tmp_path / "spin.py").write_text(
        "import pliant as pl\n\n\ndef build():\n    scene = pl.Scene(particle_radius=0.05)\n"
        "    scene.add(pl.Box((0.2, 0.3, 0.4)), pl.Rigid(), name='crate').move(lambda t: ((1, 0, 0), (0, 2, 0)))\n"
        "    return scene\n"
    )
    out = tmp_path / "out"
    arguments = ["run", tmp_path / "spin.py", "--seconds", 0.1, "--fps", 20, "--format", "usd", "--out", out, "--quiet"]
    ended = CliRunner().invoke(cli.app, [str(word) for word in arguments])
    assert ended.exit_code == 0, ended.output
    frames = json.loads((out / "run.json").read_text())["frames"]
    assert frames[2]["rigid"]["crate"]["position"] == pytest.approx([0.1, 0, 0])
    assert frames[2]["rigid"]["crate"]["quaternion"] == pytest.approx([0, math.sin(0.1), 0, math.cos(0.1)])
    with np.load(out / "rigid.npz") as file:
        assert file["times"] == pytest.approx([0, 0.05, 0.1])
        np.testing.assert_allclose(file["crate/position"][:, 0], file["times"], atol=1e-9)
        assert file["crate/quaternion"].shape == (3, 4) and file["crate/spin"][1] == pytest.approx((0, 2, 0))
    stage = read_usd(out / "spin.usdc")
    assert len(stage.walls["crate"].vertices) == 8
    np.testing.assert_allclose([s.poses.get("crate", np.eye(4))[0, 3] for s in stage], [0, 0.05, 0.1], atol=1e-9)


# --- views ------------------------------------------------------------------------------------------


def test_what_a_view_tells():
    sim, crate = built(pl.Rigid(mass=3.0), velocity=(1, 0, 0), spin=(0, 3, 0))
    view, wall = sim[crate], wall_of(sim)
    wall.velocity, wall.spin = np.array((1.0, 0, 0)), np.array((0, 3.0, 0))
    assert view.mass == 3.0 and not view.fixed
    assert view.momentum == pytest.approx((3, 0, 0))
    assert view.energy == pytest.approx(0.5 * 3 + 0.5 * 9 * wall.inertia[1, 1])
    spun = wall.inertia @ (0, 3, 0)
    assert view.angular_momentum == pytest.approx(spun + 3 * np.cross((1, 1, 0.5), (1, 0, 0)))
    assert sim.stats.kinetic_energy == pytest.approx(view.energy)
    assert sim.stats.angular_momentum == pytest.approx(view.angular_momentum)
    assert sim.stats.potential_energy == pytest.approx(3 * 9.81 * 1.0)
    assert view.contacts == {} and not view.force.any() and not view.torque.any()


def test_what_can_be_assigned():
    sim, crate = built()
    view = sim[crate]
    view.position = (2, 3, 4)
    view.velocity, view.spin = (1, 2, 3), [0, 0, 1]
    assert view.position == pytest.approx((2, 3, 4)) and view.velocity == pytest.approx((1, 2, 3))
    view.rotation = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert view.quaternion == pytest.approx((0, 0, math.sqrt(0.5), math.sqrt(0.5)))
    np.testing.assert_allclose(view.inertia, np.diag(wall_of(sim).inertia.diagonal()[[1, 0, 2]]), atol=1e-15)
    assert view.mesh.vertices.mean(axis=0) == pytest.approx((2, 3, 4))
    view.quaternion = (0, 0, 0, 2)
    np.testing.assert_allclose(view.rotation, np.eye(3), atol=1e-15)


@pytest.mark.parametrize(("name", "value", "sentence"), [
    ("postion", (0, 0, 0), "crate.postion cannot be assigned; position, rotation, quaternion, velocity and spin can"),
    ("mass", 2.0, "crate.mass cannot be assigned"),
    ("velocity", (0, NAN, 0), "crate.velocity needs three numbers within 1e+06 m/s"),
    ("position", (0, 0), "crate.position needs three finite numbers"),
    ("rotation", 2 * np.eye(3), "crate.rotation needs a rotation matrix"),
    ("rotation", np.diag([1, 1, -1]), "crate.rotation needs a rotation matrix"),
    ("quaternion", (0, 0, 0, 0), "crate.quaternion needs four numbers"),
])  # fmt: skip
def test_what_cannot_be_assigned(name, value, sentence):
    sim, crate = built()
    with pytest.raises(pl.PliantError, match="^" + sentence.replace(".", r"\.").replace("+", r"\+")):
        setattr(sim[crate], name, value)


def test_held_led_and_let_go(tmp_path):
    scene, crate = scene_of()
    crate.fix()
    sim = scene.build(quiet=True)
    assert sim[crate].fixed and not wall_of(sim).free
    with pytest.raises(pl.PliantError, match="crate is held or led, so that its velocity is not its own"):
        sim[crate].velocity = (1, 0, 0)
    sim[crate].move(lambda t: ((0, 1, 0), (0, 0, 2)))
    sim.step(0.001)
    assert sim[crate].velocity == pytest.approx((0, 1, 0)) and sim[crate].spin == pytest.approx((0, 0, 2))
    with pytest.raises(pl.PliantError, match="cannot hold the motion of 'crate'"):
        sim.save(tmp_path / "led.npz")
        pl.load(tmp_path / "led.npz")
    sim[crate].release()
    assert wall_of(sim).free and wall_of(sim).motion is None and sim[crate].velocity == pytest.approx((0, 1, 0))
    sim.save(tmp_path / "free.npz")
    assert wall_of(pl.load(tmp_path / "free.npz")).free
    sim[crate].fix()
    assert not sim[crate].velocity.any()
    sim.save(tmp_path / "held.npz")
    assert pl.load(tmp_path / "held.npz")["crate"].fixed


def test_a_scene_that_is_handed_in_again_takes_the_state_of_the_file(tmp_path):
    def made():
        scene, crate = scene_of()
        crate.move(lambda t: (1, 0, 0))
        return scene

    sim = made().build(quiet=True)
    sim.run(0.01)
    sim.save(tmp_path / "led.npz")
    assert pl.load(tmp_path / "led.npz", made())["crate"].velocity == pytest.approx((1, 0, 0))
    sim["crate"].release()
    sim.save(tmp_path / "free.npz")
    assert not pl.load(tmp_path / "free.npz", made())["crate"].fixed


def test_parameters_change_at_run_time():
    sim, crate = built(pl.Rigid(density=500))
    sim.change(crate, density=1000)
    assert wall_of(sim).mass == pytest.approx(24.0)
    sim.change(crate, mass=2.0, friction=0.7, restitution=0.5)
    assert wall_of(sim).mass == 2.0 and wall_of(sim).restitution == 0.5
    assert wall_of(sim).inertia == pytest.approx(np.diag([0.25, 0.2, 0.13]) / 6)
    assert sim.world.frictions.between("crate", "floor") == pytest.approx(math.sqrt(0.7 * 0.5))
    with pytest.raises(pl.PliantError, match="mass must be in"):
        sim.change(crate, mass=-1.0)
    assert wall_of(sim).mass == 2.0


def test_knobs_of_the_viewer():
    from pliant.viewer.knobs import knobs

    scene, crate = scene_of(pl.Rigid(density=500, friction=0.4))
    scene.hinge(crate, None, at=(1, 1, 0.5), axis="z", speed=2.0, name="door")
    scene.spring(crate, "floor", stiffness=50.0, name="rope")
    found = {(knob.owner, knob.name) for knob in knobs(scene)}
    assert {("crate", "density"), ("crate", "friction"), ("crate", "restitution"), ("door", "speed")} <= found
    assert ("rope", "stiffness") in found and ("crate", "mass") not in found


def test_the_viewer_shows_rigid_bodies_alone(tmp_path):
    from pliant.viewer.drawing import Drawing
    from pliant.viewer.messages import Moment, Opened
    from pliant.viewer.player import Player
    from pliant.viewer.state import ViewState

    file, told = tmp_path / "crate.py", []
    file.write_text("import pliant as pl\n\n\ndef build():\n    scene = pl.Scene()\n"
                    "    scene.add(pl.Box((0.2, 0.3, 0.4)), pl.Rigid(), name='crate')\n    return scene\n")  # fmt: skip
    player = Player(str(file), [], told.append)
    player.advance()
    player.obey([("set", "crate", "density", 50.0)])
    assert player.sim["crate"].mass == pytest.approx(1.2)
    player.sim["crate"].position = (1, 0, 0)
    player.sim["crate"].fix()
    player.publish()
    opened = next(message for message in told if isinstance(message, Opened))
    moment = next(message for message in reversed(told) if isinstance(message, Moment))
    drawn = Drawing().draw(opened, moment, ViewState(), pl.Camera((1, 1, 1), (0, 0, 0)))
    (surface,) = drawn.picture.surfaces
    assert drawn.surfaces == ["crate"] and surface.vertices.mean(axis=0) == pytest.approx((1, 0, 0), abs=1e-6)
    player.obey([("reset",)])
    assert not player.sim["crate"].fixed and player.sim["crate"].position == pytest.approx((0, 0, 0), abs=1e-6)


# --- joints -----------------------------------------------------------------------------------------


def pair(**settings):
    """A floor and two crates."""
    scene = pl.Scene(particle_radius=0.03, **settings)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    a = scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(0, 1, 0)), pl.Rigid(), name="a")
    b = scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(1, 1, 0)), pl.Rigid(), name="b")
    return scene, a, b


def test_joints_are_options_of_the_scene():
    scene, a, b = pair()
    door = scene.hinge(a, None, at=[0, 1, 0], axis=(0, 0, 2), limits=(-30, 60), speed=lambda t: 2 * t, max_torque=5,
                       name="door")  # fmt: skip
    rail = scene.slider(b, "floor", axis="y", limits=np.array([0, 0.5]), force=3.0)
    others = [scene.ball(a, b, at=(0.5, 1, 0)), scene.join(a, b), scene.spring(a, b, stiffness=10.0, damping=1.0),
              scene.distance(a, None, at=((0, 1, 0), (0, 3, 0)))]  # fmt: skip
    assert [joint.name for joint in scene.settings.joints] == ["door", "slider1", "ball1", "join1", "spring1",
                                                               "distance1"]  # fmt: skip
    assert [joint.kind for joint in (door, rail, *others)] == ["hinge", "slider", "ball", "fixed", "spring", "distance"]
    assert scene.problems() == []
    assert door.motor(0.5) == (1.0, None) and door.strongest == 5.0 and rail.motor(0.0) == (None, 3.0)
    assert door.limit_range() == pytest.approx((-math.pi / 6, math.pi / 3)) and rail.limit_range() == (0, 0.5)
    assert door.direction() == pytest.approx((0, 0, 1)) and rail.direction() == pytest.approx((0, 1, 0))
    np.testing.assert_array_equal(door.anchors(), [(0, 1, 0), (0, 1, 0)])
    spring, rod = others[2:]
    np.testing.assert_array_equal(spring.anchors(), [(0, 1, 0), (1, 1, 0)])
    assert spring.rest_length() == 1.0 and rod.rest_length() == 2.0 and spring.contact and not door.contact


def hinge(scene, a, b, **more):
    return scene.hinge(a, b, at=(0, 0, 0), axis="x", **more)


@pytest.mark.parametrize(("make", "sentence"), [
    (lambda s, a, b: hinge(s, a, "c"), "hinge1: it joins an unknown body 'c'; known: a, b, floor"),
    (lambda s, a, b: s.ball(a, a, at=(0, 0, 0)), "ball1: it joins a to itself"),
    (lambda s, a, b: s.ball(None, a, at=(0, 0, 0)), "ball1: its first body must be a body or its name, got None"),
    (lambda s, a, b: s.join("floor", None), "join1: it joins floor and the world, which no force can move"),
    (lambda s, a, b: s.join("water", a), "join1: water is Fluid, and only rigid bodies and walls can be joined"),
    (lambda s, a, b: s.hinge(a, b, at=(0, 0, 0), axis=(0, 0, 0)), "hinge1: axis must not be zero"),
    (lambda s, a, b: s.hinge(a, b, at=(0, 0, 0), axis="w"), "hinge1: axis must be 'x', 'y', 'z' or three finite"),
    (lambda s, a, b: s.hinge(a, b, axis="x"), "hinge1: at is missing: where the joint is"),
    (lambda s, a, b: s.hinge(a, b, at=(0, NAN, 0), axis="x"), "hinge1: at must be three numbers"),
    (lambda s, a, b: hinge(s, a, b, limits=(60, -30)), "hinge1: limits must be (low, high), got"),
    (lambda s, a, b: hinge(s, a, b, limits=30), "hinge1: limits must be a pair of numbers"),
    (lambda s, a, b: hinge(s, a, b, speed=1, torque=1), "hinge1: a motor keeps a speed or gives a"),
    (lambda s, a, b: hinge(s, a, b, max_torque=1), "hinge1: max_torque belongs to a motor that"),
    (lambda s, a, b: hinge(s, a, b, speed=NAN), "hinge1: its speed fails at t = 0 s"),
    (lambda s, a, b: hinge(s, a, b, torque=lambda t: 1 / t), "hinge1: its torque fails at t = 0"),
    (lambda s, a, b: hinge(s, a, b, speed="fast"), "hinge1: speed must be a number or a function"),
    (lambda s, a, b: hinge(s, a, b, limit=3), "hinge has no parameter 'limit'; did you mean"),
    (lambda s, a, b: s.slider(a, b, axis="x", max_force=-1, speed=1), "slider1: max_force must be in"),
    (lambda s, a, b: s.spring(a, b), "spring1: stiffness is missing"),
    (lambda s, a, b: s.spring(a, b, stiffness=-5), "spring1: stiffness must be in (0, 1e+15] N/m, got -5"),
    (lambda s, a, b: s.spring(a, b, at=(1, 2), stiffness=5), "spring1: at must be a pair of points"),
    (lambda s, a, b: s.distance(a, b, at=(0, 0, 0)), "distance1: its two points are one"),
    (lambda s, a, b: s.ball(a, b, at=(0, 0, 0), name="a"), "two joints, or a joint and a body, are called 'a'"),
    (lambda s, a, b: s.ball(a, 3, at=(0, 0, 0)), "ball1: its second body must be a body, its name or None"),
    (lambda s, a, b: s.ball(a, b, at=(0, 0, 0), contact="no"), "ball1: contact must be True or False"),
])  # fmt: skip
def test_wrong_joints_are_told_in_one_sentence(make, sentence):
    scene, a, b = pair()
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(3, 1, 0)), pl.Fluid(), name="water")
    make(scene, a, b)
    assert only(scene).startswith(sentence)


def test_joints_are_saved_with_the_scene(tmp_path):
    scene, a, b = pair()
    door = scene.hinge(a, None, at=(0, 1, 0), axis="z", limits=(-30, 60), speed=2.0, name="door")
    scene.spring(a, b, stiffness=10.0)
    sim = scene.build(quiet=True)
    sim.save(tmp_path / "state.npz")
    joints = pl.load(tmp_path / "state.npz").scene.settings.joints
    assert [joint.values() for joint in joints] == [joint.values() for joint in scene.settings.joints]
    sim.change(door, speed=3.0)
    assert sim.scene.settings.joints[0].speed == 3.0
    sim.change("door", speed=None, torque=1.0)
    assert sim.scene.settings.joints[0].motor(0.0) == (None, 1.0)
    with pytest.raises(pl.PliantError, match="axis says what it joins, and where, and cannot change"):
        sim.change("door", axis="x")
    with pytest.raises(pl.PliantError, match="belongs to another scene: joints"):
        pl.load(tmp_path / "state.npz", scene)


def test_functions_of_motors_are_named(tmp_path):
    scene, a, _ = pair()
    scene.hinge(a, None, at=(0, 1, 0), axis="z", speed=math.sin, name="door")
    sim = scene.build(quiet=True)
    sim.save(tmp_path / "state.npz")
    with pytest.raises(pl.PliantError, match="cannot hold the speed of 'door'"):
        pl.load(tmp_path / "state.npz")
    assert pl.load(tmp_path / "state.npz", scene).scene is scene


class Stub(pl.Stage):
    """Knows what the stage of rigid bodies would."""

    name, place = "rigid", "advance"
    contact_forces = {("a", "b"): np.array((1.0, 0, 0)), ("b", "floor"): np.array((0, 5.0, 0))}
    joint_states = {"door": SimpleNamespace(angle=0.5, speed=2.0, force=(0, 1, 0), torque=(0, 0, 3))}


def test_views_of_joints_and_contacts(monkeypatch):
    scene, a, b = pair()
    door = scene.hinge(a, b, at=(0, 1, 0), axis="z", name="door")
    scene.spring(a, b, stiffness=10.0, name="rope")
    scene.slider(b, "a", axis="x", name="rail")
    sim = scene.build(quiet=True)
    assert isinstance(door, Joint) and sim[door].angle == 0.0 and not sim["door"].torque.any() and sim[a].contacts == {}
    stages = [stage for stage in sim.stages if stage.name != "rigid"] + [Stub(sim.world, None)]
    monkeypatch.setattr(type(sim), "stages", property(lambda self: stages))
    assert sim[door].angle == pytest.approx(math.degrees(0.5)) and sim[door].speed == 2.0
    assert sim[door].force == pytest.approx((0, 1, 0)) and sim[door].torque == pytest.approx((0, 0, 3))
    assert {name: force.tolist() for name, force in sim[b].contacts.items()} == {"a": [-1, 0, 0], "floor": [0, 5, 0]}
    wall_of(sim, "b").shift = np.array((0.5, 0.25, 0))
    assert sim["rail"].displacement == pytest.approx(0.5) and sim["rope"].length == pytest.approx(math.hypot(1.5, 0.25))
    assert sim["rail"].position == pytest.approx((0.5, 1.25, 0)) and not sim["rope"].force.any()
    with pytest.raises(pl.PliantError, match="rope is a spring joint and has no angle; only a hinge has one"):
        sim["rope"].angle  # noqa: B018
    with pytest.raises(pl.PliantError, match="unknown body 'dor'; did you mean 'door'"):
        sim["dor"]
