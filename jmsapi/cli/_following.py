"""``jmsapi request`` and ``tail``: one answer, and whatever comes."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer

from jmsapi import JMSContext, JMSException, Message
from jmsapi._showing import Unreadable, escaped, part, properties_head
from jmsapi.cli._directory import CreateOption, JsonOption, looking, require_queue
from jmsapi.cli._message_json import as_json as message_as_json
from jmsapi.cli._shown import body_head, plain, shown_body
from jmsapi.cli._target import NOT_ENOUGH, PropertyOptions, UrlOption, factory_for, properties_from
from jmsapi.cli._terminal import say, say_bytes, say_json, tell

__all__ = ["request", "tail"]


def request(
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue that takes requests.")],
    body: Annotated[str, typer.Argument(metavar="BODY", help="Text of the request.")],
    url: UrlOption,
    properties: PropertyOptions = None,
    timeout: Annotated[int, typer.Option(min=1, help="Longest wait for the reply in milliseconds.")] = 10_000,
    as_json: JsonOption = False,
) -> None:
    """Send a request whose reply comes to a temporary queue, wait for it, and print it."""
    values = properties_from(properties)
    with factory_for(url).create_context() as context:
        answers = context.create_temporary_queue()
        with context.create_consumer(answers) as consumer:
            producer = context.create_producer().set_jms_reply_to(answers).set_time_to_live(timeout)
            for key, value in values.items():
                producer.set_property(key, value)
            producer.send(context.create_queue(name), body)
            reply = consumer.receive(timeout)
        if reply is None:
            tell(f"no reply came within {timeout} ms")
            raise typer.Exit(NOT_ENOUGH)
        _show(reply, as_json=as_json)


def _show(message: Message, *, as_json: bool) -> None:
    body = shown_body(message)
    if as_json:
        say_json(message_as_json(message))
    elif isinstance(body, Unreadable):
        raise JMSException(f"the body of the reply {body!r}", "message-format")
    elif isinstance(body, bytes):
        say_bytes(body)
    elif isinstance(body, str):
        say(body)
    else:
        say_json(plain(body))


def tail(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic, or of the queue with --queue.")],
    url: UrlOption,
    queue: Annotated[bool, typer.Option("--queue", "-q", help="NAME is a queue: browse it again and again.")] = False,
    selector: Annotated[str | None, typer.Option("--selector", "-s", help="Message selector.")] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="End after so many; 0: when interrupted.")] = 0,
    interval: Annotated[int, typer.Option(min=10, help="Time between two looks at a queue, in milliseconds.")] = 1000,
    as_json: JsonOption = False,
    create: CreateOption = False,
) -> None:
    """Print the messages of a topic as they come, or those of a queue as it grows; a queue keeps them."""
    with looking(url, create=create or not queue) as context:
        try:
            if queue:
                require_queue(context, url, name, create=create)
                _grow(context, name, selector, count, interval, as_json=as_json)
            else:
                _follow(context, name, selector, count, as_json=as_json)
        except KeyboardInterrupt:
            # It is how one ends it.
            return


def _follow(context: JMSContext, name: str, selector: str | None, count: int, *, as_json: bool) -> None:
    consumer = context.create_consumer(context.create_topic(name), selector)
    seen = 0
    while count == 0 or seen < count:
        message = consumer.receive(0)
        if message is None:
            return
        _line(message, as_json=as_json)
        seen += 1


def _grow(context: JMSContext, name: str, selector: str | None, count: int, interval: int, *, as_json: bool) -> None:
    known: set[str] = set()
    shown = 0
    while True:
        here: set[str] = set()
        with context.create_browser(context.create_queue(name), selector) as browser:
            for message in browser.enumeration:
                identity = str(part(partial(getattr, message, "jms_message_id")))
                here.add(identity)
                if identity in known:
                    continue
                _line(message, as_json=as_json)
                shown += 1
                if shown == count > 0:
                    return
        # What has gone need not be remembered: a message id does not come again.
        known = here
        time.sleep(interval / 1000)


def _line(message: Message, *, as_json: bool) -> None:
    if as_json:
        say_json(message_as_json(message))
        return
    sent = part(lambda: time.strftime("%H:%M:%S", time.gmtime(message.jms_timestamp / 1000)))
    say(
        f"{sent if isinstance(sent, str) else '-'} {escaped(str(part(lambda: message.jms_message_id)))} "
        f"{properties_head(message)} {body_head(message)}"
    )
