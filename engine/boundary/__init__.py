"""Walls: volume maps, distance maps, and their motion."""
