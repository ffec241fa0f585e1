"""7.2 Exceptions: the two families, and what an exception carries."""

from collections.abc import Callable

import pytest

import jmsapi
from jmsapi import (
    Connection,
    IllegalStateException,
    IllegalStateRuntimeException,
    JMSContext,
    JMSException,
    JMSRuntimeException,
    Queue,
    Session,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import finish, must_wait
from jmsapi_conformance.marks import needs, requirement

CHECKED = {
    name: getattr(jmsapi, name)
    for name in (
        "IllegalStateException",
        "InvalidClientIDException",
        "InvalidDestinationException",
        "InvalidSelectorException",
        "JMSSecurityException",
        "MessageEOFException",
        "MessageFormatException",
        "MessageNotReadableException",
        "MessageNotWriteableException",
        "ResourceAllocationException",
        "TransactionInProgressException",
        "TransactionRolledBackException",
    )
}
UNCHECKED = {
    name: getattr(jmsapi, name)
    for name in (
        "IllegalStateRuntimeException",
        "InvalidClientIDRuntimeException",
        "InvalidDestinationRuntimeException",
        "InvalidSelectorRuntimeException",
        "JMSSecurityRuntimeException",
        "MessageFormatRuntimeException",
        "MessageNotWriteableRuntimeException",
        "ResourceAllocationRuntimeException",
        "TransactionInProgressRuntimeException",
        "TransactionRolledBackRuntimeException",
    )
}
BASES: dict[str, type[JMSException | JMSRuntimeException]] = {
    "JMSException": JMSException,
    "JMSRuntimeException": JMSRuntimeException,
}
BOTH: dict[str, type[JMSException | JMSRuntimeException]] = {**BASES, **CHECKED, **UNCHECKED}


@requirement("7.2-1", "7.2-3")
@pytest.mark.parametrize("kind", CHECKED.values(), ids=CHECKED)
def test_an_exception_of_the_classic_api_is_of_its_family_and_not_of_the_other(kind: type) -> None:
    assert issubclass(kind, JMSException)
    assert not issubclass(kind, JMSRuntimeException)


@requirement("7.2-2", "7.2-3")
@pytest.mark.parametrize("kind", UNCHECKED.values(), ids=UNCHECKED)
def test_an_exception_of_the_simplified_api_is_of_its_family_and_not_of_the_other(kind: type) -> None:
    assert issubclass(kind, JMSRuntimeException)
    assert not issubclass(kind, JMSException)


@requirement("7.2-3")
def test_neither_base_is_of_the_other_family() -> None:
    assert not issubclass(JMSException, JMSRuntimeException)
    assert not issubclass(JMSRuntimeException, JMSException)


CLASSIC_CALLS: dict[str, Callable[[Connection, Session, Queue], object]] = {
    "create_session": lambda connection, _, __: connection.create_session(),
    "start": lambda connection, _, __: connection.start(),
    "create_consumer": lambda _, session, queue: session.create_consumer(queue),
    "create_producer": lambda _, session, queue: session.create_producer(queue),
    "create_text_message": lambda _, session, __: session.create_text_message("text"),
}


@requirement("7.2-4")
@pytest.mark.parametrize("call", CLASSIC_CALLS.values(), ids=CLASSIC_CALLS)
def test_the_classic_api_reports_by_exceptions_of_its_family(
    connection: Connection, session: Session, queue: Queue, call: Callable[[Connection, Session, Queue], object]
) -> None:
    connection.close()
    with pytest.raises(IllegalStateException) as caught:
        call(connection, session, queue)
    assert not isinstance(caught.value, JMSRuntimeException)


@requirement("7.2-4")
def test_producers_and_consumers_of_a_session_report_by_exceptions_of_its_family(session: Session, queue: Queue) -> None:
    producer, consumer, message = session.create_producer(queue), session.create_consumer(queue), session.create_message()
    session.close()
    calls: list[Callable[[], object]] = [lambda: producer.send(message), lambda: consumer.receive(1), consumer.receive_no_wait]
    for call in calls:
        with pytest.raises(IllegalStateException) as caught:
            call()
        assert not isinstance(caught.value, JMSRuntimeException)


SIMPLIFIED_CALLS: dict[str, Callable[[JMSContext, Queue], object]] = {
    "create_consumer": lambda context, queue: context.create_consumer(queue),
    "create_producer": lambda context, _: context.create_producer(),
    "create_context": lambda context, _: context.create_context(JMSContext.AUTO_ACKNOWLEDGE),
    "create_text_message": lambda context, _: context.create_text_message("text"),
    "start": lambda context, _: context.start(),
}


@requirement("7.2-5")
@pytest.mark.parametrize("call", SIMPLIFIED_CALLS.values(), ids=SIMPLIFIED_CALLS)
def test_the_simplified_api_reports_by_exceptions_of_its_family(
    context: JMSContext, queue: Queue, call: Callable[[JMSContext, Queue], object]
) -> None:
    context.close()
    with pytest.raises(IllegalStateRuntimeException) as caught:
        call(context, queue)
    assert not isinstance(caught.value, JMSException)


@requirement("7.2-5")
def test_producers_and_consumers_of_a_context_report_by_exceptions_of_its_family(context: JMSContext, queue: Queue) -> None:
    producer, consumer = context.create_producer(), context.create_consumer(queue)
    context.close()
    for call in (lambda: producer.send(queue, "text"), lambda: consumer.receive(1), lambda: consumer.receive_body(str, 1)):
        with pytest.raises(IllegalStateRuntimeException) as caught:
            call()
        assert not isinstance(caught.value, JMSException)


@requirement("7.2-6", "7.2-12")
def test_calls_of_the_classic_api_report_a_lost_link_in_its_family(interceptor: Interceptor, queue: Queue) -> None:
    session = interceptor.connect().create_session()
    consumer, producer, message = session.create_consumer(queue), session.create_producer(queue), session.create_message()
    pending = must_wait(consumer.receive)
    interceptor.lose()
    with pytest.raises(JMSException) as caught:
        finish(pending)
    assert caught.value.linked_exception is not None
    for call in (lambda: session.create_consumer(queue), lambda: producer.send(message), lambda: consumer.receive(1)):
        with pytest.raises(JMSException) as caught:
            call()
        assert caught.value.linked_exception is not None


@requirement("7.2-7")
def test_calls_of_the_simplified_api_report_a_lost_link_in_its_family(interceptor: Interceptor, queue: Queue) -> None:
    context = interceptor.context()
    consumer, producer = context.create_consumer(queue), context.create_producer()
    pending = must_wait(lambda: consumer.receive_body(str))
    interceptor.lose()
    with pytest.raises(JMSRuntimeException):
        finish(pending)
    for call in (lambda: context.create_consumer(queue), lambda: producer.send(queue, "text"), lambda: consumer.receive(1)):
        with pytest.raises(JMSRuntimeException):
            call()


@requirement("7.2-6", "7.2-7", "7.2-12")
@needs("second_process")
def test_who_cannot_connect_hears_it_in_the_family_of_the_api_and_why(backend: Backend) -> None:
    # Nobody listens on port 1, and a connection refused is known at once.
    factory = backend.factory(host="127.0.0.1", port=1, connect_timeout_ms=5000)
    with pytest.raises(JMSException) as caught, factory.create_connection() as connection:
        connection.create_session()
    assert caught.value.linked_exception is not None
    with pytest.raises(JMSRuntimeException) as also, factory.create_context() as context:
        context.create_message()
    assert also.value.__cause__ is not None


@requirement("7.2-8")
@pytest.mark.parametrize("kind", BASES.values(), ids=BASES)
def test_the_description_is_the_text_of_the_exception(kind: type[JMSException | JMSRuntimeException]) -> None:
    assert str(kind("what went wrong")) == "what went wrong"
    assert str(kind("what went wrong", "E42", ValueError("below"))) == "what went wrong"


@requirement("7.2-9", "B.1.1-1")
@pytest.mark.parametrize("kind", BASES.values(), ids=BASES)
def test_an_error_code_is_there_if_it_was_given(kind: type[JMSException | JMSRuntimeException]) -> None:
    assert kind("what went wrong", "E42").error_code == "E42"
    assert kind("what went wrong").error_code is None


@requirement("7.2-10", "B.1.1-1")
def test_another_exception_can_be_linked_to_a_checked_one() -> None:
    cause = ValueError("below")
    assert JMSException("what went wrong", "E42", cause).linked_exception is cause
    later = JMSException("what went wrong")
    assert later.linked_exception is None
    later.linked_exception = cause
    assert later.linked_exception is cause


@requirement("7.2-11")
def test_another_exception_is_the_cause_of_an_unchecked_one() -> None:
    cause = ValueError("below")
    assert JMSRuntimeException("what went wrong", "E42", cause).__cause__ is cause
    assert JMSRuntimeException("what went wrong").__cause__ is None


@requirement("7.2-13")
def test_all_exceptions_of_the_library_derive_from_one_of_the_two_bases() -> None:
    found = [one for one in vars(jmsapi).values() if isinstance(one, type) and issubclass(one, jmsapi.JMSError)]
    own = set(found) - set(BOTH.values()) - {jmsapi.JMSError}
    assert own, "there are exceptions beyond the standard ones"
    for kind in own:
        assert issubclass(kind, JMSException) != issubclass(kind, JMSRuntimeException)


@requirement("7.2-14")
@pytest.mark.parametrize("kind", BOTH.values(), ids=BOTH)
def test_each_exception_is_built_from_a_reason_a_code_and_a_cause(kind: type[JMSException | JMSRuntimeException]) -> None:
    cause = ValueError("below")
    bare, coded, whole = kind("reason"), kind("reason", "code"), kind("reason", "code", cause)
    assert [str(one) for one in (bare, coded, whole)] == ["reason"] * 3
    assert (coded.error_code, whole.error_code) == ("code", "code")
    assert (bare.linked_exception, coded.linked_exception, whole.linked_exception) == (None, None, cause)


@requirement("7.3-31")
def test_every_checked_exception_has_an_unchecked_counterpart_but_those_of_reading() -> None:
    for name in [*CHECKED, "JMSException"]:
        counterpart = name.replace("Exception", "RuntimeException")
        assert hasattr(jmsapi, counterpart) == (name not in ("MessageEOFException", "MessageNotReadableException"))
