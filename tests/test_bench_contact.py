"""`pliant bench contact`: what it measures, and what it refuses."""

import pytest

from pliant.tools import bench_contact


def test_states_are_what_they_are_called(monkeypatch):
    monkeypatch.setattr(bench_contact, "SETTLED", 0.1)
    result = bench_contact.measure(bench_contact.Case(108, steps=2))
    states = result["states"]
    assert result["particles"] == 125 and tuple(states) == bench_contact.STATES
    assert states["settling"]["sweeps"] > states["free"]["sweeps"] and states["lying"]["sweeps"] > 0
    assert bench_contact.table([result]).row_count == 4


@pytest.mark.parametrize("wrong", [["--sizes", "many"], ["--sizes", "10"], ["--steps", "0"], ["--threads", "0"]])
def test_what_it_cannot_do_is_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        bench_contact.main(wrong)
    assert wrong[1] in capsys.readouterr().err
