"""`python -m pliant` is the command line `pliant`."""

from pliant.commands.cli import main

main()
