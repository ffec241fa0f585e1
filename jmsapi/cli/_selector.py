"""``jmsapi selector``: check a selector, try it on a message, see why it matches or not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jmsapi.cli._directory import JsonOption
from jmsapi.cli._shown import plain
from jmsapi.cli._target import NOT_ENOUGH, PropertyOptions, properties_from
from jmsapi.cli._terminal import say, say_json, tell
from jmsapi_selector import Explanation, InvalidSelector, Selector, Truth, compile_selector

__all__ = ["app"]

app = typer.Typer(help="Check and try message selectors; no broker is needed.", no_args_is_help=True)
TextArgument = Annotated[str, typer.Argument(metavar="SELECTOR", help="Such as: \"colour = 'red' AND weight > 2500\".")]


def _compiled(text: str) -> Selector:
    try:
        return compile_selector(text)
    except InvalidSelector as error:
        # The mark under the culprit needs its own lines.
        tell(f"invalid selector: {error}")
        raise typer.Exit(1) from None


@app.command()
def check(selector: TextArgument, as_json: JsonOption = False) -> None:
    """Say whether a selector is valid, and which names it reads."""
    names = sorted(_compiled(selector).identifiers)
    if as_json:
        say_json({"valid": True, "reads": names})
        return
    say("valid; reads " + ", ".join(names) if names else "valid; reads no property")


@app.command()
def match(selector: TextArgument, properties: PropertyOptions = None, as_json: JsonOption = False) -> None:
    """Say what a selector gives for a message with these properties; exit code 0 if it matches, else 3."""
    values = properties_from(properties)
    truth = _compiled(selector).evaluate(values)
    if as_json:
        say_json({"result": truth.name})
    else:
        say(truth.name)
    if truth.name != "TRUE":
        raise typer.Exit(NOT_ENOUGH)


@app.command()
def explain(selector: TextArgument, properties: PropertyOptions = None, as_json: JsonOption = False) -> None:
    """Show each part of a selector with what it comes to for a message with these properties."""
    values = properties_from(properties)
    explanation = _compiled(selector).explain(values)
    if as_json:
        say_json(_as_json(explanation))
    else:
        say(str(explanation))


def _as_json(part: Explanation) -> dict[str, Any]:
    result = part.result.name if isinstance(part.result, Truth) else plain(part.result)
    return {"text": part.text, "type": part.type, "result": result, "parts": [_as_json(below) for below in part.parts]}
