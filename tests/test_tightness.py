"""No particle ever passes a wall, however it is poured, shaken, squeezed or shot."""

import numpy as np
import pytest

import pliant as pl
from pliant.scene.assembly import wall_distance

R = 0.025
D = 2 * R


def wall_gaps(sim):
    """Distance of every particle from every wall where it is now [m], negative inside the wall."""
    x = np.concatenate([sim[body].x for body in sim.world.particles.bodies]).astype(float)
    assert np.isfinite(x).all()
    bodies = {body.name: body for body in sim.scene.bodies}
    gaps = {}
    for wall in sim.world.walls.walls:
        local = (x - wall.pivot - wall.shift) @ wall.rotation + wall.pivot
        gaps[wall.name] = wall_distance(bodies[wall.name], local)
    return gaps


def run_watched(scene, seconds, every=5):
    """Runs, looks at all walls every few steps, and returns the simulation."""
    sim = scene.build()

    def look(sim):
        if sim.step_count % every == 0:
            for name, gap in wall_gaps(sim).items():
                assert gap.min() >= 0.0, f"{(gap < 0).sum()} particles are in {name} at t = {sim.time:.3f} s"

    scene.on_step(look)
    sim.run(seconds)
    assert all(gap.min() >= 0 for gap in wall_gaps(sim).values())
    return sim


def tank(size=(0.4, 0.6, 0.4), **settings):
    """A container that stands on y = 0, and nothing in it."""
    scene = pl.Scene(particle_radius=R, **settings)
    body = scene.add(pl.Box(size=size, center=(0, size[1] / 2, 0)), pl.Boundary(inside_out=True), name="tank")
    return scene, body


@pytest.mark.parametrize("speed", [0.0, 8.0])
def test_pour(speed):
    scene, _ = tank(size=(0.4, 1.2, 0.4))
    scene.add(pl.Box(size=(0.25, 0.5, 0.25), center=(0.05, 0.9, 0)), pl.Fluid(), name="water", velocity=(0, -speed, 0))
    sim = run_watched(scene, 0.8)
    assert sim["water"].x[:, 1].mean() < 0.4, "it has not landed"


def test_pour_over_a_ball():
    scene, _ = tank(size=(0.5, 1.0, 0.5))
    scene.add(pl.Sphere(radius=0.12, center=(0, 0.25, 0)), pl.Boundary(), name="ball")
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0, 0.7, 0)), pl.Fluid(), name="water", velocity=(0, -3, 0))
    run_watched(scene, 0.5)


@pytest.mark.parametrize("spin", [0.0, 8.0])
def test_shake(spin):
    """Sideways at up to 4 m/s, some 10 g, and with a rotation to and fro."""
    scene, container = tank(size=(0.5, 0.5, 0.5))
    container.move(lambda t: ((4 * np.sin(25 * t), 2 * np.sin(17 * t), 0), (0, 0.5 * spin, spin * np.sin(9 * t))))
    scene.add(pl.Box(size=(0.4, 0.3, 0.4), center=(0, 0.2, 0)), pl.Fluid(), name="water")
    sim = run_watched(scene, 0.6)
    assert sim.stats.max_speed > 1.0, "it was not shaken"


def test_squeeze():
    """A piston comes down on a pool; the water has to escape through the gap around it."""
    scene, _ = tank(size=(0.6, 0.9, 0.6))
    piston = scene.add(pl.Box(size=(0.3, 0.2, 0.3), center=(0, 0.5, 0)), pl.Boundary(), name="piston")
    piston.move(lambda t: (0, -0.8 if t < 0.35 else 0.0, 0))
    scene.add(pl.Box(size=(0.6, 0.3, 0.6), center=(0, 0.15, 0)), pl.Fluid(), name="water")
    sim = run_watched(scene, 0.45)
    assert sim["piston"].position[1] == pytest.approx(0.22, abs=0.01)
    assert sim["water"].x[:, 1].max() > 0.33, "nothing has escaped upwards"


def test_a_thin_plate_stops_a_jet():
    """A plate of two spacings closes the tank; whoever is below it has passed through."""
    scene, _ = tank(size=(0.4, 1.2, 0.4))
    scene.add(pl.Box(size=(0.6, 2 * D, 0.6), center=(0, 0.4, 0)), pl.Boundary(), name="plate")
    scene.add(pl.Box(size=(0.25, 0.4, 0.25), center=(0, 0.8, 0)), pl.Fluid(), name="water", velocity=(0, -10, 0))
    sim = run_watched(scene, 0.25)
    assert sim["water"].x[:, 1].min() > 0.4 + D


def test_single_drops_at_high_speed():
    """Particles alone have no pressure to hold them: only the wall itself does."""
    scene, _ = tank(size=(0.6, 0.6, 0.6), gravity=(0, 0, 0))
    water = scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(0, 0.3, 0)), pl.Fluid(), name="water")
    sim = scene.build()
    v = np.random.default_rng(0).normal(size=(len(sim[water]), 3))
    sim[water].v = 20 * v / np.linalg.norm(v, axis=1)[:, None]
    for _ in range(150):
        sim.step()
    assert wall_gaps(sim)["tank"].min() >= 0.2 * D
    assert sim.time > 0.04


def test_a_wall_takes_a_lone_drop_along():
    """A hammer meets one particle at 5 m/s: nothing but the wall's own rule can set it in motion."""
    scene = pl.Scene(particle_radius=R, gravity=(0, 0, 0))
    hammer = scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(-0.25, 0, 0)), pl.Boundary(), name="hammer")
    hammer.move(lambda t: (5, 0, 0))
    drop = scene.add(pl.Box(size=(D, D, D)), pl.Fluid(), name="drop")
    sim = scene.build()
    sim.run(0.1)
    assert sim[drop].v[0, 0] == pytest.approx(5, rel=0.05)
    assert sim[drop].x[0, 0] - sim["hammer"].position[0] > 0.15


def test_a_paddle_that_turns():
    scene, _ = tank(size=(0.6, 0.5, 0.6))
    paddle = scene.add(pl.Box(size=(0.4, 0.3, 0.1), center=(0, 0.25, 0)), pl.Boundary(), name="paddle")
    paddle.move(lambda t: ((0, 0, 0), (0, 12, 0)))
    scene.add(pl.Box(size=(0.6, 0.2, 0.6), center=(0, 0.1, 0)), pl.Fluid(), name="water")
    sim = run_watched(scene, 0.4)
    assert sim.stats.angular_momentum[1] > 0, "the water does not follow the paddle"
