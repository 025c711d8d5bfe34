"""How fast the machine moves memory, and how near to that a stage of the step comes.

A pressure sweep reads every pair and computes little with it, so that no code can be faster than the memory is. The
bandwidth is that of STREAM's triad (McCalpin 1995), a = b + s c with arrays far larger than the caches, best of a few.
"""

import time
from collections.abc import Mapping
from pathlib import Path

import taichi as ti

from pliant.core.backend import Reals

TRIES = 8
ELEMENT = 4  # bytes of a number
STREAMS = 3  # arrays that the triad reads or writes; a cache line that is read before it is written does not count
CACHES = 4  # arrays are so many times as large as the last cache (STREAM's rule)
SMALLEST, LARGEST = 1 << 26, 1 << 29  # of an array [bytes], whatever the caches are

# Bytes that memory moves for a pair, and for a particle.
PAIR = 8  # index of the neighbor 4, factor of the gradient 4
POINT = 16  # position, filled up to four numbers
SORTED = 2 * 80  # a particle's carried numbers, read and written where it is sorted to
WALLS = 40  # what walls give a particle: density, gradient, flux, volume
CORRECTION = 36  # written by the first pass of a step: matrix 24, kind, source and lopsidedness of its surroundings 12
DIAGONAL = 32  # matrix 24, inverse density 4, the diagonal itself 4
BEGUN = 52  # matrix 24, pressure and q 12, velocity 16
PREDICTED = 60  # velocity 16, matrix 24, densities, flux and diagonal 16, residual 4
PUSHED = 68  # residual, diagonal, q and its change 20, matrix 24, inverse density 4, displacement 16 and kind 4
FOLLOWED = 84  # displacement 16, matrix 24, velocity read and written 32, response and residual 12


@ti.kernel
def _triad(n: ti.i32, s: ti.f32, a: Reals, b: Reals, c: Reals):
    for i in range(n):
        a[i] = b[i] + s * c[i]


def last_cache() -> int:
    """Bytes of the largest cache, as far as the system tells; 0 otherwise."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    found = [0]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text().strip()
        if text[:-1].isdigit() and text[-1] in unit:
            found.append(int(text[:-1]) * unit[text[-1]])
    return max(found)


def triad_bandwidth() -> float:
    """Bytes per second of a = b + s c on all threads of the backend, which must have been started."""
    n = min(max(CACHES * last_cache(), SMALLEST), LARGEST) // ELEMENT
    a, b, c = (ti.ndarray(ti.f32, n) for _ in range(STREAMS))
    for array in (a, b, c):
        array.fill(1.0)  # pages are there before the clock runs
    best = float("inf")
    for _ in range(TRIES):
        ti.sync()
        start = time.perf_counter()
        _triad(n, 3.0, a, b, c)
        ti.sync()
        best = min(best, time.perf_counter() - start)
    return STREAMS * ELEMENT * n / best


def least_bytes(particles: float, pairs: float, sweeps: Mapping[str, float]) -> dict[str, float]:
    """Bytes that each stage of a step with DFSPH has to move at least, for so many sweeps of its solves.

    A pass over all pairs reads the lists (PAIR for each) and the positions (POINT for each particle), whichever
    neighbors there are: particles are sorted, so that those of a neighborhood come from a cache after their first use.
    To that come the particle's own numbers, once. The stages are these passes:

    - neighbors: sorting (SORTED), and the lists written once;
    - walls: positions read, WALLS written;
    - warm start: corrections of gradients, the diagonal, forces of the last pressures;
    - divergence and density: a prediction, and for each sweep a pass for forces and one for what they do.

    Numbers of walls' images and sums over particles are left out.
    """
    passing = PAIR * pairs + POINT * particles
    predicted, sweep = passing + PREDICTED * particles, 2 * passing + (PUSHED + FOLLOWED) * particles
    return {
        "neighbors": SORTED * particles + passing,
        "walls": (POINT + WALLS) * particles,
        "warm start": 3 * passing + (CORRECTION + DIAGONAL + BEGUN) * particles,
        **{name: predicted + count * sweep for name, count in sweeps.items()},
    }


def memory_shares(least: Mapping[str, float], ms: Mapping[str, float], bandwidth: float) -> dict[str, float]:
    """Share of the time of each stage, and of them all, that memory alone would take: 1 is as fast as it can be, and
    more is possible only where everything stays in the caches."""
    needed = {name: 1e3 * size / bandwidth for name, size in least.items()}
    shares = {name: time / ms[name] for name, time in needed.items() if ms.get(name)}
    return shares | {"total": sum(needed.values()) / ms["total"]}
