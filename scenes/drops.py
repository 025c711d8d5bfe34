"""Cubes of water a few millimetres wide on plates of glass, plastic and wax: they become drops, each with its angle."""

import numpy as np

import pliant as pl

SECONDS = 0.25
SIDE, PLATE = 0.005, 0.026  # of the cubes and of the plates [m]
ANGLES = {"glass": 60.0, "plastic": 85.0, "wax": 125.0}  # of contact [degrees]


def build(radius: float = 0.0003, tension: float = 0.072, gravity: float = 9.81) -> pl.Scene:
    """The smaller the drops, the less gravity flattens them: 2 mm is where it begins to matter. The water is ten
    times as viscous as it should be, or the drop on glass would spread to a film first.

    radius: particle radius [m]; tension: of the surface [N/m] (water 0.072, soap 0.025); gravity [m/s^2].
    """
    scene = pl.Scene(particle_radius=radius, gravity=(0, -gravity, 0))
    for k, (name, angle) in enumerate(ANGLES.items()):
        x = (k - 1) * 1.08 * PLATE
        plate = pl.Box(size=(PLATE, 0.002, PLATE), center=(x, -0.001, 0))
        scene.add(plate, pl.Boundary(contact_angle=angle), name=name)
        cube = pl.Box(size=(SIDE, SIDE, SIDE), center=(x, SIDE / 2, 0))
        scene.add(cube, pl.Fluid(viscosity=1e-5, surface_tension=tension), name=f"on_{name}")
    scene.camera = pl.Camera(position=(0.0, 0.02, 0.072), target=(0, 0.0005, 0), fov=38)
    return scene


def check(sim: pl.Simulation) -> None:
    """No drop has left its plate; the better it wets, the wider and lower it is; and none is a cube any more."""
    wide, high = [], []
    for name in ANGLES:
        x = sim[f"on_{name}"].x
        middle = x.mean(axis=0)
        assert np.isfinite(x).all()
        assert (x[:, 1] > 0).all(), f"water has passed the plate of {name}"
        across, diagonal = np.abs(x - middle)[:, ::2].max(), np.abs(x - middle)[:, ::2].sum(axis=1).max() / np.sqrt(2)
        assert diagonal < 1.2 * across, f"the drop on {name} still has a cube's corners"
        wide.append(float(np.hypot(x[:, 0] - middle[0], x[:, 2] - middle[2]).max()))
        high.append(float(x[:, 1].max()))
    assert wide[0] > wide[1] > wide[2], f"widths {wide} do not follow the angles"
    assert high[0] < high[1] < high[2], f"heights {high} do not follow the angles"
