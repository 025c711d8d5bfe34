"""How a scene says that it has a robot, and what may be wrong with that."""

from typing import TYPE_CHECKING, Any

from pliant.materials import RobotLink
from pliant.solvers.robots.options import Robot

if TYPE_CHECKING:
    from pliant.scene.scene import Scene


def add(scene: "Scene", robot: Robot, name: Any, colors: Any, given: list[str]) -> Robot:
    """Adds a robot, with a wall for each of its geoms. The scene keeps its model whole, and no name of a file. `given`
    are parameters that `add` has for bodies alone."""
    made = robot.embedded(scene.free_name(name, "robot"))
    for key in given:
        scene.note_problem(f"{made.name}: a robot is added by itself; leave out {key}")
    scene.settings = scene.settings.replaced(robots=(*scene.settings.robots, made))
    if made.problems():
        return made  # which `problems` tells
    for geom in made.geoms():
        link = RobotLink(robot=made.name, geom=geom.number, moves=geom.moves, friction=made.friction,
                         no_slip=made.no_slip)  # fmt: skip
        scene.add(geom.shape, link, name=f"{made.name}.{geom.name}", colors=colors)
    return made


def problems(scene: "Scene") -> list[str]:
    """What is wrong with the robots of a scene, one sentence each."""
    found = []
    for robot in scene.settings.robots:
        if not isinstance(robot, Robot):
            found.append(f"Scene: robots are added by scene.add(pl.Robot(...)), got {robot!r}")
        else:
            found += robot.problems()
    return found
