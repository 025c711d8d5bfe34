"""Declared parameters: one line gives a parameter's default, unit, range and source.

Shapes, materials and solver settings are frozen dataclasses whose fields are made by `param`.
A wrong value does not raise where it is written: it is remembered, so that `Scene.build`
can report everything that is wrong with a scene at once.
"""

import dataclasses
import difflib
import math
from typing import TYPE_CHECKING, Any

import numpy as np


class _Required:
    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = _Required()


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a parameter may be: `kind` is number, integer, vector, flag, choice, text or any."""

    kind: str
    unit: str
    doc: str
    source: str
    low: float
    high: float
    open_low: bool
    open_high: bool
    choices: tuple[str, ...]
    optional: bool

    @property
    def range(self) -> str:
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "flag":
            return "True or False"
        if self.kind not in ("number", "integer", "vector"):
            return ""
        if math.isinf(self.low) and math.isinf(self.high):
            return "finite"
        left, right = "([)]"[self.open_low ^ 1], ")]"[self.open_high ^ 1]
        return f"in {left}{_short(self.low)}, {_short(self.high)}{right}"

    def problem(self, name: str, value: Any) -> str | None:
        """One sentence if `value` is not allowed."""
        if value is REQUIRED:
            return f"{name} is missing: {self.doc}"
        if value is None and self.optional:
            return None
        if self.kind == "flag":
            return None if isinstance(value, (bool, np.bool_)) else f"{name} must be True or False, got {value!r}"
        if self.kind == "choice":
            if value in self.choices:
                return None
            close = difflib.get_close_matches(str(value), self.choices, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            return f"{name} must be {self.range}, got {value!r}{hint}"
        if self.kind == "text":
            return None if isinstance(value, str) else f"{name} must be text, got {value!r}"
        if self.kind in ("number", "integer", "vector"):
            return self._number_problem(name, value)
        return None

    def _number_problem(self, name: str, value: Any) -> str | None:
        shape = (3,) if self.kind == "vector" else ()
        wanted = {"vector": "three numbers", "integer": "a whole number", "number": "a number"}[self.kind]
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            return f"{name} must be {wanted}, got {value!r}"
        plain = np.asarray(value, dtype=object).ravel().tolist()  # text, booleans and fractions are no numbers here
        numbers = all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in plain)
        if array.shape != shape or not numbers:
            return f"{name} must be {wanted}, got {value!r}"
        if np.isnan(array).any():
            return f"{name} must be {wanted}, got {value!r} (not a number)"
        if self.kind == "integer" and array != np.round(array):
            return f"{name} must be a whole number, got {value!r}"
        below = array <= self.low if self.open_low else array < self.low
        above = array >= self.high if self.open_high else array > self.high
        if below.any() or above.any():
            unit = f" {self.unit}" if self.unit not in ("", "1") and self.range != "finite" else ""
            return f"{name} must be {self.range}{unit}, got {value!r}"
        return None


def _short(value: float) -> str:
    return {math.inf: "inf", -math.inf: "-inf"}.get(value, f"{value:g}")


def param(
    default: Any,
    doc: str,
    unit: str = "",
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    choices: tuple[str, ...] = (),
    kind: str = "",
    source: str = "",
    optional: bool = False,
) -> Any:
    """Declares one public parameter: its default, meaning, unit, range and source."""
    if not kind:
        kind = "choice" if choices else "flag" if isinstance(default, bool) else "number"
    open_low, open_high = open_low or math.isinf(low), open_high or math.isinf(high)
    rule = Rule(kind, unit, doc, source, low, high, open_low, open_high, choices, optional)
    return dataclasses.field(default=default, metadata={"rule": rule})


def positive(default: Any, doc: str, unit: str = "", **more: Any) -> Any:
    """A parameter in (0, inf)."""
    return param(default, doc, unit, low=0.0, open_low=True, **more)


def nonnegative(default: Any, doc: str, unit: str = "", **more: Any) -> Any:
    """A parameter in [0, inf)."""
    return param(default, doc, unit, low=0.0, **more)


class _Recording(type):
    """Catches what a plain dataclass would raise as TypeError and remembers it instead."""

    renamed: dict[str, str] = {}  # parameters that were called otherwise in the last release: old name to new

    def __call__(cls, *args: Any, **given: Any) -> Any:
        names = [f.name for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]
        problems = []
        for old in [name for name in given if name in cls.renamed]:
            given[cls.renamed[old]] = given.pop(old)
        for name in [name for name in given if name not in names]:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(names)}."
            problems.append(f"{cls.__name__} has no parameter {name!r}; {hint}")
            del given[name]
        if len(args) > len(names):
            problems.append(f"{cls.__name__} takes at most {len(names)} values, got {len(args)}")
        for name in [name for name in names[: len(args)] if name in given]:
            problems.append(f"{cls.__name__} got {name!r} twice")
            del given[name]
        self = super().__call__(*args[: len(names)], **given)
        object.__setattr__(self, "_recorded", tuple(problems))
        return self


class Options(metaclass=_Recording):
    """Base of shapes, materials and solver settings. Subclasses become frozen dataclasses by themselves."""

    _recorded: tuple[str, ...]

    if TYPE_CHECKING:  # what the metaclass takes: anything, since wrong names are remembered and reported later

        def __init__(self, *args: Any, **given: Any) -> None: ...

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        dataclasses.dataclass(frozen=True, eq=False, repr=True)(cls)
        cls.__doc__ = (cls.__doc__ or cls.__name__) + _describe(cls)

    def values(self) -> dict[str, Any]:
        """Parameters from which `type(self)(**values)` makes the same object in another process."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def replaced(self, **values: Any) -> Any:
        """A copy with other values for some parameters. What was wrong with how this one was made is remembered."""
        made = dataclasses.replace(self, **values)  # type: ignore[type-var]
        object.__setattr__(made, "_recorded", (*self._recorded, *made._recorded))
        return made

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong with this object; empty when all is well."""
        found = list(self._recorded)
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            rule = field.metadata.get("rule")
            sentence = rule and rule.problem(field.name, getattr(self, field.name))
            if sentence:
                found.append(f"{type(self).__name__}: {sentence}")
        return found


def _describe(cls: type) -> str:
    lines = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        rule: Rule | None = field.metadata.get("rule")
        if rule is None:
            continue
        facts = [fact for fact in (rule.unit and f"[{rule.unit}]", rule.range) if fact]
        source = f" ({rule.source})" if rule.source else ""
        default = "required" if field.default is REQUIRED else f"default {field.default!r}"
        lines.append(f"    {field.name}: {rule.doc}{source}; {', '.join([*facts, default])}.")
    return "\n\nParameters:\n" + "\n".join(lines) if lines else ""
