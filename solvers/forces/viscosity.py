"""Viscosity: what both forms share, and the explicit form for thin liquids. The implicit one, for thick liquids, is in
`implicit_viscosity`. Both take the kinematic viscosity.

Explicit (Morris et al. 1997), with the dynamic viscosity mu averaged over the pair:

    rho_i a_i = sum_j 2 mu |G_ij| / r_ij (v_j - v_i).

On the rest lattice it gives 1.02 times the true Laplacian of a shear flow, in disorder 0.99.

To the viscosity of the liquid comes a numerical one, damping d sqrt(|g| d): an incompressible fluid of particles keeps
energy so well that the motion of particles about their places, once there, would go on for ever. Walls do not feel it.

It acts after gravity and after the pressures of the last step (as in incremental pressure correction, van Kan 1986):
what is at rest is then at rest. Where it meets velocities before the pressures do, all falls by dt g between two
solves, and walls, floats and stirrers drag on that: an error of first order in the step, and not a small one in thick
liquids.

No-slip walls pull on tangential velocities with the shear stress mu (v - v_wall) / phi on a particle's share of wall.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Points, Reals, Spans, Vectors, set_vector, upload, vec3, vec4, vector_at
from pliant.core.fields import Field
from pliant.core.neighbors import STRIDE
from pliant.core.speedups import with_vectors
from pliant.core.world import World
from pliant.solvers.stage import Force, material_table

STABLE = 0.1  # explicit steps are kept below this times d^2 / nu (Morris et al. 1997 use 0.125 h^2 / nu)


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
        normal = vector_at(gradient, i).normalized()
        result = nu * drag[i] * (v - v.dot(normal) * normal)
    return result


@with_vectors
@ti.kernel
def _explicit(n: ti.i32, dt: ti.f32, span: Spans, neighbor: Ints, factor: Reals, material: Ints, mu: Reals, nu: Reals,
              inverse_density: Reals, drag: Reals, gradient: Vectors, wall_v: Vectors, slide: Vectors, flow: Points,
              v: Vectors):  # fmt: skip
    """`flow` is velocity and viscosity, in one vector for the sum over pairs (see `pressure.system`)."""
    for i in range(n):
        flow[i] = vec4(vector_at(v, i), mu[material[i]])
    for i in range(n):
        own, even, odd = flow[i], vec4(0.0), vec4(0.0)
        k = span[i][0]
        while k < span[i][1]:  # as `neighbors.sum_row`
            one, two = flow[neighbor[k]], flow[neighbor[k + 1]]
            even += ((own[3] + one[3]) * factor[k]) * (own - one)
            odd += ((own[3] + two[3]) * factor[k + 1]) * (own - two)
            k += STRIDE
        stress = even + odd
        velocity = vec3(own[0], own[1], own[2])
        moving = drag_of(i, velocity - vector_at(wall_v, i), nu[material[i]], drag, gradient)
        moving *= ti.select(inverse_density[i] > 0.0, 1.0, 0.0)
        set_vector(slide, i, vector_at(slide, i) - moving)
        change = dt * (inverse_density[i] * vec3(stress[0], stress[1], stress[2]) - moving)
        set_vector(v, i, velocity + change)


class ExplicitViscosity(Force):
    """v += dt nu laplace v, with the wall drag taken at the old velocity."""

    name, place, rank = "viscosity", "warm start", 10  # after the pressures of the last step
    fields: ClassVar = (
        Field("flow", "point", "m/s, Pa s", "velocity, and viscosity"),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        thick = thickest(materials, 2 * settings.particle_radius, settings.gravity)
        return thick > 0.0 and not use_implicit(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.nu, self.rho, self.mu = tables(world)

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        near = w.neighbors
        _explicit(p.n, dt, near.span, near.neighbor, near.factor, p.material, self.mu, self.nu, p.inverse_density,
                  p.wall_drag, p.wall_gradient, p.wall_velocity, p.wall_slide, p.flow, p.v)  # fmt: skip

    def max_dt(self) -> float:
        w = self.world
        return STABLE * w.spacing**2 / thickest(w.materials, w.spacing, w.gravity)
