"""Candidates for the contacts of one pair: kept in a row of scratch, and reduced to the few that carry."""

import taichi as ti

from pliant.core.backend import vec3

# Columns of scratch that a pair works in: reals...
GAP, POINT, NORMAL, EACH = 0, 1, 4, 7  # of a candidate
MOST = 96  # candidates
SAMPLES = MOST * EACH  # distances along a curve
POLYGON = SAMPLES + 32  # two polygons that are clipped in turns
CORNERS_MOST = 16  # of a polygon: four, and one more for each of four planes, twice that for safety
SEARCH = POLYGON + 2 * 3 * CORNERS_MOST  # what the search along a feature knows (`surfaces.py`)
SPACING, MISSED = SEARCH + 63, SEARCH + 62  # of candidates that were too many; the depth of what faces nothing
REALS = SEARCH + 64
# ...and whole numbers.
LABEL = 2 * MOST  # keys of candidates, the state of each in the reduction, and labels of polygons
COUNTS = LABEL + 2 * CORNERS_MOST  # of the search
INTS = COUNTS + 16
WAITS, DROPPED, CHOSEN = range(3)

KEPT = 8  # contacts of a pair: more than four carry no more, but an octagon of overlap has eight corners
TIE = 1e-3  # of the distance at which contacts merge: depths that differ by less are equal
SAME_NORMAL = 0.9  # cosine between normals of contacts that may stand for each other
CLEARLY = 1.001  # times as far: by so much a point must be better to be preferred to one that comes before it


@ti.func
def put(desk: ti.i32, place: ti.i32, gap: ti.f32, point: vec3, normal: vec3, key: ti.i32, real: ti.template(),
        whole: ti.template()):  # fmt: skip
    """Writes a candidate."""
    whole[desk, place] = key
    first = place * EACH
    real[desk, first + GAP] = gap
    for k in ti.static(range(3)):
        real[desk, first + POINT + k], real[desk, first + NORMAL + k] = point[k], normal[k]


@ti.func
def vector(desk: ti.i32, column: ti.i32, real: ti.template()):
    return vec3(real[desk, column], real[desk, column + 1], real[desk, column + 2])


@ti.func
def _like(desk: ti.i32, count: ti.i32, point: vec3, normal: vec3, near: ti.f32, real: ti.template()) -> ti.i32:
    """The first candidate within `near` of a place, and with about its normal; -1 if there is none."""
    found, i = -1, 0
    while i < count and found < 0:
        if (vector(desk, i * EACH + POINT, real) - point).norm_sqr() < near * near:
            if normal.dot(vector(desk, i * EACH + NORMAL, real)) > SAME_NORMAL:
                found = i
        i += 1
    return found


@ti.func
def add(desk: ti.i32, count: ti.i32, gap: ti.f32, point: vec3, normal: vec3, key: ti.i32, near: ti.f32,
        real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """Notes a candidate, and returns how many there are. Where there would be too many, all of them are thinned out to
    a distance of `near`, twice, four times that..., and so are those to come; of two that are too near to each other
    the deeper one stays."""
    result = count
    spacing = ti.select(count > 0, real[desk, SPACING], 0.0)
    like = -1
    if spacing > 0.0:
        like = _like(desk, count, point, normal, spacing, real)
    if like < 0:
        put(desk, count, gap, point, normal, key, real, whole)
        result += 1
    elif gap < real[desk, like * EACH + GAP] - TIE * near:
        put(desk, like, gap, point, normal, key, real, whole)
    while result == MOST:
        spacing = ti.max(2.0 * spacing, near)
        result = _thinned(desk, spacing, TIE * near, real, whole)
    real[desk, SPACING] = spacing
    return result


@ti.func
def _thinned(desk: ti.i32, spacing: ti.f32, tie: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """How many candidates are left at this distance."""
    left = 0
    for i in range(MOST):
        gap, key = real[desk, i * EACH + GAP], whole[desk, i]
        x, n = vector(desk, i * EACH + POINT, real), vector(desk, i * EACH + NORMAL, real)
        like = _like(desk, left, x, n, spacing, real)
        if like < 0:
            put(desk, left, gap, x, n, key, real, whole)
            left += 1
        elif gap < real[desk, like * EACH + GAP] - tie:
            put(desk, like, gap, x, n, key, real, whole)
    return left


@ti.func
def _merge(desk: ti.i32, count: ti.i32, near: ti.f32, tie: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    """Drops what has a deeper neighbor with the same normal; of equally deep ones the first stays. Returns how many
    remain."""
    remaining = 0
    for i in range(count):
        whole[desk, MOST + i] = WAITS
    for i in range(count):
        gap, x = real[desk, i * EACH + GAP], vector(desk, i * EACH + POINT, real)
        n, state = vector(desk, i * EACH + NORMAL, real), WAITS
        for j in range(count):
            if j != i and whole[desk, MOST + j] != DROPPED and state == WAITS:
                deeper = gap - real[desk, j * EACH + GAP]
                if deeper > tie or (deeper >= -tie and j < i):
                    if (vector(desk, j * EACH + POINT, real) - x).norm() < near:
                        if n.dot(vector(desk, j * EACH + NORMAL, real)) > SAME_NORMAL:
                            state = DROPPED
        whole[desk, MOST + i] = state
        if state == WAITS:
            remaining += 1
    return remaining


@ti.func
def _deepest(desk: ti.i32, count: ti.i32, tie: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:
    best, least = -1, 0.0
    for i in range(count):
        if whole[desk, MOST + i] == WAITS:
            if best < 0 or real[desk, i * EACH + GAP] < least - tie:
                best, least = i, real[desk, i * EACH + GAP]
    return best


@ti.func
def _spread(desk: ti.i32, count: ti.i32, length: ti.f32, margin: ti.f32, real: ti.template(), whole: ti.template()
            ) -> ti.i32:  # fmt: skip
    """The one that is farthest from all chosen ones (farthest point sampling, Gonzalez 1985): the points that span
    most. A turn of the normal counts like a way of that times `length`, and what is nearly out of reach counts
    little."""
    best, most = -1, -1.0
    for i in range(count):
        if whole[desk, MOST + i] == WAITS:
            x, n = vector(desk, i * EACH + POINT, real), vector(desk, i * EACH + NORMAL, real)
            away = 1e30
            for j in range(count):
                if whole[desk, MOST + j] == CHOSEN:
                    between = (vector(desk, j * EACH + POINT, real) - x).norm_sqr()
                    turn = (vector(desk, j * EACH + NORMAL, real) - n).norm_sqr()
                    away = ti.min(away, between + length * length * turn)
            away *= (margin - real[desk, i * EACH + GAP]) ** 2
            if away > CLEARLY * most:
                best, most = i, away
    return best


@ti.func
def reduce(desk: ti.i32, count: ti.i32, near: ti.f32, length: ti.f32, margin: ti.f32, tie: ti.f32, real: ti.template(),
           whole: ti.template()) -> ti.i32:  # fmt: skip
    """Leaves at most `KEPT` candidates in the state CHOSEN, and returns how many: the deepest, and those that span
    most. What is nearer than `near` to a deeper one is dropped; depths that differ by less than `tie` are equal, so
    that nothing changes while nothing moves."""
    remaining = _merge(desk, count, near, tie, real, whole)
    if remaining <= KEPT:
        for i in range(count):
            if whole[desk, MOST + i] == WAITS:
                whole[desk, MOST + i] = CHOSEN
    else:
        for chosen in range(KEPT):
            best = -1
            if chosen == 0:
                best = _deepest(desk, count, tie, real, whole)
            else:
                best = _spread(desk, count, length, margin, real, whole)
            whole[desk, MOST + best] = CHOSEN
    return ti.min(remaining, KEPT)


@ti.func
def next_chosen(desk: ti.i32, count: ti.i32, after: ti.i32, whole: ti.template()) -> ti.i32:
    """The chosen candidate with the least key above `after`; -1 if there is none."""
    best = -1
    for i in range(count):
        if whole[desk, MOST + i] == CHOSEN and whole[desk, i] > after:
            if best < 0 or whole[desk, i] < whole[desk, best]:
                best = i
    return best
