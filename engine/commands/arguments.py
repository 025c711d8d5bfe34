"""What words on the command line mean. Mistakes become one sentence each."""

import math
from typing import Any

from pliant.errors import PliantError, unknown_name
from pliant.render import Camera, Look, Orbit
from pliant.scene.loading import parse_value, split_setting

SMALLEST, LARGEST = 16, 7680  # sides of a picture [pixels]; 7680 is 8K


def read_positive(name: str, value: Any, unit: str) -> float:
    """A positive, finite number."""
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise PliantError(f"{name} must be a positive number of {unit}, got {value!r}")
    return float(value)


def read_size(text: str) -> tuple[int, int]:
    """Width and height from "1280x720"."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise PliantError(f"--size must be width x height in pixels such as 1280x720, got {text!r}")
    width, height = map(int, parts)
    if not SMALLEST <= min(width, height) <= max(width, height) <= LARGEST:
        raise PliantError(f"--size must lie between {SMALLEST} and {LARGEST} pixels each way, got {text!r}")
    return width, height


def read_look(settings: list[str]) -> dict[str, Any]:
    """What differs from the usual look, from texts such as "color=pressure"."""
    usual, values = Look().values(), {}
    for setting in settings:
        name, text = split_setting("--look", setting)
        if name not in usual:
            raise PliantError("--look: " + unknown_name("name", name, usual))
        values[name] = parse_value(name, text, usual[name])
    problems = Look(**values).problems()
    if problems:
        raise PliantError("; ".join(problems))
    return values


def read_camera(text: str) -> Any:
    """A camera from "auto", "orbit", "orbit:20" (degrees per second) or "x,y,z:x,y,z" (position and target)."""
    kind, _, rest = text.partition(":")
    try:
        if kind == "auto" and not rest:
            return None
        if kind == "orbit":
            camera: Any = Orbit(speed=float(rest)) if rest else Orbit()
        else:
            position, target = ([float(number) for number in part.split(",")] for part in (kind, rest))
            camera = Camera(position, target)
        problems = camera.problems()
    except ValueError:
        raise PliantError("--camera must be auto, orbit, orbit:20 (degrees per second) or x,y,z:x,y,z (position and "
                          f"target [m]), got {text!r}") from None  # fmt: skip
    if problems:
        raise PliantError(problems[0])
    return camera
