"""Draws pictures off-screen through Taichi's GGUI (Vulkan; a software driver such as lavapipe will do)."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import taichi as ti

from pliant.errors import PliantError
from pliant.io.png import write_png
from pliant.render.backdrop import backdrop
from pliant.render.buffers import Buffer, keep_heap
from pliant.render.camera import Camera
from pliant.render.cull import visible
from pliant.render.glass import Glass
from pliant.render.gloss import glossy
from pliant.render.mesh import corner_normals
from pliant.render.overlay import overlay
from pliant.render.picture import Picture, Surface
from pliant.render.shadow import ShadowMap, shaded, shadow_map
from pliant.render.vulkan import available

_LIGHT_DISTANCE = 100.0  # in camera distances: far enough for parallel rays, near enough for single precision
_PNG_LEVEL = 3  # of zlib: half the time of its default 6, for files a few percent larger
_REFERENCE = 1280 * 720  # pixels of the picture for which line widths are given
_LEAST_LINE = 0.6  # how much thinner lines may become in small pictures: no less than about a pixel
_PIXEL_BYTES = 16  # as GGUI hands them out: four floats
_FRESH_PAGES, _HUGE = 32 << 20, 256 << 20  # bytes between which arrays of samples are better kept than asked for anew
_OVER = 0.03  # camera distances: where lines are that lie over all else
_NEAR, _FAR = 0.02, 50.0  # clipping planes in camera distances; GGUI's own 0.1 m would cut into small scenes


class Renderer:
    """Draws one `Picture` after another at a fixed size.

    `supersample` draws that many times finer and averages, since GGUI does not smooth edges off-screen. Taichi must
    be running. Particle counts may change freely between pictures.

    GGUI crashes once a second window exists, so the renderers of a process take turns: the one that draws closes the
    window of the one before. GGUI also loses up to 1 MB per picture (Taichi 1.7.4 on lavapipe, measured), which closing
    its window does not give back: runs draw in processes that are replaced now and then
    (`pliant.run.draw_process`).
    """

    _holder: "Renderer | None" = None

    def __init__(self, width: int = 1280, height: int = 720, supersample: int = 2):
        missing = available()
        if missing:
            raise PliantError(f"cannot draw pictures: {missing}")
        if ti.lang.impl.get_runtime().prog is None:
            raise PliantError("cannot draw pictures before the engine has started; build a simulation first.")
        if min(width, height, supersample) < 1:
            raise PliantError(f"a picture needs a positive size, got {width} x {height}, supersample {supersample}.")
        self.width, self.height, self.supersample = width, height, supersample
        self._window: Any = None  # and its canvas and scene, while it is open
        self._canvas: Any = None
        self._scene: Any = None
        self._behind = np.empty((width, height, 3), np.float32)
        self._line_scale = max(_LEAST_LINE, (width * height / _REFERENCE) ** 0.5)
        self._glass: Glass | None = None  # made when first needed
        self._buffers: dict[tuple[str, int], Buffer] = {}
        self._identity = ti.Matrix.field(4, 4, ti.f32, 1)
        self._identity.from_numpy(np.eye(4, dtype=np.float32)[None])

    def render(self, picture: Picture) -> np.ndarray:
        """The picture as (height, width, 3) uint8, first row on top."""
        self._open()
        casts = picture.shadow > 0 and len(picture.lights) > 0
        shadows = shadow_map(picture.lights[0].direction, picture.points, picture.surfaces) if casts else None
        backdrop(self._behind, picture, shadows)
        if picture.glass:
            self._glass = self._glass or Glass(self.width, self.height)
            self._glass.behind(self._behind, picture)
        self._canvas.set_image(self._behind)
        self._set_view(picture)
        self._draw_points(picture, shadows)
        self._draw_lines(picture)
        self._draw_surfaces(picture, shadows)
        self._canvas.scene(self._scene)
        fine = self._window.get_image_buffer_as_numpy()
        image = np.empty((self.height, self.width, 3), np.uint8)
        _average(fine, image, self.supersample)
        if picture.glass and self._glass is not None:
            self._glass.before(image, picture)
        return overlay(image, picture)

    def save(self, path: str | os.PathLike, picture: Picture) -> None:
        """Draw `picture` into a PNG file."""
        write_png(path, self.render(picture), _PNG_LEVEL)

    def close(self) -> None:
        """Give the off-screen window's memory back; the next picture opens another."""
        if self._window is not None:
            with elsewhere():
                self._window.destroy()
            self._window = self._canvas = self._scene = None
            Renderer._holder = None

    def _open(self) -> None:
        if self._window is not None:
            return
        if Renderer._holder is not None:
            Renderer._holder.close()
        size = (self.width * self.supersample, self.height * self.supersample)
        samples = size[0] * size[1] * _PIXEL_BYTES
        if _FRESH_PAGES < samples < _HUGE:
            keep_heap(samples)
        self._window = ti.ui.Window("pliant", size, show_window=False)
        self._canvas, self._scene = self._window.get_canvas(), self._window.get_scene()
        Renderer._holder = self

    def _buffer(self, kind: str, slot: int = 0) -> Buffer:
        return self._buffers.setdefault((kind, slot), Buffer())

    def _draw_points(self, picture: Picture, shadows: ShadowMap | None) -> None:
        masks = visible(picture.points, picture.camera, self.width, self.height, self.supersample)
        for slot, (group, seen) in enumerate(zip(picture.points, masks, strict=True)):
            if seen.any():
                colors = shaded(group, shadows, picture.shadow)[seen]
                x, color = self._buffer("points", slot).fill(group.x[seen], colors)
                radius = group.radius * self.height / self.width  # GGUI draws spheres too large by width / height
                self._scene.particles(x, radius, per_vertex_color=color, index_count=len(colors))

    def _draw_lines(self, picture: Picture) -> None:
        for slot, lines in enumerate(picture.lines):
            ends = _brought_near(lines.segments, picture.camera) if lines.over else lines.segments.reshape(-1, 3)
            if len(ends):
                (x,) = self._buffer("lines", slot).fill(ends)
                width = lines.width * self.supersample * self._line_scale
                self._scene.lines(x, width, color=tuple(lines.color), vertex_count=len(ends))

    def _draw_surfaces(self, picture: Picture, shadows: ShadowMap | None) -> None:
        """All meshes as one: GGUI takes normals and colours for each corner anyway."""
        surfaces = [s for s in picture.surfaces if len(s.faces)]
        if not surfaces:
            return
        parts = [_corners(surface, picture, shadows) for surface in surfaces]
        corners, normals, colors = (np.concatenate(rows) for rows in zip(*parts, strict=True))
        x, normal, color = self._buffer("surfaces").fill(corners, normals, colors)
        # Not scene.mesh, which in Taichi 1.7.4 leaves the mesh out of some frames; one instance is always drawn.
        self._scene.mesh_instance(
            x, normals=normal, per_vertex_color=color, two_sided=True, vertex_count=len(corners),
            transforms=self._identity, instance_count=1,
        )  # fmt: skip

    def _set_view(self, picture: Picture) -> None:
        """Camera and lights, which GGUI forgets after each picture."""
        camera, distance = picture.camera, picture.camera.distance
        view = ti.ui.Camera()
        view.position(*map(float, camera.position))
        view.lookat(*map(float, camera.target))
        view.up(*map(float, camera.up))
        view.fov(camera.fov)
        view.z_near(_NEAR * distance)
        view.z_far(_FAR * distance)
        self._scene.set_camera(view)
        self._scene.ambient_light(tuple(picture.ambient))
        for light in picture.lights:
            direction = np.asarray(light.direction, float) / np.linalg.norm(light.direction)
            self._scene.point_light(camera.target + _LIGHT_DISTANCE * distance * direction, tuple(light.color))


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """GGUI leaves an imgui.ini in the folder where it closes: let that be one that goes away."""
    here = os.open(".", os.O_RDONLY) if hasattr(os, "fchdir") else None  # also finds back to a folder that has moved
    try:
        with tempfile.TemporaryDirectory() as folder:
            if here is not None:
                os.chdir(folder)
            try:
                yield
            finally:
                if here is not None:
                    os.fchdir(here)
    finally:
        if here is not None:
            os.close(here)


def _brought_near(segments: np.ndarray, camera: Camera) -> np.ndarray:
    """Ends of segments (2 m, 3), where they look the same and nothing is before them."""
    eye, ends = np.asarray(camera.position, float), segments.reshape(-1, 3).astype(float)
    forward = (np.asarray(camera.target, float) - eye) / camera.distance
    depth, near = (ends - eye) @ forward, _OVER * camera.distance
    ahead = np.repeat((depth.reshape(-1, 2) > near).all(axis=1), 2)
    share = np.where(ahead, near / np.where(ahead, depth, 1.0), 1.0)
    return (eye + share[:, None] * (ends - eye)).astype(np.float32)


def _corners(surface: Surface, picture: Picture, shadows: ShadowMap | None) -> tuple[np.ndarray, ...]:
    """Positions, normals and colours (3 m, 3) of the triangles' corners."""
    corners = surface.faces.reshape(-1)
    colors = np.asarray(surface.color)
    if surface.normals is None:
        normals = corner_normals(surface.vertices, surface.faces)
    else:
        normals = surface.normals[corners]
        if surface.gloss > 0:
            colors = glossy(surface, surface.normals, picture, shadows)
    return surface.vertices[corners], normals, colors[corners]


@ti.kernel
def _average(fine: ti.types.ndarray(dtype=ti.f32, ndim=3), image: ti.types.ndarray(dtype=ti.u8, ndim=3), n: ti.i32):
    """Mean of n x n samples, from GGUI's columns first and bottom up to rows first and top down."""
    for j in range(image.shape[1]):  # a column at a time: that is how the samples lie in memory
        for i in range(image.shape[0]):
            total = ti.Vector([0.0, 0.0, 0.0])
            for p in range(n):
                for q in range(n):
                    for c in ti.static(range(3)):
                        total[c] += fine[j * n + p, (image.shape[0] - 1 - i) * n + q, c]
            for c in ti.static(range(3)):
                image[i, j, c] = ti.cast(ti.math.clamp(255.0 * total[c] / (n * n) + 0.5, 0.0, 255.0), ti.u8)
