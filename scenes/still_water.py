"""Water at rest in a tank: nothing should happen, and the pressure should be that of the textbooks."""

import numpy as np

import pliant as pl

SECONDS = 3.0
SIZE = (0.6, 0.4, 0.6)


def build(radius: float = 0.0125, disturb: float = 0.0) -> pl.Scene:
    """A tank 0.6 m wide and deep, filled 0.4 m high.

    radius: particle radius [m]; disturb: speed [m/s] of a swirl that the water starts with.
    """
    width, depth, length = SIZE
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(width, 2 * depth, length), center=(width / 2, depth, length / 2)),
              pl.Boundary(inside_out=True), name="tank")  # fmt: skip
    water = scene.add(pl.Box(size=SIZE, center=(width / 2, depth / 2, length / 2)), pl.Fluid(), name="water")

    def swirl(sim: pl.Simulation) -> None:
        if sim.step_count == 1 and disturb:
            arm = sim[water].x - np.array([width / 2, 0, length / 2])
            sim[water].v = disturb / width * np.cross([0.0, 1.0, 0.0], arm)

    scene.on_step(swirl)
    return scene


def check(sim: pl.Simulation) -> None:
    """The water stands as high as it did, hardly moves, and carries its own weight."""
    depth = SIZE[1]
    x = sim["water"].x
    assert abs(x[:, 1].mean() - depth / 2) < 0.01 * depth, "the water has changed its volume"
    wave = np.sqrt(9.81 * depth)  # speed of a long wave [m/s]
    assert sim.stats.max_speed < 0.1 * wave, "the water does not come to rest"
    assert np.sqrt((sim["water"].v ** 2).sum(axis=1).mean()) < 0.03 * wave, "the water simmers"
    ratios = []
    for _ in range(40):  # pressures fluctuate from step to step
        sim.step()
        x, p = sim["water"].x, sim["water"].pressure
        deep = x[:, 1] < depth / 2
        ratios.append(p[deep].mean() / (1000 * 9.81 * (depth - x[deep, 1])).mean())
    assert abs(np.mean(ratios) - 1) < 0.1, "the water does not carry its own weight"
