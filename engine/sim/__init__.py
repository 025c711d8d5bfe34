"""A running scene: the clock, the guard, views, snapshots, checkpoints and statistics."""
