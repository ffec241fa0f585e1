"""Runs the benchmarks, each in a process of its own.

    python -m benchmarks [NAME...] [ARGUMENT...]

What begins with a hyphen, and all behind it, is handed to each of them; a ``--`` may stand before. Without a name: those that
need no broker. ``quick`` says in less than three minutes whether anything has become slower, over the wires too where brokers are
named. ``aio``, ``amqp``, ``spark`` and ``stomp`` measure on what ``JMSAPI_ARTEMIS_URLS`` etc. name; ``make brokers-up`` starts
them, and ``python -m jmsapi_conformance.brokers env`` prints the variables.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NEEDS_NOTHING = ("core", "listener", "messages", "otel", "selector", "store")


def main(words: list[str]) -> int:
    """Run what is named; return 1 when one of them failed."""
    first = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    names, arguments = words[:first], words[first:]
    if arguments[:1] == ["--"]:
        del arguments[0]
    known = sorted(path.parent.name for path in HERE.glob("*/run.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed: list[str] = []
    for name in names or NEEDS_NOTHING:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, str(HERE / name / "run.py"), *arguments], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
