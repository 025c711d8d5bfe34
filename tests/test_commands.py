"""What is made of a finished run: exports that other libraries read, pictures, plots; and what the commands refuse."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import pliant as pl
from pliant.commands import cli, doctor
from pliant.io import read_cloud, read_mesh, read_usd
from pliant.render import available
from pliant.run.folder import RunFolder

needs_vulkan = pytest.mark.skipif(available() is not None, reason=str(available()))


def call(*words, status=0):
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == status, result.output
    return result.output


def refusal(*words, status=2):
    (line,) = call(*words, status=status).splitlines()
    assert line.startswith("pliant: ") and line.endswith((".", "?")), line
    return line


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A short dam break with its particles as npz."""
    folder = tmp_path_factory.mktemp("made") / "dam"
    call("run", "dam_break", "--set", "radius=0.06", "--seconds", "0.1", "--format", "npz", "--out", folder)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """One that may be damaged."""
    shutil.copytree(made, tmp_path / "dam")
    return tmp_path / "dam"


# --- exports, read by others ------------------------------------------------------------------------


def truth(made, index=2):
    return read_cloud(made / "frames" / f"water_{index:04d}.npz")


@pytest.mark.parametrize("ending", ["vtu", "ply"])
def test_meshio_reads_exported_particles(made, tmp_path, ending):
    meshio = pytest.importorskip("meshio")
    call("export", made, "--format", ending, "--out", tmp_path)
    found, wanted = meshio.read(tmp_path / f"water_0002.{ending}"), truth(made)
    np.testing.assert_array_equal(found.points, wanted.x)
    np.testing.assert_array_equal(found.point_data["pressure"], wanted.fields["pressure"])


def test_vtk_opens_the_series_as_paraview_does(made, tmp_path):
    vtk = pytest.importorskip("vtk", reason="vtk is not installed")
    from vtk.util.numpy_support import vtk_to_numpy

    call("export", made, "--format", "vtu", "--out", tmp_path)
    reader = vtk.vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(tmp_path / "water_0003.vtu"))
    reader.Update()
    data, wanted = reader.GetOutput(), truth(made, 3)
    np.testing.assert_array_equal(vtk_to_numpy(data.GetPoints().GetData()), wanted.x)
    np.testing.assert_array_equal(vtk_to_numpy(data.GetPointData().GetArray("velocity")), wanted.fields["velocity"])


def test_usd_core_reads_the_whole_run_from_one_file(made, tmp_path):
    pxr = pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    assert pxr
    call("export", made, "--format", "usd", "--out", tmp_path)
    stage = Usd.Stage.Open(str(tmp_path / "dam_break.usdc"))
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (0, 3, 30)
    points = UsdGeom.Points(next(p for p in stage.Traverse() if p.IsA(UsdGeom.Points)))
    for index in range(4):
        wanted = truth(made, index)
        np.testing.assert_array_equal(np.array(points.GetPointsAttr().Get(index)), wanted.x)
        np.testing.assert_array_equal(np.array(points.GetVelocitiesAttr().Get(index)), wanted.fields["velocity"])
    assert {p.GetName() for p in stage.Traverse() if p.IsA(UsdGeom.Mesh)} == {"tank", "obstacle"}
    assert len(list(read_usd(tmp_path / "dam_break.usdc"))) == 4


@pytest.mark.parametrize("ending", ["bgeo", "ply"])
def test_splashsurf_reads_exported_particles(made, tmp_path, ending):
    pytest.importorskip("pysplashsurf", reason="pysplashsurf is not installed")
    call("export", made, "--format", ending, "--frames", "2", "--out", tmp_path)
    source, target = tmp_path / f"water_0002.{ending}", tmp_path / "surface.obj"
    words = ["reconstruct", str(source), "-r=0.06", "-l=2.0", "-c=0.75", "-n=1", f"-o={target}"]
    script = "from pysplashsurf import run_pysplashsurf; run_pysplashsurf()"
    subprocess.run([sys.executable, "-c", script, *words], check=True, capture_output=True)
    mesh = read_mesh(target)
    low, high = truth(made).x.min(axis=0), truth(made).x.max(axis=0)
    assert (mesh.vertices.min(axis=0) < low).all() and (mesh.vertices.max(axis=0) > high).all()


@pytest.mark.parametrize("ending", ["obj", "ply", "stl"])
def test_surfaces_are_meshes_that_trimesh_reads(made, tmp_path, ending):
    pytest.importorskip("pysplashsurf", reason="pysplashsurf is not installed")
    trimesh = pytest.importorskip("trimesh")
    call("export", made, "--format", ending, "--surface", "--frames", "3", "--out", tmp_path)
    assert (tmp_path / f"tank.{ending}").exists()
    mesh = trimesh.load(tmp_path / f"water_surface_0003.{ending}")
    volume = truth(made).fields["mass"].sum() / 1000
    assert mesh.is_watertight and mesh.volume == pytest.approx(volume, rel=0.08)
    low, high = mesh.bounds
    assert (low > -1e-6).all() and (high < (3.22, 1, 1)).all(), "the surface passes the tank's walls"


def test_frames_can_be_picked(made, tmp_path):
    call("export", made, "--format", "vtu", "--frames", "1:", "--out", tmp_path / "a")
    assert sorted(p.name for p in (tmp_path / "a").glob("*.vtu")) == [f"water_{k:04d}.vtu" for k in (1, 2, 3)]
    call("export", made, "--format", "ply", "--frames", "::3", "--out", tmp_path / "b")
    assert sorted(p.name for p in (tmp_path / "b").glob("water*")) == ["water_0000.ply", "water_0003.ply"]


def test_usd_during_a_run(tmp_path):
    pytest.importorskip("pxr", reason="usd-core is not installed")
    call("run", "moving_wall", "--set", "radius=0.08", "--seconds", "0.3", "--format", "usd", "--out", tmp_path / "run")
    series = read_usd(tmp_path / "run" / "moving_wall.usdc")
    run = RunFolder(tmp_path / "run")
    assert len(series) == 10 and "paddle" in series.walls
    last, wanted = series[9], run.snapshot(9)
    np.testing.assert_array_equal(last.clouds["water"].x, wanted.clouds["water"].x)
    np.testing.assert_allclose(last.poses["paddle"], wanted.poses["paddle"], atol=1e-12)
    assert np.abs(last.poses["paddle"][0, 3]) > 1e-4


def test_without_usd_a_run_goes_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    text = call("run", "dam_break", "--set", "radius=0.1", "--seconds", "0.05", "--format", "usd,vtu", "--out",
                tmp_path / "run")  # fmt: skip
    assert "No USD file is written: " in text and "pip install" in text
    assert "no USD file can be written" in refusal("export", tmp_path / "run", "--format", "usd")


# --- frames of a script -----------------------------------------------------------------------------


def test_a_script_writes_any_format(tmp_path):
    scene = pl.Scene(particle_radius=0.06)
    scene.add(pl.Box(size=(1, 1, 1)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.5, 0.5, 0.5)), pl.Fluid(), name="water")
    sim = scene.build()
    for frame in sim.frames(seconds=0.1, fps=30):
        frame.write(tmp_path, "vtu,ply,npz,bgeo,obj,stl")
    for ending in ("vtu", "ply", "npz", "bgeo"):
        np.testing.assert_array_equal(read_cloud(tmp_path / f"water_0003.{ending}").x, sim["water"].x)
    assert len(read_mesh(tmp_path / "tank.obj").faces) == 12
    with pytest.raises(pl.PliantError, match="unknown format 'vtx'; did you mean 'vtu'?"):
        frame.write(tmp_path, ["vtx"])


# --- pictures ---------------------------------------------------------------------------------------


@needs_vulkan
def test_render_draws_from_files_and_makes_a_video(copy):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed")
    text = call("render", copy, "--size", "160x90", "--look", "color=pressure", "--look", "bar=yes", "--sheet")
    made = copy / "pictures"
    assert f"pictures: {made / 'frame_0000.png'} to frame_0003.png" in text and str(made / "video.mp4") in text
    with Image.open(made / "sheet.png") as sheet:
        assert sheet.size == (1920, 720)  # two rows of three
    assert sorted(p.name for p in made.glob("frame_*.png")) == [f"frame_{k:04d}.png" for k in range(4)]
    frames = imageio_ffmpeg.read_frames(str(made / "video.mp4"))
    about = next(frames)
    assert about["size"] == (160, 90) and about["fps"] == 30 and len(list(frames)) == 4


@needs_vulkan
def test_render_goes_on_after_a_frame_that_cannot_be_drawn(copy):
    for index in (0, 2):
        (copy / "frames" / f"water_{index:04d}.npz").unlink()
    words = ["render", copy, "--size", "64x48", "--workers", "1", "--look", "color=pressure"]
    text = call(*words, status=2)
    assert sorted(p.name for p in (copy / "pictures").glob("*.png")) == ["frame_0001.png", "frame_0003.png"]
    assert (copy / "pictures" / "video.mp4").exists()
    last = text.splitlines()[-1]
    assert last.startswith("pliant: 2 of 4 pictures are missing, those of frames 0, 2; ") and "water_0000.npz" in last
    for index in (1, 3):
        (copy / "frames" / f"water_{index:04d}.npz").unlink()
    assert "water_0000.npz" in refusal(*words)


@needs_vulkan
def test_render_leaves_what_is_there_as_it_is(copy):
    theirs = [copy / "frames" / "frame_0000.png", copy / "video.mp4", copy / "sheet.png"]
    for path in theirs:
        path.write_text("the run's own")
    words = ["--size", "64x48", "--frames", "0", "--sheet"]
    (copy / "pictures").mkdir()
    (copy / "pictures" / "frame_0000.png").write_text("from before")
    assert str(copy / "pictures_2" / "frame_0000.png") in call("render", copy, *words)
    assert (copy / "pictures" / "frame_0000.png").read_text() == "from before"
    assert [path.read_text() for path in theirs] == ["the run's own"] * 3
    call("render", copy, *words, "--out", copy / "frames")
    assert theirs[0].read_bytes()[:4] == b"\x89PNG", "a folder that is named may be written to"
    assert theirs[2].read_text() == "the run's own"


@needs_vulkan
def test_a_range_of_colours_is_found_after_the_run(tmp_path):
    call("run", "dam_break", "--set", "radius=0.1", "--seconds", "0.1", "--out", tmp_path / "run", "--format",
         "npz,png", "--size", "96x64", "--look", "color=pressure")  # fmt: skip
    assert len(list((tmp_path / "run" / "frames").glob("*.png"))) == 4
    assert json.loads((tmp_path / "run" / "run.json").read_text())["look"] == ["color=pressure"]


@needs_vulkan
@pytest.mark.parametrize(("words", "told"), [
    (["--look", "color=presure"], "did you mean 'pressure'?"),
    (["--look", "colour=pressure"], "unknown name 'colour'; did you mean 'color'?"),
    (["--look", "bar"], "--look needs name=value, got 'bar'"),
    (["--look", "bar=perhaps"], "option 'bar' must be true or false, got 'perhaps'"),
    (["--look", "fluid=foam"], "Look: fluid must be one of spheres, surface, got 'foam'"),
    (["--look", "low=3", "--look", "high=2"], "Look: low must be below high, got 3 and 2"),
    (["--look", "colors=rainbow"], "colors must be one of"),
    (["--camera", "front"], "--camera must be auto, orbit"),
    (["--camera", "1,2,3:1,2,3"], "position and target must differ"),
    (["--camera", "orbit:fast"], "--camera must be auto, orbit"),
    (["--camera", "1,2:3,4"], "position must be three finite numbers"),
    (["--size", "10x10"], "--size must lie between 16 and 7680"),
    (["--workers", "0"], "workers must be a whole number in [1, 64]"),
    (["--fps", "-1"], "--fps must lie between 0.5 and 240, got -1"),
    (["--fps", "1e9"], "--fps must lie between 0.5 and 240"),
    (["--frames", "7"], "the run has no frame 7; it has 0 to 3"),
    (["--frames", "one:two"], "--frames must be a number or a range"),
    (["--frames", "5:9"], "--frames 5:9 picks none of the frames 0 to 3"),
    (["--frames", "::0"], "--frames must be a number or a range"),
    (["--out", "/proc/pictures"], "cannot write into /proc/pictures"),
])  # fmt: skip
def test_render_refuses(made, words, told):
    assert told in refusal("render", made, *words)


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "told"), [
    (["--format", "vtk"], "unknown format 'vtk'; did you mean 'vtu'?"),
    (["--format", "png"], "unknown format 'png'"),
    (["--format", ","], "name one or more formats"),
    (["--format", "npz", "--surface"], "surfaces need a format that holds meshes"),
    (["--format", "vtu", "--frames", "x"], "--frames must be a number or a range"),
    (["--format", "vtu", "--out", "/proc/nothing"], "cannot write /proc/nothing/water_0000.vtu"),
])  # fmt: skip
def test_export_refuses(made, words, told):
    assert told in refusal("export", made, *words)


@pytest.mark.parametrize("command", [["render"], ["export", "--format", "vtu"]])
def test_what_is_not_a_run_is_refused(tmp_path, command):
    assert "is not a run: it has no run.json" in refusal(*command, tmp_path)
    assert "is not a run: it is not a folder" in refusal(*command, tmp_path / "none")


@pytest.mark.parametrize("command", [["render"], ["export", "--format", "vtu"], ["run", "--resume", "--out"]])
@pytest.mark.parametrize(("change", "told"), [
    (lambda r: r.pop("fps"), "run.json is not whole: it lacks a proper 'fps'"),
    (lambda r: r.pop("particles"), "it lacks a proper 'particles'"),
    (lambda r: r.update(formats="npz"), "it lacks a proper 'formats'"),
    (lambda r: r.update(frames=[1, 2]), "some of its frames lack their number or time"),
    (lambda r: r["frames"][1].pop("time"), "some of its frames lack their number or time"),
    (lambda r: r.update(frames=3), "it lacks a proper 'frames'"),
])  # fmt: skip
def test_a_record_that_is_not_whole(copy, command, change, told):
    record = json.loads((copy / "run.json").read_text())
    change(record)
    (copy / "run.json").write_text(json.dumps(record))
    assert told in refusal(*command, copy)


def test_a_run_without_frames(copy):
    record = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(record | {"frames": []}))
    assert "the run has no frames" in refusal("export", copy, "--format", "vtu")


def test_export_leaves_the_frames_of_the_run_alone(made):
    assert "holds the frames of the run itself" in refusal("export", made, "--format", "vtu", "--out", made / "frames")


def test_inspect_refuses_what_is_not_a_run(tmp_path):
    assert "run.json" in refusal("inspect", tmp_path)


def test_a_frame_that_is_missing_or_damaged(copy):
    file = copy / "frames" / "water_0001.npz"
    file.write_bytes(file.read_bytes()[:500])
    assert "water_0001.npz" in refusal("export", copy, "--format", "vtu")
    file.unlink()
    assert "water_0001.npz" in refusal("export", copy, "--format", "vtu")
    call("export", copy, "--format", "vtu", "--frames", "2:")


def test_a_render_scene_that_is_missing_or_damaged(copy):
    (copy / "render_scene.npz").write_bytes(b"hello")
    assert "render_scene.npz" in refusal("export", copy, "--format", "vtu")
    (copy / "render_scene.npz").unlink()
    assert "render_scene.npz" in refusal("export", copy, "--format", "vtu")


def test_the_render_scene_of_an_earlier_version_is_read(copy, tmp_path):
    with np.load(copy / "render_scene.npz") as file:
        arrays = dict(file)
    header = arrays["header"].tobytes().replace(b'"pliant render scene"', b'"pliant stage"')
    np.savez(copy / "stage.npz", **arrays | {"header": np.frombuffer(header, np.uint8)})
    (copy / "render_scene.npz").unlink()
    call("export", copy, "--format", "obj", "--frames", "0", "--out", tmp_path / "walls")
    assert (tmp_path / "walls" / "tank.obj").exists()
    RunFolder(copy).clear([])
    assert not (copy / "stage.npz").exists()


@needs_vulkan
def test_a_run_without_particles_cannot_be_drawn_again(copy):
    record = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(record | {"formats": ["png"]}))
    assert "holds no particles, only png; run it again with --format vtu" in refusal("render", copy)


def test_inspect_draws_one_picture(copy):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert "inspect.png" in call("inspect", copy)
    assert (copy / "inspect.png").read_bytes()[:4] == b"\x89PNG"


def test_doctor_as_a_command(monkeypatch):
    monkeypatch.setattr(doctor, "TIME_LIMIT", 120.0)  # [s]: the machine may be busy
    found = json.loads(call("doctor", "--json"))
    assert {"Python", "Taichi", "Vulkan"} <= {check["name"] for check in found}


@pytest.mark.parametrize(("words", "told"), [
    (["--checkpoint", "-1"], "--checkpoint must be a number of seconds, 0 or more, got -1.0"),
    (["--checkpoint", "nan"], "--checkpoint must be a number of seconds"),
    (["--seed", "-3"], "--seed must be a whole number from 0 to"),
    (["--look", "shadow=7"], "Look: shadow must be in [0, 1]"),
    (["--format", "mp4"], "unknown format 'mp4'"),
    (["--backend", "gpuu"], "unknown backend 'gpuu'; did you mean 'gpu'?"),
    (["--seconds", "1e-12"], "--seconds must lie between 1e-06 and 1e+06, got 1e-12"),
    (["--seconds", "100", "--fps", "1e308"], "frames are too many; choose a lower --fps"),
])  # fmt: skip
def test_run_refuses(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in refusal("run", "dam_break", *words)
    assert not Path("out").exists()
