"""How long contacts of rigid bodies take: `python -m pliant.tools.bench_rigid_contacts`. Prints milliseconds a call."""

import time

import numpy as np
from scipy.spatial.transform import Rotation

import pliant as pl
from pliant.core import backend
from pliant.solvers.rigid.bodies import Bodies
from pliant.solvers.rigid.detection import Detection
from pliant.solvers.rigid.forms import form_of

EDGE, APART, MARGIN, CALLS = 0.2, 0.24, 0.004, 30  # [m] of cubes, between their middles, of contacts; calls measured
BOX = pl.Box(size=(EDGE, EDGE, EDGE))
KINDS = (BOX, pl.Sphere(radius=0.12), pl.Cylinder(radius=0.1, height=0.2), pl.Capsule(radius=0.08, height=0.15),
         pl.Torus(radius=0.1, tube=0.04))  # fmt: skip


def places(n: int, spacing: float) -> np.ndarray:
    """(n, 3) the first points of a cubic lattice."""
    side = round(np.ceil(n ** (1.0 / 3.0)))
    return spacing * np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:n]


def measure(name: str, shapes: list, x: np.ndarray, R: np.ndarray) -> str:
    """A line about one heap of bodies above a floor."""
    n = len(shapes)
    rest = np.zeros((n + 1, 3))
    bodies = Bodies(np.concatenate([x, np.zeros((1, 3))]), np.concatenate([R, np.eye(3)[None]]), rest, rest,
                    np.append(np.ones(n), 0.0), np.tile(np.eye(3), (n + 1, 1, 1)))  # fmt: skip
    floor = pl.Plane(point=(0.0, float(x[:, 1].min()) - 0.5 * EDGE, 0.0))
    detection = Detection([*(form_of(shape) for shape in shapes), form_of(floor)])
    times = []
    for _ in range(CALLS + 2):  # the first compiles, the second finds its arrays
        start = time.perf_counter()
        contacts = detection.contacts(bodies, MARGIN)
        times.append(time.perf_counter() - start)
    pairs = len(np.unique(contacts.a.astype(np.int64) * (n + 1) + contacts.b))
    return f"{name:28} {pairs:6} pairs {len(contacts.gap):6} contacts {1e3 * np.median(times[2:]):8.2f} ms"


def main() -> None:
    backend.start("cpu")
    straight = np.tile(np.eye(3), (1000, 1, 1))
    turned = Rotation.random(1000, random_state=1).as_matrix()
    column = np.array([(0.0, EDGE * k, 0.0) for k in range(10)])
    print(measure("10 boxes, one on another", [BOX] * 10, column, straight[:10]))
    print(measure("1,000 boxes, face to face", [BOX] * 1000, places(1000, EDGE), straight))
    print(measure("1,000 boxes in a heap", [BOX] * 1000, places(1000, APART), turned))
    print(measure("1,000 of five kinds", [KINDS[k % 5] for k in range(1000)], places(1000, APART), turned))


if __name__ == "__main__":
    main()
