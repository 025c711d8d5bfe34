"""Many rigid bodies in water that touch the same particles."""

import numpy as np
import pytest

import pliant as pl
from pliant.boundary.wall_sides import SIDES
from pliant.solvers.rigid.articulation import Articulation
from pliant.solvers.rigid.sharing import Shared


def crowd(density=200.0, across=3, gap=0.02, radius=0.02):
    """Light crates side by side in a pool, with less than a layer of water between them."""
    scene, side = pl.Scene(particle_radius=radius), 0.12
    size = across * (side + gap) + 0.2
    scene.add(pl.Box(size=(size, 0.8, size), center=(0, 0.4, 0)), pl.Boundary(inside_out=True), name="pool")
    scene.add(pl.Box(size=(size, 0.24, size), center=(0, 0.12, 0)), pl.Fluid(), name="water")
    for k in range(across**2 * 2):
        layer, (i, j) = k // across**2, divmod(k % across**2, across)
        x, z = ((n - (across - 1) / 2) * (side + gap) for n in (i, j))
        box, stuff = pl.Box(size=(side,) * 3, center=(x, 0.31 + 0.14 * layer, z)), density * (1 + 3 * layer)
        scene.add(box, pl.Rigid(density=stuff, friction=0.3), name=f"crate{k}", velocity=(0, -1.5, 0))
    return scene


def test_a_crowd_that_falls_into_water_is_solved_in_few_sweeps():
    """Each body by itself would let the solve diverge: the water between two is pushed by both."""
    sim = crowd().build(quiet=True)
    energy, sweeps = np.inf, []
    while sim.time < 0.25:
        sim.step()
        stats = sim.stats
        sweeps.append(sim.results["divergence"].iterations)
        height = sum(9.81 * sim[body.name].mass * sim[body.name].position[1] for body in sim.scene.bodies[2:])
        total = stats.kinetic_energy + height + 9.81 * float((sim["water"].mass * sim["water"].x[:, 1]).sum())
        assert total < energy + 0.02 * abs(total)
        energy = min(energy, total)
    assert np.mean(sweeps) < 15 and max(sweeps) < 60
    assert np.abs(sim["water"].v).max() < 4.0


def test_shared_particles_are_found_pair_by_pair():
    sides = np.array([SIDES * 7, SIDES * 7 + 1, SIDES * 7 + 2, SIDES * 9, SIDES * 9 + 1, SIDES * 11, SIDES * 12])
    owners = np.array([4, 2, 3, 2, 3, 2, 4])
    shared = Shared.of(sides, owners)
    assert shared.pairs.tolist() == [[2, 3], [2, 4], [3, 4]]
    begin, end, one, other = shared.rows
    both = list(zip(one.tolist(), other.tolist(), strict=True))
    found = [sorted(both[b:e]) for b, e in zip(begin, end, strict=True)]
    assert found == [[(SIDES * 7 + 1, SIDES * 7 + 2), (SIDES * 9, SIDES * 9 + 1)], [(SIDES * 7 + 1, SIDES * 7)],
                     [(SIDES * 7 + 2, SIDES * 7)]]  # fmt: skip
    assert len(Shared.of(sides[5:], owners[5:]).pairs) == 0


@pytest.mark.parametrize("bodies", [2, 30])
def test_what_pairs_share_is_solved_for_as_by_a_full_matrix(bodies):
    rng = np.random.default_rng(bodies)
    chain = np.stack([np.arange(bodies - 1), np.arange(1, bodies)], axis=1)
    whole, between = np.zeros((6 * bodies, 6 * bodies)), np.zeros((len(chain), 6, 6))
    for k in range(bodies):
        whole[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] += np.diag(rng.uniform(0.1, 10, 6))
    for k, (a, b) in enumerate(chain):
        G = rng.normal(size=(8, 12))
        rows = np.concatenate([np.arange(6 * a, 6 * a + 6), np.arange(6 * b, 6 * b + 6)])
        whole[np.ix_(rows, rows)] += G.T @ G
        between[k] = (G.T @ G)[:6, 6:]
    A = np.array([whole[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(bodies)])
    wanted, z = rng.normal(size=(bodies, 6)), np.zeros((bodies, 6))
    Shared(chain).solve(A, between, wanted, [], z)
    exact = np.linalg.solve(whole, wanted.ravel()).reshape(-1, 6)
    assert np.abs(z - exact).max() < 1e-3 * np.abs(exact).max()


def test_links_share_by_the_coordinates_of_their_mechanism():
    """Two links that one hinge turns, beside a free body: the full matrix in the coordinates of all."""
    rng = np.random.default_rng(5)
    links = Articulation(np.array([1, 2]), np.array([1, 2]))
    links.J, links.A = rng.normal(size=(12, 2)), np.diag([0.3, 0.02])
    mass, G = np.diag(rng.uniform(0.1, 2.0, 6)), rng.normal(size=(9, 18))
    S = G.T @ G
    A = np.array([S[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(3)])
    A[0] += mass
    between = np.array([S[:6, 6:12], S[6:12, 12:]])
    S[:6, 12:] = S[12:, :6] = 0.0  # of no pair
    T = np.block([[np.eye(6), np.zeros((6, 2))], [np.zeros((12, 6)), links.J]])
    whole = T.T @ S @ T + np.block([[mass, np.zeros((6, 2))], [np.zeros((2, 6)), links.A]])
    wanted, z = rng.normal(size=(3, 6)), np.zeros((3, 6))
    Shared(np.array([[0, 1], [1, 2]])).solve(A, between, wanted, [links], z)
    exact = (T @ np.linalg.solve(whole, T.T @ wanted.ravel())).reshape(-1, 6)
    assert np.abs(z - exact).max() < 1e-3 * np.abs(exact).max()
