"""The values that the options of a send, and the mode of a session, may have; for both APIs.

Spec: 4.7-1, 3.4.10-1, 4.8-1, 4.12-1, 4.4.11-2.
"""

from __future__ import annotations

from typing import Final

from jmsapi._callbacks import check_callback, check_methods
from jmsapi._core.acknowledgement.ledger import AUTO, CLIENT, DUPS_OK, TRANSACTED
from jmsapi.errors import IllegalArgumentException, JMSException
from jmsapi.spi import NON_PERSISTENT, PERSISTENT
from jmsapi.values import INT_RANGE

__all__ = [
    "MODES",
    "asked_mode",
    "check_completion_listener",
    "check_connection_listener",
    "check_credential",
    "check_listener",
    "delivery_delay",
    "delivery_mode",
    "encodable",
    "later",
    "priority",
    "session_mode",
    "time_to_live",
]

MODES: Final = {
    TRANSACTED: "SESSION_TRANSACTED",
    AUTO: "AUTO_ACKNOWLEDGE",
    CLIENT: "CLIENT_ACKNOWLEDGE",
    DUPS_OK: "DUPS_OK_ACKNOWLEDGE",
}
_LONGEST: Final = INT_RANGE["long"][1]


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise JMSException(f"{what} is a whole number, not {value!r}", "invalid-option")
    return int(value)


def _milliseconds(value: object, what: str) -> int:
    number = _whole(value, what)
    if not 0 <= number <= _LONGEST:
        raise JMSException(f"{what} is a number of milliseconds from 0 on, not {number}", "invalid-option")
    return number


def delivery_mode(value: object) -> int:
    """Return a valid delivery mode."""
    mode = _whole(value, "a delivery mode")
    if mode not in (NON_PERSISTENT, PERSISTENT):
        raise JMSException(f"a delivery mode is 1 (NON_PERSISTENT) or 2 (PERSISTENT), not {mode}", "invalid-option")
    return mode


def priority(value: object) -> int:
    """Return a valid priority."""
    rank = _whole(value, "a priority")
    if not 0 <= rank <= 9:
        raise JMSException(f"a priority is 0 to 9, not {rank}", "invalid-option")
    return rank


def time_to_live(value: object) -> int:
    """Return a valid time to live in milliseconds."""
    return _milliseconds(value, "a time to live")


def delivery_delay(value: object) -> int:
    """Return a valid delivery delay in milliseconds."""
    return _milliseconds(value, "a delivery delay")


def later(now: int, milliseconds: int) -> int:
    """Return a time as a long can hold it: what lies behind the end of time is the end of time."""
    return min(now + milliseconds, _LONGEST)


def session_mode(value: object) -> int:
    """Return a valid session mode."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in MODES:
        raise JMSException(f"{value!r} is no session mode; they are {MODES}", "session-mode")
    return int(value)


def encodable(text: str) -> bool:
    """Return whether every wire could write a text: there is no half of a surrogate pair in it."""
    return text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text)


def check_credential(value: object, what: str) -> None:
    """Refuse a user name or password that is no text, without showing it."""
    if not isinstance(value, str | None):
        raise IllegalArgumentException(f"{what} is text, not {type(value).__name__}")


def check_listener(listener: object) -> None:
    """Refuse what cannot be called with a message.

    Raises:
        IllegalArgumentException: It is not None, has no ``on_message``, and is not callable; or it is asynchronous.
    """
    if listener is None:
        return
    call = getattr(listener, "on_message", listener)
    if not callable(call):
        raise IllegalArgumentException(f"a message listener has an on_message method or is callable, not {listener!r}")
    check_callback(call, "the message listener")


def check_completion_listener(listener: object) -> None:
    """Refuse what cannot be called with the outcome of a send.

    Raises:
        IllegalArgumentException: It is not None and lacks ``on_completion`` or ``on_exception``, or one is asynchronous.
    """
    if listener is None:
        return
    if not (callable(getattr(listener, "on_completion", None)) and callable(getattr(listener, "on_exception", None))):
        raise IllegalArgumentException(f"a completion listener has on_completion and on_exception, not {listener!r}")
    check_methods(listener, "on_completion", "on_exception", what="the completion listener")


def check_connection_listener(listener: object) -> None:
    """Refuse what cannot be told what becomes of a connection: a mere function would never be called, and nobody would know.

    Raises:
        IllegalArgumentException: It is not None and lacks a method of a ``ConnectionListener``, or one is asynchronous.
    """
    if listener is None:
        return
    names = ("on_interrupted", "on_attempt_failed", "on_resumed")
    if not all(callable(getattr(listener, name, None)) for name in names):
        raise IllegalArgumentException(f"a connection listener has {', '.join(names[:2])} and {names[2]}, not {listener!r}")
    check_methods(listener, *names, what="the connection listener")


def asked_mode(mode: object, acknowledge_mode: object, transacted: object) -> int:
    """Return the session mode that the arguments of ``create_session`` say in one of its forms."""
    # A bool is an int too: the two-argument form comes first.
    if transacted is None and (isinstance(mode, bool) or mode is None):
        mode, transacted = None, mode
    if mode is not None and (acknowledge_mode is not None or transacted is not None):
        raise JMSException(
            f"a session mode stands alone, {mode!r} is followed by another; the form with two begins with True or False",
            "session-mode",
        )
    if transacted is not None and not isinstance(transacted, bool):
        raise JMSException(f"transacted is True or False, not {transacted!r}", "session-mode")
    if transacted:
        return TRANSACTED
    if mode is None and acknowledge_mode is None:
        return AUTO
    chosen = session_mode(acknowledge_mode if mode is None else mode)
    if mode is None and chosen == TRANSACTED:
        raise JMSException("a session that is not transacted needs an acknowledge mode of 1, 2 or 3", "session-mode")
    return chosen
