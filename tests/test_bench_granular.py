"""`pliant bench granular`: what it measures adds up, and it refuses what it cannot do."""

import dataclasses
import json

import pytest

from pliant.tools import bench, bench_granular

TINY = bench_granular.Case((6, 4, 4), 5, 16e-3, steps=2, warm=1)


def test_a_measurement_adds_up_and_its_table_says_so():
    result = bench_granular.measure(TINY)
    assert result["particles"] == 96 and result["grains"] == 480
    assert sum(result["ms"].values()) == pytest.approx(result["total"])
    assert 0 < result["share"] < 1 and result["frame"] > 0
    table = bench_granular.table([{"case": "tiny", **result}, {"case": "again", **result}])
    assert [column.header for column in table.columns] == ["", "tiny", "again"]
    assert table.row_count == 2 + len(bench_granular.STAGES) + 9


def test_cases_have_the_numbers_they_are_named_for():
    thesis, bulldozer = bench_granular.CASES["thesis"], bench_granular.CASES["bulldozer"]
    assert bench.math.prod(thesis.block) == 8192 and thesis.grains * 8192 == pytest.approx(500_000, rel=0.01)
    assert bench.math.prod(bulldozer.block) == 38_000 and bulldozer.grains * 38_000 == pytest.approx(1.4e6, rel=0.01)


def test_each_case_runs_in_a_process_of_its_own(monkeypatch, tmp_path):
    asked = []

    def run_child(command, case, environment):
        asked.append((command[-1], case, environment["TI_CPU_MAX_NUM_THREADS"]))
        return bench_granular.measure(dataclasses.replace(TINY, grains=case.grains % 3))

    monkeypatch.setattr(bench, "run_child", run_child)
    options = ["--cases", "bulldozer", "--steps", "7", "--threads", "1", "--json", str(tmp_path / "found.json")]
    assert bench_granular.main(options) == 0
    assert [(flag, case.steps, threads) for flag, case, threads in asked] == [("--child", 7, "1")]
    assert json.loads((tmp_path / "found.json").read_text())["results"][0]["case"] == "bulldozer"


@pytest.mark.parametrize("wrong", [["--cases", "thesys"], ["--steps", "0"], ["--threads", "-1"]])
def test_what_it_cannot_do_is_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        bench_granular.main(wrong)
    assert wrong[1].lstrip("-") in capsys.readouterr().err
