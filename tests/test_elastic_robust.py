"""Elastic solids in states and of shapes that no user should ask for: nothing explodes, and errors are sentences."""

import numpy as np
import pytest

import pliant as pl

D = 0.05
POISSON = (-0.5, 0.3, 0.49)


def block(*cells, at=(0.0, 0.0, 0.0)):
    """A box of so many particles along each axis, its least corner at a point."""
    size = D * np.array(cells, float)
    return pl.Box(size=tuple(size), center=tuple(np.asarray(at) + size / 2))


def steps(sim, n):
    for _ in range(n):
        sim.step()


def total_energy(sim):
    return sim.stats.kinetic_energy + sim.stats.potential_energy + sim.elasticity.energy()


def is_sound(sim):
    p = sim.world.particles
    return all(np.isfinite(p.numpy(name)).all() for name in ("x", "v", "v_elastic", "effective_inverse_density", "p"))


# --- absurd states ----------------------------------------------------------------------------------


STATES = {
    "random": lambda X: X + 3 * D * np.random.default_rng(0).normal(size=X.shape),
    "flattened": lambda X: X * [1.0, 0.0, 1.0],
    "inside out": lambda X: X * [-1.0, 1.0, 1.0],
    "a point": lambda X: 0.0 * X,
    "stretched": lambda X: X * [2.0, 1.0, 1.0],
}


def energies(sim):
    """Elastic and kinetic energy of each body, in double precision."""
    result = {}
    for k, rest in enumerate(sim.elasticity.rests):
        name = sim.world.bodies[sim.elasticity.solids[k]].name
        view, law = sim[name], sim.elasticity.laws[k]
        x, F, R = view.x.astype(float), view.F.astype(float), view.R.astype(float)
        strain = ((F - R) ** 2).sum(axis=(1, 2))
        trace = np.einsum("nab,nab->n", R, F) - 3
        error = np.einsum("eab,eb->ea", F[rest.i], rest.Xij) - (x[rest.i] - x[rest.j])
        elastic = rest.V @ (law.shear * strain + 0.5 * law.lame_lambda[3] * trace**2)
        elastic += 0.5 * law.zero_energy * law.shear * (rest.zero_energy_weight @ (error**2).sum(axis=1))
        result[name] = elastic + 0.5 * float(view.mass @ (view.v.astype(float) ** 2).sum(axis=1))
    return result


@pytest.mark.parametrize("dt", [1e-3, 15e-3])
@pytest.mark.parametrize("young", [1e3, 1e6, 1e9])
def test_no_state_explodes_whatever_stiffness_step_and_poisson_ratio(young, dt):
    """All states and Poisson ratios at once, each a body of its own, out of reach of the others, and so small that no
    part of it is in contact with another."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=dt, elasticity=pl.Split(dt_elastic=dt))
    bodies = {}
    for a, nu in enumerate(POISSON):
        for b, name in enumerate(STATES):
            shape = block(3, 3, 3, at=(20.0 * a, 20.0 * b, 0))
            body = scene.add(shape, pl.Elastic(young=young, poisson=nu), name=f"{name} {nu}")
            bodies[body.name] = STATES[name]
    sim = scene.build()
    for name, deform in bodies.items():
        X = sim[name].rest.astype(float)
        middle = X.mean(axis=0)
        sim[name].x = middle + deform(X - middle)
    start, places = energies(sim), {name: sim[name].x.mean(axis=0) for name in bodies}
    assert min(start.values()) > 0
    np.testing.assert_allclose(sum(start.values()), sim.elasticity.energy(), rtol=1e-4)
    steps(sim, 60)
    assert is_sound(sim)
    end = energies(sim)
    assert {name: end[name] / start[name] for name in end if end[name] > start[name]} == {}
    for name in bodies:
        np.testing.assert_allclose(sim[name].x.mean(axis=0), places[name], atol=1e-3 * D)


def test_a_body_that_is_squeezed_into_itself_goes_on_or_says_so():
    """Far parts of one body press on each other; all at one point they may be kicked apart, but never to nowhere."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=1e-3)
    body = scene.add(block(5, 4, 4), pl.Elastic(young=1e3), name="body")
    sim = scene.build()
    sim[body].x = np.zeros((80, 3))
    try:
        steps(sim, 20)
    except pl.SimulationError as error:
        assert "broke down" in str(error) and "'body'" in str(error)
    assert is_sound(sim)


def test_an_inverted_soft_body_finds_its_shape_again():
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=0.015)
    body = scene.add(block(5, 4, 3), pl.Elastic(young=1e5), name="body")
    sim = scene.build()
    X = sim[body].rest.astype(float)
    sim[body].x = (X - X.mean(axis=0)) * [-1, 1, 1]
    start = sim.elasticity.energy()
    steps(sim, 150)
    assert sim.elasticity.energy() < 2e-2 * start


# --- falls and contact ------------------------------------------------------------------------------


@pytest.mark.parametrize("young", [1e4, 1e6, 1e8])
def test_a_body_survives_a_fall_from_a_hundred_metres(young):
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Plane(point=(0, 0, 0), normal=(0, 1, 0)), pl.Boundary(friction=0.3), name="ground")
    body = scene.add(block(5, 5, 5, at=(0, 0.1, 0)), pl.Elastic(young=young), name="body", velocity=(0, -44, 0))
    sim = scene.build()
    start, base = total_energy(sim), sim.stats.kinetic_energy
    highest = 0.0
    for k in range(100):
        sim.step()
        if k % 10 == 9:
            highest = max(highest, total_energy(sim) - start)
    assert is_sound(sim)
    assert highest < 0.01 * base
    assert sim.stats.momentum[1] > -0.1 * 44 * sim[body].mass.sum()  # it hit the ground
    assert sim[body].x[:, 1].min() > -D and np.isfinite(sim[body].F).all()


def test_bodies_that_overlap_at_the_start_part():
    """The builder leaves out what overlaps; here one is put into the other afterwards."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    one = scene.add(block(5, 5, 5), pl.Elastic(young=1e5), name="one")
    two = scene.add(block(5, 5, 5, at=(0.5, 0, 0)), pl.Elastic(young=1e5), name="two")
    sim = scene.build()
    sim[two].x = sim[two].rest - [0.5 - 2.3 * D, 0.4 * D, 0]
    sim.run(0.2)
    assert is_sound(sim) and sim.stats.max_speed < 20
    gap = np.linalg.norm(sim[one].x[:, None] - sim[two].x[None], axis=2).min()
    assert gap > 0.5 * D


def test_overlapping_shapes_are_carved_and_run():
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Sphere(radius=0.2), pl.Elastic(young=1e5), name="one")
    scene.add(pl.Sphere(radius=0.2, center=(0.25, 0, 0)), pl.Elastic(young=1e5), name="two")
    sim = scene.build()
    assert any("two" in note and "overlap one" in note for note in sim.notes)
    steps(sim, 30)
    assert is_sound(sim) and sim.stats.max_speed < 2.5  # by where particles happen to be 0.6 to 1.8


# --- thin and tiny bodies ---------------------------------------------------------------------------


THIN = {"sheet": ((8, 8, 1), "64 in sheets one particle thick"), "rod": ((1, 10, 1), "10 in threads"),
        "dot": ((1, 1, 1), "1 lonely"), "pair": ((2, 1, 1), "2 in threads")}  # fmt: skip


@pytest.mark.parametrize("elasticity", [pl.Split(), pl.Peer2018(), pl.Split(volume="cg")])
def test_thin_bodies_run_and_say_that_they_are_thin(elasticity):
    scene = pl.Scene(particle_radius=D / 2, elasticity=elasticity)
    scene.add(pl.Plane(point=(0, 0, 0), normal=(0, 1, 0)), pl.Boundary(), name="ground")
    for k, (name, (cells, _)) in enumerate(THIN.items()):
        scene.add(block(*cells, at=(k, 2 * D, 0)), pl.Elastic(young=1e5), name=name, velocity=(0, -1, 0))
    sim = scene.build()
    for name, (_, words) in THIN.items():
        (note,) = [n for n in sim.notes if n.startswith(f"{name}: ")]
        assert words in note and "smaller particle_radius" in note
    start = total_energy(sim)
    steps(sim, 80)
    assert is_sound(sim) and total_energy(sim) < start
    for name in THIN:
        assert sim[name].x[:, 1].min() > -0.2 * D


def test_a_sheet_and_a_thread_resist_being_stretched():
    for cells in ((8, 8, 1), (10, 1, 1)):
        scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=0.01)
        body = scene.add(block(*cells), pl.Elastic(young=1e5), name="thin")
        sim = scene.build()
        sim[body].x = sim[body].rest * [1.1, 1, 1]
        steps(sim, 60)
        np.testing.assert_allclose(np.ptp(sim[body].x[:, 0]), np.ptp(sim[body].rest[:, 0]), rtol=0.02)


def test_thick_bodies_say_nothing():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(block(4, 4, 4), pl.Elastic(), name="body")
    assert scene.build().notes == []


def test_a_solid_with_a_thin_handle_runs():
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, -9.81, 0))
    body = scene.add(block(4, 4, 4) | block(6, 1, 1, at=(4 * D, 2 * D, 2 * D)), pl.Elastic(young=1e5), name="pan")
    body.fix(lambda x: x[:, 0] < D)
    sim = scene.build()
    steps(sim, 150)
    assert is_sound(sim) and sim.stats.max_speed < 10


# --- held particles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("elasticity", [pl.Split(), pl.Peer2018(), pl.Split(volume="cg")])
def test_all_or_no_particles_may_be_held(elasticity):
    scene = pl.Scene(particle_radius=D / 2, dt=2e-3, elasticity=elasticity)
    scene.add(block(4, 3, 3), pl.Elastic(), name="stone").fix()
    scene.add(block(4, 3, 3, at=(1, 0, 0)), pl.Elastic(), name="feather").fix(lambda x: x[:, 0] < -9)
    sim = scene.build()
    where = sim["stone"].x
    steps(sim, 10)
    assert (sim["stone"].x == where).all() and not sim["feather"].fixed.any()
    np.testing.assert_allclose(sim["feather"].v, np.broadcast_to([0, -9.81 * 0.02, 0], (36, 3)), atol=1e-4)
    sim["feather"].fix()
    sim["stone"].release()
    where = sim["feather"].x
    steps(sim, 10)
    assert (sim["feather"].x == where).all()
    np.testing.assert_allclose(sim["stone"].v, np.broadcast_to([0, -9.81 * 0.02, 0], (36, 3)), atol=1e-4)


def test_only_one_particle_is_free_or_held():
    for free in (True, False):
        scene = pl.Scene(particle_radius=D / 2, dt=2e-3)
        body = scene.add(block(4, 4, 4), pl.Elastic(young=1e5), name="body")
        mask = np.full(64, free)
        mask[21] = not free
        body.fix(mask)
        sim = scene.build()
        steps(sim, 60)
        assert is_sound(sim) and sim[body].fixed.sum() == mask.sum()
        assert (sim[body].x[mask] == sim[body].rest[mask]).all()


# --- wrong parameters -------------------------------------------------------------------------------


def test_all_wrong_parameters_are_told_at_once():
    scene = pl.Scene(particle_radius=D / 2, elasticity=pl.Split(dt_elastic=-1.0, iterations=0, volume="magic",
                                                                control="none"))  # fmt: skip
    scene.add(block(4, 4, 4), pl.Elastic(density=0.0, young=float("nan"), poisson=0.5, zero_energy=-1.0, neighbors=2),
              name="one")  # fmt: skip
    scene.add(block(4, 4, 4, at=(1, 0, 0)), pl.Elastic(young=np.inf, poisson=-1.0, neighbor=10), name="two")
    with pytest.raises(pl.SceneError) as caught:
        scene.build()
    problems = caught.value.problems
    wanted = ["Split: dt_elastic", "Split: iterations", "Split: volume", "Split: control", "one: Elastic: density",
              "one: Elastic: young", "one: Elastic: poisson", "one: Elastic: zero_energy", "one: Elastic: neighbors",
              "two: Elastic: young", "two: Elastic: poisson", "did you mean 'neighbors'?"]  # fmt: skip
    for words in wanted:
        assert sum(words in sentence for sentence in problems) == 1, words
    assert len(problems) == len(wanted)
    assert all("\n" not in sentence and len(sentence) < 300 for sentence in problems)


@pytest.mark.parametrize("elasticity", [None, "split", 3, pl.Elastic(), pl.DFSPH()])
def test_what_is_no_elastic_solver_is_refused(elasticity):
    scene = pl.Scene(particle_radius=D / 2, elasticity=elasticity)
    scene.add(block(4, 4, 4), pl.Elastic(), name="body")
    with pytest.raises(pl.SceneError, match="elasticity must be a solver such as"):
        scene.build()


def test_the_ends_of_every_range_run():
    ends = ({"young": 1e12}, {"young": 1e-3}, {"poisson": 0.495}, {"poisson": -0.9}, {"density": 1e-3},
            {"density": 1e6}, {"zero_energy": 0.0}, {"zero_energy": 1e3}, {"neighbors": 6},
            {"neighbors": 1000})  # fmt: skip
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, -9.81, 0), dt=2e-3)
    for k, parameters in enumerate(ends):
        body = scene.add(block(5, 4, 4, at=(k, 0, 0)), pl.Elastic(**parameters), name=f"b{k}")
        body.fix(lambda x: x[:, 0] < x[:, 0].min() + D / 2)
    sim = scene.build()
    steps(sim, 30)
    assert is_sound(sim) and sim.stats.max_speed < 2 * 9.81 * sim.time
    for k, parameters in enumerate(ends):
        assert np.abs(sim[f"b{k}"].x - sim[f"b{k}"].rest).max() < 9.81 * sim.time**2, parameters


def test_explicit_control_says_what_it_cannot_hold():
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=2e-3, elasticity=pl.Peer2018())
    scene.add(block(4, 4, 4), pl.Elastic(young=1e8), name="body")
    sim = scene.build()
    steps(sim, 10)
    assert len([n for n in sim.notes if "of zero_energy=1 only" in n and "is stable" in n]) == 1


@pytest.mark.parametrize("by_view", [True, False], ids=["material", "change"])
def test_what_a_change_brings_up_is_noted_and_printed(by_view, capsys):
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), dt=2e-3, elasticity=pl.Peer2018())
    body = scene.add(block(4, 4, 4), pl.Elastic(young=1e8, zero_energy=0.0), name="body")
    sim = scene.build()
    assert sim.notes == [] and "zero_energy" not in capsys.readouterr().err
    if by_view:
        sim[body].material = pl.Elastic(young=1e8, zero_energy=1.0)
    else:
        sim.change(body, zero_energy=1.0)
    (note,) = sim.notes
    assert note.startswith("body: of zero_energy=1 only") and capsys.readouterr().err.count(note) == 1
