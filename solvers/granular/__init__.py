"""Sand: friction, and the grains that are shown."""
