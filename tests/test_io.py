"""Files on disk: the numbers come back, and a failure leaves nothing half-written."""

import errno
import io
import os
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.io import files
from pliant.io.png import write_png
from pliant.io.vtu import read_pvd, read_vtu, write_pvd, write_vtu

N = 500


def sample():
    rng = np.random.default_rng(1)
    fields = {
        "density": rng.random(N).astype(np.float32),
        "velocity": rng.random((N, 3)).astype(np.float32),
        "F": rng.random((N, 3, 3)).astype(np.float32),
        "id": np.arange(N, dtype=np.int32),
        "energy": rng.random(N),
        "fixed & <held>": rng.random(N) > 0.5,
    }
    return rng.random((N, 3)).astype(np.float32), fields


@pytest.mark.parametrize("compress", [False, True])
def test_meshio_reads_the_same_numbers(tmp_path, compress):
    meshio = pytest.importorskip("meshio")
    points, fields = sample()
    path = tmp_path / "water_0001.vtu"
    write_vtu(path, points, fields, units={"velocity": "m/s", "density": "kg/m^3"}, compress=compress)
    mesh = meshio.read(path)
    assert mesh.points.dtype == np.float32
    np.testing.assert_array_equal(mesh.points, points)
    assert [(block.type, len(block.data)) for block in mesh.cells] == [("vertex", N)]
    assert set(mesh.point_data) == set(fields)
    for name, values in fields.items():
        read = mesh.point_data[name]
        np.testing.assert_array_equal(read if values.ndim < 3 else read.reshape(values.shape), values)
        assert read.dtype == (np.uint8 if values.dtype == bool else values.dtype)


@pytest.mark.parametrize("compress", [False, True])
def test_vtk_reads_the_same_numbers_and_units(tmp_path, compress):
    pytest.importorskip("vtk")
    from vtk.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkCommonCore import vtkDataArray
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

    points, fields = sample()
    write_vtu(tmp_path / "a.vtu", points, fields, units={"velocity": "m/s"}, compress=compress)
    reader = vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(tmp_path / "a.vtu"))
    reader.Update()
    grid = reader.GetOutput()
    assert grid.GetNumberOfCells() == N and grid.GetCellType(N - 1) == 1
    np.testing.assert_array_equal(vtk_to_numpy(grid.GetPoints().GetData()), points)
    for name, values in fields.items():
        array = grid.GetPointData().GetArray(name)
        np.testing.assert_array_equal(vtk_to_numpy(array).reshape(values.shape), values)
    velocity = grid.GetPointData().GetArray("velocity")
    assert velocity.GetInformation().Get(vtkDataArray.UNITS_LABEL()) == "m/s"


@pytest.mark.parametrize("compress", [False, True])
def test_small_files_do_not_confuse_meshio(tmp_path, compress):
    """meshio mixes up arrays whose old and new offsets coincide, which a few sizes hit; see `_layout`."""
    meshio = pytest.importorskip("meshio")
    for n in range(1, 30):
        points = np.random.default_rng(n).random((n, 3))
        write_vtu(tmp_path / "a.vtu", points, {"id": np.arange(n), "b": np.ones(n, bool)}, compress=compress)
        mesh = meshio.read(tmp_path / "a.vtu")
        np.testing.assert_array_equal(mesh.points, points)
        np.testing.assert_array_equal(mesh.point_data["id"], np.arange(n))


def test_no_particles_yet(tmp_path):
    write_vtu(tmp_path / "a.vtu", np.zeros((0, 3), np.float32), {"v": np.zeros((0, 3))})
    head, _, body = (tmp_path / "a.vtu").read_bytes().partition(b'<AppendedData encoding="raw">\n_')
    assert b'<Piece NumberOfPoints="0" NumberOfCells="0">' in head
    assert body == bytes(8 * 5) + b"\n</AppendedData>\n</VTKFile>\n"  # five arrays, each of zero bytes


def test_big_endian_and_strided_input(tmp_path):
    meshio = pytest.importorskip("meshio")
    points = np.arange(24, dtype=">f8").reshape(4, 6)[:, ::2]
    write_vtu(tmp_path / "a.vtu", points, {"half": np.ones(4, np.float16)})
    mesh = meshio.read(tmp_path / "a.vtu")
    np.testing.assert_array_equal(mesh.points, points)
    assert mesh.point_data["half"].dtype == np.float32


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"v": np.zeros((N, 2))}, "field 'v' must have shape"),
        ({"v": np.zeros(N + 1)}, "field 'v' must have shape"),
        ({"v": np.array(["a"] * N)}, "must hold real numbers"),
    ],
)
def test_wrong_fields_are_named(tmp_path, fields, sentence):
    with pytest.raises(PliantError, match=sentence):
        write_vtu(tmp_path / "a.vtu", np.zeros((N, 3)), fields)
    assert os.listdir(tmp_path) == []


def test_pvd_lists_one_dataset_per_body_and_frame(tmp_path):
    entries = [
        (time, f"frames/{body}_{frame:04d}.vtu", body)
        for frame, time in enumerate((0.0, 1 / 60))
        for body in ("water", "duck & co")
    ]
    write_pvd(tmp_path / "run.pvd", entries)
    found = ElementTree.parse(tmp_path / "run.pvd").getroot().findall("Collection/DataSet")
    assert [(float(d.get("timestep")), d.get("file"), d.get("name")) for d in found] == entries
    assert [d.get("part") for d in found] == ["0", "1", "0", "1"]
    assert read_pvd(tmp_path / "run.pvd") == entries


def test_a_damaged_pvd_is_one_sentence(tmp_path):
    path = tmp_path / "run.pvd"
    write_pvd(path, [(0.5, "a.vtu", "water")])
    whole = path.read_bytes().rstrip()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(PliantError, match="run.pvd is"):
            read_pvd(path)
    path.write_bytes(whole.replace(b"0.5", b"soon"))
    with pytest.raises(PliantError, match="run.pvd is not a readable .pvd file: could not convert"):
        read_pvd(path)


@pytest.mark.parametrize("compress", [False, True])
def test_vtu_comes_back(tmp_path, compress):
    points, fields = sample()
    points, fields["energy"] = np.repeat(points, 100, axis=0), fields["energy"].astype(">f8")
    fields = {name: np.repeat(values, 100, axis=0) for name, values in fields.items()}  # more than one zlib block
    write_vtu(tmp_path / "a.vtu", points, fields, units={"velocity": "m/s", "F": "<&>"}, compress=compress)
    cloud = read_vtu(tmp_path / "a.vtu")
    np.testing.assert_array_equal(cloud.x, points, strict=True)
    assert list(cloud.fields) == list(fields) and cloud.units == {"velocity": "m/s", "F": "<&>"}
    for name, values in fields.items():
        np.testing.assert_array_equal(cloud.fields[name], values)


@pytest.mark.parametrize("compressor", ["None", "ZLib"])
@pytest.mark.parametrize("header", [32, 64])
def test_vtu_from_paraview_is_read(tmp_path, compressor, header):
    pyvista = pytest.importorskip("pyvista", reason="VTK's own writer, as in ParaView")
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridWriter

    points, fields = sample()
    grid = pyvista.PolyData(points).cast_to_unstructured_grid()
    grid.point_data["velocity"], grid.point_data["uv"] = fields["velocity"], points[:, :2].copy()
    writer = vtkXMLUnstructuredGridWriter()
    writer.SetInputData(grid)
    writer.SetFileName(str(tmp_path / "a.vtu"))
    writer.EncodeAppendedDataOff()
    getattr(writer, f"SetCompressorTypeTo{compressor}")()
    getattr(writer, f"SetHeaderTypeToUInt{header}")()
    writer.Write()
    cloud = read_vtu(tmp_path / "a.vtu")
    np.testing.assert_array_equal(cloud.x, points)
    np.testing.assert_array_equal(cloud.fields["velocity"], fields["velocity"])
    np.testing.assert_array_equal(cloud.fields["uv_1"], points[:, 1])
    writer.EncodeAppendedDataOn()
    writer.Write()
    with pytest.raises(PliantError, match="not appended as raw binary"):
        read_vtu(tmp_path / "a.vtu")


class FullDisk(io.FileIO):
    """A file that takes 5000 bytes and then fails as a full disk does."""

    room = 5000

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_full_disk_keeps_the_old_file_and_leaves_no_other(tmp_path, monkeypatch):
    points, fields = sample()
    path = tmp_path / "a.vtu"
    write_vtu(path, points, {})
    before = path.read_bytes()
    monkeypatch.setattr(files, "open", FullDisk, raising=False)
    with pytest.raises(PliantError, match=r"cannot write .*a\.vtu: No space left on device\.$"):
        write_vtu(path, points, fields)
    assert os.listdir(tmp_path) == ["a.vtu"]
    assert path.read_bytes() == before


def test_failed_rename_or_interruption_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(PliantError, match="Permission denied"):
        write_pvd(tmp_path / "run.pvd", [])
    monkeypatch.setattr(files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_pvd(tmp_path / "run.pvd", [])
    assert os.listdir(tmp_path) == []


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "out").write_text("not a folder")
    with pytest.raises(PliantError, match="cannot write"):
        write_vtu(tmp_path / "out" / "a.vtu", np.zeros((1, 3)))


@pytest.mark.parametrize("channels", [3, 4])
def test_png_comes_back(tmp_path, channels):
    image_module = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(0).integers(0, 256, (13, 31, channels), dtype=np.uint8)
    write_png(tmp_path / "a.png", image)
    np.testing.assert_array_equal(np.asarray(image_module.open(tmp_path / "a.png")), image)
    with pytest.raises(PliantError, match="uint8"):
        write_png(tmp_path / "b.png", image.astype(np.float32))
