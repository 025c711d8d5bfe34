"""`pliant bench history`: how many times as fast as SPlisHSPlasH each version was, whole steps.

The ratios of results that `pliant bench fluid`, `elastic` and `small` wrote with `--json`, time of the reference over
ours, are appended with `--record`. They stand in `bench_history.json` next to this file, which is part of the project:
commit it when it has grown.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.table import Table

import pliant
from pliant.errors import PliantError
from pliant.tools import bench

FILE = Path(__file__).with_name("bench_history.json")


def ratios_of(result: Any) -> dict[str, float]:
    """Reference over ours, by what was measured, from what `--json` has written. Empty if it ran alone."""
    settings, found = result["settings"], dict[str, Any]()
    for row in result["results"]:
        if "kind" in row:  # small
            found |= {f"small {row['kind']}, {row['particles']:g}": row.get("ratio")}
        elif "ratios" in row:  # elastic, where ours stands above
            shares = {method: ratio.get("total") for method, ratio in row["ratios"].items()}
            found |= {f"elastic {method}, {row['size']}": 1 / share for method, share in shares.items() if share}
        else:
            found |= {f"{settings['solver']} {100 * settings['error']:g} %, {row['size']}": row.get("ratio")}
    return {name: round(ratio, 3) for name, ratio in found.items() if ratio}


def read_ratios(path: Path) -> dict[str, float]:
    """The ratios in a file that `--json` has written."""
    try:
        found = ratios_of(json.loads(path.read_text()))
    except OSError as error:
        raise PliantError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PliantError(f"{path} is not a result of pliant bench fluid, elastic or small with --json") from error
    if not found:
        raise PliantError(f"{path} has no ratios: run the benchmark with --reference PYTHON")
    return found


def record(paths: list[Path], machine: str, file: Path) -> None:
    """Appends the ratios of all these results as one entry."""
    ratios = {name: ratio for path in paths for name, ratio in read_ratios(path).items()}
    entry = {"version": pliant.__version__, "date": time.strftime("%Y-%m-%d"), "machine": machine, "ratios": ratios}
    file.write_text(json.dumps([*read_history(file), entry], indent=1) + "\n")


def read_history(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text()) if file.exists() else []


def table(history: list[dict[str, Any]]) -> Table:
    """A line for what was measured, a column for each entry."""
    made = Table("", title="Time of SPlisHSPlasH / time of Pliant, whole steps")
    for entry in history:
        made.add_column(f"{entry['version']}\n{entry['date']}\n{entry['machine']}", justify="right")
    for name in dict.fromkeys(name for entry in history for name in entry["ratios"]):
        made.add_row(name, *(f"{entry['ratios'][name]:.2g}" if name in entry["ratios"] else "" for entry in history))
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pliant bench history", description=__doc__.split("\n\n")[1])
    parser.add_argument("--record", nargs="+", type=Path, metavar="JSON", default=[], help="results to append")
    parser.add_argument("--machine", default=f"{os.cpu_count()} cores", help="on which they were measured, in words")
    parser.add_argument("--file", type=Path, default=FILE, help="the history; the project's own if not given")
    return parser.parse_args(argv)


def work(options: argparse.Namespace) -> None:
    """Records what was given, and prints the table."""
    if options.record:
        record(options.record, options.machine, options.file)
    options.json = None
    bench.show(read_history(options.file), (table,), options)


def main(argv: list[str]) -> int:
    """`pliant bench history [options]`; returns the exit status."""
    return bench.command(argv, dict, lambda: work(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
