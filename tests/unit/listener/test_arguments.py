"""From a message to the arguments of a callback."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

import jmsapi
from jmsapi import BytesMessage, JMSContext, MapMessage, Message, MessageFormatException, TextMessage
from jmsapi.injection import Inject
from jmsapi.listener import (
    DeploymentException,
    JMSQueueListener,
    MessageDrivenContext,
    MessageHeader,
    MessageProperty,
    UserTransaction,
    definitions,
    message_driven_context,
)
from jmsapi.listener.arguments import HEADER_FIELDS
from jmsapi.listener.message_driven_context import CURRENT


@dataclass
class Order:
    item: str
    count: int


class Parcel(BaseModel):
    item: str
    count: int


@pytest.fixture
def context() -> Iterator[JMSContext]:
    with jmsapi.connection_factory("inproc://arguments").create_context() as made:
        yield made


def called(function: Callable[..., object], message: Message | list[Message]) -> list[object]:
    """Deploy a function that returns its arguments, and give what it was called with."""
    got: list[object] = []

    def keep(*args: object, **kwargs: object) -> None:
        got.extend([*args, *kwargs.values()])

    keep.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    keep.__annotations__ = function.__annotations__
    keep.__qualname__ = function.__qualname__
    (one,) = definitions(JMSQueueListener("q")(keep))
    one.call(one.make(), message)
    return got


def refused(function: Callable[..., object]) -> str:
    with pytest.raises(DeploymentException) as caught:
        definitions(JMSQueueListener("q")(function))
    assert caught.value.error_code == "bad-callback"
    return str(caught.value)


def unfit(function: Callable[..., object], message: Message) -> str:
    with pytest.raises(MessageFormatException) as caught:
        called(function, message)
    assert caught.value.error_code == "callback-argument"
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_a_message_is_given_as_it_is(context: JMSContext) -> None:
    text = context.create_text_message("x")

    def bare(message): ...  # type: ignore[no-untyped-def]
    def message(message: Message) -> None: ...
    def narrow(message: TextMessage) -> None: ...

    for function in (bare, message, narrow):
        assert called(function, text) == [text]


def test_a_message_of_another_kind_is_an_error(context: JMSContext) -> None:
    def narrow(message: TextMessage) -> None: ...

    def either(message: TextMessage | BytesMessage) -> None: ...

    assert "the message is a MapMessage, not a TextMessage" in unfit(narrow, context.create_map_message())
    assert "not a TextMessage or BytesMessage" in unfit(either, context.create_map_message())
    data = context.create_bytes_message()
    assert called(either, data) == [data]


def map_of(context: JMSContext, **values: Any) -> MapMessage:
    message = context.create_map_message()
    for name, value in values.items():
        message.set_object(name, value)
    return message


def test_a_body_is_converted_to_what_the_argument_is(context: JMSContext) -> None:
    text = context.create_text_message('{"item": "cup", "count": 2}')
    data = context.create_bytes_message()
    data.write_bytes(b'{"item": "cup", "count": 2}')
    table = map_of(context, item="cup", count=2)
    order = Order("cup", 2)

    def as_str(body: str) -> None: ...
    def as_bytes(body: bytes) -> None: ...
    def as_dict(body: dict[str, Any]) -> None: ...
    def as_plain_dict(body: dict) -> None: ...  # type: ignore[type-arg]
    def as_dataclass(body: Order) -> None: ...
    def as_model(body: Parcel) -> None: ...
    def as_number(body: int) -> None: ...

    data.reset()
    assert called(as_str, text) == ['{"item": "cup", "count": 2}']
    assert called(as_bytes, data) == [b'{"item": "cup", "count": 2}']
    for message in (text, data, table):
        assert called(as_dict, message) == [{"item": "cup", "count": 2}]
        assert called(as_plain_dict, message) == [{"item": "cup", "count": 2}]
        assert called(as_dataclass, message) == [order]
        assert called(as_model, message) == [Parcel(item="cup", count=2)]
    assert called(as_number, context.create_text_message("42")) == [42]
    assert called(as_dict, context.create_object_message({"a": 1})) == [{"a": 1}]


def test_any_body_is_given_as_it_is_held(context: JMSContext) -> None:
    def anything(body: Any) -> None: ...
    def thing(body: object) -> None: ...

    assert called(anything, context.create_text_message("no json")) == ["no json"]
    assert called(thing, map_of(context, a=1)) == [{"a": 1}]


def test_a_body_that_does_not_fit_is_an_error_without_its_values(context: JMSContext) -> None:
    def order(body: Order) -> None: ...
    def text(body: str) -> None: ...

    found = unfit(order, context.create_text_message('{"item": "secret", "count": "hidden"}'))
    assert "argument 'body': the body of a TextMessage: is no Order: count: " in found
    assert "secret" not in found
    assert "hidden" not in found
    assert "is no Order" in unfit(order, context.create_text_message("no json"))
    assert "is no Order: count: Field required" in unfit(order, map_of(context, item="x"))
    assert "the body of a MapMessage is no str" in unfit(text, map_of(context, a=1))
    assert "take the message itself" in unfit(text, context.create_stream_message())
    assert "take the message itself" in unfit(text, context.create_message())


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(alias="Lives", le=9)] = 9


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 0


class Named(BaseModel):
    model_config = ConfigDict(title="named")
    name: str

    @field_validator("name")
    @classmethod
    def refuse(cls, name: str) -> str:
        kinds: dict[str, Exception] = {
            "value": ValueError(name),
            "assertion": AssertionError(name),
            "custom": PydanticCustomError(f"{name}", "custom {name}", {"name": name}),
            "known": PydanticCustomError("missing", f"{name}"),
            "key": KeyError(name),
        }
        raise kinds[name.partition(" ")[0]]


LEAKS: list[tuple[Any, object, str]] = [
    (Owner, '{"pets": [{"kind": "secret"}]}', "pets.0: union_tag_invalid"),
    (Owner, '{"pets": [{"kind": "cat", "Lives": 10}]}', "pets.0.cat.Lives: Input should be less than or equal to 9"),
    (Strict, '{"secret": 1}', r"\*: Extra inputs are not permitted"),
    (Named, '{"name": "value secret"}', "name: value_error"),
    (Named, '{"name": "assertion secret"}', "name: assertion_error"),
    (Named, '{"name": "custom secret"}', "name: refused by a validator"),
    (Named, '{"name": "known secret"}', "name: Field required"),
    (Named, '{"name": "key secret"}', "is no Named: KeyError in refuse, line [0-9]+$"),
    (dict[str, int], '{"secret": "x"}', r"\*: Input should be a valid integer"),
    (dict[int, int], {4711: "x"}, r"\*: Input should be a valid integer"),
    (dict[str, Order], '{"secret": {"item": "x"}}', r"\*\.count: Field required"),
    (int | list[int], '"secret"', r"\*: Input should be a valid integer"),
    (UUID, '"secret"', "is no UUID: uuid_parsing"),
    (datetime, '"secret"', "is no datetime: datetime_from_date_parsing"),
    (tuple[int, ...], '[1, "secret"]', "1: Input should be a valid integer"),
    (Order, '{"secret": ', "Invalid JSON: EOF while parsing a value at line 1 column 11"),
]


@pytest.mark.parametrize(("wanted", "held", "said"), LEAKS)
def test_the_error_of_a_body_holds_nothing_of_the_message(context: JMSContext, wanted: Any, held: object, said: str) -> None:
    def take(body: Any) -> None: ...

    take.__annotations__["body"] = wanted
    with pytest.raises(MessageFormatException, match=said) as caught:
        called(take, context.create_text_message(held) if isinstance(held, str) else context.create_object_message(held))
    error = caught.value
    assert error.error_code == "callback-argument"
    assert "secret" not in str(error)
    assert "4711" not in str(error)
    assert error.__cause__ is error.__context__ is None


def test_a_missing_body_is_none_where_that_is_allowed(context: JMSContext) -> None:
    def strict(body: str) -> None: ...
    def lenient(body: str | None) -> None: ...
    def model(body: Parcel | None) -> None: ...

    empty = context.create_text_message()
    assert "let the argument be None" in unfit(strict, empty)
    assert called(lenient, empty) == [None]
    assert called(model, empty) == [None]
    assert called(model, context.create_text_message('{"item": "a", "count": 1}')) == [Parcel(item="a", count=1)]


def test_headers_and_properties_are_arguments(context: JMSContext) -> None:
    message = context.create_text_message("body")
    message.jms_type = "order"
    message.set_string_property("weight", "12")
    message.set_boolean_property("fast", True)
    message.set_double_property("price", 1.5)

    def function(
        body: str,
        kind: Annotated[str, MessageHeader("JMSType")],
        again: Annotated[str | None, MessageHeader("jms_type")],
        reply: Annotated[object, MessageHeader("JMSReplyTo")],
        weight: Annotated[int, MessageProperty("weight")],
        *,
        fast: Annotated[bool, MessageProperty("fast")],
        price: Annotated[Any, MessageProperty("price")],
        missing: Annotated[str, MessageProperty("missing")] = "default",
        nothing: Annotated[int | None, MessageProperty("nothing")],
    ) -> None: ...

    assert called(function, message) == ["body", "order", "order", None, 12, True, 1.5, "default", None]


def test_properties_that_are_missing_or_do_not_convert_are_errors(context: JMSContext) -> None:
    def number(weight: Annotated[int, MessageProperty("weight")]) -> None: ...
    def kind(body: str, kind: Annotated[str, MessageHeader("JMSType")]) -> None: ...

    message = context.create_text_message("x")
    assert "property 'weight': the message has none" in unfit(number, message)
    message.set_string_property("weight", "heavy")
    assert "property 'weight': it cannot be read as int" in unfit(number, message)
    assert "header field JMSType: is no str" in unfit(kind, message)


def test_a_property_that_is_none_is_given_only_where_that_is_allowed(context: JMSContext) -> None:
    def strict(region: Annotated[str, MessageProperty("region")] = "default") -> None: ...
    def lenient(region: Annotated[str | None, MessageProperty("region")] = "default") -> None: ...

    message = context.create_text_message("x")
    message.set_string_property("region", None)
    assert "property 'region': it is None, not str" in unfit(strict, message)
    assert called(lenient, message) == [None]


def test_every_header_field_is_one_of_a_message() -> None:
    assert {name.lower() for name in HEADER_FIELDS} == {name.replace("_", "") for name in HEADER_FIELDS.values()}
    assert all(hasattr(Message, attribute) for attribute in HEADER_FIELDS.values())


def test_a_list_is_a_batch(context: JMSContext) -> None:
    messages: list[Message] = [context.create_text_message(text) for text in ("1", "2")]

    def plain(batch: list[Message]) -> None: ...
    def numbers(batch: list[int]) -> None: ...
    def bare(batch: Any) -> None: ...

    for hint in (list, typing.List, Sequence, typing.Sequence, Sequence[Message], typing.Sequence[Message]):  # noqa: UP006
        bare.__annotations__["batch"] = hint
        assert called(bare, messages) == [messages]
    assert called(plain, messages) == [messages]
    assert called(numbers, messages) == [[1, 2]]
    (one,) = definitions(JMSQueueListener("q")(plain))
    assert one.batch


class Nowhere(MessageDrivenContext, UserTransaction):
    """A context that does nothing but be there."""

    rollback_only = False

    @property
    def session(self) -> jmsapi.Session:
        raise NotImplementedError

    @property
    def user_transaction(self) -> UserTransaction:
        return self

    def set_rollback_only(self) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


def test_the_containers_context_is_an_argument(context: JMSContext) -> None:
    def function(message: Message, mdc: MessageDrivenContext, tx: UserTransaction) -> None: ...

    message, current = context.create_message(), Nowhere()
    token = CURRENT.set(current)
    try:
        assert called(function, message) == [message, current, current]
    finally:
        CURRENT.reset(token)
    with pytest.raises(jmsapi.IllegalStateRuntimeException) as caught:
        message_driven_context()
    assert caught.value.error_code == "no-delivery"


def test_contexts_are_injected_wherever_they_stand(context: JMSContext) -> None:
    jmsapi.register_object("default", jmsapi.connection_factory("inproc://arguments"))
    got: list[object] = []

    def first(jms: Annotated[JMSContext, Inject()], body: str) -> None:
        jms.create_producer().send(jms.create_queue("first"), body)
        got.append(body)

    def last(body: str, kind: Annotated[str, MessageProperty("kind")] = "k", *, jms: Annotated[JMSContext, Inject()]) -> None:
        jms.create_producer().send(jms.create_queue("first"), body + kind)

    try:
        for function in (first, last):
            (one,) = definitions(JMSQueueListener("q")(function))
            one.call(one.make(), context.create_text_message("x"))
    finally:
        jmsapi.register_object("default", None)
    assert got == ["x"]
    consumer = context.create_consumer(context.create_queue("first"))
    assert [consumer.receive_body(str, 20_000) for _ in range(2)] == ["x", "xk"]


def test_an_argument_that_is_left_out_shifts_none_behind_it(context: JMSContext) -> None:
    message = context.create_text_message("b")
    message.set_string_property("p", "v")
    got: list[object] = []

    def keep(body: str, spare=3, p: Annotated[str, MessageProperty("p")] = "") -> None:  # type: ignore[no-untyped-def]
        got.extend([body, spare, p])

    (one,) = definitions(JMSQueueListener("q")(keep))
    one.call(None, message)
    assert got == ["b", 3, "v"]


def test_what_no_message_has_is_refused_at_deployment() -> None:
    def nothing() -> None: ...
    def unknown(message: Message, other) -> None: ...  # type: ignore[no-untyped-def]
    def header(kind: Annotated[str, MessageHeader("JMSTyp")]) -> None: ...
    def bare_context(body: str, jms: JMSContext) -> None: ...
    def two(batch: list[Message], kind: Annotated[str, MessageHeader("JMSType")]) -> None: ...
    def nested(batch: list[Annotated[str, MessageProperty("p")]]) -> None: ...
    def only_context(context: MessageDrivenContext) -> None: ...

    async def later(message: Message) -> AsyncIterator[int]:
        yield 1

    def lazy(message: Message) -> Iterator[int]:
        yield 1

    def unreadable(message: "Nonsense") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    assert "it takes nothing of a message" in refused(nothing)
    assert "argument 'other': it has no annotation" in refused(unknown)
    assert "did you mean 'JMSType'" in refused(header)
    assert "write Annotated[JMSContext, Inject()]" in refused(bare_context)
    assert "takes one list, and nothing else" in refused(two)
    assert "a batch is a list of messages or of their bodies" in refused(nested)
    assert "it takes nothing of a message" in refused(only_context)
    assert "write def or async def without yield" in refused(later)
    assert "write def or async def without yield" in refused(lazy)
    assert "its annotations cannot be read" in refused(unreadable)


def test_what_pydantic_cannot_make_is_refused_at_deployment() -> None:
    class Plain:
        pass

    def strange(body) -> None: ...  # type: ignore[no-untyped-def]

    strange.__annotations__["body"] = Plain
    assert "no message can be turned into Plain" in refused(strange)


def test_a_callback_that_returns_what_nobody_iterates_is_an_error(context: JMSContext) -> None:
    def function(message: Message) -> Any:
        return (one for one in [message])

    (one,) = definitions(JMSQueueListener("q")(function))
    with pytest.raises(jmsapi.JMSException) as caught:
        one.call(one.make(), context.create_message())
    assert caught.value.error_code == "bad-callback"
