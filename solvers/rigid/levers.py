"""What rigid bodies are to the particles that touch them, and the other way round.

The density ratio of a particle depends on where the sides of walls are that it sees. Moved by U at its centre and
turned by T, a rigid body changes it by

    -(l . U + a . T),    l = d rho / d U,  a = d rho / d T    of a particle at rest,

its lever (l, a), a vector of six. By the map of a wall (`boundary.walls`) l is the part of that side in the wall's
gradient, and a = r x l with the arm r of the particle. By images (`boundary.images`), which depend on the distances of
two particles, l = sum_j V_j W'(R) / R 2 (phi_j grad phi_i + phi_i grad phi_j), and each of the two terms has the arm of
its own particle. A pressure q of the particle does to the body what is adjoint to that: the impulse V q (l, a).
"""

import taichi as ti

from pliant.boundary.wall_sides import SIDES, Sides, is_nearest, part_of_gradient, to_surface
from pliant.boundary.wall_table import WallTable, arm_of, wall_of
from pliant.core.backend import Ints, Reals, RealTable, Vectors, VectorTable, task, turns, vec3
from pliant.core.speedups import light

SIX = 6  # components of a lever
MATRIX = 21  # entries of a symmetric matrix of six rows, row by row from the diagonal on
SUMS = SIX + MATRIX
DRAGS = SIX + 10  # what `drag_on` sums up


@light
@ti.kernel
def find_levers(count: ti.i32, touched: Ints, x: Vectors, spacing: ti.f32, t: WallTable, c: Sides, profile: RealTable,
                linear: VectorTable, angular: VectorTable):  # fmt: skip
    """Levers by maps, for the particles that are `touched`."""
    for e in range(count):
        i = touched[e]
        for s in range(c.side_count[i]):
            l = part_of_gradient(i, s, spacing, profile, c)
            linear[i, s], angular[i, s] = l, arm_of(wall_of(c.side_number[i, s], t), x[i], t).cross(l)


@ti.func
def keeps(i: ti.i32, step: ti.f32, D: ti.template(), residual: ti.template(), response: ti.template(),
          q: ti.template(), inside: ti.template()):  # fmt: skip
    """Whether a pressure can change: without a step, whether it may at all."""
    result = q[i] > 0.0 or residual[i] > 0.0
    if step > 0.0:
        result = q[i] + step * (residual[i] + response[i]) / ti.max(D[i], 1e-30) > 0.0
    return result or inside[i] > 0.0


@light
@ti.kernel
def gather(chunks: ti.i32, begin: Ints, end: Ints, pair: Ints, V: Reals, D: Reals, residual: Reals, q: Reals,
           inside: Reals, least: ti.f32, step: ti.f32, response: Reals, linear: VectorTable, angular: VectorTable,
           sums: RealTable):  # fmt: skip
    """For each chunk of pairs, of those whose pressures can change: sum V l r / D, of six components, and
    sum V l l^T / D, both with the whole lever in place of l and the residual r; of the matrix the upper half. With a
    step, those whose pressures would become zero, in view of the `response`, give what they have."""
    for turn in range(turns(chunks)):
        k = task(turn)
        if k < chunks:
            total = ti.Vector([0.0 for _ in range(SUMS)])
            for e in range(begin[k], end[k]):
                i, s = pair[e] // SIDES, pair[e] % SIDES
                can_change = keeps(i, step, D, residual, response, q, inside)
                if D[i] > least and not can_change and step > 0.0:
                    g = lever(i, s, linear, angular)
                    for a in ti.static(range(SIX)):
                        total[a] -= V[i] * q[i] / step * g[a]
                if D[i] > least and can_change:
                    g, w = lever(i, s, linear, angular), V[i] / D[i]
                    for a in ti.static(range(SIX)):
                        total[a] += w * residual[i] * g[a]
                        for b in ti.static(range(a, SIX)):
                            total[ti.static(SIX + a * (2 * SIX - a - 1) // 2 + b)] += w * g[a] * g[b]
            for column in ti.static(range(SUMS)):
                sums[k, column] = total[column]


@light
@ti.kernel
def gather_shared(pairs: ti.i32, begin: Ints, end: Ints, one: Ints, other: Ints, V: Reals, D: Reals, residual: Reals,
                  q: Reals, inside: Reals, least: ti.f32, step: ti.f32, response: Reals, linear: VectorTable,
                  angular: VectorTable, sums: RealTable):  # fmt: skip
    """The same for each pair of bodies that touch the same particles, of those: sum V l l'^T / D of six rows."""
    for turn in range(turns(pairs)):
        k = task(turn)
        if k < pairs:
            total = ti.Vector([0.0 for _ in range(SIX * SIX)])
            for e in range(begin[k], end[k]):
                i, s, t = one[e] // SIDES, one[e] % SIDES, other[e] % SIDES
                if D[i] > least and keeps(i, step, D, residual, response, q, inside):
                    g, h, w = lever(i, s, linear, angular), lever(i, t, linear, angular), V[i] / D[i]
                    for a in ti.static(range(SIX)):
                        for b in ti.static(range(SIX)):
                            total[ti.static(SIX * a + b)] += w * g[a] * h[b]
            for a in ti.static(range(SIX)):
                for b in ti.static(range(SIX)):
                    sums[k, ti.static(SIX * a + b)] = total[ti.static(SIX * a + b)]


@ti.func
def lever(i: ti.i32, s: ti.i32, linear: ti.template(), angular: ti.template()):
    """All six components."""
    l, a = linear[i, s], angular[i, s]
    return ti.Vector([l[0], l[1], l[2], a[0], a[1], a[2]])


@light
@ti.kernel
def respond(count: ti.i32, touched: Ints, t: WallTable, c: Sides, linear: VectorTable, angular: VectorTable,
            motion: RealTable, response: Reals):  # fmt: skip
    """What motions of the walls (n, 6) do to the density ratios of those who are touched."""
    for e in range(count):
        i, total = touched[e], 0.0
        for s in range(c.side_count[i]):
            wall = wall_of(c.side_number[i, s], t)
            for k in ti.static(range(3)):
                total -= linear[i, s][k] * motion[wall, k] + angular[i, s][k] * motion[wall, 3 + k]
        response[i] = total


@light
@ti.kernel
def push_back(chunks: ti.i32, begin: Ints, end: Ints, pair: Ints, V: Reals, fourth: ti.template(),
              changes: ti.types.ndarray(), linear: VectorTable, angular: VectorTable, sums: RealTable):  # fmt: skip
    """For each chunk, what changes of q do to a body: sum V dq (l, a). They may be the fourth components of points."""
    for turn in range(turns(chunks)):
        k = task(turn)
        if k < chunks:
            force, torque = vec3(0.0), vec3(0.0)
            for e in range(begin[k], end[k]):
                i, s = pair[e] // SIDES, pair[e] % SIDES
                pressed = 0.0
                if ti.static(fourth):
                    pressed = V[i] * changes[i][3]
                else:
                    pressed = V[i] * changes[i]
                force += pressed * linear[i, s]
                torque += pressed * angular[i, s]
            for a in ti.static(range(3)):
                sums[k, a], sums[k, 3 + a] = force[a], torque[a]


@light
@ti.kernel
def drag_along(chunks: ti.i32, begin: Ints, end: Ints, owner: Ints, pair: Ints, x: Vectors, amount: Reals,
               inverse_density: Reals, traction: Vectors, at_surface: ti.f32, t: WallTable, c: Sides,
               sums: RealTable):  # fmt: skip
    """For each chunk, what tractions on the nearest side do to a body: forces per `amount` of a particle, its volume or
    its mass. They act at the particles (0) or `at_surface` (1)."""
    for turn in range(turns(chunks)):
        k = task(turn)
        if k < chunks:
            force, torque = vec3(0.0), vec3(0.0)
            for e in range(begin[k], end[k]):
                i, s = pair[e] // SIDES, pair[e] % SIDES
                if inverse_density[i] > 0.0 and is_nearest(i, s, c):
                    given = amount[i] * traction[i]
                    force += given
                    torque += (arm_of(owner[k], x[i], t) + at_surface * to_surface(i, s, c)).cross(given)
            for a in ti.static(range(3)):
                sums[k, a], sums[k, 3 + a] = force[a], torque[a]


@light
@ti.kernel
def carry(count: ti.i32, touched: Ints, x: Vectors, material: Ints, at_surface: Reals, t: WallTable, c: Sides,
          motion: RealTable, velocity: Vectors):  # fmt: skip
    """Adds changes of the walls' velocities to the velocity that particles rub against."""
    for e in range(count):
        i = touched[e]
        for s in range(c.side_count[i]):
            wall = wall_of(c.side_number[i, s], t)
            U, T = vec3(0.0), vec3(0.0)
            for k in ti.static(range(3)):
                U[k], T[k] = motion[wall, k], motion[wall, 3 + k]
            arm = arm_of(wall, x[i], t) + at_surface[material[i]] * to_surface(i, s, c)
            velocity[i] = velocity[i] + c.side_share[i, s] * (U + T.cross(arm))


@light
@ti.kernel
def drag_on(chunks: ti.i32, begin: Ints, end: Ints, owner: Ints, pair: Ints, x: Vectors, m: Reals, material: Ints,
            nu: Reals, drag: Reals, wall_velocity: Vectors, v: Vectors, inverse_density: Reals, t: WallTable, c: Sides,
            sums: RealTable):  # fmt: skip
    """For each chunk, what viscous drag does to a body, per time: force and torque as its velocity is now, and how much
    less that is by a motion of its own: sum w, sum w r, and sum w (r.r - r r^T) (six entries, row by row) with the drag
    w = m nu drag on a particle, which is taken to be alike in all directions."""
    for turn in range(turns(chunks)):
        k = task(turn)
        if k < chunks:
            total = ti.Vector([0.0 for _ in range(DRAGS)])
            for e in range(begin[k], end[k]):
                i, s = pair[e] // SIDES, pair[e] % SIDES
                w = m[i] * nu[material[i]] * drag[i] * c.side_share[i, s]
                if inverse_density[i] > 0.0 and w > 0.0:
                    r = arm_of(owner[k], x[i], t)
                    f = w * (v[i] - wall_velocity[i])
                    torque, square = r.cross(f), w * r.dot(r)
                    total[SIX] += w
                    for a in ti.static(range(3)):
                        total[a] += f[a]
                        total[3 + a] += torque[a]
                        total[SIX + 1 + a] += w * r[a]
                        for b in ti.static(range(a, 3)):
                            own = square if ti.static(a == b) else 0.0
                            total[ti.static(SIX + 4 + a * (5 - a) // 2 + b)] += own - w * r[a] * r[b]
            for column in ti.static(range(DRAGS)):
                sums[k, column] = total[column]


@light
@ti.kernel
def slips_seen(chunks: ti.i32, begin: Ints, end: Ints, owner: Ints, pair: Ints, x: Vectors, V: Reals,
               inverse_density: Reals, change: Vectors, a: Vectors, t: WallTable, c: Sides, motion: RealTable,
               sums: RealTable):  # fmt: skip
    """For each chunk, by how much sum V |slip|^2 / w of what rubs there is more than sum V |a|^2 / w, because the body
    has moved as well: w are inverse densities."""
    for turn in range(turns(chunks)):
        k = task(turn)
        if k < chunks:
            total, U, T = 0.0, vec3(0.0), vec3(0.0)
            for m in ti.static(range(3)):
                U[m], T[m] = motion[owner[k], m], motion[owner[k], 3 + m]
            for e in range(begin[k], end[k]):
                i, s = pair[e] // SIDES, pair[e] % SIDES
                if change[i].norm() > 0.0 and is_nearest(i, s, c):
                    u = U + T.cross(arm_of(owner[k], x[i], t))
                    total += V[i] / inverse_density[i] * (u - 2.0 * a[i]).dot(u)
            sums[k, 0] = total
