"""What the user has chosen in a view: what is drawn, how, and which panels are open."""

import dataclasses
from collections.abc import Container

from pliant.render.look import Look

SOLIDS, FLUIDS, WALLS = ("mesh", "spheres"), ("spheres", "surface"), ("wireframe", "solid", "hidden")
AXES = ("off", "x", "y", "z")
OWN = "own"  # colour map: each body's
LIMITS = {"none": None, "1/8 x": 0.125, "1/4 x": 0.25, "1/2 x": 0.5, "real time": 1.0, "2 x": 2.0}


@dataclasses.dataclass
class ViewState:
    """Starts as the scene's own look has it."""

    playing: bool = True
    limit: str = "none"  # of the speed, one of LIMITS
    color: str = "speed"  # field that colours
    auto: bool = True  # whether the range follows the values
    low: float = 0.0  # value of the first colour, in the field's unit
    high: float = 1.0  # value of the last colour
    colors: str = OWN  # colour map
    bar: bool = True
    fluid: str = "spheres"
    solid: str = "mesh"
    grains: bool = True
    joints: bool = True
    walls: str = "solid"  # obstacles; containers are wireframes also then
    shadow: bool = True
    hidden: set[str] = dataclasses.field(default_factory=set)  # names of bodies and walls that are not drawn
    clip: str = "off"  # axis of the clipping plane
    clip_at: float = 0.5  # its place, as a share of the scene's size along that axis
    clip_flip: bool = False  # keeps what lies above rather than below it
    recording: bool = False
    panels: bool = True
    help: bool = False
    plots: bool = True
    unfolded: set[str] = dataclasses.field(default_factory=set)  # bodies whose parameters are shown

    def begin(self, look: Look | None, fields: Container[str]) -> None:
        """Chooses what a scene's look has, as far as there are the `fields` that it wants."""
        if look is None:
            return
        self.solid, self.grains, self.fluid, self.bar = look.solid, look.grains, look.fluid, look.bar
        self.colors, self.shadow = look.colors or OWN, look.shadow > 0
        if look.color in fields:
            self.color = look.color
            if look.low is not None and look.high is not None:
                self.auto, self.low, self.high = False, look.low, look.high

    def color_by(self, field: str) -> None:
        """Another field, which has another range."""
        self.color, self.auto = field, True
