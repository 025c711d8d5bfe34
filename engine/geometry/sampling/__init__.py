"""Fills shapes with particles."""

from pliant.geometry.sampling.regular import estimate_count, sample_regular
from pliant.geometry.sampling.sampler import METHODS, Sampling, sample

__all__ = ["METHODS", "Sampling", "estimate_count", "sample", "sample_regular"]
