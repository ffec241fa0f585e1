"""A driver of the kill matrix, as a program that may be killed: reads jobs as lines of JSON, answers with lines of JSON.

Usage: python driver.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

from kill_matrix.jobs import do  # noqa: E402
from spark_session import end_session, new_session  # noqa: E402


def main() -> None:
    """Do jobs until there are no more."""
    place = Path(sys.argv[1])
    session = new_session(place)
    machine = session.sparkContext._gateway.proc.pid
    (place / "crash_at" / "driver").write_text(f"{machine} {os.getpid()}", encoding="utf-8")
    print("ready", flush=True)
    for line in sys.stdin:
        print("answer", json.dumps(do(session, json.loads(line))), flush=True)
    end_session(session)


if __name__ == "__main__":
    main()
