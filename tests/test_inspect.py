"""`pliant inspect`: a picture for every record that has frames, however poor, and one sentence for all others."""

import json
import math
import os
import sys

import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.run import inspect as inspect_run
from pliant.run.inspect import inspect

NAN, INF = math.nan, math.inf


def frame(k: int) -> dict:
    t = k / 30
    kinetic, potential = 40 * t**2, 100 - 50 * t**2
    return {
        "frame": k, "time": t, "step": 7 * k, "dt": 0.004 if k else 0.0, "wall_seconds": 0.7 * k**2,
        "iterations": {"density": k % 3, "divergence": 2 + k % 2} if k else {},
        "mean_density_error": 5e-4 * t, "max_density_error": 3e-2 * t, "max_speed": 3 * t,
        "kinetic_energy": kinetic, "potential_energy": potential, "energy": kinetic + potential,
        "momentum": [10 * t, -20 * t, 0.0], "angular_momentum": [0.0, 0.0, t],
    }  # fmt: skip


def record(count: int = 10, **changes) -> dict:
    whole = {
        "scene": "dam_break", "options": {"radius": 0.04, "obstacle": True}, "seconds": 0.3, "fps": 30.0,
        "status": "finished", "error": None, "particles": {"water": 1200, "oil": 60}, "steps": 63, "wall_seconds": 3.1,
        "milliseconds_per_step": {"pressure": 4.7, "neighbors": 3.6}, "frames": [frame(k) for k in range(count)],
    }  # fmt: skip
    return whole | changes


@pytest.fixture
def run(tmp_path):
    """Writes a record into a folder and gives the folder."""

    def write(content):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (tmp_path / "run.json").write_bytes(data)
        return tmp_path

    return write


def pixels(path, width: int = 1600) -> np.ndarray:
    """A PNG as an array, after checking its size."""
    image = pytest.importorskip("matplotlib.image").imread(path)[..., :3]
    assert image.shape == (1100 * width // 1600, width, 3)
    return image


def ink(image: np.ndarray, row: int, column: int) -> float:
    """The share of coloured (not grey) pixels in one of the 3 x 2 panels."""
    panel = image[120 + 330 * row : 420 + 330 * row, 110 + 800 * column : 740 + 800 * column]
    return float((np.ptp(panel, axis=2) > 0.2).mean())


def sentence(folder, out=None) -> str:
    with pytest.raises(PliantError) as caught:
        inspect(folder, out)
    text = str(caught.value)
    assert text and "\n" not in text and "Error" not in text
    return text


# --- pictures ---------------------------------------------------------------------------------------


def test_every_panel_has_curves(run, capsys):
    folder = run(record())
    assert inspect(folder) == folder / "inspect.png"
    image = pixels(folder / "inspect.png")
    assert all(ink(image, row, column) > 1e-3 for row in range(3) for column in range(2))
    assert sorted(os.listdir(folder)) == ["inspect.png", "run.json"]
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for part in ("radius=0.04", "particles 1,260", "frames 10 of 10", "simulated 0.3 s", "wall time 3.1 s", "steps 63",
                 "pressure, 4.7 of 8.3 ms", "max 0.9 %", "-0.9 J (-20.00 % of the largest)", "finished"):  # fmt: skip
        assert part in text, part
    assert "obstacle" not in text  # as the scene's own default


def test_the_record_itself_may_be_named_and_the_picture_too(run, tmp_path):
    file = run(record()) / "run.json"
    assert inspect(file, tmp_path / "new/curves.PNG") == tmp_path / "new/curves.PNG"
    (tmp_path / "old").mkdir()
    assert inspect(file, tmp_path / "old") == tmp_path / "old/inspect.png"
    assert (tmp_path / "old/inspect.png").read_bytes() == (tmp_path / "new/curves.PNG").read_bytes()


def test_curves(run):
    curves = inspect_run.read_curves(record())
    assert inspect_run.zero_of_energy(curves) == pytest.approx(100 - 50 * 0.09)
    assert np.isnan(curves["wall"][0]) and np.allclose(curves["wall"][1:], 100 * np.arange(1, 18, 2))
    assert np.isnan(curves["dt"][0]) and np.isnan(curves["mean_density_error"][0])
    assert np.allclose(curves["iterations/divergence"][1:4], [3, 2, 3])


def test_tolerance_is_found():
    assert inspect_run.tolerance(record(tolerance=2e-3)) == 2e-3
    assert inspect_run.tolerance(record(solver={"max_density_error": 1e-4})) == 1e-4
    assert math.isnan(inspect_run.tolerance(record()))


def test_options_that_differ():
    assert inspect_run.changed_options(record()) == "radius=0.04"
    assert inspect_run.changed_options(record(scene="mine", options={"a": 1, "b": [1, 2]})) == "a=1, b=[1, 2]"
    assert inspect_run.changed_options(record(options=None)) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"frames": [frame(5)]},
        {"frames": [{}, {}, {}]},
        {"frames": [frame(0), frame(1) | dict.fromkeys(["energy", "kinetic_energy", "max_speed", "dt"], NAN)]},
        {"frames": [{**frame(k), "energy": INF, "momentum": [NAN, -INF, 1e308], "max_speed": 10**400} for k in (1, 2)]},
        {"frames": [{k: "text" for k in frame(0)}, {k: None for k in frame(0)}, {k: [1] for k in frame(0)}]},
        {"frames": [frame(1) | {"max_speed": 1e99, "mean_density_error": 1e-99}, frame(2)]},
        {"scene": "a$b$ ^{ [red]", "options": {"$x": "[/]"}, "status": "failed", "error": "first\nline " * 90},
        {"scene": None, "options": [1], "particles": 3, "status": 7, "fps": "x", "milliseconds_per_step": {"a": None}},
        {"scene": "../cli", "fps": 0, "seconds": NAN, "particles": {"water": NAN}, "wall_seconds": "long"},
    ],
    ids=lambda changes: "+".join(changes),
)
def test_poor_records_still_give_a_picture(run, capsys, monkeypatch, changes):
    monkeypatch.setattr(inspect_run, "DPI", 25)  # a quarter, for speed
    assert pixels(inspect(run(record(3, **changes))), width=400).min() < 0.5
    text = capsys.readouterr().out
    assert "nan" not in text.split() and str(changes.get("scene", "dam_break")) in text


def test_only_frames_are_needed_and_what_is_not_finite_is_told(run, capsys):
    image = pixels(inspect(run({"frames": [frame(0), frame(1), frame(2) | {"energy": NAN}]})))
    assert ink(image, 0, 0) > 1e-3
    assert "1 of 3 frames" in capsys.readouterr().out


# --- sentences --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a whole JSON file"),
        (json.dumps(record()).encode()[:-200], "not a whole JSON file"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "not a whole JSON file"),
        (b"[" * 100_000, "not a whole JSON file"),
        ([1, 2], "not the record of a Pliant run"),
        ({"scene": "dam_break"}, "not the record of a Pliant run"),
        ({"frames": {"a": 1}}, "not the record of a Pliant run"),
        ({"frames": [1, 2]}, "not the record of a Pliant run"),
        (record(0, status="running"), "no frames; the run's status is running"),
        (record(0, status="failed", error="it\nbroke"), "failed: it broke"),
        ({"frames": []}, "unknown"),
    ],
)
def test_broken_records_are_told_in_a_sentence(run, content, words):
    folder = run(content)
    assert words in sentence(folder)
    assert not (folder / "inspect.png").exists()


def test_missing_folders_and_records(tmp_path):
    assert "no folder or file" in sentence(tmp_path / "nowhere")
    assert "has no run.json" in sentence(tmp_path)
    assert "cannot be read" in sentence(tmp_path / ("x" * 5000))


def test_pictures_that_cannot_be_written(run, tmp_path):
    folder = run(record(2))
    (tmp_path / "file").write_text("in the way")
    assert "cannot write" in sentence(folder, tmp_path / "file/curves.png")
    assert ".png" in sentence(folder, tmp_path / "curves.pdf")


def test_without_matplotlib(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install matplotlib" in sentence(run(record(2)))
