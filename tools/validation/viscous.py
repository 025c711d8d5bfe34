"""Laminar flows with series solutions: plane Poiseuille start-up, Taylor-Green decay, and the order of convergence."""

import math
from typing import Any

import numpy as np

import pliant as pl
from pliant.core.smoothing import SMOOTHINGS, SPACINGS_PER_SUPPORT
from pliant.tools.validation import WATER, Result, case, relative

LEAST_PERIOD = 6  # in spacings: what a scene asks of a period

CHANNEL, NU, DRIVE = 1e-3, 1e-6, 1e-4  # width [m], kinematic viscosity [m^2/s], acceleration [m/s^2]
PEAK = DRIVE * CHANNEL**2 / (8 * NU)  # of the steady profile: 1.25e-5 m/s
TIMES = (0.0225, 0.045, 0.1125, 0.225, 1.0)  # [s]
SERIES_TERMS = 200
CONVERGENCE_TIME = 0.1125  # [s]: two thirds of the way to the steady profile

REYNOLDS = 100.0
DECAY = 16 * np.pi**2 / REYNOLDS  # rate of the kinetic energy [1/s]
MELTING = 0.3  # [s]: the vortices first tear the lattice apart, which costs most of their energy; then they start anew
FIT = (0.05, 0.35)  # [s] after that: over which the decay rate is fitted
THIN = 0.9  # density ratio below which a particle counts as standing at a void

# Never iterates as long as the mean density error is below 1 %: a flow without pressure.
IDLE = dict(min_iterations=0, max_density_error=1e-2, max_divergence_error=1e-2)


def poiseuille_series(y: np.ndarray, t: float, nu: float = NU) -> np.ndarray:
    """u(y, t) = F y (L - y) / (2 nu) - sum_n 4 F L^2 / (nu pi^3 k^3) sin(pi k y / L) exp(-k^2 pi^2 nu t / L^2),
    k = 2n + 1 (Morris et al. 1997, Eq. 21)."""
    k = 2 * np.arange(SERIES_TERMS) + 1.0
    decay = np.exp(-(k**2) * np.pi**2 * nu * t / CHANNEL**2) / k**3
    waves = np.sin(np.pi / CHANNEL * np.outer(y, k)) @ decay
    return DRIVE / (2 * nu) * y * (CHANNEL - y) - 4 * DRIVE * CHANNEL**2 / (nu * np.pi**3) * waves


def lattice_laplacian() -> float:
    """The viscous force of a shear flow on the rest lattice over the exact one: sum_j V |W'(r)| / r y^2.

    It tends to 1 with more neighbors, not with smaller particles: h / d is fixed, so this part of the error stays.
    """
    k = np.arange(-SPACINGS_PER_SUPPORT, SPACINGS_PER_SUPPORT + 1)
    x, y, z = (a.ravel().astype(float) for a in np.meshgrid(k, k, k))  # in spacings: V = 1
    r = np.sqrt(x**2 + y**2 + z**2)
    y, r = y[r > 0], r[r > 0]
    W, step, h = SMOOTHINGS["cubic_spline"].W, 1e-4, float(SPACINGS_PER_SUPPORT)
    slope = (W(r + step, h) - W(r - step, h)) / (2 * step)
    return float((-slope / r * y**2).sum())


def channel(across: int, **pressure: Any) -> Any:
    """Water between two no-slip planes, driven along x, periodic along x and z; the shortest periods allowed."""
    d = CHANNEL / across
    period = LEAST_PERIOD * d
    scene = pl.Scene(particle_radius=d / 2, gravity=(DRIVE, 0, 0), periodic=(period, None, period),
                     pressure=pl.DFSPH(**pressure))  # fmt: skip
    scene.add(pl.Plane(normal=(0, 1, 0)), pl.Boundary(), name="floor")
    scene.add(pl.Plane(normal=(0, -1, 0), point=(0, CHANNEL, 0)), pl.Boundary(), name="ceiling")
    block = pl.Box(size=(period, CHANNEL, period), center=(period / 2, CHANNEL / 2, period / 2))
    scene.add(block, pl.Fluid(viscosity=NU, viscosity_solver="explicit"), name="water")
    return scene.build()


def channel_error(sim: pl.Simulation) -> tuple[float, float]:
    """Largest deviation of a particle from the series, and the largest velocity of the series, at the time reached."""
    water = sim["water"]
    exact = poiseuille_series(water.x[:, 1].astype(float), sim.time)
    off = water.v[:, 0] - exact
    return float(off[np.argmax(np.abs(off))]), float(exact.max())


def channel_result(sim: pl.Simulation, name: str, target: float | None) -> Result:
    off, top = channel_error(sim)
    return Result(name, top + off, top, off / top, target, "m/s")


@case
def poiseuille(quick: bool) -> list[Result]:
    """Start-up of the plane Poiseuille flow with the parameters of Morris et al. 1997: L = 1 mm, nu = 1e-6 m^2/s,
    F = 1e-4 m/s^2, so a peak of 12.5 um/s at Re = 0.0125. 20 particles across (quick: 10), explicit viscosity.

    The error is the largest deviation of any particle from the series, over the peak of the series at that time. The
    channel is exactly full. As the layers slide, a lattice needs more room than there is, so the last line repeats
    the run without pressure: it tells the error of the viscous forces from that of the pressure.
    """
    across = 10 if quick else 20
    sim = channel(across)
    results = []
    for t in TIMES[-3:] if quick else TIMES:
        sim.run(t - sim.time)
        results.append(channel_result(sim, f"velocity at {t:g} s, worst particle", 0.05))
    sim = channel(across, **IDLE)
    sim.run(TIMES[-1])
    return [*results, channel_result(sim, f"the same at {TIMES[-1]:g} s without pressure", 0.05)]


@case
def convergence(quick: bool) -> list[Result]:
    """Order of convergence: root mean square error of the Poiseuille flow above at t = 0.1125 s, over its peak, for
    10, 20 and 40 particles across (quick: 10 and 20), without pressure; the slope of log error over log spacing.

    The error against the exact series levels off at the error of the viscous force on the lattice (see
    `lattice_laplacian`) and is only reported. Against the series for a viscosity so many times larger, what is left is
    the error of walls and curvature, which must fall at first order or better. The time step shrinks as d^2.
    """
    counts = (10, 20) if quick else (10, 20, 40)
    factor = lattice_laplacian()
    errors, results = [], []
    for across in counts:
        sim = channel(across, **IDLE)
        sim.run(CONVERGENCE_TIME)
        y, u = sim["water"].x[:, 1].astype(float), sim["water"].v[:, 0].astype(float)
        series = [poiseuille_series(y, sim.time, nu) for nu in (NU, factor * NU)]
        whole, rest = (float(np.sqrt(np.mean((u - s) ** 2))) / series[0].max() for s in series)
        errors.append(rest)
        results.append(Result(f"{across} across: RMS error", whole, 0.0, whole))
        results.append(Result(f"{across} across: RMS error beside the lattice's", rest, 0.0, rest))
    order = float(-np.polyfit(np.log(counts), np.log(errors), 1)[0])
    return [
        relative("viscosity on the lattice", factor, 1.0),
        *results,
        Result("order of convergence, at least 1", order, 1.0, min(0.0, order - 1.0), 0.0),
    ]


def vortex_velocities(x: np.ndarray) -> np.ndarray:
    """(-cos 2 pi x sin 2 pi y, sin 2 pi x cos 2 pi y, 0)."""
    a, b, _ = 2 * np.pi * x.T.astype(float)
    return np.stack([-np.cos(a) * np.sin(b), np.sin(a) * np.cos(b), 0 * a], axis=1)


def vortices(across: int) -> Any:
    """The vortices in a periodic unit square, six particles deep along z."""
    d = 1.0 / across
    depth = LEAST_PERIOD * d
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), periodic=(1.0, 1.0, depth))
    block = pl.Box(size=(1.0, 1.0, depth), center=(0.5, 0.5, depth / 2))
    water = scene.add(block, pl.Fluid(viscosity=1 / REYNOLDS, viscosity_solver="explicit"), name="water")
    sim = scene.build()
    sim[water].v = vortex_velocities(sim[water].x)
    return sim


@case
def taylor_green(quick: bool) -> list[Result]:
    """Taylor-Green vortices at Re = U L / nu = 100 in a periodic box, L = U = 1, six particles deep along z; 48
    particles across (quick: 24). Kinetic energy decays as exp(-16 pi^2 t / Re).

    A first run of 0.3 s melts the lattice. Then the velocities are set again, and the rate is fitted over 0.05 s < t <
    0.35 s. Pressure cannot be negative here: the share of thinned-out particles says whether voids opened.
    """
    sim = vortices(24 if quick else 48)
    water, first = sim["water"], sim.stats.kinetic_energy
    sim.run(MELTING)
    melted = sim.stats.kinetic_energy / first
    water.v = vortex_velocities(water.x)
    t, energy = [], []
    while sim.time < MELTING + FIT[1]:
        sim.step()
        if sim.time > MELTING + FIT[0]:
            t.append(sim.time)
            energy.append(math.log(sim.stats.kinetic_energy))
    thin = float((water.density < THIN * WATER).mean())
    return [
        relative("decay rate of kinetic energy", -float(np.polyfit(t, energy, 1)[0]), DECAY, 0.15, "1/s"),
        relative(f"share of energy left after {MELTING:g} s from the lattice", melted, math.exp(-DECAY * MELTING)),
        Result("share of particles at voids", thin, 0.0, thin),
    ]
