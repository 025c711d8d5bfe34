"""Probes: gauges in the flow and on walls, and what they record."""
