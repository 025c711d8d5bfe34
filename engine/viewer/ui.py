"""Widgets in the immediate style: each is called in every frame with its value, and returns the value the user wants.

    ui.begin(Pointer(x, y, down), width, height)
    with ui.panel("View", -12, 12, 250):
        if ui.button("Screenshot"):
            ...
        shadow = ui.checkbox("Shadows", shadow)
    image = ui.end()

Buttons act when they are pressed and let go, sliders while they are dragged: on the track the handle follows the
pointer, on the line of text above it goes ten times slower. The wheel moves a slider by a hundredth.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pliant.viewer import paint
from pliant.viewer.brush import text_width, wrapped
from pliant.viewer.layers import FOOT, MARGIN, PADDING, Layer, Layers, Pointer
from pliant.viewer.paint import figure

__all__ = ["MARGIN", "Pointer", "Ui"]

BUTTON, CHECKBOX, CHOICE, FOLD, ITEM, HEADING = 27.0, 22.0, 26.0, 24.0, 24.0, 25.0  # heights
SLIDER, PLOT, TILE, PROGRESS, KEYS = 33.0, 58.0, 33.0, 28.0, 24.0
SMALL_BUTTON, SEGMENTS, FACTS = 23.0, 24.0, 15.0
ITEM_GAP, SWATCH = 2.0, 66.0  # between the items of a list, and what colours take beside their names
FINE, NOTCH = 0.1, 0.01  # how fast a slider goes when its text is dragged; what a notch of the wheel moves it by
CYCLE, RUNNER = 1.6, 0.3  # seconds that an endless progress bar takes from end to end, and the share it fills
TICK = 0.1  # [s] from one place of it to the next: whoever waits for work to be done should not take its time
POINTS = 120  # of a plot
TIP_AFTER, TIP_WIDTH = 0.6, 240.0  # seconds until a widget is explained, and how wide that may be
POPUP, TIP = "list", "tip"  # names of the layers for open lists and explanations

_NO_TIP = ("", "", 0.0, Layer(""), 0.0)  # widget, its text, since when the pointer rests on it, panel, y


def share_of(value: float, low: float, high: float, log: bool = False) -> float:
    """Where on a slider a value is, 0..1; values outside are at its ends."""
    if log:
        value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0


def value_at(share: float, low: float, high: float, log: bool = False) -> float:
    """The value at a place 0..1 of a slider, exactly `low` and `high` at its ends."""
    if share <= 0.0 or share >= 1.0:
        return low if share <= 0.0 else high
    return low * (high / low) ** share if log else low + share * (high - low)


@functools.lru_cache(64)
def _curve(values: tuple[float, ...], unit: str, digits: int) -> tuple[tuple[float, ...], str, str]:
    """What a plot shows: not too many values, and the last and the largest as text."""
    if len(values) > POINTS:
        shown = tuple(values[k * (len(values) - 1) // (POINTS - 1)] for k in range(POINTS))
    else:
        shown = values
    finite = [v for v in values if math.isfinite(v)]
    largest = f"max {figure(max(finite), '', digits)}" if finite else ""
    return shown, figure(values[-1], unit, digits) if values else "", largest


class Ui(Layers):
    """Everything is `scale` times as large as designed, which is for 100 dots per inch. Widgets are known by their
    labels, or by `key` where two of a panel have the same. `tip` explains a widget that the pointer rests on."""

    def __init__(self, scale: float = 1.0):
        super().__init__(scale)
        self._open = ""  # the choice whose list is open
        self._list: dict[str, str] = {}  # its options, with the colour map to show beside each
        self._chosen, self._picked, self._alive = "", "", False
        self._anchor = (0.0, 0.0, 0.0, 0.0)
        self._tip = _NO_TIP
        self._tip_seen = ""

    def begin(self, pointer: Pointer, width: int, height: int, now: float | None = None) -> None:
        super().begin(pointer, width, height, now)
        self._alive, self._tip_seen = False, ""
        if self._open and self._pressed and (self._over is None or self._over.name != POPUP):
            self._open, self._picked = "", ""
            self.held, self.captures = POPUP, True  # the click that closes a list does nothing else

    def end(self) -> np.ndarray:
        if self._open and not self._alive:
            self._open = ""
        if self._open:
            self._show_list()
        self._show_tip()
        return super().end()

    def text(self, text: str, dim: bool = False, size: float = paint.TEXT, align: float = 0.0) -> None:
        """Running text, in as many lines as it takes."""
        lines = wrapped(text, size, self.next_width(), self.scale)
        h = len(lines) * paint.LINE_HEIGHT * size / paint.TEXT
        x, y, w = self._place(h)
        self._draw("text", x, y, w, h, lines, size, paint.DIM if dim else paint.INK, align)

    def heading(self, text: str) -> None:
        """Begins another part of a panel."""
        x, y, w = self._place(HEADING)
        self._draw("heading", x, y, w, HEADING, text)

    def tile(self, label: str, value: str) -> None:
        """A value with its name above."""
        x, y, w = self._place(TILE)
        self._draw("tile", x, y, w, TILE, label, value)

    def keys(self, key: str, meaning: str, column: float) -> None:
        """A key of the keyboard and what it does, written `column` units further right."""
        x, y, w = self._place(KEYS)
        self._draw("keys", x, y, w, KEYS, key, meaning, column)

    def button(self, label: str, active: bool = False, icon: str = "", enabled: bool = True, alarm: bool = False,
               small: bool = False, key: str = "", tip: str = "") -> bool:  # fmt: skip
        """True when it was clicked. `icon` is drawn before the label: play, pause, step, reset, record, stop."""
        h, size = (SMALL_BUTTON, paint.SMALL) if small else (BUTTON, paint.TEXT)
        x, y, w = self._place(h)
        hot, held, clicked = self._touch(key or label, x, y, w, h)
        mood = "off" if not enabled else "down" if held and hot else "hot" if hot or held else ""
        self._draw("button", x, y, w, h, label, icon, mood, "alarm" if alarm else "active" if active else "", size)
        self._explain(hot, key or label, tip, y)
        return clicked and enabled

    def checkbox(self, label: str, value: bool, key: str = "", tip: str = "") -> bool:
        x, y, w = self._place(CHECKBOX)
        hot, _, clicked = self._touch(key or label, x, y, w, CHECKBOX)
        value = bool(value) != clicked
        self._draw("checkbox", x, y, w, CHECKBOX, label, value, hot)
        self._explain(hot, key or label, tip, y)
        return value

    def slider(self, label: str, value: float, low: float, high: float, log: bool = False, unit: str = "",
               digits: int = 3, key: str = "", tip: str = "") -> float:  # fmt: skip
        """A value from `low` to `high` (both above zero if `log`); one outside stays as it is until it is moved."""
        if log and not 0.0 < low < high:
            raise ValueError(f"a logarithmic slider needs 0 < low < high, got {low!r} and {high!r}")
        x, y, w = self._place(SLIDER)
        hot, held, _ = self._touch(key or label, x, y, w, SLIDER)
        name, left = f"{self._layer.name}/{key or label}", self._layer.x + x
        share, length = share_of(value, low, high, log), w - 2 * paint.KNOB
        wanted = share
        if held and self._pressed:
            fine = self._py < self.places[name][1] / self.scale + paint.SLIDER_TEXT
            self._start = (self._px, share) if fine else (math.nan, 0.0)
        if held and math.isnan(self._start[0]):
            wanted = min(max((self._px - left - paint.KNOB) / length, 0.0), 1.0)
        elif held:
            moved = FINE * (self._px - self._start[0]) / length
            wanted = min(max(self._start[1] + moved, 0.0), 1.0) if moved else share
        elif hot and self._wheel and (not self._layer.scrolls or self._focus == name):
            wanted, self._wheel = min(max(share + NOTCH * self._wheel, 0.0), 1.0), 0.0
        if wanted != share:
            value, share = value_at(wanted, low, high, log), wanted
        self._draw("slider", x, y, w, SLIDER, label, figure(value, unit, digits), round(share, 4), hot or held)
        self._explain(hot, key or label, tip, y)
        return value

    def choice(self, label: str, value: str, options: Iterable[str], maps: Mapping[str, str] | None = None,
               key: str = "", tip: str = "") -> str:  # fmt: skip
        """One of `options`, from a list that opens over everything; `maps` names colour maps to show beside them."""
        x, y, w = self._place(CHOICE)
        swatch = (maps or {}).get(value, "")
        picked, hot = self._listed(key or label, x, y, w, label, value, swatch, options, maps or {}, True)
        self._explain(hot and not self._open, key or label, tip, y)
        return picked or value

    def menu(self, label: str, options: Iterable[str], key: str = "") -> str:
        """A button that opens a list; what was picked from it, or nothing. It cannot be used if there are none."""
        x, y, w = self._place(BUTTON)
        options = list(options)
        return self._listed(key or label, x, y, w, "", label, "", options, {}, bool(options))[0]

    def _listed(self, key: str, x: float, y: float, w: float, label: str, value: str, swatch: str,
                options: Iterable[str], maps: Mapping[str, str], enabled: bool) -> tuple[str, bool]:  # fmt: skip
        hot, held, clicked = self._touch(key, x, y, w, CHOICE)
        name = f"{self._layer.name}/{key}"
        left = x + (paint.CHOICE_SHARE * w if label else 0.0)
        if clicked and enabled:
            self._open, self._picked = name, ""
        picked = ""
        if self._open == name:
            self._alive, self._chosen = True, value
            self._list = {option: maps.get(option, "") for option in options}
            self._anchor = (self._layer.x + left, self.places[name][1] / self.scale, w - (left - x), CHOICE)
            if self._picked:
                picked, self._open, self._picked = self._picked, "", ""
        mood = "off" if not enabled else "down" if held or self._open == name else "hot" if hot else ""
        shown = picked or value if label else value
        self._draw("choice", x, y, w, CHOICE, label, shown, maps.get(picked, swatch) if picked else swatch, mood)
        return picked, hot

    def _show_list(self) -> None:
        x, y, own, h = self._anchor
        longest = max((text_width(option, paint.TEXT, self.scale) for option in self._list), default=0.0)
        swatches = SWATCH if any(self._list.values()) else 0.0
        w = max(own, longest + swatches + 2 * PADDING + 20)
        x = x if x + w <= self.width - MARGIN else max(x + own - w, 0.0)
        height = min(len(self._list) * (ITEM + ITEM_GAP) - ITEM_GAP + 2 * FOOT, self.height - 2 * MARGIN)
        top = y + h + 3
        if top + height > self.height - MARGIN:  # above it, or where there is room
            top = y - 3 - height if y - 3 - height >= MARGIN else max(self.height - MARGIN - height, MARGIN)
        with self.panel(POPUP, x, top, w, titled=False, above=True):
            self._x, self._w = 7.0, w - 14.0
            for option, swatch in self._list.items():
                ix, iy, iw = self._place(ITEM, ITEM_GAP)
                hot, _, clicked = self._touch(option, ix, iy, iw, ITEM)
                self._draw("item", ix, iy, iw, ITEM, option, swatch, option == self._chosen, hot)
                if clicked:
                    self._picked = option

    def segments(self, label: str, value: str, options: Mapping[str, str], key: str = "", tip: str = "") -> str:
        """One of a few `options`, which stand beside each other under the names that they have there."""
        x, y, w = self._place(SEGMENTS)
        left, across = paint.segment(x, w, len(options), label)
        over = -1
        for k, option in enumerate(options):
            hot, _, clicked = self._touch(f"{key or label}/{option}", left + k * across, y, across, SEGMENTS)
            over = k if hot else over
            value = option if clicked else value
        chosen = list(options).index(value) if value in options else -1
        self._draw("segments", x, y, w, SEGMENTS, label, tuple(options.values()), chosen, over)
        self._explain(over >= 0, key or label, tip, y)
        return value

    def facts(self, label: str, parts: Mapping[str, str]) -> None:
        """Short values with their names, in as many lines as they take."""
        told = tuple((name, 0.0, value) for name, value in parts.items())
        free = self.next_width() - text_width(label, paint.SMALL, self.scale) - 14
        h = FACTS * (max((row for _, row in paint.legend(told, free, self.scale)), default=0) + 1)
        x, y, w = self._place(h)
        self._draw("facts", x, y, w, h, label, told)

    def fold(self, label: str, opened: bool | None, note: str = "", faint: bool = False, key: str = "") -> bool:
        """A row of a tree that opens and closes; None if there is nothing inside. `note` stands at its right end."""
        x, y, w = self._place(FOLD)
        hot, _, clicked = self._touch(key or label, x, y, w, FOLD)
        opened = (opened != clicked) if opened is not None else None
        self._draw("fold", x, y, w, FOLD, label, note, opened, hot, faint)
        return bool(opened)

    def plot(self, label: str, values: Sequence[float], unit: str = "", digits: int = 3) -> None:
        """A small curve over time, with its last and its largest value."""
        x, y, w = self._place(PLOT)
        shown, last, largest = _curve(tuple(values), unit, digits)
        self._draw("plot", x, y, w, PLOT, label, shown, last, largest)

    def stack(self, label: str, parts: Mapping[str, float], unit: str = "", digits: int = 3) -> None:
        """Shares of a whole as one bar, with a legend."""
        told = tuple((name, value, figure(value, "", digits - 1)) for name, value in parts.items())
        rows = max((row for _, row in paint.legend(told, self.next_width(), self.scale)), default=-1) + 1
        h = 17 + paint.STACK_HEIGHT + 4 + 15 * rows
        x, y, w = self._place(h)
        self._draw("stack", x, y, w, h, label, figure(sum(parts.values()), unit, digits), told)

    def colorbar(self, label: str, low: float, high: float, maps: Sequence[str]) -> None:
        """The colours from `low` to `high`; `label` ends in the unit, in brackets."""
        thick = max(paint.BAR_HEIGHT, len(maps) * (4 + paint.BAR_GAP))
        h = 20 + thick + 20
        x, y, w = self._place(h)
        self._draw("colorbar", x, y, w, h, label, low, high, tuple(maps))

    def progress(self, text: str, fraction: float | None, note: str = "") -> None:
        """How far something has come; None for something that takes an unknown time."""
        x, y, w = self._place(PROGRESS)
        low, high = 0.0, fraction or 0.0
        if fraction is None:
            low = (1 + RUNNER) * ((self.now // TICK * TICK / CYCLE) % 1.0) - RUNNER
            high = low + RUNNER
        self._draw("progress", x, y, w, PROGRESS, text, round(low, 3), round(high, 3), note)

    def message(self, text: str, kind: str = "info", closes: bool = False, size: float = paint.TEXT,
                key: str = "") -> bool:  # fmt: skip
        """A sentence, of kind "info" or "error"; True when its cross was clicked."""
        lines = wrapped(text, size, self.next_width() - (34 if closes else 12), self.scale)
        h = len(lines) * paint.LINE_HEIGHT * size / paint.TEXT + 6
        x, y, w = self._place(h)
        hot, _, clicked = self._touch(key or text, x + w - 22, y, 22, 24) if closes else (False, False, False)
        self._draw("message", x, y, w, h, lines, kind, ("hot" if hot else "dim") if closes else "", size)
        return clicked

    def _explain(self, hot: bool, name: str, tip: str, y: float) -> None:
        """Remembers that the pointer rests on a widget that has something to say."""
        if not hot or not tip or self._down:
            return
        layer = self._layer
        name = self._tip_seen = f"{layer.name}/{name}"
        since = self._tip[2] if self._tip[0] == name else self.now
        self._tip = (name, tip, since, layer, layer.y + layer.head + y - layer.scroll)

    def _show_tip(self) -> None:
        """Beside the panel, so that it hides no widgets."""
        _, tip, since, layer, y = self._tip
        if not self._tip_seen:
            self._tip = _NO_TIP
        elif self.now - since >= TIP_AFTER:
            lines = wrapped(tip, paint.SMALL, TIP_WIDTH - 2 * PADDING, self.scale)
            wide = max(text_width(line, paint.SMALL, self.scale) for line in lines) + 2 * PADDING + 1
            left = layer.x + layer.w + 4 if layer.x < self.width / 2 else layer.x - wide - 4
            with self.panel(TIP, left, max(y, 4.0), wide, titled=False, above=True, solid=False):
                self.text(tip, size=paint.SMALL)
