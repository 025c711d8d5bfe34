"""Contacts of two boxes: separating axes, and the overlap of two faces (Gottschalk et al. 1996; Ericson 2005, ch. 4,
5).

Boxes are by far the commonest bodies, and are stacked face on face, where this is exact: contacts are the corners of
the overlap of two faces. A corner's key tells which corners and edges of both boxes make it, so that it stays the same
when the two faces change their parts. Wherever it finds nothing (boxes that pass each other corner by corner), features
and distances do (`surfaces.py`).
"""

import taichi as ti

from pliant.core.backend import mat3, vec3
from pliant.solvers.rigid.candidates import CORNERS_MOST, LABEL, POLYGON, put

PARALLEL = 0.02  # sine below which edges are parallel: their cross product has lost its precision, and faces do as well
BOX_KEYS = 1 << 28  # keys from here on are of this path
NOWHERE = -1e30


@ti.func
def _sign(x: ti.f32) -> ti.f32:
    return ti.select(x < 0.0, -1.0, 1.0)


@ti.func
def separating_axis(C: mat3, t: vec3, a: vec3, b: vec3, tie: ti.f32):
    """The axis along which boxes with half edges a and b are farthest apart, and how far. C has the axes of b as its
    columns, and t is its centre, both in the frame of a. Axes: 0-2 normals of a, 3-5 of b, 6 + 3 i + j edge i of a
    times edge j of b. An axis must be better than an earlier one by `tie`, lest they take turns."""
    apart, axis, edges = NOWHERE, 0, NOWHERE
    crossed = -1
    for i in ti.static(range(3)):
        s = ti.abs(t[i]) - a[i] - ti.abs(C[i, 0]) * b[0] - ti.abs(C[i, 1]) * b[1] - ti.abs(C[i, 2]) * b[2]
        if s > apart + tie:
            apart, axis = s, i
    for j in ti.static(range(3)):
        along = t[0] * C[0, j] + t[1] * C[1, j] + t[2] * C[2, j]
        s = ti.abs(along) - b[j] - ti.abs(C[0, j]) * a[0] - ti.abs(C[1, j]) * a[1] - ti.abs(C[2, j]) * a[2]
        if s > apart + tie:
            apart, axis = s, 3 + j
    for i, j in ti.static(ti.ndrange(3, 3)):
        k, l, m, n = ti.static((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3)
        sine = ti.sqrt(ti.max(C[k, j] ** 2 + C[l, j] ** 2, 0.0))  # the axis is e_i x b_j: 0 at i, -C_lj at k, C_kj at l
        if sine > PARALLEL:
            reach = (a[k] * ti.abs(C[l, j]) + a[l] * ti.abs(C[k, j]) + b[m] * ti.abs(C[i, n]) + b[n] * ti.abs(C[i, m]))
            s = (ti.abs(t[l] * C[k, j] - t[k] * C[l, j]) - reach) / sine
            if s > edges + tie:
                edges, crossed = s, 6 + 3 * i + j
    if edges > apart + tie:
        apart, axis = edges, crossed
    return axis, apart


@ti.func
def column(C: mat3, j: ti.i32) -> vec3:
    return ti.select(j == 0, vec3(C[0, 0], C[1, 0], C[2, 0]),
                     ti.select(j == 1, vec3(C[0, 1], C[1, 1], C[2, 1]), vec3(C[0, 2], C[1, 2], C[2, 2])))  # fmt: skip


@ti.func
def _at(v: vec3, k: ti.i32) -> ti.f32:
    return ti.select(k == 0, v[0], ti.select(k == 1, v[1], v[2]))


@ti.func
def _unit(k: ti.i32) -> vec3:
    return vec3(ti.select(k == 0, 1.0, 0.0), ti.select(k == 1, 1.0, 0.0), ti.select(k == 2, 1.0, 0.0))


@ti.func
def _edge_code(axis: ti.i32, corner: ti.i32) -> ti.i32:
    """0 to 11, of the edge along an axis through a corner, whose bits are its sides."""
    first, second = corner >> ((axis + 1) % 3) & 1, corner >> ((axis + 2) % 3) & 1
    return 4 * axis + 2 * second + first


@ti.func
def cross_edges(desk: ti.i32, axis: ti.i32, C: mat3, t: vec3, a: vec3, b: vec3, R: mat3, margin: ti.f32, slack: ti.f32,
                real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """Two edges: the contact is midway between their nearest points (Ericson 2005, section 5.1.8)."""
    i, j = (axis - 6) // 3, (axis - 6) % 3
    own, other = _unit(i), column(C, j)
    normal = own.cross(other).normalized()
    normal *= _sign(normal.dot(t))
    p, q, corner_a, corner_b = vec3(0.0), t, 0, 0
    for k in ti.static(range(3)):
        side = vec3(C[0, k], C[1, k], C[2, k])
        if k != i:
            p[k] = _sign(normal[k]) * a[k]
            corner_a |= ti.select(normal[k] < 0.0, 0, 1 << k)
        if k != j:
            q -= _sign(normal.dot(side)) * b[k] * side
            corner_b |= ti.select(normal.dot(side) < 0.0, 1 << k, 0)
    between, c = q - p, other[0] * own[0] + other[1] * own[1] + other[2] * own[2]
    square = ti.max(1.0 - c * c, PARALLEL**2)
    s = (between.dot(own) - c * between.dot(other)) / square
    u = (c * between.dot(own) - between.dot(other)) / square
    count, gap = 0, between.dot(normal)
    if gap < margin and ti.abs(s) < _at(a, i) + slack and ti.abs(u) < _at(b, j) + slack:
        key = BOX_KEYS + 16 + 12 * _edge_code(i, corner_a) + _edge_code(j, corner_b)
        put(desk, 0, gap, R @ (0.5 * (p + s * own + q + u * other)), R @ normal, key, real, whole)
        count = 1
    return count


@ti.func
def _clip(desk: ti.i32, corners: ti.i32, side: ti.i32, turned: ti.i32, axis: ti.i32, sign: ti.f32, half: ti.f32,
          slop: ti.f32, real: ti.template(), whole: ti.template()) -> ti.i32:  # fmt: skip
    """What of a polygon lies within a plane, and up to `slop` outside (Sutherland and Hodgman 1974). Each corner has
    the label of the edge that follows it: 0-3 of the polygon as it was, 4-7 of the planes."""
    source, label = POLYGON + turned * 3 * CORNERS_MOST, LABEL + turned * CORNERS_MOST
    target, target_label = POLYGON + (1 - turned) * 3 * CORNERS_MOST, LABEL + (1 - turned) * CORNERS_MOST
    count = 0
    for i in range(corners):
        j = ti.select(i + 1 < corners, i + 1, 0)
        d = sign * real[desk, source + 3 * i + axis] - half
        e = sign * real[desk, source + 3 * j + axis] - half
        if d <= slop and count < CORNERS_MOST:
            for k in ti.static(range(3)):
                real[desk, target + 3 * count + k] = real[desk, source + 3 * i + k]
            whole[desk, target_label + count] = whole[desk, label + i]
            count += 1
        if (d <= slop) != (e <= slop) and count < CORNERS_MOST:
            s = ti.min(ti.max(d / (d - e), 0.0), 1.0)
            for k in ti.static(range(3)):
                x, y = real[desk, source + 3 * i + k], real[desk, source + 3 * j + k]
                real[desk, target + 3 * count + k] = x + s * (y - x)
            whole[desk, target_label + count] = ti.select(d <= slop, 4 + side, whole[desk, label + i])
            count += 1
    return count


@ti.func
def _corner_code(first: ti.i32, second: ti.i32, k: ti.i32, sign: ti.f32, j: ti.i32, other_sign: ti.f32,
                 flipped: ti.i32) -> ti.i32:  # fmt: skip
    """Key of a corner of the overlap between edges with these labels, of face k of the one and face j of the other box:
    0-15 corners of a and b, and then edge of a times edge of b."""
    k1, k2, j1, j2 = (k + 1) % 3, (k + 2) % 3, (j + 1) % 3, (j + 2) % 3
    own = ti.select(sign > 0.0, 1 << k, 0)  # corner of the reference box, by bits
    other = ti.select(other_sign > 0.0, 1 << j, 0)
    own_edges, own_axis, other_edges, other_axis = 0, 0, 0, 0
    for turn in range(2):
        label = ti.select(turn == 0, first, second)
        if label >= 4:  # planes: -k1, +k1, -k2, +k2; the edge runs along the other axis
            side = (label - 4) // 2
            own |= ti.select((label - 4) % 2 == 1, 1 << ti.select(side == 0, k1, k2), 0)
            own_edges += 1
            own_axis = ti.select(side == 0, k2, k1)
        else:  # edges of the other face, in turn at -j2, +j1, +j2, -j1
            fixed = ti.select(label % 2 == 0, j2, j1)
            other |= ti.select(label == 1 or label == 2, 1 << fixed, 0)
            other_edges += 1
            other_axis = ti.select(label % 2 == 0, j1, j2)
    code = own + ti.select(flipped == 1, 8, 0)
    if other_edges == 2:
        code = other + ti.select(flipped == 1, 0, 8)
    elif other_edges == 1 and own_edges == 1:
        own_code, other_code = _edge_code(own_axis, own), _edge_code(other_axis, other)
        code = 16 + ti.select(flipped == 1, 12 * other_code + own_code, 12 * own_code + other_code)
    return code


@ti.func
def overlap_faces(desk: ti.i32, k: ti.i32, C: mat3, t: vec3, a: vec3, b: vec3, R: mat3, origin: vec3,
                  flipped: ti.i32, margin: ti.f32, slop: ti.f32, real: ti.template(), whole: ti.template()
                  ) -> ti.i32:  # fmt: skip
    """Face k of a box with half edges a (`a` of the pair, or `b` if flipped), and the face of the other that looks at
    it most, cut by the sides of the first. All is in the frame of the first box, which R and `origin` bring to the
    world."""
    sign, j = _sign(_at(t, k)), 0
    facing = vec3(_at(column(C, 0), k), _at(column(C, 1), k), _at(column(C, 2), k))
    for axis in ti.static(range(1, 3)):
        if ti.abs(facing[axis]) > ti.abs(_at(facing, j)):
            j = axis
    other_sign = -sign * _sign(_at(facing, j))
    j1, j2, k1, k2 = (j + 1) % 3, (j + 2) % 3, (k + 1) % 3, (k + 2) % 3
    middle = t + other_sign * _at(b, j) * column(C, j)
    e1, e2 = _at(b, j1) * column(C, j1), _at(b, j2) * column(C, j2)
    for m in range(4):
        x = middle + ti.select(m == 0 or m == 3, -1.0, 1.0) * e1 + ti.select(m < 2, -1.0, 1.0) * e2
        for l in ti.static(range(3)):
            real[desk, POLYGON + 3 * m + l] = x[l]
        whole[desk, LABEL + m] = m
    corners = 4
    for side in range(4):
        axis = ti.select(side < 2, k1, k2)
        corners = _clip(desk, corners, side, side % 2, axis, ti.select(side % 2 == 0, -1.0, 1.0), _at(a, axis), slop,
                        real, whole)  # fmt: skip
    count, normal = 0, sign * _unit(k)
    for m in range(corners):
        x = vec3(real[desk, POLYGON + 3 * m], real[desk, POLYGON + 3 * m + 1], real[desk, POLYGON + 3 * m + 2])
        gap = sign * _at(x, k) - _at(a, k)
        if gap < margin:
            before = whole[desk, LABEL + ti.select(m > 0, m - 1, corners - 1)]
            code = _corner_code(before, whole[desk, LABEL + m], k, sign, j, other_sign, flipped)
            n = ti.select(flipped == 1, -1.0, 1.0) * (R @ normal)
            put(desk, count, gap, origin + R @ (x - 0.5 * gap * normal), n, BOX_KEYS + code, real, whole)
            count += 1
    return count


@ti.func
def box_contacts(desk: ti.i32, Ra: mat3, Rb: mat3, between: vec3, a: vec3, b: vec3, margin: ti.f32, slop: ti.f32,
                 real: ti.template(), whole: ti.template()):  # fmt: skip
    """Notes candidates, relative to the centre of a, whose count is returned, and how far the boxes are apart."""
    C, t = Ra.transpose() @ Rb, Ra.transpose() @ between
    axis, apart = separating_axis(C, t, a, b, slop)
    count = 0
    if apart < margin:
        if axis >= 6:
            count = cross_edges(desk, axis, C, t, a, b, Ra, margin, slop, real, whole)
        else:
            flipped, k, D, s, own, other, R, origin = 0, axis, C, t, a, b, Ra, vec3(0.0)
            if axis >= 3:
                flipped, k, own, other, R, origin = 1, axis - 3, b, a, Rb, between
                D, s = C.transpose(), -(Rb.transpose() @ between)
            count = overlap_faces(desk, k, D, s, own, other, R, origin, flipped, margin, slop, real, whole)
    return count, apart
