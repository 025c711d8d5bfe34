"""Viscous flows that shape themselves: a vortex that spreads, a cavity with a sliding lid, a spreading pool."""

import math

import numpy as np

import pliant as pl
from pliant.tools.validation import GRAVITY, Result, case, relative

DEPTH = 6  # of a slab in spacings, periodic along z: what a scene asks of a period

TANK, CORE = 0.5, 0.12  # radius of the tank, and first sqrt(4 nu t) of the vortex [m]
SPREADING = 1.0  # [s]: time in which 4 nu t doubles
PEAK = 0.5  # first peak of its velocity [m/s]
AT_PEAK = 0.6382  # of Gamma / (2 pi sqrt(4 nu t)), at r = 1.1209 sqrt(4 nu t)

# Ghia, Ghia and Shin 1982, Tables 1 and 2: u along the vertical through the middle, v along the horizontal one.
GHIA_Y = (0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609, 0.9688,
          0.9766)  # fmt: skip
GHIA_X = (0.0625, 0.0703, 0.0781, 0.0938, 0.1563, 0.2266, 0.2344, 0.5, 0.8047, 0.8594, 0.9063, 0.9453, 0.9531, 0.9609,
          0.9688)  # fmt: skip
GHIA_U = {
    100: (-0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641, 0.00332, 0.23151,
          0.68717, 0.73722, 0.78871, 0.84123),
    1000: (-0.18109, -0.20196, -0.22220, -0.29730, -0.38289, -0.27805, -0.10648, -0.06080, 0.05702, 0.18719, 0.33304,
           0.46604, 0.51117, 0.57492, 0.65928),
}  # fmt: skip
GHIA_V = {
    100: (0.09233, 0.10091, 0.10890, 0.12317, 0.16077, 0.17507, 0.17527, 0.05454, -0.24533, -0.22445, -0.16914,
          -0.10313, -0.08864, -0.07391, -0.05906),
    1000: (0.27485, 0.29012, 0.30353, 0.32627, 0.37095, 0.33075, 0.32235, 0.02526, -0.31966, -0.42665, -0.51550,
           -0.39188, -0.33714, -0.27669, -0.21388),
}  # fmt: skip

ROOM = 0.01  # share of particles left out of the cavity: disorder needs more room than a lattice, and a full box jams

POOL, HONEY = 0.1, 0.01  # side of the column that spreads [m], its kinematic viscosity [m^2/s]
HUPPERT = 1.411  # x_N = 1.411 (g q^3 / (3 nu))^(1/5) t^(1/5) (Huppert 1982, Eq. 2.22; q is the area of the slab)


def lamb_oseen_velocity(r: np.ndarray, core: float, circulation: float) -> np.ndarray:
    """Gamma / (2 pi r) (1 - exp(-r^2 / core^2)), core^2 = 4 nu t."""
    return circulation / (2 * np.pi * r) * -np.expm1(-((r / core) ** 2))


def spreading_vortex(across: int, solver: str) -> tuple[float, float, float]:
    """Peak velocity over the exact one, root mean square error over it, and angular momentum over the exact one, all
    within 0.6 of a round tank with so many particles a radius, once 4 nu t has doubled."""
    d = TANK / across
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), periodic=(None, None, DEPTH * d))
    shape = pl.Cylinder(radius=TANK, height=4 * DEPTH * d, axis="z", center=(0, 0, DEPTH * d / 2))
    scene.add(shape, pl.Boundary(inside_out=True, no_slip=False), name="tank")
    filled = pl.Cylinder(radius=TANK, height=DEPTH * d, axis="z", center=(0, 0, DEPTH * d / 2))
    nu = CORE**2 / (4 * SPREADING)
    scene.add(filled, pl.Fluid(viscosity=nu, viscosity_solver=solver), name="water")
    sim = scene.build(quiet=True)
    water, circulation = sim["water"], PEAK * 2 * np.pi * CORE / AT_PEAK
    x = water.x.astype(float)
    r = np.hypot(x[:, 0], x[:, 1])
    turning = lamb_oseen_velocity(r, CORE, circulation) / r
    water.v = np.stack([-turning * x[:, 1], turning * x[:, 0], 0 * r], axis=1)
    sim.run(SPREADING)
    x, v = water.x.astype(float), water.v.astype(float)
    r = np.hypot(x[:, 0], x[:, 1])
    around = (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]) / r
    core, near = math.sqrt(2.0) * CORE, r < 0.6 * TANK
    exact = lamb_oseen_velocity(r, core, circulation)
    peak = AT_PEAK * circulation / (2 * np.pi * core)
    ring = near & (np.abs(r / core - 1.1209) < 0.25)
    error = math.sqrt(float(np.mean((around - exact)[near] ** 2))) / peak
    whole = (r * around)[near].sum() / (r * exact)[near].sum()
    return float(around[ring].mean() / exact[ring].mean()), error, float(whole)


@case
def lamb_oseen(quick: bool) -> list[Result]:
    """A Lamb-Oseen vortex, core sqrt(4 nu t) = 12 cm, peak 0.5 m/s, in a round smooth tank of 0.5 m radius without
    gravity, until 4 nu t has doubled; 24 particles a radius (quick: 14), explicit and implicit viscosity: velocity
    around the peak, root mean square error of all velocities around within 0.3 m, and their angular momentum."""
    across, results = 14 if quick else 24, []
    for solver in ("explicit", "implicit"):
        peak, error, whole = spreading_vortex(across, solver)
        results.append(relative(f"{solver}: velocity around the peak over the exact one", peak, 1.0, 0.05))
        results.append(Result(f"{solver}: root mean square error over the peak", error, 0.0, error, 0.05))
        results.append(relative(f"{solver}: angular momentum over the exact one", whole, 1.0, 0.05))
    return results


def lid_driven(reynolds: int, across: int, seconds: float, solver: str = "auto") -> tuple[np.ndarray, np.ndarray]:
    """Velocities u at GHIA_Y and v at GHIA_X in a cavity of 1 m whose lid slides at 1 m/s, mean of the last fifth of
    the time."""
    d = 1.0 / across
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), periodic=(None, None, DEPTH * d), max_dt=0.01)
    for name, normal, point in (("floor", (0, 1, 0), (0, 0, 0)), ("left", (1, 0, 0), (0, 0, 0)),
                                ("right", (-1, 0, 0), (1, 0, 0))):  # fmt: skip
        scene.add(pl.Plane(normal=normal, point=point), pl.Boundary(), name=name)
    scene.add(pl.Plane(normal=(0, -1, 0), point=(0, 1, 0)), pl.Boundary(), name="lid").move(lambda t: (1.0, 0, 0))
    scene.add(pl.Box(size=(1, 1, DEPTH * d), center=(0.5, 0.5, DEPTH * d / 2)),
              pl.Fluid(viscosity=1.0 / reynolds, viscosity_solver=solver), name="water")  # fmt: skip
    sim = scene.build(quiet=True)
    sim["water"].remove(np.random.default_rng(0).random(len(sim["water"])) < ROOM)
    sim.run(0.8 * seconds)
    samples: list[list[np.ndarray]] = [[], []]
    while sim.time < seconds:
        sim.step()
        x, v = sim["water"].x.astype(float), sim["water"].v.astype(float)
        for k in (0, 1):  # u over y near x = 0.5, and v over x near y = 0.5
            line = np.abs(x[:, k] - 0.5) < 0.75 * d
            samples[k].append(np.stack([x[line, 1 - k], v[line, k]]))
    u, v = (profile(np.concatenate(s, axis=1), at, 0.5 * d) for s, at in zip(samples, (GHIA_Y, GHIA_X), strict=True))
    return u, v


def profile(samples: np.ndarray, at: tuple[float, ...], width: float) -> np.ndarray:
    """Velocities between the means of samples (places, velocities) in bins of this width."""
    bins = np.floor(samples[0] / width).astype(int)
    count = np.bincount(bins)
    places, velocities = (np.bincount(bins, row)[count > 0] / count[count > 0] for row in samples)
    return np.interp(at, places, velocities)


@case
def cavity(quick: bool) -> list[Result]:
    """A square cavity of 1 m with no-slip walls, full but for 1 %, whose lid slides at 1 m/s: profiles through the
    middle against Ghia, Ghia and Shin 1982. Reynolds number 100, 32 particles across, 12 s, and 1000, 48 across, 40 s
    (quick: 100 alone, 24 across, 8 s). Root mean square errors over the lid's speed, and the extremes of profiles."""
    results = []
    for reynolds, across, seconds in ((100, 24, 8.0),) if quick else ((100, 32, 12.0), (1000, 48, 40.0)):
        u, v = lid_driven(reynolds, across, seconds)
        for name, found, exact in (("u", u, GHIA_U[reynolds]), ("v", v, GHIA_V[reynolds])):
            error = math.sqrt(float(np.mean((found - exact) ** 2)))
            results.append(Result(f"Re {reynolds}: {name}, root mean square error over the lid's speed", error, 0.0,
                                  error, 0.03))  # fmt: skip
            worst = int(np.argmin(exact))
            results.append(relative(f"Re {reynolds}: least {name}", found[worst], exact[worst], 0.1, "m/s"))
    return results


@case
def huppert(quick: bool) -> list[Result]:
    """Huppert 1982: a column of 10 cm x 10 cm, nu = 0.01 m^2/s, spreads over a no-slip floor beside a smooth wall, in a
    slab, 24 particles high (quick: 12). Its length after 1 and 4 s over 1.411 (g q^3 / (3 nu))^(1/5) t^(1/5), and the
    exponent between. The front is where the layer is half a particle high."""
    across = 12 if quick else 24
    d = POOL / across
    scene = pl.Scene(particle_radius=d / 2, periodic=(None, None, DEPTH * d))
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Plane(normal=(1, 0, 0)), pl.Boundary(no_slip=False), name="wall")
    block = pl.Box(size=(POOL, POOL, DEPTH * d), center=(POOL / 2, POOL / 2, DEPTH * d / 2))
    scene.add(block, pl.Fluid(viscosity=HONEY), name="honey")
    sim = scene.build(quiet=True)
    times, lengths, results = np.array([1.0, 2.0, 4.0]), [], []
    q = float(sim["honey"].volume.sum(dtype=float)) / (DEPTH * d)
    for t in times:
        sim.run(t - sim.time)
        far = np.sort(sim["honey"].x[:, 0])[::-1]
        lengths.append(float(far[DEPTH // 2]) + d / 2)  # beyond it is half a row
    exact = HUPPERT * (GRAVITY * q**3 / (3 * HONEY)) ** 0.2 * times**0.2
    for t, found, right in zip(times, lengths, exact, strict=True):
        results.append(relative(f"length after {t:g} s", found, right, 0.05, "m"))
    exponent = float(np.polyfit(np.log(times), np.log(lengths), 1)[0])
    return [*results, relative("exponent of time", exponent, 0.2, 0.1)]
