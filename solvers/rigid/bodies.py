"""What collision and dynamics of rigid bodies exchange."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Bodies:
    """Rigid bodies, one a row. Those that are prescribed have no inverse mass, and move as they are told."""

    center: np.ndarray  # (n, 3) float64 [m] centre of mass in the world
    rotation: np.ndarray  # (n, 3, 3) float64
    velocity: np.ndarray  # (n, 3) float64 [m/s] of the centre
    spin: np.ndarray  # (n, 3) float64 [rad/s] in the world frame
    inverse_mass: np.ndarray  # (n,) float64 [1/kg], 0 for what is prescribed
    inertia: np.ndarray  # (n, 3, 3) float64 [kg m^2] about the centre, in the body's frame; 0 if prescribed


@dataclasses.dataclass
class Contacts:
    """Points at which bodies touch or nearly do, one a row, sorted by (a, b, key)."""

    a: np.ndarray  # (m,) int32 body
    b: np.ndarray  # (m,) int32 body, a < b always
    key: np.ndarray  # (m,) int64 which feature of which of the two; the same from step to step while the contact lasts
    arm_a: np.ndarray  # (m, 3) float32 [m] from the centre of a to the contact point, world orientation
    arm_b: np.ndarray  # (m, 3) float32 [m] from the centre of b to the same point
    normal: np.ndarray  # (m, 3) float32 unit, from a to b
    gap: np.ndarray  # (m,) float32 [m] signed distance between the surfaces there, negative where they overlap
    friction: np.ndarray  # (m,) float32 Coulomb coefficient
    restitution: np.ndarray  # (m,) float32
