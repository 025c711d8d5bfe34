"""What collisions and the solver exchange: the state of rigid bodies, and where they touch."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Bodies:
    """Rigid bodies, and walls among them: what is prescribed has no inverse mass and moves with its velocity and spin,
    whatever pushes it."""

    center: np.ndarray  # (n, 3) float64 [m] centre of mass (pivot of a wall) in the world
    rotation: np.ndarray  # (n, 3, 3) float64, from the frame of the body to the world
    velocity: np.ndarray  # (n, 3) float64 [m/s] of the centre
    spin: np.ndarray  # (n, 3) float64 [rad/s], world frame
    inverse_mass: np.ndarray  # (n,) float64 [1/kg], 0 for what is prescribed
    inertia: np.ndarray  # (n, 3, 3) float64 [kg m^2] about the centre, in the frame of the body; zeros if prescribed


@dataclasses.dataclass
class Contacts:
    """Where pairs of bodies touch, or may soon, sorted by (a, b, key)."""

    a: np.ndarray  # (m,) int32 body
    b: np.ndarray  # (m,) int32 body, a < b always
    key: np.ndarray  # (m,) int64 which feature of which of the two; the same while the contact lasts
    arm_a: np.ndarray  # (m, 3) float32 [m] from the centre of a to the point midway between the surfaces, in the world
    arm_b: np.ndarray  # (m, 3) float32 [m] from the centre of b to the same point
    normal: np.ndarray  # (m, 3) float32 unit, points from a to b
    gap: np.ndarray  # (m,) float32 [m] signed distance between the surfaces there, negative where they overlap
    friction: np.ndarray  # (m,) float32 Coulomb coefficient
    restitution: np.ndarray  # (m,) float32
