"""Errors that speak to the user: what was given, what is allowed, what to do."""

import difflib
from collections.abc import Iterable


class PliantError(Exception):
    """Base of every error that Pliant raises on purpose; its text is one clear sentence."""


class SceneError(PliantError):
    """A scene cannot be built. `problems` lists one sentence for each thing that is wrong with it."""

    def __init__(self, problems: Iterable[str]):
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class SimulationError(PliantError):
    """A running simulation had to stop; the state is the last good one."""


def unknown_name(kind: str, given: str, known: Iterable[str]) -> str:
    """One sentence about a name that is not in the table `known`, with the likeliest one meant."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}."
    return f"unknown {kind} {given!r}; {hint}"


def broken_down(time: float, trouble: str) -> str:
    """The sentence on a rigid body that has gone out of bounds."""
    return (f"the simulation broke down at t = {time:.4g} s: {trouble}; the state is that of the last good step. Look "
            "for springs and motors that are too strong for what they hold, or try a smaller max_dt.")  # fmt: skip
