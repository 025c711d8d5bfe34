"""Words to the user on the terminal's error stream, so that standard output stays for data."""

from rich.console import Console

console = Console(stderr=True, highlight=False)
