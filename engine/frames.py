"""Frames of a run: what a moment looks like, as files for ParaView and as pictures."""

from pathlib import Path
from typing import Any

import numpy as np

from pliant.errors import PliantError, unknown_name
from pliant.io.vtu import write_pvd, write_vtu
from pliant.render import Camera, Lines, Picture, Points, Renderer, Surface, colormap

FORMATS = ("vtu", "png")
UNITS = {"velocity": "m/s", "density": "kg/m^3", "pressure": "Pa", "mass": "kg", "id": ""}
DRAWN_RADIUS = 1.1  # times the particle radius: spheres that overlap a little read as one surface
OPAQUE = (0.93, 0.55, 0.25)
VIEW_DIRECTION = (0.75, 0.5, 1.6)


class Frame:
    """One moment of a simulation, yielded by `sim.frames`; valid until the simulation moves on."""

    def __init__(self, sim: Any, index: int):
        self.sim, self.index, self.time = sim, index, sim.time

    def write(self, folder: str | Path, formats: Any = FORMATS, width: int = 1280, height: int = 720) -> None:
        """Writes the frame into `folder`: particles as `<body>_0001.vtu` listed in `particles.pvd`, picture as PNG."""
        folder = Path(folder)
        formats = formats.split(",") if isinstance(formats, str) else formats
        for name in formats:
            if name not in FORMATS:
                raise PliantError(unknown_name("format", str(name), FORMATS))
        if "vtu" in formats:
            self._write_particles(folder)
        if "png" in formats:
            drawing = self.sim.canvas.renderer(width, height)
            drawing.save(folder / f"frame_{self.index:04d}.png", picture(self.sim))

    def _write_particles(self, folder: Path) -> None:
        series = self.sim.canvas.series.setdefault(folder.absolute(), [])
        for filling in self.sim.fillings:
            body, view = filling.body, self.sim[filling.body]
            file = f"{body.name}_{self.index:04d}.vtu"
            fields = {"velocity": view.v, "density": view.density, "pressure": view.pressure, "mass": view.mass,
                      "id": np.arange(len(view), dtype=np.int32)}  # fmt: skip
            write_vtu(folder / file, view.x, fields, UNITS)
            series[:] = [entry for entry in series if entry[1] != file] + [(self.time, file, body.name)]
        write_pvd(folder / "particles.pvd", series)


class Canvas:
    """What a simulation keeps from one frame to the next."""

    def __init__(self) -> None:
        self.series: dict[Path, list] = {}  # what was written into each folder, for its .pvd
        self.bounds: np.ndarray | None = None  # what pictures frame: the scene as it was first drawn
        self._renderer: Renderer | None = None
        self._meshes: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def renderer(self, width: int, height: int) -> Renderer:
        """A renderer of that size, opened when first asked for."""
        if self._renderer is None or (self._renderer.width, self._renderer.height) != (width, height):
            self._renderer = Renderer(width, height)
        return self._renderer

    def mesh(self, body: Any) -> tuple[np.ndarray, np.ndarray]:
        """Triangles of a wall as it was built; combined shapes take long to triangulate."""
        if body.name not in self._meshes:
            self._meshes[body.name] = body.shape.triangles()
        return self._meshes[body.name]


def picture(sim: Any) -> Picture:
    """The scene as it is now: particles coloured by speed, containers as wireframe, obstacles as surfaces."""
    lines, surfaces, corners = [], [], []
    for wall in sim.world.walls.walls:
        body = next(b for b in sim.scene.bodies if b.name == wall.name)
        if not np.isfinite(body.shape.bounds()).all():
            continue
        if body.material.inside_out:
            lines.append(Lines(wall.placed(body.shape.outline().reshape(-1, 3)).reshape(-1, 2, 3)))
        else:
            vertices, faces = sim.canvas.mesh(body)
            surfaces.append(Surface(wall.placed(vertices), faces, OPAQUE))
        corners.append(body.shape.bounds())
    if sim.canvas.bounds is None:
        corners.append(np.array([sim._low, sim._high]))
        lowest, highest = np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)
        sim.canvas.bounds = np.array([lowest, highest])
    bounds = sim.canvas.bounds
    points, radius = [], DRAWN_RADIUS * sim.scene.settings.particle_radius
    top_speed = float(np.sqrt(2 * np.linalg.norm(sim.world.gravity) * np.ptp(bounds[:, 1]))) * 0.6 or 1.0
    for filling in sim.fillings:
        view = sim[filling.body]
        speed = np.linalg.norm(view.v, axis=1)
        points.append(Points(view.x, radius, colormap(speed, 0.0, top_speed, filling.body.colors)))
    camera = sim.scene.camera or Camera.framing((bounds[0], bounds[1]), VIEW_DIRECTION)
    return Picture(camera, points, lines, surfaces, ground=float(bounds[0][1]))
