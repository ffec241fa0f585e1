"""What code a certificate speaks of: the commit, and digests of the core, the provider and the suite.

A digest is over the syntax trees of a package, without comments, docstrings and layout: who changes documentation only leaves
every certificate valid. It needs no history, so a shallow clone and an installed package know it as well, and it is the same on
every version of Python that reads the same code.
"""

from __future__ import annotations

import ast
import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, cast

import jmsapi
import jmsapi_conformance
from jmsapi_conformance.document import Column

__all__ = ["changed_since", "code_of", "commit", "date_of_commit", "digest", "digests"]

_CORE: Final = ("jmsapi", "jmsapi_selector", "jmsapi_brokers")
"""What stands between a test and a provider, and what providers share."""
_BESIDE: Final = frozenset({"aio", "cli", "spark", "testing"})
"""Parts of the library that the suite does not go through."""
_LENGTH: Final = 16


def digests(provider: str, face: str = "") -> dict[str, str]:
    """Return the digests of what a certificate speaks of, by part: ``core``, ``suite``, ``provider``, and ``aio`` for that face.

    Args:
        provider: The provider's name, as its entry point has it. Of one that is not installed there is no ``provider``.
        face: Through which API the tests went; empty for the blocking one.
    """
    found = {
        "core": _over([folder for name in _CORE if (folder := _folder(name)) is not None]),
        "suite": _over([Path(jmsapi_conformance.__file__).parent / "suite"]),
    }
    if face:
        found[face] = _over([Path(jmsapi.__file__).parent / face])
    for point in entry_points(group="jmsapi.providers", name=provider):
        if (folder := _folder(point.module.partition(".")[0])) is not None:
            found["provider"] = _over([folder])
    return found


def changed_since(column: Column) -> list[str]:
    """Return which parts are others now than those that a certificate was made with; all, when it does not say."""
    now = digests(column.provider, column.face)
    return sorted(part for part in now if column.sources.get(part) != now[part])


def code_of(column: Column) -> str:
    """Return in short which code a certificate is of, and of what day."""
    plus = "+" if column.commit.endswith("+") else ""
    code = f"commit {column.commit[:10]}{plus}" if column.commit else "a commit that it does not name"
    return f"{code}, {column.started[:10]}" if column.started else code


def commit() -> str:
    """Return the commit that the library is of, with a plus sign when its code has changes that no commit has.

    Empty where that is not known: an installed package, no git.
    """
    head = _git("rev-parse", "HEAD")
    return f"{head}+" if head and _git("status", "--porcelain", "--untracked-files=no", "--", ":/*.py") else head


def date_of_commit() -> datetime | None:
    """Return when the commit of the library was made; None where that is not known."""
    said = _git("show", "--no-patch", "--format=%cI", "HEAD")
    return datetime.fromisoformat(said) if said else None


def digest(source: str) -> str:
    """Return the digest of a module's syntax tree; comments, docstrings and layout do not count."""
    state = hashlib.sha256()
    for piece in _pieces(ast.parse(source)):
        state.update(piece.encode("utf-8", "backslashreplace"))
        state.update(b"\0")
    return state.hexdigest()[:_LENGTH]


def _pieces(node: object) -> Iterable[str]:
    """Give what a tree says. What is empty is left out: newer versions of Python add fields that old code leaves empty."""
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if value is None or value == []:
                continue
            yield name
            yield from _pieces(value)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for one in cast("list[object]", node):
            if not _is_documentation(one):
                yield from _pieces(one)
        yield "]"
    else:
        yield f"{type(node).__name__} {node!r}"


def _is_documentation(node: object) -> bool:
    """Return whether a statement is a string and nothing else: a docstring, or one below an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _digest_of(file: Path, _changed_ns: int) -> str:
    return digest(file.read_text(encoding="utf-8"))


def _over(folders: Iterable[Path]) -> str:
    state = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            inside = file.relative_to(folder.parent)
            if len(inside.parts) > 1 and inside.parts[0] == "jmsapi" and inside.parts[1] in _BESIDE:
                continue
            state.update(f"{inside.as_posix()} {_digest_of(file, file.stat().st_mtime_ns)}\n".encode())
    return state.hexdigest()[:_LENGTH]


def _folder(package: str) -> Path | None:
    try:
        file = import_module(package).__file__
    except ImportError:
        return None
    return Path(file).parent if file is not None else None


def _git(*arguments: str) -> str:
    """Return what git says in the library's own repository; nothing where the library stands in none, or in another's."""
    git, folder = shutil.which("git"), Path(jmsapi.__file__).parent
    if git is None:
        return ""
    for asked in (("ls-files", "--error-unmatch", "__init__.py"), arguments):
        done = subprocess.run([git, "-C", str(folder), *asked], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            return ""
    return done.stdout.strip()
