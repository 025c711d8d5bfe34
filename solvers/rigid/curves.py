"""The search along a curve: samples of the distance, then for each minimum bisection of the derivative, and the ends of
the part with the same normal. Each function takes one distance, or decides what is next, and returns the next state."""

import taichi as ti

from pliant.core.backend import vec3
from pliant.solvers.rigid.candidates import MISSED, SAMPLES, vector
from pliant.solvers.rigid.distances import DETAIL, HIGH, KIND, LOW, PLANE, three
from pliant.solvers.rigid.features import CIRCLE, POINT, SEGMENT
from pliant.solvers.rigid.search_state import (
    AFTER,
    AT,
    BEFORE,
    BENT,
    BISECT,
    CODE,
    COVERED,
    CURVE_P,
    CURVE_U,
    DEEPEST,
    DEPTH_T,
    DONE,
    END_DEPTHS,
    ENDS,
    FALLS,
    FIRST,
    FLAT,
    HI,
    ITEM,
    ITEMS,
    LAST,
    LO,
    LONG,
    MARGIN,
    MERGE,
    NEXT,
    NORMAL,
    NUMBER,
    R_,
    REACH,
    RISES,
    ROUNDS,
    SAMPLE,
    SAMPLES_K,
    SHAPE,
    SHARP,
    STANDS,
    TOUCH,
    TURN,
    K,
    T,
    store,
)

MOST_SAMPLES = 16  # intervals of a curve; a circle has always so many
BISECTIONS = 14  # halvings of such an interval: 4e-6 of a curve
SAME = 0.998  # cosine (3.6 degrees) of normals that are the same along a curve
LEVEL = 2e-3  # of the radius of a circle: if three of eight points lie so near the deepest, it stands on its plane
BLUNT = 0.3  # length of a combined normal: sides of a blade that look away from each other have none
END = 1e-4  # of a segment: nearer to its ends, the points there are in charge
OUTSIDE = 0.5  # of its radius: an axis that far from a surface is well outside of it
CLEARLY = 1e-2  # of the distance at which contacts merge: a minimum between two ends is deeper than they by so much
MOST_MINIMA = 5  # along one curve
MINIMUM = 16  # codes of minima and ends begin here, after those of points of a circle
ABOVE = 1e30


@ti.func
def _within(desk: ti.i32, part: ti.i32, parts: ti.template(), real: ti.template()):
    """The part of a segment that lies in the bounds of a part, widened by the margin."""
    p, u, reach = vector(desk, CURVE_P, real), vector(desk, CURVE_U, real), real[desk, MARGIN] + real[desk, R_]
    first, last = 0.0, 1.0
    low, high = three(parts, part, LOW) - reach, three(parts, part, HIGH) + reach
    for k in ti.static(range(3)):
        if ti.abs(u[k]) > 1e-12:
            s, e = (low[k] - p[k]) / u[k], (high[k] - p[k]) / u[k]
            first, last = ti.max(first, ti.min(s, e)), ti.min(last, ti.max(s, e))
        elif p[k] < low[k] or p[k] > high[k]:
            last = -1.0
    return first, last


@ti.func
def near(desk: ti.i32, d: ti.f32, part: ti.i32, parts: ti.template(), real: ti.template(), whole: ti.template()
          ) -> ti.i32:  # fmt: skip
    """A feature is left out by the distance of its middle, and segments over planes, whose ends are points."""
    kind, length = whole[desk, SHAPE], vector(desk, CURVE_U, real).norm()
    reach, state = ti.select(kind == SEGMENT, 0.5 * length, length), DONE
    if d < real[desk, MARGIN] + real[desk, R_] + reach:
        if kind == POINT:
            state = TOUCH
        elif kind == CIRCLE or parts[part, KIND] != PLANE:
            first, last, samples = 0.0, 1.0, MOST_SAMPLES
            if kind == SEGMENT:
                first, last = _within(desk, part, parts, real)
                needed = ti.min((last - first) * length / parts[part, DETAIL], 1.0 * MOST_SAMPLES)
                samples = ti.min(ti.max(ti.cast(needed, ti.i32) + 1, 2), MOST_SAMPLES)
            if first <= last:
                real[desk, FIRST], real[desk, LAST], real[desk, T] = first, last, first
                whole[desk, SAMPLES_K], whole[desk, K] = samples, 0
                state = SAMPLE
    return state


@ti.func
def sampled(desk: ti.i32, d: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """Distances along a curve. A circle that stands on something has eight points that stay where they are in its body;
    as its deepest point is anywhere, by chance."""
    k, samples, state = whole[desk, K] + 1, whole[desk, SAMPLES_K], SAMPLE
    real[desk, SAMPLES + k - 1] = d
    first, last = real[desk, FIRST], real[desk, LAST]
    real[desk, T] = first + (last - first) * ti.cast(k, ti.f32) / ti.cast(samples, ti.f32)
    whole[desk, K] = k
    if k > samples:
        whole[desk, K], state = -1, NEXT
        if whole[desk, SHAPE] == CIRCLE:
            least, level = ABOVE, 0
            for i in range(MOST_SAMPLES):
                least = ti.min(least, real[desk, SAMPLES + i])
            for i in range(MOST_SAMPLES // 2):
                if real[desk, SAMPLES + 2 * i] < least + LEVEL * vector(desk, CURVE_U, real).norm():
                    level += 1
            if level > 2:
                whole[desk, STANDS], whole[desk, K] = 1, -2
    return state


@ti.func
def next_minimum(desk: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """The next point of a circle that stands, or the next sample that is lower than its neighbors."""
    state, k, samples, closed = DONE, whole[desk, K], whole[desk, SAMPLES_K], whole[desk, SHAPE] == CIRCLE
    if whole[desk, STANDS] == 1:
        k += 2
        if k < MOST_SAMPLES:
            real[desk, T], whole[desk, CODE], whole[desk, TURN] = k / MOST_SAMPLES, k, 0
            state = TOUCH
    else:
        first, step = real[desk, FIRST], (real[desk, LAST] - real[desk, FIRST]) / samples
        length = vector(desk, CURVE_U, real).norm() * ti.select(closed, 2.0 * ti.math.pi, 1.0)
        most = real[desk, MARGIN] + real[desk, R_] + step * length
        end = ti.select(closed, samples - 1, samples)
        while k < end and state == DONE and whole[desk, NUMBER] < MOST_MINIMA:
            k += 1
            own, before, after = real[desk, SAMPLES + k], ABOVE, ABOVE
            if k > 0 or closed:
                before = real[desk, SAMPLES + ti.select(k > 0, k - 1, samples - 1)]
            if k < samples:
                after = real[desk, SAMPLES + k + 1]
            if own <= before and own < after and own < most and first + step * k > real[desk, COVERED]:
                low, high = first + step * (k - 1), first + step * (k + 1)
                if not closed:
                    low, high = ti.max(low, first), ti.min(high, real[desk, LAST])
                real[desk, LO], real[desk, HI], real[desk, T], whole[desk, TURN] = low, high, low, 0
                real[desk, FALLS], real[desk, RISES] = 0.0, 0.0
                state = BISECT
    whole[desk, K] = k
    return state


@ti.func
def bisected(desk: ti.i32, n: vec3, d: ti.f32, slope: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """Both ends of a bracket first, then its middles, and last the minimum itself."""
    turn, lo, hi, state = whole[desk, TURN], real[desk, LO], real[desk, HI], BISECT
    if turn == 0 or (turn > 1 and slope < 0.0):
        store(desk, BEFORE, n, real)
        real[desk, FALLS] = slope
        if turn > 0:
            lo = real[desk, T]
        elif slope >= 0.0:
            hi = lo
    elif turn == 1 or slope >= 0.0:
        store(desk, AFTER, n, real)
        real[desk, RISES] = slope
        if turn > 1:
            hi = real[desk, T]
        elif slope <= 0.0:
            lo = hi
    if turn == BISECTIONS + 2 or (turn > 1 and lo == hi):
        state = NEXT
        falls, rises, normal = real[desk, FALLS], real[desk, RISES], n
        if falls < 0.0 and rises > 0.0:
            normal = (rises * vector(desk, BEFORE, real) - falls * vector(desk, AFTER, real)) / (rises - falls)
        sharp, at = normal.norm(), real[desk, T]
        if sharp <= BLUNT and real[desk, R_] > 0.0:  # the middle of what is round lies in that of a plate: to one side
            normal, sharp = n, 1.0
        if d < real[desk, MARGIN] + real[desk, R_] and sharp > BLUNT:
            store(desk, NORMAL, normal / sharp, real)
            real[desk, SHARP], real[desk, DEPTH_T], real[desk, AT] = sharp, d, at
            for e in range(2):
                real[desk, ENDS + e], real[desk, END_DEPTHS + e] = at, d
            state = ITEMS
            if whole[desk, SHAPE] == SEGMENT and sharp > SAME:
                state = _begin_end(desk, 0, real, whole)
        else:
            real[desk, MISSED] = ti.min(real[desk, MISSED], d - (1.0 - real[desk, FLAT]) * real[desk, R_])
    else:
        real[desk, LO], real[desk, HI] = lo, hi
        real[desk, T] = ti.select(turn == 0, hi, 0.5 * (lo + hi))
        whole[desk, TURN] = turn + 1
    return state


@ti.func
def _begin_end(desk: ti.i32, e: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
    real[desk, LO], real[desk, HI] = real[desk, AT], real[desk, FIRST + e]  # what is known to be good, and to be bad
    real[desk, T], whole[desk, TURN] = real[desk, FIRST + e], e * BISECTIONS
    return REACH


@ti.func
def reached(desk: ti.i32, n: vec3, d: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """How far on either side the normal stays that of the minimum, below the margin."""
    turn, state = whole[desk, TURN] + 1, REACH
    e = (turn - 1) // BISECTIONS
    if d < real[desk, MARGIN] + real[desk, R_] and n.dot(vector(desk, NORMAL, real)) > SAME:
        real[desk, LO], real[desk, ENDS + e], real[desk, END_DEPTHS + e] = real[desk, T], real[desk, T], d
    else:
        real[desk, HI] = real[desk, T]
    whole[desk, TURN], real[desk, T] = turn, 0.5 * (real[desk, LO] + real[desk, HI])
    if turn == (e + 1) * BISECTIONS or real[desk, LO] == real[desk, HI]:
        if e == 0:
            state = _begin_end(desk, 1, real, whole)
        else:
            state = ITEMS
    return state


@ti.func
def _in_charge(desk: ti.i32, at: ti.f32, d: ti.f32, real: ti.template()):
    """Whether a place on a segment, at that distance, is its own, and not that of a point at its end. The axis of a
    cylinder has no such points, and its rims are of no help where they are flush with those of a parallel one and a
    little within it: there they are nearest to its flat end. Where the axis itself is within, rims are in charge."""
    return (at > END and at < 1.0 - END) or (real[desk, FLAT] > 0.0 and d > OUTSIDE * real[desk, R_])


@ti.func
def items(desk: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """What is added of a minimum: the minimum if it is deeper than its ends or near them, and the ends if not."""
    length, at, d = vector(desk, CURVE_U, real).norm(), real[desk, AT], real[desk, DEPTH_T]
    begin, end, merge = real[desk, ENDS], real[desk, ENDS + 1], real[desk, MERGE]
    inner = whole[desk, SHAPE] == CIRCLE or _in_charge(desk, at, d, real)
    if real[desk, FLAT] > 0.0:  # an axis whose ends are no points: within a parallel one it would be forgotten
        real[desk, MISSED] = ti.min(real[desk, MISSED], d)
    long = (end - begin) * length > 2.0 * merge
    deeper = d < ti.min(real[desk, END_DEPTHS], real[desk, END_DEPTHS + 1]) - CLEARLY * merge
    whole[desk, LONG], whole[desk, DEEPEST] = ti.cast(long, ti.i32), ti.cast(inner and (deeper or not long), ti.i32)
    whole[desk, CODE] = MINIMUM + 3 * whole[desk, NUMBER] - 1
    whole[desk, NUMBER] += 1
    real[desk, COVERED] = ti.max(real[desk, COVERED], end)
    return ITEM


@ti.func
def next_item(desk: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """The next of the minimum and its ends. At a kink, which a grid rounds, depth is measured along
    the combined normal."""
    state, base = ITEM, MINIMUM + 3 * (whole[desk, NUMBER] - 1)
    code, at, wanted = whole[desk, CODE] + 1, real[desk, AT], whole[desk, DEEPEST] == 1
    bent = code == base and real[desk, R_] == 0.0 and (real[desk, SHARP] < SAME or whole[desk, ROUNDS] == 1)
    if code > base:
        at = real[desk, ENDS + ti.min(code - base - 1, 1)]
        d = real[desk, END_DEPTHS + ti.min(code - base - 1, 1)]
        wanted = whole[desk, LONG] == 1 and _in_charge(desk, at, d, real)
    whole[desk, CODE], whole[desk, TURN], whole[desk, BENT], real[desk, T] = code, 0, ti.cast(bent, ti.i32), at
    if code == base + 3:
        state = NEXT
    elif wanted:
        state = TOUCH
    return state
