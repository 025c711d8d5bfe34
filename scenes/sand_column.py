"""A column of sand is let go and collapses: as a slab against a wall, or round."""

import numpy as np

import pliant as pl

SECONDS = 1.6
WIDTH = 0.12  # of the slab, or radius of the round column [m]
LEAST = 12  # particle radii that a period has at least


def build(radius: float = 0.005, aspect: float = 2.0, round: bool = False, friction_angle: float = 27.4,
          grains: int = 0) -> pl.Scene:  # fmt: skip
    """The experiments of Lube et al. 2004 and 2005 and of Lajeunesse et al. 2005, with their glass beads.

    radius: particle radius [m]; aspect: height of the column over its width, or over its radius; round: a cylinder in
    place of a slab; friction_angle: of the sand [degree]; grains: drawn for each particle, 0 for none.
    """
    height = aspect * WIDTH
    depth = max(WIDTH, LEAST * radius)
    scene = pl.Scene(particle_radius=radius, periodic=(None, None, None if round else depth))
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    column: pl.Shape = pl.Cylinder(radius=WIDTH, height=height, center=(0, height / 2, 0))
    scene.camera = pl.Camera(position=(0.35, 0.45, 0.9), target=(0, 0.08, 0), fov=38)
    if not round:
        wall = pl.Box(size=(WIDTH, 1.3 * height, 3 * depth), center=(-WIDTH / 2, 0.65 * height, depth / 2))
        shown = pl.Box(size=(0.1 * WIDTH, 1.3 * height, depth), center=(-0.05 * WIDTH, 0.65 * height, depth / 2))
        scene.add(wall, pl.Boundary(friction=0.0), name="wall", shown=shown)
        column = pl.Box(size=(WIDTH, height, depth), center=(WIDTH / 2, height / 2, depth / 2))
        scene.camera = pl.Camera(position=(0.55, 0.32, 0.85), target=(0.24, 0.1, depth / 2), fov=36)
    sand = pl.Granular(friction_angle=friction_angle, grains=grains)
    scene.add(column, sand, name="sand", colors="sand")
    scene.look = pl.Look(low=-4.0, high=6.0)
    return scene


def check(sim: pl.Simulation) -> None:
    """It has come to rest, no sand is in the walls, it has run out as far as columns do: (L - L0) / L0 is 1.2 to 2.2
    times the aspect ratio of slabs, and 0.8 to 1.6 times of round columns (1.24 is Lube's), as far as they are low."""
    x, d = sim["sand"].x, sim.scene.spacing
    round = sim.scene.settings.periodic[2] is None
    aspect = sim["sand"].volume.sum() / (np.pi * WIDTH**3 if round else WIDTH**2 * sim.scene.settings.periodic[2])
    away = np.hypot(x[:, 0], x[:, 2]) if round else x[:, 0]
    assert (x[:, 1] > 0).all() and (round or (away > 0).all()), "sand has passed a wall"
    assert np.percentile(np.abs(sim["sand"].v), 95) < 0.05, "the deposit does not rest"
    run_out = (np.quantile(away, 0.99) + d / 2) / WIDTH - 1
    low, high = (0.8, 1.6) if round else (1.0, 2.2)
    assert low * aspect < run_out < high * aspect, f"it has run out {run_out:.2f} times its width"
