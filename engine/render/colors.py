"""Numbers to colours, by interpolation between a handful of control points."""

import numpy as np

from pliant.errors import PliantError, unknown_name

# Evenly spaced control points, sRGB in 0..1, of steadily rising lightness so that order survives in grey.
COLOR_MAPS = {
    # deep water to shallows to foam
    "water": ((0.04, 0.22, 0.52), (0.06, 0.37, 0.72), (0.12, 0.56, 0.86), (0.40, 0.78, 0.93), (0.97, 0.99, 1.00)),
    # nine samples of viridis (S. van der Walt, N. Smith, 2015)
    "viridis": (
        (0.267, 0.005, 0.329), (0.279, 0.175, 0.483), (0.230, 0.322, 0.546), (0.173, 0.449, 0.558),
        (0.128, 0.567, 0.551), (0.158, 0.684, 0.502), (0.369, 0.789, 0.383), (0.678, 0.864, 0.190),
        (0.993, 0.906, 0.144),
    ),
    # thick to thin honey
    "honey": ((0.55, 0.27, 0.02), (0.74, 0.40, 0.04), (0.90, 0.56, 0.08), (0.98, 0.74, 0.25), (1.00, 0.91, 0.60)),
    # wet to dry sand
    "sand": ((0.35, 0.22, 0.11), (0.62, 0.43, 0.23), (0.82, 0.64, 0.38), (0.93, 0.82, 0.59), (1.00, 0.96, 0.86)),
}  # fmt: skip


def colormap(
    values: np.ndarray, low: float | None = None, high: float | None = None, name: str = "water"
) -> np.ndarray:
    """Colours (n, 3) in 0..1 of `values` (n,), from the first colour at `low` to the last at `high`.

    Bounds left out are those of the values: right for one picture, but a film needs them fixed or it flickers.
    Values outside take the end colours; those that are not numbers take the first.
    """
    if name not in COLOR_MAPS:
        raise PliantError(unknown_name("colour map", name, COLOR_MAPS))
    values = np.asarray(values, np.float64)
    finite = values[np.isfinite(values)]
    low = finite.min(initial=np.inf) if low is None else low
    high = finite.max(initial=-np.inf) if high is None else high
    span = high - low
    t = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / span if span > 0 else np.zeros(values.shape)
    points = np.array(COLOR_MAPS[name])
    stops = np.linspace(0.0, 1.0, len(points))
    return np.stack([np.interp(t, stops, channel) for channel in points.T], axis=-1).astype(np.float32)
