"""A tap fills a glass until it overflows; what falls off the table is gone. (The glass is drawn cut open.)"""

import numpy as np

import pliant as pl

SECONDS = 4.0
INNER, HEIGHT = 0.05, 0.11  # radius and depth of the inside of the glass [m]
TABLE = 0.1  # radius of the table that it stands on, whose top is at y = 0 [m]
NOZZLE, TAP = 0.016, 0.22  # radius of the tap's nozzle, and its height over the table [m]
SPEED = 1.0  # at which water leaves the tap [m/s]


def build(radius: float = 0.004, speed: float = SPEED) -> pl.Scene:
    """radius: particle radius [m]; speed: at which water leaves the tap [m/s]."""
    scene = pl.Scene(particle_radius=radius)
    wall = 3 * radius  # thinner ones the particles could not tell from none
    bottom = pl.Cylinder(radius=TABLE, height=0.03, center=(0, -0.015, 0))
    inside = pl.Cylinder(radius=INNER, height=HEIGHT, center=(0, wall + HEIGHT / 2, 0))
    glass = pl.Cylinder(radius=INNER + wall, height=wall + HEIGHT, center=(0, (wall + HEIGHT) / 2, 0)) - inside
    behind = pl.Box(size=(0.5, 0.5, 0.25), center=(0, 0.1, -0.125))
    scene.add(bottom, pl.Boundary(), name="table")
    scene.add(glass, pl.Boundary(), name="glass", shown=glass & behind)
    water = scene.add(None, pl.Fluid(), name="water")
    scene.emit(pl.Disc(radius=NOZZLE, center=(0, TAP, 0)), water, velocity=(0, -speed, 0), name="tap")
    scene.drain(pl.Box(size=(2, 0.6, 2), center=(0, -0.36, 0)), name="sink")
    scene.camera = pl.Camera(position=(0.18, 0.24, 0.5), target=(0, 0.07, 0), fov=32)
    scene.look = pl.Look(low=-0.6, high=1.6)
    return scene


def check(sim: pl.Simulation) -> None:
    """Every particle is accounted for, the flow is area times speed, and the glass holds its water."""
    stats, tap, sink = sim.stats, sim["tap"], sim["sink"]
    assert stats.emitted == {"water": tap.count} and stats.drained == {"water": sink.count}
    assert stats.initial["water"] + tap.count == len(sim["water"]) + sink.count, "particles are missing"
    speed = float(np.linalg.norm(sim.scene.settings.sources[0].velocity))
    flow, layer = np.pi * NOZZLE**2 * speed, 2 * sim.scene.spacing * np.pi * NOZZLE**2
    assert abs(tap.volume - flow * sim.time) < 0.01 * flow * sim.time + layer, "the tap does not give what it should"
    x = sim["water"].x
    assert np.isfinite(x).all()
    assert not sim.scene.body("glass").shape.inside(x).any(), "water is inside of the glass's wall"
    full = np.pi * INNER**2 * HEIGHT
    held = (np.hypot(x[:, 0], x[:, 2]) < INNER) & (x[:, 1] < 3 * sim.scene.settings.particle_radius + HEIGHT)
    wanted = min(flow * sim.time, full)
    assert held.sum() * sim["water"].volume.mean() > 0.75 * wanted, "the glass does not hold the water"
    if flow * sim.time > 1.5 * full:
        assert sink.count > 0, "nothing runs over"
