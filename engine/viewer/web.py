"""The view in a browser: `pliant view SCENE --web`, through viser (https://viser.studio), whose page comes with it.

The page is served to this computer only. Any number of tabs see the same simulation, and any of them may change it.
"""

import contextlib
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pliant.core.console import say
from pliant.core.processes import asked_to_end
from pliant.errors import PliantError
from pliant.render.coloring import label
from pliant.render.picture import Bar
from pliant.viewer.drawing import Drawing
from pliant.viewer.files import Folder
from pliant.viewer.messages import Knob, Moment, Notice, Opened
from pliant.viewer.remote import Remote
from pliant.viewer.state import ViewState
from pliant.viewer.web_camera import ASPECT, Cameras
from pliant.viewer.web_canvas import Canvas
from pliant.viewer.web_panel import Panel

HOST, PORT = "127.0.0.1", 8080
PICTURES, NUMBERS = 1 / 20, 1 / 4  # [s] between pictures, and between numbers, at least
TOUCHED = 1.0  # [s] for which a slider that was moved does not follow the player, whose answer is on its way
PATIENCE = 0.3  # [s] that something takes before it is shown
LAZY, ASKERS = 1.0, 8  # [s] that is waited for a page, and how many are asked at a time
READING = 2  # answers: a surface is read between the first picture after it came and the next
INFO, ERROR = 6.0, 12.0  # [s] for which a note lies over the scene
BUILDING = "The scene is being built"


def serve(
    scene: str,
    settings: list[str],
    port: int = PORT,
    state: str | None = None,
    ready: Callable[[str], Any] | None = None,
    folder: Path | None = None,
    playing: bool = True,
) -> None:
    """Shows a scene in browsers until Ctrl-C or SIGTERM.

    `scene` is a name or a .py file, `settings` are options of its build() as "name=value", `port` in 0..65535 (0: any
    that is free) is where the page is, or the next one that is free, `state` a saved state to begin with; `ready` is
    called with the address. States are saved in `folder`, out/view/<scene> if not given. Unless `playing`, it waits.
    """
    if not 0 <= port <= 65535:
        raise PliantError(f"the port must lie between 0 and 65535, got {port}")
    load_viser()
    with contextlib.ExitStack() as stack:
        remote = Remote(scene, settings, state)
        stack.callback(remote.close)
        if not playing:
            remote.send("pause")
        name = Path(scene).stem
        files = Folder(folder or Path("out") / "view" / name, {"scene": scene, "settings": settings, "state": state})
        view = WebView(remote, name, files, port)
        stack.callback(view.close)
        stack.enter_context(asked_to_end(lambda _: view.end()))
        if port not in (0, view.port):
            say(f"Port {port} is taken, so the page is at the next one that is free.")
        say(f"{view.name} is at {view.address} (Ctrl-C ends it)")
        if ready is not None:
            ready(view.address)
        view.run()


def load_viser() -> Any:
    """viser, which is optional."""
    try:
        import viser
    except ImportError as error:
        raise PliantError('a view in the browser needs viser: pip install "pliant[web]".') from error
    warnings.filterwarnings("ignore", "Queued a .* on a closed connection")  # visitors may leave at any time
    return viser


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """viser tells of itself on standard output, which is not its own."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


class WebView:
    """Pages at `address` that show what `remote` plays. Everything happens in `run`; visitors leave wishes for it."""

    def __init__(self, remote: Any, name: str, folder: Folder, port: int = PORT):
        viser = load_viser()
        self.name, self.state = name, ViewState()
        self._remote, self._ended = remote, threading.Event()
        self._wishes: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._turned: dict[tuple[str, str], float] = {}  # where sliders have gone since the last round
        self._touched: dict[tuple[str, str], float] = {}  # when they were moved last
        self._knobs: dict[tuple[str, str], Knob] = {}  # as the player has them
        self.opened: Opened | None = None
        self.moment: Moment | None = None
        self._askers = ThreadPoolExecutor(ASKERS)
        self._answers: list[Future] = []  # of pages, on whether they have drawn what they were sent
        self._reading = 0  # answers until pages have read the surfaces that they were sent
        self._fresh = False  # whether there is something new to draw
        self._counted = 0.0  # when numbers were last shown
        self._busy = "", 0.0  # what the player is doing, and since when
        self._failed = False  # whether the scene cannot go on
        self._errors: list[Any] = []  # notes on them that lie over the scene
        self.folder, self._drawing = folder, Drawing()
        with _quiet():
            self._server = viser.ViserServer(host=HOST, port=port, verbose=False)
        self.port = self._server.get_port()
        self.address = f"http://{HOST}:{self.port}"
        self._canvas, self._cameras = Canvas(self._server.scene), Cameras(self._server)
        asks = [self._later(ask) for ask in (self._send, self._turn, self._change, self._cameras.look)]
        self._panel = Panel(self._server.gui, name, *asks)
        self._panel.show_line(f"{BUILDING} ...")
        self._server.on_client_connect(self._later(self._greet))

    def _later(self, act: Callable[..., Any]) -> Callable[..., None]:
        """The same, but in the loop: callbacks of the server come on threads of its own."""
        return lambda *arguments: self._wishes.put(lambda: act(*arguments))

    def end(self) -> None:
        """Makes `run` return soon."""
        self._ended.set()

    @property
    def knobs(self) -> list[Knob]:
        """Parameters as the player has them."""
        return list(self._knobs.values())

    def close(self) -> None:
        """Ends the server."""
        with _quiet():
            self._server.stop()
        self._askers.shutdown(cancel_futures=True)
        self._drawing.surfacer.close()

    def run(self) -> None:
        """Answers the player and the visitors until `end` is called. The player makes a moment when the last one has
        been taken, so that without visitors it makes few."""
        while not self._ended.is_set():
            begun = time.monotonic()
            for message in self._remote.receive():
                self._take(message)
            self._follow()
            self._tell()
            if self._server.get_clients() and all(answer.done() for answer in self._answers):
                self._draw()
            self._grant(begun + (PICTURES if self._server.get_clients() else NUMBERS))

    def _ask(self) -> None:
        """Asks all pages for a sign of life. They answer with the next picture that they draw, and until they have,
        or have taken too long, they get no other."""
        self._server.flush()
        self._answers = [self._askers.submit(client.local_storage.get_item, "pliant", LAZY)
                         for client in self._server.get_clients().values()]  # fmt: skip

    def _grant(self, until: float) -> None:
        """Does what visitors wish, until that time."""
        while not self._ended.is_set():
            left = until - time.monotonic()
            try:
                wish = self._wishes.get(timeout=left) if left > 0 else self._wishes.get_nowait()
            except queue.Empty:
                if left <= 0:
                    return
            else:
                wish()

    # --- what the player says -------------------------------------------------------------------------

    def _take(self, message: Opened | Moment | Notice) -> None:
        if isinstance(message, Opened):
            self._open(message)
        elif isinstance(message, Moment):
            self.moment, self._fresh = message, True
            self._panel.show_playing(message.playing)
            if message.knobs is not None:
                self._knobs = {(knob.owner, knob.name): knob for knob in message.knobs}
        elif message.kind == "busy":
            self._busy = message.text, self._busy[1] if self._busy[0] and message.text else time.monotonic()
        else:
            self._failed |= message.kind == "failure"
            self._note(message.text, message.kind != "info")

    def _open(self, opened: Opened) -> None:
        first, self.opened = self.opened is None, opened
        if first:
            self.state.begin(opened.render_scene.look, opened.fields)
        self.moment = None
        self._knobs = {(knob.owner, knob.name): knob for knob in opened.knobs}
        self._panel.open(opened, self.state, list(self.folder.states()))
        self._failed = False
        self._forget()
        self._ask_for_fields()
        self._cameras.open(opened.render_scene)

    def _note(self, text: str, error: bool) -> None:
        """A sentence, for a while; one that tells of an error stays in the panel until something is done about it."""
        if error:
            self._panel.show_trouble(text)
        for client in self._server.get_clients().values():
            note = client.add_notification("Error" if error else self.name, text, color="red" if error else None,
                                           auto_close_seconds=ERROR if error else INFO)  # fmt: skip
            self._errors += [note] if error else []

    def _forget(self) -> None:
        """Something is being done about errors."""
        self._panel.show_trouble("")
        while self._errors:
            self._errors.pop().remove()

    # --- what visitors do -----------------------------------------------------------------------------

    def _send(self, command: str, *arguments: Any) -> None:
        self._forget()
        self._failed &= command not in ("reset", "load")
        try:
            if command == "save":
                path = self.folder.next("state", "npz")
                self._panel.show_states([*self.folder.states(), path.stem])
                arguments = (str(path),)
            elif command == "load":
                arguments = (str(self.folder.states()[arguments[0]]),)
        except PliantError as error:
            self._note(str(error), True)
        except KeyError:
            self._note(f"there is no state {arguments[0]!r} in {self.folder.path}", True)
        else:
            self._remote.send(command, *arguments)

    def _turn(self, knob: Knob, value: float) -> None:
        self._turned[knob.owner, knob.name] = value
        self._touched[knob.owner, knob.name] = time.monotonic()

    def _change(self, name: str, value: Any) -> None:
        state = self.state
        if name == "hidden":
            body, hide = value
            (state.hidden.add if hide else state.hidden.discard)(body)
        elif name in ("low", "high"):
            low, high = (value, state.high) if name == "low" else (state.low, value)
            if low < high:
                state.low, state.high = low, high
            else:
                self._note(f"the first colour's value must be below the last one's, got {low:g} and {high:g}", True)
        elif name == "color":
            state.color_by(value)
        else:
            setattr(state, name, value)
        if name in ("color", "grains", "solid"):
            self._ask_for_fields()
        self._fresh = True

    def _ask_for_fields(self) -> None:
        self._remote.send("show", self.state.color, self.state.grains, self.state.solid == "mesh")

    def _greet(self, client: Any) -> None:
        self._cameras.look(client)
        client.camera.on_update(self._later(lambda _: self._cameras.moved(client)))
        self._fresh = True

    # --- what is shown --------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Passes on where sliders have gone, and moves those that nobody touches to where the parameters are, unless
        the player is still at it."""
        for (owner, name), value in self._turned.items():
            self._send("set", owner, name, value)
        self._turned.clear()
        now = time.monotonic()
        still = [knob for key, knob in self._knobs.items() if now - self._touched.get(key, -TOUCHED) >= TOUCHED]
        if not self._busy[0]:
            self._panel.show_knobs(still)

    def _tell(self) -> None:
        """The line that says what is going on."""
        text, since = self._busy
        if self._failed and not text:
            self._panel.show_line("The scene cannot go on; Reset tries again.")
        elif text and time.monotonic() - since >= PATIENCE or self.moment is None:
            self._panel.show_line(f"{(text or BUILDING).rstrip('. ')} ...")
        else:
            how = "running" if self.moment.playing else "paused"
            self._panel.show_line(f"t = {self.moment.figures.time:.3f} s, {how}")

    def _draw(self) -> None:
        """Shows the newest moment to pages that have drawn the last one."""
        surfacer = self._drawing.surfacer
        if self._canvas.unread:
            self._reading -= 1
            if self._reading:
                self._ask()
                return
            with self._server.atomic():
                self._canvas.settle()
        if self.opened is None or self.moment is None or not (self._fresh or surfacer.fresh):
            return
        self._fresh = surfacer.fresh = False
        opened, state = self.opened, self.state
        drawn = self._drawing.draw(opened, self.moment, state, opened.render_scene.view(0.0, ASPECT))
        if state.auto:
            state.low, state.high = drawn.low, drawn.high
        bar = Bar(label(drawn.field, drawn.unit), drawn.low, drawn.high, drawn.maps)
        with self._server.atomic():
            self._canvas.show(drawn.picture)
            self._panel.show_bar(bar if state.bar and drawn.maps else None, state)
            if time.monotonic() - self._counted >= NUMBERS or not self.moment.playing:
                self._counted = time.monotonic()
                self._panel.show_figures(self.moment.figures, self.moment.figures.counts or opened.counts)
        self._reading = READING
        self._ask()
        if surfacer.error:
            self._note(surfacer.error, True)
            surfacer.error, state.fluid = "", "spheres"

