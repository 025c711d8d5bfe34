"""Smoothing functions and neighbor lists, against closed forms and a slow NumPy twin."""

import itertools

import numpy as np
import pytest
import taichi as ti

from pliant.core.backend import Ints, Reals, task, turns
from pliant.core.neighbors import BLOCK, GROUP, RUN, START_DEPTH, START_ROOM, Neighbors
from pliant.core.particles import Particles
from pliant.core.smoothing import SMOOTHINGS, SPACINGS_PER_SUPPORT, smoothing

D = 0.1
H = SPACINGS_PER_SUPPORT * D
OPEN = (None, None, None)
LATTICE = np.array(list(itertools.product(range(-2, 3), repeat=3)), dtype=float)

every_smoothing = pytest.mark.parametrize("name", sorted(SMOOTHINGS))


@ti.kernel
def _evaluate(w: ti.template(), f: ti.template(), q: Reals, value: Reals, factor: Reals):
    for i in range(q.shape[0]):
        value[i], factor[i] = w(q[i]), f(q[i])


def on_device(name: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w(q) and f(q) as the kernels see them."""
    arrays = [ti.ndarray(ti.f32, len(q)) for _ in range(3)]
    arrays[0].from_numpy(q.astype(np.float32))
    _evaluate(SMOOTHINGS[name].w, SMOOTHINGS[name].f, *arrays)
    return arrays[1].to_numpy(), arrays[2].to_numpy()


def slope(name: str, q: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """w'(q) by central differences in double precision."""
    profile = SMOOTHINGS[name].profile
    return (profile(q + step) - profile(q - step)) / (2 * step)


def lists(x: np.ndarray, period: tuple = OPEN, name: str = "cubic_spline", V: np.ndarray | None = None) -> Neighbors:
    """Neighbor lists of particles at x."""
    p = Particles(["all"])
    p.add(0, {"x": x, "V": np.full(len(x), D**3) if V is None else V})
    neighbors = Neighbors(p, smoothing(name), D, period)
    neighbors.update(x.min(axis=0).astype(float), x.max(axis=0).astype(float))
    return neighbors


def tables(neighbors: Neighbors) -> tuple[np.ndarray, np.ndarray]:
    """How often j stands in the list of i, and its gradient factor; rows and columns by id."""
    n, ids = neighbors.particles.n, neighbors.particles.numpy("id")
    span, neighbor, factor = (getattr(neighbors, k).to_numpy() for k in ("span", "neighbor", "factor"))
    times, factors = np.zeros((n, n), int), np.zeros((n, n))
    for i in range(n):
        row = slice(*span[i])
        for j, g in zip(neighbor[row], factor[row], strict=True):
            times[ids[i], ids[j]] += 1
            factors[ids[i], ids[j]] += g
    return times, factors


def distances(x: np.ndarray, period: tuple = OPEN) -> np.ndarray:
    dx = x.astype(np.float32).astype(float)[:, None] - x.astype(np.float32).astype(float)[None]
    for k, length in enumerate(period):
        if length:
            dx[..., k] -= length * np.round(dx[..., k] / length)
    return np.linalg.norm(dx, axis=-1)


def check_against_twin(x: np.ndarray, period: tuple = OPEN, name: str = "cubic_spline", slack: float = 1e-5) -> None:
    """Lists, factors and densities of a cloud with uneven volumes; pairs within `slack` h of the support may go
    either way."""
    V = D**3 * np.random.default_rng(1).uniform(0.5, 1.5, len(x))
    neighbors = lists(x, period, name, V)
    times, factors = tables(neighbors)
    r, s = distances(x, period), neighbors.smoothing
    certain = np.abs(r - H) > slack * H
    wanted = (r < H) & ~np.eye(len(x), dtype=bool)
    assert np.array_equal(times[certain], wanted[certain])
    q = np.clip(r / H, 1e-4, 2)
    expected = np.where(wanted, s.sigma(H) / H**2 * V * slope(name, q) / q, 0.0)
    assert np.abs(factors - expected)[q > 1e-2].max() < 200 * slack * np.abs(expected).max() / 20
    density = (V * s.W(r, H)).sum(axis=1)
    np.testing.assert_allclose(neighbors.particles.by_id("density"), density, rtol=10 * slack)


@every_smoothing
def test_integral_over_the_ball_is_one(name):
    t, weight = np.polynomial.legendre.leggauss(8)
    q = np.concatenate([0.25 + 0.25 * t, 0.75 + 0.25 * t])  # exact for both polynomial pieces
    integral = 4 * np.pi * (np.tile(0.25 * weight, 2) * q**2 * SMOOTHINGS[name].profile(q)).sum()
    assert SMOOTHINGS[name].norm * integral == pytest.approx(1.0, rel=1e-12)


@every_smoothing
def test_device_function_equals_its_twin(name):
    q = np.linspace(0, 1.5, 301)
    np.testing.assert_allclose(on_device(name, q)[0], SMOOTHINGS[name].profile(q), atol=2e-6)


@every_smoothing
def test_gradient_factor_against_finite_differences(name):
    q = np.linspace(0.01, 1.2, 239)
    np.testing.assert_allclose(on_device(name, q)[1] * q, slope(name, q), atol=3e-5)


@every_smoothing
def test_nothing_beyond_the_support(name):
    value, factor = on_device(name, np.array([1.0, 1.0001, 1.5, 2.0, 100.0]))
    assert not value.any() and not factor.any()


@every_smoothing
def test_a_particle_upon_itself_stays_finite(name):
    value, factor = on_device(name, np.array([0.0, 1e-20, 1e-7]))
    assert np.isfinite(value).all() and np.isfinite(factor).all()


@every_smoothing
@pytest.mark.parametrize("spacing", [1e-3, 0.1, 7.0])
def test_rest_lattice_has_density_one(name, spacing):
    r = np.linalg.norm(spacing * LATTICE, axis=1)
    assert (spacing**3 * SMOOTHINGS[name].W(r, 2 * spacing)).sum() == pytest.approx(1.0, rel=1e-12)


@every_smoothing
def test_plane_sum_against_a_sum_over_a_plane(name):
    for z in (0.0, 0.3, 1.0, 1.7):
        r = D * np.linalg.norm(LATTICE[LATTICE[:, 2] == 0] + (0, 0, z), axis=1)
        direct = (D**3 * SMOOTHINGS[name].W(r, H)).sum()
        assert SMOOTHINGS[name].plane_sum(np.array(z)) == pytest.approx(direct, rel=1e-12)


@every_smoothing
def test_planes_make_up_the_rest_lattice(name):
    planes = SMOOTHINGS[name].plane_sum(np.arange(-2.0, 3.0))
    assert planes.sum() == pytest.approx(1.0, rel=1e-12) and planes[0] == planes[-1] == 0.0


@every_smoothing
def test_lists_of_a_random_cloud(name):
    check_against_twin(np.random.default_rng(0).uniform((-0.3, 1.0, 5.0), (0.5, 1.6, 5.5), (400, 3)), name=name)


@pytest.mark.parametrize("period", [(0.7, None, None), (None, 0.65, None), (None, None, 0.8), (0.6, 0.75, 0.9),
                                    (3 * H, 3 * H, 3 * H)])  # fmt: skip
def test_lists_across_periodic_ends(period):
    x = np.random.default_rng(2).uniform(0, [p or 0.5 for p in period], (400, 3))
    check_against_twin(x, period)


@pytest.mark.parametrize("periods_away", [0.5, 1.0, 3.0])
def test_periodic_particles_may_start_outside_the_first_period(periods_away):
    """Positions come back into the period only when they move, so the first step sees them where they were put."""
    x = np.random.default_rng(3).uniform(0, 0.7, (300, 3)) - periods_away * 0.7
    check_against_twin(x, (0.7, 0.7, 0.7))


def test_pairs_that_barely_reach_each_other():
    """The runs of cells that are searched are cut to the support; they must not be cut a little too short."""
    rng = np.random.default_rng(10)
    out = rng.normal(size=(300, 3))
    out[:200, 1:] = 0.0  # along the runs
    out *= 0.999 * H / np.linalg.norm(out, axis=1)[:, None]
    first = np.stack(np.meshgrid(*[np.arange(7)] * 3), -1).reshape(-1, 3)[:300] * 4.1 * H + rng.uniform(0, H, (300, 3))
    times, _ = tables(lists(np.concatenate([first, first + out])))
    assert (times.sum(axis=1) == 1).all() and (times[np.arange(300), np.arange(300) + 300] == 1).all()


def test_stragglers_far_away_neither_blow_the_grid_up_nor_lose_neighbors():
    rng = np.random.default_rng(4)
    bulk = rng.uniform(0, 0.6, (300, 3))
    places = np.array([(1e4, 0, 0), (0, -1e4, 0), (1e4, 1e4, 1e4), (-1e4, 30, -1e4)])
    far = np.repeat(places, 3, axis=0) + rng.uniform(0, 0.1, (12, 3))
    check_against_twin(np.concatenate([bulk, far]), slack=1e-4)


def test_lists_grow_for_a_dense_clump():
    rng = np.random.default_rng(5)
    clump = rng.uniform(-0.2 * H, 0.2 * H, (300, 3))
    check_against_twin(np.concatenate([clump, rng.uniform(0.3, 0.9, (100, 3))]))


@pytest.mark.parametrize("members", [START_DEPTH - RUN, START_DEPTH - RUN + 1, START_DEPTH, START_ROOM, START_ROOM + 1])
def test_a_list_that_is_exactly_full_loses_nobody(members):
    """As many neighbors as there is room for, and further candidates that are none."""
    rng = np.random.default_rng(6)
    clump = rng.uniform(-0.1 * H, 0.1 * H, (members + 1, 3))
    around = rng.uniform(-2 * H, 2 * H, (200, 3))
    around = around[np.linalg.norm(around, axis=1) > 1.3 * H]
    check_against_twin(np.concatenate([clump, around]))


@pytest.mark.parametrize("count", [GROUP - 1, GROUP + 1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_groups_and_blocks_that_are_not_full(count):
    check_against_twin(np.random.default_rng(count).uniform(0, 3 * D, (count, 3)))


def test_order_depends_on_positions_alone():
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 0.6, (400, 3))
    given, shuffled = lists(x), lists(x[rng.permutation(len(x))])
    for field in ("x", "density"):
        assert np.array_equal(given.particles.numpy(field), shuffled.particles.numpy(field))
    entries = int(given.span.to_numpy().max())
    assert np.array_equal(given.span.to_numpy(), shuffled.span.to_numpy())
    assert np.array_equal(given.neighbor.to_numpy()[:entries], shuffled.neighbor.to_numpy()[:entries])


@every_smoothing
def test_coincident_particles(name):
    x = np.concatenate([np.full((10, 3), 0.25), np.random.default_rng(9).uniform(0.5, 0.9, (50, 3))])
    neighbors = lists(x, name=name)
    s = SMOOTHINGS[name]
    assert np.isfinite(tables(neighbors)[1]).all()
    density = (D**3 * s.W(distances(x), H)).sum(axis=1)
    np.testing.assert_allclose(neighbors.particles.by_id("density"), density, rtol=1e-5)


def test_one_particle_alone():
    neighbors = lists(np.array([[0.3, -2.0, 1.0]]))
    assert np.array_equal(neighbors.span.to_numpy(), [[0, 0]])
    assert neighbors.particles.numpy("density")[0] == pytest.approx(
        D**3 * SMOOTHINGS["cubic_spline"].W(0.0, H), rel=1e-6
    )


@ti.kernel
def _count_tasks(tasks: ti.i32, done: Ints):
    for turn in range(turns(tasks)):
        k = task(turn)
        if k < tasks:
            done[k] += 1


@pytest.mark.parametrize("tasks", [1, 31, 33, 511, 720, 16_384, 16_385, 40_000])
def test_each_task_is_done_once(tasks):
    done = np.zeros(tasks, np.int32)
    _count_tasks(tasks, done)
    assert (done == 1).all()
