"""Panels as layers of one image: where things stand, what the pointer is over, and what has to be drawn again.

Widgets are called anew in every frame and say what they look like. A panel is drawn again only where that has changed,
so that a frame in which nothing happens costs next to nothing.
"""

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from PIL import Image

from pliant.viewer import paint
from pliant.viewer.brush import Brush

PADDING, GAP, COLUMN_GAP = 13.0, 5.0, 6.0  # inside a panel; between widgets, below and beside each other
HEAD, FOOT = 38.0, 11.0  # heights of a panel's title, and of what is left free at its end
MARGIN = 12.0  # between panels and the window's edge
INDENT = 12.0
NARROWEST = 80.0  # panel
SCROLLBAR, SHORTEST = 5.0, 24.0  # width of a scroll bar, least length of its handle
NOTCH = 40.0  # how far a notch of the wheel scrolls
OUTSIDE, BACKGROUND, SCROLL = "outside", "background", "scroll bar"  # what may be held beside widgets
MOST_LAYERS = 64  # that are kept, also those that are not there now
OPACITIES = 8  # steps in which a layer fades


@dataclasses.dataclass
class Pointer:
    """The mouse: place in pixels from left and top, whether the left button is held, notches that the wheel has turned
    up since the last frame, and whether there was a click so short that it began and ended between two frames."""

    x: float
    y: float
    down: bool = False
    wheel: float = 0.0
    tapped: bool = False


@dataclasses.dataclass(eq=False)
class Layer:
    """A panel: its box in the window, the height of its contents, how far they are scrolled, and what is drawn."""

    name: str
    x: float = 0.0
    y: float = 0.0
    w: float = 0.0
    h: float = 0.0
    head: float = 0.0
    length: float = 0.0  # of the contents
    scroll: float = 0.0
    above: bool = False  # may lie over others
    solid: bool = True  # stops the pointer
    title: str = ""
    note: str = ""  # at the right of the title
    opacity: int = OPACITIES
    commands: list[tuple] = dataclasses.field(default_factory=list)
    frame: int = -1  # in which it was last there
    key: tuple = ()  # all that its pixels follow from, but for the commands
    drawn: list[tuple] | None = None  # the commands that `contents` show
    contents: Image.Image | None = None
    pixels: np.ndarray | None = None
    cut: list[str] = dataclasses.field(default_factory=list)  # texts that did not fit

    @property
    def room(self) -> float:
        """Height that there is for the contents."""
        return self.h - self.head - FOOT

    @property
    def scrolls(self) -> bool:
        return self.length > self.room + 0.5

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x < self.x + self.w and self.y <= y < self.y + self.h


class Layers:
    """Lengths are units: `scale` pixels each. `places` has the box (x, y, width, height) [pixels] of every widget of
    this frame, by "panel/widget". `captures` tells whether the mouse belongs to a panel, and `changed` whether the
    last `end` gave another picture than the one before."""

    def __init__(self, scale: float = 1.0):
        self.scale = scale
        self.places: dict[str, tuple[float, float, float, float]] = {}
        self.captures, self.changed = False, True
        self.held = ""  # "panel/widget" that the button was pressed on, as long as it is down
        self.width, self.height, self.now = 0.0, 0.0, 0.0
        self._layers: dict[str, Layer] = {}
        self._order: list[Layer] = []  # of this frame
        self._last: list[Layer] = []  # of the frame before
        self._layer = Layer("")
        self._over: Layer | None = None  # which the pointer is over
        self._focus = ""  # the widget that was pressed last
        self._px, self._py, self._wheel = 0.0, 0.0, 0.0
        self._down = self._pressed = self._released = False
        self._start = (0.0, 0.0)  # where the pointer, and what it drags, were when the button was pressed
        self._frame, self._x, self._y, self._w = 0, 0.0, 0.0, 0.0
        self._columns: list[tuple[float, float]] | None = None
        self._row_height, self._gap = 0.0, 0.0  # of the row under way, and below the last widget
        self._canvas = np.zeros((0, 0, 4), np.uint8)
        self._composed: tuple = ()

    def begin(self, pointer: Pointer, width: int, height: int, now: float | None = None) -> None:
        """Starts a frame in a window of so many pixels; `now` [s] is the time for what moves by itself."""
        self.now = time.perf_counter() if now is None else now
        self.width, self.height = width / self.scale, height / self.scale
        self._px, self._py, self._wheel = pointer.x / self.scale, pointer.y / self.scale, pointer.wheel
        self._pressed = (pointer.down and not self._down) or (pointer.tapped and not self._down)
        self._released = (self._down and not pointer.down) or (pointer.tapped and not pointer.down)
        self._down = pointer.down
        self._frame += 1
        self._last, self._order, self.places = self._order, [], {}
        over = [layer for layer in self._stacked(self._last) if layer.solid and layer.holds(self._px, self._py)]
        self._over = over[-1] if over else None
        if self._pressed:
            self.held = "" if self._over else OUTSIDE
        self.captures = self.held != OUTSIDE if self._down or self._released else self._over is not None

    @contextmanager
    def panel(self, title: str, x: float | None, y: float | None, width: float, height: float | None = None, *,
              most: float = math.inf, titled: bool = True, note: str = "", above: bool = False, solid: bool = True,
              opacity: float = 1.0, between: tuple[float, float] = (0.0, 0.0)) -> Iterator[None]:  # fmt: skip
        """A panel with its upper left corner at (x, y); a negative x or y is the distance of its right or lower edge
        from the window's, None centres it. Without a `height` it is as high as its contents, `most` at most; longer
        contents scroll. `above` lies over other panels; the pointer goes through one that is not `solid`. A centred
        one leaves the heights `between` free, above and below."""
        layer, width = self._layers.setdefault(title, Layer(title)), max(width, NARROWEST)
        known = layer.frame == self._frame - 1
        layer.head = HEAD if titled else FOOT
        layer.title, layer.note, layer.above, layer.solid = title if titled else "", note, above, solid
        layer.w, layer.frame = width, self._frame
        layer.opacity = round(min(max(opacity, 0.0), 1.0) * OPACITIES)
        layer.x = (self.width - width) / 2 if x is None else x if x >= 0 else self.width + x - width
        room = self.height - MARGIN - (MARGIN if y is None else abs(y))
        most = max(min(most, room), layer.head + FOOT)
        self._settle(layer, y, height, most, layer.length if known else 0.0, between)
        layer.scroll = self._scrolled(layer) if known else 0.0
        outer = self._layer, self._x, self._y, self._w
        self._layer, layer.commands = layer, []
        self._x, self._y, self._w = PADDING, 0.0, width - 2 * PADDING
        self._order.append(layer)
        yield
        layer.length = max(self._y - self._gap, 0.0)
        self._settle(layer, y, height, most, layer.length, between)
        if self._wheel and self._over is layer and layer.scrolls:  # that no widget has used
            layer.scroll = min(max(layer.scroll - NOTCH * self._wheel, 0.0), layer.length - layer.room)
        self._layer, self._x, self._y, self._w = outer

    @staticmethod
    def _stacked(layers: list[Layer]) -> list[Layer]:
        """From the lowest to the highest."""
        return sorted(layers, key=lambda layer: layer.above)

    def _settle(self, layer: Layer, y: float | None, height: float | None, most: float, length: float,
                between: tuple[float, float]) -> None:  # fmt: skip
        """Gives it its height, whole pixels, and the place that follows from it."""
        wanted = layer.head + length + FOOT if height is None else height
        layer.h = min(math.ceil(wanted * self.scale) / self.scale, most)
        if y is None:
            top, below = between if self.height - sum(between) >= layer.h else (0.0, 0.0)
            layer.y = top + (self.height - top - below - layer.h) / 2
        else:
            layer.y = y if y >= 0 else self.height + y - layer.h

    def _scrolled(self, layer: Layer) -> float:
        """How far the contents are scrolled now: by the bar, or by dragging where there is no widget."""
        if not layer.scrolls:
            return 0.0
        most, scroll = layer.length - layer.room, layer.scroll
        x, y, w, h = self._handle(layer)
        name = f"{layer.name}/{SCROLL}"
        self.places[name] = tuple(v * self.scale for v in (layer.x + x, layer.y + y, w, h))  # type: ignore[assignment]
        inside = self._over is layer and abs(self._px - layer.x - x - w / 2) < 2 * w
        if self._pressed and inside:
            self.held, self._start = name, (self._py, scroll)
            if not y <= self._py - layer.y < y + h:  # beside the handle: it jumps there
                share = (self._py - layer.y - layer.head - h / 2) / (layer.room - h)
                self._start = self._py, min(max(share, 0.0), 1.0) * most
        if self.held == name and self._down:
            scroll = self._start[1] + (self._py - self._start[0]) * most / (layer.room - h)
        elif self.held == f"{layer.name}/{BACKGROUND}" and self._down:
            scroll = self._start[1] - (self._py - self._start[0])
        return min(max(scroll, 0.0), most)

    def _handle(self, layer: Layer) -> tuple[float, float, float, float]:
        """Of the scroll bar, in the panel."""
        h = max(layer.room * layer.room / layer.length, SHORTEST)
        share = layer.scroll / (layer.length - layer.room)
        return layer.w - SCROLLBAR - 3, layer.head + min(share, 1.0) * (layer.room - h), SCROLLBAR, h

    @contextmanager
    def row(self, columns: int | Sequence[float], gap: float = COLUMN_GAP) -> Iterator[None]:
        """Widgets beside each other: so many of equal width, or with these shares of it."""
        shares = [1.0] * columns if isinstance(columns, int) else list(columns)
        free = self._w - gap * (len(shares) - 1)
        widths = [free * share / sum(shares) for share in shares]
        lefts = [self._x + sum(widths[:k]) + gap * k for k in range(len(widths))]
        self._columns, self._row_height = list(zip(lefts, widths, strict=True)), 0.0
        yield
        self._columns = None
        self._y, self._gap = self._y + self._row_height + GAP, GAP

    @contextmanager
    def indent(self) -> Iterator[None]:
        """What belongs to the row above."""
        self._x, self._w = self._x + INDENT, self._w - INDENT
        yield
        self._x, self._w = self._x - INDENT, self._w + INDENT

    def space(self, height: float = GAP) -> None:
        """Leaves room."""
        self._y += height

    def height_of(self, title: str) -> float:
        """Of a panel, as it was drawn last; 0 if it is not there."""
        layer = self._layers.get(title)
        return layer.h if layer is not None and layer.frame >= self._frame - 1 else 0.0

    def next_width(self) -> float:
        """Of the next widget."""
        return self._columns[0][1] if self._columns else self._w

    def _place(self, height: float, gap: float = GAP) -> tuple[float, float, float]:
        """Where the next widget stands among the contents, and how wide it is."""
        if self._columns:
            x, w = self._columns.pop(0)
            self._row_height = max(self._row_height, height)
            return x, self._y, w
        x, y, w = self._x, self._y, self._w
        self._y, self._gap = self._y + height + gap, gap
        return x, y, w

    def _touch(self, name: str, x: float, y: float, w: float, h: float) -> tuple[bool, bool, bool]:
        """Of a widget's box: is the pointer over it and free to use it, is it held, was it clicked just now?"""
        layer = self._layer
        name, x, y = f"{layer.name}/{name}", layer.x + x, layer.y + layer.head + y - layer.scroll
        s = self.scale
        self.places[name] = x * s, y * s, w * s, h * s
        px, py = self._px, self._py
        inside = (layer is self._over and x <= px < x + w and y <= py < y + h
                  and -1 <= py - layer.y - layer.head < layer.room + 1)  # fmt: skip
        if self._pressed and inside and not self.held:
            self.held = self._focus = name
        held = self.held == name
        return inside and (held or not self._down and not self.held), held, held and inside and self._released

    def _draw(self, *command: object) -> None:
        self._layer.commands.append(command)

    def end(self) -> np.ndarray:
        """The panels (height, width, 4), sRGB with straight opacity, first row on top; the array of the frame before
        if the window has the same size."""
        if self._pressed and not self.held and self._over:  # a panel where it has no widget
            self.held = self._focus = f"{self._over.name}/{BACKGROUND}"
            self._start = self._py, self._over.scroll
        if not self._down:
            self.held = ""
        if len(self._layers) > MOST_LAYERS:
            self._layers = {layer.name: layer for layer in self._order}
        redrawn = [layer for layer in self._order if self._render(layer)]
        self._compose(redrawn)
        return self._canvas

    @property
    def cut(self) -> list[str]:
        """Texts of this frame that did not fit into their places."""
        return [text for layer in self._order for text in layer.cut]

    def _render(self, layer: Layer) -> bool:
        """Draws what has changed of a layer; says whether anything has."""
        held = self.held == f"{layer.name}/{SCROLL}"
        layer.scroll = min(layer.scroll, max(layer.length - layer.room, 0.0))
        scrolled = round(layer.scroll * self.scale)
        key = (layer.w, layer.h, layer.head, layer.title, layer.note, layer.above, layer.scrolls, scrolled, held,
               self.scale)  # fmt: skip
        fresh = layer.commands != layer.drawn
        if not fresh and key == layer.key:
            return False
        paper = paint.RAISED if layer.above else paint.PAPER
        if fresh or layer.contents is None or layer.key[:1] + layer.key[-1:] != key[:1] + key[-1:]:
            brush = Brush(layer.w, max(layer.length, 1.0) + 2, self.scale, paper)
            paint.paint(brush, layer.commands)
            layer.contents, layer.drawn, layer.cut = brush.image, layer.commands, brush.cut
        frame = Brush(layer.w, layer.h, self.scale, (*paper[:3], 0))
        paint.panel(frame, 0, 0, layer.w, layer.h, layer.title, layer.note, paper, layer.head)
        layer.cut = layer.cut + frame.cut
        top, room, side = frame.pixels(layer.head), frame.pixels(layer.room) + 1, frame.pixels(4)
        box = (side, scrolled, layer.contents.width - side, min(scrolled + room, layer.contents.height))
        frame.image.paste(layer.contents.crop(box), (side, top))
        if layer.scrolls:
            paint.scrollbar(frame, *self._handle(layer), held)
        layer.key, layer.pixels = key, np.asarray(frame.image)
        return True

    def _compose(self, redrawn: list[Layer]) -> None:
        """Puts the layers together: anew where one was drawn, everywhere if one has come, gone or moved."""
        size = round(self.height * self.scale), round(self.width * self.scale)
        places = tuple((each.name, self._box(each), each.opacity, each.above) for each in self._order)
        same = (size, places) == self._composed
        self.changed = bool(redrawn) or not same
        if not self.changed:
            return
        if self._canvas.shape[:2] != size:
            self._canvas = np.zeros((*size, 4), np.uint8)
        for x, y, right, bottom in {self._box(layer) for layer in redrawn} if same else {(0, 0, size[1], size[0])}:
            self._canvas[y:bottom, x:right] = 0
            for layer in self._stacked(self._order):
                self._blit(layer, x, y, right, bottom)
        self._composed = (size, places)

    def _box(self, layer: Layer) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of a layer, as far as it is in the window [pixels]."""
        x, y = round(layer.x * self.scale), round(layer.y * self.scale)
        h, w = layer.pixels.shape[:2] if layer.pixels is not None else (0, 0)
        return max(x, 0), max(y, 0), x + w, y + h

    def _blit(self, layer: Layer, *clip: int) -> None:
        """Lays the part of a layer that is in the box `clip` over what is there."""
        box, pixels = self._box(layer), layer.pixels
        x, y, right, bottom = max(box[0], clip[0]), max(box[1], clip[1]), min(box[2], clip[2]), min(box[3], clip[3])
        target = self._canvas[y:bottom, x:right]
        if pixels is None or x >= right or y >= bottom or not target.size:
            return
        left, top = x - round(layer.x * self.scale), y - round(layer.y * self.scale)
        part = pixels[top : top + target.shape[0], left : left + target.shape[1]]
        if layer.opacity < OPACITIES:
            part = part.copy()
            part[..., 3] = part[..., 3].astype(np.uint16) * layer.opacity // OPACITIES
        if layer.above:
            below = Image.fromarray(np.ascontiguousarray(target))
            part = np.asarray(Image.alpha_composite(below, Image.fromarray(np.ascontiguousarray(part))))
        target[...] = part
