"""The rotation in a deformation gradient: against NumPy's singular values, for every kind of matrix."""

import numpy as np
import pytest
import taichi as ti

from pliant.core.backend import Matrices, mat3
from pliant.core.rotation import rotation_of

N = 4000


@ti.kernel
def _rotate(n: ti.i32, F: Matrices, R: Matrices):
    for i in range(n):
        R[i] = rotation_of(F[i])


def device(F):
    """Rotations by the device, in single precision."""
    F = np.ascontiguousarray(F, dtype=np.float32)
    given, found = ti.ndarray(mat3, len(F)), ti.ndarray(mat3, len(F))
    given.from_numpy(F)
    _rotate(len(F), given, found)
    return found.to_numpy().astype(float)


def nearest(F):
    """The nearest proper rotations in double precision, and the singular values, the last one signed."""
    U, s, Vt = np.linalg.svd(np.asarray(F, dtype=np.float32).astype(float))
    sign = np.where(np.linalg.det(U) * np.linalg.det(Vt) < 0, -1.0, 1.0)
    U[:, :, 2] *= sign[:, None]
    s[:, 2] *= sign
    return U @ Vt, s


def rotations(n=N, seed=0):
    return nearest(np.random.default_rng(seed).normal(size=(n, 3, 3)))[0]


def noise(size, seed=1):
    return size * np.random.default_rng(seed).normal(size=(N, 3, 3))


def stretched(*values, seed=0):
    """Matrices with these singular values, the last one perhaps negative."""
    return rotations(seed=seed) @ np.diag(values) @ rotations(seed=seed + 1)


def turns(angle):
    """Rotations by one angle about random axes."""
    axes = np.random.default_rng(2).normal(size=(N, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    K = np.cross(np.eye(3)[None], axes[:, None])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


KINDS = {
    "rotations": lambda: rotations(),
    "half turns": lambda: turns(np.pi),
    "nearly half turns": lambda: turns(np.pi - 1e-4),
    "tiny turns": lambda: turns(1e-4),
    "small strains": lambda: rotations() @ (np.eye(3) + noise(0.05)),
    "large strains": lambda: rotations() @ (np.eye(3) + noise(0.5)),
    "anything": lambda: noise(1.0),
    "needles": lambda: stretched(100.0, 1.0, 0.01),
    "plates": lambda: stretched(1.0, 1.0, 1e-6),
    "flat": lambda: stretched(1.0, 1.0, 0.0),
    "flat and strained": lambda: stretched(1.3, 0.4, 0.0),
    "lines": lambda: stretched(1.0, 0.0, 0.0),
    "mirrored": lambda: stretched(1.0, 1.0, -1.0),
    "inverted": lambda: stretched(1.2, 0.8, -0.3),
    "hardly inverted": lambda: stretched(1.2, 0.8, -1e-5),
    "inverted with two equal": lambda: stretched(1.0, 0.5, -0.5),
    "minus rotations": lambda: -rotations(),
    "tiny": lambda: 1e-9 * (rotations() @ (np.eye(3) + noise(0.2))),
    "huge": lambda: 1e9 * (rotations() @ (np.eye(3) + noise(0.2))),
}


LOOSE = ("mirrored", "minus rotations")  # all of a plane of quaternions are equally good: one in 2000 is 7e-4 off


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_proper_rotation_and_the_nearest(kind):
    F = KINDS[kind]()
    R = device(F)
    assert np.abs(np.einsum("nji,njk->nik", R, R) - np.eye(3)).max() < 2e-6
    np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=2e-6)
    _, s = nearest(F)
    trace = np.einsum("nij,nij->n", R, np.asarray(F, dtype=np.float32).astype(float))
    gap = (s.sum(axis=1) - trace) / s[:, 0]
    assert gap.min() > -2e-6, "no rotation has a larger trace"
    assert gap.max() < (1e-3 if kind in LOOSE else 2e-6)


@pytest.mark.parametrize("kind", ["rotations", "half turns", "nearly half turns", "tiny turns", "small strains",
                                  "flat", "flat and strained", "inverted", "needles", "tiny", "huge"])  # fmt: skip
def test_where_there_is_only_one_it_is_that(kind):
    """The error is that of single precision, over how well the rotation is determined: the sum of the two smaller
    singular values."""
    F = KINDS[kind]()
    expected, s = nearest(F)
    sharp = (s[:, 1] + s[:, 2]) / s[:, 0]
    error = np.abs(device(F) - expected).max(axis=(1, 2))
    assert (error * np.minimum(sharp, 1.0)).max() < 5e-6


def test_nothing_gives_the_identity():
    zero = np.zeros((3, 3, 3))
    zero[1] += 1e-30
    assert (device(zero) == np.eye(3)).all()


def test_it_turns_with_what_it_is_the_rotation_of():
    F, Q = rotations() @ (np.eye(3) + noise(0.2)), rotations(seed=7)
    assert np.abs(device(Q @ F) - Q @ device(F)).max() < 2e-5


def test_the_same_matrix_always_gives_the_same_bits():
    F = noise(1.0)
    assert device(F).tobytes() == device(F).tobytes()
    assert device(F[::-1])[::-1].tobytes() == device(F).tobytes()
