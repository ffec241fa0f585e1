"""What a selector takes through the API is what the standard says, on each wire of each broker, whoever evaluates it.

Every strict case of the table whose values a client can set, on topics and on queues; there with ``?emulate=queue-selector``
for what only we can evaluate. Run with ``-rP`` to see how many are pushed, rewritten and evaluated here.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

import pytest

import jmsapi
from jmsapi import (
    Byte,
    Connection,
    DeliveryMode,
    Destination,
    Double,
    Float,
    Int,
    InvalidSelectorException,
    Long,
    MessageConsumer,
    Session,
    Short,
    TextMessage,
    UnsupportedFeatureException,
)
from jmsapi_selector import compile_selector
from jmsapi_selector.planner import Action, DestinationKind, Plan, plan

SOON: Final = 20_000
AT_A_TIME: Final = 6
"""Destinations tried at one time: most of the time is waiting for a broker."""
EMULATED: Final = {"emulate": "queue-selector"}
_TYPES: Final[dict[str, type[Any]]] = {
    "byte": Byte, "short": Short, "int": Int, "long": Long, "float": Float, "double": Double, "boolean": bool, "string": str,
}  # fmt: skip
_ONLY_A_PROVIDER_SETS: Final = {"JMSMessageID", "JMSTimestamp"}


@dataclass(frozen=True)
class Case:
    """A selector, and whether it takes the message of its group."""

    id: str
    selector: str
    matches: bool


@dataclass
class Group:
    """The cases of one message."""

    number: int
    properties: dict[str, Any]
    headers: dict[str, Any]
    cases: list[Case] = field(default_factory=list)


def lines() -> list[dict[str, Any]]:
    """Read the strict cases of the table."""
    text = files("jmsapi_conformance").joinpath("data", "selector-cases.jsonl").read_text(encoding="utf-8")
    return [line for line in map(json.loads, text.splitlines()) if line["jms_strict"]]


def groups() -> list[Group]:
    """Put together what can be asked of one message."""
    found: dict[str, Group] = {}
    for line in lines():
        if line["expect"] == "invalid" or _ONLY_A_PROVIDER_SETS & line["headers"].keys():
            continue
        key = json.dumps([line["props"], line["headers"]], sort_keys=True)
        values = {name: None if one["v"] is None else _TYPES[one["t"]](one["v"]) for name, one in line["props"].items()}
        group = found.setdefault(key, Group(len(found), values, line["headers"]))
        assert line["expect"] is (line["tri"] == "true")
        group.cases.append(Case(line["id"], line["selector"], line["expect"]))
    return list(found.values())


GROUPS: Final = groups()


class Sender:
    """Sends the message of a group."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._producer = session.create_producer()

    def send(self, destination: Destination, group: Group) -> None:
        """Send it once."""
        message = self._session.create_text_message(str(group.number))
        message.jms_type = group.headers.get("JMSType")
        message.jms_correlation_id = group.headers.get("JMSCorrelationID")
        for name, value in group.properties.items():
            message.set_object_property(name, value)
        self._producer.send(
            destination,
            message,
            priority=group.headers.get("JMSPriority", 4),
            delivery_mode=getattr(DeliveryMode, group.headers.get("JMSDeliveryMode", "NON_PERSISTENT")),
        )


def takes(consumer: MessageConsumer, group: Group) -> bool:
    """Tell whether the group's message comes."""
    message = consumer.receive(SOON)
    assert message is None or (isinstance(message, TextMessage) and message.text == str(group.number))
    return message is not None


@pytest.fixture
def connection(broker_url: str) -> Iterator[Connection]:
    """Give a started connection to each backend; what can be emulated on a queue is."""
    with jmsapi.connection_factory(broker_url, prefetch=2, **EMULATED).create_connection() as made:
        made.start()
        yield made


def plans(connection: Connection, kind: DestinationKind) -> dict[str, Plan]:
    """Return the plan for each case by its id; none where the broker has our own engine. Print how many there are of each."""
    has = jmsapi.capabilities(connection)
    dialect = has.selectors
    if dialect is None:
        return {}
    made = {case.id: plan(compile_selector(case.selector), dialect, kind) for group in GROUPS for case in group.cases}
    counts = Counter(one.action.name for one in made.values())
    if kind == "topic":
        rest = f"{sum(one.recheck for one in made.values())} of them checked again here"
    else:
        rest = f"{sum(bool(one.caveats) for one in made.values())} of them with caveats, here if asked"
    print(f"{dialect.name:<14} {kind:<5}", *(f"{action.name} {counts[action.name]:>3} " for action in Action), f"({rest})")
    return made


def stays_here(planned: Plan | None) -> bool:
    """Tell whether a queue's selector is evaluated here when that was asked for."""
    return planned is not None and (planned.action is Action.LOCAL or bool(planned.caveats))


def test_the_table_has_what_it_had() -> None:
    assert len(GROUPS) > 180
    assert sum(len(group.cases) for group in GROUPS) == 455
    assert sum(case.matches for group in GROUPS for case in group.cases) > 200


Share = Callable[[Session, Sender, str, Sequence[Group]], list[str]]


def wrong_answers(connection: Connection, share: Share) -> list[str]:
    """Try all groups, a share of them in each of several threads, and return what was missed or taken by mistake."""

    def run(number: int) -> list[str]:
        with connection.create_session() as session, connection.create_session() as other:
            return share(session, Sender(other), f"selectors.{uuid.uuid4().hex}", GROUPS[number::AT_A_TIME])

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return [wrong for found in pool.map(run, range(AT_A_TIME)) for wrong in found]


def test_on_a_topic_the_answer_is_the_standards(connection: Connection) -> None:
    plans(connection, "topic")

    def share(session: Session, sender: Sender, name: str, groups: Sequence[Group]) -> list[str]:
        wrong: list[str] = []
        topic = session.create_topic(name)
        for group in groups:
            consumers = [(case, session.create_consumer(topic, case.selector)) for case in group.cases]
            sender.send(topic, group)
            wrong += [f"{case.id} missed" for case, consumer in consumers if case.matches and not takes(consumer, group)]
            wrong += [f"{case.id} taken" for case, consumer in consumers if not case.matches and consumer.receive_no_wait()]
            for _, consumer in consumers:
                consumer.close()
        return wrong

    assert wrong_answers(connection, share) == []


def test_on_a_queue_the_answer_is_the_standards(connection: Connection) -> None:
    planned = plans(connection, "queue")

    def share(session: Session, sender: Sender, name: str, groups: Sequence[Group]) -> list[str]:
        wrong: list[str] = []
        queue = session.create_queue(name)
        for group in groups:
            for case in (case for case in group.cases if case.matches):
                sender.send(queue, group)
                with session.create_consumer(queue, case.selector) as consumer:
                    if not takes(consumer, group):
                        wrong.append(f"{case.id} missed")
                        clear(session, queue)
            wrong += taken_by_mistake(session, sender, queue, group, planned)
        return wrong

    assert wrong_answers(connection, share) == []


def taken_by_mistake(session: Session, sender: Sender, queue: Destination, group: Group, planned: dict[str, Plan]) -> list[str]:
    """Find the cases that take a message they should not: in the end one without a selector gets it."""
    misses = [case for case in group.cases if not case.matches]
    if not misses:
        return []
    # Those who hide the message for a moment while they look at it come one after the other.
    apart = [case for case in misses if stays_here(planned.get(case.id))]
    consumers = [(case, session.create_consumer(queue, case.selector)) for case in misses if case not in apart]
    sender.send(queue, group)
    wrong = [case.id for case, consumer in consumers if consumer.receive_no_wait()]
    for _, consumer in consumers:
        consumer.close()
    for case in apart:
        with session.create_consumer(queue, case.selector) as consumer:
            if consumer.receive_no_wait():
                wrong.append(case.id)
    if not wrong:
        with session.create_consumer(queue) as rest:
            assert takes(rest, group), f"the message is lost after {[case.id for case in misses]}"
    return [f"{case} taken" for case in wrong]


def clear(session: Session, queue: Destination) -> None:
    """Take what is left."""
    with session.create_consumer(queue) as rest:
        assert rest.receive(SOON) is not None


def test_what_is_no_selector_is_refused_and_the_connection_goes_on(connection: Connection) -> None:
    session = connection.create_session()
    queue, topic = session.create_queue(f"selectors.{uuid.uuid4().hex}"), session.create_topic("selectors.invalid")
    invalid = [line["selector"] for line in lines() if line["expect"] == "invalid"]
    assert len(invalid) > 80
    for selector in invalid:
        for destination in (queue, topic):
            with pytest.raises(InvalidSelectorException):
                session.create_consumer(destination, selector)
    sender = Sender(session)
    sender.send(queue, GROUPS[0])
    with session.create_consumer(queue) as consumer:
        assert takes(consumer, GROUPS[0])


HEADER_FIELDS: Final = [
    "JMSPriority = 7",
    "JMSDeliveryMode = 'NON_PERSISTENT'",
    "JMSTimestamp > 0",
    "JMSMessageID LIKE 'ID:%'",
    "JMSCorrelationID = 'c'",
    "JMSType = 't'",
    "JMSXGroupID = 'g'",
    "JMSXAppID IS NULL AND JMSXState IS NULL",
    "JMS_Vendor_x = 'v'",
]


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_header_fields_have_their_values_on_queues_and_topics(connection: Connection, kind: DestinationKind) -> None:
    # Over AMQP Artemis translates the names of header fields on queues only; on topics we do.
    session = connection.create_session()
    name = f"selectors.{uuid.uuid4().hex}"
    destination = session.create_queue(name) if kind == "queue" else session.create_topic(name)
    group = Group(0, {"JMSXGroupID": "g", "JMS_Vendor_x": "v"}, {
        "JMSPriority": 7, "JMSDeliveryMode": "NON_PERSISTENT", "JMSCorrelationID": "c", "JMSType": "t",
    })  # fmt: skip
    sender = Sender(session)
    for selector in HEADER_FIELDS:
        with session.create_consumer(destination, f"NOT ({selector})") as other:
            with session.create_consumer(destination, selector) as consumer:
                sender.send(destination, group)
                assert takes(consumer, group), selector
            assert other.receive_no_wait() is None, selector


def test_what_a_queue_cannot_answer_is_refused_by_name_without_emulation(broker_url: str) -> None:
    with jmsapi.connection_factory(broker_url).create_connection() as connection:
        session = connection.create_session()
        queue = session.create_queue(f"selectors.{uuid.uuid4().hex}")
        if jmsapi.capabilities(connection).broker in ("jmsapi in-process", "loopback"):
            session.create_consumer(queue, "a + 1 = 2").close()
            return
        with pytest.raises(UnsupportedFeatureException, match="emulate=queue-selector"):
            session.create_consumer(queue, "a + 1 = 2")
