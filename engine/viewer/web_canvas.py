"""A `Picture` in a web page: its particles, surfaces and lines as nodes of a viser scene that are changed in place."""

import json
import struct
from typing import Any

import numpy as np

from pliant.render.mesh import corner_normals
from pliant.render.picture import Lines, Picture, Points, Surface

GLTF, JSON_CHUNK, DATA_CHUNK = 0x46546C67, 0x4E4F534A, 0x004E4942  # the magic numbers of binary glTF 2.0
FLOAT, UNSIGNED, VERTICES, INDICES = 5126, 5125, 34962, 34963  # component types and buffer targets of glTF
ROUGHNESS = 0.6  # of coloured surfaces: a dull sheen, as plain ones have it
SAME_NORMAL = 1e-3  # components of unit normals that differ by less are the same
BEYOND = 1e9  # [m]: farther than any camera sees
BACKDROP = 256  # rows of the picture that stands behind the scene


def shades(colors: Any) -> np.ndarray:
    """Colours in 0..1 as bytes."""
    return (255 * np.clip(np.asarray(colors, np.float32), 0, 1) + 0.5).astype(np.uint8)


def glb(vertices: np.ndarray, faces: np.ndarray, colors: np.ndarray) -> bytes:
    """A surface with a colour (sRGB in 0..1) at each vertex as a binary glTF 2.0 file, which holds linear colours."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)  # IEC 61966-2-1
    parts = [np.ascontiguousarray(vertices, "<f4"), np.ascontiguousarray(linear, "<f4"),
             np.ascontiguousarray(faces, "<u4").reshape(-1)]  # fmt: skip
    starts = np.cumsum([0, *(part.nbytes for part in parts)]).tolist()
    views = [{"buffer": 0, "byteOffset": start, "byteLength": part.nbytes, "target": target}
             for start, part, target in zip(starts, parts, (VERTICES, VERTICES, INDICES), strict=False)]  # fmt: skip
    bounds = {"min": parts[0].min(axis=0).tolist(), "max": parts[0].max(axis=0).tolist()}
    vertex = {"componentType": FLOAT, "count": len(vertices), "type": "VEC3"}
    header = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "COLOR_0": 1}, "indices": 2, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": ROUGHNESS},
                       "doubleSided": True}],
        "accessors": [{"bufferView": 0, **vertex, **bounds}, {"bufferView": 1, **vertex},
                      {"bufferView": 2, "componentType": UNSIGNED, "count": parts[2].size, "type": "SCALAR"}],
        "bufferViews": views, "buffers": [{"byteLength": starts[-1]}],
    }  # fmt: skip
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    size = 12 + 8 + len(text) + 8 + starts[-1]
    return b"".join([struct.pack("<3I", GLTF, 2, size), struct.pack("<2I", len(text), JSON_CHUNK), text,
                     struct.pack("<2I", starts[-1], DATA_CHUNK), *(part.tobytes() for part in parts)])  # fmt: skip


def cut_open(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A mesh cut open along its sharp edges, since pages find one normal for each vertex: which vertex (k,) each of its
    vertices is, and its faces (m, 3)."""
    sides = np.round(corner_normals(vertices, faces) / SAME_NORMAL).astype(np.int64)
    corners = np.column_stack([faces.reshape(-1), sides])
    _, first, place = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    return faces.reshape(-1)[first], place.reshape(-1, 3).astype(np.uint32)


class _Surface:
    """One surface: a mesh of one colour, which is changed in place, or a file with a colour at each vertex. A file
    takes the page a moment to read, so there are two of them: one is shown while the other is read."""

    def __init__(self, scene: Any, name: str):
        self._scene, self._name = scene, name
        self._plain: Any = None
        self._files: list[Any] = []  # the one that was sent last is at the end
        self._sent: Surface | None = None
        self._cut: tuple[np.ndarray, ...] = ()  # faces that were cut open, and what came of it
        self.unread = False

    def show(self, surface: Surface | None) -> None:
        if surface is None or not len(surface.faces):
            self._hide(self._plain, *self._files)
            self.unread = False
        elif np.array_equal(surface.color, np.broadcast_to(surface.color[0], surface.vertices.shape)):
            self._hide(*self._files)
            self.unread = False
            self._show_plain(surface)
        else:
            self._show_colored(surface)

    def settle(self) -> None:
        """Shows what was sent last, now that pages have read it."""
        if self.unread:
            self.unread = False
            self._hide(self._plain, *self._files[:-1])
            self._files[-1].visible = True

    def _show_plain(self, surface: Surface) -> None:
        color, vertices, faces = tuple(shades(surface.color[0]).tolist()), surface.vertices, surface.faces
        if surface.normals is None:  # a wall, which keeps its shape
            if not self._cut or not np.array_equal(self._cut[0], faces):
                self._cut = (faces, *cut_open(vertices, faces))
            vertices, faces = vertices[self._cut[1]], self._cut[2]
        if self._plain is None:
            name = f"{self._name}/plain"
            self._plain = self._scene.add_mesh_simple(name, vertices, faces, color=color, side="double")
        self._plain.vertices, self._plain.faces = vertices, faces.astype(np.uint32)
        self._plain.color, self._plain.visible = color, True

    def _show_colored(self, surface: Surface) -> None:
        if self._sent is not None and _same(self._sent, surface) and self._files[-1].visible:
            return
        data, self._sent = glb(surface.vertices, surface.faces, np.asarray(surface.color)), surface
        if len(self._files) < 2:
            name = f"{self._name}/file{len(self._files)}"
            self._files.append(self._scene.add_glb(name, data, visible=False))
        else:
            self._files.reverse()
            self._files[-1].visible = False
            self._files[-1].glb_data = data
        self.unread = True

    def _hide(self, *nodes: Any) -> None:
        for node in nodes:
            if node is not None:
                node.visible = False


def _same(a: Surface, b: Surface) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("vertices", "faces", "color"))


class Canvas:
    """The scene of a viser server as a canvas for pictures. Nodes are made when they are first needed; what a picture
    has fewer of is hidden."""

    def __init__(self, scene: Any):
        self._scene = scene
        self._points: list[Any] = []
        self._lines: list[Any] = []
        self._surfaces: list[_Surface] = []
        self._backdrop: tuple | None = None
        scene.set_up_direction("+y")
        scene.configure_default_lights(cast_shadow=False)
        # Two points that nobody sees: a page compiles its program for points anew unless something still uses it, and
        # makes a new material for points whenever their colours change.
        beyond = np.full((2, 3), BEYOND, np.float32)
        scene.add_point_cloud("/program", beyond, np.zeros((2, 3), np.uint8), precision="float32")

    def show(self, picture: Picture) -> None:
        """Shows what the picture holds but for its camera, which belongs to those who watch."""
        self._show_backdrop(picture)
        points = [item for item in picture.points if len(item.x)]
        for k, item in enumerate(points):
            self._show_points(k, item)
        lines = [item for item in picture.lines if len(item.segments)]
        for k, strokes in enumerate(lines):
            self._show_lines(k, strokes)
        for node in self._points[len(points) :] + self._lines[len(lines) :]:
            node.visible = False
        while len(self._surfaces) < len(picture.surfaces):
            self._surfaces.append(_Surface(self._scene, f"/surfaces/{len(self._surfaces)}"))
        for k, surface in enumerate(self._surfaces):
            surface.show(picture.surfaces[k] if k < len(picture.surfaces) else None)

    @property
    def unread(self) -> bool:
        """Whether there are surfaces that pages may still be reading; they appear when they are settled."""
        return any(surface.unread for surface in self._surfaces)

    def settle(self) -> None:
        """To be called when pages have read what was shown, and before anything else is."""
        for surface in self._surfaces:
            surface.settle()

    def _show_points(self, k: int, item: Points) -> None:
        colors, size = shades(item.colors), float(item.radius)  # viser's "size" is what is a radius here
        if k == len(self._points):
            self._points.append(self._scene.add_point_cloud(
                f"/particles/{k}", item.x, colors, point_size=size, point_shape="circle", precision="float32"
            ))  # fmt: skip
        node = self._points[k]
        node.points, node.colors, node.point_size, node.visible = item.x, colors, size, True

    def _show_lines(self, k: int, item: Lines) -> None:
        colors = np.broadcast_to(shades(item.color), item.segments.shape)
        if k == len(self._lines):
            self._lines.append(self._scene.add_line_segments(
                f"/lines/{k}", item.segments, colors, thickness=float(item.width), thickness_units="screen"
            ))  # fmt: skip
        node = self._lines[k]
        node.points, node.colors, node.visible = item.segments, colors, True

    def _show_backdrop(self, picture: Picture) -> None:
        """The sky, if it is another than before."""
        wanted = tuple(picture.background), tuple(picture.horizon)
        if wanted == self._backdrop:
            return
        self._backdrop = wanted
        t = np.linspace(0.0, 1.0, BACKDROP)[:, None]
        fade = (1 - t) * np.asarray(picture.background) + t * np.asarray(picture.horizon)
        self._scene.set_background_image(np.tile(shades(fade)[:, None], (1, 2, 1)), format="png")
