"""BodySamples shapes with particles: first places, relaxation, counts, and what scenes make of it."""

import itertools

import numpy as np
import pytest
from scipy.spatial import cKDTree

import pliant as pl
from pliant.boundary.distance_map import DistanceMap
from pliant.core.smoothing import smoothing
from pliant.errors import PliantError, SceneError
from pliant.geometry import Quality, sample, sample_regular
from pliant.geometry.sampling import METHODS, sampler
from pliant.geometry.sampling.fitted import ADHESION, COHESION, COMPANY, DRAWN, EVEN, RELAXED, Confined, Fitted
from pliant.geometry.sampling.placing import Lattice, hilbert_order

W = smoothing("cubic_spline")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path / "cache"))


def depths_of(shape, spacing):
    return DistanceMap(lambda x: -shape.signed_distance(x), shape.bounds(), spacing, 1.5, 1.0, True)


def tilted_sheet(thick, wide=16.0):
    """A square sheet as a mesh, turned so that no lattice fits it."""
    sheet = pl.Box(size=(wide, thick, wide)).rotate("x", 30).rotate("z", 25)
    return pl.Mesh(sheet.triangles())


def creature():
    """A ball with two ears one and a half spacings thick and a horn, all at odd angles, for a spacing of 0.1."""
    ball = pl.Sphere(radius=0.5)
    ear = pl.Cylinder(radius=0.3, height=0.14, center=(0.5, 0.5, 0), axis="z").rotate("y", 33)
    horn = pl.Capsule(radius=0.075, height=0.5, center=(-0.5, 0.45, 0.1)).rotate("z", 50)
    return ball | ear | horn


# --- first places -----------------------------------------------------------------------------------


def test_hilbert_curve_goes_from_neighbor_to_neighbor():
    index = np.array(list(itertools.product(range(8), repeat=3)))
    path = index[hilbert_order(index)]
    assert len(np.unique(path, axis=0)) == 512
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("count", [1, 7, 333, 1000])
def test_first_places_are_as_many_as_wanted(count):
    shape = creature()
    spacing = (shape.volume() / count) ** (1 / 3)
    places = Lattice(depths_of(shape, spacing), shape.bounds(), spacing, W, 1.0).places(count, np.random.default_rng(3))
    assert places.shape == (count, 3)
    assert shape.signed_distance(places).max() < 0.5 * spacing


def test_the_inside_of_a_ball_begins_as_a_lattice():
    ball, d = pl.Sphere(radius=1.0), 0.1
    x = Lattice(depths_of(ball, d), ball.bounds(), d, W, 0.0).places(4189, np.random.default_rng(0))
    inner = x[np.linalg.norm(x, axis=1) < 0.7]
    nearest = cKDTree(x).query(inner, k=7)[0][:, 1:]
    assert np.abs(nearest / d - 1).max() < 0.03, "six neighbors at the same distance"


# --- the round --------------------------------------------------------------------------------------


def twin(fitted, x, level, confined):
    """The displacement of Eq. 31, pair by pair, in double precision."""
    d, n = fitted.spacing, len(x)
    h, V = 2 * d, d**3
    sigma = W.sigma(h)
    r = np.linalg.norm(x[:, None] - x[None], axis=2)
    near = (r < h) & ~np.eye(n, dtype=bool)
    q, step = r / h, 1e-6
    slope = np.where(near, (W.profile(q + step) - W.profile(np.abs(q - step))) / (2 * step), 0.0)
    direction = (x[:, None] - x[None]) / np.where(r > 0, r, 1.0)[..., None]
    gradient = V * sigma / h * slope[..., None] * direction
    w = np.where(near, W.profile(q), 0.0)
    density = V * sigma * (w.sum(axis=1) + 1.0)
    depth = fitted.depth.to_numpy()[:, None]
    inward, wall = fitted.inward.to_numpy(), fitted.wall.to_numpy()
    if confined:
        density = fitted.particles.numpy("density")
    total = gradient.sum(axis=1) + wall
    k = (density - level) / ((total**2).sum(axis=1) + (gradient**2).sum(axis=(1, 2)) + 0.01 / d**2)
    pressure = -((k[:, None] + k[None])[..., None] * gradient).sum(axis=1) - k[:, None] * wall
    cohesion = (V * sigma * (w * np.maximum(d - r, 0.0))[..., None] * direction).sum(axis=1)
    dx = RELAXED * pressure + COHESION * cohesion
    if confined:
        return dx
    reach = (depth > 0) & (depth < h)
    dx -= np.where(reach, ADHESION * V * sigma * W.profile(np.clip(depth / h, 0, 1)) * depth * inward, 0.0)
    moment = -np.einsum("ij,ija,ijb->iab", np.where(near, V * sigma / h * slope * r, 0.0), direction, direction)
    third = np.maximum(np.trace(moment, axis1=1, axis2=2) / 3, 1e-6)
    flat = np.maximum(1 - np.linalg.det(moment) / (COMPANY * third**3), 0.0)
    far = np.maximum(1 - d / np.where(r > 0, r, 1.0), 0.0)
    towards = -((w * far)[..., None] * (x[:, None] - x[None])).sum(axis=1) / (w.sum(axis=1) + 1e-9)[:, None]
    return dx + DRAWN * flat[:, None] * towards


@pytest.mark.parametrize("kind", [Fitted, Confined])
def test_displacement_is_that_of_the_equations(kind):
    shape = creature()
    d = (shape.volume() / 300) ** (1 / 3)
    fitted = kind(depths_of(shape, d), shape.bounds(), 300, d, 5)
    fitted.neighbors.update(fitted.low, fitted.high)
    fitted.mean = 0.9
    fitted.displace()
    confined = kind is Confined
    wanted = twin(fitted, fitted.particles.numpy("x").astype(float), 1.0 if confined else 0.9 * EVEN, confined)
    found = fitted.particles.numpy("v")
    assert np.abs(found - wanted).max() < 2e-4 * np.abs(wanted).max()


def test_moves_are_bounded_and_come_to_rest():
    shape, seen = pl.Torus(radius=1.0, tube=0.3), []
    found = sample(shape, particles=600, progress=lambda k, moved, end: seen.append((k, moved, end)))
    assert [k for k, _, _ in seen] == list(range(1, found.iterations + 1))
    assert seen[-1][1] < seen[-1][2] < seen[0][1] < 0.1


# --- results ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_particles_are_inside_and_have_the_volume(method):
    shape = creature()
    found = sample(shape, spacing=0.1, method=method)
    assert shape.inside(found.x).all()
    assert len(found.x) * found.volume_each == pytest.approx(shape.volume(), rel=1e-9)
    assert found.volume_each == pytest.approx(0.1**3, rel=0.03)
    assert np.isfinite(found.x).all() and found.method == method and found.spacing == 0.1


@pytest.mark.parametrize("method", ["fitted", "blue_noise"])
@pytest.mark.parametrize("count", [1, 2, 5, 321])
def test_relaxed_samplings_hit_the_count(method, count):
    found = sample(creature(), particles=count, method=method)
    assert len(found.x) == count and creature().inside(found.x).all()


@pytest.mark.parametrize("method", ["fitted", "blue_noise"])
def test_a_seed_gives_the_same_particles_each_time(method, tmp_path, monkeypatch):
    first = sample(creature(), particles=400, method=method, seed=7)
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path / "other"))
    again = sample(creature(), particles=400, method=method, seed=7)
    assert again.iterations == first.iterations > 0
    np.testing.assert_array_equal(first.x, again.x)
    assert np.abs(sample(creature(), particles=400, method=method, seed=8).x - first.x).max() > 0.01


def test_results_are_kept_and_a_damaged_one_is_made_anew(tmp_path):
    first = sample(creature(), particles=200)
    kept = sample(creature(), particles=200)
    assert first.iterations > 0 == kept.iterations
    np.testing.assert_array_equal(first.x, kept.x)
    for path in (tmp_path / "cache" / "samplings").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    anew = sample(creature(), particles=200)
    assert anew.iterations > 0
    np.testing.assert_array_equal(first.x, anew.x)


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path / "file"))
    assert len(sample(pl.Sphere(radius=1.0), particles=50).x) == 50


def better(shape, spacing, **figures):
    """Fitted against regular, by the figures of the report."""
    found = [sample(shape, spacing, method=method) for method in ("fitted", "regular")]
    fitted, regular = (Quality.of(s.x, s.volume_each, s.spacing, shape) for s in found)
    assert fitted.density.deviation < figures.get("deviation", 0.5) * regular.density.deviation
    assert fitted.degenerate <= regular.degenerate and fitted.neighbors.least >= regular.neighbors.least
    assert fitted.surface.most < regular.surface.most
    return fitted, regular


def test_fitted_beats_the_lattice_on_a_creature_with_thin_parts():
    fitted, regular = better(creature(), 0.1)
    assert fitted.degenerate == 0
    assert fitted.nearest.least > 0.5


def test_fitted_beats_the_lattice_on_a_tilted_sheet():
    fitted, regular = better(tilted_sheet(1.5), 1.0)
    assert fitted.degenerate == 0, "two layers, or a zigzag, where the sheet is one and a half spacings thick"


def test_a_sheet_thinner_than_a_particle_is_covered():
    sheet = tilted_sheet(0.7)
    found = sample(sheet, 1.0)
    quality = Quality.of(found.x, found.volume_each, 1.0, sheet)
    assert quality.surface.most < 2.2 and quality.nearest.least > 0.5


@pytest.mark.parametrize("count", [3000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_fitted_beats_the_others_on_the_armadillo(shared, count):
    """Kugelstadt 2021, Section 9: no degenerate neighborhood where a lattice has some (25 and 24)."""
    armadillo = pl.Mesh(shared / "meshes" / "armadillo.obj")
    d = (armadillo.volume() / count) ** (1 / 3)
    fitted, regular = better(armadillo, d, deviation=0.35)
    assert regular.degenerate > 10 and fitted.degenerate == 0 and fitted.neighbors.least >= 5


def test_a_box_is_filled_by_its_own_lattice():
    box = pl.Box(size=(1.0, 0.52, 0.3)).rotate("y", 20)
    np.testing.assert_array_equal(sample(box, 0.1).x, sample_regular(box, 0.1)[0])


def test_copies_of_a_mesh_share_their_particles():
    there = (3.0, -2.0, 5.5)
    shape = pl.Torus(radius=1.0, tube=0.3).triangles()
    here, away = (pl.Mesh(shape, center=center) for center in ((0, 0, 0), there))
    first, second = sample(here, particles=300), sample(away, particles=300)
    assert second.iterations == 0, "kept from the first"
    np.testing.assert_allclose(second.x - there, first.x, atol=1e-12)


def test_moved_and_magnified_shapes_are_sampled_in_their_own_frame():
    shape = creature()
    moved = shape.rotate("y", 40).scale(3.0).translate((1, 2, 3))
    plain, placed = sample(shape, particles=250), sample(moved, particles=250)
    np.testing.assert_allclose(placed.x, moved.to_world(moved.shape.to_world(moved.shape.shape.to_world(plain.x))))
    assert placed.volume_each == pytest.approx(27 * plain.volume_each)


# --- fluids -----------------------------------------------------------------------------------------


def bowl_scene(**how):
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Sphere(radius=0.5, center=(0, 0.5, 0)), pl.Boundary(inside_out=True), name="bowl")
    water = pl.Box(size=(1.2, 0.6, 1.2), center=(0, 0.25, 0))
    scene.add(water, pl.Fluid(), name="water", **how)
    return scene


def test_a_fluid_fills_a_round_bowl_without_a_gap():
    """Nowhere on the wetted wall is a particle farther away than from the face of a lattice, sqrt(3)/2 spacings, by
    more than a quarter; a lattice leaves up to a spacing more."""
    d, rng = 0.06, np.random.default_rng(1)
    wall = rng.normal(size=(20_000, 3))
    wall = 0.5 * wall / np.linalg.norm(wall, axis=1, keepdims=True) + (0, 0.5, 0)
    wetted = wall[wall[:, 1] < 0.55 - d]
    gaps = {}
    for how in ("fitted", "regular"):
        sim = bowl_scene(**({} if how == "fitted" else {"sampling": how})).build()
        gaps[how] = cKDTree(sim["water"].x).query(wetted)[0] / d
    assert gaps["fitted"].max() < 1.25 * 3**0.5 / 2
    assert gaps["fitted"].mean() < gaps["regular"].mean() and gaps["fitted"].max() < gaps["regular"].max()


def test_water_in_a_bowl_begins_at_rest():
    sim = bowl_scene().build()
    volume = 0.55**2 * np.pi * (3 * 0.5 - 0.55) / 3  # of the cap below y = 0.55
    assert sim["water"].volume.sum() == pytest.approx(volume, rel=5e-3)
    start = sim["water"].x[:, 1].mean()
    sim.run(0.3)
    assert abs(sim["water"].x[:, 1].mean() - start) < 0.05 * 0.06
    assert np.linalg.norm(sim["water"].v, axis=1).max() < 0.5


def test_fluids_in_boxes_stay_lattices():
    scene = pl.Scene(particle_radius=0.05)
    scene.add(pl.Box(size=(1, 1, 1)), pl.Boundary(inside_out=True), name="tank")
    block = pl.Box(size=(0.5, 1, 1), center=(-0.25, 0, 0))
    scene.add(block, pl.Fluid(), name="water")
    np.testing.assert_allclose(scene.build()["water"].x, sample_regular(block, 0.1)[0], atol=1e-6)


# --- scenes -----------------------------------------------------------------------------------------


def test_a_mesh_may_tell_the_number_of_its_particles():
    scene = pl.Scene()
    ball = pl.Mesh(pl.Sphere(radius=0.5).triangles(), particles=800)
    scene.add(ball, pl.Elastic(), name="ball")
    sim = scene.build()
    assert len(sim["ball"].x) == 800
    assert scene.spacing == pytest.approx((ball.volume() / 800) ** (1 / 3))
    sim.step()


def test_a_number_of_particles_beside_a_radius():
    scene = pl.Scene(particle_radius=0.05)
    triangles = pl.Sphere(radius=0.5).triangles()
    scene.add(pl.Mesh(triangles, particles=1500), pl.Elastic(), name="fine")
    scene.add(pl.Box(size=(0.4, 0.4, 0.4), center=(2, 0, 0)), pl.Elastic(), name="usual")
    sim = scene.build()
    assert len(sim["fine"].x) == 1500 and scene.spacing == 0.1
    scene.add(pl.Mesh(triangles, particles=50_000, center=(5, 0, 0)), pl.Elastic(), name="finest")
    scene.add(pl.Mesh(triangles, particles=1500, center=(7, 0, 0)), pl.Fluid(), name="wet")
    scene.add(pl.Mesh(triangles, particles=1500, center=(9, 0, 0)), pl.Elastic(), name="both", particle_radius=0.04)
    found = scene.problems()
    assert len(found) == 3
    assert "that of 50,000 particles must lie between half the scene's and the scene's" in found[0]
    assert "only elastic bodies" in found[1] and "leave out its particle_radius" in found[2]


@pytest.mark.parametrize("method", METHODS)
def test_each_sampling_makes_a_body_that_holds_together(method):
    scene = pl.Scene(particle_radius=0.05, gravity=(0, 0, 0))
    body = scene.add(creature(), pl.Elastic(young=1e5), sampling=method, velocity=(0.3, 0, 0))
    sim = scene.build()
    sim.run(0.1)
    moved = sim[body].x - sim[body].rest
    tenth = 0.1 * scene.spacing
    np.testing.assert_allclose(moved, np.broadcast_to([0.03, 0, 0], moved.shape), atol=tenth)


def test_solids_are_fitted_unless_told_otherwise():
    shape = creature()
    for sampling in (None, "regular"):
        scene = pl.Scene(particle_radius=0.05)
        scene.add(shape, pl.Elastic(), name="body", sampling=sampling)
        wanted = sample(shape, 0.1, method=sampling or "fitted").x
        np.testing.assert_allclose(scene.build()["body"].x, wanted, atol=1e-6)


def test_a_mesh_that_tells_its_number_needs_no_other():
    ball = pl.Mesh(pl.Sphere(radius=0.5).triangles(), particles=70)
    assert len(sample(ball.rotate("x", 20)).x) == 70 and len(sample(ball, particles=30).x) == 30


def test_numbers_of_particles_that_mean_nothing_are_told():
    ball = pl.Mesh(pl.Sphere(radius=0.5).triangles(), particles=70)
    scene = pl.Scene(particle_radius=0.1)
    scene.add(ball | pl.Box(size=(1, 1, 1)), pl.Elastic(), name="part")
    scene.add(ball, pl.Boundary(), name="wall")
    scene.add(pl.Sphere(radius=1.0, center=(5, 0, 0)), pl.Boundary(), name="other", sampling="fitted")
    found = scene.problems()
    assert len(found) == 3
    assert "part of it cannot tell how many" in found[0] and all("a wall has no particles" in f for f in found[1:])


# --- wrong input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "either the spacing or the number"),
        ({"spacing": 0.1, "particles": 5}, "either the spacing or the number"),
        ({"spacing": -1.0}, "spacing must be a positive number"),
        ({"spacing": np.nan}, "spacing must be a positive number"),
        ({"spacing": 50.0}, "smaller than one particle"),
        ({"particles": 0}, "whole number from 1"),
        ({"particles": 2.5}, "whole number from 1"),
        ({"particles": True}, "whole number from 1"),
        ({"particles": 10**9}, "whole number from 1"),
        ({"spacing": 0.3, "method": "fited"}, "did you mean 'fitted'"),
        ({"spacing": 0.3, "seed": -1}, "seed must be a whole number"),
    ],
)
def test_wrong_requests_get_a_sentence(given, sentence):
    with pytest.raises(PliantError, match=sentence):
        sample(pl.Sphere(radius=1.0), **given)


@pytest.mark.parametrize("mesh", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["fitted", "blue_noise"])
def test_a_rod_thinner_than_its_particles_gets_a_sentence(method, mesh):
    rod = pl.Cylinder(radius=0.1 if mesh else 0.07, height=20.0 if mesh else 40.0).rotate("x", 40).rotate("z", 20)
    shape = pl.Mesh(rod.triangles()) if mesh else rod | pl.Sphere(radius=0.07)  # which has no frame of its own
    with pytest.raises(PliantError, match="thinner than one particle"):
        sample(shape, spacing=1.0, method=method)


def test_what_cannot_be_filled_gets_a_sentence():
    with pytest.raises(PliantError, match="infinite"):
        sample(pl.Plane(normal=(0, 1, 0)), particles=10)
    with pytest.raises(PliantError, match="only a shape"):
        sample("ball", particles=10)


def test_a_misspelt_sampling_is_told_with_all_else():
    scene = pl.Scene(particle_radius=0.1)
    scene.add(pl.Sphere(radius=1.0), pl.Elastic(), name="ball", sampling="blue noise")
    scene.add(pl.Sphere(radius=1.0, center=(5, 0, 0)), pl.Elastic(young=-1), name="other")
    with pytest.raises(SceneError) as error:
        scene.build()
    assert len(error.value.problems) == 2 and "blue_noise" in error.value.problems[0]


def test_version_is_part_of_the_key(monkeypatch):
    first = sample(pl.Sphere(radius=1.0), particles=60)
    monkeypatch.setattr(sampler, "VERSION", -1)
    assert first.iterations > 0 < sample(pl.Sphere(radius=1.0), particles=60).iterations
