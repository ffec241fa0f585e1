"""Messages between jmsapi and the Apache Qpid JMS client, both ways: types, properties, headers, selectors, subscriptions.

The Java client runs in a process of its own and does what it is told. The cells that were tried are printed at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi.spi import Address, DestinationKind, MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short, Value
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]
TEXT = "héllo 😀"
# Classic 6.3.1 writes Java's modified UTF-8 into the texts of maps, which Java's own AMQP client cannot read.
PLAIN = "héllo"
SOURCES = Path(__file__).parent / "java"
PROPERTIES: dict[str, Value] = {
    "z": True, "y": Byte(1), "s": Short(2), "i": 3, "l": Long(4), "f": Float(1.5), "d": 2.5, "t": TEXT,
    "JMSXGroupID": "g", "JMSXGroupSeq": 5,
}  # fmt: skip
JAVA_PROPERTIES = {
    "z": "Boolean:true", "y": "Byte:1", "s": "Short:2", "i": "Integer:3", "l": "Long:4", "f": "Float:1.5", "d": "Double:2.5",
    "t": f"String:{TEXT}", "JMSXGroupID": "String:g", "JMSXGroupSeq": "Integer:5",
}  # fmt: skip
MAP: dict[str, Any] = {
    "z": True, "y": Byte(1), "s": Short(2), "c": Char("x"), "i": 3, "l": Long(4), "f": Float(1.5), "d": 2.5, "t": PLAIN,
    "b": b"\x00\xff", "n": None,
}  # fmt: skip
JAVA_ENTRIES = {
    "z": "Boolean:true", "y": "Byte:1", "s": "Short:2", "c": "Character:x", "i": "Integer:3", "l": "Long:4", "f": "Float:1.5",
    "d": "Double:2.5", "t": f"String:{PLAIN}", "b": "bytes:00ff", "n": "null",
}  # fmt: skip
# What Java's serialization makes of TEXT: a string of 10 bytes in its modified UTF-8.
SERIALIZED = b"\xac\xed\x00\x05t\x00\x0d" + b"h\xc3\xa9llo \xed\xa0\xbd\xed\xb8\x80"
BODIES: dict[MessageKind, Any] = {
    MessageKind.MESSAGE: None,
    MessageKind.TEXT: TEXT,
    MessageKind.BYTES: b"\x00\xff",
    MessageKind.OBJECT: SERIALIZED,
    MessageKind.MAP: MAP,
    MessageKind.STREAM: list(MAP.values()),
}
JAVA_BODIES: dict[MessageKind, list[str]] = {
    MessageKind.MESSAGE: [],
    MessageKind.TEXT: [f"String:{TEXT}"],
    MessageKind.BYTES: ["bytes:00ff"],
    MessageKind.OBJECT: [f"String:{TEXT}"],
    MessageKind.MAP: [f"{name}={JAVA_ENTRIES[name]}" for name in sorted(JAVA_ENTRIES)],
    MessageKind.STREAM: list(JAVA_ENTRIES.values()),
}
Cells = dict[str, set[str]]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the Java client; give its class path."""
    missing = [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]
    if missing:
        why = f"LEFT OUT: the Java client cannot be built without {' and '.join(missing)}"
        (pytest.fail if os.environ.get("JMSAPI_REQUIRE_BROKERS", "") not in ("", "0") else pytest.skip)(why)
    folder = tmp_path_factory.mktemp("java")
    jars = folder / "jars"
    copy = ["mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml"), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    compiling = ["javac", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(folder), str(SOURCES / "Peer.java")]
    for command in (copy, compiling):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return os.pathsep.join([str(folder), f"{jars}/*"])


class Peer:
    """The Java client, running."""

    def __init__(self, classes: str, broker: Broker, client_id: str | None) -> None:
        where = broker.url("amqp").split("@")[-1]
        command = [
            "java",
            "-Xmx128m",
            "-Dfile.encoding=UTF-8",
            "-cp",
            classes,
            "Peer",
            f"amqp://{where}",
            broker.user,
            broker.password,
        ]
        command += [client_id] if client_id else []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        assert self._answer() == ["ready"]

    def _answer(self) -> list[str]:
        assert self._process.stdout is not None
        state, *told = self._process.stdout.readline().rstrip("\n").split("\t")
        assert state == "ok", told
        return told

    def ask(self, *command: str) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in ("artemis", "classic")], scope="module")
def java_broker(request: pytest.FixtureRequest) -> Broker:
    """Give each broker that serves both clients in full."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture(scope="module")
def java(classes: str, java_broker: Broker) -> Iterator[Peer]:
    """Give the Java client on a broker."""
    peer = Peer(classes, java_broker, None)
    yield peer
    peer.close()


@pytest.fixture
def cells(request: pytest.FixtureRequest) -> Iterator[Cells]:
    """Collect the cells that held; they are printed at the end of the run."""
    found: Cells = {}
    yield found
    for row, kept in found.items():
        route, _, broker = row.partition(", ")
        cell = dict.fromkeys(sorted(kept), "+")
        request.node.user_properties.append(
            ("cells", [f"qpid-jms and jmsapi, on {broker} (+ kept)", route.replace(" to ", " > "), cell])
        )


@pytest.mark.parametrize("kind", list(MessageKind))
def test_a_java_client_reads_every_kind_of_ours(
    java_broker: Broker, java: Peer, dial: Dial, queue: Address, kind: MessageKind, cells: Cells
) -> None:
    line = dial(java_broker)
    now = line.wire._clock.now_ms()
    fields: dict[str, Any] = {
        "message_id": f"ID:{uuid.uuid4()}", "correlation_id": "corr-1", "jms_type": "kind", "priority": 7, "delivery_mode": 1,
        "timestamp": now, "expiration": now + 600_000, "reply_to": Address(DestinationKind.TOPIC, "answers"),
    }  # fmt: skip
    line.send(queue, BODIES[kind], kind=kind, properties=PROPERTIES, **fields)
    told = java.ask("receive", queue.name, "i = 3 AND d > 2 AND JMSType = 'kind'")
    assert told != ["nothing"]
    java_kind, body, properties, *headers = told
    assert java_kind == kind.name
    assert [part for part in body.split("\x01") if part] == JAVA_BODIES[kind]
    found = dict(part.split("=", 1) for part in properties.split("\x01"))
    assert {name: value for name, value in found.items() if name in JAVA_PROPERTIES} == JAVA_PROPERTIES
    assert not [name for name in found if name.startswith("JMS_PY")]
    assert headers == [
        fields["message_id"], "corr-1", "kind", "topic:answers", "7", "1", str(now), str(now + 600_000), "queue",
    ]  # fmt: skip
    cells.setdefault(f"jmsapi to Java, {java_broker.kind}", set()).add(kind.name.lower())


@pytest.mark.parametrize("kind", list(MessageKind))
def test_we_read_every_kind_of_a_java_client(
    java_broker: Broker, java: Peer, dial: Dial, queue: Address, kind: MessageKind, cells: Cells
) -> None:
    line = dial(java_broker)
    consumer = line.consumer(queue, selector="i = 3 AND l BETWEEN 4 AND 4 AND d > 2 AND JMSType = 'kind'")
    [message_id] = java.ask("send", queue.name, kind.name)
    [delivery] = line.receive(consumer)
    envelope = delivery.envelope
    assert envelope.kind is kind
    assert envelope.body == BODIES[kind]
    if kind in (MessageKind.MAP, MessageKind.STREAM):
        entries = envelope.body.values() if isinstance(envelope.body, dict) else envelope.body
        wanted = [type(value) for value in (dict(MAP).values() if kind is MessageKind.STREAM else map(MAP.get, envelope.body))]
        assert [type(value) for value in entries] == wanted
    assert {name: (value, type(value)) for name, value in envelope.properties.items() if name in PROPERTIES} == {
        name: (value, type(value)) for name, value in PROPERTIES.items()
    }
    assert (envelope.message_id, envelope.correlation_id, envelope.jms_type) == (message_id, "corr-1", "kind")
    assert (envelope.priority, envelope.delivery_mode, envelope.destination) == (7, 1, queue)
    assert envelope.reply_to == Address(DestinationKind.TOPIC, "answers")
    assert envelope.expiration == envelope.timestamp + 600_000
    cells.setdefault(f"Java to jmsapi, {java_broker.kind}", set()).add(kind.name.lower())


def test_a_durable_subscription_made_by_us_is_used_by_java_and_the_reverse(
    java_broker: Broker, classes: str, dial: Dial, topic: Address, cells: Cells
) -> None:
    client_id = f"interop.{topic.name}"
    spec = {"subscription": "s", "durable": True}
    sender = dial(java_broker)
    line = dial(java_broker, client_id=client_id)
    line.provider.release(line.consumer(topic, **spec)).result(30)
    line.close()
    sender.send(topic, "for Java")
    peer = Peer(classes, java_broker, client_id)
    kind, body, *_, where = peer.ask("durable", topic.name, "s", "take")
    assert (kind, body, where) == ("TEXT", "String:for Java", "topic")
    sender.send(topic, "for us")
    peer.close()
    line = dial(java_broker, client_id=client_id)
    consumer = line.consumer(topic, **spec)
    assert line.receive(consumer)[0].envelope.body == "for us"
    line.provider.release(consumer).result(30)
    line.close()
    peer = Peer(classes, java_broker, client_id)
    assert peer.ask("unsubscribe", "s") == ["done"]
    peer.close()
    cells.setdefault(f"both > ways, {java_broker.kind}", set()).add("durable subscription")


@pytest.mark.parametrize("selector", ["color = 'red'", "n > 1 AND color <> 'red'"])
def test_a_durable_subscription_with_a_selector_is_used_by_both_and_not_made_anew(
    java_broker: Broker, classes: str, dial: Dial, topic: Address, cells: Cells, selector: str
) -> None:
    """The brokers compare the texts. The second is one whose answer they get wrong: NaN is greater than 1 to them."""
    client_id = f"interop.{topic.name}"
    color = "red" if selector.startswith("color") else "blue"
    sender = dial(java_broker)

    def send(body: str, n: Value, color: str) -> None:
        sender.send(topic, body, properties={"n": n, "color": color})

    factory = jmsapi.connection_factory(java_broker.url("amqp"), client_id=client_id)
    with factory.create_context() as context:
        context.create_durable_consumer(context.create_topic(topic.name), "s", selector).close()
    send("not for anybody", 0, "green")
    send("for Java", 2, color)
    peer = Peer(classes, java_broker, client_id)
    kind, body, *_ = peer.ask("durable", topic.name, "s", "take", selector)
    assert (kind, body) == ("TEXT", "String:for Java")
    peer.close()
    send("no number", float("nan"), "green")
    send("for us", 2, color)
    with factory.create_context() as context:
        consumer = context.create_durable_consumer(context.create_topic(topic.name), "s", selector)
        message = consumer.receive(8000)
        assert message is not None
        assert message.get_body(str) == "for us"
        assert consumer.receive_no_wait() is None
        consumer.close()
        context.unsubscribe("s")
    cells.setdefault(f"both > ways, {java_broker.kind}", set()).add("durable subscription with a selector")
