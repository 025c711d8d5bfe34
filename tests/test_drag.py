"""Drag of the air: against a slow twin, the fall of a droplet in closed form, and what shields what."""

import importlib

import numpy as np
import pytest

import pliant as pl
from pliant.core.smoothing import smoothing
from pliant.scene import serialisation
from pliant.solvers.forces import drag

D = 0.05


def force(sim):
    return sim.stage("drag")


def prepare(sim):
    """Lists and walls for the particles where they are, and the air around them."""
    sim.find_neighbors()
    force(sim).after_neighbors()


def ramp(value, low, high):
    return np.clip((value - low) / (high - low), 0.0, 1.0)


def twin(sim, dt):
    """Velocities after one step of drag, particle by particle in double precision."""
    p, air, d = sim.world.particles, sim.scene.settings.air, sim.world.spacing
    names = ("x", "v", "V", "inverse_density", "body", "wall_gradient", "air")
    x, v, V, inverse_density, body, wall, wind = (p.numpy(name).astype(float) for name in names)
    s, h = smoothing(sim.scene.settings.smoothing), 2 * d
    step, period = 1e-5 * h, sim.world.neighbors.periods
    flat = (s.plane_sum(np.array([0.999])) - s.plane_sum(np.array([1.001])))[0] / 2e-3
    alone, after = d**3 * s.W(np.zeros(1), h)[0], v.copy()
    for i in range(len(x)):
        if inverse_density[i] == 0:
            continue
        dx = x[i] - x
        dx -= period * np.round(dx / np.where(period > 0, period, np.inf))
        r = np.linalg.norm(dx, axis=1)
        near = (r < h) & (np.arange(len(x)) != i)
        slope = (s.W(r[near] + step, h) - s.W(np.abs(r[near] - step), h)) / (2 * step)
        gradient = drag.STILL * wall[i] + (V[near] * slope / r[near]) @ dx[near]
        if sim.world.materials[int(body[i])].elastic:
            w, facing = wind[i] - v[i], d * np.linalg.norm(gradient) > drag.HIDDEN * flat
            area = facing * d**2 * max(d / flat * gradient @ w, 0)
            k = 0.5 * air.density * air.drag * area * inverse_density[i] / V[i]
            after[i] += w * (1 - 1 / (1 + k * dt))
            continue
        rho = (V[near] * s.W(r[near], h)).sum() + V[i] * s.W(np.zeros(1), h)[0]
        bulk = ramp(rho, alone, alone + drag.FULL * (1 - alone))
        surface = ramp(d * np.linalg.norm(gradient), drag.HIDDEN * flat, drag.SHOWN * flat)
        n = -gradient / max(np.linalg.norm(gradient), 1e-12)
        w = wind[i] - bulk * surface * min(wind[i] @ n, 0) * n - v[i]
        speed = np.linalg.norm(w)
        towards = [-dx[near] / r[near, None]] + ([wall[None, i] / np.linalg.norm(wall[i])] if wall[i].any() else [])
        cosines = np.concatenate(towards) @ (-w / speed)
        omega = (1 - bulk * (1 - surface)) * np.clip(1 - np.max(cosines, initial=0.0), 0, 1)
        own = (6 * V[i] / np.pi) ** (1 / 3)
        inverse = 1 / (own if air.grain is None else air.grain)
        k = 0.75 * air.density * air.drag * omega * inverse_density[i] * inverse
        after[i] += w * (1 - 1 / (1 + k * speed * dt))
    return after


def grid(seed=0, shape=(4, 3, 5)):
    rng = np.random.default_rng(seed)
    return pl.WindGrid(rng.uniform(-9, 9, (*shape, 3)), low=(0, -0.1, 0), high=(0.5, 0.4, 0.4))


def heap(air, rng, **settings):
    """Sand on a floor with fixed particles, a soft ball beside it, all out of order, and a few grains that fly."""
    scene = pl.Scene(particle_radius=D / 2, air=air, **settings)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    sand = scene.add(pl.Box(size=(0.4, 0.2, 0.3), center=(0.3, 0.1, 0.3)), pl.Granular(), name="sand")
    sand.fix(lambda x: x[:, 0] < 0.15)
    scene.add(pl.Box(size=(0.15, 0.15, 0.15), center=(0.3, 0.275, 0.3)), pl.Elastic(), name="cube")
    scene.add(pl.Box(size=(0.25, 0.25, 0.25), center=(0.3, 0.65, 0.3)), pl.Fluid(), name="spray")
    sim = scene.build()
    sim["sand"].x = sim["sand"].x + rng.uniform(-0.15, 0.15, sim["sand"].x.shape) * D
    sim["spray"].x = sim["spray"].x * (2.0, 3.0, 2.0) + rng.uniform(-0.7, 0.7, sim["spray"].x.shape) * D
    for name in ("sand", "cube", "spray"):
        sim[name].v = rng.normal(size=sim[name].x.shape)
    prepare(sim)
    return sim


# --- the force --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("air", "settings"), [
    (pl.Air(velocity=(6, -1, 2), density=80.0), {}),
    (pl.Air(velocity=(0, 0, 0), density=80.0, drag=1.1), {"smoothing": "wendland_c2"}),
    (pl.Air(velocity=grid(), grain=1e-3), {"periodic": (1.2, None, 1.2)}),
])  # fmt: skip
def test_against_the_slow_twin(air, settings):
    sim = heap(air, np.random.default_rng(1), **settings)
    p, before = sim.world.particles, sim.world.particles.numpy("v").astype(float)
    expected = twin(sim, 0.02)
    force(sim).run(0.02)
    changed = np.abs(expected - before).max(axis=1) > 1e-3
    assert 50 < changed.sum() < p.n - 50
    np.testing.assert_allclose(p.numpy("v"), expected, atol=2e-4 * np.abs(expected - before).max())


def drop(air, density=1000.0, **settings):
    """One particle."""
    scene = pl.Scene(particle_radius=D / 2, air=air, **settings)
    scene.add(pl.Box(size=(D, D, D)), pl.Fluid(density=density), name="drop")
    sim = scene.build()
    assert sim.particles == 1
    return sim


def test_a_falling_droplet_in_closed_form():
    """v = v_t tanh(g t / v_t), v_t = sqrt(2 m g / (rho C_D A)); gravity and drag take turns, an error of g dt / 2."""
    area, g = np.pi * (3 * D**3 / (4 * np.pi)) ** (2 / 3), 9.81
    terminal = np.sqrt(2 * D**3 * g / (1.2 * 0.47 * area))
    errors = []
    for dt in (4e-3, 2e-3):
        sim = drop(pl.Air(), 1.0, dt=dt)
        sim.run(0.12)
        errors.append(terminal * np.tanh(g * 0.12 / terminal) + sim["drop"].v[0, 1])
        assert 0 < errors[-1] < g * dt
        sim.run(0.4)
        assert -sim["drop"].v[0, 1] == pytest.approx(terminal - g * dt / 2, rel=2e-3)
    assert terminal == pytest.approx(1.2, abs=0.01) and errors[1] == pytest.approx(errors[0] / 2, rel=0.1)


def test_without_other_forces_the_step_is_exact():
    """w = w_0 / (1 + k w_0 t), in one step or in many."""
    k = 0.75 * 1.2 * 0.47 / (1000.0 * (6 * D**3 / np.pi) ** (1 / 3))
    for steps in (1, 40):
        sim = drop(pl.Air(velocity=(30, 40, 0)), gravity=(0, 0, 0))
        prepare(sim)
        for _ in range(steps):
            force(sim).run(8.0 / steps)
        left = 50.0 / (1 + k * 50.0 * 8.0)
        np.testing.assert_allclose(sim["drop"].v[0], np.array([0.6, 0.8, 0]) * (50.0 - left), rtol=1e-5)
        assert 10 < left < 40


@pytest.mark.parametrize("density", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("wind", [1e-3, 20.0, 1e4])
def test_no_particle_overtakes_the_wind(density, wind):
    sim = drop(pl.Air(velocity=(wind, 0, 0), density=1e3, grain=1e-5), density, gravity=(0, 0, 0))
    prepare(sim)
    last = 0.0
    for _ in range(5):
        force(sim).run(0.5)
        v = sim["drop"].v[0]
        assert last <= v[0] <= wind * (1 + 1e-6) and v[1] == v[2] == 0
        last = v[0]
    assert last > 0


def test_grains_are_carried_as_easily_as_they_are_fine():
    gains = []
    for grain in (None, 1e-3, 5e-4, 1.0):
        sim = drop(pl.Air(velocity=(1, 0, 0), grain=grain), gravity=(0, 0, 0))
        prepare(sim)
        force(sim).run(1e-3)
        gains.append(sim["drop"].v[0, 0])
    own = (6 * D**3 / np.pi) ** (1 / 3)
    np.testing.assert_allclose(np.divide(gains, gains[0]), [1, own / 1e-3, own / 5e-4, 1], rtol=1e-3)


def test_what_the_wind_picks_up_keeps_to_the_cfl_condition():
    """A step as long as the usual one would take this particle from rest past its neighbors."""
    for velocity in ((20.0, 0, 0), lambda x, t: (20.0, 0, 0)):
        sim = drop(pl.Air(velocity, grain=1e-4), gravity=(0, 0, 0))
        k = 0.75 * 1.2 * 0.47 / (1000.0 * 1e-4)
        assert sim.next_dt() == pytest.approx(np.sqrt(0.4 * D / k) / 20.0, rel=1e-4)
        sim.step()
        assert 0.2 * D < sim["drop"].x[0, 0] < 0.4 * D
    assert drop(pl.Air(velocity=(20, 0, 0))).next_dt() == drop(pl.Air()).next_dt() == 5e-3


# --- what shields what ------------------------------------------------------------------------------


def blown(x, wind=(1.0, 0, 0), **more):
    """What one step of wind does to particles at x, in units of what it does to a lone one."""
    air = pl.Air(velocity=wind)
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), air=air)
    for shape in more.get("walls", []):
        scene.add(shape, pl.Boundary())
    scene.add(pl.Box(size=(len(x) * D, D, D), center=(0, 2, 0)), pl.Fluid(), name="drops")
    sim, lone = scene.build(), drop(air, gravity=(0, 0, 0))
    sim["drops"].x = x
    for s in (sim, lone):
        prepare(s)
        force(s).run(1e-3)
    return sim["drops"].v / np.linalg.norm(lone["drop"].v[0])


def test_a_particle_shields_the_one_behind_it():
    x = D * np.array([[0, 1, 0], [1, 1, 0], [9, 1, 0], [9, 2.2, 0], [20, 1, 0], [21, 2, 0]])
    first, behind, left, right, front, aslant = blown(x)[:, 0]
    assert behind == 0 and 0.6 < first < 1, "even of two, one counts as surface by a sixth, along which air flows"
    assert 0.9 < left < 1 and right == pytest.approx(left, rel=1e-5) and front > 0.9
    assert aslant == pytest.approx(1 - np.sqrt(0.5), abs=0.03)


def test_a_wall_shields_what_lies_against_it():
    walls = [pl.Box(size=(D, 4 * D, 4 * D), center=(-D / 2, 0, 0))]
    x = D * np.array([[0.6, 0, 0], [-1.6, 0, 0], [8, 0, 0]])
    behind, before, far = blown(x, walls=walls)[:, 0]
    assert behind == 0 and before > 0.8 and far == pytest.approx(1)


def test_a_block_shields_the_drops_behind_it():
    """Particles within reach of its lee side feel nothing, those at its sides do."""
    k = np.arange(4)
    block = np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).reshape(-1, 3).astype(float)
    drops = np.array([[4.2, 1.5, 1.5], [4.2, 2.0, 1.0], [1.5, 5.4, 1.5], [-1.9, 1.5, 1.5], [9.0, 1.5, 1.5]])
    speed = blown(D * np.concatenate([block, drops]))[len(block):, 0]
    assert (speed[:2] < 0.2).all() and (speed[2:] > 0.5).all()


def layer(wind, uneven):
    """What wind does to sand on a floor, endless along x and z: its heights in units of D, and its velocities."""
    scene = pl.Scene(particle_radius=D / 2, periodic=(10 * D, None, 10 * D), air=pl.Air(velocity=wind))
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box(size=(10 * D, 6 * D, 10 * D), center=(5 * D, 3 * D, 5 * D)), pl.Granular(), name="sand")
    sim = scene.build()
    jitter = np.random.default_rng(2).uniform(-uneven, uneven, sim["sand"].x.shape)
    sim["sand"].x = sim["sand"].x + jitter * D
    prepare(sim)
    force(sim).run(1e-2)
    return sim["sand"].x[:, 1] / D, sim["sand"].v


def test_wind_moves_the_exposed_layer_and_not_the_interior():
    y, v = layer((10, 0, 0), uneven=0.06)
    top = y > 5.3
    assert (v[y < 4.7] == 0).all(), "there is wind inside the sand"
    assert top.sum() == 100 and (v[top, 0] > 0).mean() > 0.9
    assert v[top, 0].mean() > 10 * np.abs(v[top, 1:].mean(axis=0)).max()


def test_air_flows_along_the_surface_into_which_it_blows():
    """Eq. 10."""
    y, v = layer((10, -20, 4), uneven=0.0)
    assert (v[y > 5.3, 0] > 1e-4).all() and np.abs(v[:, 1]).max() < 1e-3 * v[:, 0].max()
    np.testing.assert_allclose(v[y > 5.3, 2], 0.4 * v[y > 5.3, 0], rtol=1e-3)
    along = layer((10, 0, 4), uneven=0.0)[1]
    np.testing.assert_allclose(v[:, 0], along[:, 0], atol=1e-3 * along.max())
    assert np.abs(layer((0, -20, 0), uneven=0.0)[1]).max() < 1e-3 * v[:, 0].max()


def test_led_particles_do_not_feel_the_air_and_solids_where_it_reaches_them():
    sim = heap(pl.Air(velocity=(50, 0, 0), density=100.0), np.random.default_rng(3))
    cube, held = sim["cube"].v, sim["sand"].x[:, 0] < 0.13
    sand = sim["sand"].v
    force(sim).run(0.1)
    assert (sim["sand"].v[held] == sand[held]).all() and held.any() and (sim["sand"].v != sand).any()
    blown, deep = (sim["cube"].v != cube).any(axis=1), np.abs(sim["cube"].x - (0.3, 0.275, 0.3)).max(axis=1) < D / 2
    assert blown.any() and deep.any() and not blown[deep].any()


@pytest.mark.parametrize(("wind", "blown_away"), [(6.0, False), (14.0, True)])
def test_a_gale_strips_a_heap_layer_by_layer_and_a_breeze_leaves_it(wind, blown_away):
    """In 0.4 s: real sand of this grain begins to fly at 5 to 6 m/s, these particles at about 10 m/s."""
    scene = importlib.import_module("pliant.scenes.sandstorm")
    sim = scene.build(radius=0.02, wind=wind).build()
    x, d = sim["sand"].x, sim.world.spacing
    slope = np.radians(scene.SLOPE)
    side = scene.HEAP - np.hypot(x[:, 0] - scene.PLACE[0], x[:, 2] - scene.PLACE[1])
    depth = (side * np.sin(slope) - x[:, 1] * np.cos(slope)) / d
    sim.run(0.4)
    moved = np.abs((sim["sand"].x - x)[:, 0]) / d
    assert (moved[depth > 3] < 1).all() and (depth > 3).sum() > 50, "the wind moves what lies deep inside"
    assert (moved[depth < 1] > 3).mean() > 0.03 if blown_away else moved.max() < 1


# --- the wind ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3, 5), (1, 2, 1), (1, 1, 1), (2, 1, 7)])
def test_a_grid_is_interpolated_and_goes_on_outside(shape):
    wind = grid(3, shape)
    sim = heap(pl.Air(velocity=wind), np.random.default_rng(4))
    x = sim.world.particles.numpy("x").astype(float)
    low, high = np.array(wind.low), np.array(wind.high)
    q = np.clip((x - low) / (high - low), 0, 1) * (np.array(shape) - 1)
    base = np.minimum(q.astype(int), np.maximum(np.array(shape) - 2, 0))
    expected = np.zeros_like(x)
    for corner in np.ndindex(2, 2, 2):
        node = np.minimum(base + corner, np.array(shape) - 1)
        weight = np.prod(np.where(corner, q - base, 1 - (q - base)), axis=1)
        expected += weight[:, None] * wind.velocities[tuple(node.T)]
    assert (x < low).any() or (x > high).any()
    np.testing.assert_allclose(sim.world.particles.numpy("air"), expected, atol=2e-4)


def test_a_function_gets_the_places_and_the_time():
    def velocity(x, t):
        assert x.shape == (sim.particles, 3) if sim else x.shape == (2, 3)
        times.append(t)
        return np.stack([x[:, 1], 10 * t + 0 * x[:, 0], -x[:, 0]], axis=1)

    sim, times = None, []
    scene = pl.Scene(particle_radius=D / 2, air=pl.Air(velocity), gravity=(0, 0, 0), dt=0.01)
    scene.add(pl.Box(size=(D, D, D), center=(1, 2, 3)), pl.Fluid(), name="a")
    scene.add(pl.Box(size=(D, D, D), center=(4, 5, 6)), pl.Fluid(), name="b")
    sim = scene.build()
    sim.step()
    sim.step()
    assert times == [0.0, 0.0, 0.01]  # once to see whether it works
    np.testing.assert_allclose(sim.world.particles.by_id("air"), [[2, 0.1, -1], [5, 0.1, -4]], atol=1e-4)


def test_a_gust_is_a_function_of_time_alone():
    """The wind turns round: w = w_0 / (1 + k w_0 t), twice."""
    sim = drop(pl.Air(velocity=lambda x, t: (20 if t < 0.0499 else -20, 0, 0), grain=1e-4), gravity=(0, 0, 0), dt=5e-3)
    k = 0.75 * 1.2 * 0.47 / (1000.0 * 1e-4)
    first = 20 - 20 / (1 + k * 20 * 0.05)
    for expected in (first, -20 + (20 + first) / (1 + k * (20 + first) * 0.05)):
        sim.run(0.05)
        assert sim["drop"].v[0, 0] == pytest.approx(expected, rel=1e-4)


def test_without_air_there_is_no_such_stage():
    def stages(material, air):
        scene = pl.Scene(particle_radius=D / 2, air=air)
        scene.add(pl.Box(size=(0.2, 0.2, 0.2)), material)
        return [f.name for f in scene.build().stages]

    assert "drag" not in stages(pl.Fluid(), None)
    assert all("drag" in stages(material, pl.Air()) for material in (pl.Fluid(), pl.Granular(), pl.Elastic()))


# --- refusals ---------------------------------------------------------------------------------------


def fails(x, t):
    raise KeyError("no data")


@pytest.mark.parametrize(("air", "sentence"), [
    (3, "Scene: air must be a pl.Air(...) or None, got 3"),
    (pl.Air, "Scene: air must be a pl.Air(...) or None, got"),
    (pl.Air(wind=(1, 0, 0)), "Air has no parameter 'wind'"),
    (pl.Air(density=-1.0), "Air: density must be in (0, 10000] kg/m^3, got -1.0"),
    (pl.Air(density=float("nan")), "Air: density must be a number, got nan (not a number)"),
    (pl.Air(drag=-0.1), "Air: drag must be in [0, 100], got -0.1"),
    (pl.Air(grain=0.0), "Air: grain must be in (0, 10] m, got 0.0"),
    (pl.Air(velocity=(1, 2)), "Air: velocity must be three numbers within 10000 m/s, a WindGrid or a function"),
    (pl.Air(velocity=(1, float("nan"), 0)), "Air: velocity must be three numbers within 10000 m/s"),
    (pl.Air(velocity=(1, 2e4, 0)), "Air: velocity must be three numbers within 10000 m/s"),
    (pl.Air(velocity=(1, (2, 3), 0)), "Air: velocity must be three numbers within 10000 m/s"),
    (pl.Air(velocity="west"), "Air: velocity must be three numbers within 10000 m/s"),
    (pl.Air(velocity=None), "Air: velocity must be three numbers within 10000 m/s"),
    (pl.Air(velocity=fails), "Air: its velocity fails at t = 0 s: 'no data'"),
    (pl.Air(velocity=lambda t: (1, 0, 0)), "Air: its velocity fails at t = 0 s: <lambda>() takes 1 positional"),
    (pl.Air(velocity=lambda x, t: x[:, 0]), "of shape (1, 3) or three numbers, got an array of float64 of shape (1,)"),
    (pl.Air(velocity=lambda x, t: None), "or three numbers, got an array of object of shape ()"),
    (pl.Air(velocity=lambda x, t: x * np.nan), "Air: its velocity fails at t = 0 s: it must return finite numbers"),
    (pl.Air(velocity=pl.WindGrid(low=(0, 0, 0), high=(1, 1, 1))), "WindGrid: velocities is missing"),
    (pl.Air(velocity=pl.WindGrid(np.zeros((2, 2, 3)), (0, 0, 0), (1, 1, 1))), "WindGrid: velocities must be an array "),
    (pl.Air(velocity=pl.WindGrid(np.zeros((0, 2, 2, 3)), (0, 0, 0), (1, 1, 1))), "WindGrid: velocities must be an arr"),
    (pl.Air(velocity=pl.WindGrid([[1, 2], [3]], (0, 0, 0), (1, 1, 1))), "WindGrid: velocities must be an array of"),
    (pl.Air(velocity=pl.WindGrid(np.full((1, 1, 1, 3), np.inf), (0, 0, 0), (1, 1, 1))), "must be finite numbers"),
    (pl.Air(velocity=pl.WindGrid(np.zeros((1, 1, 1, 3)), (0, 0, 0), (1, 0, 1))), "low must lie below high along each"),
])  # fmt: skip
def test_what_is_not_air(air, sentence):
    scene = pl.Scene(particle_radius=D / 2, air=air)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), pl.Fluid())
    with pytest.raises(pl.SceneError) as error:
        scene.build()
    (problem,) = error.value.problems
    assert sentence in problem


@pytest.mark.parametrize(("late", "sentence"), [
    (lambda x: 1 / 0, "division by zero"), (lambda x: x[1:], "must return an array of shape (64, 3)"),
    (lambda x: x * np.inf, "must return finite numbers within 10000 m/s"),
])  # fmt: skip
def test_a_wind_that_fails_later_stops_the_run_in_a_sentence(late, sentence):
    air = pl.Air(velocity=lambda x, t: late(x) if t > 0.01 else np.ones_like(x))
    scene = pl.Scene(particle_radius=D / 2, air=air)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(1, 0, 0)), pl.Fluid(), name="drop")
    sim = scene.build()
    with np.errstate(invalid="ignore"), pytest.raises(pl.SimulationError) as error:
        sim.run(0.1)
    assert str(error.value).startswith("Air: its velocity fails at t = 0.0") and sentence in str(error.value)
    assert sim.stats.max_speed == pytest.approx(9.81 * sim.time, rel=0.05), "the failed step has changed velocities"


# --- saved and loaded -------------------------------------------------------------------------------


def storm(velocity):
    scene = pl.Scene(particle_radius=0.05, air=pl.Air(velocity, grain=1e-3))
    scene.add(pl.Box(size=(1, 1, 1), center=(0.5, 0.5, 0.5)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.6, 0.5, 0.8), center=(0.4, 0.25, 0.5)), pl.Granular(), name="sand")
    return scene


def gusts(x, t):
    return np.stack([9 + 3 * np.sin(40 * t + x[:, 2]), x[:, 0], 0 * x[:, 0]], axis=1)


def state(sim):
    return [sim.world.particles.numpy(name).tobytes() for name in sim.world.particles.saved_names]


@pytest.mark.parametrize("velocity", [(8, 1, 0), grid(), gusts])
def test_a_run_goes_on_exactly(velocity, tmp_path):
    one = storm(velocity).build()
    one.run(0.03)
    one.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz", scene=storm(velocity) if callable(velocity) else None)
    assert other.scene.settings.air.grain == 1e-3
    for sim in (one, other):
        sim.run(0.03)
    assert state(one) == state(other)


def test_a_function_has_to_be_given_again(tmp_path):
    sim = storm(gusts).build()
    sim.save(tmp_path / "state.npz")
    with pytest.raises(pl.PliantError, match="cannot hold the velocity of the air, for no file holds functions"):
        pl.load(tmp_path / "state.npz")
    with pytest.raises(pl.PliantError, match="air.velocity was a function and is"):
        pl.load(tmp_path / "state.npz", scene=storm((1, 0, 0)))
    assert pl.load(tmp_path / "state.npz", scene=storm(gusts)).particles == sim.particles


def test_another_air_is_another_scene():
    def told(one, other):
        return serialisation.differences(*serialisation.describe(storm(one)), *serialisation.describe(storm(other)))

    assert told((1, 0, 0), (1, 0, 0)) == [] == told(grid(), grid())
    assert told((1, 0, 0), (2, 0, 0)) == ["air.velocity was [1, 0, 0] and is [2, 0, 0]"]
    assert told(grid(0), grid(1)) == ["air.velocity.velocities has other numbers"]
    assert told((1, 0, 0), grid()) == ["air.velocity was [1, 0, 0] and is a WindGrid"]


def test_a_file_from_before_there_was_air_is_the_same_scene():
    tree, arrays = serialisation.describe(pl.Scene())
    older = tree | {"settings": {k: v for k, v in tree["settings"].items() if k != "air"}}
    assert serialisation.differences(older, arrays, tree, arrays) == []
    windy, more = serialisation.describe(pl.Scene(air=pl.Air()))
    assert serialisation.differences(older, arrays, windy, more) == ["air was None and is a Air"]


@pytest.mark.slow
def test_wind_is_not_taken_for_an_explosion():
    scene = pl.Scene(particle_radius=5e-4, gravity=(0, 0, 0), air=pl.Air((20, 0, 0), grain=1e-4))
    scene.add(pl.Box(size=(1e-3, 1e-3, 1e-3)), pl.Fluid(), name="drop")
    sim = scene.build()
    sim.run(0.05)
    assert sim["drop"].v[0, 0] > 15


def test_an_elastic_ball_falls_at_its_terminal_velocity():
    """1/2 rho_air C_D pi R^2 v^2 = m g: by what of its surface faces the air, within 10 %."""
    R, d = 0.05, 0.01
    scene = pl.Scene(particle_radius=d / 2, air=pl.Air(density=50.0))
    scene.add(pl.Sphere(radius=R), pl.Elastic(density=100, young=1e5), name="ball", velocity=(0, -2, 0))
    sim = scene.build(quiet=True)
    terminal = np.sqrt(2 * sim["ball"].mass.sum() * 9.81 / (50 * 0.47 * np.pi * R**2))
    sim.run(0.5)
    assert -sim["ball"].v[:, 1].mean() == pytest.approx(terminal, rel=0.1)


def test_grains_in_free_flight_feel_the_air():
    """A grain that has left the medium slows down by its own diameter: v(t) = v_t tanh(g t / v_t)."""
    scene = pl.Scene(particle_radius=0.01, air=pl.Air(density=30.0))
    scene.add(pl.Sphere(radius=0.03), pl.Granular(grains=8), name="sand")
    sim = scene.build(quiet=True)
    sim.run(0.5)
    grains = sim.world.stores["grains"]
    terminal = np.sqrt(4 * 9.81 * 1600 * 2 * grains.groups[0].radius / (3 * 30 * 0.47))
    falls = -grains.numpy("v")[: grains.n, 1]
    assert falls.min() == pytest.approx(terminal * np.tanh(9.81 * 0.5 / terminal), rel=0.02)
