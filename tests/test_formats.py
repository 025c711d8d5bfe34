"""Every format: the numbers come back, other programs' readers find the same, and damaged files are one sentence."""

import contextlib
import gzip
import subprocess
import sys

import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.io import CLOUDS, MESHES, Cloud, TriMesh, read_cloud, read_mesh, write_cloud, write_mesh
from pliant.io.arrays import KNOWN_UNITS

N = 300
CLOUD_SUFFIXES, MESH_SUFFIXES = sorted(CLOUDS.formats), sorted(MESHES.formats)
UNITS = {"end_header": "end_header", "velocity": "m/s", "density": "kg/m^3", "Spannung σ": "N/m²"}


def sample_cloud(n=N):
    rng = np.random.default_rng(1)
    fields = {
        "velocity": rng.standard_normal((n, 3)).astype(np.float32),
        "density": rng.random(n).astype(np.float32),
        "F": rng.random((n, 3, 3)).astype(np.float32),
        "id": np.arange(n, dtype=np.int32)[::-1],
        "cell": rng.integers(-9, 9, (n, 3), dtype=np.int32),
        "Spannung σ": rng.random(n).astype(np.float32),
        "end_header": np.ones(n, np.float32),
    }
    return Cloud(rng.random((n, 3)).astype(np.float32), fields, dict(UNITS))


def sample_mesh():
    """An octahedron with fields."""
    vertices = np.concatenate([np.eye(3), -np.eye(3)]).astype(np.float32) * np.float32(0.1) + np.float32(0.3)
    faces = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]])
    normals = np.concatenate([np.eye(3), -np.eye(3)]).astype(np.float32)
    return TriMesh(vertices, faces, {"normal": normals, "speed": np.arange(6) / np.float32(7)}, {"speed": "m/s"})


def assert_same(one, other, fields=None):
    """Equal names, shapes, types and bits."""
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
    assert list(one.fields) == list(other.fields if fields is None else fields)
    for name, values in one.fields.items():
        np.testing.assert_array_equal(values, other.fields[name], strict=True, err_msg=name)


@pytest.mark.parametrize("suffix", CLOUD_SUFFIXES)
@pytest.mark.parametrize("n", [0, 1, N])
def test_particles_come_back(tmp_path, suffix, n):
    cloud = sample_cloud(n)
    write_cloud(tmp_path / ("a" + suffix), cloud)
    read = read_cloud(tmp_path / ("a" + suffix))
    assert_same(read, cloud)
    assert read.x.dtype == np.float32
    known = {name: unit for name, unit in KNOWN_UNITS.items() if name in cloud.fields}
    assert read.units == (known if suffix == ".bgeo" else UNITS)
    read.x += 1  # what is read can be worked with
    assert [p.name for p in tmp_path.iterdir()] == ["a" + suffix]


@pytest.mark.parametrize("suffix", CLOUD_SUFFIXES)
@pytest.mark.parametrize("code", ["f2", "f4", "f8", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_number_types_are_kept_or_made_larger(tmp_path, suffix, code):
    values = np.array([0, 1, 1, 0]).astype(code)
    write_cloud(tmp_path / ("a" + suffix), Cloud(np.zeros((4, 3)), {"q": values}))
    read = read_cloud(tmp_path / ("a" + suffix))
    np.testing.assert_array_equal(read.fields["q"], values)
    if suffix == ".npz":
        assert read.fields["q"].dtype == values.dtype
    elif suffix == ".vtu" or (suffix == ".ply" and code not in ("i8", "u8")):
        assert read.fields["q"].dtype == {"f2": "f4", "b1": "u1"}.get(code, code)
    assert read.x.dtype == (np.float32 if suffix == ".bgeo" else np.float64)


@pytest.mark.parametrize("suffix", [".ply", ".bgeo"])
@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40])
def test_whole_numbers_that_do_not_fit_are_refused(tmp_path, suffix, value):
    with pytest.raises(PliantError, match="stores 'id' as whole numbers from -2147483648 to 2147483647, got"):
        write_cloud(tmp_path / ("a" + suffix), Cloud(np.zeros((2, 3)), {"id": np.array([0, value])}))
    assert not list(tmp_path.iterdir())


def test_doubles_that_do_not_fit_are_refused(tmp_path):
    cloud = Cloud(np.zeros((2, 3)), {"energy": np.array([np.inf, 1.0])})
    write_cloud(tmp_path / "a.bgeo", cloud)
    assert read_cloud(tmp_path / "a.bgeo").fields["energy"][0] == np.inf
    cloud.fields["energy"][1] = 1e300
    with pytest.raises(PliantError, match="stores 'energy' as float32"):
        write_cloud(tmp_path / "a.bgeo", cloud)


@pytest.mark.parametrize("suffix", [".ply", ".bgeo"])
def test_fields_whose_names_collide_are_refused(tmp_path, suffix):
    fields = {"F": np.zeros((2, 3, 3)), "F_xy": np.zeros(2)}
    with pytest.raises(PliantError, match="two fields would both be called 'F_xy'"):
        write_cloud(tmp_path / ("a" + suffix), Cloud(np.zeros((2, 3)), fields))
    with pytest.raises(PliantError, match="two fields would both be called 'a_b' in a .ply file"):
        write_cloud(tmp_path / "a.ply", Cloud(np.zeros((2, 3)), {"a b": np.zeros((2, 3)), "a_b": np.zeros(2)}))
    with pytest.raises(PliantError, match="cannot be called 'units'"):
        write_cloud(tmp_path / "a.npz", Cloud(np.zeros((2, 3)), {"units": np.zeros(2)}))


def test_an_unknown_suffix_lists_the_known(tmp_path):
    with pytest.raises(PliantError, match="unknown particle format '.abc'; known: .bgeo, .npz, .ply, .vtu"):
        write_cloud(tmp_path / "a.abc", sample_cloud())
    with pytest.raises(PliantError, match="unknown mesh format '.objj'; did you mean '.obj'"):
        read_mesh(tmp_path / "a.objj")
    with pytest.raises(PliantError, match="has no suffix that names a mesh format; known: .obj, .ply, .stl"):
        read_mesh(tmp_path / "a")


@pytest.mark.parametrize("suffix", MESH_SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_surfaces_come_back(tmp_path, suffix, dtype):
    mesh = sample_mesh()
    mesh.vertices = mesh.vertices.astype(dtype) / 3
    write_mesh(tmp_path / ("a" + suffix), mesh)
    read = read_mesh(tmp_path / ("a" + suffix))
    if suffix == ".stl":
        np.testing.assert_array_equal(read.vertices[read.faces], mesh.vertices[mesh.faces].astype(np.float32))
        assert read.vertices.shape == (6, 3) and not read.fields
        return
    carried = {".obj": ["normal"], ".ply": ["normal", "speed"]}[suffix]
    mesh.fields = {name: mesh.fields[name] for name in carried}
    if suffix == ".obj":
        mesh.fields["normal"] = mesh.fields["normal"].astype(dtype)
    assert_same(read, mesh)
    assert read.vertices.dtype == dtype
    assert read.units == ({"speed": "m/s"} if suffix == ".ply" else {})


@pytest.mark.parametrize("suffix", MESH_SUFFIXES)
def test_an_empty_surface_comes_back(tmp_path, suffix):
    write_mesh(tmp_path / ("a" + suffix), TriMesh(np.zeros((0, 3)), np.zeros((0, 3), int)))
    read = read_mesh(tmp_path / ("a" + suffix))
    assert read.vertices.shape == read.faces.shape == (0, 3)


def test_faces_must_point_to_vertices(tmp_path):
    with pytest.raises(PliantError, match="faces must point to vertices 0 to 2, got 0 to 3"):
        write_mesh(tmp_path / "a.ply", TriMesh(np.zeros((3, 3)), np.array([[0, 1, 3]])))
    with pytest.raises(PliantError, match="faces must be whole numbers"):
        write_mesh(tmp_path / "a.stl", TriMesh(np.zeros((3, 3)), np.zeros((1, 4), int)))


# Other programs' readers.


def test_meshio_reads_ply_particles(tmp_path):
    meshio = pytest.importorskip("meshio")
    cloud = sample_cloud()
    write_cloud(tmp_path / "a.ply", cloud)
    mesh = meshio.read(tmp_path / "a.ply")
    np.testing.assert_array_equal(mesh.points, cloud.x)
    for i, axis in enumerate("xyz"):
        np.testing.assert_array_equal(mesh.point_data[f"velocity_{axis}"], cloud.fields["velocity"][:, i])
    np.testing.assert_array_equal(mesh.point_data["F_yz"], cloud.fields["F"][:, 1, 2])
    np.testing.assert_array_equal(mesh.point_data["id"], cloud.fields["id"])


def test_vtk_reads_ply_particles(tmp_path):
    pytest.importorskip("vtk", reason="VTK is the reader inside ParaView and PyVista")
    from vtk.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOPLY import vtkPLYReader

    cloud = sample_cloud()
    write_cloud(tmp_path / "a.ply", cloud)
    reader = vtkPLYReader()
    reader.SetFileName(str(tmp_path / "a.ply"))
    reader.Update()
    np.testing.assert_array_equal(vtk_to_numpy(reader.GetOutput().GetPoints().GetData()), cloud.x)


def test_numpy_reads_npz_particles(tmp_path):
    cloud = sample_cloud()
    cloud.fields["file"] = cloud.fields["density"]  # a name that np.savez itself trips over
    write_cloud(tmp_path / "a.npz", cloud)
    with np.load(tmp_path / "a.npz") as arrays:
        np.testing.assert_array_equal(arrays["x"], cloud.x)
        for name, values in cloud.fields.items():
            np.testing.assert_array_equal(arrays[name], values, strict=True)
        assert dict(arrays["units"].tolist()) == UNITS


def test_the_blender_sequence_loader_reads_bgeo(tmp_path):
    """Its reader, which pysplashsurf carries, is the strictest: gzip only, nothing after the points, no wide fields."""
    loader = pytest.importorskip("pysplashsurf.bgeo", reason="pysplashsurf holds the loader's reader")
    cloud = sample_cloud()
    write_cloud(tmp_path / "a.bgeo", cloud)
    mesh = loader.readbgeo_to_meshio(tmp_path / "a.bgeo")
    np.testing.assert_array_equal(mesh.points, cloud.x)
    for name in ("velocity", "density", "id", "Spannung σ"):
        np.testing.assert_array_equal(mesh.point_data[name], cloud.fields[name])
    np.testing.assert_array_equal(mesh.point_data["F_zx"], cloud.fields["F"][:, 2, 0])


@pytest.mark.parametrize("suffix", [".bgeo", ".ply"])
def test_splashsurf_reads_particles(tmp_path, suffix):
    pytest.importorskip("pysplashsurf", reason="the surface reconstruction that reads these files")
    meshio = pytest.importorskip("meshio")
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3) * 0.02
    cloud = sample_cloud(len(grid))
    cloud.x = grid.astype(np.float32)
    cloud.fields["velocity"][:] = (1, 2, 3)
    write_cloud(tmp_path / ("a" + suffix), cloud)
    command = [sys.executable, "-c", "from pysplashsurf import run_pysplashsurf; run_pysplashsurf()", "reconstruct"]
    options = ["-r=0.01", "-l=2.0", "-c=1.0", "-n=1", f"-o={tmp_path / 'surface.vtk'}"]
    interpolated = [] if suffix == ".ply" else ["-a=velocity"]
    run = subprocess.run(
        [*command, str(tmp_path / ("a" + suffix)), *options, *interpolated], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(grid)} particle" in run.stdout + run.stderr
    surface = meshio.read(tmp_path / "surface.vtk")
    assert np.all(np.abs(surface.points - 0.05) < 0.08) and len(surface.points) > 100
    if interpolated:
        np.testing.assert_allclose(surface.point_data["velocity"], [[1, 2, 3]] * len(surface.points), rtol=1e-4)


@pytest.mark.parametrize("suffix", MESH_SUFFIXES)
def test_meshio_and_trimesh_read_surfaces(tmp_path, suffix):
    meshio, trimesh = pytest.importorskip("meshio"), pytest.importorskip("trimesh")
    mesh = sample_mesh()
    write_mesh(tmp_path / ("a" + suffix), mesh)
    one = meshio.read(tmp_path / ("a" + suffix))
    faces = one.cells_dict["triangle"]
    np.testing.assert_array_equal(np.float32(one.points)[faces], mesh.vertices[mesh.faces])
    other = trimesh.load(tmp_path / ("a" + suffix), process=False)
    np.testing.assert_array_equal(np.float32(other.vertices)[other.faces], mesh.vertices[mesh.faces])
    assert np.allclose(other.face_normals, np.sign(other.face_normals) / np.sqrt(3), atol=1e-6)
    if suffix != ".stl":
        np.testing.assert_array_equal(other.vertex_normals, mesh.fields["normal"])
    if suffix == ".ply":
        np.testing.assert_array_equal(one.point_data["speed"], mesh.fields["speed"])


@pytest.mark.parametrize("name", ["a.ply", "ascii.ply", "a.obj", "a.stl", "ascii.stl"])
def test_surfaces_from_trimesh_are_read(tmp_path, name):
    trimesh = pytest.importorskip("trimesh")
    mesh = sample_mesh()
    kind = name.split(".")[1]
    other = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    options = {"encoding": "ascii"} if name == "ascii.ply" else {}
    text = other.export(file_type="stl_ascii" if name == "ascii.stl" else kind, **options)
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    read = read_mesh(tmp_path / name)
    np.testing.assert_allclose(read.vertices[read.faces], mesh.vertices[mesh.faces], atol=1e-7)


def test_quads_and_foreign_attributes_are_read(tmp_path):
    head = "ply\nformat ascii 1.0\ncomment unit a\nelement vertex 4\nproperty float x\nproperty float y\n"
    head += "property float z\nproperty uchar red\nelement face 1\nproperty list uchar int vertex_index\nend_header\n"
    (tmp_path / "a.ply").write_text(head + "0 0 0 255\n1 0 0 0\n1 1 0 0\n0 1 0 0\n4 0 1 2 3\n")
    mesh = read_mesh(tmp_path / "a.ply")
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert mesh.fields["red"].tolist() == [255, 0, 0, 0]
    (tmp_path / "a.ply").write_text(head + "0 0 0 256\n1 0 0 0\n1 1 0 0\n0 1 0 nan\n4 0 1 2 3\n")
    with pytest.raises(PliantError, match="a.ply .* has numbers that are no uint8"):
        read_mesh(tmp_path / "a.ply")
    text = "o a\nv 0 0 0 1 0 0\nv 1 0 0 1 0 0\nv 1 1 0 1 0 0\nv 0 1 0 1 0 0\nvt 0 0\nf 1/1 2/1 3/1 4/1\nf 1 2 4\n"
    (tmp_path / "a.obj").write_text(text)
    assert read_mesh(tmp_path / "a.obj").faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 3]]
    (tmp_path / "a.obj").write_text(text + "f -1 -2 -3\n")
    with pytest.raises(PliantError, match="its faces count their vertices backwards"):
        read_mesh(tmp_path / "a.obj")
    (tmp_path / "a.obj").write_text(text + "f 1 2 9\n")
    with pytest.raises(PliantError, match="a.obj is damaged: a face points to a vertex that is not among its 4"):
        read_mesh(tmp_path / "a.obj")


def test_houdinis_velocity_and_wide_attributes_are_read(tmp_path):
    """A plain file as Houdini or Partio write it: FLOAT of width 3 and 4, an indexed string, a detail attribute."""
    numbers = [1, 0, 0, 0, 3, 0, 0, 1]
    data = b"BgeoV" + np.array([5, *numbers], ">i4").tobytes()
    data += b"\0\1v\0\3\0\0\0\0" + bytes(12) + b"\0\6orient\0\4\0\0\0\0" + bytes(16)
    data += b"\0\4name\0\1\0\0\0\4\0\0\0\1\0\2ab"
    data += np.array([1, 2, 3, 1, 4, 5, 6, 0, 0, 0, 1], ">f4").tobytes() + bytes(4) + b"\0\1q\0\1\0\0\0\1" + bytes(10)
    (tmp_path / "a.bgeo").write_bytes(data)
    cloud = read_cloud(tmp_path / "a.bgeo")
    assert cloud.x.tolist() == [[1, 2, 3]] and cloud.fields["velocity"].tolist() == [[4, 5, 6]]
    assert cloud.units == {"velocity": "m/s"} and cloud.fields["orient_3"].tolist() == [1]
    assert "name" not in cloud.fields


# Damage.


def write_sample(path):
    if path.suffix in CLOUDS.formats:
        write_cloud(path, sample_cloud())
    else:
        write_mesh(path, sample_mesh())


def read_any(path):
    return (read_cloud if path.suffix in CLOUDS.formats else read_mesh)(path)


@pytest.mark.parametrize("suffix", sorted({*CLOUD_SUFFIXES, *MESH_SUFFIXES}))
def test_a_file_cut_anywhere_is_one_sentence(tmp_path, suffix):
    path = tmp_path / ("a" + suffix)
    write_sample(path)
    whole = path.read_bytes()
    cuts = np.unique(np.linspace(0, len(whole) - 2, 60).astype(int)).tolist()  # the last byte may be a mere newline
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(PliantError) as caught:
            read_any(path)
        assert str(path) in str(caught.value) and str(caught.value).endswith("."), cut
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", sorted({*CLOUD_SUFFIXES, *MESH_SUFFIXES}))
def test_flipped_bytes_never_crash(tmp_path, suffix):
    path = tmp_path / ("a" + suffix)
    write_sample(path)
    whole, rng = path.read_bytes(), np.random.default_rng(3)
    for _ in range(100):
        bad = bytearray(whole)
        for place in rng.integers(0, min(len(whole), 800), 3):
            bad[place] = rng.integers(256)
        path.write_bytes(bad)
        with contextlib.suppress(PliantError):
            read_any(path)


@pytest.mark.parametrize("suffix", sorted({*CLOUD_SUFFIXES, *MESH_SUFFIXES}))
def test_foreign_files_are_one_sentence(tmp_path, suffix):
    path = tmp_path / ("a" + suffix)
    with pytest.raises(PliantError, match="cannot read .*: No such file or directory"):
        read_any(path)
    for content in (b"", b"hello", b"solid\n", b"ply\n", b"\x1f\x8b", b"PK\x03\x04", bytes(5000), b"\xff" * 5000):
        path.write_bytes(content)
        if suffix == ".stl" and content == bytes(5000):
            continue  # an .stl of no triangles, as far as anyone can tell
        with pytest.raises(PliantError, match="a" + suffix):
            read_any(path)


def test_truncation_says_how_much_there_is(tmp_path):
    for suffix, row in ((".ply", 12 + 12 + 4 + 36 + 4 + 12 + 4 + 4), (".bgeo", 16 + 12 + 4 + 36 + 4 + 12 + 4 + 4)):
        path = tmp_path / ("a" + suffix)
        write_cloud(path, sample_cloud())
        data = path.read_bytes()
        data = gzip.decompress(data)[:-2] if suffix == ".bgeo" else data
        path.write_bytes(data[: -10 * row])
        with pytest.raises(PliantError, match=f"a{suffix} is truncated: it promises 300 particles and holds 290.$"):
            read_cloud(path)


def test_headers_that_lie_are_not_believed(tmp_path):
    many = 2_000_000_000
    for suffix in (".ply", ".vtu", ".bgeo"):
        path = tmp_path / ("a" + suffix)
        write_cloud(path, sample_cloud())
        data = path.read_bytes()
        if suffix == ".bgeo":
            data = gzip.decompress(data).replace(N.to_bytes(4, "big"), many.to_bytes(4, "big"), 1)
        data = data.replace(b"vertex 300", b"vertex %d" % many).replace(b'Points="300"', b'Points="%d"' % many)
        path.write_bytes(data)
        with pytest.raises(PliantError, match=f"truncated: it promises {many} particles .*and? ?holds 300"):
            read_cloud(path)


@pytest.mark.parametrize("suffix", sorted({*CLOUD_SUFFIXES, *MESH_SUFFIXES}))
def test_positions_that_are_nowhere_are_refused_and_fields_kept(tmp_path, suffix):
    path = tmp_path / ("a" + suffix)
    if suffix in CLOUDS.formats:
        cloud = sample_cloud()
        cloud.fields["density"][3] = np.nan
        write_cloud(path, cloud)
        assert np.isnan(read_cloud(path).fields["density"][3])
        cloud.x[7, 1] = np.nan
        write_cloud(path, cloud)
    else:
        mesh = sample_mesh()
        mesh.vertices[0, 0] = np.inf
        write_mesh(path, mesh)
    with pytest.raises(PliantError, match=r"a\.\w+ holds \w+ that are nowhere: number \d"):
        read_any(path)
