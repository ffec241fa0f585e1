"""Called in Spark's own processes before each step of a claim or a sink: makes happen what a file in the folder CRASH_AT says.

A file is named for its place, ``<step>-<claim>-<round>`` or ``<step>-<claim>-any``, and says what to do there, once:

- ``kill``: this process dies.
- ``raise``: this process raises.
- ``driver``: Spark's machine, the driver's Python and this process die; the file ``driver`` has the ids of the first two.
- ``zombie``: Spark's machine and the driver's Python die; this process waits, and goes on as if nothing had happened.
- ``hold``: this process waits.
- ``drop PORT``: this process loses its connections to a port, and waits.

Who waits says so in the file ``held``, with its process id, until there is a file ``go``; then in the file ``went-on``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

_LONGEST_S = 120.0


def on_step(name: str, seq: int, claim: int, round_number: int) -> None:
    """Let happen here what is due."""
    folder = Path(os.environ["CRASH_AT"])
    for place in (f"{name}-{claim}-{round_number}", f"{name}-{claim}-any"):
        try:
            # Who renames the file does it; nobody else.
            met = (folder / place).rename(folder / f"met-{place}")
        except FileNotFoundError:
            continue
        _act(met.read_text(encoding="utf-8"), folder)
        return


def _act(what: str, folder: Path) -> None:
    if what == "raise":
        raise RuntimeError("a crash that is an exception")
    if what in ("driver", "zombie"):
        if what == "zombie":
            # What Python's side of Spark tells its processes when the machine is gone.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for process in (folder / "driver").read_text(encoding="utf-8").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
    if what in ("kill", "driver"):
        os.kill(os.getpid(), signal.SIGKILL)
    if what.startswith("drop "):
        _drop(int(what.split()[1]))
    _wait(folder)


def _wait(folder: Path) -> None:
    draft = folder / f"held-{os.getpid()}"
    draft.write_text(str(os.getpid()), encoding="utf-8")
    draft.rename(folder / "held")
    until = time.monotonic() + _LONGEST_S
    while not (folder / "go").exists() and time.monotonic() < until:
        time.sleep(0.05)
    (folder / "went-on").touch()


def _drop(port: int) -> None:
    """End this process's connections to a port, as a broker does that gives a client up."""
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(number.name))) as handle:
            if handle.family in (socket.AF_INET, socket.AF_INET6) and handle.getpeername()[1] == port:
                handle.shutdown(socket.SHUT_RDWR)
