"""Viscosity: an explicit form for thin liquids, an implicit one for thick ones. Both take the kinematic viscosity.

The pair coefficients derive from the dynamic viscosity mu, averaged over the pair, and from |G_ij| / r_ij:

    explicit (Morris et al. 1997):  rho_i a_i = sum_j 2 mu |G_ij| / r_ij (v_j - v_i)
    implicit (Weiler et al. 2018):  rho_i a_i = sum_j 10 c mu |G_ij| / r_ij ((v_j - v_i) . x^) x^,   x^ = x_ij / r_ij.

Morris' form is the accurate one: on the rest lattice it gives 1.02 times the true Laplacian of a shear flow, in
disorder 0.99. Weiler's acts along x_ij, which keeps angular momentum, so that thick threads coil; but with some thirty
neighbors it is anisotropic (0.71 to 1.48 on the lattice, 0.79 on average in disorder), which c = 1 / 0.79 corrects on
average. The conjugate gradients that solve for it stop at a tolerance; what they then lack in the motion of all
particles as one is added, so that the momentum is right to round-off.

To the viscosity of the liquid comes a numerical one, damping d sqrt(|g| d): an incompressible fluid of particles keeps
energy so well that the motion of particles about their places, once there, would go on for ever. Walls do not feel it.

No-slip walls pull on tangential velocities with the shear stress mu (v - v_wall) / phi on a particle's share of wall.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Matrices, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World
from pliant.solvers.linear.cg import ConjugateGradient
from pliant.solvers.stage import Force, SolveResult, material_table

STABLE = 0.1  # explicit steps are kept below this times d^2 / nu (Morris et al. 1997 use 0.125 h^2 / nu)
WEILER = 10.0 / 0.79  # 2 (dim + 2), corrected as explained above
CORE = 1e-3  # in units of d^2: keeps 1 / r^2 finite for coincident particles
TOLERANCE = 1e-3  # relative residual of the implicit solve


def numerical(materials: Sequence[Any], d: float, gravity: Any) -> list[float]:
    """Kinematic viscosity [m^2/s] by `damping` for each material, at spacing d [m]."""
    scale = d * float(np.sqrt(np.linalg.norm(gravity) * d))
    return [0.0 if material.elastic else getattr(material, "damping", 0.0) * scale for material in materials]


def thickest(materials: Sequence[Any], d: float, gravity: Any) -> float:
    """Largest viscosity of all, the numerical one included [m^2/s]."""
    own = [getattr(material, "viscosity", 0.0) for material in materials]
    return max((a + b for a, b in zip(own, numerical(materials, d, gravity), strict=True)), default=0.0)


def tables(world: World) -> tuple[ti.Ndarray, ti.Ndarray, ti.Ndarray]:
    """For each body: its own kinematic viscosity, which walls feel, its density, and the dynamic viscosity of pairs,
    the numerical one included."""
    nu, rho = material_table(world, "viscosity"), material_table(world, "density")
    extra = np.array(numerical(world.materials, world.spacing, world.gravity))
    return nu, rho, upload((nu.to_numpy() + extra) * rho.to_numpy(), ti.f32)


def use_implicit(materials: Sequence[Any], settings: Any) -> bool:
    """One solver for the whole scene: implicit when a material asks for it or is too thick for explicit steps."""
    asked = {getattr(m, "viscosity_solver", "auto") for m in materials if getattr(m, "viscosity", 0.0) > 0.0}
    d = 2 * settings.particle_radius
    largest = thickest(materials, d, settings.gravity)
    too_thick = largest * (settings.dt or settings.max_dt) > STABLE * d * d
    return "implicit" in asked or ("explicit" not in asked and too_thick)


@ti.func
def drag_of(i: ti.i32, v: vec3, nu: ti.f32, drag: Reals, gradient: Vectors):
    """Tangential wall drag on velocity v (relative to the wall)."""
    result = vec3(0.0)
    if drag[i] > 0.0:
        normal = gradient[i].normalized()
        result = nu * drag[i] * (v - v.dot(normal) * normal)
    return result


@ti.kernel
def _explicit(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
              factor: RealTable, material: Ints, mu: Reals, nu: Reals, inverse_density: Reals, drag: Reals,
              gradient: Vectors, wall_v: Vectors, slide: Vectors, v: Vectors, out: Vectors):  # fmt: skip
    for i in range(n):
        total = vec3(0.0)
        for k in range(count[i]):
            j = neighbor[i, k]
            total -= (mu[material[i]] + mu[material[j]]) * factor[i, k] * (v[j] - v[i])
        moving = drag_of(i, v[i] - wall_v[i], nu[material[i]], drag, gradient)
        moving *= ti.select(inverse_density[i] > 0.0, 1.0, 0.0)
        slide[i] -= moving
        out[i] = inverse_density[i] * total - moving


@ti.kernel
def _add(n: ti.i32, dt: ti.f32, a: Vectors, v: Vectors):
    for i in range(n):
        v[i] += dt * a[i]


class ExplicitViscosity(Force):
    """v += dt nu laplace v, with the wall drag taken at the old velocity."""

    name, rank = "viscosity", 10
    fields: ClassVar = (Field("viscous_a", "vector", "m/s^2", "acceleration by viscosity"),)

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        thick = thickest(materials, 2 * settings.particle_radius, settings.gravity)
        return thick > 0.0 and not use_implicit(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.nu, self.rho, self.mu = tables(world)

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        _explicit(p.n, *w.neighbors.pairs, p.material, self.mu, self.nu, p.inverse_density, p.wall_drag,
                  p.wall_gradient, p.wall_velocity, p.wall_slide, p.v, p.viscous_a)  # fmt: skip
        _add(p.n, dt, p.viscous_a, p.v)

    def max_dt(self) -> float:
        w = self.world
        return STABLE * w.spacing**2 / thickest(w.materials, w.spacing, w.gravity)


@ti.kernel
def _apply(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints,
           neighbor: IntTable, factor: RealTable, core: ti.f32, dt: ti.f32, material: Ints, mu: Reals, nu: Reals,
           rho: Reals, inverse_density: Reals, V: Reals, drag: Reals, gradient: Vectors, u: Vectors,
           out: Vectors):  # fmt: skip
    """out = V (rho u - dt viscous force density of u): the symmetric matrix of the implicit step; rows of particles
    with prescribed motion are left empty."""
    for i in range(n):
        total = vec3(0.0)
        for k in range(count[i]):
            j = neighbor[i, k]
            dx = difference(x[i], x[j], wraps, period)
            pair = 0.5 * WEILER * (mu[material[i]] + mu[material[j]]) * factor[i, k] / (dx.dot(dx) + core)
            total -= pair * (u[j] - u[i]).dot(dx) * dx
        total -= rho[material[i]] * drag_of(i, u[i], nu[material[i]], drag, gradient)
        out[i] = ti.select(inverse_density[i] > 0.0, V[i] * (rho[material[i]] * u[i] - dt * total), vec3(0.0))


@ti.kernel
def _blocks(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints,
            neighbor: IntTable, factor: RealTable, core: ti.f32, dt: ti.f32, material: Ints, mu: Reals, nu: Reals,
            rho: Reals, inverse_density: Reals, V: Reals, drag: Reals, gradient: Vectors,
            inverse: Matrices):  # fmt: skip
    """Inverses of the 3 x 3 diagonal blocks of the matrix (Weiler et al. 2018, Section 3.3)."""
    for i in range(n):
        B = mat3(0.0)
        for k in range(count[i]):
            j = neighbor[i, k]
            dx = difference(x[i], x[j], wraps, period)
            pair = 0.5 * WEILER * (mu[material[i]] + mu[material[j]]) * factor[i, k] / (dx.dot(dx) + core)
            B -= pair * dx.outer_product(dx)
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
def _right_side(n: ti.i32, dt: ti.f32, material: Ints, mu: Reals, nu: Reals, rho: Reals, inverse_density: Reals,
                V: Reals, drag: Reals, gradient: Vectors, wall_v: Vectors, v: Vectors, carried: Vectors, out: Vectors,
                guess: Vectors):  # fmt: skip
    """V (rho v + dt wall drag towards the wall's velocity); the guess repeats the last step's change."""
    for i in range(n):
        pull = drag_of(i, wall_v[i], nu[material[i]], drag, gradient)
        out[i] = ti.select(inverse_density[i] > 0.0, V[i] * rho[material[i]] * (v[i] + dt * pull), vec3(0.0))
        guess[i] = v[i] + ti.select(inverse_density[i] > 0.0, carried[i], vec3(0.0))


@ti.kernel
def _sum_up(n: ti.i32, dt: ti.f32, material: Ints, mu: Reals, nu: Reals, rho: Reals, inverse_density: Reals, V: Reals,
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
    """(1 - dt nu laplace) v_new = v by conjugate gradients with 3 x 3 blocks (Weiler et al. 2018)."""

    name, rank = "viscosity", 10
    fields: ClassVar = (
        Field("viscous_change", "vector", "m/s", "change of velocity by viscosity, the next guess", carried=True),
        *(Field(f"cg_{name}", "vector", "", f"conjugate gradients: {name}")
          for name in ("solution", "residual", "direction", "image", "z")),
    )  # fmt: skip

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        thick = thickest(materials, 2 * settings.particle_radius, settings.gravity)
        return thick > 0.0 and use_implicit(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.nu, self.rho, self.mu = tables(world)
        self.inverse = ti.ndarray(mat3, world.particles.capacity)
        self.cg = ConjugateGradient(TOLERANCE, max_iterations=200)
        self._partial = np.zeros((BLOCKS, 12), np.float32)

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        if self.inverse.shape[0] < p.capacity:
            self.inverse = ti.ndarray(mat3, p.capacity)
        local = (dt, p.material, self.mu, self.nu, self.rho, p.inverse_density, p.V, p.wall_drag, p.wall_gradient)
        pairs = (*w.neighbors.pairs, CORE * w.spacing**2)
        _right_side(p.n, *local, p.wall_velocity, p.v, p.viscous_change, p.cg_residual, p.cg_solution)
        _blocks(p.n, *pairs, *local, self.inverse)
        iterations = self.cg.solve(
            p.n, p.cg_solution, p.cg_residual, p.cg_direction, p.cg_image, p.cg_z,
            multiply=lambda u, out: _apply(p.n, *pairs, *local, u, out),
            precondition=lambda r, z: _precondition(p.n, p.inverse_density, self.inverse, r, z),
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


