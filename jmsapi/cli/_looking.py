"""``jmsapi browse``, ``purge`` and ``stat``: what is in a queue, and how to be rid of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

import typer

import jmsapi
from jmsapi import JMSContext, Message
from jmsapi._showing import Unreadable, escaped, part, properties_head
from jmsapi.cli._directory import CreateOption, JsonOption, YesOption, confirm, looking, note_if_unsure, require_queue
from jmsapi.cli._message_json import as_json as message_as_json
from jmsapi.cli._shown import body_head
from jmsapi.cli._target import UrlOption
from jmsapi.cli._terminal import Progress, say, say_json, show_table

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
    as_json: JsonOption = False,
    wide: Annotated[bool, typer.Option("--wide", "-w", help="Cut nothing, however narrow the terminal is.")] = False,
    create: CreateOption = False,
) -> None:
    """Show the messages of a queue, and leave them there."""
    shown = 0
    more = False
    rows: list[list[str]] = []
    with looking(url, create=create) as context:
        require_queue(context, url, name, create=create)
        with context.create_browser(context.create_queue(name), selector) as browser:
            for message in browser.enumeration:
                if shown == limit > 0:
                    more = True
                    break
                shown += 1
                if as_json:
                    say_json(message_as_json(message))
                else:
                    rows.append([str(shown), *_cells(message)])
        if not (shown or selector or create):
            note_if_unsure(context, name)
    if not as_json:
        show_table(["#", "id", "sent", "type", "", "properties", "body"], rows, title=f"queue {name}", wide=wide)
        say(f"{shown} shown; there are more" if more else f"{shown} messages")


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
    yes: YesOption = False,
    as_json: JsonOption = False,
    create: CreateOption = False,
) -> None:
    """Remove the messages of a queue for good, a hundred in a transaction, and say how many they were.

    If it is interrupted, or the link breaks, what is committed by then is removed and said; all else stays.
    """
    with looking(url, create=create) as context:
        require_queue(context, url, name, create=create)
        has = jmsapi.capabilities(context)
        if not yes:
            where = f"{has.broker} {has.version}".strip()
            confirm(f"Remove {_how_many(limit)} of queue {name!r} on {where}{_chosen(selector)} for good?")
        mode = JMSContext.SESSION_TRANSACTED if has.transactions else JMSContext.CLIENT_ACKNOWLEDGE
        with context.create_context(mode) as worker:
            removed = 0
            progress = Progress("messages removed", limit or None)
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
                    progress.add(taken)
                    more = taken == due and removed != limit
            finally:
                progress.end()
                if as_json:
                    say_json({"queue": name, "removed": removed, "seconds": round(progress.seconds, 3)})
                else:
                    say(f"{removed} messages removed in {progress.seconds:.1f} s")
        if not (removed or selector or create):
            note_if_unsure(context, name)


def _how_many(limit: int) -> str:
    return f"up to {limit} messages" if limit else "all messages"


def _chosen(selector: str | None) -> str:
    return "" if selector is None else f" where {selector}"


def stat(
    names: Annotated[list[str], typer.Argument(metavar="QUEUE...", help="Names of queues.")],
    url: UrlOption,
    selector: SelectorOption = None,
    as_json: JsonOption = False,
    wide: Annotated[bool, typer.Option("--wide", "-w", help="Cut nothing, however narrow the terminal is.")] = False,
    create: CreateOption = False,
) -> None:
    """Say how many messages wait in queues, by browsing them; what consumers hold and what is delayed is not counted."""
    found: list[dict[str, Any]] = []
    with looking(url, create=create) as context:
        for name in names:
            require_queue(context, url, name, create=create)
            found.append({"queue": name, **_counted(context, name, selector)})
            if not (found[-1]["waiting"] or selector or create):
                note_if_unsure(context, name)
            if as_json:
                say_json(found[-1])
    if not as_json:
        rows = [
            [one["queue"], str(one["waiting"]), str(one["redelivered"]), "" if one["oldest"] is None else _time(one["oldest"])]
            for one in found
        ]
        show_table(["queue", "waiting", "redelivered", "oldest"], rows, wide=wide)


def _counted(context: JMSContext, name: str, selector: str | None) -> dict[str, Any]:
    waiting = redelivered = 0
    oldest: int | None = None
    progress = Progress("messages counted")
    with context.create_browser(context.create_queue(name), selector) as browser:
        for message in browser.enumeration:
            waiting += 1
            progress.add()
            redelivered += message.jms_redelivered
            sent = part(partial(getattr, message, "jms_timestamp"))
            if isinstance(sent, int) and sent and (oldest is None or sent < oldest):
                oldest = sent
    progress.end()
    return {"waiting": waiting, "redelivered": redelivered, "oldest": oldest}
