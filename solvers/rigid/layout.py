"""Tables of the rigid solver, as rows of numbers, and what contacts and joints both do with bodies.

A row of `body` is a body during a step, everything relative to its start, so that single precision is enough wherever
the scene lies. Writes are `a[i] = a[i] + ...`, for `+=` would be atomic.
"""

import taichi as ti

from pliant.core.backend import mat3, vec3

# Columns of a body: velocity, angular velocity, inverse mass, inverse inertia now, displacement, rotation (quaternion,
# w x y z), inverse inertia and inertia at the start, the gyroscopic part of the angular velocity, and what acts on it
# in the whole step: a change of velocity, and an angular impulse; the velocities that undo overlaps, which move a body
# and are gone; and its mass over its least moment of inertia. Symmetric matrices: diagonal, then yz, zx, xy.
V, W, IM, J, PUSH, SWAY, X, Q, J0, I0, GYRO, KICK, TWIST, SLIM, BODY = (
    0, 3, 6, 7, 13, 16, 19, 22, 26, 32, 38, 41, 44, 47, 48)  # fmt: skip


@ti.func
def triple(table: ti.template(), i: ti.i32, k: ti.template()):
    return vec3(table[i, k], table[i, k + 1], table[i, k + 2])


@ti.func
def put(table: ti.template(), i: ti.i32, k: ti.template(), u: vec3):
    for d in ti.static(range(3)):
        table[i, k + d] = u[d]


@ti.func
def add(table: ti.template(), i: ti.i32, k: ti.template(), u: vec3):
    for d in ti.static(range(3)):
        table[i, k + d] = table[i, k + d] + u[d]


@ti.func
def times(table: ti.template(), i: ti.i32, k: ti.template(), u: vec3):
    """A symmetric matrix of a row times a vector."""
    xx, yy, zz = table[i, k], table[i, k + 1], table[i, k + 2]
    yz, zx, xy = table[i, k + 3], table[i, k + 4], table[i, k + 5]
    return vec3(xx * u[0] + xy * u[1] + zx * u[2], xy * u[0] + yy * u[1] + yz * u[2], zx * u[0] + yz * u[1] + zz * u[2])


@ti.func
def turn_of(body: ti.template(), i: ti.i32, u: vec3):
    """What the rotation since the start of the step adds to a vector: exact to round-off of the small difference."""
    w, q = body[i, Q], triple(body, i, Q + 1)
    first = q.cross(u)
    return 2.0 * (w * first + q.cross(first))


@ti.func
def kick(body: ti.template(), i: ti.i32, share: ti.f32):
    """A share of what acts on a body in this step."""
    add(body, i, V, share * triple(body, i, KICK))
    add(body, i, W, times(body, i, J, share * triple(body, i, TWIST)))


@ti.func
def prepare_spin(body: ti.template(), i: ti.i32, h: ti.f32):
    """Half of what a free rotation changes of the angular velocity, I w' = L x w, so that the motion by it is of second
    order."""
    w = triple(body, i, W)
    gyro = 0.5 * h * times(body, i, J, turned_inertia(body, i, w).cross(w))
    put(body, i, GYRO, gyro)
    add(body, i, W, gyro)


@ti.func
def turned_inertia(body: ti.template(), i: ti.i32, w: vec3):
    """I w with the inertia as it is turned now: R I0 R^T w."""
    q0, q = body[i, Q], -triple(body, i, Q + 1)
    back = q.cross(w)
    local = times(body, i, I0, w + 2.0 * (q0 * back + q.cross(back)))
    return local + turn_of(body, i, local)


@ti.func
def move(body: ti.template(), i: ti.i32, h: ti.f32):
    """Moves and turns a body. Its angular momentum stays, and with it not its angular velocity."""
    add(body, i, X, h * (triple(body, i, V) + triple(body, i, PUSH)))
    L = turned_inertia(body, i, triple(body, i, W) - triple(body, i, GYRO))
    w = triple(body, i, W) + triple(body, i, SWAY)
    put(body, i, PUSH, vec3(0.0))
    put(body, i, SWAY, vec3(0.0))
    angle = h * w.norm()
    s = 0.5 * h * (1.0 - angle * angle / 24.0)  # sin(angle / 2) / |w|
    if angle > 0.1:
        s = ti.sin(0.5 * angle) / w.norm()
    c, d, q0, q = ti.cos(0.5 * angle), s * w, body[i, Q], triple(body, i, Q + 1)
    q1, e = c * q0 - d.dot(q), c * q + q0 * d + d.cross(q)
    size = 1.0 / ti.sqrt(q1 * q1 + e.dot(e))
    body[i, Q] = size * q1
    put(body, i, Q + 1, size * e)
    if body[i, IM] > 0.0:
        turn_inverse(body, i)
        put(body, i, W, times(body, i, J, L))


@ti.func
def turn_inverse(body: ti.template(), i: ti.i32):
    """The inverse inertia as it is turned now: R J0 R^T."""
    R = mat3(0.0)
    for k in ti.static(range(3)):
        unit = vec3(0.0)
        unit[k] = 1.0
        column = unit + turn_of(body, i, unit)
        for d in ti.static(range(3)):
            R[d, k] = column[d]
    S = mat3(0.0)  # J0 R^T
    for k in ti.static(range(3)):
        column = times(body, i, J0, vec3(R[k, 0], R[k, 1], R[k, 2]))
        for d in ti.static(range(3)):
            S[d, k] = column[d]
    T = R @ S
    for k in ti.static(range(3)):
        body[i, J + k] = T[k, k]
        body[i, J + 3 + k] = 0.5 * (T[(k + 1) % 3, (k + 2) % 3] + T[(k + 2) % 3, (k + 1) % 3])
