"""3.11.3 Conversion provided by StreamMessage and MapMessage."""

from collections.abc import Callable
from typing import Any

import pytest

from jmsapi import (
    Byte,
    Char,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    MessageFormatException,
    NullPointerException,
    NumberFormatException,
    Queue,
    Session,
    Short,
    StreamMessage,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._kinds import passed

TYPES = ("boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes")
NUMBERS = ("byte", "short", "int", "long", "float", "double")
READABLE: dict[str, tuple[str, ...]] = {
    "boolean": ("boolean", "string"),
    "byte": ("byte", "short", "int", "long", "string"),
    "short": ("short", "int", "long", "string"),
    "char": ("char", "string"),
    "int": ("int", "long", "string"),
    "long": ("long", "string"),
    "float": ("float", "double", "string"),
    "double": ("double", "string"),
    "string": ("boolean", *NUMBERS, "string"),
    "bytes": ("bytes",),
}
STORED: dict[str, object] = {
    "boolean": True,
    **dict.fromkeys(("byte", "short", "int", "long"), 7),
    "char": "x",
    **dict.fromkeys(("float", "double"), 1.5),
    "string": "7",
    "bytes": b"\x00\xff",
}
TEXT: dict[str, str] = {
    **dict.fromkeys(("byte", "short", "int", "long", "string"), "7"),
    "boolean": "true",
    "char": "x",
    "float": "1.5",
    "double": "1.5",
}
OBJECTS: dict[str, object] = {
    "boolean": True,
    "byte": Byte(7),
    "short": Short(7),
    "char": Char("x"),
    "int": Int(7),
    "long": Long(7),
    "float": Float(1.5),
    "double": Double(1.5),
    "string": "7",
    "bytes": b"\x00\xff",
}
NULLS: dict[str, object] = {
    "boolean": False,
    **dict.fromkeys(("byte", "short", "int", "long"), NumberFormatException),
    **dict.fromkeys(("char", "float", "double"), NullPointerException),
    "string": None,
    "bytes": None,
}
Read = Callable[[str], Any]
EACH_KIND = pytest.mark.parametrize("kind", ["map", "stream"])
EACH_TYPE = pytest.mark.parametrize("stored", TYPES)


def expected(stored: str, column: str) -> object:
    """Return what a cell of the table gives."""
    if column == "string":
        return TEXT[stored]
    if stored == "string":
        return column != "boolean" and 7
    return STORED[stored]


def holding(session: Session, kind: str, value: object, how: str) -> MapMessage | StreamMessage:
    """Create a message with one value, written by the method of a type, or as an object."""
    if kind == "map":
        map_ = session.create_map_message()
        getattr(map_, f"set_{how}")("it", value)
        return map_
    stream = session.create_stream_message()
    getattr(stream, f"write_{how}")(value)
    return stream


def reader(message: object) -> Read:
    """Return what reads the value as a type; each time anew."""
    if isinstance(message, MapMessage):
        return lambda column: getattr(message, f"get_{column}")("it")
    assert isinstance(message, StreamMessage)
    message.reset()

    def read(column: str) -> Any:
        if column != "bytes":
            value = getattr(message, f"read_{column}")()
        else:
            buffer = bytearray(9)
            count = message.read_bytes(buffer)
            value = None if count < 0 else bytes(buffer[:count])
        message.reset()
        return value

    return read


def check_row(read: Read, stored: str) -> None:
    """The cells of the row convert; the others refuse."""
    for column in TYPES:
        if column in READABLE[stored]:
            assert read(column) == expected(stored, column)
        else:
            with pytest.raises(MessageFormatException):
                read(column)


@requirement("3.11.3-1", "3.11.3-3", "3.11.3-4")
@EACH_KIND
@EACH_TYPE
def test_a_value_converts_along_its_row_only(session: Session, kind: str, stored: str) -> None:
    check_row(reader(holding(session, kind, STORED[stored], stored)), stored)


@requirement("3.11.3-3")
@pytest.mark.parametrize(
    "kind", [pytest.param("map", marks=needs("map_message")), pytest.param("stream", marks=needs("stream_message"))]
)
@EACH_TYPE
def test_a_value_converts_along_its_row_after_transport(
    session: Session, other_session: Session, queue: Queue, kind: str, stored: str
) -> None:
    received = passed(holding(session, kind, STORED[stored], stored), session, queue, other_session)
    check_row(reader(received), stored)


EDGES: dict[str, tuple[tuple[Any, str], ...]] = {
    "byte": ((-128, "-128"), (127, "127"), (0, "0"), (-1, "-1")),
    "short": ((-(2**15), "-32768"), (2**15 - 1, "32767"), (-129, "-129"), (255, "255")),
    "int": ((-(2**31), "-2147483648"), (2**31 - 1, "2147483647"), (2**16, "65536")),
    "long": ((-(2**63), "-9223372036854775808"), (2**63 - 1, "9223372036854775807"), (2**53 + 1, "9007199254740993")),
    "float": ((3.4028234663852886e38, "3.4028235E38"), (1.401298464324817e-45, "1.4E-45"), (-0.0, "-0.0"), (1e10, "1.0E10")),
    "double": ((1.7976931348623157e308, "1.7976931348623157E308"), (5e-324, "4.9E-324"), (-0.0, "-0.0"), (0.1, "0.1")),
    "char": (("\0", "\0"), ("\uffff", "\uffff"), ("\xe4", "\xe4")),
    "boolean": ((False, "false"),),
}
"""The ends of each type, and numbers that only a reader of the right width gets right; each with its text."""


def read_edges(message: Message) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return of each edge its type, itself, and what each method of its row reads."""
    found: list[tuple[str, Any, dict[str, Any]]] = []
    position = 0
    for stored, edges in EDGES.items():
        for value, _ in edges:
            if isinstance(message, MapMessage):
                read = {column: getattr(message, f"get_{column}")(f"{stored}{position}") for column in READABLE[stored]}
            else:
                assert isinstance(message, StreamMessage)
                read = {}
                for column in READABLE[stored]:
                    message.reset()
                    for _ in range(position):
                        message.read_object()
                    read[column] = getattr(message, f"read_{column}")()
            found.append((stored, value, read))
            position += 1
    return found


@requirement("3.11.3-3", "3.11.3-1")
@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize(
    "kind", [pytest.param("map", marks=needs("map_message")), pytest.param("stream", marks=needs("stream_message"))]
)
def test_the_ends_of_each_type_come_out_as_they_went_in(
    session: Session, other_session: Session, queue: Queue, kind: str, sent: bool
) -> None:
    message = session.create_map_message() if kind == "map" else session.create_stream_message()
    flat = [(stored, value, text) for stored, edges in EDGES.items() for value, text in edges]
    for number, (stored, value, _) in enumerate(flat):
        if isinstance(message, MapMessage):
            getattr(message, f"set_{stored}")(f"{stored}{number}", value)
        else:
            getattr(message, f"write_{stored}")(value)
    if isinstance(message, StreamMessage):
        message.reset()
    received = passed(message, session, queue, other_session) if sent else message
    for (stored, value, read), (_, _, text) in zip(read_edges(received), flat, strict=True):
        for column, found in read.items():
            assert repr(found) == repr(text if column == "string" else value), (stored, column)


@requirement("3.11.3-2")
@EACH_KIND
@EACH_TYPE
def test_object_methods_are_equivalent_to_typed_ones(session: Session, kind: str, stored: str) -> None:
    typed, boxed = holding(session, kind, STORED[stored], stored), holding(session, kind, OBJECTS[stored], "object")
    check_row(reader(boxed), stored)
    got = reader(typed)("object")
    assert got == STORED[stored]
    check_row(reader(holding(session, kind, got, "object")), stored)


@requirement("3.11.3-5")
@EACH_KIND
@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", NUMBERS), ("", NUMBERS), ("1.5", NUMBERS[:4]), ("128", NUMBERS[:1]), ("1_0", NUMBERS), (" 1", NUMBERS[:4])],
)
def test_text_that_is_no_literal_is_no_number(session: Session, kind: str, text: str, columns: tuple[str, ...]) -> None:
    read = reader(holding(session, kind, text, "string"))
    for column in columns:
        with pytest.raises(NumberFormatException):
            read(column)


@requirement("3.11.3-6")
@EACH_KIND
@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("false", False), ("1", False), ("", False)])
def test_text_is_true_only_if_it_says_so(session: Session, kind: str, text: str, value: bool) -> None:
    assert reader(holding(session, kind, text, "string"))("boolean") is value


@requirement("3.11.3-7")
@pytest.mark.parametrize(
    ("kind", "how"), [("map", "object"), ("map", "string"), ("map", "bytes"), ("stream", "object"), ("stream", "string")]
)
def test_null_reads_like_value_of_null(session: Session, kind: str, how: str) -> None:
    check_null(reader(holding(session, kind, None, how)))


def check_null(read: Read) -> None:
    """Read as each type."""
    assert read("object") is None
    for column, result in NULLS.items():
        if isinstance(result, type):
            with pytest.raises(result):
                read(column)
        else:
            assert read(column) is result


@requirement("3.11.3-8")
def test_an_entry_that_was_never_set_reads_like_null(session: Session) -> None:
    message = session.create_map_message()
    check_null(reader(message))
    assert not message.item_exists("it")


@requirement("3.11.3-9")
@EACH_TYPE
def test_a_failed_read_leaves_the_value_for_the_next(session: Session, stored: str) -> None:
    message = session.create_stream_message()
    getattr(message, f"write_{stored}")(STORED[stored])
    message.write_string("next")
    message.reset()
    buffer = bytearray(9)
    for column in set(TYPES) - set(READABLE[stored]):
        with pytest.raises(MessageFormatException):
            message.read_bytes(buffer) if column == "bytes" else getattr(message, f"read_{column}")()
    assert message.read_object() == STORED[stored]
    assert message.read_string() == "next"


@requirement("3.11.3-9")
def test_what_is_no_number_and_null_can_be_read_again(session: Session) -> None:
    message = session.create_stream_message()
    message.write_string("x")
    message.write_object(None)
    message.reset()
    for text in ("x", None):
        for column in NUMBERS[:4]:
            with pytest.raises(NumberFormatException):
                getattr(message, f"read_{column}")()
        assert message.read_string() == text


@requirement("3.11.3-10")
@pytest.mark.parametrize("data", [b"\x00\x02\xc3A", b"\x00\x01\xff", b"\x00\x01\x80"])
def test_what_is_no_text_can_be_read_as_bytes(session: Session, data: bytes) -> None:
    message = session.create_bytes_message()
    message.write_bytes(data)
    message.reset()
    for _ in range(2):
        with pytest.raises(MessageFormatException):
            message.read_utf()
    assert [message.read_unsigned_byte() for _ in data] == list(data)
