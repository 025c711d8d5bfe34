"""The pressure system and DFSPH: the operator column by column, against energies, and what a solve leaves behind."""

import dataclasses

import numpy as np
import pytest

import pliant as pl
from pliant.boundary import images
from pliant.core.backend import threads_for
from pliant.core.smoothing import smoothing
from pliant.solvers.pressure import free, sweeps
from pliant.solvers.pressure.system import CORRECTED

D = 0.1
DT = 2e-3
WALLS = ("none", "plane", "box")


def blob(walls="none", side=4, jitter=0.15, squeeze=1.0, fixed=False, gravity=(0, 0, 0), seed=0, **options):
    """A jittered block of two fluids with uneven volumes, ready for the pressure solver."""
    scene = pl.Scene(particle_radius=D / 2, gravity=gravity, pressure=pl.DFSPH(**options))
    half = (side * D, side * D, side / 2 * D)
    for name, density, z in (("light", 500.0, half[2] / 2), ("heavy", 1000.0, 1.5 * half[2])):
        body = scene.add(
            pl.Box(size=half, center=(side * D / 2, side * D / 2, z)), pl.Fluid(density=density), name=name
        )
        if fixed:
            body.fix(lambda x: x[:, 0] < 1.2 * D)
    if walls == "plane":
        scene.add(pl.Plane(), pl.Boundary(), name="floor")
    if walls == "box":
        scene.add(pl.Box(size=(8 * D,) * 3, center=(4 * D,) * 3), pl.Boundary(inside_out=True), name="tank")
    sim = scene.build()
    rng, p = np.random.default_rng(seed), sim.world.particles
    p.set("x", squeeze * (p.numpy("x") + rng.uniform(-jitter, jitter, (p.n, 3)) * D).clip(0.3 * D, None))
    p.set("V", D**3 * rng.uniform(0.9, 1.1, p.n))
    p.set("m", p.numpy("V") * np.array([500.0, 1000.0])[p.numpy("body")])
    p.set("v", rng.normal(0, 0.3, (p.n, 3)) * (p.numpy("inverse_density") > 0)[:, None])
    sim.find_neighbors()
    sim.pressure.prepare()
    return sim


def push(sim, q, velocities=True):
    """Displacements by pressures q (dt^2 p) and what they do to the density ratios: one `iterate` from nothing, with
    the gradients that velocities see or those of the density ratio."""
    p, solver = sim.world.particles, sim.pressure
    p.q.fill(0.0)
    p.set("residual", q * p.numpy("D"))
    sweeps.find_changes(p.n, 1.0, 0.0, solver.arrays)
    sweeps.sweep(p.n, *solver.operator(velocities), p.V, D**3, p.inverse_density, 0.0, 1.0, 1.0, 0.0, p.shift,
                 solver.partial, solver.sums)  # fmt: skip
    return p.numpy("u")[:, :3].astype(float), p.numpy("response").astype(float)


def operator(sim):
    """K, dense."""
    return -np.stack([push(sim, unit)[1] for unit in np.eye(sim.particles)], axis=1)


def displacement(sim, dt=DT):
    """By how much particles move in a step [m]."""
    p = sim.world.particles
    return dt * p.numpy("v").astype(float) + p.numpy("shift")


def excess(sim):
    """Density ratio above one at the end of a step of DT, anew from the displacements."""
    p, solver = sim.world.particles, sim.pressure
    v = p.numpy("v")
    p.set("v", displacement(sim) / DT)
    solver.predict(DT, 1.0, 1.0, velocities=False)
    p.set("v", v)
    return p.numpy("residual").astype(float)


def density_solve(sim, dt=DT):
    """The second solve on its own, at the velocities as they are: no pressure has acted before."""
    p, solver = sim.world.particles, sim.pressure
    p.q.fill(0.0)
    return solver.remove_compression(dt)


def divergence_solve(sim, dt=DT):
    """The first solve."""
    return sim.pressure.remove_divergence(dt)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("walls", WALLS)
def test_operator_is_symmetric_and_positive_with_the_diagonal_it_says(walls, fixed):
    sim = blob(walls, fixed=fixed)
    K, p = operator(sim), sim.world.particles
    weighted = p.numpy("V").astype(float)[:, None] * K
    scale = np.abs(weighted).max()
    assert np.abs(weighted - weighted.T).max() < 1e-5 * scale
    assert np.linalg.eigvalsh(weighted + weighted.T)[0] > -1e-5 * scale
    np.testing.assert_allclose(np.diag(K), p.numpy("D"), rtol=1e-4, atol=1e-6 * K.max())


@pytest.mark.parametrize("walls", ["none", "plane"])
def test_displacement_is_minus_the_gradient_of_the_density_constraint(walls):
    """a_i = -mobility_i / V_i d/dx_i sum_k V_k q_k rho_k, by finite differences of a NumPy twin."""
    sim = blob(walls)
    p, w = sim.world.particles, smoothing("cubic_spline")
    x, V = p.numpy("x").astype(float), p.numpy("V").astype(float)
    q = np.random.default_rng(3).uniform(0, 1, p.n)

    def energy(x):
        r2 = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
        phi = D / 2 + images.STEEP * (x[:, 1] - D / 2)
        rho = (V * w.W(np.sqrt(r2), 2 * D)).sum(axis=1)
        if walls == "plane":
            rho += (V * w.W(np.sqrt(r2 + 4 * phi[:, None] * phi), 2 * D)).sum(axis=1)
        return (V * q * rho).sum()

    gradient, step = np.zeros_like(x), 1e-6 * D
    for i, k in np.ndindex(*x.shape):
        there = x.copy()
        there[i, k] += step
        up = energy(there)
        there[i, k] -= 2 * step
        gradient[i, k] = (up - energy(there)) / (2 * step)
    expected = -(p.numpy("inverse_density") / V)[:, None] * gradient
    assert np.abs(push(sim, q, velocities=False)[0] - expected).max() < 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize("walls", WALLS)
def test_a_solve_converges_below_its_tolerance(walls):
    sim = blob(walls, side=6, squeeze=0.93, gravity=(0, -9.81, 0))
    assert np.maximum(excess(sim), 0).mean() > 0.02, "nothing to solve"
    outcome = density_solve(sim)
    assert outcome.converged and outcome.mean <= 1e-3
    assert outcome.iterations < 50
    assert np.maximum(excess(sim), 0).mean() < 1.1e-3, "the residual has drifted away from the velocities"


@pytest.mark.parametrize("walls", WALLS)
def test_complementarity(walls):
    """Pressures push, and pull only where fluid surrounds a particle; where there is pressure, density is one; where
    there is none, at most one."""
    sim = blob(walls, side=6, squeeze=0.93, max_density_error=1e-5, max_iterations=3000)
    assert density_solve(sim).converged
    pressure, left, inside = sim.world.particles.numpy("q"), excess(sim), sim.world.particles.numpy("inside") > 0
    assert (pressure[~inside] >= 0).all() and (pressure > 0).any() and inside.any() and not inside.all()
    assert np.abs(left[pressure != 0]).mean() < 1e-4 and np.abs(left[pressure != 0]).max() < 5e-3
    assert left[pressure == 0].max(initial=0.0) < 5e-3


def test_density_after_the_step_is_what_the_solve_promised():
    sim = blob(side=6, squeeze=0.95, max_density_error=1e-4, max_iterations=1000)
    p, dt = sim.world.particles, 1e-4  # short: the promise is of first order
    before = p.numpy("density").max() - 1
    p.v.fill(0.0)
    density_solve(sim, dt)
    p.set("x", p.numpy("x") + displacement(sim, dt))
    sim.find_neighbors()
    after = p.numpy("density").max() - 1
    assert before > 0.1 and after < 0.25 * before


@pytest.mark.parametrize("solve", [density_solve, divergence_solve])
def test_pressure_keeps_momentum_where_there_are_no_walls(solve):
    sim = blob(side=6, squeeze=0.93)
    m, before = sim.world.particles.numpy("m").astype(float)[:, None], displacement(sim)
    assert solve(sim).iterations > 0
    change = m * (displacement(sim) - before)
    assert np.abs(change).sum() > 0
    assert np.abs(change.sum(axis=0)).max() < 1e-5 * np.abs(change).sum()


@pytest.mark.parametrize("walls", ["none", "plane"])
def test_displacements_keep_the_angular_momentum_of_what_is_free(walls):
    """Of each of two blobs by itself; and of the upper one where the other one lies on a floor."""
    sim = blob(walls, side=6, squeeze=0.93)
    p = sim.world.particles
    x = p.numpy("x")
    upper = x[:, 1] > np.median(x[:, 1])
    x[upper, 1] += 4 * D
    p.set("x", x)
    sim.find_neighbors()
    sim.pressure.prepare()

    def momenta():
        """Centre times mass, momentum and angular momentum of both."""
        x, v, m = (p.numpy(name).astype(float) for name in ("x", "v", "m"))
        moved, m = x + p.numpy("shift"), m[:, None]
        high = x[:, 1] > np.mean([x[:, 1].min(), x[:, 1].max()])
        return [(m * values)[rows].sum(axis=0) for rows in (high, ~high) for values in (moved, v, np.cross(moved, v))]

    p.shift.fill(0.0)
    before = momenta()
    assert density_solve(sim).iterations > 0
    scale = np.abs(p.numpy("m")[:, None] * np.cross(p.numpy("shift"), p.numpy("v"))).sum()
    apart = [np.abs(a - b).max() / scale for a, b in zip(momenta(), before, strict=True)]
    assert max(apart[:3]) < 1e-4
    assert (max(apart[3:]) < 1e-4) == (walls == "none")


def test_groups_are_those_who_are_near_each_other():
    rng = np.random.default_rng(5)
    centers = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 1], [50, -20, 3]])
    member = rng.integers(len(centers), size=400)
    found = free.groups(centers[member] + rng.uniform(-0.2, 0.2, (400, 3)), 0.15)
    assert len(set(zip(member, found, strict=True))) == len(set(found)) == len(centers)
    chain = np.arange(30)[:, None] * np.array([0.1, -0.1, 0.0])
    assert len(set(free.groups(chain, 0.15))) == 1, "a chain holds together"


def moving(group, m, x, v, s):
    """Particles that no stress has turned."""
    return free.Moving(group, m, x, v, s, np.zeros((len(m), 3, 3)), np.zeros((len(m), 3)))


def test_what_has_no_moment_of_inertia_is_not_turned():
    """A single particle, and two about their line."""
    x = np.array([[5.0, 0, 0], [0, 0, 0], [1, 0, 0]])
    v, s = np.array([[0.0, 1, 0], [0, 1, 2], [0, -1, 1]]), np.array([[0.0, 0, 0], [-0.01, 0, 0], [0.01, 0, 0]])
    m = np.array([1.0, 2.0, 2.0])
    moved, dv, _ = free.rigid_answer(moving(np.array([0, 1, 1]), m, x, v, s), np.ones(3))
    np.testing.assert_allclose(moved, s, atol=1e-15)
    np.testing.assert_allclose(dv[0], 0.0)
    L = [(m[:, None] * np.cross(x + a, v + b)).sum(axis=0) for a, b in ((0 * s, 0 * v), (s, dv))]
    np.testing.assert_allclose(L[1], L[0], atol=1e-12)


def test_across_a_period_groups_turn_about_its_axis_alone():
    rng = np.random.default_rng(6)
    group, m, (x, v, s) = np.arange(30) % 3, rng.uniform(1, 2, 30), rng.normal(0, 1, (3, 30, 3))
    moved, dv, _ = free.rigid_answer(moving(group, m, x, v, s), np.array([0.0, 0.0, 1.0]))
    assert not dv[:, 2].any()
    for k in range(3):
        rows = group == k
        change = m[rows, None] * (np.cross(x + moved, v + dv) - np.cross(x, v))[rows]
        np.testing.assert_allclose(m[rows] @ moved[rows], 0, atol=1e-12)
        np.testing.assert_allclose(m[rows] @ dv[rows], 0, atol=1e-12)
        np.testing.assert_allclose(change.sum(axis=0)[2], 0, atol=1e-12)


def test_divergence_solve_leaves_no_approach():
    sim = blob(side=6, jitter=0.05, squeeze=0.98, max_divergence_error=1e-5, max_iterations=2000)
    p = sim.world.particles
    p.set("v", -2.0 * (p.numpy("x") - p.numpy("x").mean(axis=0)))  # implodes
    assert sim.pressure.remove_divergence(DT).converged
    inside = p.numpy("inside") > 0
    sim.pressure.predict(DT, 0.0, 0.0)
    left = p.numpy("residual")
    assert inside.any() and np.maximum(left, 0).mean() < 2e-5 and np.abs(left[inside]).mean() < 4e-5


def test_velocities_inside_see_linear_fields_as_they_are():
    """The divergence of A x is the trace of A, whatever the arrangement: of a rotation and a shear it is zero."""
    sim = blob(side=8, jitter=0.2)
    p, solver = sim.world.particles, sim.pressure
    x, whole = p.numpy("x").astype(float), p.numpy("inside") > 0
    assert 50 < whole.sum() < p.n / 2
    for A in (np.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]]), np.diag([-1.0, 1, 0]), np.diag([1.0, 2, 3])):
        p.set("v", x @ A.T)
        solver.predict(1.0, 0.0, 0.0)
        np.testing.assert_allclose(p.numpy("residual")[whole], -np.trace(A), atol=2e-5)
        solver.predict(1.0, 0.0, 0.0, velocities=False)
        assert np.abs(p.numpy("residual")[whole] + np.trace(A)).max() > 0.05, "plain gradients are not exact"


def test_corrected_pressures_keep_momentum_and_angular_momentum():
    sim = blob(side=6, jitter=0.2)
    p = sim.world.particles
    a, _ = push(sim, np.random.default_rng(4).uniform(-1, 1, p.n) * (p.numpy("inside") > 0))
    x, force = p.numpy("x").astype(float), p.numpy("m").astype(float)[:, None] * a
    assert np.abs(force).max() > 0
    assert np.abs(force.sum(axis=0)).max() < 1e-5 * np.abs(force).sum()
    assert np.abs(np.cross(x, force).sum(axis=0)).max() < 1e-5 * np.abs(np.cross(x, force)).sum()


def test_who_is_inside():
    """Not the surface of a block, no film, no spray; layers at walls are."""
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box(size=(8 * D, 6 * D, 8 * D), center=(0, 3 * D, 0)), pl.Fluid(), name="block")
    scene.add(pl.Box(size=(8 * D, D, 8 * D), center=(2, 1, 0)), pl.Fluid(), name="film")
    scene.add(pl.Box(size=(D, D, D), center=(4, 1, 0)), pl.Fluid(), name="drop")
    sim = scene.build()
    sim.find_neighbors()
    sim.pressure.prepare()
    p = sim.world.particles
    x, inside, body = p.numpy("x"), p.numpy("inside") > 0, p.numpy("body")
    deep = (body == 0) & (np.abs(x[:, [0, 2]]) < 2.9 * D).all(axis=1) & (x[:, 1] < 4.9 * D)
    assert inside[deep].all() and inside[deep & (x[:, 1] < D)].any()
    assert not inside[~deep].any()


def second_moments(sim):
    """-sum_j G_ij x_ij^T of each particle, pair by pair."""
    p, near = sim.world.particles, sim.world.neighbors
    x, span, M = p.numpy("x").astype(float), near.span.to_numpy()[: p.n], np.zeros((p.n, 3, 3))
    neighbor, factor = near.neighbor.to_numpy(), near.factor.to_numpy()
    for i, (first, end) in enumerate(span):
        dx = x[i] - x[neighbor[first:end]]
        M[i] = -np.einsum("k,ka,kb->ab", factor[first:end], dx, dx)
    return M


def test_what_rests_has_plain_gradients():
    """Where velocities bend by nothing, pressure is weight: forces derive from the density ratio."""
    sim = blob(side=6, gravity=(0, -9.81, 0))
    p, solver, one = sim.world.particles, sim.pressure, np.eye(3, 4)
    p.v.fill(0.0)

    def corrections():
        solver.prepare()
        return np.stack([p.numpy(name) for name in ("Lx", "Ly", "Lz")], axis=1)

    np.testing.assert_array_equal(corrections(), np.tile(one, (p.n, 1, 1)))
    p.set("v", 100.0 * p.numpy("x")[:, [1, 0, 2]])
    L, inside = corrections(), p.numpy("inside") > 0
    assert np.abs(L[inside] - one).max() > 0.05
    M = second_moments(sim)[inside]
    shares = p.numpy("special")[inside] & CORRECTED != 0
    np.testing.assert_allclose((L[inside, :, :3] @ M)[shares], np.tile(np.eye(3), (shares.sum(), 1, 1)), atol=1e-4)


def test_fixed_particles_feel_no_pressure():
    sim = blob(side=6, squeeze=0.93, fixed=True)
    p = sim.world.particles
    density_solve(sim)
    fixed = p.numpy("inverse_density") == 0
    assert fixed.any() and not displacement(sim)[fixed].any()
    assert p.numpy("q")[fixed].any(), "they still push on others"


def test_a_tighter_tolerance_gives_smaller_errors_and_not_fewer_iterations():
    outcomes = []
    for tolerance in (1e-2, 1e-3, 1e-4, 1e-5):
        sim = blob("box", side=6, squeeze=0.93, max_density_error=tolerance, max_iterations=3000)
        outcomes.append(density_solve(sim))
        assert outcomes[-1].mean <= tolerance
    errors, iterations = ([getattr(o, name) for o in outcomes] for name in ("mean", "iterations"))
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.1 * errors[0]
    assert iterations == sorted(iterations) and iterations[-1] > iterations[0]


@pytest.mark.parametrize("walls", WALLS)
def test_all_sweeps_in_one_launch_are_those_of_many(walls):
    """But for the last bits, in which sums of blocks differ."""
    found = []
    for few in (False, True):
        sim = blob(walls, side=6, squeeze=0.95, gravity=(0, -9.81, 0))
        with threads_for(0 if few else 10**6):
            outcome = sim.pressure.remove_divergence(DT)
        found.append((outcome, *(sim.world.particles.by_id(name) for name in ("p", "v"))))
    (many, *arrays), (one, *others) = found
    assert many.iterations == one.iterations > 3 and many.converged and one.converged
    for a, b in zip(arrays, others, strict=True):
        assert np.abs(a - b).max() < 1e-3 * np.abs(a).max()


def test_bounds_on_the_iterations():
    few = blob(side=6, squeeze=0.93, max_density_error=1e-6, max_iterations=3)
    outcome = density_solve(few)
    assert outcome.iterations == 3 and not outcome.converged
    many = blob(side=4, squeeze=1.5, min_iterations=7)  # nothing to do
    assert many.pressure.remove_divergence(DT).iterations == 7


def test_outcomes_are_plain_numbers():
    outcome = density_solve(blob(side=4))
    kinds = {name: type(value) for name, value in dataclasses.asdict(outcome).items()}
    assert kinds == {"iterations": int, "mean": float, "largest": float, "converged": bool}


def test_deep_water_stays_where_it_is():
    """Forty layers: steps that are too long for the pressure at the bottom would make it boil at some m/s."""
    d, deep = 0.02, 40
    scene = pl.Scene(particle_radius=d / 2, periodic=(8 * d, None, 6 * d))
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    size = (8 * d, deep * d, 6 * d)
    scene.add(pl.Box(size=size, center=tuple(s / 2 for s in size)), pl.Fluid(), name="water")
    sim = scene.build(quiet=True)
    x, rng = sim["water"].x, np.random.default_rng(0)
    sim["water"].x = x + rng.uniform(-0.05, 0.05, x.shape) * d
    fastest = 0.0
    for _ in range(5):
        sim.run(0.1)
        fastest = max(fastest, float(np.linalg.norm(sim["water"].v, axis=1).max()))
    assert sim.dt < 0.4 * d / np.sqrt(9.81 * deep * d) * 1.1
    assert fastest < 1.0 and sim["water"].density.max() < 1100
