"""How pictures of a scene look: what they are coloured by, what is drawn how, and what is written on them."""

from dataclasses import dataclass
from typing import Any

from pliant.core.options import Options, param
from pliant.render.colors import COLOR_MAPS
from pliant.render.picture import Triple


@dataclass(frozen=True)
class Background:
    """Colours (sRGB in 0..1) of what stands behind, and of what is drawn on top of it."""

    zenith: Triple
    horizon: Triple
    ground: Triple
    line: Triple
    dark: bool = False  # whether text on it must be light


BACKGROUNDS = {
    "day": Background((0.70, 0.79, 0.88), (0.955, 0.965, 0.975), (0.87, 0.88, 0.89), (0.22, 0.25, 0.30)),
    "studio": Background((0.60, 0.61, 0.63), (0.93, 0.93, 0.935), (0.80, 0.80, 0.81), (0.20, 0.21, 0.23)),
    "white": Background((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (0.975, 0.975, 0.975), (0.25, 0.27, 0.30)),
    "black": Background((0.03, 0.035, 0.045), (0.11, 0.12, 0.14), (0.13, 0.14, 0.16), (0.62, 0.66, 0.72), dark=True),
}


class Look(Options):
    """How pictures of a scene look."""

    color: str = param("speed", "field that colours particles; a vector counts by its magnitude, 'velocity.x' is one "
                       "component", kind="text")  # fmt: skip
    low: Any = param(None, "value of the first colour, in the field's unit; None finds a good one", optional=True)
    high: Any = param(None, "value of the last colour, in the field's unit; None finds a good one", optional=True)
    colors: Any = param(None, "colour map; None is each body's own", choices=tuple(COLOR_MAPS), optional=True)
    bar: bool = param(False, "draw a colour bar")
    fluid: str = param("spheres", "how fluids are drawn", choices=("spheres", "surface"))
    solid: str = param("mesh", "how elastic bodies are drawn; a mesh is plain unless color is another than speed, or "
                       "there is a bar", choices=("mesh", "spheres"))  # fmt: skip
    grains: bool = param(True, "draw the grains of granular bodies in place of their particles, if they have the field "
                         "that colours")  # fmt: skip
    containers: str = param("wireframe", "how walls are drawn that hold things inside",
                            choices=("wireframe", "glass", "hidden"))  # fmt: skip
    probes: bool = param(False, "mark where probes are, as far as nothing hides them")
    joints: bool = param(False, "draw the joints of rigid bodies, over all else")
    radius: float = param(1.1, "radius of drawn spheres; a little overlap reads as one surface", "particle radii",
                          low=0.05, high=5.0)  # fmt: skip
    ground: bool = param(True, "draw a floor under the scene")
    shadow: float = param(0.4, "how dark shadows are", "1", low=0.0, high=1.0)
    background: str = param("day", "what stands behind", choices=tuple(BACKGROUNDS))
    supersample: int = param(2, "samples across a pixel in each direction", "1", low=1, high=4, kind="integer")
    title: str = param("", "text at the top left", kind="text")
    clock: bool = param(False, "write the simulated time")

    def problems(self) -> list[str]:
        found = super().problems()
        if not found and self.low is not None and self.high is not None and self.low >= self.high:
            found.append(f"Look: low must be below high, got {self.low!r} and {self.high!r}")
        return found
