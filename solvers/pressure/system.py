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

K is three operations: `pressure_gradient` (forces of pressures), `constrain` (what those who move together make of the
accelerations, see `world.Coupling`) and `divergence` (growth of densities). Where nothing couples, one kernel does all.
"""

import taichi as ti

from pliant.boundary.images import Rows
from pliant.core.backend import Ints, IntTable, Reals, RealTable, SymmetricMatrices, Vectors, mat3, vec3, vec6
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block

FIELDS = (
    Field("a", "vector", "m", "displacement by the last change of pressure: dt^2 times its acceleration"),
    Field("D", "real", "1/(Pa s^2)", "diagonal of K"),
    Field("residual", "real", "1", "density ratio still to be removed"),
    Field("q", "real", "Pa s^2", "dt^2 times pressure"),
    Field("change", "real", "Pa s^2", "last change of q"),
    Field("response", "real", "1", "what the last change of q did to the density ratio"),
)
# The density ratio up to which nothing pushes. Layers that slide past each other change the mean density by some 1e-5;
# a closed volume filled to the brim would have no room for that, and jam.
REST = 1.0001

# What a solve sums up, and the number of these sums
COMPRESSION, TWO_SIDED, LENGTH, CURVATURE, LARGEST, MEMBERS, SOURCE, SUMS = range(8)
UNBOUNDED = 1e30  # a tension that no pressure reaches


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
def bends(i: ti.i32, corrected: ti.template(), bent: ti.template()):
    """Whether gradients are corrected around here."""
    result = 0
    if ti.static(corrected):
        result = bent[i]
    return result


@ti.kernel
def prepare(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
            factor: RealTable, rows: Rows, b: Vectors, corrected: ti.template(), bent: Ints, L: SymmetricMatrices,
            V: Reals, inverse_density: Reals, share: ti.f32, D: Reals):  # fmt: skip
    """D_i = w_i |sum_j L_i G_ij + b_i|^2 + share sum_j w_j V_i / V_j |L_i G_ij - B_ij|^2 with the inverse densities w;
    share is 1 for pressures."""
    for i in range(n):
        total, others = vec3(0.0), 0.0
        for k in range(count[i]):
            j = neighbor[i, k]
            G = factor[i, k] * difference(x[i], x[j], wraps, period)
            if bends(i, corrected, bent):
                G = times(L[i], G)
            total += G
            others += inverse_density[j] / V[j] * G.dot(G)
        for k in range(rows.image_start[i], rows.image_start[i] + rows.image_count[i]):  # images of the same neighbors
            j, slot, B = rows.image_of[k], rows.image_slot[k], rows.image_B[k]
            G = factor[i, slot] * difference(x[i], x[j], wraps, period)
            if bends(i, corrected, bent):
                G = times(L[i], G)
            others += inverse_density[j] / V[j] * B.dot(B - 2.0 * G)
        total += b[i]
        D[i] = inverse_density[i] * total.dot(total) + share * V[i] * others


@ti.func
def pressure_gradient(i: ti.i32, q: ti.template(), wraps: ti.template(), period: ti.template(), x: ti.template(),
                      count: ti.template(), neighbor: ti.template(), factor: ti.template(), rows: ti.template(),
                      b: ti.template(), corrected: ti.template(), bent: ti.template(), L: ti.template()):  # fmt: skip
    """sum_j (q_i L_i + q_j L_j) G_ij + q_j E_ij + q_i b_i: minus the force of pressures q."""
    total = vec3(0.0)
    if bends(i, corrected, bent):
        for k in range(count[i]):
            j = neighbor[i, k]
            total += times(q[i] * L[i] + q[j] * L[j], factor[i, k] * difference(x[i], x[j], wraps, period))
    else:
        for k in range(count[i]):
            j = neighbor[i, k]
            total += (q[i] + q[j]) * factor[i, k] * difference(x[i], x[j], wraps, period)
    for k in range(rows.image_start[i], rows.image_start[i] + rows.image_count[i]):
        total += q[rows.image_of[k]] * rows.image_E[k]
    return total + q[i] * b[i]


@ti.func
def divergence(i: ti.i32, u: ti.template(), wraps: ti.template(), period: ti.template(), x: ti.template(),
               count: ti.template(), neighbor: ti.template(), factor: ti.template(), rows: ti.template(),
               b: ti.template(), corrected: ti.template(), bent: ti.template(), L: ti.template()):  # fmt: skip
    """sum_j L_i G_ij . (u_i - u_j) + B_ij . u_j + b_i . u_i: growth of the density ratio by displacements or velocities
    u."""
    total = 0.0
    if bends(i, corrected, bent):
        total = gradient_of(i, u, wraps, period, x, count, neighbor, factor, L).trace()
    else:
        for k in range(count[i]):
            j = neighbor[i, k]
            total += factor[i, k] * difference(x[i], x[j], wraps, period).dot(u[i] - u[j])
    return total + divergence_at_walls(i, u, rows, b)


@ti.func
def divergence_at_walls(i: ti.i32, u: ti.template(), rows: ti.template(), b: ti.template()):
    """b_i . u_i + sum_j B_ij . u_j: what walls and images have in it."""
    total = b[i].dot(u[i])
    for k in range(rows.image_start[i], rows.image_start[i] + rows.image_count[i]):
        total += rows.image_B[k].dot(u[rows.image_of[k]])
    return total


@ti.func
def gradient_of(i: ti.i32, u: ti.template(), wraps: ti.template(), period: ti.template(), x: ti.template(),
                count: ti.template(), neighbor: ti.template(), factor: ti.template(), L: ti.template()):  # fmt: skip
    """Minus grad u, as the corrected gradients see it: sum_j L_i G_ij (u_i - u_j)^T."""
    B = mat3(0.0)
    for k in range(count[i]):
        j = neighbor[i, k]
        B += (factor[i, k] * difference(x[i], x[j], wraps, period)).outer_product(u[i] - u[j])
    s = L[i]
    return mat3([[s[0], s[5], s[4]], [s[5], s[1], s[3]], [s[4], s[3], s[2]]]) @ B


@ti.kernel
def begin(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
          factor: RealTable, rows: Rows, b: Vectors, corrected: ti.template(), bent: Ints, L: SymmetricMatrices,
          inverse_density: Reals, dt: ti.f32, p: Reals, q: Reals, dv: Vectors):  # fmt: skip
    """Starts from the pressures of the last step: adds what they do to velocities."""
    for i in range(n):
        q[i] = dt * dt * p[i]
    for i in range(n):
        dv[i] -= inverse_density[i] / dt * pressure_gradient(i, q, wraps, period, x, count, neighbor, factor, rows, b,
                                                             corrected, bent, L)  # fmt: skip


@ti.kernel
def predict(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
            factor: RealTable, rows: Rows, b: Vectors, corrected: ti.template(), bent: Ints, L: SymmetricMatrices,
            inside: Reals, flux: Reals, wall: Reals, density: Reals, D: Reals, least: ti.f32, v: Vectors, dt: ti.f32,
            compression: ti.f32, feedback: ti.f32, slack: ti.f32, q: Reals, source: Reals, residual: Reals,
            partial: RealTable, sums: Reals):  # fmt: skip
    """residual = dt d rho/dt + (rho - 1): the excess at the end of the step. Of an excess that is there already only
    the share `compression` counts; what is missing counts whole, so that thinned-out particles may come closer. Inside
    a liquid either counts whole, but of what is within the `slack` only the share `feedback`. The source is
    dt^2 |tr((grad v)^2)|: what velocities do in a step to their own divergence."""
    for i in range(n):
        rate = 0.0
        source[i] = 0.0
        if ti.static(corrected):
            B = gradient_of(i, v, wraps, period, x, count, neighbor, factor, L)
            rate = B.trace() + divergence_at_walls(i, v, rows, b)
            source[i] = dt * dt * ti.abs((B @ B).trace())
        else:
            rate = divergence(i, v, wraps, period, x, count, neighbor, factor, rows, b, corrected, bent, L)
        excess = density[i] + wall[i] - REST
        error = ti.min(excess, 0.0) + compression * ti.max(excess, 0.0)
        within = excess - (1.0 - feedback) * ti.min(ti.max(excess, -slack), slack)
        residual[i] = dt * (rate - flux[i]) + ti.select(inside[i] > 0.0, within, error)
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        survey(s, n, D, least, inside, q, source, residual, partial)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        total_up(k, partial, sums)


@ti.func
def two_sided(r: ti.f32, q: ti.f32, inside: ti.f32):
    """The error of a residual: parting is one as well where pressure acts, and inside a liquid."""
    return ti.select(q > 0.0 or inside > 0.0, ti.abs(r), ti.max(r, 0.0))


@ti.func
def survey(s: ti.i32, n: ti.i32, D: ti.template(), least: ti.f32, inside: ti.template(), q: ti.template(),
           source: ti.template(), residual: ti.template(), partial: ti.template()):  # fmt: skip
    """Sums of the errors in one block, and how many particles have something to push against: the inside of a solid has
    not, and must not dilute the mean."""
    lo, hi = block(s, n)
    over, error, worst, members, sources = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(lo, hi):
        if D[i] > least:
            r = residual[i]
            members += 1.0
            sources += source[i]
            over += ti.max(r, 0.0)
            error += two_sided(r, q[i], inside[i])
            worst = ti.max(worst, r)
    partial[s, COMPRESSION], partial[s, TWO_SIDED], partial[s, LARGEST] = over, error, worst
    partial[s, MEMBERS], partial[s, SOURCE] = members, sources


@ti.func
def total_up(k: ti.i32, partial: ti.template(), sums: ti.template()):
    total = 0.0
    for s in range(BLOCKS):
        total = ti.select(k == LARGEST, ti.max(total, partial[s, k]), total + partial[s, k])
    sums[k] = total


@ti.func
def projected(old: ti.f32, step: ti.f32, residual: ti.f32, D: ti.f32, least: ti.f32, inside: ti.f32):
    """A pressure after one step along its residual, below zero only inside a liquid; none where there is nothing to
    push against."""
    lowest = ti.select(inside > 0.0, -UNBOUNDED, 0.0)
    return ti.select(least < D, ti.max(old + step * residual / ti.max(D, least), lowest), 0.0)


@ti.func
def tally(s: ti.i32, n: ti.i32, V: ti.template(), volume: ti.f32, D: ti.template(), least: ti.f32,
          inside: ti.template(), q: ti.template(), change: ti.template(), response: ti.template(),
          residual: ti.template(), partial: ti.template()):  # fmt: skip
    """Takes the response over into the residuals of one block, and sums up compression, the two-sided error, V dq D dq
    and V dq K dq (V in units of `volume`), and the largest compression."""
    lo, hi = block(s, n)
    over, error, length, curvature, worst = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(lo, hi):
        r = residual[i] + response[i]
        residual[i] = r
        if D[i] > least:
            over += ti.max(r, 0.0)
            error += two_sided(r, q[i], inside[i])
            length += V[i] / volume * D[i] * change[i] ** 2
            curvature -= V[i] / volume * change[i] * response[i]
            worst = ti.max(worst, r)
    partial[s, COMPRESSION], partial[s, TWO_SIDED], partial[s, LARGEST] = over, error, worst
    partial[s, LENGTH], partial[s, CURVATURE] = length, curvature


@ti.kernel
def iterate(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
            factor: RealTable, rows: Rows, b: Vectors, corrected: ti.template(), bent: Ints, L: SymmetricMatrices,
            inside: Reals, V: Reals, volume: ti.f32, inverse_density: Reals, D: Reals, least: ti.f32, rate: ti.f32,
            step: ti.f32, q: Reals, change: Reals, a: Vectors, moved: Vectors, response: Reals, residual: Reals,
            partial: RealTable, sums: Reals):  # fmt: skip
    """One projected step q <- q + step residual / D, what it does to residuals and to `moved` (velocities at a
    rate of 1/dt, or positions at 1), and the sums of `tally`."""
    for i in range(n):
        old = q[i]
        q[i] = projected(old, step, residual[i], D[i], least, inside[i])
        change[i] = q[i] - old
    for i in range(n):
        a[i] = -inverse_density[i] * pressure_gradient(i, change, wraps, period, x, count, neighbor, factor, rows, b,
                                                       corrected, bent, L)  # fmt: skip
        moved[i] += rate * a[i]
    for i in range(n):
        response[i] = divergence(i, a, wraps, period, x, count, neighbor, factor, rows, b, corrected, bent, L)
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        tally(s, n, V, volume, D, least, inside, q, change, response, residual, partial)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        total_up(k, partial, sums)


# --- the same in parts, for what couples ----------------------------------------------------------------


@ti.kernel
def push(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
         factor: RealTable, rows: Rows, b: Vectors, corrected: ti.template(), bent: Ints, L: SymmetricMatrices,
         inside: Reals, inverse_density: Reals, D: Reals, least: ti.f32, step: ti.f32, residual: Reals, q: Reals,
         change: Reals, a: Vectors):  # fmt: skip
    """The first half of `iterate`, and what it does to free particles. Where D is zero nothing presses: most of a solid
    is passed by."""
    for i in range(n):
        old = q[i]
        q[i] = projected(old, step, residual[i], D[i], least, inside[i])
        change[i] = q[i] - old
    for i in range(n):
        a[i] = vec3(0.0)
        if D[i] > 0.0:
            a[i] = -inverse_density[i] * pressure_gradient(i, change, wraps, period, x, count, neighbor, factor, rows,
                                                           b, corrected, bent, L)  # fmt: skip


@ti.kernel
def add(n: ti.i32, rate: ti.f32, a: Vectors, moved: Vectors):
    for i in range(n):
        moved[i] += rate * a[i]


@ti.kernel
def follow(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
           factor: RealTable, rows: Rows, b: Vectors, corrected: ti.template(), bent: Ints, L: SymmetricMatrices,
           inside: Reals, V: Reals, volume: ti.f32, D: Reals, least: ti.f32, rate: ti.f32, q: Reals, change: Reals,
           a: Vectors, moved: Vectors, response: Reals, residual: Reals, partial: RealTable, sums: Reals):  # fmt: skip
    """The second half: what accelerations, as they are then, do to `moved` and to residuals, and the sums."""
    for i in range(n):
        moved[i] += rate * a[i]
        response[i] = 0.0
        if D[i] > 0.0:
            response[i] = divergence(i, a, wraps, period, x, count, neighbor, factor, rows, b, corrected, bent, L)
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        tally(s, n, V, volume, D, least, inside, q, change, response, residual, partial)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        total_up(k, partial, sums)


@ti.kernel
def finish(n: ti.i32, dt: ti.f32, q: Reals, p: Reals, tense: Ints):
    """Pressures as such again, and whether there is tension anywhere."""
    tense[0] = 0
    for i in range(n):
        p[i] = q[i] / (dt * dt)
        if q[i] < 0.0:
            tense[0] = 1


@ti.kernel
def pressure_head(n: ti.i32, material: Ints, liquid: Reals, inverse_density: Reals, p: Reals, partial: RealTable):
    """Sums of p / rho and of its square over the particles of liquids that are under pressure, block by block."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        first, second = 0.0, 0.0
        for i in range(lo, hi):
            head = liquid[material[i]] * inverse_density[i] * ti.max(p[i], 0.0)
            first += head
            second += head * head
        partial[b, 0], partial[b, 1] = first, second
