"""Whether a broker that may ignore a delivery delay without a word obeys it.

A message with a delay is sent, and one without a delay behind it, to a topic that nobody else listens to: the broker obeys if the
second one comes first. This is done once, at the first delayed send of a connection.

Spec: 4.12-1, 4.12-2.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi._core.errors_map import jms_error
from jmsapi._core.provider_connection import ProviderConnection
from jmsapi._core.waiting import Steps
from jmsapi.errors import JMSException
from jmsapi.spi import (
    Address,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
    Tag,
    fail,
    resolve,
)

__all__ = ["try_delay_steps"]

_TOPIC: Final = Address(DestinationKind.TOPIC, "jmsapi.delay-trial")
_NON_PERSISTENT: Final = 1
_DELAY_MS: Final = 1000
_TRIES: Final = 3
_ROOM: Final = 1000
"""Messages that may come before our own are settled: others try at the same time, by the same topic."""
_ASKED: Final = "see whether the broker obeys a delivery delay"


def try_delay_steps(link: ProviderConnection) -> Steps[None]:
    """See that the broker obeys delays, unless this connection has seen it.

    Raises:
        UnsupportedFeatureException: It does not.
        JMSException: It could not be found out.
    """
    if not link.delays_in_doubt:
        return
    opened = link.ask(lambda: link.provider.open_session(transacted=False))
    session: Handle = yield link.awaiting(opened, _ASKED)
    trial = _Trial(link)
    handles = [session]
    obeyed: bool | None = None
    try:
        spec = ConsumerSpec(_TOPIC, prefetch=_ROOM)
        consumer: Handle = yield link.awaiting(link.ask(lambda: link.provider.open_consumer(session, spec)), _ASKED)
        handles.insert(0, consumer)
        link.attach(consumer, trial)
        producer: Handle = yield link.awaiting(link.ask(lambda: link.provider.open_producer(session, _TOPIC)), _ASKED)
        handles.insert(0, producer)
        for _ in range(_TRIES):
            obeyed = yield from trial.steps(consumer, producer)
            if obeyed is not None:
                break
    finally:
        for handle in handles:
            link.detach(handle)
            if link.lost is None:
                link.ask(lambda handle=handle: link.provider.release(handle))  # type: ignore[misc]
    if obeyed is None:
        raise JMSException(f"{_ASKED}: it answers too slowly to tell", "timeout")
    if not obeyed:
        raise link.refused("a delivery delay", link.capabilities.delay_trial or "")
    link.delays_in_doubt = False


class _Ticket:
    """The token of a send of a trial: a refusal ends the trial."""

    def __init__(self, came_first: Future[str]) -> None:
        self._came_first = came_first

    def answered(self, error: Exception | None) -> None:
        """See SendTicket."""
        if error is not None:
            fail(self._came_first, error)


class _Trial:
    """Sends the two messages, and hears which comes first; a Port.

    Args:
        link: Whose broker is tried.
    """

    def __init__(self, link: ProviderConnection) -> None:
        self._link = link
        self._word = ""
        self._came_first: Future[str] = Future()
        self._owed = _ROOM
        """Credit that the consumer is to get next."""
        self._arrived: list[Tag] = []
        """Messages that have arrived and are not accepted yet."""

    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """Take note of what comes; see Port."""
        for delivery in deliveries:
            self._arrived.append(delivery.tag)
            body = delivery.envelope.body
            if isinstance(body, str) and body.startswith(self._word) and not self._came_first.done():
                resolve(self._came_first, body)

    def broke(self, cause: ProviderError) -> None:
        """The broker has ended the trial; see Port."""
        fail(self._came_first, cause)

    def steps(self, consumer: Handle, producer: Handle) -> Steps[bool | None]:
        """Return whether the delay was obeyed; None when the broker was too slow to tell."""
        link, word = self._link, f"{uuid.uuid4().hex}."
        came_first: Future[str] = Future()
        self._word, self._came_first = word, came_first
        yield link.awaiting(link.ask(lambda: link.provider.credit(consumer, self._owed)), _ASKED)
        began, now = link.clock.monotonic(), link.clock.now_ms()
        for body, due in ((word + "delayed", now + _DELAY_MS), (word + "at once", now)):
            yield from self._send_steps(producer, body, now, due, came_first)
        first: str = yield link.awaiting(came_first, _ASKED)
        arrived, self._arrived = self._arrived, []
        self._owed = len(arrived)
        link.settle(arrived, Outcome.ACCEPTED)
        if first.endswith("at once"):
            return True
        return None if (link.clock.monotonic() - began) * 1000 >= _DELAY_MS else False

    def _send_steps(self, producer: Handle, body: str, now: int, due: int, came_first: Future[str]) -> Steps[None]:
        link = self._link
        envelope = PlainEnvelope(
            MessageKind.TEXT, _TOPIC, body=body, delivery_mode=_NON_PERSISTENT, timestamp=now, delivery_time=due
        )
        place = link.window.place()
        try:
            yield link.awaiting(place, _ASKED)
        except BaseException:
            if not place.cancel():
                link.window.leave()
            raise
        try:
            link.provider.send(producer, envelope, None, _Ticket(came_first))
        except ProviderError as error:
            link.window.leave()
            raise jms_error(error, _ASKED) from error
