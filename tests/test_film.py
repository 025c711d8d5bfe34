"""Films: frames drawn by worker processes are those drawn here, and videos hold every one of them."""

import os
import shutil
import signal
import time

import numpy as np
import pytest
from PIL import Image

from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.io.png import write_png
from pliant.io.video import write_video
from pliant.render import Look, Renderer, available
from pliant.render.render_scene import CloudStyle, RenderScene, RenderWall
from pliant.run import draw_process, drawing, watchdog
from pliant.run.draw_process import RunawayError
from pliant.run.drawing import draw_frames, settle

SIZE = (160, 90)
CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])


@pytest.fixture
def render_scene():
    wall = RenderWall("wall", np.zeros((0, 2, 3)), TriMesh(CORNERS, np.array([[0, 1, 2]])))
    return RenderScene([wall], [CloudStyle("water", "water", 0.05)], np.array([[0.0, 0, 0], [1, 1, 1]]), 1.0)


@pytest.fixture
def snapshots():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (200, 3))
    fields = [{"velocity": rng.normal(0, 1, (200, 3)), "pressure": np.full(200, 10.0 * k)} for k in range(5)]
    return [Snapshot(k, 0.1 * k, {"water": Cloud(x + 0.02 * k, fields[k])}) for k in range(5)]


@pytest.fixture
def drawable():
    missing = available()
    if missing:
        pytest.skip(missing)


def read(path):
    return np.asarray(Image.open(path))


def test_workers_draw_what_is_drawn_here(render_scene, snapshots, tmp_path, drawable):
    told = []
    look = Look(clock=True, color="pressure", colors="viridis", supersample=1)
    loader = snapshots.__getitem__  # picklable, as loaders must be
    files = draw_frames(render_scene, loader, [4, 0, 2], tmp_path, look, SIZE, 2, progress=lambda *a: told.append(a))
    assert [f.name for f in files] == ["frame_0004.png", "frame_0000.png", "frame_0002.png"]
    assert sorted(os.listdir(tmp_path)) == sorted(f.name for f in files), "and nothing else"
    assert told == [(1, 3), (2, 3), (3, 3)]
    renderer = Renderer(*SIZE, supersample=1)
    fixed = settle(render_scene, loader, [4, 0, 2], look)
    for k, file in zip((4, 0, 2), files, strict=True):
        here = renderer.render(render_scene.picture(snapshots[k], fixed, SIZE[0] / SIZE[1]))
        np.testing.assert_array_equal(read(file), here)
    renderer.close()
    before = files[0].stat().st_mtime_ns
    draw_frames(render_scene, loader, [4, 1], tmp_path, look, SIZE, 1, keep=True)
    assert files[0].stat().st_mtime_ns == before and (tmp_path / "frame_0001.png").exists()


def test_workers_are_replaced(render_scene, snapshots, tmp_path, drawable, monkeypatch):
    monkeypatch.setattr(draw_process, "FRAMES_PER_WORKER", 1)
    files = draw_frames(render_scene, snapshots.__getitem__, range(2), tmp_path, Look(supersample=1), (64, 48), 1)
    assert all(read(f).shape == (48, 64, 3) for f in files)


def test_what_goes_wrong_in_a_worker_is_told(render_scene, snapshots, tmp_path, drawable):
    with pytest.raises(PliantError, match="frame 7: IndexError: list index out of range"):
        draw_frames(render_scene, snapshots.__getitem__, [7], tmp_path, size=SIZE, workers=1)
    with pytest.raises(PliantError, match=r"a drawing process died at frame 3 \(exit status 3\)"):
        draw_frames(render_scene, os._exit, [3], tmp_path, size=SIZE, workers=1)
    with pytest.raises(PliantError, match="cannot be sent to another process"):
        draw_frames(render_scene, lambda k: snapshots[k], [0], tmp_path, size=SIZE, workers=1)


def test_a_painter_draws_beside_and_survives_its_process(render_scene, snapshots, tmp_path, drawable):
    one = draw_process.Painter(render_scene, tmp_path, Look(supersample=1), (64, 48))
    one.draw(snapshots[0])
    os.kill(one._worker.process.pid, signal.SIGKILL)
    one.draw(snapshots[1])
    process = one._worker.process
    one.close()
    assert not process.is_alive() and sorted(os.listdir(tmp_path)) == ["frame_0000.png", "frame_0001.png"]
    one._job.folder = tmp_path / "frame_0000.png"  # not a folder
    with pytest.raises(PliantError, match="frame 2: cannot write"):
        one.draw(snapshots[2])
    one.close()


def test_a_picture_that_takes_too_long_is_given_up(render_scene, snapshots, tmp_path, monkeypatch):
    monkeypatch.setattr(draw_process, "PICTURE_SECONDS", 0.01)
    monkeypatch.setattr(drawing, "available", lambda: None)  # it never gets as far as Vulkan
    with pytest.raises(RunawayError, match=r"the picture of frame 1000 took more than 0.01 s; a smaller size"):
        draw_frames(render_scene, time.sleep, [1000], tmp_path, size=SIZE, workers=1)
    assert os.listdir(tmp_path) == []


def test_a_picture_that_takes_too_much_memory_is_given_up(render_scene, snapshots, tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "LEAST_MEMORY", 2**20)
    monkeypatch.setattr(watchdog, "MEMORY_SHARE", 0.0)
    monkeypatch.setattr(drawing, "available", lambda: None)
    if not watchdog.resident_memory(os.getpid()):
        pytest.skip("the system does not tell how much memory a process takes")
    with pytest.raises(RunawayError, match=r"the picture of frame 1000 took more than 0.00098 GiB of memory"):
        draw_frames(render_scene, time.sleep, [1000], tmp_path, size=SIZE, workers=1)


def test_other_pictures_are_drawn_after_a_failure(render_scene, snapshots, tmp_path, drawable):
    told = {}
    draw_frames(render_scene, snapshots.__getitem__, [7, 0, 1], tmp_path, Look(supersample=1), (64, 48), 1,
                failed=lambda k, error: told.update({k: str(error)}))  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["frame_0000.png", "frame_0001.png"]
    assert told == {7: "frame 7: IndexError: list index out of range"}


def test_a_painter_goes_on_after_a_picture_that_ran_away(render_scene, snapshots, tmp_path, drawable, monkeypatch):
    one = draw_process.Painter(render_scene, tmp_path, Look(supersample=1), (64, 48))
    with monkeypatch.context() as patch, pytest.raises(RunawayError, match="the picture of frame 0 took more"):
        patch.setattr(draw_process, "PICTURE_SECONDS", 0.0)
        one.draw(snapshots[0])
    assert one.draw(snapshots[1])
    one.hurry(0.0)
    assert not one.draw(snapshots[2]), "nobody waits for it any more"
    one.close()
    assert os.listdir(tmp_path) == ["frame_0001.png"]


def test_limits_of_memory(monkeypatch):
    monkeypatch.setattr(watchdog, "available_memory", lambda: 2.0**34)
    assert watchdog.memory_limit(1) == 2**33 and watchdog.memory_limit(4) == 2**31
    assert watchdog.memory_limit(10**6) == watchdog.LEAST_MEMORY
    monkeypatch.setattr(watchdog, "available_memory", lambda: np.inf)
    assert watchdog.memory_limit(1) == np.inf
    assert watchdog.resident_memory(2**22 + 1) == 0, "there is no such process"


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"size": (0, 9)}, {"size": (99999, 9)}, {"look": Look(shadow=7)}])
def test_wrong_wishes_are_told_before_any_work(render_scene, snapshots, tmp_path, wrong):
    with pytest.raises(PliantError, match="must be"):
        draw_frames(render_scene, snapshots.__getitem__, [0], tmp_path / "new", **wrong)
    assert not (tmp_path / "new").exists()


def test_the_range_is_found_once(render_scene, snapshots):
    loaded = []
    look = settle(render_scene, lambda k: loaded.append(k) or snapshots[k % 5], range(100), Look(color="pressure"))
    assert len(loaded) <= drawing.RANGE_FRAMES and (look.low, look.high) == (0, 40)


def frames_of(path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    reader = imageio_ffmpeg.read_frames(str(path))
    meta = next(reader)
    shape = (meta["size"][1], meta["size"][0], 3)
    return meta, [np.frombuffer(frame, np.uint8).reshape(shape) for frame in reader]


@pytest.mark.parametrize(("width", "height", "fps"), [(64, 48, 30), (65, 49, 0.5), (100, 38, 240)])
def test_videos_hold_every_frame(tmp_path, width, height, fps):
    pytest.importorskip("imageio_ffmpeg")
    levels = np.linspace(30, 220, 12).astype(np.uint8)
    pictures = [np.full((height, width, 3), (level, 128, 255 - level), np.uint8) for level in levels]
    assert write_video(tmp_path / "film.mp4", pictures, fps) == 12
    meta, frames = frames_of(tmp_path / "film.mp4")
    assert meta["size"] == (width // 2 * 2, height // 2 * 2) and meta["fps"] == pytest.approx(fps, rel=0.01)
    assert "h264" in meta["codec"] and "yuv420p" in meta["pix_fmt"]
    assert len(frames) == 12
    np.testing.assert_allclose([f[..., 0].mean() for f in frames], levels, atol=5)
    assert os.listdir(tmp_path) == ["film.mp4"]
    assert (tmp_path / "film.mp4").read_bytes().find(b"moov") < 100, "players can start before they have all of it"


def test_videos_from_files_with_gaps(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    files = [tmp_path / f"frame_{k:04d}.png" for k in (3, 10, 11)]
    for k, file in enumerate(files):
        write_png(file, np.full((32, 32, 3), 60 * (k + 1), np.uint8))
    write_video(tmp_path / "out" / "film.mp4", files, 25)
    (tmp_path / "many").mkdir()
    for k, file in enumerate(files):  # a folder of frames, in the order of their numbers
        shutil.copy(file, tmp_path / "many" / f"frame_{9998 + k:04d}.png")
    write_video(tmp_path / "many.mp4", tmp_path / "many", 25)
    for film_file in (tmp_path / "out" / "film.mp4", tmp_path / "many.mp4"):
        _, frames = frames_of(film_file)
        np.testing.assert_allclose([f.mean() for f in frames], [60, 120, 180], atol=4)


def test_videos_that_cannot_be(tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    grey = np.zeros((32, 32, 3), np.uint8)
    (tmp_path / "bad.png").write_bytes(b"no picture")
    for frames, fps, sentence in (
        ([], 30, "there are no pictures"), ([grey], 0.1, r"fps must be in \[0.5, 240\]"), ([grey], True, "fps must"),
        ([grey, grey[:16]], 30, "of one size, got 32 x 32 and 32 x 16"), ([grey[0]], 30, r"shape \(h, w, 3\)"),
        ([tmp_path / "bad.png"], 30, "bad.png is not a picture"), ([tmp_path / "none.png"], 30, "cannot read"),
    ):  # fmt: skip
        with pytest.raises(PliantError, match=sentence):
            write_video(tmp_path / "film.mp4", frames, fps)
    with pytest.raises(PliantError, match="ends in .mp4"):
        write_video(tmp_path / "draw_frames.avi", [grey])
    monkeypatch.setattr("pliant.io.video._ffmpeg", lambda: "/bin/false")
    with pytest.raises(PliantError, match="ffmpeg could not write the film"):
        write_video(tmp_path / "film.mp4", [grey])
    assert os.listdir(tmp_path) == ["bad.png"], "no half film is left"
