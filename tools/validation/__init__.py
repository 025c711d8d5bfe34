"""The cases of `pliant validate`: each compares the engine with a closed form, a measurement or an invariant."""

import dataclasses
from collections.abc import Callable

GRAVITY = 9.81  # [m/s^2]
WATER = 1000.0  # [kg/m^3]


@dataclasses.dataclass(frozen=True)
class Result:
    """One number of a case. `error` is compared with `target`; without a target the number is only reported."""

    quantity: str
    measured: float
    reference: float
    error: float
    target: float | None = None
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is met. An error that is no number meets none."""
        return self.target is None or abs(self.error) <= self.target


def relative(quantity: str, measured: float, reference: float, target: float | None = None, unit: str = "",
             scale: float | None = None) -> Result:  # fmt: skip
    """A result whose error is (measured - reference) / scale; the scale is the reference unless given."""
    error = (measured - reference) / (reference if scale is None else scale)
    return Result(quantity, float(measured), float(reference), float(error), target, unit)


Case = Callable[[bool], list[Result]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Registers a case under its function's name: `function(quick)` runs it, its docstring says what it is."""
    CASES[function.__name__] = function
    return function
