"""Runs a scene for a view: obeys its commands, steps, and says what there is to see."""

import contextlib
import io
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.console import console
from pliant.errors import PliantError
from pliant.scene import changes
from pliant.scene.loading import SceneSource, find_scene, make_scene, read_options
from pliant.scene.scene import Scene
from pliant.sim import checkpoint, fields
from pliant.sim.rigid_views import RigidView
from pliant.sim.simulation import Simulation
from pliant.sim.snapshot import counts
from pliant.viewer.knobs import change, knobs
from pliant.viewer.messages import COMMANDS, Moment, Notice, Opened
from pliant.viewer.moments import figures, snapshot

LATELY = 1.0  # [s]: rates are means over the steps of this time
GLANCE = 0.02  # [s] between looks at a factorisation under way
SETTINGS = "view"  # where a saved state keeps the parameters that were changed in the view

Tell = Callable[[Any], None]


class Player:
    """`tell` takes `Opened`, `Moment` and `Notice`. Nothing that a scene or a command does raises from here: it becomes
    a notice, and the last good state stays.

    `given` is the name of a scene or a file, `settings` are options of its build() as "name=value", `state` is a saved
    state to begin with, `clock` tells the time [s] by which speeds are measured and limited.
    """

    def __init__(self, given: str, settings: list[str], tell: Tell, state: str | None = None,
                 clock: Callable[[], float] = time.perf_counter):  # fmt: skip
        self.given, self.settings, self.tell, self._clock = given, settings, tell, clock
        self.playing, self.ended, self.news = True, False, False
        self.sim: Simulation | None = None
        self._source: SceneSource | None = None
        self._written = 0.0  # when the scene's file was last written, as far as it has been read
        self._initial: checkpoint.Checkpoint | None = None
        self._original: dict[tuple[str, str], float] = {}  # values of the knobs that have been turned
        self._turned: dict[tuple[str, str], float] = {}
        self._shown, self._grains, self._skins = "speed", True, True
        self._limit: float | None = None
        self._pace = (0.0, 0.0)  # clock and simulated time from which the limit counts
        self._lately: deque[tuple[float, float]] = deque()  # clock and simulated time of the last steps
        self._knobs_changed = False
        self._grip: Any = None
        with self._guarded("failure"):
            self._open()
            if state is not None:
                self.load(state)

    # --- what happens by itself -----------------------------------------------------------------------

    @property
    def wait(self) -> float | None:
        """Seconds until the next step is due, None if none is."""
        if self.sim is None or not self.playing:
            return None
        clock, begun = self._pace
        if self._limit is None:
            return 0.0
        return max(0.0, (self.sim.time - begun) / self._limit - (self._clock() - clock))

    def advance(self) -> None:
        """One step."""
        if self.sim is None:
            return
        with self._guarded("failure"), contextlib.ExitStack() as stack:
            if self.sim.step_count == 0:
                stack.enter_context(self._busy("Compiling"))
            self.sim.step()
            if self.sim.stopped and self.playing:
                self.playing = False
                self.tell(Notice("info", "a function of the scene's asked to stop here"))
            self._lately.append((self._clock(), self.sim.time))
            while self._lately[-1][0] - self._lately[0][0] > LATELY:
                self._lately.popleft()
            self.news = True

    def publish(self) -> bool:
        """Tells of the moment; whether there was anything to tell of."""
        self.news = False
        if self.sim is not None:
            with self._guarded():
                turned = knobs(self.sim.scene) if self._knobs_changed else None
                seen = snapshot(self.sim, self._shown, self._grains, self._skins)
                grip = self._grip and np.array([self._grip.point, self._grip.target], float)
                pinned = frozenset(name for name in seen.rigid if self.sim[name].fixed)
                self.tell(Moment(seen, figures(self.sim, self._lately), self.playing, turned, grip, pinned))
                self._knobs_changed = False
                return True
        return False

    # --- commands -------------------------------------------------------------------------------------

    def obey(self, commands: Iterable[tuple]) -> None:
        """Carries out commands; of several values for one knob, or places of the hand, only the last."""
        todo = list(commands)
        for k, (name, *args) in enumerate(todo):
            if name in ("set", "drag", "show") and any((name, *args[:2]) == (n, *a[:2]) if name == "set" else name == n
                                                       for n, *a in todo[k + 1 :]):  # fmt: skip
                continue
            if name not in COMMANDS:
                self.tell(Notice("error", f"a view asked for {name!r}, which is no command"))
                continue
            with self._guarded("failure" if name == "reset" else "error"):
                getattr(self, name)(*args)
            self.news = True

    def play(self) -> None:
        self.playing = True
        self._hurry()

    def pause(self) -> None:
        self.playing = False

    def toggle(self) -> None:
        if self.playing:
            self.pause()
        else:
            self.play()

    def step(self) -> None:
        self.playing = False
        self.advance()

    def reset(self) -> None:
        """Back to the start. A scene that failed, or whose file was written meanwhile, is read anew."""
        if self.sim is None or self._initial is None or self._written != self._last_written():
            self.playing |= self.sim is None
            self._open()
            return
        with self._busy("Resetting"):
            scene = self._scene(self._turned)
            self._take(Simulation(scene, None, changes.with_masses(self._initial, scene), quiet=True))

    def set(self, owner: str, name: str, value: float) -> None:  # noqa: A003
        sim = self._ready()
        known = {(k.owner, k.name): k for k in knobs(sim.scene)}
        knob = known.get((owner, name))
        if knob is None:
            raise PliantError(f"{owner or 'the scene'} has no parameter {name!r} that can change while it runs")
        with self._busy(f"Changing {name} of {owner or 'the scene'}"):
            self._knobs_changed = True
            sim.change(owner or None, **change(sim.scene, owner, name, value))
            self._original.setdefault((owner, name), knob.value)
            self._turned[owner, name] = value
            self._let_go()
            while not getattr(sim.elasticity, "ready", True):  # it factorises in a thread of its own
                time.sleep(GLANCE)

    def defaults(self) -> None:
        for (owner, name), value in self._original.items():
            self.set(owner, name, value)
        self._turned.clear()

    def limit(self, factor: float | None) -> None:
        self._limit = factor
        self._hurry()

    def show(self, field: str, grains: bool = True, skins: bool = True) -> None:
        self._shown, self._grains, self._skins = field, grains, skins

    def save(self, path: str) -> None:
        turned = [[*key, value] for key, value in self._turned.items()]
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        checkpoint.capture(self._ready(), {SETTINGS: turned})(path)
        self.tell(Notice("info", f"saved the state at t = {self._ready().time:.3f} s in {path}"))

    def load(self, path: str) -> None:
        with self._busy(f"Loading {path}"):
            saved = checkpoint.read(path)
            turned = {(owner, name): value for owner, name, value in saved.state["more"].get(SETTINGS, [])}
            scene = self._scene(turned)
            self._take(Simulation(saved.live_scene(scene), None, saved, quiet=True))
            self._turned, self._knobs_changed = turned, True
        self.tell(Notice("info", f"loaded {path}, t = {self._ready().time:.3f} s"))

    def grab(self, body: str, point: Any) -> None:
        self._let_go()
        self._grip = self._ready().grab(body, tuple(point))

    def drag(self, point: Any) -> None:
        if self._grip is not None:
            self._grip.target = tuple(point)

    def release(self) -> None:
        self._let_go()

    def pin(self, body: str) -> None:
        view = self._ready()[body]
        if not isinstance(view, RigidView):
            raise PliantError(f"{body} is no rigid body, and only these can be pinned")
        self._let_go()
        if view.fixed:
            view.release()
        else:
            view.fix()

    def quit(self) -> None:
        self.ended = True

    # --- inside ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Reads the scene, builds it, and holds its initial state."""
        self.sim = self._initial = None
        self._original.clear()
        self._turned.clear()
        with self._busy(f"Building {Path(self.given).stem}"):
            self._source = find_scene(self.given)
            self._written = self._last_written()
            sim = self._scene({}).build(quiet=True)
            self._initial = checkpoint.capture_state(sim)
            self._take(sim)
            self.tell(Opened(self._source.name, sim.canvas.render_scene, knobs(sim.scene), fields.units(sim),
                             counts(sim), list(sim.notes), fields.meanings(sim)))  # fmt: skip

    def _scene(self, turned: dict[tuple[str, str], float]) -> Scene:
        """The scene made anew, so that its functions begin anew too, with some of its knobs turned."""
        assert self._source is not None
        scene = make_scene(self._source, read_options(self._source, self.settings))
        for (owner, name), value in turned.items():
            changes.give(scene, owner or None, change(scene, owner, name, value))
        return scene

    def _take(self, sim: Simulation) -> None:
        self._grip, self.sim = None, sim
        self._lately.clear()
        self._hurry()
        self.news = True

    def _ready(self) -> Simulation:
        if self.sim is None:
            raise PliantError("there is no simulation yet")
        return self.sim

    def _last_written(self) -> float:
        file = Path(self._source.file) if self._source else None
        return file.stat().st_mtime if file and file.exists() else 0.0

    def _let_go(self) -> None:
        if self._grip is not None:
            self._grip.release()
            self._grip = None

    def _hurry(self) -> None:
        """The limit of the speed counts from now."""
        self._pace = (self._clock(), self.sim.time if self.sim else 0.0)

    @contextlib.contextmanager
    def _guarded(self, kind: str = "error") -> Iterator[None]:
        """Whatever goes wrong becomes a notice, and the simulation pauses."""
        try:
            yield
        except PliantError as error:
            self.playing, self.news = False, True
            self.tell(Notice(kind, str(error)))
        except Exception as error:
            self.playing, self.news = False, True
            self.tell(Notice(kind, f"{type(error).__name__}: {error}"))

    @contextlib.contextmanager
    def _busy(self, text: str) -> Iterator[None]:
        """Says what takes long, and whatever the engine says meanwhile."""
        self.tell(Notice("busy", text))
        before = console.file
        console.file = _Whisper(lambda line: self.tell(Notice("busy", line)))  # type: ignore[assignment]
        try:
            yield
        finally:
            console.file = before
            self.tell(Notice("busy", ""))


class _Whisper(io.TextIOBase):
    """Takes what the engine says to a terminal, line by line."""

    def __init__(self, say: Callable[[str], None]):
        self._say = say

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.strip():
                self._say(line.strip())
        return len(text)
