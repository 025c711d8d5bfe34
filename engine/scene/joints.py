"""How a scene says what holds its rigid bodies together, and what may be wrong with that."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pliant.core.options import REQUIRED
from pliant.errors import unknown_name
from pliant.geometry import Shape
from pliant.materials import Material
from pliant.solvers.rigid.options import (
    BallJoint,
    DistanceJoint,
    FixedJoint,
    HingeJoint,
    Joint,
    SliderJoint,
    SpringJoint,
)

if TYPE_CHECKING:
    from pliant.scene.scene import Body, Scene

WORLD = "the world"
WORDS = {"fixed": "join"}  # joints that are made by another word than their kind
MAKERS = ("ball", "distance", "hinge", "join", "slider", "spring")  # methods of a scene, and how joints are called
J = TypeVar("J", bound=Joint)


class Joining:
    """The part of a scene that makes joints. Its methods are `Scene`'s."""

    def hinge(self, a: Any, b: Any, at: Any = REQUIRED, axis: Any = REQUIRED, limits: Any = None, speed: Any = None,
              torque: Any = None, max_torque: float | None = None, contact: bool = False, name: str | None = None,
              **unknown: Any) -> HingeJoint:  # fmt: skip
        """Lets body `a` turn relative to body `b`, or to the world if that is None, about the `axis` through `at` [m]:
        "x", "y", "z" or three numbers, right-handed. At least one of the two is a `pl.Rigid`; the other may be a wall.

        Its angle is 0 when the scene is built, and `limits=(low, high)` [degrees] bound it. A motor keeps a `speed`
        [rad/s, as spins], with `max_torque` [N m] at the most, or gives a `torque` [N m]: numbers or functions of time.
        Two bodies that are joined do not touch each other unless `contact`. Returns a `Joint`: `sim[joint].angle`,
        `.speed`, `.force`, `.torque`.
        """
        values = {"a": a, "b": b, "at": at, "axis": axis, "limits": limits, "speed": speed, "torque": torque,
                  "max_torque": max_torque, "contact": contact}  # fmt: skip
        return add(self, HingeJoint, name, values, unknown)

    def slider(self, a: Any, b: Any, at: Any = None, axis: Any = REQUIRED, limits: Any = None, speed: Any = None,
               force: Any = None, max_force: float | None = None, contact: bool = False, name: str | None = None,
               **unknown: Any) -> SliderJoint:  # fmt: skip
        """Lets body `a` move along the `axis` of body `b`, or of the world, without turning. `limits=(low, high)` [m]
        bound its displacement, which is 0 when the scene is built. A motor keeps a `speed` [m/s], with `max_force` [N]
        at the most, or gives a `force` [N]: numbers or functions of time. `at` [m] is where `.force` and `.torque` of
        `sim[joint]` act, the middle of `b` if it is not given. See `hinge` for the rest."""
        values = {"a": a, "b": b, "at": at, "axis": axis, "limits": limits, "speed": speed, "force": force,
                  "max_force": max_force, "contact": contact}  # fmt: skip
        return add(self, SliderJoint, name, values, unknown)

    def ball(self, a: Any, b: Any, at: Any = REQUIRED, contact: bool = False, name: str | None = None,
             **unknown: Any) -> BallJoint:  # fmt: skip
        """Holds body `a` to body `b`, or to the world, in the point `at` [m], about which they turn freely. See `hinge`
        for the rest."""
        return add(self, BallJoint, name, {"a": a, "b": b, "at": at, "contact": contact}, unknown)

    def join(self, a: Any, b: Any, at: Any = None, contact: bool = False, name: str | None = None,
             **unknown: Any) -> FixedJoint:  # fmt: skip
        """Holds body `a` to body `b`, or to the world, as if both were one. `at` [m] is where `.force` and `.torque` of
        `sim[joint]` act, the middle of `b` if it is not given. See `hinge` for the rest."""
        return add(self, FixedJoint, name, {"a": a, "b": b, "at": at, "contact": contact}, unknown)

    def spring(self, a: Any, b: Any, at: Any = None, stiffness: float = REQUIRED, damping: float = 0.0,
               length: float | None = None, contact: bool = True, name: str | None = None,
               **unknown: Any) -> SpringJoint:  # fmt: skip
        """A spring of that `stiffness` [N/m] from a point of body `a` to one of body `b`, or of the world, and a damper
        [N s/m]. `at=(p, q)` [m] are the two points, the middles of the bodies if they are not given; `length` [m] is
        that at rest, if not the one when the scene is built. Returns a `Joint`: `sim[joint].length`, `.force`."""
        values = {"a": a, "b": b, "at": at, "stiffness": stiffness, "damping": damping, "length": length,
                  "contact": contact}  # fmt: skip
        return add(self, SpringJoint, name, values, unknown)

    def distance(self, a: Any, b: Any, at: Any = None, length: float | None = None, contact: bool = True,
                 name: str | None = None, **unknown: Any) -> DistanceJoint:  # fmt: skip
        """A rod without mass from a point of body `a` to one of body `b`, or of the world, which turns freely at both.
        See `spring`."""
        values = {"a": a, "b": b, "at": at, "length": length, "contact": contact}
        return add(self, DistanceJoint, name, values, unknown)


def add(scene: Any, kind: type[J], name: Any, values: dict[str, Any], unknown: dict[str, Any]) -> J:
    """Adds a joint; bodies are kept by their names, and numbers as plain ones."""
    word = WORDS.get(kind.kind, kind.kind)
    for key in unknown:
        scene.note_problem(f"{word} has no " + unknown_name("parameter", key, ["name", *values])[8:])
    ends = [_body(scene, values[letter]) for letter in ("a", "b")]
    values = values | {letter: getattr(values[letter], "name", values[letter]) for letter in ("a", "b")}
    if values["at"] is None:
        values["at"] = _middles(ends, pair="length" in values)
    made = kind(name=scene.free_name(name, word), **{key: _plain(value) for key, value in values.items()})
    scene.settings = scene.settings.replaced(joints=(*scene.settings.joints, made))
    return made


def replaced(joints: tuple[Joint, ...], name: str, new: Joint) -> tuple[Joint, ...]:
    """The joints with another one under this name."""
    return tuple(new if joint.name == name else joint for joint in joints)


def _body(scene: "Scene", given: Any) -> "Body | None":
    """The body that was given, as such or by its name."""
    return next((body for body in scene.bodies if body is given or body.name == given), None)


def _middles(ends: "list[Body | None]", pair: bool) -> Any:
    """Where a joint is that was given no place: at the middle of the second body, or between the middles of both; the
    world's end is where the other one is."""
    found = [body.shape.middle() for body in reversed(ends)
             if body is not None and isinstance(body.shape, Shape) and not body.shape.problems()]  # fmt: skip
    if not found:
        return (0.0, 0.0, 0.0)  # what is wrong with the bodies is told in other sentences
    return tuple(found[::-1]) if pair and len(found) == 2 else found[0]


def _plain(value: Any) -> Any:
    """Arrays and lists of numbers as tuples, which a caller cannot change later."""
    if isinstance(value, (tuple, list, np.ndarray)):
        return tuple(_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def problems(scene: "Scene") -> list[str]:
    """What is wrong with the joints themselves, and with the bodies that they name, one sentence each."""
    found, bodies = [], {body.name: body for body in scene.bodies}
    for joint in scene.settings.joints:
        if not isinstance(joint, Joint):
            found.append(f"Scene: joints are made by scene.hinge, scene.ball and others, got {joint!r}")
            continue
        own = joint.problems()
        names = [name for name in (joint.a, joint.b) if isinstance(name, str)]
        own += [f"{joint.name}: it joins an " + unknown_name("body", name, bodies) for name in names
                if name not in bodies]  # fmt: skip
        found += own or _end_problems(joint, [bodies[name] for name in names])
    return found


def _end_problems(joint: Joint, ends: "list[Body]") -> list[str]:
    """What is wrong with the two bodies of a joint that is sound otherwise."""
    if not all(isinstance(body.material, Material) for body in ends):
        return []  # which is told already
    for body in ends:
        if not body.material.is_wall:
            return [f"{joint.name}: {body.name} is {type(body.material).__name__}, and only rigid bodies and walls can "
                    "be joined"]  # fmt: skip
    if not any(body.material.free for body in ends):
        names = " and ".join([body.name for body in ends] + [WORLD] * (joint.b is None))
        return [f"{joint.name}: it joins {names}, which no force can move; one of the two must be a pl.Rigid(...)"]
    return []
