"""The panel of the web page: what can be seen and changed beside the scene itself.

Visitors are heard on threads of the server; what they do is passed on at once, as a call of a function that the owner
of the panel gave it, and the owner does the rest in its own time.
"""

import dataclasses
import html
import json
import math
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.render.colors import COLOR_MAPS, colormap
from pliant.render.overlay import scaled, ticks
from pliant.render.picture import Bar
from pliant.render.render_scene import RenderScene
from pliant.viewer.messages import Figures, Knob, Opened
from pliant.viewer.navigation import VIEWS
from pliant.viewer.state import AXES, FLUIDS, LIMITS, OWN, SOLIDS, WALLS, ViewState

NOTHING = "none yet"
STEPS = 100  # of a slider with even steps, at most: the mouse can make them, so that it finds zero
LOG_STEP = 0.01  # of a slider over powers of ten
RAISED, SUPERSCRIPTS = re.compile(r"\^(-?\d+)"), str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
EXPONENT = re.compile(r"e\+?(-?)0*(\d+)")
DIGITS, MOST = 4, 9  # of the ends of a range that follows the values, and behind the point
STOPS = 17  # of a colour bar: colours between which the page blends
SCENE = "scene"  # where the scene's own camera is
TWICE = 0.2  # [s]: Space on the button that has the focus is both a key and a click, in some browsers
RED = "#e03131"
WIDTH = 340  # of the panel, in pixels
TITLE = '<img src="data:," alt="" style="display: none" onerror="document.title = {title}">'  # viser's page has its own
SPACE = "margin: 0.1em 0.75em 0.6em; font-size: 0.85em; line-height: 1.45;"


def pretty(unit: str) -> str:
    """A unit with raised exponents."""
    return RAISED.sub(lambda match: match[1].translate(SUPERSCRIPTS), unit)


def short(value: float) -> str:
    """Three digits, or those before the point: 12345, 0.05, 3.16e6."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e5 else EXPONENT.sub(r"e\1\2", f"{value:.3g}")


def round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= 0.999 * least)


def bar_html(bar: Bar) -> str:
    """A colour bar: its label, a strip for each colour map, and round numbers below."""
    label, divisor = scaled(bar.label, bar.low, bar.high)
    strips = ""
    for name in bar.maps:
        stops = (255 * colormap(np.linspace(0.0, 1.0, STOPS), 0.0, 1.0, name) + 0.5).astype(int)
        colors = ", ".join(f"rgb({r}, {g}, {b})" for r, g, b in stops)
        strips += f'<div style="height: 0.9em; margin-top: 2px; background: linear-gradient(to right, {colors})"></div>'
    marks = "".join(
        f'<span style="position: absolute; left: {100 * (mark * divisor - bar.low) / (bar.high - bar.low):.2f}%; '
        f'transform: translateX(-50%)">{mark + 0.0:.4g}</span>'
        for mark in ticks(bar.low / divisor, bar.high / divisor)
    )
    return (f'<div style="{SPACE}"><div>{html.escape(pretty(label))}</div>{strips}'
            f'<div style="position: relative; height: 1.3em; font-size: 0.9em">{marks}</div></div>')  # fmt: skip


def figures_html(figures: Figures, counts: dict[str, int]) -> str:
    """The numbers of the last step as a table."""
    rows = [
        ("time", f"{figures.time:.3f} s"), ("time step", f"{1e3 * figures.dt:.3g} ms"), ("steps", f"{figures.step:,}"),
        ("steps per second", f"{figures.steps_per_second:.3g}"), ("speed", f"{figures.rate:.2g} x real time"),
        ("density error", f"{100 * figures.density_error:.2g} %"), ("fastest", f"{figures.max_speed:.3g} m/s"),
        ("kinetic energy", f"{figures.energy:.3g} J"),
    ]  # fmt: skip
    rows += [(f"iterations: {name}", f"{count}") for name, count in figures.iterations.items()]
    rows += [(f"ms: {stage}", f"{1e3 * seconds:.1f}") for stage, seconds in figures.seconds.items()]
    rows += [(f"particles: {name}", f"{count:,}") for name, count in counts.items()]
    cells = "".join(f'<tr><td>{html.escape(name)}</td><td style="text-align: right">{html.escape(value)}</td></tr>'
                    for name, value in rows)  # fmt: skip
    return f'<div style="{SPACE}"><table style="width: 100%; border-spacing: 0">{cells}</table></div>'


class Slider:
    """A slider for a `Knob`; over powers of ten, its label has the value."""

    def __init__(self, gui: Any, knob: Knob, moved: Callable[[Knob, float], Any]):
        self.knob, self._moved = knob, moved
        self._log = knob.log and knob.low > 0
        if self._log:
            low, high, step = math.log10(knob.low), math.log10(knob.high), LOG_STEP
            marks = ((low, short(knob.low)), (high, short(knob.high)))
        else:
            low, high = min(knob.low, knob.value), max(knob.high, knob.value)
            step = round_step(max(high - low, 1e-12) / STEPS)
            marks = None
        self._ends = low, high
        self._handle = gui.add_slider(
            self._label(knob.value), low, high, step, self._place(knob.value), marks=marks,
            hint=f"{knob.doc} [{pretty(knob.unit) or 1}]" + ("; the box has its power of ten" if self._log else ""),
        )  # fmt: skip
        self._handle.on_update(self._dragged)

    def show(self, knob: Knob) -> None:
        """Goes where the parameter is, without saying so."""
        if knob == self.knob:
            return
        self.knob = knob
        self._handle.label, self._handle.value = self._label(knob.value), self._place(knob.value)

    def _dragged(self, event: Any) -> None:
        if event.client is None:
            return  # we moved it
        value = float(self._handle.value)
        value = 10.0**value if self._log else value
        self._handle.label = self._label(value)
        self.knob = dataclasses.replace(self.knob, value=value)
        self._moved(self.knob, value)

    def _place(self, value: float) -> float:
        place = math.log10(max(value, self.knob.low)) if self._log else value
        return float(min(max(place, self._ends[0]), self._ends[1]))

    def _label(self, value: float) -> str:
        name = self.knob.name.replace("_", " ")
        return f"{name} {short(value)} {pretty(self.knob.unit)}".strip() if self._log else name


class Panel:
    """The panel of the pages. It calls `send(command, *arguments)` for a command of `messages.COMMANDS`, `turn(knob,
    value)` when a slider moves, `change(name, value)` for a choice of the `ViewState`, `look(client, direction)` when
    someone wants to see all, from there or as the scene has it (None); and it is told what there is to show."""

    def __init__(self, gui: Any, name: str, send: Callable, turn: Callable, change: Callable, look: Callable):
        self._gui, self._send, self._turn, self._change = gui, send, turn, change
        self._shown: Any = None  # what the lower part was made for
        self._lower: Any = None
        self._sliders: dict[tuple[str, str], Slider] = {}
        self._playing, self._toggled = True, 0.0  # and when that was last changed
        gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium")
        gui.set_panel_label(f"Pliant: {name}")
        gui.main_panel.dock_right()
        gui.main_panel.set_width(WIDTH)
        gui.add_html(TITLE.format(title=html.escape(json.dumps(f"Pliant: {name}"))))
        self._line, self._trouble = gui.add_html(""), gui.add_html("", visible=False)
        self._play = gui.add_button("Pause", icon="player-pause", hint="Space")
        self._play.on_click(lambda _: self._toggle())
        steps = gui.add_button_group("Time", ("Step", "Reset"), hint="keys N and R")
        steps.on_click(lambda event: send(event.target.value.lower()))
        camera = gui.add_button_group("Camera", (SCENE, *VIEWS), hint="key F shows all")
        camera.on_click(lambda event: look(event.client, VIEWS.get(event.target.value)))
        limit = gui.add_dropdown("Speed limit", tuple(LIMITS), hint="simulated seconds per second, at most")
        limit.on_update(lambda event: event.client and send("limit", LIMITS[limit.value]))
        keys = {
            "space": ("Play or pause", lambda _: self._toggle()), "N": ("Step", lambda _: send("step")),
            "R": ("Reset", lambda _: send("reset")), "F": ("See all", lambda client: look(client, None)),
        }  # fmt: skip
        for key, (label, act) in keys.items():
            gui.add_command(label, hotkey=key).on_trigger(lambda event, act=act: act(event.client))

    def _toggle(self) -> None:
        now = time.monotonic()
        if now - self._toggled >= TWICE:
            self._toggled = now
            self.show_playing(not self._playing)
            self._send("play" if self._playing else "pause")

    def open(self, opened: Opened, state: ViewState, states: list[str]) -> None:
        """Offers what a scene has, and the names of states that were saved. The same scene again leaves everything as
        it is."""
        render_scene = opened.render_scene
        bodies = [body.name for body in render_scene.bodies if not body.grains]
        bodies += [wall.name for wall in render_scene.walls]
        knobs = [(knob.owner, knob.name, knob.low, knob.high, knob.log) for knob in opened.knobs]
        shown = knobs, list(opened.fields), bodies, opened.notes
        if shown != self._shown:
            if self._lower is not None:
                self._lower.remove()
            self._shown, self._lower = shown, self._gui.add_folder(None)
            with self._lower:
                self._add_colors(opened, state)
                self._add_visibility(render_scene, bodies, state)
                self._add_knobs(opened.knobs, [wall.name for wall in render_scene.walls if wall.rigid])
                with self._gui.add_folder("Statistics"):
                    self._figures = self._gui.add_html("")
                self._add_states(states)
                if opened.notes:
                    with self._gui.add_folder("Notes", expand_by_default=False):
                        lines = "".join(f"<div>{html.escape(note)}</div>" for note in opened.notes)
                        self._gui.add_html(f'<div style="{SPACE}">{lines}</div>')
        self.show_knobs(opened.knobs)

    def _add_colors(self, opened: Opened, state: ViewState) -> None:
        with self._gui.add_folder("Colours"):
            fields = tuple(dict.fromkeys([*opened.fields, state.color]))
            self._choice("Colour by", "color", fields, state.color)
            self._bar = self._gui.add_html("")
            self._choice("Colour map", "colors", (OWN, *COLOR_MAPS), state.colors)
            self._auto = self._tick("Auto range", "auto", state.auto)
            self._ends = [self._gui.add_number(label, value, disabled=state.auto)
                          for label, value in (("First colour", state.low), ("Last colour", state.high))]  # fmt: skip
            for name, handle in zip(("low", "high"), self._ends, strict=True):
                self._listen(handle, name)
            self._tick("Colour bar", "bar", state.bar)

    def _add_visibility(self, render_scene: RenderScene, bodies: list[str], state: ViewState) -> None:
        with self._gui.add_folder("Shown", expand_by_default=False):
            for name in bodies:
                handle = self._gui.add_checkbox(name, name not in state.hidden)
                self._listen(handle, "hidden", lambda shown, name=name: (name, not shown))
            if any(body.fluid for body in render_scene.bodies):
                self._choice("Fluids as", "fluid", FLUIDS, state.fluid)
            if render_scene.skins:
                self._choice("Solids as", "solid", SOLIDS, state.solid)
            if render_scene.walls:
                self._choice("Walls as", "walls", WALLS, state.walls)
            if any(body.grains for body in render_scene.bodies):
                self._tick("Grains", "grains", state.grains)
            if render_scene.joints:
                self._tick("Joints", "joints", state.joints)
            self._choice("Cut across", "clip", AXES, state.clip)
            self._listen(self._gui.add_slider("Cut at", 0.0, 1.0, 0.01, state.clip_at), "clip_at")
            self._tick("Other side", "clip_flip", state.clip_flip)

    def _add_knobs(self, knobs: list[Knob], rigid: list[str]) -> None:
        self._sliders = {}
        with self._gui.add_folder("Parameters"):
            for owner in dict.fromkeys(knob.owner for knob in knobs):
                with self._gui.add_folder(owner or "scene", expand_by_default=not owner):
                    for knob in knobs:
                        if knob.owner == owner:
                            self._sliders[owner, knob.name] = Slider(self._gui, knob, self._turn)
                    if owner in rigid:
                        pin = self._gui.add_button("Pin or let go", hint="holds it where it is, or frees it")
                        pin.on_click(lambda _, owner=owner: self._send("pin", owner))
            self._gui.add_button("Original values").on_click(lambda _: self._send("defaults"))

    def _add_states(self, states: list[str]) -> None:
        with self._gui.add_folder("States", expand_by_default=False):
            buttons = self._gui.add_button_group("State", ("Save", "Load"))
            self._states = self._gui.add_dropdown("To load", (NOTHING,))
            self.show_states(states)
            buttons.on_click(lambda event: self._save_or_load(event.target.value.lower()))

    def _save_or_load(self, command: str) -> None:
        chosen = (self._states.value,) if command == "load" else ()
        if chosen != (NOTHING,):
            self._send(command, *chosen)

    def _choice(self, label: str, name: str, options: tuple[str, ...], value: str) -> None:
        self._listen(self._gui.add_dropdown(label, options, initial_value=value), name)

    def _tick(self, label: str, name: str, value: bool) -> Any:
        handle = self._gui.add_checkbox(label, value)
        self._listen(handle, name)
        return handle

    def _listen(self, handle: Any, name: str, meaning: Callable = lambda value: value) -> None:
        handle.on_update(lambda event: event.client and self._change(name, meaning(handle.value)))

    def show_knobs(self, knobs: list[Knob]) -> None:
        """Moves sliders to where the parameters are."""
        for knob in knobs:
            self._sliders[knob.owner, knob.name].show(knob)

    def show_playing(self, playing: bool) -> None:
        """Names the button after what it does."""
        self._playing = playing
        self._play.label, self._play.icon = ("Pause", "player-pause") if playing else ("Play", "player-play")

    def show_states(self, names: list[str]) -> None:
        """States that can be loaded; the last one is meant unless another is chosen."""
        self._states.options = tuple(dict.fromkeys(reversed(names))) or (NOTHING,)
        self._states.value = self._states.options[0]

    def show_bar(self, bar: Bar | None, state: ViewState) -> None:
        """The colour bar, and its ends."""
        self._bar.content, self._auto.value = "" if bar is None else bar_html(bar), state.auto
        digits = min(max(DIGITS - 1 - math.floor(math.log10(max(abs(state.low), abs(state.high), 1e-9))), 0), MOST)
        for handle, end in zip(self._ends, (state.low, state.high), strict=True):
            handle.disabled, handle.precision = state.auto, digits
            handle.step = round_step((state.high - state.low) / STEPS)
            handle.value = round(end, digits) if state.auto else end

    def show_figures(self, figures: Figures, counts: dict[str, int]) -> None:
        self._figures.content = figures_html(figures, counts)

    def show_line(self, text: str) -> None:
        """One line under the title: what is going on."""
        self._line.content = f'<div style="{SPACE}">{html.escape(text)}</div>'

    def show_trouble(self, text: str) -> None:
        """An error, or an empty text where there is none."""
        self._trouble.content = f'<div style="{SPACE} color: {RED}; white-space: pre-line">{html.escape(text)}</div>'
        self._trouble.visible = bool(text)
