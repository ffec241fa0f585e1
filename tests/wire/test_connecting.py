"""Connecting to a name with several addresses, some of which are dead."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.wire import connect

Listener = Callable[..., int]
QUICK_S = 5.0


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Make listeners: ``listener(serve)`` returns the port of one on 127.0.0.1 that has ``serve`` called with each socket."""
    with contextlib.ExitStack() as stack:

        def make(serve: Callable[[socket.socket], None]) -> int:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def accept() -> None:
                while True:
                    try:
                        sock, _ = server.accept()
                    except OSError:
                        return
                    with sock, contextlib.suppress(OSError):
                        serve(sock)

            thread = threading.Thread(target=accept, daemon=True)
            thread.start()
            stack.callback(thread.join, 5)
            stack.callback(server.shutdown, socket.SHUT_RDWR)
            return int(server.getsockname()[1])

        yield make


@pytest.fixture
def hole() -> Iterator[int]:
    """The port of a listener on 127.0.0.77 whose queue is full, so that it swallows SYN packets."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.77", 0))
        server.listen(0)
        for _ in range(6):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(server.getsockname())
        yield int(server.getsockname()[1])


def found(monkeypatch: pytest.MonkeyPatch, *places: tuple[str, int]) -> None:
    """Have the name broker.example stand for these addresses."""
    real = socket.getaddrinfo

    def look_up(host: str, *rest: object, **more: object) -> object:
        if host != "broker.example":
            return real(host, *rest, **more)  # type: ignore[call-overload]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def come_back_to(before: int) -> bool:
    """Whether there are as many descriptors as before, once the listeners' threads have closed their side."""
    deadline = time.monotonic() + QUICK_S
    while descriptors() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    return descriptors() == before


def say(word: bytes) -> Callable[[socket.socket], None]:
    return lambda sock: sock.sendall(word)


def heard(sock: socket.socket) -> bytes:
    with sock:
        sock.settimeout(QUICK_S)
        return sock.recv(10)


def test_the_socket_is_ready_for_use_and_does_not_block(listener: Listener) -> None:
    sock = connect("127.0.0.1", listener(say(b"hello")), QUICK_S)
    assert sock.gettimeout() == 0.0
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert heard(sock) == b"hello"


def test_an_address_that_swallows_everything_costs_a_quarter_of_a_second(
    listener: Listener, hole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(monkeypatch, ("127.0.0.77", hole), ("127.0.0.1", listener(say(b"second"))))
    before, begun = descriptors(), time.monotonic()
    sock = connect("broker.example", 1, 3.0)
    assert time.monotonic() - begun < 2.0
    assert heard(sock) == b"second"
    assert come_back_to(before)


def test_an_address_that_refuses_costs_no_time(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refused = int(closed.getsockname()[1])
    found(monkeypatch, ("127.0.0.1", refused), ("127.0.0.1", listener(say(b"second"))))
    assert heard(connect("broker.example", 1, 3.0)) == b"second"


def test_the_time_is_up_for_all_addresses_together(hole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, ("127.0.0.77", hole), ("127.0.0.77", hole))
    before, begun = descriptors(), time.monotonic()
    with pytest.raises(ProviderError, match=r"connect to broker\.example:1: no answer in time") as caught:
        connect("broker.example", 1, 0.6)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert 0.5 < time.monotonic() - begun < 2.0
    assert come_back_to(before)


def test_nobody_at_any_address_is_a_passing_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refused = int(closed.getsockname()[1])
    found(monkeypatch, ("127.0.0.1", refused), ("127.0.0.1", refused))
    before = descriptors()
    with pytest.raises(ProviderError, match="refused") as caught:
        connect("broker.example", 1, 3.0)
    assert caught.value.kind is ErrorKind.CONNECTION
    assert come_back_to(before)


@pytest.mark.parametrize("host", ["x" * 70 + ".example", "..", "a b\0c"])
def test_a_host_that_is_none_is_a_fault_of_the_kind_of_a_connection(host: str) -> None:
    with pytest.raises(ProviderError) as caught:
        connect(host, 1, 1.0)
    assert caught.value.kind in (ErrorKind.OPTION, ErrorKind.CONNECTION)


def trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates / "good.pem"))


def over_tls(server: ssl.SSLContext, word: bytes) -> Callable[[socket.socket], None]:
    def serve(sock: socket.socket) -> None:
        with server.wrap_socket(sock, server_side=True) as secure:
            secure.sendall(word)

    return serve


def test_tls_is_agreed_on(listener: Listener, certificates: Path, server: ssl.SSLContext) -> None:
    sock = connect("127.0.0.1", listener(over_tls(server, b"secret")), QUICK_S, lambda: trusting(certificates))
    assert sock.gettimeout() == 0.0
    assert heard(sock) == b"secret"


def test_an_address_that_cuts_the_handshake_short_is_passed_over(
    listener: Listener, certificates: Path, server: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(monkeypatch, ("127.0.0.1", listener(lambda _: None)), ("127.0.0.1", listener(over_tls(server, b"second"))))
    before = descriptors()
    sock = connect("broker.example", 1, 3.0, lambda: trusting(certificates), server_name="localhost")
    assert heard(sock) == b"second"
    assert come_back_to(before)


def test_a_handshake_without_an_answer_has_its_share_of_the_time(
    listener: Listener, certificates: Path, server: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    mute = listener(lambda _: over.wait(20))
    found(monkeypatch, ("127.0.0.1", mute), ("127.0.0.1", listener(over_tls(server, b"second"))))
    try:
        sock = connect("broker.example", 1, 4.0, lambda: trusting(certificates), server_name="localhost")
        assert heard(sock) == b"second"
    finally:
        over.set()


TLS_ROWS = [
    (lambda _: None, ErrorKind.CONNECTION),
    (lambda sock: sock.recv(2000), ErrorKind.CONNECTION),
    (say(b"AMQP\3\1\0\0"), ErrorKind.OPTION),
]


@pytest.mark.parametrize(("serve", "kind"), TLS_ROWS, ids=["closes at once", "closes in the handshake", "speaks no TLS"])
def test_a_handshake_that_fails_says_by_its_kind_whether_to_try_again(
    serve: Callable[[socket.socket], None], kind: ErrorKind, listener: Listener, certificates: Path
) -> None:
    port = listener(serve)
    before = descriptors()
    with pytest.raises(ProviderError) as caught:
        connect("127.0.0.1", port, QUICK_S, lambda: trusting(certificates))
    assert (caught.value.kind, caught.value.fatal) == (kind, True)
    assert come_back_to(before)


def test_a_certificate_that_is_not_trusted_is_final_and_no_other_address_is_tried(
    listener: Listener, server: ssl.SSLContext, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second: list[int] = []
    found(
        monkeypatch,
        ("127.0.0.1", listener(over_tls(server, b"first"))),
        ("127.0.0.1", listener(lambda _: second.append(1))),
    )
    with pytest.raises(ProviderError, match="tls_ca") as caught:
        connect("broker.example", 1, 3.0, ssl.create_default_context, server_name="localhost")
    assert caught.value.kind is ErrorKind.SECURITY
    assert second == []


def test_a_client_certificate_that_is_asked_for_is_named(listener: Listener, server: ssl.SSLContext, certificates: Path) -> None:
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(certificates / "good.pem")
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    port = listener(over_tls(server, b"never"))
    with pytest.raises(ProviderError) as caught:
        connect("127.0.0.1", port, QUICK_S, lambda: trusting(certificates))
    assert caught.value.kind is ErrorKind.SECURITY
