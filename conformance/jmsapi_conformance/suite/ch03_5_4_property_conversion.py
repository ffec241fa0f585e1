"""3.5.4 Property value conversion, 3.5.5 Property values as objects, and the types after transport (3.5.2-2)."""

from typing import Any

import pytest

from jmsapi import (
    Byte,
    Char,
    Double,
    Float,
    Int,
    JMSContext,
    Long,
    Message,
    MessageFormatException,
    MessageFormatRuntimeException,
    NullPointerException,
    NumberFormatException,
    Queue,
    Session,
    Short,
)
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._kinds import passed

TYPES = ("boolean", "byte", "short", "int", "long", "float", "double", "string")
READABLE: dict[str, tuple[str, ...]] = {
    "boolean": ("boolean", "string"),
    "byte": ("byte", "short", "int", "long", "string"),
    "short": ("short", "int", "long", "string"),
    "int": ("int", "long", "string"),
    "long": ("long", "string"),
    "float": ("float", "double", "string"),
    "double": ("double", "string"),
    "string": TYPES,
}
STORED: dict[str, object] = {
    "boolean": True,
    "byte": 1,
    "short": 1,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "string": "1",
}
READ: dict[str, dict[str, object]] = {
    "boolean": {"boolean": True, "string": "true"},
    **{kind: {**dict.fromkeys(READABLE[kind], 1), "string": "1"} for kind in ("byte", "short", "int", "long")},
    **{kind: {**dict.fromkeys(READABLE[kind], 1.5), "string": "1.5"} for kind in ("float", "double")},
    "string": {"boolean": False, "string": "1", **dict.fromkeys(TYPES[1:5], 1), **dict.fromkeys(TYPES[5:7], 1.0)},
}
NULLS: dict[str, object] = {
    "boolean": False,
    **dict.fromkeys(("byte", "short", "int", "long"), NumberFormatException),
    **dict.fromkeys(("float", "double"), NullPointerException),
    "string": None,
}
OBJECTS: list[object] = [True, Byte(1), Short(1), 1, Int(1), Long(1), 2**40, Float(1.5), 1.5, Double(1.5), "1"]
KIND_OF_OBJECT = ["boolean", "byte", "short", "int", "int", "long", "long", "float", "double", "double", "string"]


def read(message: Message, kind: str, name: str = "it") -> Any:
    """Call the getter of a type."""
    return getattr(message, f"get_{kind}_property")(name)


def check_row(message: Message, kind: str, name: str = "it") -> None:
    """Read a property by each getter; the cells of its row convert, the others refuse."""
    for column in TYPES:
        if column in READABLE[kind]:
            assert read(message, column, name) == READ[kind][column]
        else:
            with pytest.raises(MessageFormatException):
                read(message, column, name)


@requirement("3.5.4-1", "3.5.4-2")
@pytest.mark.parametrize("kind", TYPES)
def test_a_property_converts_along_its_row_only(session: Session, kind: str) -> None:
    message = session.create_message()
    getattr(message, f"set_{kind}_property")("it", STORED[kind])
    check_row(message, kind)


@requirement("3.5.2-2")
def test_after_transport_each_property_still_has_its_type(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    for kind in TYPES:
        getattr(message, f"set_{kind}_property")(kind, STORED[kind])
    received = passed(message, session, queue, other_session)
    for kind in TYPES:
        check_row(received, kind, kind)
        assert type(received.get_object_property(kind)) is type(message.get_object_property(kind))


@requirement("3.5.4-3")
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("abc", TYPES[1:7]),
        ("", TYPES[1:7]),
        ("1.5", TYPES[1:5]),
        ("300", ("byte",)),
        ("99999999999", ("byte", "short", "int")),
        (" 1", TYPES[1:5]),
        ("1_0", TYPES[1:7]),
        ("0x10", TYPES[1:7]),
    ],
)
def test_text_that_is_no_literal_of_the_type_is_no_number(session: Session, text: str, kinds: tuple[str, ...]) -> None:
    message = session.create_message()
    message.set_string_property("it", text)
    for kind in kinds:
        with pytest.raises(NumberFormatException):
            read(message, kind)


@requirement("3.5.4-3")
def test_real_numbers_are_read_as_java_reads_them(session: Session) -> None:
    message = session.create_message()
    for text, value in {" 1.5 ": 1.5, "1.5d": 1.5, "1.5f": 1.5, "Infinity": float("inf"), "-1e400": float("-inf")}.items():
        message.set_string_property("it", text)
        assert read(message, "double") == read(message, "float") == value
    message.set_string_property("it", "NaN")
    assert repr(read(message, "double")) == "nan"


@requirement("3.5.4-4")
@pytest.mark.parametrize(("text", "value"), [("TRUE", True), ("true", True), ("yes", False), ("1", False), ("", False)])
def test_text_is_true_only_if_it_says_so(session: Session, text: str, value: bool) -> None:
    message = session.create_message()
    message.set_string_property("it", text)
    assert message.get_boolean_property("it") is value


@requirement("3.5.4-5", "B.2.18-1")
@pytest.mark.parametrize("name", ["null", "missing"])
def test_null_reads_like_value_of_null(session: Session, other_session: Session, queue: Queue, name: str) -> None:
    message = session.create_text_message("text")
    message.set_string_property("it", None)
    for one in (message, passed(message, session, queue, other_session)):
        where = "it" if name == "null" else name
        assert one.get_object_property(where) is None
        for kind, result in NULLS.items():
            if isinstance(result, type):
                with pytest.raises(result):
                    read(one, kind, where)
            else:
                assert read(one, kind, where) is result


@requirement("3.5.5-1")
def test_an_object_has_the_type_of_its_class(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    for number, value in enumerate(OBJECTS):
        message.set_object_property(f"it{number}", value)
    for one in (message, passed(message, session, queue, other_session)):
        for number, (value, kind) in enumerate(zip(OBJECTS, KIND_OF_OBJECT, strict=True)):
            got = one.get_object_property(f"it{number}")
            assert got == value
            assert read(one, kind, f"it{number}") == value
            for column in set(TYPES) - set(READABLE[kind]):
                with pytest.raises(MessageFormatException):
                    read(one, column, f"it{number}")


@requirement("3.5.5-1")
@pytest.mark.parametrize("kind", TYPES)
def test_an_object_comes_out_of_what_a_typed_setter_put_in(session: Session, kind: str) -> None:
    message, again = session.create_message(), session.create_message()
    getattr(message, f"set_{kind}_property")("it", STORED[kind])
    got = message.get_object_property("it")
    assert got == STORED[kind]
    again.set_object_property("it", got)
    check_row(again, kind)


@requirement("3.5.5-2")
@pytest.mark.parametrize("value", [[], {}, b"a", Char("a"), object(), 2**63], ids=lambda value: type(value).__name__)
def test_an_object_of_another_class_is_refused(session: Session, context: JMSContext, value: Any) -> None:
    message = session.create_message()
    with pytest.raises(MessageFormatException):
        message.set_object_property("it", value)
    assert not message.property_exists("it")
    with pytest.raises(MessageFormatRuntimeException):
        context.create_producer().set_property("it", value)


@requirement("3.5.5-3")
def test_the_object_of_a_missing_property_is_null(session: Session) -> None:
    assert session.create_message().get_object_property("nothing") is None


@requirement("3.5.5-4")
def test_only_property_types_come_out(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    for number, value in enumerate([*OBJECTS, None]):
        message.set_object_property(f"it{number}", value)
    received = passed(message, session, queue, other_session)
    objects: list[object] = [received.get_object_property(name) for name in received.property_names]
    kinds = {type(value) for value in objects}
    assert kinds <= {bool, Byte, Short, int, Long, Float, float, str, type(None)}
