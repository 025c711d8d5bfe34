"""How good a filling of a shape with particles is: density, distances, neighbors, and how near the surface it comes.

Solvers see a filling through sums over neighbors, so these are what is measured: whether they sum up to the density of
the material, whether they span all three directions, and whether the particles are spread evenly and up to the surface.
All of it is NumPy in double precision and costs a few seconds for a quarter of a million particles.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from pliant.core.smoothing import SMOOTHINGS, SPACINGS_PER_SUPPORT, Smoothing
from pliant.errors import PliantError
from pliant.geometry.shapes import Shape, as_points

Array = NDArray[np.float64]

FLAT = 0.1  # directions with less than this share of the largest eigenvalue of the moment matrix count as empty
STRICTLY = 1 - 1e-3  # of the support: lattice neighbors just that far away must not be in or out by round-off
TOGETHER = 1e-3  # of the support: particles nearer than this are at the same place, and no direction leads there
OUTSIDE = 1e-6  # spacings: what a particle on the surface may stick out by round-off
SURFACE_STEP = 0.35  # spacings between the points of the surface at which the distance to the particles is taken,
MOST_SURFACE_POINTS = 2_000_000  # or more, where these would be too many
PAIRS_AT_ONCE = 2_000_000  # bounds memory
SHARE_STEPS = 400  # of the table of what a surface takes away from the density
BINS = 50  # of the histograms,
RANGES = {"density": (0.3, 1.3), "nearest": (0.4, 1.4), "neighbors": (0.0, 50.0)}  # from where to where they go


@dataclasses.dataclass(frozen=True)
class Spread:
    """What a set of values comes to: mean, standard deviation, extremes, and what 1 % lie below and above."""

    mean: float
    deviation: float
    least: float
    low: float
    high: float
    most: float

    @classmethod
    def of(cls, values: ArrayLike) -> "Spread":
        """Of at least one value; not a number throughout if there is none."""
        a = np.asarray(values, dtype=float)
        if not len(a):
            return cls(*[float("nan")] * 6)
        low, high = np.quantile(a, (0.01, 0.99))
        return cls(float(a.mean()), float(a.std()), float(a.min()), float(low), float(high), float(a.max()))


@dataclasses.dataclass(frozen=True, eq=False)
class Quality:
    """Figures of a filling of a shape. Lengths are in spacings, densities in parts of the material's own."""

    particles: int
    spacing: float  # [m]
    density: Spread  # sum_j V_j W_ij, the particle itself included, of all particles
    interior: Spread  # the same of those deeper below the surface than the support of W; a perfect filling has 1
    interior_particles: int
    corrected: Spread  # density of all, by what a perfect filling has as far below a plane surface: see `_share`
    nearest: Spread  # distance to the nearest neighbor; a cubic lattice has 1
    neighbors: Spread  # how many are strictly within the support; a cubic lattice has 26
    coplanar: int  # particles whose neighbors lie in a plane,
    collinear: int  # on a line,
    alone: int  # or that have none
    conditioning: Spread  # least over largest eigenvalue of the moment matrix: 1 is alike in all directions
    relative_radius: float  # least distance over the largest there could be: Lagae and Dutre 2008; fcc has 1
    surface: Spread  # distance from the surface to the nearest particle; its most is the Hausdorff distance
    surface_tail: float  # what 0.1 % of the surface is farther away than
    outside: int  # particles that are not in the shape
    farthest_outside: float  # how far the worst of them sticks out
    values: dict[str, Array] = dataclasses.field(repr=False)  # of each particle: density, corrected, nearest, ...

    @property
    def degenerate(self) -> int:
        """Particles whose neighbors do not span three directions, so that they see no full deformation gradient."""
        return self.coplanar + self.collinear + self.alone

    @classmethod
    def of(cls, x: ArrayLike, volume_each: float, spacing: float, shape: Shape,
           smoothing: Smoothing = SMOOTHINGS["cubic_spline"]) -> "Quality":  # fmt: skip
        """Of particles at x (n, 3) [m], each of `volume_each` [m^3], `spacing` [m] apart, that fill `shape`."""
        points = as_points(x)
        if not len(points):
            raise PliantError("a filling without particles has no quality")
        h = SPACINGS_PER_SUPPORT * spacing
        tree = cKDTree(points)
        density, count, moment = _sums(tree, points, volume_each, smoothing, h)
        depth = -shape.signed_distance(points)
        corrected = density / _share(smoothing, np.maximum(depth, 0.0) / spacing)
        eigenvalues = np.maximum(np.linalg.eigvalsh(moment), 0.0)
        largest = np.maximum(eigenvalues[:, 2:], 1e-300)
        rank = (eigenvalues > FLAT * largest).sum(axis=1)
        conditioning = eigenvalues[:, 0] / largest[:, 0]
        nearest = tree.query(points, k=2, workers=-1)[0][:, 1] / spacing if len(points) > 1 else np.full(1, np.nan)
        distance, weight = _surface_distances(tree, shape, spacing)
        return cls(
            particles=len(points), spacing=float(spacing), density=Spread.of(density),
            interior=Spread.of(density[depth > h]), interior_particles=int(np.count_nonzero(depth > h)),
            corrected=Spread.of(corrected), nearest=Spread.of(nearest), neighbors=Spread.of(count),
            coplanar=int(np.count_nonzero(rank == 2)), collinear=int(np.count_nonzero(rank == 1)),
            alone=int(np.count_nonzero(rank == 0)), conditioning=Spread.of(conditioning),
            relative_radius=relative_radius(nearest.min() * spacing, volume_each),
            surface=_weighted(distance, weight), surface_tail=float(_quantile(distance, weight, 0.999)),
            outside=int(np.count_nonzero(-depth > OUTSIDE * spacing)),
            farthest_outside=float(max(-depth.min(), 0.0) / spacing),
            values={"density": density, "corrected": corrected, "nearest": nearest, "neighbors": count,
                    "conditioning": conditioning, "depth": depth / spacing},
        )  # fmt: skip

    def rows(self) -> list[tuple[str, str, str]]:
        """Name, value and meaning of each figure, for a table; the names and meanings are the same for all fillings."""
        d, i, c, n, k, s = self.density, self.interior, self.corrected, self.nearest, self.neighbors, self.surface
        return [
            ("particles", f"{self.particles:,}", ""),
            ("spacing", f"{self.spacing:.4g}", "m"),
            ("density", f"{d.mean:.4f} ± {d.deviation:.4f}", "mean and deviation of all; less at the surface"),
            ("  interior", f"{i.mean:.4f} ± {i.deviation:.4f}" if self.interior_particles else "none",
             "deeper than the support of W; 1 ± 0 is perfect"),
            ("  surface-corrected", f"{c.mean:.4f} ± {c.deviation:.4f}", "by a lattice's below a plane; 1 ± 0 too"),
            ("nearest neighbor", f"{n.mean:.3f} ± {n.deviation:.3f}", "in spacings; a cubic lattice has 1"),
            ("  least, 1 %, 99 %", f"{n.least:.3f}, {n.low:.3f}, {n.high:.3f}", "in spacings"),
            ("neighbors", f"{k.mean:.1f}", "within the support; a cubic lattice has 26"),
            ("  least, 1 %", f"{k.least:.0f}, {k.low:.0f}", "10 suffice if they span three directions"),
            ("degenerate", f"{self.degenerate:,}", "particles whose neighbors do not span three directions"),
            ("  in plane, line, alone", f"{self.coplanar:,}, {self.collinear:,}, {self.alone:,}", ""),
            ("  worst conditioning", f"{self.conditioning.least:.3f}", f"of the moment matrix; flat below {FLAT:g}"),
            ("relative radius", f"{self.relative_radius:.3f}", "least distance by the largest possible; fcc has 1"),
            ("surface to particles", f"{s.most:.3f}", "Hausdorff distance in spacings; a lattice in a box has 0.87"),
            ("  99.9 %, mean", f"{self.surface_tail:.3f}, {s.mean:.3f}", "in spacings"),
            ("outside", f"{self.outside:,}", "particles that are not in the shape"),
            ("  by at most", f"{self.farthest_outside:.3f}", "in spacings"),
        ]  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """All figures and the histograms, ready for JSON; None where there is no number."""
        figures = {k: v for k, v in dataclasses.asdict(dataclasses.replace(self, values={})).items() if k != "values"}
        figures["degenerate"] = self.degenerate
        figures["histograms"] = {name: self.histogram(name) for name in RANGES}
        return _plain(figures)

    def histogram(self, name: str) -> dict[str, list[float]]:
        """Counts of the values of that name and the edges of their bins; what lies beyond is counted in the last."""
        finite = self.values[name][np.isfinite(self.values[name])]
        counts, edges = np.histogram(np.clip(finite, *RANGES[name]), BINS, RANGES[name])
        return {"counts": counts.tolist(), "edges": edges.tolist()}


def relative_radius(least: float, volume_each: float) -> float:
    """r / r_max, r half the least distance [m] and r_max = (V / (4 sqrt(2) N))^(1/3), that of the densest packing
    (Lagae and Dutre 2008, Section 2.3)."""
    return float(0.5 * least / np.cbrt(volume_each / (4 * np.sqrt(2))))


def _sums(tree: cKDTree, x: Array, volume: float, kernel: Smoothing, h: float) -> tuple[Array, Array, Array]:
    """Over the neighbors of each particle: density ratio, how many there are, and the moment matrix (n, 3, 3) of
    Kugelstadt et al. 2021, Eq. 8, C_i = -sum_j V_j W'(r) / r X_ij X_ij^T. All volumes are alike here; elastic bodies
    give more to particles at the surface, and find a few more neighborhoods flat than are counted here."""
    n, step = len(x), 1e-4 * h
    density = np.full(n, volume * float(kernel.W(np.zeros(1), h)[0]))
    count, moment = np.zeros(n), np.zeros((n, 3, 3))
    pairs = tree.query_pairs(STRICTLY * h, output_type="ndarray")
    for lo in range(0, len(pairs), PAIRS_AT_ONCE):
        i, j = pairs[lo : lo + PAIRS_AT_ONCE].T
        X = x[i] - x[j]
        r = np.linalg.norm(X, axis=1)
        W = volume * kernel.W(r, h)
        density += np.bincount(i, W, n) + np.bincount(j, W, n)
        apart = r > TOGETHER * h
        i, j, X, r = i[apart], j[apart], X[apart], r[apart]
        count += np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
        slope = -volume * (kernel.W(r + step, h) - kernel.W(r - step, h)) / (2 * step * r)
        for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            m = slope * X[:, a] * X[:, b]
            moment[:, a, b] += np.bincount(i, m, n) + np.bincount(j, m, n)
    lower = np.tril_indices(3, -1)
    moment[:, lower[0], lower[1]] = moment[:, lower[1], lower[0]]
    return density, count, moment


def _share(kernel: Smoothing, depth: Array) -> Array:
    """Density ratio of a perfect filling `depth` spacings below a plane surface. A lattice that ends half a spacing
    below it lacks the planes from there up: 1 - sum_k Q(depth + 1/2 + k) with the Q of `Smoothing.plane_sum`."""
    table = np.linspace(0.0, SPACINGS_PER_SUPPORT, SHARE_STEPS + 1)
    missing = sum(kernel.plane_sum(table + 0.5 + k) for k in range(SPACINGS_PER_SUPPORT))
    return 1.0 - np.interp(depth, table, missing)


def _surface_distances(tree: cKDTree, shape: Shape, spacing: float) -> tuple[Array, Array]:
    """Distances [spacings] of points of the surface to the nearest particle, and the area that each stands for."""
    points, weight = surface_points(*shape.triangles(), SURFACE_STEP * spacing)
    return tree.query(points, workers=-1)[0] / spacing, weight


def surface_points(vertices: Array, faces: NDArray[np.int64], step: float) -> tuple[Array, Array]:
    """Points about `step` [m] apart all over triangles, and the area [m^2] that each stands for.

    Each triangle is cut into k^2 alike, whose centroids are taken. The vertices are taken too, as points without area,
    so that corners are not missed.
    """
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    longest = np.sqrt(np.maximum(((b - a) ** 2).sum(1), np.maximum(((c - b) ** 2).sum(1), ((a - c) ** 2).sum(1))))
    parts = np.maximum(np.ceil(longest / step), 1.0)
    while (parts**2).sum() > MOST_SURFACE_POINTS and parts.max() > 1:
        step *= 1.2
        parts = np.maximum(np.ceil(longest / step), 1.0)
    points, weight = [vertices[np.unique(faces)]], [np.zeros(len(np.unique(faces)))]
    for k in np.unique(parts).astype(int):
        mine = parts == k
        u, v = _centroids(k).T
        corner, right, up = a[mine][:, None, :], (b - a)[mine][:, None, :], (c - a)[mine][:, None, :]
        points.append((corner + u[:, None] * right + v[:, None] * up).reshape(-1, 3))
        weight.append(np.repeat(area[mine] / k**2, k**2))
    return np.concatenate(points), np.concatenate(weight)


def _centroids(k: int) -> Array:
    """(k^2, 2) of the triangles that the unit triangle is cut into by k - 1 lines along each side."""
    i, j = np.meshgrid(np.arange(k), np.arange(k))
    upright, turned = i + j < k, i + j < k - 1
    first = np.stack([i[upright] + 1 / 3, j[upright] + 1 / 3], axis=1)
    second = np.stack([i[turned] + 2 / 3, j[turned] + 2 / 3], axis=1)
    return np.concatenate([first, second]) / k


def _weighted(values: Array, weight: Array) -> Spread:
    mean = float(np.average(values, weights=weight))
    deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
    low, high = _quantile(values, weight, np.array([0.01, 0.99]))
    return Spread(mean, deviation, float(values.min()), float(low), float(high), float(values.max()))


def _quantile(values: Array, weight: Array, level: Any) -> Any:
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    place = np.searchsorted(reached, np.asarray(level) * reached[-1])
    return values[order[np.minimum(place, len(order) - 1)]]


def _plain(value: Any) -> Any:
    """Numbers and lists that JSON knows; None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
