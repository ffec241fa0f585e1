"""What a client's frames say to the loopback server, and how it is told that one says nothing sensible. Pure functions."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_stomp.frames import Frame, escape, text_of

__all__ = [
    "Greeting",
    "broken",
    "check_escapes",
    "error_frame",
    "number_of",
    "read_greeting",
    "receipt_frame",
    "required",
    "shown",
]

_ESCAPE: Final = re.compile(rb"\\[\\nrc]")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Greeting:
    """What CONNECT says.

    Attributes:
        client_id: The JMS client identifier, or None.
        sends_ms: The client says something at least so often; 0 when it does not promise to.
        wants_ms: It wants to hear something so often; 0 when it does not.
    """

    client_id: str | None
    sends_ms: int
    wants_ms: int


def read_greeting(frame: Frame, login: tuple[str, str] | None) -> Greeting:
    """Read CONNECT, whose headers know no escapes.

    Args:
        frame: The first frame of a client.
        login: The user name and password that it must give, or None.
    Raises:
        ProviderError: PROTOCOL, SECURITY, CLIENT_ID; all fatal.
    """
    if frame.command not in (b"CONNECT", b"STOMP"):
        raise broken(f"the first frame is CONNECT or STOMP, not {shown(frame.command)}")
    headers: dict[str, str] = {}
    for line in text_of(frame.head).split("\n"):
        name, _, value = line.removesuffix("\r").partition(":")
        headers.setdefault(name, value)
    if "1.2" not in headers.get("accept-version", "").split(","):
        raise broken("this server speaks STOMP 1.2 only")
    given = (headers.get("login", ""), headers.get("passcode", ""))
    # Both are always compared: how long it takes tells nothing.
    right = [hmac.compare_digest(a.encode(), b.encode()) for a, b in zip(given, login or given, strict=True)]
    if not all(right):
        raise ProviderError(ErrorKind.SECURITY, "wrong user name or password", fatal=True)
    sends, _, wants = headers.get("heart-beat", "0,0").partition(",")
    if not _NUMBER.fullmatch(sends) or not _NUMBER.fullmatch(wants):
        raise broken("heart-beat takes two numbers")
    client_id = headers.get("client-id")
    if client_id == "":
        raise ProviderError(ErrorKind.CLIENT_ID, "an empty client id is none", fatal=True)
    return Greeting(client_id, int(sends), int(wants))


def check_escapes(frame: Frame) -> None:
    """Refuse a header with an escape that STOMP 1.2 does not know.

    Raises:
        ProviderError: PROTOCOL.
    """
    if b"\\" in frame.head and b"\\" in _ESCAPE.sub(b"", frame.head):
        raise broken("a header has an escape that STOMP does not know")


def required(frame: Frame, name: bytes) -> bytes:
    """Return a header that must be there, escaped as it came; ``name`` is ``b"\\nname:"``.

    Raises:
        ProviderError: PROTOCOL; it is not.
    """
    value = frame.raw(name)
    if not value:
        raise broken(f"{shown(frame.command)} without {name[1:-1].decode()}")
    return value


def number_of(text: str | None, what: str) -> int | None:
    """Return a header as a number; None when it is missing.

    Raises:
        ProviderError: PROTOCOL; it is none of up to nine digits.
    """
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise broken(f"{what} is no number")
    return int(text)


def shown(command: bytes) -> str:
    """Return a command as it may be shown."""
    return repr(command[:40].decode("ascii", "replace"))


def broken(text: str) -> ProviderError:
    """Return the error of a frame that is against STOMP; it ends the connection."""
    return ProviderError(ErrorKind.PROTOCOL, text, fatal=True)


def receipt_frame(receipt: bytes) -> bytes:
    """Return the answer to a frame that wanted one."""
    return b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt


def error_frame(cause: ProviderError, receipt: bytes | None) -> bytes:
    """Return the ERROR frame that tells a cause.

    Args:
        cause: Its kind begins the text.
        receipt: What names the frame that failed, as it came; None when none is named.
    """
    named = b"" if receipt is None else b"receipt-id:%b\n" % receipt
    text = escape(f"[{cause.kind.value}] {cause.message}").encode("utf-8", "replace")
    return b"ERROR\nversion:1.2\n%bmessage:%b\ncontent-length:0\n\n\0" % (named, text)
