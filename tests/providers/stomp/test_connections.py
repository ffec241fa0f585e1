"""The connection against a scripted peer: answers that are late, wrong, missing or in pieces."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import pytest

import jmsapi
from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, Outcome, ProviderError, SystemClock
from jmsapi_conformance.brokers import Broker
from jmsapi_stomp import entry
from jmsapi_stomp.connection_settings import connection_settings
from jmsapi_stomp.lifecycle import RECENTLY_CLOSED
from jmsapi_stomp.options import StompOptions

from .conftest import Recorder

Dial = Callable[..., Any]
Peer = Callable[..., Any]

QUEUE = Address(DestinationKind.QUEUE, "orders")
TOPIC = Address(DestinationKind.TOPIC, "news")
RABBIT = "RabbitMQ/4.0.5"
CLASSIC = "ActiveMQ/6.3.1"


def refused(call: Callable[[], Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value


# Connecting


def test_connect_says_who_we_are_and_nothing_is_escaped_in_it(dial: Dial, peer: Peer) -> None:
    said: SimpleQueue[dict[str, str]] = SimpleQueue()

    def script(connection: Any) -> None:
        said.put(connection.welcome())
        connection.serve()

    dial(peer(script).url, user="us:er", password="p:w\\d", client_id="me", broker="artemis")
    assert said.get(timeout=5) | {"heart-beat": ""} == {
        "accept-version": "1.2",
        "host": "/",
        "login": "us:er",
        "passcode": "p:w\\d",
        "client-id": "me",
        "heart-beat": "",
    }


def test_a_backslash_is_doubled_where_the_broker_undoes_escapes_in_connect(dial: Dial, peer: Peer) -> None:
    said: SimpleQueue[dict[str, str]] = SimpleQueue()

    def script(connection: Any) -> None:
        said.put(connection.welcome(RABBIT))
        connection.serve()

    dial(peer(script).url, user="u", password="p\\d", broker="rabbitmq")
    assert said.get(timeout=5)["passcode"] == "p\\\\d"


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("user", ErrorKind.SECURITY),
        ("password", ErrorKind.SECURITY),
        ("client_id", ErrorKind.CLIENT_ID),
        ("vhost", ErrorKind.OPTION),
    ],
)
def test_what_connect_cannot_carry_is_refused_as_what_it_is(dial: Dial, peer: Peer, field: str, kind: ErrorKind) -> None:
    error = refused(lambda: dial(peer(lambda connection: connection.serve()).url, **{field: "a\nb"}))
    assert error.kind is kind
    assert field in error.message


def test_the_password_is_in_no_text() -> None:
    options = StompOptions.model_validate({"scheme": "stomp", "host": "h", "user": "u", "password": "s3cret"})
    assert "s3cret" not in repr(options)
    assert "s3cret" not in repr(connection_settings(options))


def test_a_refused_login_is_an_error_of_security_with_the_brokers_reason(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("ERROR", {"message": "Bad CONNECT"}, b"Access refused for user 'u'\n")
        connection.serve()

    error = refused(lambda: dial(peer(script).url, user="u", password="s3cret"))
    assert error.kind is ErrorKind.SECURITY
    assert "Access refused" in error.message
    assert "s3cret" not in error.message


def test_a_client_id_in_use_is_an_error_of_the_client_id(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("ERROR", {"message": "Broker: localhost - Client: me already connected from tcp\\c//x"})

    assert refused(lambda: dial(peer(script).url, client_id="me")).kind is ErrorKind.CLIENT_ID


@pytest.mark.parametrize("silences", [1, 2])
def test_who_closes_without_a_word_is_asked_once_more_for_its_reason(dial: Dial, peer: Peer, silences: int) -> None:
    asked: list[dict[str, str]] = []

    def script(connection: Any) -> None:
        asked.append(connection.expect("CONNECT"))
        if len(asked) > silences:
            connection.send("ERROR", {"message": "User name [u] or password is invalid."})
            connection.serve()

    error = refused(lambda: dial(peer(script).url, user="u", password="s3cret"))
    assert len(asked) == 2
    assert asked[0] == asked[1]
    assert error.kind is (ErrorKind.SECURITY if silences == 1 else ErrorKind.CONNECTION)
    assert ("password is invalid" if silences == 1 else "without an answer to CONNECT") in error.message


@pytest.mark.parametrize("ours", [True, False])
def test_a_client_id_that_the_broker_still_holds_for_us_is_asked_for_again_but_that_of_another_is_refused_at_once(
    dial: Dial, peer: Peer, ours: bool
) -> None:
    asked: list[str] = []

    def script(connection: Any) -> None:
        asked.append(connection.expect("CONNECT")["client-id"])
        if len(asked) < 3:
            connection.send("ERROR", {"message": "Broker: localhost - Client: me already connected from tcp\\c//x"})
            return
        connection.send("CONNECTED", {"version": "1.2", "server": CLASSIC, "heart-beat": "0,0"})
        connection.serve()

    there = peer(script)
    key = ("127.0.0.1", there.port, None, "me")
    if ours:
        RECENTLY_CLOSED.note_closed(key)
        line = dial(there.url, client_id="me")
        assert asked == ["me"] * 3
        assert not RECENTLY_CLOSED.holds(key), "it is taken again"
        line.close()
        assert RECENTLY_CLOSED.holds(key)
    else:
        assert refused(lambda: dial(there.url, client_id="me")).kind is ErrorKind.CLIENT_ID
        assert asked == ["me"]


def test_a_closed_port_is_an_error_that_names_it(dial: Dial) -> None:
    for _ in range(20):
        error = refused(lambda: dial("stomp://127.0.0.1:1"))
    assert error.kind is ErrorKind.CONNECTION
    assert "127.0.0.1:1" in error.message


def test_a_peer_that_says_nothing_is_given_up(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.serve()

    assert refused(lambda: dial(peer(script).url, connect_timeout_ms=200)).kind is ErrorKind.TIMEOUT


def test_a_peer_that_closes_at_once_is_an_error_of_the_connection(dial: Dial, peer: Peer) -> None:
    assert refused(lambda: dial(peer(lambda connection: connection.expect("CONNECT")).url)).kind is ErrorKind.CONNECTION


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n\0", b"\0", b"CONNECTED\nversion:1.2\nheart-beat:x\n\n\0", b"MESSAGE\n\n\0"]
)
def test_a_peer_that_speaks_another_language_is_an_error_of_the_protocol(dial: Dial, peer: Peer, answer: bytes) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.raw(answer)
        connection.serve()

    assert refused(lambda: dial(peer(script).url)).kind is ErrorKind.PROTOCOL


def test_an_older_protocol_is_refused(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("CONNECTED", {"version": "1.1", "server": "ActiveMQ/5"})
        connection.serve()

    error = refused(lambda: dial(peer(script).url))
    assert error.kind is ErrorKind.UNSUPPORTED
    assert "1.1" in error.message


def test_a_broker_that_hides_its_name_must_be_named(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("CONNECTED", {"version": "1.2"})
        connection.serve()

    url = peer(script).url
    error = refused(lambda: dial(url))
    assert error.kind is ErrorKind.OPTION
    assert "broker" in error.message
    assert dial(url, broker="classic").capabilities.broker == "classic"


# Heart-beats


def test_beats_go_out_while_nothing_else_does(dial: Dial, peer: Peer, until: Callable[..., None]) -> None:
    connections: list[Any] = []

    def script(connection: Any) -> None:
        connections.append(connection)
        connection.welcome(beats="0,100")
        connection.serve()

    dial(peer(script).url, heartbeat_ms=100)
    until(lambda: connections[0].beats >= 5)


def test_a_peer_that_owes_beats_and_is_silent_is_lost(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(beats="50,0")
        connection.serve()

    line = dial(peer(script).url, heartbeat_ms=50)
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert "heart-beat" in line.events.lost[0].message


def test_a_peer_that_beats_is_not_lost(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(beats="100,0")
        for _ in range(30):
            connection.raw(b"\n")
            time.sleep(0.05)
        connection.serve()

    line = dial(peer(script).url, heartbeat_ms=100)
    time.sleep(1.4)  # longer than the patience of 1.2 s
    assert line.events.lost == []


# Sends


def test_a_persistent_send_is_answered_by_its_receipt_and_another_when_it_is_written(dial: Dial, peer: Peer) -> None:
    go = threading.Event()

    def script(connection: Any) -> None:
        connection.welcome()
        held = [connection.expect("SEND")["receipt"] for _ in range(2)]
        assert "receipt" not in connection.expect("SEND")
        go.wait(10)
        for receipt in reversed(held):
            connection.send("RECEIPT", {"receipt-id": receipt})
        connection.serve()

    line = dial(peer(script).url)
    first, second = line.post(QUEUE), line.post(QUEUE)
    assert line.events.answer(line.post(QUEUE, delivery_mode=1)) is None
    assert {first, second}.isdisjoint(line.events._sent)
    go.set()
    assert line.events.answer(first) is None
    assert line.events.answer(second) is None


def test_what_waits_only_for_time_is_answered_when_the_provider_closes(dial: Dial, peer: Peer) -> None:
    """A temporary queue is emptied until nothing more comes; a provider that has closed does not go on waiting for it."""
    subscribed = threading.Event()

    def serve(connection: Any, command: str, headers: dict[str, str], body: bytes) -> None:
        if command == "SUBSCRIBE":
            subscribed.set()

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.serve(serve)

    line = dial(peer(script).url, drain_ms=60_000)
    queue = line.provider.create_temporary(line.session(), topic=False).result(30)
    subscribed.clear()
    removed = line.provider.remove(line.session(), queue)
    assert subscribed.wait(10)
    line.close()
    assert removed.exception(10) is None


def test_with_sync_all_every_send_is_confirmed(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.confirm("SEND")
        connection.serve()

    dial(peer(script).url, sync="all").send(QUEUE, delivery_mode=1)


def test_a_connection_refused_for_another_reason_may_be_tried_again(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("ERROR", {"message": "the broker is stopping"})
        connection.serve()

    error = refused(lambda: dial(peer(script).url))
    assert error.kind is ErrorKind.CONNECTION
    assert "the broker is stopping" in error.message


def test_an_error_that_names_a_send_fails_that_send_alone(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        bad = connection.expect("SEND")["receipt"]
        connection.send("ERROR", {"message": "not authorized to write", "receipt-id": bad})
        connection.serve()

    line = dial(peer(script).url)
    error = line.events.answer(line.post(QUEUE))
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.SECURITY
    line.send(QUEUE)
    assert line.events.lost == []


def test_what_is_unanswered_fails_when_the_link_is_lost(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        for _ in range(3):
            connection.expect("SEND")

    line = dial(peer(script).url)
    tokens = [line.post(QUEUE) for _ in range(3)]
    errors = [line.events.answer(token) for token in tokens]
    assert all(isinstance(error, ProviderError) and error.kind is ErrorKind.IN_DOUBT and error.fatal for error in errors)
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert isinstance(line.events.answer(line.post(QUEUE)), ProviderError)
    assert refused(lambda: line.consumer(QUEUE)).kind is ErrorKind.CONNECTION


@pytest.mark.parametrize(
    "end",
    [
        b"ERROR\nmessage:AMQ339000 disk is nearly full, connection closed\n\n\0\n",
        b"MESSAGE\ncontent-length:x\n\nbody\0\n",
        b"HELLO\n\n\0\n",
    ],
    ids=["an error", "no frame", "an unknown frame"],
)
def test_answers_are_told_before_the_end_that_one_read_brings_with_them(dial: Dial, peer: Peer, end: bytes) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        first = connection.expect("SEND")["receipt"]
        connection.expect("SEND")
        connection.raw(f"RECEIPT\nreceipt-id:{first}\n\n\0\n".encode() + end)
        connection.serve()

    line = dial(peer(script).url)
    told: list[object] = []
    on_lost, on_sent = line.events.on_lost, line.events.on_sent
    line.events.on_sent = lambda results: (told.extend(results), on_sent(results))
    line.events.on_lost = lambda cause: (told.append("lost"), on_lost(cause))
    first, second = line.post(QUEUE), line.post(QUEUE)
    doubt = line.events.answer(second)
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert told == [(first, None), (second, doubt), "lost"]
    assert isinstance(doubt, ProviderError)
    assert doubt.kind is ErrorKind.IN_DOUBT


def test_a_confirmed_send_is_not_sent_again_when_the_link_ends_in_the_same_read(peer: Peer) -> None:
    got: list[bytes] = []

    def script(connection: Any) -> None:
        connection.welcome()
        command, headers, body = connection.frame()
        while command != "SEND":
            command, headers, body = connection.frame()
        got.append(body)
        receipt = f"RECEIPT\nreceipt-id:{headers['receipt']}\n\n\0\n".encode()
        if len(got) == 1:
            connection.raw(receipt + b"ERROR\nmessage:the broker is stopping\n\n\0\n")
            return
        connection.raw(receipt)
        connection.serve()

    url = f"failover:({peer(script).url})?resendUnconfirmed=true"
    with jmsapi.connection_factory(url).create_context() as context:
        producer = context.create_producer()
        for text in ("first", "second"):
            producer.send(context.create_queue("q"), text)
    assert got == [b"first", b"second"]


def test_sends_go_on_while_the_peer_reads_slowly(dial: Dial, peer: Peer) -> None:
    go = threading.Event()
    count = 300

    def script(connection: Any) -> None:
        connection.welcome()
        go.wait(10)
        for _ in range(count):
            connection.expect("SEND")
        connection.serve()

    line = dial(peer(script).url)
    tokens = [line.post(QUEUE, bytes(100_000), delivery_mode=1) for _ in range(count)]
    go.set()
    assert [line.events.answer(token) for token in tokens] == [None] * count


# Control frames


def test_an_error_belongs_to_the_control_frame_that_waits_and_its_receipt_counts_no_more(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        headers = connection.expect("SUBSCRIBE")
        connection.send("ERROR", {"message": "access_refused"}, b"no\n")
        connection.send("RECEIPT", {"receipt-id": headers["receipt"]})
        connection.confirm("SUBSCRIBE")
        connection.serve()

    line = dial(peer(script).url)
    assert refused(lambda: line.consumer(QUEUE)).kind is ErrorKind.SECURITY
    line.consumer(QUEUE)
    assert line.events.lost == []


def test_control_frames_wait_for_one_another(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        first = connection.expect("SUBSCRIBE")
        connection.confirm("SEND")  # written after the second SUBSCRIBE was asked for
        connection.send("RECEIPT", {"receipt-id": first["receipt"]})
        connection.confirm("SUBSCRIBE")
        connection.serve()

    line = dial(peer(script).url)
    session = line.session()
    futures = [line.provider.open_consumer(session, ConsumerSpec(QUEUE)) for _ in range(2)]
    line.send(QUEUE)
    assert all(future.result(30) for future in futures)


def test_a_control_frame_without_an_answer_is_given_up(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.expect("SUBSCRIBE")
        connection.serve()

    line = dial(peer(script).url, request_timeout_ms=200)
    assert refused(lambda: line.consumer(QUEUE)).kind is ErrorKind.TIMEOUT


def test_a_refused_subscribe_of_artemis_ends_the_link_with_its_reason(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.expect("SUBSCRIBE")
        connection.send("ERROR", {"message": "AMQ229032: User: u does not have permission='CONSUME'"})

    line = dial(peer(script).url)
    assert refused(lambda: line.consumer(QUEUE)).kind is ErrorKind.SECURITY
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert "permission" in line.events.lost[0].message


def test_a_refusal_that_takes_the_link_along_is_told_to_what_was_refused_alone(dial: Dial, peer: Peer) -> None:
    """Artemis ends the link with every ERROR; what else was under way learns that the link is gone, and not of the refusal."""

    def script(connection: Any) -> None:
        connection.welcome()
        receipts = [connection.expect("SEND")["receipt"] for _ in range(3)]
        for name in ("SUBSCRIBE", "BEGIN", "SEND", "SEND"):
            connection.expect(name)
        message = "AMQ229032: User: u does not have permission='SEND'"
        connection.send("ERROR", {"message": message, "receipt-id": receipts[1]})

    line = dial(peer(script).url, emulate="tx")
    tokens = [line.post(QUEUE) for _ in range(3)]
    asked = [line.provider.open_consumer(line.session(), ConsumerSpec(QUEUE)) for _ in range(2)]
    tx = line.begin()
    inside, beside = line.post(QUEUE, "x", tx), line.post(QUEUE)
    errors = [line.events.answer(token) for token in (*tokens, inside, beside)]
    assert all(isinstance(error, ProviderError) for error in errors)
    doubt, refusal = (ErrorKind.IN_DOUBT, True), (ErrorKind.SECURITY, False)
    told = [(error.kind, error.fatal) for error in errors if isinstance(error, ProviderError)]
    assert told == [doubt, refusal, doubt, doubt, doubt]
    # The one was written, the other still waited for it.
    for future in asked:
        error = future.exception(10)
        assert isinstance(error, ProviderError)
        assert (error.kind, error.fatal) == (ErrorKind.CONNECTION, True)
    assert refused(lambda: line.end(tx)).kind is ErrorKind.CONNECTION
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert "permission" in line.events.lost[0].message


@pytest.mark.parametrize("count", [1, 2])
def test_an_acknowledgement_that_a_lost_link_overtakes_is_not_said_to_be_done(dial: Dial, peer: Peer, count: int) -> None:
    hang_up = threading.Event()

    def script(connection: Any) -> None:
        opened(connection, CLASSIC)
        hang_up.wait(10)

    line = dial(peer(script).url)
    tags = [delivery.tag for delivery in line.receive(line.consumer(QUEUE, deferred_acks=True), 2, accept=False)]
    # The I/O thread is busy while the link breaks and the application acknowledges; it hears of the break first.
    busy, go_on = threading.Event(), threading.Event()
    line.wire._loop.post(lambda: (busy.set(), go_on.wait(10)))
    assert busy.wait(10)
    hang_up.set()
    assert select.select([line.wire._lifecycle._main._transport.socket], [], [], 10)[0]
    acknowledged = line.provider.settle(tags[:count], Outcome.ACCEPTED)
    go_on.set()
    assert isinstance(acknowledged.exception(10), ProviderError)


# Transactions


def opened(connection: Any, server: str) -> list[str]:
    """Serve a consumer one message; return the ack ids."""
    connection.welcome(server)
    subscription = connection.confirm("SUBSCRIBE")["id"]
    for ack in ("a1", "a2"):
        connection.send("MESSAGE", {"subscription": subscription, "ack": ack, "destination": "orders"}, b"x")
    return ["a1", "a2"]


def test_artemis_is_sent_the_acknowledgements_after_its_answer_to_commit(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        opened(connection, "ActiveMQ-Artemis/2.56.0")
        name = connection.expect("BEGIN")["transaction"]
        assert connection.confirm("SEND")["transaction"] == name
        assert connection.confirm("COMMIT")["transaction"] == name
        assert connection.expect("ACK") == {"id": "a1"}
        assert connection.confirm("ACK")["id"] == "a2"
        connection.serve()

    line = dial(peer(script).url, emulate="tx")
    got = line.receive(line.consumer(QUEUE), 2, accept=False)
    tx = line.begin()
    line.send(QUEUE, "out", tx)
    line.accept(got, tx)
    line.end(tx)


def test_rabbitmq_is_sent_the_acknowledgements_when_every_send_is_stored(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        opened(connection, RABBIT)
        connection.expect("BEGIN")
        sent = [connection.expect("SEND")["receipt"] for _ in range(2)]
        commit = connection.expect("COMMIT")["receipt"]
        for receipt in (sent[1], commit, sent[0]):
            connection.send("RECEIPT", {"receipt-id": receipt})
        assert connection.expect("ACK")["id"] == "a1"
        connection.confirm("ACK")
        connection.serve()

    line = dial(peer(script).url, emulate="tx")
    got = line.receive(line.consumer(QUEUE), 2, accept=False)
    tx = line.begin()
    for _ in range(2):
        line.send(QUEUE, "out", tx)
    line.accept(got, tx)
    line.end(tx)


def test_classic_is_sent_the_acknowledgements_inside_the_transaction(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        opened(connection, CLASSIC)
        name = connection.expect("BEGIN")["transaction"]
        assert connection.expect("ACK") == {"id": "a1", "transaction": name}
        assert connection.expect("ACK") == {"id": "a2", "transaction": name}
        connection.confirm("ABORT")
        assert connection.expect("BEGIN")["transaction"] != name
        connection.expect("ACK")
        connection.confirm("COMMIT")
        connection.serve()

    line = dial(peer(script).url)
    got = line.receive(line.consumer(QUEUE), 2, accept=False)
    for tags, commit in ((got, False), (got[:1], True)):
        tx = line.begin()
        line.accept(tags, tx)
        line.end(tx, commit=commit)


@pytest.mark.parametrize("how", ["closed", "silent"])
def test_a_commit_without_an_answer_is_in_doubt(dial: Dial, peer: Peer, how: str) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.expect("BEGIN")
        connection.confirm("SEND")
        connection.expect("COMMIT")
        if how == "silent":
            connection.serve()

    line = dial(peer(script).url, request_timeout_ms=300)
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    assert refused(lambda: line.end(tx)).kind is ErrorKind.IN_DOUBT


def test_a_refused_commit_is_rolled_back(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.expect("BEGIN")
        connection.confirm("SEND")
        receipt = connection.expect("COMMIT")["receipt"]
        connection.send("ERROR", {"message": "no", "receipt-id": receipt})
        connection.serve()

    line = dial(peer(script).url)
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    assert refused(lambda: line.end(tx)).kind is ErrorKind.ROLLED_BACK
    assert line.events.lost == []


def test_the_end_of_a_consumer_is_no_answer_to_the_commit_under_way(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        name = connection.confirm("SUBSCRIBE")["id"]
        connection.expect("BEGIN")
        sent, commit = connection.expect("SEND")["receipt"], connection.expect("COMMIT")["receipt"]
        connection.send("ERROR", {"message": "Server cancelled subscription", "subscription": name}, b"deleted\n")
        connection.send("ERROR", {"message": "Subscription not found"}, b"There is no current subscription with tag 'T_c1'.")
        for receipt in (commit, sent):
            connection.send("RECEIPT", {"receipt-id": receipt})
        connection.serve()

    line = dial(peer(script).url, emulate="tx")
    consumer = line.consumer(QUEUE)
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    line.end(tx)
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    assert line.events.closed[0][0] is consumer
    assert line.events.lost == []


@pytest.mark.parametrize("server", [RABBIT, "ActiveMQ-Artemis/2.56.0"])
@pytest.mark.parametrize("words", ["Processing error", "access_refused"])
def test_an_error_without_a_name_puts_a_commit_in_doubt(dial: Dial, peer: Peer, server: str, words: str) -> None:
    """RabbitMQ goes on with the next send when it refuses one, then confirms the COMMIT; Artemis may end for other reasons."""

    def script(connection: Any) -> None:
        connection.welcome(server)
        connection.expect("BEGIN")
        if server == RABBIT:
            connection.expect("SEND")
        else:
            connection.confirm("SEND")
        commit = connection.expect("COMMIT")["receipt"]
        connection.send("ERROR", {"message": words})
        connection.send("RECEIPT", {"receipt-id": commit})
        connection.serve()

    line = dial(peer(script).url, emulate="tx")
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    assert refused(lambda: line.end(tx)).kind is ErrorKind.IN_DOUBT


def test_an_error_that_names_the_transaction_is_the_answer_to_its_commit(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        name = connection.expect("BEGIN")["transaction"]
        connection.expect("SEND")
        connection.expect("COMMIT")
        connection.send("ERROR", {"message": "Bad transaction"}, f'Invalid transaction identifier: <<"{name}">>\n'.encode())
        connection.serve()

    line = dial(peer(script).url, emulate="tx")
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    assert refused(lambda: line.end(tx)).kind is ErrorKind.ROLLED_BACK
    assert line.events.lost == []


def test_an_error_that_names_another_frame_is_no_answer_to_the_pending_one(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.expect("BEGIN")
        connection.confirm("SEND")
        connection.expect("COMMIT")
        connection.send("ERROR", {"message": "no", "receipt-id": "another"})

    line = dial(peer(script).url, emulate="tx")
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    assert refused(lambda: line.end(tx)).kind is ErrorKind.IN_DOUBT


# Consumers that end


def test_a_consumer_whose_queue_is_deleted_is_closed_alone(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        name = connection.confirm("SUBSCRIBE")["id"]
        connection.send("ERROR", {"message": "Server cancelled subscription", "subscription": name}, b"deleted\n")
        connection.serve()

    line = dial(peer(script).url)
    consumer = line.consumer(QUEUE)
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    assert line.events.closed[0][0] is consumer
    line.send(QUEUE)
    assert line.events.lost == []


@pytest.mark.parametrize("server", [RABBIT, CLASSIC])
def test_who_waits_for_the_rest_hears_at_once_that_the_consumer_has_ended(dial: Dial, peer: Peer, server: str) -> None:
    """Neither that nothing more is on its way, nor when the time of grace is over."""

    def script(connection: Any) -> None:
        connection.welcome(server)
        name = connection.confirm("SUBSCRIBE")["id"]
        connection.confirm("SEND")
        end(connection, server, name)
        connection.serve()

    line = dial(peer(script).url, drain_ms=600_000)
    consumer = line.consumer(QUEUE, credit=1)
    drained = line.provider.drain(consumer)
    line.send(QUEUE)
    with pytest.raises(ProviderError) as caught:
        drained.result(30)
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    assert line.events.closed == [(consumer, caught.value)]


@pytest.mark.parametrize("server", [RABBIT, CLASSIC])
def test_a_transaction_with_a_message_of_an_ended_consumer_is_rolled_back(dial: Dial, peer: Peer, server: str) -> None:
    """Its acknowledgement cannot be: committed without it, the message would be worked on twice."""
    commands: list[str] = []
    received = threading.Event()

    def script(connection: Any) -> None:
        opened(connection, server)
        assert received.wait(20)
        end(connection, server)
        connection.serve(lambda _, command, __, ___: commands.append(command))

    line = dial(peer(script).url, emulate="tx")
    got = line.receive(line.consumer(QUEUE), 2, accept=False)
    received.set()
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    tx = line.begin()
    line.send(QUEUE, "x", tx)
    line.accept(got[:1], tx)
    error = refused(lambda: line.end(tx))
    assert error.kind is ErrorKind.ROLLED_BACK
    assert "a consumer" in error.message
    assert "ABORT" in commands
    assert "COMMIT" not in commands
    assert line.events.lost == []


def end(connection: Any, server: str, name: str = "c2") -> None:
    """End a consumer, if not another the one that ``opened`` made, as that broker has it ended."""
    if server == RABBIT:
        connection.send("ERROR", {"message": "Server cancelled subscription", "subscription": name}, b"deleted\n")
    else:
        # One that Classic would take no acknowledgement for.
        connection.send("MESSAGE", {"subscription": name, "ack": "a", "message-id": "theirs", "JMS_AMQP_NATIVE": "true"}, b"x")


@pytest.mark.parametrize("server", [RABBIT, CLASSIC])
@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.REJECTED])
@pytest.mark.parametrize("count", [1, 2])
def test_what_an_ended_consumer_delivered_is_not_said_to_be_settled(
    dial: Dial, peer: Peer, server: str, outcome: Outcome, count: int
) -> None:
    received = threading.Event()

    def script(connection: Any) -> None:
        opened(connection, server)
        assert received.wait(20)
        end(connection, server)
        # Silent from here on: what is asked while a consumer is being ended gets no answer that would help.
        while True:
            connection.frame()

    line = dial(peer(script).url, close_timeout_ms=300)
    got = line.receive(line.consumer(QUEUE, deferred_acks=True), 2, accept=False)
    received.set()
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    error = refused(lambda: line.accept(got[:count], outcome=outcome))
    assert "has ended" in error.message


def test_an_acknowledgement_that_the_end_of_its_consumer_overtakes_fails(dial: Dial, peer: Peer) -> None:
    """RabbitMQ answers it by an ERROR that names another frame, or by nothing."""

    def script(connection: Any) -> None:
        opened(connection, RABBIT)
        ack = connection.expect("ACK")["id"]
        end(connection, RABBIT)
        connection.send("ERROR", {"message": "Subscription not found"}, f"Message with id {ack!r} has no subscription\n".encode())
        connection.serve()

    line = dial(peer(script).url)
    got = line.receive(line.consumer(QUEUE, deferred_acks=True), 1, accept=False)
    assert "has ended" in refused(lambda: line.accept(got)).message
    assert line.events.lost == []


def test_nothing_is_delivered_behind_the_end_of_its_consumer(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        name = connection.confirm("SUBSCRIBE")["id"]
        one = f"MESSAGE\nsubscription:{name}\nack:a1\ndestination:orders\n\nx\0\n"
        theirs = f"MESSAGE\nsubscription:{name}\nack:a2\nmessage-id:theirs\nJMS_AMQP_NATIVE:true\n\nx\0\n"
        connection.raw((one + theirs).encode())
        connection.serve()

    line = dial(peer(script).url)
    consumer = line.consumer(QUEUE, credit=5)
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    line.provider.release(consumer).result(30)
    assert line.events.waiting(consumer) == []


# Requests that are answered too late


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2.56.0", CLASSIC, RABBIT])
@pytest.mark.parametrize("sign", ["receipt", "message"])
def test_a_subscription_that_comes_too_late_is_ended_and_gives_back_what_it_took(
    dial: Dial, peer: Peer, server: str, sign: str
) -> None:
    given_up, given_back = threading.Event(), SimpleQueue[str]()

    def script(connection: Any) -> None:
        connection.welcome(server)
        late = connection.expect("SUBSCRIBE")
        assert given_up.wait(20)
        if sign == "receipt":
            connection.send("RECEIPT", {"receipt-id": late["receipt"]})
        connection.send("MESSAGE", {"subscription": late["id"], "ack": "a1", "destination": "orders"}, b"x")

        def serve(connection: Any, command: str, headers: dict[str, str], body: bytes) -> None:
            if (command == "UNSUBSCRIBE" and server != RABBIT) or command == "NACK":
                given_back.put(headers["id"])

        connection.serve(serve)

    line = dial(peer(script).url, request_timeout_ms=200)
    assert refused(lambda: line.consumer(QUEUE)).kind is ErrorKind.TIMEOUT
    given_up.set()
    assert given_back.get(timeout=20) == ("a1" if server == RABBIT else "c2")
    assert line.events.lost == []


@pytest.mark.parametrize("who", ["itself", "another", "nobody"])
@pytest.mark.parametrize("durable", [True, False])
def test_a_shared_subscriptions_queue_on_classic_is_emptied_only_by_who_is_alone_with_it(
    dial: Dial, peer: Peer, who: str, durable: bool
) -> None:
    """This process knew it with another selector; another process may have a consumer on it, whose messages they are."""
    acknowledged = list[str]()
    subscribed: dict[str, dict[str, str]] = {}

    def serve(connection: Any, command: str, headers: dict[str, str], body: bytes) -> None:
        if command == "SUBSCRIBE":
            subscribed[headers["id"]] = headers
            # The broker gives what is in the queue to whoever subscribes to all of it.
            if headers["destination"].startswith("/queue/Consumer.") and "selector" not in headers:
                connection.send("MESSAGE", {"subscription": headers["id"], "ack": "left over", "message-id": "ID\\c1"}, b"x")
        elif command == "ACK":
            acknowledged.append(headers["id"])
        elif command == "SEND" and headers["destination"].startswith("/queue/jmsapi.members."):
            names = {headers["destination"]: name for name, headers in subscribed.items()}
            if who == "itself":
                question = {"subscription": names[headers["destination"]], "ack": "q", "jmsapi_probe": headers["jmsapi_probe"]}
                connection.send("MESSAGE", question)
            elif who == "another":
                answer = {"ack": "a", "jmsapi_member": "another.-1", "JMS_PY_type": "Message"}
                connection.send("MESSAGE", answer | {"subscription": names[headers["destination"].replace("/queue/", "/topic/")]})
        elif command == "SEND" and headers["destination"].startswith("/topic/jmsapi.members."):
            name = next(name for name, one in subscribed.items() if one["destination"] == headers["destination"])
            connection.send("MESSAGE", {"subscription": name, "ack": "a", "jmsapi_member": headers["jmsapi_member"]})

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.serve(serve)

    pattern = "Consumer.{name}.{topic}"
    clock = Fast() if who == "nobody" else SystemClock()
    hours = dict.fromkeys(("connect_timeout_ms", "request_timeout_ms", "close_timeout_ms"), 3_600_000)
    options = {"classic_subscription_queue": pattern, "emulate": "shared-volatile", "heartbeat_ms": 0, **hours}
    line = dial(peer(script).url, client_id="me", drain_ms=1, clock=clock, **options)
    for selector in ("a = 1", "a = 2") if durable else ("a = 2",):
        consumer = line.consumer(TOPIC, subscription="sub", durable=durable, shared=True, selector=selector)
        line.provider.release(consumer).result(30)
    assert ("left over" in acknowledged) is (who == "itself")


def test_a_refusal_that_comes_too_late_does_not_end_the_link(dial: Dial, peer: Peer) -> None:
    given_up = threading.Event()

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        late = connection.expect("SUBSCRIBE")["receipt"]
        assert given_up.wait(20)
        connection.send("ERROR", {"message": "not authorized to read", "receipt-id": late})
        connection.serve()

    line = dial(peer(script).url, request_timeout_ms=200)
    assert refused(lambda: line.consumer(QUEUE)).kind is ErrorKind.TIMEOUT
    given_up.set()
    line.send(QUEUE)
    assert line.events.lost == []


def test_an_error_without_a_name_is_the_late_answer_before_it_is_a_later_ones(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        connection.expect("SUBSCRIBE")
        second = connection.expect("SUBSCRIBE")
        connection.send("ERROR", {"message": "Processing error"})
        connection.send("RECEIPT", {"receipt-id": second["receipt"]})
        connection.serve()

    line = dial(peer(script).url, request_timeout_ms=2000)
    session = line.session()
    first, second = (line.provider.open_consumer(session, ConsumerSpec(QUEUE)) for _ in range(2))
    error = first.exception(30)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.TIMEOUT
    assert second.result(30)


def test_the_half_of_a_consumer_that_the_broker_has_is_ended_when_the_other_is_refused(dial: Dial, peer: Peer) -> None:
    """A shared subscription with a selector on Classic is two subscriptions."""
    commands: SimpleQueue[tuple[str, str]] = SimpleQueue()

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        while True:
            command, headers, _ = connection.frame()
            commands.put((command, headers.get("id", "")))
            if headers.get("id", "").endswith(".misses"):
                connection.send("ERROR", {"message": "no", "receipt-id": headers["receipt"]})
            elif "receipt" in headers:
                connection.send("RECEIPT", {"receipt-id": headers["receipt"]})

    line = dial(peer(script).url, classic_subscription_queue="Consumer.{name}.{topic}", client_id="me")
    refused(lambda: line.consumer(TOPIC, subscription="half", durable=True, shared=True, selector="a = 1"))
    said = [commands.get(timeout=20) for _ in range(5)]
    # By the first they know of one another; it goes as well.
    assert said[0] == ("SUBSCRIBE", "c-1")
    assert said[1:3] == [("SUBSCRIBE", "c2"), ("SUBSCRIBE", "c2.misses")]
    assert set(said[3:]) == {("UNSUBSCRIBE", "c2"), ("UNSUBSCRIBE", "c-1")}


def test_a_subscription_bound_to_another_topic_as_well_is_closed(dial: Dial, peer: Peer) -> None:
    def serve(connection: Any, command: str, headers: dict[str, str], body: bytes) -> None:
        if command == "SUBSCRIBE" and headers["destination"] == "/topic/news":
            message = {"subscription": headers["id"], "ack": "a", "destination": "/topic/weather"}
            connection.send("MESSAGE", message, b"rain")

    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        connection.serve(serve)

    line = dial(peer(script).url, client_id="me")
    line.consumer(TOPIC, subscription="bound", durable=True, prefetch=5)
    line.events.wait(lambda: len(line.events.closed) == 1, "end of the consumer")
    assert line.events.closed[0][1].kind is ErrorKind.MISMATCH


def test_an_error_nobody_knows_ends_the_link(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.send("ERROR", {"message": "out of disk"})
        connection.serve()

    line = dial(peer(script).url)
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert "out of disk" in line.events.lost[0].message


def test_an_error_that_the_link_outlived_is_not_why_it_ends(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        bad = connection.expect("SEND")["receipt"]
        connection.send("ERROR", {"message": "not authorized to write", "receipt-id": bad})
        connection.confirm("SEND")
        connection.expect("SEND")

    line = dial(peer(script).url)
    assert line.events.answer(line.post(QUEUE)) is not None
    line.send(QUEUE)
    line.post(QUEUE)
    line.events.wait(lambda: len(line.events.lost) == 1, "loss")
    assert line.events.lost[0].kind is ErrorKind.CONNECTION
    assert "authorized" not in line.events.lost[0].message


def test_messages_in_pieces_are_whole_when_they_are_delivered(dial: Dial, peer: Peer) -> None:
    body = bytes(range(256)) * 40

    def serve(connection: Any, command: str, headers: dict[str, str], _: bytes) -> None:
        if command == "SUBSCRIBE":
            head = f"MESSAGE\nsubscription:{headers['id']}\nack:1\nJMS_PY_type:Bytes\ncontent-length:{len(body)}\n\n"
            frame = head.encode() + body + b"\0\n"
            for start in range(0, len(frame), 1000):
                connection.raw(frame[start : start + 1000])
                time.sleep(0.001)

    def script(connection: Any) -> None:
        connection.welcome()
        connection.serve(serve)

    line = dial(peer(script).url)
    assert line.receive(line.consumer(QUEUE), accept=False)[0].envelope.body == body


class Ahead(SystemClock):
    """A clock that a test sets forward."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


class Fast(SystemClock):
    """A clock by which nobody has to wait long."""

    def monotonic(self) -> float:
        return super().monotonic() * 100


def test_what_waits_too_long_unasked_goes_back_before_rabbitmq_takes_offence(
    dial: Dial, peer: Peer, until: Callable[..., None]
) -> None:
    given_back: list[str] = []

    def serve(connection: Any, command: str, headers: dict[str, str], _: bytes) -> None:
        if command == "SUBSCRIBE" and headers["destination"] == "/queue/orders":
            for ack in ("1", "2", "3"):
                connection.send("MESSAGE", {"subscription": headers["id"], "ack": ack}, b"x")
        if command == "NACK":
            assert headers["requeue"] == "true"
            given_back.append(headers["id"])

    def script(connection: Any) -> None:
        connection.welcome(RABBIT)
        connection.serve(serve)

    clock = Ahead()
    line = dial(peer(script).url, clock=clock, heartbeat_ms=0)
    consumer = line.consumer(QUEUE, prefetch=5, credit=1)
    line.events.take(consumer, 1)
    line.provider.drain(line.consumer(TOPIC)).result(30)  # the loop has read the rest by now
    clock.seconds = 10 * 60
    line.provider.credit(line.consumer(TOPIC), 1).result(30)
    assert given_back == []
    clock.seconds = 22 * 60
    line.provider.credit(line.consumer(TOPIC), 1).result(30)
    until(lambda: given_back == ["2", "3"])


# Closing


def test_close_writes_out_what_was_sent_and_says_goodbye(dial: Dial, peer: Peer) -> None:
    commands: list[str] = []

    def script(connection: Any) -> None:
        connection.welcome()
        connection.serve(lambda _, command, __, ___: commands.append(command))

    line = dial(peer(script).url)
    tokens = [line.post(QUEUE, bytes(100_000), delivery_mode=n % 2 + 1) for n in range(20)]
    line.close()
    assert commands == ["SEND"] * 20 + ["DISCONNECT"]
    assert [line.events.answer(token) for token in tokens] == [None] * 20
    line.close()
    assert line.events.lost == []


def test_close_returns_in_time_when_the_peer_does_not_answer(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.expect("SEND")
        connection.expect("DISCONNECT")
        connection.serve()

    line = dial(peer(script).url, close_timeout_ms=300)
    token = line.post(QUEUE)
    began = time.monotonic()
    line.close()
    assert 0.2 < time.monotonic() - began < 8
    assert isinstance(line.events.answer(token), ProviderError)


def test_what_waits_fails_when_the_connection_is_closed(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.expect("SUBSCRIBE")
        connection.serve()

    line = dial(peer(script).url, close_timeout_ms=2000, emulate="tx")
    opening = line.provider.open_consumer(line.session(), ConsumerSpec(QUEUE))
    line.close()
    assert isinstance(opening.exception(10), ProviderError)
    for call in (
        lambda: line.provider.open_session(transacted=False).result(1),
        lambda: line.provider.begin(line.session()).result(1),
        lambda: line.provider.settle([], Outcome.ACCEPTED).result(1),
        lambda: line.provider.create_temporary(line.session(), topic=True).result(1),
    ):
        assert refused(call).kind is ErrorKind.CLOSED


def test_close_ends_a_connection_that_is_still_being_opened(peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.serve()

    url = urlsplit(peer(script).url)
    provider = entry.create(
        StompOptions(scheme="stomp", host=url.hostname or "", port=url.port, connect_timeout_ms=60_000), SystemClock()
    )
    opening = provider.open(Recorder())
    provider.close().result(30)
    # That no thread and no socket is left is asserted after every test.
    assert isinstance(opening.exception(10), ProviderError)


def test_close_that_overtakes_the_opening_leaves_no_socket_behind(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = urlsplit(peer(lambda connection: connection.serve()).url)
    provider = entry.create(StompOptions(scheme="stomp", host=url.hostname or "", port=url.port), SystemClock())
    start, closing = provider._loop.start, SimpleQueue[Any]()

    def start_and_close() -> None:
        start()
        closing.put(provider.close())

    monkeypatch.setattr(provider._loop, "start", start_and_close)
    opening = provider.open(Recorder())
    closing.get(timeout=10).result(30)
    assert isinstance(opening.exception(10), ProviderError)
    # Closed before it was opened, it stays so.
    never = entry.create(StompOptions(scheme="stomp", host=url.hostname or "", port=url.port), SystemClock())
    never.close().result(30)
    assert refused(lambda: never.open(Recorder()).result(30)).kind is ErrorKind.CLOSED


def test_a_provider_is_opened_once(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        connection.serve()

    line = dial(peer(script).url)
    assert refused(lambda: line.wire.open(line.events).result(1)).kind is ErrorKind.CLOSED


def test_a_broker_that_copies_no_virtual_topics_is_found_out(dial: Dial, peer: Peer) -> None:
    asked: list[tuple[str, str]] = []

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.serve(lambda _, command, headers, __: asked.append((command, headers.get("destination", ""))))

    line = dial(peer(script).url, classic_virtual_topics=True, drain_ms=1)
    fault = refused(lambda: line.consumer(TOPIC, subscription="s", durable=True, shared=True))
    assert fault.kind is ErrorKind.UNSUPPORTED
    assert "destinationInterceptor" in fault.message
    # It was tried with names of our own; nothing was subscribed to.
    assert all("jmsapi.probe" in destination for command, destination in asked if command in ("SEND", "SUBSCRIBE"))
    assert line.events.lost == []


def test_a_consumer_that_ends_before_its_maker_knows_it_says_why(peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        headers = connection.expect("SUBSCRIBE")
        # In one write: the answer, and what this broker would take no acknowledgement for.
        named = f"subscription:{headers['id']}\nack:1\nmessage-id:ID\\c1\\c1\\c1\nJMS_AMQP_NATIVE:true"
        connection.raw(f"RECEIPT\nreceipt-id:{headers['receipt']}\n\n\0\nMESSAGE\n{named}\n\nx\0\n".encode())
        connection.serve()

    with jmsapi.connection_factory(peer(script).url).create_context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        with pytest.raises(jmsapi.JMSRuntimeException, match="over AMQP"):
            consumer.receive(10_000)


def test_messages_of_one_read_come_in_one_batch(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome()
        subscription = connection.confirm("SUBSCRIBE")["id"]
        head = f"MESSAGE\nsubscription:{subscription}\ndestination:orders\nack:"
        connection.raw("".join(f"{head}{n}\n\n{n}\0" for n in range(200)).encode())
        connection.serve()

    line = dial(peer(script).url)
    consumer = line.consumer(QUEUE, prefetch=500, credit=200)
    got = line.events.take(consumer, 200)
    line.accept(got)
    assert [int(delivery.envelope.body) for delivery in got] == list(range(200))
    # What a socket brings in one read is at most split in a few; a batch a message it never is.
    assert len(line.events.batches) < 20


@pytest.mark.parametrize(
    "headers",
    [
        {"heart-beat": "0," + "9" * 20},
        {"heart-beat": "9" * 400 + ",0"},
        {"heart-beat": "-5,-5"},
        {"heart-beat": "soon"},
    ],
)
def test_a_connected_frame_that_breaks_the_protocol_is_named(dial: Dial, peer: Peer, headers: dict[str, str]) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("CONNECTED", {"version": "1.2", "server": CLASSIC, "heart-beat": "0,0"} | headers)

    with pytest.raises(ProviderError, match=r"frame 1 of the connection") as caught:
        dial(peer(script).url)
    assert (caught.value.kind, caught.value.fatal) == (ErrorKind.PROTOCOL, True)


@pytest.mark.parametrize(
    "frame",
    [
        b"RECEIPT\nreceipt-id:\xff\xfe\n\n\0\n",
        b"CONNECTED\nversion:1.2\n\n\0\n",
        b"\xff\x1b[2J\na:1\n\n\0\n",
        b"MESSAGE\nsubscription:1\n\n\0\nRECEIPT\nreceipt-id:\xff\n\n\0\n",
        b"MESSAGE\nsubscription:\xff\ndestination:\xff\nmessage-id:\xff\n\nx\0\n",
        b"MESSAGE\nmessage-id:1\n\nx\0\n",
    ],
)
def test_a_frame_that_cannot_be_read_ends_the_connection_by_an_error_that_names_it(dial: Dial, peer: Peer, frame: bytes) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.expect("SUBSCRIBE")
        connection.raw(frame)

    line = dial(peer(script).url)
    with pytest.raises(ProviderError, match=r"frame [23] of the connection") as caught:
        line.consumer(Address(DestinationKind.QUEUE, "q"))
    assert caught.value.kind is ErrorKind.PROTOCOL
    line.events.wait(lambda: bool(line.events.lost), "loss")
    assert line.events.lost[0].kind is ErrorKind.PROTOCOL
    assert line.events.lost[0].message.isprintable()


def test_control_characters_of_a_broker_are_shown_escaped(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("ERROR", {"message": "no\x1b[2J\x07 more"})

    with pytest.raises(ProviderError) as caught:
        dial(peer(script).url)
    assert "no\\x1b[2J\\x07 more" in caught.value.message


def test_a_frame_that_never_ends_is_given_up_at_the_limit_of_the_options(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.expect("SUBSCRIBE")
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.raw(b"MESSAGE\nsubscription:c2\n\n" + b"x" * 10_000)

    line = dial(peer(script).url, max_received=100_000)
    with pytest.raises(ProviderError, match="max_received"):
        line.consumer(Address(DestinationKind.QUEUE, "q"))


def test_a_transaction_is_ended_once_whoever_else_asks_for_its_end(dial: Dial, peer: Peer) -> None:
    seen: list[str] = []

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        connection.serve(lambda _, command, headers, body: seen.append(command))

    line = dial(peer(script).url)
    tx = line.begin()
    line.send(Address(DestinationKind.QUEUE, "q"), "x", tx)
    commit = line.wire.end(tx, commit=True)
    rollback = line.wire.end(tx, commit=False)
    commit.result(30)
    with pytest.raises(ProviderError, match="already") as caught:
        rollback.result(30)
    assert caught.value.kind is ErrorKind.CLOSED
    line.wire.settle([], Outcome.ACCEPTED, tx).result(30)
    assert isinstance(line.events.answer(line.post(Address(DestinationKind.QUEUE, "q"), "late", tx)), ProviderError)
    line.close()
    assert [command for command in seen if command != "DISCONNECT"] == ["BEGIN", "SEND", "COMMIT"]


def test_a_queue_that_somebody_declared_otherwise_is_named_and_its_send_is_not_in_doubt(dial: Dial, peer: Peer) -> None:
    def script(connection: Any) -> None:
        connection.welcome("RabbitMQ/4.0.5")
        connection.expect("SEND")
        connection.expect("SEND")
        text = (
            "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'theirs' in vhost '/': received none but current is"
        )
        connection.send("ERROR", {"message": "precondition_failed"}, text.encode())

    line = dial(peer(script).url)
    other = line.post(Address(DestinationKind.QUEUE, "ours"))
    refused = line.post(Address(DestinationKind.QUEUE, "theirs"))
    error = line.events.answer(refused)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.DESTINATION
    assert "'theirs'" in error.message
    assert "rabbit.declare=false" in error.message
    doubt = line.events.answer(other)
    assert isinstance(doubt, ProviderError)
    assert doubt.kind is ErrorKind.IN_DOUBT


def test_a_queue_that_somebody_declared_otherwise_is_named_to_its_consumer(dial: Dial, rabbitmq: Broker, queue: Address) -> None:
    operator = dial(rabbitmq, **{"rabbit.queue_args": "x-max-length:9"})
    operator.provider.release(operator.consumer(queue)).result(30)
    with pytest.raises(ProviderError, match=r"rabbit\.declare=false") as caught:
        dial(rabbitmq).consumer(queue)
    assert caught.value.kind is ErrorKind.DESTINATION
    as_it_is = dial(rabbitmq, **{"rabbit.declare": False})
    consumer = as_it_is.consumer(queue)
    as_it_is.send(queue, "taken")
    assert [delivery.envelope.body for delivery in as_it_is.receive(consumer)] == ["taken"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("memory limit", "AMQ339001: Destination does not exist: memory limit"),
        ("orders.password", "no such queue '/queue/orders.password'"),
        ("selector", "cannot use queue://selector"),
    ],
)
def test_a_name_of_ours_in_a_brokers_words_is_no_evidence_of_what_is_wrong(dial: Dial, peer: Peer, name: str, text: str) -> None:
    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        receipt = connection.expect("SUBSCRIBE")["receipt"]
        connection.send("ERROR", {"receipt-id": receipt, "message": text.replace(":", "\\c")})
        connection.serve()

    line = dial(peer(script).url)
    with pytest.raises(ProviderError) as caught:
        line.consumer(Address(DestinationKind.QUEUE, name))
    assert caught.value.kind is ErrorKind.PROTOCOL


@pytest.mark.parametrize("user", ["authentication", "no.password"])
def test_a_users_name_in_a_brokers_words_is_no_evidence_of_a_refusal(dial: Dial, peer: Peer, user: str) -> None:
    def script(connection: Any) -> None:
        connection.expect("CONNECT")
        connection.send("ERROR", {"message": f"the broker is starting, {user} has to wait"})

    with pytest.raises(ProviderError) as caught:
        dial(peer(script).url, user=user, password="p")
    assert caught.value.kind is ErrorKind.CONNECTION


class _TakesThreeBytes:
    """A socket whose peer has room for three bytes, until it reads again."""

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._room = 3
        self.reads_again = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def send(self, data: Any) -> int:
        if self.reads_again.is_set():
            return int(self._socket.send(data))
        room, self._room = self._room, 0
        if not room:
            raise BlockingIOError
        return int(self._socket.send(bytes(data)[:room]))


@pytest.mark.parametrize("reads", [True, False], ids=["reads again", "is gone"])
def test_an_acknowledgement_is_done_when_its_last_byte_has_left(dial: Dial, peer: Peer, reads: bool) -> None:
    acknowledged: SimpleQueue[dict[str, str]] = SimpleQueue()
    leave = threading.Event()

    def script(connection: Any) -> None:
        connection.welcome(CLASSIC)
        said = connection.confirm("SUBSCRIBE")
        connection.send(
            "MESSAGE", {"subscription": said["id"], "destination": "/queue/orders", "message-id": "m", "ack": "a1"}, b"x"
        )
        if reads:
            acknowledged.put(connection.expect("ACK"))
            connection.serve()
        else:
            leave.wait(30)

    line = dial(peer(script).url)
    [delivery] = line.events.take(line.consumer(QUEUE, credit=1), 1)
    transport = line.wire._lifecycle.parts.context.connection._transport
    until = time.monotonic() + 30
    while not line.wire._loop.quiet and time.monotonic() < until:
        time.sleep(0.01)
    transport.socket = narrow = _TakesThreeBytes(transport.socket)
    done = line.provider.settle([delivery.tag], Outcome.ACCEPTED)
    time.sleep(0.1)
    assert not done.done()
    if reads:
        narrow.reads_again.set()
        done.result(30)
        assert acknowledged.get(timeout=30) == {"id": "a1"}
    else:
        leave.set()
        assert done.exception(30).kind is ErrorKind.CONNECTION
