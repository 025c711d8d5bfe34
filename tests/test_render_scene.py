"""Render scenes: a scene as pictures need it, the same from a simulation and from a file; and surfaces of fluids."""

import sys

import numpy as np
import pytest

import pliant as pl
from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.render import BACKGROUNDS, CameraPath, Light, Look, Orbit, fluid_surface
from pliant.render.compose import settled
from pliant.render.fluid_surface import NORMAL, _with_images, convex_planes, inside_share, reconstruct
from pliant.render.render_scene import CloudStyle, RenderScene, RenderWall

UNITS = {"velocity": "m/s", "pressure": "Pa"}


@pytest.fixture(scope="module")
def sim():
    scene = pl.Scene(particle_radius=0.05)
    scene.add(pl.Box(size=(2, 1, 1), center=(1, 0.5, 0.5)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Plane(point=(0, -0.2, 0)), pl.Boundary(), name="table")
    gate = scene.add(pl.Box(size=(0.1, 0.5, 0.5), center=(1.2, 0.3, 0.5)), pl.Boundary(), name="gate")
    gate.move(lambda t: (0, 1, 0))
    scene.add(pl.Box(size=(0.6, 0.6, 1), center=(0.3, 0.3, 0.5)), pl.Fluid(), name="water", colors="viridis")
    return scene.build()


@pytest.fixture
def render_scene(sim):
    return RenderScene.of(sim)


def moment(sim, time=0.0):
    view = sim["water"]
    speed = np.linspace(0, 1, len(view))[:, None] * (1.0, -2.0, 0.0)
    fields = {"velocity": speed, "pressure": np.linspace(0, 4000, len(view))}
    return Snapshot(0, time, {"water": Cloud(view.x, fields, UNITS)})


def test_of_a_simulation(render_scene):
    walls = [(wall.name, wall.container) for wall in render_scene.walls]
    assert walls == [("tank", True), ("gate", False)], "a plane is not drawn"
    assert render_scene.bodies == [CloudStyle("water", "viridis", 0.05, True)]
    np.testing.assert_allclose(render_scene.bounds, [[0, 0, 0], [2, 1, 1]])
    assert render_scene.top_speed == pytest.approx(0.6 * np.sqrt(2 * 9.81 * 1.0))


def test_pictures_show_what_there_is(sim, render_scene):
    snapshot = moment(sim)
    snapshot.poses["gate"] = np.array([[1.0, 0, 0, 0.5], [0, 1, 0, 0.25], [0, 0, 1, 0], [0, 0, 0, 1]])
    picture = render_scene.picture(snapshot, Look(bar=True, clock=True, background="black"))
    (water,), (gate,), (tank,) = picture.points, picture.surfaces, picture.lines
    np.testing.assert_allclose(water.x, sim["water"].x)
    assert water.radius == pytest.approx(1.1 * 0.05)
    assert gate.vertices.min(axis=0) == pytest.approx([1.65, 0.3, 0.25]), "the wall has moved"
    assert len(tank.segments) == 12 and not picture.glass
    assert picture.bar.label == "speed [m/s]" and picture.bar.maps == ("viridis",)
    assert picture.bar.high == render_scene.top_speed and picture.clock == "t = 0.00 s"
    assert picture.ground == 0.0 and picture.background == BACKGROUNDS["black"].zenith and picture.dark


def test_containers_and_ground(sim, render_scene):
    glass = render_scene.picture(moment(sim), Look(containers="glass"))
    assert len(glass.glass) == 1 and len(glass.lines) == 1
    bare = render_scene.picture(moment(sim), Look(containers="hidden", ground=False))
    assert not bare.glass and not bare.lines and bare.ground is None


def test_skins_stand_for_their_particles(sim, render_scene):
    snapshot = moment(sim)
    snapshot.meshes["water"] = TriMesh(np.eye(3), np.array([[0, 1, 2]]), {"velocity": np.zeros((3, 3))}, UNITS)
    picture = render_scene.picture(snapshot)
    assert not picture.points and len(picture.surfaces) == 2


def test_colors_follow_field_and_range(sim, render_scene):
    low = render_scene.picture(moment(sim), Look(color="pressure", low=0, high=4000, colors="grey")).points[0].colors
    assert (np.diff(low[:, 0]) >= 0).all() and low[-1, 0] > low[0, 0] + 0.5
    signed = render_scene.picture(moment(sim), Look(color="velocity.y", colors="coolwarm", bar=True))
    assert signed.bar.label == "velocity y [m/s]" and -2 <= signed.bar.low < -1.9
    with pytest.raises(PliantError, match=r"no .* field 'presure' .*'pressure'.*: pressure, speed, velocity"):
        render_scene.picture(moment(sim), Look(color="presure"))
    with pytest.raises(PliantError, match="fluid must be one of"):
        render_scene.picture(moment(sim), Look(fluid="gas"))


def test_a_film_has_one_range(sim, render_scene):
    snapshots = [moment(sim), moment(sim)]
    snapshots[1].clouds["water"].fields["pressure"] = np.full(len(sim["water"]), 9000.0)
    look = settled(render_scene, snapshots, Look(color="pressure"))
    assert look.low < 100 and look.high == 9000
    assert settled(render_scene, [], Look()).high == render_scene.top_speed
    half = settled(render_scene, snapshots, Look(color="pressure", low=-50.0))
    assert half.low == -50 and half.high == 9000


def test_upright_pictures_show_the_whole_scene(render_scene):
    corners = np.array([[x, y, z] for x in (0, 2) for y in (0, 1) for z in (0, 1)], float)
    for aspect in (0.5, 1.0, 2.0):
        camera = render_scene.view(0.0, aspect)
        local = (corners - camera.position) @ camera.axes().T
        seen = np.abs(local[:, :2] / local[:, 2:] / np.tan(np.radians(camera.fov) / 2) / (aspect, 1)).max(axis=0)
        assert seen.max() == pytest.approx(1 / 1.12, rel=0.01)


VIEWS = [
    None,
    pl.Camera((0.1, 0.2, 0.3), (1 / 3, 0, 0), fov=33.3),
    Orbit(speed=7.7, target=(0.1, 0.2, 0.3)),
    CameraPath([(0.1, pl.Camera((0, 0, 1), (0, 0, 0))), (2, pl.Camera((1, 0, 1), (0, 0, 0)))]),
]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
def test_files_hold_a_render_scene_exactly(render_scene, tmp_path, view):
    render_scene.camera, render_scene.lights = view, (Light((0.1, 1, 0), (0.3, 0.4, 0.5)),)
    render_scene.look = Look(color="pressure", low=0.1, high=1 / 3, title="Dämme", bar=True)
    render_scene.bounds = render_scene.bounds + 1 / 3
    render_scene.save(tmp_path / "render_scene.npz")
    again = RenderScene.load(tmp_path / "render_scene.npz")
    np.testing.assert_array_equal(again.bounds, render_scene.bounds)
    for name in ("top_speed", "bodies", "lights"):
        assert getattr(again, name) == getattr(render_scene, name)
    for ours, theirs in zip(again.walls, render_scene.walls, strict=True):
        assert (ours.name, ours.container, ours.color) == (theirs.name, theirs.container, theirs.color)
        for a, b in ((ours.outline, theirs.outline), (ours.mesh.vertices, theirs.mesh.vertices)):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(ours.mesh.faces, theirs.mesh.faces)
    assert repr(again.look) == repr(render_scene.look) and again.look.problems() == []
    assert again.view(0.7, 1.5) == render_scene.view(0.7, 1.5)


def test_damaged_files_are_told(render_scene, tmp_path):
    path = tmp_path / "render_scene.npz"
    render_scene.save(path)
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], b"", b"PK\x03\x04 nonsense", data[:60] + b"\0" * 200 + data[260:]):
        path.write_bytes(damaged)
        with pytest.raises(PliantError, match="is no render scene of Pliant, or it is damaged"):
            RenderScene.load(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(PliantError, match="is no render scene of Pliant"):
        RenderScene.load(path)
    with pytest.raises(PliantError, match="cannot read .*nowhere"):
        RenderScene.load(tmp_path / "nowhere.npz")


def test_walls_are_triangulated_once_and_only_if_needed():
    class Counting:
        calls = 0

        def triangles(self):
            self.calls += 1
            return np.eye(3), np.array([[0, 1, 2]])

    shape = Counting()
    wall = RenderWall("wall", np.zeros((0, 2, 3)), None, container=True, shape=shape)
    render_scene = RenderScene([wall], [], np.array([[0.0] * 3, [1.0] * 3]), 1.0)
    render_scene.picture(Snapshot(0, 0.0))
    assert shape.calls == 0
    render_scene.picture(Snapshot(0, 0.0), Look(containers="glass"))
    render_scene.picture(Snapshot(1, 0.0), Look(containers="glass"))
    assert shape.calls == 1


def block(radius=0.05, counts=(12, 8, 10)):
    """Particles that fill a box from the origin, and its sides."""
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), -1).reshape(-1, 3)
    return (2 * grid + 1.0) * radius, 2 * radius * np.array(counts)


def volume(mesh):
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    return float((np.cross(a, b) * c).sum() / 6)


def box_planes(size):
    return convex_planes(TriMesh(*pl.Box(size=size, center=size / 2).triangles()))


def test_a_surface_holds_its_fluid():
    pytest.importorskip("pysplashsurf")
    x, size = block()
    mesh = reconstruct(Cloud(x, {"one": np.ones(len(x)), "id": np.arange(len(x))}), 0.05)
    assert volume(mesh) == pytest.approx(size.prod(), rel=0.1)
    assert set(mesh.fields) == {"one", NORMAL}, "numbers of particles cannot be interpolated"
    np.testing.assert_allclose(mesh.fields["one"], 1, atol=1e-4)
    outward = ((mesh.vertices - size / 2) * mesh.fields[NORMAL]).sum(axis=1)
    assert (outward > 0).mean() > 0.99
    again = reconstruct(Cloud(x, {"one": np.ones(len(x))}), 0.05)
    assert again.faces.shape == mesh.faces.shape and volume(again) == pytest.approx(volume(mesh), rel=1e-6)


def test_a_surface_ends_at_the_walls():
    """Without walls edges are rounded off; with them the fluid fills its tank into the corners and no further."""
    pytest.importorskip("pysplashsurf")
    x, size = block()
    planes = box_planes(size)
    assert planes.shape == (6, 4)
    mesh = reconstruct(Cloud(x, {}), 0.05, planes)
    assert (mesh.vertices > 0).all() and (mesh.vertices < size).all()
    assert volume(mesh) == pytest.approx(size.prod(), rel=0.02)


def rings(radius, height, r=0.05):
    """Particles that fill an upright cylinder about the origin, on circles."""
    circles = [(rho, np.arange(n) * 2 * np.pi / n) for rho in np.arange(r, radius, 2 * r)
               for n in [max(3, round(np.pi * rho / r))]]  # fmt: skip
    flat = np.concatenate([np.stack([rho * np.cos(a), 0 * a, rho * np.sin(a)], 1) for rho, a in circles])
    return np.concatenate([flat + (0, y, 0) for y in np.arange(r - height / 2, height / 2, 2 * r)])


def shells(radius, r=0.05):
    """Particles that fill a ball about the origin, on spirals around spheres."""
    found = []
    for rho in np.arange(r, radius, 2 * r):
        k = np.arange(round(np.pi * rho**2 / r**2)) + 0.5
        y, angle = 1 - 2 * k / len(k), np.pi * (1 + np.sqrt(5)) * k
        found.append(rho * np.stack([np.sqrt(1 - y**2) * np.cos(angle), y, np.sqrt(1 - y**2) * np.sin(angle)], 1))
    return np.concatenate(found)


ROUND = {"cylinder": (pl.Cylinder(radius=0.5, height=1), rings(0.5, 1)), "sphere": (pl.Sphere(radius=0.6), shells(0.6))}


@pytest.mark.parametrize("kind", ROUND)
def test_a_surface_fills_a_round_container(kind):
    """However many facets there are, a particle has few images, and the surface ends at the wall."""
    pytest.importorskip("pysplashsurf")
    shape, x = ROUND[kind]
    planes = convex_planes(TriMesh(*shape.triangles()))
    assert len(planes) > 60
    images, origins = _with_images(np.float32(x), np.float32(planes), 0.05, np.ones(len(x), bool))
    counts = np.bincount(origins)
    assert len(images) == counts.sum() and set(counts) == ({1, 3, 9} if kind == "cylinder" else {1, 3})
    mesh, bare = reconstruct(Cloud(x, {}), 0.05, planes), reconstruct(Cloud(x, {}), 0.05)
    assert (mesh.vertices @ planes[:, :3].T - planes[:, 3]).max() < 0
    full = volume(TriMesh(*shape.triangles()))
    assert volume(mesh) == pytest.approx(full, rel=0.02) and volume(bare) < 0.96 * full


def test_corners_are_filled_behind_each_of_their_walls():
    """The particle in a corner has an image and another one behind it in each direction, and each of these again."""
    x, size = block()
    planes = np.float32(box_planes(size))
    images, origins = _with_images(np.float32(x), planes, 0.05, np.ones(len(x), bool))
    at_wall = np.isclose(x, 0.05) | np.isclose(x, size - 0.05)
    np.testing.assert_array_equal(np.bincount(origins), 3 ** at_wall.sum(axis=1))
    np.testing.assert_allclose(np.unique(images[origins == 0].round(3)), [-0.15, -0.05, 0.05], atol=1e-6)
    dry, _ = _with_images(np.float32(x), planes, 0.05, np.zeros(len(x), bool))
    assert len(dry) == len(x)


def test_memory_stays_bounded(monkeypatch):
    """Depths are computed for some particles at a time; the result is the same."""
    x, size = block()
    planes = np.float32(box_planes(size))
    whole = _with_images(np.float32(x), planes, 0.05, np.ones(len(x), bool))
    share = inside_share(x, planes)
    monkeypatch.setattr(fluid_surface, "MOST_DEPTHS", 50)
    parts = _with_images(np.float32(x), planes, 0.05, np.ones(len(x), bool))
    np.testing.assert_array_equal(parts[0], whole[0])
    assert inside_share(x, planes) == share == 1.0 and inside_share(x + size / 2, planes) == pytest.approx(1 / 8)
    monkeypatch.setattr(fluid_surface, "MOST_PLANES", 5)
    assert len(box_planes(size)) == 0


def test_fields_are_interpolated():
    pytest.importorskip("pysplashsurf")
    x, size = block()
    mesh = reconstruct(Cloud(x, {"velocity": np.stack([x[:, 0], 2 * x[:, 1], 0 * x[:, 2]], 1)}), 0.05)
    middle = (np.abs(mesh.vertices[:, 0] - size[0] / 2) < 0.3) & (mesh.vertices[:, 1] > size[1] - 0.1)
    assert middle.sum() > 50
    np.testing.assert_allclose(mesh.fields["velocity"][middle, 0], mesh.vertices[middle, 0], atol=0.03)


def test_surfaces_of_next_to_nothing():
    pytest.importorskip("pysplashsurf")
    empty = reconstruct(Cloud(np.zeros((0, 3)), {"velocity": np.zeros((0, 3))}), 0.1)
    assert empty.vertices.shape == (0, 3) and empty.fields["velocity"].shape == (0, 3)
    drop = reconstruct(Cloud(np.array([[0.0, 0, 0], [np.nan, 0, 0]])), 0.1)
    assert 0.0005 < volume(drop) < 0.02 and np.isfinite(drop.vertices).all()


def test_planes_of_convex_meshes_only():
    box = pl.Box(size=(1, 2, 3))
    planes = convex_planes(TriMesh(*box.triangles()))
    np.testing.assert_allclose(np.sort(planes[:, 3]), [0.5, 0.5, 1, 1, 1.5, 1.5])
    assert len(convex_planes(TriMesh(*pl.Torus(radius=1, tube=0.3).triangles()))) == 0
    assert 60 < len(convex_planes(TriMesh(*pl.Cylinder(radius=1, height=1).triangles()))) < 70


def test_fluids_are_drawn_as_one_surface(sim, render_scene):
    pytest.importorskip("pysplashsurf")
    picture = render_scene.picture(moment(sim), Look(fluid="surface", containers="glass", color="pressure", bar=True))
    water = picture.surfaces[-1]
    assert not picture.points and water.gloss > 0 and picture.bar.label == "pressure [Pa]"
    assert (water.vertices > 0).all() and (water.vertices < (2, 1, 1)).all()


def test_without_splashsurf_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysplashsurf", None)
    with pytest.raises(PliantError, match="pip install pysplashsurf, or draw the fluid as spheres"):
        reconstruct(Cloud(np.zeros((1, 3))), 0.1)
