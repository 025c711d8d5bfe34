"""The window as a user has it: a real one in a virtual screen (Xvfb), driven by keys and the mouse (xdotool)."""

import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from pliant.commands.cli import app
from pliant.tools.desk import PATIENCE, Desk, missing, virtual_screen

SCENE = """
import pliant as pl

def build():
    scene = pl.Scene(particle_radius=0.04)
    scene.add(pl.Box(size=(1.6, 1.2, 1.0), center=(0.8, 0.6, 0.5)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.5, 0.4, 1.0), center=(0.25, 0.2, 0.5)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.4, 0.4, 0.4), center=(0.9, 0.8, 0.5)), pl.Elastic(young=5e4), name="cube")
    return scene
"""
PIXELS = """
import numpy as np, taichi as ti
from Xlib import X
from pliant.core import backend
from pliant.viewer.screen import Screen
from pliant.viewer.x11 import own_window

backend.start("cpu")
window = ti.ui.Window("pixels", (320, 200), vsync=False)
screen = Screen(window, 320, 200)
print("shared" if screen.shared else "drawn")
_, seen = own_window()
for width, height in ((320, 200), (301, 173)):
    seen.configure(width=width, height=height)
    while tuple(window.get_window_shape()) != (width, height):
        seen.get_geometry()  # the server has heard of it
        window.get_events(ti.ui.PRESS)
    screen.resize(width, height)
    sent = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
    screen.image[:] = sent.view(np.uint32)[:, :, 0] | 0xFF000000
    for _ in range(3):  # Vulkan shows pictures in turn
        screen.show()
    data = seen.get_image(0, 0, width, height, X.ZPixmap, 0xFFFFFFFF).data
    found = np.frombuffer(data, np.uint8).reshape(height, width, 4)
    print(np.abs(found[:, :, :3].astype(int) - sent[:, :, :3]).max())
screen.close()
window.destroy()
"""
needs_screen = pytest.mark.skipif(missing() is not None, reason=f"no virtual screen: {missing()}")


WRONG = SCENE.replace("young=5e4", "young=-1")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A viewer whose scene was wrong at first, and was mended."""
    folder = tmp_path_factory.mktemp("viewer")
    scene = folder / "playground.py"
    scene.write_text(WRONG)
    desk = Desk(folder, scene, "--paused")
    try:
        assert_failure_is_shown(desk)
        scene.write_text(SCENE)
        desk.focus()
        desk.key("r")
        desk.until(lambda line: True)
        yield desk
    finally:
        desk.close()


def assert_failure_is_shown(desk):
    failure = desk.until(lambda line: line["kind"] == "failure", "notice")
    assert "young must be" in failure["text"]
    assert desk.process.poll() is None and not desk.lines()


@pytest.fixture
def start(desk):
    """Paused, at the start, in the middle of a window of the usual size."""
    if desk.now()["playing"]:
        desk.key("space")
    desk.key("r")
    return desk.until(lambda line: line["step"] == 0 and not line["playing"])


@needs_screen
def test_play_pause_step_and_reset(desk, start):
    assert start["size"] == [1280, 720]
    desk.key("space")
    desk.until(lambda line: line["step"] > 3 and line["playing"])
    desk.key("space")
    held = desk.until(lambda line: not line["playing"])
    held = desk.now()
    assert desk.now()["step"] == held["step"]
    desk.key("period")
    desk.until(lambda line: line["step"] == held["step"] + 1)
    desk.key("plus")
    desk.until(lambda line: line["step"] == held["step"] + 2)
    desk.click("Simulation/Step")
    desk.until(lambda line: line["step"] == held["step"] + 3)
    desk.key("r")
    back = desk.until(lambda line: line["step"] == 0)
    assert back["time"] == 0.0
    assert back["middles"] == start["middles"]


@needs_screen
def test_a_slider_changes_the_physics(desk, start):
    """With gravity at zero the cube stays where it is; with gravity back, it falls."""
    desk.click("Simulation/fold ")
    x, y, w, h = desk.until(lambda line: "Simulation/.gravity.y" in line["places"])["places"]["Simulation/.gravity.y"]
    desk.press(x + w / 2, y + 0.8 * h)
    changed = desk.until(lambda line: abs(line["knobs"]["/gravity.y"]) < 0.3)
    desk.key("space")
    later = desk.until(lambda line: line["time"] > 0.15)
    fallen = start["middles"]["cube"][1] - later["middles"]["cube"][1]
    assert abs(fallen) < 0.6 * abs(changed["knobs"]["/gravity.y"]) * later["time"] ** 2 + 1e-4
    desk.click("Simulation/Original values")
    desk.until(lambda line: line["knobs"]["/gravity.y"] == -9.81)
    desk.until(lambda line: line["middles"]["cube"][1] < later["middles"]["cube"][1] - 0.05)
    desk.click("Simulation/fold ")


@needs_screen
def test_colour_by_any_field(desk, start):
    desk.click("View/Colour by")
    desk.click("list/pressure")
    desk.until(lambda line: line["color"] == "pressure")
    for following in ("density", "strain", "stress", "velocity.x", "velocity.y", "velocity.z", "speed"):
        desk.key("c")  # the usual ones, not those of the solvers
        desk.until(lambda line, field=following: line["color"] == field)
    desk.click("View/Colour by")
    desk.click("list/speed")
    desk.until(lambda line: line["color"] == "speed")


@needs_screen
def test_a_body_is_dragged_by_the_mouse(desk, start):
    desk.key("space")
    x, y = start["pixels"]["cube"]
    desk.point(x, y)
    desk.do("keydown", "ctrl")
    try:
        desk.do("mousedown", 1)
        desk.now()
        for k in range(1, 6):
            desk.point(x + 25 * k, y - 12 * k)
            desk.now()
        moved = desk.until(lambda line: line["middles"]["cube"][0] > start["middles"]["cube"][0] + 0.1)
        assert moved["middles"]["cube"][1] > start["middles"]["cube"][1] - 0.1  # it hangs from the hand
    finally:
        desk.do("mouseup", 1)
        desk.do("keyup", "ctrl")
    assert moved["camera"] == pytest.approx(start["camera"])
    desk.until(lambda line: line["middles"]["cube"][1] < moved["middles"]["cube"][1] - 0.15)  # and falls when let go


@needs_screen
def test_the_camera_follows_the_mouse(desk, start):
    width, height = start["size"]
    away = np.linalg.norm

    def drag(button):
        desk.point(0.3 * width, 0.5 * height)
        desk.now()
        desk.do("mousedown", button)
        desk.now()
        desk.point(0.3 * width + 60, 0.5 * height + 20)
        desk.now()
        desk.do("mouseup", button)

    for button in (1, 2, 3):
        before = desk.now()["camera"]
        drag(button)
        desk.until(lambda line, seen=before: away(np.subtract(line["camera"], seen)) > 0.01)
    before = desk.now()["camera"]
    desk.do("click", 4)
    desk.until(lambda line: away(np.subtract(line["camera"], before)) > 0.01)
    desk.key("1")
    front = desk.until(lambda line: abs(line["camera"][0] - 0.8) < 0.05)
    assert front["camera"][2] > 1.0
    desk.key("4")
    desk.until(lambda line: line["camera"][0] > 2.0 and abs(line["camera"][2] - 0.5) < 0.05)
    desk.key("8")  # the same direction, from farther away if panels have grown since
    out = np.subtract(start["camera"], (0.8, start["camera"][1], 0.5))

    def is_back(line):
        now = np.subtract(line["camera"], (0.8, start["camera"][1], 0.5))
        return out @ now > 0.999 * away(out) * away(now) and 0.7 < away(now) / away(out) < 1.5

    desk.until(is_back)


@needs_screen
def test_pictures_films_and_states_are_written(desk, start):
    from PIL import Image

    desk.key("p")
    shot = desk.until(lambda line: True, "screenshot")
    with Image.open(shot["path"]) as picture:
        assert picture.size == (1280, 720)
        assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 1000
    desk.key("space")
    desk.key("v")
    desk.until(lambda line: line["recording"] > 1.0)
    desk.key("v")
    film = desk.until(lambda line: True, "film")
    assert not film["error"] and film["frames"] >= 15 and os.path.getsize(film["path"]) > 5000
    desk.key("k")
    desk.until(lambda line: "saved the state" in line["text"], "notice")
    saved = desk.now()
    desk.until(lambda line: line["time"] > saved["time"] + 0.05)
    desk.key("l")
    desk.until(lambda line: "loaded" in line["text"], "notice")
    assert desk.out.joinpath("view.json").exists()


@needs_screen
def test_another_size_of_the_window(desk, start):
    desk.do("windowsize", desk.window, 900, 640)
    small = desk.until(lambda line: line["size"] == [900, 640])
    assert all(x + w <= 900 and y + h <= 641 for x, y, w, h in small["places"].values())
    desk.do("windowsize", desk.window, 1280, 720)
    desk.until(lambda line: line["size"] == [1280, 720])


@needs_screen
@pytest.mark.parametrize(("server", "way"), [((), "shared"), (("-extension", "MIT-SHM"), "drawn")])
def test_every_pixel_reaches_the_screen(server, way):
    """Straight from memory where the X server can read it, and through Vulkan where it cannot."""
    process, env = virtual_screen(*server)
    try:
        done = subprocess.run([sys.executable, "-c", PIXELS], env=env, capture_output=True, text=True, timeout=PATIENCE)
    finally:
        process.terminate()
        process.wait()
    assert done.stdout.split()[-3:] == [way, "0", "0"], done.stderr


@needs_screen
def test_help_and_panels_come_and_go(desk, start):
    desk.key("Tab")
    desk.until(lambda line: "View/Colour by" not in line["places"])
    desk.key("Tab")
    desk.until(lambda line: "View/Colour by" in line["places"])
    desk.key("h")
    desk.until(lambda line: any(place.startswith("Keys and mouse") for place in line["places"]))
    desk.key("Escape")
    desk.until(lambda line: not any(place.startswith("Keys and mouse") for place in line["places"]))


@needs_screen
def test_zz_closing_leaves_no_process_behind(desk):
    player = desk.now()["player"]
    desk.key("Escape")
    assert desk.process.wait(PATIENCE) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(player, 0)
    assert "Traceback" not in desk.log.read_text()


@needs_screen
def test_a_signal_ends_a_viewer_without_a_scene(tmp_path):
    scene = tmp_path / "wrong.py"
    scene.write_text(WRONG)
    desk = Desk(tmp_path, scene)
    try:
        assert_failure_is_shown(desk)
        desk.process.terminate()
        assert desk.process.wait(PATIENCE) == 143
    finally:
        desk.close()


@pytest.mark.parametrize(("display", "words"), [("", "there is no display"), (":987", "':987' cannot be opened")])
def test_without_a_screen_one_sentence_offers_the_browser(display, words, monkeypatch):
    monkeypatch.setenv("DISPLAY", display)
    done = CliRunner().invoke(app, ["view", "dam_break"])
    assert done.exit_code == 2 and words in done.output and "pliant view --web" in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_without_a_vulkan_driver_one_sentence_offers_the_browser():
    """In a process of its own: a driver that was found once is there for good."""
    nowhere = {"VK_ICD_FILENAMES": "/nowhere", "VK_DRIVER_FILES": "/nowhere"}
    command = [sys.executable, "-m", "pliant", "view", "dam_break"]
    done = subprocess.run(command, env=os.environ | nowhere, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "no Vulkan driver" in done.stderr and "pliant view --web" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["dam_brake"], "unknown scene 'dam_brake'"), (["dam_break", "--scale", "9"], "--scale must be in"),
     (["dam_break", "--size", "big"], "--size"), (["dam_break", "--web", "--port", "99999"], "port")],
)  # fmt: skip
def test_wrong_requests_are_refused_in_a_sentence(arguments, words):
    done = CliRunner().invoke(app, ["view", *arguments])
    assert done.exit_code == 2 and words in done.output
