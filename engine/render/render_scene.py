"""A scene as pictures and exports need it: everything that does not change from frame to frame, as plain data.

With it and a `Snapshot` any frame can be drawn, while a simulation runs or years after it, from files alone.
"""

import dataclasses
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.data import CloudStyle, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.io.files import atomic_write
from pliant.render.camera import Camera, CameraPath, Orbit, View
from pliant.render.colors import colormap
from pliant.render.fluid_surface import convex_planes, inside_share, moved_planes
from pliant.render.joints import JointMark, joint_marks
from pliant.render.look import Look
from pliant.render.markers import probe_markers
from pliant.render.picture import Light, Picture
from pliant.skin.skins import SkinSource, skinned

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

OPAQUE = (0.93, 0.55, 0.25)  # colour of obstacles without colours of their own;
SOLID = 0.6  # along their colour map for those that have
WET = 0.95  # share of the particles that must be inside a container for their surface to be cut at its walls
TYPICAL = 0.6  # share of the speed of a free fall through the scene that most of a scene stays below
FORMAT, VERSION = "pliant render scene", 1
OLD_FORMAT = "pliant stage"  # what files of earlier versions say
_VIEWS = {"Camera": Camera, "Orbit": Orbit}


class RenderWall:
    """A wall as it was built: its triangles, made when first asked for (combined shapes take seconds), its wireframe
    `outline` (m, 2, 3) [m], whether it is a `container`, which holds things inside, and whether it is a rigid body."""

    def __init__(self, name: str, outline: np.ndarray, mesh: TriMesh | None, container: bool = False,
                 color: tuple = OPAQUE, shape: Any = None, rigid: bool = False):  # fmt: skip
        self.name, self.outline, self.container, self.color = name, np.asarray(outline, float), container, tuple(color)
        self._mesh, self._shape, self.rigid = mesh, shape, rigid
        self._planes: np.ndarray | None = None

    @property
    def mesh(self) -> TriMesh:
        if self._mesh is None:
            self._mesh = TriMesh(*self._shape.triangles())
            self._shape = None
        return self._mesh

    @property
    def planes(self) -> np.ndarray:
        """The planes (k, 4) that bound it if it is convex, none if not."""
        if self._planes is None:
            self._planes = convex_planes(self.mesh)
        return self._planes

    def __getstate__(self) -> dict:
        """Plain arrays travel to other processes, shapes need not be able to."""
        return {**self.__dict__, "_mesh": self.mesh, "_shape": None}


@dataclasses.dataclass
class RenderScene:
    """`bounds` (2, 3) [m] is what pictures frame, `top_speed` [m/s] the last colour of the speed, `skins` what the
    surfaces of elastic bodies are made of, by the bodies' names."""

    walls: list[RenderWall]
    bodies: list[CloudStyle]
    bounds: np.ndarray
    top_speed: float
    camera: View | None = None
    lights: tuple[Light, ...] | None = None
    look: Look | None = None
    skins: dict[str, SkinSource] = dataclasses.field(default_factory=dict)
    markers: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # of probes: see `probe_markers`
    joints: list[JointMark] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, sim: "Simulation") -> "RenderScene":
        """That of a simulation."""
        scene, walls, corners = sim.scene, [], []
        for wall in sim.world.walls.walls:
            body = scene.body(wall.name)
            shape = body.shown or body.shape
            bounds = shape.bounds()
            if np.isfinite(bounds).all():  # an infinite plane has neither triangles nor an outline
                inside_out = bool(body.material.inside_out)
                color = tuple(colormap(np.array([SOLID]), 0.0, 1.0, body.colors)[0].tolist()) if body.tinted else OPAQUE
                walls.append(RenderWall(body.name, shape.outline(), None, inside_out, color, shape,
                                        bool(body.material.free)))  # fmt: skip
                corners.append(bounds)
        corners += [np.array([sim.world.low, sim.world.high])] * bool(sim.particles or not corners)
        extent = np.array([np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)])
        fall = float(np.sqrt(2 * np.linalg.norm(sim.world.gravity) * np.ptp(extent[:, 1])))
        bodies = [CloudStyle(group.name, group.colors, group.spacing / 2, sim.world.materials[group.material].liquid)
                  for group in sim.world.bodies]  # fmt: skip
        bodies += [style for store in sim.world.stores.values() for style in store.styles()]
        lights = getattr(scene, "lights", None)
        lights = (lights,) if isinstance(lights, Light) else lights
        return cls(walls, bodies, extent, TYPICAL * fall or 1.0, scene.camera, tuple(lights) if lights else None,
                   getattr(scene, "look", None), sim.canvas.skins, probe_markers(sim),
                   joint_marks(sim, extent))  # fmt: skip

    @property
    def meshes(self) -> dict[str, TriMesh]:
        """The walls as they were built, by name."""
        return {wall.name: wall.mesh for wall in self.walls}

    @property
    def radii(self) -> dict[str, float]:
        """Of the particles of each body, and of its grains [m]."""
        return {body.name: body.radius for body in self.bodies}

    def skinned(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the skins of its bodies among its meshes."""
        return skinned(self.skins, snapshot)

    def planes_around(self, x: np.ndarray, poses: Mapping[str, np.ndarray]) -> np.ndarray:
        """The planes (k, 4) of the convex containers that particles at `x` are in, where these are now."""
        found = [np.zeros((0, 4))]
        for wall in self.walls:
            if wall.container and len(wall.planes):
                planes = moved_planes(wall.planes, poses.get(wall.name))
                if inside_share(x, planes) >= WET:
                    found.append(planes)
        return np.concatenate(found)

    def picture(self, snapshot: Snapshot, look: Look | None = None, aspect: float = 16 / 9) -> Picture:
        """What `snapshot` looks like; `aspect` is the picture's width over its height."""
        from pliant.render.compose import compose

        return compose(self, snapshot, look or self.look or Look(), aspect)

    def view(self, time: float, aspect: float) -> Camera:
        """The camera at `time` [s]; without one of its own, a scene is framed as a whole."""
        from pliant.render.compose import framed

        return framed(self.bounds, aspect) if self.camera is None else self.camera.at(time, self.bounds, aspect)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the scene into a file that `RenderScene.load` reads back, equal to the last bit."""
        header = {
            "format": FORMAT, "version": VERSION, "top_speed": float(self.top_speed),
            "walls": [{"name": w.name, "container": w.container, "color": list(w.color), "rigid": w.rigid}
                      for w in self.walls],
            "bodies": [dataclasses.asdict(body) for body in self.bodies],
            "camera": _view_data(self.camera),
            "lights": None if self.lights is None else [_plain(dataclasses.asdict(light)) for light in self.lights],
            "look": None if self.look is None else _plain(dataclasses.asdict(self.look)),  # type: ignore[call-overload]
        }  # fmt: skip
        skins = {name: source.save() for name, source in self.skins.items()}
        header["skins"] = {name: values for name, (values, _) in skins.items()}
        header["markers"], header["joints"] = list(self.markers), [mark.save() for mark in self.joints]
        arrays = {"bounds": np.asarray(self.bounds, float)}
        arrays |= {f"marker{k}": segments for k, segments in enumerate(self.markers.values())}
        for k, wall in enumerate(self.walls):
            arrays |= {f"{k}.vertices": wall.mesh.vertices, f"{k}.faces": wall.mesh.faces, f"{k}.outline": wall.outline}
        for k, (_, parts) in enumerate(skins.values()):
            arrays |= {f"skin{k}.{name}": values for name, values in parts.items()}
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with atomic_write(path) as file:
            np.savez_compressed(file, header=text, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike) -> "RenderScene":
        """The scene that was saved into a file."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                header = json.loads(file["header"].tobytes().decode())
                if header["format"] not in (FORMAT, OLD_FORMAT) or header["version"] > VERSION:
                    raise PliantError(f"{path} was written by another version of Pliant, which this one cannot read.")
                return cls._from(header, file)
        except OSError as error:
            raise PliantError(f"cannot read {path}: {error.strerror or error}.") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise PliantError(f"{path} is no render scene of Pliant, or it is damaged.") from error

    @classmethod
    def _from(cls, header: dict, arrays: Any) -> "RenderScene":
        walls = [
            RenderWall(w["name"], arrays[f"{k}.outline"], TriMesh(arrays[f"{k}.vertices"], arrays[f"{k}.faces"]),
                      bool(w["container"]), tuple(w["color"]), rigid=bool(w.get("rigid", False)))
            for k, w in enumerate(header["walls"])
        ]  # fmt: skip
        lights, look = header["lights"], header["look"]
        skins = {}
        for k, (name, values) in enumerate(header.get("skins", {}).items()):
            mine = [key for key in arrays if key.startswith(f"skin{k}.")]
            skins[name] = SkinSource.load(values, {key.partition(".")[2]: arrays[key] for key in mine})
        return cls(
            walls, [CloudStyle(**body) for body in header["bodies"]], arrays["bounds"], header["top_speed"],
            _view(header["camera"]), None if lights is None else tuple(_light(light) for light in lights),
            None if look is None else Look(**look), skins,
            {name: arrays[f"marker{k}"] for k, name in enumerate(header.get("markers", ()))},
            [JointMark.load(values) for values in header.get("joints", ())],
        )  # fmt: skip


def _plain(values: dict) -> dict:
    """Numbers and lists as JSON knows them."""
    return {name: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
            for name, value in values.items()}  # fmt: skip


def _light(data: dict) -> Light:
    return Light(tuple(data["direction"]), tuple(data["color"]))


def _view_data(view: View | None) -> dict | None:
    if view is None:
        return None
    if isinstance(view, CameraPath):
        return {"kind": "CameraPath", "keys": [[float(time), _view_data(camera)] for time, camera in view.keys]}
    if isinstance(view, Camera):
        triples = {name: [float(c) for c in getattr(view, name)] for name in ("position", "target", "up")}
        return {"kind": "Camera", **triples, "fov": float(view.fov)}
    values = {f.name: getattr(view, f.name) for f in dataclasses.fields(view)}  # type: ignore[arg-type]
    return {"kind": "Orbit", **_plain(values)}


def _view(data: dict | None) -> Any:
    if data is None:
        return None
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    kind = str(values.pop("kind"))
    if kind == "CameraPath":
        return CameraPath(tuple((time, _view(camera)) for time, camera in values["keys"]))
    return _VIEWS[kind](**values)
