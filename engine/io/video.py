"""Films: pictures into an H.264 file that plays everywhere, through the ffmpeg that comes with imageio-ffmpeg."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pliant.errors import PliantError

SLOWEST, FASTEST = 0.5, 240.0  # frames a second that players cope with
QUALITY = 18  # constant rate factor of x264: 18 is visually lossless


def write_video(path: str | os.PathLike, frames: Iterable[Any] | str | os.PathLike, fps: float = 30.0) -> int:
    """Writes pictures into an .mp4 file, whole or not at all, and returns how many there were.

    `frames` are PNG files in their order, a folder with frame_0000.png and so on, or arrays (height, width, 3) uint8,
    first row on top, all of one size; `fps`
    is frames a second, 0.5 to 240. H.264 with 4:2:0 colours, which every player knows, needs even sides: of an odd one
    the last row or column is left out.
    """
    path = Path(path)
    if path.suffix.lower() != ".mp4":
        raise PliantError(f"a film needs a name that ends in .mp4, got {path}.")
    if isinstance(fps, bool) or not isinstance(fps, (int, float, np.number)) or not SLOWEST <= fps <= FASTEST:
        raise PliantError(f"fps must be in [{SLOWEST:g}, {FASTEST:g}], got {fps!r}.")
    if isinstance(frames, (str, os.PathLike)):
        frames = sorted(Path(frames).glob("frame_*.png"), key=lambda picture: (len(picture.name), picture.name))
    pictures = _arrays(frames)
    first = next(pictures, None)
    if first is None:
        raise PliantError(f"there are no pictures to make {path} of.")
    height, width = first.shape[0] // 2 * 2, first.shape[1] // 2 * 2
    if not height or not width:
        raise PliantError(f"a film needs pictures of at least 2 x 2 pixels, got {first.shape[1]} x {first.shape[0]}.")
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.part.mp4")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        count = _encode(temporary, first, pictures, (width, height), float(fps))
        os.replace(temporary, path)
    except OSError as error:
        raise PliantError(f"cannot write {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return count


def _encode(path: Path, first: np.ndarray, others: Iterator[np.ndarray], size: tuple[int, int], fps: float) -> int:
    """Pipes raw pictures into ffmpeg, which writes `path`."""
    width, height = size
    shape, count = first.shape, 0
    command = [
        _ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pixel_format", "rgb24",
        "-video_size", f"{width}x{height}", "-framerate", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264",
        "-preset", "medium", "-crf", str(QUALITY), "-vf", "scale=out_color_matrix=bt709", "-pix_fmt", "yuv420p",
        "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-movflags", "+faststart",
        str(path),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
        assert process.stdin is not None
        try:
            picture: np.ndarray | None = first
            while picture is not None:
                if picture.shape != shape:
                    raise PliantError(f"the pictures of a film must be of one size, got {shape[1]} x {shape[0]} and "
                                      f"{picture.shape[1]} x {picture.shape[0]}.")  # fmt: skip
                process.stdin.write(np.ascontiguousarray(picture[:height, :width]).data)
                count += 1
                picture = next(others, None)
            process.stdin.close()
        except BrokenPipeError:
            pass  # ffmpeg has given up, and says below why
        except BaseException:
            process.kill()
            raise
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.wait()
        if process.returncode != 0:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise PliantError(f"ffmpeg could not write the film: {lines[-1] if lines else 'it says nothing'}")
    return count


def _ffmpeg() -> str:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise PliantError("films need the package imageio-ffmpeg; pip install imageio-ffmpeg.") from error
    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise PliantError(f"films need ffmpeg, and none was found: {str(error).splitlines()[0]}") from error


def _arrays(frames: Iterable[Any]) -> Iterator[np.ndarray]:
    """Each picture as (height, width, 3) uint8."""
    for frame in frames:
        if isinstance(frame, (str, os.PathLike)):
            frame = _read(Path(frame))
        array = np.asarray(frame)
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
            raise PliantError(f"a picture of a film must be uint8 of shape (h, w, 3), got {array.dtype} {array.shape}.")
        yield array


def _read(path: Path) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError as error:
        raise PliantError(f"{path} is not a picture, or it is damaged.") from error
    except OSError as error:
        raise PliantError(f"cannot read {path}: {error.strerror or 'it is damaged'}.") from error
