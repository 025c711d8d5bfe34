"""Frames of a run: what a moment looks like, as arrays, as files for other programs, and as a picture."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.core.choices import FORMATS, MESH_FORMATS, PARTICLE_FORMATS, USUAL_FORMATS
from pliant.core.data import Snapshot, TriMesh
from pliant.errors import PliantError, unknown_name
from pliant.io import write_cloud, write_mesh, write_pvd
from pliant.io.usd import write_usd
from pliant.render import Look, Renderer
from pliant.render.render_scene import RenderScene
from pliant.sim.snapshot import take
from pliant.skin.skins import SkinSource, skin_sources

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

SERIES = "particles.pvd"


class Frame:
    """One moment of a simulation, yielded by `sim.frames`; valid until the simulation moves on."""

    def __init__(self, sim: "Simulation", index: int):
        self.sim, self.index, self.time = sim, index, sim.time

    def snapshot(self, skins: bool = True) -> Snapshot:
        """A copy of the moment as plain arrays, particles in the order in which they were made, and (`skins`) elastic
        bodies as meshes as well."""
        return take(self.sim, self.index, skins=skins)

    def write(self, folder: str | Path, formats: Any = USUAL_FORMATS, width: int = 1280, height: int = 720) -> None:
        """Writes the frame into `folder`, in any of `FORMATS`.

        Particles become `<body>_0001.vtu` (npz, ply, bgeo), grains `<body>_grains_0001.vtu`, a vtu series is listed in
        `particles.pvd`, skins of elastic bodies become `<body>_skin_0001.obj` (stl, ply), walls `<wall>.obj` (stl,
        ply), the picture `frame_0001.png`. A USD file of the frame alone is `frame_0001.usdc`; one for a whole run is
        made by `pliant run --format usd`.
        """
        folder, canvas, formats = Path(folder), self.sim.canvas, check_formats(formats)
        snapshot = self.snapshot(skins=bool(set(formats) & {*MESH_FORMATS, "usd"}))
        series = canvas.series.setdefault(folder.absolute(), Series())
        write_frame(folder, snapshot, formats, canvas.render_scene, series)
        if "usd" in formats:
            walls, radii = canvas.render_scene.meshes, canvas.render_scene.radii
            write_usd(folder / frame_file("frame", self.index, "usdc"), [snapshot], 1.0, walls, radii)
        if "png" in formats:
            picture = canvas.render_scene.picture(snapshot, aspect=width / height)
            canvas.renderer(width, height).save(folder / frame_file("frame", self.index, "png"), picture)


class Canvas:
    """What a simulation keeps from one frame to the next."""

    def __init__(self, sim: "Simulation"):
        self._sim = sim
        self.series: dict[Path, Series] = {}  # what each folder holds already
        self._render_scene: RenderScene | None = None
        self._renderer: Renderer | None = None
        self._skins: dict[str, SkinSource] | None = None

    @property
    def skins(self) -> dict[str, SkinSource]:
        """What the skins of elastic bodies are made of, by the bodies' names."""
        if self._skins is None:
            self._skins = skin_sources(self._sim)
        return self._skins

    @property
    def render_scene(self) -> RenderScene:
        """The scene as it was when it was first asked for: it frames all pictures."""
        if self._render_scene is None:
            self._render_scene = RenderScene.of(self._sim)
        return self._render_scene

    @render_scene.setter
    def render_scene(self, render_scene: RenderScene) -> None:
        render_scene.skins = render_scene.skins or self.skins  # a file of an earlier version has none
        self._render_scene = render_scene

    def renderer(self, width: int, height: int) -> Renderer:
        """A renderer of that size, opened when first asked for."""
        supersample = (self.render_scene.look or Look()).supersample
        wanted = (width, height, supersample)
        r = self._renderer
        if r is None or (r.width, r.height, r.supersample) != wanted:
            self._renderer = r = Renderer(*wanted)
        return r


def frame_file(name: str, index: int, ending: str) -> str:
    """How the files of a frame are called."""
    return f"{name}_{index:04d}.{ending}"


def check_formats(names: Any, known: Iterable[str] = FORMATS) -> tuple[str, ...]:
    """Formats from a list or from text such as "vtu,png", each once; an unknown one is refused with a hint."""
    given, names = names, names.split(",") if isinstance(names, str) else names
    wanted = tuple(dict.fromkeys(str(name).strip().lower().lstrip(".") for name in names if str(name).strip()))
    if not wanted:
        raise PliantError(f"name one or more formats of {', '.join(known)}, got {given!r}")
    for name in wanted:
        if name not in known:
            raise PliantError(unknown_name("format", name, known))
    return wanted


@dataclass
class Series:
    """What a folder holds so far: the entries of its .pvd, and the files of walls at rest."""

    entries: list[tuple[float, str, str]] = field(default_factory=list)
    at_rest: set[str] = field(default_factory=set)


def write_frame(folder: Path, snapshot: Snapshot, formats: tuple[str, ...], render_scene: RenderScene,
                series: Series) -> None:  # fmt: skip
    """One frame in those of `formats` that have files for each frame, but for pictures."""
    for ending in PARTICLE_FORMATS:
        if ending in formats:
            for body, cloud in snapshot.clouds.items():
                write_cloud(folder / frame_file(body, snapshot.index, ending), cloud)
    for ending in MESH_FORMATS:
        if ending in formats:
            _write_surfaces(folder, snapshot, ending, render_scene.meshes, series)
    if "vtu" in formats:
        new = [(snapshot.time, frame_file(body, snapshot.index, "vtu"), body) for body in snapshot.clouds]
        files = {file for _, file, _ in new}
        series.entries[:] = [entry for entry in series.entries if entry[1] not in files] + new
        write_pvd(folder / SERIES, series.entries)


def _write_surfaces(folder: Path, snapshot: Snapshot, ending: str, walls: dict[str, TriMesh], series: Series) -> None:
    """Surfaces that move or deform, with the frame's number; walls at rest once and without one."""
    for name, mesh in snapshot.meshes.items():
        write_mesh(folder / frame_file(name, snapshot.index, ending), mesh)
    for name, mesh in walls.items():
        pose = snapshot.poses.get(name)
        if pose is not None:
            moved = TriMesh(mesh.vertices @ pose[:3, :3].T + pose[:3, 3], mesh.faces)
            write_mesh(folder / frame_file(name, snapshot.index, ending), moved)
        elif f"{name}.{ending}" not in series.at_rest:
            write_mesh(folder / f"{name}.{ending}", mesh)
            series.at_rest.add(f"{name}.{ending}")
