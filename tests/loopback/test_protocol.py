"""What the loopback server says to clients that speak STOMP well, badly or not at all. They read by code of their own."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
import time
import tracemalloc
import weakref
from collections import Counter

import pytest

import jmsapi
from jmsapi.testing import LoopbackServer, _stomp_wire

from ..peers.stomp_peer import PeerConnection, PeerGone
from .conftest import Raw, ended, texts, until

ORDERS = "/queue/orders"


def subscribe(connection: PeerConnection, destination: str = ORDERS, **headers: str) -> None:
    """Subscribe under the id 1 and wait until it is so."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.send("SUBSCRIBE", {"id": "1", "destination": destination, "ack": "client-individual", "receipt": "there", **given})
    assert connection.expect("RECEIPT") == {"receipt-id": "there"}


def send(connection: PeerConnection, *bodies: str, destination: str = ORDERS, **headers: str) -> None:
    for body in bodies:
        connection.send("SEND", {"destination": destination, "receipt": "sent", **headers}, body.encode())
        assert connection.expect("RECEIPT") == {"receipt-id": "sent"}


def received(connection: PeerConnection, n: int = 1) -> list[tuple[dict[str, str], str]]:
    found: list[tuple[dict[str, str], str]] = []
    for _ in range(n):
        command, headers, body = connection.frame()
        assert command == "MESSAGE", headers
        found.append((headers, body.decode()))
    return found


# ---------------------------------------------------------------- greeting


def test_a_greeting_is_answered_with_version_server_and_heart_beats(connect: Raw) -> None:
    connection = connect(greeted=False)
    connection.send("STOMP", {"accept-version": "1.0,1.1,1.2", "host": "/"})
    headers = connection.expect("CONNECTED")
    assert headers["version"] == "1.2"
    assert headers["server"] == f"jmsapi-loopback/{jmsapi.__version__}"
    assert headers["heart-beat"] == "100,100"


@pytest.mark.parametrize(
    ("command", "headers", "said"),
    [
        ("CONNECT", {"accept-version": "1.0,1.1"}, "1.2 only"),
        ("CONNECT", {}, "1.2 only"),
        ("CONNECT", {"accept-version": "1.2", "heart-beat": "often"}, "heart-beat"),
        ("CONNECT", {"accept-version": "1.2", "heart-beat": "-1,0"}, "heart-beat"),
        ("CONNECT", {"accept-version": "1.2", "client-id": ""}, "client id"),
        ("SEND", {"destination": ORDERS}, "the first frame"),
    ],
)
def test_a_greeting_that_will_not_do_ends_the_connection(connect: Raw, command: str, headers: dict[str, str], said: str) -> None:
    connection = connect(greeted=False)
    connection.send(command, headers)
    assert said in ended(connection)["message"]


def test_credentials_are_asked_for_where_the_server_has_some(connect: Raw) -> None:
    with LoopbackServer(user="ann", password="se:cret") as server:
        connect(to=server, login="ann", passcode="se:cret")
        for wrong in ({"login": "ann", "passcode": "no"}, {"login": "bob", "passcode": "se:cret"}, {}):
            connection = connect(greeted=False, to=server)
            connection.send("CONNECT", {"accept-version": "1.2", **wrong})
            assert ended(connection)["message"].startswith("[security]")
        url = server.url.replace("//", "//ann:se%3Acret@")
        with jmsapi.connection_factory(url).create_context() as context:
            context.create_producer().send(context.create_queue("q"), "a")
        with pytest.raises(jmsapi.JMSSecurityRuntimeException):
            jmsapi.connection_factory(server.url).create_context()


def test_a_client_id_is_used_by_one_connection_at_a_time(connect: Raw, server: LoopbackServer) -> None:
    first = connect(**{"client-id": r"a\b"})
    second = connect(greeted=False)
    second.send("CONNECT", {"accept-version": "1.2", "client-id": r"a\b"})
    assert ended(second)["message"].startswith("[client-id]")
    first.send("DISCONNECT", {"receipt": "bye"})
    assert first.expect("RECEIPT") == {"receipt-id": "bye"}
    connect(**{"client-id": r"a\b"})


# ---------------------------------------------------------------- malformed

TEXT = "JMS_PY_type:Text\n"
MALFORMED = {
    "no empty line": b"SEND\0",
    "no command that there is": b"SHOUT\n\n\0",
    "a broker's frame": b"MESSAGE\nsubscription:1\n\n\0",
    "no destination": b"SEND\n\nx\0",
    "a destination without a name": b"SEND\ndestination:/queue/\n\nx\0",
    "an escape that there is not": b"SEND\ndestination:/queue/orders\nname:a\\tb\n\nx\0",
    "an escape cut short": b"SEND\ndestination:/queue/orders\nname:a\\\n\nx\0",
    "a header that is no text": b"SEND\ndestination:/queue/orders\nname:\xff\xfe\n\nx\0",
    "a length that is no number": b"SEND\ndestination:/queue/orders\ncontent-length:many\n\nx\0",
    "a negative length": b"SEND\ndestination:/queue/orders\ncontent-length:-1\n\nx\0",
    "a body longer than its length": b"SEND\ndestination:/queue/orders\ncontent-length:1\n\nxyz\0",
    "a priority that is no number": b"SEND\ndestination:/queue/orders\npriority:high\n\nx\0",
    "a time that is no number": b"SEND\ndestination:/queue/orders\nexpires:soon\n\nx\0",
    "a time before all time": b"SEND\ndestination:/queue/orders\nexpires:-1\n\nx\0",
    "a time after all time": b"SEND\ndestination:/queue/orders\nJMS_PY_due:%d\n\nx\0" % 10**30,
    "a number too long for Python": b"SEND\ndestination:/queue/orders\ntimestamp:%b\n\nx\0" % (b"9" * 5000),
    "a property that is not of its type": b"SEND\ndestination:/queue/orders\nn:seven\nJMS_PY_props:n=i\n\nx\0",
    "a list of types that is none": b"SEND\ndestination:/queue/orders\nJMS_PY_props:n\n\nx\0",
    "a text that is no text": b"SEND\ndestination:/queue/orders\n" + TEXT.encode() + b"\n\xff\xfe\0",
    "a map that is no map": b"SEND\ndestination:/queue/orders\nJMS_PY_type:Map\n\n[1]\0",
    "a stream that is deep": b"SEND\ndestination:/queue/orders\nJMS_PY_type:Stream\n\n" + b"[" * 100_000 + b"\0",
    "a correlation id that is not base64": b"SEND\ndestination:/queue/orders\nJMS_PY_corr:???\n\nx\0",
    "a transaction that there is not": b"SEND\ndestination:/queue/orders\ntransaction:t\n\nx\0",
    "a temporary queue that there is not": b"SEND\ndestination:/temp-queue/x\n\nx\0",
    "a subscription without an id": b"SUBSCRIBE\ndestination:/queue/orders\n\n\0",
    "a subscription to nothing": b"SUBSCRIBE\nid:1\n\n\0",
    "a selector that is none": b"SUBSCRIBE\nid:1\ndestination:/queue/orders\nselector:a ==\n\n\0",
    "a mode that there is not": b"SUBSCRIBE\nid:1\ndestination:/queue/orders\nack:never\n\n\0",
    "a window that is no number": b"SUBSCRIBE\nid:1\ndestination:/queue/orders\nwindow:wide\n\n\0",
    "a subscription of that id is not there": b"UNSUBSCRIBE\nid:1\n\n\0",
    "an acknowledgement of nothing": b"ACK\n\n\0",
    "a transaction without a name": b"BEGIN\n\n\0",
    "a commit of nothing": b"COMMIT\ntransaction:t\n\n\0",
    "two greetings": b"CONNECT\naccept-version:1.2\n\n\0",
    "noise": bytes(range(1, 256)) * 20 + b"\0",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_a_frame_that_will_not_do_ends_its_connection_and_no_other(
    connect: Raw, inside: jmsapi.JMSContext, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    other = connect()
    connection = connect()
    connection.raw(data)
    assert ended(connection)["message"].startswith("[")
    assert texts(inside, "orders") == []
    send(other, "still here")
    assert texts(inside, "orders") == ["still here"]
    assert not [record for record in caplog.records if record.exc_info], "a fault of the server itself"


@pytest.mark.parametrize(
    ("command", "headers", "kind"),
    [
        ("SEND", {"destination": "/temp-queue/x"}, "destination"),
        ("SEND", {"destination": ORDERS, "expires": "soon"}, "format"),
        ("SUBSCRIBE", {"id": "1", "destination": ORDERS, "selector": "a =="}, "selector"),
        ("SUBSCRIBE", {"id": "1", "destination": "/topic/t", "subscription": "s", "durable": "true"}, "client-id"),
        ("UNSUBSCRIBE", {"id": "9"}, "subscription"),
        ("UNSUBSCRIBE", {"id": "9", "remove-subscription": "none"}, "subscription"),
        ("ACK", {"id": "9"}, "closed"),
        ("NACK", {"id": "nine"}, "closed"),
        ("COMMIT", {"transaction": "t"}, "closed"),
    ],
)
def test_a_frame_that_wants_an_answer_is_refused_by_name_and_the_connection_lives(
    connect: Raw, command: str, headers: dict[str, str], kind: str
) -> None:
    connection = connect()
    connection.send(command, {**headers, "receipt": "a:b"}, b"x" if command == "SEND" else b"")
    error = connection.expect("ERROR")
    assert error["receipt-id"] == "a:b"
    assert error["message"].startswith(f"[{kind}] ")
    send(connection, "still here")


def test_frames_may_come_in_pieces_and_with_carriage_returns(connect: Raw, inside: jmsapi.JMSContext) -> None:
    connection = connect()
    data = b"\r\n\nSEND\r\ndestination:/queue/orders\r\nreceipt:1\r\nname:v\r\n\r\none\0"
    data += b"\n\nSEND\ndestination:orders\nreceipt:2\n\ntwo\0"
    for byte in data:
        connection.raw(bytes([byte]))
    assert [connection.expect("RECEIPT")["receipt-id"] for _ in range(2)] == ["1", "2"]
    assert texts(inside, "orders") == ["one", "two"]
    consumer = inside.create_consumer(inside.create_queue("orders"), "name = 'v'")
    assert consumer.receive_no_wait() is not None


def test_a_frame_larger_than_the_server_takes_is_refused_before_it_is_whole(connect: Raw) -> None:
    with LoopbackServer(max_frame=100_000) as server:
        announced = connect(to=server)
        announced.raw(b"SEND\ndestination:/queue/orders\ncontent-length:100001\n\nx\0")
        assert "100000" in ended(announced)["message"]
        endless = connect(to=server)
        tracemalloc.start()
        try:
            with contextlib.suppress(OSError):
                for _ in range(10_000):
                    endless.raw(b"x" * 10_000)
            with pytest.raises((PeerGone, OSError)):
                assert endless.frame()[0] == "ERROR"
                endless.frame()
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()
        fits = connect(to=server)
        fits.send("SEND", {"destination": ORDERS, "receipt": "1"}, b"y" * 90_000)
        fits.expect("RECEIPT")


def test_a_first_frame_is_no_larger_than_a_greeting_needs(connect: Raw, server: LoopbackServer) -> None:
    stranger = connect(to=server, greeted=False)
    with contextlib.suppress(OSError):
        stranger.raw(b"CONNECT\nx:" + b"a" * 100_000)
    with pytest.raises((PeerGone, OSError)):
        assert stranger.frame()[0] == "ERROR"
        stranger.frame()


def test_clients_that_send_frames_by_half_are_cut_off_when_all_of_them_have_too_much_waiting(connect: Raw) -> None:
    with LoopbackServer(max_waiting=150_000) as server:
        half = b"SEND\ndestination:/queue/orders\ncontent-length:120000\n\n" + b"x" * 99_000
        patient, greedy, other = connect(to=server), connect(to=server), connect(to=server)
        patient.raw(half)
        send(other, "one")
        greedy.raw(half)
        assert "150000" in ended(greedy)["message"]
        # What the one had sent counts no more, and the other goes on.
        send(other, "two")
        patient.raw(b"x" * 21_000 + b"\0")
        send(patient, "three")


def test_nothing_is_kept_of_a_client_that_has_gone(connect: Raw, server: LoopbackServer) -> None:
    client = connect(to=server, **{"heart-beat": "999999999,999999999"})
    (peer,) = server._peers
    known = weakref.ref(peer)
    del peer
    client.raw(b"SEND\ndestination:/queue/orders\ncontent-length:200000\n\n" + b"x" * 99_000)
    until(lambda: known() is not None and server._waiting.total > 99_000)
    client.close()
    until(lambda: gc.collect() >= 0 and known() is None)
    assert server._waiting.total == 0


def test_our_own_client_does_not_send_what_the_server_would_not_take(over: jmsapi.JMSContext) -> None:
    with pytest.raises(jmsapi.MessageFormatRuntimeException, match="bytes on the wire"):
        over.create_producer().send(over.create_queue("orders"), b"x" * (16 << 20))
    over.create_producer().send(over.create_queue("orders"), b"x" * (15 << 20))


# ---------------------------------------------------------------- messages


def test_a_message_without_an_id_or_a_time_gets_both(connect: Raw, inside: jmsapi.JMSContext) -> None:
    connection = connect()
    before = time.time_ns() // 1_000_000
    send(connection, "a", "b", region="EU")
    subscribe(connection)
    frames = received(connection, 2)
    assert [body for _, body in frames] == ["a", "b"]
    ids = {headers["message-id"] for headers, _ in frames}
    assert len(ids) == 2 and all(one.startswith("ID:") for one in ids)
    for headers, _ in frames:
        assert headers["region"] == "EU"
        assert headers["destination"] == ORDERS
        assert before <= int(headers["timestamp"]) <= time.time_ns() // 1_000_000
        assert "receipt" not in headers and "redelivered" not in headers


def test_headers_that_only_the_server_says_are_not_taken_from_a_sender(connect: Raw) -> None:
    connection = connect()
    forged = {"subscription": "7", "ack": "7", "redelivered": "true", "delivery-count": "9", "browser": "end"}
    send(connection, "a", **forged, **{"message-id": "mine"})
    subscribe(connection)
    ((headers, _),) = received(connection)
    assert headers["subscription"] == "1" and headers["delivery-count"] == "1" and headers["message-id"] != "mine"
    assert not {"redelivered", "browser"} & set(headers)


def test_a_window_holds_back_what_is_more_and_can_be_widened(connect: Raw) -> None:
    connection = connect()
    send(connection, *"abcdef")
    subscribe(connection, window="2")
    frames = received(connection, 2)
    send(connection, "g")  # its receipt comes next: nothing else was on its way
    connection.send("ACK", {"id": frames[0][0]["ack"]})
    assert received(connection)[0][1] == "c"
    connection.send("SUBSCRIBE", {"id": "1", "widen": "true", "window": "2", "receipt": "wider"})
    more = [connection.frame() for _ in range(3)]
    assert sorted(command for command, _, _ in more) == ["MESSAGE", "MESSAGE", "RECEIPT"]
    assert [body for command, _, body in more if command == "MESSAGE"] == [b"d", b"e"]


def test_acknowledgements_mean_one_message_or_all_up_to_it_or_are_not_wanted(connect: Raw, inside: jmsapi.JMSContext) -> None:
    for mode, left in (("client-individual", ["a", "c"]), ("client", ["c"]), ("auto", [])):
        connection = connect()
        send(connection, "a", "b", "c")
        subscribe(connection, ack=mode)
        frames = received(connection, 3)
        if mode == "auto":
            assert "ack" not in frames[0][0]
        else:
            connection.send("ACK", {"id": frames[1][0]["ack"], "receipt": "done"})
            connection.expect("RECEIPT")
        connection.send("DISCONNECT", {"receipt": "bye"})
        connection.expect("RECEIPT")
        assert texts(inside, "orders") == left
        consumer = inside.create_consumer(inside.create_queue("orders"))
        while consumer.receive_no_wait() is not None:
            continue
        consumer.close()


def test_a_negative_acknowledgement_says_what_became_of_the_message(connect: Raw, inside: jmsapi.JMSContext) -> None:
    connection = connect()
    send(connection, "a")
    subscribe(connection, window="1")
    counts: list[tuple[str, str | None]] = []
    for said in ({"outcome": "failed"}, {"outcome": "released"}, {"outcome": "failed", "failures": "3"}, {}, None):
        ((headers, _),) = received(connection)
        counts.append((headers["delivery-count"], headers.get("redelivered")))
        if said is not None:
            connection.send("NACK", {"id": headers["ack"], **said})
    assert counts == [("1", None), ("2", "true"), ("2", "true"), ("5", "true"), ("6", "true")]
    connection.send("NACK", {"id": headers["ack"], "outcome": "rejected", "receipt": "gone"})
    connection.expect("RECEIPT")
    assert (texts(inside, "orders"), texts(inside, "DLQ.orders")) == ([], ["a"])


def test_a_transaction_does_all_or_nothing(connect: Raw, inside: jmsapi.JMSContext) -> None:
    connection = connect()
    send(connection, "in")
    subscribe(connection, window="1")
    ((headers, _),) = received(connection)
    for end, left in (("ABORT", []), ("COMMIT", ["out"])):
        connection.send("BEGIN", {"transaction": "t"})
        send(connection, "out", destination="/queue/done", transaction="t")
        connection.send("ACK", {"id": headers["ack"], "transaction": "t"})
        assert texts(inside, "done") == []
        connection.send(end, {"transaction": "t", "receipt": end})
        connection.expect("RECEIPT")
        assert texts(inside, "done") == left
    send(connect(), "next")
    assert received(connection)[0][1] == "next"  # the commit made room in the window
    connection.send("ACK", {"id": headers["ack"], "receipt": "late"})
    assert connection.expect("ERROR")["message"].startswith("[closed]")


def test_what_a_transaction_of_a_lost_client_did_is_undone(connect: Raw, inside: jmsapi.JMSContext) -> None:
    connection = connect()
    send(connection, "in")
    subscribe(connection)
    ((headers, _),) = received(connection)
    connection.send("BEGIN", {"transaction": "t"})
    send(connection, "out", destination="/queue/done", transaction="t")
    connection.send("ACK", {"id": headers["ack"], "transaction": "t", "receipt": "taken"})
    connection.expect("RECEIPT")
    connection.close()
    until(lambda: texts(inside, "orders") == ["in"])
    assert texts(inside, "done") == []
    message = inside.create_consumer(inside.create_queue("orders")).receive(10_000)
    assert message is not None and message.get_int_property("JMSXDeliveryCount") == 2


# ---------------------------------------------------------------- peers that go, are silent, or do not read


def test_a_client_that_vanishes_gives_back_what_it_held_in_order_and_marked(connect: Raw, server: LoopbackServer) -> None:
    holder, other = connect(), connect()
    send(holder, "a", "b", "c")
    subscribe(holder, window="2")
    received(holder, 2)
    subscribe(other)
    assert received(other)[0][1] == "c"
    holder.socket.shutdown(socket.SHUT_RDWR)
    frames = received(other, 2)
    assert [body for _, body in frames] == ["a", "b"]
    assert [headers["delivery-count"] for headers, _ in frames] == ["2", "2"]
    until(lambda: server.connections == 1)


def test_a_client_that_promised_heart_beats_and_is_silent_is_taken_for_dead(connect: Raw, inside: jmsapi.JMSContext) -> None:
    sender, holder = connect(), connect(**{"heart-beat": "100,0"})
    send(sender, "a")
    subscribe(holder)
    received(holder)
    began = time.monotonic()
    consumer = inside.create_consumer(inside.create_queue("orders"))
    message = consumer.receive(10_000)
    assert message is not None and message.jms_redelivered
    assert 0.5 < time.monotonic() - began < 8


def test_a_client_that_wants_heart_beats_gets_them(connect: Raw) -> None:
    connection = connect(**{"heart-beat": "0,100"})
    for _ in range(5):
        assert connection.socket.recv(1) == b"\n"


def test_a_client_that_does_not_read_holds_up_nobody_and_loses_nothing(connect: Raw, inside: jmsapi.JMSContext) -> None:
    lazy, busy = connect(), connect()
    body = "x" * 10_000
    producer = inside.create_producer()
    for number in range(1000):
        producer.send(inside.create_queue("orders"), f"{number} {body}")
    subscribe_to_all = {"id": "1", "destination": ORDERS, "ack": "client-individual"}
    lazy.send("SUBSCRIBE", subscribe_to_all)
    send(busy, *"abcde", destination="/queue/other")
    subscribe(busy, "/queue/other")
    assert [body for _, body in received(busy, 5)] == list("abcde")
    assert [body.split()[0] for _, body in received(lazy, 1000)] == [str(number) for number in range(1000)]


def test_what_was_not_written_when_a_subscription_ends_is_not_written_any_more(connect: Raw, inside: jmsapi.JMSContext) -> None:
    lazy = connect()
    producer = inside.create_producer()
    for number in range(1000):
        producer.send(inside.create_queue("orders"), f"{number} {'x' * 20_000}")
    subscribe_to_all = {"id": "1", "destination": ORDERS, "ack": "client-individual"}
    lazy.send("SUBSCRIBE", subscribe_to_all)
    until(lambda: texts(inside, "orders") == [])
    lazy.send("UNSUBSCRIBE", {"id": "1", "receipt": "gone"})
    until(lambda: len(texts(inside, "orders")) == 1000)
    commands: list[str] = []
    while commands[-1:] != ["RECEIPT"]:
        commands.append(lazy.frame()[0])
    assert len(commands) < 1000


def test_a_client_that_never_reads_its_answers_is_cut_off(
    connect: Raw, monkeypatch: pytest.MonkeyPatch, server: LoopbackServer
) -> None:
    monkeypatch.setattr(_stomp_wire, "MOST_ANSWERS", 100)
    connection = connect()
    frame = b"BEGIN\ntransaction:%d\nreceipt:" + b"r" * 1000 + b"\n\n\0"
    with pytest.raises(OSError):
        for number in range(100_000):
            connection.raw(frame % number)
    until(lambda: server.connections == 0)


def test_a_hundred_clients_share_a_queue_on_one_thread(connect: Raw, server: LoopbackServer) -> None:
    threads = threading.active_count()
    clients = [connect() for _ in range(100)]
    for client in clients:
        subscribe(client, window="10")
    sender = connect()
    for number in range(1000):
        sender.send("SEND", {"destination": ORDERS}, str(number).encode())
    taken: Counter[str] = Counter()
    for client in clients:
        frames = received(client, 10)
        taken.update(body for _, body in frames)
        for headers, _ in frames:
            client.send("ACK", {"id": headers["ack"]})
    assert taken == Counter(map(str, range(1000)))
    assert threading.active_count() == threads
    assert server.connections == 101
    for client in clients:
        client.close()
    until(lambda: server.connections == 1)
    last = connect()
    subscribe(last)
    send(sender, "last")
    assert received(last)[0][1] == "last"  # everything else was acknowledged


def test_one_client_too_many_is_refused_and_a_place_that_is_free_again_is_given(connect: Raw) -> None:
    with LoopbackServer(max_connections=2) as server:
        first = connect(to=server)
        connect(to=server)
        third = connect(greeted=False, to=server)
        assert ended(third)["message"].startswith("[resource]")
        first.close()
        until(lambda: server.connections == 1)
        connect(to=server)


def test_a_server_that_closes_takes_nothing_with_it_but_its_sockets(connect: Raw) -> None:
    name = "loopback-outlived"
    with LoopbackServer(name) as server:
        connection = connect(to=server)
        send(connection, "a")
        subscribe(connection)
        received(connection)
        port = server.port
    with pytest.raises(PeerGone):
        connection.frame()
    with LoopbackServer(name, port=port) as server:
        again = connect(to=server)
        subscribe(again)
        assert received(again)[0][1] == "a"
        server.close()
    with LoopbackServer(port=port) as fresh, jmsapi.connection_factory(fresh.inproc_url).create_context() as context:
        assert texts(context, "orders") == []


def test_a_server_says_what_is_wrong_with_its_arguments() -> None:
    with pytest.raises(jmsapi.IllegalArgumentException, match="a user and a password"):
        LoopbackServer(user="ann")
    with pytest.raises(jmsapi.IllegalArgumentException, match="at least 1"):
        LoopbackServer(max_connections=0)
    with LoopbackServer() as server, pytest.raises(OSError):
        LoopbackServer(port=server.port)
