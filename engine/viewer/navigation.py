"""A camera that follows the hand: orbits, pans, zooms, flies, and jumps to fixed views."""

import dataclasses

import numpy as np

from pliant.render.camera import STEEPEST, Bounds, Camera, Triple

ORBIT = 0.35  # [degrees] for each pixel of a 720 pixels high window
NOTCH = 0.88  # a notch of the wheel brings the camera so many times nearer
MOST_NOTCHES = 100.0  # that count at once: more than from one end to the other
DRAG = 3.0  # zooming by a drag over the whole window is as much as e^DRAG
PACE = 0.6  # of the scene's size: flown each second
NEAREST, FARTHEST = 1e-3, 50.0  # in sizes of the scene: distances from the target
BESIDE = 0.02  # how far views from above and below stand aside: straight above, "up" has no direction
ROUNDS = 4  # in which a scene is fitted into a part of a window
LEAST_ROOM = 0.35  # of a window: less than this is not what a scene is fitted into
VIEWS: dict[str, Triple] = {
    "front": (0.0, 0.0, 1.0), "back": (0.0, 0.0, -1.0), "left": (-1.0, 0.0, 0.0), "right": (1.0, 0.0, 0.0),
    "top": (0.0, 1.0, BESIDE), "bottom": (0.0, -1.0, BESIDE), "iso": (1.0, 0.8, 1.0),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Room:
    """A window of `width` x `height`, and how much of it panels cover at each side [pixels]."""

    width: int
    height: int
    side: float = 0.0  # left and right
    top: float = 0.0
    bottom: float = 0.0

    @property
    def free(self) -> tuple[float, float]:
        """Width and height of what is left, if that is not too little to care for."""
        width, height = self.width - 2 * self.side, self.height - self.top - self.bottom
        return max(width, LEAST_ROOM * self.width), max(height, LEAST_ROOM * self.height)

    @property
    def off_centre(self) -> tuple[float, float]:
        """How far the middle of what is left lies from that of the window, rightward and downward."""
        return 0.0, (self.top - self.bottom) / 2


class Navigator:
    """Where the window is seen from. Pixels count from the left and the top."""

    def __init__(self, camera: Camera, bounds: Bounds):
        self.bounds = np.asarray(bounds, float)
        self.take(camera)

    def take(self, camera: Camera, fov: float | None = None) -> None:
        """Jumps to a camera, maybe with another opening angle."""
        arm = np.subtract(camera.position, camera.target).astype(float)
        self.target, self.fov = np.asarray(camera.target, float), float(fov or camera.fov)
        self.distance = float(np.linalg.norm(arm))
        self.yaw = float(np.degrees(np.arctan2(arm[0], arm[2])))
        self.pitch = float(np.degrees(np.arcsin(np.clip(arm[1] / self.distance, -1.0, 1.0))))
        self.pitch = float(np.clip(self.pitch, -STEEPEST, STEEPEST))

    @property
    def camera(self) -> Camera:
        position = self.target + self.distance * self._towards()
        return Camera(tuple(map(float, position)), tuple(map(float, self.target)), fov=self.fov)

    @property
    def size(self) -> float:
        """Of the scene [m]."""
        return float(np.linalg.norm(self.bounds[1] - self.bounds[0]))

    def orbit(self, dx: float, dy: float, height: int) -> None:
        """Turns about the target by a drag of so many pixels."""
        scale = ORBIT * 720 / height
        self.yaw -= scale * dx
        self.pitch = float(np.clip(self.pitch + scale * dy, -STEEPEST, STEEPEST))

    def pan(self, dx: float, dy: float, height: int) -> None:
        """Moves sideways, so that what is as far as the target stays under the hand."""
        right, up, _ = self.camera.axes()
        scale = 2 * self.distance * np.tan(np.radians(self.fov) / 2) / height
        self.target = self.target - scale * (dx * right - dy * up)

    def zoom(self, notches: float) -> None:
        """Nearer (positive) or farther."""
        wanted = self.distance * NOTCH ** np.clip(notches, -MOST_NOTCHES, MOST_NOTCHES)
        self.distance = float(np.clip(wanted, NEAREST * self.size, FARTHEST * self.size))

    def zoom_drag(self, dy: float, height: int) -> None:
        """Nearer by a drag up."""
        self.zoom(DRAG * dy / height / np.log(NOTCH))

    def fly(self, forward: float, right: float, up: float, seconds: float) -> None:
        """Moves camera and target for so long; each direction is -1, 0 or 1."""
        axes = self.camera.axes()
        move = right * axes[0] + up * axes[1] + forward * axes[2]
        self.target = self.target + PACE * self.size * seconds * move

    def frame(self, room: Room, direction: Triple | None = None, bounds: Bounds | None = None) -> None:
        """Sees all of the scene, or of other bounds, in the free part of a window, from a direction or from where it
        looks now."""
        free_width, free_height = room.free
        slope = np.tan(np.radians(self.fov) / 2)
        narrow = np.degrees(2 * np.arctan(slope * free_height / room.height))  # the opening angle of that part alone
        towards = tuple(self._towards()) if direction is None else direction
        seen = np.asarray(self.bounds if bounds is None else bounds, float)
        centred, farther = Camera.framing(seen, towards, free_width / free_height, narrow), 1.0
        for _ in range(ROUNDS):  # moved aside, what is near moves more than what is far, and may stick out
            self.take(centred, self.fov)
            self.distance *= farther
            self.pan(*room.off_centre, room.height)
            farther *= max(1.0, self._excess(seen, room))

    def _excess(self, bounds: np.ndarray, room: Room) -> float:
        """How much larger than the free part of a window the bounds are seen."""
        corners = [(x, y, z) for x in bounds[:, 0] for y in bounds[:, 1] for z in bounds[:, 2]]
        seen = np.array([self.pixel(np.array(corner), room.width, room.height) for corner in corners])
        middle = np.array([room.width / 2, room.height / 2]) + room.off_centre
        return float((np.abs(seen - middle) / np.array(room.free)).max() * 2)

    def under(self, px: float, py: float, width: int, height: int, depth_of: np.ndarray) -> np.ndarray:
        """The point [m] under a pixel that is as deep in the picture as a given point: where a hand drags it to."""
        camera = self.camera
        right, up, forward = camera.axes()
        slope = np.tan(np.radians(self.fov) / 2)
        x, y = (2 * px / width - 1) * slope * width / height, (1 - 2 * py / height) * slope
        eye = np.asarray(camera.position, float)
        return eye + float((depth_of - eye) @ forward) * (forward + x * right + y * up)

    def pixel(self, point: np.ndarray, width: int, height: int) -> tuple[float, float]:
        """Where in the window a point in front of the camera is seen."""
        camera = self.camera
        x, y, depth = camera.axes() @ (np.asarray(point, float) - camera.position)
        scale = height / 2 / np.tan(np.radians(self.fov) / 2) / depth
        return float(width / 2 + scale * x), float(height / 2 - scale * y)

    def _towards(self) -> np.ndarray:
        """From the target to the camera, of length 1."""
        yaw, pitch = np.radians((self.yaw, self.pitch))
        return np.array([np.sin(yaw) * np.cos(pitch), np.sin(pitch), np.cos(yaw) * np.cos(pitch)])
