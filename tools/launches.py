"""How many kernels a step launches. A launch costs some 10 microseconds, whatever the number of particles."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pliant as pl

STEPS = 5  # over which launches are counted


@contextlib.contextmanager
def counting() -> Iterator[list[str]]:
    """A list that gets the name of each kernel as it is launched."""
    from taichi.lang.kernel_impl import Kernel

    launched: list[str] = []
    call = Kernel.__call__

    def counted(kernel: Any, *args: Any, **names: Any) -> Any:
        launched.append(kernel.func.__name__)
        return call(kernel, *args, **names)

    Kernel.__call__ = counted
    try:
        yield launched
    finally:
        Kernel.__call__ = call


def launches_per_step(sim: "pl.Simulation") -> float:
    """The mean of some more steps: counting takes time, so they are not those that are measured."""
    with counting() as launched:
        for _ in range(STEPS):
            sim.step()
    return len(launched) / STEPS
