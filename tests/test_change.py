"""Parameters that change while a simulation runs."""

import numpy as np
import pytest

import pliant as pl
from pliant.errors import PliantError, SceneError
from pliant.solvers.elasticity import base, split
from pliant.solvers.linear import cholesky


def tank(**settings):
    """Water, a jelly cube and sand side by side, and a ball above them."""
    scene = pl.Scene(particle_radius=0.025, **settings)
    scene.add(pl.Box(size=(1.2, 0.8, 0.4), center=(0.6, 0.4, 0.2)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.3, 0.3, 0.4), center=(0.15, 0.15, 0.2)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(0.6, 0.3, 0.2)), pl.Elastic(young=1e5), name="cube")
    scene.add(pl.Box(size=(0.2, 0.2, 0.4), center=(1.05, 0.1, 0.2)), pl.Granular(), name="sand")
    scene.add(pl.Sphere(radius=0.12, center=(0.6, 0.6, 0.2)), pl.Elastic(young=3e5), name="ball")
    return scene


def moved(steps=5, **settings):
    sim = tank(**settings).build()
    for _ in range(steps):
        sim.step()
    return sim


def state(sim):
    return np.concatenate([sim[name].x for name in ("water", "cube", "sand", "ball")])


def test_a_change_to_the_value_that_is_there_changes_no_bit():
    plain, changed = moved(), moved()
    changed.change(gravity=(0.0, -9.81, 0.0))
    changed.change("water", viscosity=1e-6, density=1000.0)
    changed.change("cube", young=1e5, density=1000.0)
    changed.change("sand", friction_angle=35.0)
    for _ in range(5):
        plain.step()
        changed.step()
    assert changed.time == plain.time
    np.testing.assert_array_equal(state(changed), state(plain))


def test_gravity_acts_from_the_next_step_on():
    scene = pl.Scene(particle_radius=0.05, dt=0.01)
    scene.add(pl.Box(size=(0.3, 0.3, 0.3)), pl.Fluid(), name="drop")
    sim = scene.build()
    sim.step()
    before = sim["drop"].v[:, 1].mean()
    assert before == pytest.approx(-0.0981, rel=1e-3)
    sim.change(gravity=(0.0, 0.0, 0.0))
    sim.step()
    assert sim["drop"].v[:, 1].mean() == pytest.approx(before, rel=1e-4)
    sim.change(gravity=(5.0, 0.0, 0.0))
    sim.step()
    assert sim["drop"].v[:, 0].mean() == pytest.approx(0.05, rel=1e-3)


def test_a_density_changes_the_masses_and_nothing_else():
    sim = moved()
    x, v, mass = sim["cube"].x, sim["cube"].v, sim["cube"].mass
    sim.change("cube", density=300.0)
    np.testing.assert_array_equal(sim["cube"].x, x)
    np.testing.assert_array_equal(sim["cube"].v, v)
    np.testing.assert_allclose(sim["cube"].mass, 0.3 * mass, rtol=1e-6)
    sim.step()


def test_a_stiffness_is_that_of_a_scene_built_with_it():
    """A beam held at one end hangs lower the softer it is, wherever the stiffness comes from."""

    def beam(young):
        scene = pl.Scene(particle_radius=0.02)
        body = scene.add(pl.Box(size=(0.4, 0.08, 0.08), center=(0.2, 0.0, 0.0)), pl.Elastic(young=young), name="beam")
        body.fix(lambda x: x[:, 0] < 0.05)
        return scene.build()

    changed, built = beam(1e6), beam(2e5)
    changed.change("beam", young=2e5)
    for sim in (changed, built):
        sim.run(0.05)
    np.testing.assert_allclose(changed["beam"].x, built["beam"].x, atol=1e-5)
    assert changed["beam"].x[:, 1].min() < beam(1e6)["beam"].x[:, 1].min() - 1e-3


def test_what_takes_long_is_made_again_only_where_it_changes(monkeypatch):
    """Rest poses last; of two bodies, only the one that gets another stiffness is factorised anew."""
    sim = moved()
    factorised = []
    monkeypatch.setattr(split, "factorise", lambda *args: factorised.append(len(args[1])) or cholesky.factorise(*args))
    monkeypatch.setattr(base, "rest_pose", lambda *args: pytest.fail("a rest pose was made anew"))
    sim.change(gravity=(0.0, -1.0, 0.0))
    sim.change("water", density=900.0)
    sim.step()
    assert not factorised
    sim.change("ball", young=1e5)
    sim.step()
    assert factorised == [len(sim["ball"])]
    sim.change("cube", density=500.0)
    sim.step()
    assert factorised == [len(sim["ball"]), len(sim["cube"])]


def test_forces_come_and_go():
    sim = moved(air=pl.Air(velocity=(3.0, 0.0, 0.0)))
    names = {force.name for force in sim.stages}
    assert {"gravity", "drag"} <= names
    sim.change(air=None)
    sim.change(gravity=(0.0, 0.0, 0.0))
    assert not {"gravity", "drag"} & {force.name for force in sim.stages}
    sim.step()
    sim.change("water", viscosity=5.0)  # too thick for explicit steps: another solver
    sim.step()
    sim.change(air=pl.Air(velocity=(20.0, 0.0, 0.0)))
    sim.step()
    assert "drag" in {force.name for force in sim.stages}


def test_rough_walls():
    """A block of sand slides on ice, and stops once the ground is rough."""
    scene = pl.Scene(particle_radius=0.025)
    scene.add(pl.Plane(), pl.Boundary(friction=0.0), name="ground")
    scene.add(pl.Box(size=(0.3, 0.1, 0.3), center=(0, 0.05, 0)), pl.Granular(), name="sand", velocity=(1.0, 0, 0))
    sim = scene.build()
    sim.run(0.05)
    assert sim["sand"].v[:, 0].mean() > 0.99
    sim.change("ground", friction=1.0)
    sim.run(0.15)
    assert sim["sand"].v[:, 0].mean() < 0.2


@pytest.mark.parametrize(
    ("body", "values", "sentence"),
    [
        (None, {"gravty": 1}, "did you mean 'gravity'"),
        ("water", {"viscosity": -1.0}, "viscosity must be in [0, 1000]"),
        ("cube", {"poisson": 0.6}, "poisson must be in"),
        ("duck", {"young": 1.0}, "unknown body 'duck'"),
        (None, {"particle_radius": 0.1}, "cannot change while they move"),
        ("sand", {"grains": 5}, "cannot change while they move"),
        (None, {"gravity": (0.0, float("nan"), 0.0)}, "gravity must be three numbers"),
    ],
)
def test_wrong_changes_are_refused_in_a_sentence(body, values, sentence, still):
    with pytest.raises(PliantError, match=sentence.replace("[", r"\[").replace("(", r"\(")):
        still.change(body, **values)


@pytest.fixture(scope="module")
def still():
    return tank().build()


def test_a_refused_change_leaves_everything_as_it_was(still):
    before = state(still)
    with pytest.raises(SceneError):
        still.change("cube", young=2e5, poisson=0.7)
    assert still["cube"].material.young == 1e5
    np.testing.assert_array_equal(state(still), before)


def test_many_changes_take_no_memory():
    scene = pl.Scene(particle_radius=0.01)
    scene.add(pl.Box(size=(0.5, 0.4, 0.4)), pl.Fluid(), name="water")
    sim = scene.build()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(3):
        sim.change("water", viscosity=1e-5)
    before, each = resident(), sim.particles * sim.world.particles.bytes_per_element
    for _ in range(10):
        sim.change("water", viscosity=1e-4)
    assert resident() - before < 4 * each
