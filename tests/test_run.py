"""Runs that can be trusted: whole files, exact resumption after any death, and sentences about folders and disks."""

import hashlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pliant as pl
from pliant.commands import cli
from pliant.io import read_cloud, read_pvd, read_usd
from pliant.run import draw_process as painter
from pliant.run import run as running
from pliant.run import writer
from pliant.run.draw_process import picture_file
from pliant.run.folder import RunFolder
from pliant.run.writer import Writer

SCENE = '''
import numpy as np
import pliant as pl

SECONDS = 0.5

def build(radius: float = 0.05, height: float = 0.6, noise: float = 0.0):
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(1, 1, 0.6), center=(0.5, 0.5, 0.3)), pl.Boundary(inside_out=True), name="tank")
    paddle = scene.add(pl.Box(size=(0.1, 0.5, 0.6), center=(0.8, 0.25, 0.3)), pl.Boundary(), name="paddle")
    paddle.move(lambda t: (0.4 * np.sin(6 * t), 0, 0))
    column = pl.Box(size=(0.4 + noise * np.random.random(), height, 0.6), center=(0.2, height / 2, 0.3))
    scene.add(column, pl.Fluid(), name="water")
    return scene
'''
FRAMES = 16  # with the first: SECONDS at 30 fps


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls the command line in an empty folder with a scene file; gives its text."""
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(SCENE)

    def call(*words, status=0):
        result = CliRunner().invoke(cli.app, [str(word) for word in words])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        assert result.exit_code == status, result.output
        return result.output

    return call


def record(folder):
    return json.loads((Path(folder) / "run.json").read_text())


def frames_of(folder):
    """A hash of every file of every frame, and what the record says of each frame."""
    files = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (Path(folder) / "frames").iterdir()}
    return files, [{**frame, "wall_seconds": None} for frame in record(folder)["frames"]]


def last_state(folder):
    return RunFolder(folder).latest()[1]


def assert_same(one, other):
    """Two runs left the same frames and the same last state."""
    assert frames_of(one) == frames_of(other)
    first, second = last_state(one), last_state(other)
    assert first.state == second.state
    assert {n: a.tobytes() for n, a in first.arrays.items()} == {n: a.tobytes() for n, a in second.arrays.items()}


# --- the folder -------------------------------------------------------------------------------------


def test_a_run_leaves_what_the_readme_promises(call):
    call("run", "my.py", "--format", "vtu,npz,ply,bgeo,obj", "--set", "radius=0.08")
    folder = Path("out/my")
    assert {p.name for p in folder.iterdir()} == {"run.json", "render_scene.npz", "frames", "checkpoints", "log.txt"}
    names = {p.name for p in (folder / "frames").iterdir()}
    for ending in ("vtu", "npz", "ply", "bgeo"):
        assert {f"water_{k:04d}.{ending}" for k in range(FRAMES)} <= names
    assert {"particles.pvd", "tank.obj", "tank.ply"} <= names and "tank_0001.obj" not in names
    assert {f"paddle_{k:04d}.obj" for k in range(FRAMES)} <= names
    clouds = [read_cloud(folder / "frames" / f"water_0009.{ending}") for ending in ("vtu", "npz", "ply", "bgeo")]
    for cloud in clouds[1:]:
        np.testing.assert_array_equal(cloud.x, clouds[0].x)
        for name, values in clouds[0].fields.items():
            np.testing.assert_array_equal(cloud.fields[name], values)
    series = read_pvd(folder / "frames" / "particles.pvd")
    assert [file for _, file, _ in series] == [f"water_{k:04d}.vtu" for k in range(FRAMES)]
    assert [time for time, _, _ in series] == [frame["time"] for frame in record(folder)["frames"]]
    assert "Finished" in (folder / "log.txt").read_text()


def test_the_record_holds_what_is_needed_to_repeat_the_run(call):
    call("run", "my.py", "--format", "npz", "--set", "noise=0.2", "--seed", "7", "--seconds", "0.1")
    one = record("out/my")
    assert one["seed"] == 7 and one["options"]["noise"] == 0.2 and one["status"] == "finished"
    assert {"pliant", "taichi", "numpy", "python"} <= set(one["versions"]) and len(one["source_sha256"]) == 64
    frame = one["frames"][-1]
    assert len(frame["momentum"]) == 3 and frame["poses"]["paddle"][0][0] == 1.0
    call("run", "my.py", "--format", "npz", "--set", "noise=0.2", "--seed", "7", "--seconds", "0.1", "--out", "again")
    assert_same("out/my", "again")
    call("run", "my.py", "--format", "npz", "--set", "noise=0.2", "--seed", "8", "--seconds", "0.1", "--out", "other")
    assert frames_of("other") != frames_of("again")


def test_a_snapshot_is_read_back_as_it_was(call):
    call("run", "my.py", "--format", "vtu", "--seconds", "0.1")
    folder = RunFolder("out/my")
    sim = pl.load(next(iter(sorted((folder.checkpoints).glob("*_0003_*")))), scene=_scene())
    snapshot = folder.snapshot(3)
    assert snapshot.time == sim.time
    np.testing.assert_array_equal(snapshot.clouds["water"].x, sim["water"].x)
    np.testing.assert_array_equal(snapshot.clouds["water"].fields["velocity"], sim["water"].v)
    np.testing.assert_array_equal(snapshot.poses["paddle"], sim.world.walls.walls[1].pose())
    with pytest.raises(pl.PliantError, match="has no frame 99"):
        folder.snapshot(99)


def _scene(**options):
    space: dict = {}
    exec(SCENE, space)
    return space["build"](**options)


def test_json_lines(call):
    text = call("run", "my.py", "--format", "npz", "--seconds", "0.1", "--json")
    events = [json.loads(line) for line in text.splitlines()]
    assert events[0]["event"] == "note" and {e["event"] for e in events} == {"note", "start", "frame", "end"}
    frames = [e for e in events if e["event"] == "frame"]
    assert [f["frame"] for f in frames] == [0, 1, 2, 3] and frames[-1]["mean_density_error"] >= 0
    assert events[-1]["status"] == "finished" and "divergence" in events[-1]["seconds_per_stage"]


# --- resuming ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A whole run of the scene, to compare with."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "my.py").write_text(SCENE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert CliRunner().invoke(cli.app, ["run", "my.py", "--format", "vtu,npz", "--quiet"]).exit_code == 0
    return folder / "out" / "my"


def stop_after(monkeypatch, steps, what):
    """Lets something happen after so many steps of this process."""
    original, count = pl.Simulation._move, [0]

    def step(sim, dt, free):
        original(sim, dt, free)
        count[0] += 1
        if count[0] == steps:
            what()

    monkeypatch.setattr(pl.Simulation, "_move", step)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_run_after_the_step_and_it_resumes(call, monkeypatch, uninterrupted, number, status):
    with monkeypatch.context() as patch:
        stop_after(patch, 11, lambda: os.kill(os.getpid(), number))
        text = call("run", "my.py", "--format", "vtu,npz", status=status)
    assert "Ending after this step" in text and "--resume" in text
    assert record("out/my")["status"] == "interrupted"
    assert last_state("out/my").state["clock"]["step"] == 12
    text = call("run", "--resume", "--out", "out/my")
    assert "from t = " in text and "Finished" in text
    assert_same("out/my", uninterrupted)
    assert record("out/my")["resumed"][0]["step"] == 12


def test_a_crash_of_the_simulation_leaves_a_run_that_resumes(call, monkeypatch, uninterrupted):
    def fail():
        raise RuntimeError("cosmic ray")

    with monkeypatch.context() as patch:
        stop_after(patch, 17, fail)
        with pytest.raises(RuntimeError):
            CliRunner().invoke(cli.app, ["run", "my.py", "--format", "vtu,npz", "--checkpoint", "0"],
                               catch_exceptions=False)  # fmt: skip
    assert record("out/my")["status"] == "failed" and "cosmic ray" in record("out/my")["error"]
    call("run", "my.py", "--resume")
    assert_same("out/my", uninterrupted)


# The alarm is set by the run itself: a watcher that a busy machine keeps waiting would come when the run is over.
MORTAL = """
import signal, sys
from pliant.commands.cli import main
from pliant.run.progress import Teller
event, frame, delay = Teller.event, int(sys.argv[1]), float(sys.argv[2])

def fatal_event(self, kind, **facts):
    event(self, kind, **facts)
    if (kind == "start" if frame < 0 else kind == "frame" and facts["frame"] >= frame):
        Teller.event = event
        signal.setitimer(signal.ITIMER_REAL, delay)  # nothing catches SIGALRM, which then ends it as SIGKILL would

Teller.event = fatal_event
sys.argv[1:] = sys.argv[3:]
main()
"""


def start_and_kill(words, cwd, folder, frame, delay):
    """Starts a run that dies some seconds after it has told of a frame; what is left must be whole."""
    command = [sys.executable, "-c", MORTAL, str(-1 if frame is None else frame), str(delay), *words]
    process = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, timeout=3600)
    assert process.returncode == -signal.SIGALRM, "it was done before it could be killed"
    run = RunFolder(folder)
    assert run.record()["status"] == "running"
    for path in sorted(run.frames.glob("*.vtu"))[-3:]:
        read_cloud(path)


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed(tmp_path, uninterrupted, times):
    (tmp_path / "my.py").write_text(SCENE)
    rng, folder = random.Random(20), tmp_path / "out" / "my"
    words = ["run", "my.py", "--format", "vtu,npz", "--resume", "--json", "--checkpoint", "0"]
    for _ in range(times):
        start_and_kill(words, tmp_path, folder, None, rng.uniform(0.001, 0.12))
    pliant = [sys.executable, "-m", "pliant"]
    subprocess.run([*pliant, *words], cwd=tmp_path, check=True, timeout=300, stdout=subprocess.DEVNULL)
    assert_same(folder, uninterrupted)
    assert not list(folder.rglob("*.part"))


@pytest.mark.slow
def test_six_hundred_frames_killed_ten_times(tmp_path):
    """The showcase: 20 s of a dam break of ten thousand particles, with pictures, in two ways."""
    common = ["run", "dam_break", "--seconds", "20", "--size", "320x180", "--json"]
    whole, killed, rng = tmp_path / "whole", tmp_path / "killed", random.Random(600)
    pliant = [sys.executable, "-m", "pliant"]
    subprocess.run([*pliant, *common, "--out", str(whole)], check=True, stdout=subprocess.DEVNULL)
    again = [*common, "--out", str(killed), "--resume", "--checkpoint", "2"]
    for frame in sorted(rng.sample(range(590), 10)):
        start_and_kill(again, tmp_path, killed, frame, rng.uniform(0.001, 0.5))
    subprocess.run([*pliant, *again], check=True, stdout=subprocess.DEVNULL)
    assert len(record(whole)["frames"]) == 601
    assert_same(whole, killed)


def test_a_damaged_last_checkpoint_is_passed_over(call, monkeypatch, uninterrupted):
    with monkeypatch.context() as patch:
        stop_after(patch, 14, lambda: os.kill(os.getpid(), signal.SIGINT))
        call("run", "my.py", "--format", "vtu,npz", "--checkpoint", "0", status=130)
    newest = max(Path("out/my/checkpoints").iterdir(), key=lambda p: p.name)
    newest.write_bytes(newest.read_bytes()[:1000])
    call("run", "my.py", "--resume")
    assert_same("out/my", uninterrupted)


def test_a_longer_run_goes_on_from_a_finished_one(call, uninterrupted):
    call("run", "my.py", "--format", "vtu,npz", "--seconds", "0.2")
    assert "finished already" in call("run", "my.py", "--resume")
    call("run", "my.py", "--resume", "--seconds", "0.5")
    assert_same("out/my", uninterrupted)


def test_resuming_what_has_not_begun_begins_it(call):
    assert "no checkpoint" in call("run", "my.py", "--resume", "--format", "npz", "--seconds", "0.05")
    assert record("out/my")["status"] == "finished"


@pytest.fixture
def half(call, monkeypatch):
    """An interrupted run in out/my."""
    with monkeypatch.context() as patch:
        stop_after(patch, 9, lambda: os.kill(os.getpid(), signal.SIGINT))
        call("run", "my.py", "--format", "npz", status=130)
    return call


def refusal(text):
    (line,) = text.splitlines()
    assert line.startswith("pliant: ") and line.endswith((".", "?"))
    return line


def test_the_same_command_resumes(half, uninterrupted):
    half("run", "my.py", "--format", "npz", "--fps", "30", "--set", "height=0.6", "--seed", "0", "--resume")
    assert record("out/my")["status"] == "finished"


def test_a_run_is_resumed_from_another_folder(half, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    half("run", "--resume", "--out", tmp_path / "out" / "my")


@pytest.mark.parametrize("damage", ["newer", "cut", "gone", "no record"])
def test_resume_never_throws_away_what_it_cannot_read(half, damage):
    for path in Path("out/my/checkpoints").iterdir():
        if damage == "gone":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(path.read_bytes()[:1000])
        elif damage == "newer":
            with np.load(path) as file:
                arrays = dict(file)
            header = arrays["header"].tobytes().replace(b'"version": 2', b'"version": 9')
            np.savez(path, **arrays | {"header": np.frombuffer(header, np.uint8)})
    if damage == "no record":
        Path("out/my/run.json").unlink()
    before = sorted(Path("out/my/frames").iterdir())
    told = {"newer": "was saved by a newer Pliant", "cut": "is damaged or cut short", "gone": "it has no checkpoint",
            "no record": "it has no run.json"}[damage]  # fmt: skip
    assert told in refusal(half("run", "my.py", "--resume", status=2))
    assert sorted(Path("out/my/frames").iterdir()) == before


def test_a_lost_render_scene_is_made_anew(half):
    Path("out/my/render_scene.npz").unlink()
    assert "It is made anew" in half("run", "my.py", "--resume")
    assert Path("out/my/render_scene.npz").exists()


def test_lost_frames_are_told(half):
    Path("out/my/frames/water_0000.npz").unlink()
    assert "1 of the 2 frames before have lost files, the first of them frame 0" in half("run", "my.py", "--resume")


def test_random_numbers_go_on(call, monkeypatch, tmp_path):
    Path("my.py").write_text(SCENE.replace("return scene", "scene.on_step(blow)\n    return scene") + """
def blow(sim):
    sim["water"].v = sim["water"].v + 0.1 * np.random.randn(3)
""")
    call("run", "my.py", "--format", "npz", "--out", "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, 30, lambda: os.kill(os.getpid(), signal.SIGTERM))
        call("run", "my.py", "--format", "npz", "--out", "parts", status=143)
    np.random.seed(99)
    call("run", "--resume", "--out", "parts")
    assert_same("whole", "parts")


def test_options_of_any_kind_survive(call, monkeypatch):
    Path("my.py").write_text(SCENE.replace("noise: float = 0.0", "noise: float = 0.0, wind=np.array([0.0, 1.0, 0.0]), "
                                           "limit=float('inf'), ball=pl.Sphere(radius=1.0), tag=None"))  # fmt: skip
    with monkeypatch.context() as patch:
        stop_after(patch, 9, lambda: os.kill(os.getpid(), signal.SIGINT))
        call("run", "my.py", "--format", "npz", "--set", "wind=0,2,0", "--set", "tag='1'", status=130)
    assert record("out/my")["options"]["limit"] == "inf" and record("out/my")["settings"] == ["wind=0,2,0", "tag='1'"]
    call("run", "--resume", "--out", "out/my")


def test_what_cannot_be_saved_is_told_before_the_work(call):
    Path("my.py").write_text(SCENE.replace("pl.Fluid()", "Odd(law=abs)") + """
from pliant.core.options import param
class Odd(pl.Fluid):
    law: object = param(None, "a law", kind="any")
""")
    line = refusal(call("run", "my.py", "--format", "npz", status=2))
    assert "<built-in function abs> cannot be saved" in line


def test_a_scene_may_end_itself_and_gets_its_files(call):
    pytest.importorskip("pxr", reason="usd-core is not installed")
    ending = "scene.on_step(lambda sim: sim.time < 0.2)\n    return scene"
    Path("my.py").write_text(SCENE.replace("return scene", ending))
    text = call("run", "my.py", "--format", "usd")
    assert "Ended by the scene's on_step" in text and record("out/my")["status"] == "ended by the scene"
    assert len(read_usd("out/my/my.usdc")) == len(record("out/my")["frames"]) == 7


def test_whole_run_files_are_made_up_for(call, monkeypatch):
    """A run that is stopped while its last files are made is not finished."""
    pytest.importorskip("pxr", reason="usd-core is not installed")
    with monkeypatch.context() as patch:
        patch.setattr(running, "export_usd", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        call("run", "my.py", "--format", "npz,usd", "--seconds", "0.1", status=143)
    assert record("out/my")["status"] == "interrupted" and not Path("out/my/my.usdc").exists()
    assert "USD:" in call("run", "--resume", "--out", "out/my")
    assert record("out/my")["status"] == "finished" and len(read_usd("out/my/my.usdc")) == 4


def test_a_reader_that_leaves_does_not_end_the_run(tmp_path):
    (tmp_path / "my.py").write_text('print("hello from the scene")\n' + SCENE)
    command = f"{sys.executable} -m pliant run my.py --format npz --seconds 0.2 --json"
    done = subprocess.run(f"{command} | head -n 2; exit ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash",
                          cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["note", "start"]
    assert record(tmp_path / "out" / "my")["status"] == "finished" and "hello from the scene" in done.stderr


def test_a_terminal_that_is_closed_costs_nothing(tmp_path):
    (tmp_path / "my.py").write_text(SCENE)
    master, terminal = os.openpty()
    command = [sys.executable, "-m", "pliant", "run", "my.py", "--format", "npz", "--seconds", "100"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal,
                               start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # fmt: skip
    os.close(terminal)
    patience = time.monotonic() + 300
    while not (tmp_path / "out/my/frames/water_0005.npz").exists() and time.monotonic() < patience:
        if select.select([master], [], [], 0.05)[0]:
            os.read(master, 4096)
    os.close(master)
    process.send_signal(signal.SIGHUP)
    assert process.wait(300) == 128 + signal.SIGHUP
    run = RunFolder(tmp_path / "out" / "my")
    assert run.record()["status"] == "interrupted" and run.latest()[0] >= 5


def test_motions_may_be_random(call):
    Path("my.py").write_text(SCENE.replace("0.4 * np.sin(6 * t)", "0.4 * np.random.random()"))
    call("run", "my.py", "--format", "npz", "--seconds", "0.2", "--out", "whole")
    call("run", "my.py", "--format", "npz", "--seconds", "0.1", "--out", "parts")
    call("run", "--resume", "--seconds", "0.2", "--out", "parts")
    assert_same("whole", "parts")


def test_a_scene_file_that_has_changed_is_told(half):
    Path("my.py").write_text(SCENE + "# a remark\n")
    assert "my.py has changed since the run began" in half("run", "my.py", "--resume")


def test_the_file_of_the_run_counts_and_not_another_of_its_name(half, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "my.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "Finished" in half("run", "--resume", "--out", tmp_path / "out" / "my")


def test_a_rate_that_was_raised_is_no_other(call):
    call("run", "my.py", "--format", "npz", "--seconds", "0.1", "--fps", "7.3")
    assert "finished already" in call("run", "my.py", "--format", "npz", "--seconds", "0.1", "--fps", "7.3", "--resume")


def test_other_peoples_files_are_left_alone(call):
    theirs = ["video.mp4", "sheet.png", "inspect.png", ".my.party.txt", "frames/frame.png", "frames/frame_0001.jpg",
              "frames/water.txt", "frames/notes_0001.vtu"]  # fmt: skip
    for name in theirs:
        path = Path("out/my") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    for words in ([], ["--overwrite"]):
        call("run", "my.py", "--format", "npz", "--seconds", "0.05", *words)
        assert [name for name in theirs[3:] if (Path("out/my") / name).read_text() != "mine"] == []
    assert Path("out/my/frames/water_0002.npz").exists()


def test_a_folder_with_somebody_elses_record_is_refused(call):
    Path("out/my").mkdir(parents=True)
    Path("out/my/run.json").write_text('{"jogging": "5 km"}')
    assert "add --overwrite to replace what is there" in refusal(call("run", "my.py", status=2))
    assert "jogging" in Path("out/my/run.json").read_text()


def test_checkpoints_without_a_record_are_not_thrown_away(half):
    Path("out/my/run.json").unlink()
    assert "add --overwrite" in refusal(half("run", "my.py", status=2))
    half("run", "my.py", "--overwrite", "--format", "npz", "--seconds", "0.05")
    assert len(list(Path("out/my/frames").iterdir())) == 3


def test_a_scene_that_ends_on_a_frame_has_that_frame(call):
    ending = "scene.on_step(lambda sim: sim.time < 0.1 - 1e-9)\n    return scene"
    Path("my.py").write_text(SCENE.replace("return scene", ending))
    call("run", "my.py", "--format", "npz")
    assert [frame["time"] for frame in record("out/my")["frames"]] == pytest.approx([0, 1 / 30, 2 / 30, 0.1])
    assert "finished already" in call("run", "my.py", "--resume")


def test_what_could_not_be_made_is_made_later(call, monkeypatch):
    pytest.importorskip("pxr", reason="usd-core is not installed")
    Path("out/my/my.usdc").mkdir(parents=True)
    text = call("run", "my.py", "--format", "npz,usd", "--seconds", "0.05", status=1)
    assert "No USD file could be made" in text and record("out/my")["status"] == "finished"
    Path("out/my/my.usdc").rmdir()
    call("run", "my.py", "--resume")
    assert len(read_usd("out/my/my.usdc")) == 3


def test_without_a_home(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    command = [sys.executable, "-m", "pliant", "--version"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("pliant "), done.stderr


def test_an_unfinished_run_is_not_thrown_away_by_mistake(half):
    before = frames_of("out/my")
    line = refusal(half("run", "my.py", status=2))
    assert "unfinished run" in line and "--resume" in line and "--overwrite" in line
    assert frames_of("out/my") == before
    half("run", "my.py", "--overwrite", "--format", "npz", "--seconds", "0.05")
    assert len(record("out/my")["frames"]) == 3


def test_a_finished_run_is_kept(call):
    words = ["run", "my.py", "--format", "npz", "--seconds", "0.05"]
    call(*words)
    before = frames_of("out/my")
    text = call(*words)
    assert "out/my holds a finished run, which is kept; this one goes into out/my_2 (--overwrite replaces" in text
    assert frames_of("out/my")[0] == frames_of("out/my_2")[0], "the same run again"
    assert "out/my_2 holds a finished run" in call(*words) and record("out/my_3")["status"] == "finished"
    line = refusal(call(*words, "--out", "out/my_2", status=2))
    assert "out/my_2 holds a finished run of my with 3 frames" in line and "--overwrite" in line and "--out" in line
    assert frames_of("out/my") == before
    call(*words[:-1], "0.1", "--overwrite", "--out", "out/my_2")
    assert [len(record(f"out/my{end}")["frames"]) for end in ("", "_2", "_3")] == [3, 4, 3]


def test_overwriting_removes_what_was_made_of_the_earlier_run(call):
    words = ["run", "my.py", "--format", "npz", "--seconds", "0.05"]
    call(*words)
    call(*words)
    for folder in (Path("out/my"), Path("out/my_2")):
        call("export", folder, "--format", "vtu,obj")
        for name in ("pictures/frame_0000.png", "pictures/video.mp4", "pictures_2/sheet.png", "skin/my_skin.usdc"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("old")
        (folder / "export" / "notes.txt").write_text("mine")
    before = sorted(Path("out/my").rglob("*"))
    call(*words, "--overwrite")
    left = {path.name for path in Path("out/my_2").iterdir()}
    assert left == {"run.json", "render_scene.npz", "frames", "checkpoints", "log.txt", "export"}
    assert [path.name for path in Path("out/my_2/export").iterdir()] == ["notes.txt"], "somebody else's"
    assert sorted(Path("out/my").rglob("*")) == before


def test_flags_mean_the_last_run_of_the_scene(call):
    words = ["run", "my.py", "--format", "npz", "--seconds"]
    for _ in range(2):
        call(*words, "0.05")
    call("run", "my.py", "--resume", "--seconds", "0.1")
    assert len(record("out/my")["frames"]) == 3 and len(record("out/my_2")["frames"]) == 4
    call(*words, "0.15", "--overwrite")
    assert len(record("out/my")["frames"]) == 3 and len(record("out/my_2")["frames"]) == 5
    assert not Path("out/my_3").exists()


def test_the_unfinished_run_is_the_one_to_resume(half):
    half("run", "my.py", "--format", "npz", "--seconds", "0.05", "--out", "out/my_2")
    assert "out/my holds an unfinished run" in refusal(half("run", "my.py", status=2))
    half("run", "my.py", "--resume")
    assert record("out/my")["status"] == "finished" and len(record("out/my")["frames"]) == FRAMES
    assert len(record("out/my_2")["frames"]) == 3


def test_numbers_do_not_mix_scenes(call):
    Path("my_2.py").write_text(SCENE)
    call("run", "my_2.py", "--format", "npz", "--seconds", "0.05")
    call("run", "my.py", "--format", "npz", "--seconds", "0.05")
    assert "goes into out/my_3" in call("run", "my.py", "--format", "npz", "--seconds", "0.05")
    call("run", "my.py", "--format", "npz", "--seconds", "0.1", "--overwrite")
    assert [record(f"out/my{end}")["scene"] for end in ("", "_2", "_3")] == ["my", "my_2", "my"]
    assert [len(record(f"out/my{end}")["frames"]) for end in ("", "_2", "_3")] == [3, 3, 4]


@pytest.mark.parametrize(("words", "phrase"), [
    (["my.py", "--fps", "60"], "fps was 30.0 and cannot become 60.0"),
    (["my.py", "--set", "height=0.5"], "settings was []"),
    (["my.py", "--format", "vtu"], "formats was 'npz' and cannot become 'vtu'"),
    (["dam_break", "--out", "out/my"], "holds a run of my, not of dam_break"),
    (["--out", "nowhere"], "nowhere is not a run"),
    (["my.py", "--overwrite"], "exclude each other"),
])  # fmt: skip
def test_resume_refuses_what_would_make_another_run(half, words, phrase):
    assert phrase in refusal(half("run", *words, "--resume", status=2))


def test_resume_refuses_a_scene_that_has_changed(half):
    Path("my.py").write_text(SCENE.replace("pl.Fluid()", "pl.Fluid(density=900)"))
    line = refusal(half("run", "my.py", "--resume", status=2))
    assert "belongs to another scene: water.material.density was 1000.0 and is 900" in line


def test_resume_without_the_scene_file(half):
    Path("my.py").unlink()
    assert "there is no file 'my.py'" in refusal(half("run", "--resume", "--out", "out/my", status=2))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"frames": 3}', "\x00\x01", '{"scene": "my", "frames": {}}'])
def test_a_damaged_record_is_told(half, content):
    Path("out/my/run.json").write_text(content)
    assert "out/my/run.json is" in refusal(half("run", "--resume", "--out", "out/my", status=2))


def test_two_runs_do_not_share_a_folder(call):
    RunFolder("out/my").prepare()
    with RunFolder("out/my").locked():
        assert "another run is writing" in refusal(call("run", "my.py", status=2))


# --- disks ------------------------------------------------------------------------------------------


def test_a_folder_that_is_a_file(call):
    Path("busy").write_text("mine")
    assert "busy is not a folder" in refusal(call("run", "my.py", "--out", "busy", status=2))
    assert "busy is not a folder" in refusal(call("run", "my.py", "--out", "busy/below", status=2))
    assert Path("busy").read_text() == "mine"


def test_an_unwritable_folder(call):
    if not Path("/proc/self").exists():
        pytest.skip("needs a folder that not even root can write to")
    assert "cannot write into /proc/run" in refusal(call("run", "my.py", "--out", "/proc/run", status=2))


def test_a_disk_that_is_too_small_is_told_before_the_run(call, monkeypatch):
    monkeypatch.setattr(RunFolder, "free_bytes", lambda self: 10_000)
    line = refusal(call("run", "my.py", "--format", "npz", status=2).splitlines()[-1])
    assert "of disk" in line and "--out" in line and not list(Path("out/my/frames").iterdir())


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two hundred kilobytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_fills_up_stops_the_run_cleanly(call, monkeypatch, small_disk, uninterrupted):
    monkeypatch.setattr(RunFolder, "free_bytes", lambda self: 10**12)
    text = call("run", "my.py", "--format", "vtu,npz", "--out", small_disk / "run", status=1)
    assert "No space left on device" in text.splitlines()[-1] and "Traceback" not in text
    folder = RunFolder(small_disk / "run")
    clouds = [read_cloud(path) for path in folder.frames.glob("*.npz")]
    for entry in folder.record()["frames"]:  # none is told of that is not there
        folder.snapshot(entry["frame"])
    assert 0 < len(clouds) < FRAMES and not list(folder.path.rglob("*.part"))
    assert folder.latest() is not None
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    call("run", "my.py", "--resume", "--out", small_disk / "run")
    assert_same(small_disk / "run", uninterrupted)


# --- pictures that cannot be drawn ------------------------------------------------------------------


@pytest.fixture
def painters(monkeypatch):
    """Runs draw empty pictures, except of the frames in this set."""
    wrong: set[int] = set()

    class Fake:
        def __init__(self, render_scene, folder, look, size):
            self.folder = folder

        def draw(self, snapshot):
            if snapshot.index in wrong:
                raise pl.PliantError(f"the picture of frame {snapshot.index} took more than 300 s.")
            picture_file(self.folder, snapshot.index).touch()
            return True

        def close(self):
            pass

    def draw_run(folder, indices, path, look, size, failed):
        for k in indices:
            if k in wrong:
                failed(k, pl.PliantError(f"the picture of frame {k} took more than 300 s."))
            else:
                picture_file(path, k).touch()

    monkeypatch.setattr(running, "available", lambda: None)
    monkeypatch.setattr(running, "Painter", Fake)
    monkeypatch.setattr(running, "draw_run", draw_run)
    return wrong


def pictures():
    return [int(path.stem[-4:]) for path in sorted(Path("out/my/frames").glob("frame_*.png"))]


def test_a_picture_that_fails_costs_nothing_else(call, painters):
    painters |= {1, 3}
    text = call("run", "my.py", "--format", "npz,png", "--seconds", "0.15", status=1)
    assert "A picture is missing: the picture of frame 1 took more than 300 s." in text
    assert "missing:  2 of the pictures (frames 1, 3)" in text and "Finished" in text
    assert pictures() == [0, 2, 4] and record("out/my")["missing_pictures"] == [1, 3]
    assert record("out/my")["status"] == "finished" and len(record("out/my")["frames"]) == 5
    assert last_state("out/my").state["clock"]["time"] == pytest.approx(4 / 30)
    painters.clear()
    assert "missing:" not in call("run", "my.py", "--resume")
    assert pictures() == [0, 1, 2, 3, 4] and record("out/my")["missing_pictures"] == []
    assert "finished already" in call("run", "my.py", "--resume")


def test_after_some_failures_no_more_pictures_are_tried(call, painters):
    painters |= {1, 2, 3}
    text = call("run", "my.py", "--format", "npz,png", "--seconds", "0.2", status=1)
    assert text.count("A picture is missing") == 2 and text.count("No more pictures are drawn") == 1
    assert pictures() == [0] and record("out/my")["missing_pictures"] == [1, 2, 3, 4, 5, 6]
    assert len(record("out/my")["frames"]) == 7 and len(record("out/my")["notes"]) == 3


@pytest.fixture
def stuck(monkeypatch):
    """Drawing processes hang from their start; gives those that were started, and an event for the first question."""
    processes, asked = [], threading.Event()
    start, ask = painter.Worker.__post_init__, painter.Worker.ask

    def start_and_stop(worker):
        start(worker)
        processes.append(worker.process)
        os.kill(worker.process.pid, signal.SIGSTOP)

    def ask_and_tell(worker, item):
        asked.set()
        ask(worker, item)

    monkeypatch.setattr(running, "available", lambda: None)  # none gets as far as a graphics driver
    monkeypatch.setattr(painter.Worker, "__post_init__", start_and_stop)
    monkeypatch.setattr(painter.Worker, "ask", ask_and_tell)
    yield processes, asked
    for process in processes:
        process.kill()


def send_when(happened, number=signal.SIGTERM):
    """Sends a signal to this process once something has happened, which returns True."""

    def wait_and_send():
        if happened():
            os.kill(os.getpid(), number)

    threading.Thread(target=wait_and_send, daemon=True).start()


def assert_ended_well(processes):
    """The run can be resumed, and no process is left."""
    run = RunFolder("out/my")
    assert run.record()["status"] == "interrupted"
    for entry in run.record()["frames"]:
        run.snapshot(entry["frame"])
    assert processes and not any(process.is_alive() for process in processes)
    assert not list(run.path.rglob("*.part"))


def test_a_stuck_drawing_process_does_not_keep_a_run_from_ending(call, stuck, monkeypatch):
    processes, asked = stuck
    monkeypatch.setattr(running, "PATIENCE", 0.1)
    send_when(lambda: asked.wait(300))
    text = call("run", "my.py", "--format", "npz,png", status=143)
    assert "Ending after this step" in text and "--resume" in text
    assert len(processes) == 1, "none is started again"
    assert RunFolder("out/my").latest()[0] == len(record("out/my")["frames"]) - 1, "with a checkpoint of the last step"
    assert_ended_well(processes)


def test_a_second_signal_does_not_wait_for_pictures(call, stuck, monkeypatch):
    processes, asked = stuck
    monkeypatch.setattr(running, "PATIENCE", 1e6)
    log, patience = Path("out/my/log.txt").absolute(), time.monotonic() + 300

    def ending():
        while "Ending after this step" not in log.read_text() and time.monotonic() < patience:
            time.sleep(0.01)
        return time.monotonic() < patience

    send_when(lambda: asked.wait(300))
    send_when(lambda: asked.wait(300) and ending())
    call("run", "my.py", "--format", "npz,png", status=143)
    assert_ended_well(processes)


def test_a_signal_while_the_last_pictures_are_drawn(call, stuck, monkeypatch):
    """All frames are there, but not their pictures: the run is not finished, and resuming draws them."""
    processes, asked = stuck
    monkeypatch.setattr(running, "PATIENCE", 0.1)
    monkeypatch.setattr(writer, "WAITING", 100)  # so that nothing waits before the end
    finish, finishing = Writer.finish, threading.Event()

    def finish_and_tell(one):
        finishing.set()
        finish(one)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "finish", finish_and_tell)
        send_when(lambda: asked.wait(300) and finishing.wait(300))
        call("run", "my.py", "--format", "npz,png", "--seconds", "0.03", status=143)
    assert len(record("out/my")["frames"]) == 2
    assert_ended_well(processes)
    drawn = []
    monkeypatch.setattr(painter, "ENDING_SECONDS", 0.1)
    monkeypatch.setattr(running, "draw_run", lambda folder, indices, *_, **__: drawn.extend(indices))
    call("run", "my.py", "--resume", status=1)
    assert drawn == [0, 1] and record("out/my")["missing_pictures"] == [0, 1]


# --- the writer -------------------------------------------------------------------------------------


def test_the_writer_keeps_order_and_works_beside():
    done, gate = [], threading.Event()
    writer = Writer()
    writer(gate.wait)
    writer(lambda: done.append(1))
    writer(lambda: done.append(2))
    assert done == []
    gate.set()
    writer.finish()
    assert done == [1, 2]


def test_after_a_failure_the_writer_does_nothing_more():
    done = []

    def fail():
        raise pl.PliantError("cannot write it")

    writer = Writer()
    writer(fail)
    while writer._error is None:
        time.sleep(0.001)
    with pytest.raises(pl.PliantError, match="cannot write it"):
        writer(lambda: done.append(1))
    with pytest.raises(pl.PliantError, match="cannot write it"):
        writer.finish()
    assert done == []
