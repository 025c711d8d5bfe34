"""Grains of sand: where they begin, how they go with the medium and fall without it, and that walls hold them."""


import numpy as np
import pytest
import taichi as ti
from scipy.spatial import cKDTree

import pliant as pl
from pliant.core.backend import Ints, Vectors, upload, vec3
from pliant.core.neighbors import triple
from pliant.render import Look
from pliant.render.render_scene import RenderScene
from pliant.run.folder import RunFolder
from pliant.run.frames import Frame
from pliant.run.plan import Plan
from pliant.run.run import Run
from pliant.solvers.granular import grain_sampling
from pliant.solvers.granular.grain_field import DENSITY, MEAN_WEIGHT, OWN, REACH, Nodes, sums_at

D = 0.1  # spacing in most of these scenes
FLOAT = 2e-6  # relative: a few roundings of single precision


def sand(shape=None, grains=20, walls=(), velocity=(0, 0, 0), friction_angle=35.0, **settings):
    """A scene of one block of sand, and walls as pairs of shape and parameters of the boundary."""
    scene = pl.Scene(particle_radius=D / 2, **settings)
    for k, (wall, options) in enumerate(walls):
        scene.add(wall, pl.Boundary(**options), name=f"wall{k}")
    block = shape or pl.Box(size=(0.5, 0.5, 0.5), center=(0.5, 0.25, 0.5))
    scene.add(block, pl.Granular(grains=grains, friction_angle=friction_angle), name="sand", velocity=velocity)
    return scene


FLOOR = (pl.Plane(), {})


def state(sim):
    return sim.stores["grains"].numpy("x"), sim.stores["grains"].numpy("v")


def put(sim, x, v=None):
    """Puts the first grains somewhere."""
    places, speeds = state(sim)
    places[: len(x)], speeds[: len(x)] = x, 0.0 if v is None else v
    sim.stores["grains"].set("x", places)
    sim.stores["grains"].set("v", speeds)


# --- at the start -----------------------------------------------------------------------------------


def test_the_tile_has_no_clumps_not_even_across_its_edges():
    x = grain_sampling.tile()
    assert x.shape == (grain_sampling.TILE**3, 3) and x.min() >= 0 and x.max() < grain_sampling.TILE
    nearest = cKDTree(x, boxsize=grain_sampling.TILE).query(x, 2)[0][:, 1]
    assert nearest.min() > 0.7, "random points: 0.03; a lattice: 1"


@pytest.mark.parametrize("shape", [
    pl.Box(size=(0.6, 0.4, 0.5), center=(0, 0.2, 0)), pl.Sphere(radius=0.35, center=(0.1, 0.35, 0)),
    pl.Cylinder(radius=0.3, height=0.5, center=(0, 0.25, 0)) - pl.Box(size=(0.3, 0.3, 1), center=(0, 0.4, 0)),
])  # fmt: skip
@pytest.mark.parametrize("grains", [1, 37])
def test_grains_fill_the_shape_itself(shape, grains):
    sim = sand(shape, grains, [FLOOR], gravity=(0, 0, 0)).build()
    x, radius = sim["sand"].grains.astype(float), sim.stores["grains"].groups[0].radius
    assert x.shape == (grains * sim.particles, 3) and x.dtype == np.float64
    assert sim["sand"].grains.dtype == np.float32
    assert x[:, 1].min() >= radius * (1 - 1e-5), "clear of the floor"
    assert (shape.signed_distance(x) <= 0.25 * D + 1e-6).all()
    assert (shape.signed_distance(x) <= 1e-6).mean() > 0.95
    apart = cKDTree(x).query(x, 2)[0][:, 1] / (2 * radius)
    assert apart.min() > 0.6 and apart.mean() > 0.9
    inside = shape.signed_distance(x) < -D / 2
    empty = cKDTree(x).query(sim["sand"].x)[0].max() / (2 * radius)
    assert inside.any() and empty < 1.3, "no particle without a grain near it: no voids"


def test_grains_keep_clear_of_other_bodies_and_walls():
    scene = sand(pl.Box(size=(0.8, 0.4, 0.4), center=(0, 0.2, 0)), 30,
                 [FLOOR, (pl.Sphere(radius=0.2, center=(0.4, 0.2, 0)), {})])  # fmt: skip
    scene.add(pl.Box(size=(0.8, 0.4, 0.4), center=(0, 0.6, 0)), pl.Granular(grains=10), name="above")
    sim = scene.build()
    x, above = sim["sand"].grains.astype(float), sim["above"].grains.astype(float)
    assert len(x) == 30 * len(sim["sand"]) and len(above) == 10 * len(sim["above"])
    assert np.linalg.norm(x - (0.4, 0.2, 0), axis=1).min() >= 0.2 + sim.stores["grains"].groups[0].radius * (1 - 1e-5)
    assert x[:, 1].max() < 0.45 and above[:, 1].min() > 0.35


# --- the field --------------------------------------------------------------------------------------


@ti.kernel
def _ask(n: ti.i32, x: Vectors, grid: Vectors, shape: Ints, wraps: ti.template(), directory: Ints, values: Nodes,
         out: Nodes):  # fmt: skip
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for i in range(n):
        out[i] = sums_at(x[i], grid, dims, periodic, wraps, directory, values)


def twin(x, v, at, period):
    """Eq. 40 and 41 as they are printed: W v and W."""
    apart = at[:, None] - x[None]
    apart -= period * np.round(apart / np.where(period > 0, period, np.inf))
    w = np.clip(1 - (apart**2).sum(axis=2) / (REACH * D) ** 2, 0, None) ** 3
    return w @ v, w.sum(axis=1)


@pytest.mark.parametrize("periodic", [(None, None, None), (1.3, None, 0.6)])
def test_the_field_is_that_of_the_paper(periodic):
    rng = np.random.default_rng(3)
    shape = pl.Box(size=(1, 0.6, 0.6), center=(0.5, 0.3, 0.3))
    sim = sand(shape, 1, gravity=(0, 0, 0), periodic=periodic).build()
    p, period = sim.world.particles, np.array([q or 0.0 for q in periodic])
    x = sim["sand"].x + rng.uniform(-0.4, 0.4, (sim.particles, 3)) * D
    x = np.where(period > 0, x % np.where(period > 0, period, 1), x)
    v = rng.normal(size=x.shape)
    p.set_by_id("x", x)
    p.set_by_id("v", v)
    low, high = x.min(axis=0), x.max(axis=0)
    sim.world.neighbors.update(low, high)
    field, nothing = sim.stores["grains"].field, upload(np.zeros((1, 3)), vec3)
    field.find(0.0, low, high, 0, nothing, None, 0.0, 0.0)  # no grains: no crowd from which any could drift
    slots = int(field.used[0])
    where, own = field.where.to_numpy()[:slots], field.own.to_numpy()[: OWN * slots]
    dims, grid = field.shape.to_numpy()[:3], field.grid.to_numpy().astype(float)
    block = np.stack([where % dims[0], where // dims[0] % dims[1], where // (dims[0] * dims[1])], axis=1)
    k = np.arange(OWN)
    node = np.stack([k % DENSITY, k // DENSITY % DENSITY, k // DENSITY**2], axis=1)
    at = grid[0] + grid[1] * (DENSITY * block[:, None] + node[None]).reshape(-1, 3)
    momentum, weight = twin(x, v, at, period)
    np.testing.assert_allclose(own[:, 3], weight, atol=1e-5)
    np.testing.assert_allclose(own[:, :3], momentum, atol=3e-5)
    assert weight.max() > 1 and (weight == 0).any()

    points = rng.uniform(low, high, (500, 3))
    out = ti.ndarray(ti.math.vec4, 500)
    _ask(500, upload(points, vec3), *field.arguments[:5], out)
    u = (points - grid[0]) / grid[1]
    first, t = np.floor(u), u - np.floor(u)
    total = np.zeros((500, 4))
    for corner in np.ndindex(2, 2, 2):
        there = grid[0] + grid[1] * (first + corner)
        share = np.prod(np.where(corner, t, 1 - t), axis=1)
        momentum, weight = twin(x, v, there, period)
        total += share[:, None] * np.column_stack([momentum, weight])
    np.testing.assert_allclose(out.to_numpy(), total, atol=1e-4)


def test_a_full_medium_has_fill_one_and_its_surface_one_half():
    x = np.stack(np.meshgrid(*[np.arange(-6, 7.0)] * 3, indexing="ij"), -1).reshape(-1, 3) * D
    rng = np.random.default_rng(0)
    inside = twin(x, x, rng.uniform(-D, D, (4000, 3)), np.zeros(3))[1].mean() / MEAN_WEIGHT
    assert inside == pytest.approx(1.0, abs=0.005)
    over = rng.uniform(-D, D, (4000, 3))
    over[:, 1] = 6.5 * D
    assert twin(x, x, over, np.zeros(3))[1].mean() / MEAN_WEIGHT == pytest.approx(0.51, abs=0.01)


def test_a_stray_particle_far_away_costs_little_and_its_grains_fly_on():
    sim = sand(grains=5, gravity=(0, 0, 0)).build()
    x, v = sim["sand"].x, sim["sand"].v
    x[0], v[0] = (4e4 * D, 3e4 * D, -5e4 * D), (1.0, 0, 0)
    sim["sand"].x, sim["sand"].v = x, v
    before = state(sim)[0]
    for _ in range(3):
        sim.step(1e-3)
    after = state(sim)[0]
    assert sim.stores["grains"].field.directory.shape[0] < 1e6 and np.isfinite(after).all()
    far = np.abs(before).max(axis=1) > 1e3 * D
    assert far.any() and (after[far] != before[far]).any(axis=1).sum() > 0
    np.testing.assert_array_equal(after[~far], before[~far])


# --- motion -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("periodic", [(None, None, None), (1.2, None, None)])
def test_a_translation_is_exact(periodic):
    velocity = np.array([1.5, -0.7, 0.4])
    sim = sand(grains=30, gravity=(0, 0, 0), velocity=velocity, periodic=periodic).build()
    before = state(sim)[0].astype(float)
    sim.run(0.4)
    after, v = state(sim)
    moved = after - before
    if periodic[0]:
        moved[:, 0] += 1.2 * np.round((0.6 - moved[:, 0]) / 1.2)
        assert after[:, 0].min() >= 0 and after[:, 0].max() <= 1.2
    np.testing.assert_allclose(moved, np.broadcast_to(0.4 * velocity, moved.shape), atol=40 * FLOAT)
    np.testing.assert_allclose(v, np.broadcast_to(velocity, v.shape), atol=FLOAT)


def test_grains_of_a_lone_particle_fall_as_it_does():
    sim = sand(pl.Sphere(radius=0.06, center=(0.3, 2, 0.3)), 60, velocity=(0.5, 1, 0)).build()
    assert sim.particles == 1
    before, particle = state(sim)[0], sim["sand"].x
    sim.run(0.5)
    moved = sim["sand"].x - particle
    np.testing.assert_allclose(state(sim)[0] - before, np.broadcast_to(moved, before.shape), atol=1e-5)
    assert moved[0, 1] == pytest.approx(0.5 - 0.5 * 9.81 * 0.25, abs=0.5 * 9.81 * 0.5 * 5e-3 + 1e-4)


def test_a_body_in_free_fall_keeps_its_shape():
    sim = sand(pl.Box(size=(0.5, 0.4, 0.6), center=(0, 2, 0)), 40).build()
    before = state(sim)[0]
    sim.run(0.4)
    moved = state(sim)[0] - before
    assert np.ptp(moved, axis=0).max() < 1e-3 * D


def test_rest_is_rest():
    """A pile whose particles stand still has grains that stand still."""
    scene = sand(walls=[FLOOR])
    scene.bodies[-1].fix()
    sim = scene.build()
    first = state(sim)[0]
    sim.run(0.5)
    before, v = state(sim)
    sim.run(0.1)
    np.testing.assert_array_equal(state(sim)[0], before)
    assert np.abs(v).max() == 0.0
    np.testing.assert_array_equal(before, first)


def test_what_falls_on_the_medium_stops_on_it():
    scene = sand(walls=[FLOOR])
    scene.bodies[-1].fix()
    sim = scene.build()
    drops = np.random.default_rng(1).uniform((0.35, 0.8, 0.35), (0.65, 1.5, 0.65), (200, 3))
    put(sim, drops, (0, -2, 0))
    sim.run(0.5)
    height = state(sim)[0][:200, 1]
    top = 0.5  # of the block: half a spacing above its last particles
    assert height.max() < top + 0.1 * D, "nothing hovers"
    assert height.min() > top - 0.6 * D, "and nothing sinks in further than a step"
    assert np.abs(state(sim)[1][:200]).max() == 0.0


def test_grains_reach_down_to_the_floor():
    sim = sand(grains=60, walls=[FLOOR]).build()
    sim.run(0.5)
    x, radius = sim["sand"].grains, sim.stores["grains"].groups[0].radius
    lowest = np.percentile(x[:, 1], 1)
    assert sim["sand"].x[:, 1].min() > 0.3 * D, "particles keep their distance,"
    assert lowest < 2 * radius, "grains do not"


def test_grains_follow_particles_that_are_put_elsewhere():
    sim = sand(gravity=(0, 0, 0)).build()
    before = state(sim)[0]
    sim["sand"].x = sim["sand"].x + (0.5, 1.0, 0.25)
    np.testing.assert_allclose(state(sim)[0], before + np.float32((0.5, 1.0, 0.25)), atol=1e-6)
    sim["sand"].v = (1, 2, 3)
    np.testing.assert_allclose(state(sim)[1], np.broadcast_to((1, 2, 3), before.shape), atol=1e-6)


# --- walls ------------------------------------------------------------------------------------------


def depth(sim, name):
    """Distance of the nearest grain from the true surface of a wall, in spacings."""
    wall = next(w for w in sim.world.walls.walls if w.name == name)
    body = next(b for b in sim.scene.bodies if b.name == name)
    x = (state(sim)[0].astype(float) - wall.pivot - wall.shift) @ wall.rotation + wall.pivot
    return (body.shape.signed_distance(x) * (-1 if body.material.inside_out else 1)).min() / D


TANK = (pl.Box(size=(1.4, 3, 1.4), center=(0, 1.5, 0)), {"inside_out": True})
BLOCK = pl.Box(size=(0.6, 0.6, 0.6), center=(0, 1.1, 0))


@pytest.mark.parametrize("shape, motion, velocity", [
    (pl.Sphere(radius=0.3, center=(0, 0.35, 0)), None, (0, -1, 0)),
    (pl.Box(size=(0.4, 0.4, 0.4), center=(0.1, 0.3, 0.1)), None, (0, -1, 0)),
    (pl.Box(size=(1, 0.06, 1), center=(0, 0.6, 0)), None, (0, -6, 0)),
    (pl.Box(size=(0.2, 0.5, 1), center=(-0.55, 0.3, 0)), lambda t: (2, 0, 0) if t < 0.4 else (-2, 0, 0), (0, -1, 0)),
    (pl.Box(size=(1, 0.15, 1), center=(0, 0.6, 0)), lambda t: ((0, 0, 0), (0, 0, 9)), (0, 0, 0)),
], ids=["ball", "edges", "thin plate", "piston", "paddle"])  # fmt: skip
def test_no_grain_ever_enters_a_wall(shape, motion, velocity):
    scene = sand(BLOCK, 20, [TANK, (shape, {})], velocity)
    if motion:
        scene.bodies[1].move(motion)
    sim = scene.build()
    nearest = []
    for _ in range(20):
        sim.run(0.03)
        nearest.append((depth(sim, "wall0"), depth(sim, "wall1")))
    tank, obstacle = np.min(nearest, axis=0)
    radius = sim.stores["grains"].groups[0].radius / D
    assert tank > 0.99 * radius
    assert obstacle > 0.4 * radius, "edges are rounded off by the map; never inside"


def test_the_tank_holds_grains_at_long_steps_too():
    sim = sand(BLOCK, 20, [TANK, (pl.Box(size=(1, 0.1, 1), center=(0, 0.5, 0)), {})], (0, -5, 0), dt=0.016).build()
    for _ in range(40):
        sim.step()
        assert depth(sim, "wall0") > 0 and depth(sim, "wall1") > 0


def test_no_vertical_wall_holds_grains():
    """Grains on a wall, with no particle near, fall as fast as grains in the open."""
    sim = sand(BLOCK, 20, [TANK], friction_angle=60.0).build()
    radius = sim.stores["grains"].groups[0].radius
    y = np.linspace(2, 2.9, 100)
    on_wall = np.column_stack([np.full(100, 0.7 - radius), y, np.linspace(-0.5, 0.5, 100)])
    put(sim, on_wall, (3.0, 0, 0))  # thrown at it
    sim.run(0.2)
    x, v = state(sim)
    fall = 0.5 * 9.81 * 0.2**2
    np.testing.assert_allclose(y - x[:100, 1], fall, rtol=0.15)
    np.testing.assert_allclose(v[:100, 0], 0.0, atol=1e-6)


def test_friction_of_a_floor_stops_grains_by_coulombs_law():
    rough, mu, speed = (pl.Plane(), {"friction": 0.4}), 0.4, 1.0
    sim = sand(pl.Sphere(radius=0.06, center=(0, 5, 0)), walls=[rough], dt=2e-3).build()
    put(sim, [[3, sim.stores["grains"].groups[0].radius, 3]], (speed, 0, 0))
    sim.run(0.3)  # it stops after 0.255 s
    x, v = state(sim)
    assert x[0, 0] - 3 == pytest.approx(speed**2 / (2 * mu * 9.81), rel=0.02)
    assert (v[0] == 0).all()


def test_a_rough_slope_holds_a_grain_and_a_smooth_one_lets_it_go():
    slope = pl.Plane(normal=(np.sin(0.4), np.cos(0.4), 0))
    for friction, held in ((0.6, True), (0.2, False)):  # tan(0.4) = 0.42
        sim = sand(pl.Sphere(radius=0.3, center=(0, 5, 0)), walls=[(slope, {"friction": friction})]).build()
        start = sim.stores["grains"].groups[0].radius * np.array([np.sin(0.4), np.cos(0.4), 0]) + (0, 0, 2)
        put(sim, [start])
        sim.run(0.5)
        slid = np.linalg.norm(state(sim)[0][0] - start)
        expected = 0.0 if held else 0.5 * 9.81 * (np.sin(0.4) - 0.2 * np.cos(0.4)) * 0.25
        assert slid == pytest.approx(expected, rel=0.03, abs=1e-5)


def test_a_moving_wall_takes_grains_along():
    scene = sand(pl.Sphere(radius=0.3, center=(0, 5, 0)), walls=[(pl.Plane(), {"friction": 1.0})], gravity=(0, 0, 0))
    scene.bodies[0].move(lambda t: (0, 1.5, 0))
    sim = scene.build()
    put(sim, [[2, 0.1, 2]])
    sim.run(0.4)
    x, v = state(sim)
    radius = sim.stores["grains"].groups[0].radius
    assert x[0, 1] == pytest.approx(0.6 + radius, abs=1e-4) and v[0, 1] == pytest.approx(1.5)


# --- clumps -----------------------------------------------------------------------------------------


def crowding(sim):
    """Variance over mean of the number of grains in cells of about eight inside the medium: 0.2 at the start, 1 for
    random points; and the share of grains with another one nearer than 0.3 of their mean distance: random 0.107."""
    x, edge = state(sim)[0].astype(float), 4 * sim.stores["grains"].groups[0].radius
    tree = cKDTree(sim["sand"].x)
    cells, low = np.floor(x / edge).astype(int), np.floor(x / edge).astype(int).min(axis=0)
    count = np.zeros(cells.max(axis=0) - low + 1, int)
    np.add.at(count, tuple((cells - low).T), 1)
    middle = (np.argwhere(count >= 0) + low + 0.5) * edge
    inside = np.array([len(near) for near in tree.query_ball_point(middle, 1.5 * D)]) >= 12
    held = count.reshape(-1)[inside]
    close = (cKDTree(x).query(x, 2)[0][:, 1] < 0.6 * sim.stores["grains"].groups[0].radius).mean()
    return held.var() / held.mean(), close


def test_a_collapse_makes_no_clumps():
    sim = sand(pl.Box(size=(0.6, 1, 0.6), center=(0, 0.5, 0)), 60, [FLOOR]).build()
    start = crowding(sim)
    assert start[0] < 0.3 and start[1] == 0
    sim.run(0.8)
    assert sim["sand"].x[:, 1].max() < 0.85, "it has collapsed"
    spread, close = crowding(sim)
    assert spread < 0.7 and close < 0.1


@pytest.mark.slow
def test_stirring_for_long_makes_no_clumps():
    """Without drift and scatter this drum comes to 2.5 and 0.22."""
    drum = (pl.Cylinder(radius=0.9, height=0.6, axis="z"), {"inside_out": True, "friction": 1.0})
    scene = sand(pl.Box(size=(1.3, 0.5, 0.6), center=(0, -0.4, 0)), 40, [drum])
    scene.bodies[0].move(lambda t: ((0, 0, 0), (0, 0, 4)))
    sim = scene.build()
    sim.run(2.5)
    spread, close = crowding(sim)
    assert spread < 1.4 and close < 0.17
    assert depth(sim, "wall0") > 0


# --- state ------------------------------------------------------------------------------------------


def assert_same(one, other):
    for name in ("x", "v"):
        a, b = (sim.stores["grains"].numpy(name) for sim in (one, other))
        assert a.tobytes() == b.tobytes(), name


def collapse():
    return sand(grains=25, walls=[TANK, (pl.Sphere(radius=0.2, center=(0.5, 0, 0.5)), {})])


def test_a_restart_is_exact(tmp_path):
    one = collapse().build()
    one.run(0.1)
    one.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    assert_same(one, other)
    for sim in (one, other):
        sim.run(0.1)
    assert_same(one, other)


def test_a_file_without_its_grains_is_refused(tmp_path):
    sim = collapse().build()
    del sim.stores["grains"]
    sim.save(tmp_path / "state.npz")
    with pytest.raises(pl.PliantError, match="does not hold the field 'x' of the grains"):
        pl.load(tmp_path / "state.npz")


def test_a_breakdown_puts_grains_back():
    sim = collapse().build()
    sim.run(0.05)
    before = state(sim)
    v = sim.world.particles.numpy("v")
    v[7] = np.nan
    sim.world.particles.set("v", v)
    with pytest.raises(pl.SimulationError):
        sim.step()
    for old, new in zip(before, state(sim), strict=True):
        np.testing.assert_array_equal(old, new)
    sim.run(0.02)
    assert np.isfinite(state(sim)[0]).all()


@pytest.mark.parametrize("value, complaint", [(-1, "in [0, 1000]"), (1001, "in [0, 1000]"), (2.5, "whole number"),
                                              ("many", "whole number")])  # fmt: skip
def test_wrong_numbers_of_grains_are_told(value, complaint):
    sentences = sand(grains=value).problems()
    assert len(sentences) == 1 and "grains" in sentences[0] and complaint in sentences[0]


def test_grains_count_in_the_memory_estimate():
    lean, rich = sand(grains=0), sand(grains=1000)
    assert rich._bytes(D) > 40 * lean._bytes(D)
    assert len(lean.build()["sand"].grains) == 0


def test_a_name_that_files_of_grains_have_is_refused():
    scene = sand()
    scene.add(pl.Box(size=(1, 1, 1), center=(3, 3, 3)), pl.Fluid(), name="sand_grains")
    assert "choose another name" in scene.problems()[0]


# --- pictures and files -----------------------------------------------------------------------------


def test_pictures_show_grains_in_place_of_particles(tmp_path):
    sim = sand(walls=[FLOOR]).build()
    snapshot = Frame(sim, 0).snapshot()
    assert set(snapshot.clouds) == {"sand", "sand_grains"}
    render_scene = sim.canvas.render_scene
    render_scene.save(tmp_path / "render_scene.npz")
    assert RenderScene.load(tmp_path / "render_scene.npz").bodies == render_scene.bodies
    (drawn,) = render_scene.picture(snapshot).points
    np.testing.assert_array_equal(drawn.x, sim["sand"].grains)
    assert drawn.radius == pytest.approx(1.1 * sim.stores["grains"].groups[0].radius)
    assert len(np.unique(drawn.colors, axis=0)) > 100, "sand is of many colours"
    np.testing.assert_array_equal(render_scene.picture(snapshot).points[0].colors, drawn.colors)
    (plain,) = render_scene.picture(snapshot, Look(grains=False)).points
    assert len(plain.x) == sim.particles
    (pressed,) = render_scene.picture(snapshot, Look(color="pressure")).points
    assert len(pressed.x) == sim.particles, "grains have no pressure"
    (fast,) = render_scene.picture(snapshot, Look(bar=True)).points
    assert len(fast.x) == sim.stores["grains"].n and len(np.unique(fast.colors, axis=0)) == 1, "all are at rest"


def test_runs_write_and_read_grains(tmp_path):
    scene = sand(walls=[FLOOR])
    plan = Plan("pile", "pile", scene, [], {}, 0.05, 40, tmp_path / "run", ("vtu", "ply"), (64, 48))
    assert Run(plan)() == 0
    run = RunFolder(tmp_path / "run")
    record = run.record()
    assert record["particles"] == {"sand": 125} and record["others"] == {"sand_grains": 2500}
    assert (run.frames / "sand_grains_0002.ply").exists()
    cloud = run.snapshot(2).clouds["sand_grains"]
    sim = sand(walls=[FLOOR]).build()
    list(sim.frames(0.05, 40))
    np.testing.assert_array_equal(cloud.x, sim["sand"].grains)
    np.testing.assert_array_equal(cloud.fields["velocity"], sim.stores["grains"].numpy("v"))
    assert cloud.fields["id"].tolist() == list(range(2500))


def test_bodies_without_grains_have_no_field():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.5, 0.5, 0.5)), pl.Fluid(), name="water")
    sim = scene.build()
    sim.step()
    assert "grains" not in sim.stores and "grains" not in sim.stats.seconds
