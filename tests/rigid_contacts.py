"""Contacts for tests of the rigid solver, found slowly: boxes and balls on planes and on each other."""

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
        self.rows.append((np.array(center, float), np.eye(3) if rotation is None else rotation, np.array(velocity, float),
                          np.array(spin, float), 1 / mass if mass else 0.0, np.array(inertia, float)))  # fmt: skip
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
            out += [(k, *c) for k, c in enumerate(corners_in_box(xb, Rb, sb, xa, Ra, sa)) if c]
            out += [(8 + k, -c[0], c[1], c[2]) for k, c in enumerate(corners_in_box(xa, Ra, sa, xb, Rb, sb)) if c]
        return out


def corners_in_box(xb, Rb, sb, xa, Ra, sa):
    """Of b's corners against a's faces: normal, point, gap; none where they lie beside the face."""
    for corner in CORNERS:
        p = xb + Rb @ (corner * sb)
        local = Ra.T @ (p - xa)
        away = np.abs(local) - sa
        k = int(np.argmax(away))
        if np.all(np.delete(away, k) <= 1e-6 * sa.max()):
            n = np.zeros(3)
            n[k] = np.sign(local[k])
            n = Ra @ n
            yield n, p - n * away[k] / 2, away[k]
        else:
            yield None


def tilt(angle, axis=(0, 0, 1)):
    u = np.array(axis, float) / np.linalg.norm(axis)
    K = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
