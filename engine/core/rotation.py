"""The rotation in a deformation gradient: a polar decomposition that takes any matrix.

Of all rotations, `rotation_of(F)` is the one nearest to F, which maximises tr(R^T F). For an F that is inverted or flat
this is still a proper rotation, det R = +1. Its quaternion is the eigenvector of the largest eigenvalue of a symmetric
4 x 4 matrix K without trace (Horn 1987), whose characteristic polynomial is

    l^4 - 2 |F|^2 l^2 - 8 det(F) l + |F|^4 - 4 |cof F|^2

(Theobald 2005). Newton's method from l = sqrt(3) |F|, which is no smaller than any eigenvalue, falls monotonously to
the largest, and a column of the adjugate of K - l is the eigenvector. In single precision this is off by up to 1e-3
when two eigenvalues are close, as they are in strong deformations; there two Newton steps on the rotation itself
follow. There is no state and no guess: the same F gives the same R.
"""

import itertools

import taichi as ti

from pliant.core.backend import mat3, mat4, vec3, vec4

ROOT_STEPS = 8
POLISH_STEPS = 2
CLEAR = 24.0  # the slope at the root is 64 for a rotation; above this the eigenvector needs no polish
LEAST = 1e-12  # below this square of its length an eigenvector counts as none

vec6 = ti.types.vector(6, ti.f32)


def _cofactors() -> tuple[tuple[int, ...], ...]:
    """For each entry of the adjugate of a 4 x 4 matrix: row, column, sign, the row it is expanded along, three columns,
    and the minors of the two rows left that belong to them."""
    entries = []
    for r, c in itertools.product(range(4), repeat=2):
        x, y, z = (k for k in range(4) if k != c)
        minors = [PAIRS.index(pair) for pair in ((y, z), (x, z), (x, y))]
        entries.append((r, c, (-1) ** (r + c), 1 - r if r < 2 else 5 - r, x, y, z, *minors))
    return tuple(entries)


PAIRS = tuple(itertools.combinations(range(4), 2))
MINORS = tuple((p, a, b) for p, (a, b) in enumerate(PAIRS))
COFACTORS = _cofactors()


@ti.func
def cofactor(F: mat3):
    """The matrix of cofactors: F cof(F)^T = det F."""
    a, b, c = F[:, 0], F[:, 1], F[:, 2]
    return ti.Matrix.cols([b.cross(c), c.cross(a), a.cross(b)])


@ti.func
def largest_root(F: mat3):
    """The largest eigenvalue of K for |F|^2 = 3, which is the sum of F's singular values, the last one signed by det F;
    and the slope of the polynomial there, the product of its distances from the other three."""
    C = cofactor(F)
    det = F[:, 0].dot(C[:, 0])
    constant = 9.0 - 4.0 * C.norm_sqr()
    root, slope = 3.0, 1.0
    for _ in range(ROOT_STEPS):
        value = ((root * root - 6.0) * root - 8.0 * det) * root + constant
        slope = 4.0 * root * (root * root - 3.0) - 8.0 * det
        step = ti.max(value, 0.0) / ti.max(slope, 1e-6)
        root -= step
        if step < 1e-6:
            break
    return root, slope


@ti.func
def horn(F: mat3, root: ti.f32):
    """K - root, of which the wanted quaternion (w, x, y, z) is the null vector."""
    K = mat4(0.0)
    K[0, 0] = F[0, 0] + F[1, 1] + F[2, 2]
    K[1, 1] = F[0, 0] - F[1, 1] - F[2, 2]
    K[2, 2] = F[1, 1] - F[0, 0] - F[2, 2]
    K[3, 3] = F[2, 2] - F[0, 0] - F[1, 1]
    K[0, 1] = F[2, 1] - F[1, 2]
    K[0, 2] = F[0, 2] - F[2, 0]
    K[0, 3] = F[1, 0] - F[0, 1]
    K[1, 2] = F[0, 1] + F[1, 0]
    K[1, 3] = F[0, 2] + F[2, 0]
    K[2, 3] = F[1, 2] + F[2, 1]
    for a in ti.static(range(4)):
        K[a, a] -= root
        for b in ti.static(range(a)):
            K[a, b] = K[b, a]
    return K


@ti.func
def null_vector(K: mat4):
    """The null vector of a symmetric K of rank 3, as the longest column of its adjugate; zero for a lower rank."""
    low, high = vec6(0.0), vec6(0.0)  # minors of the first and of the last two rows
    for p, a, b in ti.static(MINORS):
        low[p] = K[0, a] * K[1, b] - K[0, b] * K[1, a]
        high[p] = K[2, a] * K[3, b] - K[2, b] * K[3, a]
    adjugate = mat4(0.0)
    for r, c, sign, k, x, y, z, yz, xz, xy in ti.static(COFACTORS):
        if ti.static(r < 2):
            adjugate[r, c] = sign * (K[k, x] * high[yz] - K[k, y] * high[xz] + K[k, z] * high[xy])
        else:
            adjugate[r, c] = sign * (K[k, x] * low[yz] - K[k, y] * low[xz] + K[k, z] * low[xy])
    best, longest = vec4(0.0), 0.0
    for r in ti.static(range(4)):
        column = adjugate[r, :]
        if column.norm_sqr() > longest:
            best, longest = column, column.norm_sqr()
    return best


@ti.func
def from_quaternion(q: vec4):
    w, x, y, z = q[0], q[1], q[2], q[3]
    return mat3([
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ])  # fmt: skip


@ti.func
def times(p: vec4, q: vec4):
    """Product of quaternions."""
    return vec4(
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@ti.func
def polished(q: vec4, F: mat3):
    """One Newton step towards the maximum of tr(R^T F): R exp(w) with (tr S - S) w = axis of the skew part of R^T F,
    where S is its symmetric part. Damped where the maximum is flat."""
    A = from_quaternion(q).transpose() @ F
    S = 0.5 * (A + A.transpose())
    axis = vec3(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1])
    H = mat3(0.0)
    for a in ti.static(range(3)):
        for b in ti.static(range(3)):
            H[a, b] = -S[a, b]
        H[a, a] += S.trace() + 1e-3
    turn = vec3(0.0)
    if H.determinant() > 1e-6:
        turn = H.inverse() @ axis
    turn *= ti.min(1.0, 0.5 / ti.max(turn.norm(), 1e-6))
    return times(q, vec4(1.0, 0.5 * turn[0], 0.5 * turn[1], 0.5 * turn[2])).normalized()


@ti.func
def rotation_of(F: mat3):
    """The rotation nearest to F; the identity for F = 0."""
    size = F.norm()
    q = vec4(1.0, 0.0, 0.0, 0.0)
    if size > 1e-20:
        A = F * (ti.sqrt(3.0) / size)
        root, slope = largest_root(A)
        found = null_vector(horn(A, root))
        if found.norm_sqr() > LEAST:
            q = found.normalized()
        if slope < CLEAR:
            for _ in range(POLISH_STEPS):
                q = polished(q, A)
    return from_quaternion(q)
