"""Every ready scene runs at low resolution, passes its own check, and goes on exactly from a state of its middle."""

import importlib
import pkgutil

import numpy as np
import pytest

import pliant as pl
import pliant.scenes

LOW = {  # options of build(), and seconds after which check() holds
    "bowl_of_tori": ({"count": 5}, 2.0),
    "box_tower": ({"boxes": 5, "ball": 0.6}, 3.2),
    "bunny_moving": ({"radius": 0.06}, 0.6),
    "bunny_on_sand": ({"radius": 0.03}, 0.6),
    "cantilever_alpha": ({"radius": 0.0167}, 0.6),
    "dam_break": ({"radius": 0.04}, 1.2),
    "dam_break_cubes": ({"radius": 0.025}, 0.7),
    "dominoes": ({"count": 8}, 1.2),
    "double_dam_break": ({"radius": 0.04}, 1.0),
    "falling_bodies_in_water": ({"radius": 0.038, "dt": 4e-3}, 1.1),
    "drops": ({"radius": 0.00035}, 0.1),
    "erosion": ({"radius": 0.016}, 1.6),
    "excavator": ({"radius": 0.018}, 1.4),
    "faucet": ({"radius": 0.0075}, 1.0),
    "floating_crates": ({"radius": 0.018}, 2.2),
    "fountain": ({"radius": 0.02}, 0.6),
    "gripper": ({"radius": 0.016, "drop": 0.0}, 1.8),
    "honey": ({"radius": 0.006}, 0.5),
    "hourglass": ({"radius": 0.0075, "neck": 0.03}, 0.5),
    "moving_wall": ({"radius": 0.05}, 2.5),
    "pouring": ({"radius": 0.006, "turn": 1.8}, 2.6),
    "quicksand": ({"radius": 0.02}, 0.8),
    "rain_of_ducks": ({"radius": 0.03, "ducks": 2, "every": 0.2}, 1.2),
    "randomized_walrus": ({"radius": 0.07, "dt": 5e-3}, 2.4),
    "robot_in_water": ({"radius": 0.03}, 1.2),
    "sand_column": ({"radius": 0.009}, 1.0),
    "sand_pour": ({"radius": 0.007}, 1.8),  # earlier the pile is some layers high, and its slope scatters
    "sand_piles": ({"radius": 0.014, "seconds": 1.2}, 2.1),
    "sandstorm": ({"radius": 0.018}, 0.8),
    "seeping_dam": ({"radius": 0.02}, 1.2),
    "ship": ({"radius": 0.03}, 1.6),
    "squeezed_stack": ({"radius": 0.017, "dt": 4e-3}, 1.6),
    "still_water": ({"radius": 0.03}, 3.0),
    "twisted_beam": ({"radius": 0.05, "turns": 2.0, "seconds": 0.2}, 0.6),
    "water_wheel": ({"radius": 0.02}, 2.2),
    "wet_and_dry": ({"radius": 0.02}, 0.8),
    "wheel_in_sand": ({"radius": 0.025}, 1.0),
    "wobbling_armadillo": ({"radius": 0.05}, 0.5),
}


def test_every_scene_is_tested():
    assert {module.name for module in pkgutil.iter_modules(pliant.scenes.__path__)} == set(LOW)


def exchange(sim):
    """Takes every fifth particle of what flows out and puts new ones in its place: the scene goes on all the same."""
    for body in sim.scene.bodies:
        if body.material.has_particles and body.material.fluid_like:
            view, rows = sim[body], np.arange(len(sim[body])) % 5 == 0
            x, v, count, grains = view.x[rows], view.v[rows], len(view), len(view.grains)
            view.remove(rows)
            assert len(view) == count - rows.sum()
            view.add(x, v)
            assert len(view) == count and len(view.grains) == grains
    speed = sim.stats.max_speed
    for _ in range(3):
        sim.step()
    stats = sim.stats
    for name, count in stats.initial.items():
        assert count + stats.emitted[name] == len(sim[name]) + stats.drained[name]
    assert stats.max_speed < 2 * speed + 1


@pytest.mark.parametrize("name", LOW)
def test_scene(name, tmp_path, assert_same_state):
    options, seconds = LOW[name]
    if name == "robot_in_water":
        pytest.importorskip("mujoco", reason="robots are moved by MuJoCo: pip install pliant[robots]")
    scene = importlib.import_module(f"pliant.scenes.{name}")
    sim = scene.build(**options).build()
    sim.run(seconds / 2)
    sim.step()
    sim.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz", scene=scene.build(**options))
    assert_same_state(sim, other)
    for one in (sim, other):
        one.run(0.02)
        one.step()
    assert_same_state(sim, other)
    exchange(other)
    sim.run(seconds - sim.time)
    scene.check(sim)


def test_dam_break_without_obstacle():
    sim = importlib.import_module("pliant.scenes.dam_break").build(radius=0.05, obstacle=False).build()
    assert [body.name for body in sim.scene.bodies] == ["tank", "water"]
    sim.run(0.1)
    assert sim["water"].x[:, 0].max() > 1.228, "the column does not collapse"


def test_round_column_of_sand():
    scene = importlib.import_module("pliant.scenes.sand_column")
    sim = scene.build(radius=0.012, round=True).build()
    sim.run(0.9)
    scene.check(sim)
    x = sim["sand"].x
    assert np.abs(x.mean(axis=0)[[0, 2]]).max() < 0.1 * scene.WIDTH, "it has not remained round"
