"""Elastic solids alone: bars that are pulled, twisted and bent, and beams that swing.

References are closed forms (Timoshenko and Goodier, Theory of Elasticity; Cowper 1966 for the shear coefficient),
the CSM tests of Turek and Hron 2006, and the oscillating plate of Gray, Monaghan and Swift 2001.

Clamps are planes midway between held and free particles; the body goes on for CLAMP layers behind them.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import pliant as pl
from pliant.tools.validation import Result, case, relative

CLAMP = 3  # layers of held particles behind a clamp
LAYERS = 6  # along the period of bodies in plane strain
SETTLED = 2e-4  # a body stands once its largest displacement changes by less from one standstill to the next
PATIENCE = 6000  # steps that a body may take to come to rest
SQUARE = 0.140577  # G times this times a^4 is the stiffness of a square bar against torsion
FIRST = 1.8751041  # beta L of the first mode of a cantilever


# --- coming to rest ---------------------------------------------------------------------------------------


def stand(sim: pl.Simulation, body: str, resting: int = 3) -> int:
    """Steps until a body stands: whenever its kinetic energy has passed a maximum, it is stopped. Done when `resting`
    standstills are alike; returns the number of steps."""
    view = sim[body]
    mass, rest = view.mass.astype(float), view.rest.astype(float)
    energy, alike, before = 0.0, 0, view.x.astype(float)
    for step in range(PATIENCE):
        sim.step()
        v = view.v.astype(float)
        last, energy = energy, float((mass * (v**2).sum(axis=1)).sum())
        if energy < last:
            view.v = np.zeros_like(v)
            x, energy = view.x.astype(float), 0.0
            moved = np.linalg.norm(x - before, axis=1).max()
            alike = alike + 1 if moved < SETTLED * np.linalg.norm(x - rest, axis=1).max() else 0
            before = x
            if alike == resting:
                return step
    raise pl.PliantError(f"{body} does not come to rest in {PATIENCE} steps")


def stresses(view: Any, young: float, poisson: float) -> np.ndarray:
    """First Piola-Kirchhoff stresses of a corotated solid (n, 3, 3) [Pa]."""
    F, R = view.F.astype(float), view.R.astype(float)
    mu, bulk = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    trace = np.einsum("nab,nab->n", F, R) - 3
    return 2 * mu * (F - R) + bulk * trace[:, None, None] * R


# --- bars that are pulled ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Pulled:
    """The middle of a bar that was pulled."""

    stretch: float  # of the particles' positions along the bar
    axial: float  # what F says it is
    lateral: float  # strain across
    stress: float  # nominal, along the bar, over Young's modulus


def pull(across: int, stretch: float, poisson: float) -> Pulled:
    """A bar five times as long as wide with free sides, its ends held apart; measured in the middle fifth."""
    d, young = 0.1 / across, 1e6
    half = 2.5 * across * d
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), dt=0.02)
    shape = pl.Box(size=(2 * (half + CLAMP * d), 0.1, 0.1), center=(0, 0, 0))
    bar = scene.add(shape, pl.Elastic(young=young, poisson=poisson), name="bar")
    bar.fix(lambda x: np.abs(x[:, 0]) > half)
    sim = scene.build()
    view = sim["bar"]
    X = view.rest.astype(float)
    held = np.sign(X[:, 0]) * np.maximum(np.abs(X[:, 0]) - half, 0)  # the ends are moved, not stretched
    view.x = np.column_stack([stretch * (X[:, 0] - held) + held, X[:, 1:]])
    stand(sim, "bar")
    x = view.x.astype(float)
    middle = np.abs(X[:, 0]) < 0.2 * half
    along = np.polyfit(X[middle, 0], x[middle, 0], 1)[0]
    lateral = np.mean([np.polyfit(X[middle, a], x[middle, a], 1)[0] for a in (1, 2)]) - 1
    core = np.abs(X[:, 0]) < d  # the two layers in the middle: stress is the same in every section
    stress = stresses(view, young, poisson)[core, 0, 0].mean() / young
    return Pulled(along, view.F[core, 0, 0].astype(float).mean(), lateral, stress)


@case
def uniaxial_stretch(quick: bool) -> list[Result]:
    """A bar with free sides whose ends are held apart, 8 particles across (quick: 6): the corotated law gives a lateral
    strain of -nu e and a nominal stress of E e at every elongation e, which is measured in the middle fifth of the bar.
    Pulled by 10 and 30 % and pressed by 10 %, for Poisson's ratios of -0.3, 0.2, 0.33 and 0.45."""
    across, results = 6 if quick else 8, []
    ratios, stretches = ((0.33,), (1.1, 0.9)) if quick else ((0.2, 0.33, 0.45, -0.3), (1.1, 1.3, 0.9))
    pairs = [(nu, stretch) for nu in ratios for stretch in stretches]
    for nu, stretch in pairs:
        bar, name = pull(across, stretch, nu), f"nu {nu:g}, stretch {stretch:g}"
        e = bar.stretch - 1
        results += [
            relative(f"{name}: lateral strain", bar.lateral, -nu * e, 0.03),
            relative(f"{name}: stress over E", bar.stress, e, 0.03),
            relative(f"{name}: axial F", bar.axial, bar.stretch, 1e-3),
        ]
    return results


# --- cantilevers ------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Cantilever:
    """A cantilever along x, clamped at x = 0; square, or a strip in plane strain."""

    length: float
    height: float
    young: float
    poisson: float
    across: int  # particles
    plane: bool = False  # strain, periodic along z
    density: float = 1000.0

    @property
    def d(self) -> float:
        return self.height / self.across

    @property
    def depth(self) -> float:
        return LAYERS * self.d if self.plane else self.height

    @property
    def bending(self) -> float:
        """Bending stiffness over depth and h^3 / 12 [Pa]."""
        return self.young / (1 - self.poisson**2) if self.plane else self.young

    @property
    def shear(self) -> float:
        """Shear modulus times the shear coefficient of a rectangle [Pa]."""
        nu = self.poisson / (1 - self.poisson) if self.plane else self.poisson
        return self.young / (2 * (1 + self.poisson)) * 10 * (1 + nu) / (12 + 11 * nu)

    def sag(self, g: float) -> float:
        """How far its own weight bends the tip, after Timoshenko [m]."""
        q, h, L = self.density * g, self.height, self.length
        return 12 * q * L**4 / (8 * self.bending * h**2) + q * L**2 / (2 * self.shear)

    def scene(self, dt: float, g: float = 0.0, damping: float = 2.0) -> pl.Scene:
        """Steps of dt [s], weight g [m/s^2], and how fast vibrations decay [1/s]: not at all if they are measured."""
        d, L, h = self.d, self.length, self.height
        period = self.depth if self.plane else None
        scene = pl.Scene(particle_radius=d / 2, gravity=(0, -g, 0), dt=dt, periodic=(None, None, period))
        shape = pl.Box(size=(L + CLAMP * d, h, self.depth), center=((L - CLAMP * d) / 2, 0, self.depth / 2))
        rubber = pl.Elastic(density=self.density, young=self.young, poisson=self.poisson, damping=damping)
        scene.add(shape, rubber, name="beam").fix(lambda x: x[:, 0] < 0)
        return scene

    def tip(self, sim: pl.Simulation) -> np.ndarray:
        """Displacement of the middle of the tip: on through the last layers' displacements to the end."""
        X, x = sim["beam"].rest.astype(float), sim["beam"].x.astype(float)
        layers = np.round((self.length - X[:, 0]) / self.d - 0.5).astype(int)
        last, third = ((x - X)[layers == k].mean(axis=0) for k in (0, 2))
        return last + 0.25 * (last - third)


def sagging(beam: Cantilever, g: float) -> np.ndarray:
    """Where the weight brings the tip [m]. The length of the steps does not matter."""
    sim = beam.scene(0.01, g).build()
    stand(sim, "beam")
    return beam.tip(sim)


def square_beam(across: int, slender: float) -> Cantilever:
    return Cantilever(slender * 0.1, 0.1, 1e6, 0.3, across)


@case
def cantilever(quick: bool) -> list[Result]:
    """A square cantilever (E 1 MPa, nu 0.3) under so little weight that it sags by 1 % of its length, against
    Timoshenko's beam: 10 times as long as high, 6, 8, 10 and 14 particles across; 4 times as long, 10 across (quick: 6
    across, 4 times as long, with a tolerance of its own)."""
    results, runs = [], [(4, 6, 0.1)] if quick else [(10, 6, None), (10, 8, None), (10, 10, 0.05), (10, 14, None),
                                                      (4, 10, 0.05)]  # fmt: skip
    for slender, across, target in runs:
        beam = square_beam(across, slender)
        g = 0.01 * beam.length / beam.sag(1.0)
        name = f"L/h {slender}, {across} across: sag of the tip"
        results.append(relative(name, -sagging(beam, g)[1], beam.sag(g), target, "m"))
    if not quick:
        results += orders(np.array([6, 8, 10, 14]), np.array([r.error for r in results[:4]]))
    return results


def orders(across: np.ndarray, errors: np.ndarray) -> list[Result]:
    """The errors as a / n + b / n^2: they have two causes of either sign, so that one order alone would say nothing."""
    a, b = np.linalg.lstsq(np.column_stack([1 / across, 1 / across**2]), errors, rcond=None)[0]
    return [
        Result("error as a / n + b / n^2, n particles across: a", float(a), 0.0, float(a)),
        Result("b", float(b), 0.0, float(b)),
    ]


# --- beams that swing -------------------------------------------------------------------------------------


def first_mode(s: np.ndarray) -> np.ndarray:
    """Shape of the first mode of a cantilever, s = x / L, 1 at the tip."""
    b = FIRST
    ratio = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
    shape = np.cosh(b * s) - np.cos(b * s) - ratio * (np.sinh(b * s) - np.sin(b * s))
    return shape / 2.0


def follow(beam: Cantilever, sim: pl.Simulation, seconds: float, every: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Times and displacements of the tip (n, 3), every few steps."""
    times, tips = [sim.time], [beam.tip(sim)]
    while sim.time < seconds:
        for _ in range(every):
            sim.step()
        times.append(sim.time)
        tips.append(beam.tip(sim))
    return np.array(times), np.array(tips)


def crossings(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """When a curve crosses zero."""
    k = np.flatnonzero(values[:-1] * values[1:] < 0)
    return times[k] - values[k] * (times[k + 1] - times[k]) / (values[k + 1] - values[k])


def swing(beam: Cantilever, dt: float, period: float, returns: int) -> float:
    """Period of a beam that starts in its first mode [s], from when it comes back to the middle for the first or second
    time. It swings by about 1 % of its length."""
    sim = beam.scene(dt, damping=0.0).build()
    X = sim["beam"].rest.astype(float)
    speed = 0.01 * beam.length * 2 * np.pi / period
    up = np.where(X[:, 0] > 0, speed * first_mode(np.maximum(X[:, 0], 0) / beam.length), 0)
    sim["beam"].v = np.column_stack([0 * up, up, 0 * up])
    times, tips = follow(beam, sim, (0.5 * returns + 0.12) * period)
    return float(crossings(times[1:], tips[1:, 1])[returns - 1]) * 2 / returns


@case
def cantilever_frequency(quick: bool) -> list[Result]:
    """First frequency of a square cantilever, 10 times as long as high (1 x 0.1 x 0.1 m, E 1 MPa, nu 0.3, 1000 kg/m^3),
    10 particles across (quick: 5, half a period, with longer steps and a tolerance of its own), against Euler and
    Bernoulli."""
    across, dt, target, returns = (5, 2e-3, 0.1, 1) if quick else (10, 5e-4, 0.03, 2)
    beam = square_beam(across, 10)
    exact = 2 * np.pi / FIRST**2 * np.sqrt(12 * beam.density * beam.length**4 / (beam.young * beam.height**2))
    return [relative(f"{across} across: frequency", 1 / swing(beam, dt, exact, returns), 1 / exact, target, "Hz")]


@case
def oscillating_plate(quick: bool) -> list[Result]:
    """The oscillating plate of Gray, Monaghan and Swift 2001: 0.2 x 0.02 m in plane strain, E 2 MPa, nu 0.3975, 1000
    kg/m^3, from the velocities of its first mode; 10 particles across (quick: 5, half a period, with longer
    steps and a tolerance of its own). A hard clamp has a period of 0.2551 s by finite elements in two dimensions
    (0.2540 s after thin-plate theory)."""
    across, dt, target, returns = (5, 3e-4, 0.15, 1) if quick else (10, 7e-5, 0.03, 2)
    beam = Cantilever(0.2, 0.02, 2e6, 0.3975, across, plane=True)
    return [relative(f"{across} across: period", swing(beam, dt, 0.2551, returns), 0.2551, target, "s")]


# --- Turek and Hron ---------------------------------------------------------------------------------------


def turek_beam(across: int) -> Cantilever:
    """The elastic part of the benchmark, clamped at a straight wall instead of a cylinder."""
    return Cantilever(0.35, 0.02, 1.4e6, 0.4, across, plane=True)


@case
def turek_csm1(quick: bool) -> list[Result]:
    """CSM1 of Turek and Hron 2006: a beam of 0.35 x 0.02 m in plane strain (E 1.4 MPa, nu 0.4, 1000 kg/m^3) sags under
    2 m/s^2. 10 particles across (quick: 5, with a tolerance of its own). The reference is of St. Venant-Kirchhoff's law
    and has its clamp on a cylinder; here it is on a straight wall."""
    across, target = (5, 0.1) if quick else (10, 0.03)
    ux, uy, _ = sagging(turek_beam(across), 2.0)
    return [
        relative(f"{across} across: uy of the tip", uy, -66.10e-3, target, "m"),
        relative(f"{across} across: ux of the tip", ux, -7.187e-3, None, "m"),
    ]


@case
def turek_csm3(quick: bool) -> list[Result]:
    """CSM3 of Turek and Hron 2006: the beam of CSM1, released at rest; uy = -63.607 +- 65.160 mm at 1.0995 Hz. 10
    particles across (quick: 5, half a period, with longer steps and a tolerance of its own)."""
    beam = turek_beam(5 if quick else 10)
    sim = beam.scene(5e-4 if quick else 1.5e-4, 2.0, damping=0.0).build()
    times, tips = follow(beam, sim, 0.5 if quick else 1.2)
    uy, name = tips[:, 1], f"{beam.across} across"
    if quick:
        return [relative(f"{name}: lowest uy", uy.min(), -128.767e-3, 0.1, "m")]
    top = uy[times > 0.7].max()
    middle = crossings(times, uy - (uy.min() + top) / 2)
    return [
        relative(f"{name}: amplitude of uy", (top - uy.min()) / 2, 65.160e-3, 0.05, "m"),
        relative(f"{name}: mean of uy", (top + uy.min()) / 2, -63.607e-3, None, "m"),
        relative(f"{name}: frequency", 1 / (middle[2] - middle[0]), 1.0995, 0.02, "Hz"),
        relative(f"{name}: lowest ux", tips[:, 0].min(), -28.610e-3, None, "m"),
    ]


# --- torsion ----------------------------------------------------------------------------------------------


def turns(bar: Cantilever, arm: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the layers of a bar [m] and how far each is turned about x."""
    layer = np.round(arm[:, 0] / bar.d - 0.5).astype(int)
    layer -= layer.min()
    middle = np.bincount(layer, arm[:, 0]) / np.bincount(layer)
    return middle, (np.bincount(layer, arm[:, 1] * u[:, 2] - arm[:, 2] * u[:, 1])
                    / np.bincount(layer, arm[:, 1] ** 2 + arm[:, 2] ** 2))  # fmt: skip


def elastic_forces(sim: pl.Simulation) -> np.ndarray:
    """Elastic forces on the particles of the only elastic body (n, 3) [N]."""
    assert sim.elasticity is not None
    bodies = sim.elasticity.bodies
    bodies.predict_positions(0.0)
    bodies.find_forces(1.0)
    return bodies.force.to_numpy().astype(float)


def torsional_stiffness(across: int) -> float:
    """Torque at the turned end of a bar over the twist of each metre of its middle half [N m^2]."""
    bar = square_beam(across, 5)
    scene = bar.scene(2e-2)
    end, axis = bar.length - 3 * bar.d, np.array([0, 0, bar.depth / 2])
    scene.bodies[0].fix(lambda x: (x[:, 0] < 0) | (x[:, 0] > end))
    sim = scene.build()
    view = sim["beam"]
    X = view.rest.astype(float)
    angle = 0.1 * np.clip(X[:, 0] / end, 0, 1)
    view.x = axis + Rotation.from_rotvec(angle[:, None] * [1, 0, 0]).apply(X - axis)
    stand(sim, "beam")
    x = view.x.astype(float)
    middles, angles = turns(bar, X - axis, x - X)
    inner = np.abs(middles / end - 0.5) < 0.25
    rate = np.polyfit(middles[inner], angles[inner], 1)[0]
    held = X[:, 0] > end
    torque = np.cross(x[held] - axis, -elastic_forces(sim)[held]).sum(axis=0)[0]
    return float(torque / rate)


@case
def torsion(quick: bool) -> list[Result]:
    """A square bar, 5 times as long as wide, both ends held, one of them turned by 0.1: the torque of the elastic
    forces at that end, over the twist of each metre of the bar's middle half, is 0.140577 G a^4 (Saint-Venant;
    Timoshenko and Goodier, Section 109). 10 and 12 particles across (quick: 6, with a tolerance of its own)."""
    exact = SQUARE * 1e6 / (2 * 1.3) * 0.1**4  # of `square_beam`
    return [
        relative(f"{across} across: stiffness", torsional_stiffness(across), exact, target, "N m^2")
        for across, target in ([(6, 0.18)] if quick else [(10, None), (12, 0.05)])
    ]
