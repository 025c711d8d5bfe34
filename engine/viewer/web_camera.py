"""Where the visitors of a web page look from. Each has a camera of its own, which viser lets them move."""

import dataclasses
import math
from typing import Any

import numpy as np

from pliant.render.camera import Camera, Triple
from pliant.render.render_scene import RenderScene

ASPECT = 16 / 9  # of pictures that cameras of scenes are made for, and of pages that are not known yet
CLOSE = 1e-3  # relative, or radians: cameras that differ by less are the same
NEAR, FAR = 0.01, 100.0  # what a camera sees, in distances to its target


class Cameras:
    """The cameras of all visitors of a `server`. There is a `render_scene` to look at once it has been opened."""

    def __init__(self, server: Any):
        self._server = server
        self._render_scene: RenderScene | None = None
        self._aimed: dict[int, tuple[Triple | None, float, Camera]] = {}  # direction, aspect and camera of visitors

    def open(self, render_scene: RenderScene) -> None:
        """From now on this is looked at; those who are there see all of it if they saw nothing before."""
        first, self._render_scene = self._render_scene is None, render_scene
        if first:
            aim(self._server.initial_camera, render_scene.view(0.0, ASPECT))
            for client in self._server.get_clients().values():
                self.look(client)

    def look(self, client: Any, direction: Triple | None = None) -> None:
        """Lets a visitor see the whole scene, from a direction or as the scene has it."""
        if self._render_scene is None:
            return
        seen, aspect = self._render_scene, client.camera.aspect
        camera = own_view(seen, aspect) if direction is None else Camera.framing(seen.bounds, direction, aspect)
        with client.atomic():
            aim(client.camera, camera)
        self._aimed[client.client_id] = direction, aspect, camera

    def moved(self, client: Any) -> None:
        """A camera has moved, or its page has another size. Who has not moved it still sees all: pages also move it,
        to where it begins, when they learn of that."""
        if self._render_scene is None or client.client_id not in self._aimed:
            return
        (direction, aspect, camera), now = self._aimed[client.client_id], client.camera
        first = self._render_scene.view(0.0, ASPECT)
        if not any(same_place(now.position, other.position) for other in (camera, first)):
            return
        same = now.aspect == aspect and abs(now.fov - math.radians(camera.fov)) < CLOSE
        if not same or not same_place(now.position, camera.position):
            self.look(client, direction)


def same_place(a: Triple, b: Triple) -> bool:
    """Whether two points are one for the eye."""
    return bool(np.linalg.norm(np.subtract(a, b)) <= CLOSE * (1 + np.linalg.norm(b)))


def aim(handle: Any, camera: Camera) -> None:
    """Gives a camera of viser the view of one of ours."""
    handle.position, handle.look_at = tuple(map(float, camera.position)), tuple(map(float, camera.target))
    handle.fov, handle.near, handle.far = math.radians(camera.fov), NEAR * camera.distance, FAR * camera.distance


def own_view(render_scene: RenderScene, aspect: float) -> Camera:
    """The scene's own view. A camera that does not ask how wide a picture is was made for one of 16:9; in a narrower
    page it sees as much from left to right."""
    camera = render_scene.view(0.0, aspect)
    if aspect >= ASPECT or camera != render_scene.view(0.0, ASPECT):
        return camera
    slope = math.tan(math.radians(camera.fov) / 2) * ASPECT / aspect
    return dataclasses.replace(camera, fov=2 * math.degrees(math.atan(slope)))
