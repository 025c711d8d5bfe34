"""The pressure system that every incompressible solver shares.

Density ratios rho_i = sum_j V_j W_ij + wall must not exceed one. With G_ij = V_j grad W_ij and
the wall's gradient b_i, pressures p accelerate particles by (Kugelstadt 2021, Section 6; Neder 2024, Eq. 31, 38)

    a_i = -1/rho0_i ( sum_j (p_i + p_j) G_ij + p_i b_i ),

the exact adjoint of the rate of the density ratio, d rho_i / dt = sum_j G_ij . (v_i - v_j) + b_i . v_i. So the
density after the step is rho* - dt^2 K p with K symmetric (in the inner product weighted by volume) and
positive semi-definite, and p solves the complementarity problem

    0 <= p  perpendicular to  1 - rho* + dt^2 K p >= 0:

fluid is pushed, never pulled. The solver works on q = dt^2 p, for which K does not depend on the step.

What a wall adds to the density of a liquid depends on its other particles too, by their images (`boundary.images`).
With its gradients b_i with respect to i and B_ij to j, and E_ij = V_j / V_i B_ji, there is sum_j p_j E_ij more in the
force and sum_j B_ij . v_j more in the rate.

Inside a liquid, where fluid surrounds a particle, two things are different (`correction`). Velocities see gradients
that are exact for linear fields, L_i G_ij in place of G_ij; the adjoint is sum_j (p_i L_i + p_j L_j) G_ij. And matter
there must neither gather nor part, so that p may have either sign.

K is three operations: `find_displacements` (forces of pressures), `constrain` (what those who move together make of the
accelerations, see `world.Coupling`) and `find_growth` (of densities). Where nothing couples, one kernel does all.

What sums over pairs read of a neighbor is in vectors of four (`core.neighbors`): `xq`, its place and the last change of
its pressure; `xo`, its place and zero; and `u`, its displacement or velocity, and a number that nothing depends on.
Rows of L are vectors of four as well, with nothing as the fourth. (`a[i] += b` is atomic unless i is the index of the
outermost loop, and `a[i] = a[i] + b` is not.)
"""

from typing import TypeAlias

import taichi as ti

from pliant.core.backend import (
    Ints,
    Points,
    Reals,
    Spans,
    Vectors,
    mat3,
    share,
    turns,
    vec3,
    vec4,
    vec6,
    vector_at,
)
from pliant.core.fields import Field
from pliant.core.neighbors import difference_of_points, sum_row
from pliant.core.reduce import block, blocks
from pliant.core.speedups import light, with_vectors

FIELDS = (
    Field("xq", "point", "m, Pa s^2", "position, and the last change of q"),
    Field("xo", "point", "m", "position, and 0"),
    Field("u", "point", "m", "displacement by the last change of pressure, or a velocity [m/s]; the fourth is no use"),
    Field("a", "vector", "m", "the same displacement, for couplings: dt^2 times the acceleration"),
    Field("S", "point", "1/m", "sum of the gradients, corrected ones where they are; the fourth is of no use"),
    Field("D", "real", "1/(Pa s^2)", "diagonal of K"),
    Field("special", "int", "", "whether walls add to its sums, and gradients are corrected around it, see AT_WALL"),
    Field("residual", "real", "1", "density ratio still to be removed"),
    Field("q", "real", "Pa s^2", "dt^2 times pressure"),
    Field("response", "real", "1", "what the last change of q did to the density ratio"),
    Field("body_response", "real", "1", "what rigid bodies, by their motion, do to the density ratio, see `Coupling`"),
)
# What makes a particle special: walls add to its sums, its gradients are corrected, or those of a neighbor are
AT_WALL, CORRECTED, BENT = 1, 2, 4

# The system as kernels take it: pairs, images in walls, gradients of the walls, corrections, and what a solve works on.
System: TypeAlias = ti.types.argpack(
    span=Spans, neighbor=Ints, factor=Reals, image_start=Ints, image_count=Ints, image_of=Ints, image_slot=Ints,
    image_E=Vectors, image_B=Vectors, b=Vectors, special=Ints, Lx=Points, Ly=Points, Lz=Points, inside=Reals,
    S=Points, D=Reals, xq=Points, xo=Points, u=Points, q=Reals, response=Reals, residual=Reals, body_response=Reals,
)  # fmt: skip


@ti.func
def times(s: vec6, g: vec3):
    """A symmetric matrix times a vector."""
    return vec3(s[0] * g[0] + (s[5] * g[1] + s[4] * g[2]), s[1] * g[1] + (s[5] * g[0] + s[3] * g[2]),
                s[2] * g[2] + (s[4] * g[0] + s[3] * g[1]))  # fmt: skip


@ti.func
def packed(s: mat3):
    """A symmetric matrix as `times` takes it."""
    return vec6(s[0, 0], s[1, 1], s[2, 2], s[1, 2], s[0, 2], s[0, 1])


@ti.func
def xyz(point: vec4):
    """The first three components."""
    return vec3(point[0], point[1], point[2])


@light
@ti.kernel
def pack(n: ti.i32, x: Vectors, v: Vectors, c: System):
    """Positions and velocities in vectors of four, and who is at a wall."""
    for i in range(n):
        c.xq[i], c.xo[i], c.u[i] = vec4(x[i], 0.0), vec4(x[i], 0.0), vec4(v[i], 0.0)
        c.special[i] = ti.select(c.b[i].norm_sqr() > 0.0 or c.image_count[i] > 0, AT_WALL, 0)


@ti.func
def bends(i: ti.i32, corrected: ti.i32, c: ti.template()):
    """Whether gradients are corrected around here, and whether that counts now."""
    return corrected != 0 and c.special[i] & BENT != 0


@ti.func
def corrected_by(i: ti.i32, g: vec4, c: ti.template()):
    """L_i g."""
    return g[0] * c.Lx[i] + g[1] * c.Ly[i] + g[2] * c.Lz[i]


# --- terms of sums over pairs ---------------------------------------------------------------------------


@ti.func
def gradient(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """G_ij."""
    return c.factor[k] * difference_of_points(c.xo[i], c.xo[c.neighbor[k]], wraps, period)


@ti.func
def corrected_gradient(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """L_i G_ij."""
    return corrected_by(i, gradient(i, k, wraps, period, c), c)


@ti.func
def weighted_square(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """q_j G_ij^2, component by component."""
    G = gradient(i, k, wraps, period, c)
    return c.q[c.neighbor[k]] * G * G


@ti.func
def corrected_square(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """The same of L_i G_ij."""
    G = corrected_gradient(i, k, wraps, period, c)
    return c.q[c.neighbor[k]] * G * G


@ti.func
def pushed(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """(q_i + q_j) G_ij."""
    xi, xj = c.xq[i], c.xq[c.neighbor[k]]
    return ((xi[3] + xj[3]) * c.factor[k]) * difference_of_points(xi, xj, wraps, period)


@ti.func
def pushed_by_other(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """q_j L_j G_ij."""
    j = c.neighbor[k]
    xj = c.xq[j]
    return corrected_by(j, (xj[3] * c.factor[k]) * difference_of_points(c.xq[i], xj, wraps, period), c)


@ti.func
def gathered(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """G_ij (u_i - u_j), component by component."""
    return gradient(i, k, wraps, period, c) * (c.u[i] - c.u[c.neighbor[k]])


@ti.func
def corrected_gathered(i: ti.i32, k: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """The same of L_i G_ij."""
    return corrected_gradient(i, k, wraps, period, c) * (c.u[i] - c.u[c.neighbor[k]])


@ti.func
def row_sum(term: ti.template(), i: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """Sum of a term over the neighbors of i."""
    return sum_row(term, i, c.span[i][0], c.span[i][1], wraps, period, c)


@with_vectors
@ti.kernel
def prepare(n: ti.i32, wraps: ti.template(), period: Vectors, c: System, b: Vectors, corrected: ti.i32, V: Reals,
            inverse_density: Reals, part: ti.f32, D: Reals):  # fmt: skip
    """S_i = sum_j L_i G_ij, and D_i = w_i |S_i + b_i|^2 + part sum_j w_j V_i / V_j |L_i G_ij - B_ij|^2 with the inverse
    densities w, where the part is 1 for pressures."""
    for i in range(n):
        c.q[i] = inverse_density[i] / V[i]
    for turn in range(turns(blocks(n))):
        lo, hi = block(share(turn, blocks(n)), n)
        for i in range(lo, hi):
            total, squares = vec4(0.0), vec4(0.0)
            if bends(i, corrected, c):
                total = row_sum(corrected_gradient, i, wraps, period, c)
                squares = row_sum(corrected_square, i, wraps, period, c)
            else:
                total = row_sum(gradient, i, wraps, period, c)
                squares = row_sum(weighted_square, i, wraps, period, c)
            others = squares.sum()
            for k in range(c.image_start[i], c.image_start[i] + c.image_count[i]):  # images of the same neighbors
                j, B = c.image_of[k], vector_at(c.image_B, k)
                G = c.factor[c.image_slot[k]] * difference_of_points(c.xo[i], c.xo[j], wraps, period)
                if bends(i, corrected, c):
                    G = corrected_by(i, G, c)
                others += c.q[j] * B.dot(B - 2.0 * xyz(G))
            c.S[i] = total
            D[i] = inverse_density[i] * (xyz(total) + vector_at(b, i)).norm_sqr() + part * V[i] * others


# --- the three operations -------------------------------------------------------------------------------


@ti.func
def find_displacements(lo: ti.i32, hi: ti.i32, rate: ti.f32, inverse_density: ti.template(), wraps: ti.template(),
                       period: ti.template(), corrected: ti.i32, c: ti.template()):  # fmt: skip
    """u_i = -rate w_i (sum_j (q_i L_i + q_j L_j) G_ij + q_j E_ij + q_i b_i): what the pressures q in `xq` do to free
    particles. Where D is zero nothing presses: most of a solid is passed by."""
    for i in range(lo, hi):
        total = vec4(0.0)
        if c.D[i] > 0.0:
            if bends(i, corrected, c):
                total = c.xq[i][3] * c.S[i] + row_sum(pushed_by_other, i, wraps, period, c)
            else:
                total = row_sum(pushed, i, wraps, period, c)
            if c.special[i] & AT_WALL:
                wall = c.xq[i][3] * vector_at(c.b, i)
                for k in range(c.image_start[i], c.image_start[i] + c.image_count[i]):
                    wall += c.xq[c.image_of[k]][3] * vector_at(c.image_E, k)
                total += vec4(wall, 0.0)
        c.u[i] = (-rate * inverse_density[i]) * total


@ti.func
def find_growth(lo: ti.i32, hi: ti.i32, wraps: ti.template(), period: ti.template(), corrected: ti.i32,
                c: ti.template()):  # fmt: skip
    """response_i = sum_j L_i G_ij . (u_i - u_j) + B_ij . u_j + b_i . u_i: growth of the density ratio by displacements
    or velocities u, and by what rigid bodies do meanwhile. None where D is zero."""
    for i in range(lo, hi):
        growth = 0.0
        if c.D[i] > 0.0:
            if bends(i, corrected, c):
                growth = row_sum(corrected_gathered, i, wraps, period, c).sum()
            else:
                growth = row_sum(gathered, i, wraps, period, c).sum()
            if c.special[i] & AT_WALL:
                growth += vector_at(c.b, i).dot(xyz(c.u[i])) + c.body_response[i]
                for k in range(c.image_start[i], c.image_start[i] + c.image_count[i]):
                    growth += vector_at(c.image_B, k).dot(xyz(c.u[c.image_of[k]]))
        c.response[i] = growth


@ti.func
def bending(i: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """tr((grad u)^2), as the corrected gradients see it."""
    x, y, z = vec4(0.0), vec4(0.0), vec4(0.0)
    for k in range(c.span[i][0], c.span[i][1]):
        G, du = corrected_gradient(i, k, wraps, period, c), c.u[i] - c.u[c.neighbor[k]]
        x += G[0] * du
        y += G[1] * du
        z += G[2] * du
    return x[0] * x[0] + y[1] * y[1] + z[2] * z[2] + 2.0 * (x[1] * y[0] + y[2] * z[1] + z[0] * x[2])
