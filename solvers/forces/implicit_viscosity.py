"""Implicit viscosity: stable for any thickness, isotropic, and silent where a liquid turns as one.

Weiler et al. 2018 let pairs resist along x_ij alone, so that angular momentum is kept and thick threads coil. Half the
power that this takes from velocities v is, with w_ij = |G_ij| r_ij, the rate e_ij = (v_j - v_i) . x_ji / r_ij^2 at
which a pair parts, and y_ij = x^ x^T (symmetric matrices are 6-vectors here, with sqrt(2) in front of off-diagonals),

    V_i mu / 2 sum_j 5 w_ij e_ij^2  =  V_i mu / 2  D . C_i D    in a flow of strain rate D, where e_ij = y_ij . D,
    C_i = sum_j 5 w_ij y_ij y_ij^T.

For neighbors in all directions alike C is T = 2 1 + d d^T (d is the unit matrix): a shear viscosity mu, and as much
bulk viscosity, which incompressible flows do not feel. With some thirty neighbors it is not: on the lattice shear
waves decay 0.70 to 1.45 times as fast as they should. But C_i is known, and so is the strain rate that fits the pairs
best, D_i = C_i^-1 beta_i with beta_i = sum_j 5 w_ij e_ij y_ij. So what pairs take from this strain rate is replaced by
what is right, and what remains, the part of their motion that is no strain, resists PAIRS times as much:

    V_i mu / 2 ( D_i . T D_i + PAIRS sum_j 5 w_ij (e_ij - y_ij . D_i)^2 )
        = V_i mu / 2 ( PAIRS sum_j 5 w_ij e_ij^2 + beta_i . Q_i beta_i ),    Q = C^-1 (T - PAIRS C) C^-1.

The first line says that it is positive, exact for every linear flow, and leaves no motion undamped; in the second all
is made of e_ij, so that forces act along x_ij still, and momentum and angular momentum are kept by each pair:

    rho_i a_i = sum_j 5 |G_ij| / r_ij (PAIRS (mu_i + mu_j) e_ij + (s_i + s_j) . y_ij) x_ji,    s_i = mu_i Q_i beta_i.

Where few neighbors tell little of D (films, threads, spray), C^-1 is C (C^2 + EPSILON^2)^-1, which keeps it positive.

PAIRS decides over short waves: with 1.3 those of 12, 8.5 and 6 spacings decay 0.97, 0.96 to 1.04 and 0.90 times as fast
as they should on the lattice, whatever their direction (with 1: 0.96, 0.94 to 1.01, 0.85).

In disorder particles find ways past each other that no smooth flow has, which thins thick liquids (in the steady state
by 5, 11 and 20 % with positions off the lattice by up to 0.15, 0.25 and 0.4 d). How much it does is told by
g_i = sum_j G_ij, the force of a constant stress, which is zero in order: inside liquids mu_i is multiplied by
1 + DISORDER d^2 |g_i|^2. Waves of 12 and 8.5 spacings then decay 0.98 to 1.03 times as fast as they should among the
particles of a stirred liquid, and 0.98 to 1.07 and 0.91 to 1.00 times with positions off by up to 0.25 and 0.4 d.

At a no-slip wall its drag stands for the layer between particle and wall, at a distance phi, with all its shear along
the wall; so T lacks the share drag phi^2 of that shear there, and a Couette flow is exact.

The conjugate gradients that solve for it stop at a tolerance; what they then lack in the motion of all particles as one
is added, so that the momentum is right to round-off.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Matrices, Reals, RealTable, Spans, SymmetricMatrices, Vectors, mat3, vec3, vec6
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World
from pliant.solvers.forces.viscosity import drag_of, tables, thickest, use_implicit
from pliant.solvers.linear.cg import ConjugateGradient
from pliant.solvers.pressure.correction import surrounded
from pliant.solvers.stage import Force, SolveResult

ISOTROPIC = 5.0  # 15 / 3: sum_j w_ij is 3, and the mean of y y^T over directions is T / 15
PAIRS = 1.3
EPSILON = 0.15  # of C, whose eigenvalues are 2, 2, 2, 2, 2 and 5 in all directions alike
DISORDER = 1.2
CORE = 1e-3  # in units of d^2: keeps 1 / r^2 finite for coincident particles
TOLERANCE = 1e-3  # of the solve: its residual over the right-hand side
OF_CHANGE = 0.01  # and over the residual of the old velocities, so that what decays slowly does so at the right rate
ROOT = 2.0**0.5
TRIANGLE = 21  # entries of a symmetric 6 x 6 matrix, row after row of its upper half

mat6: TypeAlias = ti.types.matrix(6, 6, ti.f32)


@ti.func
def square(a: vec3):
    """a a^T as a 6-vector: its products with another such are those of the matrices."""
    return vec6(a[0] * a[0], a[1] * a[1], a[2] * a[2], ROOT * a[1] * a[2], ROOT * a[0] * a[2], ROOT * a[0] * a[1])


@ti.func
def regular_inverse(C: mat6):
    """(C^2 + EPSILON^2)^-1 C by elimination, which needs no pivots."""
    A, R = C @ C, C
    for a in range(6):
        A[a, a] += EPSILON**2
    for a in range(6):
        scale = 1.0 / A[a, a]
        for c in range(6):
            A[a, c] *= scale
            R[a, c] *= scale
        for b in range(6):
            if b != a:
                share = A[b, a]
                for c in range(6):
                    A[b, c] -= share * A[a, c]
                    R[b, c] -= share * R[a, c]
    return R


@ti.func
def target(wall_share: ti.f32, n: vec3):
    """T: 2 D . D + (trace D)^2, without the `wall_share` of the shear along a wall with normal n, 4 |D n|^2 -
    4 (n . D n)^2. D n is the 6-vector D times the rows of K."""
    T = mat6(0.0)
    for a in ti.static(range(6)):
        T[a, a] = 2.0
    for a, b in ti.static(ti.ndrange(3, 3)):
        T[a, b] += 1.0
    if wall_share > 0.0:
        half = 1.0 / ROOT
        K = [vec6(n[0], 0.0, 0.0, 0.0, half * n[2], half * n[1]), vec6(0.0, n[1], 0.0, half * n[2], 0.0, half * n[0]),
             vec6(0.0, 0.0, n[2], half * n[1], half * n[0], 0.0)]  # fmt: skip
        along = square(n)
        for a in ti.static(range(3)):
            T -= 4.0 * wall_share * K[a].outer_product(K[a])
        T += 4.0 * wall_share * along.outer_product(along)
    return T


@ti.kernel
def _fit(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
         factor: Reals, core: ti.f32, spacing: ti.f32, material: Ints, table: Reals, b: Vectors, drag: Reals,
         distance: Reals, normal: Vectors, mu: Reals, Q: RealTable):  # fmt: skip
    """Q_i, and the viscosity mu_i of particles."""
    for i in range(n):
        mu[i] = table[material[i]]
        if mu[i] > 0.0:
            C, g, full = mat6(0.0), 0.5 * b[i], b[i].norm() * distance[i]
            for k in range(span[i][0], span[i][1]):
                dx = difference(x[i], x[neighbor[k]], wraps, period)
                r2 = dx.dot(dx)
                y = square(dx)
                C -= ISOTROPIC * factor[k] / (r2 + core) * y.outer_product(y)
                g += factor[k] * dx
                full -= factor[k] * r2
            inside = surrounded(full / 3.0 - spacing * g.norm())
            mu[i] *= 1.0 + inside * DISORDER * spacing**2 * g.dot(g)
            R = regular_inverse(C)
            whole = R @ (target(ti.min(drag[i] * distance[i] ** 2, 1.0), normal[i]) - PAIRS * C) @ R
            for a in ti.static(range(6)):
                for c in ti.static(range(a, 6)):
                    Q[i, ti.static(a * (11 - a) // 2 + c)] = whole[a, c]


@ti.func
def through(Q: ti.template(), i: ti.i32, y: vec6):
    """Q_i y."""
    result = vec6(0.0)
    for a in ti.static(range(6)):
        for c in ti.static(range(a, 6)):
            q = Q[i, ti.static(a * (11 - a) // 2 + c)]
            result[a] += q * y[c]
            if ti.static(c > a):
                result[c] += q * y[a]
    return result


@ti.kernel
def _apply(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
           factor: Reals, core: ti.f32, mu: Reals, dt: ti.f32, material: Ints, nu: Reals, rho: Reals,
           inverse_density: Reals, V: Reals, drag: Reals, gradient: Vectors, Q: RealTable, stress: SymmetricMatrices,
           u: Vectors, out: Vectors):  # fmt: skip
    """out = V (rho u - dt viscous force density of u): the symmetric matrix of the implicit step; rows of particles
    with prescribed motion are left empty."""
    for i in range(n):
        stress[i] = vec6(0.0)
        if mu[i] > 0.0:
            beta = vec6(0.0)
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                dx = difference(x[i], x[j], wraps, period)
                beta -= factor[k] * (u[i] - u[j]).dot(dx) / (dx.dot(dx) + core) * square(dx)
            stress[i] = ISOTROPIC * mu[i] * through(Q, i, beta)
    for i in range(n):
        total = vec3(0.0)
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            dx = difference(x[i], x[j], wraps, period)
            parting = PAIRS * (mu[i] + mu[j]) * (u[i] - u[j]).dot(dx) + (stress[i] + stress[j]).dot(square(dx))
            total += ISOTROPIC * factor[k] / (dx.dot(dx) + core) * parting * dx
        total -= rho[material[i]] * drag_of(i, u[i], nu[material[i]], drag, gradient)
        out[i] = ti.select(inverse_density[i] > 0.0, V[i] * (rho[material[i]] * u[i] - dt * total), vec3(0.0))


@ti.kernel
def _blocks(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
            factor: Reals, core: ti.f32, mu: Reals, dt: ti.f32, material: Ints, nu: Reals, rho: Reals,
            inverse_density: Reals, V: Reals, drag: Reals, gradient: Vectors, Q: RealTable,
            inverse: Matrices):  # fmt: skip
    """Inverses of the 3 x 3 diagonal blocks of the matrix (Weiler et al. 2018, Section 3.3): pairs, what the velocity
    of i does to the strain rates of its neighbors, and what it does to its own by P = d beta_i / d v_i."""
    for i in range(n):
        B, P = mat3(0.0), ti.Matrix.zero(ti.f32, 3, 6)
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            dx = difference(x[i], x[j], wraps, period)
            y, f = square(dx), -ISOTROPIC * factor[k] / (dx.dot(dx) + core)
            pair = PAIRS * (mu[i] + mu[j]) * f
            if mu[j] > 0.0 and j != i:
                pair += f * f * V[i] / V[j] * mu[j] * y.dot(through(Q, j, y))
            B += pair * dx.outer_product(dx)
            P += f * dx.outer_product(y)
        if mu[i] > 0.0:
            for a in ti.static(range(3)):
                row = through(Q, i, vec6(P[a, 0], P[a, 1], P[a, 2], P[a, 3], P[a, 4], P[a, 5]))
                for c in ti.static(range(3)):
                    for e in ti.static(range(6)):
                        B[a, c] += mu[i] * row[e] * P[c, e]
        for k in ti.static(range(3)):
            B[k, k] += rho[material[i]] / dt
        if drag[i] > 0.0:
            normal = gradient[i].normalized()
            for a, b in ti.static(ti.ndrange(3, 3)):
                along = ti.cast(a == b, ti.f32) - normal[a] * normal[b]
                B[a, b] += nu[material[i]] * rho[material[i]] * drag[i] * along
        inverse[i] = B.inverse() / (V[i] * dt)


@ti.kernel
def _precondition(n: ti.i32, inverse_density: Reals, inverse: Matrices, residual: Vectors, z: Vectors):
    for i in range(n):
        z[i] = ti.select(inverse_density[i] > 0.0, inverse[i] @ residual[i], vec3(0.0))


@ti.kernel
def _right_side(n: ti.i32, dt: ti.f32, material: Ints, nu: Reals, rho: Reals, inverse_density: Reals,
                V: Reals, drag: Reals, gradient: Vectors, wall_v: Vectors, v: Vectors, carried: Vectors, out: Vectors,
                guess: Vectors):  # fmt: skip
    """V (rho v + dt wall drag towards the wall's velocity); the guess repeats the last step's change."""
    for i in range(n):
        pull = drag_of(i, wall_v[i], nu[material[i]], drag, gradient)
        out[i] = ti.select(inverse_density[i] > 0.0, V[i] * rho[material[i]] * (v[i] + dt * pull), vec3(0.0))
        guess[i] = v[i] + ti.select(inverse_density[i] > 0.0, carried[i], vec3(0.0))


@ti.kernel
def _sum_up(n: ti.i32, dt: ti.f32, material: Ints, nu: Reals, rho: Reals, inverse_density: Reals, V: Reals,
            drag: Reals, gradient: Vectors, residual: Vectors, partial: RealTable):  # fmt: skip
    """Sums of the residual, and of what the matrix makes of three motions of all free particles as one: masses, and
    the drag of walls."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        left, along = vec3(0.0), mat3(0.0)
        for i in range(lo, hi):
            if inverse_density[i] > 0.0:
                mass = V[i] * rho[material[i]]
                left += residual[i]
                for a in ti.static(range(3)):
                    along[a, a] += mass
                if drag[i] > 0.0:
                    normal = gradient[i].normalized()
                    for a, c in ti.static(ti.ndrange(3, 3)):
                        across = ti.cast(a == c, ti.f32) - normal[a] * normal[c]
                        along[a, c] += mass * dt * nu[material[i]] * drag[i] * across
        for a in ti.static(range(3)):
            partial[b, a] = left[a]
            for c in ti.static(range(3)):
                partial[b, 3 + 3 * a + c] = along[a, c]


@ti.kernel
def _accept(n: ti.i32, solution: Vectors, dx: ti.f32, dy: ti.f32, dz: ti.f32, inverse_density: Reals, material: Ints,
            nu: Reals, drag: Reals, gradient: Vectors, wall_v: Vectors, slide: Vectors, v: Vectors,
            carried: Vectors):  # fmt: skip
    for i in range(n):
        if inverse_density[i] > 0.0:
            found = solution[i] + vec3(dx, dy, dz)
            carried[i] = found - v[i]
            v[i] = found
            slide[i] -= drag_of(i, v[i] - wall_v[i], nu[material[i]], drag, gradient)


class ImplicitViscosity(Force):
    """(1 - dt nu laplace) v_new = v by conjugate gradients with 3 x 3 blocks."""

    name, place, rank = "viscosity", "warm start", 10  # after the pressures of the last step
    fields: ClassVar = (
        Field("viscous_change", "vector", "m/s", "change of velocity by viscosity, the next guess", carried=True),
        *(Field(f"cg_{name}", "vector", "", f"conjugate gradients: {name}")
          for name in ("solution", "residual", "direction", "image", "z")),
        Field("viscous_mu", "real", "Pa s", "dynamic viscosity, the numerical one and that by disorder included"),
        Field("viscous_stress", "symmetric", "Pa", "correction of the viscous stress; off-diagonals times sqrt(2)"),
    )  # fmt: skip

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        thick = thickest(materials, 2 * settings.particle_radius, settings.gravity)
        return thick > 0.0 and use_implicit(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.nu, self.rho, self.mu = tables(world)
        self._grow()
        self.cg = ConjugateGradient(TOLERANCE, max_iterations=200, of_change=OF_CHANGE)
        self._partial = np.zeros((BLOCKS, 12), np.float32)

    def _grow(self) -> None:
        """Makes room for as many particles as their own arrays have."""
        capacity = self.world.particles.capacity
        self.inverse, self.Q = ti.ndarray(mat3, capacity), ti.ndarray(ti.f32, (capacity, TRIANGLE))

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        if self.inverse.shape[0] < p.capacity:
            self._grow()
        local = (dt, p.material, self.nu, self.rho, p.inverse_density, p.V, p.wall_drag, p.wall_gradient)
        core = CORE * w.spacing**2
        pairs = (*w.neighbors.pairs, core, p.viscous_mu)
        _fit(p.n, *w.neighbors.pairs, core, w.spacing, p.material, self.mu, p.wall_gradient, p.wall_drag,
             p.wall_distance, p.wall_normal, p.viscous_mu, self.Q)  # fmt: skip
        _right_side(p.n, *local, p.wall_velocity, p.v, p.viscous_change, p.cg_residual, p.cg_solution)
        _blocks(p.n, *pairs, *local, self.Q, self.inverse)
        iterations = self.cg.solve(
            p.n, p.cg_solution, p.cg_residual, p.cg_direction, p.cg_image, p.cg_z,
            multiply=lambda u, out: _apply(p.n, *pairs, *local, self.Q, p.viscous_stress, u, out),
            precondition=lambda r, z: _precondition(p.n, p.inverse_density, self.inverse, r, z), old=p.v,
        )  # fmt: skip
        _accept(p.n, p.cg_solution, *self._drift(local), p.inverse_density, p.material, self.nu, p.wall_drag,
                p.wall_gradient, p.wall_velocity, p.wall_slide, p.v, p.viscous_change)  # fmt: skip
        self.results["viscosity"] = SolveResult(iterations)

    def _drift(self, local: tuple) -> list[float]:
        """The motion of all as one that the solve has left out [m/s]: with it, momentum changes by the drag of walls
        alone, to round-off and whatever the tolerance. Particles with a prescribed motion stand for something outside
        that takes momentum as well; among these nothing is added."""
        p = self.world.particles
        _sum_up(p.n, *local, p.cg_residual, self._partial)
        sums = self._partial.sum(axis=0, dtype=float)
        held = (p.numpy("inverse_density") == 0.0).any()
        return [0.0] * 3 if held or not sums[3] > 0 else np.linalg.solve(sums[3:].reshape(3, 3), sums[:3]).tolist()


