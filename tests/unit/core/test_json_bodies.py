"""Dataclasses and pydantic models out of a producer, and into the callbacks that ask for them."""

import enum
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import pydantic
import pytest

import jmsapi
from jmsapi import JMSContext, MessageFormatException, MessageFormatRuntimeException, ObjectMessage, TextMessage
from jmsapi.listener import JMSQueueListener, deploy
from jmsapi_conformance.kit import PATIENCE_MS


class Size(enum.Enum):
    SMALL = "s"


@dataclass
class Line:
    article: str
    price: Decimal
    size: Size = Size.SMALL


@dataclass
class Order:
    number: int
    due: date
    lines: list[Line] = field(default_factory=list[Line])


@pydantic.dataclasses.dataclass
class Checked:
    number: int


class Model(pydantic.BaseModel):
    number: int = pydantic.Field(alias="orderNumber")
    note: str | None = None


class Root(pydantic.RootModel[list[int]]):
    pass


@jmsapi.register_class
@dataclass
class Registered:
    number: int


@dataclass
class Allowed:
    function: Any


OBJECTS = [
    Order(7, date(2024, 2, 29), [Line("Tee - grün \U0001f375", Decimal("1.50"))]),
    Checked(7),
    Model(orderNumber=7, note="für Ärzte"),
    Root([1, 2]),
]


@pytest.fixture
def context() -> Iterator[JMSContext]:
    with jmsapi.connection_factory("inproc://json bodies", checked=True).create_context() as made:
        yield made


def sent(context: JMSContext, body: object) -> Any:
    queue = context.create_queue("objects")
    with context.create_consumer(queue) as consumer:
        context.create_producer().send(queue, body)
        return consumer.receive(PATIENCE_MS)


@pytest.mark.parametrize("body", OBJECTS, ids=lambda body: type(body).__name__)
def test_an_object_with_fields_is_json_in_ascii_that_pydantic_reads(context: JMSContext, body: object) -> None:
    message = sent(context, body)
    assert isinstance(message, TextMessage) and message.text is not None
    assert message.get_string_property("content_type") == "application/json"
    assert message.text.isascii()
    assert pydantic.TypeAdapter(type(body)).validate_json(message.text) == body


def test_fields_have_the_names_that_a_reader_wants(context: JMSContext) -> None:
    assert json.loads(sent(context, Model(orderNumber=7)).text) == {"orderNumber": 7, "note": None}


@pytest.mark.parametrize("body", OBJECTS, ids=lambda body: type(body).__name__)
def test_a_callback_gets_what_was_sent(body: Any) -> None:
    got: list[object] = []
    done = threading.Event()
    factory = jmsapi.connection_factory(f"inproc://json bodies of {type(body).__name__}", checked=True)

    def take(order: Any) -> None:
        got.append(order)
        done.set()

    take.__annotations__["order"] = type(body)
    with factory.create_context() as context:
        queue = context.create_queue("objects")
        jmsapi.register_object("objects as they are", queue)
        try:
            with deploy(JMSQueueListener("objects as they are")(take), factory=factory):
                context.create_producer().send(queue, body)
                assert done.wait(PATIENCE_MS / 1000)
        finally:
            jmsapi.register_object("objects as they are", None)
    assert got == [body]


def test_a_class_that_is_registered_or_allowed_travels_in_an_object_message(context: JMSContext) -> None:
    message = sent(context, Registered(7))
    assert isinstance(message, ObjectMessage)
    assert message.object == Registered(7)
    factory = jmsapi.connection_factory("inproc://json bodies", object_allow=[f"{__name__}.Allowed"])
    with factory.create_context() as allowing:
        message = sent(allowing, Allowed(b"any"))
        assert isinstance(message, ObjectMessage)
        assert message.object == Allowed(b"any")


def test_other_objects_travel_as_before(context: JMSContext) -> None:
    message = sent(context, [Decimal("1.5"), date(2024, 2, 29)])
    assert isinstance(message, ObjectMessage)
    assert message.object == [Decimal("1.5"), date(2024, 2, 29)]


@dataclass
class Odd:
    what: object


@dataclass
class Number:
    value: float


class Foreign:
    pass


@dataclass
class Unreadable:
    what: Foreign


@pytest.mark.parametrize(
    "body",
    [Odd(Foreign()), Number(float("nan")), Number(float("inf")), Unreadable(Foreign())],
    ids=["object", "nan", "infinite", "foreign"],
)
def test_what_json_cannot_say_is_refused_by_name(context: JMSContext, body: Any) -> None:
    with pytest.raises(MessageFormatRuntimeException, match=f"^a {type(body).__name__} cannot be written as JSON: "):
        sent(context, body)


def test_a_field_that_holds_what_no_reader_would_take_is_refused(context: JMSContext) -> None:
    with pytest.raises(MessageFormatRuntimeException, match=r"^a Line cannot be written as JSON"):
        sent(context, Line("tea", Decimal(1), "no size"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [{"deep": 1}, [1], (1,), {1}, Line("tea", Decimal(1))], ids=lambda value: type(value).__name__)
def test_what_is_nested_in_a_map_is_refused_with_the_ways_it_can_go(context: JMSContext, value: object) -> None:
    ways = f"cannot hold a {type(value).__name__}: .*json.dumps.*a dataclass or pydantic model.*create_object_message"
    with pytest.raises(MessageFormatRuntimeException, match=ways):
        sent(context, {"nested": value})
    with pytest.raises(MessageFormatException, match=ways):
        context.create_stream_message().write_object(value)
