"""An endpoint whose callbacks want a transaction, on a broker that has none."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import Message, UnsupportedFeatureException
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.listener import JMSListener, MessageDriven, deploy
from jmsapi.spi import VERSION, Capabilities, Clock, Level, Provider, Support
from jmsapi.spi.options import ProviderOptions


class WithoutTransactions(Forwarding):
    """A broker that has no transactions, unless they are emulated."""

    def changed(self, capabilities: Capabilities) -> Capabilities:
        return capabilities.with_(transactions=Support(Level.NONE, "the broker has none", emulate="tx"))


class Entry:
    """Its entry."""

    spi_version = VERSION
    name = "without-transactions"
    schemes = ("without-transactions",)
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return WithoutTransactions(jmsapi_inproc.entry.create(options, clock))


@pytest.fixture
def url() -> Iterator[str]:
    jmsapi.register_provider(Entry())
    yield "without-transactions://refused"
    jmsapi_inproc.discard("refused")


def target(**terms: object) -> object:
    def on_message(message: Message) -> None:
        raise AssertionError("nothing was sent")

    return MessageDriven({"destination": "q", **terms}, name="orders")(JMSListener(type=JMSListener.Type.QUEUE)(on_message))


def test_the_error_names_both_ways(url: str) -> None:
    with pytest.raises(UnsupportedFeatureException) as caught, deploy(target(), factory=jmsapi.connection_factory(url)):
        pass
    text = str(caught.value)
    assert text.startswith("orders: ")
    assert "?emulate=tx" in text
    assert "TransactionAttribute.NOT_SUPPORTED" in text
    assert caught.value.emulate == "tx"


def test_without_a_transaction_it_is_deployed(url: str) -> None:
    with deploy(target(transactionAttribute="NotSupported"), factory=jmsapi.connection_factory(url)) as deployment:
        assert deployment.health.endpoints[0].last_error is None
        assert not deployment.wait(timedelta(milliseconds=10))
        assert deployment.stop(timedelta(seconds=30))
        assert deployment.wait(timedelta(seconds=30))
