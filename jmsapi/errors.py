"""Every exception an application can see.

One root of ours, :class:`JMSError`, and below it the two families of the specification, kept apart: ``JMSException`` for
the classic API, ``JMSRuntimeException`` for the simplified one. Rules of this module:

- An exception has one cause and one place for it, ``__cause__``; ``linked_exception`` shows the same object. So
  ``raise JMSException(...) from error`` links the error, too.
- Only ``JMSRuntimeException`` and its subclasses are ``RuntimeError``: a Python handler for it never takes an exception
  of the classic family. Where another Python error says the same thing, the exception is that error as well, except
  that none is an ``OSError``: retry loops take that for a passing fault of the network.
- Every subclass has a word of its own as ``error_code`` unless the caller gives another; docs/errors.md explains each.
- All can be pickled. Causes from elsewhere often cannot, so they travel as text (:class:`PickledCause`).

Spec: 4.9-1, 7.2-1 to 7.2-14, 7.3-31.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

__all__ = [
    "IllegalArgumentException",
    "IllegalStateException",
    "IllegalStateRuntimeException",
    "InvalidClientIDException",
    "InvalidClientIDRuntimeException",
    "InvalidDestinationException",
    "InvalidDestinationRuntimeException",
    "InvalidSelectorException",
    "InvalidSelectorRuntimeException",
    "JMSError",
    "JMSException",
    "JMSRuntimeException",
    "JMSSecurityException",
    "JMSSecurityRuntimeException",
    "MessageEOFException",
    "MessageFormatException",
    "MessageFormatRuntimeException",
    "MessageNotReadableException",
    "MessageNotWriteableException",
    "MessageNotWriteableRuntimeException",
    "NullPointerException",
    "NumberFormatException",
    "PickledCause",
    "ResourceAllocationException",
    "ResourceAllocationRuntimeException",
    "TransactionInProgressException",
    "TransactionInProgressRuntimeException",
    "TransactionRolledBackException",
    "TransactionRolledBackRuntimeException",
    "UnsupportedFeatureException",
    "UnsupportedFeatureRuntimeException",
    "UnsupportedOperationException",
    "to_checked",
    "to_runtime",
]

_E = TypeVar("_E", bound="JMSError")


class JMSError(Exception):
    """Root of all exceptions that JMS methods report, of both families.

    Attributes:
        default_error_code: The ``error_code`` of an exception of this class that was built without one.
    """

    default_error_code: ClassVar[str | None] = None
    _error_code: str | None

    def __init__(self, reason: str, error_code: str | None = None, linked_exception: BaseException | None = None) -> None:
        super().__init__(reason)
        self._error_code = error_code
        if linked_exception is not None:
            self.__cause__ = linked_exception

    @property
    def error_code(self) -> str | None:
        """Give the word that names the problem; docs/errors.md has an entry for each word of this library.

        Spec: 7.2-9.
        """
        return self.default_error_code if self._error_code is None else self._error_code

    @property
    def linked_exception(self) -> Exception | None:
        """Give the exception that led to this one: ``__cause__``, unless that is no ``Exception``.

        Spec: 7.2-10, 7.2-11, 7.2-12.
        """
        cause = self.__cause__
        return cause if isinstance(cause, Exception) else None

    @linked_exception.setter
    def linked_exception(self, ex: Exception | None) -> None:
        self.__cause__ = ex

    def __str__(self) -> str:
        """Give the reason, which is the whole text. Spec: 7.2-8."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Callable[..., JMSError], tuple[Any, ...]]:
        return _restore, (type(self), self.args, self.__dict__.copy(), _portable(self.__cause__))


class PickledCause(Exception):
    """The cause of an exception that came out of a pickle, as text.

    Exceptions of other libraries often cannot be pickled, or only pickled and not loaded; their type and text can.
    """


def _portable(cause: BaseException | None) -> BaseException | None:
    """Keep causes that surely survive pickling; turn the others, and all that is behind them, into text."""
    if cause is None or isinstance(cause, JMSError | PickledCause):
        return cause
    texts: list[str] = []
    seen: set[int] = set()
    below: BaseException | None = cause
    while below is not None and id(below) not in seen:
        seen.add(id(below))
        texts.append(f"{type(below).__name__}: {below}")
        below = below.__cause__
    return PickledCause(", from ".join(texts))


def _restore(kind: type[_E], args: tuple[Any, ...], fields: dict[str, Any], cause: BaseException | None) -> _E:
    """Rebuild an exception without its ``__init__``, whose parameters are the subclass's own affair."""
    made = kind.__new__(kind, *args)
    made.args = args
    made.__dict__.update(fields)
    made.__cause__ = cause
    return made


class JMSException(JMSError):
    """Root of the exceptions of the classic API.

    Args:
        reason: What was asked, what is so, what to do; the text of the exception.
        error_code: A word for programs. None means the class's own word; this class itself has none.
        linked_exception: The error that led here; the same as raising ``from`` it.
    Spec: 7.2-1, 7.2-8, 7.2-9, 7.2-10, 7.2-14.
    """

    def __init__(self, reason: str, error_code: str | None = None, linked_exception: Exception | None = None) -> None:
        super().__init__(reason, error_code, linked_exception)


class JMSRuntimeException(JMSError, RuntimeError):
    """Root of the exceptions of the simplified API.

    Args:
        detail_message: What was asked, what is so, what to do; the text of the exception.
        error_code: A word for programs. None means the class's own word; this class itself has none.
        cause: The error that led here; the same as raising ``from`` it.
    Spec: 7.2-2, 7.2-8, 7.2-9, 7.2-11, 7.2-14.
    """

    def __init__(self, detail_message: str, error_code: str | None = None, cause: BaseException | None = None) -> None:
        super().__init__(detail_message, error_code, cause)


class IllegalStateException(JMSException):
    """Report a call made at a wrong time, on a closed object or in the wrong domain. Spec: 7.3-4, 7.3-6, 7.3-7."""

    default_error_code = "illegal-state"


class IllegalStateRuntimeException(JMSRuntimeException):
    """Report a call made at a wrong time or on a closed object. Spec: 7.3-5, 7.3-7."""

    default_error_code = "illegal-state"


class InvalidClientIDException(JMSException, ValueError):
    """Report a client id that is empty or in use. Spec: 7.3-11."""

    default_error_code = "invalid-client-id"


class InvalidClientIDRuntimeException(JMSRuntimeException, ValueError):
    """Report a client id that is empty or in use. Spec: 7.3-12."""

    default_error_code = "invalid-client-id"


class InvalidDestinationException(JMSException, ValueError):
    """Report a destination that is missing, foreign, deleted or of the wrong kind. Spec: 7.3-13, 7.3-14."""

    default_error_code = "invalid-destination"


class InvalidDestinationRuntimeException(JMSRuntimeException, ValueError):
    """Report a destination that is missing, foreign, deleted or of the wrong kind. Spec: 7.3-15."""

    default_error_code = "invalid-destination"


class InvalidSelectorException(JMSException, ValueError):
    """Report a message selector that is not valid; ``__cause__`` knows the characters at fault. Spec: 7.3-16."""

    default_error_code = "invalid-selector"


class InvalidSelectorRuntimeException(JMSRuntimeException, ValueError):
    """Report a message selector that is not valid; ``__cause__`` knows the characters at fault. Spec: 7.3-17."""

    default_error_code = "invalid-selector"


class JMSSecurityException(JMSException):
    """Report a refused user name or password, or a missing permission. Spec: 7.3-8, 7.3-10."""

    default_error_code = "security"


class JMSSecurityRuntimeException(JMSRuntimeException):
    """Report a refused user name or password, or a missing permission. Spec: 7.3-9."""

    default_error_code = "security"


class MessageEOFException(JMSException, EOFError):
    """Report a read past the end of a StreamMessage or BytesMessage. Spec: 7.3-18."""

    default_error_code = "message-eof"


class MessageFormatException(JMSException, TypeError):
    """Report a value or a message of a type that does not fit. Spec: 7.3-19, 7.3-20, 7.3-21, 7.3-22."""

    default_error_code = "message-format"


class MessageFormatRuntimeException(JMSRuntimeException, TypeError):
    """Report a value or a message of a type that does not fit. Spec: 7.3-22, 7.3-32."""

    default_error_code = "message-format"


class MessageNotReadableException(JMSException):
    """Report a read of a body that is in write-only mode; ``reset()`` ends that mode. Spec: 7.3-24."""

    default_error_code = "message-not-readable"


class MessageNotWriteableException(JMSException):
    """Report a write to a read-only body or read-only properties; clearing them ends that mode. Spec: 7.3-25."""

    default_error_code = "message-not-writeable"


class MessageNotWriteableRuntimeException(JMSRuntimeException):
    """Report a producer with properties of its own that is to send a read-only message. Spec: 7.3-26."""

    default_error_code = "message-not-writeable"


class ResourceAllocationException(JMSException):
    """Report that provider or broker ran out of what the call needs. Spec: 7.3-27."""

    default_error_code = "resource-allocation"


class ResourceAllocationRuntimeException(JMSRuntimeException):
    """Report that provider or broker ran out of what the call needs. Spec: 7.3-27."""

    default_error_code = "resource-allocation"


class TransactionInProgressException(JMSException):
    """Report a call that a running distributed transaction forbids, such as commit. Spec: 7.3-28."""

    default_error_code = "transaction-in-progress"


class TransactionInProgressRuntimeException(JMSRuntimeException):
    """Report a call that a running distributed transaction forbids, such as commit. Spec: 7.3-28."""

    default_error_code = "transaction-in-progress"


class TransactionRolledBackException(JMSException):
    """Report a commit that ended in a rollback. Spec: 7.3-29."""

    default_error_code = "transaction-rolled-back"


class TransactionRolledBackRuntimeException(JMSRuntimeException):
    """Report a commit that ended in a rollback. Spec: 7.3-30."""

    default_error_code = "transaction-rolled-back"


class _Refusal(JMSError):
    """The fields of a refused feature and their text, for both families."""

    default_error_code = "unsupported-feature"

    def __init__(
        self,
        feature: str,
        provider: str,
        broker: str | None = None,
        emulate: str | None = None,
        *,
        reason: str | None = None,
    ) -> None:
        self.feature, self.provider, self.broker, self.emulate = feature, provider, broker, emulate
        where = f"the provider {provider}" + (f" with {broker}" if broker else "")
        way_out = f"; ?emulate={emulate} in the URL asks for a weaker substitute" if emulate else ""
        super().__init__(reason or f"{where} does not offer {feature}{way_out}")


class UnsupportedFeatureException(_Refusal, JMSException):
    """Refuse what this provider and this broker cannot do.

    Args:
        feature: What was asked, in words that follow "does not offer".
        provider: Name of the provider, such as ``stomp``.
        broker: Product and version, such as ``RabbitMQ 4.1.0``; None while not connected.
        emulate: The word of the URL option ``emulate`` that turns on a substitute, or None if there is none.
        reason: Text to use instead of the one made of the other arguments.
    Spec: 7.2-13, 7.3-2.
    """


class UnsupportedFeatureRuntimeException(_Refusal, JMSRuntimeException):
    """Refuse what this provider and this broker cannot do; arguments as in UnsupportedFeatureException.

    Spec: 7.2-13, 7.3-2.
    """


class IllegalArgumentException(ValueError):
    """Report an argument with a value that is never allowed; Java's exception of this name."""


class NumberFormatException(IllegalArgumentException):
    """Report a string that is read as a number and is none; Java's exception of this name. Spec: 7.3-23."""


class NullPointerException(TypeError):
    """Report None where a value is needed; Java's exception of this name."""


class UnsupportedOperationException(NotImplementedError):
    """Report a method that this object does not have, by its state; Java's exception of this name. Spec: B.3.3-2."""


_TWINS: Final[dict[type[JMSException], type[JMSRuntimeException]]] = {
    JMSException: JMSRuntimeException,
    IllegalStateException: IllegalStateRuntimeException,
    InvalidClientIDException: InvalidClientIDRuntimeException,
    InvalidDestinationException: InvalidDestinationRuntimeException,
    InvalidSelectorException: InvalidSelectorRuntimeException,
    JMSSecurityException: JMSSecurityRuntimeException,
    MessageFormatException: MessageFormatRuntimeException,
    MessageNotWriteableException: MessageNotWriteableRuntimeException,
    ResourceAllocationException: ResourceAllocationRuntimeException,
    TransactionInProgressException: TransactionInProgressRuntimeException,
    TransactionRolledBackException: TransactionRolledBackRuntimeException,
    UnsupportedFeatureException: UnsupportedFeatureRuntimeException,
}
_CHECKED: Final[dict[type[JMSRuntimeException], type[JMSException]]] = {new: old for old, new in _TWINS.items()}


def to_runtime(exc: JMSException) -> JMSRuntimeException:
    """Turn an exception of the classic API into its twin of the simplified API.

    Args:
        exc: The exception to translate; it is not changed.
    Returns:
        The twin with the same text, error code and fields; its ``__cause__`` is ``exc``. An exception without a twin
        of its own (MessageEOFException, MessageNotReadableException, a user's subclass) gives that of its nearest base.
    Threads: any.
    Spec: 7.2-5, 7.3-31.
    """
    return _translate(exc, next(_TWINS[base] for base in type(exc).__mro__ if base in _TWINS))


def to_checked(exc: JMSRuntimeException) -> JMSException:
    """Turn an exception of the simplified API into its twin of the classic API.

    Args:
        exc: The exception to translate; it is not changed.
    Returns:
        The twin with the same text, error code and fields; its ``__cause__`` is ``exc``.
    Threads: any.
    Spec: 7.2-4, 7.3-31.
    """
    return _translate(exc, next(_CHECKED[base] for base in type(exc).__mro__ if base in _CHECKED))


def _translate(exc: JMSError, twin: type[_E]) -> _E:
    return _restore(twin, exc.args, {**exc.__dict__, "_error_code": exc.error_code}, exc)
