"""IISPH: one solve leaves no more compression than allowed, water stands still, and solids float in it."""

import numpy as np
import pytest

import pliant as pl

D = 0.05


def tank(error=1e-3, **bodies):
    """Water half a metre deep in a tank."""
    scene = pl.Scene(particle_radius=D / 2, pressure=pl.IISPH(max_density_error=error))
    scene.add(pl.Box(size=(0.5, 1.0, 0.5), center=(0.25, 0.5, 0.25)), pl.Boundary(inside_out=True))
    scene.add(pl.Box(size=(0.5, 0.5, 0.5), center=(0.25, 0.25, 0.25)), pl.Fluid(), name="water")
    for name, (shape, material) in bodies.items():
        scene.add(shape, material, name=name)
    return scene.build()


@pytest.mark.parametrize("error", [1e-3, 1e-4])
def test_a_step_leaves_no_more_compression_than_allowed(error):
    """Squeezed by 0.4 per cent, and rushing together: the density after the step, summed anew."""
    sim = tank(error)
    p = sim.world.particles
    x = sim["water"].x
    sim["water"].x = 0.25 + (x - 0.25) * [0.998, 1.0, 0.998]
    sim["water"].v = -0.5 * (x - x.mean(axis=0))
    dt = 1e-3
    sim.step(dt)
    assert sim.results["density"].converged and sim.results["density"].mean <= error
    assert not p.numpy("shift").any()
    sim.find_neighbors()
    over = (p.numpy("density") + p.numpy("wall_density") - 1).clip(min=0)
    assert over.mean() < 1.2 * error + 1e-4  # REST, and the prediction is linear in the motion


def test_water_carries_its_own_weight():
    """It simmers, as what error a solve leaves comes back as velocity; DFSPH does not."""
    sim = tank(1e-4)
    sim.run(1.0)
    slopes = []
    for _ in range(20):  # one after the other they scatter by 7 %
        sim.step()
        x, v, p = sim["water"].x, sim["water"].v, sim["water"].pressure
        assert np.sqrt((v**2).sum(axis=1).mean()) < 0.1
        assert x[:, 1].max() < 0.49
        deep = np.abs(x[:, 1] - 0.25) < 0.15
        slopes.append(np.polyfit(x[deep, 1], p[deep], 1)[0])
    assert np.mean(slopes) == pytest.approx(-1000 * 9.81, rel=0.12)


def test_a_light_solid_floats_and_a_heavy_one_sinks():
    boxes = {name: pl.Box(size=(0.2, 0.2, 0.2), center=(x, 0.65, 0.25)) for name, x in (("cork", 0.12), ("lead", 0.38))}
    sim = tank(cork=(boxes["cork"], pl.Elastic(density=400.0, young=1e6)),
               lead=(boxes["lead"], pl.Elastic(density=2500.0, young=1e6)))  # fmt: skip
    sim.run(0.6)
    assert sim["cork"].x[:, 1].mean() > 0.45 and sim["lead"].x[:, 1].mean() < 0.2


def test_impossible_settings_are_refused():
    for wrong in (dict(max_density_error=0.0), dict(max_iterations=0), dict(max_divergence_error=1e-3)):
        scene = pl.Scene(pressure=pl.IISPH(**wrong))
        assert any(next(iter(wrong)) in sentence for sentence in scene.problems())
