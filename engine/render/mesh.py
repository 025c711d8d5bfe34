"""Triangle meshes as GGUI draws them: three corners per triangle, each with its own normal."""

import numpy as np

_CREASE = np.cos(np.radians(40.0))  # edges sharper than this stay sharp: boxes look like boxes, ducks like ducks


def corner_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Normals (3 m, 3) of the triangles' corners: the mean over the vertex's triangles, unless an edge is sharp.

    Triangles count by their angle at the vertex, so that a square face counts once however it is cut in two.
    """
    corners = vertices[faces]
    flat = _unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    smooth = np.zeros_like(vertices)
    for k in range(3):
        to_next, to_last = (_unit(corners[:, (k + step) % 3] - corners[:, k]) for step in (1, 2))
        angle = np.arccos(np.clip((to_next * to_last).sum(axis=1), -1, 1))
        for axis in range(3):
            smooth[:, axis] += np.bincount(faces[:, k], angle * flat[:, axis], len(vertices))
    flat, smooth = np.repeat(flat, 3, axis=0), _unit(smooth)[faces.reshape(-1)]
    sharp = (flat * smooth).sum(axis=1) < _CREASE
    return np.where(sharp[:, None], flat, smooth).astype(np.float32)


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-30)
