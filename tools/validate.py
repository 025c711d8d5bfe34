"""`pliant validate`: runs known flows and compares what comes out with closed forms, measurements and invariants.

The cases stand in `pliant.tools.validation`, each a function whose docstring names its source and set-up. A number
without a target is only reported. With --quick the resolutions are those of the tests.
"""

import argparse
import ast
import dataclasses
import importlib
import json
import pkgutil
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pliant.core.console import console
from pliant.errors import PliantError, unknown_name
from pliant.tools import validation
from pliant.tools.validation import CASES, Result

PLAIN_WIDTH = 140  # of tables in files and pipes


def load_cases() -> None:
    """Imports every module of cases; they register themselves."""
    for module in pkgutil.iter_modules(validation.__path__):
        importlib.import_module(f"{validation.__name__}.{module.name}")


def case_names() -> list[str]:
    """Names of the cases, in the order in which they are run: read from their files, which `--help` need not import."""
    files = [Path(next(iter(validation.__path__))) / f"{m.name}.py" for m in pkgutil.iter_modules(validation.__path__)]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if any(ast.unparse(mark) == "case" for mark in node.decorator_list)]


def run_cases(names: list[str], quick: bool) -> dict[str, list[Result]]:
    """Results of each case. One that breaks down counts as a target missed."""
    results = {}
    for name in names:
        start = time.perf_counter()
        console.print(f"{name} ...")
        try:
            results[name] = CASES[name](quick)
        except PliantError as error:
            console.print(f"  {error}")
            results[name] = [Result("ran to the end", 0.0, 1.0, 1.0, 0.0)]
        console.print(f"  {time.perf_counter() - start:.0f} s")
    return results


def table_of(results: dict[str, list[Result]]) -> Table:
    """One line for each number: case, measured, reference, error, target, verdict."""
    table = Table("case", "quantity", title="Validation")
    for header in ("measured", "reference", "error", "target"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("verdict")
    for name, rows in results.items():
        for k, r in enumerate(rows):
            unit = f" {r.unit}" if r.unit else ""
            values = [f"{value:.4g}{unit}" for value in (r.measured, r.reference)]
            target, last = "" if r.target is None else share(r.target), k == len(rows) - 1
            texts = [name if k == 0 else "", r.quantity, *values, share(r.error), target, verdict(r)]
            table.add_row(*texts, end_section=last)
    return table


def share(value: float) -> str:
    """As a percentage, where that can be read."""
    return f"{100 * value:.2f} %" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"


def verdict(result: Result) -> str:
    if result.target is None:
        return "reported"
    return "[green]met[/]" if result.met else "[red]missed[/]"


def as_json(results: dict[str, list[Result]], quick: bool) -> str:
    rows = {name: [dataclasses.asdict(r) | {"met": r.met} for r in many] for name, many in results.items()}
    return json.dumps({"quick": quick, "cases": rows}, indent=1) + "\n"


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    names = list(dict.fromkeys((*case_names(), *CASES)))
    parser = argparse.ArgumentParser(prog="pliant validate", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of {', '.join(names)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="low resolutions, about a minute for all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    options = parser.parse_args(argv)
    for name in options.cases:
        if name not in names:
            parser.error(unknown_name("case", name, names))
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    options.cases = list(dict.fromkeys(options.cases)) or names
    return options


def main(argv: list[str]) -> int:
    """`pliant validate [CASE ...] [--quick] [--json FILE]`; returns 0 when all targets are met, 1 otherwise."""
    options = parse(argv)
    load_cases()
    results = run_cases(options.cases, options.quick)
    out = Console(highlight=False)
    if not out.is_terminal:
        out = Console(highlight=False, width=PLAIN_WIDTH)
    out.print(table_of(results))
    every = [r for rows in results.values() for r in rows if r.target is not None]
    missed = [r for r in every if not r.met]
    out.print(f"{len(every) - len(missed)} of {len(every)} targets met.")
    if options.json:
        options.json.write_text(as_json(results, options.quick))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
