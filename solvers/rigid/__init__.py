"""Rigid bodies: what they touch, and how they move."""
