"""Sending: from the caller's thread to the queue of the I/O thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from jmsapi.spi import (
    Address,
    DestinationKind,
    Envelope,
    ErrorKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
)
from jmsapi_stomp.codec import encode
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import escape, header_lines
from jmsapi_stomp.transactions import Transactions
from jmsapi_stomp.wiring import ProducerHandle, StompTag, TxHandle, Wiring

__all__ = ["Sending"]

_REMEMBERED: Final = 1000


class Sending:
    """Encodes messages and queues them."""

    def __init__(self, wiring: Wiring, consumers: Consumers, transactions: Transactions) -> None:
        self._wiring = wiring
        self._consumers = consumers
        self._transactions = transactions
        self._origin = wiring.client_id or wiring.word
        self._starts: dict[tuple[Address, str | None], str] = {}
        wiring.loop.gatherer = wiring.link.send_unconfirmed

    def send(self, producer: ProducerHandle, envelope: Envelope, tx: TxHandle | None, token: object) -> None:
        """Encode here, so that a fault is the caller's; the I/O thread writes. Any thread.

        Raises:
            ProviderError: FORMAT, the message cannot be encoded; DESTINATION, the name cannot be. Nothing is sent then.
        """
        wiring = self._wiring
        stamp = envelope.timestamp
        if envelope.expiration or (envelope.delivery_time and envelope.delivery_time != stamp):
            now_ms = wiring.clock.now_ms()
            start = self._start(envelope, now_ms)
        else:
            now_ms = stamp
            start = self._usual_start(producer, envelope)
        frame = encode(envelope, wiring.dialect, now_ms, start)
        if tx is not None:
            wiring.loop.post(self._transactions.send, tx, frame, token)
        elif wiring.dialect.wants_receipt(envelope):
            wiring.loop.post(self._send, frame, token)
        else:
            wiring.loop.gather((frame, token))

    def _usual_start(self, producer: ProducerHandle, envelope: Envelope) -> str:
        """Return what the producer's last send began with, if this one goes to the same place."""
        address, origin, start = producer.last
        if address is not envelope.destination or origin is not envelope.origin:
            start = self._start(envelope, envelope.timestamp)
            producer.last = (envelope.destination, envelope.origin, start)
        return start

    def _start(self, envelope: Envelope, now_ms: int) -> str:
        """Return the header lines that say where a message goes and who sends it; checked once and remembered."""
        if envelope.delivery_time > now_ms:
            rerouted = self._wiring.dialect.reroute(envelope, now_ms)
            if rerouted is not None:
                self._wiring.dialect.check(envelope.destination)
                return rerouted + self._origin_line(envelope)
        key = (envelope.destination, envelope.origin)
        start = self._starts.get(key)
        if start is None:
            self._wiring.dialect.check(envelope.destination)
            if len(self._starts) >= _REMEMBERED:
                self._starts.clear()
            start = self._wiring.dialect.start_of_send(envelope.destination) + self._origin_line(envelope)
            self._starts[key] = start
        return start

    def _origin_line(self, envelope: Envelope) -> str:
        return f"JMS_PY_from:{escape(envelope.origin or self._origin)}\n"

    def _send(self, frame: bytes, token: object) -> None:
        self._wiring.link.send(frame, token, confirm=True)

    def reject(self, tags: Sequence[StompTag], outcome: Outcome, done: Done) -> None:
        """Send a copy of each message to the dead letter queue, and acknowledge it when the broker has the copy.

        A crash between the two leaves the message and its copy.
        """
        held = self._consumers.held(tags)
        left = len(held)
        failure = self._consumers.too_late() if left < len(tags) else None
        if not held:
            done(failure)
            return

        def one(cause: ProviderError | None) -> None:
            nonlocal left, failure
            left -= 1
            failure = failure or cause
            if left == 0:
                done(failure)

        for tag, envelope in held:
            self._dead_letter(tag, envelope, one)

    def _dead_letter(self, tag: StompTag, envelope: Envelope, done: Done) -> None:
        wiring = self._wiring

        def copied(cause: ProviderError | None) -> None:
            if cause is None:
                self._consumers.acknowledge([tag], done)
            self._consumers.rejecting(tag, -1)
            if cause is not None:
                done(cause)

        try:
            copy = _dead(envelope, wiring.options.dlq)
            now_ms = wiring.clock.now_ms()
            start = self._start(copy, now_ms) + header_lines([("JMS_PY_dlq", envelope.destination.name)])
            frame = encode(copy, wiring.dialect, now_ms, start)
        except ProviderError as cause:
            done(ProviderError(ErrorKind.FORMAT, f"a rejected message cannot be copied: {cause.message}"))
            return
        self._consumers.rejecting(tag, 1)
        wiring.link.confirmed(frame, copied)


def _dead(envelope: Envelope, queue: str) -> PlainEnvelope:
    """Return a copy for the dead letter queue: it never expires."""
    copy = PlainEnvelope(**{field.name: getattr(envelope, field.name) for field in dataclasses.fields(PlainEnvelope)})
    properties = {name: value for name, value in copy.properties.items() if not name.startswith("JMSX")}
    target = Address(DestinationKind.QUEUE, queue)
    return dataclasses.replace(copy, destination=target, expiration=0, delivery_time=0, properties=properties)
