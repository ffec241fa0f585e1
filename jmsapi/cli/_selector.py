"""``jmsapi selector``: check a selector, try it on a message, see why it matches or not."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from jmsapi.cli._target import NOT_ENOUGH, PropertyOptions, properties_from
from jmsapi_selector import InvalidSelector, Selector, compile_selector

__all__ = ["app"]

app = typer.Typer(help="Check and try message selectors; no broker is needed.", no_args_is_help=True)
TextArgument = Annotated[str, typer.Argument(metavar="SELECTOR", help="Such as: \"colour = 'red' AND weight > 2500\".")]


def _compiled(text: str) -> Selector:
    try:
        return compile_selector(text)
    except InvalidSelector as error:
        # The mark under the culprit needs its own lines.
        print(f"jmsapi: invalid selector: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


@app.command()
def check(selector: TextArgument) -> None:
    """Say whether a selector is valid, and which names it reads."""
    names = sorted(_compiled(selector).identifiers)
    print("valid; reads " + ", ".join(names) if names else "valid; reads no property")


@app.command()
def match(selector: TextArgument, properties: PropertyOptions = None) -> None:
    """Say what a selector gives for a message with these properties; exit code 0 if it matches, else 3."""
    values = properties_from(properties)
    truth = _compiled(selector).evaluate(values)
    print(truth.name)
    if truth.name != "TRUE":
        raise typer.Exit(NOT_ENOUGH)


@app.command()
def explain(selector: TextArgument, properties: PropertyOptions = None) -> None:
    """Show each part of a selector with what it comes to for a message with these properties."""
    values = properties_from(properties)
    print(_compiled(selector).explain(values))
