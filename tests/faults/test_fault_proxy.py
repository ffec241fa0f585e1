"""The fault proxy itself: what passes, what does not, and how each fault looks from either side."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from jmsapi.errors import IllegalArgumentException
from jmsapi.testing import Direction, End, FaultProxy

WAIT_S = 30.0


class Bench:
    """A server, the proxy before it, and the sockets a test opened."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack = stack
        self.server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.server.settimeout(WAIT_S)
        self.proxy = stack.enter_context(FaultProxy(("127.0.0.1", self.server.getsockname()[1])))

    def client(self) -> socket.socket:
        client = self.stack.enter_context(socket.create_connection(("127.0.0.1", self.proxy.port), WAIT_S))
        client.settimeout(WAIT_S)
        return client

    def broker(self) -> socket.socket:
        broker = self.stack.enter_context(self.server.accept()[0])
        broker.settimeout(WAIT_S)
        return broker

    def pair(self) -> tuple[socket.socket, socket.socket]:
        return self.client(), self.broker()


@pytest.fixture
def bench() -> Iterator[Bench]:
    with contextlib.ExitStack() as stack:
        yield Bench(stack)


def read(end: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        piece = end.recv(n - len(data))
        if not piece:
            break
        data += piece
    return data


def nothing_comes(end: socket.socket) -> bool:
    """Tell whether nothing is to be read for a moment; what would pass does so within a millisecond."""
    end.settimeout(0.15)
    try:
        return end.recv(1) is None
    except TimeoutError:
        return True
    finally:
        end.settimeout(WAIT_S)


def how_it_ended(end: socket.socket) -> str:
    try:
        return "fin" if read(end, 1 << 30) is not None else ""
    except ConnectionResetError:
        return "rst"


def test_without_faults_everything_passes_both_ways_and_is_counted(bench: Bench) -> None:
    client, broker = bench.pair()
    data = bytes(range(256)) * 4096
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    assert read(broker, len(data)) == data
    sender.join()
    broker.sendall(b"answer")
    assert read(client, 6) == b"answer"
    assert (bench.proxy.accepted, bench.proxy.open_connections) == (1, 1)
    assert bench.proxy.wait_for(lambda: bench.proxy.passed("both") == len(data) + 6)
    assert (bench.proxy.passed("to_broker"), bench.proxy.passed("to_client")) == (len(data), 6)


def test_the_end_of_one_stream_is_passed_on_and_the_other_goes_on(bench: Bench) -> None:
    client, broker = bench.pair()
    client.sendall(b"last words")
    client.shutdown(socket.SHUT_WR)
    assert read(broker, 100) == b"last words"
    broker.sendall(b"still here")
    broker.close()
    assert read(client, 100) == b"still here"
    assert bench.proxy.wait_for(lambda: bench.proxy.open_connections == 0)


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_cut_ends_both_sides_as_asked_and_new_connections_are_let_in(bench: Bench, how: End) -> None:
    client, broker = bench.pair()
    bench.proxy.cut(how)
    assert (how_it_ended(client), how_it_ended(broker)) == (how, how)
    assert (bench.proxy.open_connections, bench.proxy.ending_connections) == (0, int(how == "fin"))
    client.close()
    broker.close()
    assert bench.proxy.wait_for(lambda: bench.proxy.ending_connections == 0)
    client, broker = bench.pair()
    client.sendall(b"x")
    assert read(broker, 1) == b"x"


def test_a_reset_of_one_side_is_passed_on_as_a_reset(bench: Bench) -> None:
    client, broker = bench.pair()
    bench.proxy.half_open("client")
    assert how_it_ended(client) == "rst"
    client, broker = bench.pair()
    broker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    broker.close()
    assert how_it_ended(client) == "rst"


@pytest.mark.parametrize("direction", ["to_broker", "to_client", "both"])
def test_a_stalled_way_passes_nothing_until_it_is_resumed_and_then_all(bench: Bench, direction: Direction) -> None:
    client, broker = bench.pair()
    bench.proxy.stall(direction)
    client.sendall(b"up")
    broker.sendall(b"down")
    for end, way, expected in ((broker, "to_broker", b"up"), (client, "to_client", b"down")):
        if direction in (way, "both"):
            assert nothing_comes(end)
        else:
            assert read(end, len(expected)) == expected
    bench.proxy.resume()
    for end, way, expected in ((broker, "to_broker", b"up"), (client, "to_client", b"down")):
        if direction in (way, "both"):
            assert read(end, len(expected)) == expected


def test_a_stalled_sender_is_held_up_by_its_full_buffers(bench: Bench) -> None:
    client, _ = bench.pair()
    bench.proxy.stall("to_broker")
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.sendall(bytes(64 << 20))


@pytest.mark.parametrize("how", ["rst", "fin"])
@pytest.mark.parametrize("direction", ["to_broker", "to_client"])
def test_a_connection_is_cut_after_exactly_so_many_bytes_of_one_way(bench: Bench, direction: Direction, how: End) -> None:
    client, broker = bench.pair()
    sender, receiver = (client, broker) if direction == "to_broker" else (broker, client)
    sender.sendall(b"before")
    assert read(receiver, 6) == b"before"
    bench.proxy.cut_after(10, direction, how)
    receiver.sendall(b"the other way is not counted")
    assert read(sender, 28) == b"the other way is not counted"
    assert bench.proxy.cut_pending
    sender.sendall(b"0123456789abcdef")
    assert bench.proxy.wait_for(lambda: not bench.proxy.cut_pending)
    if how == "fin":
        assert read(receiver, 100) == b"0123456789"
    assert how_it_ended(sender) == how
    for end in (client, broker):
        end.close()
    # Only that one: the next lives.
    client, broker = bench.pair()
    client.sendall(b"0123456789abcdef")
    assert read(broker, 16) == b"0123456789abcdef"


def test_the_count_before_a_cut_begins_with_each_connection(bench: Bench) -> None:
    (one, at_one), (two, at_two) = bench.pair(), bench.pair()
    bench.proxy.cut_after(4)
    one.sendall(b"abc")
    two.sendall(b"abc")
    assert (read(at_one, 3), read(at_two, 3)) == (b"abc", b"abc")
    two.sendall(b"de")
    assert read(at_two, 10) == b"d"
    one.sendall(b"de")
    assert read(at_one, 2) == b"de"


def test_a_slow_link_takes_its_time(bench: Bench) -> None:
    client, broker = bench.pair()
    bench.proxy.slow(20_000, "to_broker")
    began = time.monotonic()
    client.sendall(bytes(10_000))
    assert len(read(broker, 10_000)) == 10_000
    assert time.monotonic() - began > 0.4
    began = time.monotonic()
    broker.sendall(bytes(1_000_000))
    assert len(read(client, 1_000_000)) == 1_000_000
    bench.proxy.slow(None)
    client.sendall(bytes(1_000_000))
    assert len(read(broker, 1_000_000)) == 1_000_000
    assert time.monotonic() - began < 20


def test_a_delay_keeps_what_comes_for_a_while_and_keeps_its_order(bench: Bench) -> None:
    client, broker = bench.pair()
    bench.proxy.delay(0.3, "to_client")
    began = time.monotonic()
    broker.sendall(b"one ")
    broker.sendall(b"two")
    assert read(client, 7) == b"one two"
    assert 0.28 < time.monotonic() - began < 20
    client.sendall(b"at once")
    assert read(broker, 7) == b"at once"


def test_one_side_of_a_half_open_connection_is_never_told(bench: Bench) -> None:
    client, broker = bench.pair()
    bench.proxy.half_open("broker")
    assert how_it_ended(broker) == "rst"
    client.sendall(b"is anybody there")
    assert nothing_comes(client)


def test_new_connections_are_accepted_and_never_answered(bench: Bench) -> None:
    old, at_old = bench.pair()
    bench.proxy.silence_new()
    new = bench.client()
    new.sendall(b"hello")
    assert nothing_comes(new)
    old.sendall(b"x")
    assert read(at_old, 1) == b"x"
    bench.server.settimeout(0.1)
    with pytest.raises(TimeoutError):
        bench.server.accept()
    bench.server.settimeout(WAIT_S)
    bench.proxy.heal()
    client, broker = bench.pair()
    client.sendall(b"y")
    assert read(broker, 1) == b"y"


def test_new_connections_are_refused_until_it_is_healed_and_open_ones_go_on(bench: Bench) -> None:
    old, at_old = bench.pair()
    port = bench.proxy.port
    bench.proxy.refuse_new()
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            bench.client()
    old.sendall(b"x")
    assert read(at_old, 1) == b"x"
    bench.proxy.heal()
    assert bench.proxy.port == port
    client, broker = bench.pair()
    client.sendall(b"y")
    assert read(broker, 1) == b"y"


def test_the_second_connection_is_answered_before_the_first(bench: Bench) -> None:
    bench.proxy.reorder_new()
    first = bench.client()
    first.sendall(b"first")
    assert bench.proxy.wait_for(lambda: bench.proxy.accepted == 1)
    second = bench.client()
    second.sendall(b"second")
    at_second = bench.broker()
    assert read(at_second, 6) == b"second"
    bench.server.settimeout(0.15)
    with pytest.raises(TimeoutError):
        bench.server.accept()
    bench.server.settimeout(WAIT_S)
    at_second.sendall(b"welcome")
    assert read(second, 7) == b"welcome"
    assert read(bench.broker(), 5) == b"first"


def test_a_held_connection_without_a_second_goes_on_when_it_is_healed(bench: Bench) -> None:
    bench.proxy.reorder_new()
    client = bench.client()
    client.sendall(b"x")
    assert bench.proxy.wait_for(lambda: bench.proxy.accepted == 1)
    bench.proxy.heal()
    assert read(bench.broker(), 1) == b"x"


def test_a_target_where_nobody_listens_resets_the_client(bench: Bench) -> None:
    bench.server.close()
    # The reset may be here before the client's own call is back.
    with pytest.raises(ConnectionResetError):
        read(bench.client(), 1)


def test_the_url_is_the_brokers_with_another_place_and_the_text_has_no_password() -> None:
    with FaultProxy("stomp://me:s%40cret@localhost:61613/x?heartbeat_ms=500") as proxy:
        assert proxy.url == f"stomp://me:s%40cret@127.0.0.1:{proxy.port}/x?heartbeat_ms=500"
        assert "cret" not in repr(proxy)


def test_close_ends_connections_and_the_thread_and_can_be_repeated(bench: Bench) -> None:
    client, broker = bench.pair()
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("jmsapi-fault-proxy-")]
    assert threads
    bench.proxy.close()
    assert (how_it_ended(client), how_it_ended(broker)) == ("rst", "rst")
    assert not any(thread.is_alive() for thread in threads)
    bench.proxy.close()
    bench.proxy.cut()
    with pytest.raises(ConnectionRefusedError):
        bench.client()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda proxy: proxy.cut("softly"),
        lambda proxy: proxy.cut_after(0),
        lambda proxy: proxy.cut_after(1, "both"),
        lambda proxy: proxy.stall("sideways"),
        lambda proxy: proxy.slow(0),
        lambda proxy: proxy.delay(-1),
        lambda proxy: proxy.half_open("middle"),
    ],
)
def test_what_makes_no_sense_is_refused(bench: Bench, wrong: Callable[[FaultProxy], None]) -> None:
    with pytest.raises(IllegalArgumentException):
        wrong(bench.proxy)


def test_a_target_without_a_port_is_refused() -> None:
    with pytest.raises(IllegalArgumentException):
        FaultProxy("amqp://127.0.0.1")
