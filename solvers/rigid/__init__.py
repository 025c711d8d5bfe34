"""Rigid bodies: what moves and turns as a whole, its contacts and its joints."""
