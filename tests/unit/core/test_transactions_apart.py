"""Sessions that settle deliveries of one consumer, on a broker where the first transaction that ends, ends it for all of them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import Message, Session
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.asf import SampleServerSessionPool
from jmsapi.listener import JMSListener, MessageDriven, deploy
from jmsapi.spi import VERSION, Capabilities, Clock, Handle, Outcome, Provider, Tag
from jmsapi.spi.options import ProviderOptions

WAIT_S = 30.0
LOOK_S = 0.1
"""How long an acceptance waits for another one that comes meanwhile."""


class OneAtATime(Forwarding):
    """Notes when something is accepted in a transaction while another one has something accepted that has not ended."""

    overlaps = 0
    ended = 0

    def __init__(self, below: Provider) -> None:
        super().__init__(below)
        self._changed = threading.Condition()
        self._open: set[Handle] = set()

    def changed(self, capabilities: Capabilities) -> Capabilities:
        return capabilities.with_(transactions_apart=False)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        if tx is not None:
            with self._changed:
                self._open.add(tx)
                self._changed.notify_all()
                if self._changed.wait_for(lambda: len(self._open) > 1, LOOK_S):
                    type(self).overlaps += 1
        return super().settle(tags, outcome, tx, failures)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        with self._changed:
            self._open.discard(tx)
            type(self).ended += 1
        return super().end(tx, commit=commit)


class Entry:
    """Its entry."""

    spi_version = VERSION
    name = "one-at-a-time"
    schemes = ("one-at-a-time",)
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return OneAtATime(jmsapi_inproc.entry.create(options, clock))


@pytest.fixture
def url() -> Iterator[str]:
    jmsapi.register_provider(Entry())
    OneAtATime.overlaps = OneAtATime.ended = 0
    name = uuid.uuid4().hex
    yield f"one-at-a-time://{name}"
    jmsapi_inproc.discard(name)


def test_server_sessions_of_a_pool_end_their_transactions_one_after_the_other(url: str) -> None:
    done = threading.Semaphore(0)
    together = threading.Barrier(2, timeout=WAIT_S)

    with jmsapi.connection_factory(url).create_connection() as connection, connection.create_session() as session:
        queue = session.create_queue("q")
        sessions: dict[int, Session] = {}

        def listener(message: Message) -> None:
            together.wait()  # both have a message, so both end a transaction now
            sessions[threading.get_ident()].commit()
            done.release()

        with SampleServerSessionPool(connection, 2, lambda: listener, session_mode=Session.SESSION_TRANSACTED) as pool:
            lent = [pool.get_server_session() for _ in range(2)]
            for one in lent:
                run = one.session.run

                def running(own: Session = one.session, run: object = run) -> None:
                    sessions[threading.get_ident()] = own
                    assert callable(run)
                    run()

                one.session.run = running  # type: ignore[method-assign]
            for one in lent:
                one.start()
            with connection.create_connection_consumer(queue, None, pool, 1):
                connection.start()
                producer = session.create_producer(queue)
                for number in range(6):
                    producer.send(session.create_text_message(str(number)))
                for _ in range(6):
                    assert done.acquire(timeout=WAIT_S)
    assert OneAtATime.ended >= 6
    assert OneAtATime.overlaps == 0


def test_workers_of_an_endpoint_end_their_transactions_one_after_the_other(url: str) -> None:
    done = threading.Semaphore(0)
    together = threading.Barrier(2, timeout=WAIT_S)

    def on_message(message: Message) -> None:
        together.wait()
        done.release()

    terms = {"destination": "q", "concurrency": "2-2", "transactionAttribute": "Required"}
    target = MessageDriven(terms, name="listener")(JMSListener(type=JMSListener.Type.QUEUE)(on_message))
    factory = jmsapi.connection_factory(url)
    with deploy(target, factory=factory), factory.create_context() as context:
        for number in range(6):
            context.create_producer().send(context.create_queue("q"), str(number))
        for _ in range(6):
            assert done.acquire(timeout=WAIT_S)
    assert OneAtATime.ended >= 6
    assert OneAtATime.overlaps == 0
