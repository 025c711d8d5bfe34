"""Solvers: each stage of the time step, in a file of its own."""
