"""3.3 JMS messages: header, properties and body; 3.7 The Message interface."""

from jmsapi import (
    BytesMessage,
    Float,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Session,
    StreamMessage,
    TextMessage,
)
from jmsapi_conformance.kit import own_names
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._kinds import INTERFACES, body_of, each_kind, filled, new

HEADER = (
    *("jms_destination", "jms_delivery_mode", "jms_message_id", "jms_timestamp", "jms_correlation_id", "jms_reply_to"),
    *("jms_redelivered", "jms_type", "jms_expiration", "jms_priority", "jms_delivery_time"),
)
TYPES: dict[str, object] = {
    "boolean": True,
    "byte": -1,
    "short": 300,
    "int": 70_000,
    "long": 2**40,
    "float": 1.5,
    "double": 0.1,
    "string": "text",
}


@requirement("3.3-1")
@each_kind
def test_each_kind_has_the_eleven_header_fields(session: Session, kind: str) -> None:
    message = new(session, kind)
    values = {name: getattr(message, name) for name in HEADER}
    assert len(values) == 11
    assert values["jms_message_id"] is values["jms_destination"] is None


@requirement("3.3-2")
@each_kind
def test_each_kind_has_properties_that_touch_neither_header_nor_body(session: Session, kind: str) -> None:
    message = filled(session, kind)
    before = {name: getattr(message, name) for name in HEADER}
    for name, value in TYPES.items():
        getattr(message, f"set_{name}_property")(name, value)
    assert {name: getattr(message, f"get_{name}_property")(name) for name in TYPES} == TYPES
    assert own_names(message) == set(TYPES)
    assert {name: getattr(message, name) for name in HEADER} == before
    assert body_of(message) == body_of(filled(session, kind))


@requirement("3.3-3", "3.7-1")
def test_five_kinds_of_body_are_five_kinds_of_message(session: Session) -> None:
    messages = {kind: new(session, kind) for kind in INTERFACES}
    bodies = (TextMessage, BytesMessage, MapMessage, StreamMessage, ObjectMessage)
    for kind, message in messages.items():
        assert isinstance(message, Message)
        assert [body for body in bodies if isinstance(message, body)] == [body for body in bodies if body is INTERFACES[kind]]
    assert all(issubclass(body, Message) for body in bodies)


@requirement("3.7-1")
@each_kind
def test_what_the_root_declares_is_usable_on_each_kind(session: Session, kind: str) -> None:
    message = filled(session, kind)
    message.jms_type = "type"
    message.set_object_property("f", Float(1.5))
    message.set_object_property("l", Long(5))
    message.acknowledge()
    message.clear_body()
    assert (message.jms_type, message.get_float_property("f"), message.get_long_property("l")) == ("type", 1.5, 5)
    message.clear_properties()
    assert own_names(message) == set()
