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

from pliant.core.backend import Ints, IntTable, Matrices, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.neighbors import difference
from pliant.core.particles import Particles
from pliant.core.reduce import BLOCKS, block
from pliant.core.rotation import rotation_of
from pliant.solvers.elasticity.rest import Rest, fold
from pliant.solvers.linear.cg import ConjugateGradient

LANES = 16  # rows of rest neighbors are filled up to a multiple of this, for loops in full vectors
HELD = 10.0  # how much stiffer what holds a body is than the body


@ti.func
def gradient_of(e: ti.i32, wraps: ti.template(), period: ti.template(), X: ti.template(), count: ti.template(),
                neighbor: ti.template(), factor: ti.template(), u: ti.template(), L: ti.template()):  # fmt: skip
    """sum_j (u_j - u_e) g_ej^T: the gradient of u with respect to the rest positions."""
    total = mat3(0.0)
    for k in range(count[e]):
        j = neighbor[e, k]
        Xij = difference(X[e], X[j], wraps, period)
        total -= (factor[e, k] * difference(u[e], u[j], wraps, period)).outer_product(Xij)
    return total @ L[e]


@ti.func
def stress_of(F: mat3, R: mat3, S: mat3, shear: ti.f32, lame_lambda: ti.f32, rank: ti.f32):
    """V P: derivative of the elastic energy with respect to F, at a fixed R (Eq. 14, 16)."""
    trace = 0.0
    for a, b in ti.static(ti.ndrange(3, 3)):
        trace += R[a, b] * F[a, b]
    return shear * (F - R @ S) + lame_lambda * (trace - rank) * (R @ S)


@ti.kernel
def measure_strain(n: ti.i32, wraps: ti.template(), period: Vectors, X: Vectors, count: Ints, neighbor: IntTable,
                   factor: RealTable, zero_energy: RealTable, L: Matrices, S: Matrices, second: Matrices, shear: Reals,
                   lame_lambda: Reals, rank: Reals, V: Reals, weight: Reals, x: Vectors, F: Matrices, R: Matrices,
                   T: Matrices):  # fmt: skip
    """Deformation gradients, rotations, and T from positions x."""
    for e in range(n):
        stretched, held = mat3(0.0), mat3(0.0)
        for k in range(count[e]):
            j = neighbor[e, k]
            Xij = difference(X[e], X[j], wraps, period)
            pair = difference(x[e], x[j], wraps, period).outer_product(Xij)
            stretched -= factor[e, k] * pair
            held += zero_energy[e, k] * pair
        F[e] = stretched @ L[e]
        R[e] = rotation_of(F[e])
        B = stress_of(F[e], R[e], S[e], shear[e], lame_lambda[e], rank[e]) + F[e] @ second[e] - held
        T[e] = weight[e] / V[e] * (B @ L[e])


@ti.kernel
def find_forces(n: ti.i32, wraps: ti.template(), period: Vectors, X: Vectors, count: Ints, neighbor: IntTable,
                factor: RealTable, zero_energy: RealTable, V: Reals, weight: Reals, x: Vectors, F: Matrices,
                T: Matrices, scale: ti.f32, f: Vectors):  # fmt: skip
    """`scale` times the elastic forces."""
    for e in range(n):
        total = vec3(0.0)
        for k in range(count[e]):
            j = neighbor[e, k]
            Xij = difference(X[e], X[j], wraps, period)
            spring, a, b = zero_energy[e, k], weight[e], weight[j]
            total += (V[e] * factor[e, k] * (T[e] + T[j]) + spring * (a * F[e] + b * F[j])) @ Xij
            total -= spring * (a + b) * difference(x[e], x[j], wraps, period)
        f[e] = scale * total


@ti.kernel
def add_zero_energy_forces(n: ti.i32, wraps: ti.template(), period: Vectors, X: Vectors, count: Ints,
                           neighbor: IntTable, spring: RealTable, x: Vectors, F: Matrices, scale: ti.f32,
                           f: Vectors):  # fmt: skip
    """Adds `scale` times Ganzenmüller's forces (2015, Eq. 15): the error of each pair, along the line between them."""
    for e in range(n):
        total = vec3(0.0)
        for k in range(count[e]):
            j = neighbor[e, k]
            if j != e:
                xij = difference(x[e], x[j], wraps, period)
                error = (F[e] + F[j]) @ difference(X[e], X[j], wraps, period) - 2.0 * xij
                total += 0.5 * spring[e, k] * error.dot(xij) / ti.max(xij.norm_sqr(), 1e-30) * xij
        f[e] += scale * total


@ti.kernel
def sum_energy(n: ti.i32, wraps: ti.template(), period: Vectors, X: Vectors, count: Ints, neighbor: IntTable,
               zero_energy: RealTable, S: Matrices, shear: Reals, lame_lambda: Reals, rank: Reals, weight: Reals,
               x: Vectors, F: Matrices, R: Matrices, partial: Reals):  # fmt: skip
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        total = 0.0
        for e in range(lo, hi):
            trace = -rank[e]
            for a, b in ti.static(ti.ndrange(3, 3)):
                trace += R[e][a, b] * F[e][a, b]
            own = 0.5 * shear[e] * (F[e] - R[e] @ S[e]).norm_sqr() + 0.5 * lame_lambda[e] * trace**2
            for k in range(count[e]):
                j = neighbor[e, k]
                error = F[e] @ difference(X[e], X[j], wraps, period) - difference(x[e], x[j], wraps, period)
                own += 0.5 * zero_energy[e, k] * error.norm_sqr()
            total += weight[e] * own
        partial[s] = total


@ti.kernel
def find_places(n: ti.i32, slot: Ints, place: Ints):
    """Where each elastic particle is among all."""
    for i in range(n):
        if slot[i] >= 0:
            place[slot[i]] = i


@ti.kernel
def predict_positions(n: ti.i32, place: Ints, inverse_density: Reals, share: ti.f32, dt: ti.f32, x: Vectors, v: Vectors,
                      v_elastic: Vectors, x_predicted: Vectors, dv_external: Vectors, dv: Vectors,
                      correction: Vectors):  # fmt: skip
    """Where elastic particles, in their own order, would be after dt at the velocity that elasticity left them with,
    and what everything else has added to that since, as if over all of dt."""
    for e in range(n):
        i = place[e]
        if inverse_density[i] == 0.0:
            v_elastic[i] = v[i]
        x_predicted[e] = x[i] + dt * v_elastic[i]
        dv_external[e] = (v[i] - v_elastic[i]) / share
        dv[e], correction[e] = vec3(0.0), vec3(0.0)


@ti.kernel
def go_on(n: ti.i32, dt: ti.f32, correction: Vectors, dv: Vectors, x_predicted: Vectors):
    """Adds a correction to the changes of velocity, and to the positions ahead what it makes there."""
    for e in range(n):
        dv[e] += correction[e]
        x_predicted[e] += dt * correction[e]


@ti.kernel
def add_impulse(n: ti.i32, m: Reals, dv_external: Vectors, dv: Vectors, force: Vectors):
    """dt f + m (dv_external - dv): the impulse not yet answered."""
    for e in range(n):
        force[e] += m[e] * (dv_external[e] - dv[e])


@ti.kernel
def press(n: ti.i32, L: Matrices, S: Matrices, lame_lambda: Reals, rank: Reals, V: Reals, weight: Reals, F: Matrices,
          R: Matrices, T: Matrices):  # fmt: skip
    """T of the volume term alone (Eq. 16)."""
    for e in range(n):
        trace = -rank[e]
        for a, b in ti.static(ti.ndrange(3, 3)):
            trace += R[e][a, b] * F[e][a, b]
        T[e] = weight[e] / V[e] * lame_lambda[e] * trace * (R[e] @ S[e] @ L[e])


@ti.kernel
def respond(n: ti.i32, wraps: ti.template(), period: Vectors, X: Vectors, count: Ints, neighbor: IntTable,
            factor: RealTable, L: Matrices, S: Matrices, R: Matrices, shear: Reals, lame_lambda: Reals, V: Reals,
            weight: Reals, u: Vectors, T: Matrices):  # fmt: skip
    """T of small displacements u on top of a state with the rotations R: Hooke's law in the rotated frame."""
    for e in range(n):
        G = R[e].transpose() @ gradient_of(e, wraps, period, X, count, neighbor, factor, u, L)
        B = 0.5 * shear[e] * (G + G.transpose()) @ S[e] + lame_lambda[e] * G.trace() * S[e]
        T[e] = weight[e] / V[e] * (R[e] @ B @ L[e])


@ti.kernel
def resist(n: ti.i32, wraps: ti.template(), period: Vectors, X: Vectors, count: Ints, neighbor: IntTable,
           factor: RealTable, V: Reals, m: Reals, free: Ints, T: Matrices, u: Vectors, scale: ti.f32,
           out: Vectors):  # fmt: skip
    """M u - scale f(T): the matrix of an implicit step on free particles, zero on the others."""
    for e in range(n):
        total = vec3(0.0)
        for k in range(count[e]):
            j = neighbor[e, k]
            total += factor[e, k] * ((T[e] + T[j]) @ difference(X[e], X[j], wraps, period))
        out[e] = ti.select(free[e] != 0, m[e] * u[e] - scale * V[e] * total, vec3(0.0))


@ti.kernel
def precondition(n: ti.i32, m: Reals, free: Ints, residual: Vectors, z: Vectors):
    for e in range(n):
        z[e] = ti.select(free[e] != 0, residual[e] / m[e], vec3(0.0))


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
        self.x_predicted, self.dv_external, self.force = (ti.ndarray(vec3, n) for _ in range(3))
        self.dv, self.correction = ti.ndarray(vec3, n), ti.ndarray(vec3, n)
        self.F, self.R, self.T = (ti.ndarray(mat3, n) for _ in range(3))
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
        folded = [fold(rest, LANES) for rest in rests]
        width = max(neighbor.shape[1] for _, neighbor, _ in folded)
        self.rests = rests
        self._pairs = [pair for _, _, pair in folded]
        neighbor = np.concatenate([_widen(t + np.int32(s), width, s) for (_, t, _), s in
                                   zip(folded, self.starts, strict=False)])  # fmt: skip
        self.count = upload(np.concatenate([count for count, _, _ in folded]), ti.i32)
        self.neighbor = upload(neighbor, ti.i32)
        self._width = width
        self.factor = upload(self._table([rest.V[rest.j] * rest.slope for rest in rests]), ti.f32)
        self.zero_energy = ti.ndarray(ti.f32, (self.n, width))
        self.X = upload(np.concatenate([rest.X for rest in rests]), vec3)
        self.V = upload(np.concatenate([rest.V for rest in rests]), ti.f32)
        self.L = upload(np.concatenate([rest.L for rest in rests]), mat3)
        self.S = upload(np.concatenate([rest.S for rest in rests]), mat3)
        self.second = ti.ndarray(mat3, self.n)
        self.rank = upload(np.concatenate([rest.rank for rest in rests]).astype(float), ti.f32)

    def _table(self, weights: list[np.ndarray]) -> np.ndarray:
        """Weights of pairs as a padded table."""
        rows = [np.append(w, 0.0)[pair] for w, pair in zip(weights, self._pairs, strict=True)]
        return np.concatenate([np.pad(r, ((0, 0), (0, self._width - r.shape[1]))) for r in rows])

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
            self.spring = upload(self._table([a * s for a, s in zip(shares, springs, strict=True)]), ti.f32)
            springs = [0.0 * s for s in springs]
        self.zero_energy.from_numpy(self._table(springs).astype(np.float32))
        second = [(s.any() * law.zero_energy * law.shear) * rest.second
                  for (rest, law), s in zip(pairs, springs, strict=True)]  # fmt: skip
        self.second.from_numpy(np.concatenate(second).astype(np.float32))
        return shares

    @property
    def pairs(self) -> tuple:
        return (self.wraps, self.period, self.X, self.count, self.neighbor)

    def find_places(self) -> None:
        """Takes over where the particles are among all, after they were sorted."""
        find_places(self.particles.n, self.particles.slot, self.place)

    def predict_positions(self, dt: float, share: float = 1.0) -> None:
        """Finds where the particles would be after dt [s], and what acted on them in the last `share` of dt."""
        p = self.particles
        predict_positions(self.n, self.place, p.inverse_density, share, dt, p.x, p.v, p.v_elastic, self.x_predicted,
                          self.dv_external, self.dv, self.correction)  # fmt: skip

    def find_forces(self, scale: float, volume: bool = True) -> None:
        """`force`: scale times the elastic force at `x_predicted`, with the volume term or without."""
        measure_strain(self.n, *self.pairs, self.factor, self.zero_energy, self.L, self.S, self.second, self.shear,
                       self.lame_lambda if volume else self.none, self.rank, self.V, self.weight, self.x_predicted,
                       self.F, self.R, self.T)  # fmt: skip
        find_forces(self.n, *self.pairs, self.factor, self.zero_energy, self.V, self.weight, self.x_predicted, self.F,
                    self.T, scale, self.force)  # fmt: skip
        if self.spring is not None:
            add_zero_energy_forces(self.n, *self.pairs, self.spring, self.x_predicted, self.F, scale, self.force)

    def accept(self, dt: float) -> None:
        """Adds `correction` to `dv`, and takes it along in `x_predicted`."""
        go_on(self.n, dt, self.correction, self.dv, self.x_predicted)

    def resist(self, m: ti.Ndarray, u: ti.Ndarray, scale: float, out: ti.Ndarray) -> None:
        """out = m u - scale times the force of `T`, on free particles."""
        resist(self.n, *self.pairs, self.factor, self.V, m, self.free, self.T, u, scale, out)

    def iterate(self, cg: ConjugateGradient, dt: float, shear: ti.Ndarray, residual: ti.Ndarray, direction: ti.Ndarray,
                image: ti.Ndarray, z: ti.Ndarray) -> int:  # fmt: skip
        """Solves (M + dt^2 H) correction = residual from the guess in `correction`, with Hooke's law for `shear` and
        Lamé's lambda in the frames R; returns the number of iterations."""

        def multiply(u: ti.Ndarray, out: ti.Ndarray) -> None:
            respond(self.n, *self.pairs, self.factor, self.L, self.S, self.R, shear, self.lame_lambda, self.V,
                    self.weight, u, self.T)  # fmt: skip
            self.resist(self.mass, u, dt * dt, out)

        return cg.solve(self.n, self.correction, residual, direction, image, z, multiply,
                        lambda r, z: precondition(self.n, self.mass, self.free, r, z))  # fmt: skip

    def energy(self) -> float:
        """Elastic energy of the present state [J]."""
        self.find_places()
        self.predict_positions(0.0)
        self.find_forces(1.0)
        sum_energy(self.n, *self.pairs, self.zero_energy, self.S, self.shear, self.lame_lambda, self.rank, self.weight,
                   self.x_predicted, self.F, self.R, self.partial)  # fmt: skip
        return float(self.partial.to_numpy().sum(dtype=float))


def _stable(rest: Rest, springs: np.ndarray, mass: np.ndarray, dt: float) -> float:
    """The share of these springs that explicit steps dt can bear."""
    stiffest = float((np.bincount(rest.i, 2 * springs, rest.n) / mass).max(initial=0.0)) * dt**2
    return min(1.0, 1.0 / stiffest) if stiffest > 0 else 1.0


def _widen(table: np.ndarray, width: int, start: int) -> np.ndarray:
    """Fills rows up with the particle itself."""
    own = np.repeat(np.arange(start, start + len(table), dtype=np.int32)[:, None], width, axis=1)
    own[:, : table.shape[1]] = table
    return own
