"""Five crates of different weights in a pool: each floats as deep as Archimedes says."""

import numpy as np

import pliant as pl

SECONDS = 5.0
DENSITIES = (100.0, 300.0, 500.0, 700.0, 900.0)  # [kg/m^3]
COLORS = ("sand", "honey", "plasma", "viridis", "grey")
SIDE, HEIGHT = 0.24, 0.144  # of a crate [m]: flat enough to float upright at any density
POOL, DEPTH = (2.0, 0.7, 0.9), 0.35  # of the pool, and of the water in it [m]


def build(radius: float = 0.0125) -> pl.Scene:
    """The crates are dropped from just above the water, side by side.

    radius: particle radius [m].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=POOL, center=(0, POOL[1] / 2, 0)), pl.Boundary(inside_out=True), name="pool")
    scene.add(pl.Box(size=(POOL[0], DEPTH, POOL[2]), center=(0, DEPTH / 2, 0)), pl.Fluid(), name="water")
    for k, (density, colors) in enumerate(zip(DENSITIES, COLORS, strict=True)):
        place = ((k - 2) * 0.38, DEPTH + HEIGHT, 0.12 * (-1) ** k)
        scene.add(pl.Box(size=(SIDE, HEIGHT, SIDE), center=place), pl.Rigid(density=density, friction=0.3),
                  name=f"crate{k + 1}", colors=colors)  # fmt: skip
    scene.camera = pl.Camera(position=(0.5, 1.15, 2.3), target=(0, 0.25, 0), fov=36)
    scene.look = pl.Look(fluid="surface")
    return scene


def draughts(sim: pl.Simulation) -> dict[str, float]:
    """How deep each crate lies in the water, as a share of its height.

    Water keeps its volume V, so its level L is that for which area L = V + side^2 sum (L - bottoms of the crates): the
    highest particles say it only to a share of their spacing.
    """
    bottoms = {body.name: float(sim[body].position[1]) - HEIGHT / 2 for body in sim.scene.bodies[2:]}
    volume = float(sim["water"].mass.sum(dtype=float)) / sim["water"].material.density
    area = POOL[0] * POOL[2]
    level = (volume - SIDE**2 * sum(bottoms.values())) / (area - SIDE**2 * len(bottoms))
    return {name: (level - bottom) / HEIGHT for name, bottom in bottoms.items()}


def check(sim: pl.Simulation) -> None:
    """All float upright, the heavier the deeper, and no water is inside of any."""
    depths = draughts(sim)
    for density, (name, depth) in zip(DENSITIES, depths.items(), strict=True):
        assert sim[name].rotation[1, 1] > 0.9, f"{name} has turned over"
        assert abs(depth - density / 1000) < 0.15, f"{name} floats {depth:.2f} deep"
        local = (sim["water"].x - sim[name].position) @ sim[name].rotation
        assert not (np.abs(local) < np.array([SIDE, HEIGHT, SIDE]) / 2 - sim.scene.spacing / 4).all(axis=1).any()
    assert list(depths.values()) == sorted(depths.values())
