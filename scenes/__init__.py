"""Ready scenes: one file each with `build(**options) -> Scene` and `check(sim)`."""
