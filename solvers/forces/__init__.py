"""Forces that act beside pressure and elasticity."""
