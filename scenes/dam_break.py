"""A column of water collapses and breaks over an obstacle."""

import numpy as np

import pliant as pl

SECONDS = 3.0

# Where the experiment measures [m]: heights of the water at H1 to H4, and pressure at P1 on the face of the box. The
# patch of P1 is one particle of the usual radius wide.
GAUGES = ((1.732, 0, 0.5), (2.228, 0, 0.5), (2.724, 0, 0.5), (0.582, 0, 0.5))
SENSOR = pl.Rectangle(size=(0.04, 0.04), center=(2.3955, 0.021, 0.5))


def build(
    radius: float = 0.02, obstacle: bool = True, viscosity: float = 1e-6, micropolar: float = 0.0
) -> pl.Scene:
    """The dam of SPHERIC test 2 (Kleefsman et al. 2005): tank 3.22 x 1 x 1 m, column 1.228 x 0.55 x 1 m.

    radius: particle radius [m]; obstacle: the box in the way; viscosity: kinematic [m^2/s]; micropolar: transfer to
    the spins of particles [m^2/s]. Probes record the heights at H1 to H4, and the pressure at P1 on the box as means
    over 10 ms.
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(3.22, 1.0, 1.0), center=(1.61, 0.5, 0.5)), pl.Boundary(inside_out=True), name="tank")
    if obstacle:
        scene.add(pl.Box(size=(0.161, 0.161, 0.403), center=(2.476, 0.0805, 0.5)), pl.Boundary(), name="obstacle")
    water = pl.Fluid(viscosity=viscosity, micropolar=micropolar)
    scene.add(pl.Box(size=(1.228, 0.55, 1.0), center=(0.614, 0.275, 0.5)), water, name="water")
    scene.probe("elevation", at=GAUGES, every=0.01, name="heights")
    if obstacle:
        scene.probe("pressure", on=SENSOR, window=0.01, name="P1")
    return scene


def check(sim: pl.Simulation) -> None:
    """The water has reached the far wall, is all in the tank, and lost energy rather than gained it."""
    x = sim["water"].x
    assert np.isfinite(x).all()
    assert (x > 0).all() and (x[:, 0] < 3.22).all() and (x[:, 2] < 1.0).all()
    assert x[:, 0].max() > 3.0, "the front has not reached the far wall"
    assert sim.stats.mean_density_error < 2e-3
    heights = sim["heights"].values
    assert heights[0, 3] > 0.5 and np.isnan(heights[0, :3]).all() and np.nanmax(heights) < 1.0
