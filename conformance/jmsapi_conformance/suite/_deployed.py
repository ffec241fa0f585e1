"""Callbacks that keep what they are given and fail as they are told to, and what it takes to deploy them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jmsapi import ConnectionFactory, Destination, Message, Queue, Topic
from jmsapi.listener import (
    ApplicationException,
    Deployment,
    JMSListener,
    MessageDriven,
    MessageDrivenContext,
    MessageEndpoint,
    deploy,
    message_driven_context,
)
from jmsapi_conformance.kit import eventually, text_of

__all__ = ["KeptOn", "RolledBack", "Script", "Seen", "Watched", "callback", "deployed", "of_class"]


@ApplicationException(rollback=True)
class RolledBack(Exception):
    """An application exception that rolls back."""


@ApplicationException()
class KeptOn(Exception):
    """An application exception that does not."""


@dataclass(frozen=True)
class Seen:
    """One call of a callback."""

    text: str | None
    count: int
    redelivered: bool
    instance: int


class Script:
    """What a callback does with each message, and what it has seen.

    Args:
        raises: By text, what the first calls with it raise.
        then: Called with each message and the container's context, before anything is raised.
    """

    def __init__(
        self,
        raises: dict[str, list[BaseException]] | None = None,
        then: Callable[[Message, MessageDrivenContext], object] | None = None,
    ) -> None:
        self._raises = {} if raises is None else raises
        self._then = then
        self._lock = threading.Lock()
        self.seen: list[Seen] = []
        self.running = 0
        self.most_running = 0
        self.errors: list[BaseException] = []
        """What the container's error handler was told."""

    def __call__(self, message: Message, instance: object = None) -> None:
        """Be called with a message."""
        text = text_of(message)
        with self._lock:
            self.running += 1
            self.most_running = max(self.running, self.most_running)
        try:
            if self._then is not None:
                self._then(message, message_driven_context())
            coming = self._raises.get(str(text), [])
            error = coming.pop(0) if coming else None
        finally:
            count, redelivered = message.get_int_property("JMSXDeliveryCount"), message.jms_redelivered
            with self._lock:
                self.running -= 1
                self.seen.append(Seen(text, count, redelivered, id(instance)))
        if error is not None:
            raise error

    def told(self, name: str, error: BaseException) -> None:
        """Be the container's error handler."""
        self.errors.append(error)

    @property
    def texts(self) -> list[str | None]:
        """The texts of all calls that are over."""
        return [one.text for one in self.seen]

    def wait_for(self, count: int) -> list[Seen]:
        """Return all calls as soon as there are so many; they must come."""
        eventually(lambda: len(self.seen) >= count, f"{count} calls; there were {self.seen}")
        return list(self.seen)

    def wait_for_texts(self, count: int) -> list[str | None]:
        """Return the texts of all calls as soon as there are so many."""
        return [one.text for one in self.wait_for(count)]


def callback(script: Script) -> Any:
    """Return a function to deploy that does what a script says."""

    def on_message(message: Message) -> None:
        script(message)

    return on_message


def of_class(script: Script) -> Any:
    """Return a class to deploy whose instances do what a script says."""

    class Bean:
        made: list[object] = []  # noqa: RUF012

        def __init__(self) -> None:
            # Kept, so that no two have one id.
            self.made.append(self)

        @JMSListener(type=JMSListener.Type.QUEUE)
        def handle(self, message: Message) -> None:
            script(message, self)

    return Bean


@dataclass
class Watched:
    """An endpoint around another one that keeps what it is called with, and what that raises."""

    inner: MessageEndpoint
    calls: list[str]
    raised: list[BaseException]

    def before_delivery(self) -> None:
        """See MessageEndpoint."""
        self.calls.append("before_delivery")
        self.inner.before_delivery()

    def on_message(self, message: Any) -> None:
        """See MessageEndpoint."""
        self.calls.append("on_message")
        try:
            self.inner.on_message(message)
        except BaseException as error:
            self.raised.append(error)
            raise

    def after_delivery(self) -> None:
        """See MessageEndpoint."""
        self.calls.append("after_delivery")
        self.inner.after_delivery()


@contextmanager
def deployed(
    factory: ConnectionFactory, what: Script | Any, destination: Destination, *, start: bool = True, **terms: Any
) -> Generator[Deployment]:
    """Deploy a callback on a destination for a ``with`` block.

    Args:
        factory: Makes its connections.
        what: A script, or a class or function with annotations or without.
        destination: Where its messages come from.
        start: Whether to start it at once.
        terms: ``on_error``, ``wrap``, ``server`` and ``fail_fast`` of deploy; the others are activation properties.
    """
    target: Any = what
    if isinstance(what, Script):
        kind = JMSListener.Type.TOPIC if isinstance(destination, Topic) else JMSListener.Type.QUEUE
        target = JMSListener(type=kind)(callback(what))
        terms.setdefault("on_error", what.told)
    of_deploy = {name: terms.pop(name) for name in ("on_error", "wrap", "server", "fail_fast") if name in terms}
    name = _name(destination)
    target = MessageDriven({"destination": name, **terms}, name=f"test.{target.__name__}")(target)
    deployment = deploy(target, factory=factory, start=False, **of_deploy)
    try:
        if start:
            deployment.start()
        yield deployment
    finally:
        assert deployment.stop(20_000), f"the deployment did not stop in order: {deployment.health}"


def _name(destination: Destination) -> str:
    if isinstance(destination, Topic):
        return destination.topic_name
    assert isinstance(destination, Queue)
    return destination.queue_name
