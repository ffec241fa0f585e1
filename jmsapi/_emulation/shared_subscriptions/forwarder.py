"""Moves messages from the durable subscription of a shared subscription into the queue that its members read.

Each batch is received, sent and acknowledged in one local transaction of the broker, so a message is in exactly one of the two
places, whoever dies when. The broker lets only one connection have the client id of the durable subscription, so there is at
most one forwarder, whatever else goes wrong.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from jmsapi._emulation.shared_subscriptions.auxiliary import AuxiliaryConnection, AuxiliaryInbox, SendAnswers, SendToken
from jmsapi._emulation.shared_subscriptions.envelopes import forwarded
from jmsapi._emulation.shared_subscriptions.parts import PREFIX, Parts
from jmsapi.spi import Address, ConsumerSpec, Delivery, DestinationKind, ErrorKind, Handle, Outcome, ProviderError, Tag
from jmsapi.spi.label import message_label

__all__ = ["SUBSCRIPTION", "Forwarder", "forwarder_spec"]

SUBSCRIPTION: Final = PREFIX + "forwarder"
"""Name of the durable subscription at the broker; its client id tells one shared subscription from another."""
_WINDOW: Final = 1000
_BATCH: Final = 500
_IDLE_S: Final = 60.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_STOP_S: Final = 10.0
_log: Final = logging.getLogger("jmsapi")


def forwarder_spec(topic: str, selector: str | None, window: int) -> ConsumerSpec:
    """Return the consumer of the durable subscription behind a shared one."""
    address = Address(DestinationKind.TOPIC, topic)
    return ConsumerSpec(address, selector, subscription=SUBSCRIPTION, durable=True, prefetch=window, deferred_acks=True)


class Forwarder:
    """Forwards for one subscription as long as this connection is its leader.

    Args:
        parts: Of the subscription.
        topic: Name of its topic.
        selector: Its selector.
        connect: Opens a connection with the forwarder's client id; raises CLIENT_ID while another one has it.
        prefetch: The most messages to hold.
        refused: Called when the broker does not let this wire forward what has been published; the forwarder has ended then.
    """

    def __init__(
        self,
        parts: Parts,
        topic: str,
        selector: str | None,
        connect: Callable[[], AuxiliaryConnection],
        prefetch: int,
        refused: Callable[[ProviderError], None],
    ) -> None:
        self._parts = parts
        self._queue = parts.queue
        self._refused = refused
        self._spec = forwarder_spec(topic, selector, max(1, min(prefetch or 1, _WINDOW)))
        self._connect = connect
        self._guard = threading.Lock()
        self._connection: AuxiliaryConnection | None = None
        self._inbox: AuxiliaryInbox | None = None
        self._flushes: list[Future[None]] = []
        self._stopping = threading.Event()
        self.ready = threading.Event()
        """Set once messages are being forwarded."""
        self._thread = threading.Thread(target=self._run, name=f"{parts.key[:40]}-forwarder", daemon=True)

    def start(self) -> None:
        """Begin: this connection is the leader now."""
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """End; what is not forwarded stays in the durable subscription, for the next leader.

        Args:
            wait: Forward first what the broker has sent already, which would otherwise come later than what follows, and return
                when the client id is free again, or after some seconds. Else the connection is aborted.
        """
        self._stopping.set()
        with self._guard:
            connection, inbox = self._connection, self._inbox
        if wait and self._thread.is_alive():
            if inbox is not None:
                inbox.wake()
            self._thread.join(_STOP_S)
            if not self._thread.is_alive():
                return
        if connection is not None:
            connection.abort()

    def flush(self) -> Future[None]:
        """Return a future that is done when everything that the broker had at this moment is forwarded."""
        flushed: Future[None] = Future()
        with self._guard:
            inbox = self._inbox
            if inbox is not None:
                self._flushes.append(flushed)
        if inbox is None:
            flushed.set_result(None)
        else:
            inbox.wake()
        return flushed

    # ---- its thread -----------------------------------------------------------------------------------------------
    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            try:
                connection = self._connect()
            except ProviderError as error:
                # The broker may not have noticed yet that the leader before this one is dead.
                if error.kind is not ErrorKind.CLIENT_ID:
                    _log.warning("shared subscription %s: %s; forwarding is tried again", self._parts.key, error.message)
                self._stopping.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_S) if error.kind is not ErrorKind.CLIENT_ID else _FIRST_PAUSE_S
                continue
            with self._guard:
                self._connection = connection
            try:
                self._forward(connection)
                pause = _FIRST_PAUSE_S
            except ProviderError as error:
                if error.kind is ErrorKind.UNSUPPORTED:
                    _log.warning("shared subscription %s: this connection cannot forward: %s", self._parts.key, error.message)
                    self._stopping.set()
                    self._refused(error)
                elif not self._stopping.is_set():
                    _log.warning("shared subscription %s: %s; forwarding begins again", self._parts.key, error.message)
                    self._stopping.wait(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE_S)
            except Exception:
                _log.exception("shared subscription %s: a fault ended forwarding; it begins again", self._parts.key)
                self._stopping.wait(_LONGEST_PAUSE_S)
            finally:
                self.ready.clear()
                self._end(connection)

    def _end(self, connection: AuxiliaryConnection) -> None:
        with self._guard:
            self._connection = self._inbox = None
            flushes, self._flushes = self._flushes, []
        for flushed in flushes:
            flushed.set_result(None)
        try:
            connection.close()
        except ProviderError as error:
            _log.debug("shared subscription %s: %s", self._parts.key, error.message)

    def _forward(self, connection: AuxiliaryConnection) -> None:
        provider = connection.provider
        session = connection.call(provider.open_session(transacted=True), "open a session")
        consumer, inbox = connection.consume(self._spec, session)
        producer = connection.call(provider.open_producer(session, self._queue), "open a producer")
        begun = provider.begin(session)
        with self._guard:
            self._inbox = inbox
        if self._stopping.is_set():
            return
        connection.call(provider.credit(consumer, self._spec.prefetch), "receive")
        self.ready.set()
        _log.debug("shared subscription %s: forwarding", self._parts.key)
        last = False
        while not last:
            waiting = inbox.take(_IDLE_S)
            last = self._stopping.is_set()
            with self._guard:
                flushes, self._flushes = self._flushes, []
            if flushes or last:
                connection.call(provider.drain(consumer), "see what is there")
                waiting += inbox.take(0)
            count = len(waiting)
            while waiting:
                batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
                tx = connection.call(begun, "begin a transaction")
                begun = self.move(connection, session, producer, tx, batch)
            more = self._spec.prefetch if flushes else count
            if more and not last:
                connection.call(provider.credit(consumer, more), "receive")
            for flushed in flushes:
                flushed.set_result(None)

    def move(
        self, connection: AuxiliaryConnection, session: Handle, producer: Handle, tx: Handle, batch: Sequence[Delivery]
    ) -> Future[Handle]:
        """Move a batch in one transaction; return the begin of the next."""
        provider = connection.provider
        answers = SendAnswers(len(batch))
        moved: list[Tag] = []
        unreadable: list[Tag] = []
        for delivery in batch:
            try:
                provider.send(producer, forwarded(delivery.envelope, self._queue), tx, SendToken(answers))
            except ProviderError as error:
                answers.answered(None)
                if error.kind is not ErrorKind.FORMAT:
                    raise
                _log.error(
                    "shared subscription %s: %s cannot be passed on and goes to the dead letter queue: %s",
                    self._parts.key,
                    message_label(delivery.envelope),
                    error.message,
                )
                unreadable.append(delivery.tag)
            else:
                moved.append(delivery.tag)
        # A broker may commit a transaction without what it has refused in it, so nothing is acknowledged before all is taken.
        # Where an answer only says that a send is written, the commit fails when one was refused.
        connection.call(answers.complete, "forward messages")
        settled = provider.settle(moved, Outcome.ACCEPTED, tx) if moved else None
        ended = provider.end(tx, commit=True)
        begun = provider.begin(session)
        connection.call(ended, "commit what was forwarded")
        if settled is not None:
            connection.call(settled, "acknowledge what was forwarded")
        if unreadable:
            connection.call(provider.settle(unreadable, Outcome.REJECTED), "reject a message")
        return begun
