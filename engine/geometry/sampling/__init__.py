"""Fills shapes with particles."""

from pliant.geometry.sampling.regular import estimate_count, sample_regular

__all__ = ["estimate_count", "sample_regular"]
