"""Brokers that are named by URL."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsapi_conformance.brokers import Broker, LauncherError, launch
from jmsapi_conformance.brokers._broker import version_of
from jmsapi_conformance.brokers._given import given


def test_no_url_gives_no_broker() -> None:
    assert given("artemis", {}) is None
    assert given("artemis", {"JMSAPI_ARTEMIS_URLS": " , "}) is None


def test_urls_and_credentials_are_told_apart_and_put_together_again() -> None:
    urls = "stomp+ssl://me%40home:p%2Fw@broker.example, amqps://me%40home:p%2Fw@[::1]:7000"
    broker = given("classic", {"JMSAPI_CLASSIC_URLS": urls})
    assert broker is not None
    assert (broker.user, broker.password) == ("me@home", "p/w")
    assert broker.stomp_url == "stomp+ssl://broker.example:61614"
    assert broker.amqp_url == "amqps://[::1]:7000"
    assert broker.url("amqp") == "amqps://me%40home:p%2Fw@[::1]:7000"


def test_a_given_broker_wins_over_starting_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_RABBITMQ_URLS", "amqps://broker.example")
    with launch("rabbitmq") as broker:
        assert broker.how == "url"
        assert broker.wires == ("amqp",)
        assert broker.url("amqp") == "amqps://broker.example:5671"
        with pytest.raises(LauncherError, match="rabbitmq has no stomp address here"):
            _ = broker.stomp_url


@pytest.mark.parametrize("end", [Broker.kill, Broker.restart])
def test_a_given_broker_is_not_ours_to_end(end: Callable[[Broker], None]) -> None:
    broker = given("artemis", {"JMSAPI_ARTEMIS_URLS": "amqps://broker.example"})
    assert broker is not None
    with pytest.raises(LauncherError, match="not ours"):
        end(broker)


@pytest.mark.parametrize(
    ("urls", "complaint"),
    [
        ("http://broker.example", "not http"),
        ("amqp:broker.example", "must be one of"),
        ("amqps://a:b@broker.example,stomp+ssl://c:d@broker.example", "same user and password"),
        ("stomp://127.0.0.1:1", "does not answer"),
        ("amqp://127.0.0.1:1", "does not answer"),
        ("tcp://127.0.0.1:1", "does not answer"),
    ],
)
def test_a_bad_url_is_refused_without_showing_its_password(urls: str, complaint: str) -> None:
    with pytest.raises(LauncherError, match=complaint):
        given("artemis", {"JMSAPI_ARTEMIS_URLS": urls})
    with pytest.raises(LauncherError) as caught:
        given("artemis", {"JMSAPI_ARTEMIS_URLS": urls.replace("//", "//me:secret@")})
    assert "secret" not in str(caught.value)


def test_a_broker_does_not_show_its_password() -> None:
    broker = given("artemis", {"JMSAPI_ARTEMIS_URLS": "amqps://me:secret@broker.example"})
    assert "secret" not in repr(broker)


@pytest.mark.parametrize(
    ("server", "version"),
    [
        ("ActiveMQ-Artemis/2.56.0 ActiveMQ Artemis Messaging Engine", "2.56.0"),
        ("RabbitMQ/4.0.5", "4.0.5"),
        ("", None),
        ("Something", None),
        ("Something/", None),
    ],
)
def test_the_version_is_read_from_the_server_header(server: str, version: str | None) -> None:
    assert version_of(server) == version
