"""Artemis's management over messages: the forms of its requests and answers.

A request is a text message to a queue of the broker's own, answered at JMSReplyTo. Over AMQP it must be NON_PERSISTENT and come
from a producer that names the queue: a durable one, and one to no fixed address, is rejected (2.56.0).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers.java_serialization import SerializedObject, read_serialized

__all__ = [
    "ADDRESS",
    "NO_SUCH_QUEUE",
    "NO_SUCH_RESOURCE",
    "UNKNOWN_RESOURCE",
    "ListedMessage",
    "answer_of",
    "copy_message",
    "create_private_queue",
    "delete_queue",
    "is_paging",
    "messages_of",
    "page_of_messages",
    "queue_in",
    "queue_names",
    "queue_resource",
    "queues_of_address",
    "request_properties",
    "stomp_operation",
    "stomp_question",
]

ADDRESS: Final = "activemq.management"
"""The queue that takes requests."""
RESOURCE: Final = "_AMQ_ResourceName"
"""The request's property that says what is asked."""
OPERATION: Final = "_AMQ_OperationName"
"""The request's property that says what is to be done."""
NO_SUCH_QUEUE: Final = "AMQ229017"
"""The broker's word in the answer when a queue does not exist."""
NO_SUCH_RESOURCE: Final = "Problem while retrieving attribute"
"""The same when a queue's own attribute was asked for."""
UNKNOWN_RESOURCE: Final = "AMQ229067"
"""The same when an operation of the queue itself was asked for."""
_COMPOSITES: Final = "javax.management.openmbean.CompositeData"


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """A message in a queue, as management describes it."""

    number: int
    """The broker's own number of it; later messages have higher ones."""
    expiration: int
    """Milliseconds since 1970; 0 for none."""
    redelivered: bool
    priority: int


def stomp_question(queue: str, reply_to: str) -> list[tuple[str, str]]:
    """Return the headers of a SEND that asks for a queue; the answer has ``NO_SUCH_RESOURCE`` where there is none."""
    return [
        ("destination", ADDRESS),
        ("destination-type", "ANYCAST"),
        ("reply-to", reply_to),
        (RESOURCE, f"queue.{queue}"),
        ("_AMQ_Attribute", "consumerCount"),
    ]


def stomp_operation(resource: str, operation: str, reply_to: str) -> list[tuple[str, str]]:
    """Return the headers of a SEND that asks for an operation; its body is what the functions below return beside that."""
    return [
        ("destination", ADDRESS),
        ("destination-type", "ANYCAST"),
        ("reply-to", reply_to),
        (RESOURCE, resource),
        (OPERATION, operation),
    ]


def queue_resource(queue: str) -> str:
    """Return the resource that a queue is."""
    return f"queue.{queue}"


def request_properties(operation: str) -> dict[str, str]:
    """Return the properties of a request to the broker itself."""
    return {RESOURCE: "broker", OPERATION: operation}


def queue_names() -> tuple[str, str]:
    """Return operation and body that ask for the names of all queues, those of subscriptions left out."""
    return "getQueueNames", json.dumps(["ANYCAST"])


def delete_queue(name: str) -> tuple[str, str]:
    """Return operation and body that delete a queue with its messages; it must have no consumers."""
    return "destroyQueue", json.dumps([name])


def create_private_queue(name: str) -> tuple[str, str]:
    """Return operation and body that make a queue for one consumer: it keeps nothing, and goes with that consumer."""
    configuration = {
        "name": name,
        "address": name,
        "routing-type": "ANYCAST",
        "durable": False,
        "max-consumers": 1,
        "auto-create-address": True,
        "auto-delete": True,
        "auto-delete-message-count": -1,
    }
    return "createQueue", json.dumps([json.dumps(configuration), False])


def page_of_messages(page: int, size: int, selector: str | None) -> tuple[str, str]:
    """Return operation and body that ask for a page of the messages of a queue, in the order of delivery; the first is page 1."""
    return "browse", json.dumps([page, size, selector])


def copy_message(number: int, queue: str) -> tuple[str, str]:
    """Return operation and body that copy a message of a queue into another queue; the answer is whether it was there."""
    return "copyMessage", json.dumps([number, queue])


def is_paging() -> tuple[str, str]:
    """Return operation and body that ask an address whether it keeps messages outside its memory."""
    return "isPaging", "[]"


def queues_of_address(address: str) -> tuple[str, str]:
    """Return operation and body that ask for the queues of an address; the answer is JSON text with a list ``data``."""
    criteria = {"field": "ADDRESS", "operation": "EQUALS", "value": address}
    return "listQueues", json.dumps([json.dumps(criteria), 1, 100])


def queue_in(answer: object) -> str | None:
    """Return the queue that the answer to ``queues_of_address`` tells of; None for none but those of subscriptions."""
    try:
        found = cast("list[dict[str, str]]", json.loads(answer)["data"] if isinstance(answer, str) else [])
        return next((one["name"] for one in found if one["routingType"] == "ANYCAST"), None)
    except (ValueError, TypeError, KeyError):
        return None  # it may not be asked, and says so


def messages_of(answer: object) -> list[ListedMessage]:
    """Return the messages that the answer to ``page_of_messages`` tells of.

    Raises:
        ProviderError: PROTOCOL; it is no such answer.
    """
    found = cast("dict[str, object]", answer).get(_COMPOSITES) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise ProviderError(ErrorKind.PROTOCOL, "the broker's management answers what is no page of messages")
    try:
        return [_message_of(read_serialized(base64.b64decode(text))) for text in cast("list[str]", found)]
    except (ValueError, TypeError, KeyError, binascii.Error) as cause:
        raise ProviderError(ErrorKind.PROTOCOL, "the broker's management describes a message in a form not known") from cause


def _message_of(composite: object) -> ListedMessage:
    contents = composite.fields["contents"] if isinstance(composite, SerializedObject) else None
    if not isinstance(contents, SerializedObject):
        raise KeyError("contents")
    names: Sequence[object] = contents.more[1::2]  # behind a block of bytes, which has the number of entries
    values = dict(zip(names, contents.more[2::2], strict=True))

    def plain(name: str) -> int:
        value = values[name]
        return int(cast("int | str", value.fields["value"] if isinstance(value, SerializedObject) else value))

    return ListedMessage(plain("messageID"), plain("expiration"), bool(plain("redelivered")), plain("priority"))


def answer_of(body: str | None) -> object:
    """Return what an answer holds: the operation's result, or the text of its failure.

    No operation of this module but ``queues_of_address`` has a text for its result, so a text is a failure. The property that
    says so as well does not come over STOMP.
    """
    found: object = json.loads(body) if body else None
    return cast("list[object]", found)[0] if isinstance(found, list) and found else None
