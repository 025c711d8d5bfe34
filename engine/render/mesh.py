"""Triangle meshes as GGUI draws them: three corners per triangle, each with its own normal."""

import numpy as np

_CREASE = np.cos(np.radians(40.0))  # edges sharper than this stay sharp: boxes look like boxes, ducks like ducks


def corner_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Normals (3 m, 3) of the triangles' corners: the mean over the triangles there that no sharp edge parts.

    Triangles count by their angle at the vertex, so that a square face counts once however it is cut in two.
    """
    corners = vertices[faces]
    flat = np.repeat(_unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])), 3, axis=0)
    angles = []
    for k in range(3):
        to_next, to_last = (_unit(corners[:, (k + step) % 3] - corners[:, k]) for step in (1, 2))
        angles.append(np.arccos(np.clip((to_next * to_last).sum(axis=1), -1, 1)))
    weighted = flat * np.stack(angles, axis=1).reshape(-1, 1)
    owner = faces.reshape(-1)
    order = np.argsort(owner, kind="stable")  # the corners of each vertex, one vertex after the other
    counts = np.bincount(owner, minlength=len(vertices))
    first, mine = (np.cumsum(counts) - counts)[owner], counts[owner]
    smooth, here = np.zeros_like(flat), np.arange(len(owner))
    for k in range(counts.max(initial=0)):  # the k-th corner at the same vertex, for all that have so many
        here = here[mine[here] > k]
        other = order[first[here] + k]
        gentle = (flat[here] * flat[other]).sum(axis=1) > _CREASE
        smooth[here[gentle]] += weighted[other[gentle]]
    return _unit(smooth).astype(np.float32)


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-30)
