"""A run in one USD file: read back by Pliant, and by OpenUSD itself."""

import sys

import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.io import Cloud, Snapshot, TriMesh, read_usd, usd, write_usd
from pliant.io.usd_types import load_usd

RADIUS, FPS = 0.01, 25.0
WALL = TriMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), np.array([[0, 2, 1], [0, 1, 3]]))
needs_usd = pytest.mark.usefixtures("openusd")


@pytest.fixture
def openusd():
    pytest.importorskip("pxr", reason="OpenUSD is optional: pip install pliant[usd]")


def snapshot(index, n=50):
    """A frame with every kind of field, a second body that comes and goes, a moving wall and a growing surface."""
    rng = np.random.default_rng(index)
    fields = {
        "velocity": rng.standard_normal((n, 3)).astype(np.float32),
        "id": rng.permutation(n).astype(np.int32),
        "density": rng.random(n).astype(np.float32),
        "F": rng.random((n, 3, 3)).astype(np.float32),
        "1. Spannung σ": rng.random((n, 3)),
        "fixed": rng.random(n) > 0.5,
        "cell": rng.integers(0, 9, (n, 3), dtype=np.int16),
    }
    units = {"velocity": "m/s", "density": "kg/m^3", "1. Spannung σ": "N/m²"}
    frame = Snapshot(index, index / 30, {"my water.1": Cloud(rng.random((n, 3)).astype(np.float32), fields, units)})
    if index in (4, 6):
        velocity = rng.random((3, 3))
        frame.clouds["my_water_1"] = Cloud(rng.random((3, 3)), {"velocity": velocity, "id": np.arange(3) + 2**40})
    if index >= 4:
        turn = np.eye(4)
        turn[:3] = [[0, -1, 0, 0.1 * index], [1, 0, 0, 2], [0, 0, 1, 3]]
        frame.poses = {"wall": turn, "a plane without end": turn}
    vertices = rng.random((3 + index % 2, 3)).astype(np.float32)
    faces = np.array([[0, 1, 2], [0, 2, 3]], np.int32)[: 1 + index % 2]
    frame.meshes["skin"] = TriMesh(vertices, faces, {"normal": vertices, "heat": vertices[:, 0]}, {"heat": "K"})
    return frame


def assert_same_fields(one, other):
    assert set(one.fields) == set(other.fields)
    assert one.units == {name: unit for name, unit in other.units.items() if unit}
    for name, values in other.fields.items():
        np.testing.assert_array_equal(one.fields[name], values, strict=True, err_msg=name)


@needs_usd
@pytest.mark.parametrize("flush", [0, 1 << 26])
def test_frames_come_back(tmp_path, monkeypatch, flush):
    monkeypatch.setattr(usd, "_FLUSH_BYTES", flush)
    frames = [snapshot(i, 50 + i % 2) for i in range(3, 8)]
    path = tmp_path / "run.usd"
    write_usd(path, iter(frames), FPS, {"wall": WALL}, RADIUS)
    assert [p.name for p in tmp_path.iterdir()] == ["run.usd"]
    series = read_usd(path)
    assert series.fps == FPS and len(series) == 5 and series.times == [frame.time for frame in frames]
    assert list(series.walls) == ["wall"]
    np.testing.assert_array_equal(series.walls["wall"].vertices, WALL.vertices, strict=True)
    np.testing.assert_array_equal(series.walls["wall"].faces, WALL.faces)
    for read, wrote in zip(series, frames, strict=True):
        assert (read.index, read.time) == (wrote.index, wrote.time)
        assert set(read.clouds) == set(wrote.clouds) and set(read.poses) == set(wrote.poses)
        for name, cloud in wrote.clouds.items():
            np.testing.assert_array_equal(read.clouds[name].x, cloud.x, strict=True)
            assert_same_fields(read.clouds[name], cloud)
        for name, pose in wrote.poses.items():
            np.testing.assert_array_equal(read.poses[name], pose)
        np.testing.assert_array_equal(read.meshes["skin"].vertices, wrote.meshes["skin"].vertices, strict=True)
        np.testing.assert_array_equal(read.meshes["skin"].faces, wrote.meshes["skin"].faces)
        assert_same_fields(read.meshes["skin"], wrote.meshes["skin"])
    np.testing.assert_array_equal(series[-1].clouds["my water.1"].x, frames[-1].clouds["my water.1"].x)


@needs_usd
def test_openusd_finds_what_the_schemas_promise(tmp_path):
    from pxr import Gf, Usd, UsdGeom

    frames = [snapshot(i) for i in range(3, 8)]
    write_usd(tmp_path / "run.usdc", frames, FPS, {"wall": WALL}, RADIUS)
    stage = Usd.Stage.Open(str(tmp_path / "run.usdc"))
    assert UsdGeom.GetStageUpAxis(stage) == "Y" and UsdGeom.GetStageMetersPerUnit(stage) == 1
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (3, 7, FPS)
    assert stage.GetDefaultPrim().GetPath() == "/scene"
    cloud = frames[2].clouds["my water.1"]
    points = UsdGeom.Points(stage.GetPrimAtPath("/scene/bodies/my_water_1"))
    assert points.GetPrim().GetDisplayName() == "my water.1"
    np.testing.assert_array_equal(points.GetPointsAttr().Get(5), cloud.x)
    np.testing.assert_array_equal(points.GetVelocitiesAttr().Get(5), cloud.fields["velocity"])
    np.testing.assert_array_equal(points.GetIdsAttr().Get(5), cloud.fields["id"])
    assert list(points.GetWidthsAttr().Get(5)) == [np.float32(2 * RADIUS)]
    np.testing.assert_allclose(points.GetExtentAttr().Get(5), [cloud.x.min(0) - RADIUS, cloud.x.max(0) + RADIUS], 1e-5)
    density = UsdGeom.PrimvarsAPI(points).GetPrimvar("density")
    np.testing.assert_array_equal(density.Get(5), cloud.fields["density"])
    assert density.GetAttr().GetCustomData()["unit"] == "kg/m^3"
    other = UsdGeom.Imageable(stage.GetPrimAtPath("/scene/bodies/my_water_1_"))
    visible = ["invisible", "inherited", "invisible", "inherited", "invisible"]
    assert [other.ComputeVisibility(frame) for frame in range(3, 8)] == visible
    wall = UsdGeom.Mesh(stage.GetPrimAtPath("/scene/walls/wall"))
    corner = wall.ComputeLocalToWorldTransform(4).Transform(Gf.Vec3d(1, 0, 0))
    np.testing.assert_allclose(corner, (frames[1].poses["wall"] @ [1, 0, 0, 1])[:3])
    assert wall.ComputeLocalToWorldTransform(3) == Gf.Matrix4d(1)
    assert list(wall.GetFaceVertexCountsAttr().Get()) == [3, 3] and wall.GetSubdivisionSchemeAttr().Get() == "none"
    skin = UsdGeom.Mesh(stage.GetPrimAtPath("/scene/surfaces/skin"))
    np.testing.assert_array_equal(skin.GetPointsAttr().Get(5), frames[2].meshes["skin"].vertices)
    np.testing.assert_array_equal(skin.GetFaceVertexIndicesAttr().Get(5), frames[2].meshes["skin"].faces.ravel())
    np.testing.assert_array_equal(skin.GetNormalsAttr().Get(5), frames[2].meshes["skin"].fields["normal"])


@needs_usd
def test_no_particles_and_no_frames(tmp_path):
    empty = Cloud(np.zeros((0, 3), np.float32), {"velocity": np.zeros((0, 3), np.float32)})
    write_usd(tmp_path / "a.usd", [Snapshot(0, 0.0, {"water": empty})], FPS)
    assert read_usd(tmp_path / "a.usd")[0].clouds["water"].fields["velocity"].shape == (0, 3)
    write_usd(tmp_path / "a.usd", [], FPS)
    assert len(read_usd(tmp_path / "a.usd")) == 0


@needs_usd
def test_a_failure_leaves_the_old_file(tmp_path):
    def frames():
        yield snapshot(0)
        yield snapshot(1)
        raise KeyboardInterrupt

    path = tmp_path / "a.usd"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_usd(path, frames(), FPS)
    with pytest.raises(PliantError, match="frames must come in order, got 1 after 1"):
        write_usd(path, [snapshot(1), snapshot(1)], FPS)
    cloud = Cloud(np.zeros((2, 3)), {"cell": np.full((2, 3), 2**40)})
    with pytest.raises(PliantError, match="USD stores 'cell' as whole numbers from"):
        write_usd(path, [Snapshot(0, 0.0, {"a": cloud})], FPS)
    with pytest.raises(PliantError, match="must end with one of .usd, .usdc"):
        write_usd(tmp_path / "a.usda", [], FPS)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


@needs_usd
def test_a_file_cut_anywhere_is_one_sentence(tmp_path):
    path = tmp_path / "a.usd"
    write_usd(path, [snapshot(i) for i in range(3)], FPS, {"wall": WALL})
    whole = path.read_bytes()
    for cut in np.linspace(0, len(whole) - 1, 40).astype(int).tolist():
        path.write_bytes(whole[:cut])
        with pytest.raises(PliantError, match="a.usd is"):
            list(read_usd(path))
    path.write_bytes(b"hello, world")
    with pytest.raises(PliantError, match="a.usd is not a USD file that Pliant reads"):
        read_usd(path)
    with pytest.raises(PliantError, match="cannot read .*b.usd: No such file"):
        read_usd(tmp_path / "b.usd")


@needs_usd
def test_other_programs_stages_are_refused(tmp_path):
    from pxr import Usd

    Usd.Stage.CreateNew(str(tmp_path / "a.usdc")).Save()
    with pytest.raises(PliantError, match="a.usdc is not a USD file that Pliant reads: it has no /scene"):
        read_usd(tmp_path / "a.usdc")


def test_without_openusd_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(PliantError, match=r'pip install "pliant\[usd\]"'):
        load_usd()
    with pytest.raises(PliantError, match=r'pip install "pliant\[usd\]"'):
        write_usd(tmp_path / "a.usd", [], FPS)
    assert not list(tmp_path.iterdir())
