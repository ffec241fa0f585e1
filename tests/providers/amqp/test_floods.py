"""A broker that pours out what nobody asked for is left before it fills the memory."""

from __future__ import annotations

import errno
import select
import shutil
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

import jmsapi
import jmsapi.wire

from ...peers.amqp_flood import MECHANISMS, AmqpFlood, attach, begin, described, frame, text, uint
from ...peers.tls_front import Certificates, server_context


def transfer(number: int) -> bytes:
    tag = b"\xa0\x04" + struct.pack(">I", number)
    return frame(described(0x14, uint(0), uint(number), tag, uint(0), b"\x41", b"\x42") + b"\x00\x53\x77" + text("x"))


FLOODS = {
    "mechanisms": ("mechanisms", lambda number: MECHANISMS, "not opened the connection"),
    "challenges": (
        "mechanisms",
        lambda number: frame(described(0x42, b"\xa0\xff" + b"x" * 255), kind=1),
        "not opened the connection",
    ),
    "sessions": ("session", lambda number: begin(number % 30_000 + 2, answers=False), "a session that nobody asked for"),
    "links": (
        "session",
        lambda number: attach(text(f"link{number}"), uint(number + 1), b"\x42"),
        "a link that nobody asked for",
    ),
    "messages": ("consumer", transfer, "for which it has no credit"),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_the_connection(flood: str) -> None:
    stage, what, words = FLOODS[flood]
    peer = AmqpFlood(stage, what)
    failures: list[str] = []
    try:
        with pytest.raises(jmsapi.JMSError) as ended, jmsapi.connection_factory(peer.url).create_connection() as connection:
            connection.exception_listener = lambda error: failures.append(str(error))
            session = connection.create_session()
            connection.start()
            consumer = session.create_consumer(session.create_queue("q"))
            while consumer.receive(20_000) is not None:
                continue
        assert words in " ".join([str(ended.value), *failures])
        assert ended.value.error_code == "protocol"
        assert peer.sent < 1 << 26
    finally:
        peer.close()


REASON = described(0x1D, b"\xa3\x03a:\xff", b"\xa1\x02\xff\xfe", b"\xc1\x06\x02\xa3\x01a\xa1\x09")
ENDS = {
    "close": frame(described(0x18, REASON)),
    "end": frame(described(0x17, REASON)),
    "detach": frame(described(0x16, uint(0), b"\x41", REASON)),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_reason_that_is_no_utf_8_is_told_all_the_same(end: str, caplog: pytest.LogCaptureFixture) -> None:
    peer = AmqpFlood("consumer", lambda number: ENDS[end], last=0)
    try:
        told = told_of_the_end(peer.url)
    finally:
        peer.close()
    assert r"\xff\xfe (a:\xff)" in told
    assert not [record for record in caplog.records if record.exc_info]


@pytest.fixture(params=["amqp", pytest.param("amqps", marks=pytest.mark.program)])
def wire(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, leave_out: Callable[[str], NoReturn]
) -> tuple[ssl.SSLContext | None, dict[str, Any]]:
    """Give the broker's side of each wire, and the client's options."""
    if request.param == "amqp":
        return None, {}
    if shutil.which("openssl") is None:
        leave_out("certificates are made by the openssl command, which is not here")
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    return server_context(certificates.make("good")), {"tls_ca": str(certificates.ca)}


CLOSE = frame(described(0x18, described(0x1D, text("amqp:connection:forced", b"\xa3"), text("maintenance"))))
CLOSED = "maintenance (amqp:connection:forced)"


def test_the_reason_of_a_broker_that_resets_the_connection_behind_it_is_told(
    wire: tuple[ssl.SSLContext | None, dict[str, Any]],
) -> None:
    tls, options = wire
    for _ in range(50):
        peer = AmqpFlood("consumer", lambda _: CLOSE, last=0, resets=True, tls=tls)
        try:
            assert CLOSED in told_of_the_end(peer.url, **options)
        finally:
            peer.close()


class Resetting:
    """A client's socket that lets nothing out from the moment that the peer begins its last words, and fails behind them."""

    def __init__(self, sock: socket.socket, peer: AmqpFlood) -> None:
        self._socket, self._peer = sock, peer
        self._tail = b""

    def send(self, data: bytes) -> int:
        if self._peer.ends.is_set():
            raise ConnectionResetError(errno.ECONNRESET, "no more is written")
        return self._socket.send(data)

    def recv(self, size: int) -> bytes:
        if self._tail.endswith(CLOSE):
            raise ConnectionResetError(errno.ECONNRESET, "no more is read")
        if self._peer.ends.is_set():
            # A reset that is heard of comes behind all that the peer sent.
            select.select([self._socket], [], [], 20)
        data = self._socket.recv(size)
        self._tail = (self._tail + data)[-len(CLOSE) :]
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


@pytest.mark.parametrize("behind", [0, 1 << 20], ids=["alone", "behind much"])
@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_the_reason_counts_more_than_how_the_socket_ends(monkeypatch: pytest.MonkeyPatch, scheme: str, behind: int) -> None:
    heartbeats = struct.pack(">IBBH", 8, 2, 0, 0) * (behind // 8)
    peer = AmqpFlood("consumer", lambda _: heartbeats + CLOSE, last=0)

    def connect(host: str, port: int, timeout: float, tls: object) -> Resetting:
        return Resetting(jmsapi.wire.connect(host, port, timeout, None), peer)

    monkeypatch.setattr("jmsapi_amqp.wire.connect", connect)
    try:
        assert CLOSED in told_of_the_end(peer.url.replace("amqp:", f"{scheme}:"))
    finally:
        peer.close()


def told_of_the_end(url: str, **options: Any) -> str:
    """Use a connection until its broker ends something, and return the text of the error; each use tells the reason."""
    with jmsapi.connection_factory(url, close_timeout_ms=500, **options).create_connection() as connection:
        session = connection.create_session()
        connection.start()
        with pytest.raises(jmsapi.JMSError) as raised:
            session.create_consumer(session.create_queue("q")).receive(20_000)
            session.create_consumer(session.create_queue("q")).receive(20_000)
    return str(raised.value)
