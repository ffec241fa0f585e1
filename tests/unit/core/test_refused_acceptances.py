"""What was received in a transaction and cannot be accepted: the core rolls back, and does not ask for a commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import Session, TransactionRolledBackException
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import VERSION, Clock, ErrorKind, Handle, Outcome, Provider, ProviderError, Tag, failed
from jmsapi.spi.options import ProviderOptions


class RefusesOnce(Forwarding):
    """Refuses the first acceptance in a transaction, and notes how transactions end."""

    refused = False
    ends: list[bool] = []  # noqa: RUF012

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        if tx is not None and not type(self).refused:
            type(self).refused = True
            return failed(ProviderError(ErrorKind.ROLLED_BACK, "the link was lost during the transaction"))
        return super().settle(tags, outcome, tx, failures)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        type(self).ends.append(commit)
        return super().end(tx, commit=commit)


class Entry:
    """Its entry."""

    spi_version = VERSION
    name = "refuses-once"
    schemes = ("refuses-once",)
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return RefusesOnce(jmsapi_inproc.entry.create(options, clock))


@pytest.fixture
def url() -> Iterator[str]:
    jmsapi.register_provider(Entry())
    RefusesOnce.refused, RefusesOnce.ends = False, []
    name = uuid.uuid4().hex
    yield f"refuses-once://{name}"
    jmsapi_inproc.discard(name)


def test_a_commit_whose_acceptance_was_refused_is_a_rollback_and_nothing_of_it_arrives(url: str) -> None:
    with jmsapi.connection_factory(url).create_connection() as connection:
        connection.start()
        plain, session = connection.create_session(), connection.create_session(Session.SESSION_TRANSACTED)
        source, target = plain.create_queue("source"), plain.create_queue("target")
        plain.create_producer(source).send(plain.create_text_message("order"))
        consumer, producer = session.create_consumer(source), session.create_producer(target)
        for attempt in range(2):
            message = consumer.receive(5000)
            assert message is not None
            assert message.get_body(str) == "order"
            producer.send(session.create_text_message(f"bill {attempt}"))
            if attempt == 0:
                with pytest.raises(TransactionRolledBackException, match="cannot be accepted"):
                    session.commit()
            else:
                session.commit()
        assert RefusesOnce.ends == [False, True]
        bills = plain.create_consumer(target)
        bill = bills.receive(5000)
        assert bill is not None
        assert bill.get_body(str) == "bill 1"
        assert bills.receive_no_wait() is None
