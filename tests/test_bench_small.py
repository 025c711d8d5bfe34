"""The benchmark of small scenes: both sides get the same, and launches are counted."""

import json
import math
import sys

import pytest

import pliant as pl
from pliant.errors import PliantError
from pliant.tools import bench, bench_elastic, bench_granular, bench_small, launches, peer_elastic


@pytest.fixture
def faked(monkeypatch):
    """Both sides without running them: ours takes 6 ms, theirs 3 ms. Returns what was asked for."""
    asked = []

    def run_child(command, spec, environment):
        asked.append((command[-1], spec))
        ms = 6.0 if command[0] == sys.executable else 3.0
        if isinstance(spec, bench_granular.Case) and spec.block == (3, 3, 3):
            raise PliantError("no memory")
        return {"particles": math.prod(spec.block), "ms": {"total": ms}, "launches": 40.0, "median": ms,
                "cores": {"own": 1.0, "others": 0.0}}  # fmt: skip

    monkeypatch.setattr(bench, "run_child", run_child)
    monkeypatch.setattr(bench, "find_peer", lambda python, threads: bench.Peer(["there", "peer.py"], {}))
    return asked


def test_table_and_ratios(faked, tmp_path, capsys):
    file = tmp_path / "small.json"
    assert bench.main(["small", "--sizes", "500,27", "--rounds", "2", "--json", str(file)]) == 0
    results = json.loads(file.read_text())["results"]
    assert [(r["kind"], r["particles"]) for r in results] == [
        ("fluid", 27), ("fluid", 512), ("elastic", 27), ("elastic", 500), ("sand", 512)]  # fmt: skip
    assert [r.get("ratio") for r in results] == [0.5] * 4 + [None]
    assert len(faked) == 2 * 2 * 4 + 1 + 2, "the sand that failed was tried once"
    assert "150" in capsys.readouterr().out  # microseconds a launch


def test_blocks_have_about_as_many_particles_as_asked_for():
    for count in (100, 500, 1000, 2000, 5000):
        assert math.prod(bench_small.block_of(count)) == pytest.approx(count, rel=0.03)


def test_the_ball_falls_on_the_same_floor(tmp_path):
    options = bench_small.parse(["--steps", "2", "--warm", "1"])
    spec, _, script = bench_small.elastic(100, options, tmp_path)
    assert script == "peer_elastic.py"
    box = next(body.shape for body in bench_elastic.elastic_scene(spec).bodies if body.name == "floor")
    ours = box.center[1] + box.size[1] / 2
    scene = json.loads(peer_elastic.write_scene(bench.dataclasses.asdict(spec), [(0, 0, 0)], tmp_path).read_text())
    [floor] = scene["RigidBodies"]
    assert floor["translation"][1] + floor["scale"][1] / 2 == pytest.approx(ours) == pytest.approx(spec.floor)


def test_launches_are_counted():
    scene = pl.Scene(particle_radius=0.05)
    scene.add(pl.Box(size=(0.3, 0.3, 0.3)), pl.Fluid(), name="water")
    sim = scene.build()
    with launches.counting() as launched:
        sim.step()
    assert len(launched) > 5 and "".join(launched).isidentifier()
    sim.step()
    before = len(launched)
    assert launches.launches_per_step(sim) > 5 and len(launched) == before


@pytest.mark.parametrize("wrong", [["--sizes", "10"], ["--kinds", "smoke"], ["--rounds", "0"], ["--warm", "0"]])
def test_what_it_cannot_do_is_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        bench_small.main(wrong)
    assert wrong[1] in capsys.readouterr().err
