"""Numbers to colours, by interpolation between a handful of control points."""

import functools

import numpy as np

from pliant.errors import PliantError, unknown_name

# Evenly spaced control points, sRGB in 0..1; but for the diverging ones, of steadily rising lightness so that order
# survives in grey.
COLOR_MAPS = {
    # deep water to shallows to foam
    "water": ((0.04, 0.22, 0.52), (0.06, 0.37, 0.72), (0.12, 0.56, 0.86), (0.40, 0.78, 0.93), (0.97, 0.99, 1.00)),
    # nine samples of viridis (S. van der Walt, N. Smith, 2015)
    "viridis": (
        (0.267, 0.005, 0.329), (0.279, 0.175, 0.483), (0.230, 0.322, 0.546), (0.173, 0.449, 0.558),
        (0.128, 0.567, 0.551), (0.158, 0.684, 0.502), (0.369, 0.789, 0.383), (0.678, 0.864, 0.190),
        (0.993, 0.906, 0.144),
    ),
    # nine samples each of plasma and inferno (S. van der Walt, N. Smith, 2015)
    "plasma": (
        (0.050, 0.030, 0.528), (0.300, 0.010, 0.632), (0.495, 0.012, 0.658), (0.665, 0.139, 0.586),
        (0.798, 0.280, 0.470), (0.902, 0.425, 0.360), (0.973, 0.586, 0.252), (0.993, 0.772, 0.155),
        (0.940, 0.975, 0.131),
    ),
    "inferno": (
        (0.001, 0.000, 0.014), (0.129, 0.047, 0.291), (0.342, 0.062, 0.429), (0.541, 0.135, 0.415),
        (0.736, 0.216, 0.330), (0.894, 0.353, 0.194), (0.978, 0.558, 0.035), (0.975, 0.798, 0.206),
        (0.988, 0.998, 0.645),
    ),
    # nine samples of the blue-red map of K. Moreland, 2009
    "coolwarm": (
        (0.230, 0.299, 0.754), (0.384, 0.510, 0.918), (0.554, 0.690, 0.996), (0.724, 0.815, 0.976),
        (0.867, 0.864, 0.863), (0.960, 0.767, 0.674), (0.957, 0.598, 0.477), (0.865, 0.371, 0.296),
        (0.706, 0.016, 0.150),
    ),
    "grey": ((0.12, 0.12, 0.13), (0.95, 0.95, 0.96)),
    # thick to thin honey
    "honey": ((0.66, 0.34, 0.03), (0.80, 0.45, 0.05), (0.90, 0.56, 0.08), (0.98, 0.74, 0.25), (1.00, 0.91, 0.60)),
    # wet to dry sand
    "sand": ((0.35, 0.22, 0.11), (0.62, 0.43, 0.23), (0.82, 0.64, 0.38), (0.93, 0.82, 0.59), (1.00, 0.96, 0.86)),
}  # fmt: skip
DIVERGING = ("coolwarm",)  # neutral in the middle: for values on both sides of zero
_SHADES = 1024  # finer than the eight bits of a picture can show


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
    finite = values[np.isfinite(values)] if low is None or high is None else values
    low = finite.min(initial=np.inf) if low is None else low
    high = finite.max(initial=-np.inf) if high is None else high
    span = high - low
    if not span > 0:
        return np.tile(_shades(name)[0], (len(values), 1))
    values = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    shade = np.clip((values - low) * ((_SHADES - 1) / span) + 0.5, 0, _SHADES - 1).astype(np.int64)
    return _shades(name)[shade]


@functools.cache
def _shades(name: str) -> np.ndarray:
    points = np.array(COLOR_MAPS[name])
    stops, t = np.linspace(0.0, 1.0, len(points)), np.linspace(0.0, 1.0, _SHADES)
    return np.stack([np.interp(t, stops, channel) for channel in points.T], axis=-1).astype(np.float32)
