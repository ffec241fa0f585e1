"""Which queues a broker has, where it can tell; ``jmsapi list`` and ``delete``.

Opening a consumer or browser makes a queue on most brokers, so a command that only looks asks first. Artemis is asked by a
management message, the in-process broker directly. RabbitMQ is opened with ``rabbit.declare=false``, so that it refuses a queue
that is not there. Classic and the server of ``jmsapi broker`` cannot be asked: there a name that does not exist is an empty
queue, and a command that finds nothing says so.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

import jmsapi
import jmsapi_inproc
from jmsapi import (
    DeliveryMode,
    InvalidDestinationRuntimeException,
    JMSContext,
    JMSException,
    Session,
    TextMessage,
)
from jmsapi._showing import one_line
from jmsapi.cli._target import NO_SUCH_QUEUE, NOT_ENOUGH, UrlOption, factory_for, settings_of
from jmsapi.cli._terminal import printable, say, say_json, show_table, tell
from jmsapi.config import parse_url
from jmsapi_brokers import artemis_management, rabbitmq

__all__ = [
    "CreateOption",
    "JsonOption",
    "YesOption",
    "confirm",
    "delete",
    "list_queues",
    "looking",
    "note_if_unsure",
    "require_queue",
]

_ANSWER_MS: Final = 10_000
CreateOption = Annotated[bool, typer.Option("--create", help="Make the queue when it does not exist.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@contextmanager
def looking(
    url: str, *, create: bool, session_mode: int = JMSContext.AUTO_ACKNOWLEDGE, **options: object
) -> Generator[JMSContext]:
    """Open a context in which looking at a queue makes none, as far as the broker allows; with ``create`` it may.

    Args:
        url: As it was given.
        create: Whether a queue may be made.
        session_mode: Of the context.
        options: Options that win over those of the URL.
    """
    with factory_for(url, **options).create_context(session_mode=session_mode) as context:
        if create or jmsapi.capabilities(context).broker != "rabbitmq":
            yield context
            return
    with factory_for(url, **options, **{"rabbit.declare": False}).create_context(session_mode=session_mode) as context:
        try:
            yield context
        except InvalidDestinationRuntimeException as error:
            if not rabbitmq.is_missing_queue(str(error)):
                raise  # a name that no queue can have
            tell(f"{one_line(error)}; --create makes it")
            raise typer.Exit(NO_SUCH_QUEUE) from None


def require_queue(context: JMSContext, url: str, name: str, *, create: bool) -> None:
    """End the command if the broker can tell that a queue does not exist, unless it may be made.

    Raises:
        typer.Exit: With NO_SUCH_QUEUE.
    """
    context.create_queue(name)  # a name that is none is refused as such
    if create:
        return
    known = _names(context, url)
    if known is not None and name not in known:
        tell(f"there is no queue {name!r} on this broker; --create makes it")
        raise typer.Exit(NO_SUCH_QUEUE)


def _names(context: JMSContext, url: str) -> list[str] | None:
    """Return the names of all queues; None where the broker cannot be asked."""
    has = jmsapi.capabilities(context)
    if has.provider == "inproc":
        # Loads pydantic, which most commands need not wait for.
        from jmsapi_inproc.options import InprocOptions

        place, own = settings_of(url)
        options = parse_url(place, own, entries={"inproc": jmsapi_inproc.entry})
        return jmsapi_inproc.queue_names(options.store or options.host) if isinstance(options, InprocOptions) else None
    if has.broker != "artemis":
        return None
    found = _ask_artemis(url, *artemis_management.queue_names())
    return [str(name) for name in found] if isinstance(found, list) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def note_if_unsure(context: JMSContext, name: str) -> None:
    """Say that a queue in which nothing was found may not have been there before, if the broker cannot tell."""
    has = jmsapi.capabilities(context)
    if has.provider != "inproc" and has.broker not in {"artemis", "rabbitmq"}:
        tell(f"{has.broker} over {has.provider} does not tell which queues it has: {name!r} is empty, or was not there until now")


def _ask_artemis(url: str, operation: str, body: str) -> object:
    """Send a management request on a connection of its own.

    Raises:
        JMSException: The broker failed the operation, or did not answer.
    """
    with factory_for(url).create_connection() as connection:
        session: Session = connection.create_session()
        answers = session.create_temporary_queue()
        consumer = session.create_consumer(answers)
        connection.start()
        request = session.create_text_message(body)
        for name, value in artemis_management.request_properties(operation).items():
            request.set_string_property(name, value)
        request.jms_reply_to = answers
        producer = session.create_producer(session.create_queue(artemis_management.ADDRESS))
        producer.send(request, delivery_mode=DeliveryMode.NON_PERSISTENT)
        answer = consumer.receive(_ANSWER_MS)
        if not isinstance(answer, TextMessage):
            raise JMSException(f"the broker did not answer the question {operation} within {_ANSWER_MS} ms", "timeout")
        found = artemis_management.answer_of(answer.text)
        if isinstance(found, str):
            # Over STOMP nothing else tells that it failed; none of these operations has a text for its result.
            raise JMSException(f"{operation}: {found}", "broker")
        return found


def list_queues(
    url: UrlOption,
    as_json: JsonOption = False,
) -> None:
    """List the queues of the broker, where it can tell: Artemis, and a broker in this process or its file."""
    with factory_for(url).create_context() as context:
        has = jmsapi.capabilities(context)
        names = _names(context, url)
    if names is None:
        raise JMSException(
            f"{has.broker} over {has.provider} cannot list its queues; `jmsapi stat NAME` asks for one", "unsupported"
        )
    if as_json:
        for name in sorted(names):
            say_json({"queue": name})
    else:
        show_table(["queue"], [[name] for name in sorted(names)], wide=True)


def delete(
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")],
    url: UrlOption,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete a queue with all its messages, where the broker allows it: Artemis."""
    with factory_for(url).create_context() as context:
        has = jmsapi.capabilities(context)
        known = _names(context, url) if has.broker == "artemis" else None
    if known is None:
        raise JMSException(
            f"{has.broker} over {has.provider} has no way to delete a queue; `jmsapi purge` empties one", "unsupported"
        )
    if name not in known:
        tell(f"there is no queue {name!r} on this broker")
        raise typer.Exit(NO_SUCH_QUEUE)
    if not yes:
        confirm(f"Delete queue {name!r} with all its messages?")
    _ask_artemis(url, *artemis_management.delete_queue(name))
    if as_json:
        say_json({"queue": name, "deleted": True})
    else:
        say(f"queue {name} deleted")


def confirm(question: str) -> None:
    """Ask, and end the command unless the answer is yes."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here; say --yes")
    if not typer.confirm(printable(question)):
        say("nothing was done")
        raise typer.Exit(NOT_ENOUGH)
