"""Which tests run which lines, told by a call in front of each line: next to nothing slower than the tests themselves."""

from __future__ import annotations

import ast
import builtins
import gc
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Final

from tests.mutants.results import ROOT

_PROBE: Final = "__line_of_a_mutant__"


def replace_functions(file: str, source: str | ast.Module) -> int:
    """Give the functions of a file, in this process, the code that they have in another source; return how many changed."""
    path = str(ROOT / file)
    # As the module was compiled: a changed pragma for annotations would change every function.
    new = _codes(compile(source, path, "exec", dont_inherit=True))
    changed = 0
    gc.unfreeze()  # what is frozen is not listed
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == path:
            code = new.get((one.__code__.co_qualname, one.__code__.co_firstlineno))
            if code is not None and code != one.__code__:
                one.__code__ = code
                changed += 1
    return changed


def watch(file: str, lines: Iterable[int], tell: Callable[[str, int], object]) -> None:
    """Have a function told of a file and line whenever the line is about to run.

    Args:
        file: From the root.
        lines: Inside of functions.
        tell: The same for all files that are watched in a process.
    """
    setattr(builtins, _PROBE, tell)
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for line in lines:
        blocks = [block for node in ast.walk(tree) for block in _blocks(node)]
        inside = [(block, one) for block in blocks for one in block if one.lineno <= line <= (one.end_lineno or 0)]
        block, statement = max(inside, key=lambda found: (found[1].lineno, -(found[1].end_lineno or 0)))
        probe = ast.parse(f"{_PROBE}({file!r}, {line})").body[0]
        for node in ast.walk(probe):
            ast.copy_location(node, statement)
        block.insert(block.index(statement), probe)
    replace_functions(file, tree)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list)]


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found = {(code.co_qualname, code.co_firstlineno): code}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _codes(inner)
    return found
