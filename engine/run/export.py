"""Files for other programs from a finished run, without simulating again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pliant.core.choices import MESH_FORMATS, PARTICLE_FORMATS
from pliant.core.data import Snapshot
from pliant.errors import PliantError
from pliant.io.usd import write_usd
from pliant.io.usd_types import missing_usd
from pliant.render.fluid_surface import reconstruct
from pliant.render.render_scene import RenderScene
from pliant.run.folder import RunFolder
from pliant.run.frames import Series, write_frame

FORMATS = (*dict.fromkeys((*PARTICLE_FORMATS, *MESH_FORMATS)), "usd")


def export(
    run: RunFolder,
    formats: tuple[str, ...],
    indices: Sequence[int],
    out: Path,
    surface: bool = False,
    tell: Callable[[int], None] = lambda index: None,
) -> list[Path]:
    """Writes frames of a run into the folder `out`, and a USD file of all of them; returns what to open.

    Elastic bodies come as meshes called `<body>_skin` as well, in the formats that hold meshes and in USD, and with
    `surface` fluids as `<body>_surface`. `tell` is called with the index of each frame that is done.
    """
    record, render_scene = run.record(), run.render_scene()
    if surface and not set(formats) & {*MESH_FORMATS, "usd"}:
        raise PliantError(f"surfaces need a format that holds meshes: {', '.join((*MESH_FORMATS, 'usd'))}")
    check_target(run, formats, out)

    def snapshots() -> Iterator[Snapshot]:
        for index in indices:
            snapshot = run.snapshot(index, record)
            if set(formats) & {*MESH_FORMATS, "usd"}:
                snapshot = render_scene.skinned(snapshot)
            if surface:
                for body in render_scene.bodies:
                    if body.fluid:
                        cloud = snapshot.clouds[body.name]
                        planes = render_scene.planes_around(cloud.x, snapshot.poses)
                        snapshot.meshes[f"{body.name}_surface"] = reconstruct(cloud, body.radius, planes)
            yield snapshot

    whole = out / f"{record['scene']}.usdc"
    return write_all(snapshots(), out, formats, render_scene, whole, record["fps"], tell)


def check_target(run: RunFolder, formats: tuple[str, ...], out: Path) -> None:
    """Refuses what cannot be written, or would overwrite the run itself."""
    if out.resolve() == run.frames.resolve():
        raise PliantError(f"{out} holds the frames of the run itself; choose another folder with --out")
    if "usd" in formats and (missing := missing_usd()):
        raise PliantError(f"no USD file can be written: {missing}")


def write_all(snapshots: Iterable[Snapshot], out: Path, formats: tuple[str, ...], render_scene: RenderScene,
              whole: Path, fps: float, tell: Callable[[int], None]) -> list[Path]:  # fmt: skip
    """Writes snapshots into the folder `out` and, if that is among the formats, all into the one USD file `whole`;
    returns what to open."""
    each, series = tuple(name for name in formats if name != "usd"), Series()

    def written() -> Iterator[Snapshot]:
        for snapshot in snapshots:
            write_frame(out, snapshot, each, render_scene, series)
            yield snapshot
            tell(snapshot.index)

    if "usd" not in formats:
        for _ in written():
            pass
        return [out]
    write_usd(whole, written(), fps, render_scene.meshes, render_scene.radii)
    return [out, whole] if each else [whole]


def export_usd(run: RunFolder, record: dict[str, Any], path: Path) -> None:
    """One USD file of a whole run."""
    render_scene = run.render_scene()
    frames = (render_scene.skinned(run.snapshot(entry["frame"], record)) for entry in record["frames"])
    write_usd(path, frames, record["fps"], render_scene.meshes, render_scene.radii)


def pick_frames(text: str, record: dict[str, Any]) -> list[int]:
    """Frames of a run from "12", "0:100", "100:" or "::10", as Python slices them; all if the text is empty."""
    have = [entry["frame"] for entry in record["frames"]]
    if not have:
        raise PliantError("the run has no frames")
    parts = text.split(":") if text else ["", ""]
    try:
        numbers = [int(part) if part.strip() else None for part in parts]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or numbers == [None] or numbers[2:] == [0]:
        raise PliantError(f"--frames must be a number or a range such as 0:100 or ::10, got {text!r}")
    if len(numbers) == 1:
        if numbers[0] not in have:
            raise PliantError(f"the run has no frame {numbers[0]}; it has {have[0]} to {have[-1]}")
        return [numbers[0]]  # type: ignore[list-item]
    chosen = have[slice(*numbers)]
    if not chosen:
        raise PliantError(f"--frames {text} picks none of the frames {have[0]} to {have[-1]}")
    return chosen
