"""The pressure system that every incompressible solver shares.

Density ratios rho_i = sum_j V_j W_ij + wall must not exceed one. With the stored G_ij = V_j grad W_ij and
the wall's gradient b_i, pressures p accelerate particles by (Kugelstadt 2021, Section 6; Neder 2024, Eq. 31, 38)

    a_i = -1/rho0_i ( sum_j (p_i + p_j) G_ij + p_i b_i ),

the exact adjoint of the rate of the density ratio, d rho_i / dt = sum_j G_ij . (v_i - v_j) + b_i . v_i. So the
density after the step is rho* - dt^2 K p with K symmetric (in the inner product weighted by volume) and
positive semi-definite, and p solves the complementarity problem

    0 <= p  perpendicular to  1 - rho* + dt^2 K p >= 0:

fluid is pushed, never pulled. The solver works on q = dt^2 p, for which K does not depend on the step.
"""

import taichi as ti

from pliant.backend import Ints, IntTable, Reals, RealTable, Vectors, VectorTable
from pliant.particles import Field
from pliant.reduce import BLOCKS, block

FIELDS = (
    Field("a", "vector", "m", "displacement by pressure, dt^2 times its acceleration"),
    Field("D", "real", "1/Pa/s^2", "diagonal of K"),
    Field("source", "real", "1", "density ratio to be removed"),
    Field("residual", "real", "1", "what is left of it: source - K q"),
    Field("q", "real", "Pa s^2", "dt^2 times pressure"),
    Field("change", "real", "Pa s^2", "last change of q"),
)


@ti.kernel
def diagonal(n: ti.i32, count: Ints, neighbor: IntTable, gradient: VectorTable, b: Vectors, V: Reals,
             mobility: Reals, D: Reals):  # fmt: skip
    """D_i = mobility_i |sum_j G_ij + b_i|^2 + sum_j mobility_j V_i / V_j |G_ij|^2."""
    for i in range(n):
        total, others = b[i], 0.0
        for k in range(count[i]):
            G, j = gradient[i, k], neighbor[i, k]
            total += G
            others += mobility[j] / V[j] * G.dot(G)
        D[i] = mobility[i] * total.dot(total) + V[i] * others


@ti.kernel
def predict(n: ti.i32, count: Ints, neighbor: IntTable, gradient: VectorTable, b: Vectors, flux: Reals,
            wall: Reals, density: Reals, v: Vectors, dt: ti.f32, compression: ti.f32, source: Reals):  # fmt: skip
    """source = dt d rho/dt + (rho - 1), the excess at the end of the step; with compression = 0 only the part of
    (rho - 1) that is missing counts, which leaves the rate: thinned-out particles may still come closer."""
    for i in range(n):
        rate = b[i].dot(v[i]) - flux[i]
        for k in range(count[i]):
            rate += gradient[i, k].dot(v[i] - v[neighbor[i, k]])
        excess = density[i] + wall[i] - 1.0
        source[i] = dt * rate + ti.min(excess, 0.0) + compression * ti.max(excess, 0.0)


@ti.kernel
def iterate(n: ti.i32, count: Ints, neighbor: IntTable, gradient: VectorTable, b: Vectors, V: Reals, mobility: Reals,
            D: Reals, source: Reals, least: ti.f32, step: ti.f32, q: Reals, a: Vectors, residual: Reals,
            change: Reals, volume: ti.f32, partial: RealTable):  # fmt: skip
    """One projected step q <- max(0, q + step residual / D), then the new residual and, block by block, sums of
    compression, two-sided error, V dq D dq and V dq K dq (V in units of `volume`), and the largest compression."""
    for i in range(n):
        old = q[i]
        q[i] = ti.select(D[i] > least, ti.max(old + step * residual[i] / ti.max(D[i], least), 0.0), 0.0)
        change[i] = q[i] - old
    for i in range(n):
        total = q[i] * b[i]
        for k in range(count[i]):
            total += (q[i] + q[neighbor[i, k]]) * gradient[i, k]
        a[i] = -mobility[i] * total
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        compression, error, length, curvature, worst = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(lo, hi):
            rate = b[i].dot(a[i])
            for k in range(count[i]):
                rate += gradient[i, k].dot(a[i] - a[neighbor[i, k]])
            new = source[i] + rate
            if D[i] > least:
                over = ti.max(new, 0.0)
                compression += over
                error += ti.select(q[i] > 0.0, ti.abs(new), over)
                length += V[i] / volume * D[i] * change[i] ** 2
                curvature += V[i] / volume * change[i] * (residual[i] - new)
                worst = ti.max(worst, over)
            residual[i] = new
        partial[s, 0], partial[s, 1], partial[s, 2], partial[s, 3] = compression, error, length, curvature
        partial[s, 4] = worst


@ti.kernel
def scale(n: ti.i32, p: Reals, factor: ti.f32, q: Reals):
    for i in range(n):
        q[i] = factor * p[i]


@ti.kernel
def accelerate(n: ti.i32, a: Vectors, factor: ti.f32, v: Vectors):
    for i in range(n):
        v[i] += factor * a[i]
