"""The command line: what it writes, what it says, and its exit status. Most tests call it in this process, so that
Taichi starts once; a few start a process to see that no traceback reaches the user."""

import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
import trimesh
from typer.testing import CliRunner

import pliant
from pliant.commands import cli
from pliant.errors import PliantError
from pliant.run import run as running
from pliant.scene import loading

SMALL = ["--set", "radius=0.1", "--seconds", "0.05", "--format", "vtu"]

SCENE = '''
import pliant as pl

SECONDS = 0.05

def build(radius: float = 0.1, lid: bool = False, label: str = "water", size=(0.5, 0.5, 0.5), extra=None):
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(1, 1, 1)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=size), pl.Fluid(), name=label)
    return scene
'''


@pytest.fixture
def pliant_(tmp_path, monkeypatch):
    """Calls the command line in an empty folder; gives exit status and text."""
    monkeypatch.chdir(tmp_path)

    def call(*words, status=0):
        result = CliRunner().invoke(cli.app, [str(word) for word in words])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.output
        return result.output

    return call


def sentence(text):
    """The one line of a refusal."""
    (line,) = text.splitlines()
    assert line.startswith("pliant: ") and line.endswith((".", "?")), line
    return line


def scene_file(text, name="my.py"):
    Path(name).write_text(text)
    return name


def record(folder):
    return json.loads((Path(folder) / "run.json").read_text())


# --- a run ------------------------------------------------------------------------------------------


def test_a_run_leaves_frames_and_a_record(pliant_):
    text = pliant_("run", "dam_break", *SMALL)
    names = sorted(path.name for path in Path("out/dam_break/frames").iterdir())
    assert names == ["particles.pvd", "water_0000.vtu", "water_0001.vtu", "water_0002.vtu"]
    assert "particles.pvd" in text and "ms per step" in text and "3 of 3 frames" in text
    run = record("out/dam_break")
    assert run["status"] == "finished" and run["error"] is None and run["scene"] == "dam_break"
    assert run["options"] == {"radius": 0.1, "obstacle": True, "viscosity": 1e-6, "micropolar": 0.0}
    assert run["seconds"] == 0.05 and run["fps"] == 30
    assert set(run["versions"]) == {"pliant", "taichi", "numpy", "python"}
    assert run["particles"]["water"] > 50 and len(run["frames"]) == 3
    last = run["frames"][-1]
    assert last["time"] == pytest.approx(2 / 30) and last["step"] == run["steps"] > 0 and last["dt"] > 0
    assert last["iterations"]["divergence"] >= 2 and last["max_speed"] > 0 and last["energy"] > 0
    assert "divergence" in run["milliseconds_per_step"]


def test_the_recorded_command_repeats_the_run(pliant_):
    file = scene_file(SCENE)
    pliant_("run", file, "--set", "lid=yes", "--set", "size=0.4,0.6,0.4", "--set", "label=sea", "--format", "vtu")
    first = record("out/my")
    command = shlex.split(first["command"])
    assert command[0] == "pliant"
    pliant_(*command[1:])
    second = record("out/my_2")
    assert second["options"] == first["options"] and second["backend"] == first["backend"] == "cpu"
    assert second["options"]["size"] == [0.4, 0.6, 0.4] and second["options"]["lid"] is True
    assert [frame["time"] for frame in second["frames"]] == [frame["time"] for frame in first["frames"]]
    assert second["frames"][-1]["energy"] == pytest.approx(first["frames"][-1]["energy"], rel=1e-3)


def test_without_a_name_the_showcase_runs(pliant_, monkeypatch):
    monkeypatch.setattr(cli, "SHOWCASE_SETTINGS", ["radius=0.03"])
    pliant_("run", *SMALL[2:])
    assert record(f"out/{cli.SHOWCASE}")["options"]["radius"] == 0.03


def test_a_mesh_for_the_body_of_a_scene(pliant_):
    trimesh.Trimesh(*pliant.Box(size=(0.8, 0.8, 0.8), center=(0, 0.4, 0)).triangles()).export("cube.obj")
    pliant_("run", "bunny_moving", "--mesh", "cube.obj", "--set", "radius=0.05", *SMALL[2:])
    assert record("out/bunny_moving")["options"]["mesh"].endswith("cube.obj")
    assert "nowhere.obj" in pliant_("run", "bunny_moving", "--mesh", "nowhere.obj", *SMALL[2:], status=2)


def test_a_shorter_run_does_not_mix_with_an_earlier_one(pliant_):
    Path("out/my/frames").mkdir(parents=True)
    Path("out/my/frames/frame_notes.txt").write_text("mine")
    file = scene_file(SCENE)
    pliant_("run", file, "--seconds", "0.1", "--format", "vtu")
    assert Path("out/my/frames/water_0003.vtu").exists()
    pliant_("run", file, "--seconds", "0.05", "--format", "vtu", "--overwrite")
    assert not Path("out/my/frames/water_0003.vtu").exists() and Path("out/my/frames/frame_notes.txt").exists()


def test_pictures_are_left_out_where_they_cannot_be_drawn(pliant_, monkeypatch):
    monkeypatch.setattr(running, "available", lambda: "no Vulkan driver was found.")
    text = pliant_("run", scene_file(SCENE), "--format", "png,vtu")
    assert "No pictures are drawn: no Vulkan driver was found." in text
    assert record("out/my")["formats"] == ["vtu"]


def test_pictures(pliant_):
    missing = running.available()
    if missing:
        pytest.skip(missing)
    text = pliant_("run", scene_file(SCENE), "--format", "png", "--size", "64x48")
    assert len(list(Path("out/my/frames").glob("frame_*.png"))) == 3 and "frame_0000.png to frame_0002.png" in text


def test_notes_are_printed_and_kept(pliant_):
    text = pliant_("run", scene_file(SCENE), "--set", "size=1.4,0.4,0.4", "--format", "vtu")
    assert text.count("particles overlap tank and were left out.") == 1
    assert "overlap tank" in record("out/my")["notes"][0]


def test_quiet_says_nothing(pliant_):
    assert pliant_("run", scene_file(SCENE), "--format", "vtu", "--quiet") == ""
    assert "dam_break" in pliant_("scenes")


def test_few_frames_per_second_still_give_a_last_frame(pliant_):
    pliant_("run", scene_file(SCENE), "--fps", "0.001", "--format", "vtu")
    assert [frame["time"] for frame in record("out/my")["frames"]] == [0, 0.05]


# --- a run that ends early --------------------------------------------------------------------------


def test_a_simulation_that_breaks_down(pliant_):
    breaking = SCENE.replace("return scene", "scene.on_step(explode)\n    return scene")
    breaking += "\ndef explode(sim):\n    if sim.step_count == 9:\n"
    file = scene_file(breaking + "        raise pl.SimulationError('the simulation broke down at last')\n")
    text = pliant_("run", file, "--format", "vtu", status=1)
    assert text.splitlines()[-1] == "pliant: the simulation broke down at last."
    run = record("out/my")
    assert run["status"] == "failed" and run["error"] == "the simulation broke down at last"
    assert len(run["frames"]) == 2 and Path("out/my/frames/water_0001.vtu").exists()


def test_a_callback_that_raises_is_blamed_with_its_line(pliant_):
    file = scene_file(SCENE.replace("return scene", "scene.on_step(lambda sim: 1 / 0)\n    return scene"))
    text = pliant_("run", file, "--format", "vtu", status=1)
    reason = "ZeroDivisionError: division by zero"
    assert text.splitlines()[-1] == f"pliant: my.py fails in line 10 during the run: {reason}."
    assert record("out/my")["error"] == reason


def test_a_callback_may_end_a_run(pliant_):
    file = scene_file(SCENE.replace("return scene", "scene.on_step(lambda sim: sim.step_count < 2)\n    return scene"))
    assert "Ended by the scene's on_step" in pliant_("run", file, "--format", "vtu")
    assert record("out/my")["status"] == "ended by the scene"


def test_ctrl_c_ends_after_the_step(pliant_):
    interrupting = "import os, signal\n" + SCENE.replace("return scene", "scene.on_step(press)\n    return scene")
    interrupting += "\ndef press(sim):\n    if sim.step_count == 9:\n        os.kill(os.getpid(), signal.SIGINT)\n"
    before = signal.getsignal(signal.SIGINT)
    text = pliant_("run", scene_file(interrupting), "--format", "vtu", status=130)
    assert "Interrupted at t = " in text and "2 of 3 frames are in out" in text
    assert record("out/my")["status"] == "interrupted" and len(record("out/my")["frames"]) == 2
    assert signal.getsignal(signal.SIGINT) is before


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "told"), [
    (["dam_brake"], "unknown scene 'dam_brake'; did you mean 'dam_break'?"),
    (["zzz"], "unknown scene 'zzz'; known: "),
    (["missing.py"], "there is no file 'missing.py' (looked in "),
    (["."], ". is a folder; a scene is a .py file with build()."),
    (["dam_break", "--set", "raduis=1"], "dam_break: unknown option 'raduis'; did you mean 'radius'?"),
    (["dam_break", "--set", "radius"], "--set needs name=value, got 'radius'."),
    (["dam_break", "--set", "radius=big"], "option 'radius' must be a finite number, got 'big'."),
    (["dam_break", "--set", "radius=nan"], "option 'radius' must be a finite number, got 'nan'."),
    (["dam_break", "--set", "obstacle=maybe"], "option 'obstacle' must be true or false, got 'maybe'."),
    (["dam_break", "--seconds", "-1"], "--seconds must be a positive number of seconds, got -1.0."),
    (["dam_break", "--seconds", "nan"], "--seconds must be a positive number of seconds, got nan."),
    (["dam_break", "--fps", "0"], "--fps must be a positive number of frames per second, got 0.0."),
    (["dam_break", "--size", "big"], "--size must be width x height in pixels such as 1280x720, got 'big'."),
    (["dam_break", "--size", "0x720"], "--size must lie between 16 and 7680 pixels each way, got '0x720'."),
    (["dam_break", "--format", "vtk"], "unknown format 'vtk'; did you mean 'vtu'?"),
    (["dam_break", "--format", ","], "name one or more formats of vtu, npz, ply, bgeo, obj, stl, usd, png, got ','."),
    (["dam_break", "--out", "/dev/null"], "cannot write into /dev/null: /dev/null is not a folder; choose another"),
    (["dam_break", "--out", "/proc/nowhere"], "cannot write into /proc/nowhere: "),
])  # fmt: skip
def test_wrong_arguments_of_run(pliant_, words, told):
    assert sentence(pliant_("run", *words, status=2)).startswith(f"pliant: {told}")
    assert not Path("out").exists()


BAD_FILES = {
    "syntax": ("def build(:\n", "my.py is not valid Python: invalid syntax in line 1."),
    "binary": ("\x00\x01", "my.py is not valid Python: source code string cannot contain null bytes"),
    "no build": ("x = 1\n", "my.py has no function build() that returns a pliant.Scene."),
    "build is no function": ("build = 3\n", "my.py has no function build() that returns a pliant.Scene."),
    "fails when read": ("\nx = 1 / 0\n", "my.py fails in line 2 while it is read: ZeroDivisionError: division"),
    "ends Python": ("import sys\nsys.exit(3)\n", "my.py fails in line 2 while it is read: SystemExit: 3."),
    "missing import": ("import nonsense_\n", "my.py fails in line 1 while it is read: ModuleNotFoundError: No module"),
    "fails in build": ("def build():\n    return [][1]\n", "my.py fails in line 2 in build(): IndexError: list index"),
    "returns nothing": ("def build():\n    pass\n", "build() of my.py must return a pliant.Scene, got NoneType."),
    "returns text": ("def build():\n    return 'x'\n", "build() of my.py must return a pliant.Scene, got str."),
    "needs a value": ("def build(depth):\n    pass\n", "my.py needs a value for 'depth'; add --set depth=..."),
    "bad seconds": ("SECONDS = 'x'\ndef build(): pass\n", "--seconds must be a positive number of seconds, got 'x'."),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_scene_files_that_do_not_work(pliant_, kind):
    text, told = BAD_FILES[kind]
    assert sentence(pliant_("run", scene_file(text), status=2)).startswith(f"pliant: {told}")


def test_a_file_that_is_not_python(pliant_):
    told = sentence(pliant_("run", scene_file("hello", "notes.txt"), status=2))
    assert told == "pliant: notes.txt is not a .py file; a scene is a .py file with build()."


def test_all_problems_of_a_scene_with_a_bullet_each(pliant_):
    wrong = SCENE.replace("pl.Fluid()", "pl.Fluid(density=-1, viscosity=-1)").replace("radius=radius", "raduis=radius")
    first, *rest = pliant_("run", scene_file(wrong), status=2).splitlines()
    assert first == "pliant: the scene cannot be built, for 3 reasons:"
    assert len(rest) == 3 and all(line.startswith("  • ") and line.endswith((".", "?")) for line in rest)
    assert not Path("out/my/run.json").exists()


@pytest.mark.parametrize(("text", "example", "value"), [
    ("3", 1, 3), ("1e3", 1, 1000), ("-4", 1.0, -4.0), ("no", True, False), ("ON", False, True), ("a b", "", "a b"),
    ("1,2.5,-3", (0, 0, 0), (1, 2.5, -3)), ("(1, 2)", [0, 0], [1, 2]), ("7", (0,), (7,)), ("None", None, None),
    ("[1, 2]", None, [1, 2]), ("word", None, "word"),
])  # fmt: skip
def test_values_of_options(text, example, value):
    parsed = loading.parse_value("x", text, example)
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(("text", "example"), [("2.5", 1), ("", 1), ("inf", 1.0), ("1,2", (0, 0, 0)), ("a,b", (0, 0))])
def test_values_that_do_not_fit(text, example):
    with pytest.raises(PliantError, match=r"option 'x' must be .*, got '"):
        loading.parse_value("x", text, example)


# --- the other commands -----------------------------------------------------------------------------


def test_scenes_are_listed_with_their_options(pliant_):
    text = pliant_("scenes")
    for name in loading.scene_names():
        assert name in text
    assert "obstacle=True" in text and "A column" in text


def test_every_scene_has_a_line_about_it_and_builds_a_scene():
    for name in loading.scene_names():
        source = loading.find_scene(name)
        assert source.module.__doc__ and callable(source.module.check)
        assert loading.make_scene(source, {}).problems() == []


@pytest.mark.parametrize("tool", ["bench", "validate"])
def test_tools_get_all_further_words(pliant_, monkeypatch, tool):
    given = []
    module = types.SimpleNamespace(main=lambda words: given.extend(words) or 7)
    monkeypatch.setitem(sys.modules, f"pliant.tools.{tool}", module)
    pliant_(tool, "fluid", "--steps", "3", "--help", status=7)
    assert given == ["fluid", "--steps", "3", "--help"]


def test_a_tool_that_is_not_there(pliant_, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    told = sentence(pliant_("validate", status=2))
    assert told == "pliant: pliant validate needs the module pliant.tools.validate, which is not installed."


def test_version_and_unknown_commands(pliant_):
    assert pliant_("--version") == f"pliant {pliant.__version__}\n"
    assert "No such command 'frobnicate'" in pliant_("frobnicate", status=2)
    assert "No such option" in pliant_("run", "--frobnicate", status=2)
    assert "'--seconds'" in pliant_("run", "--seconds", "much", status=2)


# --- as a process -----------------------------------------------------------------------------------


def start(*words):
    quiet = {**os.environ, "ENABLE_TAICHI_HEADER_PRINT": "0"}
    return subprocess.Popen([sys.executable, "-m", "pliant", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=quiet)  # fmt: skip


def test_a_refusal_as_a_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = start("run", "dam_break", "--set", "radius=-1")
    told = process.communicate(timeout=300)[1].splitlines()
    assert process.returncode == 2
    assert told[0] == "pliant: the scene cannot be built:" and told[1].startswith("  • Scene: particle_radius must be")
    assert len(told) == 2


def test_ctrl_c_as_a_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = start("run", "dam_break", "--set", "radius=0.1", "--seconds", "1000", "--format", "vtu")
    patience = time.monotonic() + 300
    while not Path("out/dam_break/frames/water_0002.vtu").exists() and time.monotonic() < patience:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=300)[1]
    assert process.returncode == 130
    assert "Traceback" not in told and "Interrupted at t = " in told
    run = record("out/dam_break")
    assert run["status"] == "interrupted"
    assert len(list(Path("out/dam_break/frames").glob("*.vtu"))) == len(run["frames"])
    assert not list(Path("out/dam_break").rglob(".*"))
