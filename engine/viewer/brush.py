"""Draws smooth shapes and text into an image with transparency, by Pillow and its own font: no other files are needed.

All lengths are units of the panels; `scale` pixels make one. Letters and shapes are kept, so that drawing them again is
a copy: text that changes with every step costs a tenth of what Pillow takes for it.
"""

import functools
import math
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pliant.render.colors import colormap

Color = tuple[int, int, int, int]  # sRGB and opacity, 0..255

FINER = 4  # samples across a pixel, for smooth edges
MASKED = 2000  # pixels of a shape that is drawn through a mask as a whole
RAISED_SIZE, RAISED_BY = 0.70, 0.30  # of a superscript, in font sizes
CUT = "..."  # ends text that was too long for its place
_KNOWN = frozenset(chr(c) for c in range(32, 127)) | frozenset("°±·")  # what Pillow's font has
_BRIGHTER = [round(255 * (k / 255) ** 0.72) for k in range(256)]  # thin strokes, which are less than a pixel wide
_CIRCLE = tuple((0.5 + 0.5 * math.cos(k * math.pi / 16), 0.5 + 0.5 * math.sin(k * math.pi / 16)) for k in range(32))
_RAISED = re.compile(r"\^(-?\d+)")


def plain(text: str) -> str:
    """The text in letters that the font has: others lose their accents, or become question marks."""
    if _KNOWN.issuperset(text):
        return text
    letters = (c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return "".join(c if c in _KNOWN else {"–": "-", "—": "-", "−": "-", "×": "x", "’": "'", "\t": " "}.get(c, "?")
                   for c in letters)  # fmt: skip


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.load_default(size).font_variant(layout_engine=ImageFont.Layout.BASIC)  # type: ignore[union-attr]


@functools.lru_cache(8192)
def _letter(letter: str, size: int, phase: int) -> tuple[Image.Image, int, int]:
    """The mask of a letter that begins `phase` fine pixels right of a pixel's edge, and where it stands right of the
    pen and below the line's top. Drawn finer and reduced, letters need not begin at whole pixels: Pillow's do, which
    leaves uneven gaps."""
    font = _font(FINER * size)
    left, top, right, bottom = (round(v) for v in font.getbbox(letter))
    x, y = math.floor((left + phase) / FINER), math.floor(top / FINER)
    box = math.ceil((right + phase) / FINER) - x, math.ceil(bottom / FINER) - y
    big = Image.new("L", (max(box[0], 1) * FINER, max(box[1], 1) * FINER))
    ImageDraw.Draw(big).text((phase - x * FINER, -y * FINER), letter, 255, font)
    return big.reduce(FINER).point(_BRIGHTER), x, y


@functools.lru_cache(4096)
def _advance(letter: str, after: str, size: int) -> int:
    """How far the pen moves for a letter, closer to some than to others [fine pixels]."""
    font = _font(FINER * size)
    return round(font.getlength(after + letter) - font.getlength(after) if after else font.getlength(letter))


@functools.lru_cache(4096)
def _line(text: str, size: int) -> tuple[tuple[tuple[str, int, int, int], ...], int]:
    """The letters of a line with their sizes, heights above it and places [fine pixels]; ^2 is raised. Last the line's
    width [pixels]."""
    found, pen = [], 0
    for k, part in enumerate(_RAISED.split(plain(text))):
        own, lift = (max(round(RAISED_SIZE * size), 6), round(RAISED_BY * size)) if k % 2 else (size, 0)
        after = ""
        for letter in part:
            step = _advance(letter, after, own)
            kerning = step - _advance(letter, "", own)
            found.append((letter, own, lift, pen + kerning))
            pen, after = pen + step, letter
    return tuple(found), math.ceil(pen / FINER)


@functools.lru_cache(2048)
def _text_mask(text: str, size: int) -> Image.Image:
    letters, width = _line(text, size)
    ascent, descent = _metrics(size)
    mask = Image.new("L", (width + 2, ascent + descent))
    for letter, own, lift, pen in letters:
        shape, left, top = _letter(letter, own, pen % FINER)
        below = ascent - _metrics(own)[0] - lift  # baselines agree, but for superscripts
        at = pen // FINER + left, max(below + top, 0)
        mask.paste(255, at, shape)
    return mask


@functools.cache
def _metrics(size: int) -> tuple[int, int]:
    """Heights of a line above and below the letters' feet [pixels]."""
    ascent, descent = _font(FINER * size).getmetrics()
    return ascent // FINER, math.ceil(descent / FINER) + 1


@functools.cache
def _middle(size: int) -> float:
    """Of capital letters, below the top of a line [pixels]."""
    _, top, _, bottom = _font(FINER * size).getbbox("H")
    return (top + bottom) / 2 / FINER


def text_width(text: str, size: float, scale: float = 1.0) -> float:
    """How wide a line of text is [units]."""
    return _line(text, max(round(size * scale), 1))[1] / scale


@functools.lru_cache(4096)
def fitted(text: str, size: float, width: float, scale: float = 1.0) -> str:
    """The text, or as much of its beginning as fits into `width`."""
    if text_width(text, size, scale) <= width:
        return text
    count = len(text)
    while count > 0 and text_width(text[:count].rstrip() + CUT, size, scale) > width:
        count -= 1
    return text[:count].rstrip() + CUT


@functools.lru_cache(512)
def wrapped(text: str, size: float, width: float, scale: float = 1.0) -> tuple[str, ...]:
    """The text in lines of at most `width`, broken between words, and within those that are longer."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}" if line else word
            if text_width(longer, size, scale) <= width:
                line = longer
                continue
            if line:
                lines.append(line)
            while text_width(word, size, scale) > width and len(word) > 1:
                fits = next((n for n in range(len(word) - 1, 1, -1) if text_width(word[:n], size, scale) <= width), 1)
                lines.append(word[:fits])
                word = word[fits:]
            line = word
        lines.append(line)
    return tuple(lines)


@functools.lru_cache(64)
def _corner(radius: int) -> Image.Image:
    """The upper left quarter of a disc."""
    big = Image.new("L", (radius * FINER * 2, radius * FINER * 2))
    ImageDraw.Draw(big).ellipse((0, 0, big.width - 1, big.height - 1), fill=255)
    return big.crop((0, 0, radius * FINER, radius * FINER)).reduce(FINER)


@functools.lru_cache(512)
def _rounded(width: int, height: int, radius: int) -> Image.Image:
    mask, radius = Image.new("L", (width, height), 255), min(radius, width // 2, height // 2)
    if radius > 0:
        corner = _corner(radius)
        for k in range(4):
            x, y = (width - radius) * (k % 2), (height - radius) * (k // 2)
            turned = corner.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if k % 2 else corner
            mask.paste(turned.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if k // 2 else turned, (x, y))
    return mask


@functools.lru_cache(256)
def _outline(width: int, height: int, points: tuple, thick: float) -> Image.Image:
    """A polygon, or an open line if it is `thick` [pixels]; points in 0..1 of the box."""
    big = Image.new("L", (width * FINER, height * FINER))
    corners = [(x * width * FINER, y * height * FINER) for x, y in points]
    if thick > 0:
        ImageDraw.Draw(big).line(corners, fill=255, width=max(round(thick * FINER), 1), joint="curve")
    else:
        ImageDraw.Draw(big).polygon(corners, fill=255)
    return big.reduce(FINER)


@functools.lru_cache(64)
def _gradient(name: str, width: int, height: int) -> Image.Image:
    shades = colormap(np.linspace(0.0, 1.0, width), 0.0, 1.0, name)
    return Image.fromarray(np.tile((255 * shades + 0.5).astype(np.uint8)[None], (height, 1, 1)))


class Brush:
    """Draws into an image of `width` by `height` units, filled with `color` at first. `cut` collects the texts that
    did not fit into their places."""

    def __init__(self, width: float, height: float, scale: float, color: Color):
        self.scale = scale
        self.image = Image.new("RGBA", (self.pixels(width), self.pixels(height)), color)
        self.cut: list[str] = []

    def pixels(self, length: float) -> int:
        return math.floor(length * self.scale + 0.5)

    def _box(self, x: float, y: float, w: float, h: float) -> tuple[int, int, int, int]:
        left, top = self.pixels(x), self.pixels(y)
        return left, top, max(self.pixels(x + w), left + 1), max(self.pixels(y + h), top + 1)

    def fill(self, x: float, y: float, w: float, h: float, color: Color) -> None:
        self.image.paste(color, self._box(x, y, w, h))

    def rounded(self, x: float, y: float, w: float, h: float, radius: float, color: Color) -> None:
        left, top, right, bottom = box = self._box(x, y, w, h)
        if (right - left) * (bottom - top) > MASKED:  # only the corners need a mask, which is slow
            edge = min(self.pixels(radius), (right - left) // 2, (bottom - top) // 2)
            self.image.paste(color, (left, top + edge, right, bottom - edge))
            end = _rounded(right - left, 2 * edge, edge)
            self.image.paste(color, (left, top), end.crop((0, 0, right - left, edge)))
            self.image.paste(color, (left, bottom - edge), end.crop((0, edge, right - left, 2 * edge)))
        else:
            self.image.paste(color, box, _rounded(right - left, bottom - top, self.pixels(radius)))

    def disc(self, x: float, y: float, radius: float, color: Color) -> None:
        """Around (x, y)."""
        across = max(self.pixels(2 * radius), 2)
        left, top = round(x * self.scale - across / 2), round(y * self.scale - across / 2)
        self.image.paste(color, (left, top), _outline(across, across, _CIRCLE, 0.0))

    def shape(self, x: float, y: float, w: float, h: float, points: tuple, color: Color, thick: float = 0.0) -> None:
        """A polygon with corners `points` in 0..1 of the box; or an open line, if it is `thick` [units]."""
        box = self._box(x, y, w, h)
        mask = _outline(box[2] - box[0], box[3] - box[1], points, thick * self.scale)
        self.image.paste(color, box[:2], mask)

    def text(self, x: float, y: float, text: str, size: float, color: Color, width: float = math.inf,
             align: float = 0.0) -> float:  # fmt: skip
        """One line, its capital letters centred at height `y`; `x` is its left end, its middle for `align` = 1/2, and
        its right end for 1. Text wider than `width` is cut. Returns its width."""
        whole, text = text, fitted(text, size, width, self.scale)
        if text != whole:
            self.cut.append(whole)
        if not text:
            return 0.0
        size = max(round(size * self.scale), 1)
        across = _line(text, size)[1]
        left = self.pixels(x) - round(align * across)
        self.image.paste(color, (left, round(y * self.scale - _middle(size))), _text_mask(text, size))
        return across / self.scale

    def strip(self, x: float, y: float, w: float, h: float, name: str, radius: float = 0.0) -> None:
        """The colours of a colour map, from left to right."""
        box = self._box(x, y, w, h)
        size = box[2] - box[0], box[3] - box[1]
        self.image.paste(_gradient(name, *size).convert("RGBA"), box, _rounded(*size, self.pixels(radius)))

    def curve(self, x: float, y: float, w: float, h: float, heights: Sequence[float], line: Color, under: Color,
              thick: float) -> None:  # fmt: skip
        """A curve through evenly spaced points at `heights` (0..1) above the box's lower edge, filled below."""
        box = self._box(x, y, w, h)
        columns, rows, half = box[2] - box[0], box[3] - box[1], thick * self.scale / 2
        at = np.linspace(0.0, len(heights) - 1.0, 2 * columns + 1)  # edges and middles of the columns of pixels
        y_at = half + (1.0 - np.interp(at, np.arange(len(heights)), heights)) * (rows - 2 * half)
        left, middle, right = y_at[:-1:2], y_at[1::2], y_at[2::2]
        top = np.arange(rows)[:, None]
        first = np.minimum(np.minimum(left, middle), right) - half
        last = np.maximum(np.maximum(left, middle), right) + half
        stroke = np.clip(np.minimum(top + 1, last) - np.maximum(top, first), 0.0, 1.0)  # share of each pixel it covers
        for color, shares in ((under, np.clip(top + 1 - middle, 0.0, 1.0)), (line, stroke)):
            self.image.paste(color, box, Image.fromarray((255 * shares + 0.5).astype(np.uint8)))
