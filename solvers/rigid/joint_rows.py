"""Joints in the rigid solver: their equations, and a direct solve of all of them at once.

A row is an equation for velocities, linear . (v_b - v_a) + turn_b . w_b - turn_a . w_a + soft lambda = want. In the
moving half of a substep `want` closes the error of positions, in the resting half it is zero (see `solver`). Both
bodies get the opposite impulse at the anchor of b. With G of all rows, G M^-1 G^T lambda = want - G v is factored as
L D L^T within its envelope (George and Liu 1981), which a chain keeps narrow: exact for chains and trees of any masses.

Motors and limits are rows with bounds on lambda. Those at a bound are left out of the matrix, and come back when their
velocity asks for it (an active set; Baraff 1994).
"""

import taichi as ti

from pliant.core.backend import vec3
from pliant.solvers.rigid.layout import IM, J, V, W, X, add, put, times, triple, turn_of

BALL, HINGE, SLIDER, FIXED, SPRING, DISTANCE = range(6)  # kinds, in this order because kernels compare them so
KIND, A, B, MODE, JOINT_INTS = range(5)  # whole numbers of a joint
# Numbers of a joint: arm and frame of a and of b at the start of the step, the way between the anchors, the position,
# what it is given, sums of the step (force and torque on b, and of the motor), and how it is now: arms and frames, the
# way, the rotation that it lacks.
ARM_A, FRAME_A, ARM_B, FRAME_B, APART, AT, LOW, HIGH, TARGET, MOST, STIFF, DAMP, LENGTH = (
    0, 3, 12, 15, 24, 27, 28, 29, 30, 31, 32, 33, 34)  # fmt: skip
SUMS, NOW, WAY, ERROR, JOINT = 35, 42, 66, 69, 72
VECTORS = 8  # arms and axes of a frame, of a and of b
# Whole numbers of a row: bodies, its part of the envelope, its joint, its role, and which axis it is about.
A_OF, B_OF, OFFSET, FIRST, JOINT_OF, ROLE, AXIS, ROW_INTS = range(8)
# Roles: a place along an axis of space or of a, a rotation about the same, a length, and motion along the first axis.
PLACE, SIDE, TURN, TILT, SPAN, MOTOR, LIMIT = range(7)
# Numbers of a row: the equation, turns through the inverse inertias, what is wanted, softness, bounds of the impulse,
# impulse, state, right-hand side and solution, impulse of the moving half.
LINEAR, TURN_A, TURN_B, HEAVY_A, HEAVY_B, WANT, SOFT, LEAST, GREATEST, LAMBDA, STATE, Y, FIRST_HALF, ROW = (
    0, 3, 6, 9, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23)  # fmt: skip
FREE, AT_LEAST, AT_GREATEST, GIVEN = 0.0, 1.0, 2.0, 3.0  # states
BY_SPEED, BY_FORCE = 1, 2

CLOSE = 0.5  # share of an error of positions that is closed in a substep, if that is not too fast:
CLOSE_RATE = 10.0  # [1/s] in lengths of the arms, or radians...
CLOSE_LEAST = 30.0  # ...but [1/s] at least of the error itself
RIDGE = 1e-6  # of the diagonal, added to it: redundant equations, as those of closed loops, then share their load
ROUNDS = 8  # of the active set in a half of a substep; two are usual
UNBOUNDED = 1e30
WITHIN = 1e-6  # velocities [m/s, rad/s] that do not bring a bound back


@ti.func
def way_back(error: ti.f32, size: ti.f32, moving: ti.i32, h: ti.f32):
    """The velocity that closes an error."""
    rate = ti.min(CLOSE / h, ti.max(CLOSE_LEAST, CLOSE_RATE * size / ti.max(ti.abs(error), 1e-30)))
    return -moving * rate * error


@ti.func
def set_limit(r: ti.i32, at: ti.f32, low: ti.f32, high: ti.f32, size: ti.f32, moving: ti.i32, h: ti.f32,
              row: ti.template()):  # fmt: skip
    """The nearer of two limits: it may be reached, and only pushes back."""
    below = at - low < high - at
    left = ti.select(below, at - low, high - at)
    sign = ti.select(below, 1.0, -1.0)
    pressed = ti.abs(row[r, FIRST_HALF])
    want = -left / h
    if left < 0.0:
        want = way_back(left, size, moving, h)
    least, state = 0.0, ti.select(below, AT_LEAST, AT_GREATEST)
    if moving == 0 and pressed > 0.0:
        want, least, state = 0.0, -pressed, FREE
    row[r, WANT], row[r, STATE] = sign * want, state
    row[r, LEAST], row[r, GREATEST] = ti.select(below, least, -UNBOUNDED), ti.select(below, UNBOUNDED, -least)


@ti.func
def set_spring(r: ti.i32, j: ti.i32, error: ti.f32, moving: ti.i32, h: ti.f32, joint: ti.template(),
               row: ti.template()):  # fmt: skip
    """Half of a substep of the implicit midpoint rule, which keeps the energy of a spring and is stable for any:
    lambda = -(h / 2) (k (C + h v / 2) + c v). The other half gives the same impulse again."""
    k, c = joint[j, STIFF], joint[j, DAMP]
    firm = 0.5 * h * (c + 0.5 * h * k)
    if moving == 1 and firm > 0.0:
        row[r, SOFT], row[r, WANT] = 1.0 / firm, -0.5 * h * k * error / firm
    else:
        row[r, STATE], row[r, LAMBDA] = GIVEN, (1 - moving) * row[r, FIRST_HALF]


@ti.func
def place_joint(j: ti.i32, joint_place: ti.template(), joint: ti.template(), body: ti.template()):
    """Arms and axes as they are turned now, and what the joint lacks."""
    a, b, kind = joint_place[j, A], joint_place[j, B], joint_place[j, KIND]
    for q in range(VECTORS):
        of = ti.select(q < VECTORS // 2, a, b)
        u = vec3(joint[j, 3 * q], joint[j, 3 * q + 1], joint[j, 3 * q + 2])
        now = turn_of(body, of, u)
        for d in ti.static(range(3)):
            joint[j, NOW + 3 * q + d] = now[d]
    # of the arms only what has changed, so that the way is exact to round-off of that
    way = triple(joint, j, APART) + (triple(body, b, X) - triple(body, a, X))
    put(joint, j, WAY, way + (triple(joint, j, NOW + ARM_B) - triple(joint, j, NOW + ARM_A)))
    for q in range(3 * VECTORS):
        joint[j, NOW + q] = joint[j, NOW + q] + joint[j, q]
    error = triple(joint, j, NOW + FRAME_A).cross(triple(joint, j, NOW + FRAME_B))
    if kind != HINGE:  # as a rotation vector
        error += triple(joint, j, NOW + FRAME_A + 3).cross(triple(joint, j, NOW + FRAME_B + 3))
        error += triple(joint, j, NOW + FRAME_A + 6).cross(triple(joint, j, NOW + FRAME_B + 6))
        error *= 0.5
    put(joint, j, ERROR, error)
    if kind == SLIDER:
        joint[j, AT] = triple(joint, j, NOW + FRAME_A).dot(triple(joint, j, WAY))


@ti.func
def set_row(r: ti.i32, moving: ti.i32, h: ti.f32, joint_place: ti.template(), joint: ti.template(),
            row_place: ti.template(), row: ti.template()):  # fmt: skip
    """An equation as its bodies are now, and what is wanted of it."""
    j, role, axis = row_place[r, JOINT_OF], row_place[r, ROLE], row_place[r, AXIS]
    kind, way = joint_place[j, KIND], triple(joint, j, WAY)
    d = vec3(0.0)
    for k in ti.static(range(3)):
        d[k] = ti.select(k == axis, 1.0, 0.0)
        if role == SIDE or role == TILT or role > SPAN:  # noqa: SIM109 (kernels know no `in`)
            d[k] = joint[j, NOW + FRAME_A + 3 * axis + k]
        if role == SPAN:
            d[k] = way[k] / ti.max(way.norm(), 1e-20)
    linear = role < TURN or role == SPAN or (role > SPAN and kind == SLIDER)
    size, error, ta, tb, along = 1.0, triple(joint, j, ERROR).dot(d), d, d, vec3(0.0)
    if linear:
        arm_a, arm_b = triple(joint, j, NOW + ARM_A), triple(joint, j, NOW + ARM_B)
        ta, tb, along = (arm_a + way).cross(d), arm_b.cross(d), d  # both at the anchor of b
        size = arm_a.norm() + arm_b.norm() + way.norm()
        error = way.dot(d) - ti.select(role == SPAN, joint[j, LENGTH], 0.0)
    put(row, r, LINEAR, along)
    put(row, r, TURN_A, ta)
    put(row, r, TURN_B, tb)
    row[r, SOFT], row[r, LAMBDA], row[r, STATE] = 0.0, 0.0, FREE
    row[r, LEAST], row[r, GREATEST] = -UNBOUNDED, UNBOUNDED
    row[r, WANT] = way_back(error, size, moving, h)
    if kind == SPRING:
        set_spring(r, j, error, moving, h, joint, row)
    if role == MOTOR:
        set_motor(r, j, h, joint_place, joint, row)
    if role == LIMIT:
        set_limit(r, joint[j, AT], joint[j, LOW], joint[j, HIGH], size, moving, h, row)


@ti.func
def set_motor(r: ti.i32, j: ti.i32, h: ti.f32, joint_place: ti.template(), joint: ti.template(), row: ti.template()):
    """A speed that is wanted with a bounded force, or a force that is given."""
    if joint_place[j, MODE] == BY_SPEED:
        most = ti.min(0.5 * h * joint[j, MOST], UNBOUNDED)
        row[r, WANT], row[r, LEAST], row[r, GREATEST] = joint[j, TARGET], -most, most
    else:
        row[r, STATE], row[r, LAMBDA] = GIVEN, 0.5 * h * joint[j, TARGET]


@ti.func
def apply_row(r: ti.i32, impulse: ti.f32, row_place: ti.template(), row: ti.template(), body: ti.template()):
    a, b = row_place[r, A_OF], row_place[r, B_OF]
    d = triple(row, r, LINEAR)
    row[r, LAMBDA] = row[r, LAMBDA] + impulse
    add(body, a, V, -impulse * body[a, IM] * d)
    add(body, a, W, -impulse * triple(row, r, HEAVY_A))
    add(body, b, V, impulse * body[b, IM] * d)
    add(body, b, W, impulse * triple(row, r, HEAVY_B))


@ti.func
def product(r: ti.i32, s: ti.i32, row_place: ti.template(), row: ti.template(), body: ti.template()):
    """An element of G M^-1 G^T: what an impulse of row s changes in the velocity of row r."""
    a, b, c, d = row_place[r, A_OF], row_place[r, B_OF], row_place[s, A_OF], row_place[s, B_OF]
    both, total = triple(row, r, LINEAR).dot(triple(row, s, LINEAR)), 0.0
    if a == c:
        total += body[a, IM] * both + triple(row, r, TURN_A).dot(triple(row, s, HEAVY_A))
    if b == d:
        total += body[b, IM] * both + triple(row, r, TURN_B).dot(triple(row, s, HEAVY_B))
    if a == d:
        total -= body[a, IM] * both + triple(row, r, TURN_A).dot(triple(row, s, HEAVY_B))
    if b == c:
        total -= body[b, IM] * both + triple(row, r, TURN_B).dot(triple(row, s, HEAVY_A))
    return total


@ti.func
def lack(r: ti.i32, row_place: ti.template(), row: ti.template(), body: ti.template()):
    """What a row lacks of the velocity that is wanted."""
    a, b = row_place[r, A_OF], row_place[r, B_OF]
    u = triple(row, r, LINEAR).dot(triple(body, b, V) - triple(body, a, V))
    u += triple(row, r, TURN_B).dot(triple(body, b, W)) - triple(row, r, TURN_A).dot(triple(body, a, W))
    return row[r, WANT] - u - row[r, SOFT] * row[r, LAMBDA]


@ti.func
def start_joints(joints: ti.i32, rows: ti.i32, moving: ti.i32, h: ti.f32, joint_place: ti.template(),
                 joint: ti.template(), row_place: ti.template(), row: ti.template(), body: ti.template()):  # fmt: skip
    """Equations of this half of a substep, and the impulses that are given."""
    for j in range(joints):
        place_joint(j, joint_place, joint, body)
    for r in range(rows):
        a, b = row_place[r, A_OF], row_place[r, B_OF]
        set_row(r, moving, h, joint_place, joint, row_place, row)
        put(row, r, HEAVY_A, times(body, a, J, triple(row, r, TURN_A)))
        put(row, r, HEAVY_B, times(body, b, J, triple(row, r, TURN_B)))
        if body[a, IM] + body[b, IM] <= 0.0:  # between what is prescribed
            row[r, STATE], row[r, LAMBDA] = GIVEN, 0.0
        given = row[r, LAMBDA]
        if given != 0.0:
            row[r, LAMBDA] = 0.0
            apply_row(r, given, row_place, row, body)


@ti.func
def factor(rows: ti.i32, row_place: ti.template(), row: ti.template(), skyline: ti.template(), body: ti.template()):
    """L D L^T of the matrix of free rows; the others have a one on the diagonal. D is on the diagonal of L."""
    for i in range(rows):
        first, here, free = row_place[i, FIRST], row_place[i, OFFSET] - row_place[i, FIRST], row[i, STATE] == FREE
        for j in range(first, i + 1):
            value, there = 0.0, row_place[j, OFFSET] - row_place[j, FIRST]
            if free and row[j, STATE] == FREE:
                value = product(i, j, row_place, row, body)
            for k in range(ti.max(first, row_place[j, FIRST]), ti.select(j < i, j, 0)):
                value -= skyline[here + k] * skyline[there + k]
            skyline[here + j] = value
        own = ti.select(free, (1.0 + RIDGE) * skyline[here + i] + row[i, SOFT], 1.0)
        pivot = own
        for k in range(first, i):
            value = skyline[here + k]
            share = value / skyline[row_place[k, OFFSET] - row_place[k, FIRST] + k]
            pivot -= value * share
            skyline[here + k] = share
        skyline[here + i] = ti.max(pivot, RIDGE * own)


@ti.func
def solve_rows(rows: ti.i32, row_place: ti.template(), row: ti.template(), skyline: ti.template(), body: ti.template()):
    """Gives free rows what they lack."""
    for i in range(rows):
        first, here, value = row_place[i, FIRST], row_place[i, OFFSET] - row_place[i, FIRST], 0.0
        if row[i, STATE] == FREE:
            value = lack(i, row_place, row, body)
        for k in range(first, i):
            value -= skyline[here + k] * row[k, Y]
        row[i, Y] = value
    for i in range(rows):
        row[i, Y] = row[i, Y] / skyline[row_place[i, OFFSET] - row_place[i, FIRST] + i]
    for e in range(rows):
        i = rows - 1 - e
        first, here = row_place[i, FIRST], row_place[i, OFFSET] - row_place[i, FIRST]
        for k in range(first, i):
            row[k, Y] = row[k, Y] - skyline[here + k] * row[i, Y]
    for i in range(rows):
        if row[i, STATE] == FREE:
            apply_row(i, row[i, Y], row_place, row, body)


@ti.func
def check_bounds(rows: ti.i32, row_place: ti.template(), row: ti.template(), body: ti.template()):
    """Rows beyond a bound stay at it; those that would come back are free again. Says whether there were any."""
    changed = 0
    for r in range(rows):
        state, value = row[r, STATE], row[r, LAMBDA]
        if state == FREE and (value > row[r, GREATEST] or value < row[r, LEAST]):
            high = value > row[r, GREATEST]
            bound = ti.select(high, row[r, GREATEST], row[r, LEAST])
            row[r, STATE], changed = ti.select(high, AT_GREATEST, AT_LEAST), 1
            apply_row(r, bound - value, row_place, row, body)
        elif FREE < state < GIVEN:
            more = lack(r, row_place, row, body)
            if (state == AT_LEAST and more > WITHIN) or (state == AT_GREATEST and more < -WITHIN):
                row[r, STATE], changed = FREE, 1
    return changed


@ti.func
def solve_joints(rows: ti.i32, turn: ti.i32, row_place: ti.template(), row: ti.template(), skyline: ti.template(),
                 body: ti.template()):  # fmt: skip
    """All joints at once; a second turn, after contacts, has the factor of the first."""
    changed, stale = 1, turn == 0
    for _ in range(ROUNDS):
        if changed == 1:
            if stale:
                factor(rows, row_place, row, skyline, body)
            solve_rows(rows, row_place, row, skyline, body)
            changed, stale = check_bounds(rows, row_place, row, body), True


@ti.func
def end_joints(joints: ti.i32, rows: ti.i32, moving: ti.i32, h: ti.f32, joint_place: ti.template(),
               joint: ti.template(), row_place: ti.template(), row: ti.template(), body: ti.template()):  # fmt: skip
    """Adds to the sums of the step, and lets hinges turn on."""
    for r in range(rows):
        j, value, d = row_place[r, JOINT_OF], row[r, LAMBDA], triple(row, r, LINEAR)
        if moving == 1:
            row[r, FIRST_HALF] = value
        add(joint, j, SUMS, value * d)
        if d.norm_sqr() == 0.0:
            add(joint, j, SUMS + 3, value * triple(row, r, TURN_B))
        if row_place[r, ROLE] == MOTOR:
            joint[j, SUMS + 6] = joint[j, SUMS + 6] + value
    for j in range(joints):
        if joint_place[j, KIND] == HINGE:
            w = triple(body, joint_place[j, B], W) - triple(body, joint_place[j, A], W)
            joint[j, AT] = joint[j, AT] + moving * h * triple(joint, j, NOW + FRAME_A).dot(w)
