"""Contacts of any two forms: features of one against the signed distance of the other.

A point is in contact where the distance is below the margin. Along a curve it is so at the minima of the distance,
found by bisection of its derivative, and at both ends of the part where the normal is that of the minimum: thus a plank
that lies across another stands on both rims. At a minimum with a kink (two edges that cross, one a little inside) the
normal is the combination of the gradients on both sides that is perpendicular to the curve, as the conditions of
optimality of a nonsmooth function have it (Clarke 1983): the normal of two edges.

Taichi copies a function to each place that calls it, and the distance is long: called at one place, the kernel compiles
in seconds, called at eight in minutes. So a search is a machine that asks for one distance after the other (`search`);
each state has a function that takes the answer, notes what it means in scratch, and returns the next state.
"""

import taichi as ti

from pliant.core.backend import mat3, vec3
from pliant.solvers.rigid.candidates import COUNTS, SAMPLES, SEARCH, add, vector
from pliant.solvers.rigid.distances import DETAIL, GRID, HIGH, KIND, LOW, PLANE, UNBOUNDED, distance, three
from pliant.solvers.rigid.features import (
    AROUND_IT,
    BEGIN,
    CIRCLE,
    FLAT_ENDS,
    OUT,
    POINT,
    RADIUS,
    SEGMENT,
    STOP,
    P,
    U,
    V,
)

MOST_SAMPLES = 16  # intervals of a curve; a circle has always so many
BISECTIONS = 14  # halvings of such an interval: 4e-6 of a curve
SAME = 0.998  # cosine (3.6 degrees) of normals that are the same along a curve
LEVEL = 2e-3  # of the radius of a circle: if three of eight points lie so near the deepest, it stands on its plane
SQUARE = 1e-3  # cosine between an axis and the normals that its offset may have if its ends are flat
FACING = 0.1  # cosine between the normal and the direction out of a feature, at least: it faces the other surface
BLUNT = 0.3  # length of a combined normal: sides of a blade that look away from each other have none
END = 1e-4  # of a segment: nearer to its ends, the points there are in charge
CLEARLY = 1e-2  # of the distance at which contacts merge: a minimum between two ends is deeper than they by so much
MOST_MINIMA = 5  # along one curve
MINIMUM = 16  # codes of minima and ends begin here, after those of points of a circle
CODES = 32  # of one feature; keys are code + CODES * (feature + FEATURES * (side + 2 * part))
FEATURES = 1 << 16
DIRECTIONS, TURNS = 14, 8  # from which a ball looks for more contacts with what is not convex, and how often it turns
SETTLED = 0.9999  # cosine between the direction of a contact and its normal
ANOTHER = 0.98  # cosine (11 degrees) between the normals of a ball's nearest contact and of others, at most
ABOVE = 1e30

ROUNDED = 0.998  # cosine (3.6 degrees) between normals at a place and beside it: if they differ more, there is a rim
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
def _place(desk: ti.i32, t: ti.f32, real: ti.template(), whole: ti.template()):
    return place_on(whole[desk, SHAPE], t, vector(desk, CURVE_P, real), vector(desk, CURVE_U, real),
                    vector(desk, CURVE_V, real))  # fmt: skip


@ti.func
def _out_of(desk: ti.i32, t: ti.f32, real: ti.template(), whole: ti.template()) -> vec3:
    """The direction out of a feature at a place on it."""
    out = vector(desk, CURVE_OUT, real)
    if whole[desk, SHAPE] == CIRCLE:
        angle, u, v = 2.0 * ti.math.pi * t, vector(desk, CURVE_U, real), vector(desk, CURVE_V, real)
        radial = (ti.cos(angle) * u + ti.sin(angle) * v) / u.norm()
        out = out[0] * radial + out[2] * u.cross(v) / u.norm_sqr()
    return out


@ti.func
def _store(desk: ti.i32, column: ti.i32, value: vec3, real: ti.template()):
    for k in ti.static(range(3)):
        real[desk, column + k] = value[k]


@ti.func
def _load(desk: ti.i32, f: ti.i32, key: ti.i32, Q: mat3, shift: vec3, features: ti.template(), real: ti.template(),
          whole: ti.template()):  # fmt: skip
    """Brings a feature to the frame of the part."""
    kind, out = ti.cast(features[f, 0], ti.i32), three(features, f, OUT)
    if kind != CIRCLE:
        out = Q @ out
    _store(desk, CURVE_P, Q @ three(features, f, P) + shift, real)
    _store(desk, CURVE_U, Q @ three(features, f, U), real)
    _store(desk, CURVE_V, Q @ three(features, f, V), real)
    _store(desk, CURVE_OUT, out, real)
    real[desk, R_], real[desk, FLAT] = features[f, RADIUS], features[f, FLAT_ENDS]
    whole[desk, SHAPE], whole[desk, KEY], whole[desk, CODE], whole[desk, TURN] = kind, key, 0, 0
    whole[desk, BENT], whole[desk, NUMBER], whole[desk, STANDS], real[desk, COVERED], real[desk, T] = 0, 0, 0, -1.0, 0.0


@ti.func
def _wanted(desk: ti.i32, state: ti.i32, real: ti.template(), whole: ti.template()):
    """Where the next distance is wanted, and the derivative of the curve."""
    kind, x, tangent = whole[desk, SHAPE], vector(desk, CURVE_P, real), vec3(0.0)
    if state == NEAR:
        if kind == SEGMENT:
            x += 0.5 * vector(desk, CURVE_U, real)
    elif state == AROUND:
        x += real[desk, R_] * vector(desk, WAY, real)
    elif kind != POINT:
        x, tangent = _place(desk, real[desk, T], real, whole)
    return x, tangent


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
def _near(desk: ti.i32, d: ti.f32, part: ti.i32, parts: ti.template(), real: ti.template(), whole: ti.template()
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
def _sampled(desk: ti.i32, d: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
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
def _next(desk: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
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
def _bisected(desk: ti.i32, n: vec3, d: ti.f32, slope: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """Both ends of a bracket first, then its middles, and last the minimum itself."""
    turn, lo, hi, state = whole[desk, TURN], real[desk, LO], real[desk, HI], BISECT
    if turn == 0 or (turn > 1 and slope < 0.0):
        _store(desk, BEFORE, n, real)
        real[desk, FALLS] = slope
        if turn > 0:
            lo = real[desk, T]
        elif slope >= 0.0:
            hi = lo
    elif turn == 1 or slope >= 0.0:
        _store(desk, AFTER, n, real)
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
        if d < real[desk, MARGIN] + real[desk, R_] and sharp > BLUNT:
            _store(desk, NORMAL, normal / sharp, real)
            real[desk, SHARP], real[desk, DEPTH_T], real[desk, AT] = sharp, d, at
            for e in range(2):
                real[desk, ENDS + e], real[desk, END_DEPTHS + e] = at, d
            state = ITEMS
            if whole[desk, SHAPE] == SEGMENT and sharp > SAME:
                state = _begin_end(desk, 0, real, whole)
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
def _reached(desk: ti.i32, n: vec3, d: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
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
def _items(desk: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """What is added of a minimum: the minimum if it is deeper than its ends or near them, and the ends if not."""
    length, at, d = vector(desk, CURVE_U, real).norm(), real[desk, AT], real[desk, DEPTH_T]
    begin, end, merge = real[desk, ENDS], real[desk, ENDS + 1], real[desk, MERGE]
    inner = whole[desk, SHAPE] == CIRCLE or (at > END and at < 1.0 - END)
    long = (end - begin) * length > 2.0 * merge
    deeper = d < ti.min(real[desk, END_DEPTHS], real[desk, END_DEPTHS + 1]) - CLEARLY * merge
    whole[desk, LONG], whole[desk, DEEPEST] = ti.cast(long, ti.i32), ti.cast(inner and (deeper or not long), ti.i32)
    whole[desk, CODE] = MINIMUM + 3 * whole[desk, NUMBER] - 1
    whole[desk, NUMBER] += 1
    real[desk, COVERED] = ti.max(real[desk, COVERED], end)
    return ITEM


@ti.func
def _next_item(desk: ti.i32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """The next of the minimum and its ends. At a kink, which a grid rounds, depth is measured along
    the combined normal."""
    state, base = ITEM, MINIMUM + 3 * (whole[desk, NUMBER] - 1)
    code, at, wanted = whole[desk, CODE] + 1, real[desk, AT], whole[desk, DEEPEST] == 1
    bent = code == base and real[desk, R_] == 0.0 and (real[desk, SHARP] < SAME or whole[desk, ROUNDS] == 1)
    if code > base:
        at = real[desk, ENDS + ti.min(code - base - 1, 1)]
        wanted = whole[desk, LONG] == 1 and at > END and at < 1.0 - END
    whole[desk, CODE], whole[desk, TURN], whole[desk, BENT], real[desk, T] = code, 0, ti.cast(bent, ti.i32), at
    if code == base + 3:
        state = NEXT
    elif wanted:
        state = TOUCH
    return state


@ti.func
def _pull(turn: ti.i32) -> ti.f32:
    """Whether a place is looked at from inside of the body."""
    return ti.cast(turn >= AGAIN, ti.f32)


@ti.func
def _touched(desk: ti.i32, x: vec3, out: vec3, normal: vec3, distance: ti.f32, tangent: vec3, convex: ti.i32,
             real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """Adds a point of a feature if it is near the part and faces it. A sharp one that faces away may lie a little
    within a rim that is flush with it, where another face is nearer than the one it stands on: it is then looked at
    from a little farther inside of its own body. A grid rounds rims, so that there the look from inside comes first."""
    r, state, turn, n = real[desk, R_], TOUCH, whole[desk, TURN], normal
    back = _pull(turn) * real[desk, BACK] * out
    gap = distance + n.dot(back) - r
    if whole[desk, BENT] == 1:
        n, gap = vector(desk, NORMAL, real), real[desk, DEPTH_T] / real[desk, SHARP]
    elif turn == BESIDE:
        clear = vector(desk, CLEAR, real)
        if n.dot(clear) < ROUNDED and clear.dot(out) < -FACING and ti.abs(real[desk, CLEAR_GAP]) < real[desk, BACK]:
            n, gap = clear, real[desk, CLEAR_GAP]
    faces = r > 0.0 or n.dot(out) < -FACING
    if turn == FIRST_LOOK:
        whole[desk, TURN], real[desk, CLEAR_GAP] = BESIDE, gap
        _store(desk, CLEAR, n, real)
    elif turn + whole[desk, BENT] == PLAIN and not faces and gap < real[desk, MARGIN]:
        whole[desk, TURN] = AGAIN
    else:
        if turn == AGAIN and ti.abs(gap) > real[desk, BACK]:
            faces = False
        if real[desk, FLAT] > 0.0 and ti.abs(n.dot(tangent)) > SQUARE * tangent.norm():
            faces = False
        alone = whole[desk, SHAPE] != POINT or r == 0.0 or convex == 1
        if faces and alone:
            _note(desk, gap, x + back - (r + 0.5 * gap) * n, n, whole[desk, CODE], real, whole)
        whole[desk, BENT] = 0
        state = ti.select(whole[desk, STANDS] == 1, NEXT, ITEM)
        if whole[desk, SHAPE] == POINT:
            state = DONE
            if not alone:
                state, whole[desk, K], whole[desk, TURN] = AROUND, -1, 0
                _store(desk, WAY, -n, real)
                _store(desk, CLEAR, vec3(0.0), real)
    return state


@ti.func
def _note(desk: ti.i32, gap: ti.f32, x: vec3, n: vec3, code: ti.i32, real: ti.template(), whole: ti.template()):
    """Notes a contact in the frame of the part, for `search` to add."""
    real[desk, GAP_], whole[desk, NOTED] = gap, code
    _store(desk, POINT_, x, real)
    _store(desk, NORMAL_, n, real)


@ti.func
def _direction(k: ti.i32) -> vec3:
    """To the six sides and the eight corners of a cube."""
    way = vec3(0.0)
    for axis in ti.static(range(3)):
        if k < 6:
            way[axis] = ti.select(k // 2 == axis, 1.0 - 2.0 * (k % 2), 0.0)
        else:
            way[axis] = (1.0 - 2.0 * ((k - 6) >> axis & 1)) * ti.sqrt(1.0 / 3.0)
    return way


@ti.func
def _around(desk: ti.i32, x: vec3, n: vec3, d: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """Places where a ball touches what is not convex: minima of the distance on its surface, to which the direction
    against the gradient leads, from that at its centre first. (Halfway between two walls, that is no place.)"""
    k, turn, way, state = whole[desk, K], whole[desk, TURN] + 1, -n, AROUND
    settled = n.dot(vector(desk, WAY, real)) < -SETTLED
    if settled or turn >= TURNS:
        if settled and n.dot(vector(desk, CLEAR, real)) < ANOTHER:
            _note(desk, d, x - 0.5 * d * n, n, 1 + k, real, whole)
            if k < 0 and d < real[desk, MARGIN]:
                _store(desk, CLEAR, n, real)
        k, turn = k + 1, 0
        way = _direction(k)
        if k == DIRECTIONS:
            state = DONE
    whole[desk, K], whole[desk, TURN] = k, turn
    _store(desk, WAY, way, real)
    return state


@ti.func
def search(desk: ti.i32, found: ti.i32, first: ti.i32, last: ti.i32, Q: mat3, shift: vec3, part: ti.i32,
           first_key: ti.i32, R: mat3, origin: vec3, sign: ti.f32, margin: ti.f32, merge: ti.f32, depth: ti.f32,
           groups: ti.template(), features: ti.template(), parts: ti.template(), grid: ti.template(),
           real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """Adds candidates for the groups of features, from `first` to `last`, of a form. Q and `shift` bring it to the
    frame of the part; R and `origin` bring that to the world, and `sign` turns normals."""
    back = depth
    if parts[part, KIND] == GRID:
        back = ti.max(depth, parts[part, DETAIL])
    real[desk, MARGIN], real[desk, MERGE], real[desk, BACK] = margin, merge, back
    whole[desk, ROUNDS] = ti.cast(parts[part, KIND] == GRID, ti.i32)
    convex = ti.cast(parts[part, DETAIL] >= UNBOUNDED, ti.i32)
    group, f, end, state, count = first - 1, 0, 0, DONE, found
    while group < last:
        if state == DONE:
            f, state = f + 1, NEAR
            if f >= end:
                group, state = group + 1, GROUP
                if group < last:
                    f, end = ti.cast(groups[group, BEGIN], ti.i32) - 1, ti.cast(groups[group, STOP], ti.i32)
            else:
                key = first_key + CODES * (f - ti.cast(groups[first, BEGIN], ti.i32))
                _load(desk, f, key, Q, shift, features, real, whole)
        if group < last:
            x, tangent, out = shift, vec3(0.0), vec3(0.0)
            if state == GROUP:
                x += Q @ three(groups, group, 0)
            else:
                x, tangent = _wanted(desk, state, real, whole)
            if state == TOUCH:
                out = _out_of(desk, real[desk, T], real, whole)
                if whole[desk, TURN] == PLAIN and whole[desk, ROUNDS] == 1 and real[desk, R_] == 0.0:
                    whole[desk, TURN] = FIRST_LOOK
                x -= _pull(whole[desk, TURN]) * back * out
            answer = distance(x, part, parts, grid)
            n, d = vec3(answer[0], answer[1], answer[2]), answer[3]
            whole[desk, NOTED] = -1
            if state == GROUP:
                f, state = ti.select(d - groups[group, AROUND_IT] < margin, f, end), DONE
            elif state == NEAR:
                state = _near(desk, d, part, parts, real, whole)
            elif state == SAMPLE:
                state = _sampled(desk, d, real, whole)
            elif state == BISECT:
                state = _bisected(desk, n, d, n.dot(tangent), real, whole)
            elif state == REACH:
                state = _reached(desk, n, d, real, whole)
            elif state == TOUCH:
                state = _touched(desk, x, out, n, d, tangent, convex, real, whole)
            elif state == AROUND:
                state = _around(desk, x, n, d, real, whole)
            if whole[desk, NOTED] >= 0 and real[desk, GAP_] < margin:
                point, key = origin + R @ vector(desk, POINT_, real), whole[desk, KEY] + whole[desk, NOTED]
                normal = sign * (R @ vector(desk, NORMAL_, real))
                count = add(desk, count, real[desk, GAP_], point, normal, key, merge, real, whole)
            while state > AROUND and state < DONE:
                if state == ITEMS:
                    state = _items(desk, real, whole)
                elif state == ITEM:
                    state = _next_item(desk, real, whole)
                else:
                    state = _next(desk, real, whole)
    return count
