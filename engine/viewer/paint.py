"""What panels and widgets look like. Each function draws one kind of widget into its box of a `Brush`."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from pliant.render.overlay import scaled, ticks
from pliant.viewer.brush import Brush, Color, text_width

TEXT, SMALL, TITLE = 13.0, 11.0, 15.0  # sizes of letters
PAPER: Color = (17, 23, 32, 229)  # panels
RAISED: Color = (23, 30, 41, 250)  # what lies above panels: lists, messages, help
EDGE: Color = (52, 63, 79, 230)
LINE: Color = (44, 54, 68, 230)  # between parts of a panel
INK: Color = (229, 235, 242, 255)
DIM: Color = (146, 159, 176, 255)
OFF: Color = (92, 103, 118, 255)  # what cannot be used now
FACE: Color = (44, 55, 71, 250)  # buttons, boxes
HOT: Color = (58, 72, 93, 250)
DOWN: Color = (35, 44, 57, 250)
WELL: Color = (38, 47, 60, 250)  # tracks, plots
ACCENT: Color = (64, 156, 242, 255)  # water
ACCENT_HOT: Color = (96, 178, 255, 255)
ACCENT_DEEP: Color = (33, 68, 105, 250)  # under curves
RED: Color = (235, 90, 90, 255)
WHITE: Color = (255, 255, 255, 255)
CATEGORIES: tuple[Color, ...] = (
    (64, 156, 242, 255), (44, 196, 182, 255), (140, 205, 120, 255), (250, 204, 92, 255), (246, 150, 88, 255),
    (226, 108, 134, 255), (168, 136, 236, 255), (128, 142, 160, 255),
)  # fmt: skip
ROUNDING, BUTTON_ROUNDING = 10.0, 6.0
BOX = 15.0  # a checkbox, across
KNOB, TRACK = 6.0, 4.0  # radius of a slider's handle, height of its track
SLIDER_TEXT = 18.0  # height of a slider's line of text
SPARK_TEXT = 17.0  # and of a plot's
LINE_HEIGHT = 18.0  # of running text
BAR_HEIGHT, BAR_GAP = 11.0, 2.0  # colours of a colour bar
STACK_HEIGHT = 9.0
CHOICE_SHARE = 0.38  # of the width of a choice that its label takes
FINEST = 1e-9  # of the values, below which a range of colours counts as none
BETWEEN_KEYS = ("or", "to", "drag", "held")  # words that are no keys

_PLAY = ((0.15, 0.05), (0.95, 0.5), (0.15, 0.95))
_CHEVRON = ((0.1, 0.3), (0.5, 0.7), (0.9, 0.3))
_CHECK = ((0.2, 0.52), (0.42, 0.74), (0.8, 0.28))
_CROSS = (((0.1, 0.1), (0.9, 0.9)), ((0.9, 0.1), (0.1, 0.9)))
_ARC = tuple((0.5 + 0.38 * math.sin(a), 0.54 - 0.38 * math.cos(a)) for a in (0.3 + 5.0 * k / 24 for k in range(25)))
_ARROW = ((0.36, -0.02), (0.68, 0.19), (0.36, 0.42))


@functools.lru_cache(2048)
def figure(value: float, unit: str = "", digits: int = 3) -> str:
    """A number with so many significant digits and its unit, in a size that reads well: "200 kPa"."""
    unit = {"1": "", "degree": "°", "degrees": "°"}.get(unit, unit)
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    label, divisor = scaled(f"v [{unit}]", value, value)
    value, unit = value / divisor, label[3:-1].strip()
    decimals = max(digits - 1 - math.floor(math.log10(abs(value)) + 1e-9), 0) if value else 0
    number = f"{value + 0.0:.{min(decimals, 9)}f}"
    if unit == "°":
        return number + unit
    return f"{number}{'·' if unit.startswith('10^') else ' '}{unit}".strip()


def panel(b: Brush, x: float, y: float, w: float, h: float, title: str, note: str, paper: Color,
          head: float) -> None:  # fmt: skip
    b.rounded(x, y, w, h, ROUNDING, EDGE)
    line = 1 / b.scale
    b.rounded(x + line, y + line, w - 2 * line, h - 2 * line, ROUNDING - line, paper)
    if title:
        width = b.text(x + 13, y + head / 2, title, TITLE, INK, w - 26)
        b.text(x + w - 13, y + head / 2 + 1, note, TEXT, DIM, w - 26 - width - 10, 1.0)
        b.fill(x + 13, y + head - 3, w - 26, 1 / b.scale, LINE)


def scrollbar(b: Brush, x: float, y: float, w: float, h: float, hot: bool) -> None:
    b.rounded(x, y, w, h, w / 2, HOT if hot else EDGE)


def text(b: Brush, x: float, y: float, w: float, h: float, lines: Sequence[str], size: float, color: Color,
         align: float = 0.0) -> None:  # fmt: skip
    pitch = h / max(len(lines), 1)
    for k, line in enumerate(lines):
        b.text(x + align * w, y + (k + 0.5) * pitch, line, size, color, w, align)


def heading(b: Brush, x: float, y: float, w: float, h: float, label: str) -> None:
    width = b.text(x, y + h - 10, label, SMALL, ACCENT_HOT, w)
    b.fill(x + width + 8, y + h - 10, max(w - width - 8, 1), 1 / b.scale, LINE)


def tile(b: Brush, x: float, y: float, w: float, h: float, label: str, value: str) -> None:
    b.text(x, y + 7, label, SMALL, DIM, w)
    b.text(x, y + 24, value, TEXT + 1, INK, w)


def button(b: Brush, x: float, y: float, w: float, h: float, label: str, icon: str, mood: str, kind: str,
           size: float) -> None:  # fmt: skip
    """`mood` is "", "hot", "down" or "off"; `kind` "", "active" or "alarm"."""
    if kind == "active" and mood != "off":
        face = {"": ACCENT, "hot": ACCENT_HOT, "down": ACCENT}[mood]
    elif kind == "alarm" and mood != "off":
        face = RED
    else:
        face = {"": FACE, "hot": HOT, "down": DOWN, "off": DOWN}[mood]
    ink = OFF if mood == "off" else WHITE if kind else INK
    b.rounded(x, y, w, h, BUTTON_ROUNDING, face)
    mark = 10.0 if icon else 0.0
    gap = 6.0 if icon and label else 0.0
    room = w - (4 if size < TEXT else 8) - mark - gap
    across = min(text_width(label, size, b.scale), room)
    left, middle = x + (w - across - mark - gap) / 2, y + h / 2
    if icon:
        _icon(b, left, middle - mark / 2, mark, icon, RED if icon == "record" and not kind and mood != "off" else ink)
    b.text(left + mark + gap, middle, label, size, ink, room)


def _icon(b: Brush, x: float, y: float, s: float, name: str, ink: Color) -> None:
    if name == "play":
        b.shape(x, y, s, s, _PLAY, ink)
    elif name == "pause":
        b.rounded(x + 0.1 * s, y, 0.3 * s, s, 1, ink)
        b.rounded(x + 0.6 * s, y, 0.3 * s, s, 1, ink)
    elif name == "step":
        b.shape(x - 0.1 * s, y, 0.8 * s, s, _PLAY, ink)
        b.rounded(x + 0.75 * s, y, 0.22 * s, s, 1, ink)
    elif name == "reset":
        b.shape(x - 1, y - 1, s + 2, s + 2, _ARC, ink, 1.6)
        b.shape(x - 1, y - 1, s + 2, s + 2, _ARROW, ink)
    elif name == "record":
        b.disc(x + s / 2, y + s / 2, s / 2, ink)
    elif name == "stop":
        b.rounded(x + 1, y + 1, s - 2, s - 2, 1.5, ink)
    elif name == "close":
        for stroke in _CROSS:
            b.shape(x, y, s, s, stroke, ink, 1.6)


def checkbox(b: Brush, x: float, y: float, w: float, h: float, label: str, value: bool, hot: bool) -> None:
    top = y + (h - BOX) / 2
    if value:
        b.rounded(x, top, BOX, BOX, 4, ACCENT_HOT if hot else ACCENT)
        b.shape(x, top, BOX, BOX, _CHECK, WHITE, 1.9)
    else:
        b.rounded(x, top, BOX, BOX, 4, DIM if hot else OFF)
        b.rounded(x + 1.2, top + 1.2, BOX - 2.4, BOX - 2.4, 3, DOWN)
    if label:
        b.text(x + BOX + 8, y + h / 2, label, TEXT, INK, w - BOX - 8)


def slider(b: Brush, x: float, y: float, w: float, h: float, label: str, value: str, share: float, hot: bool) -> None:
    width = b.text(x + w, y + SLIDER_TEXT / 2, value, TEXT, INK, w, 1.0)
    b.text(x, y + SLIDER_TEXT / 2, label, TEXT, DIM, w - width - 6)
    middle = y + SLIDER_TEXT + (h - SLIDER_TEXT) / 2 - 1
    at = x + KNOB + share * (w - 2 * KNOB)
    b.rounded(x, middle - TRACK / 2, w, TRACK, TRACK / 2, HOT)
    b.rounded(x, middle - TRACK / 2, max(at - x, TRACK), TRACK, TRACK / 2, ACCENT)
    b.disc(at, middle, KNOB, ACCENT_HOT if hot else ACCENT)
    b.disc(at, middle, KNOB - 2, WHITE)


def choice(b: Brush, x: float, y: float, w: float, h: float, label: str, value: str, swatch: str, mood: str) -> None:
    left = x + (CHOICE_SHARE * w if label else 0.0)
    if label:
        b.text(x, y + h / 2, label, TEXT, DIM, left - x - 6)
    b.rounded(left, y, x + w - left, h, BUTTON_ROUNDING, {"": FACE, "hot": HOT, "down": DOWN, "off": DOWN}[mood])
    ink = OFF if mood == "off" else INK
    room = x + w - left - 32
    if swatch:
        b.strip(x + w - 64, y + h / 2 - 5, 36, 10, swatch, 3)
        room -= 42
    b.text(left + 10, y + h / 2, value, TEXT, ink, room)
    b.shape(x + w - 20, y + h / 2 - 5, 10, 10, _CHEVRON, ink, 1.7)


def item(b: Brush, x: float, y: float, w: float, h: float, label: str, swatch: str, chosen: bool, hot: bool) -> None:
    if hot or chosen:
        b.rounded(x, y, w, h, 5, HOT if hot else ACCENT_DEEP)
    if swatch:
        b.strip(x + w - 62, y + h / 2 - 5, 54, 10, swatch, 3)
    b.text(x + 9, y + h / 2, label, TEXT, WHITE if chosen else INK, w - 18 - (58 if swatch else 0))


def fold(b: Brush, x: float, y: float, w: float, h: float, label: str, note: str, opened: bool | None,
         hot: bool, faint: bool) -> None:  # fmt: skip
    """A row of a tree; `opened` is None where there is nothing inside."""
    if hot and opened is not None:
        b.rounded(x - 3, y, w + 6, h, 5, DOWN)
    if opened is not None:
        points = _CHEVRON if opened else tuple((py, px) for px, py in _CHEVRON)
        b.shape(x + 1, y + h / 2 - 5, 10, 10, points, ACCENT_HOT if hot else DIM, 1.7)
    width = b.text(x + w, y + h / 2, note, SMALL, DIM, 0.5 * w, 1.0) if note else 0.0
    b.text(x + 17, y + h / 2, label, TEXT, OFF if faint else INK, w - 17 - width - 6)


def plot(b: Brush, x: float, y: float, w: float, h: float, label: str, values: tuple[float, ...], last: str,
         largest: str) -> None:  # fmt: skip
    """A curve from zero to its largest value."""
    width = b.text(x + w, y + 7, last, SMALL, INK, w, 1.0)
    b.text(x, y + 7, label, SMALL, DIM, w - width - 4)
    top = y + SPARK_TEXT
    b.rounded(x, top, w, y + h - top, 4, WELL)
    finite = [v for v in values if math.isfinite(v)]
    high, low = max(finite, default=0.0), min(finite, default=0.0)
    low = min(low, 0.0)
    if len(finite) > 1:
        span = (high - low) or 1.0
        heights = [min(max((v - low) / span, 0.0), 1.0) if math.isfinite(v) else 0.0 for v in values]
        b.curve(x + 2, top + 11, w - 4, y + h - top - 12, heights, ACCENT, ACCENT_DEEP, 1.5)
    if largest:
        b.text(x + w - 5, top + 7, largest, SMALL - 1.5, DIM, w - 10, 1.0)


def stack(b: Brush, x: float, y: float, w: float, h: float, label: str, total: str, parts: tuple) -> None:
    """Shares (name, value, text) of a whole, beside each other, and their names in as many lines as the box has."""
    b.text(x, y + 7, label, SMALL, DIM, 0.6 * w)
    b.text(x + w, y + 7, total, SMALL, INK, 0.4 * w, 1.0)
    whole = sum(value for _, value, _ in parts)
    top = y + 17
    b.rounded(x, top, w, STACK_HEIGHT, 3, WELL)
    at = x
    for k, (_, value, _) in enumerate(parts):
        across = w * value / whole if whole > 0 else 0.0
        if across * b.scale >= 1:
            b.fill(at, top, max(across - 1, 1 / b.scale), STACK_HEIGHT, CATEGORIES[k % len(CATEGORIES)])
        at += across
    for k, (left, row) in enumerate(legend(parts, w, b.scale)):
        middle = top + STACK_HEIGHT + 11 + 15 * row
        b.disc(x + left + 4, middle, 3.5, CATEGORIES[k % len(CATEGORIES)])
        name = parts[k][0]
        width = b.text(x + left + 12, middle, name, SMALL, DIM)
        b.text(x + left + 12 + width + 5, middle, parts[k][2], SMALL, INK)


def legend(parts: tuple, width: float, scale: float) -> list[tuple[float, int]]:
    """Where the names of a stack stand: how far from the left, and in which line."""
    found, left, row = [], 0.0, 0
    for name, _, value in parts:
        across = 12 + text_width(name, SMALL, scale) + 5 + text_width(value, SMALL, scale)
        if left > 0 and left + across > width:
            left, row = 0.0, row + 1
        found.append((left, row))
        left += across + 12
    return found


def colorbar(b: Brush, x: float, y: float, w: float, h: float, label: str, low: float, high: float,
             maps: tuple[str, ...]) -> None:  # fmt: skip
    """As on pictures: ticks at round numbers, one strip for each colour map in use."""
    if not (math.isfinite(low) and math.isfinite(high)):
        b.text(x, y + 8, f"{label}: not a number", TEXT, INK, w)
        return
    label, divisor = scaled(label, low, high)
    b.text(x, y + 8, label, TEXT, INK, w)
    top, thick = y + 20, max(BAR_HEIGHT / len(maps) - BAR_GAP, 4.0) if len(maps) > 1 else BAR_HEIGHT
    for k, name in enumerate(maps):
        b.strip(x, top + k * (thick + BAR_GAP), w, thick, name, 2)
    bottom = top + len(maps) * (thick + BAR_GAP) - BAR_GAP
    for number, mark in _marks(low / divisor, high / divisor, w, b.scale):
        at = x + (mark * divisor - low) / ((high - low) or 1.0) * w
        b.fill(min(max(at, x), x + w - 1), bottom, 1 / b.scale, 4, INK)
        half = text_width(number, SMALL, b.scale) / 2
        b.text(min(max(at, x + half), x + w - half), bottom + 13, number, SMALL, INK, w, 0.5)


def _marks(low: float, high: float, width: float, scale: float) -> list[tuple[str, float]]:
    """Round numbers from `low` to `high`, so many that their texts have room side by side."""
    if not high - low > FINEST * max(abs(low), abs(high)):  # all values are the same
        return [(figure(low), low)]
    found: list[tuple[str, float]] = []
    for intervals in (4, 2, 1):
        marks = ticks(low, high, intervals)
        step = marks[1] - marks[0] if len(marks) > 1 else abs(marks[0]) or 1.0
        decimals = next((d for d in range(12) if abs(step - round(step, d)) < 1e-6 * step), 12)
        found = [(f"{mark + 0.0:.{decimals}f}", mark) for mark in marks]
        if sum(text_width(number, SMALL, scale) + 12 for number, _ in found) <= width:
            break
    return found


def progress(b: Brush, x: float, y: float, w: float, h: float, label: str, low: float, high: float, note: str) -> None:
    """Filled from share `low` to share `high`."""
    width = b.text(x + w, y + 8, note, TEXT, DIM, 0.4 * w, 1.0) if note else 0.0
    b.text(x, y + 8, label, TEXT, INK, w - width - 8)
    b.rounded(x, y + h - 7, w, 4, 2, HOT)
    left, right = max(low, 0.0) * w, min(high, 1.0) * w
    if right - left > 1:
        b.rounded(x + left, y + h - 7, right - left, 4, 2, ACCENT)


def message(b: Brush, x: float, y: float, w: float, h: float, lines: tuple[str, ...], kind: str, close: str,
            size: float) -> None:  # fmt: skip
    """`close` is "", or the mood of its closing cross."""
    b.rounded(x, y + 2, 3, h - 4, 1.5, RED if kind == "error" else ACCENT)
    text(b, x + 12, y + 3, w - 12 - (22 if close else 0), h - 6, lines, size, INK)
    if close:
        _icon(b, x + w - 13, y + 7, 9, "close", INK if close == "hot" else DIM)


def segments(b: Brush, x: float, y: float, w: float, h: float, label: str, names: tuple[str, ...], chosen: int,
             hot: int) -> None:  # fmt: skip
    """Names beside each other, one of them chosen and one, or none (-1), under the pointer."""
    left, across = segment(x, w, len(names), label)
    if label:
        b.text(x, y + h / 2, label, TEXT, DIM, left - x - 6)
    b.rounded(left, y, x + w - left, h, BUTTON_ROUNDING, FACE)
    for k, name in enumerate(names):
        if k in (chosen, hot):
            face = ACCENT if k == chosen else HOT
            b.rounded(left + k * across + 2, y + 2, across - 4, h - 4, BUTTON_ROUNDING - 1.5, face)
        ink = WHITE if k == chosen else INK
        b.text(left + (k + 0.5) * across, y + h / 2, name, SMALL, ink, across - 4, 0.5)


def segment(x: float, w: float, count: int, label: str) -> tuple[float, float]:
    """The left end of the first of `count` segments, and the width of each."""
    left = x + (CHOICE_SHARE * w if label else 0.0)
    return left, (x + w - left) / count


def facts(b: Brush, x: float, y: float, w: float, h: float, label: str, parts: tuple) -> None:
    """Names and their values (name, 0, text) behind a label, in as many lines as the box has."""
    indent = text_width(label, SMALL, b.scale) + 14
    b.text(x, y + 8, label, SMALL, DIM, w)
    for (name, _, value), (left, row) in zip(parts, legend(parts, w - indent, b.scale), strict=True):
        at, middle = x + indent + left, y + 8 + 15 * row
        width = b.text(at, middle, name, SMALL, DIM)
        b.text(at + width + 5, middle, value, SMALL, INK)


def keys(b: Brush, x: float, y: float, w: float, h: float, key: str, meaning: str, column: float) -> None:
    """A key, as on a keyboard, and what it does; `column` is where that is written."""
    at = x
    for part in key.split(" "):
        if part in BETWEEN_KEYS:
            at += b.text(at, y + h / 2, part, SMALL, DIM) + 4
        else:
            across = max(text_width(part, SMALL, b.scale) + 11, 20)
            b.rounded(at, y + 3, across, h - 6, 4, FACE)
            b.text(at + across / 2, y + h / 2, part, SMALL, INK, across, 0.5)
            at += across + 4
    if at > x + column:
        b.cut.append(key)
    b.text(x + column, y + h / 2, meaning, TEXT, INK, w - column)


LOOKS: dict[str, Callable[..., Any]] = {
    look.__name__: look
    for look in (panel, scrollbar, text, heading, tile, button, checkbox, slider, choice, item, fold, plot,
                 stack, colorbar, progress, message, segments, facts, keys)
}  # fmt: skip


def paint(brush: Brush, commands: Sequence[tuple]) -> None:
    """Draws commands: the name of a look, the box x, y, w, h, and what else it wants to know."""
    for name, *details in commands:
        LOOKS[name](brush, *details)
