"""The command ``jmsapi``: a demonstration, and small tools for a running broker. Needs the extra ``cli``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

_INSTALL = "the command jmsapi needs {name}, which is not installed: pip install 'jmsapi[cli]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Those of the command line; None takes them from the process.
    Returns:
        0 done; 1 an error, told in one line on standard error; 2 wrong use; 3 fewer messages than asked for, or no match; 4 no
        such queue; 130 interrupted; 141 whoever read the output has left.
    """
    if "_JMSAPI_COMPLETE" in os.environ:
        # A shell takes each line as a suggestion of its own, so no help text may be wrapped. Typer reads this on import.
        os.environ["TERMINAL_WIDTH"] = "10000"
    try:
        from jmsapi.cli._app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "rich", "click"):
            raise
        print(_INSTALL.format(name=error.name), file=sys.stderr)
        return 1
    return run(list(sys.argv[1:] if arguments is None else arguments))
