"""TLS that is not as it should be: each is a JMS exception that says what is wrong, within the deadline, on both wires.

Also field report B25: chain and name are checked unless the options say otherwise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSException, JMSSecurityException
from jmsapi.testing import FaultProxy

from ..peers.tls_front import Certificates, TlsFront
from .conftest import Place

Front = Callable[..., TlsFront]
CONNECT_MS = 2000
SLACK_S = 3.0


def refused(url: str, **options: Any) -> JMSException:
    """Fail to connect, in time."""
    factory = jmsapi.connection_factory(url, connect_timeout_ms=CONNECT_MS, close_timeout_ms=500, **options)
    began = time.monotonic()
    with pytest.raises(JMSException) as caught:
        factory.create_connection()
    assert time.monotonic() - began < CONNECT_MS / 1000 + SLACK_S
    assert caught.value.__cause__ is not None
    return caught.value


def works(url: str, **options: Any) -> None:
    with jmsapi.connection_factory(url, **options).create_context() as context:
        queue = context.create_temporary_queue()
        context.create_producer().send(queue, "x")
        assert context.create_consumer(queue).receive_body(str, 10_000) == "x"


def test_b25_a_certificate_of_nobody_we_trust_is_refused(place: Place, front: Front, certificates: Certificates) -> None:
    port = front(certificates.make("good")).port
    error = refused(place.at(port, tls=True))
    assert isinstance(error, JMSSecurityException)
    assert "certificate" in str(error)
    works(place.at(port, tls=True), tls_ca=str(certificates.ca))


def test_b25_a_certificate_of_another_host_is_refused_unless_that_check_is_off(
    place: Place, front: Front, certificates: Certificates
) -> None:
    url = place.at(front(certificates.make("elsewhere", "DNS:elsewhere.example")).port, tls=True)
    error = refused(url, tls_ca=str(certificates.ca))
    assert isinstance(error, JMSSecurityException)
    assert "localhost" in str(error)
    works(url, tls_ca=str(certificates.ca), tls_verify_host=False)
    # The chain is still checked then.
    assert isinstance(refused(url, tls_verify_host=False), JMSSecurityException)
    works(url, tls_verify=False)


def test_an_expired_certificate_is_refused(place: Place, front: Front, certificates: Certificates) -> None:
    error = refused(place.at(front(certificates.make("expired", days=-1)).port, tls=True), tls_ca=str(certificates.ca))
    assert isinstance(error, JMSSecurityException)
    assert "expired" in str(error)


def test_b25_a_client_certificate_that_is_wanted_and_not_given_is_a_failure(
    place: Place, front: Front, certificates: Certificates
) -> None:
    url = place.at(front(certificates.make("good"), certificates.ca).port, tls=True)
    refused(url, tls_ca=str(certificates.ca))
    client = certificates.make("client", "DNS:client.example")
    works(url, tls_ca=str(certificates.ca), tls_cert=str(client), tls_key=str(client.with_suffix(".key")))


def test_tls_to_a_port_that_speaks_none_is_refused(place: Place, certificates: Certificates) -> None:
    port = int(place.url.rpartition(":")[2])
    error = refused(place.at(port, tls=True), tls_ca=str(certificates.ca))
    assert str(port) in str(error)


def test_a_plain_connection_to_a_port_of_tls_is_refused(place: Place, front: Front, certificates: Certificates) -> None:
    refused(place.at(front(certificates.make("good")).port, tls=False))


@pytest.mark.parametrize("n", [1, 100, 600])
@pytest.mark.parametrize("direction", ["to_broker", "to_client"])
def test_a_handshake_that_is_cut_off_is_refused(
    place: Place, front: Front, certificates: Certificates, direction: Any, n: int
) -> None:
    with FaultProxy(("127.0.0.1", front(certificates.make("good")).port)) as proxy:
        proxy.cut_after(n, direction)
        refused(place.at(proxy.port, tls=True), tls_ca=str(certificates.ca))


def test_a_handshake_that_is_never_answered_is_given_up(place: Place, front: Front, certificates: Certificates) -> None:
    with FaultProxy(("127.0.0.1", front(certificates.make("good")).port)) as proxy:
        proxy.silence_new()
        refused(place.at(proxy.port, tls=True), tls_ca=str(certificates.ca))


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_stream_that_is_cut_off_without_the_goodbye_of_tls_is_told_once(
    place: Place, front: Front, certificates: Certificates, how: Any
) -> None:
    with FaultProxy(("127.0.0.1", front(certificates.make("good")).port)) as proxy:
        factory = jmsapi.connection_factory(place.at(proxy.port, tls=True), tls_ca=str(certificates.ca), close_timeout_ms=500)
        with factory.create_connection() as connection:
            told: list[Exception] = []
            heard = threading.Event()

            def listen(error: Exception) -> None:
                told.append(error)
                heard.set()

            connection.exception_listener = listen
            connection.start()
            session = connection.create_session()
            consumer = session.create_consumer(session.create_temporary_queue())
            producer = session.create_producer(session.create_temporary_queue())
            # In the middle of a record: what came of it must not be taken for a message.
            proxy.cut_after(20, "to_client", how)
            with pytest.raises(JMSException):
                for _ in range(50):
                    producer.send(session.create_text_message("x" * 1000))
            assert heard.wait(10)
            with pytest.raises(JMSException):
                consumer.receive(5000)
            assert len(told) == 1
