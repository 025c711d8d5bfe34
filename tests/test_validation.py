"""Known flows at low resolution: the cases of `pliant validate --quick`, and the tool itself."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from pliant.tools import validate
from pliant.tools.validation import CASES, Result

validate.load_cases()

LOOSER: dict[tuple[str, str], float] = {}


@pytest.mark.parametrize("name", CASES)
def test_case_meets_its_targets(name: str) -> None:
    """The targets are those of the tool, but for the ones in LOOSER."""
    results = CASES[name](True)
    known = {quantity for case, quantity in LOOSER if case == name}
    assert known <= {r.quantity for r in results}, "LOOSER names a quantity that the case does not measure"
    for r in results:
        assert math.isfinite(r.measured), r
        target = LOOSER.get((name, r.quantity), r.target)
        assert target is None or abs(r.error) <= target, r


def test_poiseuille_series_at_known_points() -> None:
    """Values of the series computed independently [m/s]."""
    from pliant.tools.validation.viscous import PEAK, poiseuille_series

    y = np.array([1e-4, 5e-4])
    assert poiseuille_series(y, 0.0225) == pytest.approx([1.254566e-6, 2.232738e-6], rel=1e-5)
    assert poiseuille_series(y, 0.225) == pytest.approx([4.067315e-6, 1.109980e-5], rel=1e-5)
    assert poiseuille_series(y, 10.0)[1] == pytest.approx(PEAK)


def test_table_json_and_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fake(quick: bool) -> list[Result]:
        return [Result("length", 1.0, 1.1, 0.1, 0.05 if quick else 0.2, "m"), Result("noise", 3.0, 0.0, 3.0)]

    monkeypatch.setitem(CASES, "fake", fake)
    file = tmp_path / "out.json"
    assert validate.main(["fake", "--json", str(file)]) == 0
    assert "reported" in capsys.readouterr().out
    assert validate.main(["fake", "--quick", "--json", str(file)]) == 1
    assert "missed" in capsys.readouterr().out
    written = json.loads(file.read_text())
    assert written["quick"] is True
    assert [row["met"] for row in written["cases"]["fake"]] == [False, True]


def test_what_is_no_number_meets_no_target() -> None:
    assert not Result("arrival", math.nan, 1.0, math.nan, 0.05).met


def test_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        validate.main(["hydrostatics"])
    assert "unknown case 'hydrostatics'" in capsys.readouterr().err
