"""Pliant's panels: what a view offers to change, and what it tells."""

import math

import numpy as np

from pliant.core.data import GRAINS
from pliant.render.coloring import label
from pliant.render.colors import COLOR_MAPS
from pliant.viewer.messages import Knob, Moment, Opened
from pliant.viewer.navigation import VIEWS
from pliant.viewer.notices import Extras, Messages, draw_bar, draw_busy, draw_failure, draw_help, draw_hint
from pliant.viewer.state import AXES, LIMITS, OWN, ViewState
from pliant.viewer.statistics import STATISTICS, Statistics, count
from pliant.viewer.ui import MARGIN, Ui

SIDE, NARROW_SIDE = 250.0, 222.0  # width of the panels at the sides, and in small windows
LEAST_MIDDLE = 600.0  # between them, for the statistics to stand there; else they take the whole width
WIDEST_STATISTICS = 1000.0
SCENE = ""  # owner of the scene's knobs
WIDER = 0.5  # how much further than the values the sliders of the colours' range go, in spans of these
LABELS = {"young": "Young's modulus", "poisson": "Poisson's ratio"}
# Commands beside those that the player takes as they are. "limit" has the label of a limit, "load" a saved state.
WINDOW_COMMANDS = ("view", "frame", "screenshot", "record", "save", "load", "limit")


class Panels:
    """Keeps what lasts from frame to frame: values of knobs, ends of sliders, ages of messages."""

    def __init__(self) -> None:
        self._statistics, self._messages = Statistics(), Messages()
        self._opened: Opened | None = None
        self._moment: Moment | None = None
        self._knobs: dict[str, list[Knob]] = {}  # by owner
        self._ends: dict[str, tuple[float, float]] = {}  # of the sliders for the colours' range, by field
        self._closed = ""  # the failure that the user has seen

    def draw(self, ui: Ui, state: ViewState, opened: Opened | None, moment: Moment | None, more: Extras) -> list[tuple]:
        """Draws everything between `ui.begin` and `ui.end`, changes `state` as the user wants, and returns commands:
        for the player as `messages.COMMANDS` has them, and for the window, see `WINDOW_COMMANDS`."""
        commands: list[tuple] = []
        self._follow(ui, opened, moment)
        side = SIDE if ui.width >= 2 * SIDE + 4 * MARGIN + LEAST_MIDDLE else NARROW_SIDE
        middle = ui.width - 2 * side - 4 * MARGIN if state.panels else ui.width - 2 * MARGIN
        bottom = MARGIN
        if state.panels:
            bottom += self._draw_statistics(ui, state, opened, moment, more, middle) + MARGIN
            most = ui.height - 2 * MARGIN if middle >= LEAST_MIDDLE else ui.height - bottom - MARGIN
            self._draw_simulation(ui, state, opened, side, most, commands)
            self._draw_view(ui, state, opened, more, side, most, commands)
        else:
            draw_hint(ui)
        if state.bar and more.maps and opened is not None:
            title = label(state.color, opened.fields.get(state.color, ""))
            bottom += draw_bar(ui, title, more.low, more.high, more.maps, bottom, middle) + MARGIN
        top = MARGIN + draw_busy(ui, more.busy, more.busy_seconds, MARGIN, middle)
        top = self._messages.draw(ui, more.messages, top, middle)
        self._draw_failure(ui, more, middle, (top, bottom), commands)
        if state.help:
            state.help = draw_help(ui, (top, bottom))
        return commands

    def _follow(self, ui: Ui, opened: Opened | None, moment: Moment | None) -> None:
        """Takes over new values of knobs, but not of one that is being dragged."""
        if opened is not self._opened:
            self._opened, self._ends = opened, {}
            self._take(ui, opened.knobs if opened else [])
        if moment is not self._moment:
            self._moment = moment
            if moment is not None and moment.knobs is not None:
                self._take(ui, moment.knobs)

    def _take(self, ui: Ui, knobs: list[Knob]) -> None:
        mine = {_key(k): k for own in self._knobs.values() for k in own if ui.held == f"Simulation/{_key(k)}"}
        self._knobs = {}
        for knob in knobs:
            self._knobs.setdefault(knob.owner, []).append(mine.get(_key(knob), knob))

    def _draw_statistics(self, ui: Ui, state: ViewState, opened: Opened | None, moment: Moment | None, more: Extras,
                         middle: float) -> float:  # fmt: skip
        """Returns its height."""
        width = min(middle, WIDEST_STATISTICS) if middle >= LEAST_MIDDLE else ui.width - 2 * MARGIN
        figures, counts = (moment.figures if moment else None), self._counts(opened)
        state.plots = self._statistics.draw(ui, (ui.width - width) / 2, width, state.plots, figures, more.fps, counts,
                                            more.history)  # fmt: skip
        return ui.height_of(STATISTICS)

    def _draw_failure(self, ui: Ui, more: Extras, middle: float, between: tuple[float, float],
                      commands: list[tuple]) -> None:  # fmt: skip
        if not more.failure:
            self._closed = ""
        elif more.failure != self._closed:
            clicked = draw_failure(ui, more.failure, middle, between)
            if clicked == "reset":
                commands.append(("reset",))
            elif clicked == "close":
                self._closed = more.failure

    # --- the left side --------------------------------------------------------------------------------

    def _draw_simulation(self, ui: Ui, state: ViewState, opened: Opened | None, width: float, most: float,
                         commands: list[tuple]) -> None:  # fmt: skip
        with ui.panel("Simulation", MARGIN, MARGIN, width, most=most, note=opened.name if opened else ""):
            ui.space(4)
            with ui.row((1.15, 1.0, 1.05)):
                name, icon = ("Pause", "pause") if state.playing else ("Play", "play")
                if ui.button(name, active=not state.playing, icon=icon, key="play", tip="Space"):
                    state.playing = not state.playing
                    commands.append(("play",) if state.playing else ("pause",))
                if ui.button("Step", icon="step", tip="One step, then pause: . or +"):
                    state.playing = False
                    commands.append(("step",))
                if ui.button("Reset", icon="reset", tip="Back to the start, with these parameters: R"):
                    commands.append(("reset",))
            limit = ui.choice("Speed limit", state.limit, LIMITS, tip="Simulated seconds per second, at most")
            if limit != state.limit:
                state.limit = limit
                commands.append(("limit", limit))
            if opened is None:
                return
            bodies = [body.name for body in opened.render_scene.bodies if not body.grains]
            if bodies:
                ui.heading("Bodies")
            for name in bodies:
                self._draw_branch(ui, state, name, count(self._counts(opened).get(name, 0)), commands)
            for rigid, heading in ((True, "Rigid bodies"), (False, "Walls")):
                walls = [wall for wall in opened.render_scene.walls if wall.rigid == rigid]
                if walls:
                    ui.heading(heading)
                for wall in walls:
                    note = self._note(wall.name) if rigid else "container" if wall.container else "obstacle"
                    self._draw_branch(ui, state, wall.name, note, commands)
            known = {SCENE, *bodies, *(wall.name for wall in opened.render_scene.walls)}
            others = [owner for owner in self._knobs if owner not in known]
            if others:
                ui.heading("Planes, emitters, joints")
            for name in others:
                self._draw_fold(ui, state, name, name, "", commands)
            ui.heading("Scene")
            self._draw_fold(ui, state, SCENE, "Gravity and wind" if self._wind() else "Gravity", "", commands)
            ui.space()
            if ui.button("Original values", tip="Gives all parameters the values of the scene"):
                commands.append(("defaults",))

    def _note(self, name: str) -> str:
        """How a rigid body moves."""
        pose = self._moment.snapshot.rigid.get(name) if self._moment else None
        if self._moment is None or pose is None:
            return ""
        return "pinned" if name in self._moment.pinned else f"{float(np.linalg.norm(pose.velocity)):.2f} m/s"

    def _draw_pose(self, ui: Ui, name: str, commands: list[tuple]) -> None:
        """Where a rigid body is, how it moves, and what holds it there."""
        pose = self._moment.snapshot.rigid.get(name) if self._moment else None
        if self._moment is None or pose is None:
            return
        for unit, vector in (("m", pose.position), ("m/s", pose.velocity), ("rad/s", pose.spin)):
            ui.facts(unit, {axis: f"{round(value, 2) + 0.0:.2f}" for axis, value in zip("xyz", vector, strict=True)})
        pinned = name in self._moment.pinned
        if ui.button("Let go" if pinned else "Pin", active=pinned, small=True, key=f"pin {name}",
                     tip="Holds it where it is, or lets it go: X"):  # fmt: skip
            commands.append(("pin", name))

    def _counts(self, opened: Opened | None) -> dict[str, int]:
        """How many points each body has by now."""
        now = self._moment.figures.counts if self._moment else {}
        return now or (opened.counts if opened else {})

    def _wind(self) -> bool:
        return any(knob.name.startswith("wind") for knob in self._knobs.get(SCENE, ()))

    def _draw_branch(self, ui: Ui, state: ViewState, name: str, note: str, commands: list[tuple]) -> None:
        """A body or wall: whether it is seen, and its parameters."""
        shown = name not in state.hidden
        self._draw_fold(ui, state, name, name, note, commands, shown)

    def _draw_fold(self, ui: Ui, state: ViewState, owner: str, name: str, note: str, commands: list[tuple],
                   shown: bool | None = None) -> None:  # fmt: skip
        knobs = self._knobs.get(owner, [])
        opened = None if not knobs else (owner in state.unfolded)
        if shown is None:
            opened = ui.fold(name, opened, note, key=f"fold {owner}")
        else:
            with ui.row((0.09, 0.91)):
                shown = ui.checkbox("", shown, key=f"show {owner}", tip="Drawn or hidden")
                opened = ui.fold(name, opened, note, faint=not shown, key=f"fold {owner}")
            (state.hidden.discard if shown else state.hidden.add)(owner)
        (state.unfolded.add if opened else state.unfolded.discard)(owner)
        if opened:
            with ui.indent():
                self._draw_pose(ui, owner, commands)
                for knob in knobs:
                    value = ui.slider(name_of(knob), knob.value, knob.low, knob.high, knob.log, knob.unit,
                                      key=_key(knob), tip=_sentence(knob.doc))  # fmt: skip
                    if value != knob.value:
                        knob.value = value
                        commands.append(("set", knob.owner, knob.name, value))

    # --- the right side -------------------------------------------------------------------------------

    def _draw_view(self, ui: Ui, state: ViewState, opened: Opened | None, more: Extras, width: float, most: float,
                   commands: list[tuple]) -> None:  # fmt: skip
        with ui.panel("View", -MARGIN, MARGIN, width, most=most):
            if opened is not None:
                self._draw_colors(ui, state, opened, more)
                _draw_styles(ui, state, opened)
                _draw_clip(ui, state, opened)
            ui.heading("Camera")
            views = list(VIEWS)
            for names in (views[:4], views[4:]):
                with ui.row(4):
                    for name in names:
                        key = views.index(name) + 1
                        if ui.button(name.capitalize(), small=True, key=name, tip=f"Key {key}"):
                            commands.append(("view", name))
                    if len(names) < 4 and ui.button("Frame", small=True, key="frame", tip="Frames everything: F"):
                        commands.append(("frame",))
            ui.heading("Files")
            with ui.row(2):
                if ui.button("Screenshot", tip="P"):
                    commands.append(("screenshot",))
                name = f"{more.recording:.1f} s" if state.recording else "Record"
                icon = "stop" if state.recording else "record"
                if ui.button(name, icon=icon, alarm=state.recording, key="record", tip="A film of the window: V"):
                    commands.append(("record",))
            with ui.row(2):
                if ui.button("Save state", tip="All of the simulation, to go on from later: K"):
                    commands.append(("save",))
                chosen = ui.menu("Load state", more.saved)
                if chosen:
                    commands.append(("load", chosen))

    def _draw_colors(self, ui: Ui, state: ViewState, opened: Opened, more: Extras) -> None:
        ui.heading("Colour")
        meaning = opened.meanings.get(state.color, "")
        color = ui.choice("Colour by", state.color, opened.fields, tip=meaning[:1].upper() + meaning[1:])
        if color != state.color:
            state.color_by(color)
        maps = {OWN: "", **{name: name for name in COLOR_MAPS}}
        state.colors = ui.choice("Colours", state.colors, maps, maps)
        with ui.row((1.0, 1.0)):
            auto = ui.checkbox("Auto range", state.auto, tip="The range follows the values")
            state.bar = ui.checkbox("Colour bar", state.bar)
        if state.auto and not auto:
            state.low, state.high = (more.low, more.high) if more.high > more.low else (0.0, 1.0)
            self._ends.pop(state.color, None)
        state.auto = auto
        if auto:
            return
        if state.color not in self._ends:
            span = state.high - state.low
            self._ends[state.color] = state.low - WIDER * span, state.high + WIDER * span
        ends, unit = self._ends[state.color], opened.fields.get(state.color, "")
        least = 1e-3 * (ends[1] - ends[0])  # of the range
        low = ui.slider("From", state.low, *ends, unit=unit)
        high = ui.slider("To", state.high, *ends, unit=unit)
        if low != state.low:
            state.low, state.high = low, max(state.high, low + least)
        elif high != state.high:
            state.low, state.high = min(state.low, high - least), high


def _draw_styles(ui: Ui, state: ViewState, opened: Opened) -> None:
    render_scene = opened.render_scene
    ui.heading("Draw")
    if any(body.fluid for body in render_scene.bodies):
        state.fluid = ui.segments("Fluids", state.fluid, {"spheres": "particles", "surface": "surface"})
    if render_scene.skins:
        state.solid = ui.segments("Solids", state.solid, {"spheres": "particles", "mesh": "mesh"})
    if render_scene.walls:
        state.walls = ui.segments("Walls", state.walls, {"wireframe": "wire", "solid": "solid", "hidden": "hidden"})
    grains = any(name.endswith(GRAINS) for name in opened.counts)
    with ui.row(2 + (grains and bool(render_scene.joints))):
        state.shadow = ui.checkbox("Shadows", state.shadow)
        if grains:
            state.grains = ui.checkbox("Grains", state.grains)
        if render_scene.joints:
            state.joints = ui.checkbox("Joints", state.joints, tip="Axes, rails and springs between rigid bodies")


def _draw_clip(ui: Ui, state: ViewState, opened: Opened) -> None:
    state.clip = ui.segments("Clip", state.clip, {axis: axis for axis in AXES}, tip="Cuts the picture open")
    if state.clip == AXES[0]:
        return
    low, high = (float(v) for v in opened.render_scene.bounds[:, AXES.index(state.clip) - 1])
    if not (math.isfinite(low) and low < high):
        return
    place = low + state.clip_at * (high - low)
    moved = ui.slider("Cut at", place, low, high, unit="m")
    if moved != place:
        state.clip_at = (moved - low) / (high - low)
    state.clip_flip = ui.checkbox("Other side", state.clip_flip)


def _key(knob: Knob) -> str:
    return f"{knob.owner}.{knob.name}"


def name_of(knob: Knob) -> str:
    """A parameter's name as people write it."""
    words = LABELS.get(knob.name, knob.name.replace("_", " ").replace(".", " "))
    return words[:1].upper() + words[1:]


def _sentence(doc: str) -> str:
    return doc[:1].upper() + doc[1:]
