"""The picture of a quality report: the mesh, its fillings coloured by density, cut open, and histograms."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.console import say
from pliant.geometry import Quality, Shape
from pliant.geometry.quality import BINS, RANGES
from pliant.geometry.sampling import Sampling
from pliant.io.files import atomic_write
from pliant.render import Picture, Points, Renderer, Surface, available, colormap
from pliant.render.compose import framed
from pliant.run.inspect import BLUE, GREY, INK, STYLE

REPORT_PICTURE = "report.png"
DPI = 100
WIDTH, TOP, ROW, HEAD = 19.0, 5.2, 3.6, 1.05  # [inches]: the whole, the mesh and the figures, a filling, the title
PIXELS = 900  # sides of the pictures in it, before their empty margins are cut off
MARGIN = 8  # pixels of these that are kept
PALE = 250  # brightness of an empty pixel, of 255
MAP, LOW, HIGH = "coolwarm", 0.7, 1.3  # colours of the density; grey is 1
SMALL = "#555555"  # colour of small print
CLAY = (0.78, 0.74, 0.68)
WHITE = (1.0, 1.0, 1.0)
BALL = 1.05  # radius of drawn particles, in their own: a little overlap reads as one body
SHADOW = 0.35
LATTICE = "regular"  # the sampling that is not relaxed
TITLES = {"density": "Density", "nearest": "Nearest neighbor", "neighbors": "Neighbors"}
LABELS = {"density": "of the material's own", "nearest": "spacings", "neighbors": "within the support"}
IDEAL = {"density": 1.0, "nearest": 1.0, "neighbors": 26.0}  # of a cubic lattice, marked by a line


def missing_plots() -> str:
    """One sentence if there is nothing to draw the report with, otherwise empty."""
    if find_spec("matplotlib") is None:
        return "--report draws with matplotlib, which is not installed; pip install matplotlib, or leave --report out"
    return ""


Fillings = dict[str, tuple[Sampling, Quality]]  # by the name of the sampling


def draw(path: Path, name: str, shape: Shape, fillings: Fillings) -> None:
    """The fillings of a shape and how good they are, into a PNG file."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # without pyplot: no window, no global state
    from matplotlib.figure import Figure

    images = render(shape, fillings)
    height = HEAD + TOP + ROW * len(fillings)
    with mpl.rc_context(STYLE | {"font.size": 11, "axes.titlesize": 13}):
        figure = Figure(figsize=(WIDTH, height), dpi=DPI)
        FigureCanvasAgg(figure)
        _heading(figure, height, name, shape)
        top, bottom, left = 1 - HEAD / height, 1 - (HEAD + TOP) / height, TOP / WIDTH if images else 0.0
        if images:
            _image(figure, (0.01, bottom + 0.02 * top, left - 0.02, top - bottom - 0.02 * top), images["mesh"], "")
        qualities = {method: quality for method, (_, quality) in fillings.items()}
        _figures(figure, (left + 0.015, bottom, 1 - left - 0.02, top - bottom), qualities)
        for k, (method, (sampling, quality)) in enumerate(fillings.items()):
            low = bottom - ROW / height * (k + 1)
            _row(figure, low, ROW / height, f"{_name(method)} ({effort(sampling)})", method, quality, images)
        with atomic_write(path) as file:
            figure.savefig(file, format="png")


def _heading(figure: Any, height: float, name: str, shape: Shape) -> None:
    extent = " x ".join(f"{side:.3g}" for side in np.ptp(shape.bounds(), axis=0))
    facts = f"{len(shape.triangles()[1]):,} triangles   ·   {extent} m   ·   {shape.volume():.4g} m³"
    figure.text(0.015, 1 - 0.2 / height, f"{name} filled with particles", size=20, weight="bold", va="top")
    figure.text(0.015, 1 - 0.62 / height, facts, size=13, color=SMALL, va="top")


def _name(method: str) -> str:
    return method.replace("_", " ")


def effort(sampling: Sampling) -> str:
    """What a filling took; a relaxed one that took no rounds was kept from an earlier call."""
    if sampling.iterations:
        return f"{sampling.iterations} iterations, {sampling.seconds:.1f} s"
    return f"{sampling.seconds:.1f} s" if sampling.method == LATTICE else "kept from an earlier call"


# --- pictures ---------------------------------------------------------------------------------------


def render(shape: Shape, fillings: Fillings) -> dict[str, np.ndarray]:
    """The mesh as "mesh", and each filling whole as "fitted" and cut open as "fitted cut"; none without Vulkan."""
    if available():
        say(f"The report has no pictures of the particles: {available()}")
        return {}
    camera = framed(shape.bounds(), 1.0)
    usual: dict[str, Any] = {"camera": camera, "background": WHITE, "horizon": WHITE, "shadow": SHADOW}
    renderer = Renderer(PIXELS, PIXELS)
    images = {"mesh": renderer.render(Picture(surfaces=[Surface(*shape.triangles(), CLAY)], **usual))}
    towards = np.subtract(camera.position, camera.target) * (1, 0, 1)
    for method, (sampling, quality) in fillings.items():
        colors = colormap(quality.values["density"], LOW, HIGH, MAP)
        depth = sampling.x @ towards
        for suffix, kept in (("", np.full(len(depth), True)), (" cut", depth <= np.median(depth))):
            group = Points(sampling.x[kept], 0.5 * BALL * sampling.spacing, colors[kept])
            images[method + suffix] = renderer.render(Picture(points=[group], **usual))
    renderer.close()
    return _cropped(images)


def _cropped(images: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same part of all pictures, without the margins where none of them shows anything."""
    drawn = np.any([image.min(axis=2) < PALE for image in images.values()], axis=0)
    cuts = []
    for axis in (1, 0):
        used = np.flatnonzero(drawn.any(axis=axis))
        cuts.append(slice(max(used[0] - MARGIN, 0), used[-1] + MARGIN) if len(used) else slice(None))
    return {name: image[cuts[0], cuts[1]] for name, image in images.items()}


def _image(figure: Any, place: tuple[float, float, float, float], image: np.ndarray, title: str) -> None:
    axes = figure.add_axes(place)
    axes.imshow(image, interpolation="lanczos")
    axes.set_axis_off()
    axes.set_title(title, loc="center", size=12, weight="normal")


# --- figures and histograms -------------------------------------------------------------------------


def _figures(figure: Any, place: tuple[float, float, float, float], qualities: dict[str, Quality]) -> None:
    """The table of figures, a column for each filling."""
    axes = figure.add_axes(place)
    axes.set_axis_off()
    rows = [quality.rows() for quality in qualities.values()]
    columns = 0.30 + 0.16 * np.arange(len(rows))
    line = 1.0 / (len(rows[0]) + 1.5)
    for column, method in zip(columns, qualities, strict=True):
        axes.text(column, 1.0, _name(method), ha="right", va="top", weight="bold", size=13)
    for k, same in enumerate(zip(*rows, strict=True)):
        height, part = 1.0 - line * (k + 1.4), same[0][0].startswith(" ")
        axes.text(0.015 if part else 0.0, height, same[0][0].strip(), va="top", color=SMALL if part else INK)
        for column, (_, value, _) in zip(columns, same, strict=True):
            axes.text(column, height, value, ha="right", va="top")
        axes.text(columns[-1] + 0.03, height, same[0][2], va="top", color=GREY)
    axes.set(xlim=(0, 1), ylim=(0, 1))


def _row(figure: Any, low: float, height: float, title: str, method: str, quality: Quality,
         images: dict[str, np.ndarray]) -> None:  # fmt: skip
    """A filling: whole, cut open, and its histograms."""
    left = 0.01
    figure.text(left, low + 0.99 * height, title, size=13, weight="bold", va="top")
    if images:
        for suffix in ("", " cut"):
            _image(figure, (left, low + 0.02 * height, ROW / WIDTH, 0.86 * height), images[method + suffix],
                   "cut open" if suffix else "")  # fmt: skip
            left += ROW / WIDTH + 0.005
        _color_bar(figure, (left + 0.012, low + 0.17 * height, 0.006, 0.64 * height))
        left += 0.04
    step = (1 - left - 0.01) / len(TITLES)
    for k, name in enumerate(TITLES):
        axes = figure.add_axes((left + k * step + 0.03, low + 0.17 * height, step - 0.04, 0.64 * height))
        _histogram(axes, name, quality)


def _histogram(axes: Any, name: str, quality: Quality) -> None:
    """Shares of the particles by value; what lies beyond the ends is counted there."""
    ends = RANGES[name]
    values = quality.values[name][np.isfinite(quality.values[name])]
    share = np.full(len(values), 100.0 / max(len(values), 1))
    axes.hist(np.clip(values, *ends), BINS, range=ends, weights=share, color=BLUE)
    if name == "density":
        corrected = np.clip(quality.values["corrected"], *ends)
        axes.hist(corrected, BINS, range=ends, weights=share, histtype="step", color=INK, linewidth=1.4)
        axes.text(0.02, 0.97, "blue: as it is\nblack: surface-\ncorrected", transform=axes.transAxes, va="top", size=10,
                  color=SMALL)  # fmt: skip
    axes.axvline(IDEAL[name], color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    axes.set(xlim=ends, title=TITLES[name], xlabel=LABELS[name], ylabel="% of the particles")


def _color_bar(figure: Any, place: tuple[float, float, float, float]) -> None:
    axes = figure.add_axes(place)
    shades = colormap(np.linspace(HIGH, LOW, 256), LOW, HIGH, MAP)[:, None]
    axes.imshow(shades, aspect="auto", extent=(0, 1, LOW, HIGH))
    axes.set(xticks=[], yticks=[LOW, 1.0, HIGH])
    axes.set_ylabel("density", size=9, color=SMALL, labelpad=4)
    axes.yaxis.tick_right()
    axes.tick_params(length=2, labelsize=9)
    axes.grid(False)
