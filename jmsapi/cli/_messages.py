"""``jmsapi send``, ``receive`` and ``ping``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

import jmsapi
from jmsapi import (
    ConnectionFactory,
    DeliveryMode,
    Destination,
    JMSConsumer,
    JMSContext,
    JMSProducer,
    JMSRuntimeException,
    Message,
    Queue,
    Topic,
)
from jmsapi._showing import Unreadable, escaped, part
from jmsapi.cli._directory import CreateOption, JsonOption, looking, note_if_unsure, require_queue
from jmsapi.cli._message_json import Sending, as_json, sending_of_line
from jmsapi.cli._shown import plain, shown_body
from jmsapi.cli._target import NOT_ENOUGH, PropertyOptions, UrlOption, factory_for, properties_from
from jmsapi.cli._terminal import printable, say, say_bytes, say_json, tell

__all__ = ["ping", "receive", "send", "send_one"]

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the queue, or of the topic with --topic.")]
TopicOption = Annotated[bool, typer.Option("--topic", "-t", help="NAME is a topic.")]


def send(
    name: NameArgument,
    url: UrlOption,
    body: Annotated[str | None, typer.Argument(metavar="[BODY]", help="The body; left out or '-': standard input.")] = None,
    topic: TopicOption = False,
    as_bytes: Annotated[bool, typer.Option("--bytes", help="Send a BytesMessage.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Each line of standard input is a message in JSON, as browse and receive print them.")
    ] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Each line of standard input is a message.")] = False,
    properties: PropertyOptions = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Send each message so many times.")] = 1,
    jms_type: Annotated[str | None, typer.Option("--type", help="JMSType.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="JMSCorrelationID.")] = None,
    reply_to: Annotated[str | None, typer.Option(help="JMSReplyTo: the name of a queue.")] = None,
    priority: Annotated[int, typer.Option(min=0, max=9, help="JMSPriority.")] = 4,
    time_to_live: Annotated[int, typer.Option("--ttl", min=0, help="Time to live in milliseconds; 0 for ever.")] = 0,
    delay: Annotated[int, typer.Option(min=0, help="Delivery delay in milliseconds.")] = 0,
    non_persistent: Annotated[bool, typer.Option("--non-persistent", help="The broker may keep it in memory only.")] = False,
) -> None:
    """Send text or bytes, from the command line or from standard input."""
    values = properties_from(properties)
    if as_json:
        if lines or as_bytes or body not in (None, "-"):
            raise typer.BadParameter("--json reads standard input; leave body, --lines and --bytes out")
        _send_json(url, name, topic=topic)
        return
    if lines and body not in (None, "-"):
        raise typer.BadParameter("--lines reads standard input; leave the body out")
    # Lines are sent as they come; what is one message is read before anything else.
    bodies = _lines(as_bytes=as_bytes) if lines else [_given(body, as_bytes=as_bytes)]
    with factory_for(url).create_context() as context:
        producer = context.create_producer().set_priority(priority).set_time_to_live(time_to_live)
        producer.set_delivery_mode(DeliveryMode.NON_PERSISTENT if non_persistent else DeliveryMode.PERSISTENT)
        if delay:
            producer.set_delivery_delay(delay)
        for key, value in values.items():
            producer.set_property(key, value)
        if jms_type is not None:
            producer.set_jms_type(jms_type)
        if correlation_id is not None:
            producer.set_jms_correlation_id(correlation_id)
        if reply_to is not None:
            producer.set_jms_reply_to(context.create_queue(reply_to))
        destination = _destination(context, name, topic=topic)
        for one in bodies:
            for _ in range(count):
                _send(producer, destination, one)


def _send(producer: JMSProducer, destination: Destination, body: str | bytes) -> None:
    while True:
        try:
            producer.send(destination, body)
            return
        except JMSRuntimeException as error:
            if error.error_code != "in-doubt":
                raise
            # The link was lost and is being made again: better twice than not at all, and said.
            tell(f"{error}; sending it again")


def _send_json(url: str, name: str, *, topic: bool) -> None:
    with factory_for(url).create_context() as context:
        producer = context.create_producer()
        destination = _destination(context, name, topic=topic)
        for number, line in enumerate(sys.stdin.buffer, 1):
            send_one(producer, destination, sending_of_line(context, line, number))


def send_one(producer: JMSProducer, destination: Destination, sending: Sending) -> None:
    """Send a message with the delivery mode, priority and life that it says; one that has expired is sent nowhere."""
    if sending.time_to_live_ms < 0:
        return
    producer.set_delivery_mode(sending.delivery_mode).set_priority(sending.priority).set_time_to_live(sending.time_to_live_ms)
    producer.send(destination, sending.message)


def _given(body: str | None, *, as_bytes: bool) -> str | bytes:
    if body is not None and body != "-":
        return body.encode() if as_bytes else body
    read = sys.stdin.buffer.read()
    return read if as_bytes else _decoded(read)


def _lines(*, as_bytes: bool) -> Iterator[str | bytes]:
    for read in sys.stdin.buffer:
        line = read.removesuffix(b"\n").removesuffix(b"\r")
        yield line if as_bytes else _decoded(line)


def _decoded(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is no UTF-8 text ({error}); use --bytes") from None


def receive(
    name: NameArgument,
    url: UrlOption,
    topic: TopicOption = False,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="How many to receive; 0: until none comes any more.")] = 1,
    timeout: Annotated[int, typer.Option(min=0, help="Longest wait for each message in milliseconds; 0 for ever.")] = 5000,
    selector: Annotated[str | None, typer.Option("--selector", "-s", help="Message selector.")] = None,
    durable: Annotated[str | None, typer.Option(metavar="NAME", help="Durable subscription; needs --client-id.")] = None,
    client_id: Annotated[str | None, typer.Option(help="Client identifier.")] = None,
    browse: Annotated[bool, typer.Option("--browse", help="Show what is in the queue, and leave it there.")] = False,
    as_json_lines: JsonOption = False,
    create: CreateOption = False,
) -> None:
    """Receive messages and print their bodies. A message is acknowledged once it is printed.

    At one whose body cannot be read it ends; that goes back to its place.
    """
    if durable is not None and not topic:
        raise typer.BadParameter("--durable is for topics")
    if browse and topic:
        raise typer.BadParameter("only a queue can be browsed")
    with looking(url, create=create or topic, session_mode=JMSContext.CLIENT_ACKNOWLEDGE) as context:
        if client_id is not None:
            context.client_id = client_id
        if not topic:
            require_queue(context, url, name, create=create)
        destination = _destination(context, name, topic=topic)
        if browse and isinstance(destination, Queue):
            for shown, waiting in enumerate(context.create_browser(destination, selector), 1):
                unreadable = _print(waiting, as_json_line=as_json_lines)
                if unreadable is not None and not as_json_lines:
                    tell(_unread(waiting, unreadable))
                if shown == count:
                    break
            return
        consumer = _consumer(context, destination, selector, durable)
        seen = 0
        while count == 0 or seen < count:
            message = consumer.receive(timeout)
            if message is None:
                break
            unreadable = _print(message, as_json_line=as_json_lines)
            if unreadable is not None:
                raise jmsapi.MessageFormatException(f"{_unread(message, unreadable)}; it goes back to its place")
            message.acknowledge()
            seen += 1
        if not (seen or topic or selector or create):
            note_if_unsure(context, name)
    if seen < count:
        tell(f"{seen} of {count} messages came within {timeout} ms")
        raise typer.Exit(NOT_ENOUGH)


def _consumer(context: JMSContext, destination: Destination, selector: str | None, durable: str | None) -> JMSConsumer:
    if durable is not None and isinstance(destination, Topic):
        return context.create_durable_consumer(destination, durable, selector)
    return context.create_consumer(destination, selector)


def _destination(context: JMSContext, name: str, *, topic: bool) -> Queue | Topic:
    return context.create_topic(name) if topic else context.create_queue(name)


def _print(message: Message, *, as_json_line: bool) -> Unreadable | None:
    """Print a message; return why its body could not be printed, if it could not."""
    body = shown_body(message)
    unreadable = body if isinstance(body, Unreadable) else None
    if as_json_line:
        record = as_json(message)
        say_json(record)
        why = record.get("unreadable", {}).get("body")
        return None if why is None else Unreadable(why)
    if isinstance(body, bytes):
        say_bytes(body)
    elif isinstance(body, str):
        say(body)
    elif unreadable is None:
        say_json(plain(body))
    return unreadable


def _unread(message: Message, why: Unreadable) -> str:
    name = part(lambda: message.jms_message_id)
    return f"the body of message {escaped(str(name))} {why!r}"


def ping(url: UrlOption, as_json_line: JsonOption = False) -> None:
    """Connect, say who answers, and time a message there and back where the broker has temporary queues."""
    factory: ConnectionFactory = factory_for(url)
    begun = time.perf_counter()
    with factory.create_context() as context:
        connected = (time.perf_counter() - begun) * 1000
        has = jmsapi.capabilities(context)
        broker = f"{has.broker} {has.version}".strip()
        found: dict[str, Any] = {
            "provider": has.provider,
            "broker": has.broker,
            "version": has.version,
            "connect_ms": round(connected, 1),
        }
        if not as_json_line:
            # The broker's words are no data that somebody would want unchanged in a file.
            say(printable(f"{has.provider} on {broker}: connected in {connected:.0f} ms"))
        if not has.temporary_queue:
            if as_json_line:
                say_json(found)
            return
        queue = context.create_temporary_queue()
        consumer = context.create_consumer(queue)
        begun = time.perf_counter()
        context.create_producer().send(queue, "ping")
        if consumer.receive(10_000) is None:
            tell("the message did not come back within 10 s")
            raise typer.Exit(NOT_ENOUGH)
        there_and_back = (time.perf_counter() - begun) * 1000
        if as_json_line:
            say_json({**found, "there_and_back_ms": round(there_and_back, 1)})
        else:
            say(f"a message there and back: {there_and_back:.1f} ms")
        consumer.close()
        queue.delete()
