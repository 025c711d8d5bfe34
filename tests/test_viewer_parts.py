"""Parts of the viewer that need no window: the camera, the mouse, what is drawn of a moment, files."""

import time

import numpy as np
import pytest
import taichi as ti

from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.render.camera import Camera
from pliant.render.colors import colormap
from pliant.render.render_scene import CloudStyle, RenderScene, RenderWall
from pliant.viewer.drawing import Drawing
from pliant.viewer.files import Folder, Recorder
from pliant.viewer.messages import Figures, Moment, Opened
from pliant.viewer.navigation import VIEWS, Navigator, Room
from pliant.viewer.notices import KEYS
from pliant.viewer.state import ViewState
from pliant.viewer.steering import Steering
from pliant.viewer.ui import Pointer

BOX = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 1.0]])
SIZE = (1280, 720)


@pytest.fixture
def navigator():
    return Navigator(Camera((3.0, 2.0, 4.0), (1.0, 0.5, 0.5), fov=40.0), BOX)


# --- the camera -------------------------------------------------------------------------------------


def test_a_camera_is_taken_as_it_is(navigator):
    assert navigator.camera.position == pytest.approx((3.0, 2.0, 4.0))
    assert navigator.camera.target == pytest.approx((1.0, 0.5, 0.5))


def test_orbiting_keeps_target_and_distance_and_never_turns_over(navigator):
    navigator.orbit(200.0, 50.0, 720)
    camera = navigator.camera
    assert camera.target == pytest.approx((1.0, 0.5, 0.5))
    assert camera.distance == pytest.approx(Camera((3.0, 2.0, 4.0), (1.0, 0.5, 0.5)).distance)
    assert camera.position != pytest.approx((3.0, 2.0, 4.0))
    navigator.orbit(0.0, 1e5, 720)
    assert navigator.camera.axes()[1, 1] > 0  # up is still up


def test_panning_keeps_the_target_under_the_hand(navigator):
    grasped = np.array(navigator.camera.target)
    x, y = navigator.pixel(grasped, *SIZE)
    assert (x, y) == pytest.approx((640, 360))
    navigator.pan(30.0, -20.0, 720)
    assert navigator.pixel(grasped, *SIZE) == pytest.approx((x + 30, y - 20), abs=0.5)


def test_zooming_and_its_ends(navigator):
    away = navigator.distance
    navigator.zoom(1.0)
    assert navigator.distance < away
    navigator.zoom(-1.0)
    assert navigator.distance == pytest.approx(away)
    navigator.zoom_drag(-100.0, 720)
    assert navigator.distance > away * 0.1 and navigator.distance != pytest.approx(away)
    navigator.zoom(1e4)
    assert 0 < navigator.distance < 0.01
    navigator.zoom(-1e4)
    assert np.isfinite(navigator.distance)


def test_flying_goes_where_the_camera_looks(navigator):
    before, forward = np.array(navigator.camera.position), navigator.camera.axes()[2]
    navigator.fly(1.0, 0.0, 0.0, 0.5)
    moved = np.array(navigator.camera.position) - before
    assert moved @ forward == pytest.approx(np.linalg.norm(moved)) and np.linalg.norm(moved) > 0.1


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("room", [Room(*SIZE), Room(*SIZE, side=260, top=40, bottom=220), Room(400, 900)])
def test_views_fit_the_scene_into_what_panels_leave_free(navigator, name, room):
    navigator.frame(room, VIEWS[name])
    corners = [(x, y, z) for x in BOX[:, 0] for y in BOX[:, 1] for z in BOX[:, 2]]
    seen = np.array([navigator.pixel(corner, room.width, room.height) for corner in corners])
    low, high = seen.min(axis=0), seen.max(axis=0)
    assert (low >= (room.side, room.top)).all()
    assert (high <= (room.width - room.side, room.height - room.bottom)).all()
    free = np.array(room.free)
    assert ((high - low) / free).max() > 0.8  # and it fills that
    towards = np.subtract(navigator.camera.position, navigator.camera.target)
    assert towards @ VIEWS[name] / np.linalg.norm(towards) / np.linalg.norm(VIEWS[name]) > 0.99


def test_a_hand_moves_in_the_plane_of_what_it_holds(navigator):
    point = np.array([0.3, 0.4, 0.2])
    x, y = navigator.pixel(point, *SIZE)
    np.testing.assert_allclose(navigator.under(x, y, *SIZE, point), point, atol=1e-6)
    there = navigator.under(x + 50, y, *SIZE, point)
    right, up, forward = navigator.camera.axes()
    assert (there - point) @ right > 0.1
    assert np.abs([(there - point) @ up, (there - point) @ forward]).max() < 1e-9


# --- the mouse --------------------------------------------------------------------------------------


class Hand:
    """Plays the mouse to a Steering."""

    def __init__(self, navigator):
        self.held, self.sent, self.at = set(), [], Pointer(600.0, 300.0)
        self.found = ("cube", np.array([1.0, 0.5, 0.5]))
        self.steering = Steering(lambda *keys: bool(self.held & set(keys)), lambda _: self.found,
                                 lambda *command: self.sent.append(command))  # fmt: skip
        self.steering.navigator = navigator

    def move(self, dx, dy, keys=(), captured=False, wheel=0.0):
        before, self.at = self.at, Pointer(self.at.x + dx, self.at.y + dy, wheel=wheel)
        return self.steering.follow(before, self.at, list(keys), captured, SIZE, 0.1)

    def drag(self, button, *held, captured=False):
        self.held |= {button, *held}
        self.move(0, 0, [button], captured)
        self.move(40, 20)
        self.held -= {button, *held}
        self.move(0, 0)


@pytest.fixture
def hand(navigator):
    return Hand(navigator)


def changed(hand, action):
    before = (hand.steering.navigator.camera, hand.steering.navigator.distance)
    action()
    return before != (hand.steering.navigator.camera, hand.steering.navigator.distance)


def test_each_button_leads_the_camera(hand):
    n = hand.steering.navigator
    target, distance = n.target.copy(), n.distance
    assert changed(hand, lambda: hand.drag(ti.ui.LMB))
    np.testing.assert_array_equal(n.target, target)
    assert changed(hand, lambda: hand.drag(ti.ui.MMB))
    assert (n.target != target).any() and n.distance == distance
    target = n.target.copy()
    assert changed(hand, lambda: hand.drag(ti.ui.LMB, ti.ui.SHIFT))
    assert (n.target != target).any()
    assert changed(hand, lambda: hand.drag(ti.ui.RMB))
    assert n.distance != distance
    assert changed(hand, lambda: hand.move(0, 0, wheel=1.0))
    assert not hand.sent


def test_what_is_meant_for_a_panel_moves_nothing(hand):
    assert not changed(hand, lambda: hand.drag(ti.ui.LMB, captured=True))
    assert not changed(hand, lambda: hand.move(0, 0, captured=True, wheel=2.0))


@pytest.mark.parametrize("key", [ti.ui.CTRL, "g"])
def test_grabbing_holds_drags_and_lets_go(hand, key):
    n, point = hand.steering.navigator, hand.found[1]
    hand.at = Pointer(*n.pixel(point, *SIZE))
    seen = np.array([hand.at.x, hand.at.y])
    assert not changed(hand, lambda: hand.drag(ti.ui.LMB, key))
    assert [command[0] for command in hand.sent] == ["grab", "drag", "release"]
    assert hand.sent[0][1:] == ("cube", tuple(point))
    np.testing.assert_allclose(n.pixel(np.array(hand.sent[1][1]), *SIZE), seen + (40, 20), atol=1e-6)


def test_nothing_is_grabbed_where_there_is_nothing(hand):
    hand.found = None
    hand.drag(ti.ui.LMB, ti.ui.CTRL)
    assert not hand.sent


def test_keys_fly(hand):
    hand.held = {"w"}
    assert changed(hand, lambda: hand.move(0, 0))
    hand.held = {"a", "d"}
    assert not changed(hand, lambda: hand.move(0, 0))


# --- what is drawn ----------------------------------------------------------------------------------


def cube_mesh():
    import trimesh

    box = trimesh.creation.box((0.2, 0.2, 0.2))
    return TriMesh(np.array(box.vertices), np.array(box.faces))


@pytest.fixture
def scene():
    rng = np.random.default_rng(0)
    walls = [RenderWall("tank", np.zeros((12, 2, 3)), cube_mesh(), container=True),
             RenderWall("rock", np.zeros((12, 2, 3)), cube_mesh())]  # fmt: skip
    bodies = [CloudStyle("water", "water", 0.02), CloudStyle("jelly", "honey", 0.02, fluid=False)]
    bodies += [CloudStyle("sand", "sand", 0.02, fluid=False), CloudStyle("sand_grains", "sand", 0.005, False, True)]
    opened = Opened("test", RenderScene(walls, bodies, BOX, 2.0), [], {"speed": "m/s", "pressure": "Pa"}, {}, [])
    clouds = {body.name: Cloud((rng.random((50, 3)) * BOX[1]).astype(np.float32), {"speed": np.linspace(0, 2, 50)},
                               {"speed": "m/s"}) for body in bodies}  # fmt: skip
    skin = cube_mesh()
    skin.fields |= {"normal": np.tile((0.0, 1.0, 0.0), (len(skin.vertices), 1)), "speed": np.ones(len(skin.vertices))}
    figures = Figures(0.5, 1e-3, 3, 10.0, 0.1, {}, {}, 0.0, 1.0, 0.0)
    return opened, Moment(Snapshot(3, 0.5, clouds, {}, {"jelly_skin": skin}), figures, True)


CAMERA = Camera((0, 0, 5), (0, 0, 0))


def draw(scene, drawing=None, **choices):
    return (drawing or Drawing()).draw(*scene, ViewState(**choices), CAMERA)


def test_everything_is_drawn_once(scene):
    drawn = draw(scene)
    assert drawn.points == ["water", "sand"]  # sand as its grains
    assert drawn.surfaces == ["rock", "jelly"]
    assert len(drawn.picture.lines) == 1 and drawn.picture.shadow > 0
    assert drawn.picture.points[1].radius == pytest.approx(1.1 * 0.005)
    assert (drawn.low, drawn.high, drawn.field, drawn.unit) == (0.0, 2.0, "speed", "m/s")
    assert drawn.maps == ("water", "honey", "sand")


def test_choices_change_what_is_drawn(scene):
    assert draw(scene, solid="spheres").points == ["water", "jelly", "sand"]
    assert draw(scene, grains=False).picture.points[1].radius == pytest.approx(1.1 * 0.02)
    assert draw(scene, hidden={"water", "rock"}).points == ["sand"]
    assert draw(scene, hidden={"sand"}).points == ["water"]
    assert draw(scene, hidden={"rock"}).surfaces == ["jelly"]
    assert len(draw(scene, walls="wireframe").picture.lines) == 2
    assert not draw(scene, walls="hidden").picture.lines
    assert draw(scene, shadow=False).picture.shadow == 0
    assert draw(scene, colors="viridis").maps == ("viridis",)


def test_colours_follow_the_range(scene):
    drawn = draw(scene, auto=False, low=0.5, high=1.5)
    speed = scene[1].snapshot.clouds["water"].fields["speed"]
    np.testing.assert_allclose(drawn.picture.points[0].colors, colormap(speed, 0.5, 1.5, "water"), atol=1e-6)
    assert draw(scene, auto=False, low=1.0, high=1.0).high > 1.0


def test_an_automatic_range_grows_at_once_and_shrinks_slowly(scene):
    opened, moment = scene
    for cloud in moment.snapshot.clouds.values():
        cloud.fields = {"pressure": np.linspace(0, 100, 50)}
    for mesh in moment.snapshot.meshes.values():
        mesh.fields["pressure"] = np.zeros(len(mesh.vertices))
    drawing = Drawing()
    first = draw(scene, drawing).high
    assert first == pytest.approx(99, abs=1)
    for cloud in moment.snapshot.clouds.values():
        cloud.fields["pressure"] = np.linspace(0, 10, 50)
    second = draw(scene, drawing).high
    assert 0.9 * first < second < first
    for cloud in moment.snapshot.clouds.values():
        cloud.fields["pressure"] = np.linspace(0, 500, 50)
    assert draw(scene, drawing).high == pytest.approx(495, abs=5)


@pytest.mark.parametrize(("flip", "side"), [(False, 1), (True, -1)])
def test_a_clipping_plane_leaves_one_side(scene, flip, side):
    drawn = draw(scene, clip="x", clip_at=0.25, clip_flip=flip)
    whole = draw(scene)
    for group, all_of_it in zip(drawn.picture.points, whole.picture.points, strict=True):
        assert 0 < len(group.x) < len(all_of_it.x)
        assert (side * group.x[:, 0] <= side * 0.5).all()
        assert len(group.colors) == len(group.x)


def test_a_spring_is_drawn(scene):
    opened, moment = scene
    moment.grip = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert len(draw(scene).picture.lines) == 2


def test_fluid_surfaces_are_made_beside(scene):
    pytest.importorskip("pysplashsurf")
    opened, moment = scene
    x = np.stack(np.meshgrid(*[np.arange(6) * 0.04 + 0.5] * 3), -1).reshape(-1, 3).astype(np.float32)
    moment.snapshot.clouds["water"] = Cloud(x, {"speed": np.ones(len(x))}, {"speed": "m/s"})
    drawing = Drawing()
    assert "water" in draw(scene, drawing, fluid="surface").points  # not there yet
    end = time.monotonic() + 120
    while not drawing.surfacer.fresh and time.monotonic() < end:
        time.sleep(0.01)
    assert draw(scene, drawing, fluid="surface").surfaces == ["rock", "water", "jelly"]
    assert "water" in draw(scene, drawing, fluid="spheres").points
    process = drawing.surfacer._process
    drawing.surfacer.close()
    assert not process.is_alive() and not drawing.surfacer.error


# --- files ------------------------------------------------------------------------------------------


def test_names_of_files_are_never_taken_twice(tmp_path):
    folder = Folder(tmp_path / "view", {"scene": "dam_break"})
    first = folder.next("state", "npz")
    assert first.name == "state_0001.npz" and (tmp_path / "view" / "view.json").exists()
    first.write_bytes(b"")
    assert folder.next("state", "npz").name == "state_0002.npz"
    assert folder.next("picture", "png").name == "picture_0001.png"
    assert folder.states() == {first.stem: first}


def test_a_folder_that_cannot_be_written_is_told_of(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PliantError, match="cannot write"):
        Folder(tmp_path / "file" / "view", {}).next("state", "npz")


def test_a_film_keeps_time_by_the_clock(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    now = [5.0]
    recorder = Recorder(tmp_path / "film.mp4", lambda: now[0])
    picture = np.zeros((64, 96, 3), np.uint8)
    assert not recorder.due
    for late, frames in ((0.11, 4), (0.12, 4), (0.21, 7), (0.5, 15)):
        now[0] = 5.0 + late
        assert recorder.due == (recorder.count < frames)
        recorder.add(picture)
        assert recorder.count == frames and recorder.seconds == pytest.approx(late) and not recorder.due
    with pytest.raises(PliantError, match="another size"):
        recorder.add(np.zeros((32, 32, 3), np.uint8))
    recorder.close()
    assert not recorder.error and (tmp_path / "film.mp4").stat().st_size > 500


def test_a_film_that_cannot_be_written_says_why(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    (tmp_path / "file").write_text("")
    now = [5.0]
    recorder = Recorder(tmp_path / "file" / "film.mp4", lambda: now[0])
    now[0] += 0.1
    recorder.add(np.zeros((64, 96, 3), np.uint8))
    recorder.close()
    assert recorder.error


def test_every_key_is_in_the_help():
    from pliant.viewer.window import PRESSED

    known = {" ": "Space", ti.ui.TAB: "Tab", ti.ui.ESCAPE: "Esc"}
    words = {word for keys, _ in KEYS for word in keys.replace(" to ", " ").split()} | {str(k) for k in range(2, 7)}
    assert {known.get(key, key.upper()) for key in PRESSED} <= words
