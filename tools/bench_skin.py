"""`pliant bench skin`: what the skin of an elastic body costs for each frame.

A torus of particles on a lattice, with a surface of as many vertices as asked for, is twisted a little more in each
frame, and its skin follows. Gradients, vertices and normals are timed together and apart, from positions in NumPy to
vertices in NumPy. Time on the clock grows with what else the machine does; time of the processors, summed over cores,
hardly does.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from pliant.core import backend
from pliant.core.data import TriMesh
from pliant.core.smoothing import smoothing
from pliant.skin.skinning import Skin

RADIUS, TUBE = 1.0, 0.4  # of the torus [m]
BUDGET, CORES = 100.0, 2  # milliseconds that a frame of a million vertices may take, on so many cores


def main(argv: list[str]) -> int:
    """`pliant bench skin [options]`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="pliant bench skin", description=__doc__.split("\n\n")[1])
    parser.add_argument("--vertices", type=int, default=1_000_000, help="of the skin (1000000)")
    parser.add_argument("--particles", type=int, default=32_000, help="of the body (32000)")
    parser.add_argument("--frames", type=int, default=20, help="that are timed (20)")
    options = parser.parse_args(argv)
    for name in ("vertices", "particles", "frames"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more, got {getattr(options, name)}")
    backend.start()
    mesh, (X, spacing) = torus(options.vertices), lattice(options.particles)
    start = time.perf_counter()
    skin = Skin(mesh.vertices, mesh.faces, X, np.full(len(X), spacing**3), spacing, smoothing("cubic_spline"))
    made = time.perf_counter() - start
    positions = [twisted(X, 0.1 * k).astype(np.float32) for k in range(options.frames + 1)]
    parts: dict[str, Callable[[np.ndarray], Any]] = {
        "gradients": skin.motion.find, "gradients and vertices": skin.pose, "with normals": skin.mesh,
    }  # fmt: skip
    _print(skin, made, {name: [_timed(part, x) for x in positions][1:] for name, part in parts.items()})
    return 0


def torus(vertices: int) -> TriMesh:
    """A torus of about so many vertices, in squares cut in two."""
    along = max(round(np.sqrt(vertices * RADIUS / TUBE)), 3)
    round_tube = max(round(vertices / along), 3)
    a, b = np.meshgrid(np.arange(along), np.arange(round_tube), indexing="ij")
    u, v = 2 * np.pi * a / along, 2 * np.pi * b / round_tube
    r = RADIUS + TUBE * np.cos(v)
    square = ((0, 0), (0, 1), (1, 1), (1, 0))  # seen from outside, against the clock
    corner = [((a + i) % along * round_tube + (b + j) % round_tube).ravel() for i, j in square]
    faces = np.concatenate([np.stack([corner[0], *corner[k : k + 2]], axis=1) for k in (1, 2)])
    return TriMesh(np.stack([r * np.cos(u), TUBE * np.sin(v), r * np.sin(u)], axis=-1).reshape(-1, 3), faces)


def lattice(particles: int) -> tuple[np.ndarray, float]:
    """About so many particles (n, 3) in the torus, and their spacing."""
    spacing = float((2 * np.pi**2 * RADIUS * TUBE**2 / particles) ** (1 / 3))
    axes = [np.arange(-reach + spacing / 2, reach, spacing) for reach in (RADIUS + TUBE, TUBE, RADIUS + TUBE)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    off = np.hypot(np.hypot(points[:, 0], points[:, 2]) - RADIUS, points[:, 1])
    return points[off < TUBE - 0.25 * spacing], spacing


def twisted(points: np.ndarray, angle: float) -> np.ndarray:
    """Points turned about the axis of the torus, the more the higher they are; `angle` [rad] from bottom to top."""
    turn = angle * points[:, 1] / (2 * TUBE)
    c, s = np.cos(turn), np.sin(turn)
    return np.stack([c * points[:, 0] + s * points[:, 2], points[:, 1], c * points[:, 2] - s * points[:, 0]], axis=1)


def _timed(part: Callable[[np.ndarray], Any], x: np.ndarray) -> tuple[float, float]:
    """Milliseconds on the clock and of the processors."""
    start, used = time.perf_counter(), time.process_time()
    part(x)
    return 1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - used)


def _print(skin: Skin, made: float, times: dict[str, list[tuple[float, float]]]) -> None:
    many = len(skin.weights[1]) / skin.n
    title = f"{skin.n:,} vertices on {skin.particles:,} particles\n{many:.1f} for each; {made:.1f} s to make"
    table = Table(title=title)
    for header in ("ms/frame", "least", "median", "processors"):
        table.add_column(header, justify="left" if header == "ms/frame" else "right")
    for name, found in times.items():
        clock, processors = zip(*found, strict=True)
        table.add_row(name, f"{min(clock):.1f}", f"{median(clock):.1f}", f"{median(processors):.1f}")
    out = Console(highlight=False)
    out.print(table)
    million = median(used for _, used in times["with normals"]) * 1e6 / skin.n
    out.print(f"A million vertices take {million:.0f} ms of processors: {million / CORES:.0f} ms on {CORES} cores that "
              f"have nothing else to do, where {BUDGET:.0f} ms are allowed.")  # fmt: skip
