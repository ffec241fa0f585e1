"""Do what README.md and docs/installing.md say, in a fresh container that has nothing but Python.

    python -m install_proof [--image IMAGE] [-- OPTIONS OF docker run]

The wheel is built here and mounted read-only; the rest comes from the package index. What a machine needs to reach its index (a
proxy, a certificate, a list of package sources) is given as options of `docker run`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
BUILT: Final = ROOT / "build" / "install-proof"


def main() -> int:
    """Build the wheel, run the steps in the container, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="install_proof", description="Do what the pages on installing say, in a fresh container."
    )
    parser.add_argument("--image", default="python:3.13-slim")
    parser.add_argument("docker", nargs="*", metavar="-- OPTION", help="options of `docker run`")
    given = parser.parse_args()
    for old in BUILT.glob("*.whl"):
        old.unlink()
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(BUILT), str(ROOT)], check=True
    )
    mounts = {
        BUILT: "/wheel",
        ROOT / "README.md": "/pages/README.md",
        ROOT / "docs": "/pages/docs",
        Path(__file__).parent: "/proof",
    }
    volumes = [f"--volume={source}:{target}:ro" for source, target in mounts.items()]
    command = ["docker", "run", "--rm", *volumes, *given.docker, given.image, "python", "/proof/steps.py"]
    return subprocess.run(command, check=False, timeout=1800).returncode


if __name__ == "__main__":
    sys.exit(main())
