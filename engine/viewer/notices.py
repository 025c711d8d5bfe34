"""What lies above the picture beside the panels: what is being done, messages, failures, help, and the colour bar."""

import dataclasses
from collections.abc import Mapping, Sequence

from pliant.viewer import paint
from pliant.viewer.messages import Notice
from pliant.viewer.ui import MARGIN, Ui

STAYS, FADES = 6.0, 0.8  # [s] that an info is shown, and that it takes to vanish at the end
WIDEST, WIDEST_FAILURE, HELP_WIDTH, BAR_WIDTH = 400.0, 560.0, 640.0, 310.0
KEY_COLUMN, FIRST_COLUMN = 150.0, 74.0  # widths of the keys in the help, on the right and on the left
FIRST_SHARE = 0.43  # of the width, for the left column
PATIENCE = 0.3  # [s] that something takes before it is shown

# Everything that the keyboard and the mouse do in a view.
KEYS = (
    ("Space", "play or pause"),
    (". + N", "one step"),
    ("R", "reset"),
    ("C", "next field that colours"),
    ("P", "screenshot"),
    ("V", "record, or stop recording"),
    ("K", "save the state"),
    ("L", "load the last state"),
    ("Tab", "hide or show the panels"),
    ("H", "this help"),
    ("Esc", "quit"),
    ("Left drag", "orbit"),
    ("Middle drag", "pan"),
    ("Shift Left drag", "pan"),
    ("Right drag", "zoom"),
    ("Wheel", "zoom"),
    ("W A S D Q E", "fly"),
    ("F", "frame everything"),
    ("1 to 7", "views: front, back, ... iso"),
    ("8", "the scene's own view"),
    ("9", "frame the particles alone"),
    ("Ctrl Left drag", "grab a body, or stir"),
    ("G held", "the left button grabs"),
    ("X", "pin a rigid body, or let it go"),
)


class Messages:
    """Shows messages below each other at the top of the window: infos fade, errors stay until they are closed."""

    def __init__(self) -> None:
        self._known: list[tuple[Notice, float, int]] = []  # with the time it came at, and a number
        self._number = 0

    def draw(self, ui: Ui, messages: list[Notice], y: float, width: float) -> float:
        """Takes those that are over out of the list. Returns where the last one ends."""
        kept = [known for known in self._known if any(known[0] is message for message in messages)]
        for message in messages:
            if not any(known[0] is message for known in kept):
                self._number += 1
                kept.append((message, ui.now, self._number))
        self._known = kept
        width = min(width, WIDEST)
        for message, since, number in kept:
            age, name, lasting = ui.now - since, f"message {number}", message.kind == "error"
            closed = not lasting and age > STAYS
            fade = 1.0 if lasting else min((STAYS - age) / FADES, 1.0)
            with ui.panel(name, None, y, width, titled=False, above=True, opacity=fade):
                closed = ui.message(message.text, message.kind, lasting, key="close") or closed
            y += ui.height_of(name) + MARGIN / 2
            if closed:
                messages[:] = [other for other in messages if other is not message]
        return y


def draw_busy(ui: Ui, text: str, seconds: float, y: float, width: float) -> float:
    """What is being done, and for how long; returns the height it takes."""
    if not text or seconds < PATIENCE:
        return 0.0
    with ui.panel("Busy", None, y, min(width, WIDEST), titled=False, above=True):
        ui.progress(f"{text.rstrip('. ')} ...", None, f"{seconds:.1f} s")
    return ui.height_of("Busy") + MARGIN / 2


def draw_failure(ui: Ui, text: str, width: float, between: tuple[float, float]) -> str:
    """Why the scene cannot go on, large; returns "reset" or "close" when that was clicked."""
    clicked = ""
    with ui.panel("The scene cannot go on", None, None, min(width, WIDEST_FAILURE), above=True, between=between):
        ui.space(4)
        ui.message(text, "error", size=paint.TITLE)
        ui.space(8)
        ui.text("Reset tries again: it reads the scene anew if its file has changed, and keeps the parameters as they "
                "are set now.", dim=True, size=paint.SMALL + 1)  # fmt: skip
        ui.space(4)
        with ui.row((1.0, 1.0, 1.2)):
            if ui.button("Reset", active=True, icon="reset"):
                clicked = "reset"
            if ui.button("Close"):
                clicked = "close"
    return clicked


def draw_help(ui: Ui, between: tuple[float, float]) -> bool:
    """All keys; returns whether it is to stay."""
    width, stays = min(HELP_WIDTH, ui.width - 2 * MARGIN), True
    half = (len(KEYS) + 1) // 2
    with ui.panel("Keys and mouse", None, None, width, above=True, note="H closes this", between=between):
        ui.space(4)
        for k in range(half):
            with ui.row((FIRST_SHARE, 1 - FIRST_SHARE)):
                ui.keys(*KEYS[k], FIRST_COLUMN)
                if half + k < len(KEYS):
                    ui.keys(*KEYS[half + k], KEY_COLUMN)
        ui.space(6)
        with ui.row((3, 1)):
            ui.text("Sliders: drag the track, or the text above it for fine steps.", dim=True)
            stays = not ui.button("Close")
    return stays


def draw_bar(ui: Ui, label: str, low: float, high: float, maps: Sequence[str], bottom: float, width: float) -> float:
    """The colour bar, `bottom` above the window's lower edge; returns its height."""
    with ui.panel("Colours", None, -bottom, min(width, BAR_WIDTH), titled=False, solid=False):
        ui.colorbar(label, low, high, maps)
    return ui.height_of("Colours")


def draw_hint(ui: Ui) -> None:
    """How to get the panels back."""
    with ui.panel("Hint", MARGIN, -MARGIN, 156, titled=False, solid=False):
        ui.text("Tab: panels  ·  H: help", dim=True, size=paint.SMALL, align=0.5)


@dataclasses.dataclass
class Extras:
    """What panels show that is neither the view's state nor told by the player."""

    fps: float = 0.0  # of the window
    history: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)  # as History.series has it
    busy: str = ""  # what the player is doing
    busy_seconds: float = 0.0  # for how long
    messages: list[Notice] = dataclasses.field(default_factory=list)  # panels take out those that are over
    failure: str = ""  # why the scene cannot go on
    low: float = 0.0  # of the colours as they are drawn, in the field's unit
    high: float = 0.0
    maps: Sequence[str] = ()  # colour maps in use
    saved: list[str] = dataclasses.field(default_factory=list)  # names of saved states, newest first
    recording: float = 0.0  # seconds of the recording under way
