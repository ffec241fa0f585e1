"""A sender that is no JMS client: STOMP and AMQP 1.0 frames by hand, on a plain socket, as programs in other languages send them.

It shares no code with the providers, and knows just enough of each wire to send one message and see it taken.
"""

from __future__ import annotations

import socket
import struct
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final

__all__ = ["WIRES", "send_native"]

WIRES: Final = ("stomp", "amqp")
"""Schemes it can speak."""
_PATIENCE_S: Final = 10.0
Body = str | bytes | Mapping[str, str] | Sequence[str]


def send_native(url: str, broker: str, queue: str, body: Body, content_type: str | None = None) -> None:
    """Send one message to a queue, and wait until the broker has it.

    Args:
        url: Of the backend, with credentials; its scheme says the wire.
        broker: The product, which says how it names queues.
        queue: Name of a queue that is there already.
        body: Text or bytes; over AMQP also a mapping or a sequence.
        content_type: Of the body, as the wire says it.
    """
    parts = urllib.parse.urlsplit(url)
    user, password = urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or "")
    port = parts.port or (61613 if parts.scheme == "stomp" else 5672)
    with socket.create_connection((parts.hostname or "localhost", port), _PATIENCE_S) as link:
        if parts.scheme == "stomp":
            assert isinstance(body, str | bytes), "STOMP has text and bytes only"
            _send_stomp(link, user, password, _STOMP_QUEUES[broker].format(queue), body, content_type)
        else:
            _send_amqp(link, user, password, _AMQP_QUEUES[broker].format(queue), body, content_type)


# ---- STOMP 1.2

_STOMP_QUEUES: Final = {
    "artemis": "{}\ndestination-type:ANYCAST",
    "classic": "/queue/{}",
    "loopback": "/queue/{}",
    "rabbitmq": "/amq/queue/{}",
}


def _send_stomp(
    link: socket.socket, user: str, password: str, destination: str, body: str | bytes, content_type: str | None
) -> None:
    link.sendall(f"CONNECT\naccept-version:1.2\nhost:/\nlogin:{user}\npasscode:{password}\n\n\0".encode())
    with link.makefile("rb") as answers:
        _expect(answers.readline().strip(), b"CONNECTED")
        while answers.read(1) != b"\0":
            continue
        head = f"SEND\ndestination:{destination}\nreceipt:1\n"
        if content_type is not None:
            head += f"content-type:{content_type}\n"
        if isinstance(body, bytes):
            head += f"content-length:{len(body)}\n"
        link.sendall(head.encode() + b"\n" + (body if isinstance(body, bytes) else body.encode()) + b"\0")
        line = b""
        while not line:
            line = answers.readline().strip()
        _expect(line, b"RECEIPT")
        link.sendall(b"DISCONNECT\n\n\0")


def _expect(line: bytes, word: bytes) -> None:
    assert line == word, f"{word!r} was expected of the broker, not {line!r}"


# ---- AMQP 1.0

_AMQP_QUEUES: Final = {"artemis": "{}", "classic": "queue://{}", "rabbitmq": "/queues/{}", "broker-j": "{}"}
_NULL: Final = b"\x40"
_OPEN, _BEGIN, _ATTACH, _FLOW, _TRANSFER, _DISPOSITION, _CLOSE = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x18
_ENDS: Final = (0x16, 0x17, _CLOSE)
_SASL_INIT, _SASL_OUTCOME = 0x41, 0x44


def _send_amqp(link: socket.socket, user: str, password: str, address: str, body: Body, content_type: str | None) -> None:
    def send(performative: bytes) -> None:
        link.sendall(_frame(performative))

    with link.makefile("rb") as answers:
        link.sendall(b"AMQP\x03\x01\x00\x00")
        answers.read(8)
        credentials = _binary(f"\0{user}\0{password}".encode())
        link.sendall(_frame(_described(_SASL_INIT, _symbol("PLAIN"), credentials), kind=1))
        _await(answers, _SASL_OUTCOME)
        link.sendall(b"AMQP\x00\x01\x00\x00")
        answers.read(8)
        # Classic lets one connection at a time have a container id, and workers send side by side.
        send(_described(_OPEN, _text(f"native-{uuid.uuid4().hex}"), _text("localhost")))
        send(_described(_BEGIN, _NULL, _uint(0), _uint(100), _uint(100)))
        target = _described(0x29, _text(address), *[_NULL] * 5, _symbol("queue"))
        sender = [_text("native"), _uint(0), b"\x42", _NULL, _NULL, _described(0x28, _text("native")), target]
        send(_described(_ATTACH, *sender, _NULL, _NULL, _uint(0)))
        _await(answers, _FLOW)
        message = b"" if content_type is None else _described(0x73, *[_NULL] * 6, _symbol(content_type))
        message += b"\x00\x53\x75" + _binary(body) if isinstance(body, bytes) else b"\x00\x53\x77" + _value(body)
        send(_described(_TRANSFER, _uint(0), _uint(0), _binary(b"1"), _uint(0), b"\x42") + message)
        _await(answers, _DISPOSITION)
        send(_described(_CLOSE))


def _frame(performative: bytes, kind: int = 0) -> bytes:
    return struct.pack(">IBBH", 8 + len(performative), 2, kind, 0) + performative


def _await(answers: BinaryIO, code: int) -> None:
    """Read frames until one of a kind; of all that are read, only their kind is looked at."""
    while True:
        size, offset = struct.unpack(">IB", answers.read(5))
        content = answers.read(size - 5)[offset * 4 - 5 :]
        found = content[2] if content[:2] == b"\x00\x53" else None
        if found == code:
            return
        assert found not in _ENDS, f"the broker ended it: {content!r}"


def _described(code: int, *fields: bytes) -> bytes:
    content = b"".join(fields)
    return b"\x00\x53" + code.to_bytes(1, "big") + b"\xd0" + struct.pack(">II", len(content) + 4, len(fields)) + content


def _uint(number: int) -> bytes:
    return b"\x70" + struct.pack(">I", number)


def _text(text: str) -> bytes:
    data = text.encode()
    return b"\xb1" + struct.pack(">I", len(data)) + data


def _symbol(text: str) -> bytes:
    return b"\xb3" + struct.pack(">I", len(text)) + text.encode("ascii")


def _binary(data: bytes) -> bytes:
    return b"\xb0" + struct.pack(">I", len(data)) + data


def _value(body: str | Mapping[str, str] | Sequence[str]) -> bytes:
    if isinstance(body, str):
        return _text(body)
    if isinstance(body, Mapping):
        items = [_text(text) for pair in body.items() for text in pair]
        code = b"\xd1"
    else:
        items, code = [_text(text) for text in body], b"\xd0"
    content = b"".join(items)
    return code + struct.pack(">II", len(content) + 4, len(items)) + content
