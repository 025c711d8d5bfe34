"""Volume maps and walls: their profile, flat and curved walls, edges, motion, the cache on disk, and friction."""

import numpy as np
import pytest
import taichi as ti
from scipy.spatial.transform import Rotation

import pliant as pl
from pliant.boundary import volume_map
from pliant.boundary.volume_map import wall_profile
from pliant.boundary.wall_table import WallTable, side_at, velocity_of
from pliant.boundary.walls import FIELDS, Walls
from pliant.core.backend import Reals, RealTable, Vectors, upload, vec3
from pliant.core.particles import Particles
from pliant.core.smoothing import SMOOTHINGS, smoothing
from pliant.scene import assembly
from pliant.scene.scene import Body

D = 0.1
W = smoothing("cubic_spline")


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    """Maps of earlier versions must not answer for this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLIANT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@ti.kernel
def _profile(phi: Reals, table: RealTable, beta: Reals, slope: Reals):
    for i in range(phi.shape[0]):
        beta[i], slope[i] = volume_map.profile(phi[i], table)


@ti.kernel
def _probe(x: Vectors, t: WallTable, distance: Reals, gradient: Vectors, velocity: Vectors):
    for i in range(x.shape[0]):
        distance[i] = 1e9
        for side in range(t.side_begin[1]):
            phi, outward = side_at(side, x[i], t)
            if phi < distance[i]:
                distance[i], gradient[i] = phi, outward
        velocity[i] = velocity_of(0, x[i], t)


class Probe:
    """One wall, asked at points of space."""

    def __init__(self, shape, inside_out=False, pivot=None):
        body = Body("wall", shape, pl.Boundary(inside_out=inside_out), (0, 0, 0))
        body.pivot = pivot
        self.wall = assembly.build_wall(body, D, W)

    def __call__(self, points):
        """Effective distance [m], its gradient and the velocity of the wall."""
        walls = Walls(Particles(["probe"], FIELDS), [self.wall], D, wall_profile(W), np.zeros((1, 1)))
        walls.upload_poses()
        n = len(points)
        out = ti.ndarray(ti.f32, n), ti.ndarray(vec3, n), ti.ndarray(vec3, n)
        _probe(upload(np.asarray(points), vec3), walls.table, *out)
        return tuple(array.to_numpy().astype(float) for array in out)

    def felt(self, points):
        """Density ratio and gradient that particles at these points feel."""
        p = Particles(["probe"], FIELDS)
        p.add(0, {"x": points})
        Walls(p, [self.wall], D, wall_profile(W), np.zeros((1, 1))).sample(0.0)
        return p.numpy("wall_density"), p.numpy("wall_gradient")


def above_top(n=200, seed=0, lateral=0.5):
    """Points up to one spacing above the square |x|, |z| < lateral in the plane y = 0."""
    return np.random.default_rng(seed).uniform((-lateral, 0.05 * D, -lateral), (lateral, 1.2 * D, lateral), (n, 3))


# --- profile ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SMOOTHINGS))
def test_first_layer_feels_the_next_plane_of_a_lattice(name):
    table = wall_profile(SMOOTHINGS[name])
    assert table[0, 0] == pytest.approx(SMOOTHINGS[name].plane_sum(np.array(1.0)), rel=1e-12)
    assert table[-1, 0] == pytest.approx(0.0, abs=1e-12)
    step = (volume_map.REACH - 0.5) / (len(table) - 1)
    np.testing.assert_allclose(np.gradient(table[:, 0], step)[1:-1], table[1:-1, 1], atol=1e-4)


def test_the_slope_carries_hydrostatic_pressure():
    """A column's weight rho g n d^3 over the wall's push p |grad beta| / rho0 leaves p = rho g n d / 1.02 on a lattice;
    in disorder, where the push is weaker, STEEP makes up for it."""
    assert wall_profile(W)[0, 1] == pytest.approx(-1.02 * volume_map.STEEP, abs=0.01)


def test_device_profile_is_straight_below_half_a_spacing():
    phi = np.array([-0.5, 0.0, 0.25, 0.5, 0.6, 0.8, 0.95, volume_map.REACH])
    arrays = upload(phi, ti.f32), upload(wall_profile(W), ti.f32), ti.ndarray(ti.f32, 8), ti.ndarray(ti.f32, 8)
    _profile(*arrays)
    beta, slope = arrays[2].to_numpy(), arrays[3].to_numpy()
    at, steepest = W.plane_sum(np.array(1.0)), wall_profile(W)[0, 1]
    np.testing.assert_allclose(beta[:4], at + steepest * (phi[:4] - 0.5), rtol=1e-5)
    np.testing.assert_allclose(slope[:4], steepest, rtol=1e-5)
    np.testing.assert_allclose(beta[4:], W.plane_sum(1 + 2 * volume_map.STEEP * (phi[4:] - 0.5)), atol=1e-5)


# --- flat walls ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "center"), [
    ((1.0, 1.0, 1.0), (0.5, 0.5, 0.5)), ((0.913, 1.07, 0.877), (0.0271, -0.613, 0.117)),
    ((1.234, 0.9, 1.01), (-2.0037, 3.01, 0.3333)),
])  # fmt: skip
def test_flat_walls_are_exact_wherever_they_stand(size, center):
    rng, half = np.random.default_rng(1), np.array(size) / 2
    probe = Probe(pl.Box(size=size, center=center), inside_out=True)
    for axis in range(3):
        for side in (-1, 1):
            inner = rng.uniform(-1, 1, (100, 3)) * (half - 3 * D)
            depth = rng.uniform(0.05, 0.98, 100) * D
            inner[:, axis] = side * (half[axis] - depth)
            distance, gradient, _ = probe(inner + center)
            assert np.abs(distance - depth).max() < 1e-5 * D * max(1.0, np.abs(center).max() / 0.3)
            np.testing.assert_allclose(gradient, -side * np.tile(np.eye(3)[axis], (100, 1)), atol=1e-4)


def test_a_tilted_flat_wall_is_exact_too():
    shape = pl.Box(size=(1.6, 0.6, 1.6), center=(0, -0.3, 0)).rotate((1, 0.3, 0.2), 27, about=(0, 0, 0))
    turn = shape.placement()[1]
    points = above_top(lateral=0.45)
    distance, gradient, _ = Probe(shape)(points @ turn.T)
    near = points[:, 1] < 0.98 * D
    assert np.abs(distance - points[:, 1])[near].max() < 1e-4 * D
    np.testing.assert_allclose(gradient[near], np.tile(turn[:, 1], (near.sum(), 1)), atol=2e-3)


def test_a_plane_equals_the_top_of_a_box():
    points = above_top()
    plane, box = Probe(pl.Plane()).felt(points), Probe(pl.Box(size=(2, 1, 2), center=(0, -0.5, 0))).felt(points)
    assert plane[0].max() > 0.2 and plane[0].min() == 0.0
    np.testing.assert_allclose(plane[0], box[0], atol=2e-5)
    np.testing.assert_allclose(plane[1], box[1], atol=1e-3 / D)


def test_an_inside_out_plane_is_a_ceiling():
    points = above_top()
    ceiling, ground = Probe(pl.Plane(), inside_out=True).felt(points * (1, -1, 1)), Probe(pl.Plane()).felt(points)
    assert np.array_equal(ceiling[0], ground[0]) and np.array_equal(ceiling[1], -ground[1])


def test_a_lattice_that_fills_a_box_has_density_one_everywhere():
    n = 8
    scene = pl.Scene(particle_radius=D / 2)
    hollow = pl.Box(size=(n * D,) * 3, center=(0.137, 0.4, -0.21))
    scene.add(hollow, pl.Boundary(inside_out=True), name="tank")
    water = scene.add(hollow, pl.Fluid(), name="water")
    sim = scene.build()
    sim.find_neighbors()
    ratio = sim[water].density / 1000
    layer = np.round((sim[water].x - sim[water].x.min(axis=0)) / D).astype(int)
    walls = ((layer == 0) | (layer == n - 1)).sum(axis=1)
    assert [(walls == k).sum() for k in range(4)] == [6**3, 6 * 36, 12 * 6, 8]
    error, near_edge = np.abs(ratio - 1), (walls == 1) & (((layer == 1) | (layer == n - 2)).any(axis=1))
    assert error[walls == 0].max() < 1e-4
    assert error[(walls == 1) & ~near_edge].max() < 1e-3
    assert error[near_edge].max() < 6e-3, "splines carry a little of an edge one layer further"
    assert error[walls == 2].max() < 0.02
    assert error[walls == 3].max() < 0.05


# --- edges, corners, curvature ---------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "inside_out"), [
    (pl.Box(size=(0.8, 0.8, 0.8)), True), (pl.Box(size=(0.8, 0.8, 0.8)), False), (pl.Sphere(radius=0.35), False),
    (pl.Sphere(radius=0.45), True), (pl.Cylinder(radius=0.3, height=0.5), False),
], ids=["hollow box", "box", "ball", "hollow ball", "cylinder"])  # fmt: skip
def test_the_gradient_is_that_of_the_density(shape, inside_out):
    """Pressure stays symmetric only if the wall is a true potential."""
    rng, probe, step = np.random.default_rng(2), Probe(shape, inside_out), 0.01 * D
    points = rng.uniform(-0.6, 0.6, (6000, 3))
    phi = shape.signed_distance(points) * (-1 if inside_out else 1)
    points = points[(phi > 0.1 * D) & (phi < 0.95 * D)][:400]
    gradient = D * probe.felt(points)[1]
    shifts = step * np.eye(3)
    differences = [(probe.felt(points + s)[0] - probe.felt(points - s)[0]) / (2 * step / D) for s in shifts]
    error = np.abs(gradient - np.stack(differences, axis=1))
    assert len(points) > 200
    assert error.max() < 0.03 and error.mean() < 2e-3


def test_a_corner_holds_more_wall_than_a_face_and_an_outer_edge_less():
    inner = np.array([[0.0, -0.45, 0.0], [-0.45, -0.45, 0.0], [-0.45, -0.45, -0.45]])
    face, edge, corner = Probe(pl.Box(size=(1, 1, 1)), inside_out=True).felt(inner)[0]
    assert face < edge < corner
    outer = np.array([[0.0, 0.55, 0.0], [0.5, 0.55, 0.0], [0.5, 0.55, 0.5]])
    face, edge, corner = Probe(pl.Box(size=(1, 1, 1))).felt(outer)[0]
    assert face > edge > corner > 0


def test_a_ball_pushes_outwards_and_less_than_a_plane():
    rng, radius = np.random.default_rng(3), 5 * D
    out = rng.normal(size=(300, 3))
    out /= np.linalg.norm(out, axis=1)[:, None]
    phi = rng.uniform(0.3, 0.9, 300) * D
    probe = Probe(pl.Sphere(radius=radius, center=(0.3, 0, 0)))
    distance, gradient, _ = probe((0.3, 0, 0) + (radius + phi)[:, None] * out)
    assert (distance > phi - 2e-3 * D).all() and (distance < phi + 0.15 * D).all()
    unit = gradient / np.linalg.norm(gradient, axis=1)[:, None]
    assert np.einsum("ij,ij->i", unit, out).min() > 0.995
    hollow = Probe(pl.Sphere(radius=radius, center=(0.3, 0, 0)), inside_out=True)
    assert (hollow((0.3, 0, 0) + (radius - phi)[:, None] * out)[0] < phi + 2e-3 * D).all()


def test_far_from_a_wall_there_is_nothing_to_feel():
    box, hollow = pl.Box(size=(2, 2, 2)), Probe(pl.Box(size=(2, 2, 2)), inside_out=True)
    points = np.random.default_rng(4).uniform(-0.85, 0.85, (100, 3))
    assert not hollow.felt(points)[0].any() and not hollow.felt(points)[1].any()
    away = np.array([[1.2, 0, 0], [50.0, -3, 2], [-1e4, 0, 0]])
    assert not Probe(box).felt(away)[0].any()


# --- motion ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [pl.Box(size=(1, 1, 1), center=(0.4, 0, 0)), pl.Plane()], ids=["box", "plane"])
def test_a_moved_wall_is_the_same_in_its_own_frame(shape):
    probe = Probe(shape, pivot=(0.2, -0.3, 0.1))
    points = above_top() + (0, 0.5 if isinstance(shape, pl.Box) else 0.0, 0)
    before = probe(points)
    turn = Rotation.from_rotvec((0.4, -1.1, 0.7)).as_matrix()
    probe.wall.rotation, probe.wall.shift = turn, np.array([1.5, -0.2, 0.6])
    after = probe(probe.wall.placed(points))
    assert np.abs(after[0] - before[0]).max() < 2e-4 * D
    np.testing.assert_allclose(after[1], before[1] @ turn.T, atol=5e-3)


def test_a_wall_turns_about_its_pivot():
    probe = Probe(pl.Box(size=(1, 1, 1)), pivot=(0.5, 0, 0))
    wall = probe.wall
    wall.motion = lambda t: ((0.0, 2.0, 0.0), (0.0, 0.0, 3.0))
    wall.set_velocity(0.0)
    point = np.array([[0.0, 0.55, 0.0]])
    np.testing.assert_allclose(
        probe(point)[2][0], np.array([0, 2, 0]) + np.cross((0, 0, 3), (-0.5, 0.55, 0)), atol=1e-5
    )
    for _ in range(1000):
        wall.advance(np.pi / 3 / 1000)  # half a turn
    np.testing.assert_allclose(wall.placed(np.array([[0.5, 0, 0], [0, 0, 0]])),
                               [[0.5, 2 * np.pi / 3, 0], [1.0, 2 * np.pi / 3, 0]], atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(wall.rotation @ wall.rotation.T, np.eye(3), atol=1e-9)


def test_a_moving_wall_is_felt_as_a_flux():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Plane(), pl.Boundary(), name="floor").move(lambda t: (0.3, 1.5, 0))
    scene.add(pl.Box(size=(0.4, 0.3, 0.4), center=(0, 0.15, 0)), pl.Fluid())
    sim = scene.build()
    sim.world.walls.sample(0.0)
    p = sim.world.particles
    flux, gradient = p.numpy("wall_flux"), p.numpy("wall_gradient")
    assert (flux < 0).any(), "a rising floor compresses: -flux counts as approach"
    np.testing.assert_allclose(flux, gradient @ np.array([0.3, 1.5, 0]), rtol=1e-5, atol=1e-5)


# --- cache -----------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A fresh cache, and how many maps were computed rather than read."""
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path))
    made, compute = [], volume_map.VolumeMap._compute
    monkeypatch.setattr(volume_map.VolumeMap, "_compute", lambda *given: made.append(1) or compute(*given))
    return made, tmp_path / "maps"


def spline_of(size=0.8):
    return Probe(pl.Box(size=(size, 0.8, 0.8))).wall.map.spline.to_numpy()


def test_a_map_is_read_from_disk_the_second_time(counted):
    made, folder = counted
    first, second = spline_of(), spline_of()
    assert len(made) == 1 and len(list(folder.iterdir())) == 1
    assert np.array_equal(first, second)


def test_another_shape_is_another_map(counted):
    made, folder = counted
    spline_of(0.8), spline_of(0.9)
    assert len(made) == 2 and len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", [
    lambda content: b"", lambda content: b"no map at all", lambda content: content[: len(content) // 2],
    lambda content: content[:500] + bytes(200) + content[700:], lambda content: content[:-100] + bytes(100),
], ids=["empty", "text", "cut off", "overwritten", "end lost"])  # fmt: skip
def test_a_damaged_file_is_computed_anew(counted, damage):
    made, folder = counted
    first = spline_of()
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert np.array_equal(first, spline_of())
    assert len(made) == 2
    assert np.array_equal(first, spline_of()) and len(made) == 2, "the new file is whole"


def test_a_cache_that_cannot_be_written_is_no_hindrance(counted, monkeypatch):
    made, folder = counted
    blocked = folder.parent / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("PLIANT_CACHE", str(blocked))
    spline_of()
    assert len(made) == 1


# --- friction --------------------------------------------------------------------------------------


def sliding(friction):
    """Speeds of an endless layer of water on a floor, and the seconds between them."""
    scene = pl.Scene(particle_radius=0.025, periodic=(0.4, None, 0.4))
    scene.add(pl.Plane(), pl.Boundary(friction=friction, no_slip=False), name="floor")
    water = scene.add(pl.Box(size=(0.4, 0.15, 0.4), center=(0.2, 0.075, 0.2)), pl.Fluid(viscosity=0.0), name="water",
                      velocity=(3.0, 0, 0))  # fmt: skip
    sim = scene.build()
    sim.run(0.1)
    before = sim[water].v[:, 0].mean()
    sim.run(0.15)
    return before, sim[water].v[:, 0].mean(), 0.15


@pytest.mark.parametrize("friction", [0.1, 0.2])
def test_friction_slows_by_mu_g(friction):
    before, after, seconds = sliding(friction)
    assert (before - after) / seconds == pytest.approx(friction * 9.81, rel=0.03)


def test_without_friction_and_sticking_it_keeps_its_speed():
    before, after, _ = sliding(0.0)
    assert before == pytest.approx(3.0, rel=1e-4) and after == pytest.approx(3.0, rel=1e-4)


def test_friction_stops_and_does_not_turn_back():
    """On a moving floor the layer takes the floor's speed and no more."""
    scene = pl.Scene(particle_radius=0.025, periodic=(0.4, None, 0.4))
    scene.add(pl.Plane(), pl.Boundary(friction=2.0, no_slip=False), name="belt").move(lambda t: (0.5, 0, 0))
    water = scene.add(pl.Box(size=(0.4, 0.1, 0.4), center=(0.2, 0.05, 0.2)), pl.Fluid(viscosity=0.05), name="water")
    sim = scene.build()
    speeds = []
    scene.on_step(lambda sim: speeds.append(sim[water].v[:, 0].max()))
    sim.run(0.4)
    assert max(speeds) < 0.505 and sim[water].v[:, 0].mean() == pytest.approx(0.5, abs=2e-3)
