"""What a Java client throws, as the exception of the same name here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from java_clients.jvm import java_class, jpype
from jmsapi import (
    IllegalArgumentException,
    JMSError,
    NullPointerException,
    NumberFormatException,
    UnsupportedFeatureException,
    UnsupportedOperationException,
    errors,
)

__all__ = ["JavaThrowable", "NotInJava", "NotThere", "guarded", "thrown_for", "translated"]


_KNOWN: Final = {
    ("java.lang", "IllegalArgumentException"),
    ("java.lang", "NumberFormatException"),
    ("java.lang", "NullPointerException"),
}


class NotInJava(Exception):
    """A call that Java's compiler refuses, so that no Java client can ever answer it."""


class JavaThrowable(Exception):
    """Something that JMS has no name for."""


class NotThere(UnsupportedFeatureException, UnsupportedOperationException):
    """A method that the client does not have. Java has UnsupportedOperationException for it, here that is a refused feature."""

    def __init__(self, reason: str) -> None:
        super().__init__("this", "the Java client", reason=reason)


def translated(thrown: Any) -> Exception:
    """Return a Java throwable as our exception of its name, or of that of its nearest superclass which we have."""
    kind = thrown.getClass()
    text = str(thrown.getMessage() or thrown.toString())
    while kind is not None:
        package, _, name = str(kind.getName()).rpartition(".")
        if (package, name) == ("java.lang", "UnsupportedOperationException"):
            return _from(thrown, NotThere(text))
        # Both packages have an IllegalStateException, and clients have classes of such names, too.
        ours = getattr(errors, name, None) if (package, name) in _KNOWN or package == "jakarta.jms" else None
        if isinstance(ours, type) and issubclass(ours, JMSError):
            # "" and not the word that a class of ours would give by itself.
            code = thrown.getErrorCode()
            return _from(thrown, ours(text, "" if code is None else str(code)))
        if isinstance(ours, type) and issubclass(ours, Exception):
            return _from(thrown, ours(text))
        kind = kind.getSuperclass()
    return _from(thrown, JavaThrowable(str(thrown.toString())))


def _from(thrown: Any, error: Exception) -> Exception:
    cause = thrown.getLinkedException() if hasattr(thrown, "getLinkedException") else None
    cause = cause if cause is not None else thrown.getCause()
    error.__cause__ = None if cause is None else _cause(cause)
    return error


def _cause(thrown: Any) -> BaseException:
    # A Python exception that passed through Java is still itself.
    return translated(thrown) if isinstance(thrown, jpype.JException) else thrown


def thrown_for(error: Exception) -> Any:
    """Return the Java exception that an application in Java would have thrown instead of one of ours."""
    for kind in type(error).__mro__:
        if kind in (IllegalArgumentException, NumberFormatException, NullPointerException):
            return java_class(f"java.lang.{kind.__name__}")(str(error))
        if issubclass(kind, JMSError) and kind.__module__ == errors.__name__ and kind is not JMSError:
            return java_class(kind.__name__)(str(error))
    return java_class("java.lang.RuntimeException")(f"{type(error).__name__}: {error}")


def guarded(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call into Java; what it throws is raised as ours."""
    try:
        return call(*arguments)
    except jpype.JException as thrown:
        error = translated(thrown)
        raise error from error.__cause__
