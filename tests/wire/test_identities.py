"""Client ids, users and passwords that a wire cannot carry are refused before anything is sent, unquoted, and for good."""

from __future__ import annotations

import traceback
from urllib.parse import urlsplit

import pytest

import jmsapi
from jmsapi.errors import InvalidClientIDException, JMSException, JMSSecurityException
from jmsapi_conformance.brokers import Broker

WIRES = ["amqp", "stomp"]
SECRET = "pa55word"
FAILOVER = "failover:({}://127.0.0.1:1)?failover.maxReconnectAttempts=20&failover.initialReconnectDelay=5000"


def refusal(wire: str, **given: str) -> JMSException:
    """A refusal that were no final one would try again for longer than a test may take."""
    with pytest.raises(JMSException) as caught:
        jmsapi.connection_factory(FAILOVER.format(wire), **given).create_connection()
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert SECRET not in repr(caught.value.__context__)
    return caught.value


@pytest.mark.timeout(20)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("end", ["\0", "\ud800", "x" * 9000], ids=["NUL", "half a pair", "long"])
@pytest.mark.parametrize("what", ["password", "user"])
def test_a_credential(wire: str, end: str, what: str) -> None:
    given = {"user": "me", "password": SECRET, what: SECRET + end}
    assert type(refusal(wire, **given)) is JMSSecurityException


@pytest.mark.timeout(20)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("client_id", ["a\0b", "x" * 9000], ids=["NUL", "long"])
def test_a_client_id(wire: str, client_id: str) -> None:
    assert type(refusal(wire, client_id=client_id)) is InvalidClientIDException


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("what", "kind"), [("client_id", InvalidClientIDException), ("password", JMSSecurityException)])
def test_a_line_end_over_stomp(what: str, kind: type[JMSException]) -> None:
    assert type(refusal("stomp", **{"user": "me", what: "a\nlogin:other"})) is kind


@pytest.mark.timeout(20)
def test_a_login_that_artemis_would_turn_over_for_ever_says_for_which_broker_there_is_room() -> None:
    assert "broker=rabbitmq" in str(refusal("amqp", user="me", password=SECRET * 60))


def test_a_token_is_a_password_on_rabbitmq(rabbitmq: Broker) -> None:
    if "amqp" not in rabbitmq.wires:
        pytest.skip("the broker was given without this wire")
    parts = urlsplit(rabbitmq.url("amqp"))
    factory = jmsapi.connection_factory(
        f"amqp://{parts.hostname}:{parts.port}", user="me", password="t" * 3000, broker="rabbitmq"
    )
    with pytest.raises(JMSSecurityException, match="refused"):
        factory.create_connection()
