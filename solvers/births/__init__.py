"""Particles come and go: nozzles from which a body flows, bodies that appear later, and drains."""
