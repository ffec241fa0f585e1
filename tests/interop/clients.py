"""Two kinds of client behind the same few calls: ours, and Java's in a process that does what it is told in JSON lines.

A message is a dict here, the same for every client: ``kind``, ``body``, ``properties`` and the header fields. A value in it is
a pair of its Java type and its text, such as ``["int", "7"]``; a destination a pair of kind and name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import jmsapi
from jmsapi import Byte, Char, Destination, Float, Long, Message, Short
from jmsapi_conformance.brokers import Broker, Wire

Pair = list[str]
Told = dict[str, Any]

SOURCES = Path(__file__).parent / "java"
_BUILD_S = 100
_ANSWER_S = 40
_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "null": lambda _: None,
    "boolean": lambda text: text == "true",
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "char": Char,
    "int": int,
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": float,
    "string": str,
    "bytes": bytes.fromhex,
}


def value(pair: Pair) -> Any:
    kind, text = pair
    return _FROM_TEXT[kind](text)


def shown(value: Any) -> Pair:
    if value is None:
        return ["null", ""]
    if isinstance(value, bool):
        return ["boolean", str(value).lower()]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    plain = "string" if isinstance(value, str) else "double" if isinstance(value, float) else "int"
    if plain == "int" and not -(2**31) <= value < 2**31:
        plain = "long"
    return [getattr(value, "jms_type", plain), str(value)]


# ---------------------------------------------------------------- ours


class OurLine:
    """A connection of ours with one session."""

    def __init__(self, url: str, client_id: str | None = None) -> None:
        factory = jmsapi.connection_factory(url)
        self._context = factory.create_context()
        if client_id is not None:
            try:
                self._context.client_id = client_id
            except jmsapi.JMSRuntimeException:
                self._context.close()
                raise
        self._consumers: dict[str, jmsapi.JMSConsumer] = {}
        self._temporaries: dict[str, Destination] = {}
        self._last: Message | None = None

    def temporary(self, kind: str) -> Pair:
        made: Any = (
            self._context.create_temporary_topic() if kind == "temporary topic" else self._context.create_temporary_queue()
        )
        pair = _told_destination(made)
        self._temporaries[pair[1]] = made
        return pair

    def send(self, to: Pair, message: Told, *, priority: int = 4, mode: int = 2, ttl_ms: int = 0, delay_ms: int = 0) -> Told:
        made = self._make(message["kind"], message["body"])
        for name, pair in message["properties"].items():
            made.set_object_property(name, value(pair))
        made.jms_type = message.get("jms_type")
        if "correlation_bytes" in message:
            made.jms_correlation_id_as_bytes = bytes.fromhex(message["correlation_bytes"])
        else:
            made.jms_correlation_id = message.get("correlation_id")
        if "reply_to" in message:
            made.jms_reply_to = self._destination(message["reply_to"])
        producer = self._context.create_producer()
        producer.set_priority(priority).set_delivery_mode(mode).set_time_to_live(ttl_ms)
        if delay_ms:
            producer.set_delivery_delay(delay_ms)
        producer.send(self._destination(to), made)
        return _stamps(made)

    def consume(self, source: Pair, selector: str | None = None, durable: str | None = None, shared: str | None = None) -> str:
        name = uuid.uuid4().hex
        place: Any = self._destination(source)
        if durable is not None:
            self._consumers[name] = self._context.create_durable_consumer(place, durable, selector, False)
        elif shared is not None:
            self._consumers[name] = self._context.create_shared_durable_consumer(place, shared, selector)
        else:
            self._consumers[name] = self._context.create_consumer(place, selector)
        return name

    def receive(self, consumer: str, timeout_ms: int) -> Told | None:
        self._last = self._consumers[consumer].receive(timeout_ms)
        return None if self._last is None else _told(self._last)

    def stop_consuming(self, consumer: str) -> None:
        self._consumers.pop(consumer).close()

    def answer(self, text: str) -> None:
        assert self._last is not None
        assert self._last.jms_reply_to is not None
        self._context.create_producer().send(self._last.jms_reply_to, text)

    def unsubscribe(self, name: str) -> None:
        self._context.unsubscribe(name)

    def close(self) -> None:
        self._context.close()

    def _destination(self, pair: Pair) -> Any:
        kind, name = pair
        if kind == "queue":
            return self._context.create_queue(name)
        return self._context.create_topic(name) if kind == "topic" else self._temporaries[name]

    def _make(self, kind: str, body: Any) -> Message:
        match kind:
            case "text":
                return self._context.create_text_message(body)
            case "bytes":
                made = self._context.create_bytes_message()
                made.write_bytes(bytes.fromhex(body))
                return made
            case "map":
                filled = self._context.create_map_message()
                for name, pair in body.items():
                    filled.set_object(name, value(pair))
                return filled
            case "stream":
                stream = self._context.create_stream_message()
                for pair in body:
                    stream.write_object(value(pair))
                return stream
            case "object":
                return self._context.create_object_message(value(body))
            case _:
                return self._context.create_message()


def _stamps(message: Message) -> Told:
    return {
        "id": message.jms_message_id,
        "timestamp": message.jms_timestamp,
        "expiration": message.jms_expiration,
        "delivery_time": message.jms_delivery_time,
    }


def _told(message: Message) -> Told:
    try:
        kind, body = _told_body(message)
    except jmsapi.MessageFormatException as error:
        kind, body = _kind(message), ["unreadable", str(error)]
    correlation = message.jms_correlation_id_as_bytes
    return {
        **_stamps(message),
        "kind": kind,
        "body": body,
        "properties": {name: shown(message.get_object_property(name)) for name in message.property_names},
        "jms_type": message.jms_type,
        "correlation_id": message.jms_correlation_id,
        "correlation_bytes": None if correlation is None else correlation.hex(),
        "reply_to": None if message.jms_reply_to is None else _told_destination(message.jms_reply_to),
        "destination": None if message.jms_destination is None else _told_destination(message.jms_destination),
        "priority": message.jms_priority,
        "mode": message.jms_delivery_mode,
        "redelivered": message.jms_redelivered,
    }


def _kind(message: Message) -> str:
    kinds = (jmsapi.TextMessage, jmsapi.BytesMessage, jmsapi.MapMessage, jmsapi.StreamMessage, jmsapi.ObjectMessage)
    found = next((kind.__name__ for kind in kinds if isinstance(message, kind)), "Message")
    return found.removesuffix("Message").lower() or "message"


def _told_body(message: Message) -> tuple[str, Any]:
    match message:
        case jmsapi.TextMessage():
            return "text", message.text
        case jmsapi.BytesMessage():
            return "bytes", (message.get_body(bytes) or b"").hex() if message.body_length else ""
        case jmsapi.MapMessage():
            return "map", {name: shown(message.get_object(name)) for name in message.map_names}
        case jmsapi.StreamMessage():
            items: list[Pair] = []
            with contextlib.suppress(jmsapi.MessageEOFException):
                while True:
                    items.append(shown(message.read_object()))
            return "stream", items
        case jmsapi.ObjectMessage():
            try:
                return "object", shown(message.object)
            except jmsapi.MessageFormatException:
                return "object", shown(message.get_body(bytes))
        case _:
            return "message", None


def _told_destination(place: Destination) -> Pair:
    match place:
        case jmsapi.TemporaryQueue():
            return ["temporary queue", place.queue_name]
        case jmsapi.TemporaryTopic():
            return ["temporary topic", place.topic_name]
        case jmsapi.Queue():
            return ["queue", place.queue_name]
        case _:
            return ["topic", cast(jmsapi.Topic, place).topic_name]


# ---------------------------------------------------------------- Java's


class JavaPeer:
    """The process with the Java clients."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{home}{os.pathsep}{home}/lib/*", "Peer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self._answers: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="java-peer", daemon=True)
        self._reader.start()

    def ask(self, **command: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._answers.get(timeout=_ANSWER_S))
        if "error" in answer:
            raise JavaError(answer["error"])
        return answer.get("value")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        self._reader.join(5)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put('{"error": "the Java peer has ended"}')


class JavaError(Exception):
    """What a Java client threw."""


class JavaLine:
    """A connection of a Java client with one session."""

    def __init__(self, peer: JavaPeer, broker: Broker, wire: Wire, client_id: str | None = None) -> None:
        self._peer = peer
        self._name = uuid.uuid4().hex
        url = broker.amqp_url if wire == "amqp" else broker.openwire_url
        self._ask("open", wire=wire, url=url, user=broker.user, password=broker.password, client_id=client_id)

    def temporary(self, kind: str) -> Pair:
        return cast(Pair, self._ask("temporary", kind=kind))

    def send(self, to: Pair, message: Told, *, priority: int = 4, mode: int = 2, ttl_ms: int = 0, delay_ms: int = 0) -> Told:
        told = self._ask("send", to=to, message=message, priority=priority, mode=mode, ttl_ms=ttl_ms, delay_ms=delay_ms)
        return cast(Told, told)

    def consume(self, source: Pair, selector: str | None = None, durable: str | None = None, shared: str | None = None) -> str:
        name = uuid.uuid4().hex
        more = {"consumer": name, "from": source, "selector": selector, "durable": durable, "shared": shared}
        self._ask("consume", **more)
        return name

    def receive(self, consumer: str, timeout_ms: int) -> Told | None:
        return cast("Told | None", self._ask("receive", consumer=consumer, timeout_ms=timeout_ms))

    def stop_consuming(self, consumer: str) -> None:
        self._ask("stop consuming", consumer=consumer)

    def answer(self, text: str) -> None:
        self._ask("answer", text=text)

    def unsubscribe(self, name: str) -> None:
        self._ask("unsubscribe", name=name)

    def close(self) -> None:
        self._ask("close")

    def _ask(self, what: str, **more: Any) -> Any:
        return self._peer.ask(do=what, line=self._name, **more)


def build() -> Path:
    """Fetch the jars and compile the peer, unless that was done for these very sources; give the folder of its classes."""
    sources = [SOURCES / "pom.xml", SOURCES / "Peer.java"]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    cache = Path(os.environ.get("BROKER_CACHE") or Path.home() / ".cache" / "jmsapi-brokers")
    home = cache / f"interop-peer-{digest}"
    if home.is_dir():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix="interop-peer-part-", dir=cache))
    maven = ["mvn", "--batch-mode", "--quiet", "--file", str(sources[0]), "dependency:copy-dependencies"]
    for command in (
        [*maven, f"-DoutputDirectory={part / 'lib'}"],
        ["javac", "-encoding", "UTF-8", "-cp", f"{part / 'lib'}/*", "-d", str(part), str(sources[1])],
    ):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_BUILD_S, check=False)
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    try:
        part.rename(home)
    except OSError:  # another run was quicker
        shutil.rmtree(part)
    return home


if __name__ == "__main__":
    print(f"Java clients for tests: {build()}")
