"""What a view and the player of a simulation say to each other: plain data that passes between processes.

The view sends commands, tuples of a name and its arguments (see `COMMANDS`); the player answers with an `Opened` for
each scene it has built, a `Moment` whenever there is something new to draw, and `Notice`s.
"""

import dataclasses

import numpy as np

from pliant.core.data import Snapshot
from pliant.render.render_scene import RenderScene

COMMANDS = {
    "play": "runs on",
    "pause": "stops after the step under way",
    "toggle": "runs on, or pauses",
    "step": "makes one step and pauses",
    "reset": "goes back to the initial state, with the parameters as they are now",
    "set": "owner, name, value: changes a parameter, as a Knob names it",
    "defaults": "gives all parameters the values of the scene",
    "limit": "factor or None: simulated seconds per second, at most",
    "show": "field, grains, skins: what moments are to hold beside positions: the field that colours, and whether the "
            "grains and the skins of bodies",
    "save": "path: writes the whole state",
    "load": "path: goes on from a state that was saved",
    "grab": "body, point (3) [m]: holds it there by a spring",
    "drag": "point (3) [m]: moves the end of the spring",
    "release": "lets go",
    "pin": "body: holds a rigid body where it is, or lets it go again; whatever is grabbed is let go",
    "quit": "ends",
}


@dataclasses.dataclass
class Knob:
    """A parameter that may change while the simulation runs: `name` of the body `owner`, or of the scene if that is
    empty, "gravity.y" being one component. `low` and `high` are the ends of a slider, logarithmic if `log`."""

    owner: str
    name: str
    value: float
    low: float
    high: float
    log: bool
    unit: str
    doc: str


@dataclasses.dataclass
class Opened:
    """A scene is there: how it is drawn, its parameters, the fields it can be coloured by with their units, the number
    of particles (and grains) by body, sentences that the user should know of, and what some of the fields mean."""

    name: str
    render_scene: RenderScene
    knobs: list[Knob]
    fields: dict[str, str]
    counts: dict[str, int]
    notes: list[str]
    meanings: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Figures:
    """Numbers of the last step. `rate` is simulated seconds per second, lately."""

    time: float  # [s]
    dt: float  # [s]
    step: int
    steps_per_second: float
    rate: float
    seconds: dict[str, float]  # by stage
    iterations: dict[str, int]
    density_error: float  # mean, relative
    max_speed: float  # [m/s]
    energy: float  # kinetic [J]
    counts: dict[str, int] = dataclasses.field(default_factory=dict)  # points of each body, and of what others show


@dataclasses.dataclass
class Moment:
    """Something new to draw. Its clouds and skins (`<body>_skin` among the meshes) have the field that was asked for,
    one number each, by its name."""

    snapshot: Snapshot
    figures: Figures
    playing: bool
    knobs: list[Knob] | None = None  # if they have changed
    grip: np.ndarray | None = None  # (2, 3) [m]: where a spring holds something, and where the hand is
    pinned: frozenset[str] = frozenset()  # rigid bodies that are held or led


@dataclasses.dataclass
class Notice:
    """A sentence for the user. `kind` is "busy" (something takes long; an empty text ends it), "info", "error" (what
    was wanted cannot be had), or "failure" (the scene cannot be built or has broken down; "reset" tries again)."""

    kind: str
    text: str
