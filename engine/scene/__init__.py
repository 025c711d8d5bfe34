"""What there is before time begins: the scene, its checks, its bodies filled with particles, its form in files."""
