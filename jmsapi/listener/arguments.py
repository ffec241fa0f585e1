"""From a message to the arguments of a callback, as its annotations ask for them.

    def on_order(order: Order, region: Annotated[str, MessageProperty("region")], message: Message) -> None: ...

| annotation | gives |
|---|---|
| ``Message``, ``TextMessage``, ... | the message; one of another kind is an error |
| ``str``, ``bytes`` | the body of a TextMessage, of a BytesMessage |
| ``dict`` | the body of a MapMessage, or a JSON object in text or bytes |
| a dataclass, a pydantic model, any other type | the same, validated by pydantic; or the object of an ObjectMessage |
| ``Annotated[T, MessageHeader("JMSType")]`` | a header field |
| ``Annotated[T, MessageProperty("region")]`` | a property, converted as JMS converts properties |
| ``list[...]`` of any of these bodies or messages | a batch |
| ``MessageDrivenContext``, ``UserTransaction`` | the container's |
| ``Annotated[JMSContext, ...]`` | an injected context; see ``jmsapi.injection`` |

How a callback is to be called is worked out once, when it is deployed. What cannot be converted is said without any of the
message's values.

Spec: MDB-40.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter

from jmsapi._callbacks import is_asynchronous, is_coroutine_function
from jmsapi._validation import closest
from jmsapi.api import (
    BytesMessage,
    JMSContext,
    MapMessage,
    Message,
    ObjectMessage,
    TextMessage,
)
from jmsapi.errors import JMSException
from jmsapi.injection import marks_of
from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.fitting import fitted, unfit
from jmsapi.listener.message_driven_context import MessageDrivenContext, UserTransaction, message_driven_context

__all__ = ["HEADER_FIELDS", "CallPlan", "MessageHeader", "MessageProperty", "injects", "plan_call"]

HEADER_FIELDS: Final = {
    "JMSMessageID": "jms_message_id",
    "JMSTimestamp": "jms_timestamp",
    "JMSCorrelationID": "jms_correlation_id",
    "JMSCorrelationIDAsBytes": "jms_correlation_id_as_bytes",
    "JMSReplyTo": "jms_reply_to",
    "JMSDestination": "jms_destination",
    "JMSDeliveryMode": "jms_delivery_mode",
    "JMSRedelivered": "jms_redelivered",
    "JMSType": "jms_type",
    "JMSExpiration": "jms_expiration",
    "JMSDeliveryTime": "jms_delivery_time",
    "JMSPriority": "jms_priority",
}
"""The header fields: JMS name to the attribute of a message."""
_MISSING: Final = object()
_BARE: Final[tuple[object, ...]] = (typing.List, typing.Sequence)  # noqa: UP006
"""The aliases without what is in them, which have an origin nevertheless."""
_JSON: Final = (TextMessage, BytesMessage)
_AS_HELD: Final[tuple[object, ...]] = (str, bytes, object, Any)
"""Types of a body that is given as it is held."""


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """Marks an argument that is a header field of the message: ``Annotated[str | None, MessageHeader("JMSCorrelationID")]``.

    Args:
        value: The field's JMS name, or the attribute's, such as ``jms_correlation_id``.
    """

    value: str


@dataclass(frozen=True, slots=True)
class MessageProperty:
    """Marks an argument that is a property of the message: ``Annotated[int, MessageProperty("weight")]``.

    A message without the property gives the argument's default, or None if its type allows that; otherwise it is an error.

    Args:
        value: The property's name.
    """

    value: str


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How to call a callback.

    Args:
        positional: Makes an argument from the message (or batch), for each positional one in turn.
        named: The same for keyword-only arguments.
        batch: Whether it takes lists of messages.
        injected: Whether it has arguments that an ``Injector`` supplies.
        asynchronous: Whether it is a coroutine function, or says that it returns something to await.
    """

    positional: tuple[Callable[[Any], object], ...]
    named: tuple[tuple[str, Callable[[Any], object]], ...]
    batch: bool
    injected: bool
    asynchronous: bool


def plan_call(function: Callable[..., object], what: str, *, bound: bool) -> CallPlan:
    """Work out how to call a callback.

    Args:
        function: The method as its class has it, or the function.
        what: What it is called in errors.
        bound: Whether its first argument is the instance (or class), which the plan leaves out.
    Raises:
        DeploymentException: It asks for what no message has (``bad-callback``).
    """
    asynchronous = is_coroutine_function(function)
    if not asynchronous and is_asynchronous(function):
        raise _bad(what, "it is a generator function, and nobody iterates what it returns: write def or async def without yield")
    parameters = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise _bad(
            what, f"its annotations cannot be read: {error}; they are read when it is deployed, from its module"
        ) from error
    positional: list[Callable[[Any], object]] = []
    named: list[tuple[str, Callable[[Any], object]]] = []
    batch = injected = takes = gap = False
    for number, parameter in enumerate(parameters):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint: Any = hints.get(parameter.name, Message if number == 0 else _MISSING)
        place = f"{what}, argument {parameter.name!r}"
        try:
            supplied = injects(hint)
        except TypeError as error:
            raise _bad(place, str(error)) from None
        if supplied:
            injected = gap = True
            continue
        if hint is _MISSING:
            if parameter.default is not parameter.empty:
                gap = True
                continue
            raise _bad(
                place, "it has no annotation: say what it is, such as a body's type or Annotated[str, MessageProperty('name')]"
            )
        item = _item_of(hint)
        resolve = _batch(item, place) if item is not None else _resolver(hint, place, parameter.default)
        batch = batch or item is not None
        takes = takes or resolve is not None
        make = resolve if resolve is not None else _from_container(hint)
        # What comes after an argument that is left out here, or that the injector fills in, is passed by name.
        if gap and parameter.kind is parameter.POSITIONAL_ONLY:
            raise _bad(place, "it is positional only, behind one that is left out or injected: take it first")
        if gap or parameter.kind is parameter.KEYWORD_ONLY:
            named.append((parameter.name, make))
        else:
            positional.append(make)
    if batch and len([one for one in parameters if _of_message(hints.get(one.name))]) > 1:
        raise _bad(what, "a callback of batches takes one list, and nothing else of a message: take a list of Message")
    if not takes:
        raise _bad(what, "it takes nothing of a message: give it an argument, such as message: Message")
    return CallPlan(tuple(positional), tuple(named), batch, injected, asynchronous or _is_awaited(hints.get("return")))


def _is_awaited(hint: Any) -> bool:
    kind = get_origin(hint) or hint
    return isinstance(kind, type) and issubclass(kind, Awaitable)


def injects(hint: Any) -> bool:
    """Tell whether an annotation asks for an injected context; TypeError when it asks for something else to be injected."""
    return marks_of(hint) is not None


def _of_message(hint: Any) -> bool:
    return hint is not None and not injects(hint) and hint not in (MessageDrivenContext, UserTransaction, NoneType)


def _bad(place: str, why: str) -> DeploymentException:
    return DeploymentException(f"{place}: {why}", error_code="bad-callback")


def _from_container(hint: Any) -> Callable[[Any], object]:
    if hint is UserTransaction:
        return lambda _: message_driven_context().user_transaction
    return lambda _: message_driven_context()


def _item_of(hint: Any) -> Any:
    """Return what a list is a list of, or None for what is no list."""
    if hint in (list, Sequence, *_BARE):
        return Message
    if get_origin(hint) in (list, Sequence):
        (item,) = get_args(hint)
        return item
    return None


def _batch(item: Any, place: str) -> Callable[[Any], object]:
    resolve = _resolver(item, place, inspect.Parameter.empty)
    if resolve is None or get_origin(item) is Annotated:
        raise _bad(place, "a batch is a list of messages or of their bodies")
    one = resolve

    def resolve_all(messages: Sequence[Message]) -> object:
        return [one(message) for message in messages]

    return resolve_all


def _resolver(hint: Any, place: str, default: object) -> Callable[[Any], object] | None:
    """Return what makes an argument of a message; None for what does not come from the message."""
    marks: list[object] = []
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
    for mark in marks:
        if isinstance(mark, MessageHeader):
            return _header(mark.value, hint, place)
        if isinstance(mark, MessageProperty):
            return _property(mark.value, hint, place, default)
    if hint in (MessageDrivenContext, UserTransaction):
        return None
    if hint is JMSContext:
        raise _bad(place, "a context is injected where it is marked: write Annotated[JMSContext, Inject()]")
    hint, optional = _without_none(hint)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if all(isinstance(kind, type) and issubclass(kind, Message) for kind in kinds):
        return _message(kinds, place)
    return _body(hint, place, optional=optional)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    kinds = tuple(kind for kind in get_args(hint) if kind is not NoneType)
    return (kinds[0] if len(kinds) == 1 else Union[kinds]), len(kinds) < len(get_args(hint))  # noqa: UP007


def _adapter(hint: Any, place: str) -> TypeAdapter[object]:
    try:
        return TypeAdapter(cast("type[object]", hint))
    except PydanticSchemaGenerationError as error:
        raise _bad(place, f"no message can be turned into {_shown(hint)}; take the message, and do it in the callback") from error


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else str(hint)


# ---- the message and its header ---------------------------------------------------------------------------------------
def _message(kinds: tuple[type[Message], ...], place: str) -> Callable[[Any], object]:
    if Message in kinds:
        return lambda message: message

    def resolve(message: Message) -> object:
        if not isinstance(message, kinds):
            raise unfit(place, f"the message is {_kind_of(message)}, not a {' or '.join(kind.__name__ for kind in kinds)}")
        return message

    return resolve


def _kind_of(message: Message) -> str:
    for kind in (TextMessage, BytesMessage, MapMessage, ObjectMessage):
        if isinstance(message, kind):
            return f"a {kind.__name__}"
    return "a message of another kind"


def _header(name: str, hint: Any, place: str) -> Callable[[Any], object]:
    attribute = HEADER_FIELDS.get(name, name)
    if attribute not in HEADER_FIELDS.values():
        raise _bad(place, f"unknown header field {name!r}{closest(name, HEADER_FIELDS, 'header fields')}")
    adapter = None if attribute in ("jms_reply_to", "jms_destination") else _adapter(hint, place)

    def resolve(message: Message) -> object:
        value: object = getattr(message, attribute)
        return value if adapter is None else fitted(adapter, value, f"{place}: header field {name}", _shown(hint), json=False)

    return resolve


# ---- properties -------------------------------------------------------------------------------------------------------
_GETTERS: Final[dict[object, str]] = {
    bool: "get_boolean_property",
    int: "get_long_property",
    float: "get_double_property",
    str: "get_string_property",
}


def _property(name: str, hint: Any, place: str, default: object) -> Callable[[Any], object]:
    bare, optional = _without_none(hint)
    getter = _GETTERS.get(bare, "get_object_property")
    adapter = None if bare in _GETTERS else _adapter(hint, place)
    where = f"{place}: property {name!r}"

    def resolve(message: Message) -> object:
        if not message.property_exists(name):
            if default is not inspect.Parameter.empty:
                return default
            if optional:
                return None
            raise unfit(where, "the message has none; give the argument a default, or let it be None")
        try:
            value: object = getattr(message, getter)(name)
        except (JMSException, ValueError):
            value = _MISSING
        if value is _MISSING:
            raise unfit(where, f"it cannot be read as {_shown(bare)}")
        if value is None and bare in _GETTERS and not optional:
            raise unfit(where, f"it is None, not {_shown(bare)}")
        return value if adapter is None else fitted(adapter, value, where, _shown(hint), json=False)

    return resolve


# ---- the body ---------------------------------------------------------------------------------------------------------
def _body(hint: Any, place: str, *, optional: bool) -> Callable[[Any], object]:
    adapter = None if hint in _AS_HELD else _adapter(hint, place)
    kind: Any = object if hint is Any else hint

    def resolve(message: Message) -> object:
        held = _held(message, place)
        if held is None:
            if optional:
                return None
            raise unfit(place, f"{_kind_of(message)} without a body is no {_shown(hint)}; let the argument be None, too")
        if adapter is None:
            if not isinstance(held, kind):
                raise unfit(place, f"the body of {_kind_of(message)} is no {_shown(hint)}")
            return held
        where = f"{place}: the body of {_kind_of(message)}"
        return fitted(adapter, held, where, _shown(hint), json=isinstance(message, _JSON))

    return resolve


def _held(message: Message, place: str) -> object:
    if isinstance(message, TextMessage):
        return message.get_body(str)
    if isinstance(message, BytesMessage):
        return message.get_body(bytes)
    if isinstance(message, MapMessage):
        return cast("object", message.get_body(dict))
    if isinstance(message, ObjectMessage):
        return message.get_body(object)
    raise unfit(place, "the message has no body that can be converted: take the message itself")
