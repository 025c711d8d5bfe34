"""Micropolar fluids: particles that spin, and hand their spin on to the flow.

A spin omega [rad/s] of its own lets a particle hold rotation that is too fine for velocities (Bender et al. 2019,
"Turbulent micropolar SPH fluids with foam"). With the microinertia Theta [m^2] and the transfer coefficient nu_t

    Dv/Dt       = ... + nu_t curl omega - nu_t / 2 curl curl v,
    Theta Dw/Dt =       nu_t (curl v - 2 omega).

The published form leaves out the last term of the first line, and takes plain SPH sums for both curls; then neither
energy nor angular momentum balance. Here all follows from one dissipation, half of whose power is

    Phi = sum_i m_i nu_t / 4 |r_i|^2,    r_i = sum_j |G_ij| / r_ij (L_i x_ji) x (v_j - v_i - omega_i x x_ji),

the curl of what neighbors do beside turning with the spin of i: curl v - 2 omega inside, for L_i is the inverse of
M_i = sum_j |G_ij| / r_ij x_ji x_ji^T, which makes the curl exact for linear flows (near singular matrices have M (M^2 +
EPSILON^2)^-1 in place of the inverse). Its derivatives, with theta_i = rho_i nu_t r_i / 2, are

    rho_i a_i               = sum_j |G_ij| / r_ij (theta_i x L_i x_ji + theta_j x L_j x_ji),
    rho_i Theta d omega_i   = (tr(L_i M_i) - L_i M_i) theta_i dt.

Forces are opposite in each pair: m v is kept. A rotation v = w x x, omega = w changes no r_i, whatever L_i, so that
m x cross v + m Theta omega is kept as well, to round-off. And m (v^2 + Theta omega^2) / 2 can only fall, by 2 Phi; it
does not in a flow whose spins have caught up with it. What a vortex then has in addition is inertia, Theta / 4 (curl
v)^2 against v^2, which keeps it turning while viscosity, numerical or not, slows it down: a wave of wave number k
decays 1 + Theta k^2 / 4 times as slowly. Spins begin at rest, and take their energy from the flow.

Measured: eddies of 4 spacings (16 in a periodic square of 1 m, 1 m/s, nu = 1e-3 m^2/s) lose kinetic energy at 1.5/s
without spins, at 1.2/s with nu_t = 0.02 and Theta = 2 d^2, at 0.6/s with 0.05 and 8 d^2; but in the first 0.2 s, while
spins come up, they lose 63 and 89 % of it in place of 53 %. It is no source of turbulence: a dam break over an obstacle
(d = 6 cm, nu_t = 0.02) has 0.76 times the enstrophy at 2 s.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import taichi as ti

from pliant.core.backend import Ints, Reals, Spans, SymmetricMatrices, Vectors, mat3, vec3, vec6
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.world import World
from pliant.solvers.pressure.system import packed, times
from pliant.solvers.stage import Force, material_table

EPSILON = 0.1  # of M, which is about 1 inside
# Explicit steps are kept below this times d^2 / nu_t, and times Theta / nu_t: spins relax at 2 nu_t / Theta.
STABLE = 0.2


@ti.kernel
def _slip(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
          factor: Reals, dt: ti.f32, material: Ints, nu: Reals, rho: Reals, inertia: Reals, inverse_density: Reals,
          v: Vectors, spin: Vectors, L: SymmetricMatrices, theta: Vectors):  # fmt: skip
    """L_i and theta_i; spins change."""
    for i in range(n):
        theta[i], L[i] = vec3(0.0), vec6(0.0)
        if nu[material[i]] > 0.0:
            M, B = mat3(0.0), mat3(0.0)
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                dx = difference(x[i], x[j], wraps, period)
                M -= factor[k] * dx.outer_product(dx)
                B -= factor[k] * dx.outer_product(v[i] - v[j] - spin[i].cross(dx))
            A = M @ M
            for a in ti.static(range(3)):
                A[a, a] += EPSILON**2
            A = A.inverse() @ M
            L[i] = packed(A)
            B = A @ B
            r = vec3(B[1, 2] - B[2, 1], B[2, 0] - B[0, 2], B[0, 1] - B[1, 0])
            theta[i] = 0.5 * rho[material[i]] * nu[material[i]] * r
            if inverse_density[i] > 0.0:
                A = A @ M
                spin[i] += dt * inverse_density[i] / inertia[material[i]] * (A.trace() * theta[i] - A @ theta[i])


@ti.kernel
def _transfer(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
              factor: Reals, dt: ti.f32, inverse_density: Reals, L: SymmetricMatrices, theta: Vectors,
              v: Vectors):  # fmt: skip
    for i in range(n):
        total = vec3(0.0)
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            dx = difference(x[i], x[j], wraps, period)
            total += factor[k] * (theta[i].cross(times(L[i], dx)) + theta[j].cross(times(L[j], dx)))
        v[i] += dt * inverse_density[i] * total


class Micropolar(Force):
    """v += dt (nu_t curl omega - nu_t / 2 curl curl v), omega += dt nu_t / Theta (curl v - 2 omega)."""

    name, rank = "micropolar", 20
    fields: ClassVar = (
        Field("spin", "vector", "rad/s", "angular velocity of particles of a micropolar fluid", carried=True),
        Field("micropolar_L", "symmetric", "1", "correction of the curls"),
        Field("micropolar_theta", "vector", "Pa", "half the transfer of spin"),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(getattr(material, "micropolar", 0.0) > 0.0 for material in materials)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.nu, self.rho = material_table(world, "micropolar"), material_table(world, "density")
        self.inertia = material_table(world, "microinertia")
        self.inertia.from_numpy(self.inertia.to_numpy() * world.spacing**2)

    def run(self, dt: float) -> None:
        """Changes velocities and spins."""
        w, p = self.world, self.world.particles
        _slip(p.n, *w.neighbors.pairs, dt, p.material, self.nu, self.rho, self.inertia, p.inverse_density, p.v, p.spin,
              p.micropolar_L, p.micropolar_theta)  # fmt: skip
        _transfer(p.n, *w.neighbors.pairs, dt, p.inverse_density, p.micropolar_L, p.micropolar_theta, p.v)

    def max_dt(self) -> float:
        bounds = [min(1.0, m.microinertia) / m.micropolar for m in self.world.materials
                  if getattr(m, "micropolar", 0.0) > 0.0]  # fmt: skip
        return STABLE * self.world.spacing**2 * min(bounds, default=float("inf"))
