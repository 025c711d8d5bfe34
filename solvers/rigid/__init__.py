"""Rigid bodies: their contacts, joints and motion."""
