"""The window: shows what the player tells, passes on what the user wants.

GGUI gives a window, keys and the mouse. What is in it is one image: the picture, drawn by `Raster`, and the panels over
it. The simulation runs in a process of its own (`Remote`), so nothing here waits for a step.
"""

import contextlib
import copy
import dataclasses
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import taichi as ti

from pliant.core import backend
from pliant.core.processes import asked_to_end
from pliant.errors import PliantError
from pliant.io.png import write_png
from pliant.render.camera import Camera
from pliant.render.coloring import label
from pliant.render.overlay import overlay
from pliant.render.picture import Bar, Lines, Picture, Points, Surface
from pliant.render.raster import Raster
from pliant.render.renderer import elsewhere
from pliant.render.vulkan import available
from pliant.sim.fields import USUAL
from pliant.viewer.drawing import Drawing, Drawn
from pliant.viewer.files import Folder, Recorder
from pliant.viewer.messages import COMMANDS, Moment, Notice, Opened
from pliant.viewer.navigation import VIEWS, Navigator, Room
from pliant.viewer.notices import Extras
from pliant.viewer.panels import SIDE, Panels
from pliant.viewer.remote import Remote
from pliant.viewer.report import Report
from pliant.viewer.screen import Screen
from pliant.viewer.state import LIMITS, ViewState
from pliant.viewer.statistics import STATISTICS, History
from pliant.viewer.steering import Steering
from pliant.viewer.ui import MARGIN, Pointer, Ui
from pliant.viewer.x11 import Ears, missing_display

RATE = 60.0  # pictures a second, at most
QUIET = 0.1  # [s] between looks at the panels when neither the mouse nor a key was touched and nothing is drawn
GLANCE = 0.005  # [s] between looks at mouse and player when there is nothing to draw
BUSY = 0.1  # [s] between pictures while there is nothing to see but that the player works
SHARE = 1.5  # times what the last picture took: how long until the next one, unless the user does something
STALE = 0.5  # [s] after which the window is drawn again even if nothing has changed
SMALLEST = 100  # pixels across: a smaller window, or one that is folded up, is not drawn
OFFER = "`pliant view --web` shows the same scene in a browser."
PRESSED = {
    " ": ("toggle",), "n": ("step",), ".": ("step",), "+": ("step",), "r": ("reset",), "f": ("frame",),
    "h": ("help",), ti.ui.TAB: ("panels",), ti.ui.ESCAPE: ("quit",), "c": ("next color",), "v": ("record",),
    "x": ("pin",),
    "p": ("screenshot",), "k": ("save",), "l": ("load",), "8": ("scene view",), "9": ("close view",),
    **{str(k + 1): ("view", name) for k, name in enumerate(VIEWS)},
}  # fmt: skip
EMPTY = Picture(Camera((0.0, 0.6, 4.0), (0.0, 0.3, 0.0)), ground=0.0)  # until there is a scene
TRIANGLE = np.eye(3)
FIRST = dataclasses.replace(  # one of each kind, so that everything is compiled while the player builds the scene
    EMPTY, points=[Points(TRIANGLE, 0.1)], surfaces=[Surface(TRIANGLE, np.array([[0, 1, 2]]), (1.0, 1.0, 1.0))],
    lines=[Lines(TRIANGLE[None, :2])],
)  # fmt: skip


def view(scene: str, settings: list[str], folder: Path, size: tuple[int, int] = (1280, 720), scale: float = 1.0,
         state: str | None = None, playing: bool = True, report: Path | None = None) -> int:  # fmt: skip
    """Opens a window on a scene, and returns 0 once it is closed, or the number of the signal that did it.

    `scene` is a name or a file, `settings` are options of its build() as "name=value". Files go to `folder`. `size` is
    the window's width and height [pixels], `scale` how large its panels are, 0.5 to 3; `state` a saved state to begin
    with. `report` is a file that gets lines of JSON on what the window shows and how fast, for tests and measurements.
    """
    missing = available() or missing_display()
    if missing:
        raise PliantError(f"no window can be opened: {missing} {OFFER}")
    remote = Remote(scene, settings, state)  # first: it takes longest
    try:
        if not playing:
            remote.send("pause")
        facts = {"scene": scene, "settings": settings, "state": state}
        wish: list[int] = []
        with asked_to_end(wish.append):
            Window(remote, Folder(folder, facts), size, scale, report).run(wish)
            return wish[0] if wish else 0
    finally:
        remote.close()


class Window:
    """One window on one player."""

    def __init__(self, remote: Remote, folder: Folder, size: tuple[int, int], scale: float, report: Path | None):
        self.remote, self.folder = remote, folder
        self.state, self.ended = ViewState(), False
        self.opened: Opened | None = None
        self.moment: Moment | None = None
        self._moments = 0  # how many there were
        self.drawn: Drawn | None = None
        self._history = History()
        self.extras = Extras(history=self._history.series)
        self._frames: deque[tuple[float, float]] = deque(maxlen=30)  # when they were drawn, and for how long
        self._overlay: np.ndarray | None = None  # the panels
        self._laid_out = 0.0  # when
        self._lively = False  # whether the user did something just now
        self._busy_since = 0.0
        self._recorder: Recorder | None = None
        self._report = Report(report)
        backend.start("cpu")
        title = f"Pliant: {Path(str(folder.facts['scene'])).stem}"
        try:
            self._window = ti.ui.Window(title, size, vsync=False)
        except RuntimeError as error:
            raise PliantError(f"no window can be opened: {' '.join(str(error).split())}. {OFFER}") from error
        self._screen, self._ears = Screen(self._window, *size), Ears()
        self.size = size
        self._unframed = False  # whether the scene is to be framed once the panels are there
        self._raster, self._ui, self._panels, self._drawing = Raster(*size), Ui(scale), Panels(), Drawing()
        for picture in (FIRST, EMPTY):
            self._raster.load(picture)
            self._raster.draw()
        self._pointer = Pointer(0.0, 0.0)
        self._steering = Steering(self._window.is_pressed, self._held, remote.send)
        self._seen: Any = None  # what the picture on screen was made of
        self._fresh = self._urgent = False  # whether there is something new since then, and whether the user did it
        self._last_drawn = 0.0

    @property
    def navigator(self) -> Navigator | None:
        return self._steering.navigator

    def run(self, wish: list[int]) -> None:
        """Until it is closed, or a signal came."""
        last = time.perf_counter()
        try:
            while self._window.running and not self.ended and not wish:
                now = time.perf_counter()
                self._resize()
                self._fresh |= self._hear_player(now)
                self._urgent |= self._hear_user(now, now - last)
                last = now
                if not self._draw(now):
                    time.sleep(GLANCE)
        finally:
            self._close()

    def _close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
        self._ears.close()
        self._drawing.surfacer.close()
        self._report.close()
        self._screen.close()
        with elsewhere():
            self._window.destroy()

    # --- the player -------------------------------------------------------------------------------------

    def _hear_player(self, now: float) -> bool:
        news = self.remote.receive()
        for message in news:
            if isinstance(message, Opened):
                self._open(message)
            elif isinstance(message, Moment):
                self._take(message, now)
            else:
                self._notice(message, now)
        if self.extras.busy:
            self.extras.busy_seconds = now - self._busy_since
        return bool(news)

    def _open(self, opened: Opened) -> None:
        if self.navigator is None or self.opened is None or self.opened.name != opened.name:
            camera = opened.render_scene.view(0.0, self.size[0] / self.size[1])
            self._steering.navigator = Navigator(camera, opened.render_scene.bounds)
            self._unframed = True
        if self.opened is None:
            self.state.begin(opened.render_scene.look, opened.fields)
        self.opened, self.moment, self.drawn = opened, None, None
        if self.navigator is not None:
            self.navigator.bounds = np.asarray(opened.render_scene.bounds, float)
        self.extras.messages, self.extras.failure = [Notice("info", note) for note in opened.notes], ""
        self._ask_for_fields()

    def _take(self, moment: Moment, now: float) -> None:
        self.moment, self._moments = moment, self._moments + 1
        self.state.playing = moment.playing
        if moment.knobs is not None and self.opened is not None:
            self.opened.knobs = moment.knobs
        self._history.add(moment.figures, self.extras.fps, now)

    def _notice(self, notice: Notice, now: float) -> None:
        if notice.kind == "busy":
            if not self.extras.busy:
                self._busy_since = now
            self.extras.busy = notice.text
        elif notice.kind == "failure":
            self.extras.failure = notice.text
        else:
            self.extras.messages.append(notice)
        self._report.line(event="notice", kind=notice.kind, text=notice.text)

    def _ask_for_fields(self) -> None:
        self.remote.send("show", self.state.color, self.state.grains, self.state.solid == "mesh")

    # --- the user ---------------------------------------------------------------------------------------

    @property
    def _room(self) -> Room:
        """The window, and what panels leave free of it."""
        if not self.state.panels:
            return Room(*self.size)
        bottom = sum(self._ui.height_of(panel) + MARGIN for panel in (STATISTICS, "Colours"))
        return Room(*self.size, side=(SIDE + MARGIN) * self._ui.scale, bottom=bottom * self._ui.scale)

    def _hear_user(self, now: float, seconds: float) -> bool:
        """Keys, mouse and panels. True if the user did something."""
        window, (width, height) = self._window, self.size
        keys = [event.key for event in window.get_events(ti.ui.PRESS)]
        released = [event.key for event in window.get_events(ti.ui.RELEASE)]
        heard, wheel = self._ears.listen()
        x, y = window.get_cursor_pos()
        before, down = self._pointer, window.is_pressed(ti.ui.LMB)
        tapped = ti.ui.LMB in keys and ti.ui.LMB in released and not down
        self._pointer = pointer = Pointer(x * width, (1 - y) * height, down, wheel, tapped)
        lively, did = self._lively, False
        self._lively = bool(keys or released or heard or pointer != before)
        if lively or self._lively or now - self._laid_out > QUIET:
            did = self._lay_out(now)
        for key in keys + heard:
            if key in PRESSED:
                self._obey(*PRESSED[key])
        if self._unframed and self.moment is not None:
            self._unframed = self.drawn is None  # once more when the colour bar is there, too
            self._do_frame()
            did = True
        moved = self._steering.follow(before, pointer, keys, self._ui.captures, self.size, seconds)
        return bool(keys or heard or did or moved or wheel or (before.x, before.y) != (pointer.x, pointer.y))

    def _lay_out(self, now: float) -> bool:
        """Brings the panels up to date. True if the user used them."""
        self._laid_out = now
        self._ui.begin(self._pointer, *self.size)
        commands = self._panels.draw(self._ui, self.state, self.opened, self.moment, self.extras)
        self._overlay = self._ui.end()
        self._fresh |= self._ui.changed
        for command in commands:
            self._obey(*command)
        return bool(commands)

    def _held(self, pointer: Pointer) -> tuple[str, np.ndarray] | None:
        """The body, or wall, that is seen at the pointer, and where."""
        hit = self._raster.pick(int(pointer.x), int(pointer.y)) if self.drawn is not None else None
        if hit is None or self.drawn is None:
            return None
        names = self.drawn.points if hit.kind == "points" else self.drawn.surfaces
        return names[hit.group], np.asarray(hit.point, float)

    # --- commands ---------------------------------------------------------------------------------------

    def _obey(self, name: str, *args: Any) -> None:
        """A wish of the user's: what concerns the window is done here, the rest is passed on."""
        own = getattr(self, "_do_" + name.replace(" ", "_"), None)
        try:
            if own is not None:
                own(*args)
            elif name in COMMANDS:
                self.remote.send(name, *args)
        except PliantError as error:
            self.extras.messages.append(Notice("error", str(error)))

    def _do_reset(self) -> None:
        self.extras.messages.clear()
        self.extras.failure = ""
        self.remote.send("reset")

    def _do_pin(self, name: str = "") -> None:
        """Of the body of that name, or of the one at the pointer."""
        held = None if name or self._ui.captures else self._held(self._pointer)
        if name or held is not None:
            self.remote.send("pin", name or held[0])  # type: ignore[index]

    def _do_limit(self, name: str) -> None:
        self.state.limit = name
        self.remote.send("limit", LIMITS[name])

    def _do_help(self) -> None:
        self.state.help = not self.state.help

    def _do_panels(self) -> None:
        self.state.panels = not self.state.panels

    def _do_quit(self) -> None:
        if self.state.help:  # the first wish is for the help to go
            self.state.help = False
        else:
            self.ended = True

    def _do_next_color(self) -> None:
        if self.opened is not None:
            known = [name for name in self.opened.fields if name in USUAL or name == self.state.color]
            self.state.color_by(known[(known.index(self.state.color) + 1) % len(known)])

    def _do_frame(self) -> None:
        if self.navigator is not None:
            self.navigator.frame(self._room)

    def _do_view(self, name: str) -> None:
        if self.navigator is not None:
            self.navigator.frame(self._room, VIEWS[name])

    def _do_scene_view(self) -> None:
        """As the scene's own camera sees it now, or as it is framed if it has none."""
        if self.navigator is not None and self.opened is not None:
            moment = self.moment.snapshot.time if self.moment is not None else 0.0
            self.navigator.take(self.opened.render_scene.view(moment, self.size[0] / self.size[1]))
            if self.opened.render_scene.camera is None:
                self.navigator.frame(self._room)

    def _do_close_view(self) -> None:
        if self.navigator is not None and self.moment is not None:
            clouds = [c.x for c in self.moment.snapshot.clouds.values() if len(c.x)]
            ends = [np.min([x.min(axis=0) for x in clouds], axis=0), np.max([x.max(axis=0) for x in clouds], axis=0)]
            self.navigator.frame(self._room, bounds=np.array(ends, float))

    def _do_save(self) -> None:
        self.remote.send("save", str(self.folder.next("state", "npz")))

    def _do_load(self, name: str = "") -> None:
        states = self.folder.states()
        if not states:
            raise PliantError(f"there is no saved state in {self.folder.path} yet; K saves one")
        self.remote.send("load", str(states.get(name) or list(states.values())[-1]))

    def _do_screenshot(self) -> None:
        path = self.folder.next("picture", "png")
        write_png(path, self._shot())
        self.extras.messages.append(Notice("info", f"saved {path}"))
        self._report.line(event="screenshot", path=str(path))

    def _do_record(self) -> None:
        if self._recorder is None:
            self._recorder = Recorder(self.folder.next("film", "mp4"))
            self.state.recording = True
            return
        recorder, self._recorder = self._recorder, None
        self.state.recording = False
        recorder.close()
        text = recorder.error or f"saved {recorder.path}, {recorder.count} frames"
        self.extras.messages.append(Notice("error" if recorder.error else "info", text))
        self._report.line(event="film", path=str(recorder.path), frames=recorder.count, error=recorder.error)

    def _shot(self) -> np.ndarray:
        """The picture without the panels, with its colour bar."""
        image = self._raster.rows()
        if self.drawn is None or not self.state.bar:
            return image
        picture = copy.copy(self.drawn.picture)
        picture.bar = Bar(label(self.drawn.field, self.drawn.unit), self.drawn.low, self.drawn.high, self.drawn.maps)
        return overlay(image, picture)

    # --- drawing ----------------------------------------------------------------------------------------

    def _draw(self, now: float) -> bool:
        """Draws if there is something new, not more often than RATE and, unless the user does something, for a part of
        the time only: the simulation needs the rest. Whether it did."""
        if min(self.size) < SMALLEST or now - self._last_drawn < 1 / RATE:
            return False
        wanted = self._wanted()
        recording = self._recorder is not None and self._recorder.due
        urgent = self._urgent or recording
        new = urgent or self._fresh or wanted != self._seen or self._drawing.surfacer.fresh
        least = 0.0 if urgent or not self._frames else SHARE * self._frames[-1][1]
        if now - self._last_drawn < (least if new else BUSY if self.extras.busy else STALE):
            return False
        if self._laid_out < now:
            self._lay_out(now)
        self._fresh = self._urgent = False
        if self.opened is not None and self.moment is not None and self.navigator is not None:
            self._picture(wanted)
        self._raster.image(self._overlay, self._screen.image)
        self._screen.show()
        if recording and self._recorder is not None and self.drawn is not None:
            with self._until_done():
                self._recorder.add(self._shot())
        self._count(now, new)
        return True

    def _picture(self, wanted: Any) -> None:
        """Brings the raster up to date: all of it, or only where it is seen from."""
        assert self.opened is not None and self.moment is not None and self.navigator is not None
        camera = self.navigator.camera
        fresh = self._drawing.surfacer.fresh
        self._drawing.surfacer.fresh = False
        if self._seen is None or wanted[1:] != self._seen[1:] or fresh:
            self.drawn = self._drawing.draw(self.opened, self.moment, self.state, camera)
            self._raster.load(self.drawn.picture)
            self.extras.low, self.extras.high, self.extras.maps = self.drawn.low, self.drawn.high, self.drawn.maps
            if self._drawing.surfacer.error:
                self.extras.messages.append(Notice("error", self._drawing.surfacer.error))
                self._drawing.surfacer.error, self.state.fluid = "", "spheres"
            self._raster.draw(camera)
        elif wanted[0] != self._seen[0]:
            self._raster.draw(camera)
        self._seen = wanted

    def _wanted(self) -> Any:
        """What the picture depends on: first where it is seen from, then the rest."""
        if self.navigator is None:
            return None
        choices = dataclasses.replace(self.state, hidden=set(self.state.hidden), help=False, panels=False, plots=False,
                                      recording=False, playing=False, unfolded=set(), limit="")  # fmt: skip
        if self._seen is not None and (choices.color, choices.grains, choices.solid) != self._shown(self._seen[2]):
            self._ask_for_fields()
        return self.navigator.camera, self._moments, choices, self.size

    @staticmethod
    def _shown(choices: ViewState) -> tuple:
        return choices.color, choices.grains, choices.solid

    @contextlib.contextmanager
    def _until_done(self) -> Iterator[None]:
        """A film that cannot go on is ended, and kept."""
        try:
            yield
        except PliantError as error:
            self._do_record()
            self.extras.messages.append(Notice("info", str(error)))

    def _resize(self) -> None:
        size = tuple(self._window.get_window_shape())
        if size != self.size:
            self.size, self._seen = size, None
            if min(size) >= SMALLEST:
                self._raster.resize(*size)
                self._screen.resize(*size)

    def _count(self, now: float, new: bool) -> None:
        self._last_drawn = now
        if not new:
            self._frames.clear()  # a window without anything to show is not slow
        self._frames.append((now, time.perf_counter() - now))
        span = self._frames[-1][0] - self._frames[0][0]
        self.extras.fps = (len(self._frames) - 1) / span if span > 0 else 0.0
        self.extras.recording = self._recorder.seconds if self._recorder is not None else 0.0
        self.extras.saved = list(self.folder.states())[::-1]
        self._tell(now)

    def _tell(self, now: float) -> None:
        """Lines of the report: the first picture of the scene, then how things are."""
        if self.drawn is not None and self.moment is not None and self._report.due(now):
            f, navigator = self.moment.figures, self.navigator
            assert navigator is not None and self.opened is not None
            middles = {name: cloud.x.mean(axis=0).astype(float) for name, cloud in self.moment.snapshot.clouds.items()}
            self._report.line(
                event="frame", time=f.time, step=f.step, playing=self.state.playing, fps=round(self.extras.fps, 1),
                draw_ms=round(1e3 * float(np.mean([took for _, took in self._frames])), 1), size=self.size,
                recording=round(self.extras.recording, 2), color=self.drawn.field,
                low=self.drawn.low, high=self.drawn.high, places=self._ui.places,
                knobs={f"{k.owner}/{k.name}": k.value for k in self.opened.knobs}, camera=navigator.camera.position,
                middles={name: x.tolist() for name, x in middles.items()}, player=self.remote.process.pid,
                pixels={name: navigator.pixel(x, *self.size) for name, x in middles.items()},
            )  # fmt: skip
