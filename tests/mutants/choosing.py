"""Mutants that nobody thought of: cosmic-ray's operators and one of our own, at places that a seed chooses.

One mutant a line at most, and every operator as often as the others where it can, or most would be numbers one too high.
"""

from __future__ import annotations

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cosmic_ray import plugins
from cosmic_ray.ast import get_ast
from cosmic_ray.mutating import mutate_code
from parso.python.tree import Name

from tests.mutants.results import ROOT

GROUPS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "core": (45, ("jmsapi/_core/*.py", "jmsapi/_core/acknowledgement/*.py", "jmsapi/_core/message/*.py")),
    "in-process broker": (35, ("providers/inproc/jmsapi_inproc/*.py",)),
    "listeners": (25, ("jmsapi/listener/*.py",)),
    "selector": (25, ("selector/jmsapi_selector/*.py",)),
    "STOMP": (30, ("providers/stomp/jmsapi_stomp/*.py", "providers/stomp/jmsapi_stomp/*/*.py")),
}
"""How many mutants of which files."""
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "a comparison turned round": ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is", "Lt_GtE", "GtE_Lt"),
    "a border moved": ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt"),
    "a sum turned round": ("Add_Sub", "Sub_Add", "Mul_Add"),
    "a condition turned round": ("AddNot", "Delete_Not"),
    "True and False": ("ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    "and and or": ("ReplaceAndWithOr", "ReplaceOrWithAnd"),
    "a number one off": ("NumberReplacer",),
    "a loop left or not": ("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
    "a call left out": (),
}

_OF_BROKERS: Final = ("artemis.py", "classic.py", "rabbitmq.py")
"""What only a broker shows; the tests that try mutants have none."""
_NOT_HERE: Final = ("def ", "async def ", "class ", "from ", "import ", "@", "_log.debug(")


@dataclass(frozen=True)
class Chosen:
    """A mutant: in a file, the lines that become others."""

    group: str
    file: str
    line: int
    before: str
    after: str
    source: str


class CallLeftOut:
    """In place of a statement that only calls something: ``pass``. cosmic-ray has no such operator."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Give the place of a statement that is a call."""
        if node.type == "atom_expr" and node.parent.type == "simple_stmt" and node.children[-1].type == "trailer":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return what stands in its place."""
        return Name("pass", node.start_pos, prefix=node.get_first_leaf().prefix)


def _operators(kind: str) -> list[Any]:
    if not _KINDS[kind]:
        return [CallLeftOut()]
    names = [name for name in plugins.operator_names() if name.endswith(_KINDS[kind])]
    return [plugins.get_operator(name)() for name in names]


def _nodes(node: Any) -> Iterator[Any]:
    # In the order in which cosmic-ray counts occurrences: children only of what is no leaf.
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def _places(source: str) -> dict[str, list[tuple[int, Any, int]]]:
    """Return by kind: line, operator, which occurrence of it."""
    tree = get_ast(source)
    nodes = list(_nodes(tree))
    found: dict[str, list[tuple[int, Any, int]]] = defaultdict(list)
    for kind in _KINDS:
        for operator in _operators(kind):
            places = [place for node in nodes for place in operator.mutation_positions(node)]
            found[kind] += [(start[0], operator, number) for number, (start, _) in enumerate(places)]
    return found


def _changed(before: str, after: str) -> tuple[int, str, str]:
    """Return the first line that differs, and what it was and is."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((at, old.strip(), new.strip()) for at, (old, new) in enumerate(pairs, start=1) if old != new)


def _says_something(source: str, mutated: str) -> bool:
    """Leave out what is no program, and what changed only types or texts."""
    try:
        return ast.dump(ast.parse(source)) != ast.dump(ast.parse(mutated))
    except SyntaxError:
        return False


def _inside_functions(source: str) -> set[int]:
    """Return the lines of function bodies, whose code can be changed in a running process."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return lines


def files(group: str) -> list[Path]:
    """Return the files of a group."""
    _, patterns = GROUPS[group]
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.name not in _OF_BROKERS})


def group_of_each_file() -> dict[str, str]:
    """Return by file, from the root, the group that it belongs to."""
    return {path.relative_to(ROOT).as_posix(): group for group in GROUPS for path in files(group)}


def choose(seed: int, tried: Collection[tuple[str, int]] = ()) -> list[Chosen]:
    """Return mutants, each of another line, so that with those that were tried each group has as many as it should.

    Args:
        seed: With the same sources it gives the same mutants, whichever of them were tried.
        tried: The file and line of each that was.
    """
    groups = group_of_each_file()
    had = Counter(groups[file] for file, _ in tried)
    chosen: list[Chosen] = []
    for group, (count, _) in GROUPS.items():
        if had[group] < count:
            # The dice of the first run: they pass over what was tried, and come to what it would have tried next.
            chosen += _of_group(group, count - had[group], random.Random(f"{seed} {group}"), tried)
    return chosen


def _of_group(group: str, count: int, dice: random.Random, tried: Collection[tuple[str, int]]) -> list[Chosen]:
    sources = {path: path.read_text(encoding="utf-8") for path in files(group)}
    # Without their sources in a dictionary by kind, the choice would follow the size of files only.
    by_kind: dict[str, list[tuple[Path, int, Any, int]]] = defaultdict(list)
    for path, source in sources.items():
        for kind, places in _places(source).items():
            by_kind[kind] += [(path, *place) for place in places]
    inside = {path: _inside_functions(source) for path, source in sources.items()}
    seen = {(ROOT / file, line) for file, line in tried}
    mine: list[Chosen] = []
    while len(mine) < count:
        kind = dice.choice([kind for kind in _KINDS if by_kind[kind]])
        path, _, operator, occurrence = dice.choice(by_kind[kind])
        mutated = mutate_code(sources[path], operator, occurrence)
        if mutated is None or not _says_something(sources[path], mutated):
            continue
        line, before, after = _changed(sources[path], mutated)
        if (path, line) in seen or before.startswith(_NOT_HERE) or line not in inside[path]:
            continue
        seen.add((path, line))
        mine.append(Chosen(group, path.relative_to(ROOT).as_posix(), line, before, after, mutated))
    return mine
