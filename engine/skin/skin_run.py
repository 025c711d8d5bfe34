"""Skins of a finished run, from its particle files alone."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from pliant.core.choices import MESH_FORMATS
from pliant.core.data import Snapshot, TriMesh
from pliant.core.smoothing import SPACINGS_PER_SUPPORT
from pliant.errors import PliantError, unknown_name
from pliant.geometry.meshfile import read_mesh
from pliant.run.export import check_target, write_all
from pliant.run.folder import RunFolder
from pliant.skin.skinning import NORMAL, UV, Skin
from pliant.skin.skins import SUFFIX, SkinSource

FORMATS = (*MESH_FORMATS, "usd")
ELSEWHERE = 0.1  # in sizes of a body at rest: a mesh of which half is farther away, and out of reach, is not the body's


def skin_run(
    run: RunFolder,
    formats: tuple[str, ...],
    indices: Sequence[int],
    out: Path,
    body: str | None = None,
    mesh: Path | None = None,
    fit: bool = False,
    tell: Callable[[int], None] = lambda index: None,
) -> list[Path]:
    """Writes the skins of these frames into the folder `out`, and a USD file of all of them; returns what to open.

    `body` names one of the elastic bodies, None takes all. `mesh` is a file with another surface for it, as it lies at
    rest, or anywhere if it is to `fit`: then it is magnified and moved to where the body's own skin is.
    `tell` is called with the index of each frame that is done.
    """
    record, skins, render_scene = run.record(), _chosen(run, body), run.render_scene()
    check_target(run, formats, out)
    made = {name: source.skin for name, source in skins.items()} if mesh is None else _other(skins, mesh, fit)
    render_scene.walls.clear()

    def snapshots() -> Iterator[Snapshot]:
        for index in indices:
            whole = run.snapshot(index, record)
            meshes = {name + SUFFIX: skin.mesh(whole.clouds[name].x) for name, skin in made.items()
                      if len(whole.clouds[name].x)}  # fmt: skip
            yield Snapshot(index, whole.time, meshes=meshes)

    path = out / f"{record['scene']}{SUFFIX}.usdc"
    return write_all(snapshots(), out, formats, render_scene, path, record["fps"], tell)


def _chosen(run: RunFolder, body: str | None) -> dict[str, SkinSource]:
    """What the skins are made of, of one body or of all."""
    render_scene, record = run.render_scene(), run.record()
    skins = render_scene.skins
    if not skins and not all(body.fluid for body in render_scene.bodies):
        raise PliantError(f"{run.path} was written by a version of Pliant without skins; run it again")
    if not skins:
        raise PliantError(f"{run.path} has no elastic body to put a skin on; its bodies are "
                          f"{', '.join(record['particles'])}")  # fmt: skip
    if body is None:
        return skins
    if body in record["particles"] and body not in skins:
        raise PliantError(f"{body} is not elastic and has no skin; elastic are {', '.join(skins)}")
    if body not in skins:
        raise PliantError(unknown_name("body", body, skins))
    return {body: skins[body]}


def _other(skins: dict[str, SkinSource], path: Path, fit: bool) -> dict[str, Skin]:
    """The skin that a file holds, on the one body there is."""
    if len(skins) > 1:
        raise PliantError(f"--mesh is for one body; choose it with --body, one of {', '.join(skins)}")
    ((name, source),) = skins.items()
    data = read_mesh(path)
    fields: dict[str, Any] = {UV: data.uv, NORMAL: data.normal}
    given = TriMesh(data.vertices, data.faces, {key: values for key, values in fields.items() if values is not None})
    low, high = _box(source.mesh)
    size = float((high - low).max())
    if fit:
        (bottom, top), middle = _box(given), 0.5 * (low + high)
        factor = size / max(float((top - bottom).max()), 1e-300)
        given.vertices = factor * (given.vertices - 0.5 * (bottom + top)) + middle
    away = float(np.median(cKDTree(source.X).query(given.vertices[np.unique(given.faces)])[0]))
    if away > max(ELSEWHERE * size, SPACINGS_PER_SUPPORT * source.spacing):
        raise PliantError(f"{path.name} lies elsewhere: half of it is {away:.3g} m or more from {name}, which is "
                          f"{size:.3g} m large; give it where {name} is at rest, or add --fit")  # fmt: skip
    return {name: source.with_mesh(given)}


def _box(mesh: TriMesh) -> np.ndarray:
    """Lower and upper corner (2, 3) of what the faces of a mesh name."""
    corners = np.asarray(mesh.vertices, float)[np.unique(mesh.faces)]
    return np.array([corners.min(axis=0), corners.max(axis=0)])
