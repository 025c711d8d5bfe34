"""Contacts for tests and benchmarks of the rigid solver, found slowly: boxes and balls on planes and on each other."""

import numpy as np

from pliant.solvers.rigid.bodies import Bodies, Contacts

CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], float)


class Things:
    """Bodies with shapes. A shape is ("plane", normal), ("ball", radius), ("box", half sizes)."""

    def __init__(self):
        self.shapes, self.rows = [], []

    def add(self, shape, center, mass=0.0, velocity=(0, 0, 0), spin=(0, 0, 0), rotation=None, inertia=None):
        kind, size = shape
        if inertia is None:
            inertia = np.zeros((3, 3))
            if mass and kind == "ball":
                inertia = np.eye(3) * 0.4 * mass * size**2
            elif mass and kind == "box":
                s = np.square(np.array(size, float))
                inertia = np.diag(mass / 3 * (s.sum() - s))
        self.shapes.append((kind, np.array(size, float)))
        rotation = np.eye(3) if rotation is None else rotation
        self.rows.append((np.array(center, float), rotation, np.array(velocity, float), np.array(spin, float),
                          1 / mass if mass else 0.0, np.array(inertia, float)))  # fmt: skip
        return len(self.rows) - 1

    def bodies(self):
        return Bodies(*(np.array(values, float) for values in zip(*self.rows, strict=True)))

    def contacts(self, bodies, margin=0.02, mu=0.5, e=0.0, ignored=()):
        found = []
        for a in range(len(self.shapes)):
            for b in range(a + 1, len(self.shapes)):
                if bodies.inverse_mass[a] + bodies.inverse_mass[b] > 0 and (a, b) not in ignored:
                    found += [(a, b, *c) for c in self.pair(bodies, a, b) if c[3] < margin]
        found.sort(key=lambda c: c[:3])
        m = len(found)

        def column(k, kind=np.float32, width=3):
            return np.array([c[k] for c in found], kind).reshape((m, width) if width else (m,))

        arms = [np.array([c[4] - bodies.center[c[k]] for c in found], np.float32).reshape(m, 3) for k in (0, 1)]
        return Contacts(column(0, np.int32, 0), column(1, np.int32, 0), column(2, np.int64, 0), *arms, column(3),
                        column(5, width=0), np.full(m, mu, np.float32), np.full(m, e, np.float32))  # fmt: skip

    def pair(self, bodies, a, b):
        """Key, normal from a to b, point and gap of each contact."""
        (ka, sa), (kb, sb) = self.shapes[a], self.shapes[b]
        xa, xb, Ra, Rb = bodies.center[a], bodies.center[b], bodies.rotation[a], bodies.rotation[b]
        out = []
        if ka == "plane":
            n = Ra @ sa
            if kb == "ball":
                gap = (xb - xa) @ n - sb
                out.append((0, n, xb - n * (sb + gap / 2), gap))
            else:
                for k, corner in enumerate(CORNERS):
                    p = xb + Rb @ (corner * sb)
                    gap = (p - xa) @ n
                    out.append((k, n, p - n * gap / 2, gap))
        elif ka == kb == "ball":
            d = xb - xa
            n, gap = d / np.linalg.norm(d), np.linalg.norm(d) - sa - sb
            out.append((0, n, xa + n * (sa + gap / 2), gap))
        elif ka == kb == "box":
            out += box_on_box(xa, Ra, sa, xb, Rb, sb)
        return out


def box_on_box(xa, Ra, sa, xb, Rb, sb):
    """Faces only: the one that separates best, the corners of the other box before it, and its own before those."""
    best = max((separation(box, k, xb - xa if box == 0 else xa - xb), box, k)
               for box, (R, S, s, t) in enumerate(((Ra, Rb, sa, sb), (Rb, Ra, sb, sa)))
               for k in range(3) for separation in [face_distance(R, S, s, t)])  # fmt: skip
    _, box, k = best
    x, R, s, y, S, t = (xa, Ra, sa, xb, Rb, sb) if box == 0 else (xb, Rb, sb, xa, Ra, sa)
    n = R[:, k] * np.sign((y - x) @ R[:, k] or 1.0)
    other = int(np.argmax(np.abs(S.T @ n)))  # the face of the other box that looks here
    m = -S[:, other] * np.sign(S[:, other] @ n)
    out = []
    for c, corner in enumerate(CORNERS):
        p, q = y + S @ (corner * t), x + R @ (corner * s)
        if (p - y) @ m > 0 and within(R.T @ (p - x), s, k):
            gap = (p - x) @ n - s[k]
            out.append((8 * box + c, n if box == 0 else -n, p - n * gap / 2, gap))
        if (q - x) @ n > 0 and within(S.T @ (q - y), t, other):
            gap = ((y + m * t[other] - q) @ m) / (n @ m)
            out.append((16 + 8 * box + c, n if box == 0 else -n, q + n * gap / 2, gap))
    return out


def face_distance(R, S, s, t):
    """How far the face k of one box keeps another away, whose centre is at d."""
    return lambda box, k, d: round(abs(d @ R[:, k]) - s[k] - np.abs(R[:, k] @ S) @ t, 5) - 1e-9 * box


def within(local, size, k):
    return bool(np.all(np.delete(np.abs(local) - 1.02 * size, k) <= 0))


def tilt(angle, axis=(0, 0, 1)):
    u = np.array(axis, float) / np.linalg.norm(axis)
    K = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
