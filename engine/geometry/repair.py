"""Makes one sound surface of the triangles that files have: merges, drops, turns, and says what was done.

**Orientation.** Faces that run against their neighbors are turned with the smaller part of their patch. Then shells
are looked at as wholes: an outermost closed shell has to look outward, and is turned with all that lies in it if it
does not. A shell inside another one is a cavity if its faces look towards the inside of it, as in the file; if they
look outward it is a solid in a solid, which changes nothing. Open parts keep to each other as in the file; beside
closed shells they are left out if together they enclose nothing.
"""

import dataclasses

import igl
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SAME = 1e-9  # of the diagonal: vertices this close are one
FLAT = 1e-12  # of the longest side squared: a triangle with less area has none
CLEAR = 0.6  # part of a patch's area that must agree on a direction for the file to be believed
WITHIN = 0.75  # winding number that a point inside a shell has at least; on the shell it is 1/2
THIN = 0.005  # V / A^(3/2) of a sheet at most; it is 0.094 for a ball
PROBES = 8  # vertices of a shell that must all lie within another for it to be nested
MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(29))  # large odd numbers and a shift


@dataclasses.dataclass(frozen=True)
class Repairs:
    """What was found in a surface and done to it."""

    turned: Flags  # (f,) which of the given faces look the other way now
    duplicates: int = 0  # faces dropped because another has the same corners
    shells: int = 0  # parts that hang together
    nested: int = 0  # closed shells inside another one
    cavities: int = 0  # nested shells that look into the other one: what they enclose is empty
    loose: int = 0  # faces dropped because they are sheets beside closed shells
    one_sided: int = 0  # edges along which no orientation fits, as on a Moebius strip


def unique_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Where each different row first occurs, and which of those each row is. Sorts 64-bit hashes: 20 times as quick as
    `numpy.unique(axis=0)`, which is asked if two different rows happen to have one hash."""
    key = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        key = (key ^ column.astype(np.uint64)) * MIX[0]
        key = (key ^ (key >> MIX[2])) * MIX[1]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first[inverse]], rows):
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def merge_points(points: Array) -> tuple[Integers, Integers]:
    """Which points (indices, ascending) stand for all, and which of those each point is."""
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0
    cells = np.round((points - points[0]) / (SAME * diagonal)).astype(np.int64)
    first, inverse = unique_rows(cells)
    keep = np.sort(first)
    return keep, np.searchsorted(keep, first)[inverse]


def clean(vertices: Array, faces: Integers) -> tuple[Array, Integers]:
    """Merges equal vertices, drops triangles that collapse by it and vertices without a triangle; keeps the order."""
    points, faces, whole = _merged(vertices, faces)
    return points, np.ascontiguousarray(faces[whole])


def _merged(vertices: Array, faces: Integers) -> tuple[Array, Integers, Flags]:
    """Used points without repetition, all faces by these, and which of them still have three corners."""
    used = np.zeros(len(vertices), dtype=bool)
    used[faces] = True
    points = vertices[used]
    keep, index = merge_points(points)
    new = np.zeros(len(vertices), dtype=np.int64)
    new[used] = index
    faces = new[faces]
    whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return np.ascontiguousarray(points[keep]), faces, whole


def edges(faces: Integers) -> tuple[Integers, Integers, Integers]:
    """Undirected edges (m, 2), the edge of each half-edge (3 f,), and the net direction (m,): 0 where closed."""
    start, end = faces.reshape(-1), faces[:, [1, 2, 0]].reshape(-1)
    base = np.int64(faces.max() + 1)
    codes, inverse = np.unique(np.minimum(start, end) * base + np.maximum(start, end), return_inverse=True)
    net = np.bincount(inverse, weights=np.where(start < end, 1.0, -1.0), minlength=len(codes))
    return np.stack([codes // base, codes % base], axis=1), inverse, np.round(net).astype(np.int64)


def area_vectors(vertices: Array, faces: Integers) -> Array:
    """(f, 3) normals times areas."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return 0.5 * np.cross(b - a, c - a)


def mend(vertices: Array, faces: Integers) -> tuple[Array, Integers, Repairs]:
    """The surface that is meant by triangles: cleaned, without repetitions, oriented outward."""
    points, merged, keep = _merged(vertices, faces)
    turned = np.zeros(len(faces), dtype=bool)
    if not keep.any():
        return points, merged[:0], Repairs(turned)
    single = _singles(merged[keep])
    duplicates = int(np.count_nonzero(~single))
    keep[keep] = single
    chosen = merged[keep]
    links = edges(chosen)
    flip = _agreeing(points, chosen, links[2])
    if flip.any():
        chosen = _reversed(chosen, flip)
        links = edges(chosen)
    shells = Shells(points, chosen, *links)
    turned[keep] = flip ^ shells.turn
    keep[keep] = ~shells.loose
    final = _without_slivers(points, _reversed(merged[keep], turned[keep]))
    loose = int(np.count_nonzero(shells.loose))
    return points, final, Repairs(
        turned, duplicates, shells.count, shells.nested, shells.cavities, loose, shells.one_sided
    )


def _reversed(faces: Integers, where: Flags) -> Integers:
    return np.ascontiguousarray(np.where(where[:, None], faces[:, ::-1], faces))


def _singles(faces: Integers) -> Flags:
    """Which faces remain if each occurs once. Two that look opposite ways cancel each other if that leaves no holes, as
    with the walls between two blocks in one file; otherwise the file means both sides of one surface."""
    ordered = np.sort(faces, axis=1)
    first, inverse = unique_rows(ordered)
    single = np.zeros(len(faces), dtype=bool)
    single[first] = True
    if len(first) == len(faces):
        return single
    net = np.bincount(inverse, weights=np.where(_even(faces), 1.0, -1.0))
    cancelled = (net == 0.0)[inverse]
    without = single & ~cancelled
    return without if without.any() and _holes(faces[without]) <= _holes(faces[single]) else single


def _holes(faces: Integers) -> int:
    """Edges with an odd number of faces."""
    return int(np.count_nonzero(np.bincount(edges(faces)[1]) % 2))


class Shells:
    """The parts of a surface that hang together by its `edges`, and what each is meant to be."""

    def __init__(self, vertices: Array, faces: Integers, pairs: Integers, inverse: Integers, net: Integers):
        f = len(faces)
        self.one_sided = int(np.count_nonzero((np.abs(net) == 2) & (np.bincount(inverse) == 2)))
        links = coo_array((np.ones(3 * f), (np.repeat(np.arange(f), 3), f + inverse)), shape=(f + len(pairs),) * 2)
        self.count, label = connected_components(links, directed=False)
        part = label[:f].astype(np.int64)
        leaky = np.bincount(part, weights=(net[inverse] != 0).reshape(-1, 3).any(axis=1), minlength=self.count) > 0.0
        inward = _volumes(vertices, faces, part, self.count) < 0.0
        self.loose, together = np.zeros(f, dtype=bool), leaky[part]
        if leaky.any():  # open parts are turned together
            rest = np.zeros(int(np.count_nonzero(together)), dtype=np.int64)
            volume = _volumes(vertices, faces[together], rest, 1)[0]
            area = np.linalg.norm(area_vectors(vertices, faces[together]), axis=1).sum()
            inward[leaky] = volume < 0.0
            if not leaky.all() and abs(volume) < THIN * area**1.5:
                self.loose = together
        root, nested = _nesting(vertices, faces, part, ~leaky, self.count)
        self.turn = inward[root][part]  # (f,) faces that have to look the other way
        self.nested = int(np.count_nonzero(nested))
        self.cavities = int(np.count_nonzero(nested & (inward != inward[root])))


def _agreeing(vertices: Array, faces: Integers, net: Integers) -> Flags:
    """Which faces to turn so that neighbors agree where they can, by the net directions of their edges."""
    none = np.zeros(len(faces), dtype=bool)
    if not (np.abs(net) == 2).any():
        return none
    turned, patch = igl.bfs_orient(faces)
    patch = np.asarray(patch).reshape(-1)
    flip = _even(turned) != _even(faces)
    area = np.linalg.norm(area_vectors(vertices, faces), axis=1)
    count = int(patch.max()) + 1
    against = np.bincount(patch, weights=area * flip, minlength=count)
    total = np.bincount(patch, weights=area, minlength=count)
    wrong = np.where(
        np.maximum(against, total - against) > CLEAR * total,
        against > 0.5 * total,  # the larger part of the patch is right
        _volumes(vertices, _reversed(faces, flip), patch, count) < 0.0,
    )
    flip ^= wrong[patch]
    better = np.count_nonzero(edges(_reversed(faces, flip))[2]) < np.count_nonzero(net)
    return flip if better else none


def _even(faces: Integers) -> Flags:
    """Whether corners rise, read from the smallest one: changes when a triangle is turned, not by where it starts."""
    rows, lowest = np.arange(len(faces)), np.argmin(faces, axis=1)
    return faces[rows, (lowest + 1) % 3] < faces[rows, (lowest + 2) % 3]


def _volumes(vertices: Array, faces: Integers, part: Integers, count: int) -> Array:
    """(count,) signed volume of each part, seen from the middle of its area (which matters only if it is open)."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    normal, middle = 0.5 * np.cross(b - a, c - a), (a + b + c) / 3.0
    area = np.linalg.norm(normal, axis=1)
    total = np.maximum(np.bincount(part, weights=area, minlength=count), 1e-300)
    moments = [np.bincount(part, weights=area * middle[:, k], minlength=count) for k in range(3)]
    centre = np.stack(moments, axis=1) / total[:, None]
    return np.bincount(part, weights=np.einsum("ij,ij->i", middle - centre[part], normal), minlength=count) / 3.0


def _nesting(vertices: Array, faces: Integers, shell: Integers, closed: Flags, count: int) -> tuple[Integers, Flags]:
    """The outermost shell around each (itself, if none is), and which closed shells lie within another."""
    root, nested = np.arange(count), np.zeros(count, dtype=bool)
    if count == 1 or not closed.any():
        return root, nested
    order = np.argsort(shell, kind="stable")
    start = np.searchsorted(shell[order], np.arange(count + 1))
    corners = vertices[faces[order]]
    lower = np.minimum.reduceat(corners.min(axis=1), start[:-1])
    upper = np.maximum.reduceat(corners.max(axis=1), start[:-1])
    step = np.linspace(0.0, 1.0, PROBES, endpoint=False)
    probes = corners[(start[:-1, None] + step * np.diff(start)[:, None]).astype(np.int64), 0]  # (count, PROBES, 3)
    left = np.argsort(lower[:, 0], kind="stable")
    begin = lower[left, 0]
    for b in np.argsort(np.prod(upper - lower, axis=1), kind="stable"):  # the largest one that fits stays
        some = left[slice(*np.searchsorted(begin, (lower[b, 0], upper[b, 0])))]  # those that begin within b
        fits = closed[some] & (lower[some] >= lower[b]).all(axis=1) & (upper[some] <= upper[b]).all(axis=1)
        inner = some[fits & (some != b)]
        if not closed[b] or not len(inner):
            continue
        own = faces[order[start[b] : start[b + 1]]]
        w = np.abs(winding_number(vertices, own, probes[inner].reshape(-1, 3))).reshape(-1, PROBES)
        within = inner[(w > WITHIN).all(axis=1)]
        root[within], nested[within] = b, True
    return root, nested


def frame(vertices: Array) -> tuple[Array, float]:
    """Middle of the bounds and a power of two near their size. libigl's winding number is of single precision and sums
    high powers of lengths, so it wants coordinates around 1; such a factor changes no digit."""
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    size = float((upper - lower).max()) or 1.0
    return 0.5 * (lower + upper), float(2.0 ** np.round(np.log2(size)))


def winding_number(vertices: Array, faces: Integers, points: Array) -> Array:
    """Of a part of a surface, at a few points."""
    index, own = np.unique(faces, return_inverse=True)
    middle, size = frame(vertices[index])
    hierarchy = igl.FastWindingNumberBVH()
    hierarchy.init((vertices[index] - middle) / size, np.ascontiguousarray(own.reshape(-1, 3)))
    return np.asarray(hierarchy.winding_number(np.ascontiguousarray((points - middle) / size)))


def _without_slivers(vertices: Array, faces: Integers) -> Integers:
    """Drops triangles without area, unless they stitch a closed surface together."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    longest = np.maximum(((b - a) ** 2).sum(axis=1), np.maximum(((c - b) ** 2).sum(axis=1), ((a - c) ** 2).sum(axis=1)))
    fat = np.linalg.norm(np.cross(b - a, c - a), axis=1) > FLAT * longest
    if fat.all() or not fat.any():
        return faces if fat.any() else faces[:0]
    less = np.ascontiguousarray(faces[fat])
    return less if np.count_nonzero(edges(less)[2]) <= np.count_nonzero(edges(faces)[2]) else faces
