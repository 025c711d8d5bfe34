"""From what each pixel sees to its colour: lights, crevices between particles, and what stands behind."""

import taichi as ti

from pliant.core.backend import Reals, task, turns
from pliant.render.backdrop import Image, behind
from pliant.render.gloss import wet
from pliant.render.raster_finish import JAGGED, STRIP, IntGrid, Pixels, pack
from pliant.render.raster_kernels import Faces, Fours
from pliant.render.raster_tiles import EMPTY, Keys, key_depth
from pliant.render.shadow import Grid, Rows

SHEEN = 0.10  # of the key light that a dry surface reflects
CREVICE = 0.33  # of the light that a pixel deep between others loses
FLAT = 0.15  # slope up to which a surface does not count as hollow: the faces of smooth meshes meet at such angles
AWAY = 2  # pixels to the neighbors that may stand around one
AROUND = ((AWAY, AWAY), (AWAY, -AWAY))  # to one of two opposite neighbors
FINISHED = -1.0  # gloss of a triangle whose corners already have the colours that are seen
OUTLINE = 1.01  # times its depth: what is so far behind a neighbor makes the edge between them an outline


@ti.func
def _around(keys: ti.template(), i: ti.i32, j: ti.i32, here: ti.f32, scale: ti.f32) -> ti.math.vec2:
    """How hollow a surface is at a pixel, in 0..1, and the farthest depth next to it.

    1 / depth is linear across a flat surface. Where the mean of two opposite neighbors is above that, the surface is
    hollow, by the slope (mean here / there - 1) times pixels per unit of slope, over their distance.
    """
    hollow, last, flat = 0.0, 0.0, 0.5 * scale / (2.0**0.5 * AWAY * here * here)
    if AWAY <= i < keys.shape[0] - AWAY and AWAY <= j < keys.shape[1] - AWAY:
        for p, q in ti.static(AROUND):
            t0, t1 = key_depth(keys[i - p, j - q]), key_depth(keys[i + p, j + q])
            # (here / t0 + here / t1) / 2 - 1, with the denominator t0 t1 taken as here^2
            hollow += ti.math.clamp((here * (t0 + t1) - 2.0 * t0 * t1) * flat - FLAT, 0.0, 1.0)
            last = ti.max(last, t0, t1)
    return ti.math.vec2(hollow / ti.static(len(AROUND)), last)


@ti.func
def _dry(
    color: ti.math.vec3, n: ti.math.vec3, lights: ti.template(), count: ti.template(), shading: ti.template()
) -> ti.math.vec3:
    """Light from all sides and from the lights, and a sheen as from a camera far away."""
    lit = shading[1]
    for m in ti.static(range(count)):
        lit += lights[2 * m + 1] * ti.max(n.dot(lights[2 * m]), 0.0)
    shine = ti.max(n.dot(shading[7]), 0.0)
    for _ in ti.static(range(4)):  # its sixteenth power
        shine *= shine
    return color * lit + SHEEN * shine * lights[1]


@ti.kernel
def paint_sky(sky: Image, height: ti.i32, width: ti.i32, rows: Rows, cover: Grid):
    """What stands behind, at every eighth pixel in each direction: it is smooth enough to be interpolated."""
    for i, j in sky:
        sky[i, j] = behind((2 * STRIP * j + 1) / width - 1.0, 1.0 - (STRIP * i + 0.5) / height, rows, cover)


@ti.kernel
def wet_vertices(
    n: ti.i32, placed: Rows, normals: Rows, colors: Rows, clear: Reals, gloss: Reals, lights: Rows,
    count: ti.template(), shading: Rows, seen: Rows,
):  # fmt: skip
    """What fine wet surfaces look like at their vertices, which are those with a `gloss`: between them it is mixed."""
    for k in range(n):
        if gloss[k] > 0.0:
            seen[k] = wet(colors[k], local_direction(normals[k], shading), -placed[k].normalized(1e-20), shading[0],
                          clear[k], gloss[k], lights, count, shading[1], shading[5], shading[6])  # fmt: skip


@ti.kernel
def shade(
    keys: Keys, image: Pixels, strips: IntGrid, spheres: ti.i32, centres: Fours, colors: Rows, corners: Faces,
    placed: Rows, normals: Rows, vertex_colors: Rows, clear: Reals, gloss: Reals, lights: Rows, count: ti.template(),
    shading: Rows, sky: Image, scale: ti.f32,
):  # fmt: skip
    """The colour of each pixel, and for each strip of them whether there are outlines in it.

    `lights` has two rows for each of `count` lights, their direction in the camera's frame and their colour; `shading`
    the world's up in that frame, the ambient light, down, right and forward of the camera, zenith, horizon, and the
    direction halfway between camera and first light. `sky` is made by `paint_sky`. Where the `gloss` of a triangle is
    FINISHED, its `vertex_colors` are made by `wet_vertices`.
    """
    for turn in range(turns(keys.shape[0])):
        i = task(turn)
        if i < keys.shape[0]:
            _shade_row(i, keys, image, strips, spheres, centres, colors, corners, placed, normals, vertex_colors,
                       clear, gloss, lights, count, shading, sky, scale)  # fmt: skip


@ti.func
def _shade_row(
    i: ti.i32, keys: ti.template(), image: ti.template(), strips: ti.template(), spheres: ti.i32,
    centres: ti.template(), colors: ti.template(), corners: ti.template(), placed: ti.template(),
    normals: ti.template(), vertex_colors: ti.template(), clear: ti.template(), gloss: ti.template(),
    lights: ti.template(), count: ti.template(), shading: ti.template(), sky: ti.template(), scale: ti.f32,
):  # fmt: skip
    height, width = keys.shape[0], keys.shape[1]
    p, x = i // STRIP, i % STRIP / STRIP
    right = 255.0 * ti.math.mix(sky[p, 0], sky[p + 1, 0], x)
    for q in range((width + STRIP - 1) // STRIP):
        left = right
        right = 255.0 * ti.math.mix(sky[p, q + 1], sky[p + 1, q + 1], x)
        jagged = 0
        for j in range(q * STRIP, ti.min(q * STRIP + STRIP, width)):
            key = keys[i, j]
            if key == ti.i64(EMPTY):
                image[i, j] = pack(ti.math.mix(left, right, (j - q * STRIP) / STRIP))
            else:
                seen = _seen(i, j, key, height, width, spheres, centres, colors, corners, placed, normals,
                             vertex_colors, clear, gloss, lights, count, shading, 1.0 / scale)  # fmt: skip
                around = _around(keys, i, j, key_depth(key), scale)
                packed = pack((255.0 - 255.0 * CREVICE * around.x) * seen)
                if around.y > OUTLINE * key_depth(key):
                    packed |= ti.u32(JAGGED)
                    jagged = 1
                image[i, j] = packed
        strips[i, q] = jagged


@ti.func
def _seen(
    i: ti.i32, j: ti.i32, key: ti.i64, height: ti.i32, width: ti.i32, spheres: ti.i32, centres: ti.template(),
    colors: ti.template(), corners: ti.template(), placed: ti.template(), normals: ti.template(),
    vertex_colors: ti.template(), clear: ti.template(), gloss: ti.template(), lights: ti.template(),
    count: ti.template(), shading: ti.template(), pixel: ti.f32,
) -> ti.math.vec3:  # fmt: skip
    d = ti.math.vec3((i + 0.5 - 0.5 * height) * pixel, (j + 0.5 - 0.5 * width) * pixel, 1.0)
    k, point, seen = ti.cast(key & 0x7FFFFFFF, ti.i32), key_depth(key) / d.norm_sqr() * d, ti.math.vec3(0.0)
    if k < spheres:
        c = centres[k]
        seen = _dry(colors[k], (1.0 / c.w) * (point - c.xyz), lights, count, shading)
    else:
        seen = _on_triangle(k - spheres, point, corners, placed, normals, vertex_colors, clear, gloss, lights, count,
                            shading)  # fmt: skip
    return seen


@ti.func
def _weights(a: ti.math.vec3, b: ti.math.vec3, c: ti.math.vec3, p: ti.math.vec3) -> ti.math.vec3:
    """Barycentric coordinates of the point of a triangle's plane next to p."""
    n = (b - a).cross(c - a)
    w = ti.math.vec3(n.dot((b - p).cross(c - p)), n.dot((c - p).cross(a - p)), n.dot((a - p).cross(b - p)))
    return ti.max(w, 0.0) / ti.max(ti.max(w, 0.0).sum(), 1e-30)


@ti.func
def _on_triangle(
    m: ti.i32, p: ti.math.vec3, corners: ti.template(), placed: ti.template(), normals: ti.template(),
    colors: ti.template(), clear: ti.template(), gloss: ti.template(), lights: ti.template(), count: ti.template(),
    shading: ti.template(),
) -> ti.math.vec3:  # fmt: skip
    f = corners[m]
    a, b, c = placed[f.x], placed[f.y], placed[f.z]
    w = _weights(a, b, c, p)
    seen = w.x * colors[f.x] + w.y * colors[f.y] + w.z * colors[f.z]
    if gloss[m] != FINISHED:
        n = local_direction(w.x * normals[3 * m] + w.y * normals[3 * m + 1] + w.z * normals[3 * m + 2], shading)
        n, flat = n.normalized(), (b - a).cross(c - a)
        if flat.dot(p) * flat.dot(n) > 0.0:  # seen from behind
            n = -n
        if gloss[m] > 0.0:
            reaching = w.x * clear[f.x] + w.y * clear[f.y] + w.z * clear[f.z]
            seen = wet(seen, n, -p.normalized(), shading[0], reaching, gloss[m], lights, count, shading[1], shading[5],
                       shading[6])  # fmt: skip
        else:
            seen = _dry(seen, n, lights, count, shading)
    return seen


@ti.func
def local_direction(v: ti.math.vec3, shading: ti.template()) -> ti.math.vec3:
    return ti.math.vec3(v.dot(shading[2]), v.dot(shading[3]), v.dot(shading[4]))
