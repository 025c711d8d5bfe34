"""The surface of a fluid from its particles, by splashsurf (Löschner, Böttcher, Jeske, Bender 2023)."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix, diags_array, identity
from scipy.spatial import cKDTree

from pliant.core.data import Cloud, TriMesh
from pliant.errors import PliantError

SMOOTHING_LENGTH = 2.0  # in particle radii; the support is twice that, as in the simulation
FINE, COARSE = 0.5, 0.75  # size of marching cubes, in particle radii, below and above
MANY = 40_000  # particles: the more there are, the smaller a drop is in a picture
THRESHOLD = 0.6  # of the density ratio: the surface is about a radius outside the outermost centres
MESH_ROUNDS = 20  # of weighted Laplacian smoothing: flat water comes out flat, droplets keep their size
NORMAL_ROUNDS = 8  # of smoothing of the normals alone
FIELD_ROUNDS = 6  # of smoothing of the fields
TOUCHING = 2.0  # in particle radii: a particle closer to a wall than this wets it,
COMPANY, NEAR = 8, 3.5  # if it has that many others within that many radii: a drop that flies past leaves no stain
INSET = 0.06  # in particle radii between wall and surface, so that neither shows through the other
DROP = 1.2  # in particle radii: size of a drop, which is kept that far from walls so that none is cut flat
SIDES = 3  # walls that meet in a corner: a particle is mirrored at that many at most, so that it has 26 images at most
SAME_SIDE = 0.75  # cosine between normals of planes above which they count as one wall: the facets of a round one
CUTS = 8  # rounds of moving vertices onto walls; three settle a box, a few more the facets of round containers
SLACK = 0.02  # of the distance kept from a wall: what is that close to it has arrived
MOST_PLANES = 5000  # of a container: enough for round shapes; beyond (scans), a surface that bulges by a hair will do
MOST_DEPTHS = 4_000_000  # depths below planes that are computed at a time, so that memory stays bounded
TWINS = 1e-5  # in radii: vertices nearer to each other are in one place
APART = 1e-3  # of the way to a neighbor by which a vertex is moved away from another in its place
NORMAL = "normal"  # the field of the mesh that holds its normals


def reconstruct(cloud: Cloud, radius: float, walls: np.ndarray | None = None) -> TriMesh:
    """The surface of particles of that radius [m], with their fields at its vertices and its normals as `normal`.

    `walls` (k, 4) are planes (n, o) of convex containers, n . x <= o inside. Particles that touch some are mirrored
    behind the nearest, so that the surface runs straight up to the wall instead of rounding off, and is then cut there.
    The surface is the same every time, but splashsurf leaves the order of its vertices and their last digit to chance.
    """
    x, fields = _finite(cloud)
    if not len(x):
        empty = {name: values[:0] for name, values in fields.items()} | {NORMAL: np.zeros((0, 3), np.float32)}
        return TriMesh(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int64), empty, dict(cloud.units))
    planes = np.zeros((0, 4), np.float32) if walls is None else np.asarray(walls, np.float32)
    lonely = _lonely(x, planes, radius)
    x[lonely], _ = _cut(x[lonely], np.zeros((int(lonely.sum()), 3)), planes, DROP * radius)
    x, origins = _with_images(x, planes, radius, ~lonely)
    names = sorted(fields)
    mesh, columns = _splash(x, radius, [_columns(fields[name])[origins] for name in names])
    vertices, faces = np.array(mesh.mesh.vertices), np.array(mesh.mesh.triangles).astype(np.int64)
    normals = np.nan_to_num(mesh.point_attributes["normals"])  # where triangles have no area
    free = vertices.copy()
    vertices, normals = _cut(vertices, normals, planes, INSET * radius)
    spread = _neighbor_means(faces, len(vertices))
    _part_twins(vertices, np.nonzero((vertices != free).any(axis=1))[0], faces, TWINS * radius)
    shaped = {
        name: _smoothed(values, spread).reshape(len(vertices), *fields[name].shape[1:])
        for name, values in zip(names, columns, strict=True)
    }
    return TriMesh(vertices, faces, shaped | {NORMAL: normals.astype(np.float32)}, dict(cloud.units))


def convex_planes(mesh: TriMesh, tolerance: float = 1e-4) -> np.ndarray:
    """The planes (k, 4) that bound a closed convex mesh; none (0, 4) if it is not convex, or has too many.

    `tolerance` is the share of its size within which planes count as one and vertices as inside.
    """
    corners = np.asarray(mesh.vertices, float)[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1)
    normal, corners = (normal / np.maximum(length, 1e-300)[:, None])[length > 0], corners[length > 0]
    planes = np.concatenate([normal, (normal * corners[:, 0]).sum(axis=1)[:, None]], axis=1)
    size = float(np.ptp(mesh.vertices, axis=0).max()) if len(mesh.vertices) else 0.0
    if not size:
        return np.zeros((0, 4))
    rounded = np.round(planes / [1, 1, 1, size] / tolerance)
    _, first = np.unique(rounded, axis=0, return_index=True)
    planes = planes[np.sort(first)]
    allowed = -2 * tolerance * size
    fits = len(planes) <= MOST_PLANES and all((d >= allowed).all() for _, d in _depths(mesh.vertices, planes))
    return planes if fits else np.zeros((0, 4))


def moved_planes(planes: np.ndarray, pose: np.ndarray | None) -> np.ndarray:
    """Planes (k, 4) after a motion given by its (4, 4) matrix."""
    if pose is None:
        return planes
    normals = planes[:, :3] @ pose[:3, :3].T
    return np.concatenate([normals, (planes[:, 3] + normals @ pose[:3, 3])[:, None]], axis=1)


def _finite(cloud: Cloud) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Positions and the real fields of the particles that are somewhere."""
    sane = np.isfinite(cloud.x).all(axis=1)
    real = {name: np.asarray(values) for name, values in cloud.fields.items()}
    kept = {name: values[sane].astype(np.float32) for name, values in real.items() if values.dtype.kind == "f"}
    return np.asarray(cloud.x, np.float32)[sane], kept  # a copy: drops are moved


def _columns(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


def _depths(x: np.ndarray, planes: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Parts of the points, and how deep each of them lies below each plane (m, k) [m]."""
    rows = max(1, MOST_DEPTHS // max(1, len(planes)))
    for first in range(0, len(x), rows):
        part = slice(first, first + rows)
        yield part, planes[:, 3] - x[part] @ planes[:, :3].T


def _near(x: np.ndarray, planes: np.ndarray, reach: float) -> np.ndarray:
    """The points that may be beyond a plane or less than `reach` [m] below it: those outside a ball that is deeper."""
    if not len(planes) or not len(x):
        return np.zeros(0, np.int64)
    center = 0.5 * (x.min(axis=0) + x.max(axis=0))
    deepest = (planes[:, 3] - planes[:, :3] @ center).min()  # the depth falls by no more than the distance from there
    return np.nonzero(np.linalg.norm(x - center, axis=1) >= deepest - reach)[0]


def inside_share(x: np.ndarray, planes: np.ndarray) -> float:
    """The share of the points that lie on the inner side of all planes."""
    x, planes = np.asarray(x, np.float32), np.asarray(planes, np.float32)
    outside = sum(int((depth.min(axis=1) < 0).sum()) for _, depth in _depths(x[_near(x, planes, 0.0)], planes))
    return 1 - outside / len(x) if len(x) else 0.0


def _lonely(x: np.ndarray, planes: np.ndarray, radius: float) -> np.ndarray:
    """Which of the particles near the planes have too little company to wet them (n,)."""
    lonely, near = np.zeros(len(x), bool), _near(x, planes, TOUCHING * radius)
    for part, depth in _depths(x[near], planes):
        lonely[near[part]] = depth.min(axis=1) < TOUCHING * radius
    near = np.nonzero(lonely)[0]
    lonely[near] = cKDTree(x).query_ball_point(x[near], NEAR * radius, return_length=True) <= COMPANY
    return lonely


def _sides(x: np.ndarray, planes: np.ndarray, radius: float) -> np.ndarray:
    """The planes that each particle touches (n, SIDES), the nearest first and one of each wall; -1 where there is none.

    The facets of a round wall have nearly the same normals: of these, the nearest stands for the wall.
    """
    sides, near = np.full((len(x), SIDES), -1), _near(x, planes, TOUCHING * radius)
    for part, depth in _depths(x[near], planes):
        rows = np.nonzero(depth.min(axis=1) < TOUCHING * radius)[0]
        depth = depth[rows]
        depth[(depth <= 0) | (depth >= TOUCHING * radius)] = np.inf
        for side in range(SIDES):
            touching = np.isfinite(depth.min(axis=1))
            rows, depth = rows[touching], depth[touching]
            nearest = depth.argmin(axis=1)
            sides[near[part][rows], side] = nearest
            depth[planes[nearest, :3] @ planes[:, :3].T > SAME_SIDE] = np.inf
    return sides


def _with_images(x: np.ndarray, planes: np.ndarray, radius: float, wet: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The particles and the mirror images of the `wet` ones, and whose image each is.

    What is mirrored at one wall is mirrored at the next one as well, so that edges and corners are filled. Behind each
    image there is another layer: smoothing rounds the edges of what it is given, and only what lies beyond the wall may
    be rounded.
    """
    sides, origins = _sides(x, planes, radius), np.arange(len(x))
    for side in range(SIDES):
        plane = sides[origins, side]
        candidates = np.nonzero((plane >= 0) & wet[origins])[0]
        normal, offset = planes[plane[candidates], :3], planes[plane[candidates], 3]
        depth = offset - (x[candidates] * normal).sum(axis=1)
        near = (depth > 0) & (depth < TOUCHING * radius)  # an image need not touch what its particle does
        candidates, normal, depth = candidates[near], normal[near], depth[near]
        images = x[candidates] + 2 * depth[:, None] * normal
        x = np.concatenate([x, images, images + np.float32(2 * radius) * normal])
        origins = np.concatenate([origins, origins[candidates], origins[candidates]])
    return x, origins


def _splash(x: np.ndarray, radius: float, columns: Sequence[np.ndarray]) -> tuple:
    """The smoothed mesh, and the columns (n, k) interpolated to its vertices."""
    try:
        import pysplashsurf
    except ImportError as error:
        raise PliantError("fluid surfaces need the package pysplashsurf; pip install pysplashsurf, or draw the fluid "
                          "as spheres.") from error  # fmt: skip
    scalars = {f"{j}.{k}": np.ascontiguousarray(c[:, k]) for j, c in enumerate(columns) for k in range(c.shape[1])}
    try:
        mesh, _ = pysplashsurf.reconstruction_pipeline(
            np.ascontiguousarray(x), attributes_to_interpolate=scalars, particle_radius=radius,
            smoothing_length=SMOOTHING_LENGTH, cube_size=FINE if len(x) < MANY else COARSE,
            iso_surface_threshold=THRESHOLD, mesh_cleanup=True, decimate_barnacles=True, mesh_smoothing_weights=True,
            mesh_smoothing_iters=MESH_ROUNDS, compute_normals=True, normals_smoothing_iters=NORMAL_ROUNDS,
        )  # fmt: skip
    except RuntimeError as error:  # particles so far apart that no grid can hold them
        raise PliantError(f"no surface could be made of the particles: {' '.join(str(error).split())}") from error
    found = mesh.point_attributes
    return mesh, [np.stack([found[f"{j}.{k}"] for k in range(c.shape[1])], axis=1) for j, c in enumerate(columns)]


def _neighbor_means(faces: np.ndarray, count: int) -> csr_matrix:
    """The matrix that replaces each vertex's value by the mean of its own and its neighbors'."""
    i, j = faces[:, [0, 1, 2, 1, 2, 0]].T.ravel(), faces[:, [1, 2, 0, 0, 1, 2]].T.ravel()
    links = csr_matrix((np.ones(len(i), np.float32), (i, j)), (count, count)) + identity(count, np.float32, "csr")
    links.data[:] = 1.0  # each edge was counted once for each of its triangles
    return (diags_array(1.0 / np.asarray(links.sum(axis=1)).ravel()) @ links).astype(np.float32)


def _part_twins(vertices: np.ndarray, moved: np.ndarray, faces: np.ndarray, close: float) -> None:
    """Moves vertices apart that a cut has put into one place, in an edge of the container: programs that merge such
    vertices would see an open surface. Each goes towards the farthest of its neighbors, which are all inside."""
    _, first = np.unique(np.round(vertices[moved] / close), axis=0, return_index=True)
    for twin in np.delete(moved, first):
        around = vertices[faces[(faces == twin).any(axis=1)].ravel()] - vertices[twin]
        vertices[twin] += np.float32(APART) * around[np.argmax((around**2).sum(axis=1))]


def _smoothed(values: np.ndarray, means: csr_matrix) -> np.ndarray:
    """Fields of single particles are rough: what a picture shows is their mean over a particle's width."""
    for _ in range(FIELD_ROUNDS):
        values = means @ values
    return values


def _cut(vertices: np.ndarray, normals: np.ndarray, planes: np.ndarray, inset: float) -> tuple[np.ndarray, np.ndarray]:
    """Moves what is beyond planes onto them, where it faces the way they do: onto the furthest one in each round.

    In an edge it faces the way the last of its planes does, so that there is one shade all along the edge.
    """
    inner = planes - np.array([0, 0, 0, inset], planes.dtype)
    moving, facing = _near(vertices, inner, 0.0), np.full(len(vertices), -1)
    for _ in range(CUTS):
        over, behind = [moving[:0]], [moving[:0]]
        for part, depth in _depths(vertices[moving], inner):
            rows = np.nonzero(depth.min(axis=1) < -SLACK * inset)[0]
            over.append(moving[part][rows])
            behind.append(depth[rows].argmin(axis=1))
        moving, plane = np.concatenate(over), np.concatenate(behind)
        beyond = (vertices[moving] * inner[plane, :3]).sum(axis=1) - inner[plane, 3]
        vertices[moving] -= beyond[:, None] * inner[plane, :3]
        facing[moving] = np.maximum(facing[moving], plane)
    cut = facing >= 0
    normals[cut] = inner[facing[cut], :3]
    return vertices, normals
