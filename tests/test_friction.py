"""Sand: one sweep against a NumPy twin, what friction may and may not do, slopes, piles at rest, cohesion, mixtures."""

import numpy as np
import pytest

import pliant as pl
from pliant.core.smoothing import smoothing
from pliant.solvers.granular import friction
from pliant.solvers.pressure.sweeps import REST

D, G, DT = 0.02, 9.81, 4e-3


def heap(fluid=False, solver=None, angle=30.0, cohesion=0.0, floor=True, scale=0.94, seed=0):
    """A jittered block of sand and an elastic or fluid one beside it on a floor, ready for the sweeps."""
    scene = pl.Scene(particle_radius=D / 2, pressure=solver or pl.DFSPH())
    if floor:
        scene.add(pl.Plane(), pl.Boundary(friction=0.4))
    sand = pl.Granular(friction_angle=angle, cohesion=cohesion)
    scene.add(pl.Box(size=(4 * D, 4 * D, 4 * D), center=(2 * D, 2 * D, 2 * D)), sand, name="sand")
    other = pl.Fluid(density=1000) if fluid else pl.Granular(density=2000, friction_angle=angle / 2)
    scene.add(pl.Box(size=(2 * D, 4 * D, 4 * D), center=(5 * D, 2 * D, 2 * D)), other, name="other")
    sim = scene.build()
    rng, p = np.random.default_rng(seed), sim.world.particles
    p.set("x", (scale * p.numpy("x") + rng.uniform(-0.12, 0.12, (p.n, 3)) * D).clip(0.32 * D, None))
    p.set("v", rng.normal(0, 0.2, (p.n, 3)))
    sim.find_neighbors()
    sim.pressure.prepare()
    return sim


class Twin:
    """The equations of `friction`, dense, in double precision."""

    def __init__(self, sim):
        p, w = sim.world.particles, sim.world
        self.n, self.d = p.n, w.spacing
        for name in ("x", "v", "V", "inverse_density", "D", "density", "wall_density", "wall_friction",
                     "wall_distance"):  # fmt: skip
            setattr(self, name, p.numpy(name).astype(float))
        self.b, self.normal, self.wall_v = (p.numpy(k).astype(float) for k in
                                            ("wall_gradient", "wall_normal", "wall_velocity"))  # fmt: skip
        materials = [w.materials[k] for k in p.numpy("body")]
        sand = np.array([m.has_yield_stress for m in materials])
        self.slope = np.array([m.yield_slope if s else 0.0 for m, s in zip(materials, sand, strict=True)])
        self.cohesion = np.array([m.cohesion if s else 0.0 for m, s in zip(materials, sand, strict=True)])
        dx = self.x[:, None] - self.x[None]
        r = np.linalg.norm(dx, axis=2)
        kernel, h, step = smoothing("cubic_spline"), w.h, 1e-5 * w.h
        near = (r > 0) & (r < h)
        slope = np.where(near, (kernel.W(r + step, h) - kernel.W(np.abs(r - step), h)) / (2 * step), 0.0)
        self.weight = -np.where(near, slope / np.where(near, r, 1.0), 0.0) * self.V[None]
        self.Gm = -self.weight[..., None] * dx
        self.held = sand[:, None] & sand[None]
        total = self.Gm.sum(axis=1)
        squares = (self.Gm**2).sum(axis=2)
        others = (self.inverse_density[None] / self.V[None] * squares).sum(axis=1)
        self.E = self.inverse_density * (total**2).sum(axis=1) + self.V * others / 3
        self.own = 2 * (kernel.W(0.0, h) - kernel.W(1e-3 * h, h)) / (1e-3 * h) ** 2

    def gradient(self, u, pairs):
        du = np.where(pairs[..., None], u[:, None] - u[None], 0.0)
        return np.einsum("ijk,ijl->ikl", self.Gm, du)

    def strain(self, u):
        L = self.gradient(u, self.held)
        e = -(L + L.transpose(0, 2, 1)) / 2
        return e - np.trace(e, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)

    def growth(self, u):
        L = self.gradient(u, np.ones((self.n, self.n), bool))
        return np.trace(L, axis1=1, axis2=2) + (self.b * u).sum(axis=1)

    def mean(self, q):
        weight = np.where(self.held, self.weight, 0.0)
        own = self.own * self.V
        return np.maximum((own * q + weight @ q) / (own + weight.sum(axis=1)), 0.0)

    def displaced(self, dq, ds, dr):
        """By changes of pressure, of stress and of contact."""
        push = (dq[:, None] + dq[None])[..., None] * self.Gm
        pull = np.einsum("ijkl,ijl->ijk", np.where(self.held[..., None, None], ds[:, None] + ds[None], 0.0), self.Gm)
        return -self.inverse_density[:, None] * ((push - pull).sum(axis=1) + dq[:, None] * self.b + dr)

    def sweep(self, q, s, r, residual, v, mean_pressure, step, dt):
        new = np.maximum(q + step * residual / self.D, 0.0)
        gap = np.minimum(self.density + self.wall_density - REST, 0.0)
        torn = np.clip(q + step * (residual - gap) / self.D, -self.cohesion * dt**2, 0.0)
        new = np.where(new > 0, new, torn)
        bound = np.sqrt(2) * (self.slope * mean_pressure + self.cohesion * dt**2)
        stress = s + step / self.E[:, None, None] * dt * self.strain(v)
        norm = np.linalg.norm(stress, axis=(1, 2))
        stress *= np.minimum(bound / np.maximum(norm, 1e-30), 1.0)[:, None, None]
        room = np.maximum(self.wall_distance - friction.CONTACT * self.d, 0.0)
        slip = dt * (v - self.wall_v) + room[:, None] * self.normal
        wall_traction = r + step / self.inverse_density[:, None] * slip
        across = (wall_traction * self.normal).sum(axis=1)
        press, along = np.maximum(-across, 0.0), wall_traction - across[:, None] * self.normal
        most = self.wall_friction * (np.maximum(new, 0) * np.linalg.norm(self.b, axis=1) + press)
        along *= np.minimum(most / np.maximum(np.linalg.norm(along, axis=1), 1e-30), 1.0)[:, None]
        near = np.linalg.norm(self.normal, axis=1)[:, None] > 0
        wall_traction = np.where(near, along - press[:, None] * self.normal, 0.0)
        a = self.displaced(new - q, stress - s, wall_traction - r)
        return new, stress, wall_traction, v + a / dt, residual + self.growth(a)


def matrices(values):
    """(n, 3, 3) from diagonals and components yz, zx, xy."""
    xx, yy, zz, yz, zx, xy = values.astype(float).T
    return np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]]).transpose(2, 0, 1)


def sweeps(sim, count=1, step=0.3, dt=DT):
    """That many sweeps from no stress, here and by the twin; returns the twin's state."""
    p, solver, twin = sim.world.particles, sim.pressure, Twin(sim)
    for name in ("q", "stress", "wall_traction"):
        getattr(p, name).fill(0.0)
    solver.predict(dt, 1.0, 1.0)
    solver.friction.predict(dt)
    q, s, r = np.zeros(p.n), np.zeros((p.n, 3, 3)), np.zeros((p.n, 3))
    residual, v = p.numpy("residual").astype(float), twin.v
    for _ in range(count):
        state = twin.sweep(q, s, r, residual, v, twin.mean(q), step, dt)
        q, s, r, v, residual = state
        solver.friction.sweep(dt, step, solver.least, solver.partial, solver.sums)
    return state


@pytest.mark.parametrize("cohesion", [0.0, 300.0])
@pytest.mark.parametrize("fluid", [False, True])
def test_sweeps_are_those_of_the_twin(fluid, cohesion):
    sim = heap(fluid, cohesion=cohesion)
    p = sim.world.particles
    q, s, r, v, residual = sweeps(sim, 4)
    assert np.abs(s).max() > 0 and np.abs(r).max() > 0 and (q > 0).any() and ((q < 0).any() == (cohesion > 0))
    for found, right in ((p.numpy("q"), q), (matrices(p.numpy("stress")), s), (p.numpy("wall_traction"), r),
                         (p.numpy("v"), v), (p.numpy("residual"), residual)):  # fmt: skip
        np.testing.assert_allclose(found, right, atol=2e-4 * np.abs(right).max())


def test_stresses_do_the_work_that_strains_show():
    """sum m a . u = -sum V (p growth - s : strain): force and strain are adjoint, so friction can only take energy."""
    sim = heap(floor=False)
    twin, rng = Twin(sim), np.random.default_rng(5)
    q, u = rng.uniform(0, 1, twin.n), rng.normal(0, 1, (twin.n, 3))
    s = rng.normal(0, 1, (twin.n, 3, 3))
    s = (s + s.transpose(0, 2, 1)) / 2
    s -= np.trace(s, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)
    a = twin.displaced(q, s, np.zeros((twin.n, 3)))
    power = (twin.V / twin.inverse_density) @ (a * u).sum(axis=1)
    work = twin.V @ (-q * twin.growth(u) - np.einsum("ijk,ijk->i", s, twin.strain(u)))
    assert power == pytest.approx(work, rel=1e-10)


@pytest.mark.parametrize("solver", [pl.DFSPH(), pl.IISPH()], ids=["DFSPH", "IISPH"])
def test_a_solve_keeps_momentum_and_takes_energy(solver):
    sim = heap(floor=False, solver=solver, scale=1.0)
    p = sim.world.particles
    m, v = p.numpy("m").astype(float), p.numpy("v").astype(float)
    sim.pressure.warm_start(DT)
    next(iter(sim.pressure.solves().values()))(DT)
    after = p.numpy("v").astype(float)
    np.testing.assert_allclose(m @ after, m @ v, atol=1e-5 * (m @ np.abs(v)).max())
    s = matrices(p.numpy("stress"))
    norm = np.linalg.norm(s, axis=(1, 2))
    assert norm.max() > 0 and np.abs(np.trace(s, axis1=1, axis2=2)).max() < 1e-4 * norm.max()
    assert m @ (after**2).sum(axis=1) < m @ (v**2).sum(axis=1)


def tilted(angle, slope, floor=None, push=1.0, seconds=0.05):
    """A layer of sand, pushed down a plane that is `slope` degrees steep; returns its deceleration over g cos."""
    t = np.radians(slope)
    scene = pl.Scene(particle_radius=D / 2, gravity=(G * np.sin(t), -G * np.cos(t), 0), periodic=(8 * D, None, 6 * D))
    scene.add(pl.Plane(), pl.Boundary(friction=floor))
    size = np.array([8, 6, 6]) * D
    scene.add(pl.Box(size=size, center=size / 2), pl.Granular(friction_angle=angle), name="sand", velocity=(push, 0, 0))
    sim = scene.build()
    sim.run(seconds)
    before, begun = sim["sand"].v[:, 0].mean(), sim.time
    sim.run(seconds)
    return (np.tan(t) - (sim["sand"].v[:, 0].mean() - before) / (sim.time - begun) / (G * np.cos(t))), sim


@pytest.mark.parametrize("floor, right", [(None, np.tan(np.radians(30))), (0.25, 0.25), (0.0, 0.0)])
def test_a_layer_slides_on_a_floor_with_the_friction_of_the_floor(floor, right):
    assert tilted(30, 15, floor)[0] == pytest.approx(right, abs=0.003)


def test_a_layer_on_a_rough_slope_shears_where_it_is_steeper_than_its_grains_hold():
    """The floor holds the lowest grains, so that the layer has to shear within itself."""
    _, below = tilted(30, 27, floor=10.0, push=0.3, seconds=0.5)
    _, above = tilted(30, 36, floor=10.0, push=0.3, seconds=0.25)
    x, v = above["sand"].x, above["sand"].v[:, 0]
    assert below["sand"].v[:, 0].mean() < 1e-4
    assert v.mean() > 0.5 and v[x[:, 1] < D].mean() < 0.02 * v[x[:, 1] > 4 * D].mean()


def pile(angle=35.0, solver=None, seconds=1.5, cohesion=0.0, **settings):
    scene = pl.Scene(particle_radius=D / 2, pressure=solver or pl.DFSPH(), **settings)
    scene.add(pl.Plane(), pl.Boundary())
    sand = pl.Granular(friction_angle=angle, cohesion=cohesion)
    scene.add(pl.Cylinder(radius=0.1, height=0.16, center=(0, 0.08, 0)), sand, name="sand")
    sim = scene.build()
    sim.run(seconds)
    return sim


SOLVERS = [pl.DFSPH(), pytest.param(pl.IISPH(), marks=pytest.mark.slow)]


@pytest.mark.parametrize("solver", SOLVERS, ids=["DFSPH", "IISPH"])
def test_a_pile_comes_to_rest_and_stays(solver):
    sim = pile(solver=solver, seconds=1.5)
    x = sim["sand"].x
    sim.run(0.5)
    energy = 0.5 * (sim["sand"].v ** 2).sum(axis=1).mean() / (G * D)
    assert energy < 1e-10
    assert np.abs(sim["sand"].x - x).max() < 1e-5 * D
    assert 0.07 < x[:, 1].max() < 0.09  # it did fall, and did not flow apart
    assert next(iter(sim.results.values())).iterations == friction.LEAST_SWEEPS


def test_steeper_friction_makes_a_steeper_pile():
    heights = [pile(angle, seconds=0.6)["sand"].x[:, 1].max() for angle in (10.0, 35.0, 60.0)]
    assert (np.diff(heights) > 0.5 * D).all()


def test_a_round_column_spreads_evenly_and_less_with_more_friction():
    """8 particles along the radius, as high as broad: its middle stays where it was, and no direction is preferred."""
    reach, height = [], []
    for angle in (22.0, 35.0):
        scene = pl.Scene(particle_radius=D / 2)
        scene.add(pl.Plane(), pl.Boundary())
        block = pl.Cylinder(radius=8 * D, height=8 * D, center=(0, 4 * D, 0))
        scene.add(block, pl.Granular(friction_angle=angle), name="sand")
        sim = scene.build()
        sim.run(6 * np.sqrt(8 * D / G))
        x = sim["sand"].x / D
        assert np.abs(x[:, [0, 2]].mean(axis=0)).max() < 0.2
        assert x[:, 0].std() == pytest.approx(x[:, 2].std(), rel=0.05)
        reach.append(np.quantile(np.hypot(x[:, 0], x[:, 2]), 0.99))
        height.append(x[:, 1].max() + 0.5)
    assert reach[0] > reach[1] + 2 and height[0] < height[1] - 0.5
    assert reach[1] > 8 and height[1] < 8


@pytest.mark.parametrize("share, stands", [(0.3, False), (2.0, True)])
def test_a_cohesive_bank_stands_up_to_its_critical_height(share, stands):
    """H = 4 c / (rho g) tan(45 + angle / 2) for a vertical bank (Terzaghi 1943)."""
    height, angle = 10 * D, 30.0
    cohesion = share * height * 1600 * G / (4 * np.tan(np.radians(45 + angle / 2)))
    scene = pl.Scene(particle_radius=D / 2, periodic=(None, None, 6 * D))
    scene.add(pl.Plane(), pl.Boundary())
    sand = pl.Granular(friction_angle=angle, cohesion=cohesion)
    scene.add(pl.Box(size=(10 * D, height, 6 * D), center=(0, height / 2, 3 * D)), sand, name="sand")
    sim = scene.build()
    sim.run(0.6)
    assert (np.ptp(sim["sand"].x[:, 0]) < 10 * D) == stands


def test_friction_does_not_act_on_water():
    """Water that slides over sand and along its side is not slowed by it, sand that slides over sand is."""
    speeds = {}
    for name, material in (("water", pl.Fluid(density=1600, viscosity=0, damping=0)), ("sand", pl.Granular(damping=0))):
        scene = pl.Scene(particle_radius=D / 2, periodic=(8 * D, None, 6 * D))
        scene.add(pl.Plane(), pl.Boundary())
        size = np.array([8, 3, 6]) * D
        scene.add(pl.Box(size=size, center=size / 2), pl.Granular(damping=0), name="bed")
        scene.add(pl.Box(size=size, center=size / 2 + (0, 3 * D, 0)), material, name="top", velocity=(0.5, 0, 0))
        sim = scene.build()
        sim.run(0.06)
        speeds[name] = sim["top"].v[:, 0].mean()
    assert speeds["water"] > 0.49 and speeds["sand"] < 0.15


def test_sand_holds_a_solid_that_would_sink_in_water():
    depths = {}
    for name, material in (("sand", pl.Granular()), ("water", pl.Fluid(density=1600))):
        scene = pl.Scene(particle_radius=D / 2)
        tank = np.array([10, 14, 10]) * D
        scene.add(pl.Box(size=tank, center=tank / 2), pl.Boundary(inside_out=True))
        bed = np.array([10, 5, 10]) * D
        scene.add(pl.Box(size=bed, center=bed / 2), material)
        block = pl.Box(size=(4 * D, 4 * D, 4 * D), center=(5 * D, 7.2 * D, 5 * D))
        scene.add(block, pl.Elastic(density=3000, young=1e6), name="block")
        sim = scene.build()
        sim.run(0.35)
        depths[name] = sim["block"].x[:, 1].min()
    assert depths["sand"] > 2.5 * D > depths["water"]


@pytest.mark.parametrize("wrong, told", [
    (dict(friction_angle=90.0), "friction_angle"), (dict(friction_angle=-1.0), "friction_angle"),
    (dict(cohesion=-1.0), "cohesion"), (dict(density=float("nan")), "density"), (dict(grains=2.5), "grains"),
    (dict(angle=30.0), "friction_angle"),
])  # fmt: skip
def test_impossible_sand_is_refused_in_a_sentence(wrong, told):
    scene = pl.Scene()
    scene.add(pl.Box(), pl.Granular(**wrong))
    assert any(told in sentence for sentence in scene.problems())
