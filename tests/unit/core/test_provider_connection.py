"""What a provider reports while its connection is still being made."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi._core.plugins import providers
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    VERSION,
    Address,
    Capabilities,
    Clock,
    Delivery,
    DestinationKind,
    ErrorKind,
    Events,
    MessageKind,
    PlainEnvelope,
    Provider,
    ProviderError,
    Tag,
)
from jmsapi.spi.options import ProviderOptions

CAUSE = ProviderError(ErrorKind.CONNECTION, "the broker went away", fatal=True)


class Hasty(Forwarding):
    """Reports events from within ``open``, when nobody can have the connection yet."""

    reports: Callable[[Events], None]
    faults: list[BaseException]

    def open(self, events: Events) -> Future[Capabilities]:
        opened = super().open(events)
        try:
            self.reports(events)
        except BaseException as fault:
            self.faults.append(fault)
        return opened


class HastyEntry:
    spi_version = VERSION
    name = "hasty"
    schemes = ("hasty",)
    extra = None

    def __init__(self) -> None:
        self.reports: Callable[[Events], None] = lambda _: None
        self.faults: list[BaseException] = []

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        made = Hasty(jmsapi_inproc.entry.create(options, clock))
        made.reports, made.faults = self.reports, self.faults
        return made


@pytest.fixture
def entry() -> Iterator[HastyEntry]:
    made = HastyEntry()
    providers.register(made)
    yield made
    assert made.faults == []


def test_a_link_lost_while_the_connection_is_made_is_reported_to_the_connection(entry: HastyEntry) -> None:
    entry.reports = lambda events: events.on_lost(CAUSE)
    connection = jmsapi.connection_factory(f"hasty://{uuid.uuid4().hex}").create_connection()
    with pytest.raises(jmsapi.JMSException, match="the broker went away"):
        connection.create_session()
    connection.close()


def test_a_link_lost_while_the_client_id_is_set_is_reported_once_and_is_that_of_the_new_client(entry: HastyEntry) -> None:
    reported: list[jmsapi.JMSException] = []
    told = threading.Event()

    def listen(error: jmsapi.JMSException) -> None:
        reported.append(error)
        told.set()

    connection = jmsapi.connection_factory(f"hasty://{uuid.uuid4().hex}").create_connection()
    connection.exception_listener = listen  # type: ignore[assignment]
    entry.reports = lambda events: events.on_lost(CAUSE)
    connection.client_id = "new"
    assert told.wait(10)
    with pytest.raises(jmsapi.JMSException, match="the broker went away"):
        connection.start()
    connection.close()
    assert [str(error) for error in reported] == ["the connection is lost: the broker went away"]


def test_each_message_that_comes_for_a_consumer_that_is_gone_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "jmsapi")
    with jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_connection() as connection:
        link = connection.link  # type: ignore[attr-defined]
        address = Address(DestinationKind.QUEUE, "q")
        envelopes = [PlainEnvelope(MessageKind.TEXT, address, "x", message_id=f"ID:{n}") for n in (1, 2)]
        caplog.clear()
        link.on_deliveries("it is gone", [Delivery(Tag(), envelope, 1) for envelope in envelopes])
        assert [record.getMessage() for record in caplog.records] == [
            f"link {link.number}: message ID:{n} of 'q' is for a consumer that is gone" for n in (1, 2)
        ]
