"""`pliant bench emission`: what it measures, and what it refuses."""

import pytest

from pliant.tools import bench_emission


def test_a_scene_that_has_grown_steps_as_one_that_was_built():
    result = bench_emission.measure(bench_emission.Case(600, steps=2))
    assert result["particles"] >= 600 and result["doublings"] > 5 and result["compiled_anew"] == 0
    assert 0 < result["births_share"] < 1 and result["ratio"] > 0
    assert bench_emission.table([result]).row_count == 1


@pytest.mark.parametrize("wrong", [["--sizes", "many"], ["--sizes", "10"], ["--steps", "0"], ["--threads", "0"]])
def test_what_it_cannot_do_is_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        bench_emission.main(wrong)
    assert wrong[1] in capsys.readouterr().err
