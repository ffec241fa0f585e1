"""Properties: typed setters and getters over one mapping, read-only on a received message until it is cleared.

The mapping of a sent message belongs to its envelope from then on; the message copies it before the next change.

Spec: 3.5.1-1 to 3.5.9-16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, Final, SupportsFloat, SupportsIndex, cast

from jmsapi._core.message import accept, convert
from jmsapi._core.message.headers import Headers
from jmsapi._core.message.names import DELIVERY_COUNT, PROVIDER_SET, USER_ID, NameRule, rule_for
from jmsapi._core.message.parts import UNREAD, Unread, read_part
from jmsapi.errors import MessageFormatException, MessageNotWriteableException
from jmsapi.spi import EMPTY_PROPERTIES
from jmsapi.values import Value

__all__ = ["Access", "Properties"]


class Access(IntEnum):
    """Whether the next write may change a container in place; OWN is the false one."""

    OWN = 0
    SHARED = 1
    """An envelope holds it, too: copy first."""
    READ_ONLY = 2
    """The message was received."""


OWN: Final = Access.OWN
READ_ONLY: Final = Access.READ_ONLY


class Properties(Headers):
    """The properties of our messages."""

    __slots__ = ("_count", "_properties", "_property_access")

    _properties: Mapping[str, Value] | Unread
    _property_access: Access
    _count: int
    """JMSXDeliveryCount, shown with the received properties; 0 for a message that was not received."""

    def _all_properties(self) -> Mapping[str, Value]:
        properties = self._properties
        if properties is UNREAD:
            received: Mapping[str, Value] = read_part(self._envelope, "properties")
            properties = self._properties = received
        return properties

    def _property(self, name: str) -> Value:
        if name == DELIVERY_COUNT and self._property_access is READ_ONLY:
            return self._count
        return self._all_properties().get(name)

    def _set_property(self, name: str, value: Value) -> None:
        if self._property_access is not OWN:
            self._open_properties()
        rule = rule_for(name)
        if rule is not NameRule.PLAIN:
            if rule is NameRule.IGNORED:
                return
            value = _group_value(rule, value)
        cast("dict[str, Value]", self._properties)[name] = value

    def _open_properties(self) -> None:
        if self._property_access is READ_ONLY:
            raise MessageNotWriteableException("the properties of a received message are read-only until clear_properties()")
        self._properties = dict(self._all_properties())
        self._property_access = OWN

    def _freeze_properties(self, user: str | None = None) -> Mapping[str, Value]:
        """Give the properties to an envelope.

        Args:
            user: Who sends, which the message shows from now on; None: nobody says.
        """
        properties = self._all_properties()
        own = self._property_access is OWN
        if own:
            self._property_access = Access.SHARED
        if not PROVIDER_SET.isdisjoint(properties):
            properties = {name: value for name, value in properties.items() if name not in PROVIDER_SET}
        if user is not None:
            named = cast("dict[str, Value]", properties) if own else dict(properties)
            named[USER_ID] = user
            properties = self._properties = named
        return properties

    def clear_properties(self) -> None:
        self._properties = EMPTY_PROPERTIES
        self._property_access = Access.SHARED

    def property_exists(self, name: str) -> bool:
        return (name == DELIVERY_COUNT and self._property_access is READ_ONLY) or name in self._all_properties()

    @property
    def property_names(self) -> Iterator[str]:
        names = tuple(self._all_properties())
        if self._property_access is READ_ONLY and DELIVERY_COUNT not in names:
            names = (*names, DELIVERY_COUNT)
        return iter(names)

    def get_boolean_property(self, name: str) -> bool:
        return convert.as_boolean(self._property(name))

    def get_byte_property(self, name: str) -> int:
        return convert.as_integer(self._property(name), "byte")

    def get_short_property(self, name: str) -> int:
        return convert.as_integer(self._property(name), "short")

    def get_int_property(self, name: str) -> int:
        return convert.as_integer(self._property(name), "int")

    def get_long_property(self, name: str) -> int:
        return convert.as_integer(self._property(name), "long")

    def get_float_property(self, name: str) -> float:
        return convert.as_real(self._property(name), "float")

    def get_double_property(self, name: str) -> float:
        return convert.as_real(self._property(name), "double")

    def get_string_property(self, name: str) -> str | None:
        value = self._property(name)
        return value if type(value) is str else convert.as_string(value)

    def get_object_property(self, name: str) -> Any:
        return convert.as_object(self._property(name))

    def set_boolean_property(self, name: str, value: bool) -> None:
        self._set_property(name, accept.boolean(value))

    def set_byte_property(self, name: str, value: SupportsIndex) -> None:
        self._set_property(name, accept.byte(value))

    def set_short_property(self, name: str, value: SupportsIndex) -> None:
        self._set_property(name, accept.short(value))

    def set_int_property(self, name: str, value: SupportsIndex) -> None:
        self._set_property(name, accept.int_(value))

    def set_long_property(self, name: str, value: SupportsIndex) -> None:
        self._set_property(name, accept.long(value))

    def set_float_property(self, name: str, value: SupportsFloat) -> None:
        self._set_property(name, accept.float_(value))

    def set_double_property(self, name: str, value: SupportsFloat) -> None:
        self._set_property(name, accept.double(value))

    def set_string_property(self, name: str, value: str | None) -> None:
        self._set_property(name, accept.string(value))

    def set_object_property(self, name: str, value: Any) -> None:
        self._set_property(name, accept.property_value(value))


def _group_value(rule: NameRule, value: Value) -> Value:
    """Take the value of JMSXGroupID or JMSXGroupSeq in the type that table 3.3 gives it."""
    if value is None:
        return None
    if rule is NameRule.GROUP_ID:
        if isinstance(value, str):
            return value
        raise MessageFormatException(f"JMSXGroupID is text, not a {convert.kind_of(value)}")
    kind = convert.kind_of(value)
    if "int" in convert.READABLE_AS[kind] and kind != "string":
        return int(value)
    raise MessageFormatException(f"JMSXGroupSeq is an int, not a {kind}")
