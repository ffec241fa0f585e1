"""What all six kinds of message share, and the plain Message, which has no body.

Spec: 3.3-1, 3.6-1, 3.10-1 to 3.10-3, 3.11.1-1, 3.11.2-1, 3.12-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar, get_origin

from jmsapi._core.destination import TemporaryOwner
from jmsapi._core.message.copied import restored, value_of
from jmsapi._core.message.parts import BLANK, UNREAD, read_part
from jmsapi._core.message.properties import Access, Properties
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.errors import MessageFormatException, MessageNotWriteableException
from jmsapi.spi import EMPTY_PROPERTIES, Body, Delivery, MessageKind

__all__ = ["MessageImpl", "plain_class"]

T = TypeVar("T")


class MessageImpl(Properties):
    """A message without a body, and the base of those that have one.

    Args:
        codec: Turns objects into bytes and back.
        delivery: The delivery a received message comes from; None for a new message.
        count: How often it has been delivered, this time included; 0 for a new message.
        acknowledge: What ``acknowledge()`` does; None: nothing.
        owner: Who deletes the temporary destinations met in the headers.
    """

    __slots__ = ("_acknowledge", "_body_read_only", "_codec", "delivery")

    _kind: ClassVar[MessageKind] = MessageKind.MESSAGE
    delivery: Delivery | None
    _body_read_only: bool

    def __init__(
        self,
        codec: ObjectCodec,
        delivery: Delivery | None = None,
        count: int = 0,
        acknowledge: Callable[[], None] | None = None,
        owner: TemporaryOwner | None = None,
    ) -> None:
        self._codec = codec
        self.delivery = delivery
        self._acknowledge = acknowledge
        self._owner = owner
        self._overrides = None
        self._count = count
        self._redelivered = count > 1
        if delivery is None:
            self._envelope = BLANK[self._kind]
            self._correlation = self._reply_to = self._type = self._destination = None
            self._properties = EMPTY_PROPERTIES
            self._property_access = Access.SHARED
        else:
            self._envelope = delivery.envelope
            self._correlation = self._reply_to = self._type = self._destination = self._properties = UNREAD
            self._property_access = Access.READ_ONLY
        self._start_body(received=delivery is not None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.removesuffix('Impl')} {self.jms_message_id or 'not sent'}>"

    def __copy__(self) -> Self:
        """Give a message of its own: what changes in one later does not show in the other."""
        # As for a send: whichever is written into next copies what it changes.
        if not self._body_read_only:
            self._freeze_body()
        if self._property_access is not Access.READ_ONLY:
            self._freeze_properties()
        made = type(self).__new__(type(self))
        for name, value in self._state().items():
            setattr(made, name, value)
        made._overrides = None if self._overrides is None else dict(self._overrides)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Give the same: what a message holds never changes in its place."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Give the message as a value, without the session and connection behind it; see ``copied``."""
        return restored, (type(self), value_of(self._state()))

    def _state(self) -> dict[str, Any]:
        names = {name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ())}
        return {name: getattr(self, name) for name in names}

    def acknowledge(self) -> None:
        if self._acknowledge is not None:
            self._acknowledge()

    def clear_body(self) -> None:
        self._start_body(received=False)

    def get_body(self, body_type: type[T]) -> T | None:
        plain_class(body_type)
        return None

    def is_body_assignable_to(self, body_type: type) -> bool:
        plain_class(body_type)
        return True

    def _start_body(self, *, received: bool) -> None:
        """Put the body into its first state: unread and read-only, or empty and writable."""
        self._body_read_only = received

    def _received_body(self) -> Any:
        """Read the body of the received envelope."""
        return read_part(self._envelope, "body")

    def _freeze_body(self) -> tuple[Body, str | None]:
        """Give the body to an envelope, with the content type of an OBJECT."""
        return None, None

    def _check_writable(self) -> None:
        if self._body_read_only:
            raise MessageNotWriteableException("the body is read-only until clear_body()")

    def _wrong_body(self, body_type: object) -> MessageFormatException:
        name = type(self).__name__.removesuffix("Impl")
        return MessageFormatException(f"the body of a {name} cannot be had as {getattr(body_type, '__name__', body_type)}")


def plain_class(body_type: Any) -> type:
    """Give the class meant by an argument such as ``dict`` or ``dict[str, int]``.

    Raises:
        MessageFormatException: It is no class.
    """
    if type(body_type) is type:
        return body_type
    body_class = get_origin(body_type) or body_type
    if isinstance(body_class, type):
        return body_class
    raise MessageFormatException(f"a class is needed to say which body is wanted, not {body_type!r}")
