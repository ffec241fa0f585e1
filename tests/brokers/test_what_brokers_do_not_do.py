"""Facts about the brokers for which a capability is missing or weaker, each asked of the broker itself where jmsapi would refuse.

``docs/capabilities.md`` has the reasons; the tests here fail when one of them is no longer so.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from proton import Endpoint, Terminus, symbol
from proton.utils import BlockingConnection

import jmsapi
from jmsapi import JMSContext, Message
from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

WAIT_S = 60.0
WAIT_MS = 60_000
QUIET_MS = 1_000
Open = Callable[..., JMSContext]

pytestmark = pytest.mark.broker


class RawStomp:
    """A STOMP connection that sends frames as they are told and reads what comes."""

    def __init__(self, broker: Broker, client_id: str | None = None) -> None:
        at = urlsplit(broker.url("stomp"))
        self._socket = socket.create_connection((at.hostname, at.port), WAIT_S)
        self._came = b""
        self._passed: list[str] = []
        client = [] if client_id is None else [f"client-id:{client_id}"]
        self.ask("CONNECT", "accept-version:1.2", "host:/", f"login:{at.username}", f"passcode:{at.password}", *client)
        self.greeting = self.frame()

    def ask(self, command: str, *headers: str, body: str = "") -> None:
        """Send one frame."""
        self._socket.sendall("\n".join([command, *headers, "", body]).encode() + b"\0")

    def ask_all(self, *frames: tuple[str, ...]) -> None:
        """Send frames without a body in one write; each is its command and its headers."""
        self._socket.sendall(b"".join("\n".join([*frame, "", ""]).encode() + b"\0" for frame in frames))

    def confirmed(self, command: str, *headers: str, body: str = "") -> str:
        """Send one frame and return its RECEIPT or ERROR; messages that come before it are kept."""
        self.ask(command, *headers, "receipt:r", body=body)
        while not (frame := self._read()).startswith(("RECEIPT", "ERROR")):
            self._passed.append(frame)
        return frame

    def frame(self) -> str:
        """Return the next frame."""
        return self._passed.pop(0) if self._passed else self._read()

    def _read(self) -> str:
        while b"\0" not in self._came:
            more = self._socket.recv(65_536)
            assert more, f"the broker closed the connection after {self._came!r}"
            self._came += more
        one, _, self._came = self._came.partition(b"\0")
        return one.decode().lstrip("\n")

    def close(self) -> None:
        """End the connection without a word."""
        self._socket.close()


@pytest.fixture
def raw() -> Iterator[Callable[..., RawStomp]]:
    """Give a function that opens a raw connection, which is closed after the test."""
    made: list[RawStomp] = []

    def raw(broker: Broker, client_id: str | None = None) -> RawStomp:
        made.append(RawStomp(broker, client_id))
        return made[-1]

    yield raw
    for one in made:
        one.close()


@pytest.fixture
def name() -> str:
    """Give a name that is nobody else's."""
    return f"facts.{uuid.uuid4().hex}"


def body(message: Message | None) -> str | None:
    return None if message is None else message.get_body(str)


# transactions, transactions_atomic


def test_artemis_obeys_an_ack_in_a_stomp_transaction_at_once(
    artemis: Broker, opened: Open, raw: Callable[..., RawStomp], name: str
) -> None:
    context = opened(artemis, "stomp")
    context.create_producer().send(context.create_queue(name), "gone")
    one = raw(artemis)
    one.ask("SUBSCRIBE", "id:1", f"destination:{name}", "subscription-type:ANYCAST", "ack:client-individual")
    message = one.frame()
    ack = next(line for line in message.split("\n") if line.startswith("ack:")).removeprefix("ack:")
    assert one.confirmed("BEGIN", "transaction:t").startswith("RECEIPT")
    assert one.confirmed("ACK", f"id:{ack}", "transaction:t").startswith("RECEIPT")
    assert one.confirmed("ABORT", "transaction:t").startswith("RECEIPT")
    one.close()
    context.create_producer().send(context.create_queue(name), "marker")
    assert body(context.create_consumer(context.create_queue(name)).receive(WAIT_MS)) == "marker"


def test_rabbitmq_carries_out_a_part_of_a_stomp_transaction(
    rabbitmq: Broker, opened: Open, raw: Callable[..., RawStomp], name: str
) -> None:
    one = raw(rabbitmq)
    one.ask("BEGIN", "transaction:t")
    one.ask("SEND", f"destination:/queue/{name}", "transaction:t", body="half of it")
    one.ask("SEND", f"destination:/exchange/no-{name}/key", "transaction:t", body="the other half")
    one.ask("COMMIT", "transaction:t", "receipt:c")
    context = opened(rabbitmq, "stomp")
    assert body(context.create_consumer(context.create_queue(name)).receive(WAIT_MS)) == "half of it"
    seen = one.frame()
    while not seen.startswith("ERROR"):
        seen = one.frame()
    assert "no exchange" in seen or "NOT_FOUND" in seen


def test_rabbitmq_ends_amqp_connections_over_what_falsely_calls_itself_amqp(
    rabbitmq: Broker, opened: Open, raw: Callable[..., RawStomp], name: str
) -> None:
    """As ``docs/brokers/rabbitmq.md`` says; over STOMP it can be taken out."""
    queue = opened(rabbitmq, "stomp").create_queue(name)
    assert raw(rabbitmq).confirmed("SEND", f"destination:/queue/{name}", "type:amqp-1.0", body="no AMQP").startswith("RECEIPT")
    for _ in range(2):
        with pytest.raises(jmsapi.JMSRuntimeException, match="primitive_type_unsupported"):
            opened(rabbitmq, "amqp").create_consumer(queue).receive(WAIT_MS)
    assert body(opened(rabbitmq, "stomp").create_consumer(queue).receive(WAIT_MS)) == "no AMQP"


@pytest.mark.parametrize("wire", ["stomp", "amqp"])
def test_a_type_of_ours_is_no_type_to_rabbitmq(rabbitmq: Broker, opened: Open, name: str, wire: str) -> None:
    sender = opened(rabbitmq, wire)
    queue = sender.create_queue(name)
    producer = sender.create_producer().set_jms_type("amqp-1.0").set_property("type", "amqp-1.0")
    producer.send(queue, "no AMQP")
    message = opened(rabbitmq, "amqp").create_consumer(queue).receive(WAIT_MS)
    assert message is not None
    assert (body(message), message.jms_type, message.get_string_property("type")) == ("no AMQP", "amqp-1.0", "amqp-1.0")


@pytest.mark.parametrize("receipt", [True, False])
def test_artemis_confirms_a_stomp_commit_before_it_tells_of_a_refused_send(
    artemis: Broker, opened: Open, raw: Callable[..., RawStomp], name: str, receipt: bool
) -> None:
    """So each asks for a receipt, which one that is refused never gets; COMMIT is written when all have theirs."""
    send = ("SEND", f"destination:{name}", "destination-type:ANYCAST", "transaction:t", *(["receipt:s"] if receipt else []))
    confirmed = 0
    for _ in range(20):
        one = raw(artemis)
        one.ask_all(
            ("BEGIN", "transaction:t"),
            ("SEND", f"destination:{name}", "destination-type:ANYCAST", "transaction:t"),
            (*send, "expires:no number"),
            ("COMMIT", "transaction:t", "receipt:c"),
        )
        answers = list[str]()
        while not answers or not answers[-1].startswith("ERROR"):
            answers.append(one.frame())
        assert ("receipt-id:s" in answers[-1]) is receipt
        assert [answer for answer in answers[:-1] if "receipt-id:s" in answer] == []
        confirmed += len(answers) - 1
    # Some of 20 tries beside load, none where nothing else runs.
    if confirmed:
        context = opened(artemis, "stomp")
        assert context.create_consumer(context.create_queue(name)).receive(WAIT_MS) is not None


@pytest.mark.parametrize("receipt", [True, False])
def test_classic_commits_a_stomp_transaction_without_a_refused_send_only_when_that_asked_for_a_receipt(
    classic: Broker, opened: Open, raw: Callable[..., RawStomp], name: str, receipt: bool
) -> None:
    """Without one the broker marks the transaction; its ERROR names no frame, and comes before or behind later answers."""
    context = opened(classic, "stomp")
    context.create_producer().send(context.create_queue(name), "taken with it")
    one = raw(classic)
    one.ask("SUBSCRIBE", "id:1", f"destination:/queue/{name}", "ack:client-individual")
    ack = next(line for line in one.frame().split("\n") if line.startswith("ack:")).removeprefix("ack:")
    one.ask("BEGIN", "transaction:t")
    one.ask("SEND", f"destination:/queue/{name}.out", "transaction:t", body="half of it")
    asked = ["receipt:s"] if receipt else []
    one.ask("SEND", "destination:/remote-temp-queue/ID:nobody-1-1-1:1:1", "transaction:t", *asked, body="the other half")
    one.ask("ACK", f"id:{ack}", "transaction:t")
    one.ask("BEGIN", "transaction:behind", "receipt:b")
    one.ask("COMMIT", "transaction:t", "receipt:c")
    answers = [one.frame() for _ in range(3)]
    commit = next(answer for answer in answers if "receipt-id:c" in answer)
    nameless = [answer for answer in answers if "receipt-id:" not in answer]
    assert any(answer.startswith("RECEIPT") and "receipt-id:b" in answer for answer in answers)
    one.close()
    target, source = (context.create_consumer(context.create_queue(name + end)) for end in (".out", ""))
    if receipt:
        assert commit.startswith("RECEIPT")
        assert nameless == []
        assert body(target.receive(WAIT_MS)) == "half of it"
        return
    assert commit.startswith("ERROR")
    assert "marked rollback only" in commit
    assert "Caused by: org.apache.activemq.DestinationDoesNotExistException" in commit
    assert len(nameless) == 1
    assert nameless[0].startswith("ERROR")
    assert body(source.receive(WAIT_MS)) == "taken with it"
    assert target.receive(QUIET_MS) is None


def test_classic_tells_of_a_send_that_it_cannot_read_before_it_answers_the_next_frame(
    classic: Broker, raw: Callable[..., RawStomp], name: str
) -> None:
    """The transaction is not marked then: COMMIT must wait for the answer of a frame behind the sends."""
    one = raw(classic)
    for n in range(20):
        one.ask_all(
            ("BEGIN", f"transaction:{n}"),
            ("SEND", f"transaction:{n}"),
            ("BEGIN", f"transaction:behind-{n}", f"receipt:b{n}"),
            ("COMMIT", f"transaction:{n}", f"receipt:c{n}"),
        )
        answers = [one.frame() for _ in range(3)]
        assert "SEND received without a Destination" in answers[0]
        assert [answer.split("\n")[:2] for answer in answers[1:]] == [
            ["RECEIPT", f"receipt-id:b{n}"],
            ["RECEIPT", f"receipt-id:c{n}"],
        ]


def test_rabbitmq_has_no_coordinator_of_transactions_over_amqp(rabbitmq: Broker) -> None:
    at = urlsplit(rabbitmq.url("amqp"))
    connection = BlockingConnection(
        f"amqp://{at.hostname}:{at.port}", timeout=WAIT_S, user=at.username, password=at.password, allow_insecure_mechs=True
    )
    try:
        wire, states, terminus = (_untyped(one) for one in (connection.conn, Endpoint, Terminus))
        session = wire.session()
        session.open()
        link = session.sender("transactions")
        link.target.type = terminus.COORDINATOR
        link.target.capabilities.put_object(symbol("amqp:local-transactions"))
        link.open()
        while not session.state & states.REMOTE_CLOSED:
            _untyped(connection.container).do_work(WAIT_S)
        assert session.remote_condition is not None
        assert session.remote_condition.name == "amqp:not-implemented"
    finally:
        connection.close()


def _untyped(one: object) -> Any:
    """Return what the type checkers do not know."""
    return one


# client_id_exclusive, temporary_owner_only, same_name_queue_and_topic, shared_subscription


def test_artemis_lets_a_client_id_be_used_twice_over_stomp(artemis: Broker, raw: Callable[..., RawStomp], name: str) -> None:
    one, other = raw(artemis, name), raw(artemis, name)
    assert one.greeting.startswith("CONNECTED")
    assert other.greeting.startswith("CONNECTED")
    assert one.confirmed("SEND", f"destination:{name}", "destination-type:ANYCAST", body="alive").startswith("RECEIPT")


def test_artemis_lets_others_consume_from_a_temporary_queue_over_stomp(
    artemis: Broker, opened: Open, raw: Callable[..., RawStomp]
) -> None:
    context = opened(artemis, "stomp")
    temporary = context.create_temporary_queue()
    context.create_producer().send(temporary, "secret")
    one = raw(artemis)
    one.ask("SUBSCRIBE", "id:1", f"destination:{temporary.queue_name}", "subscription-type:ANYCAST", "ack:auto")
    assert "secret" in one.frame()


def test_artemis_loses_over_stomp_what_is_sent_to_a_topic_with_the_name_of_a_queue(
    artemis: Broker, raw: Callable[..., RawStomp], name: str
) -> None:
    one = raw(artemis)
    at = f"destination:{name}"
    assert one.confirmed("SEND", at, "destination-type:ANYCAST", body="to the queue").startswith("RECEIPT")
    for number, routing in enumerate(("ANYCAST", "MULTICAST")):
        assert one.confirmed("SUBSCRIBE", f"id:{number}", at, f"subscription-type:{routing}", "ack:auto").startswith("RECEIPT")
    assert one.confirmed("SEND", at, "destination-type:MULTICAST", body="to the topic").startswith("RECEIPT")
    assert one.confirmed("SEND", at, "destination-type:ANYCAST", body="marker").startswith("RECEIPT")
    assert [one.frame().rpartition("\n")[2] for _ in range(2)] == ["to the queue", "marker"]


def test_artemis_gives_each_stomp_subscriber_of_a_topic_every_message(
    artemis: Broker, raw: Callable[..., RawStomp], name: str
) -> None:
    subscribers = [raw(artemis) for _ in range(2)]
    for one in subscribers:
        asked = f"destination:{name}", "subscription-type:MULTICAST", "ack:auto", "durable-subscription-name:shared"
        # A name that is shared needs a client id, and makes the subscription a durable one.
        assert raw(artemis).confirmed("SUBSCRIBE", "id:1", *asked).startswith("ERROR")
        assert one.confirmed("SUBSCRIBE", "id:1", *asked[:3]).startswith("RECEIPT")
    assert (
        raw(artemis).confirmed("SEND", f"destination:{name}", "destination-type:MULTICAST", body="to all").startswith("RECEIPT")
    )
    assert all("to all" in one.frame() for one in subscribers)


# delivery_count_exact, redelivered_flag


@pytest.mark.parametrize(
    ("kind", "wire"), [("artemis", "stomp"), ("classic", "stomp"), ("rabbitmq", "amqp"), ("rabbitmq", "stomp")]
)
def test_where_counts_are_not_exact_a_message_is_only_marked(
    request: pytest.FixtureRequest, opened: Open, name: str, kind: BrokerKind, wire: Wire
) -> None:
    broker: Broker = request.getfixturevalue(kind)
    counts: list[int] = []
    for number in range(4):
        context = opened(broker, wire, JMSContext.CLIENT_ACKNOWLEDGE)
        queue = context.create_queue(name)
        if not number:
            context.create_producer().send(queue, "again")
        message = context.create_consumer(queue).receive(WAIT_MS)
        assert message is not None
        counts.append(message.get_int_property("JMSXDeliveryCount"))
        context.close()
    # Artemis marks nothing that comes back by UNSUBSCRIBE.
    assert counts == ([1, 1, 1, 1] if kind == "artemis" else [1, 2, 2, 2])


def test_artemis_marks_only_the_oldest_of_what_a_stomp_connection_had(
    artemis: Broker, raw: Callable[..., RawStomp], name: str
) -> None:
    first = raw(artemis)
    asked = f"destination:{name}", "subscription-type:ANYCAST", "ack:client-individual"
    for number in range(3):
        assert first.confirmed("SEND", asked[0], "destination-type:ANYCAST", body=f"number {number}").startswith("RECEIPT")
    first.ask("SUBSCRIBE", "id:1", *asked)
    assert ["redelivered:false" in first.frame() for _ in range(3)] == [True] * 3
    assert first.confirmed("DISCONNECT").startswith("RECEIPT")
    second = raw(artemis)
    second.ask("SUBSCRIBE", "id:1", *asked)
    assert ["redelivered:true" in second.frame() for _ in range(3)] == [True, False, False]


def test_classic_does_not_mark_what_a_durable_stomp_subscription_had(classic: Broker, opened: Open, name: str) -> None:
    marks: list[bool] = []
    for number in range(2):
        context = opened(classic, "stomp", JMSContext.CLIENT_ACKNOWLEDGE, client_id=name)
        topic = context.create_topic(name)
        consumer = context.create_durable_consumer(topic, "news")
        if not number:
            context.create_producer().send(topic, "again")
        message = consumer.receive(WAIT_MS)
        assert body(message) == "again"
        assert message is not None
        marks.append(message.jms_redelivered)
        if number:
            context.acknowledge()
            consumer.close()
            context.unsubscribe("news")
        context.close()
    assert marks == [False, False]


def test_artemis_does_not_count_every_delivery_over_amqp_whose_link_was_lost(artemis: Broker, opened: Open, name: str) -> None:
    at = urlsplit(artemis.url("amqp"))
    queue = opened(artemis, "amqp").create_queue(name)
    for number in range(20):  # one in five was counted when it was looked at
        opened(artemis, "amqp").create_producer().send(queue, str(number))
        with FaultProxy(artemis.url("amqp")) as proxy:
            url = f"amqp://{at.username}:{at.password}@127.0.0.1:{proxy.port}"
            with jmsapi.connection_factory(url).create_context(JMSContext.CLIENT_ACKNOWLEDGE) as context:
                assert body(context.create_consumer(queue).receive(WAIT_MS)) == str(number)
                proxy.cut()
        with jmsapi.connection_factory(artemis.url("amqp")).create_context() as context:
            message = context.create_consumer(queue).receive(WAIT_MS)
        assert body(message) == str(number)
        assert message is not None
        if not message.jms_redelivered:
            return
    pytest.fail("Artemis counts what it had delivered to a link that was lost: redelivered_flag can be claimed")


# delay_keeps_subscribers


@pytest.mark.parametrize("wire", ["amqp", "stomp"])
@pytest.mark.parametrize("kind", ["classic", "rabbitmq"])
def test_a_delayed_topic_message_goes_to_who_comes_before_it_is_due(
    request: pytest.FixtureRequest, opened: Open, name: str, kind: BrokerKind, wire: Wire
) -> None:
    context = opened(request.getfixturevalue(kind), wire)
    topic = context.create_topic(name)
    producer = context.create_producer()
    producer.delivery_delay = 3_000
    producer.send(topic, "delayed")
    consumer = opened(request.getfixturevalue(kind), wire).create_consumer(topic)
    assert body(consumer.receive(WAIT_MS)) == "delayed"


# xa


@pytest.mark.parametrize("kind", ["artemis", "classic", "rabbitmq"])
def test_no_stomp_broker_knows_a_branch_of_a_distributed_transaction(
    request: pytest.FixtureRequest, raw: Callable[..., RawStomp], kind: BrokerKind
) -> None:
    one = raw(request.getfixturevalue(kind))
    one.ask("PREPARE", "transaction:t", "receipt:r")
    assert one.frame().startswith("ERROR")
