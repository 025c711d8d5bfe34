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
its pressure; `xo`, its place and zero; and `u`, its displacement or velocity, and a number that nothing depends on. The
compiler turns such a sum into vector code if its loop does nothing else and stores all of it. So each block of
particles is gone through several times: for sums over pairs with plain gradients, for those with corrected ones where
there are any, and for what walls add. Rows of L are vectors of four as well, with nothing as the fourth.
(`a[i] += b` is atomic unless i is the index of the outermost loop, and `a[i] = a[i] + b` is not.)
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
)
from pliant.core.fields import Field
from pliant.core.neighbors import difference_of_points
from pliant.core.reduce import block, blocks
from pliant.core.speedups import light

FIELDS = (
    Field("xq", "point", "m, Pa s^2", "position, and the last change of q"),
    Field("xo", "point", "m", "position, and 0"),
    Field("u", "point", "m", "displacement by the last change of pressure, or a velocity [m/s]; the fourth is no use"),
    Field("a", "vector", "m", "the same displacement, for couplings: dt^2 times the acceleration"),
    Field("D", "real", "1/(Pa s^2)", "diagonal of K"),
    Field("special", "int", "", "whether walls add to its sums, and gradients are corrected around it, see AT_WALL"),
    Field("residual", "real", "1", "density ratio still to be removed"),
    Field("q", "real", "Pa s^2", "dt^2 times pressure"),
    Field("response", "real", "1", "what the last change of q did to the density ratio"),
)
# What makes a particle special: walls add to its sums, its gradients are corrected, or those of a neighbor are
AT_WALL, CORRECTED, BENT = 1, 2, 4

# The system as kernels take it: pairs, images in walls, gradients of the walls, corrections, and what a solve works on.
System: TypeAlias = ti.types.argpack(
    span=Spans, neighbor=Ints, factor=Reals, image_start=Ints, image_count=Ints, image_of=Ints, image_slot=Ints,
    image_E=Vectors, image_B=Vectors, b=Vectors, special=Ints, Lx=Points, Ly=Points, Lz=Points, inside=Reals,
    D=Reals, xq=Points, xo=Points, u=Points, q=Reals, response=Reals, residual=Reals,
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
def bends(i: ti.i32, corrected: ti.template(), c: ti.template()):
    """Whether gradients are corrected around here."""
    result = 0
    if ti.static(corrected):
        result = c.special[i] & BENT
    return result


@ti.func
def plain_end(i: ti.i32, corrected: ti.template(), c: ti.template()):
    """Where the row of i ends for sums with plain gradients: where it begins if gradients are corrected there."""
    return ti.select(bends(i, corrected, c) > 0, c.span[i][0], c.span[i][1])


@ti.func
def bent_end(i: ti.i32, c: ti.template()):
    """The same for sums with corrected gradients."""
    return ti.select(c.special[i] & BENT, c.span[i][1], c.span[i][0])


@ti.func
def corrects(some: ti.i32, corrected: ti.template()):
    """Whether gradients are corrected for any particle of a block, by the bits of what is special in it."""
    result = 0
    if ti.static(corrected):
        result = some & BENT
    return result


@ti.func
def corrected_by(i: ti.i32, g: vec4, c: ti.template()):
    """L_i g."""
    return g[0] * c.Lx[i] + g[1] * c.Ly[i] + g[2] * c.Lz[i]


@ti.kernel
def prepare(n: ti.i32, wraps: ti.template(), period: Vectors, c: System, b: Vectors, corrected: ti.template(), V: Reals,
            inverse_density: Reals, part: ti.f32, D: Reals):  # fmt: skip
    """D_i = w_i |sum_j L_i G_ij + b_i|^2 + part sum_j w_j V_i / V_j |L_i G_ij - B_ij|^2 with the inverse densities w,
    where the part is 1 for pressures."""
    for i in range(n):
        c.q[i] = inverse_density[i] / V[i]
    for turn in range(turns(blocks(n))):
        lo, hi = block(share(turn, blocks(n)), n)
        some = 0
        for i in range(lo, hi):
            xi, total, squares = c.xo[i], vec4(0.0), vec4(0.0)
            for k in range(c.span[i][0], plain_end(i, corrected, c)):
                j = c.neighbor[k]
                G = c.factor[k] * difference_of_points(xi, c.xo[j], wraps, period)
                total += G
                squares += c.q[j] * G * G
            c.u[i] = total
            D[i] = squares.sum()
        for i in range(lo, hi):
            some |= c.special[i]
        if corrects(some, corrected):
            for i in range(lo, hi):
                xi, total, squares = c.xo[i], vec4(0.0), vec4(0.0)
                for k in range(c.span[i][0], bent_end(i, c)):
                    j = c.neighbor[k]
                    G = corrected_by(i, c.factor[k] * difference_of_points(xi, c.xo[j], wraps, period), c)
                    total += G
                    squares += c.q[j] * G * G
                c.u[i] = c.u[i] + total
                D[i] = D[i] + squares.sum()
        for i in range(lo, hi):
            others = D[i]
            for k in range(c.image_start[i], c.image_start[i] + c.image_count[i]):  # images of the same neighbors
                j, B = c.image_of[k], c.image_B[k]
                G = c.factor[c.image_slot[k]] * difference_of_points(c.xo[i], c.xo[j], wraps, period)
                if bends(i, corrected, c):
                    G = corrected_by(i, G, c)
                others += c.q[j] * B.dot(B - 2.0 * xyz(G))
            D[i] = inverse_density[i] * (xyz(c.u[i]) + b[i]).norm_sqr() + part * V[i] * others


# --- the three operations -------------------------------------------------------------------------------


@ti.func
def find_displacements(lo: ti.i32, hi: ti.i32, rate: ti.f32, inverse_density: ti.template(), wraps: ti.template(),
                       period: ti.template(), corrected: ti.template(), c: ti.template()):  # fmt: skip
    """u_i = -rate w_i (sum_j (q_i L_i + q_j L_j) G_ij + q_j E_ij + q_i b_i): what the pressures q in `xq` do to free
    particles. Where D is zero nothing presses: most of a solid is passed by."""
    some = 0
    for i in range(lo, hi):
        xi, total = c.xq[i], vec4(0.0)
        for k in range(c.span[i][0], ti.select(c.D[i] > 0.0, plain_end(i, corrected, c), 0)):
            xj = c.xq[c.neighbor[k]]
            total += ((xi[3] + xj[3]) * c.factor[k]) * difference_of_points(xi, xj, wraps, period)
        c.u[i] = (-rate * inverse_density[i]) * total
    for i in range(lo, hi):
        some |= c.special[i]
    if corrects(some, corrected):
        for i in range(lo, hi):
            xi, x, y, z, total = c.xq[i], c.xq[i][3] * c.Lx[i], c.xq[i][3] * c.Ly[i], c.xq[i][3] * c.Lz[i], vec4(0.0)
            for k in range(c.span[i][0], bent_end(i, c)):
                j = c.neighbor[k]
                xj = c.xq[j]
                G = c.factor[k] * difference_of_points(xi, xj, wraps, period)
                total += G[0] * (x + xj[3] * c.Lx[j]) + G[1] * (y + xj[3] * c.Ly[j]) + G[2] * (z + xj[3] * c.Lz[j])
            c.u[i] = c.u[i] + (-rate * inverse_density[i]) * total
    if some & AT_WALL:
        for i in range(lo, hi):
            if c.special[i] & AT_WALL:
                total = c.xq[i][3] * c.b[i]
                for k in range(c.image_start[i], c.image_start[i] + c.image_count[i]):
                    total += c.xq[c.image_of[k]][3] * c.image_E[k]
                c.u[i] = c.u[i] - vec4(rate * inverse_density[i] * total, 0.0)


@ti.func
def find_growth(lo: ti.i32, hi: ti.i32, wraps: ti.template(), period: ti.template(), corrected: ti.template(),
                c: ti.template()):  # fmt: skip
    """response_i = sum_j L_i G_ij . (u_i - u_j) + B_ij . u_j + b_i . u_i: growth of the density ratio by displacements
    or velocities u. None where D is zero."""
    some = 0
    for i in range(lo, hi):
        xi, ui, growth = c.xo[i], c.u[i], vec4(0.0)
        for k in range(c.span[i][0], ti.select(c.D[i] > 0.0, plain_end(i, corrected, c), 0)):
            j = c.neighbor[k]
            growth += (c.factor[k] * difference_of_points(xi, c.xo[j], wraps, period)) * (ui - c.u[j])
        c.response[i] = growth.sum()
    for i in range(lo, hi):
        some |= c.special[i]
    if corrects(some, corrected):
        for i in range(lo, hi):
            xi, ui, growth = c.xo[i], c.u[i], vec4(0.0)
            for k in range(c.span[i][0], bent_end(i, c)):
                j = c.neighbor[k]
                G = c.factor[k] * difference_of_points(xi, c.xo[j], wraps, period)
                growth += corrected_by(i, G, c) * (ui - c.u[j])
            c.response[i] = c.response[i] + growth.sum()
    if some & AT_WALL:
        for i in range(lo, hi):
            if c.special[i] & AT_WALL:
                growth = c.b[i].dot(xyz(c.u[i]))
                for k in range(c.image_start[i], c.image_start[i] + c.image_count[i]):
                    growth += c.image_B[k].dot(xyz(c.u[c.image_of[k]]))
                c.response[i] = c.response[i] + growth


@ti.func
def gradient_of(i: ti.i32, wraps: ti.template(), period: ti.template(), c: ti.template()):
    """Minus grad u, as the corrected gradients see it: sum_j L_i G_ij (u_i - u_j)^T."""
    xi, ui, B = c.xo[i], c.u[i], mat3(0.0)
    for k in range(c.span[i][0], c.span[i][1]):
        j = c.neighbor[k]
        G = corrected_by(i, c.factor[k] * difference_of_points(xi, c.xo[j], wraps, period), c)
        B += xyz(G).outer_product(xyz(ui - c.u[j]))
    return B
