"""``jmsapi doctor`` on every broker and wire: each broken set-up is named in one line, by its own exit code."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Final
from urllib.parse import urlsplit

import pytest

import jmsapi
from jmsapi import DeliveryMode
from jmsapi.cli import _doctor, main
from jmsapi.cli._doctor import CODES
from jmsapi_brokers import artemis_management
from jmsapi_conformance.brokers import Broker, Wire

pytestmark = pytest.mark.broker
ANSWER_MS: Final = 60_000


def _peer(name: str) -> ModuleType:
    path = Path(__file__).parents[1] / "peers" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_tls: Final = _peer("tls_front")


def diagnosis(url: str, capfd: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return the word of the one fault that is shown, and its line."""
    code = main(["doctor", "--json", "--url", url])
    out, err = capfd.readouterr()
    faults = [line for line in map(json.loads, out.splitlines()) if line["state"] == "FAULT"]
    assert err == ""
    if not code:
        assert not faults
        return "ok", ""
    (fault,) = faults
    assert CODES[fault["code"]] == code
    assert "\n" not in fault["text"]
    return fault["code"], fault["text"]


@pytest.fixture
def on_a_wire(broker_url: str) -> str:
    """Give the URL of each broker and wire, the brokers in this process left out."""
    if broker_url.startswith("inproc") or "admin" not in broker_url:
        pytest.skip("it has no port, or asks for no password")
    return broker_url


def test_port_wire_and_password(on_a_wire: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    place = urlsplit(on_a_wire)
    assert diagnosis(on_a_wire, capfd) == ("ok", "")
    assert diagnosis(on_a_wire.replace(f":{place.password}@", ":wrong@"), capfd)[0] == "login"
    assert diagnosis(on_a_wire.replace(f"{place.username}:{place.password}@", ""), capfd)[0] == "login"
    other = {"stomp": "amqp", "amqp": "stomp"}[place.scheme]
    code, text = diagnosis(on_a_wire.replace(place.scheme, other), capfd)
    speaks = f"this port speaks {place.scheme.upper()}; your URL says {other.upper()}"
    # A port of Artemis may speak every wire.
    assert (code, text) in {("wrong-wire", speaks), ("ok", "")}
    secure = {"stomp": "stomp+ssl", "amqp": "amqps"}[place.scheme]
    code, text = diagnosis(on_a_wire.replace(place.scheme, secure), capfd)
    assert (code, text) == ("wrong-wire", f"this port speaks {place.scheme.upper()} without TLS; your URL says {secure}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    nowhere = on_a_wire.replace(f":{place.port}", f":{free}")
    monkeypatch.setattr(_doctor, "DEFAULT_PORTS", {place.scheme: place.port})
    code, text = diagnosis(nowhere, capfd)
    assert code == "wrong-port"
    assert f"{place.port} ({place.scheme})" in text
    monkeypatch.setattr(_doctor, "DEFAULT_PORTS", {})
    assert diagnosis(nowhere, capfd)[0] == "broker-down"


def test_certificates(on_a_wire: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    place = urlsplit(on_a_wire)
    certificates = _tls.Certificates(tmp_path)
    secure = {"stomp": "stomp+ssl", "amqp": "amqps"}[place.scheme]
    for name, subject, days, trusted, expected in (
        ("good", "IP:127.0.0.1", 2, True, "ok"),
        ("old", "IP:127.0.0.1", -1, True, "certificate-expired"),
        ("other", "DNS:other.example", 2, True, "certificate-host"),
        ("good", "IP:127.0.0.1", 2, False, "tls"),
    ):
        context = _tls.server_context(certificates.make(name, subject, days))
        with _tls.TlsFront(place.hostname, place.port, context) as front:
            ca = f"?tls_ca={certificates.ca}" if trusted else ""
            url = f"{secure}://{place.username}:{place.password}@127.0.0.1:{front.port}{ca}"
            code, text = diagnosis(url, capfd)
            assert code == expected, (name, text)
            if name == "good" and trusted:
                plain = url.replace(secure, place.scheme).partition("?")[0]
                assert diagnosis(plain, capfd)[0] == "wrong-wire"


@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_a_user_without_the_right_to_create(artemis: Broker, wire: Wire, capfd: pytest.CaptureFixture[str]) -> None:
    user = f"weak-{uuid.uuid4().hex[:8]}"
    ask_artemis(artemis, "addUser", [user, "none", f"role-of-{user}", True])
    try:
        place = urlsplit(artemis.url(wire))
        code, text = diagnosis(f"{place.scheme}://{user}:none@{place.hostname}:{place.port}", capfd)
    finally:
        ask_artemis(artemis, "removeUser", [user])
    assert code == "rights", text
    assert text.startswith("this user has no right to create a temporary queue: ")


def ask_artemis(artemis: Broker, operation: str, arguments: list[object]) -> None:
    with jmsapi.connection_factory(artemis.url("amqp")).create_connection() as connection:
        session = connection.create_session()
        answers = session.create_temporary_queue()
        consumer = session.create_consumer(answers)
        connection.start()
        request = session.create_text_message(json.dumps(arguments))
        for name, value in artemis_management.request_properties(operation).items():
            request.set_string_property(name, value)
        request.jms_reply_to = answers
        producer = session.create_producer(session.create_queue(artemis_management.ADDRESS))
        producer.send(request, delivery_mode=DeliveryMode.NON_PERSISTENT)
        answer = consumer.receive(ANSWER_MS)
        assert answer is not None
        assert answer.get_boolean_property("_AMQ_OperationSucceeded"), answer.get_body(str)
