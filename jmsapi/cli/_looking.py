"""``jmsapi browse``, ``purge`` and ``stat``: what is in a queue, and how to be rid of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import jmsapi
from jmsapi import JMSContext, Message
from jmsapi._showing import Unreadable, escaped, part, properties_head
from jmsapi.cli._shown import body_head, for_terminal, json_line, printable
from jmsapi.cli._target import NOT_ENOUGH, UrlOption, factory_for

__all__ = ["browse", "purge", "stat"]

BATCH: Final = 100
"""Messages that one transaction of a purge takes."""
_PROPERTIES: Final = 400
"""Most characters of a message's properties in a table."""

QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
SelectorOption = Annotated[str | None, typer.Option("--selector", "-s", help="Message selector.")]


def browse(
    name: QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Show so many, the first ones; 0 for all.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each: headers, properties, body.")] = False,
) -> None:
    """Show the messages of a queue, and leave them there."""
    shown = 0
    more = False
    table = Table(
        "#", "id", "sent", "type", "", "properties", "body", title=f"queue {escape(printable(name))}", title_justify="left"
    )
    with factory_for(url).create_context() as context, context.create_browser(context.create_queue(name), selector) as browser:
        for message in browser.enumeration:
            if shown == limit > 0:
                more = True
                break
            shown += 1
            if as_json:
                print(for_terminal(json_line(message)), flush=True)
            else:
                table.add_row(str(shown), *(escape(cell) for cell in _cells(message)))
    if not as_json:
        Console(highlight=False, soft_wrap=not sys.stdout.isatty()).print(table)
        print(f"{shown} shown; there are more" if more else f"{shown} messages")


def _cells(message: Message) -> list[str]:
    return [
        _cell(lambda: message.jms_message_id or "-"),
        _cell(lambda: _time(message.jms_timestamp)),
        _cell(lambda: message.jms_type or "-"),
        _cell(lambda: " ".join(_marks(message))),
        properties_head(message, _PROPERTIES),
        body_head(message),
    ]


def _cell(read: Callable[[], str]) -> str:
    """Return a part of a message in one printable line."""
    text = part(read)
    return repr(text) if isinstance(text, Unreadable) else escaped(text)


def _marks(message: Message) -> Iterator[str]:
    if message.jms_priority != Message.DEFAULT_PRIORITY:
        yield f"priority {message.jms_priority}"
    if message.jms_redelivered:
        yield "redelivered"
    if message.jms_expiration:
        yield "expires"


def _time(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if milliseconds else "-"
    except (ValueError, OverflowError, OSError):
        # A broker may say any number.
        return str(milliseconds)


def purge(
    name: QueueArgument,
    url: UrlOption,
    selector: SelectorOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Remove so many at most; 0 for all.")] = 0,
    wait: Annotated[int, typer.Option(min=1, help="Done when none comes for so long, in milliseconds.")] = 1000,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove the messages of a queue for good, a hundred in a transaction, and say how many they were.

    If it is interrupted, or the link breaks, what is committed by then is removed and said; all else stays.
    """
    with factory_for(url).create_context(session_mode=JMSContext.AUTO_ACKNOWLEDGE) as context:
        has = jmsapi.capabilities(context)
        if not yes:
            where = f"{has.broker} {has.version}".strip()
            _confirm(f"Remove {_how_many(limit)} of queue {printable(name)!r} on {where}{_chosen(selector)} for good?")
        mode = JMSContext.SESSION_TRANSACTED if has.transactions else JMSContext.CLIENT_ACKNOWLEDGE
        with context.create_context(mode) as worker:
            removed = 0
            try:
                consumer = worker.create_consumer(worker.create_queue(name), selector)
                more = True
                while more:
                    taken = 0
                    due = min(BATCH, limit - removed) if limit else BATCH
                    while taken < due and consumer.receive(wait) is not None:
                        taken += 1
                    if taken and has.transactions:
                        worker.commit()
                    elif taken:
                        worker.acknowledge()
                    removed += taken
                    more = taken == due and removed != limit
            finally:
                print(f"{removed} messages removed")


def _how_many(limit: int) -> str:
    return f"up to {limit} messages" if limit else "all messages"


def _chosen(selector: str | None) -> str:
    return "" if selector is None else f" where {printable(selector)}"


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; say --yes to remove the messages")
    if not typer.confirm(question):
        print("nothing was removed")
        raise typer.Exit(NOT_ENOUGH)


def stat(
    names: Annotated[list[str], typer.Argument(metavar="QUEUE...", help="Names of queues.")],
    url: UrlOption,
    selector: SelectorOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each queue.")] = False,
) -> None:
    """Say how many messages wait in queues, by browsing them; what consumers hold and what is delayed is not counted."""
    found: list[dict[str, Any]] = []
    with factory_for(url).create_context() as context:
        for name in names:
            found.append({"queue": name, **_counted(context, name, selector)})
            if as_json:
                print(for_terminal(json.dumps(found[-1], ensure_ascii=False)), flush=True)
    if not as_json:
        table = Table("queue", "waiting", "redelivered", "oldest")
        for one in found:
            oldest = "" if one["oldest"] is None else _time(one["oldest"])
            table.add_row(escape(printable(one["queue"])), str(one["waiting"]), str(one["redelivered"]), oldest)
        Console(highlight=False).print(table)


def _counted(context: JMSContext, name: str, selector: str | None) -> dict[str, Any]:
    waiting = redelivered = 0
    oldest: int | None = None
    with context.create_browser(context.create_queue(name), selector) as browser:
        for message in browser.enumeration:
            waiting += 1
            redelivered += message.jms_redelivered
            sent = part(partial(getattr, message, "jms_timestamp"))
            if isinstance(sent, int) and sent and (oldest is None or sent < oldest):
                oldest = sent
    return {"waiting": waiting, "redelivered": redelivered, "oldest": oldest}
