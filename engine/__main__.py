"""`python -m pliant` is the command line `pliant`."""

from pliant.cli import main

main()
