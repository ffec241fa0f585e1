"""What is wrong with a connection, wire by wire: who is to blame, whether failover goes on, and that nothing stays open.

Each row is one way in which a connection cannot be made. A final one is tried once and names the option or the refusal, a passing
one is tried as often as the options say. Both leave as many threads and descriptors as there were.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSException, JMSSecurityException

ATTEMPTS = 3
SETTLE_S = 10.0
SECURE = {"amqp": "amqps", "stomp": "stomp+ssl"}


@dataclass
class Server:
    """A listener on loopback that counts who comes."""

    port: int = 0
    accepted: int = 0
    sockets: list[socket.socket] = field(default_factory=list)


def shut(_: socket.socket, _server: ssl.SSLContext) -> None:
    """Close at once."""


def hear_and_shut(sock: socket.socket, _: ssl.SSLContext) -> None:
    """Read what comes first, then close."""
    sock.recv(2000)


def speak_plainly(sock: socket.socket, _: ssl.SSLContext) -> None:
    """Answer in plain text to whatever comes."""
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    sock.recv(2000)


def shake_hands_and_shut(sock: socket.socket, server: ssl.SSLContext) -> None:
    """Agree on TLS, then close."""
    with server.wrap_socket(sock, server_side=True) as secure:
        secure.recv(2000)


def ask_for_a_certificate(sock: socket.socket, server: ssl.SSLContext) -> None:
    """Agree on TLS with clients that have a certificate; with TLS 1.3 the refusal comes after the handshake."""
    server.verify_mode = ssl.CERT_REQUIRED
    with server.wrap_socket(sock, server_side=True) as secure:
        secure.recv(2000)


@pytest.fixture
def serve(server: ssl.SSLContext) -> Iterator[Callable[..., Server]]:
    """Make servers: ``serve(behaviour)``."""
    with contextlib.ExitStack() as stack:

        def make(behaviour: Callable[[socket.socket, ssl.SSLContext], None]) -> Server:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            made = Server(port=int(listener.getsockname()[1]))

            def accept() -> None:
                while True:
                    try:
                        sock, _ = listener.accept()
                    except OSError:
                        return
                    made.accepted += 1
                    with sock, contextlib.suppress(OSError):
                        sock.settimeout(SETTLE_S)
                        behaviour(sock, server)

            thread = threading.Thread(target=accept, daemon=True)
            thread.start()
            stack.callback(thread.join, SETTLE_S)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            return made

        yield make


def open_things() -> tuple[int, int]:
    return threading.active_count(), sum(1 for _ in Path("/proc/self/fd").iterdir())


def settled(before: tuple[int, int]) -> tuple[int, int]:
    """The threads and descriptors when no more of them end."""
    deadline = time.monotonic() + SETTLE_S
    while open_things() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    return open_things()


def fail(url: str, **options: Any) -> JMSException:
    """Fail to connect with up to three attempts; nothing stays open."""
    before = open_things()
    again = f"startupMaxReconnectAttempts={ATTEMPTS}&reconnectDelay=1&maxReconnectDelay=1"
    factory = jmsapi.connection_factory(f"failover:({url})?{again}", connect_timeout_ms=5000, close_timeout_ms=2000, **options)
    with pytest.raises(JMSException) as caught:
        factory.create_connection()
    assert settled(before) <= before
    return caught.value


@pytest.fixture(params=["amqp", "stomp"])
def wire(request: pytest.FixtureRequest) -> str:
    """Each wire in turn."""
    return str(request.param)


TLS_ROWS: list[tuple[Callable[[socket.socket, ssl.SSLContext], None], dict[str, str], str, int]] = [
    # the option is wrong: final, named, and nobody is asked when the file alone shows it
    (shake_hands_and_shut, {"tls_ca": "/no/such/ca.pem"}, "tls_ca names '/no/such/ca.pem'", 0),
    (shake_hands_and_shut, {"tls_ca": "no.pem"}, "tls_ca", 0),
    (shake_hands_and_shut, {"tls_cert": "/no/such.pem"}, "tls_cert names '/no/such.pem'", 0),
    (shake_hands_and_shut, {"tls_cert": "good.pem", "tls_key": "/no/such.key"}, "tls_key names '/no/such.key'", 0),
    (shake_hands_and_shut, {"tls_cert": "good.pem", "tls_key": "other.key"}, "tls_key", 0),
    (shake_hands_and_shut, {"tls_cert": "good.pem", "tls_key": "locked.key", "tls_key_password": "x"}, "tls_key_password", 0),
    (shake_hands_and_shut, {"tls_cert": "good.pem", "tls_key": "locked.key"}, "tls_key_password", 0),
    (speak_plainly, {}, "scheme", 1),
    # refused, by us or by the peer: final
    (shake_hands_and_shut, {"tls_ca": "other.pem"}, "tls_ca", 1),
    (ask_for_a_certificate, {}, "tls_cert", 1),
    # down at the moment: tried again
    (shut, {}, "127.0.0.1", ATTEMPTS),
    (hear_and_shut, {}, "127.0.0.1", ATTEMPTS),
    (shake_hands_and_shut, {}, "127.0.0.1", ATTEMPTS),
]
IDS = [f"{row[0].__name__}-{'-'.join(row[1].values()) or 'no options'}".replace("/", "_") for row in TLS_ROWS]


@pytest.mark.parametrize(("behaviour", "given", "words", "attempts"), TLS_ROWS, ids=IDS)
def test_each_fault_of_tls(
    behaviour: Callable[[socket.socket, ssl.SSLContext], None],
    given: dict[str, str],
    words: str,
    attempts: int,
    wire: str,
    certificates: Path,
    serve: Callable[..., Server],
) -> None:
    options = {"tls_ca": "good.pem", **given}
    options = {
        name: value if value.startswith("/") or name == "tls_key_password" else str(certificates / value)
        for name, value in options.items()
    }
    server = serve(behaviour)
    error = fail(f"{SECURE[wire]}://user:word@127.0.0.1:{server.port}", **options)
    assert words in str(error)
    assert server.accepted == attempts
    if attempts == 0:
        assert (type(error), error.error_code) == (JMSException, "bad-option")
    if attempts == ATTEMPTS:
        assert not isinstance(error, JMSSecurityException)


def test_a_certificate_of_another_name_is_final_and_says_by_which_option_it_may_be_accepted(
    wire: str, certificates: Path
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as listener:
        port = int(listener.getsockname()[1])

        def answer() -> None:
            sock, _ = listener.accept()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates / "good.pem", certificates / "good.key")
            with sock, contextlib.suppress(OSError), context.wrap_socket(sock, server_side=True) as secure:
                secure.recv(100)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        refused = fail(f"{SECURE[wire]}://user:word@127.0.0.2:{port}", tls_ca=str(certificates / "good.pem"))
        thread.join(SETTLE_S)
    assert isinstance(refused, JMSSecurityException)
    assert "tls_verify_host" in str(refused)


PLAIN_ROWS = [(shut, ATTEMPTS), (hear_and_shut, ATTEMPTS), (speak_plainly, ATTEMPTS)]


@pytest.mark.parametrize(("behaviour", "attempts"), PLAIN_ROWS, ids=lambda part: getattr(part, "__name__", str(part)))
def test_each_fault_without_tls(
    behaviour: Callable[[socket.socket, ssl.SSLContext], None], attempts: int, wire: str, serve: Callable[..., Server]
) -> None:
    server = serve(behaviour)
    error = fail(f"{wire}://127.0.0.1:{server.port}")
    assert not isinstance(error, JMSSecurityException)
    assert server.accepted >= attempts


def test_nobody_there_and_no_such_host_are_tried_again(wire: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = int(closed.getsockname()[1])
    for place in (f"127.0.0.1:{port}", f"no-such-host.invalid:{port}"):
        error = fail(f"{wire}://{place}")
        assert f"tried {ATTEMPTS} times" in str(error)
        assert not isinstance(error, JMSSecurityException)


def sasl_outcome(code: int) -> Callable[[socket.socket, ssl.SSLContext], None]:
    """Answer an AMQP login with an outcome of SASL, then close."""

    def behave(sock: socket.socket, _: ssl.SSLContext) -> None:
        sock.sendall(b"AMQP\3\1\0\0" + bytes.fromhex("0000001502010000 005340 c00801a305") + b"PLAIN")
        heard = b""
        while b"PLAIN" not in heard:
            data = sock.recv(2000)
            if not data:
                return
            heard += data
        sock.sendall(bytes.fromhex("0000001002010000 005344 c0030150") + bytes([code]))
        sock.recv(2000)

    return behave


@pytest.mark.parametrize(("code", "attempts"), [(1, 1), (2, ATTEMPTS), (3, 1), (4, ATTEMPTS)])
def test_a_login_over_amqp_that_fails_by_a_fault_of_the_broker_is_tried_again_and_one_that_is_refused_is_not(
    code: int, attempts: int, serve: Callable[..., Server]
) -> None:
    server = serve(sasl_outcome(code))
    error = fail(f"amqp://user:word@127.0.0.1:{server.port}")
    assert "log in to" in str(error)
    assert server.accepted == attempts
    assert isinstance(error, JMSSecurityException) is (attempts == 1)
