"""Robots: mechanisms that MuJoCo moves, whose links are walls to everything else."""
