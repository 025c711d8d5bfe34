"""What is put over a shaded picture: lines, smooth outlines, and the panels of a window."""

from typing import TypeAlias

import taichi as ti

from pliant.core.backend import Ints, Reals, task, turns
from pliant.render.raster_kernels import local
from pliant.render.raster_tiles import Keys, key_depth, squared
from pliant.render.shadow import Rows

HIDING = 1.001  # times its depth: how far a line may be behind what it is drawn on
PIECES = 32  # of each line, drawn side by side
FULL = 256  # coverage of a pixel that a line covers wholly
CONTRAST, LEAST_CONTRAST = 3, 5  # from 1/2^3 of the brightness and 5 of 127 on, outlines are smoothed
SOFT = 5  # 1/2^5 of the brightness keeps outlines from being smoothed too far where contrast is low
REACH = 8.0 * 256.0  # along an outline, over which it is smoothed at most, in 1/256 pixels
STRIP = 8  # pixels along a row, of which it is known together whether they have jagged outlines or lines
COLUMNS = 16  # that a thread takes at a time: neighboring columns share memory that is laid out in rows
JAGGED = 1 << 31  # bit of a packed colour: the pixel is next to an outline
_PLAIN = JAGGED - 1  # all other bits
_EVEN = 0x00FF00FF
_OPAQUE = 0xFF000000
_OUTLINES, _LINES = 1, 2  # what there may be in a strip

Pixels: TypeAlias = ti.types.ndarray(dtype=ti.u32, ndim=2)
IntGrid: TypeAlias = ti.types.ndarray(dtype=ti.i32, ndim=2)


@ti.func
def pack(color: ti.math.vec3) -> ti.u32:
    """Blue, green, red, a byte each from the lowest on, and in seven bits their brightness; from colours in 0..255."""
    c = ti.min(ti.cast(color + 0.5, ti.i32), 255)
    return ti.cast(c.z | c.y << 8 | c.x << 16 | (77 * c.x + 150 * c.y + 29 * c.z) >> 9 << 24, ti.u32)


@ti.func
def _brightness(c: ti.u32) -> ti.i32:
    return ti.cast(c >> 24 & 127, ti.i32)


@ti.func
def _mixed(a: ti.u32, b: ti.u32, share: ti.u32) -> ti.u32:
    """Two colours, of the second one `share` in 256; two bytes are worked out at a time."""
    even = ((a & _EVEN) * (256 - share) + (b & _EVEN) * share) >> 8 & _EVEN
    odd = ((a >> 8 & _EVEN) * (256 - share) + (b >> 8 & _EVEN) * share) & ~ti.u32(_EVEN)
    return even | odd


@ti.kernel
def draw_lines(
    n: ti.i32, ends: Rows, group: Ints, widths: Reals, hiding: Reals, view: Rows, scale: ti.f32, near: ti.f32,
    keys: Keys, lines: IntGrid, strips: IntGrid,
):  # fmt: skip
    """How much of each pixel lines cover that nothing hides: coverage in 0..256 times 65536, and their group. `lines`
    is zero before. What is nearer than `hiding` times their distance hides those of a group."""
    for turn in range(turns(n * PIECES)):
        piece = task(turn)
        k = piece // PIECES
        if k < n:
            p, q = local(ends[2 * k], view), local(ends[2 * k + 1], view)
            if p.z > near or q.z > near:
                if p.z < near:
                    p = ti.math.mix(p, q, (near - p.z) / (q.z - p.z))
                if q.z < near:
                    q = ti.math.mix(q, p, (near - q.z) / (p.z - q.z))
                _piece(piece % PIECES, p, q, group[k], widths[group[k]], hiding[group[k]], scale, keys, lines, strips)


@ti.func
def _piece(
    part: ti.i32, p: ti.math.vec3, q: ti.math.vec3, group: ti.i32, width: ti.f32, hiding: ti.f32, scale: ti.f32,
    keys: ti.template(), lines: ti.template(), strips: ti.template(),
):  # fmt: skip
    size = ti.math.vec2(lines.shape[0], lines.shape[1])
    a, b = scale * p.xy / p.z + 0.5 * size - 0.5, scale * q.xy / q.z + 0.5 * size - 0.5
    steep = ti.abs(b.y - a.y) > ti.abs(b.x - a.x)
    if steep:  # go along the longer axis
        a, b, size = a.yx, b.yx, size.yx
    za, zb = 1.0 / p.z, 1.0 / q.z
    if a.x > b.x:
        a, b = b, a
        za, zb = zb, za
    edge = 0.5 * width + 0.5
    slope = (b.y - a.y) / ti.max(b.x - a.x, 1e-6)
    half = edge * ti.sqrt(1.0 + slope * slope)
    low = ti.cast(ti.math.clamp(ti.floor(a.x - edge), 0.0, size.x), ti.i32)
    count = ti.cast(ti.math.clamp(ti.ceil(b.x + edge) + 1.0, 0.0, size.x), ti.i32) - low
    along = (b - a) / ti.max((b - a).norm_sqr(), 1e-12)
    if count > 0:
        for s in range(low + part * count // PIECES, low + (part + 1) * count // PIECES):
            y = a.y + slope * (ti.math.clamp(ti.cast(s, ti.f32), a.x, b.x) - a.x)
            first, last = ti.math.clamp(ti.ceil(y - half), 0.0, size.y), ti.math.clamp(y + half + 1.0, 0.0, size.y)
            for r in range(ti.cast(first, ti.i32), ti.cast(last, ti.i32)):
                at = ti.math.vec2(s, r)
                t = ti.math.clamp((at - a).dot(along), 0.0, 1.0)
                covered = ti.math.clamp(edge - (at - a - t * (b - a)).norm(), 0.0, 1.0)
                i, j = s, r
                if steep:
                    i, j = r, s
                depth = squared(i, j, scale, lines.shape[0], lines.shape[1]) / ti.math.mix(za, zb, t)
                value = ti.cast(FULL * covered + 0.5, ti.i32) << 16 | group
                if depth <= key_depth(keys[i, j]) * hiding and value > lines[i, j]:
                    ti.atomic_max(lines[i, j], value)
                    ti.atomic_or(strips[i, j // STRIP], _LINES)


@ti.func
def _at(image: ti.template(), x: ti.i32, y: ti.i32) -> ti.u32:
    """The colour at a place in 1/256 of a pixel, between four of them."""
    i, j = ti.math.clamp(x >> 8, 0, image.shape[0] - 1), ti.math.clamp(y >> 8, 0, image.shape[1] - 1)
    p, q = ti.min(i + 1, image.shape[0] - 1), ti.min(j + 1, image.shape[1] - 1)
    u, v = ti.cast(x & 255, ti.u32), ti.cast(y & 255, ti.u32)
    low = _mixed(image[i, j] & _PLAIN, image[p, j] & _PLAIN, u)
    high = _mixed(image[i, q] & _PLAIN, image[p, q] & _PLAIN, u)
    return _mixed(low, high, v)


@ti.func
def _both_sides(image: ti.template(), x: ti.i32, y: ti.i32, dx: ti.i32, dy: ti.i32) -> ti.u32:
    return _mixed(_at(image, x - dx, y - dy), _at(image, x + dx, y + dy), 128)


@ti.func
def smooth(image: ti.template(), i: ti.i32, j: ti.i32) -> ti.u32:
    """The colour of a pixel, mixed along the edge that passes it, if one does (Lottes 2009, FXAA)."""
    here = image[i, j]
    i0, i1 = ti.max(i - 1, 0), ti.min(i + 1, image.shape[0] - 1)
    j0, j1 = ti.max(j - 1, 0), ti.min(j + 1, image.shape[1] - 1)
    a, b, c, d = image[i0, j0], image[i1, j0], image[i0, j1], image[i1, j1]
    jagged = (here | a | b | c | d) >> 31
    m, sw, se, nw, ne = _brightness(here), _brightness(a), _brightness(b), _brightness(c), _brightness(d)
    least, most = ti.min(m, ti.min(ti.min(sw, se), ti.min(nw, ne))), ti.max(m, ti.max(ti.max(sw, se), ti.max(nw, ne)))
    if jagged and most - least > ti.max(most >> CONTRAST, LEAST_CONTRAST):
        along_x, along_y = (sw + se) - (nw + ne), (ne + se) - (nw + sw)  # across the steepest change
        shorter = ti.min(ti.abs(along_x), ti.abs(along_y)) + ((sw + se + nw + ne) >> SOFT) + 2
        per = 256.0 / shorter
        x = ti.cast(ti.math.clamp(along_x * per, -REACH, REACH), ti.i32)
        y = ti.cast(ti.math.clamp(along_y * per, -REACH, REACH), ti.i32)
        near = _both_sides(image, i << 8, j << 8, x >> 3, y >> 3)
        here = _mixed(near, _both_sides(image, i << 8, j << 8, x >> 1, y >> 1), 128)
        if _brightness(here) < least or _brightness(here) > most:
            here = near
    return here


@ti.func
def _busy(strips: ti.template(), i: ti.i32, q: ti.i32) -> ti.i32:
    """Whether there are jagged outlines in a strip or next to it, or lines in it."""
    found = strips[i, q]
    for a in range(ti.max(i - 1, 0), ti.min(i + 2, strips.shape[0])):
        for b in range(ti.max(q - 1, 0), ti.min(q + 2, strips.shape[1])):
            found |= strips[a, b] & _OUTLINES
    return found


@ti.kernel
def finish(
    image: Pixels, strips: IntGrid, lines: IntGrid, line_colors: Rows, panels: Pixels, shown: ti.i32, out: Pixels
):  # fmt: skip
    """With lines, and with panels if they are `shown`; a pixel is blue, green, red and 255, a byte each from the lowest
    on, those of panels are red, green, blue and alpha."""
    for turn in range(turns(image.shape[0])):
        i = task(turn)
        if i < image.shape[0]:
            for q in range(strips.shape[1]):
                busy = _busy(strips, i, q)
                for j in range(q * STRIP, ti.min(q * STRIP + STRIP, image.shape[1])):
                    seen = image[i, j]
                    if busy > 0:
                        seen = smooth(image, i, j)
                        line = lines[i, j]
                        if line > 0:
                            seen = _mixed(seen, pack(255.0 * line_colors[line & 0xFFFF]), ti.cast(line >> 16, ti.u32))
                    if shown == 1:
                        seen = _under(panels[i, j], seen)
                    out[i, j] = seen | ti.u32(_OPAQUE)


@ti.func
def _under(panel: ti.u32, below: ti.u32) -> ti.u32:
    """A colour below that of a panel."""
    alpha, seen = ti.cast(panel >> 24, ti.i32), below
    if alpha > 0:
        seen = ti.u32(0)
        for c in ti.static(range(3)):
            above = ti.cast(panel >> 8 * (2 - c) & 255, ti.i32)
            both = ti.cast(below >> 8 * c & 255, ti.i32) * (255 - alpha) + above * alpha + 128
            seen |= ti.cast((both + (both >> 8)) >> 8, ti.u32) << 8 * c  # both / 255, rounded
    return seen


@ti.kernel
def as_columns(image: Pixels, out: Pixels):
    """From what `finish` makes to columns first and bottom up, with red in the lowest byte and blue in the third."""
    height, width = image.shape[0], image.shape[1]
    for turn in range(turns((width + COLUMNS - 1) // COLUMNS)):
        first = task(turn) * COLUMNS
        if first < width:
            for i in range(height):
                for j in range(first, ti.min(first + COLUMNS, width)):
                    c = image[i, j]
                    out[j, height - 1 - i] = c & ~ti.u32(_EVEN) | (c & 255) << 16 | c >> 16 & 255
