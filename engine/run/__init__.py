"""Runs from the command line: plan, folder, frames, pictures, export."""
