"""Sums over the rest neighbors of elastic particles: deformation gradients, stresses and forces (see `body`).

Neighbors of particle e are the entries start[e] to start[e + 1] of one long list. What is summed up over them stands in
vectors of four, which one load brings in, with all four components treated alike: X has zero beside rest positions,
x the weight of the particle beside the position, and `columns` are those of T and of weight F, six for each particle.
"""

import taichi as ti

from pliant.core.backend import Ints, Matrices, Points, Reals, Vectors, mat3, set_vector, vec3, vec4
from pliant.core.neighbors import difference_of_points
from pliant.core.reduce import BLOCKS, block
from pliant.core.rotation import rotation_of
from pliant.core.speedups import light, with_vectors


@ti.func
def matrix_of(a: vec4, b: vec4, c: vec4):
    """The matrix with these columns."""
    return mat3([[a[0], b[0], c[0]], [a[1], b[1], c[1]], [a[2], b[2], c[2]]])


@ti.func
def write_columns(m: mat3, at: ti.i32, columns: ti.template()):
    for k in ti.static(range(3)):
        columns[at + k] = vec4(m[0, k], m[1, k], m[2, k], 0.0)


@ti.func
def times_columns(at: ti.i32, columns: ti.template(), v: vec4):
    return v[0] * columns[at] + v[1] * columns[at + 1] + v[2] * columns[at + 2]


@ti.func
def dot(a: mat3, b: mat3):
    """sum_ab A_ab B_ab"""
    total = 0.0
    for i, j in ti.static(ti.ndrange(3, 3)):
        total += a[i, j] * b[i, j]
    return total


@ti.func
def stress_of(F: mat3, R: mat3, S: mat3, shear: ti.f32, lame_lambda: ti.f32, rank: ti.f32):
    """V P: derivative of the elastic energy with respect to F, at a fixed R (Eq. 14, 16)."""
    return shear * (F - R @ S) + lame_lambda * (dot(R, F) - rank) * (R @ S)


@with_vectors
@ti.kernel
def sum_strain(n: ti.i32, wraps: ti.template(), period: Vectors, X: Points, start: Ints, neighbor: Ints,
               factor: Reals, zero_energy: Reals, x: Points, columns: Points):  # fmt: skip
    """sum_j factor x_ij X_ij^T and sum_j zero_energy x_ij X_ij^T, three columns each."""
    for e in range(n):
        s0, s1, s2, h0, h1, h2 = vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)
        for k in range(start[e], start[e + 1]):
            j = neighbor[k]
            Xij, xij = difference_of_points(X[e], X[j], wraps, period), difference_of_points(x[e], x[j], wraps, period)
            a, b = factor[k] * xij, zero_energy[k] * xij
            s0 += Xij[0] * a
            s1 += Xij[1] * a
            s2 += Xij[2] * a
            h0 += Xij[0] * b
            h1 += Xij[1] * b
            h2 += Xij[2] * b
        columns[6 * e], columns[6 * e + 1], columns[6 * e + 2] = s0, s1, s2
        columns[6 * e + 3], columns[6 * e + 4], columns[6 * e + 5] = h0, h1, h2


@light
@ti.kernel
def measure_strain(n: ti.i32, L: Matrices, S: Matrices, second: Matrices, shear: Reals, lame_lambda: Reals, rank: Reals,
                   V: Reals, x: Points, F: Matrices, R: Matrices, columns: Points):  # fmt: skip
    """Deformation gradients, rotations, and T, from the sums of `sum_strain`, whose place T and F take."""
    for e in range(n):
        k = 6 * e
        F[e] = -matrix_of(columns[k], columns[k + 1], columns[k + 2]) @ L[e]
        R[e] = rotation_of(F[e])
        held = F[e] @ second[e] - matrix_of(columns[k + 3], columns[k + 4], columns[k + 5])
        B = stress_of(F[e], R[e], S[e], shear[e], lame_lambda[e], rank[e]) + held
        write_columns(x[e][3] / V[e] * (B @ L[e]), k, columns)
        write_columns(x[e][3] * F[e], k + 3, columns)


@with_vectors
@ti.kernel
def find_forces(n: ti.i32, wraps: ti.template(), period: Vectors, X: Points, start: Ints, neighbor: Ints,
                factor: Reals, zero_energy: Reals, V: Reals, x: Points, columns: Points, scale: ti.f32,
                f: Vectors):  # fmt: skip
    """`scale` times the elastic forces. What the own T and F do in all pairs is added up before it is multiplied."""
    for e in range(n):
        stretched, held, first, second = vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)
        for k in range(start[e], start[e + 1]):
            j = neighbor[k]
            Xij, xij = difference_of_points(X[e], X[j], wraps, period), difference_of_points(x[e], x[j], wraps, period)
            both = 2.0 * x[e][3] - xij[3]  # of the weights
            stretched += factor[k] * times_columns(6 * j, columns, Xij)
            held += zero_energy[k] * (times_columns(6 * j + 3, columns, Xij) - both * xij)
            first += factor[k] * Xij
            second += zero_energy[k] * Xij
        stretched += times_columns(6 * e, columns, first)
        held += times_columns(6 * e + 3, columns, second)
        total = V[e] * stretched + held
        set_vector(f, e, scale * vec3(total[0], total[1], total[2]))


@ti.kernel
def add_zero_energy_forces(n: ti.i32, wraps: ti.template(), period: Vectors, X: Points, start: Ints, neighbor: Ints,
                           spring: Reals, x: Points, F: Matrices, scale: ti.f32, f: Vectors):  # fmt: skip
    """Adds `scale` times Ganzenmüller's forces (2015, Eq. 15): the error of each pair, along the line between them."""
    for e in range(n):
        total = vec3(0.0)
        for k in range(start[e], start[e + 1]):
            j = neighbor[k]
            Xij = difference_of_points(X[e], X[j], wraps, period).xyz
            xij = difference_of_points(x[e], x[j], wraps, period).xyz
            error = (F[e] + F[j]) @ Xij - 2.0 * xij
            total += 0.5 * spring[k] * error.dot(xij) / ti.max(xij.norm_sqr(), 1e-30) * xij
        f[e] += scale * total


@ti.kernel
def sum_energy(n: ti.i32, wraps: ti.template(), period: Vectors, X: Points, start: Ints, neighbor: Ints,
               zero_energy: Reals, S: Matrices, shear: Reals, lame_lambda: Reals, rank: Reals, x: Points, F: Matrices,
               R: Matrices, partial: Reals):  # fmt: skip
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        total = 0.0
        for e in range(lo, hi):
            trace = dot(R[e], F[e]) - rank[e]
            own = 0.5 * shear[e] * (F[e] - R[e] @ S[e]).norm_sqr() + 0.5 * lame_lambda[e] * trace**2
            for k in range(start[e], start[e + 1]):
                j = neighbor[k]
                Xij = difference_of_points(X[e], X[j], wraps, period).xyz
                xij = difference_of_points(x[e], x[j], wraps, period).xyz
                own += 0.5 * zero_energy[k] * (F[e] @ Xij - xij).norm_sqr()
            total += x[e][3] * own
        partial[s] = total


@light
@ti.kernel
def press(n: ti.i32, L: Matrices, S: Matrices, lame_lambda: Reals, rank: Reals, V: Reals, x: Points, F: Matrices,
          R: Matrices, columns: Points):  # fmt: skip
    """T of the volume term alone (Eq. 16)."""
    for e in range(n):
        trace = dot(R[e], F[e]) - rank[e]
        write_columns(x[e][3] / V[e] * lame_lambda[e] * trace * (R[e] @ S[e] @ L[e]), 6 * e, columns)


@ti.kernel
def respond(n: ti.i32, wraps: ti.template(), period: Vectors, X: Points, start: Ints, neighbor: Ints, factor: Reals,
            L: Matrices, S: Matrices, R: Matrices, shear: Reals, lame_lambda: Reals, V: Reals, x: Points, u: Vectors,
            columns: Points):  # fmt: skip
    """T of small displacements u on top of a state with the rotations R: Hooke's law in the rotated frame, with the
    gradient sum_j (u_j - u_e) g_ej^T."""
    for e in range(n):
        s0, s1, s2 = vec4(0.0), vec4(0.0), vec4(0.0)
        for k in range(start[e], start[e + 1]):
            j = neighbor[k]
            a, du = factor[k] * difference_of_points(X[e], X[j], wraps, period), u[j] - u[e]
            s0 += du[0] * a
            s1 += du[1] * a
            s2 += du[2] * a
        G = R[e].transpose() @ matrix_of(s0, s1, s2).transpose() @ L[e]
        B = 0.5 * shear[e] * (G + G.transpose()) @ S[e] + lame_lambda[e] * G.trace() * S[e]
        write_columns(x[e][3] / V[e] * (R[e] @ B @ L[e]), 6 * e, columns)


@ti.kernel
def resist(n: ti.i32, wraps: ti.template(), period: Vectors, X: Points, start: Ints, neighbor: Ints, factor: Reals,
           V: Reals, m: Reals, free: Ints, columns: Points, u: Vectors, scale: ti.f32, out: Vectors):  # fmt: skip
    """M u - scale f(T): the matrix of an implicit step on free particles, zero on the others."""
    for e in range(n):
        total, first = vec4(0.0), vec4(0.0)
        for k in range(start[e], start[e + 1]):
            j = neighbor[k]
            a = factor[k] * difference_of_points(X[e], X[j], wraps, period)
            total += times_columns(6 * j, columns, a)
            first += a
        total += times_columns(6 * e, columns, first)
        force = vec3(total[0], total[1], total[2])
        out[e] = ti.select(free[e] != 0, m[e] * u[e] - scale * V[e] * force, vec3(0.0))
