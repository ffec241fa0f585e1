"""``jmsapi doctor`` on broken set-ups: each is named in one line, with its own exit code."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSContext, JMSException, JMSRuntimeException, JMSSecurityRuntimeException
from jmsapi.cli import _doctor, _probe, main
from jmsapi.cli._doctor import CODES
from jmsapi.cli._providers import version_of
from jmsapi.testing import LoopbackServer

from ...peers.tls_front import Certificates, TlsFront, server_context


@pytest.fixture
def broker() -> Iterator[LoopbackServer]:
    with LoopbackServer(user="me", password="secret") as server:
        yield server


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("doctor"))


@pytest.fixture
def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


class Answering:
    """A port that answers whatever is said to it, and then leaves."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link:
                link.settimeout(5)
                try:
                    if link.recv(64):
                        link.sendall(self._answer)
                except OSError:
                    continue

    def close(self) -> None:
        # A thread that waits in accept is not woken by close alone.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[Answering]:
    server = Answering(request.param)
    yield server
    server.close()


def port_of(server: LoopbackServer) -> int:
    return int(server.url.rpartition(":")[2].partition("?")[0])


def diagnosis(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return the code's word, and the text of the one line with the fault."""
    code = main(["doctor", "--json", "--url", url])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    faults = [line for line in lines if line["state"] == "FAULT"]
    assert len(faults) == (0 if code == 0 else 1)
    if not faults:
        return "ok", ""
    assert CODES[faults[0]["code"]] == code
    assert "secret" not in faults[0]["text"]
    assert "\n" not in faults[0]["text"]
    return faults[0]["code"], faults[0]["text"]


def test_all_is_well(broker: LoopbackServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--url", f"stomp://me:secret@127.0.0.1:{port_of(broker)}"]) == 0
    out = capsys.readouterr().out
    for step in ("host", "port", "wire", "login", "rights", "version"):
        assert re.search(rf"\b{step}\b", out), step


def test_a_wrong_password(broker: LoopbackServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosis(f"stomp://me:wrong@127.0.0.1:{port_of(broker)}", capsys)[0] == "login"


def test_a_host_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = diagnosis("stomp://no-such-host.invalid:61613", capsys)
    assert code == "host-unknown"
    assert "'no-such-host.invalid'" in text


def test_a_broker_that_is_down(free_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "DEFAULT_PORTS", {})
    assert diagnosis(f"amqp://127.0.0.1:{free_port}", capsys)[0] == "broker-down"


def test_a_wrong_port_beside_a_right_one(
    broker: LoopbackServer, free_port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_doctor, "DEFAULT_PORTS", {"stomp": port_of(broker)})
    code, text = diagnosis(f"stomp://127.0.0.1:{free_port}", capsys)
    assert code == "wrong-port"
    assert f"{port_of(broker)} (stomp)" in text


def test_a_port_of_another_wire(broker: LoopbackServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = diagnosis(f"amqp://me:secret@127.0.0.1:{port_of(broker)}", capsys)
    assert (code, text) == ("wrong-wire", "this port speaks STOMP; your URL says AMQP")


@pytest.mark.parametrize(
    ("answering", "speaks"),
    [
        (b"AMQP\x03\x01\x00\x00", "AMQP"),
        (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1"),
        (b"\0\0\1\7\1ActiveMQ\0\0\0\x0c", "OpenWire"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
    ],
    indirect=["answering"],
)
def test_other_wires_are_known_by_their_answers(answering: Answering, speaks: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = diagnosis(f"stomp://127.0.0.1:{answering.port}", capsys)
    assert (code, text) == ("wrong-wire", f"this port speaks {speaks}; your URL says STOMP")


@pytest.mark.parametrize("answering", [b"AMQP\x03\x01\x00\x00"], indirect=True)
def test_any_command_says_that_the_port_speaks_another_wire(answering: Answering, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ping", "--url", f"stomp://127.0.0.1:{answering.port}?connect_timeout_ms=3000"]) == 1
    assert capsys.readouterr().err.endswith("; this port speaks AMQP; your URL says STOMP\n")


@pytest.mark.parametrize(
    ("name", "subject", "days", "ca", "expected"),
    [
        ("good", "IP:127.0.0.1", 2, True, "ok"),
        ("old", "IP:127.0.0.1", -1, True, "certificate-expired"),
        ("other", "DNS:other.example", 2, True, "certificate-host"),
        ("good", "IP:127.0.0.1", 2, False, "tls"),
    ],
)
def test_certificates(
    broker: LoopbackServer,
    certificates: Certificates,
    name: str,
    subject: str,
    days: int,
    ca: bool,
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = server_context(certificates.make(name, subject, days))
    with TlsFront("127.0.0.1", port_of(broker), context) as front:
        trusted = f"?tls_ca={certificates.ca}" if ca else ""
        code, text = diagnosis(f"stomp+ssl://me:secret@127.0.0.1:{front.port}{trusted}", capsys)
    assert code == expected, text


def test_a_plain_url_to_a_port_with_tls_and_the_reverse(
    broker: LoopbackServer, certificates: Certificates, capsys: pytest.CaptureFixture[str]
) -> None:
    with TlsFront("127.0.0.1", port_of(broker), server_context(certificates.make("good"))) as front:
        code, text = diagnosis(f"stomp://me:secret@127.0.0.1:{front.port}", capsys)
        assert code == "wrong-wire"
        assert "TLS" in text or "does not answer as STOMP" in text
    code, text = diagnosis(f"stomp+ssl://me:secret@127.0.0.1:{port_of(broker)}", capsys)
    assert (code, text) == ("wrong-wire", "this port speaks STOMP without TLS; your URL says stomp+ssl")


@pytest.mark.parametrize(
    "error",
    [
        JMSSecurityRuntimeException("the user may not make queues"),
        JMSRuntimeException("the broker ended the connection: access_refused: ACCESS_REFUSED - configure access to queue 'x'"),
        JMSRuntimeException("send: write access to exchange 'x' refused for user 'me' (amqp:unauthorized-access)"),
        JMSRuntimeException("User me is not authorized to create: queue://x"),
        JMSRuntimeException("AMQ229032: User: me does not have permission='CREATE_ADDRESS' on address x"),
    ],
    ids=lambda error: str(error)[:40],
)
def test_no_right_to_create(
    error: Exception, broker: LoopbackServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: JMSContext) -> Any:
        raise error

    with jmsapi.connection_factory("inproc://rights").create_context() as context:
        monkeypatch.setattr(type(context), "create_temporary_queue", refused)
    code, text = diagnosis(f"stomp://me:secret@127.0.0.1:{port_of(broker)}", capsys)
    assert code == "rights"
    assert text.startswith("this user has no right to create a temporary queue: ")


@pytest.mark.parametrize(
    ("answering", "wire", "says"),
    [
        (b"AMQP\x00\x00\x09\x01", "amqp", "AMQP 0-9-1"),
        (b"CONNECTED\nsession:1\n\n\0", "stomp", "STOMP 1.0"),
        (b"CONNECTED\nversion:1.1\nserver:ActiveMQ/5.5\n\n\0", "stomp", "STOMP 1.1"),
        (b"ERROR\nversion:1.0,1.1\nmessage:Version mismatch\n\nSupported versions are 1.0,1.1\0", "stomp", "STOMP 1.0,1.1"),
    ],
    indirect=["answering"],
)
def test_a_broker_that_has_an_older_protocol_only(
    answering: Answering, wire: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = diagnosis(f"{wire}://127.0.0.1:{answering.port}", capsys)
    assert code == "broker-too-old"
    assert f"speaks {says}, not " in text


@pytest.mark.parametrize("answering", [b"CONNECTED\nversion:1.2\nserver:ActiveMQ/6.3.1\n\n\0"], indirect=True)
def test_a_broker_that_lets_anybody_in_speaks_stomp_whatever_its_name(answering: Answering) -> None:
    (place,) = _probe.addresses_of(f"stomp://127.0.0.1:{answering.port}")
    assert _probe.wire_of(place) == "STOMP"


@pytest.mark.parametrize("answering", [b"CONNECTED\nversion:1.2\nserver:Other/1.0\n\n\0"], indirect=True)
def test_an_unknown_broker_is_no_old_one(answering: Answering, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = diagnosis(f"stomp://127.0.0.1:{answering.port}", capsys)
    assert code == "url"
    assert "set the option broker" in text


def test_a_name_that_no_host_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosis(f"stomp://a..b{'c' * 70}:61613", capsys)[0] == "host-unknown"


def test_one_server_of_a_list_is_enough(broker: LoopbackServer, free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = f"stomp://me:secret@127.0.0.1:{port_of(broker)}", f"stomp://me:secret@127.0.0.1:{free_port}"
    assert main(["doctor", "--json", "--url", f"failover:({bad},{good})"]) == 0
    notes = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert any(f"127.0.0.1:{free_port} cannot be used: nothing listens" in text for text in notes)
    assert diagnosis(f"failover:({bad})?maxReconnectAttempts=0", capsys)[0] in {"broker-down", "wrong-port"}


def test_options_of_the_file_count(
    broker: LoopbackServer,
    certificates: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with TlsFront("127.0.0.1", port_of(broker), server_context(certificates.make("good", "IP:127.0.0.1", 2))) as front:
        (tmp_path / "jmsapi.toml").write_text(
            f'[factories.shop]\nurl = "stomp+ssl://127.0.0.1:{front.port}"\nuser = "me"\npassword = "secret"\n'
            f'tls_ca = "{certificates.ca}"\n'
            f'[factories.wrong]\nurl = "amqp://127.0.0.1"\nport = {port_of(broker)}\n'
        )
        monkeypatch.setenv("JMSAPI_CONFIG", str(tmp_path / "jmsapi.toml"))
        assert diagnosis("shop", capsys) == ("ok", "")
    assert diagnosis("wrong", capsys) == ("wrong-wire", "this port speaks STOMP; your URL says AMQP")
    assert main(["ping", "--url", "wrong"]) == 1
    assert capsys.readouterr().err.endswith("; this port speaks STOMP; your URL says AMQP\n")


def test_a_broker_that_is_too_old(
    broker: LoopbackServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class TooOld:
        def create_context(self) -> Any:
            raise JMSException("RabbitMQ 3.8 speaks AMQP 1.0 by a plug-in; use RabbitMQ 4", "unsupported-feature")

    def too_old(_: str) -> TooOld:
        return TooOld()

    monkeypatch.setattr(_doctor, "factory_for", too_old)
    assert diagnosis(f"stomp://me:secret@127.0.0.1:{port_of(broker)}", capsys)[0] == "broker-too-old"


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://x", "stomp://h?nooption=1", "stomp://h:port", "failover:(", "amqp://[::"]
)
def test_a_url_that_cannot_be_used(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnosis(url, capsys)[0] == "url"


def test_every_code_is_told_by_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    told = " ".join((_doctor.doctor.__doc__ or "").split())
    for code in CODES.values():
        assert re.search(rf"\b{code} ", told), code


@pytest.mark.parametrize(
    ("url", "leads_to"),
    [
        ("amqp://u:p@h/vhost", [("amqp", "h", 5672)]),
        ("failover:(stomp://a:1,stomp://b:2)?jitter=0", [("stomp", "a", 1), ("stomp", "b", 2)]),
        ("amqps://[::1]:5", [("amqps", "::1", 5)]),
        ("inproc://x", []),
    ],
)
def test_where_a_url_leads(url: str, leads_to: list[tuple[str, str, int]]) -> None:
    assert [(place.scheme, place.host, place.port) for place in _probe.addresses_of(url)] == leads_to


def test_proton_is_found_under_the_name_of_its_wheels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"python-qpid-proton-wheel": "0.39.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    assert version_of("python-qpid-proton") == "0.39.0"
    assert version_of("stomp.py") is None
    versions["python-qpid-proton"] = "0.40.0"
    assert version_of("python-qpid-proton") == "0.40.0"
