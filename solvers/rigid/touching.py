"""Contacts in the rigid solver: non-penetration, Coulomb friction and impacts, by Gauss-Seidel.

A row of `contact` is a contact during a step. In the moving half of a substep un >= -gap / h, so that a gap may be
closed; in the resting half un >= 0 for what touches. Overlaps, and the slip since a contact began to stick, are undone
by velocities of their own that move bodies and are gone (split impulses; Catto's Box2D 3 takes the same velocities and
takes them back). Friction is one vector in the plane of contact, at most mu times the normal impulse (Coulomb).

Both bodies get the opposite impulse at the same point, so that their angular momentum stays: while their centres move
apart, the point goes with the one whose surface is round there (see `FOLLOW`).
"""

import taichi as ti

from pliant.core.backend import vec3
from pliant.solvers.rigid.layout import IM, KICK, PUSH, SLIM, SWAY, Q, V, W, X, add, put, times, triple
from pliant.solvers.rigid.layout import J as J_NOW

# Columns of a contact. Given: normal, arms, gap, friction, restitution.
N, ARM_A, ARM_B, GAP, MU, BOUNCE, GIVEN = 0, 3, 6, 9, 10, 11, 12
# Arms now, first tangent, effective inverse masses (nn, n1, n2, 11, 12, 22), impulses in this substep (normal and two
# tangential) and in the last, the slip since sticking began, the impulse of impacts, the approach before one, the
# slowest that bounces, the fastest way out of an overlap, who leads the point, whether it slides, sums of the step, and
# the impulse that was remembered.
NOW_A, NOW_B, T1, K, LAMBDA, LAST, SLIP, IMPACT, BEFORE, SLOW, OUT, FOLLOW, SLIDES, TOTAL, WARM, CONTACT = (
    12, 15, 18, 21, 27, 30, 33, 35, 36, 37, 38, 39, 40, 41, 44, 47)  # fmt: skip
FORCE, PLACE, MEMORY = 0, 3, 6  # what is remembered of a contact: force and slip, in the world
IDENTITY = 4  # body a, body b, and the upper and lower half of the key

UNDO = 0.2  # share of an overlap that is undone in a substep: more makes piles restless (Catto: 0.2)
OUT_RATE = 10.0  # [1/s] the fastest way out of an overlap, in arms' lengths...
OUT_LEAST = 30.0  # ...and [1/s] of the overlap itself: a small one is undone within a few frames
HOLD = 0.2  # share of a slip that friction takes back in a substep
BOUNCES = 2.0  # an impact slower than what acts in so many steps is rest
STILL = 1e-6  # [m/s] that are no impact: round-off
IMPACT_ROUNDS = 20  # of Gauss-Seidel among the contacts of a pair that collides
CHAIN = 200  # impacts follow each other through so many rounds, then the rest is left to the sweeps
# The square of how far a point may be turned away, times the mass and over the least moment of inertia: effective
# masses are then 25 % off. Sweeps diverge where they are off by a factor of two, as at the end of a needle.
TURNED = 3e-3
BARELY = 1e-3  # weight of arms against levers where both bodies are round (see `prepare_contact`)


@ti.func
def second_tangent(contact: ti.template(), c: ti.i32):
    return triple(contact, c, N).cross(triple(contact, c, T1))


@ti.func
def difference(c: ti.i32, a: ti.i32, b: ti.i32, v: ti.template(), w: ti.template(), contact: ti.template(),
               body: ti.template()):  # fmt: skip
    """Of the velocity of b against that of a at the contact, along the normal and the two tangents."""
    u = triple(body, b, v) + triple(body, b, w).cross(triple(contact, c, NOW_B))
    u -= triple(body, a, v) + triple(body, a, w).cross(triple(contact, c, NOW_A))
    return vec3(u.dot(triple(contact, c, N)), u.dot(triple(contact, c, T1)), u.dot(second_tangent(contact, c)))


@ti.func
def relative_velocity(c: ti.i32, a: ti.i32, b: ti.i32, contact: ti.template(), body: ti.template()):
    return difference(c, a, b, V, W, contact, body)


@ti.func
def apply(c: ti.i32, a: ti.i32, b: ti.i32, impulse: vec3, contact: ti.template(), body: ti.template()):
    give(c, a, b, V, W, impulse, contact, body)


@ti.func
def give(c: ti.i32, a: ti.i32, b: ti.i32, v: ti.template(), w: ti.template(), impulse: vec3, contact: ti.template(),
         body: ti.template()):  # fmt: skip
    """An impulse (normal and tangents) on b, and its opposite on a."""
    P = impulse[0] * triple(contact, c, N) + impulse[1] * triple(contact, c, T1)
    P += impulse[2] * second_tangent(contact, c)
    add(body, b, v, body[b, IM] * P)
    add(body, b, w, times(body, b, J_NOW, triple(contact, c, NOW_B).cross(P)))
    add(body, a, v, -body[a, IM] * P)
    add(body, a, w, -times(body, a, J_NOW, triple(contact, c, NOW_A).cross(P)))


@ti.func
def inverse_mass(c: ti.i32, a: ti.i32, b: ti.i32, p: vec3, q: vec3, contact: ti.template(), body: ti.template()):
    """What an impulse along q changes of the relative velocity along p, as the bodies are turned now."""
    ra, rb = triple(contact, c, NOW_A), triple(contact, c, NOW_B)
    turning = ra.cross(p).dot(times(body, a, J_NOW, ra.cross(q))) + rb.cross(p).dot(times(body, b, J_NOW, rb.cross(q)))
    return p.dot(q) * (body[a, IM] + body[b, IM]) + turning


@ti.func
def prepare_contact(c: ti.i32, a: ti.i32, b: ti.i32, h: ti.f32, contact: ti.template(), body: ti.template()):
    """What does not change in a step: tangents, effective masses, thresholds."""
    n, ra, rb = triple(contact, c, N), triple(contact, c, ARM_A), triple(contact, c, ARM_B)
    side = vec3(1.0, 0.0, 0.0)
    if ti.abs(n[0]) > 0.6:  # two of three components are at most 0.71 = 1 / sqrt 2
        side = vec3(0.0, 1.0, 0.0)
    t = n.cross(side).normalized()
    put(contact, c, T1, t)
    put(contact, c, NOW_A, ra)
    put(contact, c, NOW_B, rb)
    find_masses(c, a, b, contact, body)
    free_a, free_b = body[a, IM] > 0.0, body[b, IM] > 0.0
    size = ti.max(ti.select(free_a, ra.norm(), 0.0), ti.select(free_b, rb.norm(), 0.0))
    contact[c, OUT] = OUT_RATE * size
    fall = ti.max(ti.abs(n.dot(triple(body, a, KICK))), ti.abs(n.dot(triple(body, b, KICK))))
    contact[c, SLOW] = BOUNCES * fall
    # A round surface (no lever: its arm is along the normal) leads the point, and so does any body before a prescribed
    # one. Between two that are round it divides the line of centres.
    lever_a = ra.cross(n).norm() + BARELY * ra.norm()
    lever_b = rb.cross(n).norm() + BARELY * rb.norm()
    share = lever_a / ti.max(lever_a + lever_b, 1e-30)
    contact[c, FOLLOW] = ti.select(free_a and free_b, share, ti.select(free_b, 1.0, 0.0))
    for k in ti.static(range(3)):
        contact[c, TOTAL + k] = 0.0


@ti.func
def find_masses(c: ti.i32, a: ti.i32, b: ti.i32, contact: ti.template(), body: ti.template()):
    """Effective inverse masses of the normal and the two tangents."""
    n, t, s = triple(contact, c, N), triple(contact, c, T1), second_tangent(contact, c)
    contact[c, K] = inverse_mass(c, a, b, n, n, contact, body)
    contact[c, K + 1] = inverse_mass(c, a, b, n, t, contact, body)
    contact[c, K + 2] = inverse_mass(c, a, b, n, s, contact, body)
    contact[c, K + 3] = inverse_mass(c, a, b, t, t, contact, body)
    contact[c, K + 4] = inverse_mass(c, a, b, t, s, contact, body)
    contact[c, K + 5] = inverse_mass(c, a, b, s, s, contact, body)


@ti.func
def has_turned(i: ti.i32, arm: vec3, body: ti.template()):
    """Whether a body has turned so far in this step that the effective mass at the arm is another: the point is then
    off the axis of least inertia by as much as it has turned."""
    sine = 2.0 * triple(body, i, Q + 1)
    return sine.norm_sqr() * arm.norm_sqr() * body[i, SLIM] > TURNED


@ti.func
def recall(c: ti.i32, k: ti.i32, count: ti.i32, h: ti.f32, identity: ti.template(), known: ti.template(),
           contact: ti.template(), memory: ti.template()):  # fmt: skip
    """Takes over force and slip from the last step, if the k-th contact of that is the same."""
    force, slip = vec3(0.0), vec3(0.0)
    if k < count:
        if compare(c, k, identity, known) == 0:
            force, slip = h * triple(memory, k, FORCE), triple(memory, k, PLACE)
    n, t, s = triple(contact, c, N), triple(contact, c, T1), second_tangent(contact, c)
    contact[c, LAST], contact[c, LAST + 1], contact[c, LAST + 2] = ti.max(force.dot(n), 0.0), force.dot(t), force.dot(s)
    contact[c, SLIP], contact[c, SLIP + 1] = slip.dot(t), slip.dot(s)
    put(contact, c, WARM, triple(contact, c, LAST))


@ti.func
def remember(c: ti.i32, h: ti.f32, fresh: ti.f32, contact: ti.template(), memory: ti.template()):
    """Force and slip, for the next step; and the impulse of the whole step, as a vector of the world."""
    t, s = triple(contact, c, T1), second_tangent(contact, c)
    last = fresh * triple(contact, c, LAST) + (1.0 - fresh) * triple(contact, c, WARM)
    total = triple(contact, c, TOTAL)
    put(contact, c, TOTAL, total[0] * triple(contact, c, N) + total[1] * t + total[2] * s)
    put(memory, c, FORCE, (last[0] * triple(contact, c, N) + last[1] * t + last[2] * s) / h)
    put(memory, c, PLACE, contact[c, SLIP] * t + contact[c, SLIP + 1] * s)


@ti.func
def compare(c: ti.i32, k: ti.i32, identity: ti.template(), known: ti.template()):
    """0 if a contact is the k-th known one, 1 if it comes after that, -1 before."""
    order = 0
    for d in ti.static(range(IDENTITY)):
        if order == 0:
            order = ti.select(identity[c, d] > known[k, d], 1, ti.select(identity[c, d] < known[k, d], -1, 0))
    return order


@ti.func
def find(c: ti.i32, k: ti.i32, count: ti.i32, identity: ti.template(), known: ti.template()):
    """The first known contact, from the k-th on, that does not come before this one: both are sorted."""
    going = 1
    while going == 1:
        going = 0
        if k < count:
            if compare(c, k, identity, known) > 0:
                k, going = k + 1, 1
    return k


@ti.func
def begin_contact(c: ti.i32, a: ti.i32, b: ti.i32, moving: ti.i32, contact: ti.template(), body: ti.template()):
    """Arms as the point is now, and half of the impulse of the last substep."""
    apart, share = triple(body, b, X) - triple(body, a, X), contact[c, FOLLOW]
    put(contact, c, NOW_A, triple(contact, c, ARM_A) + share * apart)
    put(contact, c, NOW_B, triple(contact, c, ARM_B) - (1.0 - share) * apart)
    part = 0.5
    if moving == 1:
        if has_turned(a, triple(contact, c, NOW_A), body) or has_turned(b, triple(contact, c, NOW_B), body):
            find_masses(c, a, b, contact, body)
        contact[c, IMPACT] = 0.0
        for k in ti.static(range(3)):
            contact[c, LAMBDA + k] = 0.0
    elif contact[c, LAMBDA] == 0.0:
        part = 0.0
    half = part * triple(contact, c, LAST)
    if half.norm_sqr() > 0.0:
        add(contact, c, LAMBDA, half)
        apply(c, a, b, half, contact, body)


@ti.func
def rub(c: ti.i32, u: vec3, contact: ti.template()):
    """The tangential impulse that friction adds, for a relative velocity u.

    It stops what sticks, by the exact 2 x 2 matrix, if the cone allows. What slides gets it against its velocity: the
    matrix is then its largest eigenvalue, for any other would turn the direction."""
    k11, k12, k22 = contact[c, K + 3], contact[c, K + 4], contact[c, K + 5]
    old1, old2 = contact[c, LAMBDA + 1], contact[c, LAMBDA + 2]
    most = contact[c, MU] * (contact[c, LAMBDA] + contact[c, IMPACT])
    det = ti.max(k11 * k22 - k12 * k12, 1e-12 * k11 * k22)
    new1, new2 = old1 - (k22 * u[1] - k12 * u[2]) / det, old2 - (k11 * u[2] - k12 * u[1]) / det
    contact[c, SLIDES] = 0.0
    if new1 * new1 + new2 * new2 > most * most:
        largest = 0.5 * (k11 + k22) + ti.sqrt(0.25 * (k11 - k22) ** 2 + k12 * k12)
        new1, new2 = old1 - u[1] / largest, old2 - u[2] / largest
        size = ti.sqrt(new1 * new1 + new2 * new2)
        if size > most:
            contact[c, SLIDES] = 1.0
            new1, new2 = new1 * most / size, new2 * most / size
    contact[c, LAMBDA + 1], contact[c, LAMBDA + 2] = new1, new2
    return new1 - old1, new2 - old2


@ti.func
def solve_contact(c: ti.i32, a: ti.i32, b: ti.i32, moving: ti.i32, h: ti.f32, contact: ti.template(),
                  body: ti.template()):  # fmt: skip
    """One visit of Gauss-Seidel: friction first, because what must not be violated comes last. Says by how much it
    changed the velocity along the normal."""
    u, gap, old = relative_velocity(c, a, b, contact, body), contact[c, GAP], contact[c, LAMBDA]
    pressed = old > 0.0 or contact[c, LAST] > 0.0
    allowed = 0.0
    if moving == 1 and not pressed:
        allowed = ti.max(gap, 0.0) / h
    change = 0.0
    if old > 0.0 or (u[0] + allowed < 0.0 and (moving == 1 or pressed or gap <= 0.0)):
        d1, d2 = rub(c, u, contact)
        un = u[0] + contact[c, K + 1] * d1 + contact[c, K + 2] * d2
        new = ti.max(old - (un + allowed) / contact[c, K], 0.0)
        contact[c, LAMBDA] = new
        apply(c, a, b, vec3(new - old, d1, d2), contact, body)
        change = ti.abs(new - old) * contact[c, K]
    return change


@ti.func
def undo(c: ti.i32, a: ti.i32, b: ti.i32, h: ti.f32, contact: ti.template(), body: ti.template()):
    """Velocities that undo an overlap and a slip, in addition to the true ones, which they must not touch: impulses
    that remember overlaps are an integral control, and piles would rattle (unstable where a sweep closes less than
    UNDO / (4 + 2 UNDO) of an error). What is pressed together also closes its gap in this way."""
    gap, p = contact[c, GAP], difference(c, a, b, PUSH, SWAY, contact, body)
    pressed = contact[c, LAMBDA] > 0.0
    dn, d1, d2 = 0.0, 0.0, 0.0
    rate = UNDO / h
    if gap < 0.0:
        rate = ti.min(rate, ti.max(OUT_LEAST, -contact[c, OUT] / gap))
    if pressed or gap < 0.0:
        dn = -(p[0] + rate * gap) / contact[c, K]
    if not pressed:
        dn = ti.max(dn, 0.0)
    elif contact[c, SLIDES] == 0.0:
        d1 = -(p[1] + HOLD / h * contact[c, SLIP] + contact[c, K + 1] * dn) / contact[c, K + 3]
        d2 = -(p[2] + HOLD / h * contact[c, SLIP + 1] + contact[c, K + 2] * dn + contact[c, K + 4] * d1)
        d2 /= contact[c, K + 5]
    if pressed or dn > 0.0:
        give(c, a, b, PUSH, SWAY, vec3(dn, d1, d2), contact, body)
        if body[a, IM] > 0.0 and body[b, IM] > 0.0:
            keep_angular_momentum(c, a, b, h, vec3(dn, d1, d2), contact, body)


@ti.func
def keep_angular_momentum(c: ti.i32, a: ti.i32, b: ti.i32, h: ti.f32, impulse: vec3, contact: ti.template(),
                          body: ti.template()):  # fmt: skip
    """Bodies that are moved aside by P h / m while they pass each other change their angular momentum by
    h P x (v_b - v_a): they get the opposite as spin, the heavier one more of it."""
    P = impulse[0] * triple(contact, c, N) + impulse[1] * triple(contact, c, T1)
    P += impulse[2] * second_tangent(contact, c)
    gained = h * P.cross(triple(body, b, V) - triple(body, a, V))
    share = body[b, IM] / (body[a, IM] + body[b, IM])
    add(body, a, W, -share * times(body, a, J_NOW, gained))
    add(body, b, W, -(1.0 - share) * times(body, b, J_NOW, gained))


@ti.func
def move_contact(c: ti.i32, a: ti.i32, b: ti.i32, h: ti.f32, contact: ti.template(), body: ti.template()):
    """Gap and slip after the motion. What slides, or is not pressed together, forgets where it stuck."""
    u = relative_velocity(c, a, b, contact, body) + difference(c, a, b, PUSH, SWAY, contact, body)
    contact[c, GAP] = contact[c, GAP] + h * u[0]
    keep = ti.select(contact[c, SLIDES] == 0.0 and contact[c, LAMBDA] > 0.0, 1.0, 0.0)
    contact[c, SLIP] = keep * (contact[c, SLIP] + h * u[1])
    contact[c, SLIP + 1] = keep * (contact[c, SLIP + 1] + h * u[2])


@ti.func
def end_contact(c: ti.i32, contact: ti.template()):
    """Sums of the step, and the start of the next substep."""
    for k in ti.static(range(3)):
        contact[c, LAST + k] = contact[c, LAMBDA + k]
        contact[c, TOTAL + k] = contact[c, TOTAL + k] + contact[c, LAMBDA + k]
    contact[c, TOTAL] = contact[c, TOTAL] + contact[c, IMPACT]


@ti.func
def kicked(c: ti.i32, a: ti.i32, b: ti.i32, share: ti.f32, contact: ti.template(), body: ti.template()):
    """What the kick of this half has added to the velocity along the normal."""
    return share * triple(contact, c, N).dot(triple(body, b, KICK) - triple(body, a, KICK))


@ti.func
def collide_pair(first: ti.i32, last: ti.i32, a: ti.i32, b: ti.i32, share: ti.f32, contact: ti.template(),
                 body: ti.template()):  # fmt: skip
    """Newton's law for a pair: those of its contacts that bounce leave at e times the speed at which they came. That is
    for speeds before the kick of this half: else the kick would be reversed as well, and energy gained."""
    for _ in range(IMPACT_ROUNDS):
        for c in range(first, last):
            if contact[c, BEFORE] < 0.0:
                u, old = relative_velocity(c, a, b, contact, body), contact[c, SLIDES]
                wanted = kicked(c, a, b, share, contact, body) - contact[c, BOUNCE] * contact[c, BEFORE]
                new = ti.max(old - (u[0] - wanted) / contact[c, K], 0.0)
                contact[c, SLIDES] = new
                apply(c, a, b, vec3(new - old, 0.0, 0.0), contact, body)
    for c in range(first, last):
        if contact[c, BEFORE] < 0.0:
            contact[c, IMPACT] = contact[c, IMPACT] + contact[c, SLIDES]


@ti.func
def impacts(m: ti.i32, h: ti.f32, share: ti.f32, pair: ti.template(), contact: ti.template(), body: ti.template()):
    """Lets those pairs collide that would meet in this substep, one after the other. Says how many did: an impact may
    cause the next, as in Newton's cradle."""
    collided, first = 0, 0
    while first < m:
        a, b, last, going, strikes = pair[first, 0], pair[first, 1], first, 1, 0
        while going == 1:
            contact[last, BEFORE], contact[last, SLIDES] = 0.0, 0.0
            if contact[last, BOUNCE] > 0.0:
                un = relative_velocity(last, a, b, contact, body)[0]
                if un < -contact[last, SLOW] - STILL and contact[last, GAP] + h * un < 0.0:
                    strikes = 1
                    contact[last, BEFORE] = ti.min(un - kicked(last, a, b, share, contact, body), -STILL)
            last, going = last + 1, 0
            if last < m:
                going = ti.select(pair[last, 0] == a and pair[last, 1] == b, 1, 0)
        if strikes == 1:
            collide_pair(first, last, a, b, share, contact, body)
            collided += 1
        first = last
    return collided
