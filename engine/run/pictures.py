"""Pictures and a video of a run, from its files."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pliant.errors import PliantError
from pliant.io.png import write_png
from pliant.io.video import FASTEST, SLOWEST, write_video
from pliant.render import Look
from pliant.run.drawing import draw_frames
from pliant.run.folder import RunFolder

SCENES_OWN: Any = object()  # the camera that the scene has set


def draw_run(
    run: RunFolder,
    indices: Sequence[int],
    folder: Path,
    look: dict[str, Any] | None = None,
    size: tuple[int, int] = (1280, 720),
    camera: Any = SCENES_OWN,
    workers: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
    failed: Callable[[int, PliantError], Any] | None = None,
) -> list[Path]:
    """Draws these frames of a run into a folder, several at a time; returns the pictures in their order.

    `look` holds what differs from the scene's own look, `camera` is another than the scene's, or None to frame it;
    `failed(k, error)`, if given, is told of each picture that could not be drawn.
    """
    render_scene = run.render_scene()
    changed = Look(**((render_scene.look or Look()).values() | (look or {})))
    if camera is not SCENES_OWN:
        render_scene = dataclasses.replace(render_scene, camera=camera)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PliantError(f"cannot write into {folder}: {error.strerror or error}") from error
    return draw_frames(render_scene, Frames(run.path), indices, folder, changed, size, workers,
                       progress=progress, failed=failed)  # fmt: skip


@dataclasses.dataclass
class Frames:
    """Loads frames of a run; travels to other processes as the name of its folder."""

    path: Path

    def __call__(self, index: int) -> Any:
        return RunFolder(self.path).snapshot(index)


def film(
    path: Path, pictures: Sequence[Path], record: dict[str, Any], fps: float | None = None, stride: int = 1
) -> None:
    """A video of pictures of a run, in real time unless `fps` is given. `stride` is 10 if it is every tenth frame."""
    write_video(path, pictures, fps or min(max(record["fps"] / stride, SLOWEST), FASTEST))


def contact_sheet(path: Path, pictures: Sequence[Path], columns: int = 3, rows: int = 3, width: int = 1920) -> None:
    """One picture of `columns` x `rows` small ones, spread evenly over these; `width` is its own [pixels]."""
    chosen = [pictures[k] for k in sorted(set(np.linspace(0, len(pictures) - 1, columns * rows).round().astype(int)))]
    columns = min(columns, len(chosen))
    images = [Image.open(picture).convert("RGB") for picture in chosen]
    small = width // columns, round(width / columns * images[0].height / images[0].width)
    sheet = Image.new("RGB", (small[0] * columns, small[1] * -(-len(images) // columns)), "white")
    for k, image in enumerate(images):
        row, column = divmod(k, columns)
        sheet.paste(image.resize(small, Image.Resampling.LANCZOS), (small[0] * column, small[1] * row))
    write_png(path, np.asarray(sheet))
