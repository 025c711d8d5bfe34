"""Surface meshes that follow the particles of elastic bodies."""
