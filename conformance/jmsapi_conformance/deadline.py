"""A call that may hang, ended by a deadline."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable

__all__ = ["DeadlineExceeded", "run_within"]


class DeadlineExceeded(AssertionError):
    """A test did not come to its end; the text shows where it stands."""


def run_within(seconds: float, call: Callable[[], object]) -> None:
    """Run a call in a thread of its own, and give it up after a time.

    A hanging provider must fail its test and not the run, so the thread is left behind then.

    Args:
        seconds: Longest time.
        call: What it raises is raised here.
    Raises:
        DeadlineExceeded: Time is up.
    """
    error: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as raised:
            # Also pytest's own outcomes (skip, fail), which are no Exceptions, belong to the caller's thread.
            error.append(raised)

    thread = threading.Thread(target=run, name="conformance-test", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        # Private by its name only: it is documented, and there is no other way to see where a thread stands.
        frame = sys._current_frames().get(thread.ident or 0)  # pyright: ignore[reportPrivateUsage]
        where = "".join(traceback.format_stack(frame)[-6:]) if frame is not None else "(it has just ended)"
        raise DeadlineExceeded(f"not done after {seconds:g} s; it stands at\n{where}")
    if error:
        raise error[0]
