"""Smoothing functions W(r) of compact support h and their gradients, in three dimensions.

With q = r / h each function is W = sigma w(q) and grad W = sigma / h^2 f(q) x_ij, where f(q) = w'(q) / q.
`sigma` is divided by the sum over the rest lattice (spacing h / 2), so that particles of volume d^3 on
that lattice have a density ratio of exactly one and a fluid at rest keeps its true volume.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import taichi as ti

from pliant.errors import PliantError, unknown_name

SPACINGS_PER_SUPPORT = 2  # support h = 2 d = 4 r (ARCHITECTURE: support 4r)


@ti.func
def cubic_spline_w(q):
    """Monaghan 1992: 6 (q^3 - q^2) + 1 up to q = 1/2, then 2 (1 - q)^3."""
    u = 1.0 - q
    return ti.select(q <= 0.5, 6.0 * q * q * (q - 1.0) + 1.0, ti.select(q < 1.0, 2.0 * u * u * u, 0.0))


@ti.func
def cubic_spline_f(q):
    u = 1.0 - q
    return ti.select(q <= 0.5, 18.0 * q - 12.0, ti.select(q < 1.0, -6.0 * u * u / ti.max(q, 0.5), 0.0))


@ti.func
def wendland_c2_w(q):
    """Wendland 1995: (1 - q)^4 (4 q + 1)."""
    u = ti.max(1.0 - q, 0.0)
    return u * u * u * u * (4.0 * q + 1.0)


@ti.func
def wendland_c2_f(q):
    u = ti.max(1.0 - q, 0.0)
    return -20.0 * u * u * u


SPIKY_CORE = 1e-3  # below this q the spiky gradient's 1/q is held, so that coincident particles stay finite


@ti.func
def spiky_w(q):
    """Desbrun and Gascuel 1996: (1 - q)^3."""
    u = ti.max(1.0 - q, 0.0)
    return u * u * u


@ti.func
def spiky_f(q):
    u = ti.max(1.0 - q, 0.0)
    return -3.0 * u * u / ti.max(q, SPIKY_CORE)


def _cubic_spline(q: np.ndarray) -> np.ndarray:
    return np.where(q <= 0.5, 6 * (q**3 - q**2) + 1, 2 * np.clip(1 - q, 0, None) ** 3)


def _wendland_c2(q: np.ndarray) -> np.ndarray:
    return np.clip(1 - q, 0, None) ** 4 * (4 * q + 1)


def _spiky(q: np.ndarray) -> np.ndarray:
    return np.clip(1 - q, 0, None) ** 3


@dataclasses.dataclass(frozen=True)
class Smoothing:
    """One smoothing function: device functions `w`, `f` of q, a NumPy twin `profile`, and its norm.

    `norm` is sigma h^3: the integral of w over the unit ball, inverted.
    """

    name: str
    w: Any
    f: Any
    profile: Callable[[np.ndarray], np.ndarray]
    norm: float

    def sigma(self, h: float) -> float:
        """Normalisation [1/m^3] that makes the rest lattice's density ratio exactly one."""
        return self.norm / h**3 / self._lattice_sum()

    def W(self, r: np.ndarray, h: float) -> np.ndarray:  # noqa: N802
        """NumPy twin of the device function [1/m^3]."""
        return self.sigma(h) * self.profile(np.asarray(r) / h)

    def plane_sum(self, z: np.ndarray) -> np.ndarray:
        """Q(z): density ratio that one square lattice plane of spacing d adds at height z, in units of d."""
        k = np.arange(-SPACINGS_PER_SUPPORT, SPACINGS_PER_SUPPORT + 1)
        a, b = np.meshgrid(k, k)
        r = np.sqrt(np.asarray(z, dtype=float)[..., None] ** 2 + (a**2 + b**2).ravel())
        q = r / SPACINGS_PER_SUPPORT
        return self.norm / SPACINGS_PER_SUPPORT**3 / self._lattice_sum() * self.profile(q).sum(axis=-1)

    def _lattice_sum(self) -> float:
        k = np.arange(-SPACINGS_PER_SUPPORT, SPACINGS_PER_SUPPORT + 1)
        q = np.sqrt(sum(c**2 for c in np.meshgrid(k, k, k))) / SPACINGS_PER_SUPPORT
        return float(self.norm / SPACINGS_PER_SUPPORT**3 * self.profile(q).sum())


SMOOTHINGS = {
    s.name: s
    for s in (
        Smoothing("cubic_spline", cubic_spline_w, cubic_spline_f, _cubic_spline, 8 / np.pi),
        Smoothing("wendland_c2", wendland_c2_w, wendland_c2_f, _wendland_c2, 21 / (2 * np.pi)),
        Smoothing("spiky", spiky_w, spiky_f, _spiky, 15 / np.pi),
    )
}


def smoothing(name: str) -> Smoothing:
    """The smoothing function of that name."""
    if name not in SMOOTHINGS:
        raise PliantError(unknown_name("smoothing function", name, SMOOTHINGS))
    return SMOOTHINGS[name]
