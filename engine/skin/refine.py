"""The triangles of a skin: fine enough to bend, and with normals that follow the motion but keep sharp edges sharp."""

import numpy as np
import scipy.sparse as sp
import taichi as ti
from scipy.sparse.csgraph import connected_components

from pliant.core.backend import Ints, RealTable, upload, vec3

CREASE = float(np.cos(np.radians(40.0)))  # edges sharper than this at rest stay sharp, whatever the motion
MOST_TRIANGLES = 2_000_000  # that refining may make of a coarse surface


@ti.func
def _row(x: ti.template(), i: ti.i32):
    return vec3(x[i, 0], x[i, 1], x[i, 2])


@ti.func
def _inverted(a: vec3):
    return a / ti.max(a.norm_sqr(), 1e-30)


@ti.kernel
def _fan(n: ti.i32, start: Ints, following: Ints, preceding: Ints):
    """Orders the corners of each group so that, where it can be, each begins with the edge that the last ended with."""
    for g in range(n):
        for e in range(start[g] + 1, start[g + 1]):
            for k in range(e, start[g + 1]):
                if following[k] == preceding[e - 1]:
                    i, j = following[k], preceding[k]
                    following[k], preceding[k] = following[e], preceding[e]
                    following[e], preceding[e] = i, j
                    break


@ti.kernel
def _find_normals(n: ti.i32, scale: ti.f32, group: Ints, start: Ints, following: Ints, preceding: Ints, own: Ints,
                  x: RealTable, normals: RealTable):  # fmt: skip
    """Normals, each the sum of a / |a|^2 x b / |b|^2 over the triangles of its group with the edges a and b there
    (Max 1999, "Weights for computing vertex normals from facet normals"): exact on spheres, and the same however a
    square is cut in two. `scale` keeps lengths in the range of numbers. Where nothing has an area, it is zero."""
    for s in range(n):
        p, total, a, b = _row(x, own[s]), vec3(0.0), vec3(0.0), vec3(0.0)
        last = -1
        for e in range(start[group[s]], start[group[s] + 1]):
            if following[e] == last:
                a = b
            else:
                a = _inverted(scale * (_row(x, following[e]) - p))
            last = preceding[e]
            b = _inverted(scale * (_row(x, last) - p))
            total += a.cross(b)
        size = total.norm()
        for c in ti.static(range(3)):
            normals[s, c] = ti.select(size > 0.0, total[c] / size, 0.0)


class Corners:
    """The mesh with its creases cut open: a vertex on a sharp edge becomes one for each side, so that each has a normal
    of its own. Vertices at one place, as along the seams of a texture, share their normals all the same.

    `vertex` (k,): which vertex each is, the first n being the vertices themselves; `faces` (m, 3) of these.
    """

    def __init__(self, vertices: np.ndarray, faces: np.ndarray):
        self.n = n = len(vertices)
        edges = np.linalg.norm(vertices[faces[:, 0]] - vertices[faces[:, 1]], axis=1)
        self._scale = 1.0 / max(float(edges.mean()) if len(edges) else 1.0, 1e-30)
        point = _points(vertices)
        group, self.cut = _groups(vertices, faces, point)
        self.vertex, self.faces, owner = _sides(n, faces, point, group, self.cut)
        order = np.argsort(group.ravel(), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(group.ravel(), minlength=int(owner.max(initial=0)) + 1))])
        around = [faces[:, [1, 2, 0]].ravel()[order], faces[:, [2, 0, 1]].ravel()[order]]
        self._tables = [upload(table, ti.i32) for table in (owner, starts, *around, self.vertex)]
        _fan(len(starts) - 1, *self._tables[1:4])
        self._sharp = np.unique(self.vertex[n:])  # vertices that have several sides

    def normals(self, x: np.ndarray) -> np.ndarray:
        """Unit normals (k, 3) of the surface with its vertices at x (n, 3)."""
        found = np.empty((len(self.vertex), 3), np.float32)
        if found.size:
            _find_normals(len(found), self._scale, *self._tables, x, found)
        return found

    def at_vertices(self, normals: np.ndarray) -> np.ndarray:
        """One normal for each vertex (n, 3): on a sharp edge the mean of those of its sides."""
        mean = normals[: self.n]
        if len(self._sharp):
            mean = mean.copy()
            np.add.at(mean, self.vertex[self.n :], normals[self.n :])
            size = np.linalg.norm(mean[self._sharp], axis=1, keepdims=True)
            mean[self._sharp] /= np.maximum(size, 1e-30)
        return mean


def _groups(vertices: np.ndarray, faces: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The group of each corner (m, 3), and whether it is at the end of a sharp edge. Corners at one point are a group,
    but at the ends of sharp edges only those that are joined across smooth ones."""
    mine = point[faces]
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1)
    normal /= np.maximum(length, 1e-300)[:, None]
    ends = np.sort(np.stack([mine, np.roll(mine, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    key = ends[:, 0] * len(vertices) + ends[:, 1]
    order = np.argsort(key, kind="stable")
    same = key[order[1:]] == key[order[:-1]]
    one, other = order[:-1][same], order[1:][same]  # the same edge in two triangles, 3 t + k being the k-th of t
    smooth = (np.einsum("ij,ij->i", normal[one // 3], normal[other // 3]) > CREASE)
    smooth |= (length[one // 3] == 0) | (length[other // 3] == 0)
    sharp = np.zeros(len(vertices), bool)
    sharp[ends[one[~smooth]]] = True
    group, cut = mine.copy(), sharp[mine]
    if cut.any():
        links = [_links(mine, one[smooth], other[smooth], ends[one[smooth], k], sharp) for k in (0, 1)]
        i, j = np.concatenate(links, axis=1)
        graph = sp.coo_matrix((np.ones(len(i), bool), (i, j)), (faces.size, faces.size))
        joined = connected_components(graph, directed=False)[1].reshape(faces.shape)
        group[cut] = len(vertices) + np.unique(joined[cut], return_inverse=True)[1].ravel()
    return group, cut


def _links(mine: np.ndarray, one: np.ndarray, other: np.ndarray, point: np.ndarray, sharp: np.ndarray) -> np.ndarray:
    """Pairs (2, k) of corners, numbered 3 t + k, of triangles on both sides of edges, at one end of these."""
    here = sharp[point]
    corners = [3 * (edge // 3) + np.argmax(mine[edge // 3] == point[here, None], axis=1)
               for edge in (one[here], other[here])]  # fmt: skip
    return np.stack(corners)


def _sides(n: int, faces: np.ndarray, point: np.ndarray, group: np.ndarray,
           cut: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The vertices of the mesh cut open, its faces, and the group of each of its vertices."""
    owner, vertex, opened = point.copy(), np.arange(n), faces.copy()
    if cut.any():
        base = int(group.max()) + 1
        pairs, side = np.unique(faces[cut].astype(np.int64) * base + group[cut], return_inverse=True)
        whose, which = pairs // base, pairs % base
        first = np.concatenate([[True], whose[1:] != whose[:-1]])  # takes the vertex's own place
        place = np.where(first, whose, n + np.cumsum(~first) - 1)
        owner = np.concatenate([owner, which[~first]])
        owner[whose[first]] = which[first]
        vertex = np.concatenate([vertex, whose[~first]])
        opened[cut] = place[side.ravel()]
    return vertex, opened, owner


def _points(vertices: np.ndarray) -> np.ndarray:
    """For each vertex the first one at the same place, to the last bit."""
    order = np.lexsort(vertices.T)
    new = np.concatenate([[True], (vertices[order[1:]] != vertices[order[:-1]]).any(axis=1)])[: len(vertices)]
    first = np.empty(len(vertices), np.int64)
    first[order] = order[new][np.cumsum(new) - 1]
    return first


def refined(vertices: np.ndarray, faces: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray]:
    """The same surface with no edge longer than that [m], or MOST_TRIANGLES: edges are halved, for all triangles at
    them alike, so that no crack opens. The vertices that there were come first."""
    while len(faces) and len(faces) < MOST_TRIANGLES / 4:
        edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1)  # (m, 3, 2)
        long = np.linalg.norm(vertices[edges[..., 0]] - vertices[edges[..., 1]], axis=2) > longest
        if not long.any():
            break
        pairs, number = np.unique(np.sort(edges[long], axis=1), axis=0, return_inverse=True)
        middle = np.full(faces.shape, -1)
        middle[long] = len(vertices) + number.ravel()
        vertices = np.concatenate([vertices, vertices[pairs].mean(axis=1)])
        faces = _halved(faces, middle, long.sum(axis=1))
    return vertices, faces


def _halved(faces: np.ndarray, middle: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Triangles cut at the middles (m, 3) of their edges 01, 12 and 20, -1 where there is none; `count` of each."""
    parts = [faces[count == 0]]
    # turned so that the first edge is the one cut, the last the one not cut
    for k, first in ((1, np.argmax(middle >= 0, axis=1)), (2, (np.argmax(middle < 0, axis=1) + 1) % 3), (3, count * 0)):
        here = count == k
        columns = (first[here, None] + np.arange(3)) % 3
        (a, b, c), (p, q, r) = (np.take_along_axis(t[here], columns, axis=1).T for t in (faces, middle))
        cut = {1: [(a, p, c), (p, b, c)], 2: [(p, b, q), (a, p, q), (a, q, c)],
               3: [(a, p, r), (p, b, q), (r, q, c), (p, q, r)]}[k]  # fmt: skip
        parts += [np.stack(triangle, axis=1) for triangle in cut]
    return np.concatenate(parts)
