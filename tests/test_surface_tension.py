"""Surface tension: what the skin pulls with, what it keeps, and what drops do."""

import numpy as np
import pytest

import pliant as pl

SIGMA, D = 0.072, 1e-3


def block(layers: int, jitter: float, angle: float | None = None, **fluid: float) -> pl.Simulation:
    """A block of liquid on a floor, 16 spacings long and periodic along z, its particles moved by up to `jitter` d."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), periodic=(None, None, 8 * D))
    scene.add(pl.Plane(), pl.Boundary(contact_angle=angle), name="floor")
    shape = pl.Box(size=(16 * D, layers * D, 8 * D), center=(0, layers * D / 2, 4 * D))
    scene.add(shape, pl.Fluid(surface_tension=SIGMA, viscosity=0, **fluid), name="water")
    sim = scene.build(quiet=True)
    x = sim["water"].x
    x += jitter * D * np.random.default_rng(1).uniform(-1, 1, x.shape)
    sim["water"].x = np.maximum(x, [-np.inf, 0.3 * D, 0.0])
    return sim


def names(sim: pl.Simulation) -> list[str]:
    return [group.name for group in sim.world.bodies]


def impulses(sim: pl.Simulation) -> np.ndarray:
    """What surface tension alone does to particles at rest in a second (n, 3) [N s]."""
    for name in names(sim):
        sim[name].v = np.zeros_like(sim[name].x)
    sim.find_neighbors()
    sim.world.walls.sample(0.0)
    sim.stage("surface tension").run(1.0)
    return np.concatenate([sim[name].mass[:, None].astype(float) * sim[name].v for name in names(sim)])


@pytest.mark.parametrize("layers, jitter", [(6, 0.0), (6, 0.15), (2, 0.15), (1, 0.15)])
@pytest.mark.parametrize("angle", [None, 45.0, 135.0])
def test_one_half_pulls_the_other_by_young(layers: int, jitter: float, angle: float | None):
    """Across its middle a block is held together by sigma at its upper side, and -sigma cos(angle) at the floor."""
    sim = block(layers, jitter, angle)
    right = sim["water"].x[:, 0] > 0
    pull = -impulses(sim)[right, 0].sum() / (8 * D * SIGMA)
    expected = 1 - (0.0 if angle is None else np.cos(np.radians(angle)))
    assert pull == pytest.approx(expected, abs=0.2 if layers == 6 and jitter else 0.08)


def test_momentum_is_kept_and_the_floor_feels_what_it_holds():
    sim = block(6, 0.15, 60.0)
    total = impulses(sim).sum(axis=0)
    assert abs(total[[0, 2]]).max() < 1e-5 * 8 * D * SIGMA
    p = sim.world.particles
    held = (p.numpy("m").astype(float)[:, None] * p.numpy("wall_slide")).sum(axis=0)
    np.testing.assert_allclose(total, held, atol=1e-5 * 8 * D * SIGMA)
    assert total[1] < -SIGMA * 8 * D, "both edges are held"


def test_areas_add_up_to_the_sphere():
    """Of the sphere that the outermost particles lie on, half a spacing below the surface."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Sphere(radius=8 * D), pl.Fluid(surface_tension=SIGMA), name="water")
    sim = scene.build(quiet=True)
    impulses(sim)
    area = sim.world.particles.numpy("surface_area").sum(dtype=float)
    assert area == pytest.approx(4 * np.pi * (7.5 * D) ** 2, rel=0.08)


@pytest.mark.parametrize("other, expected", [(SIGMA, 0.0), (0.02, 0.052), (0.0, SIGMA)])
def test_between_liquids_the_difference_of_their_tensions_acts(other: float, expected: float):
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0), periodic=(8 * D, None, 8 * D))
    for name, y, sigma in (("lower", 4 * D, SIGMA), ("upper", 12 * D, other)):
        box = pl.Box(size=(8 * D, 8 * D, 8 * D), center=(4 * D, y, 4 * D))
        scene.add(box, pl.Fluid(surface_tension=sigma, viscosity=0), name=name)
    sim = scene.build(quiet=True)
    impulses(sim)
    p = sim.world.particles
    near = abs(p.numpy("x")[:, 1] - 8 * D) < 3 * D
    energy = (p.numpy("surface_area") * p.numpy("surface_pull"))[near].sum(dtype=float)
    assert energy == pytest.approx(expected * 64 * D**2, rel=0.05, abs=1e-9)


def test_single_particles_and_pairs_hardly_feel_it():
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Box(size=(3 * D, D, D)), pl.Fluid(surface_tension=SIGMA), name="spray")
    sim = scene.build(quiet=True)
    sim["spray"].x = np.array([[0, 0, 0], [D, 0, 0], [9 * D, 0, 0]])
    force = np.linalg.norm(impulses(sim), axis=1)
    assert force[2] == 0.0
    assert force[:2].max() < 0.5 * SIGMA * D
    sim.run(0.02)
    assert np.isfinite(sim["spray"].x).all()
    assert abs(sim["spray"].x).max() < 10 * D


def test_surface_tension_rounds_a_cube():
    scene = pl.Scene(particle_radius=5e-4, gravity=(0, 0, 0))
    drop = scene.add(pl.Box(size=(0.01, 0.01, 0.01)), pl.Fluid(viscosity=5e-5, surface_tension=0.072))
    sim = scene.build()
    reach = [float(abs(sim[drop].x).max(axis=1).max())]
    corner = [float((sim[drop].x ** 2).sum(axis=1).max() ** 0.5)]
    sim.run(0.06)
    x = sim[drop].x - sim[drop].x.mean(axis=0)
    corner.append(float((x**2).sum(axis=1).max() ** 0.5))
    sphere = (3 / (4 * 3.14159)) ** (1 / 3) * 0.01
    assert corner[0] > 1.25 * sphere
    assert corner[1] < 1.12 * sphere, "the drop is not round"
    assert reach[0] < sphere
    assert abs(sim[drop].x.mean(axis=0)).max() < 1e-5, "it drifts"
    spin = (sim[drop].mass[:, None] * np.cross(x, sim[drop].v)).sum(axis=0)
    assert abs(spin).max() < 1e-9, "it turns"  # of 1e-6 kg m^2/s that its motion could have


def test_bad_angles_are_refused():
    scene = pl.Scene(particle_radius=D / 2)
    scene.add(pl.Plane(), pl.Boundary(contact_angle=200.0), name="floor")
    with pytest.raises(pl.PliantError, match=r"contact_angle must be in \[0, 180\] degree, got 200"):
        scene.build()
