"""The view in a browser: pages of a real server, on a real player, driven in headless Chromium over its DevTools."""

import base64
import contextlib
import io
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.render.picture import Bar, Lines, Picture, Points, Surface
from pliant.viewer import web
from pliant.viewer.files import Folder
from pliant.viewer.messages import Knob
from pliant.viewer.remote import Remote
from pliant.viewer.web_canvas import Canvas, cut_open, glb
from pliant.viewer.web_panel import TWICE, Slider, bar_html, short

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--use-angle=swiftshader", "--no-first-run",
         "--enable-unsafe-swiftshader", "--disable-background-networking", "--disable-extensions"]  # fmt: skip
WIDTH, HEIGHT = 900, 480  # of the pages [pixels]
SLOW = 300.0  # [s]: nothing takes longer, however many share the cores

# A block of water in the air: without gravity it stays where it is.
SCENE = """
import pliant as pl

def build():
    scene = pl.Scene(particle_radius=0.04)
    scene.add(pl.Box(size=(1.0, 1.0, 0.6), center=(0.5, 0.5, 0.3)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.4, 0.4, 0.4), center=(0.35, 0.7, 0.3)), pl.Fluid(), name="water")
    return scene
"""
FAILING = """
import pliant as pl

def build():
    raise pl.PliantError("the <sluice> of this scene is stuck")
"""


def until(condition: Callable[[], Any], what: str) -> Any:
    """Waits for something to become true, and returns it."""
    end = time.monotonic() + SLOW
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {SLOW:g} s"
        time.sleep(0.05)
    return found


class Page:
    """A tab of a browser: evaluates JavaScript, moves the mouse, looks at itself."""

    def __init__(self, address: str):
        from websockets.sync.client import connect

        self._socket = connect(address, max_size=None)
        self._count, self.events, self.first = 0, [], ""
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.call("Network.enable")

    def call(self, method: str, **parameters: Any) -> dict:
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=SLOW))
            if answer.get("id") == self._count:
                return answer["result"]
            self.events.append(answer)

    def js(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def text(self) -> str:
        return self.js("document.body?.innerText ?? ''")

    def shows(self, text: str) -> None:
        until(lambda: text in self.text, f"the page shows {text!r}")

    def picture(self) -> np.ndarray:
        """What is left of the panel (height, width, 3)."""
        from PIL import Image

        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))[:, : WIDTH - 360].astype(float)

    def click(self, text: str) -> None:
        """Clicks on a button."""
        find = f"[...document.querySelectorAll('button')].find(b => b.innerText.trim() == {text!r})"
        until(lambda: self.js(f"!!{find}"), f"there is a button {text!r}")
        self.js(f"{find}.click()")

    def choose(self, label: str, option: str) -> None:
        """Chooses from a menu."""
        self.js(f"document.getElementById({self.id_of(label)!r}).click()")
        find = f"[...document.querySelectorAll('[role=option]')].find(o => o.innerText.trim() == {option!r})"
        until(lambda: self.js(f"!!{find}"), f"{label} offers {option!r}")
        self.js(f"{find}.click()")

    def slide(self, label: str, share: float) -> None:
        """Presses on the track of a slider, so far along it."""
        track = f"document.getElementById({self.id_of(label)!r}).querySelector('.mantine-Slider-trackContainer')"
        self.js(f"{track}.scrollIntoView({{block: 'center'}})")
        box = json.loads(self.js(f"JSON.stringify({track}.getBoundingClientRect())"))
        at = {"x": box["x"] + share * box["width"], "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def id_of(self, label: str) -> str:
        find = f"[...document.querySelectorAll('label')].find(l => l.innerText.trim() == {label!r})"
        return until(lambda: self.js(f"{find}?.htmlFor"), f"there is a control {label!r}")

    def close(self) -> None:
        self._socket.close()


class Browser:
    """Chromium without a screen, drawing in software."""

    def __init__(self, folder: Path):
        self.process = subprocess.Popen([str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        self._address = next(m[1] for line in lines if (m := re.search(r"listening on ws://(\S+?)/", line)))
        threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()  # or it would block in the end

    def open(self, address: str) -> Page:
        request = urllib.request.Request(f"http://{self._address}/json/new?{address}", method="PUT")
        with urllib.request.urlopen(request, timeout=SLOW) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"])

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(SLOW)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    pytest.importorskip("viser", reason="viser is optional: pip install pliant[web]")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[web.WebView]:
    """A scene that is being shown; it fails until its file is written anew."""
    pytest.importorskip("viser", reason="viser is optional: pip install pliant[web]")
    folder = tmp_path_factory.mktemp("view")
    (folder / "block.py").write_text(FAILING)
    remote = Remote(str(folder / "block.py"), [])
    view = web.WebView(remote, "block", Folder(folder / "out", {}), port=0)
    thread = threading.Thread(target=view.run)
    thread.start()
    yield view
    view.end()
    thread.join(SLOW)
    view.close()
    remote.close()
    assert not remote.alive


@pytest.fixture(scope="module")
def page(browser: Browser, view: web.WebView) -> Iterator[Page]:
    """The page of a small scene, which was wrong at first."""
    page = browser.open(view.address)
    page.shows("Reset tries again")
    page.first = page.text
    (view.folder.path.parent / "block.py").write_text(SCENE)
    page.click("Reset")
    page.shows("particles: water")
    yield page
    page.close()


@pytest.fixture
def paused(page: Page, view: web.WebView) -> Page:
    """The page, at the initial state."""
    if view.moment.playing:
        page.click("Pause")
        until(lambda: not view.moment.playing, "it pauses")
    page.click("Reset")
    until(lambda: view.moment.figures.step == 0, "it is reset")
    return page


def water(view: web.WebView) -> np.ndarray:
    return view.moment.snapshot.clouds["water"].x


def height_seen(page: Page) -> float:
    """How far down the picture particles in the colours of water are, in pixels; 0 where there are none. They have far
    more blue than red, the sky does not."""
    image = page.picture()
    rows = np.nonzero(image[..., 2] - image[..., 0] > 80)[0]
    return float(rows.mean()) if len(rows) > 500 else 0.0


def test_a_failing_scene_shows_its_sentence_and_reset_reads_it_again(page, view):
    assert "the <sluice> of this scene is stuck" in page.first
    assert "sluice" not in page.text and "Reset tries again" not in page.text


def test_the_page_is_whole_and_asks_nobody_else(page, view):
    assert page.js("document.title") == "Pliant: block"
    for text in ("Pliant: block", "speed [m/s]", "gravity.y", "Statistics", "particles: water"):
        assert text in page.text
    asked = [event["params"] for event in page.events if event["method"] == "Network.requestWillBeSent"]
    urls = [request["request"]["url"] for request in asked]
    assert urls and [url for url in urls if not url.startswith(("data:", "blob:", view.address))] == []


def test_particles_are_seen_and_fall(paused, view):
    high = until(lambda: height_seen(paused), "particles are seen")
    paused.click("Play")
    until(lambda: height_seen(paused) > high + 10, "the water is seen to fall")
    assert water(view)[:, 1].mean() < 0.68  # from 0.7


def test_pause_stops_the_time_and_the_page_says_so(page, view):
    if not view.moment.playing:
        page.click("Play")
    page.shows("running")
    page.click("Pause")
    page.shows("paused")
    until(lambda: not view.moment.playing, "the player has paused")
    before = view.moment.figures
    for _ in range(3):  # it answers, and has made no step meanwhile
        last = view.moment
        view._remote.send("show", "speed")
        until(lambda last=last: view.moment is not last, "another moment")
        assert view.moment.figures.step == before.step
    page.shows(f"t = {before.time:.3f} s, paused")


def test_step_and_reset(paused, view):
    start = water(view).copy()
    for k in (1, 2):
        paused.click("Step")
        until(lambda k=k: view.moment.figures.step == k, f"step {k}")
    assert not np.array_equal(water(view), start)
    paused.click("Reset")
    until(lambda: view.moment.figures.step == 0, "it is reset")
    assert np.array_equal(water(view), start)
    paused.shows("t = 0.000 s, paused")


def test_space_plays_even_on_the_button_that_does(paused, view):
    paused.js("[...document.querySelectorAll('button')].find(b => b.innerText.trim() == 'Play').focus()")
    for kind in ("keyDown", "keyUp"):
        paused.call("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", windowsVirtualKeyCode=32, text=" ")
    until(lambda: view.moment.playing, "it plays")
    step = view.moment.figures.step
    until(lambda: view.moment.figures.step > step + 3, "it goes on")
    time.sleep(TWICE)  # after which a click is another wish


def test_a_slider_changes_the_physics(paused, view):
    start = water(view).copy()
    paused.slide("gravity.y", 0.5)  # from -20 to 20 m/s^2: the middle is none
    until(lambda: knob(view, "gravity.y") == 0, "there is no gravity")
    paused.click("Play")
    until(lambda: view.moment.figures.step > 10, "it plays")
    assert np.abs(water(view) - start).max() < 1e-3  # in free fall it would be 5 mm after the first 32 ms
    paused.click("Original values")
    until(lambda: knob(view, "gravity.y") == -9.81, "there is gravity again")
    until(lambda: view.moment.figures.max_speed > 0.1, "it falls")


def knob(view: web.WebView, name: str) -> float:
    return next(knob.value for knob in view.knobs if knob.name == name)


def test_colour_by_another_field(paused, view):
    until(lambda: height_seen(paused), "particles are seen")
    before = paused.picture()
    paused.choose("Colour by", "position.x")
    paused.choose("Colour map", "coolwarm")
    paused.shows("position x [m]")
    until(lambda: (paused.picture()[..., 0] - before[..., 0] > 80).sum() > 500, "half of the water is red")
    assert 0.15 < view.state.low < view.state.high < 0.55  # where the water is
    ends = [paused.js(f"document.getElementById({paused.id_of(f'{end} colour')!r}).value") for end in ("First", "Last")]
    assert [float(end) for end in ends] == pytest.approx([view.state.low, view.state.high], abs=1e-4)
    paused.choose("Colour map", "own")
    paused.choose("Colour by", "speed")
    paused.shows("speed [m/s]")


def test_a_body_can_be_hidden(paused, view):
    until(lambda: height_seen(paused), "particles are seen")
    paused.js(f"document.getElementById({paused.id_of('water')!r}).click()")
    until(lambda: not height_seen(paused), "the water is hidden")
    paused.js(f"document.getElementById({paused.id_of('water')!r}).click()")
    until(lambda: height_seen(paused), "particles are seen")


def test_states_are_saved_and_loaded(paused, view):
    paused.click("Step")
    until(lambda: view.moment.figures.step == 1, "it steps")
    then = water(view).copy()
    paused.click("Save")
    until(lambda: (view.folder.path / "state_0001.npz").exists(), "it is saved")
    paused.click("Reset")
    until(lambda: view.moment.figures.step == 0, "it is reset")
    paused.click("Load")
    until(lambda: view.moment.figures.step == 1, "it is loaded")
    assert np.array_equal(water(view), then)


def test_all_tabs_see_the_same(browser, paused, view):
    other = browser.open(view.address)
    with contextlib.closing(other):
        other.shows("t = 0.000 s, paused")
        other.click("Step")
        until(lambda: view.moment.figures.step == 1, "it steps")
        paused.shows(f"t = {view.moment.figures.time:.3f} s, paused")
        other.call("Page.close")


SERVE = """
import sys
from pliant.viewer.web import serve
serve(sys.argv[1], [], int(sys.argv[2]), ready=lambda address: print(address, flush=True))
"""


def test_a_port_that_is_taken_and_ctrl_c(tmp_path):
    """In a process like that of the command: it says where the page is, and leaves no process behind."""
    pytest.importorskip("viser", reason="viser is optional: pip install pliant[web]")
    (tmp_path / "bad.py").write_text(FAILING)
    with socket.socket() as taken:
        taken.bind((web.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-c", SERVE, str(tmp_path / "bad.py"), str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
    children = descendants(process.pid)
    with urllib.request.urlopen(address, timeout=SLOW) as answer:
        assert b"<html" in answer.read(1000)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=SLOW)
    assert (process.returncode, out) == (0, "") and "Traceback" not in errors
    assert f"Port {port} is taken" in errors and f"bad is at {address}" in errors
    assert children  # the player
    until(lambda: not any(map(running, children)), "no process is left")  # one that Python has notices it by itself


def descendants(pid: int) -> list[int]:
    """Processes that it started, and those that they did."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found += [int(path.parent.name), *descendants(int(path.parent.name))]
    return found


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- parts of it, without a browser ---------------------------------------------------------------------


def test_without_viser_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(PliantError, match=re.escape('pip install "pliant[web]"')):
        web.serve("dam_break", [])


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be_is_refused(port):
    with pytest.raises(PliantError, match=f"between 0 and 65535, got {port}"):
        web.serve("dam_break", [], port)


def test_glb_is_read_by_others(tmp_path):
    """VTK finds what was written; glTF holds linear colours: sRGB 0.5 is 0.2140, 0.04 is 0.0031 (IEC 61966-2-1)."""
    pyvista = pytest.importorskip("pyvista", reason="VTK is optional: pip install pliant[check]")
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float32)
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    colors = np.array([[1, 0, 0], [0, 1, 0], [0.04, 0, 1], [0.5, 0.5, 0.5]])
    (tmp_path / "a.glb").write_bytes(glb(vertices, faces, colors))
    mesh = pyvista.read(tmp_path / "a.glb").combine()
    assert np.array_equal(mesh.points, vertices)
    assert np.array_equal(mesh.cells.reshape(-1, 4)[:, 1:], faces)
    linear = [[1, 0, 0], [0, 1, 0], [0.0031, 0, 1], [0.2140, 0.2140, 0.2140]]
    assert np.allclose(mesh.point_data["COLOR_0"], linear, atol=5e-5)


class FakeScene:
    """What a `Canvas` asks a server for: nodes that take any property."""

    def __init__(self):
        self.nodes: dict[str, SimpleNamespace] = {}

    def __getattr__(self, name: str) -> Callable:
        def add(node: str = "", *_: Any, visible: bool = True, **properties: Any) -> Any:
            if name.startswith("add_"):
                assert node not in self.nodes, "nodes are changed, not added again"
                self.nodes[node] = SimpleNamespace(visible=visible, **properties)
                return self.nodes[node]

        return add

    def shown(self) -> list[str]:
        return sorted(name for name, node in self.nodes.items() if node.visible and name != "/program")


TRIANGLE = np.eye(3, dtype=np.float32), np.array([[0, 1, 2]])


def test_nodes_are_changed_in_place_and_hidden_when_not_needed():
    scene = FakeScene()
    canvas = Canvas(scene)
    x = np.random.default_rng(1).random((5, 3), np.float32)
    lines = Lines(np.zeros((1, 2, 3)))
    canvas.show(Picture(None, points=[Points(x, 0.1), Points(x[:2], 0.2)], lines=[lines]))
    assert scene.shown() == ["/lines/0", "/particles/0", "/particles/1"]
    canvas.show(Picture(None, points=[Points(x[:3] + 1, 0.3, (1, 0, 0.5))]))
    assert scene.shown() == ["/particles/0"]
    node = scene.nodes["/particles/0"]
    assert np.array_equal(node.points, x[:3] + 1) and node.point_size == 0.3
    assert node.colors.dtype == np.uint8 and node.colors.tolist() == [[255, 0, 128]] * 3


def test_coloured_surfaces_appear_once_they_are_read():
    """Of the two files of a surface one is seen while the other is read; a surface of one colour needs no file."""
    scene = FakeScene()
    canvas = Canvas(scene)
    picture = [Picture(None, surfaces=[Surface(TRIANGLE[0] * k, TRIANGLE[1], np.eye(3))]) for k in range(1, 4)]
    canvas.show(picture[0])
    assert canvas.unread and scene.shown() == []
    canvas.settle()
    assert not canvas.unread and scene.shown() == ["/surfaces/0/file0"]
    canvas.show(picture[1])
    assert canvas.unread and scene.shown() == ["/surfaces/0/file0"]
    canvas.settle()
    assert scene.shown() == ["/surfaces/0/file1"]
    canvas.show(picture[1])
    assert not canvas.unread  # it is there already
    canvas.show(picture[2])
    canvas.settle()
    assert scene.shown() == ["/surfaces/0/file0"]
    assert scene.nodes["/surfaces/0/file0"].glb_data == glb(TRIANGLE[0] * 3, TRIANGLE[1], np.eye(3))
    canvas.show(Picture(None, surfaces=[Surface(*TRIANGLE, (1.0, 0.0, 0.0))]))
    assert scene.shown() == ["/surfaces/0/plain"] and scene.nodes["/surfaces/0/plain"].color == (255, 0, 0)


def test_boxes_are_cut_open_and_balls_are_not():
    """Of a box each corner becomes one for each of its three sides; a ball stays as it is."""
    trimesh = pytest.importorskip("trimesh")
    box = trimesh.creation.box()
    which, faces = cut_open(np.asarray(box.vertices), np.asarray(box.faces))
    assert len(which) == 24 and np.array_equal(which[faces], box.faces)
    ball = trimesh.creation.icosphere(3)
    assert len(cut_open(np.asarray(ball.vertices), np.asarray(ball.faces))[0]) == len(ball.vertices)


class FakeGui:
    """Takes the place of viser's where there is one slider."""

    def add_slider(self, label: str, low: float, high: float, step: float, value: float, **_: Any) -> SimpleNamespace:
        assert low <= value <= high and 0 < step < high - low
        self.slider = SimpleNamespace(label=label, low=low, high=high, value=value)
        self.slider.on_update = lambda act: setattr(self, "moved", act)
        return self.slider

    def move(self, value: float) -> None:
        self.slider.value = value
        self.moved(SimpleNamespace(client="somebody"))


def test_a_logarithmic_slider_shows_and_sends_true_values():
    gui, sent = FakeGui(), []
    slider = Slider(gui, Knob("jelly", "young", 1e5, 1e3, 1e9, True, "Pa", ""), lambda knob, value: sent.append(value))
    assert (gui.slider.low, gui.slider.high, gui.slider.value) == (3.0, 9.0, 5.0)
    assert gui.slider.label == "young 1e5 Pa"
    gui.move(6.5)
    assert sent == [pytest.approx(10**6.5)] and gui.slider.label == "young 3.16e6 Pa"
    slider.show(Knob("jelly", "young", 1e7, 1e3, 1e9, True, "Pa", ""))
    assert gui.slider.value == 7.0 and len(sent) == 1


NUMBERS = {"1000": 1000.0, "0.05": 0.05, "1e-6": 1e-6, "2.5e10": 2.5e10, "12346": 12345.6, "-3": -3.0}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_short(text):
    assert short(NUMBERS[text]) == text


def test_a_slider_takes_values_beyond_its_ends():
    gui, sent = FakeGui(), []
    Slider(gui, Knob("", "gravity.y", -24.8, -20.0, 20.0, False, "m/s^2", ""), lambda knob, value: sent.append(value))
    assert gui.slider.low == gui.slider.value == -24.8
    gui.move(0.0)
    assert sent == [0.0]


def test_the_colour_bar_has_round_numbers_where_they_belong():
    text = bar_html(Bar("pressure [Pa]", 0.0, 5000.0, ("water", "grey")))
    assert "pressure [kPa]" not in text and text.count("linear-gradient") == 2
    assert re.findall(r"left: ([\d.]+)%[^>]*>([^<]+)", text) == [
        ("0.00", "0"), ("20.00", "1000"), ("40.00", "2000"), ("60.00", "3000"), ("80.00", "4000"), ("100.00", "5000")
    ]  # fmt: skip
    assert "m/s²" in bar_html(Bar("acceleration [m/s^2]", 0.0, 1.0))
    assert "<b>" not in bar_html(Bar("<b>", 0.0, 1.0))
