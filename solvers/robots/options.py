"""What a scene says of a robot: `pl.Robot`."""

import functools
from typing import Any

import numpy as np

from pliant.core.options import REQUIRED, Options, param, positive
from pliant.errors import PliantError, SimulationError
from pliant.geometry.mesh import UP
from pliant.solvers.robots import control, mjcf
from pliant.solvers.robots.geoms import Base, Geom, geoms

FARTHEST = 1e9  # [m] from the origin
FUNCTION = "a function"  # stands for a function of time, which no file can hold


class Robot(Options):
    """A mechanism that MuJoCo moves, from MJCF: `arm = scene.add(pl.Robot("arm.xml"), name="arm")`.

    Each of its geoms that collide is a wall of the scene, called after robot and link (and the name or number of the
    geom, where a link has several): "arm.hand". What fluids, sand, elastic and rigid bodies do to a geom acts on its
    link. Contacts of the robot with itself and with geoms of its own world are MuJoCo's, and all others Pliant's.

    `control` gives numbers for the actuators, in their order or by name: a list, a dict, or a function of time [s], or
    of time and state (`qpos`, `qvel`, `ctrl`, `sensors`), that returns one. Gravity is that of the scene. With a scale,
    lengths are multiplied by it, while masses and times stay, so that forces grow with it and torques with its square.
    """

    mjcf: Any = param(REQUIRED, "name of an MJCF file, or XML text", kind="any")
    position: tuple = param((0.0, 0.0, 0.0), "where the origin of the model stands", "m", kind="vector", low=-FARTHEST,
                            high=FARTHEST)  # fmt: skip
    rotation: Any = param(None, "by which the model is turned about its origin: a pair of axis and degrees, such as "
                          "((0, 1, 0), 90)", kind="any")  # fmt: skip
    scale: float = positive(1.0, "magnification of all lengths", "1", high=1e6)
    up: str = param("z", "the axis that points up in the model", choices=tuple(UP))
    control: Any = param(None, "numbers for the actuators, or a function that returns them; None leaves them as they "
                         "are assigned", kind="any")  # fmt: skip
    friction: float | None = param(None, "Coulomb coefficient of its links on whatever touches them; None as for a "
                                   "rigid body. That of the MJCF is for its own contacts", "1", low=0.0, high=100.0,
                                   optional=True)  # fmt: skip
    no_slip: bool = param(True, "viscous fluids stick to it; False lets them slide")
    assets: tuple = param((), "the files that the model needs, once it is read: names and bytes", kind="any")
    name: str = param("robot", "what it is called, as bodies are", kind="text")

    def values(self) -> dict[str, Any]:
        found = super().values()
        return found | {"control": FUNCTION} if callable(self.control) else found

    def functions(self) -> list[str]:
        """What it does by functions of the user's, in words."""
        return [f"the control of {self.name!r}"] if callable(self.control) else []

    def embedded(self, name: str) -> "Robot":
        """The same with all that it needs in place of files, and a name."""
        try:
            text, assets = (self.mjcf, self.assets) if self.assets else mjcf.read(self.mjcf)
        except PliantError:
            return self.replaced(name=name)  # `problems` tells why
        return self.replaced(mjcf=text, assets=assets, name=name)

    @functools.cached_property
    def _compiled(self) -> tuple[Any, str]:
        """The model, and what is wrong with it."""
        try:
            text, assets = (self.mjcf, self.assets) if self.assets else mjcf.read(self.mjcf)
            return mjcf.compiled(text, assets), ""
        except PliantError as error:
            return None, str(error)

    @property
    def model(self) -> Any:
        """The model of MuJoCo, which is not to be changed."""
        return self._compiled[0]

    @property
    def base(self) -> Base:
        return Base.of(self.position, self.rotation, self.scale, self.up)

    def geoms(self) -> list[Geom]:
        """Its boundaries."""
        return geoms(self.model, self.base)

    def problems(self) -> list[str]:
        found = [sentence.removeprefix("Robot: ") for sentence in super().problems()]
        if not _is_turn(self.rotation):
            found.append(f"rotation must be a pair of axis and degrees, such as ((0, 1, 0), 90), or None, got "
                         f"{self.rotation!r}")  # fmt: skip
        if self.mjcf is not REQUIRED:
            found += self._model_problems(placed=not found)
        return [f"{self.name}: {sentence}" for sentence in found]

    def _model_problems(self, placed: bool) -> list[str]:
        """What is wrong with the model, and with the controls for it."""
        model, problem = self._compiled
        if problem or not placed:
            return [problem] if problem else []
        try:
            if not self.geoms():
                return ["it has no geoms that collide, so that nothing in the scene would meet it"]
            control.first_values(self.control, model)
        except (PliantError, SimulationError) as error:
            return [str(error)]
        return []


def _is_turn(rotation: Any) -> bool:
    """Whether it is None, or a pair of an axis and an angle."""
    if rotation is None:
        return True
    try:
        axis, degrees = np.asarray(rotation[0]), np.asarray(rotation[1])
    except (TypeError, ValueError, IndexError, KeyError):
        return False
    if len(rotation) != 2 or axis.shape != (3,) or degrees.shape != ():
        return False
    numbers = axis.dtype.kind in "iuf" and degrees.dtype.kind in "iuf"
    return bool(numbers and np.isfinite(axis).all() and np.isfinite(degrees) and axis.any())
