"""Mirror images in walls: against a slow twin, and what they are there for."""

import itertools

import numpy as np
import pytest

import pliant as pl
from pliant.boundary import images
from pliant.core.smoothing import smoothing
from pliant.tools.validation.flow import imbalance

D = 0.1
W = smoothing("cubic_spline")


def filled(side=6, jitter=0.0, hollow=None, **wall):
    """A block of water that fills the lower half of a hollow, its particles a little off the lattice."""
    scene = pl.Scene(particle_radius=D / 2)
    box = pl.Box(size=(side * D, 2 * side * D, side * D), center=(side * D / 2, side * D, side * D / 2))
    scene.add(hollow or box, pl.Boundary(inside_out=True, **wall), name="tank")
    scene.add(pl.Box(size=(side * D,) * 3, center=(side * D / 2,) * 3), pl.Fluid(), name="water")
    sim = scene.build(quiet=True)
    x = sim["water"].x + np.random.default_rng(0).uniform(-jitter, jitter, (sim.particles, 3)) * D
    sim["water"].x = x.clip(0.3 * D, side * D - 0.3 * D)
    prepare(sim)
    return sim


def prepare(sim):
    sim.find_neighbors()
    sim.pressure.prepare()


def twin(x, side):
    """Density by images in the floor and the four sides of a box, and its gradient with respect to each particle: sums
    over all particles and all sets of sides."""
    distance = [x[:, 1], x[:, 0], side * D - x[:, 0], x[:, 2], side * D - x[:, 2]]
    normal = np.array([[0, 1, 0], [1, 0, 0], [-1, 0, 0], [0, 0, 1], [0, 0, -1]])
    phi = [D / 2 + images.STEEP * (values - D / 2) for values in distance]
    seen = [values < images.IMAGE_REACH * D for values in distance]
    dx = x[:, None] - x[None]
    rho, gradient, h, step = np.zeros(len(x)), np.zeros_like(x), 2 * D, 1e-6 * D
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(5), k) for k in (1, 2, 3)):
        if {1, 2} <= set(chosen) or {3, 4} <= set(chosen):
            continue
        both = np.logical_and.reduce([seen[s][:, None] & seen[s] for s in chosen])
        R = np.sqrt((dx**2).sum(axis=-1) + 4 * sum(phi[s][:, None] * phi[s] for s in chosen))
        slope = both * (W.W(R + step, h) - W.W(R - step, h)) / (2 * step) / R
        here = dx + 2 * images.STEEP * sum(phi[s][None, :, None] * normal[s] for s in chosen)
        rho += D**3 * (both * W.W(R, h)).sum(axis=1)
        gradient += D**3 * (slope[..., None] * here).sum(axis=1)
        gradient += D**3 * np.einsum("iik->ik", slope[..., None] * here)  # its own image moves as well
    return rho, gradient


def test_densities_and_gradients_are_those_of_the_twin():
    sim = filled(jitter=0.2)
    p = sim.world.particles
    rho, gradient = twin(p.numpy("x").astype(float), 6)
    assert np.abs(p.numpy("wall_density") - rho).max() < 1e-5
    assert np.abs(p.numpy("image_gradient") - gradient).max() < 1e-4 * np.abs(gradient).max()


def test_a_lattice_has_density_one_in_every_edge_and_corner():
    sim = filled()
    p = sim.world.particles
    below = p.numpy("x")[:, 1] < 5 * D
    assert np.abs(p.numpy("density") + p.numpy("wall_density") - 1)[below].max() < 1e-5


@pytest.mark.parametrize("hollow", [None, pl.Cylinder(radius=0.45, height=1.2, center=(0.3, 0.6, 0.3))])
def test_the_flux_is_the_change_of_the_density_by_a_moving_wall(hollow):
    """Against water that is moved and a wall at rest: the flux is what the density would lose if the water moved with
    the wall."""
    sim = filled(jitter=0.1, hollow=hollow)
    p, step = sim.world.particles, 1e-3 * D
    x, found = p.numpy("x"), []
    for way in (1, -1):
        p.set("x", x + way * step * np.array([0.6, 0.8, 0.0]))
        prepare(sim)
        order = np.argsort(p.numpy("id"))
        found.append(p.numpy("wall_density").astype(float)[order])
    moved = filled(jitter=0.1, hollow=hollow)
    moved.world.walls.walls[0].motion = lambda t: (-0.6, -0.8, 0.0)
    prepare(moved)
    q = moved.world.particles
    flux = q.numpy("wall_flux")[np.argsort(q.numpy("id"))]
    assert np.abs(flux + (found[0] - found[1]) / (2 * step)).max() < 0.02 * np.abs(flux).max()


def test_what_is_behind_a_thin_plate_has_no_image_before_it():
    """A particle on either side of a plate, 1.4 spacings apart: each sees its own image, and no other."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Box(size=(1, 0.4 * D, 1)), pl.Boundary(), name="plate")
    for k, y in enumerate((0.7 * D, -0.7 * D)):
        scene.add(pl.Box(size=(D, D, D), center=(0, y, 0)), pl.Fluid(), name=f"drop{k}")
    sim = scene.build(quiet=True)
    prepare(sim)
    assert sim.particles == 2 and (sim.world.particles.numpy("wall_density") > 0).all()
    assert not sim.pressure.images.rows.image_count.to_numpy()[:2].any()


def test_impulses_and_momentum_agree_where_water_and_a_solid_lie_on_a_floor():
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Box(size=(0.4, 0.8, 0.4), center=(0.2, 0.4, 0.2)), pl.Boundary(inside_out=True), name="tank")
    block = pl.Box(size=(0.16, 0.16, 0.16), center=(0.12, 0.08, 0.2))
    scene.add(block, pl.Elastic(density=2000.0), name="block")
    scene.add(pl.Box(size=(0.4, 0.24, 0.4), center=(0.2, 0.12, 0.2)) - block, pl.Fluid(), name="water")
    assert imbalance(scene.build(quiet=True), ["tank"], 0.05) < 3e-5


def test_sand_has_the_walls_it_had():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box(size=(0.4, 0.4, 0.4), center=(0, 0.2, 0)), pl.Granular(), name="sand")
    sim = scene.build(quiet=True)
    sim.step()
    assert not sim.pressure.images.wanted
    assert not sim.pressure.images.rows.image_count.to_numpy().any()
