"""The player: what a view tells it, and what it tells a view. In this process, so that states can be compared."""

import time

import numpy as np
import pytest

from pliant.viewer.messages import COMMANDS, Moment, Notice, Opened
from pliant.viewer.player import Player
from pliant.viewer.remote import Remote

SCENE = """
import pliant as pl

def build(radius: float = 0.04, young: float = 1e5):
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(1, 0.8, 0.5), center=(0.5, 0.4, 0.25)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.4, 0.4, 0.5), center=(0.2, 0.2, 0.25)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.24, 0.24, 0.24), center=(0.7, 0.5, 0.25)), pl.Elastic(young=young), name="cube")
    count = []
    scene.on_step(lambda sim: count.append(1) or len(count) < 1000)
    return scene
"""


class Audience:
    """Keeps what it is told."""

    def __init__(self):
        self.heard = []

    def __call__(self, message):
        self.heard.append(message)

    def last(self, kind):
        return next(message for message in reversed(self.heard) if isinstance(message, kind))

    @property
    def errors(self):
        return [m.text for m in self.heard if isinstance(m, Notice) and m.kind in ("error", "failure")]


@pytest.fixture
def scene(tmp_path):
    file = tmp_path / "tank.py"
    file.write_text(SCENE)
    return str(file)


class Clock:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self):
        return self.now


def start(scene, *settings, state=None, **more):
    told = Audience()
    return Player(scene, list(settings), told, state, **more), told


def seen(player, told):
    player.publish()
    return told.last(Moment)


def positions(player, told):
    return {name: cloud.x.copy() for name, cloud in seen(player, told).snapshot.clouds.items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_it_tells_of_the_scene(scene):
    player, told = start(scene)
    opened = told.last(Opened)
    assert opened.name == "tank" and not told.errors
    assert opened.counts == {"water": 150, "cube": 27}
    assert {wall.name for wall in opened.render_scene.walls} == {"tank"}
    assert set(opened.render_scene.skins) == {"cube"}
    assert {"speed", "pressure", "velocity.y", "position.y", "stress"} <= set(opened.fields)
    assert opened.fields["q"] == "Pa s^2" and opened.meanings["q"] == "dt^2 times pressure"
    named = {(k.owner, k.name): k for k in opened.knobs}
    assert named["", "gravity.y"].value == -9.81 and named["", "gravity.y"].low < -9.81
    assert named["cube", "young"].log and named["cube", "young"].unit == "Pa"
    assert {("water", "viscosity"), ("cube", "poisson"), ("", "wind.x")} <= set(named)
    assert all(k.low <= k.value <= k.high for k in opened.knobs)
    assert player.playing and player.news


def test_every_command_has_a_method(scene):
    assert all(callable(getattr(Player, name)) for name in COMMANDS)


def test_pause_step_and_reset_to_the_same_state(scene):
    player, told = start(scene)
    first = positions(player, told)
    player.obey([("pause",)])
    assert player.wait is None
    player.obey([("step",), ("step",)])
    assert player.sim.step_count == 2 and not player.playing
    steps = positions(player, told)
    player.obey([("reset",)])
    assert player.sim.time == 0.0 and player.sim.step_count == 0
    assert_same(positions(player, told), first)
    player.obey([("step",), ("step",)])
    assert_same(positions(player, told), steps)
    assert not told.errors


def test_gravity_to_zero_stops_the_fall(scene):
    player, told = start(scene)
    player.obey([("set", "", "gravity.y", -1.0), ("set", "", "gravity.y", 0.0)])
    assert [m.text for m in told.heard if isinstance(m, Notice) and "gravity" in m.text] == [
        "Changing gravity.y of the scene"  # once: only the last of several values counts
    ]
    before = positions(player, told)["cube"]
    knobs = {(k.owner, k.name): k.value for k in told.last(Moment).knobs}
    assert knobs["", "gravity.y"] == 0.0
    for _ in range(5):
        player.advance()
    assert np.abs(positions(player, told)["cube"] - before).max() < 1e-5
    player.obey([("set", "", "gravity.y", -9.81)])
    for _ in range(5):
        player.advance()
    assert (positions(player, told)["cube"][:, 1] < before[:, 1] - 1e-5).all()


def test_parameters_stay_through_a_reset_and_go_back_to_the_original_ones(scene):
    player, told = start(scene)
    first = positions(player, told)
    player.obey([("set", "cube", "young", 3e4), ("set", "cube", "density", 500.0), ("set", "", "wind.x", 4.0)])
    mass = player.sim["cube"].mass.sum()
    player.advance()
    player.obey([("reset",)])
    assert player.sim["cube"].material.young == 3e4
    assert player.sim["cube"].mass.sum() == mass
    assert player.sim.scene.settings.air.velocity == (4.0, 0.0, 0.0)
    assert_same(positions(player, told), first)
    player.obey([("defaults",)])
    assert player.sim["cube"].material.young == 1e5
    assert player.sim["cube"].mass.sum() == pytest.approx(2 * mass)
    assert not told.errors


def test_save_and_load_go_on_exactly(scene, tmp_path):
    player, told = start(scene)
    file = str(tmp_path / "kept" / "state.npz")
    player.obey([("set", "cube", "young", 3e4), ("step",), ("step",), ("save", file), ("step",)])
    there = positions(player, told)
    player.obey([("set", "cube", "young", 2e5), ("reset",), ("load", file), ("step",)])
    assert not told.errors
    assert player.sim["cube"].material.young == 3e4
    assert_same(positions(player, told), there)
    again, told_again = start(scene, state=file)
    again.obey([("step",)])
    assert_same(positions(again, told_again), there)


def test_a_state_that_cannot_be_loaded_costs_nothing(scene, tmp_path):
    player, told = start(scene)
    player.obey([("step",)])
    before = positions(player, told)
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"PK\x03\x04 no")
    player.obey([("load", str(bad)), ("load", str(tmp_path / "none.npz"))])
    assert len(told.errors) == 2 and "damaged" in told.errors[0]
    assert_same(positions(player, told), before)


@pytest.mark.parametrize("field", ["speed", "pressure", "velocity.y", "position.x", "stress", "strain", "wall_normal"])
def test_any_field_can_be_asked_for(scene, field):
    player, told = start(scene)
    player.obey([("step",), ("show", field)])
    for name, cloud in seen(player, told).snapshot.clouds.items():
        assert list(cloud.fields) == [field]
        assert cloud.fields[field].shape == (len(cloud.x),) and np.isfinite(cloud.fields[field]).all(), name
    assert list(told.last(Moment).snapshot.meshes) == ["cube_skin"]
    player.obey([("show", field, True, False)])
    assert not seen(player, told).snapshot.meshes


def test_stress_of_a_stretched_cube(scene):
    """Von Mises' stress of a uniform stretch by s along x with the sides held is 2 mu s."""
    player, told = start(scene, "radius=0.02")
    cube = player.sim["cube"]
    middle = cube.x.mean(axis=0)
    cube.x = middle + (cube.x - middle) * (1.1, 1.0, 1.0)
    player.obey([("show", "stress")])
    inner = np.abs(cube.rest - cube.rest.mean(axis=0)).max(axis=1) < 0.06
    stress = seen(player, told).snapshot.clouds["cube"].fields["stress"][inner]
    assert stress == pytest.approx(2 * cube.material.shear * 0.1, rel=0.02)
    player.obey([("show", "strain")])
    strain = seen(player, told).snapshot.clouds["cube"].fields["strain"][inner]
    assert strain == pytest.approx(0.1, rel=0.02)


def test_the_speed_is_limited(scene):
    clock = Clock()
    player, _ = start(scene, clock=clock)
    player.obey([("limit", 0.01)])
    assert player.wait == 0.0
    player.advance()
    due = player.sim.time / 0.01  # [s] after the limit was set
    assert player.wait == pytest.approx(due, rel=1e-9) and due > 0
    clock.now += 0.75 * due
    assert player.wait == pytest.approx(0.25 * due, rel=1e-9)
    clock.now += due
    assert player.wait == 0.0
    player.advance()
    assert player.wait == pytest.approx(player.sim.time / 0.01 - 1.75 * due, rel=1e-9)
    player.obey([("limit", None)])
    assert player.wait == 0.0


def test_a_function_of_the_scene_may_ask_to_stop(tmp_path):
    file = tmp_path / "stops.py"
    file.write_text(SCENE.replace("len(count) < 1000", "len(count) < 3"))
    player, told = start(str(file))
    for _ in range(3):
        assert player.wait == 0.0
        player.advance()
    assert player.wait is None and "asked to stop" in told.last(Notice).text


def test_a_scene_that_breaks_down_is_told_of_and_can_be_reset(scene):
    player, told = start(scene)
    first = positions(player, told)
    v = player.sim["water"].v
    player.sim.world.particles.set("v", np.full((player.sim.particles, 3), np.nan))
    player.advance()
    assert "broke down" in told.errors[0] and not player.playing
    assert told.last(Notice).kind == "failure"
    assert np.isfinite(player.sim["water"].x).all() and np.isfinite(v).all()
    player.obey([("reset",), ("step",)])
    assert len(told.errors) == 1 and player.sim.step_count == 1
    player.obey([("reset",)])
    assert_same(positions(player, told), first)


def test_a_scene_that_cannot_be_built_is_read_again_at_a_reset(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(SCENE.replace("young=young", "young=-1"))
    player, told = start(str(file))
    assert "young must be" in told.errors[0] and player.sim is None and player.wait is None
    player.obey([("step",), ("save", str(tmp_path / "x.npz")), ("set", "", "gravity.x", 1.0), ("grab", "cube", "x")])
    player.publish()
    assert all("there is no simulation yet" in text for text in told.errors[1:])
    file.write_text(SCENE)
    player.obey([("reset",)])
    assert player.sim is not None and told.last(Opened).name == "wrong"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def build(:", "is not valid Python"),
        ("def build():\n    raise ValueError('no duck')", "fails in line 2 in build(): ValueError: no duck"),
        ("def build():\n    return 3", "must return a pliant.Scene"),
        ("x = 1", "has no function build"),
    ],
)
def test_files_that_fail_are_told_of(tmp_path, text, sentence):
    file = tmp_path / "wrong.py"
    file.write_text(text)
    _, told = start(str(file))
    assert sentence in told.errors[0]


def test_a_file_that_was_written_meanwhile_is_read_at_a_reset(scene):
    import os

    player, told = start(scene)
    with open(scene, "w") as file:
        file.write(SCENE.replace("0.5, 0.25)), pl.Elastic", "0.6, 0.25)), pl.Elastic"))
    os.utime(scene, (1, 1))
    player.obey([("reset",)])
    assert player.sim["cube"].x[:, 1].mean() == pytest.approx(0.6, abs=1e-3)
    assert sum(isinstance(message, Opened) for message in told.heard) == 2


def test_options_and_wrong_commands(scene):
    player, told = start(scene, "young=4e4")
    assert player.sim["cube"].material.young == 4e4
    player.obey([("dance",), ("set", "water", "grains", 1), ("set", "duck", "young", 1)])
    assert [("dance" in t, "grains" in t, "duck" in t) for t in told.errors] == [
        (True, False, False), (False, True, False), (False, False, True)]  # fmt: skip
    _, told = start(scene, "younk=4e4")
    assert "did you mean 'young'" in told.errors[0]


def test_a_player_that_dies_is_told_of_and_started_again_by_a_reset(scene):
    with open(scene, "w") as file:  # without the solid, whose kernels would have to be loaded twice
        file.writelines(line for line in SCENE.splitlines(keepends=True) if "Elastic" not in line)
    remote = Remote(scene, [])
    try:
        remote.send("show", "pressure")
        heard_by(remote, lambda m: isinstance(m, Moment) and m.figures.step > 0)
        remote.process.kill()
        failure = heard_by(remote, lambda m: isinstance(m, Notice) and m.kind == "failure")
        assert "has ended (exit status -9)" in failure.text and not remote.alive
        remote.send("step")  # nobody is there to hear it
        remote.send("reset")
        heard_by(remote, lambda m: isinstance(m, Opened))
        moment = heard_by(remote, lambda m: isinstance(m, Moment) and m.figures.step > 0)
        assert all(list(cloud.fields) == ["pressure"] for cloud in moment.snapshot.clouds.values())
    finally:
        remote.close()
    assert not remote.alive


def heard_by(remote, wanted, patience=300.0):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = [message for message in remote.wait(1.0) if wanted(message)]
        if found:
            return found[0]
    raise AssertionError("it was not heard of")
