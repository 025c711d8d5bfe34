"""Elastic particles on the device: deformation gradients, stresses and forces (Kugelstadt et al. 2021, Sections 3, 4).

Bodies lie one after the other in the order in which their particles were made, which never changes. The energy of a
deformed state is

    E = sum_i mu V_i |F_i - R_i S_i|^2 + lambda V_i / 2 tr(R_i^T F_i - S_i)^2
        + alpha mu / 2 sum_ij V_i V_j W_ij / |X_ij|^2 |F_i X_ij - x_ij|^2

with the projection S_i = 1 except in sheets and threads (see `rest`). Its gradient takes two passes over pairs: the
first finds F_i and B_i = dE/dF_i, the second the forces

    f_i = V_i sum_j factor_ij (T_i + T_j) X_ij + sum_j hold_ij ((F_i + F_j) X_ij - 2 x_ij),    T_i = B_i L_i / V_i.

Particles with a prescribed motion stand for something rigid that holds the body: their part of the energy counts HELD
times. The body then begins midway between held and free particles, as it does in the drawing; without it, it would
begin 0.8 spacings further back.
"""

import dataclasses
from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Points, Reals, Vectors, mat3, upload, vec3, vec4
from pliant.core.particles import Particles
from pliant.core.reduce import BLOCKS
from pliant.core.speedups import light
from pliant.solvers.elasticity import strain
from pliant.solvers.elasticity.rest import Rest
from pliant.solvers.linear.cg import ConjugateGradient

HELD = 10.0  # how much stiffer what holds a body is than the body


@light
@ti.kernel
def find_places(n: ti.i32, slot: Ints, place: Ints):
    """Where each elastic particle is among all."""
    for i in range(n):
        if slot[i] >= 0:
            place[slot[i]] = i


@light
@ti.kernel
def predict_positions(n: ti.i32, place: Ints, inverse_density: Reals, weight: Reals, share: ti.f32, dt: ti.f32,
                      x: Vectors, v: Vectors, v_elastic: Vectors, x_predicted: Points, dv_external: Vectors,
                      dv: Vectors, correction: Vectors):  # fmt: skip
    """Where elastic particles, in their own order, would be after dt at the velocity that elasticity left them with,
    and what everything else has added to that since, as if over all of dt."""
    for e in range(n):
        i = place[e]
        if inverse_density[i] == 0.0:
            v_elastic[i] = v[i]
        x_predicted[e] = vec4(x[i] + dt * v_elastic[i], weight[e])
        dv_external[e] = (v[i] - v_elastic[i]) / share
        dv[e], correction[e] = vec3(0.0), vec3(0.0)


@light
@ti.kernel
def go_on(n: ti.i32, dt: ti.f32, correction: Vectors, dv: Vectors, x_predicted: Points):
    """Adds a correction to the changes of velocity, and to the positions ahead what it makes there."""
    for e in range(n):
        dv[e] += correction[e]
        x_predicted[e] += vec4(dt * correction[e], 0.0)


@light
@ti.kernel
def add_impulse(n: ti.i32, m: Reals, dv_external: Vectors, dv: Vectors, force: Vectors):
    """dt f + m (dv_external - dv): the impulse not yet answered."""
    for e in range(n):
        force[e] += m[e] * (dv_external[e] - dv[e])


@light
@ti.kernel
def precondition(n: ti.i32, m: Reals, free: Ints, residual: Vectors, z: Vectors):
    for e in range(n):
        z[e] = ti.select(free[e] != 0, residual[e] / m[e], vec3(0.0))


@light
@ti.kernel
def settle(n: ti.i32, share: ti.f32, place: Ints, inverse_density: Reals, dv: Vectors, v_elastic: Vectors, v: Vectors):
    for e in range(n):
        i = place[e]
        if inverse_density[i] > 0.0:
            v[i] = v_elastic[i] + share * dv[e]
            v_elastic[i] = v[i]


@dataclasses.dataclass(frozen=True)
class Law:
    """Lamé's constants of one body [Pa] and its zero-energy stiffness alpha."""

    shear: float
    lame_lambda: tuple[float, float, float, float]  # by the number of directions that have neighbors
    zero_energy: float

    @classmethod
    def of(cls, material: Any) -> "Law":
        return cls(material.shear, tuple(material.lame_lambda(k) for k in range(4)),
                   material.zero_energy)  # type: ignore[arg-type]  # fmt: skip


class ElasticBodies:
    """All elastic particles of a scene, as arrays that kernels take."""

    def __init__(self, particles: Particles, rests: list[Rest], solids: list[int], wraps: bool, period: ti.Ndarray):
        """`solids` are the numbers of the bodies."""
        self.particles, self.solids, self.wraps, self.period = particles, solids, wraps, period
        self.starts = np.concatenate([[0], np.cumsum([rest.n for rest in rests])])
        self.n = n = int(self.starts[-1])
        particles.slot.fill(-1)
        self.write("slot", np.arange(n))
        self.place = ti.ndarray(ti.i32, n)
        self.pushed = ti.ndarray(ti.i32, n)  # whether there is something that presses on it
        self._upload(rests)
        self.mass = upload(self.read("m"), ti.f32)
        self.dv_external, self.force, self.dv, self.correction = (ti.ndarray(vec3, n) for _ in range(4))
        self.x_predicted, self.columns = ti.ndarray(vec4, n), ti.ndarray(vec4, 6 * n)
        self.F, self.R = ti.ndarray(mat3, n), ti.ndarray(mat3, n)
        self.shear, self.lame_lambda, self.none = (ti.ndarray(ti.f32, n) for _ in range(3))
        self.none.fill(0.0)
        self.spring: ti.Ndarray | None = None  # where zero-energy modes are held explicitly
        self.weight, self.free = ti.ndarray(ti.f32, n), ti.ndarray(ti.i32, n)
        self.partial = ti.ndarray(ti.f32, BLOCKS)

    @property
    def rows(self) -> np.ndarray:
        """Where the particles are among all now, in their own order."""
        return np.concatenate([self.particles.rows_of(b) for b in self.solids])

    def read(self, name: str) -> np.ndarray:
        """A field of the particles, in their own order."""
        return self.particles.read(name, self.rows)

    def write(self, name: str, values: np.ndarray) -> None:
        self.particles.write(name, self.rows, values)

    def _upload(self, rests: list[Rest]) -> None:
        self.rests = rests
        counts = np.concatenate([np.bincount(rest.i, minlength=rest.n) for rest in rests])
        pairs = zip(rests, self.starts[:-1], strict=True)
        self.start = upload(np.concatenate([[0], np.cumsum(counts)]), ti.i32)
        self.neighbor = upload(np.concatenate([rest.j + first for rest, first in pairs]), ti.i32)
        self.factor = upload(np.concatenate([rest.V[rest.j] * rest.slope for rest in rests]), ti.f32)
        self.zero_energy = ti.ndarray(ti.f32, max(int(counts.sum()), 1))
        self.X = upload(np.concatenate([np.pad(rest.X, ((0, 0), (0, 1))) for rest in rests]), vec4)
        self.V = upload(np.concatenate([rest.V for rest in rests]), ti.f32)
        self.L = upload(np.concatenate([rest.L for rest in rests]), mat3)
        self.S = upload(np.concatenate([rest.S for rest in rests]), mat3)
        self.second = ti.ndarray(mat3, self.n)
        self.rank = upload(np.concatenate([rest.rank for rest in rests]).astype(float), ti.f32)

    def set_laws(self, laws: list[Law], free: np.ndarray, explicit_step: float | None = None) -> list[float]:
        """Gives each body its stiffness, and held particles their weight. With an `explicit_step` [s] zero-energy modes
        are held explicitly, by what of alpha is stable at this step; returns these shares, one for each body."""
        self.weight.from_numpy(np.where(free, 1.0, HELD).astype(np.float32))
        self.free.from_numpy(free.astype(np.int32))
        pairs = list(zip(self.rests, laws, strict=True))
        self.shear.from_numpy(np.concatenate([2 * law.shear * rest.V for rest, law in pairs]).astype(np.float32))
        volume_terms = [np.asarray(law.lame_lambda)[rest.rank] * rest.V for rest, law in pairs]
        self.lame_lambda.from_numpy(np.concatenate(volume_terms).astype(np.float32))
        springs = [law.zero_energy * law.shear * rest.zero_energy_weight for rest, law in pairs]
        shares = [1.0] * len(pairs)
        if explicit_step is not None:
            mass = np.split(self.mass.to_numpy()[: self.n], self.starts[1:-1])
            shares = [_stable(rest, s, m, explicit_step) for (rest, _), s, m in zip(pairs, springs, mass, strict=True)]
            self.spring = upload(np.concatenate([a * s for a, s in zip(shares, springs, strict=True)]), ti.f32)
            springs = [0.0 * s for s in springs]
        if any(map(len, springs)):
            self.zero_energy.from_numpy(np.concatenate(springs).astype(np.float32))
        second = [(s.any() * law.zero_energy * law.shear) * rest.second
                  for (rest, law), s in zip(pairs, springs, strict=True)]  # fmt: skip
        self.second.from_numpy(np.concatenate(second).astype(np.float32))
        return shares

    @property
    def pairs(self) -> tuple:
        return (self.wraps, self.period, self.X, self.start, self.neighbor)

    def find_places(self) -> None:
        """Takes over where the particles are among all, after they were sorted."""
        find_places(self.particles.n, self.particles.slot, self.place)

    def predict_positions(self, dt: float, share: float = 1.0) -> None:
        """Finds where the particles would be after dt [s], and what acted on them in the last `share` of dt."""
        p = self.particles
        predict_positions(self.n, self.place, p.inverse_density, self.weight, share, dt, p.x, p.v, p.v_elastic,
                          self.x_predicted, self.dv_external, self.dv, self.correction)  # fmt: skip

    def find_forces(self, scale: float, volume: bool = True) -> None:
        """`force`: scale times the elastic force at `x_predicted`, with the volume term or without."""
        strain.sum_strain(self.n, *self.pairs, self.factor, self.zero_energy, self.x_predicted, self.columns)
        strain.measure_strain(self.n, self.L, self.S, self.second, self.shear,
                              self.lame_lambda if volume else self.none, self.rank, self.V, self.x_predicted, self.F,
                              self.R, self.columns)  # fmt: skip
        strain.find_forces(self.n, *self.pairs, self.factor, self.zero_energy, self.V, self.x_predicted, self.columns,
                           scale, self.force)  # fmt: skip
        if self.spring is not None:
            strain.add_zero_energy_forces(self.n, *self.pairs, self.spring, self.x_predicted, self.F, scale,
                                          self.force)  # fmt: skip

    def accept(self, dt: float) -> None:
        """Adds `correction` to `dv`, and takes it along in `x_predicted`."""
        go_on(self.n, dt, self.correction, self.dv, self.x_predicted)

    def press(self) -> None:
        """T of the volume term alone, where `find_forces` has been."""
        strain.press(self.n, self.L, self.S, self.lame_lambda, self.rank, self.V, self.x_predicted, self.F, self.R,
                     self.columns)  # fmt: skip

    def resist(self, m: ti.Ndarray, u: ti.Ndarray, scale: float, out: ti.Ndarray) -> None:
        """out = m u - scale times the force of T, on free particles."""
        strain.resist(self.n, *self.pairs, self.factor, self.V, m, self.free, self.columns, u, scale, out)

    def iterate(self, cg: ConjugateGradient, dt: float, shear: ti.Ndarray, residual: ti.Ndarray, direction: ti.Ndarray,
                image: ti.Ndarray, z: ti.Ndarray) -> int:  # fmt: skip
        """Solves (M + dt^2 H) correction = residual from the guess in `correction`, with Hooke's law for `shear` and
        Lamé's lambda in the frames R; returns the number of iterations."""

        def multiply(u: ti.Ndarray, out: ti.Ndarray) -> None:
            strain.respond(self.n, *self.pairs, self.factor, self.L, self.S, self.R, shear, self.lame_lambda, self.V,
                           self.x_predicted, u, self.columns)  # fmt: skip
            self.resist(self.mass, u, dt * dt, out)

        return cg.solve(self.n, self.correction, residual, direction, image, z, multiply,
                        lambda r, z: precondition(self.n, self.mass, self.free, r, z))  # fmt: skip

    def energy(self) -> float:
        """Elastic energy of the present state [J]."""
        self.find_places()
        self.predict_positions(0.0)
        self.find_forces(1.0)
        strain.sum_energy(self.n, *self.pairs, self.zero_energy, self.S, self.shear, self.lame_lambda, self.rank,
                          self.x_predicted, self.F, self.R, self.partial)  # fmt: skip
        return float(self.partial.to_numpy().sum(dtype=float))


def _stable(rest: Rest, springs: np.ndarray, mass: np.ndarray, dt: float) -> float:
    """The share of these springs that explicit steps dt can bear."""
    stiffest = float((np.bincount(rest.i, 2 * springs, rest.n) / mass).max(initial=0.0)) * dt**2
    return min(1.0, 1.0 / stiffest) if stiffest > 0 else 1.0
