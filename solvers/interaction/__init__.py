"""Hands: bodies that are grabbed, matter that is stirred."""
