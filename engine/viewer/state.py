"""What the user has chosen in a view: what is drawn, how, and which panels are open."""

import dataclasses

SOLIDS, FLUIDS, WALLS = ("mesh", "spheres"), ("spheres", "surface"), ("wireframe", "solid", "hidden")
AXES = ("off", "x", "y", "z")
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
    colors: str = "own"  # colour map, or "own": each body's
    bar: bool = True
    fluid: str = "spheres"
    solid: str = "mesh"
    grains: bool = True
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
