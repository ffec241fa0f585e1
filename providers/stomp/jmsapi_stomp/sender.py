"""Sender: from the caller's thread to the queue of the I/O thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from jmsapi.spi import (
    Address,
    DestinationKind,
    Envelope,
    ErrorKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
)
from jmsapi_stomp.answers import Done
from jmsapi_stomp.codec import encode
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.frames import escape, header_lines
from jmsapi_stomp.handles import ProducerHandle, StompTag, StompTxHandle
from jmsapi_stomp.settlement import StompSettlement
from jmsapi_stomp.transaction import StompTransactions

__all__ = ["StompSender"]

_REMEMBERED: Final = 1000


class StompSender:
    """Encodes messages and queues them."""

    def __init__(self, context: StompContext, settlement: StompSettlement, transactions: StompTransactions) -> None:
        self._context = context
        self._settlement = settlement
        self._transactions = transactions
        self._origin = context.client_id or context.identity
        self._starts: dict[tuple[Address, str | None], str] = {}
        context.loop.gatherer = context.connection.send_unconfirmed

    def send(self, producer: ProducerHandle, envelope: Envelope, tx: StompTxHandle | None, token: object) -> None:
        """Encode here, so that a fault is the caller's; the I/O thread writes. Any thread.

        Raises:
            ProviderError: FORMAT, the message cannot be encoded; DESTINATION, the name cannot be. Nothing is sent then.
        """
        context = self._context
        stamp = envelope.timestamp
        if envelope.expiration or (envelope.delivery_time and envelope.delivery_time != stamp):
            now_ms = context.clock.now_ms()
            start = self._start(envelope, now_ms)
        else:
            now_ms = stamp
            start = self._usual_start(producer, envelope)
        frame = encode(envelope, context.behaviour, now_ms, start)
        if tx is not None:
            context.loop.post(self._transactions.send, tx, frame, token, envelope.destination)
        elif context.behaviour.wants_receipt(envelope):
            context.loop.post(self._send, frame, token, start)
        else:
            context.loop.gather((frame, token))

    def _usual_start(self, producer: ProducerHandle, envelope: Envelope) -> str:
        """Return what the producer's last send began with, if this one goes to the same place."""
        address, origin, start = producer.last
        if address is not envelope.destination or origin is not envelope.origin:
            start = self._start(envelope, envelope.timestamp)
            producer.last = (envelope.destination, envelope.origin, start)
        return start

    def _start(self, envelope: Envelope, now_ms: int) -> str:
        """Return the header lines that name a message's destination and its sender; checked once and remembered."""
        if envelope.delivery_time > now_ms:
            rerouted = self._context.behaviour.reroute(envelope, now_ms)
            if rerouted is not None:
                self._context.behaviour.check(envelope.destination)
                return rerouted + self._origin_line(envelope)
        key = (envelope.destination, envelope.origin)
        start = self._starts.get(key)
        if start is None:
            self._context.behaviour.check(envelope.destination)
            if len(self._starts) >= _REMEMBERED:
                self._starts.clear()
            start = self._context.behaviour.start_of_send(envelope.destination) + self._origin_line(envelope)
            self._starts[key] = start
        return start

    def _origin_line(self, envelope: Envelope) -> str:
        return f"JMS_PY_from:{escape(envelope.origin or self._origin)}\n"

    def _send(self, frame: bytes, token: object, start: str) -> None:
        self._context.connection.send(frame, token, start=start, confirm=True)

    def reject(self, tags: Sequence[StompTag], outcome: Outcome, done: Done) -> None:
        """Send a copy of each message to the dead letter queue, and acknowledge it when the broker has the copy.

        A crash between the two leaves the message and its copy.
        """
        held = self._settlement.held(tags)
        left = len(held)
        failure = self._settlement.too_late() if left < len(tags) else None
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
        context = self._context

        def copied(cause: ProviderError | None) -> None:
            if cause is None:
                self._settlement.acknowledge([tag], done)
            self._settlement.count_rejecting(tag, -1)
            if cause is not None:
                done(cause)

        try:
            copy = _dead(envelope, context.options.dlq)
            now_ms = context.clock.now_ms()
            start = self._start(copy, now_ms) + header_lines([("JMS_PY_dlq", envelope.destination.name)])
            frame = encode(copy, context.behaviour, now_ms, start)
        except ProviderError as cause:
            done(ProviderError(ErrorKind.FORMAT, f"a rejected message cannot be copied: {cause.message}"))
            return
        self._settlement.count_rejecting(tag, 1)
        context.connection.confirmed(frame, copied)


def _dead(envelope: Envelope, queue: str) -> PlainEnvelope:
    """Return a copy for the dead letter queue: it never expires."""
    values: dict[str, Any] = {field.name: getattr(envelope, field.name, None) for field in dataclasses.fields(PlainEnvelope)}
    copy = PlainEnvelope(**values)
    properties = {name: value for name, value in copy.properties.items() if not name.startswith("JMSX")}
    target = Address(DestinationKind.QUEUE, queue)
    return dataclasses.replace(copy, destination=target, expiration=0, delivery_time=0, properties=properties)
