"""7.3 Standard exceptions, of messages and of what a JMSProducer holds."""

from collections.abc import Callable

import pytest

from jmsapi import (
    BytesMessage,
    JMSContext,
    MessageEOFException,
    MessageFormatException,
    MessageFormatRuntimeException,
    MessageNotReadableException,
    NumberFormatException,
    Session,
    StreamMessage,
)
from jmsapi_conformance.marks import requirement

READS: dict[str, Callable[[BytesMessage | StreamMessage], object]] = {
    "boolean": lambda message: message.read_boolean(),
    "byte": lambda message: message.read_byte(),
    "short": lambda message: message.read_short(),
    "char": lambda message: message.read_char(),
    "int": lambda message: message.read_int(),
    "long": lambda message: message.read_long(),
    "float": lambda message: message.read_float(),
    "double": lambda message: message.read_double(),
    "bytes": lambda message: message.read_bytes(bytearray(1)),
}


@requirement("7.3-18")
@pytest.mark.parametrize("kind", ["short", "char", "int", "long", "float", "double"])
def test_the_end_of_bytes_is_reached_also_amid_a_value(session: Session, kind: str) -> None:
    message = session.create_bytes_message()
    message.write_byte(1)
    message.reset()
    with pytest.raises(MessageEOFException):
        READS[kind](message)


@requirement("7.3-18")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_empty_stream_is_at_its_end(session: Session, read: Callable[[BytesMessage | StreamMessage], object]) -> None:
    message = session.create_stream_message()
    message.reset()
    with pytest.raises(MessageEOFException):
        read(message)
    with pytest.raises(MessageEOFException):
        message.read_string()
    with pytest.raises(MessageEOFException):
        message.read_object()


@requirement("7.3-19")
@pytest.mark.parametrize("value", [[], {}, object(), 1j, 2**63], ids=["list", "dict", "object", "complex", "too large"])
def test_a_message_refuses_what_is_none_of_its_types(session: Session, value: object) -> None:
    with pytest.raises(MessageFormatException):
        session.create_stream_message().write_object(value)
    with pytest.raises(MessageFormatException):
        session.create_map_message().set_object("name", value)
    with pytest.raises(MessageFormatException):
        session.create_bytes_message().write_object(value)


@requirement("7.3-20")
@pytest.mark.parametrize("kind", ["byte", "short", "char", "int", "long", "float", "double", "bytes"])
def test_a_boolean_reads_as_nothing_else(session: Session, kind: str) -> None:
    message = session.create_stream_message()
    message.write_boolean(True)
    message.reset()
    with pytest.raises(MessageFormatException):
        READS[kind](message)


@requirement("7.3-21")
def test_a_property_refuses_what_is_none_of_its_types_and_what_it_does_not_convert_to(session: Session) -> None:
    message = session.create_message()
    with pytest.raises(MessageFormatException):
        message.set_object_property("p", [])
    message.set_boolean_property("p", True)
    with pytest.raises(MessageFormatException):
        message.get_int_property("p")


@requirement("7.3-23")
def test_text_that_is_no_number_is_not_a_fault_of_the_format(session: Session) -> None:
    message = session.create_map_message()
    message.set_string_property("p", "abc")
    message.set_string("entry", "abc")
    reads: list[Callable[[], int]] = [lambda: message.get_int_property("p"), lambda: message.get_long("entry")]
    for read in reads:
        with pytest.raises(NumberFormatException) as caught:
            read()
        assert isinstance(caught.value, ValueError)
        assert not isinstance(caught.value, MessageFormatException)


@requirement("7.3-24")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_body_in_write_only_mode_cannot_be_read(
    session: Session, read: Callable[[BytesMessage | StreamMessage], object]
) -> None:
    for message in (session.create_bytes_message(), session.create_stream_message()):
        message.write_int(1)
        with pytest.raises(MessageNotReadableException):
            read(message)


@requirement("7.3-24")
def test_the_length_of_a_body_in_write_only_mode_cannot_be_read(session: Session) -> None:
    with pytest.raises(MessageNotReadableException):
        _ = session.create_bytes_message().body_length
    with pytest.raises(MessageNotReadableException):
        session.create_bytes_message().read_utf()
    with pytest.raises(MessageNotReadableException):
        session.create_stream_message().read_object()


@requirement("7.3-32")
@pytest.mark.parametrize("value", [object(), [], {}, b"bytes", 1j], ids=["object", "list", "dict", "bytes", "complex"])
def test_a_producer_refuses_a_property_of_no_type(context: JMSContext, value: object) -> None:
    producer = context.create_producer()
    with pytest.raises(MessageFormatRuntimeException):
        producer.set_property("p", value)
    assert not producer.property_exists("p")
