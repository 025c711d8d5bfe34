"""What the links of robots are to the rest of a scene."""

from pliant.core.options import REQUIRED, param
from pliant.materials.boundary import Boundary


class RobotLink(Boundary):
    """A geom of a robot: a wall that moves as its mechanism and what acts on it make it. `pl.Robot` makes them."""

    robot: str = param(REQUIRED, "name of the robot", kind="text")
    geom: int = param(0, "which of its geoms it is", kind="integer", low=0)
    moves: bool = param(True, "whether joints move it; otherwise it stands as the base does")

    @property
    def driven(self) -> bool:
        return self.moves
