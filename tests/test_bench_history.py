"""The history of benchmarks: ratios out of every kind of result, appended and shown."""

import json

import pytest

import pliant
from pliant.tools import bench, bench_history

FLUID = {"settings": {"solver": "DFSPH", "error": 1e-3}, "results": [{"size": "2k", "ratio": 0.3141}, {"size": "10k"}]}
ELASTIC = {"settings": {"error": 1e-4}, "results": [
    {"size": "1k", "ratios": {"split": {"elasticity": 2.0, "total": 4.0}, "peer": {}}}]}  # fmt: skip
SMALL = {"settings": {}, "results": [{"kind": "fluid", "particles": 100, "ratio": 0.03},
                                     {"kind": "sand", "particles": 100}]}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{k}.json" for k in range(3)]
    for path, result in zip(paths, (FLUID, ELASTIC, SMALL), strict=True):
        path.write_text(json.dumps(result))
    return paths


def test_results_of_all_benchmarks_are_recorded_and_shown(files, tmp_path, capsys):
    own = tmp_path / "history.json"
    words = ["history", "--file", str(own), "--machine", "an abacus", "--record", *map(str, files)]
    assert bench.main(words) == 0 and bench.main(words) == 0
    first, second = json.loads(own.read_text())
    wanted = {"DFSPH 0.1 %, 2k": 0.314, "elastic split, 1k": 0.25, "small fluid, 100": 0.03}
    assert first == second and first["ratios"] == wanted
    assert (first["version"], first["machine"]) == (pliant.__version__, "an abacus")
    out = capsys.readouterr().out
    assert "an abacus" in out and "0.31" in out


def test_the_history_of_the_project_is_shown(capsys):
    assert bench.main(["history"]) == 0
    out = capsys.readouterr().out
    assert "0.1.0" in out and "elastic split, 32k" in out
    for entry in bench_history.read_history(bench_history.FILE):
        assert all(ratio > 0 for ratio in entry["ratios"].values()) and entry["date"] and entry["machine"]


@pytest.mark.parametrize(("text", "told"), [
    ("{", "is not a result"), ('{"results": []}', "is not a result"), ("[1]", "is not a result"),
    ('{"settings": {}, "results": []}', "has no ratios"),
])  # fmt: skip
def test_what_is_no_result_is_refused(tmp_path, capsys, text, told):
    file, own = tmp_path / "wrong.json", tmp_path / "history.json"
    file.write_text(text)
    assert bench.main(["history", "--file", str(own), "--record", str(file)]) == 1
    assert told in " ".join(capsys.readouterr().err.split()) and not own.exists()
