"""The benchmark of rigid bodies: what it runs, and that both sides get the same."""

import dataclasses
import json
import sys

import numpy as np
import pytest

from pliant.tools import bench, bench_rigid, peer


def small(kind, bodies):
    return bench_rigid.Spec(kind, bodies, 3, 1, block=(8, 6, 8))


@pytest.mark.parametrize("kind, bodies", [("columns", 10), ("heap", 8), ("water", 4)])
def test_a_run_tells_what_rigid_bodies_take(kind, bodies):
    result = bench_rigid.measure_given(json.loads(json.dumps(dataclasses.asdict(small(kind, bodies)))))
    assert result["bodies"] == bodies and (result["particles"] > 0) == (kind == "water")
    assert 0.0 < result["share"] <= 1.0 and result["real_time"] > 0.0 and result["energy"] >= 0.0
    assert list(result["phases"]) == ["1", "2", "3"]


def test_the_peer_gets_the_same_boxes(monkeypatch):
    monkeypatch.setitem(sys.modules, "peer", peer)
    from pliant.tools import peer_rigid

    spec = small("water", 7)
    assert np.allclose(peer_rigid.places(dataclasses.asdict(spec)), bench_rigid.places(spec))


def test_table_and_ratio(monkeypatch, tmp_path, capsys):
    asked = []

    def run_child(command, spec, environment):
        asked.append((command[0] == sys.executable, spec.kind))
        ms = 8.0 if command[0] == sys.executable else 24.0
        own = {"bodies": spec.bodies, "particles": 5, "ms_mean": ms, "real_time": 0.5, "share": 0.25,
               "phases": {"1": ms}, "cores": {"own": 1.0}}  # fmt: skip
        return {"ms": {"total": ms, "walls": 1.0}} | (own if command[0] == sys.executable else {})

    monkeypatch.setattr(bench, "run_child", run_child)
    monkeypatch.setattr(bench, "find_peer", lambda python, threads: bench.Peer(["there", "peer.py"], {}))
    file = tmp_path / "rigid.json"
    assert bench.main(["rigid", "--kinds", "heap,water", "--rounds", "1", "--json", str(file)]) == 0
    results = json.loads(file.read_text())["results"]
    assert [r.get("ratio") for r in results] == [None, 3.0], "the peer has no heap"
    assert asked == [(True, "heap"), (True, "water"), (False, "water")]
    assert "25 %" in capsys.readouterr().out


@pytest.mark.parametrize("words, sentence", [
    (["--bodies", "0"], "--bodies must be 1 or more, got 0"),
    (["--kinds", "heep"], "unknown kind 'heep'; did you mean 'heap'?"),
])  # fmt: skip
def test_wrong_words_are_told(words, sentence, capsys):
    with pytest.raises(SystemExit):
        bench_rigid.parse(words)
    assert sentence in capsys.readouterr().err
