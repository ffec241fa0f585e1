"""TLS: checked unless the options say otherwise, and its end is noticed."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jmsapi.spi import Address, DestinationKind, ErrorKind, ProviderError

Dial = Callable[..., Any]
Peer = Callable[..., Any]
QUEUE = Address(DestinationKind.QUEUE, "orders")


def make_certificate(folder: Path, name: str, subject: str, ca: Path | None = None) -> Path:
    """Make a certificate and its key in one file; self-signed without a CA."""
    path, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName={subject}", "-keyout", str(key), "-out", str(path)]
    if ca is not None:
        command += ["-CA", str(ca), "-CAkey", str(ca.with_suffix(".key")), "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by the openssl command")
    folder = tmp_path_factory.mktemp("tls")
    return {
        "good": make_certificate(folder, "good", "IP:127.0.0.1"),
        "elsewhere": make_certificate(folder, "elsewhere", "DNS:elsewhere.example"),
        "client": make_certificate(folder, "client", "DNS:client.example"),
    }


def server_context(certificate: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


def serve(connection: Any) -> None:
    connection.welcome()
    connection.serve()


def test_a_trusted_certificate_that_names_the_host_is_good(dial: Dial, peer: Peer, certificates: dict[str, Path]) -> None:
    line = dial(peer(serve, server_context(certificates["good"])).url, tls_ca=str(certificates["good"]))
    line.send(QUEUE, bytes(3_000_000))
    line.send(QUEUE)


def test_an_unknown_certificate_is_refused_with_the_reason(dial: Dial, peer: Peer, certificates: dict[str, Path]) -> None:
    with pytest.raises(ProviderError, match=r"self.signed.*tls_ca") as caught:
        dial(peer(serve, server_context(certificates["good"])).url)
    assert caught.value.kind is ErrorKind.SECURITY


def test_a_certificate_of_another_host_is_refused_unless_that_check_is_switched_off(
    dial: Dial, peer: Peer, certificates: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    url = peer(serve, server_context(certificates["elsewhere"])).url
    with pytest.raises(ProviderError, match=r"127\.0\.0\.1") as caught:
        dial(url, tls_ca=str(certificates["elsewhere"]))
    assert caught.value.kind is ErrorKind.SECURITY
    dial(url, tls_ca=str(certificates["elsewhere"]), tls_verify_host=False).send(QUEUE)
    assert "host name" in caplog.text
    # The chain is still checked.
    with pytest.raises(ProviderError):
        dial(url, tls_ca=str(certificates["good"]), tls_verify_host=False)


def test_every_check_can_be_switched_off_and_that_is_logged(
    dial: Dial, peer: Peer, certificates: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    dial(peer(serve, server_context(certificates["elsewhere"])).url, tls_verify=False).send(QUEUE)
    assert "not checked at all" in caplog.text


def test_a_client_certificate_is_shown_when_it_is_wanted(dial: Dial, peer: Peer, certificates: dict[str, Path]) -> None:
    url = peer(serve, server_context(certificates["good"], certificates["client"])).url
    options = {"tls_ca": str(certificates["good"])}
    key = str(certificates["client"].with_suffix(".key"))
    dial(url, **options, tls_cert=str(certificates["client"]), tls_key=key).send(QUEUE)
    with pytest.raises(ProviderError):
        dial(url, **options)


def test_a_file_that_is_not_there_is_a_final_error_that_names_option_and_file(
    dial: Dial, peer: Peer, certificates: dict[str, Path]
) -> None:
    url = peer(serve, server_context(certificates["good"])).url
    for options in ({"tls_ca": "/nowhere.pem"}, {"tls_cert": str(certificates["good"]), "tls_key": "/nowhere.key"}):
        with pytest.raises(ProviderError) as caught:
            dial(url, **options)
        assert caught.value.kind is ErrorKind.OPTION
        assert caught.value.kind.is_final
        option = "tls_ca" if "tls_ca" in options else "tls_key"
        assert option in caught.value.message
        assert options[option] in caught.value.message


def test_a_peer_without_tls_is_an_error_of_the_options(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.raw(b"ERROR\nmessage:no TLS here\n\n\0")

    with pytest.raises(ProviderError) as caught:
        dial(peer(script).url.replace("stomp:", "stomp+ssl:"))
    assert caught.value.kind is ErrorKind.OPTION


@pytest.mark.parametrize("how", ["goodbye", "cut"])
def test_an_end_of_stream_over_tls_is_noticed(dial: Dial, peer: Peer, certificates: dict[str, Path], how: str) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.expect("SEND")
        if how == "goodbye":
            connection.socket.settimeout(0.2)
            try:
                connection.socket.unwrap()
            except OSError:
                return

    line = dial(peer(script, server_context(certificates["good"])).url, tls_ca=str(certificates["good"]))
    line.post(QUEUE)
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert line.events.lost[0].kind is ErrorKind.CONNECTION
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.2, "the I/O thread spins"


def test_large_bodies_come_through_tls_both_ways(dial: Dial, peer: Peer, certificates: dict[str, Path]) -> None:
    kept: list[bytes] = []

    def answer(connection: Any, command: str, headers: dict[str, str], body: bytes) -> None:
        if command == "SEND":
            kept.append(body)
        if command == "SUBSCRIBE":
            for number, one in enumerate(kept):
                head = {"subscription": headers["id"], "ack": number, "JMS_PY_type": "Bytes", "content-length": len(one)}
                connection.send("MESSAGE", head, one)

    def script(connection: Any) -> None:
        connection.welcome()
        connection.serve(answer)

    line = dial(peer(script, server_context(certificates["good"])).url, tls_ca=str(certificates["good"]))
    bodies = [bytes([n]) * 700_000 for n in range(5)]
    for body in bodies:
        line.send(QUEUE, body)
    got = line.receive(line.consumer(QUEUE, prefetch=10), 5, accept=False)
    assert [delivery.envelope.body for delivery in got] == bodies
