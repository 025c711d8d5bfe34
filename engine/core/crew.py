"""Kernels whose threads stay together: the same kernel, written so that one launch wakes each thread once.

Taichi wakes its threads for every loop of a kernel and waits for them after each, which takes 20 to 90 microseconds,
and hands each of them whatever half of the loop it asks for first. So with two loops in turn, what one thread has
written is what the other reads next, over a bus that is ten times slower than its own cache.

Here a kernel becomes one loop with a round for each thread (`core.team`), in which they go through its loops as passes.
Elements are cut into shares, the same in every kernel; each thread takes its own first, then what is left of others'.

    for i in range(n):              for turn in range(rounds(workers)):
        body                            me = member(turn, workers)
                            ->          share = next_share(...)
                                        while share >= 0:
                                            for i in range(begin_of(share, ...), begin_of(share + 1, ...)):
                                                body
                                            ...

What stands beside the loops and sets numbers is done by each thread; what writes to arrays, and loops that Taichi is
told to do serially, by the one who comes first. Kernels that are made of anything else stay as they are.
"""

import ast
from collections.abc import Iterable

SHARED = """
_crew_first, _crew_end = FIRST, END
_crew_share = _crew_next_share(PASS, _crew_me, _crew_workers, _crew_shares, _crew_desk)
while _crew_share >= 0:
    _crew_from = _crew_begin_of(_crew_share, _crew_shares, _crew_first, _crew_end)
    for INDEX in range(_crew_from, _crew_begin_of(_crew_share + 1, _crew_shares, _crew_first, _crew_end)):
        BODY
    _crew_finish(PASS, _crew_workers, _crew_desk)
    _crew_share = _crew_next_share(PASS, _crew_me, _crew_workers, _crew_shares, _crew_desk)
_crew_wait_for(PASS, _crew_shares, _crew_workers, _crew_desk)
"""
SINGLE = """
_crew_share = _crew_next_share(PASS, _crew_me, _crew_workers, 1, _crew_desk)
if _crew_share >= 0:
    BODY
    _crew_finish(PASS, _crew_workers, _crew_desk)
_crew_wait_for(PASS, 1, _crew_workers, _crew_desk)
"""
FRAME = """
for _crew_turn in range(_crew_rounds(_crew_workers)):
    _crew_me = _crew_member(_crew_turn, _crew_workers)
    if _crew_me >= 0:
        _crew_shares = _crew_shares_of(_crew_workers)
        BODY
"""
PARAMETERS = ("_crew_desk", "_crew_workers")  # beside those of the kernel


class _UnknownError(Exception):
    """Something in a kernel that threads cannot do together."""


def rewrite(kernel: ast.FunctionDef) -> int:
    """Rewrites the kernel and returns how many passes it has; none if it stays as it is."""
    try:
        body, passes = _passes(kernel.body)
    except _UnknownError:
        return 0
    if passes:
        kernel.body = _fill(FRAME, kernel, BODY=body)
        kernel.args.args += [ast.arg(name) for name in PARAMETERS]
        ast.fix_missing_locations(kernel)
    return passes


def _passes(body: list[ast.stmt], passes: int = 0) -> tuple[list[ast.stmt], int]:
    """The statements of a kernel as passes, and how many there are with those before."""
    result: list[ast.stmt] = []
    common: set[str] = set()  # numbers that stand beside the loops
    serial = False
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        if _is_call(statement, "ti.loop_config"):
            serial = any(word.arg == "serialize" for word in statement.value.keywords)  # type: ignore[attr-defined]
            continue
        if isinstance(statement, ast.Assign) and all(map(_is_name, statement.targets)):
            names = {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            if names & common or any(isinstance(node, ast.Subscript) for node in ast.walk(statement.value)):
                raise _UnknownError  # others may have gone on, and changed it
            common |= names
            result.append(statement)
            continue
        if isinstance(statement, ast.If) and ast.unparse(statement.test).startswith("ti.static("):
            statement.body, passes = _passes(statement.body, passes)
            statement.orelse, passes = _passes(statement.orelse, passes)
            result.append(statement)
            continue
        if _is_range(statement) and not serial:
            result += _shared(statement, passes)  # type: ignore[arg-type]
        elif _is_range(statement) or isinstance(statement, ast.Assign | ast.AugAssign):
            result += _fill(SINGLE, statement, PASS=passes, BODY=[statement])
        else:
            raise _UnknownError
        if common & set(_assigned([statement])):
            raise _UnknownError
        passes, serial = passes + 1, False
    return result, passes


def _shared(loop: ast.For, number: int) -> list[ast.stmt]:
    """A loop whose rounds threads share."""
    bounds = loop.iter.args  # type: ignore[attr-defined]
    first, end = bounds if len(bounds) == 2 else (ast.Constant(0), bounds[0])
    body = [_Plain(loop.target.id).visit(statement) for statement in loop.body]  # type: ignore[attr-defined]
    return _fill(SHARED, loop, PASS=number, FIRST=first, END=end, INDEX=loop.target, BODY=body)


class _Plain(ast.NodeTransformer):
    """`a[i] += b` for the index i of the loop: only one thread has it, but Taichi would take it for shared."""

    def __init__(self, index: str):
        self.index = index

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target = node.target
        if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name)):
            return node
        if target.slice.id != self.index:
            return node
        before = ast.Subscript(target.value, target.slice, ast.Load())
        return ast.copy_location(ast.Assign([target], ast.BinOp(before, node.op, node.value)), node)


def _fill(pattern: str, place: ast.AST, BODY: list[ast.stmt], PASS: int = 0, **parts: ast.AST) -> list[ast.stmt]:
    """The pattern with these statements, the number of the pass, and expressions. Names that are assigned in it are of
    this pass alone (`_crew_share` of the second is `_crew_share1`)."""
    tree = ast.parse(pattern)

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id == "PASS":
                return ast.Constant(PASS)
            if node.id in ("_crew_first", "_crew_end", "_crew_share", "_crew_from"):
                node.id += str(PASS)
            return parts.get(node.id, node)

        def visit_Expr(self, node: ast.Expr) -> object:
            if isinstance(node.value, ast.Name) and node.value.id == "BODY":
                return BODY
            return self.generic_visit(node)

    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = place.lineno  # type: ignore[attr-defined]
    return Fill().visit(tree).body


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == name


def _is_range(node: ast.AST) -> bool:
    """Whether it is a loop over numbers, and not yet one that threads do together."""
    if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)):
        return False
    bounds = node.iter.args
    return ast.unparse(node.iter.func) == "range" and len(bounds) < 3 and "team.rounds" not in ast.unparse(node.iter)


def _is_name(target: ast.AST) -> bool:
    return isinstance(target, ast.Name) or (isinstance(target, ast.Tuple) and all(map(_is_name, target.elts)))


def _assigned(body: Iterable[ast.AST]) -> Iterable[str]:
    """Names that statements assign to."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
