"""Convex bodies that overlap so deeply that no feature of one faces the surface of the other: pushed apart along the
direction in which that takes least, of those of their axes, cross products of these, and between their centres.

Features and distances are exact where bodies touch. Where a body is more than half through another, as where two were
placed into each other or a needle flew into a plate, the nearest surface is that behind it, and its normal is refused.
"""

import taichi as ti

from pliant.core.backend import mat3, vec3
from pliant.solvers.rigid.boxes import column
from pliant.solvers.rigid.candidates import EACH, GAP, MOST, put
from pliant.solvers.rigid.distances import BALL, BOX, CAPSULE, CYLINDER, KIND, SIGN, SIZES, three

ALONG = 1e-3  # of a direction: what is less along an axis has none of its sides in front
AXES, CROSSES = 6, 9  # directions: axes of both, and edges across
OVERLAP_KEY = 1 << 29  # of such a contact


@ti.func
def _side(x: ti.f32) -> ti.f32:
    """-1, 1, or 0 for a direction that is along a face: then the middle of the face is in front."""
    return ti.select(x > ALONG, 1.0, ti.select(x < -ALONG, -1.0, 0.0))


@ti.func
def _support(u: vec3, part: ti.i32, parts: ti.template()) -> vec3:
    """The point of a convex part that is farthest along u, or the middle of such points."""
    kind, size = parts[part, KIND], three(parts, part, SIZES)
    point = vec3(0.0)
    if kind == BOX:
        for k in ti.static(range(3)):
            point[k] = size[k] * _side(u[k])
    elif kind == CYLINDER:
        radial = ti.sqrt(u[0] * u[0] + u[1] * u[1])
        if radial > ALONG:
            point = size[0] / radial * vec3(u[0], u[1], 0.0)
        point[2] = size[1] * _side(u[2])
    else:
        point = size[0] * u
        if kind == CAPSULE:
            point[2] += size[1] * _side(u[2])
    return point


@ti.func
def is_convex(part: ti.i32, parts: ti.template()) -> ti.i32:
    kind, convex = parts[part, KIND], 0
    for k in ti.static((BOX, BALL, CYLINDER, CAPSULE)):
        if kind == k and parts[part, SIGN] > 0.0:
            convex = 1
    return convex


@ti.func
def push_apart(desk: ti.i32, found: ti.i32, missed: ti.f32, first: ti.i32, second: ti.i32, Ra: mat3, Rb: mat3, y: vec3,
               parts: ti.template(), real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """Adds a contact if a feature lies much deeper (`missed`) than all candidates; b is at y from a."""
    count, deepest = found, 0.0
    for i in range(found):
        deepest = ti.min(deepest, real[desk, i * EACH + GAP])
    if missed < 2.0 * deepest and count < MOST and is_convex(first, parts) == 1 and is_convex(second, parts) == 1:
        best, normal, point = -1e30, vec3(0.0), vec3(0.0)
        for k in range(AXES + CROSSES + 1):
            n = y
            if k < AXES:
                n = ti.select(k < 3, column(Ra, k % 3), column(Rb, k % 3))
            elif k < AXES + CROSSES:
                n = column(Ra, (k - AXES) // 3).cross(column(Rb, (k - AXES) % 3))
            length = n.norm()
            if length > ALONG * ti.select(k == AXES + CROSSES, ti.abs(missed), 1.0):
                n /= ti.select(n.dot(y) < 0.0, -length, length)
                p = Ra @ _support(Ra.transpose() @ n, first, parts)
                q = y + Rb @ _support(-(Rb.transpose() @ n), second, parts)
                if (q - p).dot(n) > best + ALONG * ti.abs(missed):
                    best, normal, point = (q - p).dot(n), n, 0.5 * (p + q)
        if best < 0.0 and best > -1e29:
            put(desk, count, best, point, normal, OVERLAP_KEY, real, whole)
            count += 1
    return count
