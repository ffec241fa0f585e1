"""4.3.1 Authentication."""

import pytest

from jmsapi import ConnectionFactory, JMSSecurityException, JMSSecurityRuntimeException, Queue, Session
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.kit import receive_text, send_texts
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._credentials import credentials_of


@requirement("4.3.1-1", "11.2.1-7")
def test_credentials_are_given_when_a_connection_or_a_context_is_created(
    backend: Backend, queue: Queue, other_session: Session
) -> None:
    user, password = credentials_of(backend)
    factory = backend.factory(user=None, password=None)
    with factory.create_connection(user, password) as connection:
        send_texts(connection.create_session(), queue, "from a connection")
    with factory.create_context(user, password) as context:
        context.create_producer().send(queue, "from a context")
    consumer = other_session.create_consumer(queue)
    assert [receive_text(consumer), receive_text(consumer)] == ["from a connection", "from a context"]


@requirement("4.3.1-1", "7.3-8", "7.3-9", "11.2.1-7")
def test_wrong_credentials_are_refused(backend: Backend, factory: ConnectionFactory) -> None:
    user, password = credentials_of(backend)
    if password is None:
        pytest.skip("the URL of this backend has no credentials, so nobody checks them")
    # A connection may be made lazily, but no later than its first use.
    with pytest.raises(JMSSecurityException), factory.create_connection(user, password + " wrong") as connection:
        connection.create_session()
    with pytest.raises(JMSSecurityRuntimeException), factory.create_context(user, password + " wrong") as context:
        context.create_message()


@requirement("4.3.1-2")
def test_without_credentials_the_configured_identity_is_used(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    with factory.create_connection() as connection:
        send_texts(connection.create_session(), queue, "text")
    assert receive_text(other_session.create_consumer(queue)) == "text"
