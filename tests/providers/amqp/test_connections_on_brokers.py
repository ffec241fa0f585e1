"""Connecting, being refused, losing the link and closing, on real brokers and through a relay that stalls and cuts."""

from __future__ import annotations

import gc
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, MessageKind, PlainEnvelope, ProviderError
from jmsapi.wire import Promise
from jmsapi_amqp.trace import redact
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


def refused(connect: Callable[[], object]) -> ProviderError:
    with pytest.raises(ProviderError) as error:
        connect()
    return error.value


def test_a_connection_knows_the_broker_and_its_version(each_broker: Broker, dial: Dial) -> None:
    capabilities = dial(each_broker).capabilities
    assert (capabilities.provider, capabilities.broker) == ("amqp", each_broker.kind)
    assert capabilities.version[0].isdigit()


def test_a_wrong_password_is_a_matter_of_security_and_is_not_shown(each_broker: Broker, dial: Dial) -> None:
    error = refused(lambda: dial(each_broker, password="not-it-1234"))
    assert error.kind is ErrorKind.SECURITY
    assert "not-it-1234" not in str(error)


def test_a_mechanism_that_is_not_offered_is_a_matter_of_security(each_broker: Broker, dial: Dial) -> None:
    assert refused(lambda: dial(each_broker, sasl_mechanisms="EXTERNAL")).kind is ErrorKind.SECURITY


def test_a_client_id_that_is_taken_is_refused_and_free_again_after_close(each_broker: Broker, dial: Dial, topic: Address) -> None:
    first = dial(each_broker, client_id=topic.name)
    assert refused(lambda: dial(each_broker, client_id=topic.name)).kind is ErrorKind.CLIENT_ID
    first.close()
    dial(each_broker, client_id=topic.name)


def test_a_virtual_host_that_is_not_there_is_refused(rabbitmq: Broker, dial: Dial) -> None:
    error = refused(lambda: dial(rabbitmq, vhost="nowhere", broker="rabbitmq"))
    assert error.kind in (ErrorKind.PROTOCOL, ErrorKind.CONNECTION, ErrorKind.SECURITY)
    dial(rabbitmq, vhost="/", broker="rabbitmq")


def test_nobody_there_is_said_at_once(dial: Dial) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = refused(lambda: dial(f"amqp://127.0.0.1:{port}"))
    assert error.kind is ErrorKind.CONNECTION
    assert str(port) in str(error)


def test_a_peer_that_says_nothing_is_given_up_in_time(dial: Dial) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        error = refused(lambda: dial(f"amqp://127.0.0.1:{server.getsockname()[1]}", connect_timeout_ms=400))
        assert error.kind is ErrorKind.TIMEOUT
        assert time.monotonic() - begun < 8


def test_a_peer_that_speaks_no_amqp_is_a_protocol_fault_and_no_hang(dial: Dial) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.recv(100)

        thread = threading.Thread(target=serve)
        thread.start()
        error = refused(lambda: dial(f"amqp://127.0.0.1:{server.getsockname()[1]}", connect_timeout_ms=3000))
        thread.join(5)
    assert error.kind in (ErrorKind.PROTOCOL, ErrorKind.CONNECTION)


# ---------------------------------------------------------------- errors that concern one link


def test_a_refused_consumer_costs_nobody_else_anything(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker, rabbit_declare=False) if each_broker.kind == "rabbitmq" else dial(each_broker)
    if each_broker.kind == "rabbitmq":
        dial(each_broker).consumer(queue)
    consumer = line.consumer(queue)
    bad = (
        ConsumerSpec(Address(queue.kind, queue.name + ".missing"))
        if each_broker.kind == "rabbitmq"
        else ConsumerSpec(queue, selector="n >> 1")
    )
    with pytest.raises(ProviderError):
        line.provider.open_consumer(line.session(), bad).result(30)
    line.send(queue)
    line.receive(consumer)
    assert line.events.closed == []
    assert line.events.lost == []


def test_a_queue_that_rabbitmq_deletes_ends_its_consumer_alone(rabbitmq: Broker, dial: Dial, queue: Address) -> None:
    line, other = dial(rabbitmq), dial(rabbitmq)
    gone, stays = line.consumer(queue), line.consumer(Address(queue.kind, queue.name + ".stays"))
    other.wire._steps(other.wire._connection.broker.manage.delete_queue(queue.name)).result(30)
    line.events.wait(lambda: bool(line.events.closed), "closed consumer")
    [(handle, cause)] = line.events.closed
    assert handle is gone
    assert cause.kind is ErrorKind.DESTINATION
    line.send(Address(queue.kind, queue.name + ".stays"))
    line.receive(stays)


def test_what_is_sent_after_the_broker_ended_a_producer_fails_for_the_reason_of_that(
    rabbitmq: Broker, dial: Dial, queue: Address
) -> None:
    line, other = dial(rabbitmq), dial(rabbitmq)
    producer = line.provider.open_producer(line.session(), queue).result(30)
    other.wire._steps(other.wire._connection.broker.manage.delete_queue(queue.name)).result(30)
    # The broker ends a producer when it next sends to a queue that is gone, or before.
    kinds: list[ErrorKind] = []
    for number in range(3):
        token = f"late {number}"
        line.provider.send(producer, PlainEnvelope(MessageKind.TEXT, queue, "late"), None, token)
        error = line.events.answer(token)
        assert isinstance(error, ProviderError)
        kinds.append(error.kind)
    assert kinds == [ErrorKind.DESTINATION] * 3
    line.provider.release(producer).result(30)
    line.provider.send(producer, PlainEnvelope(MessageKind.TEXT, queue, "late"), None, "last")
    error = line.events.answer("last")
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.CLOSED


def test_more_sessions_than_rabbitmq_allows_share_what_there_is(rabbitmq: Broker, dial: Dial, queue: Address) -> None:
    line = dial(rabbitmq)
    for _ in range(2):
        sessions = [line.provider.open_session(transacted=False).result(30) for _ in range(80)]
        consumers = [line.provider.open_consumer(session, ConsumerSpec(queue)).result(30) for session in sessions]
        line.send(queue)
        line.receive(consumers[-1])
        for session in sessions:
            line.provider.release(session).result(30)


def test_sessions_asked_for_all_at_once_are_no_more_than_rabbitmq_allows(rabbitmq: Broker, dial: Dial, queue: Address) -> None:
    """As by sends that are cancelled before the first session is there."""
    line = dial(rabbitmq)
    sessions = [future.result(30) for future in [line.provider.open_session(transacted=False) for _ in range(200)]]
    line.send(queue)
    line.receive(line.provider.open_consumer(sessions[-1], ConsumerSpec(queue)).result(30))


def test_more_links_than_rabbitmq_allows_a_session_go_to_other_sessions(rabbitmq: Broker, dial: Dial, queue: Address) -> None:
    """256 of one session; proton's engine falls silent with one more."""
    line = dial(rabbitmq)
    session = line.session()
    for _ in range(2):
        producers = [line.provider.open_producer(session, queue).result(30) for _ in range(320)]
        consumers = [
            future.result(30) for future in [line.provider.open_consumer(session, ConsumerSpec(queue)) for _ in range(320)]
        ]
        for number in (0, 300, 319):
            line.provider.send(producers[number], PlainEnvelope(MessageKind.TEXT, queue, str(number)), None, number)
            assert line.events.answer(number) is None
            assert [delivery.envelope.body for delivery in line.receive(consumers[number])] == [str(number)]
        for handle in (*producers, *consumers):
            line.provider.release(handle).result(30)


def test_delayed_messages_have_room_where_every_session_is_in_use(rabbitmq: Broker, dial: Dial, queue: Address) -> None:
    line = dial(rabbitmq)
    for _ in range(70):
        line.provider.open_session(transacted=False).result(30)
    now_ms = int(time.time() * 1000)
    tokens = [line.post(queue, str(number), delivery_time=now_ms + 1000 * number) for number in range(1, 13)]
    assert [line.events.answer(token) for token in tokens] == [None] * 12


def test_a_producer_that_is_refused_leaves_no_session_behind(rabbitmq: Broker, dial: Dial) -> None:
    line = dial(rabbitmq, rabbit_declare=False)
    missing = Address(DestinationKind.QUEUE, f"missing-{time.time_ns()}")
    for _ in range(70):
        error = line.provider.open_producer(line.session(), missing).exception(30)
        assert isinstance(error, ProviderError)
        assert error.kind is ErrorKind.DESTINATION
    assert len(line.wire._connection.context.sessions) < 5


# ---------------------------------------------------------------- losing the link


def test_a_cut_link_is_told_once_and_nobody_waits_for_ever(
    each_broker: Broker, dial: Dial, queue: Address, relay: Callable[..., Any]
) -> None:
    between = relay(each_broker)
    line = dial(f"amqp://127.0.0.1:{between.port}", user=each_broker.user, password=each_broker.password)
    consumer = line.consumer(queue)
    line.send(queue)
    between.stall()
    token = line.post(queue, "unanswered")
    waiting = line.provider.open_session(transacted=False)
    between.cut()
    line.events.wait(lambda: bool(line.events.lost), "word of the loss")
    [cause] = line.events.lost
    assert (cause.kind, cause.fatal) == (ErrorKind.CONNECTION, True)
    answer = line.events.answer(token)
    assert isinstance(answer, ProviderError)
    assert answer.kind in (ErrorKind.IN_DOUBT, ErrorKind.CONNECTION)
    with pytest.raises(ProviderError):
        waiting.result(30)
    with pytest.raises(ProviderError):
        line.provider.open_session(transacted=False).result(30)
    late = line.events.answer(line.post(queue, "too late"))
    assert isinstance(late, ProviderError)
    line.provider.credit(consumer, 1)
    line.provider.drain(consumer)


def test_a_broker_that_falls_silent_is_noticed_by_the_idle_time_out(
    each_broker: Broker, dial: Dial, relay: Callable[..., Any]
) -> None:
    between = relay(each_broker)
    where = f"amqp://127.0.0.1:{between.port}"
    line = dial(where, user=each_broker.user, password=each_broker.password, idle_timeout_ms=2000)
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 4.5:  # longer than the time-out: the broker's empty frames keep the link
        assert line.events.lost == []
        time.sleep(0.05)
    between.stall()
    line.events.wait(lambda: bool(line.events.lost), "word of the silence")
    assert line.events.lost[0].kind is ErrorKind.CONNECTION


def test_close_writes_out_what_was_sent_and_ends_in_time_on_a_dead_link(
    each_broker: Broker, dial: Dial, queue: Address, relay: Callable[..., Any]
) -> None:
    line = dial(each_broker)
    tokens = [line.post(queue, str(number), delivery_mode=1) for number in range(200)]
    line.close()
    assert all(line.events.answer(token) is None for token in tokens)
    other = dial(each_broker)
    assert len(other.receive(other.consumer(queue), 200)) == 200
    between = relay(each_broker)
    stuck = dial(f"amqp://127.0.0.1:{between.port}", user=each_broker.user, password=each_broker.password, close_timeout_ms=500)
    between.stall()
    begun = time.monotonic()
    stuck.close()
    assert time.monotonic() - begun < 8


# ---------------------------------------------------------------- TLS


@pytest.fixture
def server(certificates: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    return context


def secure(broker: Broker, port: int, host: str = "localhost", **options: Any) -> tuple[str, dict[str, Any]]:
    return f"amqps://{host}:{port}", {"user": broker.user, "password": broker.password} | options


def test_tls_checks_chain_and_name_by_default(
    artemis: Broker, dial: Dial, relay: Callable[..., Any], server: ssl.SSLContext, certificates: Path
) -> None:
    port = relay(artemis, server).port
    ca = str(certificates / "ca.pem")
    for host, options in (("localhost", {}), ("127.0.0.1", {"tls_ca": ca})):
        url, given = secure(artemis, port, host, **options)
        error = refused(lambda url=url, given=given: dial(url, **given))  # type: ignore[misc]
        assert error.kind is ErrorKind.SECURITY
        assert "certificate" in str(error)
    url, given = secure(artemis, port, tls_ca=ca)
    dial(url, **given)


def test_each_check_of_tls_can_be_switched_off_which_is_logged(
    artemis: Broker,
    dial: Dial,
    relay: Callable[..., Any],
    server: ssl.SSLContext,
    certificates: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = relay(artemis, server).port
    url, given = secure(artemis, port, "127.0.0.1", tls_ca=str(certificates / "ca.pem"), tls_verify_host=False)
    dial(url, **given)
    assert "name is not checked" in caplog.text
    caplog.clear()
    url, given = secure(artemis, port, tls_verify=False)
    dial(url, **given)
    assert "certificate is not checked" in caplog.text


def test_a_client_certificate_is_shown_when_there_is_one(
    artemis: Broker, dial: Dial, relay: Callable[..., Any], server: ssl.SSLContext, certificates: Path, queue: Address
) -> None:
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(certificates / "ca.pem")
    port = relay(artemis, server).port
    ca = str(certificates / "ca.pem")
    url, given = secure(artemis, port, tls_ca=ca)
    assert refused(lambda: dial(url, **given)).kind in (ErrorKind.SECURITY, ErrorKind.CONNECTION)
    cert, key = str(certificates / "client.pem"), str(certificates / "client.key")
    url, given = secure(artemis, port, tls_ca=ca, tls_cert=cert, tls_key=key)
    line = dial(url, **given)
    line.send(queue, bytes(3_000_000))
    assert line.receive(line.consumer(queue))[0].envelope.body == bytes(3_000_000)


# ---------------------------------------------------------------- trace


def test_the_frame_trace_has_neither_password_nor_body(
    each_broker: Broker, dial: Dial, queue: Address, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "jmsapi.wire.amqp")
    line = dial(each_broker)
    line.send(queue, "a very private body", properties={"private": "property"})
    line.receive(line.consumer(queue))
    lines = [record.getMessage() for record in caplog.records if record.name == "jmsapi.wire.amqp"]
    assert any("@sasl-init" in text and "***" in text for text in lines)
    assert any("-> @transfer" in text for text in lines)
    assert any("<- @transfer" in text for text in lines)
    whole = "\n".join(lines)
    assert "private" not in whole
    assert f"\\x00{each_broker.password}" not in whole


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (
            '0 -> @sasl-init(65) [mechanism=:PLAIN, initial-response=b"\\x00u\\x00secret"]',
            "0 -> @sasl-init(65) [mechanism=:PLAIN, initial-response=***]",
        ),
        ('0 -> @sasl-response(67) [response=b"secret, x=y]"]', "0 -> @sasl-response(67) [response=***]"),
        ('1 -> @transfer(20) [handle=0x0, settled=false] (12) "secret] "', "1 -> @transfer(20) [handle=0x0, settled=false]"),
        (
            '1 <- @transfer(20) [delivery-tag=b"\\x00]\\"", x=1] (9) "secret"',
            '1 <- @transfer(20) [delivery-tag=b"\\x00]\\"", x=1]',
        ),
        ('1 <- @transfer(20) [broken "secret', "1 <- @transfer"),
        ("1 -> @flow(19) [handle=0x0]", "1 -> @flow(19) [handle=0x0]"),
    ],
)
def test_secrets_are_cut_from_a_line_of_trace(line: str, kept: str) -> None:
    assert redact(line) == kept


def test_a_consumer_and_its_session_released_at_once_take_nothing_from_sessions_opened_next(
    dial: Dial, rabbitmq: Broker, queue: Address
) -> None:
    """RabbitMQ gives a consumer a session of its own, which is used again: by one at a time."""
    line = dial(rabbitmq)
    for _ in range(5):
        session = line.provider.open_session(transacted=False).result(30)
        consumer = line.provider.open_consumer(session, ConsumerSpec(queue)).result(30)
        released = [line.provider.release(handle) for handle in (consumer, session)]
        for future in released:
            future.result(30)
    opened = [line.provider.open_session(transacted=False).result(30) for _ in range(4)]
    consumers = [line.provider.open_consumer(session, ConsumerSpec(queue)).result(30) for session in opened]
    for session in opened[:-1]:
        line.provider.release(session).result(30)
    line.send(queue, "to the last one")
    assert [delivery.envelope.body for delivery in line.receive(consumers[-1])] == ["to the last one"]


def test_where_rabbitmqs_management_node_does_not_answer_a_queue_that_exists_is_read_all_the_same(
    rabbitmq: Broker, dial: Callable[..., Any], queue: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As during its memory alarm, which only receivers can end."""
    dial(rabbitmq).send(queue, "waiting")

    async def unanswered(*_: object) -> None:
        await Promise()

    monkeypatch.setattr("jmsapi_amqp.management.Management._request", unanswered)
    line = dial(rabbitmq)
    [delivery] = line.receive(line.consumer(queue))
    assert delivery.envelope.body == "waiting"


def test_a_connection_that_is_opened_and_closed_leaves_no_memory_with_the_engine(artemis: Broker) -> None:
    factory = jmsapi.connection_factory(artemis.url("amqp"), user=artemis.user, password=artemis.password)

    def resident() -> float:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4.0

    def open_and_close(times: int) -> None:
        for _ in range(times):
            factory.create_connection().close()

    open_and_close(150)
    before = resident()
    open_and_close(300)
    assert (resident() - before) / 300 < 1.5, "KiB a connection; the engine's own part is 1.75 where it is not freed"
