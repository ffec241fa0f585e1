"""The commands, and what becomes of errors: one line, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import jmsapi
from jmsapi._showing import one_line
from jmsapi.cli import _broker, _demo, _looking, _messages, _pipeline, _providers, _run, _selector

__all__ = ["app", "run"]

app = typer.Typer(
    name="jmsapi",
    help="JMS 2.0 for Python: a demonstration, and small tools for a running broker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(_demo.demo)
app.command("send")(_messages.send)
app.command("receive")(_messages.receive)
app.command("browse")(_looking.browse)
app.command("stat")(_looking.stat)
app.command("purge")(_looking.purge)
app.command("broker")(_broker.broker)
app.command("ping")(_messages.ping)
app.command("providers")(_providers.providers)
app.command("capabilities")(_providers.capabilities)
app.command("run")(_run.run)
app.add_typer(_selector.app, name="selector")
app.add_typer(_pipeline.app, name="pipeline")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"jmsapi {jmsapi.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Send and receive messages, look at a broker, try a selector."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    try:
        app(list(arguments), prog_name="jmsapi")
    except jmsapi.JMSError as error:
        print(f"jmsapi: {one_line(error)}", file=sys.stderr)
        return 1
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
