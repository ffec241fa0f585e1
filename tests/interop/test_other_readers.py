"""What Java clients that the matrix leaves out read of ours: Apache Qpid JMS on RabbitMQ, ActiveMQ's OpenWire client on Artemis.

Neither is at home there: Qpid JMS must call RabbitMQ's queues by their AMQP addresses, Artemis knows OpenWire by a translator.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from jmsapi_conformance.brokers import Broker, Wire

Pair = list[str]
BODIES: dict[str, Any] = {
    "text": "grüß 😀",
    "bytes": "00ff",
    "map": {"i": ["int", "7"], "d": ["double", "2.5"], "t": ["string", "grüß"]},
    "stream": [["int", "7"], ["string", "grüß"]],
    "object": ["string", "an object"],
    "message": None,
}
PROPERTIES: dict[str, Pair] = {"z": ["boolean", "true"], "i": ["int", "7"], "d": ["double", "2.5"], "t": ["string", "grüß"]}
TEXTS: dict[str, Pair] = {name: ["string", text] for name, (_, text) in PROPERTIES.items()}
# By broker and our wire: as what each kind arrives, and the properties.
KEPT = dict.fromkeys(BODIES, "")
FROM_STOMP = {**KEPT, "map": "text", "stream": "text", "object": "bytes", "message": "text"}
READ: dict[tuple[str, str], tuple[dict[str, str], dict[str, Pair]]] = {
    ("rabbitmq", "amqp"): (KEPT, PROPERTIES),
    # Bytes and no content type: all that is no text.
    ("rabbitmq", "stomp"): ({**FROM_STOMP, "map": "text", "stream": "text", "object": "text", "message": "bytes"}, TEXTS),
    ("artemis", "amqp"): ({**KEPT, "object": "text", "message": "bytes"}, PROPERTIES),
    ("artemis", "stomp"): (FROM_STOMP, TEXTS),
}


@pytest.fixture(params=["amqp", "stomp"])
def wire(request: pytest.FixtureRequest) -> Wire:
    """Give each wire that we send by."""
    found: Wire = request.param
    return found


@pytest.fixture
def crossing(open_line: Callable[..., Any]) -> Iterator[Callable[..., dict[str, Any]]]:
    """Give a function that sends one message of each kind and gives what arrives, with what its sender knows of it."""
    lines: list[Any] = []

    def cross(broker: Broker, wire: Wire, reader: Literal["qpid-jms", "openwire"], folder: str = "") -> dict[str, Any]:
        name = f"interop.{uuid.uuid4().hex}"
        ours = open_line(broker, wire)
        lines.append(ours)
        java = open_line(broker, reader)
        lines.append(java)
        found: dict[str, Any] = {}
        consumer = None
        for kind, body in BODIES.items():
            message = {"kind": kind, "body": body, "properties": PROPERTIES, "jms_type": "kind", "correlation_id": "corr"}
            sent = ours.send(["queue", name], message)
            # The first send makes the queue; Qpid JMS does not.
            consumer = consumer or java.consume(["queue", folder + name])
            found[kind] = (java.receive(consumer, 30_000), sent)
        return found

    yield cross
    for line in lines:
        line.close()


def _expect(found: dict[str, Any], broker: str, wire: Wire) -> None:
    kinds, properties = READ[broker, wire]
    for kind, (arrived, _) in found.items():
        assert arrived["kind"] == (kinds[kind] or kind)
        if kinds[kind] == "" and kind != "object":
            assert arrived["body"] == BODIES[kind]
        assert {name: arrived["properties"].get(name) for name in properties} == properties, kind
        assert arrived["correlation_id"] == "corr"


def test_apache_qpid_jms_reads_ours_on_rabbitmq_with_type_properties_and_id_over_amqp_and_as_texts_over_stomp(
    crossing: Callable[..., dict[str, Any]], rabbitmq: Broker, wire: Wire
) -> None:
    found = crossing(rabbitmq, wire, "qpid-jms", "/queues/")
    _expect(found, "rabbitmq", wire)
    assert all(arrived["id"] == sent["id"] for arrived, sent in found.values())


def test_openwire_clients_read_ours_on_artemis_with_an_id_of_the_brokers_whatever_the_wire(
    crossing: Callable[..., dict[str, Any]], artemis: Broker, wire: Wire
) -> None:
    found = crossing(artemis, wire, "openwire")
    _expect(found, "artemis", wire)
    for arrived, sent in found.values():
        assert arrived["id"] != sent["id"]
        assert arrived["properties"]["NATIVE_MESSAGE_ID"] == ["string", sent["id"]]
