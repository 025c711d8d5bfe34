"""Elastic solids after Peer et al. 2018: backward Euler, the whole system by conjugate gradients.

Each step solves (M + dt^2 H) dv = M dv_external + dt f(x + dt v), where H is Hooke's law in the frames rotated by R:
its symmetric strains and the volume at once. Nothing is factorised, so a step takes the more iterations the stiffer the
body and the longer the step. Zero-energy modes are held by Ganzenmüller's forces, explicitly, which bounds alpha times
the square of the step: what of `zero_energy` is stable is taken, and a note says how much that is.
"""

import taichi as ti

from pliant.core.backend import vec3
from pliant.core.options import param, positive
from pliant.solvers.elasticity.base import Elasticity, ElasticityOptions
from pliant.solvers.elasticity.body import add_impulse
from pliant.solvers.linear.cg import ConjugateGradient
from pliant.solvers.stage import SolveResult


class Peer2018(ElasticityOptions):
    """Elastic solids by conjugate gradients, after Peer et al. 2018: no factorisation, slower the stiffer."""

    tolerance: float = positive(1e-4, "relative residual at which the iteration ends", "1", high=0.1,
                                source="Peer et al. 2018 use 1e-3")  # fmt: skip
    max_iterations: int = param(500, "bound on the iterations of a step", kind="integer", low=1, high=100_000)

    @property
    def explicit_control(self) -> bool:
        return True


Peer = Peer2018  # its name in the last release


class PeerSolver(Elasticity):
    """All of elasticity in one iteration."""

    options = Peer2018

    def _take_bodies(self) -> None:
        super()._take_bodies()
        self.cg = ConjugateGradient(self.settings.tolerance, self.settings.max_iterations)
        if self.solids:
            self.direction, self.image, self.z = (ti.ndarray(vec3, self.bodies.n) for _ in range(3))

    def solve(self) -> None:
        bodies = self.bodies
        bodies.find_forces(self.dt)
        add_impulse(bodies.n, bodies.mass, bodies.dv_external, bodies.dv, bodies.force)
        self.momenta.part(bodies.force)
        bodies.correction.copy_from(bodies.dv_external)
        iterations = self.find_response()
        bodies.accept(self.settings.implicitness * self.dt)
        self.results["elasticity"] = SolveResult(iterations)

    def find_response(self) -> int:
        b, dt = self.bodies, self.dt * self.settings.implicitness**0.5
        return b.iterate(self.cg, dt, b.shear, b.force, self.direction, self.image, self.z)
