"""The object of an ObjectMessage as bytes and back, by content type.

By default only data travels (``object_data``). Pickle is for the classes that the application names, and only where the
data form does not take an object; a sender cannot make a receiver load any other class, nor change one (``pickled``). Bytes of
other codecs, such as a serialised Java object, are never executed.

Spec: 3.11-5, 3.12-3, B.2.21-9.
"""

from __future__ import annotations

import io
import pickle
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from jmsapi._core import object_data, pickled
from jmsapi.errors import MessageFormatException

__all__ = ["DATA_TYPE", "JAVA_TYPE", "PICKLE_TYPE", "ObjectCodec"]

DATA_TYPE: Final = "application/vnd.jmsapi.object+json"
PICKLE_TYPE: Final = "application/vnd.jmsapi.object+pickle"
JAVA_TYPE: Final = "application/x-java-serialized-object"
_PROTOCOL: Final = 4


class ObjectCodec:
    """Encodes and decodes objects for one connection factory.

    Args:
        allow: Classes (``module.Class``) that pickle may name, on the way out and in; empty: no pickle at all.
    """

    __slots__ = ("_allow",)

    def __init__(self, allow: frozenset[str] = frozenset()) -> None:
        self._allow = allow

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a pickled message keep what it may load."""
        return ObjectCodec, (self._allow,)

    def is_chosen(self, kind: type) -> bool:
        """Tell whether the application has chosen a class to travel in an ObjectMessage: it is registered, or allowed."""
        return object_data.is_registered(kind) or f"{kind.__module__}.{kind.__qualname__}" in self._allow

    def encode(self, value: object) -> tuple[bytes, str]:
        """Turn an object into bytes, which later changes of the object do not reach.

        Args:
            value: The object, not None.
        Returns:
            The bytes and their content type.
        Raises:
            MessageFormatException: Neither the data form nor pickle takes the object.
        Threads: any.
        """
        try:
            return object_data.dump(value), DATA_TYPE
        except object_data.NotData as error:
            if not self._allow:
                raise MessageFormatException(f"an ObjectMessage cannot hold this object: {error}") from error
        target = io.BytesIO()
        try:
            _Pickler(target, self._allow).dump(value)
        except Exception as error:  # any class may fail in any way when it is pickled
            raise MessageFormatException(f"an ObjectMessage cannot hold this object: {error}") from error
        return target.getvalue(), PICKLE_TYPE

    def knows(self, content_type: str | None) -> bool:
        """Tell whether ``decode`` is for bytes of this content type at all."""
        kind = _bare(content_type)
        return kind == DATA_TYPE or (kind == PICKLE_TYPE and bool(self._allow))

    def decode(self, data: bytes, content_type: str | None) -> Any:
        """Turn bytes into a new object.

        Args:
            data: What ``encode`` made, or what somebody else sent.
            content_type: How it is encoded.
        Raises:
            MessageFormatException: The content type is not one of ours, names a class that is not allowed, or the bytes are
                damaged.
        Threads: any.
        """
        kind = _bare(content_type)
        try:
            if kind == DATA_TYPE:
                return object_data.load(data)
            if kind == PICKLE_TYPE and self._allow:
                return pickled.load(data, self._allow)
        except Exception as error:  # what is unpickled may fail in any way
            raise MessageFormatException(f"the object cannot be read: {error}") from error
        if kind == PICKLE_TYPE:
            reason = "it is pickled, and the option object_allow names no class that may be loaded"
        elif kind == JAVA_TYPE:
            reason = "it is a serialised Java object, which is not executed here"
        else:
            reason = f"its content type is {content_type!r}, which is not one of ours"
        raise MessageFormatException(f"the object cannot be read: {reason}; get_body(bytes) gives its bytes")


def _bare(content_type: str | None) -> str:
    return "" if content_type is None else content_type.partition(";")[0].strip().lower()


class _Pickler(pickle.Pickler):
    """Writes no class but those of the list, so that a receiver with the same list can read it."""

    def __init__(self, target: io.BytesIO, allow: frozenset[str]) -> None:
        super().__init__(target, _PROTOCOL)
        self._allow = allow

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType | BuiltinFunctionType):
            raise pickle.PicklingError(f"{obj!r} is a function; only classes of the option object_allow travel")
        if isinstance(obj, type):
            pickled.check_allowed(f"{obj.__module__}.{obj.__qualname__}", self._allow)
        return NotImplemented
