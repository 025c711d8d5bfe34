"""Shapes against closed forms and brute force; sampling against volumes; bad meshes against one clear sentence."""

import pickle
from pathlib import Path

import igl
import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.geometry import (
    Box,
    Capsule,
    Cylinder,
    Difference,
    Mesh,
    Plane,
    Rotated,
    Scaled,
    Sphere,
    Surface,
    Torus,
    Translated,
    Union,
    estimate_count,
    sample_regular,
)
from pliant.geometry.volumes import count_volume, integrate_volume

MESHES = Path(__file__).parents[2] / "shared" / "meshes"
C = (0.3, -0.2, 0.5)
SOLIDS = {
    "box": Box((0.6, 0.8, 1.0), C),
    "sphere": Sphere(0.5, C),
    "cylinder_x": Cylinder(0.3, 0.9, C, "x"),
    "cylinder_y": Cylinder(0.4, 0.7, C),
    "capsule": Capsule(0.3, 0.5, C, "z"),
    "torus": Torus(0.5, 0.2, C, "x"),
    "rotated": Cylinder(0.3, 0.9, C, "z").rotate((1, 2, 3), 40.0),
    "scaled": Torus(0.5, 0.2, C).scale(1.3),
    "union": Box((0.6, 0.8, 1.0), C) | Sphere(0.5),
    "intersection": Box((0.6, 0.8, 1.0), C) & Sphere(0.5, C),
    "difference": Box((1.0, 1.0, 1.0), C) - Cylinder(0.3, 2.0, C),
}
ROUND = {name: SOLIDS[name] for name in SOLIDS if name != "box"}


def points(n=2000, seed=0, reach=1.2):
    return np.asarray(C) + np.random.default_rng(seed).uniform(-reach, reach, (n, 3))


def cube(size=1.0):
    return Box((size,) * 3).triangles()


def each(solids):
    return pytest.mark.parametrize("shape", solids.values(), ids=solids.keys())


@each(SOLIDS)
def test_the_surface_is_the_zero_level(shape):
    vertices, faces = shape.triangles()
    assert np.abs(shape.signed_distance(vertices)).max() < 0.02
    drawn = shape.outline()
    assert drawn.shape[1:] == (2, 3) and np.abs(shape.signed_distance(drawn.reshape(-1, 3))).max() < 0.01


@each({k: v for k, v in SOLIDS.items() if k not in ("union", "intersection", "difference")})
def test_distance_equals_that_to_a_fine_triangulation(shape):
    """Independent oracle: libigl's distance and exact winding number of the triangulated surface."""
    vertices, faces = shape.triangles()
    x = points(300)
    squared = igl.point_mesh_squared_distance(x, vertices, faces)[0]
    sign = np.where(igl.winding_number(vertices, faces, x) > 0.5, -1.0, 1.0)
    np.testing.assert_allclose(shape.signed_distance(x), sign * np.sqrt(squared), atol=3e-3)


@each(SOLIDS)
def test_distance_is_1_lipschitz(shape):
    x, y = points(3000, 1), points(3000, 2)
    slope = np.abs(shape.signed_distance(x) - shape.signed_distance(y)) / np.linalg.norm(x - y, axis=1)
    assert slope.max() <= 1.0 + 1e-12


@each(SOLIDS)
def test_bounds_hold_the_shape_tightly(shape):
    lower, upper = shape.bounds()
    vertices, _ = shape.triangles()
    assert (vertices > lower - 1e-9).all() and (vertices < upper + 1e-9).all()
    if type(shape).__name__ not in ("Intersection", "Difference"):
        np.testing.assert_allclose([vertices.min(axis=0), vertices.max(axis=0)], [lower, upper], atol=0.012)


@each(SOLIDS)
def test_volume_triangulation_and_integrations_agree(shape):
    vertices, faces = shape.triangles()
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    divergence = np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
    assert divergence == pytest.approx(shape.volume(), rel=0.01)  # also: faces look outward
    assert integrate_volume(shape.signed_distance, shape.bounds()) == pytest.approx(shape.volume(), rel=5e-4)
    assert count_volume(shape.inside, shape.bounds(), 100_000) == pytest.approx(shape.volume(), rel=4e-3)


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (Box((1, 2, 3)), 6.0),
        (Sphere(0.5), np.pi / 6),
        (Cylinder(0.5, 2.0), np.pi / 2),
        (Capsule(0.5, 2.0), np.pi / 2 + np.pi / 6),
        (Torus(1.0, 0.25), 2 * np.pi**2 * 0.0625),
        (Sphere(0.5).scale(2), 8 * np.pi / 6),
        (Box((1, 1, 1)) - Sphere(0.4), 1 - 4 / 3 * np.pi * 0.4**3),
        (Box((1, 1, 1)) | Box((1, 1, 1), (0.5, 0, 0)), 1.5),
        (Box((1, 1, 1)) & Plane(point=(0, 0.2, 0)), 0.7),
        (Sphere(1.0) & Sphere(1.0, (1, 0, 0)), np.pi * 5 / 12),  # lens: pi (4 R + d)(2 R - d)^2 / 12
        (Sphere(1.0) - Sphere(0.98), 4 / 3 * np.pi * (1 - 0.98**3)),
    ],
)
def test_volumes_against_closed_forms(shape, volume):
    assert shape.volume() == pytest.approx(volume, rel=2e-3)


def test_box_and_plane_by_hand():
    box = Box((2, 2, 2))
    np.testing.assert_allclose(box.signed_distance([(0, 0, 0), (2, 0, 0), (2, 2, 1)]), [-1, 1, np.sqrt(2)])
    assert len(box.outline()) == 12 and len(box.triangles()[1]) == 12
    plane = Plane(normal=(0, 2, 0), point=(5, 1, 5))
    np.testing.assert_allclose(plane.signed_distance([(0, 3, 0), (9, 0, 0)]), [2, -1])
    assert np.isinf(plane.bounds()).all() and np.isinf(plane.volume())
    np.testing.assert_allclose((box & plane.translate((0, -1, 0))).bounds(), [(-1, -1, -1), (1, 0, 1)], atol=1e-12)


def test_transforms_move_the_distance_with_the_shape():
    from scipy.spatial.transform import Rotation

    shape, x, about = SOLIDS["difference"], points(), np.array([0.1, 0.2, -0.3])
    R = Rotation.from_rotvec(np.radians(70) * np.array([0, 0, 1])).as_matrix()
    back = (x - about) @ R + about
    np.testing.assert_allclose(shape.rotate("z", 70, about).signed_distance(x), shape.signed_distance(back), atol=1e-12)
    moved = shape.translate((1, 2, 3)).signed_distance(x + (1, 2, 3))
    np.testing.assert_allclose(moved, shape.signed_distance(x), atol=1e-12)
    larger = shape.scale(3, about=(0, 0, 0)).signed_distance(3 * x)
    np.testing.assert_allclose(larger, 3 * shape.signed_distance(x), atol=1e-12)
    np.testing.assert_allclose(shape.rotate("y", 30).scale(2).middle(), shape.middle(), atol=1e-12)  # in place


def test_shapes_are_immutable_and_hashed_by_content():
    size = np.array([1.0, 2.0, 3.0])
    box = Box(size)
    size[0] = 9.0
    assert box.size == (1.0, 2.0, 3.0) and box.key() == Box((1, 2, 3)).key()
    ball, mesh = Sphere(1), Mesh(cube())
    different = [box, Box((1, 2, 3), (0, 0, 1)), ball, box | ball, ball - box, mesh, mesh.scale(2), Mesh(cube(), 2)]
    keys = {shape.key() for shape in different}
    assert len(keys) == len(different) and all(len(key) == 64 for key in keys)
    with pytest.raises(AttributeError):
        box.size = (1, 1, 1)
    with pytest.raises(TypeError):
        box | 3


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Box((1, 0, 1)), "size must be"),
        (Box((1, np.nan, 1)), "size must be"),
        (Box((1, np.inf, 1)), "size must be"),
        (Box(2), "size must be three numbers"),
        (Box(), "size is missing"),
        (Box(size=(1, 1, 1), centre=(0, 0, 0)), "did you mean 'center'"),
        (Sphere(-1), "radius must be"),
        (Sphere(1, (0, 0, "a")), "center must be"),
        (Cylinder(1, 0), "height must be"),
        (Cylinder(1, 1, axis="w"), "axis must be one of x, y, z"),
        (Capsule("wide", 1), "radius must be"),
        (Torus(0.1, 0.2), "tube must be at most radius"),
        (Plane((0, 0, 0)), "normal must not be zero"),
        (Sphere(1).translate((1, 2)), "offset must be"),
        (Sphere(1).rotate((0, 0, 0), 3), "axis must not be zero"),
        (Sphere(1).rotate("q", 3), "axis must be three numbers"),
        (Sphere(1).rotate("x", np.nan), "degrees must be"),
        (Sphere(1).scale(0), "factor must be"),
        (Sphere(1) | Sphere(0), "radius must be"),
        (Sphere(0).translate((1, 0, 0)) - Box((1, 1, 1)), "radius must be"),
        (Sphere(1) & Sphere(1, (3, 0, 0)), "do not overlap"),
        (Union(Sphere(1), 3), "b must be a shape"),
        (Translated("x", (0, 0, 0)), "shape must be a shape"),
        (Mesh(), "source is missing"),
        (Mesh(cube(), scale=-1), "scale must be"),
        (Mesh(cube(), center=(1, 2)), "center must be"),
        (Mesh(7), "source must be a file name"),
        (Mesh((np.zeros((3, 2)), [[0, 1, 2]])), "array (n, 3)"),
        (Mesh((np.zeros((3, 3)), [[0, 1]])), "three or more"),
        (Mesh((np.zeros((3, 3)), [[0, 1, 2]])), "without area"),
        (Mesh((np.zeros((0, 3)), np.zeros((0, 3), int))), "no faces"),
        (Mesh((np.eye(3), [[0, 1, 3]])), "outside 0 to 2"),
        (Mesh((np.eye(3), [[0, 1, -1]])), "outside 0 to 2"),
        (Mesh((1e300 * np.eye(3), [[0, 1, 2]])), "reaches beyond"),
        (Mesh("x" * 5000 + ".obj"), "there is no file"),
        (Mesh((np.diag([1, 1, np.nan]), [[0, 1, 2]])), "not finite"),
    ],
)
def test_a_wrong_parameter_is_one_sentence_with_its_name(shape, words):
    problems = shape.problems()
    assert len(problems) == 1 and words in problems[0] and "\n" not in problems[0]
    with pytest.raises(PliantError):
        sample_regular(shape, 0.1)


@each(SOLIDS)
def test_good_shapes_have_no_problems(shape):
    assert shape.problems() == [] and shape.warnings() == []


BAD_FILES = {
    "no.obj": (None, "there is no file"),
    "empty.obj": (b"", "empty file"),
    "words.obj": (b"hello world\n", "no faces"),
    "range.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "damaged"),
    "nan.obj": (b"v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n", "not finite"),
    "noise.stl": (bytes(range(256)) * 4, "damaged"),
    "short.off": (b"OFF\n3 1 0\n0 0 0\n", "damaged"),
    "header.ply": (b"ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nend_header\n1\n", "damaged"),
    "empty.glb": (b"glTF", "damaged"),
    "duck.docx": (b"x", "unsupported ending 'docx'"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_one_sentence(tmp_path, name):
    content, words = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    problems = Mesh(tmp_path / name).problems()
    assert len(problems) == 1 and words in problems[0] and name in problems[0]
    with pytest.raises(PliantError, match="Mesh"):
        Mesh(str(tmp_path / name)).volume()


def test_a_folder_is_refused(tmp_path):
    assert "is a folder" in Mesh(tmp_path).problems()[0]


@pytest.mark.parametrize("ending", ["obj", "ply", "stl", "off", "glb"])
def test_files_are_read_and_placed(tmp_path, ending):
    trimesh = pytest.importorskip("trimesh")
    trimesh.Trimesh(*cube(), process=False).export(tmp_path / f"cube.{ending}")
    mesh = Mesh(tmp_path / f"cube.{ending}", scale=2.0, center=(1, 2, 3))
    assert mesh.problems() == [] and mesh.warnings() == []
    np.testing.assert_allclose(mesh.bounds(), [(0, 1, 2), (2, 3, 4)])
    assert mesh.volume() == pytest.approx(8.0) and len(mesh.surface.vertices) == 8
    assert mesh.scale == 2.0 and mesh.scale(2).volume() == pytest.approx(64.0)
    assert len(mesh.outline()) == 12


def test_a_round_mesh_is_outlined_by_its_sections():
    """A ball of radius 1 by circles around its middle and at some heights, of lengths 2 pi sqrt(1 - h^2)."""
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(subdivisions=4)
    lines = Mesh((np.asarray(ball.vertices), np.asarray(ball.faces))).outline()
    length = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    assert (length > 0).all()
    for axis, heights in enumerate(((0.0,), (-0.5, 0.0, 0.5), (0.0,))):
        for height in heights:
            here = (np.abs(lines[:, :, axis] - height) < 1e-9).all(axis=1)
            assert length[here].sum() == pytest.approx(2 * np.pi * np.sqrt(1 - height**2), rel=2e-3)
            lines, length = lines[~here], length[~here]
    assert not len(lines)


def test_polygons_in_files_and_arrays(tmp_path):
    corners = cube()[0]
    quads = [(0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f " + " ".join(str(i + 1) for i in q) for q in quads]
    (tmp_path / "quads.obj").write_text("\n".join(lines))
    ragged = quads[:5] + [(4, 5, 7), (4, 7, 6)]
    for source in (tmp_path / "quads.obj", (corners, quads), (corners, np.array(quads)), (corners, ragged)):
        assert Mesh(source).volume() == pytest.approx(1.0)


def test_mesh_distance_against_the_exact_box():
    x = points(1000, reach=1.0)
    mesh, box = Mesh(cube()), Box((1, 1, 1))
    np.testing.assert_allclose(mesh.signed_distance(x), box.signed_distance(x), atol=1e-12)
    np.testing.assert_array_equal(mesh.inside(x), box.inside(x))
    assert mesh.signed_distance(np.zeros((0, 3))).shape == (0,)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(mesh)).signed_distance(x), mesh.signed_distance(x))


@pytest.mark.parametrize("shape", [Box((1, 1, 1)), Torus(0.5, 0.2), Difference(Sphere(0.6), Sphere(0.5))], ids=str)
def test_sides_of_points_in_rows_are_those_of_each_alone(shape):
    """Rows cross thin parts, and what is on one side of a wall must not be taken for what is on the other."""
    mesh = Mesh(shape.triangles())
    k = np.linspace(-0.7, 0.7, 40)
    x = np.stack(np.meshgrid(k, k, k, indexing="ij"), -1).reshape(-1, 3)
    np.testing.assert_array_equal(mesh.signed_distance(x) < 0, mesh.inside(x))
    few = x[np.random.default_rng(0).permutation(len(x))[:500]]
    np.testing.assert_array_equal(mesh.signed_distance(few) < 0, mesh.inside(few))


def test_dirty_orientation_duplicates_and_slivers():
    vertices, faces = cube()
    one_flipped = faces.copy()
    one_flipped[3] = one_flipped[3][::-1]
    soup = vertices[faces].reshape(-1, 3), np.arange(36).reshape(-1, 3)
    stray = np.vstack([vertices, [(9, 9, 9)]]), np.vstack([faces, [(0, 0, 1)]])
    for source in ((vertices, faces[:, ::-1]), (vertices, one_flipped), soup, stray):
        mesh = Mesh(source)
        assert mesh.problems() == [] and mesh.surface.closed and len(mesh.surface.faces) == 12
        assert mesh.volume() == pytest.approx(1.0) and mesh.inside([(0.1, 0.2, 0.3)]).all()


def test_overlapping_shells_count_once():
    a, b = Box((1, 1, 1)).triangles(), Box((1, 1, 1), (0.5, 0, 0)).triangles()
    both = np.vstack([a[0], b[0]]), np.vstack([a[1], b[1] + 8])
    assert Mesh(both).volume() == pytest.approx(1.5, rel=2e-3)
    apart = np.vstack([a[0], b[0] + 2]), np.vstack([a[1], b[1] + 8])
    assert Mesh(apart).volume() == pytest.approx(2.0)


def test_an_open_cube_has_a_sound_inside():
    vertices, faces = cube()
    mesh = Mesh((vertices, faces[:-2]))
    assert mesh.problems() == []
    assert "open with 4 boundary edges" in mesh.warnings()[0]
    assert mesh.warnings() == (mesh.translate((1, 0, 0)) | Sphere(1)).warnings()
    inner = np.random.default_rng(0).uniform(-0.5, 0.3, (500, 3))
    assert mesh.inside(inner).all() and not mesh.inside([(0, 0, 0.8), (0.6, 0, 0), (0, -3, 0)]).any()
    assert mesh.volume() == pytest.approx(1.0, rel=2e-3)  # w is 1/2 in the plane of the missing face
    through = np.stack([np.zeros(400), np.zeros(400), np.linspace(0, 1, 400)], axis=1)
    assert np.abs(np.diff(mesh.signed_distance(through))).max() < 0.01  # continuous through the hole


def test_a_sheet_is_refused():
    triangle = Mesh((np.eye(3), [[0, 1, 2]]))
    assert "encloses no volume: it is open with 3 boundary edges" in triangle.problems()[0]
    x, z = (a.ravel() for a in np.meshgrid(np.linspace(-1, 1, 20), np.linspace(-1, 1, 20)))
    i = (np.arange(19)[:, None] * 20 + np.arange(19)).ravel()
    wavy = np.stack([x, 0.01 * np.sin(9 * x), z], axis=1), np.stack([i, i + 1, i + 21, i + 20], axis=1)
    assert "encloses no volume: it is open with 76" in Mesh(wavy).problems()[0]
    two_sided = np.eye(3), [[0, 1, 2], [0, 2, 1]]
    assert "encloses no volume" in Mesh(two_sided).problems()[0]


@pytest.mark.parametrize("spacing", [0.05, 0.03])
def test_a_box_is_filled_exactly_in_any_place(spacing):
    box = Box((0.61, 0.4, 1.0), C)
    moved = box.translate((3, 1, 2)).rotate((1, 1, 0), 33).scale(1.0)
    local, each_ = sample_regular(box, spacing)
    counts = np.maximum(1, np.round(np.asarray(box.size) / spacing)).astype(int)
    assert len(local) == counts.prod() == estimate_count(moved, spacing)
    assert each_ * len(local) == pytest.approx(box.volume(), rel=1e-12)
    np.testing.assert_allclose(local.min(axis=0) - box.bounds()[0], 0.5 * np.asarray(box.size) / counts)
    np.testing.assert_allclose(box.bounds()[1] - local.max(axis=0), 0.5 * np.asarray(box.size) / counts)
    placed, same = sample_regular(moved, spacing)
    assert same == pytest.approx(each_)
    np.testing.assert_allclose(moved.signed_distance(placed), box.signed_distance(local), atol=1e-12)
    assert len(sample_regular(Box((0.3, 0.01, 0.3)), 0.1)[0]) == 9


@each(ROUND)
@pytest.mark.parametrize("spacing", [0.1, 0.04])
def test_particles_carry_the_volume_of_the_shape(shape, spacing):
    x, each_ = sample_regular(shape, spacing)
    assert shape.inside(x).all()
    assert len(x) * each_ == pytest.approx(shape.volume(), rel=1e-9)
    assert each_ == pytest.approx(spacing**3, rel=0.03)
    assert len(x) == pytest.approx(estimate_count(shape, spacing), rel=0.03)
    nearest = np.linalg.norm(x[1:2] - np.delete(x, 1, axis=0), axis=1).min()
    assert nearest == pytest.approx(spacing, rel=0.041)


@pytest.mark.parametrize("height", [0.3, 0.505, 0.52])
def test_a_cylinder_is_filled_up_to_half_a_cell_of_its_ends(height):
    x, each_ = sample_regular(Cylinder(0.3, height, axis="z"), 0.05)
    cell = height / round(height / 0.05)
    assert 0.5 * height - x[:, 2].max() == pytest.approx(0.5 * cell)
    assert x[:, 2].min() == pytest.approx(-x[:, 2].max()) and each_ == pytest.approx(0.05**3, rel=0.03)


def test_what_cannot_be_sampled_is_said_in_one_sentence():
    with pytest.raises(PliantError, match="Sphere of volume .* is smaller than one particle of spacing 0.1 m"):
        sample_regular(Sphere(0.01), 0.1)
    with pytest.raises(PliantError, match="Plane is infinite"):
        sample_regular(Plane(), 0.1)
    with pytest.raises(PliantError, match="Difference is infinite"):
        estimate_count(Difference(Plane(), Sphere(1)), 0.1)
    for spacing in (0, -1, np.nan, np.inf, "small"):
        with pytest.raises(PliantError, match="spacing must be"):
            sample_regular(Sphere(1), spacing)
    assert estimate_count(Box((1e6, 1e6, 1e6)), 1e-6) == 10**36  # an estimate allocates nothing


def test_meshes_are_sampled_in_their_own_frame():
    mesh = Mesh(Torus(0.5, 0.2).triangles())
    x, each_ = sample_regular(mesh, 0.05)
    y, _ = sample_regular(Scaled(Rotated(mesh, (0, 1, 1), 50), 2.0), 0.1)
    assert len(x) == len(y) and each_ == pytest.approx(0.05**3, rel=0.03)
    assert isinstance(mesh.surface, Surface)


def shared_mesh(name):
    if not (MESHES / name).is_file():
        pytest.skip(f"the test model {name} is not beside the project")
    return Mesh(MESHES / name)


@pytest.mark.parametrize("name", ["suzanne.obj", "teapot.obj", "spot.obj"])
def test_real_meshes_have_a_sound_inside(name):
    mesh = shared_mesh(name)
    assert mesh.problems() == [] and bool(mesh.warnings()) == (name != "spot.obj")
    spacing = np.cbrt(mesh.volume() / 3000)
    x, each_ = sample_regular(mesh, spacing)
    assert each_ == pytest.approx(spacing**3, rel=0.03)
    w = igl.winding_number(mesh.surface.vertices, mesh.surface.faces, x[::10])  # the slow exact one
    assert (w > 0.49).all()
