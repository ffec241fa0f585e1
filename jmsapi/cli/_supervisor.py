"""Processes that run the same listeners: several side by side, or one that is started anew when its source changes.

Each is the command itself without those options. It is told to stop by SIGTERM, once, whatever the terminal does, and it stops
when the one that watches it is gone.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = ["Supervisor", "is_worker", "stop_with_parent"]

_log = logging.getLogger("jmsapi.listener")
_WORKER: Final = "JMSAPI_RUN_WORKER"
"""Set for a process that another one watches, by its number."""
_LOOK_S: Final = 0.2
_LEFT_OUT: Final = ("__pycache__", "node_modules", "site-packages")


class Supervisor:
    """Runs the command in processes of their own until it is told to stop.

    Args:
        arguments: Of the command, without what this does.
        url: Of the broker; told by the environment, since everybody can read the arguments of a process.
        count: How many.
        port: The first one's for metrics; the next ones follow. None for none.
        watch: The folder whose Python files are watched; None: none is.
    """

    def __init__(self, arguments: Sequence[str], url: str | None, count: int, port: int | None, watch: Path | None) -> None:
        self._arguments = arguments
        self._environment = os.environ | ({} if url is None else {"JMSAPI_URL": url})
        self._count = count
        self._port = port
        self._watch = watch
        self._told = ""
        self._workers: list[subprocess.Popen[bytes]] = []

    def run(self) -> bool:
        """Run; return whether all ended as they should.

        A worker that ends by itself ends the others: whoever looks after this process starts all of it anew. Where files are
        watched, the next change starts it anew.
        """
        with self._signals():
            self._start()
            seen = self._files()
            orderly = True
            while not self._told:
                time.sleep(_LOOK_S)
                if self._watch is None:
                    if any(one.poll() is not None for one in self._workers):
                        orderly = all(one.poll() in (None, 0) for one in self._workers)
                        break
                elif (now := self._files()) != seen:
                    changed = sorted({path for path, _ in now ^ seen})
                    _log.info("%s has changed: the listeners start anew", changed[0])
                    self._stop()
                    seen = self._files()
                    self._start()
            return self._stop() and orderly

    def _start(self) -> None:
        self._workers = []
        for number in range(self._count):
            port = () if self._port is None else ("--metrics-port", str(self._port + number if self._port else 0))
            self._workers.append(
                subprocess.Popen(
                    [sys.executable, "-m", "jmsapi.cli", "run", *self._arguments, *port],
                    stdin=subprocess.PIPE,
                    env={**self._environment, _WORKER: str(number)},
                    # What the terminal tells its foreground, such as SIGINT, comes from here alone, and so only once.
                    start_new_session=True,
                )
            )

    def _stop(self) -> bool:
        """Stop what runs; return whether all of it ended as it should. A second signal ends it at once."""
        for one in self._workers:
            if one.poll() is None:
                one.send_signal(signal.SIGTERM)
        codes: list[int] = []
        for one in self._workers:
            codes.append(one.wait())
            if one.stdin is not None:
                one.stdin.close()
        # One that was told before it had begun to listen has ended by the signal itself.
        return all(code in (0, -signal.SIGTERM) for code in codes)

    def _files(self) -> set[tuple[str, int]]:
        """Return the Python files with the times of their last change."""
        found: set[tuple[str, int]] = set()
        if self._watch is None:
            return found
        for folder, folders, files in os.walk(self._watch):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_OUT]
            for name in files:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)  # noqa: PTH118  a walk of many files, five times a second
                    try:
                        found.add((path, os.stat(path).st_mtime_ns))  # noqa: PTH116
                    except OSError:
                        # Removed meanwhile.
                        continue
        return found

    @contextmanager
    def _signals(self) -> Generator[None]:
        before = {number: signal.signal(number, self._tell) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _tell(self, number: int, frame: FrameType | None) -> None:
        if self._told:
            for one in self._workers:
                if one.poll() is None:
                    one.kill()
            os._exit(128 + number)
        self._told = signal.Signals(number).name


def is_worker() -> bool:
    """Return whether another process watches this one."""
    return _WORKER in os.environ


def stop_with_parent() -> None:
    """In a worker: be told to stop when the process that watches it has ended, in whatever way."""
    if is_worker():
        threading.Thread(target=_await_parent, name="jmsapi-run-parent", daemon=True).start()


def _await_parent() -> None:
    # Nobody writes into it: it ends with the process that holds its other end.
    while os.read(0, 1024):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
