"""The brokers' own selector evaluators, run from their jars without a broker.

Needs a JDK and Maven, which fetches the jars once into the cache folder of the brokers (``BROKER_CACHE``).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

__all__ = ["Evaluator", "build", "evaluate", "missing", "rates"]

Evaluator = Literal["artemis", "artemis-amqp", "classic"]
Row = tuple[str, Mapping[str, object]]
"""A selector and the values of one message. Values are plain or have a class attribute ``jms_type``."""

_SOURCE: Final = Path(__file__).parent / "java"
_TIMEOUT_S: Final = 300


def missing() -> str | None:
    """Name a tool that is not here; None if all are."""
    absent = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    return f"{', '.join(absent)} not found" if absent else None


def build() -> Path:
    """Fetch the jars and compile the harness, unless that was done for these very sources.

    Returns:
        The folder with the classes; the jars are in ``lib`` below it.
    """
    sources = [_SOURCE / "pom.xml", _SOURCE / "Evaluators.java"]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    cache = Path(os.environ.get("BROKER_CACHE") or Path.home() / ".cache" / "jmsapi-brokers")
    home = cache / f"selector-evaluators-{digest}"
    if (home / "Evaluators.class").exists():
        return home
    home.mkdir(parents=True, exist_ok=True)
    _run(
        "mvn", "--batch-mode", "--quiet", "--file", str(sources[0]),
        "dependency:copy-dependencies", f"-DoutputDirectory={home / 'lib'}",
    )  # fmt: skip
    _run("javac", "-encoding", "UTF-8", "-cp", f"{home / 'lib'}/*", "-d", str(home), str(sources[1]))
    return home


def evaluate(evaluator: Evaluator, rows: Iterable[Row]) -> list[str]:
    """Ask a broker's evaluator.

    Returns:
        For each row ``T`` or ``F``, ``I`` if the selector was refused, ``E`` if evaluating it failed.
    """
    return _java("evaluate", evaluator, rows).split()


def rates(evaluator: Evaluator, rows: Iterable[Row]) -> list[int]:
    """Measure a broker's evaluator on rows that it accepts.

    Returns:
        Evaluations a second of processor time, for six rounds of a second; the first ones warm up the virtual machine.
    """
    return [int(line) for line in _java("rate", evaluator, rows).split()]


def _java(what: str, evaluator: Evaluator, rows: Iterable[Row]) -> str:
    home = build()
    return _run(
        "java", "-cp", f"{home}{os.pathsep}{home / 'lib'}/*", "Evaluators", what, evaluator,
        text="".join(f"{_encoded(row)}\n" for row in rows),
    )  # fmt: skip


def _run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:2])} failed: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def _encoded(row: Row) -> str:
    selector, values = row
    parts = [quote(selector, safe=" ")]
    for name, value in values.items():
        if value is not None:
            kind, text = _typed(value)
            parts.append(f"{quote(name, safe='')}={kind}:{quote(text, safe='')}")
    return "\t".join(parts)


def _typed(value: object) -> tuple[str, str]:
    kind = getattr(type(value), "jms_type", None)
    if isinstance(value, bool):
        return "boolean", str(value).lower()
    if isinstance(value, int):
        return kind or ("int" if -(2**31) <= value < 2**31 else "long"), str(int(value))
    if isinstance(value, float):
        return kind or "double", repr(float(value)).replace("inf", "Infinity").replace("nan", "NaN")
    return "string", str(value)
