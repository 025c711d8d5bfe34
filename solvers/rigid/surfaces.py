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
from pliant.solvers.rigid.candidates import MISSED, add, vector
from pliant.solvers.rigid.curves import bisected, items, near, next_item, next_minimum, reached, sampled
from pliant.solvers.rigid.distances import DETAIL, GRID, KIND, UNBOUNDED, distance, three
from pliant.solvers.rigid.features import AROUND_IT, BEGIN, POINT, STOP
from pliant.solvers.rigid.search_state import (
    AGAIN,
    AROUND,
    BACK,
    BENT,
    BESIDE,
    BISECT,
    CLEAR,
    CLEAR_GAP,
    CODE,
    DEPTH_T,
    DONE,
    FIRST_LOOK,
    FLAT,
    GAP_,
    GROUP,
    ITEM,
    ITEMS,
    KEY,
    MARGIN,
    MERGE,
    NEAR,
    NEXT,
    NORMAL,
    NORMAL_,
    NOTED,
    PLAIN,
    POINT_,
    R_,
    REACH,
    ROUNDS,
    SAMPLE,
    SHAPE,
    SHARP,
    STANDS,
    TOUCH,
    TURN,
    WAY,
    K,
    T,
    load,
    note,
    out_of,
    pull,
    store,
    wanted,
)

SQUARE = 1e-3  # cosine between an axis and the normals that its offset may have if its ends are flat
FACING = 0.1  # cosine between the normal and the direction out of a feature, at least: it faces the other surface
CODES = 32  # of one feature; keys are code + CODES * (feature + FEATURES * (side + 2 * part))
FEATURES = 1 << 16
DIRECTIONS, TURNS = 14, 8  # from which a ball looks for more contacts with what is not convex, and how often it turns
SETTLED = 0.9999  # cosine between the direction of a contact and its normal
ANOTHER = 0.98  # cosine (11 degrees) between the normals of a ball's nearest contact and of others, at most
ROUNDED = 0.998  # cosine (3.6 degrees) between normals at a place and beside it: if they differ more, there is a rim


@ti.func
def _touched(desk: ti.i32, x: vec3, out: vec3, normal: vec3, distance: ti.f32, tangent: vec3, convex: ti.i32,
             real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """Adds a point of a feature if it is near the part and faces it. A sharp one that faces away may lie a little
    within a rim that is flush with it, where another face is nearer than the one it stands on: it is then looked at
    from a little farther inside of its own body. A grid rounds rims, so that there the look from inside comes first."""
    r, state, turn, n = real[desk, R_], TOUCH, whole[desk, TURN], normal
    back = pull(turn) * real[desk, BACK] * out
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
        store(desk, CLEAR, n, real)
    elif turn + whole[desk, BENT] == PLAIN and not faces and gap < real[desk, MARGIN]:
        whole[desk, TURN] = AGAIN
        real[desk, MISSED] = ti.min(real[desk, MISSED], gap)
    else:
        if turn == AGAIN and ti.abs(gap) > real[desk, BACK]:
            faces = False
        if real[desk, FLAT] > 0.0 and ti.abs(n.dot(tangent)) > SQUARE * tangent.norm():
            faces = False  # the axis itself may lie inside, though
            real[desk, MISSED] = ti.min(real[desk, MISSED], gap + r)
        alone = whole[desk, SHAPE] != POINT or r == 0.0 or convex == 1
        if faces and alone:
            note(desk, gap, x + back - (r + 0.5 * gap) * n, n, whole[desk, CODE], real, whole)
        whole[desk, BENT] = 0
        state = ti.select(whole[desk, STANDS] == 1, NEXT, ITEM)
        if whole[desk, SHAPE] == POINT:
            state = DONE
            if not alone:
                state, whole[desk, K], whole[desk, TURN] = AROUND, -1, 0
                store(desk, WAY, -n, real)
                store(desk, CLEAR, vec3(0.0), real)
    return state


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
            note(desk, d, x - 0.5 * d * n, n, 1 + k, real, whole)
            if k < 0 and d < real[desk, MARGIN]:
                store(desk, CLEAR, n, real)
        k, turn = k + 1, 0
        way = _direction(k)
        if k == DIRECTIONS:
            state = DONE
    whole[desk, K], whole[desk, TURN] = k, turn
    store(desk, WAY, way, real)
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
                load(desk, f, key, Q, shift, features, real, whole)
        if group < last:
            x, tangent, out = shift, vec3(0.0), vec3(0.0)
            if state == GROUP:
                x += Q @ three(groups, group, 0)
            else:
                x, tangent = wanted(desk, state, real, whole)
            if state == TOUCH:
                out = out_of(desk, real[desk, T], real, whole)
                if whole[desk, TURN] == PLAIN and whole[desk, ROUNDS] == 1 and real[desk, R_] == 0.0:
                    whole[desk, TURN] = FIRST_LOOK
                x -= pull(whole[desk, TURN]) * back * out
            answer = distance(x, part, parts, grid)
            n, d = vec3(answer[0], answer[1], answer[2]), answer[3]
            whole[desk, NOTED] = -1
            if state == GROUP:
                f, state = ti.select(d - groups[group, AROUND_IT] < margin, f, end), DONE
            elif state == NEAR:
                state = near(desk, d, part, parts, real, whole)
            elif state == SAMPLE:
                state = sampled(desk, d, real, whole)
            elif state == BISECT:
                state = bisected(desk, n, d, n.dot(tangent), real, whole)
            elif state == REACH:
                state = reached(desk, n, d, real, whole)
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
                    state = items(desk, real, whole)
                elif state == ITEM:
                    state = next_item(desk, real, whole)
                else:
                    state = next_minimum(desk, real, whole)
    return count
