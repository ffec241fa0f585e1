"""Starts Broker-J and holds it to the suite: ``python -m broker_j``; other words are for ``jmsapi-conformance``."""

from __future__ import annotations

import subprocess
import sys

from broker_j import launch


def main(arguments: list[str]) -> int:
    """Run the suite in a process of its own, as it is installed, and return its exit code."""
    with launch() as url:
        return subprocess.run([sys.executable, "-m", "jmsapi_conformance", url, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
