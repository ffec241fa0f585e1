"""The commands, and what becomes of errors: one line, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

import jmsapi
from jmsapi._showing import one_line
from jmsapi.cli import (
    _bench,
    _broker,
    _demo,
    _directory,
    _doctor,
    _following,
    _looking,
    _messages,
    _pipeline,
    _providers,
    _run,
    _selector,
    _transfer,
)
from jmsapi.cli._probe import wrong_wire
from jmsapi.cli._target import BROKEN_PIPE, INTERRUPTED
from jmsapi.cli._terminal import say, tell
from jmsapi_selector import InvalidSelector

__all__ = ["app", "run"]

# Typer brings this class with it in some releases and has it from click in others.
_WrongUse: Final = cast("type[Exception]", next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException"))

app = typer.Typer(
    name="jmsapi",
    help="JMS 2.0 for Python: a demonstration, and tools for a running broker.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": _demo.demo,
    "send": _messages.send,
    "receive": _messages.receive,
    "request": _following.request,
    "tail": _following.tail,
    "browse": _looking.browse,
    "stat": _looking.stat,
    "purge": _looking.purge,
    "move": _transfer.move,
    "copy": _transfer.copy,
    "replay-dlq": _transfer.replay_dlq,
    "export": _transfer.export,
    "import": _transfer.import_,
    "list": _directory.list_queues,
    "delete": _directory.delete,
    "ping": _messages.ping,
    "doctor": _doctor.doctor,
    "bench": _bench.bench,
    "capabilities": _providers.capabilities,
    "providers": _providers.providers,
    "broker": _broker.broker,
    "run": _run.run,
}


for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(_selector.app, name="selector")
app.add_typer(_pipeline.app, name="pipeline")


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"jmsapi {jmsapi.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Send and receive messages, look at a broker, try a selector."""


@cache
def _tree() -> Callable[..., object]:
    """Return the commands as a tree that takes arguments. Typer would make it anew from all signatures for each command line."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started the process
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - as long as the process
    try:
        code = _carried_out(arguments)
        sys.stdout.flush()
    except SystemExit as left:
        if _is_broken_pipe(left):
            return _no_output(BROKEN_PIPE)
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BrokenPipeError:
        return _no_output(BROKEN_PIPE)
    except OSError as error:
        # A file or standard output: what a broker's connection reports is a JMS error.
        tell(one_line(error))
        return _no_output(1)
    return code


def _no_output(code: int) -> int:
    """Return a code; what is still in the buffer has nowhere to go when Python flushes it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def _carried_out(arguments: Sequence[str]) -> int:
    try:
        ended = _tree()(list(arguments), prog_name="jmsapi", standalone_mode=False)
    except _WrongUse as error:
        return _wrong_use(error)
    except typer.Abort:
        return INTERRUPTED
    except jmsapi.JMSError as error:
        tell(_told(error) + wrong_wire(error, arguments))
        return 1
    except jmsapi.IllegalArgumentException as error:
        tell(one_line(error))
        return 2
    return ended if isinstance(ended, int) else 0


def _is_broken_pipe(error: BaseException | None) -> bool:
    """Return whether whoever read the output has ended: rich and typer make an exit of that error."""
    while error is not None and not isinstance(error, BrokenPipeError):
        error = error.__context__
    return error is not None


def _wrong_use(error: Any) -> int:
    """Tell in one line what is wrong with a command line, and where its help is; a bare command shows the help itself."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        # Without a parameter at fault, what the command itself raised says all.
        plain = getattr(error, "param", None) is None and getattr(error, "param_hint", None) is None
        text = str(error.message if plain and isinstance(error, typer.BadParameter) else error.format_message())
        path = getattr(getattr(error, "ctx", None), "command_path", "jmsapi")
        tell(f"{' '.join(text.split()).removesuffix('.')}; see `{path} -h`")
    return int(error.exit_code)


def _told(error: jmsapi.JMSError) -> str:
    """Return the text of an error in one line; that of a selector has its place marked below it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, InvalidSelector):
            return f"invalid selector: {cause}"
        cause = cause.__cause__
    return one_line(error)
