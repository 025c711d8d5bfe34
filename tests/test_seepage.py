"""Water in sand: a NumPy twin of the pore pressures, Darcy, effective stress, volume and momentum, exact restart."""

import numpy as np
import pytest

import pliant as pl
from pliant.errors import PliantError, SceneError
from pliant.solvers.granular import seepage

D = 0.02  # spacing [m]
G, RHO = 9.81, 1000.0
LAYERS = 6


def basin(wide, sand, sand_shape, water_shapes, fixed=False, dt=None, **fluid):
    """A tank so many spacings wide, periodic along z."""
    scene = pl.Scene(particle_radius=D / 2, periodic=(None, None, LAYERS * D), dt=dt)
    tank = pl.Box(size=(wide * D, 3, 9), center=(wide * D / 2, 1.5, 0))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    body = scene.add(sand_shape, sand, name="sand")
    if fixed:
        body.fix()
    shape = water_shapes[0]
    for other in water_shapes[1:]:
        shape = shape | other
    scene.add(shape, pl.Fluid(**fluid), name="water")
    return scene.build(quiet=True)


def block(x0, x1, y0, y1):
    """A box between these spacings."""
    size = np.array([x1 - x0, y1 - y0, LAYERS]) * D
    return pl.Box(size=tuple(size), center=tuple(np.array([x0, y0, 0]) * D + size / 2))


def water_in(sim):
    """All water, free and in pores and on its way [m^3]."""
    p = sim.world.particles
    sand, water = (p.rows_of(k) for k in (0, 1))
    parts = [p.read("water", sand), p.read("V", water), p.read("seeped", sand), p.read("seeped", water)]
    return sum(float(part.astype(float).sum()) for part in parts)


@pytest.fixture(scope="module")
def bed():
    """Eight layers of sand under eight of water, after half a second."""
    sand = pl.Granular(grain_diameter=2e-3)
    sim = basin(10, sand, block(0, 10, 0, 8), [block(0, 10, 8, 16)])
    sim.run(0.5)
    return sim


def test_sand_under_water_is_wet_and_its_water_bears_its_own_weight(bed):
    sand = bed["sand"]
    assert sand.saturation == pytest.approx(1.0, abs=0.02)
    assert float(sand.mass.sum() / sand.volume.sum()) == pytest.approx(2000, rel=0.01)  # 1600 + 0.4 * 1000
    top = np.sort(bed["water"].x[:, 1])[-LAYERS * 10 :].mean() + D / 2
    height, u = sand.x[:, 1], sand.pore_pressure
    for low in range(1, 7):
        layer = (height >= low * D) & (height < (low + 1) * D)
        exact = RHO * G * (top - height[layer].mean())
        assert u[layer].mean() == pytest.approx(exact, rel=0.12)  # of free water, whose pressure swings
    slope = np.polyfit(height[height < 7 * D], u[height < 7 * D], 1)[0]
    assert slope == pytest.approx(-RHO * G, rel=0.03)  # nothing flows
    assert (sand.effective_pressure >= 0).all()
    assert sand.effective_pressure.mean() < 0.5 * sand.pressure.mean()


def test_volume_is_kept(bed):
    assert water_in(bed) == pytest.approx(10 * 8 * LAYERS * 1.4 * D**3, rel=1e-4)
    stats = bed.stats
    for name in ("sand", "water"):
        assert stats.initial[name] + stats.emitted[name] == len(bed[name]) + stats.drained[name]


def test_twin_of_pore_pressures():
    """u of one step is what a dense complementarity solve in double precision finds."""
    sand = pl.Granular(grain_diameter=3e-3, saturation=0.97)
    sim = basin(8, sand, block(2, 6, 0, 7), [block(0, 2, 0, 6), block(6, 8, 0, 3)], fixed=True, dt=2e-3)
    for _ in range(20):
        sim.step()
    stage = next(s for s in sim.stages if isinstance(s, seepage.Seepage))
    sim._step._run("prescribed", "walls", 2e-3)
    before = sim.world.particles.numpy("water").astype(float)
    tolerance, seepage.TOLERANCE = seepage.TOLERANCE, 1e-5
    try:
        stage.run(2e-3)
    finally:
        seepage.TOLERANCE = tolerance
    p, near = sim.world.particles, sim.world.neighbors
    x, V, u = (p.numpy(name).astype(float) for name in ("x", "V", "pore_pressure"))
    body, mobility, exposed = p.numpy("body"), p.numpy("mobility").astype(float), p.numpy("in_open")
    span, neighbor, factor = near.span.to_numpy(), near.neighbor.to_numpy(), near.factor.to_numpy()
    n, porosity = p.n, 0.4
    T = np.zeros((n, n))
    for i in range(n):
        for k in range(*span[i]):
            j = neighbor[k]
            if body[i] == 0 and body[j] == 0:
                T[i, j] = -V[i] * factor[k] * (mobility[i] + mobility[j])
            elif body[i] != body[j]:
                T[i, j] = -V[i] * factor[k] * 4 * mobility[i] * mobility[j]
    assert np.abs(T - T.T).max() < 1e-5 * T.max()
    share = np.where(body == 0, np.clip(before / (porosity * V), 0, 1) ** 3, 1.0)

    def inflow(u):
        U = u + RHO * G * x[:, 1]
        drop = U[None, :] - U[:, None]
        return (T * drop * np.where(drop > 0, share[None, :], share[:, None])).sum(axis=1)

    free = (body == 0) & (exposed == 0)
    twin = np.where(free, 0.0, u)
    D_ = 2e-3 * T.sum(axis=1) / (porosity * V)
    for _ in range(4000):  # projected Jacobi
        residual = (before + 2e-3 * inflow(twin)) / (porosity * V) - 1
        twin = np.where(free, np.maximum(twin + 0.7 * residual / np.maximum(D_, 1e-30), 0), twin)
    assert free.sum() > 80 and (twin[free] > 50).sum() > 20
    assert np.abs(u - twin)[free].max() < 0.02 * RHO * G * D + 0.01 * twin[free].max()
    seeped = p.numpy("seeped").astype(float)
    assert seeped == pytest.approx(2e-3 * np.where(body >= 0, inflow(u), 0.0), abs=1e-4 * np.abs(seeped).max())
    assert abs(seeped.sum()) < 1e-4 * np.abs(seeped).sum()


def test_dupuit():
    """Through a block of gravel between two basins seeps K (h1^2 - h2^2) / (2 L), but for the resistance of first
    layers: 13 to 25 % less at eight particles."""
    thick, d_grain, nu, n = 8, 6e-3, 1e-5, 0.4
    sand = pl.Granular(grain_diameter=d_grain, saturation=0.75)
    sim = basin(32, sand, block(12, 20, 0, 16), [block(0, 12, 0, 12), block(20, 32, 0, 6)], fixed=True, viscosity=nu)

    def basins():
        x, volume = sim["water"].x[:, 0], sim["water"].volume.astype(float)
        return np.array([volume[x < 16 * D].sum(), volume[x >= 16 * D].sum()])

    sim.run(1.5)
    before, start = basins(), sim.time
    first = water_in(sim)
    sim.run(1.0)
    after = basins()
    rate = (before[0] - after[0] + after[1] - before[1]) / 2 / (sim.time - start)
    high, low = (before + after) / 2 / (12 * LAYERS * D**2)
    A, B = 150 * RHO * nu * (1 - n) ** 2 / (n**3 * d_grain**2), 1.75 * RHO * (1 - n) / (n**3 * d_grain)
    gradient = RHO * G * (high - low) / (thick * D)
    mobility = 2 / (A + np.sqrt(A * A + 4 * B * gradient))
    exact = mobility * RHO * G * (high**2 - low**2) / (2 * thick * D) * LAYERS * D
    assert 0.7 < rate / exact < 1.05
    assert water_in(sim) == pytest.approx(first, rel=1e-4)


def test_pore_pressure_takes_friction_away():
    """A layer on a slope of 20 degrees, of sand of 35: u = r p leaves (1 - r) tan(35) of its friction."""
    tilt, layers = np.radians(20), 5
    for share, slides in ((0.3, False), (0.7, True)):
        gravity = (G * np.sin(tilt), -G * np.cos(tilt), 0.0)
        scene = pl.Scene(particle_radius=D / 2, gravity=gravity, periodic=(6 * D, None, LAYERS * D))
        scene.add(pl.Plane(), pl.Boundary(), name="plane")
        scene.add(block(0, 6, 0, layers), pl.Granular(friction_angle=35), name="sand")

        def press(sim, share=share):
            sand = sim["sand"]
            sim.world.particles.write("pore_pressure", sand._rows, share * sand.pressure)

        scene.on_step(press)
        sim = scene.build(quiet=True)
        sim.run(0.2)
        before = sim["sand"].v[:, 0].mean()
        sim.run(0.2)
        speed = sim["sand"].v[:, 0].mean()
        if slides:
            exact = G * (np.sin(tilt) - (1 - share) * np.tan(np.radians(35)) * np.cos(tilt))
            assert (speed - before) / 0.2 == pytest.approx(exact, rel=0.25)
        else:
            assert abs(speed) < 0.01


def test_water_that_leaves_sand_comes_out_as_particles():
    """A wet block of gravel in the open drains: drops appear, and volume and accounts are right."""
    gravel = pl.Granular(grain_diameter=2e-2, saturation=1.0)
    sim = basin(20, gravel, block(6, 14, 0, 10), [block(0, 2, 0, 1)], fixed=True)
    first, count = water_in(sim), len(sim["water"])
    sim.run(0.5)
    assert len(sim["water"]) > count + 10
    assert water_in(sim) == pytest.approx(first, rel=1e-4)
    x = sim["sand"].x
    assert sim["sand"].saturation[x[:, 1] > 8 * D].mean() < 0.7 < sim["sand"].saturation[x[:, 1] < 2 * D].mean()


def test_momentum_is_kept_as_water_seeps_in():
    """Without gravity and walls: a lump of water flies into a lump of dry gravel."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    gravel = pl.Granular(grain_diameter=2e-2, saturation=0.0)
    scene.add(pl.Box(size=(6 * D,) * 3, center=(0, 0, 0)), gravel, name="sand")
    water = pl.Box(size=(4 * D, 6 * D, 6 * D), center=(5.1 * D, 0, 0))
    scene.add(water, pl.Fluid(), name="water", velocity=(-0.5, 0, 0))
    sim = scene.build(quiet=True)
    p = sim.world.particles

    def momentum():
        return (p.numpy("m").astype(float)[:, None] * p.numpy("v")).sum(axis=0)

    before, volume = momentum(), water_in(sim)
    sim.run(0.1)
    assert sim["sand"].saturation.max() > 0.05
    assert momentum() == pytest.approx(before, abs=2e-3 * abs(before[0]))
    assert water_in(sim) == pytest.approx(volume, rel=1e-4)


def test_water_of_two_bodies_seeps():
    """A basin on each side, each a body of its own. Later, what drips out of the sand is of the first of them."""
    scene = pl.Scene(particle_radius=D / 2, periodic=(None, None, LAYERS * D))
    scene.add(pl.Box(size=(16 * D, 3, 9), center=(8 * D, 1.5, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(block(6, 10, 0, 10), pl.Granular(grain_diameter=2e-2, saturation=0.0), name="sand").fix()
    scene.add(block(0, 6, 0, 6), pl.Fluid(), name="left")
    scene.add(block(10, 16, 0, 6), pl.Fluid(), name="right")
    sim = scene.build(quiet=True)
    sim.run(0.15)
    held = 0.4 * (sim["sand"].saturation * sim["sand"].volume).sum()
    assert held > 0.2 * 0.4 * sim["sand"].volume.sum()
    for name in ("left", "right"):
        lost = 36 * LAYERS * D**3 - sim[name].volume.sum()
        assert lost == pytest.approx(0.5 * held, rel=1e-2)
        assert sim[name].volume.min() > 0.3 * D**3


def test_goes_on_exactly(tmp_path, assert_same_state):
    gravel = pl.Granular(grain_diameter=1e-2, saturation=0.5)
    sim = basin(12, gravel, block(4, 12, 0, 5), [block(0, 4, 0, 6)])
    for _ in range(25):
        sim.step()
    sim.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    for _ in range(25):
        sim.step()
        other.step()
    assert_same_state(sim, other)


def test_what_is_said_of_sand_is_checked():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(block(0, 3, 0, 3), pl.Granular(porosity=0.0, grain_diameter=-1, saturation=1.5), name="sand")
    with pytest.raises(SceneError) as error:
        scene.build(quiet=True)
    for name in ("porosity", "grain_diameter", "saturation"):
        assert name in str(error.value)


def test_only_sand_has_pores(bed):
    for name in ("saturation", "pore_pressure", "effective_pressure"):
        with pytest.raises(PliantError, match="not sand"):
            getattr(bed["water"], name)


def test_dry_sand_has_no_water():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Plane(), pl.Boundary())
    scene.add(block(0, 3, 0, 3), pl.Granular(saturation=1.0), name="sand")
    sim = scene.build(quiet=True)
    assert (sim["sand"].saturation == 0).all() and "seepage" not in {stage.name for stage in sim.stages}


def test_drops_come_out_only_where_there_is_room():
    """Sand that holds too much keeps it while others are around it: a drop in between would blow them apart."""
    sand = pl.Granular(grain_diameter=2e-3)
    sim = basin(8, sand, block(2, 6, 0, 4), [block(0, 1, 0, 1)], fixed=True)
    sim.step()
    (transfer,) = (stage for stage in sim.stages if isinstance(stage, seepage.SeepageTransfer))
    p, water = sim.world.particles, water_in(sim)
    x = p.numpy("x").astype(float)
    spots = np.array([x[0] + 0.1 * D, [1.0, 1.0, 0.0], [1.0, 1.0 + 0.5 * D, LAYERS * D], [1.0, 1.0 + D, 0.0]])
    assert transfer._free(spots).tolist() == [False, True, False, True]  # the third is too near the second, a period on
    inner = p.rows_of(0)[np.argmin(np.linalg.norm(x[p.rows_of(0)] - [4 * D, 1.5 * D, 0], axis=1))]
    top = p.rows_of(0)[np.argmin(np.linalg.norm(x[p.rows_of(0)] - [4 * D, 9 * D, 0], axis=1))]
    rows = np.array([inner, top], np.int32)
    p.write("in_open", rows, np.ones(2, np.int32))
    p.write("water", rows, p.read("water", rows) + 2 * np.float32(transfer.seepage.whole))
    count = len(sim["water"])
    transfer._drip()
    assert len(sim["water"]) == count + 1  # above the sand
    assert sim["water"].x[:, 1].max() > x[top, 1] + 0.5 * D
    assert water_in(sim) == pytest.approx(water + 4 * transfer.seepage.whole, rel=1e-5)
