"""What the viewer's panels write and plot: letters, numbers, and how numbers were."""

import itertools
import math

import numpy as np
import pytest

from pliant.viewer import paint
from pliant.viewer.brush import Brush, fitted, plain, text_width, wrapped
from pliant.viewer.messages import Figures
from pliant.viewer.paint import figure
from pliant.viewer.statistics import EVERY, PLOTS, SAMPLES, History, stages


@pytest.mark.parametrize("value, unit, text", [
    (1000.0, "kg/m^3", "1000 kg/m^3"), (2e5, "Pa", "200 kPa"), (1.5e9, "Pa", "1.50 GPa"),
    (1e-6, "m^2/s", "1.00·10^-6 m^2/s"), (0.3, "1", "0.300"), (35.0, "degree", "35.0°"), (0.0, "N/m", "0 N/m"),
    (-9.81, "m/s^2", "-9.81 m/s^2"), (math.nan, "m", "nan m"), (math.inf, "", "inf"), (12345.0, "m", "12.3·10^3 m"),
])  # fmt: skip
def test_numbers_are_written_as_people_write_them(value, unit, text):
    assert figure(value, unit) == text


def ink(text, size=20):
    brush = Brush(400, 60, 1.0, (0, 0, 0, 255))
    width = brush.text(10, 30, text, size, (255, 255, 255, 255))
    return np.asarray(brush.image)[..., 0], width


def test_text_is_as_wide_as_it_says():
    for text in ("Simulation", "WAVE 1234", "kg/m^3", "iiii"):
        pixels, width = ink(text)
        columns = np.nonzero(pixels.max(axis=0))[0]
        assert width == text_width(text, 20)
        assert columns.min() >= 9 and columns.max() <= 10 + width + 1
        assert columns.max() - columns.min() > width - 6, "no more than the room beside the letters is left"


def test_exponents_are_raised():
    low, high = ink("m2")[0], ink("m^2")[0]
    assert np.nonzero(high.max(axis=1))[0].min() < np.nonzero(low.max(axis=1))[0].min()
    assert text_width("m^2", 20) < text_width("m2", 20), "and smaller"


def test_capitals_stand_in_the_middle():
    rows = np.nonzero(ink("H")[0].max(axis=1) > 100)[0]
    assert (rows.min() + rows.max() + 1) / 2 == pytest.approx(30, abs=1.0)


def test_letters_that_the_font_lacks_become_near_ones():
    assert plain("Bücher – 2×3 … 猫") == "Bucher - 2x3 ... ?"


def test_long_text_is_cut_or_wrapped():
    text = "a surface that bulges by a hair is the lesser evil"
    short = fitted(text, 13, 120)
    assert short.endswith("...") and text.startswith(short[:-3]) and text_width(short, 13) <= 120
    assert fitted(text, 13, 1000) == text
    lines = wrapped(text, 13, 120)
    assert " ".join(lines) == text and all(text_width(line, 13) <= 120 for line in lines) and len(lines) > 2
    long = wrapped("/a/path/without/a/single/space/in/it/that/is/far/too/long.png", 13, 120)
    assert "".join(long).endswith("long.png") and all(text_width(line, 13) <= 120 for line in long)
    assert wrapped("one\n\ntwo", 13, 120) == ("one", "", "two")


def test_numbers_under_a_colour_bar_do_not_touch():
    for low, high in itertools.product((0.0, 999.9, -3e4), (1e3, 1000.01, 5e6)):
        marks = paint._marks(low, high, 280.0, 1.0)
        ends = [((v - low) / (high - low) * 280, text_width(text, paint.SMALL) / 2) for text, v in marks]
        assert all(a + ra < b - rb for (a, ra), (b, rb) in itertools.pairwise(ends)), (low, high, marks)


def figures(step, density_error):
    seconds, iterations = {"neighbors": 0.0045, "pressure": 0.03}, {"density": 12, "divergence": 2}
    return Figures(1.0, 8e-4, step, 30.0, 0.1, seconds, iterations, density_error, 2.0, 10.0)


def test_history_keeps_even_samples_and_starts_anew_after_a_reset():
    past = History()
    for k in range(1000):
        past.add(figures(k, 0.01), 30.0, k * EVERY / 4)
    assert [len(series) for series in past.series.values()] == [SAMPLES] * len(PLOTS)
    assert set(past.series["Density error"]) == {1.0} and set(past.series["Window"]) == {30.0}
    past.add(figures(1000, 0.02), 30.0, 1e4)
    past.add(figures(1000, 0.03), 30.0, 1.1e4)
    assert past.series["Density error"][-1] == 2.0, "a simulation that stands still adds nothing"
    past.add(figures(1, 0.01), 30.0, 1.9e4)
    assert not past.series["Step"], "the first step compiles, and would dwarf all others"
    past.add(figures(3, 0.01), 30.0, 2e4)
    assert [len(series) for series in past.series.values()] == [1] * len(PLOTS)
    assert past.series["Step"][0] == pytest.approx(34.5) and past.series["Iterations"][0] == 14


def test_short_stages_count_as_one():
    found = dict(stages({"a": 1.0, "b": 1e-3, "c": 2.0, "d": 1e-3}))
    assert found == pytest.approx({"a": 1000.0, "c": 2000.0, "others": 2.0})
    many = stages({f"s{k}": 1.0 + k for k in range(20)})
    assert len(many) == 8 and many[-1][0] == "others" and sum(v for _, v in many) == pytest.approx(1e3 * 210)
    assert stages({}) == ()
