"""Rigid bodies and joints as the viewer and pictures have them: pins, poses, sliders, and what is drawn of joints."""

import numpy as np
import pytest

import pliant as pl
from pliant.render.compose import compose
from pliant.render.joints import JOINT, joint_lines
from pliant.render.raster import Raster
from pliant.render.render_scene import RenderScene
from pliant.viewer.drawing import Drawing
from pliant.viewer.knobs import knobs
from pliant.viewer.messages import Moment, Notice, Opened
from pliant.viewer.notices import Extras
from pliant.viewer.panels import Panels
from pliant.viewer.player import Player
from pliant.viewer.state import ViewState
from pliant.viewer.ui import Pointer, Ui

SCENE = """
import pliant as pl

def build():
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box((0.2, 0.2, 0.2), center=(0, 1, 0)), pl.Rigid(), name="crate", colors="honey")
    return scene
"""


def scene_with_joints():
    scene = pl.Scene(particle_radius=0.02)
    for k, name in enumerate(("door", "bob", "cart", "hung", "tied", "one", "other")):
        scene.add(pl.Box((0.2, 0.2, 0.2), center=(0.5 * k, 1, 0)), pl.Rigid(), name=name)
    scene.hinge("door", None, at=(-0.1, 1, 0), axis="y", speed=1.0, max_torque=5.0, name="hinge")
    scene.ball("bob", None, at=(0.5, 1.3, 0), name="ball")
    scene.slider("cart", None, axis="x", limits=(-0.3, 0.2), speed=0.1, max_force=5.0, name="rail")
    scene.spring("hung", None, at=((1.5, 1.1, 0), (1.5, 1.6, 0)), stiffness=100.0, damping=1.0, length=0.4,
                 name="spring")  # fmt: skip
    scene.distance("tied", None, at=((2, 1.1, 0), (2, 1.5, 0)), name="rod")
    scene.join("one", "other", at=(2.75, 1, 0), name="weld")
    return scene


@pytest.fixture(scope="module")
def joints():
    sim = scene_with_joints().build(quiet=True)
    return sim, RenderScene.of(sim)


@pytest.fixture
def player(tmp_path):
    (tmp_path / "crate.py").write_text(SCENE)
    told = []
    player = Player(str(tmp_path / "crate.py"), [], told.append)
    player.told = told
    player.advance()
    return player


def last(player, kind):
    player.publish()
    return next(message for message in reversed(player.told) if isinstance(message, kind))


def notices(player):
    return [message.text for message in player.told if isinstance(message, Notice) and message.kind == "error"]


# --- pins and hands ---------------------------------------------------------------------------------


def test_a_body_is_pinned_and_let_go(player):
    player.obey([("pin", "crate")])
    place = player.sim["crate"].position
    player.advance()
    assert np.array_equal(player.sim["crate"].position, place) and last(player, Moment).pinned == {"crate"}
    player.obey([("pin", "crate")])
    player.advance()
    assert player.sim["crate"].velocity[1] < 0 and not last(player, Moment).pinned
    player.obey([("pin", "floor"), ("pin", "crat")])
    assert notices(player) == ["floor is no rigid body, and only these can be pinned",
                               "unknown body 'crat'; did you mean 'crate'?"]  # fmt: skip


def test_what_is_held_is_pinned_where_it_is(player):
    player.obey([("grab", "crate", (0, 1.1, 0)), ("drag", (0.1, 1.3, 0))])
    for _ in range(20):
        player.advance()
    assert last(player, Moment).grip is not None and player.sim["crate"].position[1] > 1.05
    player.obey([("pin", "crate")])
    assert last(player, Moment).grip is None and player.sim.grips == [] and player.sim["crate"].fixed
    player.obey([("reset",)])
    assert not player.sim["crate"].fixed


def test_panels_tell_of_rigid_bodies_and_pin_them(player):
    opened, moment = last(player, Opened), last(player, Moment)
    panels, state, extras, ui = Panels(), ViewState(unfolded={"crate"}), Extras(), Ui()

    def frame(pointer):
        ui.begin(pointer, 1280, 720, now=0.0)
        commands = panels.draw(ui, state, opened, moment, extras)
        ui.end()
        return commands

    frame(Pointer(0, 0, False))
    assert "Simulation/crate.density" in ui.places and ui.cut == []
    x, y, w, h = ui.places["Simulation/pin crate"]
    found = []
    for down in (False, True, False):
        found += frame(Pointer(x + w / 2, y + h / 2, down))
    assert found == [("pin", "crate")]


def test_parameters_of_joints_have_sliders():
    found = {(knob.owner, knob.name): knob for knob in knobs(scene_with_joints())}
    for key in (("hinge", "speed"), ("hinge", "max_torque"), ("rail", "max_force"), ("spring", "stiffness"),
                ("spring", "damping"), ("spring", "length")):  # fmt: skip
        assert found[key].low <= found[key].value <= found[key].high, key
    assert found["spring", "damping"].high > 1.0  # N s/m, not the share that materials have
    sim = scene_with_joints().build(quiet=True)
    for (owner, name), knob in found.items():
        if owner in ("hinge", "rail", "spring"):
            sim.change(owner, **{name: knob.high})


# --- joints in pictures -----------------------------------------------------------------------------


def segments_of(joints, name, poses=None):
    sim, render_scene = joints
    number = [joint.name for joint in sim.scene.settings.joints].index(name)
    return joint_lines([render_scene.joints[number]], poses or {})[0].segments.reshape(-1, 3)


def test_joints_are_where_they_act(joints):
    hinge = segments_of(joints, "hinge")
    assert hinge.mean(axis=0) == pytest.approx((-0.1, 1, 0), abs=0.01) and np.ptp(hinge[:, 1]) > 0.1
    assert segments_of(joints, "ball").mean(axis=0) == pytest.approx((0.5, 1.3, 0), abs=0.01)
    rail = segments_of(joints, "rail")
    assert (rail[:, 0].min(), rail[:, 0].max()) == pytest.approx((0.7, 1.2), abs=0.03)
    spring = segments_of(joints, "spring")
    assert (spring[0], spring[-1]) == (pytest.approx((1.5, 1.1, 0)), pytest.approx((1.5, 1.6, 0)))
    assert segments_of(joints, "rod")[:2] == pytest.approx(np.array([(2, 1.1, 0), (2, 1.5, 0)]))
    assert segments_of(joints, "weld").mean(axis=0) == pytest.approx((2.75, 1, 0), abs=1e-6)


def test_joints_follow_their_bodies(joints):
    pose = np.eye(4)
    pose[:3, 3] = (0, -0.2, 0.1)
    spring = segments_of(joints, "spring", {"hung": pose})
    assert (spring[0], spring[-1]) == (pytest.approx((1.5, 0.9, 0.1)), pytest.approx((1.5, 1.6, 0)))
    turned = np.eye(4)
    turned[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    moved = segments_of(joints, "weld", {"one": turned, "other": turned})
    assert moved.mean(axis=0) == pytest.approx((-1, 2.75, 0), abs=1e-6)


def test_joints_are_saved_with_the_render_scene(joints, tmp_path):
    _, render_scene = joints
    render_scene.save(tmp_path / "scene.npz")
    loaded = RenderScene.load(tmp_path / "scene.npz")
    assert [mark.save() for mark in loaded.joints] == [mark.save() for mark in render_scene.joints]
    assert all(wall.rigid for wall in loaded.walls)


def test_pictures_and_the_viewer_show_joints_if_they_are_to(joints):
    sim, render_scene = joints
    snapshot = next(sim.frames(0.1)).snapshot()
    lines = [compose(render_scene, snapshot, pl.Look(joints=shown), 1.5).lines for shown in (True, False)]
    assert [line.color for line in lines[0]] == [JOINT] and lines[1] == []
    moment = Moment(snapshot, None, True)
    opened = Opened("joints", render_scene, [], {}, {}, [])
    for shown in (True, False):
        drawn = Drawing().draw(opened, moment, ViewState(joints=shown), pl.Camera((1, 1, 5), (1, 1, 0)))
        assert any(line.color == JOINT for line in drawn.picture.lines) == shown


def test_lines_over_all_else_are_not_hidden():
    from pliant.render import Camera, Lines, Picture, Surface

    side = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
    wall = Surface(side, np.array([[0, 1, 2], [0, 2, 3]]), (0.9, 0.9, 0.9))
    raster, seen = Raster(80, 60), []
    for over in (False, True):
        behind = Lines(np.array([[[-0.5, 0, -1], [0.5, 0, -1]]]), (0.0, 0.0, 1.0), 4.0, over)
        raster.load(Picture(Camera((0, 0, 4), (0, 0, 0)), surfaces=[wall], lines=[behind]))
        raster.draw()
        r, _, b = np.asarray(raster.rows())[30, 40, :3].astype(int)
        seen.append(bool(b > r + 50))
    assert seen == [False, True]


def test_a_chosen_colour_map_gives_walls_their_colour(player):
    walls = {wall.name: wall.color for wall in last(player, Opened).render_scene.walls}
    scene = pl.Scene()
    scene.add(pl.Box((0.2, 0.2, 0.2)), pl.Rigid(), name="plain")
    (plain,) = RenderScene.of(scene.build(quiet=True)).walls
    assert plain.color != walls["crate"]
