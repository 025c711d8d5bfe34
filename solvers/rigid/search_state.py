"""What a search along a feature knows: in scratch, so that each of its states can be a function of its own (`search` in
`surfaces.py` calls them)."""

import taichi as ti

from pliant.core.backend import mat3, vec3
from pliant.solvers.rigid.candidates import COUNTS, SEARCH, vector
from pliant.solvers.rigid.distances import three
from pliant.solvers.rigid.features import CIRCLE, FLAT_ENDS, OUT, POINT, RADIUS, SEGMENT, P, U, V

PLAIN, BESIDE, AGAIN, FIRST_LOOK = range(4)  # looks at a place: as it is, or from inside of its body

# States: those that wait for a distance, and those that choose what is next.
GROUP, NEAR, SAMPLE, BISECT, REACH, TOUCH, AROUND, NEXT, ITEMS, ITEM, DONE = range(11)
# What a search knows, in reals: the curve in the frame of the part, ...
CURVE_P, CURVE_U, CURVE_V, CURVE_OUT, R_, FLAT, FIRST, LAST = (SEARCH + k for k in (0, 3, 6, 9, 12, 13, 14, 15))
# ...place and bracket, gradients and derivatives at both of its sides, the minimum, and the ends around it, ...
T, LO, HI, BEFORE, AFTER, FALLS, RISES, NORMAL, SHARP, DEPTH_T, AT = (
    SEARCH + k for k in (16, 17, 18, 19, 22, 25, 26, 27, 30, 31, 32))  # fmt: skip
ENDS, END_DEPTHS, COVERED, WAY = (SEARCH + k for k in (33, 35, 37, 38))
# ...what does not change during a pair, and what is to be added.
MARGIN, MERGE, BACK, GAP_, POINT_, NORMAL_, CLEAR, CLEAR_GAP = (SEARCH + k for k in (41, 42, 43, 44, 45, 48, 51, 54))
# In whole numbers.
NOTED, SHAPE, KEY, CODE, SAMPLES_K, K, TURN, NUMBER, STANDS, DEEPEST, LONG, BENT, ROUNDS = (
    COUNTS + k for k in range(13))  # fmt: skip


@ti.func
def place_on(kind: ti.i32, t: ti.f32, p: vec3, u: vec3, v: vec3):
    """A point of a curve, 0 <= t <= 1, and the derivative."""
    x, tangent = p + t * u, u
    if kind == CIRCLE:
        angle = 2.0 * ti.math.pi * t
        x = p + ti.cos(angle) * u + ti.sin(angle) * v
        tangent = 2.0 * ti.math.pi * (ti.cos(angle) * v - ti.sin(angle) * u)
    return x, tangent


@ti.func
def place(desk: ti.i32, t: ti.f32, real: ti.template(), whole: ti.template()):
    return place_on(whole[desk, SHAPE], t, vector(desk, CURVE_P, real), vector(desk, CURVE_U, real),
                    vector(desk, CURVE_V, real))  # fmt: skip


@ti.func
def out_of(desk: ti.i32, t: ti.f32, real: ti.template(), whole: ti.template()) -> vec3:
    """The direction out of a feature at a place on it."""
    out = vector(desk, CURVE_OUT, real)
    if whole[desk, SHAPE] == CIRCLE:
        angle, u, v = 2.0 * ti.math.pi * t, vector(desk, CURVE_U, real), vector(desk, CURVE_V, real)
        radial = (ti.cos(angle) * u + ti.sin(angle) * v) / u.norm()
        out = out[0] * radial + out[2] * u.cross(v) / u.norm_sqr()
    return out


@ti.func
def store(desk: ti.i32, column: ti.i32, value: vec3, real: ti.template()):
    for k in ti.static(range(3)):
        real[desk, column + k] = value[k]


@ti.func
def load(desk: ti.i32, f: ti.i32, key: ti.i32, Q: mat3, shift: vec3, features: ti.template(), real: ti.template(),
          whole: ti.template()):  # fmt: skip
    """Brings a feature to the frame of the part."""
    kind, out = ti.cast(features[f, 0], ti.i32), three(features, f, OUT)
    if kind != CIRCLE:
        out = Q @ out
    store(desk, CURVE_P, Q @ three(features, f, P) + shift, real)
    store(desk, CURVE_U, Q @ three(features, f, U), real)
    store(desk, CURVE_V, Q @ three(features, f, V), real)
    store(desk, CURVE_OUT, out, real)
    real[desk, R_], real[desk, FLAT] = features[f, RADIUS], features[f, FLAT_ENDS]
    whole[desk, SHAPE], whole[desk, KEY], whole[desk, CODE], whole[desk, TURN] = kind, key, 0, 0
    whole[desk, BENT], whole[desk, NUMBER], whole[desk, STANDS], real[desk, COVERED], real[desk, T] = 0, 0, 0, -1.0, 0.0


@ti.func
def wanted(desk: ti.i32, state: ti.i32, real: ti.template(), whole: ti.template()):
    """Where the next distance is wanted, and the derivative of the curve."""
    kind, x, tangent = whole[desk, SHAPE], vector(desk, CURVE_P, real), vec3(0.0)
    if state == NEAR:
        if kind == SEGMENT:
            x += 0.5 * vector(desk, CURVE_U, real)
    elif state == AROUND:
        x += real[desk, R_] * vector(desk, WAY, real)
    elif kind != POINT:
        x, tangent = place(desk, real[desk, T], real, whole)
    return x, tangent


@ti.func
def pull(turn: ti.i32) -> ti.f32:
    """Whether a place is looked at from inside of the body."""
    return ti.cast(turn >= AGAIN, ti.f32)


@ti.func
def note(desk: ti.i32, gap: ti.f32, x: vec3, n: vec3, code: ti.i32, real: ti.template(), whole: ti.template()):
    """Notes a contact in the frame of the part, for `search` to add."""
    real[desk, GAP_], whole[desk, NOTED] = gap, code
    store(desk, POINT_, x, real)
    store(desk, NORMAL_, n, real)
