"""What is written on a finished picture: title, clock and colour bar."""

import math
import re

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pliant.render.colors import colormap
from pliant.render.picture import Bar, Picture

REFERENCE = 1280 * 720  # pixels of the picture for which the sizes below are given
SMALLEST = 200  # pixels across: a smaller picture has no room for text
LEAST_SCALE = 0.6  # of all sizes: smaller letters cannot be read
TEXT, LARGE, SMALL = 17.0, 24.0, 14.0  # font sizes: labels, title, numbers
MARGIN, PADDING, ROUNDING = 26.0, 14.0, 9.0  # to the picture's edge, inside the panel, of its corners
BAR_WIDTH, BAR_HEIGHT, STRIP_GAP = 300.0, 14.0, 2.0
WIDEST = 0.6  # share of the picture's width that the bar may take
INTERVALS = 4  # between ticks, about
SMOOTH = 4  # samples across a pixel for the panel's round corners
INK, PAPER = ((32, 37, 45), (255, 255, 255)), ((232, 236, 241), (20, 24, 30))  # dark on light, light on dark
PANEL = 0.62  # opacity of the panel
_PREFIXES = {-9: "n", -6: "u", -3: "m", 3: "k", 6: "M", 9: "G"}
_PREFIXED = ("Pa", "J", "N", "W")  # units that take a prefix; others get a power of ten
_RAISED = re.compile(r"\^(-?\d+)")


def ticks(low: float, high: float, intervals: int = INTERVALS) -> list[float]:
    """Round numbers between `low` and `high`: steps of 1, 2, 2.5 or 5 times a power of ten."""
    raw = (high - low) / intervals
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f for f in (1.0, 2.0, 2.5, 5.0, 10.0) if f * power >= 0.7 * raw) * power
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [k * step for k in range(first, last + 1)]


def scaled(label: str, low: float, high: float) -> tuple[str, float]:
    """The label in a unit that makes numbers short, and what to divide them by: "pressure [kPa]", 1000."""
    size = max(abs(low), abs(high))
    power = 3 * math.floor(math.log10(size) / 3 + 1e-9) if size > 0 else 0
    if power == 0 or 1e-2 <= size < 1e4:
        return label, 1.0
    match = re.fullmatch(r"(.*) \[(.*)\]", label)
    if match and match[2] in _PREFIXED and power in _PREFIXES:
        return f"{match[1]} [{_PREFIXES[power]}{match[2]}]", 10.0**power
    return (f"{match[1]} [10^{power} {match[2]}]" if match else f"{label} [10^{power}]"), 10.0**power


def overlay(image: np.ndarray, picture: Picture) -> np.ndarray:
    """The picture (height, width, 3) with what is to be written on it."""
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST or not (picture.bar or picture.title or picture.clock):
        return image
    canvas = Image.fromarray(image)
    scale = max(math.sqrt(width * height / REFERENCE), LEAST_SCALE)
    if picture.title or picture.clock:
        _write_head(canvas, picture, scale)
    if picture.bar is not None and picture.bar.low < picture.bar.high:
        _write_bar(canvas, picture.bar, picture.dark, scale)
    return np.asarray(canvas)


def _write_head(canvas: Image.Image, picture: Picture, scale: float) -> None:
    pen = ImageDraw.Draw(canvas)
    ink, _ = PAPER if picture.dark else INK
    x, y = MARGIN * scale, 0.8 * MARGIN * scale
    if picture.title:
        _text(pen, (x, y), picture.title, LARGE * scale, ink)
        y += 1.35 * LARGE * scale
    if picture.clock:
        _text(pen, (x, y), picture.clock, TEXT * scale, ink)


def _write_bar(canvas: Image.Image, bar: Bar, dark: bool, scale: float) -> None:
    ink, paper = PAPER if dark else INK
    length = round(min(BAR_WIDTH * scale, WIDEST * canvas.width))
    strip, gap, pad = max(4, round(BAR_HEIGHT * scale / len(bar.maps))), round(STRIP_GAP * scale), PADDING * scale
    label, divisor = scaled(bar.label, bar.low, bar.high)
    thick = len(bar.maps) * (strip + gap) - gap
    top = round(pad + 1.45 * TEXT * scale)
    size = (round(length + 2.6 * pad), round(top + thick + 1.7 * SMALL * scale + 0.5 * pad))
    margin = round(MARGIN * scale)
    corner = margin, canvas.height - size[1] - margin  # seen from the right front, scenes leave this corner free
    _panel(canvas, corner, size, paper, ROUNDING * scale)
    pen, left = ImageDraw.Draw(canvas), round(corner[0] + 1.3 * pad)
    _text(pen, (left, corner[1] + 0.75 * pad), label, TEXT * scale, ink)
    for k, name in enumerate(bar.maps):
        shades = colormap(np.linspace(0.0, 1.0, length), 0.0, 1.0, name)
        row = np.tile((255 * shades + 0.5).astype(np.uint8)[None], (strip, 1, 1))
        canvas.paste(Image.fromarray(row), (left, corner[1] + top + k * (strip + gap)))
    marks = ticks(bar.low / divisor, bar.high / divisor)
    decimals = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-9)) if len(marks) > 1 else 2
    if any(abs(m - round(m, decimals)) > 1e-6 * abs(marks[1] - marks[0]) for m in marks):
        decimals += 1  # steps of 2.5
    bottom = corner[1] + top + thick
    for mark in marks:
        x = left + (mark * divisor - bar.low) / (bar.high - bar.low) * (length - 1)
        pen.line([(x, bottom), (x, bottom + 0.3 * SMALL * scale)], fill=ink, width=max(1, round(scale)))
        _text(pen, (x, bottom + 0.38 * SMALL * scale), f"{mark + 0.0:.{decimals}f}", SMALL * scale, ink, centred=True)


def _panel(canvas: Image.Image, at: tuple[int, int], size: tuple[int, int], color: tuple, rounding: float) -> None:
    """A translucent rounded rectangle; Pillow does not smooth its corners, so they are drawn finer."""
    mask = Image.new("L", (size[0] * SMOOTH, size[1] * SMOOTH), 0)
    box = (0, 0, mask.width - 1, mask.height - 1)
    ImageDraw.Draw(mask).rounded_rectangle(box, rounding * SMOOTH, fill=round(255 * PANEL))
    canvas.paste(color, (at[0], at[1], at[0] + size[0], at[1] + size[1]), mask.resize(size, Image.Resampling.BOX))


def _text(
    pen: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: float, ink: tuple, centred: bool = False
) -> None:
    """One line; ^2 is raised, since Pillow's own font has no superscripts."""
    parts = _RAISED.split(text)
    fonts = [ImageFont.load_default(size * (1.0, 0.68)[k % 2]) for k in range(len(parts))]
    x = at[0] - (sum(f.getlength(p) for f, p in zip(fonts, parts, strict=True)) / 2 if centred else 0.0)
    for k, (font, part) in enumerate(zip(fonts, parts, strict=True)):
        pen.text((x, at[1] - 0.08 * size * (k % 2)), part, fill=ink, font=font)
        x += font.getlength(part)
