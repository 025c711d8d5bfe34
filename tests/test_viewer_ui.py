"""The viewer's panels: widgets do what a hand expects, only what has changed is drawn, everything fits the window."""

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest

from pliant.core.data import Snapshot, TriMesh
from pliant.render.render_scene import CloudStyle, RenderScene, RenderWall
from pliant.viewer import layers, paint
from pliant.viewer.messages import COMMANDS, Figures, Knob, Moment, Notice, Opened
from pliant.viewer.notices import FADES, KEYS, STAYS, Extras
from pliant.viewer.panels import VIEWS, WINDOW_COMMANDS, Panels
from pliant.viewer.state import LIMITS, ViewState
from pliant.viewer.statistics import PLOTS, SAMPLES
from pliant.viewer.ui import CYCLE, TIP_AFTER, Pointer, Ui, share_of, value_at

FRAME = 1 / 30  # [s]
AWAY = (2000.0, 2000.0)  # where there is no panel
SIZES = [(800, 600), (1280, 720), (1920, 1080)]


class Hand:
    """A user in front of some widgets: `draw(ui)` is called once a frame, what it returns is `got`."""

    def __init__(self, draw, width=640, height=480, scale=1.0):
        self.ui, self.draw, self.size, self.now = Ui(scale), draw, (width, height), 0.0
        self.at, self.down, self.got = AWAY, False, None
        self.frame()
        self.frame()  # panels at the lower edge have found their places by now

    def frame(self, wheel=0.0, tapped=False, seconds=FRAME):
        self.now += seconds
        self.ui.begin(Pointer(*self.at, self.down, wheel, tapped), *self.size, self.now)
        self.got = self.draw(self.ui)
        self.image = self.ui.end()
        return self.got

    def move(self, x, y):
        self.at = (x, y)
        return self.frame()

    def spot(self, name, u=0.5, v=0.5):
        """A point of a widget, from its upper left (0, 0) to its lower right (1, 1) corner."""
        x, y, w, h = self.ui.places[name]
        return x + u * w, y + v * h

    def press(self, name=None, u=0.5, v=0.5):
        if name:
            self.move(*self.spot(name, u, v))
        self.down = True
        return self.frame()

    def release(self):
        self.down = False
        return self.frame()

    def click(self, name, u=0.5, v=0.5):
        """Answers with what came when the button was let go."""
        self.press(name, u, v)
        return self.release()


def boxes(ui):
    """Left, top, right, bottom of the panels of a frame, and whether each may lie over others [pixels]."""
    return {layer.name: (*ui._box(layer), layer.above) for layer in ui._order}


# --- widgets ---------------------------------------------------------------------------------------------------------


def one_panel(body, x=20, y=20, width=200, **options):
    def draw(ui):
        with ui.panel("P", x, y, width, **options):
            return body(ui)

    return draw


def test_a_button_acts_when_it_is_pressed_and_let_go():
    hand = Hand(one_panel(lambda ui: ui.button("Go")))
    assert not hand.press("P/Go")
    assert hand.release()
    assert not hand.frame()


def test_a_button_that_the_pointer_leaves_does_not_act():
    hand = Hand(one_panel(lambda ui: ui.button("Go")))
    hand.press("P/Go")
    hand.move(*AWAY)
    assert not hand.release()
    hand.press()
    hand.move(*hand.spot("P/Go"))
    assert not hand.release(), "pressed elsewhere"


def test_a_click_between_two_frames_is_not_lost():
    hand = Hand(one_panel(lambda ui: ui.button("Go")))
    hand.move(*hand.spot("P/Go"))
    assert hand.frame(tapped=True)
    assert not hand.frame()


def test_a_button_that_is_off_does_nothing():
    hand = Hand(one_panel(lambda ui: ui.button("Go", enabled=False)))
    assert not hand.click("P/Go")


def test_a_checkbox_changes_with_each_click():
    hand = Hand(one_panel(lambda ui: ui.checkbox("On", False)))
    assert hand.click("P/On") is True
    hand.draw = one_panel(lambda ui: ui.checkbox("On", True))
    assert hand.click("P/On") is False
    assert hand.frame() is True, "otherwise it stays as it is given"


def test_a_fold_opens_and_closes():
    hand = Hand(one_panel(lambda ui: ui.fold("Tree", False)))
    assert hand.click("P/Tree") is True
    hand.draw = one_panel(lambda ui: ui.fold("Tree", None))
    assert hand.click("P/Tree") is False, "nothing inside"


def test_segments_choose_one():
    hand = Hand(one_panel(lambda ui: ui.segments("Axis", "x", {"x": "X", "y": "Y"})))
    assert hand.click("P/Axis/y") == "y"
    assert hand.click("P/Axis/x") == "x"


class Dial:
    """Remembers what a slider says."""

    def __init__(self, value=5.0, low=0.0, high=10.0, log=False, **options):
        self.value, self.ends, self.log = value, (low, high), log
        self.draw = one_panel(self.body, **options)

    def body(self, ui):
        self.value = ui.slider("S", self.value, *self.ends, self.log)
        return self.value


TRACK = 0.8  # height of a slider's track in its box; its text is above 0.5


def test_a_slider_follows_the_pointer_also_beside_it():
    dial = Dial()
    hand = Hand(dial.draw)
    assert hand.press("P/S", 0.25, TRACK) == pytest.approx(2.5, abs=0.2), "a click on the track jumps there"
    x, y = hand.spot("P/S", 0.75, TRACK)
    assert hand.move(x, y + 200) == pytest.approx(7.5, abs=0.2)
    assert hand.move(5000, y) == 10.0, "its end, exactly"
    assert hand.move(-5000, y) == 0.0
    hand.release()
    assert hand.move(x, y) == 0.0, "let go"


def test_a_slider_moves_slower_by_its_text():
    dial = Dial()
    hand = Hand(dial.draw)
    x, y, w, _ = hand.ui.places["P/S"]
    assert hand.press("P/S", 0.9, 0.2) == 5.0, "no jump"
    length = w - 2 * paint.KNOB
    assert hand.move(x + 0.9 * w + 0.5 * length, y) == pytest.approx(5.0 + 0.1 * 0.5 * 10, rel=1e-9)


def test_the_wheel_moves_a_slider_by_a_hundredth():
    dial = Dial()
    hand = Hand(dial.draw)
    hand.move(*hand.spot("P/S"))
    assert hand.frame(wheel=2.0) == pytest.approx(5.2, rel=1e-12)
    assert hand.frame(wheel=-1.0) == pytest.approx(5.1, rel=1e-12)
    hand.move(*AWAY)
    assert hand.frame(wheel=1.0) == pytest.approx(5.1, rel=1e-12)


def test_a_value_beyond_the_ends_stays_until_it_is_moved():
    dial = Dial(value=50.0)
    hand = Hand(dial.draw)
    hand.move(*hand.spot("P/S"))
    assert hand.frame() == 50.0
    assert hand.press("P/S", 0.5, TRACK) == pytest.approx(5.0, abs=0.2)


@pytest.mark.parametrize("low, high, log", [(0, 10, False), (-20, 20, False), (1e-7, 10, True), (50, 2e4, True)])
def test_places_and_values_of_a_slider_agree(low, high, log):
    assert (value_at(0.0, low, high, log), value_at(1.0, low, high, log)) == (low, high)
    shares = np.linspace(0.0, 1.0, 41)
    values = [value_at(s, low, high, log) for s in shares]
    assert [share_of(v, low, high, log) for v in values] == pytest.approx(shares, abs=1e-12)
    steps = np.diff(np.log(values) if log else values)
    assert steps == pytest.approx([steps[0]] * 40, rel=1e-6), "even steps, of the logarithm if it is logarithmic"


def test_a_logarithmic_slider_shows_zero_at_its_end_and_refuses_to_begin_there():
    assert share_of(0.0, 1e-7, 10.0, True) == 0.0
    with pytest.raises(ValueError, match="0 < low < high"):
        Hand(Dial(low=0.0, log=True).draw)


def test_only_the_slider_that_was_pressed_moves():
    values = {"A": 5.0, "B": 5.0}

    def body(ui):
        for name in values:
            values[name] = ui.slider(name, values[name], 0.0, 10.0)

    hand = Hand(one_panel(body))
    hand.press("P/A", 0.3, TRACK)
    hand.move(*hand.spot("P/B", 0.9, TRACK))
    assert values["B"] == 5.0 and values["A"] == pytest.approx(9.0, abs=0.3)


FIELDS = [f"field {k}" for k in range(15)]


class Chooser:
    def __init__(self, **options):
        self.value, self.pressed = FIELDS[0], 0

        def body(ui):
            self.value = ui.choice("By", self.value, FIELDS)
            self.pressed += ui.button("Below")

        self.draw = one_panel(body, **options)


def test_a_choice_opens_a_list_from_which_one_is_picked():
    chooser = Chooser()
    hand = Hand(chooser.draw)
    hand.click("P/By", 0.8)
    hand.frame()
    assert [name for name in hand.ui.places if name.startswith("list/")] == [f"list/{name}" for name in FIELDS]
    hand.click("list/field 9")
    hand.frame()
    assert chooser.value == "field 9"
    assert not any(name.startswith("list/") for name in hand.ui.places), "closed"


def test_a_click_elsewhere_closes_a_list_and_does_nothing_else():
    chooser = Chooser()
    hand = Hand(chooser.draw)
    hand.click("P/By", 0.8)
    hand.move(*hand.spot("P/By", 0.1))
    hand.press()
    assert hand.ui.captures
    hand.release()
    assert "list/field 0" not in hand.ui.places
    hand.click("P/By", 0.8)
    hand.frame()
    hand.move(600, 460)
    hand.press()
    assert hand.ui.captures, "the camera must not turn either"
    hand.release()
    hand.frame()
    assert chooser.value == FIELDS[0] and "list/field 0" not in hand.ui.places
    hand.press()
    assert not hand.ui.captures


def test_what_lies_under_a_list_cannot_be_clicked():
    chooser = Chooser()
    hand = Hand(chooser.draw)
    hand.click("P/By", 0.8)
    hand.frame()
    hand.click("P/Below", 0.8)
    hand.frame()
    assert chooser.pressed == 0 and chooser.value in FIELDS[1:], "it was a click into the list"


def test_a_list_closes_when_its_choice_is_gone():
    hand = Hand(Chooser().draw)
    hand.click("P/By", 0.8)
    hand.draw = one_panel(lambda ui: ui.text("nothing"))
    hand.frame()
    assert "list" not in boxes(hand.ui)


@pytest.mark.parametrize("size", [(400, 200), (400, 460), (800, 600)])
@pytest.mark.parametrize("corner", [(20, 20), (-4, -4)])
def test_a_list_stays_in_the_window_and_scrolls_if_it_is_too_long(corner, size):
    chooser = Chooser(x=corner[0], y=corner[1])
    hand = Hand(chooser.draw, *size)
    hand.click("P/By", 0.8)
    hand.frame()
    left, top, right, bottom, _ = boxes(hand.ui)["list"]
    assert 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]
    if size == (800, 600):  # there is room below, or above
        _, y, _, h = hand.ui.places["P/By"]
        assert y + h < top < y + h + 6 if corner[1] > 0 else y - 6 < bottom < y
    hand.move(left + 20, (top + bottom) / 2)
    for _ in range(20):
        hand.frame(wheel=-1.0)
    hand.click("list/field 14")
    hand.frame()
    assert chooser.value == "field 14"


def test_a_menu_without_options_stays_shut():
    hand = Hand(one_panel(lambda ui: ui.menu("Load", [])))
    hand.click("P/Load")
    hand.frame()
    assert "list" not in boxes(hand.ui)
    hand.draw = one_panel(lambda ui: ui.menu("Load", ["a", "b"]))
    hand.click("P/Load")
    hand.frame()
    hand.click("list/b")
    assert hand.frame() == "b"
    assert hand.frame() == "", "once"


def test_a_message_is_closed_by_its_cross():
    hand = Hand(one_panel(lambda ui: ui.message("Something failed.", "error", closes=True, key="x")))
    assert hand.click("P/x")
    assert not hand.frame()


def test_a_widget_is_explained_after_a_while():
    hand = Hand(one_panel(lambda ui: ui.button("Go", tip="Starts it")))
    hand.move(*hand.spot("P/Go"))
    hand.frame(seconds=TIP_AFTER / 2)
    assert "tip" not in boxes(hand.ui)
    hand.frame(seconds=TIP_AFTER)
    assert "tip" in boxes(hand.ui)
    hand.move(*AWAY)
    assert "tip" not in boxes(hand.ui)


def test_an_endless_progress_bar_moves():
    hand = Hand(one_panel(lambda ui: ui.progress("Working", None)))
    before = hand.image.copy()
    hand.frame(seconds=CYCLE / 3)
    assert hand.ui.changed and (hand.image != before).any()


def test_a_progress_bar_is_filled_as_far_as_things_have_come():
    for share in (0.25, 0.75):
        hand = Hand(one_panel(lambda ui, share=share: ui.progress("Working", share)))
        blue = np.abs(hand.image[..., :3].astype(int) - paint.ACCENT[:3]).max(axis=-1) == 0
        length = 200 - 2 * layers.PADDING
        assert blue.sum(axis=1).max() == pytest.approx(share * length, abs=4), "round ends count less"


# --- whose mouse it is ------------------------------------------------------------------------------------------------


def test_the_mouse_belongs_to_the_panel_it_is_over():
    hand = Hand(one_panel(lambda ui: ui.button("Go")))
    hand.move(*hand.spot("P/Go"))
    assert hand.ui.captures
    hand.move(25, 25)
    assert hand.ui.captures, "also where it has no widget"
    hand.move(500, 300)
    assert not hand.ui.captures


def test_a_drag_belongs_to_where_it_began():
    hand = Hand(Dial().draw)
    hand.press("P/S", 0.5, TRACK)
    hand.move(500, 300)
    assert hand.ui.captures
    hand.release()
    assert hand.ui.captures, "the frame in which it ends"
    hand.frame()
    assert not hand.ui.captures
    hand.press()
    before = hand.got
    assert hand.move(*hand.spot("P/S", 0.9, TRACK)) == before
    assert not hand.ui.captures, "a camera that turns goes on over panels"
    hand.release()
    hand.frame()
    assert hand.ui.captures


def test_the_pointer_goes_through_a_panel_that_is_not_solid():
    hand = Hand(one_panel(lambda ui: ui.text("a bar"), solid=False))
    hand.move(40, 35)
    assert not hand.ui.captures


# --- drawing ----------------------------------------------------------------------------------------------------------


def counted(monkeypatch):
    """How many panels are painted."""
    calls = []
    real = paint.paint
    monkeypatch.setattr(layers.paint, "paint", lambda *args: (calls.append(1), real(*args)))
    return calls


def test_a_frame_in_which_nothing_changes_draws_nothing(monkeypatch):
    desk = Desk()
    calls = counted(monkeypatch)
    before, pixels = desk.image, desk.image.copy()
    desk.frame()
    assert not calls and not desk.ui.changed
    assert desk.image is before and (desk.image == pixels).all()


def test_only_the_panel_that_changes_is_drawn_again(monkeypatch):
    desk = Desk()
    calls = counted(monkeypatch)
    before = desk.image.copy()
    desk.move(*desk.spot("Simulation/Step"))
    assert len(calls) == 1 and desk.ui.changed
    left, top, right, bottom, _ = boxes(desk.ui)["Simulation"]
    rows, columns = np.nonzero((desk.image != before).any(axis=-1))
    assert len(rows) and top <= rows.min() and rows.max() < bottom and left <= columns.min() and columns.max() < right


def test_what_is_drawn_bit_by_bit_equals_what_is_drawn_at_once():
    """Folds, lists, help, messages and a resize come and go; in the end nothing of them must be left."""
    desk = Desk()
    desk.click("Simulation/fold water")
    desk.click("View/Colour by", 0.8)
    desk.frame()
    desk.click("list/pressure")
    desk.more.messages.append(Notice("error", "One that is closed again."))
    desk.frame()
    desk.state.help = True
    desk.frame()
    desk.state.help = False
    desk.click("message 1/close")
    desk.click("View/Clip/y")
    desk.size = (1000, 700)
    desk.frame()
    desk.size = (1280, 720)
    desk.move(*AWAY)
    for _ in range(3):
        desk.frame()
    fresh = Desk(state=desk.state)
    assert (desk.image == fresh.image).all()
    assert desk.state.color == "pressure" and desk.state.clip == "y" and "water" in desk.state.unfolded


def test_panels_are_translucent_with_round_corners_and_solid_letters():
    hand = Hand(one_panel(lambda ui: ui.text("HHHH")), width=300, height=200)
    left, top, right, bottom, _ = boxes(hand.ui)["P"]
    assert hand.image.shape == (200, 300, 4) and hand.image.dtype == np.uint8
    assert hand.image[top, left, 3] == 0 and hand.image[bottom - 1, right - 1, 3] == 0
    assert tuple(hand.image[bottom - 6, (left + right) // 2]) == paint.PAPER
    assert hand.image[: top, :, 3].max() == 0 and hand.image[bottom:, :, 3].max() == 0
    inside = hand.image[top + 40 : bottom - 4, left + 10 : right - 10].reshape(-1, 4)
    assert inside[inside[:, 0].argmax(), 3] > 250, "letters let less through"


def test_everything_grows_with_the_scale():
    one, two = Hand(Dial().draw, 640, 480), Hand(Dial().draw, 1280, 960, scale=2.0)
    assert two.ui.places["P/S"] == pytest.approx([2 * v for v in one.ui.places["P/S"]], abs=2.0)
    assert np.count_nonzero(two.image[..., 3]) == pytest.approx(4 * np.count_nonzero(one.image[..., 3]), rel=0.02)
    assert two.press("P/S", 0.25, TRACK) == pytest.approx(2.5, abs=0.2)


def test_a_plot_rises_where_its_values_do():
    hand = Hand(one_panel(lambda ui: ui.plot("v", list(np.linspace(0.0, 1.0, 50)))), width=300, height=200)
    blue = (hand.image[..., :3].astype(int) - paint.ACCENT[:3])
    rows, columns = np.nonzero(np.abs(blue).max(axis=-1) < 8)
    assert len(rows) > 50
    slope, _ = np.polyfit(columns, rows, 1)
    assert slope < -0.05, "up is towards smaller rows"


def test_a_plot_bears_values_that_are_no_numbers():
    for values in ([], [1.0], [math.nan, 1.0, math.inf], [0.0, 0.0], [-1.0, -2.0]):
        Hand(one_panel(lambda ui, values=values: ui.plot("v", values)))


@pytest.mark.parametrize("low, high", [(0.0, 2.3), (1e5, 3e5), (-1e-7, 2e-7), (1000.0, 1000.0), (999.9999, 1000.0001),
                                       (1000.0, 1000.0 + 1e-9), (math.nan, 1.0), (0.0, math.inf)])  # fmt: skip
def test_a_colour_bar_bears_any_range(low, high):
    hand = Hand(one_panel(lambda ui: ui.colorbar("pressure [Pa]", low, high, ("water", "sand")), width=300))
    assert not hand.ui.cut


# --- scrolling --------------------------------------------------------------------------------------------------------


class Long:
    """A panel with more buttons than the window has room for."""

    def __init__(self, count=40):
        self.clicked = []

        def body(ui):
            self.clicked += [k for k in range(count) if ui.button(f"{k}")]

        self.draw = one_panel(body)


def test_long_contents_scroll_by_the_wheel_and_stop_at_their_ends():
    long = Long()
    hand = Hand(long.draw)
    top = hand.ui.places["P/0"][1]
    hand.move(100, 200)
    hand.frame(wheel=-1.0)
    hand.frame()
    assert hand.ui.places["P/0"][1] == pytest.approx(top - layers.NOTCH)
    for _ in range(60):
        hand.frame(wheel=-1.0)
    hand.frame()
    last = hand.ui.places["P/39"]
    assert last[1] + last[3] == pytest.approx(boxes(hand.ui)["P"][3] - layers.FOOT, abs=1.5)
    hand.click("P/39")
    assert long.clicked == [39]
    for _ in range(60):
        hand.frame(wheel=1.0)
    hand.frame()
    assert hand.ui.places["P/0"][1] == top


def test_contents_scroll_by_the_bar_and_by_dragging_between_widgets():
    hand = Hand(Long().draw)
    top = hand.ui.places["P/0"][1]
    hand.press("P/scroll bar")
    hand.move(hand.at[0], 5000)
    hand.release()
    hand.frame()
    last = hand.ui.places["P/39"]
    assert last[1] + last[3] < 480, "the end is reached"
    hand.press("P/scroll bar")
    hand.move(hand.at[0], -5000)
    hand.release()
    x, y, w, h = hand.ui.places["P/3"]
    hand.move(x + w / 2, y + h + 2)  # between two buttons
    hand.press()
    hand.move(x + w / 2, y + h + 2 - 100)
    hand.release()
    hand.frame()
    assert hand.ui.places["P/0"][1] == pytest.approx(top - 100)


def test_what_is_scrolled_out_of_sight_cannot_be_clicked():
    long = Long()
    hand = Hand(long.draw)
    bottom = boxes(hand.ui)["P"][3]
    hidden = next(name for name, (_, y, _, _) in hand.ui.places.items() if y > bottom)
    hand.click(hidden)
    hand.move(100, 200)
    hand.frame(wheel=-0.5)  # half of the first button is under the title
    hand.frame()
    hand.click("P/0", v=0.2)
    assert not long.clicked
    hand.click("P/0", v=0.95)
    assert long.clicked == [0]


def test_the_wheel_scrolls_past_sliders_unless_one_was_pressed_last():
    values = [5.0] * 30

    def body(ui):
        for k in range(30):
            values[k] = ui.slider(f"{k}", values[k], 0.0, 10.0)

    hand = Hand(one_panel(body))
    hand.move(*hand.spot("P/3"))
    top = hand.ui.places["P/0"][1]
    hand.frame(wheel=-1.0)
    hand.frame()
    assert values == [5.0] * 30 and hand.ui.places["P/0"][1] < top
    hand.click("P/4", 0.5, 0.2)
    before = values[4]
    hand.frame(wheel=1.0)
    assert values[4] == pytest.approx(before + 0.1, rel=1e-9)


# --- Pliant's panels --------------------------------------------------------------------------------------------------


def knob(owner, name, value, low, high, log=False, unit="1"):
    return Knob(owner, name, value, low, high, log, unit, f"what {name} means")


def opened(fluid=True, skins=True, grains=True):
    mesh, line = TriMesh(np.eye(3), np.array([[0, 1, 2]])), np.zeros((1, 2, 3))
    bodies = [CloudStyle("water", "water", 0.01, fluid), CloudStyle("bunny", "plasma", 0.01, False)]
    bodies += [CloudStyle("sand", "sand", 0.01, False), CloudStyle("sand_grains", "sand", 0.003, False, True)]
    walls = [RenderWall("tank", line, mesh, True), RenderWall("pillar", line, mesh)]
    bounds = np.array([[-1.0, 0.0, 0.0], [3.0, 1.0, 1.0]])
    skins = {"bunny": None} if skins else {}
    render_scene = RenderScene(walls, bodies[: 4 if grains else 2], bounds, 2.0, skins=skins)
    knobs = [knob("", f"gravity.{a}", g, -20, 20, unit="m/s^2") for a, g in zip("xyz", (0, -9.81, 0), strict=True)]
    knobs += [knob("", f"wind.{a}", 0.0, -30, 30, unit="m/s") for a in "xyz"]
    knobs += [knob("water", "density", 1000.0, 50, 2e4, True, "kg/m^3"),
              knob("water", "viscosity", 1e-6, 1e-7, 10, True, "m^2/s"),
              knob("water", "surface_tension", 0.0, 0, 1, unit="N/m"),
              knob("bunny", "young", 2e5, 1e3, 1e9, True, "Pa"), knob("bunny", "poisson", 0.3, -0.4, 0.495),
              knob("sand", "friction_angle", 35.0, 0, 60, unit="degree"),
              knob("tank", "friction", 0.5, 0, 2)]  # fmt: skip
    fields = {"speed": "m/s", **{f"velocity.{a}": "m/s" for a in "xyz"}, "pressure": "Pa", "density": "kg/m^3"}
    fields |= {**{f"position.{a}": "m" for a in "xyz"}, "mass": "kg", "volume": "m^3", "id": "1", "stress": "Pa"}
    counts = {"water": 101_250, "bunny": 8_123} | ({"sand": 30_124, "sand_grains": 1_204_000} if grains else {})
    return Opened("duck_bath", render_scene, knobs, fields, counts, [])


def moment(step=100, **changes):
    seconds = {"neighbors": 0.0041, "boundaries": 0.0012, "gravity": 1e-5, "viscosity": 0.0052, "elasticity": 0.0061,
               "pressure": 0.0123, "density": 0.002, "advance": 0.0004, "grains": 0.0031}  # fmt: skip
    figures = Figures(12.345, 8.2e-4, step, 135.2, 0.131, seconds, {"density": 12, "divergence": 2, "elasticity": 114},
                      8e-4, 12.31, 1234.5)  # fmt: skip
    return Moment(Snapshot(step, 12.345), dataclasses.replace(figures, **changes), True)


def history():
    return {name: list(np.random.default_rng(1).random(SAMPLES) * 1e3) for name in PLOTS}


class Desk(Hand):
    """A user in front of Pliant's panels."""

    def __init__(self, width=1280, height=720, state=None, scene=None, scale=1.0, **extras):
        self.state, self.panels, extras = copy.deepcopy(state or ViewState()), Panels(), copy.deepcopy(extras)
        self.scene, self.moment = scene or opened(), moment()
        self.more = Extras(**{"fps": 30.0, "history": history(), "low": 0.0, "high": 2.31, "maps": ("water", "plasma"),
                              **extras})  # fmt: skip
        self.commands = []
        super().__init__(self._panels, width, height, scale)

    def _panels(self, ui):
        got = self.panels.draw(ui, self.state, self.scene, self.moment, self.more)
        self.commands += got
        return got


EVERYTHING = {"water", "bunny", "sand", "tank", ""}
MANUAL = {"auto": False, "low": -12.5, "high": 1.5e6, "clip": "x", "color": "pressure", "recording": True}
LONG_ERROR = ("scenes/duck.py, line 31: Elastic(poisson=0.6): poisson must be in (-1, 0.5), got 0.6; "
              "Fluid(viscosity=-1): viscosity must not be negative, got -1.")  # fmt: skip
SITUATIONS = {
    "plain": ({}, {}),
    "unfolded": ({"unfolded": EVERYTHING}, {}),
    "manual": (MANUAL, {"recording": 3723.4, "low": -12.5, "high": 1.5e6}),
    "no plots": ({"plots": False}, {}),
    "no panels": ({"panels": False}, {}),
    "help": ({"help": True}, {}),
    "busy": ({}, {"busy": "Changing young of bunny", "busy_seconds": 12.3}),
    "failure": ({}, {"failure": LONG_ERROR}),
    "messages": ({}, {"messages": [Notice("error", LONG_ERROR), Notice("info", "saved out/duck_bath-0001.png")]}),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_nothing_overlaps_and_all_text_fits(situation, size):
    state, more = SITUATIONS[situation]
    desk = Desk(*size, ViewState(**state), **more)
    found = boxes(desk.ui)
    assert not desk.ui.cut
    for left, top, right, bottom, _ in found.values():
        assert 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]
    for (one, a), (two, b) in itertools.combinations(found.items(), 2):
        if situation == "help" and "Keys and mouse" in (one, two):
            continue  # lies over the others where the window is small
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one} {a} and {two} {b}"
    if situation not in ("no panels", "help"):
        assert {"Simulation", "View", "Statistics", "Colours"} <= set(found)


@pytest.mark.parametrize("size", SIZES)
def test_widgets_of_a_panel_do_not_overlap(size):
    desk = Desk(*size, ViewState(unfolded=EVERYTHING, **MANUAL), saved=["a"])
    for panel in ("Simulation", "View"):
        mine = {n: p for n, p in desk.ui.places.items() if n.startswith(panel + "/") and not n.endswith("scroll bar")}
        left, _, right, _, _ = boxes(desk.ui)[panel]
        assert len(mine) > 15
        for x, _, w, _ in mine.values():
            assert left < x and x + w < right
        for (one, a), (two, b) in itertools.combinations(mine.items(), 2):
            apart = a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
            assert apart, (one, two)


@pytest.mark.parametrize("size, scale", [((320, 240), 1.0), ((100, 100), 1.0), ((800, 600), 3.0), ((1280, 720), 1.25)])
def test_odd_windows_are_borne(size, scale):
    for state, more in SITUATIONS.values():
        desk = Desk(*size, ViewState(**state), scale=scale, **more)
        assert desk.image.shape == (size[1], size[0], 4)


@pytest.mark.parametrize("scale", [1.25, 1.5, 2.0])
def test_all_text_fits_whatever_the_scale(scale):
    for width, height in SIZES:
        size, state = (round(scale * width), round(scale * height)), ViewState(unfolded=EVERYTHING, **MANUAL)
        desk = Desk(*size, state, scale=scale, recording=3723.4)
        assert not desk.ui.cut


def test_without_a_scene_there_are_buttons_only():
    desk = Desk()
    desk.scene = desk.moment = None
    desk.frame()
    assert "Simulation/play" in desk.ui.places and "View/Colour by" not in desk.ui.places
    assert "Colours" not in boxes(desk.ui)


def test_play_step_and_reset():
    desk = Desk()
    assert desk.click("Simulation/play") == [("pause",)] and not desk.state.playing
    assert desk.click("Simulation/play") == [("play",)] and desk.state.playing
    assert desk.click("Simulation/Step") == [("step",)] and not desk.state.playing
    assert desk.click("Simulation/Reset") == [("reset",)]
    assert desk.click("Simulation/Original values") == [("defaults",)]


def pick(desk, name, option):
    """From a list, as a user does."""
    desk.commands.clear()
    desk.click(name, 0.8)
    desk.frame()
    desk.click(f"list/{option}")
    desk.frame()
    return desk.commands


def test_the_speed_limit_is_told_by_its_name():
    desk = Desk()
    assert pick(desk, "Simulation/Speed limit", "1/2 x") == [("limit", "1/2 x")]
    assert desk.state.limit == "1/2 x" and "1/2 x" in LIMITS


def test_a_parameter_changes_while_its_slider_is_dragged():
    desk = Desk()
    desk.click("Simulation/fold water")
    desk.frame()
    (first,) = desk.press("Simulation/water.density", 0.75, TRACK)
    assert first[:3] == ("set", "water", "density")
    assert first[3] == pytest.approx(50 * (2e4 / 50) ** 0.75, rel=0.1), "three quarters of the way, by the logarithm"
    x, y = desk.spot("Simulation/water.density", 1.0, TRACK)
    assert desk.move(x + 50, y) == [("set", "water", "density", 2e4)]
    assert desk.frame() == [], "once"
    # what comes back from the player late must not pull the handle away from under the pointer
    desk.moment = moment(101)
    desk.moment.knobs = [dataclasses.replace(k, value=1234.0) if k.name == "density" else k for k in opened().knobs]
    assert desk.frame() == []
    desk.release()
    desk.moment = dataclasses.replace(desk.moment)
    assert desk.frame() == []
    assert desk.panels._knobs["water"][0].value == 1234.0


def test_gravity_is_the_scenes():
    desk = Desk()
    desk.click("Simulation/fold ")
    desk.frame()
    (command,) = desk.press("Simulation/.gravity.y", 0.5, TRACK)
    assert command[:3] == ("set", "", "gravity.y") and abs(command[3]) < 0.5


def test_bodies_and_walls_are_hidden_and_shown():
    desk = Desk()
    for name in ("bunny", "pillar"):
        assert desk.click(f"Simulation/show {name}") == []
        assert desk.state.hidden == {name}
        desk.click(f"Simulation/show {name}")
        assert not desk.state.hidden


def test_colours_are_chosen_by_field_map_and_range():
    desk = Desk()
    assert "View/From" not in desk.ui.places
    desk.click("View/Auto range")
    assert (desk.state.auto, desk.state.low, desk.state.high) == (False, 0.0, 2.31), "begins with what is shown"
    desk.frame()
    desk.press("View/From", 0.99, TRACK)
    desk.release()
    assert 2.31 < desk.state.low < desk.state.high, "the ends keep their order"
    desk.press("View/To", 0.0, TRACK)
    desk.release()
    assert desk.state.low < desk.state.high < 0.0
    pick(desk, "View/Colours", "viridis")
    assert desk.state.colors == "viridis"
    pick(desk, "View/Colour by", "pressure")
    assert desk.state.color == "pressure" and desk.state.auto, "another field has another range"


def test_a_range_that_a_scene_begins_with_can_be_moved():
    desk = Desk(state=ViewState(auto=False, low=1.0, high=3.0))
    desk.press("View/To", 0.5, TRACK)
    assert 1.0 < desk.state.high < 3.0


def test_how_things_are_drawn():
    desk = Desk()
    for name, field, value in [("Fluids/surface", "fluid", "surface"), ("Solids/spheres", "solid", "spheres"),
                               ("Walls/hidden", "walls", "hidden"), ("Shadows", "shadow", False),
                               ("Grains", "grains", False), ("Colour bar", "bar", False)]:  # fmt: skip
        assert desk.click(f"View/{name}") == []
        assert getattr(desk.state, field) == value, name
    assert "Colours" not in boxes(desk.ui)


def test_only_what_a_scene_has_is_offered():
    desk = Desk(scene=opened(fluid=False, skins=False, grains=False))
    names = {name for name in desk.ui.places if name.startswith("View/")}
    assert not names & {"View/Fluids/surface", "View/Solids/mesh", "View/Grains"} and "View/Walls/solid" in names
    assert "Simulation/show sand" not in desk.ui.places


def test_the_clipping_plane_moves_along_its_axis():
    desk = Desk()
    assert "View/Cut at" not in desk.ui.places
    desk.click("View/Clip/x")
    desk.frame()
    desk.press("View/Cut at", 0.25, TRACK)
    desk.release()
    assert desk.state.clip == "x" and desk.state.clip_at == pytest.approx(0.25, abs=0.02)
    desk.click("View/Other side")
    assert desk.state.clip_flip
    desk.click("View/Clip/off")
    assert desk.state.clip == "off"


def test_cameras_and_files():
    desk = Desk(saved=["second", "first"])
    assert [desk.click(f"View/{name}") for name in VIEWS] == [[("view", name)] for name in VIEWS]
    assert desk.click("View/frame") == [("frame",)]
    assert desk.click("View/Screenshot") == [("screenshot",)]
    assert desk.click("View/record") == [("record",)]
    assert desk.click("View/Save state") == [("save",)]
    assert pick(desk, "View/Load state", "second") == [("load", "second")]


def test_a_recording_is_seen():
    desk = Desk(recording=3.2)
    x, y = (int(v) for v in desk.spot("View/record", 0.1))
    calm = desk.image[y, x].copy()
    desk.state.recording = True
    desk.frame()
    assert tuple(desk.image[y, x]) == paint.RED != tuple(calm)


def test_all_commands_are_known():
    """Clicks on everything there is."""
    desk = Desk(state=ViewState(unfolded=EVERYTHING, **MANUAL), saved=["a"], failure="broken", height=2000)
    for name in list(desk.ui.places):
        if name in desk.ui.places and "fold" not in name:
            desk.click(name, 0.6, 0.9)
            desk.frame()
    names = {command[0] for command in desk.commands}
    assert names <= set(COMMANDS) | set(WINDOW_COMMANDS)
    assert {"play", "step", "reset", "set", "view", "record"} - names <= {"play"} and len(names) > 8


def test_a_failure_can_be_answered_by_a_reset_or_put_aside():
    desk = Desk(failure=LONG_ERROR)
    panel = "The scene cannot go on"
    assert desk.click(f"{panel}/Reset") == [("reset",)]
    desk.click(f"{panel}/Close")
    desk.frame()
    assert panel not in boxes(desk.ui)
    desk.more.failure = "Another."
    desk.frame()
    assert panel in boxes(desk.ui)


def test_infos_fade_and_errors_stay_until_they_are_closed():
    error = Notice("error", "cannot write b.png")
    desk = Desk(messages=[Notice("info", "saved a.png"), error])
    shown = desk.image[..., 3].max(axis=1)
    assert shown.max() == 255
    desk.frame(seconds=STAYS - FADES / 2)
    left, top, right, bottom, _ = boxes(desk.ui)["message 1"]
    assert 0 < desk.image[top:bottom, left:right, 3].max() < 200, "half gone"
    desk.frame(seconds=FADES)
    desk.frame()
    assert desk.more.messages == [error] and "message 1" not in boxes(desk.ui)
    desk.click("message 2/close")
    desk.frame()
    assert desk.more.messages == [] and "message 2" not in boxes(desk.ui)


def test_the_same_sentence_may_come_twice():
    desk = Desk(messages=[Notice("error", "again"), Notice("error", "again")])
    desk.click("message 1/close")
    assert len(desk.more.messages) == 1


def test_what_takes_long_is_told():
    desk = Desk(busy="Factorising bunny", busy_seconds=0.1)
    assert "Busy" not in boxes(desk.ui), "short work is not worth a flicker"
    desk.more.busy_seconds = 2.0
    desk.frame()
    assert "Busy" in boxes(desk.ui)


def test_help_can_be_closed():
    desk = Desk(state=ViewState(help=True))
    desk.click("Keys and mouse/Close")
    assert not desk.state.help
    desk.frame()
    assert "Keys and mouse" not in boxes(desk.ui)


def test_the_help_names_every_key_once():
    keys = [key for key, _ in KEYS]
    wanted = {"Space", ". + N", "R", "F", "1 to 7", "W A S D Q E", "C", "V", "P", "K", "L", "Tab", "H", "Esc"}
    wanted |= {"Left drag", "Middle drag", "Shift Left drag", "Right drag", "Wheel", "Ctrl Left drag", "G held"}
    assert wanted <= set(keys) and len(set(keys)) == len(keys)


def test_hidden_panels_leave_the_colour_bar_and_a_hint():
    desk = Desk(state=ViewState(panels=False))
    assert set(boxes(desk.ui)) == {"Hint", "Colours"}
    desk.move(40, 700)
    assert not desk.ui.captures, "neither is in the way of the mouse"


def test_statistics_stay_for_as_long_as_it_takes_to_read_them():
    desk = Desk()
    desk.moment = moment(101, time=99.0)
    desk.frame(seconds=0.01)
    assert not desk.ui.changed
    desk.frame(seconds=0.2)
    assert desk.ui.changed


def test_statistics_bear_a_simulation_that_broke():
    desk = Desk()
    desk.moment = moment(7, density_error=math.nan, max_speed=math.inf, energy=math.nan, seconds={}, iterations={})
    desk.frame(seconds=1.0)
    assert desk.ui.changed
