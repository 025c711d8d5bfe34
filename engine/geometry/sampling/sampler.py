"""Fills any shape with particles, by one of three methods."""

import dataclasses
import hashlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pliant.boundary.distance_map import DistanceMap
from pliant.core import backend
from pliant.core.cache import cache_folder, keep, kept
from pliant.errors import PliantError, unknown_name
from pliant.geometry.mesh import Mesh
from pliant.geometry.moved import Moved, Translated
from pliant.geometry.primitives import Box
from pliant.geometry.sampling.blue_noise import BlueNoise
from pliant.geometry.sampling.fitted import Confined, Fitted
from pliant.geometry.sampling.regular import check, check_size, sample_regular
from pliant.geometry.shapes import Shape

Array = NDArray[np.float64]

METHODS = ("fitted", "regular", "blue_noise")
REACH, OUT = 1.5, 1.0  # in spacings: how far below and above the surface depths must be right
PROXY = 0.1  # in spacings: how far a surface of fewer triangles may lie from the true one
MOST_PARTICLES = 10**8
VERSION = 2  # of the relaxed methods: part of the key under which results are kept
STEPS = 30  # of halving the way back to the surface


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Particle centres `x` (n, 3) [m] and the volume [m^3] that each stands for: n times this is the shape's volume.

    `spacing` [m] and `method` tell how they were found, `iterations` in how many rounds of relaxation (0 if they were
    kept from another time), `seconds` how long it took.
    """

    x: Array
    volume_each: float
    spacing: float
    method: str
    iterations: int = 0
    seconds: float = 0.0


def sample(shape: Shape, spacing: float | None = None, particles: int | None = None, method: str = "fitted",
           seed: int = 0, confined: bool = False, progress: Any = None) -> Sampling:  # fmt: skip
    """Fills a shape with particles of that `spacing` [m], or with so many `particles` (those a mesh asks for if none).

    "fitted" follows the surface and keeps thin parts (Kugelstadt 2021, Section 7), "regular" is a lattice, "blue_noise"
    is relaxed from random points (after Jiang 2015). The relaxed ones begin by `seed` and make exactly as many
    particles as wanted, or volume / spacing^3; a lattice comes close. A box of given spacing is filled by its own
    lattice, which fits it. `confined` is for fluids: the surface is a wall. `progress(round, moved, end)` is called
    after every round with its mean move and the one at which all ends, both in spacings.
    """
    if method not in METHODS:
        raise PliantError(unknown_name("sampling", str(method), METHODS))
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise PliantError(f"seed must be a whole number, 0 or more, got {seed!r}")
    if spacing is None and particles is None and isinstance(shape, Shape):
        particles = shape.wanted_particles()
    spacing = _spacing(shape, spacing, particles)
    started = time.perf_counter()
    if isinstance(shape, Mesh) and shape.center is not None and np.any(shape.center):
        shape = Translated(shape.centred(), shape.center)
    if isinstance(shape, Moved):
        factor = shape.placement()[0]
        within = None if particles else spacing / factor
        inner = sample(shape.shape, within, particles, method, seed, confined, progress)
        each = inner.volume_each * factor**3
        return dataclasses.replace(inner, x=shape.to_world(inner.x), volume_each=each, spacing=spacing)
    if method == "regular" or (isinstance(shape, Box) and particles is None):
        x, each = sample_regular(shape, spacing)
        return Sampling(x, each, spacing, method, seconds=time.perf_counter() - started)
    check_size(shape, spacing)
    volume = shape.volume()
    count = int(particles or max(1, round(volume / spacing**3)))
    x, iterations = _relaxed(shape, count, (volume / count) ** (1 / 3), method, int(seed), confined, progress)
    return Sampling(x, volume / count, spacing, method, iterations, time.perf_counter() - started)


def _spacing(shape: Any, spacing: Any, particles: Any) -> float:
    """The spacing that was given, or that so many particles have."""
    if (spacing is None) == (particles is None):
        raise PliantError("give either the spacing or the number of particles")
    if particles is None:
        check(shape, spacing)
        return float(spacing)
    whole = isinstance(particles, (int, np.integer)) and not isinstance(particles, bool)
    if not whole or not 1 <= particles <= MOST_PARTICLES:
        raise PliantError(f"particles must be a whole number from 1 to {MOST_PARTICLES:,}, got {particles!r}")
    check(shape, 1.0)
    return float((shape.volume() / particles) ** (1 / 3))


def _relaxed(shape: Shape, count: int, spacing: float, method: str, seed: int, confined: bool,
             progress: Any) -> tuple[Array, int]:  # fmt: skip
    """Particles and rounds, from the last time if these are kept."""
    key = f"{VERSION} {shape.key()} {count} {spacing!r} {method} {seed} {confined}"
    path = cache_folder() / "samplings" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    stored = kept(path, ["x"])
    if stored is not None and stored["x"].shape == (count, 3) and np.isfinite(stored["x"]).all():
        return stored["x"], 0
    backend.start()
    kind = BlueNoise if method == "blue_noise" else Confined if confined else Fitted
    bounds, solid = shape.bounds(), shape.surface.proxy(PROXY * spacing) if isinstance(shape, Mesh) else shape
    depths = DistanceMap(lambda x: -solid.signed_distance(x), bounds, spacing, REACH, OUT, True, shape.key())
    relaxation = kind(depths, bounds, count, spacing, seed)
    x = _brought_in(shape, relaxation.run(progress))
    keep(path, {"x": x})
    return x, relaxation.iterations


def _brought_in(shape: Shape, x: Array) -> Array:
    """The particles, those moved back that the map of distances, which rounds hairs off, has let out."""
    outside = np.flatnonzero(~shape.inside(x))
    if not len(outside) or len(outside) == len(x):
        return x
    inside = np.delete(x, outside, axis=0)
    near, far = inside[cKDTree(inside).query(x[outside])[1]], x[outside]
    for _ in range(STEPS):  # the way to the nearest particle inside is halved until its end is inside
        middle = 0.5 * (near + far)
        good = shape.inside(middle)[:, None]
        near, far = np.where(good, middle, near), np.where(good, far, middle)
    x = x.copy()
    x[outside] = near
    return x
