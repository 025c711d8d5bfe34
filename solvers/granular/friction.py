"""Friction inside matter that stands and flows: Drucker-Prager stresses, found together with the pressures.

A particle of sand bears a shear stress s, symmetric and without trace, of at most (Neder 2024, Eq. 17)

    |s| <= sqrt(2) (tan(theta) p + c)                                                           (Frobenius norm)

and whatever it bears opposes its rate of strain e, without trace as well (maximal dissipation): inside the bound e = 0,
on it s is parallel to e. Together with the pressure (see `system`) this is one complementarity problem for the stress
T = p - s of each particle, which accelerates by

    a_i = -1/rho0_i ( sum_j (T_i + T_j) G_ij + p_i b_i + r_i ),

r being the contact with the nearest wall. Across it a particle comes no closer than CONTACT, along it r opposes sliding
with at most mu times what presses. The adjoint is L_i = sum_j G_ij (v_i - v_j)^T: its trace is the growth of density,
and e = -dt (sym L)'. So all are solved in the same sweeps, each a step along the residuals and a projection:

    p <- max(0, p + step residual / D),   s <- s + step e / E, cut to the bound,   r <- r + step slip / w, cut,

w being inverse densities.

The step is the shorter of the two of Barzilai and Borwein 1988, <dT, K dT> / <K dT, K dT>. The longer one, which serves
the pressure alone, stirs up what is rough; sand that is stirred in every step creeps for ever.

Stresses are carried along by the particles. A pile at rest therefore starts every step from its own equilibrium, and
what imbalance the sweeps left in one step is what the next one starts with: it dies away, to speeds of 1e-6 m/s. For
this, what the sweeps leave must be less than what there is: their tolerance is a share of the motion (`tolerance`).

The pressure in the bound is the mean over the neighborhood, of the sweep before. Among packed particles some bear no
pressure for a while, as grains do between force chains; without this they would be free to slip, and piles would sag.
Of that mean pressure water in the pores bears its part, which rubs on nothing (`seepage`).
And it is for single particles at the toe of a pile, which reach rest density nowhere, that contact with walls is a
constraint of its own.

The coefficient. The thesis takes alpha = sqrt(2) sin(theta), at which a Mohr-Coulomb material of that angle in plane
strain yields. But a slope fails by shear along itself. The strain rate is then pure shear, and so is the stress that
opposes it: |s| = sqrt(2) tau and p = sigma_n, and the steepest slope is tau / sigma_n = alpha / sqrt(2). With the sine,
slopes of 45 and 60 degrees would stop at 35 and 41 degrees, with the tangent they stop at 45 and 60, as in the rheology
of dense flows (Jop et al. 2006). At rest, where stresses are free to choose, slopes may stand that are steeper: up to
arcsin(tan(theta)) if the stress across the plane is p, where from 45 degrees on any bank does, and up to a tangent of
t / sqrt(1 - 4/3 t^2), t = tan(theta), if that is free as well. So the way of pouring tells: slopes from 35 to 50
degrees may stand where theta is 35. A bound that depends on the Lode angle, more in triaxial compression as
Mohr-Coulomb has it, left that scatter as it was, and made deposits of round columns some 5 % higher and shorter. Above
50 degrees the coefficient is that of the cone around the Mohr-Coulomb pyramid, which is smaller then
(`Granular.yield_slope`).

On an elastic body, which bears no such stress itself but half of the pressure, that of the sand counts twice; and if
the body is smoother, with a coefficient mu below that of the sand, both feel only mu / tan(theta) of it. So mu p acts
along the surface at the bound. The adjoint has the same weights, and K is symmetric.

Cohesion c (Alduan and Otaduy 2011) bears shear without pressure, and tension: p >= -c, against parting only.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, RealTable, Spans, SymmetricMatrices, Vectors, upload, vec3, vec6
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import BodyGroup, World
from pliant.solvers.pressure import sweeps, system
from pliant.solvers.pressure.system import times

FIELDS = (
    Field("stress", "symmetric", "Pa", "friction: shear stress s", carried=True),
    Field("pore_pressure", "real", "Pa", "pressure of the water in its pores", carried=True),
    Field("wall_traction", "vector", "Pa/m", "friction: contact with the nearest wall r", carried=True),
    Field("change", "real", "Pa s^2", "friction: last change of dt^2 p"),
    Field("strain", "symmetric", "1", "friction: strain of this step, without trace"),
    Field("stress_change", "symmetric", "Pa s^2", "friction: last change of dt^2 T"),
    Field("wall_traction_change", "vector", "Pa s^2/m", "friction: last change of dt^2 r"),
    Field("mean_pressure", "real", "Pa s^2", "friction: dt^2 times the mean pressure around"),
    Field("pore", "real", "Pa s^2", "friction: dt^2 times the pore pressure"),
    Field("E", "real", "1/(Pa s^2)", "friction: how stress acts on its own strain"),
    Field("part", "vector", "", "friction: what a particle adds to the sums over all"),
)
CONTACT = 0.4  # in spacings: as close as a wall lets particles. Pressure alone keeps full layers at 0.5
FIRST_STEP = 0.25  # for which every sweep calms what it meets; replaced by the curvature after one sweep
LEAST_SWEEPS = 5  # fewer leave a jitter from which steep piles do not come to rest
SHARE = 0.02  # of the motion in a step that may be left wrong
CALM = 5e-3  # in sqrt(g d): below this speed nothing moves that one could see
NOISE = 2e-7  # what single precision leaves
TINY = 1e-30
SLIP = sweeps.SUMS  # beyond the sums of the pressure system: the strain that friction has not stopped yet
SPEED = SLIP + 1  # and the speeds
SUMS = SPEED + 1
SLOPE, COHESION, ELASTIC, PAIRS = range(4)  # columns of the table of materials; the last, and those after it, of pairs

# What a sweep reads and writes, beside the arrays that change places when particles are sorted.
Scratch: TypeAlias = ti.types.argpack(
    q=Reals, change=Reals, D=Reals, E=Reals, inside=Reals, residual=Reals, response=Reals, body_response=Reals,
    a=Vectors, mean_pressure=Reals, pore=Reals,
    strain=SymmetricMatrices, stress_change=SymmetricMatrices, wall_traction_change=Vectors, part=Vectors,
    density=Reals, wall_density=Reals, b=Vectors, wall_friction=Reals, wall_velocity=Vectors, wall_distance=Reals,
    wall_normal=Vectors, least=ti.f32, volume=ti.f32, own=ti.f32, contact=ti.f32,
)  # fmt: skip


@ti.func
def inner(a: vec6, b: vec6):
    """Frobenius product of two symmetric matrices."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + 2.0 * (a[3] * b[3] + a[4] * b[4] + a[5] * b[5])


@ti.func
def diagonal(value: ti.f32):
    return vec6(value, value, value, 0.0, 0.0, 0.0)


@ti.func
def friction_acts(i: ti.i32, j: ti.i32, mixed: ti.template(), material: ti.template(), law: ti.template()):
    """The share of their stresses that two particles feel of each other: none of it on fluid, and on a solid just so
    much that it slides by its own coefficient."""
    result = 1.0
    if ti.static(mixed):
        result = law[material[i], PAIRS + material[j]]
    return result


@ti.func
def sheared(i: ti.i32, u: ti.template(), q: ti.template(), weight: ti.f32, mixed: ti.template(),
            material: ti.template(), law: ti.template(), wraps: ti.template(), period: ti.template(), x: ti.template(),
            span: ti.template(), neighbor: ti.template(), factor: ti.template()):  # fmt: skip
    """L = sum_j G_ij (u_i - u_j)^T: its trace, and its symmetric part without trace, for which only those count that
    rub on each other; and the mean of q over these, `weight` being its own."""
    trace, straight, other = 0.0, vec3(0.0), vec3(0.0)
    total, weights = weight * q[i], weight
    for k in range(span[i][0], span[i][1]):
        j = neighbor[k]
        G = factor[k] * difference(x[i], x[j], wraps, period)
        du, w = u[i] - u[j], -factor[k]
        if ti.static(mixed):
            trace += G.dot(du)
            acts = friction_acts(i, j, mixed, material, law)
            du *= acts
            w *= acts
        total += w * q[j]
        weights += w
        straight += G * du
        other += 0.5 * vec3(G[1] * du[2] + G[2] * du[1], G[2] * du[0] + G[0] * du[2], G[0] * du[1] + G[1] * du[0])
    third = straight.sum() / 3.0
    if ti.static(not mixed):
        trace = 3.0 * third
    straight -= third
    shear = vec6(straight[0], straight[1], straight[2], other[0], other[1], other[2])
    return trace, shear, ti.max(total / weights, 0.0)


@ti.kernel
def _begin(n: ti.i32, mixed: ti.template(), material: Ints, law: RealTable, wraps: ti.template(), period: Vectors,
           x: Vectors, span: Spans, neighbor: Ints, factor: Reals, inverse_density: Reals, dt: ti.f32,
           stress: SymmetricMatrices, wall_traction: Vectors, normal: Vectors, dv: Vectors):  # fmt: skip
    """Adds what the stresses of the last step do to velocities."""
    for i in range(n):
        if normal[i].norm() == 0.0:
            wall_traction[i] = vec3(0.0)  # it has left the wall
        total = vec3(0.0)
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            acts = friction_acts(i, j, mixed, material, law)
            G = acts * factor[k] * difference(x[i], x[j], wraps, period)
            total += times(stress[i] + stress[j], G)
        dv[i] += inverse_density[i] * dt * (total - wall_traction[i])


@ti.kernel
def _predict(n: ti.i32, mixed: ti.template(), material: Ints, law: RealTable, wraps: ti.template(), period: Vectors,
             x: Vectors, span: Spans, neighbor: Ints, factor: Reals, own: ti.f32, V: Reals, dt: ti.f32,
             v: Vectors, q: Reals, pore_pressure: Reals, mean_pressure: Reals, pore: Reals, strain: SymmetricMatrices,
             stress: SymmetricMatrices, wall_traction: Vectors):  # fmt: skip
    """The strain of this step; stresses times dt^2 until `_finish`."""
    for i in range(n):
        pore[i] = 0.0
        if law[material[i], SLOPE] + law[material[i], COHESION] > 0.0:
            pore[i] = dt * dt * pore_pressure[i]
        _, shear, mean_pressure[i] = sheared(i, v, q, own * V[i], mixed, material, law, wraps, period, x, span,
                                             neighbor, factor)  # fmt: skip
        strain[i] = -dt * shear
        stress[i], wall_traction[i] = dt * dt * stress[i], dt * dt * wall_traction[i]


@ti.kernel
def _finish(n: ti.i32, dt: ti.f32, inverse_density: Reals, stress: SymmetricMatrices, wall_traction: Vectors,
            wall_slide: Vectors):  # fmt: skip
    """Stresses as such again, and what contact with walls has done."""
    for i in range(n):
        stress[i], wall_traction[i] = stress[i] / (dt * dt), wall_traction[i] / (dt * dt)
        wall_slide[i] -= inverse_density[i] * wall_traction[i]


@ti.func
def update(i: ti.i32, material: ti.template(), law: ti.template(), dt: ti.f32, step: ti.f32, inverse_density: ti.f32,
           v: vec3, stress: ti.template(), wall_traction: ti.template(), c: ti.template()):  # fmt: skip
    """One step along the residuals and back into the bounds: pressure, stress and contact of a particle."""
    slope, cohesion = law[material[i], SLOPE], law[material[i], COHESION]
    old, tension = c.q[i], -cohesion * dt * dt
    q = 0.0
    if c.D[i] > c.least:
        residual = c.residual[i] + c.body_response[i]
        q = sweeps.projected(old, step, residual, c.D[i], c.least, c.inside[i])
        if tension < 0.0 and q == 0.0:  # parting counts from here, not from the rest density
            parting = residual - ti.min(c.density[i] + c.wall_density[i] - sweeps.REST, 0.0)
            q = ti.min(ti.max(old + step * parting / c.D[i], tension), 0.0)
    c.q[i], c.change[i] = q, q - old
    s = stress[i]
    if slope + cohesion > 0.0:
        s = stress[i] + step / ti.max(c.E[i], c.least) * c.strain[i]
        effective = ti.max(c.mean_pressure[i] - c.pore[i], 0.0)
        bound = ti.sqrt(2.0) * (slope * effective + cohesion * dt * dt)
        s *= ti.min(bound / ti.max(ti.sqrt(inner(s, s)), TINY), 1.0)
    c.stress_change[i] = diagonal(c.change[i]) - (s - stress[i])
    stress[i] = s
    r, away = vec3(0.0), c.wall_normal[i]
    if inverse_density > 0.0 and away.dot(away) > 0.0 and law[material[i], ELASTIC] == 0.0:
        room = ti.max(c.wall_distance[i] - c.contact, 0.0)
        r = wall_traction[i] + step / inverse_density * (dt * (v - c.wall_velocity[i]) + room * away)
        press = ti.max(-r.dot(away), 0.0)
        r -= r.dot(away) * away
        most = c.wall_friction[i] * (ti.max(q - c.pore[i], 0.0) * c.b[i].norm() + press)
        r *= ti.min(most / ti.max(r.norm(), TINY), 1.0)
        r -= press * away
    c.wall_traction_change[i] = r - wall_traction[i]
    wall_traction[i] = r


@ti.func
def force(i: ti.i32, mixed: ti.template(), material: ti.template(), law: ti.template(), wraps: ti.template(),
          period: ti.template(), x: ti.template(), span: ti.template(), neighbor: ti.template(),
          factor: ti.template(), c: ti.template()):  # fmt: skip
    """Minus the force of the last changes of pressures, stresses and contacts."""
    total = vec3(0.0)
    for k in range(span[i][0], span[i][1]):
        j = neighbor[k]
        G = factor[k] * difference(x[i], x[j], wraps, period)
        pair = times(c.stress_change[i] + c.stress_change[j], G)
        if ti.static(mixed):
            acts = friction_acts(i, j, mixed, material, law)
            pair = acts * pair + (1.0 - acts) * (c.change[i] + c.change[j]) * G
        total += pair
    return total + c.change[i] * c.b[i] + c.wall_traction_change[i]


@ti.func
def respond(i: ti.i32, mixed: ti.template(), material: ti.template(), law: ti.template(), wraps: ti.template(),
            period: ti.template(), x: ti.template(), span: ti.template(), neighbor: ti.template(),
            factor: ti.template(), step: ti.f32, V: ti.f32, inverse_density: ti.f32, c: ti.template()):  # fmt: skip
    """What the accelerations do to the strain and density of a particle, and what it adds to the sums."""
    trace, shear, c.mean_pressure[i] = sheared(i, c.a, c.q, c.own * V, mixed, material, law, wraps, period, x, span,
                                               neighbor, factor)  # fmt: skip
    c.strain[i] -= shear
    c.response[i] = trace + c.b[i].dot(c.a[i]) + c.body_response[i]
    stressed = diagonal(c.change[i]) - c.stress_change[i]
    seen = c.response[i] ** 2 / ti.max(c.D[i], c.least)
    done = -c.change[i] * c.response[i] + inner(stressed, shear) - c.wall_traction_change[i].dot(c.a[i])
    slip = 0.0
    if law[material[i], SLOPE] + law[material[i], COHESION] > 0.0:
        seen += inner(shear, shear) / ti.max(c.E[i], c.least)
        slip = c.E[i] / step * ti.sqrt(inner(stressed, stressed))
    if c.wall_traction_change[i].norm() > 0.0:
        seen += c.a[i].dot(c.a[i]) / inverse_density
    c.part[i] = vec3(V / c.volume * done, V / c.volume * seen, slip)


@ti.func
def tally(k: ti.i32, n: ti.i32, v: ti.template(), c: ti.template(), partial: ti.template()):
    """Takes the responses over into the residuals of one block, and sums up the errors."""
    lo, hi = block(k, n)
    over, error, worst, speed, total = 0.0, 0.0, 0.0, 0.0, vec3(0.0)
    for i in range(lo, hi):
        r = c.residual[i] + c.response[i]
        c.residual[i] = r
        if c.D[i] > c.least:
            over += ti.max(r, 0.0)
            error += ti.abs(sweeps.counted(r, c.q[i], c.inside[i]))
            worst = ti.max(worst, r)
            total += c.part[i]
            speed += v[i].norm()
    partial[k, sweeps.COMPRESSION], partial[k, sweeps.TWO_SIDED], partial[k, sweeps.LARGEST] = over, error, worst
    partial[k, sweeps.LENGTH], partial[k, sweeps.CURVATURE], partial[k, SLIP] = total[0], total[1], total[2]
    partial[k, SPEED] = speed


@ti.kernel
def _sweep(n: ti.i32, mixed: ti.template(), material: Ints, law: RealTable, wraps: ti.template(), period: Vectors,
           x: Vectors, span: Spans, neighbor: Ints, factor: Reals, dt: ti.f32, step: ti.f32, V: Reals,
           inverse_density: Reals, v: Vectors, stress: SymmetricMatrices, wall_traction: Vectors, c: Scratch,
           partial: RealTable, sums: Reals):  # fmt: skip
    """One step of pressures, stresses and contacts, what it does to velocities and residuals, and the sums of these."""
    for i in range(n):
        update(i, material, law, dt, step, inverse_density[i], v[i], stress, wall_traction, c)
    for i in range(n):
        total = force(i, mixed, material, law, wraps, period, x, span, neighbor, factor, c)
        c.a[i] = -inverse_density[i] * total
        v[i] += c.a[i] / dt
    for i in range(n):
        respond(i, mixed, material, law, wraps, period, x, span, neighbor, factor, step, V[i], inverse_density[i], c)
    ti.loop_config(block_dim=1)
    for k in range(BLOCKS):
        tally(k, n, v, c, partial)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        sweeps.total_up(k, n, partial, sums)


@ti.kernel
def _push(n: ti.i32, mixed: ti.template(), material: Ints, law: RealTable, wraps: ti.template(), period: Vectors,
          x: Vectors, span: Spans, neighbor: Ints, factor: Reals, dt: ti.f32, step: ti.f32,
          inverse_density: Reals, v: Vectors, stress: SymmetricMatrices, wall_traction: Vectors,
          c: Scratch):  # fmt: skip
    """The first half of `_sweep`, where couplings have a say: what it does to free particles."""
    for i in range(n):
        update(i, material, law, dt, step, inverse_density[i], v[i], stress, wall_traction, c)
    for i in range(n):
        c.a[i] = -inverse_density[i] * force(i, mixed, material, law, wraps, period, x, span, neighbor, factor, c)


@ti.kernel
def _follow(n: ti.i32, mixed: ti.template(), material: Ints, law: RealTable, wraps: ti.template(), period: Vectors,
            x: Vectors, span: Spans, neighbor: Ints, factor: Reals, dt: ti.f32, step: ti.f32, V: Reals,
            inverse_density: Reals, v: Vectors, c: Scratch, partial: RealTable, sums: Reals):  # fmt: skip
    """The second half: what accelerations, as they are then, do to velocities and residuals."""
    for i in range(n):
        v[i] += c.a[i] / dt
        respond(i, mixed, material, law, wraps, period, x, span, neighbor, factor, step, V[i], inverse_density[i], c)
    ti.loop_config(block_dim=1)
    for k in range(BLOCKS):
        tally(k, n, v, c, partial)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        sweeps.total_up(k, n, partial, sums)


class Friction:
    """The stresses of a scene with sand, for the sweeps of a pressure solver."""

    def __init__(self, world: World):
        self.world = world
        columns = ("yield_slope", "cohesion", "elastic")
        table = np.array([[float(getattr(m, k, 0.0)) for k in columns] for m in world.materials])
        pairs = np.array([[self._share(a, b) for b in world.bodies] for a in world.bodies])
        self.law = upload(np.hstack([table, pairs]), ti.f32)
        self.mixed = bool((pairs != 1.0).any())
        self.own = self._own_weight()
        self._scratch: tuple = (None, None)

    def _share(self, a: BodyGroup, b: BodyGroup) -> float:
        """Of stresses between two bodies (`friction_acts`)."""
        one, other = (self.world.materials[body.material] for body in (a, b))
        if not (one.frictional and other.frictional):
            return 0.0
        steepest = max(getattr(m, "yield_slope", 0.0) for m in (one, other))
        if one.elastic == other.elastic or steepest == 0.0:
            return 1.0
        return 2.0 * min(self.world.frictions.between(a.name, b.name) / steepest, 1.0)

    def _own_weight(self) -> float:
        """-W'(r) / r at r = 0: the weight of a particle itself among its neighbors, per volume."""
        h, r = self.world.h, 1e-3 * self.world.h
        at, beside = self.world.neighbors.smoothing.W(np.array([0.0, r]), h)
        return float(2 * (at - beside) / r**2)

    @property
    def _pairs(self) -> tuple:
        return (self.mixed, self.world.particles.material, self.law, *self.world.neighbors.pairs)

    def scratch(self, least: float) -> Scratch:
        """What kernels take as one; made anew when the particles' arrays have grown."""
        p, d, key = self.world.particles, self.world.spacing, (self.world.particles.capacity, least)
        if self._scratch[0] != key:
            names = ("q", "change", "D", "E", "inside", "residual", "response", "a", "mean_pressure", "pore", "strain",
                     "stress_change", "wall_traction_change", "part", "density", "wall_density", "wall_friction",
                     "wall_velocity", "wall_distance", "wall_normal", "body_response")  # fmt: skip
            made = Scratch(**{name: getattr(p, name) for name in names}, b=p.wall_gradient, least=least, volume=d**3,
                           own=self.own, contact=CONTACT * d)  # fmt: skip
            self._scratch = key, made
        return self._scratch[1]

    def prepare(self, inverse_density: ti.Ndarray, whole: system.System) -> None:
        """E as for an isotropic neighborhood: a third of what D has from the neighbors, and all of what their
        lopsidedness adds. Walls have no part in it, and sand sees no images."""
        p = self.world.particles
        p.part.fill(0.0)
        near = self.world.neighbors
        system.prepare(p.n, near.wraps, near.period, whole, p.part, False, p.V, inverse_density, 1.0 / 3.0, p.E)

    def warm_start(self, dt: float, dv: ti.Ndarray) -> None:
        """Adds what the stresses of the last step do to velocities."""
        p = self.world.particles
        _begin(p.n, *self._pairs, p.inverse_density, dt, p.stress, p.wall_traction, p.wall_normal, dv)

    def predict(self, dt: float) -> None:
        """The strain that velocities would cause as they are."""
        p = self.world.particles
        _predict(p.n, *self._pairs, self.own, p.V, dt, p.v, p.q, p.pore_pressure, p.mean_pressure, p.pore, p.strain,
                 p.stress, p.wall_traction)  # fmt: skip

    def sweep(self, dt: float, step: float, least: float, partial: ti.Ndarray, sums: np.ndarray,
              push: Callable[[], None] | None = None) -> None:  # fmt: skip
        """One sweep; `push` is what couplings make of `particles.a`, if there are any."""
        p, scratch = self.world.particles, self.scratch(least)
        if push is None:
            _sweep(p.n, *self._pairs, dt, step, p.V, p.inverse_density, p.v, p.stress, p.wall_traction, scratch,
                   partial, sums)  # fmt: skip
            return
        _push(p.n, *self._pairs, dt, step, p.inverse_density, p.v, p.stress, p.wall_traction, scratch)
        push()
        _follow(p.n, *self._pairs, dt, step, p.V, p.inverse_density, p.v, scratch, partial, sums)

    def finish(self, dt: float) -> None:
        p = self.world.particles
        _finish(p.n, dt, p.inverse_density, p.stress, p.wall_traction, p.wall_slide)

    def tolerance(self, dt: float, most: float, speed: float) -> float:
        """How much strain or compression of this step may be left: a share of that which a mean speed [m/s] makes over
        a spacing, or what the user allows. A rush is not held up by it, and what comes to rest does so."""
        calm = CALM * float(np.sqrt(np.linalg.norm(self.world.gravity) * self.world.spacing))
        return min(max(SHARE * max(speed, calm) * dt / self.world.spacing, NOISE), most)
