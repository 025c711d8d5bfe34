"""Stores: a user's own in forty lines, particles that come and go, fields and rows, what couples in the pressure."""

import dataclasses
import importlib.metadata
from types import SimpleNamespace

import numpy as np
import pytest
import taichi as ti
from typer.testing import CliRunner

import pliant as pl
from pliant.commands import cli
from pliant.core import registry
from pliant.core.backend import Ints, Vectors, upload, vec3
from pliant.core.fields import Field
from pliant.core.particles import Particles
from pliant.core.store import ArrayStore
from pliant.core.world import Coupling
from pliant.io import read_cloud
from pliant.scene.loading import find_scene, make_scene
from pliant.sim.snapshot import take
from pliant.viewer.moments import snapshot

D = 0.05

TRACERS = '''
import taichi as ti
import pliant as pl
from pliant.core.backend import Reals, Vectors


class Dye(pl.Material):
    """Points that rise."""

    store = "tracers"


class Tracers(pl.ArrayStore):
    name = "tracers"
    fields = (
        pl.Field("x", "vector", "m", "position", carried=True),
        pl.Field("age", "real", "s", "time since the start", carried=True),
    )


@ti.kernel
def rise(n: ti.i32, dt: ti.f32, x: Vectors, age: Reals):
    for i in range(n):
        x[i].y += dt
        age[i] += dt


class Rise(pl.Stage):
    name, place = "rise", "grains"

    @classmethod
    def wanted(cls, materials, settings):
        return Tracers.wanted(materials, settings)

    def run(self, dt):
        tracers = self.world.stores["tracers"]
        rise(tracers.n, dt, tracers.x, tracers.age)
'''

SCENE = '''

def build():
    scene = pl.Scene(particle_radius=0.025, gravity=(0, -1, 0))
    scene.add(pl.Box(size=(0.4, 0.2, 0.2), center=(0.2, 0.1, 0.1)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.2, 0.1, 0.1), center=(0.2, 0.1, 0.1)), Dye(), name="dye")
    return scene
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    assert len(TRACERS.strip().splitlines()) <= 40
    path = tmp_path_factory.mktemp("tracers") / "rising.py"
    path.write_text(TRACERS + SCENE)
    return path


@pytest.fixture
def scene(file):
    return make_scene(find_scene(str(file)), {})


# --- a store of a user's own ------------------------------------------------------------------------


def test_a_users_store_moves_and_is_read(scene):
    sim = scene.build()
    assert len(sim["dye"]) == 16 and len(sim["water"]) == 8 * 4 * 4, "tracers take no place away from particles"
    start = sim["dye"].x
    sim.run(0.02)
    np.testing.assert_allclose(sim["dye"].age, 0.02, rtol=1e-5)
    np.testing.assert_allclose(sim["dye"].x - start, np.tile([0, 0.02, 0], (16, 1)), atol=1e-6)
    with pytest.raises(AttributeError, match="dye has no 'colour'"):
        sim["dye"].colour  # noqa: B018


def test_a_users_store_is_saved_and_restored(scene, file, tmp_path):
    sim = scene.build()
    sim.run(0.02)
    sim.save(tmp_path / "state.npz")
    again = pl.load(tmp_path / "state.npz", scene=make_scene(find_scene(str(file)), {}))
    for one in (sim, again):
        one.run(0.02)
    assert again["dye"].age.tobytes() == sim["dye"].age.tobytes() and again["dye"].x.tobytes() == sim["dye"].x.tobytes()
    assert again["dye"].age[0] == pytest.approx(0.04, rel=1e-5)


def test_a_users_store_is_rolled_back_with_the_particles(scene):
    sim = scene.build()
    sim.run(0.02)
    before = sim["dye"].x
    p = sim.world.particles
    p.set("v", np.where(np.arange(p.n) == 3, np.nan, p.numpy("v").T).T)
    with pytest.raises(pl.SimulationError, match="broke down"):
        sim.step()
    np.testing.assert_array_equal(sim["dye"].x, before)


def test_a_users_store_is_shown(scene):
    sim = scene.build()
    sim.step()
    cloud = take(sim, 0).clouds["dye"]
    np.testing.assert_array_equal(cloud.x, sim["dye"].x)
    assert cloud.units["age"] == "s" and len(cloud.fields["age"]) == 16
    assert "dye" in snapshot(sim, "speed").clouds, "the viewer shows it too"
    styles = {style.name: style for style in sim.canvas.render_scene.bodies}
    assert styles["dye"].radius == pytest.approx(D / 2) and not styles["dye"].fluid
    picture = sim.canvas.render_scene.picture(take(sim, 0))
    assert sum(len(points.x) for points in picture.points) == 128 + 16


def test_a_users_store_is_exported_by_a_run(file, tmp_path):
    words = ["run", str(file), "--seconds", "0.02", "--fps", "50", "--format", "vtu,npz"]
    words += ["--out", str(tmp_path / "out")]
    assert CliRunner().invoke(cli.app, words).exit_code == 0
    for ending in ("vtu", "npz"):
        cloud = read_cloud(tmp_path / "out" / "frames" / f"dye_0001.{ending}")
        np.testing.assert_allclose(cloud.fields["age"], 0.02, rtol=1e-4)


def test_a_scene_file_that_is_read_again_replaces_what_it_defined(file, tmp_path):
    """And so does a copy of it: nothing acts twice."""
    copy = tmp_path / "sinking.py"
    copy.write_text(file.read_text().replace("x[i].y += dt", "x[i].y -= dt"))
    for path, way in ((file, 1), (copy, -1), (file, 1)):
        sim = make_scene(find_scene(str(path)), {}).build()
        start = sim["dye"].x
        sim.run(0.02)
        np.testing.assert_allclose((sim["dye"].x - start)[:, 1], 0.02 * way, atol=1e-6)


def test_a_force_of_a_users_own_takes_part():
    class Lift(pl.Force):
        """Cancels gravity for what is marked so."""

        name = "lift"

        @classmethod
        def wanted(cls, materials, settings):
            return any(getattr(material, "lifted", False) for material in materials)

        def run(self, dt):
            p = self.world.particles
            lifted = np.array([getattr(m, "lifted", False) for m in self.world.materials])[p.numpy("material")]
            p.set("v", p.numpy("v") + dt * np.outer(lifted, [0, 9.81, 0]))

    class Helium(pl.Fluid):
        """A fluid that floats in nothing."""

        lifted = True

    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), Helium(), name="balloon")
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(2, 0, 0)), pl.Fluid(), name="water")
    sim = scene.build()
    sim.run(0.1)
    assert np.abs(sim["balloon"].v).max() < 1e-4 and sim["water"].v[:, 1].mean() == pytest.approx(-0.981, rel=1e-3)


def test_a_store_may_not_take_the_name_of_another():
    class Grains(ArrayStore):
        name = "grains"
        fields = (Field("x", "vector", "m", "position", carried=True),)

        @classmethod
        def wanted(cls, materials, settings):
            return any(getattr(material, "grains", 0) == 7 for material in materials)

    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), pl.Granular(grains=7), name="sand")
    with pytest.raises(pl.PliantError, match="the store 'grains' is declared twice"):
        scene.build()


def test_plugins_of_installed_packages_are_loaded_once(monkeypatch):
    called = []
    entry = SimpleNamespace(name="mine", value="mine:start", load=lambda: lambda: called.append(1))
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry] if group == "pliant.plugins" else [])
    monkeypatch.setattr(registry, "_loaded", False)
    registry.load_plugins()
    registry.load_plugins()
    assert called == [1]


def test_a_plugin_that_fails_is_named(monkeypatch):
    def load():
        raise ValueError("no such law")

    entry = SimpleNamespace(name="mine", value="mine:start", load=load)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    monkeypatch.setattr(registry, "_loaded", False)
    with pytest.raises(pl.PliantError, match="the plugin 'mine' .* fails: ValueError: no such law"):
        registry.load_plugins()


def test_a_material_of_a_users_own_takes_part_and_is_saved(tmp_path):
    class Slime(pl.Fluid):
        """Thick by default."""

        viscosity: float = 0.5

    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), Slime(), name="slime")
    sim = scene.build()
    assert "viscosity" in [stage.name for stage in sim.stages]
    sim.run(0.02)
    sim.save(tmp_path / "state.npz")
    again = pl.load(tmp_path / "state.npz")
    assert type(again.scene.bodies[0].material) is Slime
    np.testing.assert_array_equal(again["slime"].x, sim["slime"].x)


# --- the arrays -------------------------------------------------------------------------------------


class Points(ArrayStore):
    name = "points"
    fields = (
        Field("x", "vector", "m", "position", carried=True),
        Field("tag", "real", "1", "a mark", initial=7.0),
        Field("s", "symmetric", "Pa", "a stress", carried=True),
        Field("k", "int", "", "a number", carried=True),
    )


def points(*counts):
    """Points of some bodies, each with its number in x[0]."""
    store, made = Points([f"body{k}" for k in range(len(counts))]), 0
    for k, count in enumerate(counts):
        ids = made + np.arange(count)
        store.add(k, {"x": np.outer(ids, np.ones(3)), "s": np.outer(ids, np.arange(6)), "k": 10 * ids})
        made += count
    return store


def test_elements_grow_beyond_the_capacity_and_keep_their_values():
    store = points(3)
    capacities = {store.capacity}
    for _ in range(5):
        store.add(0, {"x": np.full((20, 3), 5.0)})
        capacities.add(store.capacity)
    assert store.n == 103 and store.numpy("id").tolist() == list(range(103)) and len(capacities) < 6
    np.testing.assert_array_equal(store.numpy("x")[:3, 0], [0, 1, 2])
    np.testing.assert_array_equal(store.numpy("s")[:3], np.outer(range(3), np.arange(6)))
    assert (store.numpy("tag") == 7.0).all() and (store.numpy("k")[3:] == 0).all()


def test_ids_are_never_used_twice():
    store = points(4, 4)
    store.remove(np.array([1, 7]))
    assert store.numpy("id").tolist() == [0, 6, 2, 3, 4, 5] and store.counts() == {"body0": 3, "body1": 3}
    store.add(0, {"x": np.zeros((2, 3))})
    assert store.numpy("id").tolist() == [0, 6, 2, 3, 4, 5, 8, 9]
    np.testing.assert_array_equal(store.numpy("k")[:6], [0, 60, 20, 30, 40, 50])


def test_rows_of_a_body_follow_every_change_of_order():
    rng, store = np.random.default_rng(0), points(500, 700, 300)
    for _ in range(3):
        order = rng.permutation(store.n).astype(np.int32)
        store.reorder(upload(order, ti.i32))
        for k, (first, last) in enumerate([(0, 500), (500, 1200), (1200, 1500)]):
            rows = store.rows_of(k)
            np.testing.assert_array_equal(store.read("x", rows)[:, 0], np.arange(first, last))
            np.testing.assert_array_equal(store.rows_by_body()[f"body{k}"], rows)
    store.remove(store.rows_of(1)[::2])
    np.testing.assert_array_equal(store.read("x", store.rows_of(1))[:, 0], np.arange(501, 1200, 2))
    assert store.count_of(1) == 350


def test_a_backup_survives_a_sort():
    rng, store = np.random.default_rng(1), points(50)
    store.backup()
    store.reorder(upload(rng.permutation(50).astype(np.int32), ti.i32))
    store.x.fill(-1.0)
    store.s.fill(-1.0)
    store.rollback()
    np.testing.assert_array_equal(store.numpy("x")[:, 0], store.numpy("id"))
    np.testing.assert_array_equal(store.numpy("s")[:, 1], store.numpy("id"))


def test_reading_one_body_downloads_only_that(monkeypatch):
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.5, 0.5, 0.5)), pl.Fluid(), name="sea")
    scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0, 1, 0)), pl.Fluid(), name="drop")
    sim = scene.build()
    sim.step()

    def refuse(self, name):
        raise AssertionError(f"all particles' {name} are downloaded")

    monkeypatch.setattr(Particles, "numpy", refuse)
    for values in (sim["drop"].x, sim["drop"].density, sim["drop"].pressure):
        assert len(values) == 8


def test_a_field_that_is_declared_twice_is_refused():
    with pytest.raises(pl.PliantError, match="the field 'x' of the points is declared twice"):
        Points(["one"], [Field("x", "real", "", "again")])
    with pytest.raises(pl.PliantError, match="the field 'remove' of the points"):
        Points(["one"], [Field("remove", "real", "", "a method's name")])


# --- particles come and go --------------------------------------------------------------------------


def tank(material=None, height=0.2):
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.6, 1, 0.4), center=(0.3, 0.5, 0.2)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.6, height, 0.4), center=(0.3, height / 2, 0.2)), material or pl.Fluid(), name="water")
    return scene


def lattice(low, counts):
    grid = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 3)
    return np.asarray(low) + D * (grid + 0.5)


@pytest.mark.parametrize("material", [pl.Fluid(), pl.Fluid(viscosity=0.5), pl.Granular(), pl.Granular(grains=8)],
                         ids=["water", "honey", "sand", "grains"])  # fmt: skip
def test_particles_are_added_and_removed_between_steps(material):
    scene = tank(material)
    scene.add(pl.Box(size=(0.2, 0.1, 0.2), center=(0.3, 0.6, 0.2)), pl.Elastic(young=1e5), name="raft")
    sim = scene.build()
    water, each = sim["water"], getattr(material, "grains", 0)
    expected = 12 * 4 * 8
    for k in range(6):
        water.add(lattice((0.1, 0.3, 0.1), (8, 1, 4)), v=(0, -1, 0))
        expected += 32
        sim.run(0.05)
        if k % 2:
            gone = int((water.x[:, 0] < 0.1).sum())
            water.remove(lambda x: x[:, 0] < 0.1)
            expected -= gone
            assert gone and not (water.x[:, 0] < 0.1).any()
        assert len(water) == expected and sim.particles == expected + len(sim["raft"])
        assert len(water.grains) == each * expected
    x = water.x
    assert (x > [-0.001, 0, -0.001]).all() and (x < [0.601, 1, 0.401]).all() and sim.stats.max_speed < 5
    assert sim["raft"].misfit < 0.5 * D, "it is still in one piece"


def test_a_restart_is_exact_after_changes_of_the_count(tmp_path):
    sim = tank(pl.Granular(grains=4)).build()
    sim.run(0.02)
    sim["water"].remove(np.arange(len(sim["water"])) % 3 == 0)
    sim["water"].add(lattice((0.1, 0.5, 0.1), (4, 1, 4)))
    sim.run(0.02)
    sim.save(tmp_path / "state.npz")
    again = pl.load(tmp_path / "state.npz")
    for one in (sim, again):
        one.run(0.03)
        one["water"].add(lattice((0.1, 0.7, 0.1), (4, 1, 4)))
        one.run(0.02)
    for name in ("x", "v", "pressure", "grains"):
        assert getattr(again["water"], name).tobytes() == getattr(sim["water"], name).tobytes()
    assert again.stores["particles"].numpy("id").tobytes() == sim.stores["particles"].numpy("id").tobytes()


def test_everything_may_be_removed_and_come_back():
    sim = tank().build()
    sim.step()
    sim["water"].remove(lambda x: np.ones(len(x), bool))
    assert sim.particles == 0
    sim.run(0.02)
    assert sim.stats.kinetic_energy == 0.0 and len(take(sim, 0).clouds["water"].x) == 0
    sim["water"].add(lattice((0.1, 0.1, 0.1), (4, 4, 4)))
    sim.run(0.02)
    assert sim.particles == 64 and np.isfinite(sim["water"].x).all()


@pytest.mark.parametrize("call, sentence", [
    (lambda sim: sim["raft"].add(np.zeros((1, 3))), "can be added to fluids and sand only"),
    (lambda sim: sim["raft"].remove(lambda x: x[:, 0] > 9), "can be taken from fluids and sand only"),
    (lambda sim: sim["water"].add(np.zeros(3)), r"needs places of shape \(n, 3\), got \(3,\)"),
    (lambda sim: sim["water"].add([[0, np.nan, 0]]), "needs finite numbers"),
    (lambda sim: sim["water"].add([[0, 1, 0]], v=[1, 2]), "water.v needs numbers of shape"),
    (lambda sim: sim["water"].remove([1, 2]), "remove needs True or False for each of its"),
])  # fmt: skip
def test_wrong_changes_are_refused_in_a_sentence(call, sentence):
    scene = tank()
    scene.add(pl.Box(size=(0.2, 0.1, 0.2), center=(0.3, 0.6, 0.2)), pl.Elastic(), name="raft")
    sim = scene.build()
    before = sim.particles
    with pytest.raises(pl.PliantError, match=sentence):
        call(sim)
    assert sim.particles == before


def test_a_step_that_fails_leaves_nothing_behind():
    """A function of the user's that fails in the middle of a step: everything is as before it."""
    calls = []

    def wind(x, t):
        calls.append(t)
        if t > 0.02 and calls[-2:] == [t, t]:  # the second time it is asked at a moment, inside the step
            raise ValueError("calm")
        return (1.0, 0.0, 0.0)

    scene = pl.Scene(particle_radius=D / 2, air=pl.Air(velocity=wind))
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), pl.Fluid(), name="water")
    sim = scene.build()
    with pytest.raises(pl.SimulationError, match="calm"):
        for _ in range(100):
            x, v = sim["water"].x, sim["water"].v
            sim.step()
    np.testing.assert_array_equal(sim["water"].x, x)
    np.testing.assert_array_equal(sim["water"].v, v)


# --- couplings --------------------------------------------------------------------------------------


@ti.kernel
def _as_one(n: ti.i32, body: Ints, m: ti.types.ndarray(dtype=ti.f32, ndim=1), number: ti.i32, a: Vectors):
    """The particles of one body get the acceleration of their centre."""
    total, mass = vec3(0.0), 0.0
    ti.loop_config(serialize=True)
    for i in range(n):
        if body[i] == number:
            total += m[i] * a[i]
            mass += m[i]
    for i in range(n):
        if body[i] == number:
            a[i] = total / mass


class Sled(Coupling):
    """A body that moves without turning or deforming."""

    def __init__(self, world, number):
        self.world, self.number = world, number

    def constrain(self, a, moving=True):
        p = self.world.particles
        _as_one(p.n, p.body, p.m, self.number, a)


@pytest.mark.parametrize("material", [pl.Fluid(viscosity=0, damping=0), pl.Granular(damping=0)], ids=["fluid", "sand"])
def test_a_coupling_moves_its_particles_as_one(material):
    """A block whose particles are bound together falls into a tank: it stays a block, and nothing enters it."""
    scene = tank(material)
    light = dataclasses.replace(material, density=400)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(0.3, 0.35, 0.2)), light, name="block")
    sim = scene.build()
    sim.world.couplings.append(Sled(sim.world, 1))
    shape = sim["block"].x - sim["block"].x.mean(axis=0)
    momentum = []
    for _ in range(60):
        sim.step(2e-3)
        momentum.append(sim["block"].v.std(axis=0).max())
    assert max(momentum) < 1e-4, "one velocity for all"
    np.testing.assert_allclose(sim["block"].x - sim["block"].x.mean(axis=0), shape, atol=0.05 * D)
    assert sim.stats.mean_density_error < 2e-3 and sim["block"].x[:, 1].min() > 0.2 - D


def test_the_operator_stays_symmetric_under_a_coupling():
    """K = divergence . constrain . gradient, column by column, in the inner product weighted by volume."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Box(size=(0.15, 0.1, 0.1)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0.125, 0, 0)), pl.Fluid(density=500), name="block")
    sim = scene.build()
    rng, p, solver = np.random.default_rng(0), sim.world.particles, sim.pressure
    p.set("x", p.numpy("x") + rng.uniform(-0.1, 0.1, (p.n, 3)) * D)
    sim.find_neighbors()
    solver.prepare()
    from pliant.solvers.pressure import sweeps

    def column(q, coupled):
        p.set("q", 0.0 * q)
        p.set("residual", p.numpy("D") * q)
        operator = (p.n, *solver.operator())
        sweeps.push(*operator, p.inverse_density, 0.0, 1.0, p.a)
        if coupled:
            Sled(sim.world, 1).constrain(p.a)
        sweeps.follow(*operator, p.V, D**3, 0.0, 0.0, p.a, p.shift, solver.partial, solver.sums)
        return -p.numpy("response").astype(float)

    free, bound = (np.stack([column(unit, coupled) for unit in np.eye(p.n)], axis=1) for coupled in (False, True))
    weighted = p.numpy("V").astype(float)[:, None] * bound
    scale = np.abs(weighted).max()
    assert np.abs(weighted - weighted.T).max() < 1e-5 * scale and np.abs(bound - free).max() > 0.1 * np.abs(free).max()
    assert np.linalg.eigvalsh((weighted + weighted.T) / 2).min() > -1e-5 * scale


@pytest.mark.parametrize("elasticity", [pl.Split(), pl.Peer2018(tolerance=1e-6)])
def test_an_elastic_body_answers_pressures_symmetrically_and_keeps_momenta(elasticity):
    """H' of `elasticity.momentum`: symmetric, no more than what free particles would do, exact for rigid motions."""
    scene = pl.Scene(particle_radius=D / 2, elasticity=elasticity)
    scene.add(pl.Box(size=(0.3, 0.2, 0.2)), pl.Elastic(young=1e6), name="cube")
    sim = scene.build()
    sim.step()
    p, (coupling,), bodies = sim.world.particles, sim.world.couplings, sim.elasticity.bodies
    sim.elasticity.momenta.look(p, bodies.place, bodies.mass)  # where it is now
    x, m = p.numpy("x").astype(float), p.numpy("m").astype(float)[:, None]
    rng = np.random.default_rng(1)

    def answer(a):
        p.set("a", a)
        coupling.constrain(p.a)
        return p.numpy("a").astype(float)

    a, b = rng.normal(size=(2, p.n, 3))
    of_a, of_b = answer(a), answer(b)
    assert (m * a * of_b).sum() == pytest.approx((m * b * of_a).sum(), rel=1e-3, abs=1e-3 * (m * a * a).sum())
    assert 0 < (m * a * of_a).sum() < (m * a * a).sum()
    np.testing.assert_allclose((m * of_a).sum(axis=0), (m * a).sum(axis=0), atol=1e-5 * np.abs(m * a).sum())
    turned = [np.cross(x, m * u).sum(axis=0) for u in (of_a, a)]
    np.testing.assert_allclose(*turned, atol=1e-5 * np.abs(np.cross(x, m * a)).sum())
    rigid = np.array([0.3, -0.2, 0.1]) + np.cross([1.0, 2.0, -1.0], x)
    np.testing.assert_allclose(answer(rigid), rigid, atol=1e-5 * np.abs(rigid).max())


# --- names of the last release ----------------------------------------------------------------------


def test_old_names_are_understood_for_one_more_release():
    assert pl.Peer is pl.Peer2018 and pl.Elastic(neighbours=12).neighbors == 12
    assert not pl.Elastic(neighbours=12).problems() and pl.Elastic(neighbours=2).problems()
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), pl.Fluid(), name="water")
    sim = scene.build()
    sim.step()
    assert sim.stats.neighbours == sim.stats.neighbors > 0


# --- what a pressure solver can do ------------------------------------------------------------------


class Plain(pl.DFSPH):
    """A method that knows of neither sand nor solids."""

    solves_friction = False
    couples = False


def test_what_a_pressure_solver_cannot_do_is_told_before_the_work():
    scene = pl.Scene(particle_radius=D / 2, pressure=Plain())
    scene.add(pl.Box(size=(0.2, 0.2, 0.2)), pl.Granular(), name="sand")
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(1, 0, 0)), pl.Elastic(), name="cube")
    assert scene.problems() == [
        "Scene: Plain does not solve for friction, which sand needs; use pl.DFSPH() or pl.IISPH()",
        "Scene: Plain cannot couple with elastic bodies; use pl.DFSPH() or pl.IISPH()",
    ]
