"""What a message is when it arrives at another client: jmsapi over AMQP and STOMP, Apache Qpid JMS, ActiveMQ's OpenWire client.

Each route sends the same samples. Everything arrives as it was sent, but for what ``deviations.toml`` lists with its reason; a
cell that is better than the list fails as well. The cells are printed at the end of the run.
"""

from __future__ import annotations

import contextlib
import time
import tomllib
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

import pytest

import jmsapi
from jmsapi_conformance.brokers import INFO, Broker, BrokerKind

Told = dict[str, Any]
Pair = list[str]
KEPT = "+"
WAIT_MS = 30_000
DELAY_MS = 500
FULL: dict[BrokerKind, list[str]] = {
    "artemis": ["amqp", "stomp", "qpid-jms"],
    "classic": ["amqp", "stomp", "qpid-jms", "openwire"],
    "rabbitmq": ["amqp", "stomp"],
}
OURS = ("amqp", "stomp")
ROUTES = [
    (kind, sender, receiver)
    for kind in get_args(BrokerKind)
    for sender in FULL[kind]
    for receiver in FULL[kind]
    if sender != receiver and (sender in OURS or receiver in OURS)
]

BODIES: dict[str, tuple[str, Any]] = {
    "text": ("text", "grüß € 😀\nnew: line\\"),
    "empty text": ("text", ""),
    "null text": ("text", None),
    "text with NUL": ("text", "a\0b"),
    "bytes": ("bytes", "f0014163ff001f8b"),
    "bytes that are text": ("bytes", b"text".hex()),
    "empty bytes": ("bytes", ""),
    "map": (
        "map",
        {
            "z": ["boolean", "true"], "y": ["byte", "-128"], "s": ["short", "32767"], "c": ["char", "x"], "i": ["int", "7"],
            "l": ["long", "7"], "f": ["float", "1.5"], "d": ["double", "2.5"], "t": ["string", "grüß"], "b": ["bytes", "00ff"],
            "n": ["null", ""],
        },
    ),
    "map with emoji": ("map", {"t": ["string", "😀"]}),
    "stream": (
        "stream",
        [
            ["boolean", "true"], ["byte", "-128"], ["short", "32767"], ["char", "x"], ["int", "7"], ["long", "7"],
            ["float", "1.5"], ["double", "2.5"], ["string", "grüß"], ["null", ""],
        ],
    ),
    "stream with bytes": ("stream", [["bytes", "00ff"], ["int", "7"]]),
    "object": ("object", ["string", "an object"]),
    "no body": ("message", None),
}  # fmt: skip
PROPERTIES: dict[str, Pair] = {
    "boolean": ["boolean", "true"], "byte": ["byte", "-128"], "short": ["short", "32767"], "int": ["int", "7"],
    "long": ["long", "7"], "float": ["float", "1.5"], "double": ["double", "2.5"], "string": ["string", "a:b\\c\nd\re ü "],
    "empty string": ["string", ""],
}  # fmt: skip
NAMED = {"boolean": "z", "byte": "y", "short": "s", "int": "i", "long": "l", "float": "f", "double": "d", "string": "t",
         "empty string": "e"}  # fmt: skip
SELECTORS = {
    "selector on numbers": "i = 7 AND d > 2 AND l BETWEEN 6 AND 8",
    "selector on a boolean": "z = TRUE",
    "selector on text": "w LIKE 'wo_d'",
    "selector on headers": "JMSType = 'kind' AND JMSCorrelationID = 'corr' AND JMSPriority > 5",
}
HEADERS = {
    "JMSMessageID": "id", "JMSTimestamp": "timestamp", "JMSType": "jms_type", "JMSCorrelationID": "correlation_id",
    "JMSReplyTo a queue": "reply_to", "JMSDestination": "destination", "JMSPriority": "priority", "JMSDeliveryMode": "mode",
    "JMSExpiration": "expiration",
}  # fmt: skip


@dataclass(frozen=True)
class Deviation:
    aspects: list[str]
    routes: list[str]
    outcome: str
    reason: str

    def is_for(self, route: str, aspect: str) -> bool:
        return any(fnmatchcase(aspect, a) for a in self.aspects) and any(fnmatchcase(route, r) for r in self.routes)


DEVIATIONS = [Deviation(**row) for row in tomllib.loads(Path(__file__).with_name("deviations.toml").read_text())["deviation"]]


def expected(route: str, aspects: Iterable[str]) -> dict[str, str]:
    """Give what is to come of each aspect; of two rows that fit, the later one counts."""
    found = dict.fromkeys(aspects, KEPT)
    for deviation in DEVIATIONS:
        found.update({aspect: deviation.outcome for aspect in found if deviation.is_for(route, aspect)})
    return found


# ---------------------------------------------------------------- one route


def text(label: str, **more: Any) -> Told:
    properties = {"label": ["string", label], **more.pop("properties", {})}
    return {"kind": "text", "body": label, "properties": properties, **more}


class Crossing:
    """Two lines to one broker, and what comes over."""

    def __init__(self, sender: Callable[[], Any], receiver: Callable[[], Any], kind: BrokerKind) -> None:
        self._open = (sender, receiver)
        self._kind = kind
        self.notes: list[str] = []
        self.outcomes: dict[str, str] = {}

    def run(self) -> dict[str, str]:
        self._begin()
        try:
            for part in (self._bodies, self._fields, self._answers, self._selectors, self._delay):
                part()
                if self.outcomes["text"] == "refused":
                    return {"text": "refused"}
        finally:
            self._end()
        return self.outcomes

    def _begin(self) -> None:
        self._name = f"interop.{uuid.uuid4().hex}"
        self._queue = ["queue", self._name]
        self.sender = self._open[0]()
        try:
            self.receiver = self._open[1]()
        except BaseException:  # left out, too
            self.sender.close()
            raise

    def _end(self) -> None:
        for line in (self.receiver, self.sender):
            with contextlib.suppress(Exception):  # of a connection that was lost
                line.close()

    def _carry(self, sample: Told, consumer: str, place: Pair, **how: Any) -> Told | None:
        """Send a message and a marker behind it; give the message if it comes, with what its sender knows of it."""
        sent = self.sender.send(place, sample, **how)
        self.sender.send(
            place, text("marker", properties={"marker": ["string", self._name]}), priority=0, mode=how.get("mode", 2)
        )
        message = self.receiver.receive(consumer, WAIT_MS)
        if message is None or message["properties"]["label"][1] == "marker":
            return None
        assert self.receiver.receive(consumer, WAIT_MS) is not None
        return {**message, "sent": {**sample, **sent}}

    def _try(self, sample: Told, **how: Any) -> Told | None:
        """Carry a message that may end the receiver's connection; a message that is refused or ends it has only a ``trouble``."""
        try:
            consumer = self.receiver.consume(self._queue)
            message = self._carry(sample, consumer, self._queue, **how)
            self.receiver.stop_consuming(consumer)
        except Exception as error:  # of either client, in whatever way
            self.notes.append(f"{sample['properties']['label'][1]}: {error}")
            self._end()
            self._begin()
            return {"trouble": "refused" if isinstance(error, jmsapi.UnsupportedFeatureRuntimeException) else "breaks"}
        return message

    def _bodies(self) -> None:
        for label, (kind, body) in BODIES.items():
            sample = {"kind": kind, "body": body, "properties": {"label": ["string", label]}}
            message = self._try(sample)
            self.outcomes[label] = _body(sample, message)
            if message is None:
                # The broker may be about to end the connection that it could not give the message to.
                self._end()
                self._begin()

    def _fields(self) -> None:
        properties = {NAMED[name]: pair for name, pair in PROPERTIES.items()}
        groups: dict[str, Pair] = {"JMSXGroupID": ["string", "group:1"], "JMSXGroupSeq": ["int", "3"]}
        sample = text(
            "full",
            jms_type="kind:\\a",
            correlation_id="corr:1\\",
            reply_to=["queue", "answers"],
            properties={**properties, **groups},
        )
        message = self._try(sample, priority=7, mode=1, ttl_ms=600_000)
        assert message is not None
        assert "trouble" not in message, self.notes
        arrived = message["properties"]
        for label, pair in PROPERTIES.items():
            self.outcomes[f"{label} property"] = _pair(pair, arrived.get(NAMED[label]))
        for name, pair in groups.items():
            self.outcomes[name] = _pair(pair, arrived.get(name))
        known = {"label", "JMSXDeliveryCount", "JMSXUserID", *properties, *groups}
        self.outcomes["nothing added"] = "strays" if set(arrived) - known else KEPT
        wanted = {**message["sent"], "destination": self._queue, "priority": 7, "mode": 1}
        for label, field in HEADERS.items():
            self.outcomes[label] = _same(wanted[field], message[field])
        for label, field, value in (
            ("JMSReplyTo a topic", "reply_to", ["topic", "answers.t"]),
            ("JMSCorrelationID of bytes", "correlation_bytes", "8041ff"),
            ("... with a NUL in them", "correlation_bytes", "0041ff"),
        ):
            message = self._try(text(label, **{field: value}))
            self.outcomes[label] = _trouble(message) or _same(value, (message or {})[field])
        message = self._try(text("null", properties={"n": ["null", ""]}))
        self.outcomes["null property"] = _trouble(message) or _pair(["null", ""], (message or {})["properties"].get("n"))

    def _answers(self) -> None:
        for kind in ("temporary queue", "temporary topic"):
            place = self.sender.temporary(kind)
            answers = self.sender.consume(place)
            consumer = self.receiver.consume(self._queue)
            self.sender.send(self._queue, text(kind, reply_to=place))
            message = self.receiver.receive(consumer, WAIT_MS)
            assert message is not None
            self.outcomes[f"JMSReplyTo a {kind}"] = _kind_of(place, message["reply_to"])
            answer = None
            if message["reply_to"] is not None:
                try:
                    self.receiver.answer("answer")
                    answer = self.sender.receive(answers, 3000)
                except Exception as error:
                    self.notes.append(f"answer to a {kind}: {error}")
            self.outcomes[f"answer to a {kind}"] = "lost" if answer is None else _body(text("answer"), answer)
            self._end()
            self._begin()

    def _selectors(self) -> None:
        # RabbitMQ selects nothing on queues.
        place = ["topic" if self._kind == "rabbitmq" else "queue", self._name + ".selected"]
        values: dict[str, Pair] = {**{NAMED[name]: pair for name, pair in PROPERTIES.items()}, "w": ["string", "word"]}
        for label, selector in SELECTORS.items():
            # The marker is let through in any case: whether it is the first to come tells what the selector does. It is another
            # text each time, because Classic 6.3.1 caches selectors by text, and one that a STOMP client used converts numbers.
            consumer = self.receiver.consume(place, f"({selector}) OR marker = '{self._name}'")
            sample = text(label, properties=values, jms_type="kind", correlation_id="corr")
            message = self._carry(sample, consumer, place, priority=7)
            self.outcomes[label] = "no match" if message is None else KEPT
            self.receiver.stop_consuming(consumer)
            if message is None and place[0] == "queue":
                rest = self.receiver.consume(place)
                self.receiver.receive(rest, WAIT_MS)
                self.receiver.stop_consuming(rest)

    def _delay(self) -> None:
        consumer = self.receiver.consume(self._queue)
        began = time.monotonic()
        try:
            sent = self.sender.send(self._queue, text("late"), delay_ms=DELAY_MS)
        except Exception as error:
            self.notes.append(f"delay: {error}")
            self.outcomes["delivery delay"] = self.outcomes["JMSDeliveryTime"] = "refused"
            return
        message = self.receiver.receive(consumer, WAIT_MS)
        took_ms = (time.monotonic() - began) * 1000
        assert message is not None
        assert sent["delivery_time"] == sent["timestamp"] + DELAY_MS
        self.outcomes["delivery delay"] = KEPT if took_ms > DELAY_MS - 100 else "at once"
        self.outcomes["JMSDeliveryTime"] = _same(sent["delivery_time"], message["delivery_time"])
        self.receiver.stop_consuming(consumer)


def _trouble(message: Told | None) -> str | None:
    return "lost" if message is None else message.get("trouble")


def _same(sent: Any, arrived: Any) -> str:
    if sent == arrived:
        return KEPT
    if arrived in (None, 0):
        return "lost"
    return "close" if isinstance(sent, int) and sent > 1e12 and abs(sent - arrived) < 5_000 else "other"


def _kind_of(sent: Pair, arrived: Pair | None) -> str:
    if arrived is None:
        return "lost"
    return KEPT if arrived[0] == sent[0] else arrived[0]


def _pair(sent: Pair, arrived: Pair | None) -> str:
    if arrived is None:
        return "lost"
    if sent == arrived:
        return KEPT
    return arrived[0] if sent[0] != arrived[0] and sent[1] == arrived[1] else "other"


def _body(sent: Told, arrived: Told | None) -> str:
    if (trouble := _trouble(arrived)) is not None:
        return trouble
    assert arrived is not None
    if sent["kind"] != arrived["kind"]:
        return str(arrived["kind"])
    if sent["body"] == arrived["body"]:
        return KEPT
    if sent["kind"] == "object" and arrived["body"][0] == "bytes" and arrived["body"][1].startswith("aced0005"):
        return "Java's"
    if arrived["body"] == ["bytes", ""]:
        return "empty"
    if sent["kind"] == "object" or (isinstance(arrived["body"], list) and arrived["body"][:1] == ["unreadable"]):
        return str(arrived["body"][0])
    if arrived["body"] is None or sent["body"] is None:
        return "null" if arrived["body"] is None else "empty"
    return "other"


# ---------------------------------------------------------------- the tests


def _name(route: tuple[str, str, str]) -> str:
    return f"{route[0]}: {route[1]} > {route[2]}"


@pytest.fixture(params=[pytest.param(route, marks=pytest.mark.broker) for route in ROUTES], ids=map(_name, ROUTES))
def route(request: pytest.FixtureRequest) -> tuple[BrokerKind, str, str]:
    """Give each way between two clients."""
    found: tuple[BrokerKind, str, str] = request.param
    return found


@pytest.fixture
def broker(request: pytest.FixtureRequest, route: tuple[BrokerKind, str, str]) -> Broker:
    """Give the broker of the route."""
    found: Broker = request.getfixturevalue(route[0])
    return found


def test_what_arrives_is_what_was_sent_but_for_the_listed_deviations(
    route: tuple[BrokerKind, str, str], broker: Broker, open_line: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    kind, sender, receiver = route
    crossing = Crossing(lambda: open_line(broker, sender), lambda: open_line(broker, receiver), kind)
    found = crossing.run()
    title = f"who reads what whom sent, on {INFO[kind].title} (+ kept)"
    request.node.user_properties.append(("cells", [title, f"{sender} > {receiver}", found]))
    wrong = {
        aspect: f"{outcome!r} instead of {wanted!r}"
        for aspect, wanted in expected(_name(route), found).items()
        # Two clocks may agree; and a broker that ends the connection may do so a moment after we looked.
        if (outcome := found[aspect]) != wanted and (outcome, wanted) not in ((KEPT, "close"), ("lost", "breaks"))
    }
    assert not wrong, "\n".join(crossing.notes)


def test_every_deviation_gives_its_reason_and_is_of_a_route_that_is_tried() -> None:
    for deviation in DEVIATIONS:
        assert deviation.reason
        for pattern in deviation.routes:
            assert any(fnmatchcase(_name(route), pattern) for route in ROUTES), pattern
