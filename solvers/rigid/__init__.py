"""Rigid bodies: what touches what, contacts, friction, joints."""
