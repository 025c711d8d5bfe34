"""The benchmark of elastic bodies: its settings are equal on both sides, and its tables hold what was measured."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pliant.geometry import sample_regular
from pliant.tools import bench, bench_elastic, peer_elastic


def fake_run(spec: bench_elastic.Spec, elasticity: float) -> dict[str, Any]:
    """What a run returns, with made-up numbers."""
    return {
        "particles": spec.count, "held": 10, "ms": {"elasticity": elasticity, "total": elasticity + 4.0, "cg": 1.0},
        "iterations": 17.0, "tolerant": True, "factor": 1.25, "setup": 1.5, "startup": 2.0, "megabytes": 250.0,
        "megabytes_before": 40.0, "cores": {"own": 2.0, "others": 0.0}, "centre": {"x": 1e-3, "y": -2e-3, "z": 0.0},
        "time": 0.1,
    }  # fmt: skip


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> list[bench_elastic.Spec]:
    """Both sides without running them: ours takes 6 ms, theirs 12 ms. Returns what was asked for."""
    asked = []

    def run_child(command: list[str], spec: bench_elastic.Spec, environment: dict[str, str]) -> dict[str, Any]:
        asked.append(spec)
        return fake_run(spec, 6.0 if command[0] == sys.executable else 12.0)

    monkeypatch.setattr(bench, "run_child", run_child)
    monkeypatch.setattr(bench, "find_peer", lambda python, threads: bench.Peer(["there", "peer.py"], {}))
    return asked


def test_tables_and_ratios(faked: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "elastic.json"
    assert bench.main(["elastic", "--sizes", "4k,1k", "--rounds", "2", "--json", str(file)]) == 0
    results = json.loads(file.read_text())["results"]
    assert [r["size"] for r in results] == ["1k", "4k"]
    assert list(results[0]["runs"]) == ["Pliant split", "SPlisHSPlasH split", "Pliant peer", "SPlisHSPlasH peer"]
    assert results[0]["ratios"]["split"] == {"elasticity": 0.5, "total": 10 / 16}
    assert [spec.method for spec in faked[:4]] == ["split", "split", "peer", "peer"]
    assert len(faked) == 2 * 2 * 4
    both = [one.name for one in bench_elastic.contestants(["split", "cg"], 2, bench.Peer(["there", "peer.py"], {}))]
    assert both == ["Pliant split", "Pliant cg", "SPlisHSPlasH split"]
    out = capsys.readouterr().out
    assert "0.50" in out and "1e6 Pa, 2 ms" in out and "250" in out


def test_sweep_is_at_one_size(faked: list, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["--young", "1e5,1e6", "--dt", "1e-3", "--methods", "split", "--sizes", "1k", "--rounds", "1"]
    assert bench_elastic.main(sweep) == 0
    assert [(spec.young, spec.dt) for spec in faked[::2]] == [(1e5, 1e-3), (1e6, 1e-3)]
    assert "1e5 Pa, 1 ms" in capsys.readouterr().out
    assert bench_elastic.parse(["--dt", "1e-3,2e-3"]).sizes == ["32k"]


def test_failures_and_disturbed_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = bench_elastic.Spec("split", 1000, None, 1.0, 0.04, 0.04, -0.38, "", 1e6, 2e-3, 5, 1)
    disturbed = iter([1.0, 0.5, 0.0, 0.0])

    def run_child(command: list[str], spec: bench_elastic.Spec, environment: dict[str, str]) -> dict[str, Any]:
        if spec.method == "peer":
            raise bench.PliantError("no memory")
        return fake_run(spec, 6.0) | {"cores": {"own": 1.0, "others": next(disturbed)}}

    monkeypatch.setattr(bench, "run_child", run_child)
    everyone = bench_elastic.contestants(["split", "peer"], 2, None)
    runs = bench_elastic.compare(spec, 1, 5, everyone)
    assert list(runs) == ["Pliant split"] and runs["Pliant split"]["cores"]["others"] == 0.0
    assert next(disturbed) == 0.0  # the third try was the last
    assert bench_elastic.ratios(runs, "split") == {}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sizes", "9k"], "unknown size '9k'"),
        (["--methods", "magic"], "unknown method 'magic'"),
        (["--young", "stiff"], "must be numbers"),
        (["--dt", "0"], "must be positive"),
        (["--rounds", "0"], "must be positive"),
    ],
)
def test_wrong_options(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["elastic", *words])
    assert sentence in capsys.readouterr().err


def test_size_gives_the_radius_of_the_paper(tmp_path: Path) -> None:
    [(_, spec)] = bench_elastic.cases(bench_elastic.parse(["--sizes", "32k"]), tmp_path)
    assert spec.radius == pytest.approx(0.0127, rel=1e-3)
    points = np.load(spec.points)
    assert len(points) == pytest.approx(spec.count, rel=0.03)
    assert 0.01 < (points[:, 1] < spec.bottom).mean() < 0.1


def test_mesh_gets_the_volume_of_the_ball(tmp_path: Path) -> None:
    mesh = tmp_path / "cube.obj"
    from pliant.tools.peer import CUBE

    mesh.write_text(CUBE + "\n")
    shape = bench_elastic.body_shape(str(mesh))
    assert shape.volume() == pytest.approx(bench_elastic.body_shape(None).volume())
    [(_, spec)] = bench_elastic.cases(bench_elastic.parse(["--sizes", "1k", "--mesh", str(mesh)]), tmp_path)
    assert spec.scale == pytest.approx(float(shape.scale))
    assert len(np.load(spec.points)) == len(sample_regular(shape, 2 * spec.radius)[0])


@pytest.mark.parametrize("method", peer_elastic.METHODS)
def test_peer_has_the_same_body(method: str, tmp_path: Path) -> None:
    options = bench_elastic.parse(["--sizes", "1k", "--young", "2e5"])
    [(_, spec)] = bench_elastic.cases(options, tmp_path)
    points = np.load(spec.points)
    asked = dataclasses.asdict(dataclasses.replace(spec, method=method))
    scene = json.loads(peer_elastic.write_scene(asked, points, tmp_path).read_text())
    [material] = scene["Materials"]
    elastic = material[peer_elastic.METHODS[method][1]]
    volume = (2 * scene["Configuration"]["particleRadius"]) ** 3
    assert len(points) * volume * material["density0"] == pytest.approx(
        bench_elastic.body_shape(None).volume() * spec.density
    )
    assert elastic["youngsModulus"] == 2e5 and elastic["fixedBoxMax"][1] == spec.bottom
    assert scene["Configuration"]["timeStepSize"] == spec.dt
    rows = (tmp_path / "body.pda").read_text().split("BEGIN DATA\n")[1].splitlines()
    assert np.allclose(np.array([row.split() for row in rows], dtype=float), points)


def test_memory_is_told() -> None:
    assert peer_elastic.peak_megabytes() > 10 or sys.platform != "linux"
