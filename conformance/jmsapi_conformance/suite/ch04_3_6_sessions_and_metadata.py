"""4.3.6 Sessions of a connection and 4.3.7 ConnectionMetaData."""

import pytest

from jmsapi import Connection, JMSContext, Session
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import receive, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement

MODES = [
    Session.AUTO_ACKNOWLEDGE,
    Session.CLIENT_ACKNOWLEDGE,
    Session.DUPS_OK_ACKNOWLEDGE,
    pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions")),
]


@requirement("4.3.6-1")
@pytest.mark.parametrize("mode", MODES)
def test_a_connection_creates_many_sessions_that_work_side_by_side(connection: Connection, names: Names, mode: int) -> None:
    sessions = [connection.create_session(mode if number % 2 else Session.AUTO_ACKNOWLEDGE) for number in range(50)]
    queues = [session.create_queue(names.queue()) for session in sessions]
    for number, (session, queue) in enumerate(zip(sessions, queues, strict=True)):
        send_texts(session, queue, str(number))
        if session.transacted:
            session.commit()
    for number, (session, queue) in enumerate(zip(sessions, queues, strict=True)):
        assert session.acknowledge_mode == (mode if number % 2 else Session.AUTO_ACKNOWLEDGE)
        message = receive(session.create_consumer(queue))
        assert text_of(message) == str(number)
        message.acknowledge()
        if session.transacted:
            session.commit()


@requirement("4.3.7-1")
def test_the_metadata_tell_the_versions_and_the_provider(connection: Connection, context: JMSContext) -> None:
    for meta in (connection.meta_data, context.meta_data):
        assert (meta.jms_version, meta.jms_major_version, meta.jms_minor_version) == ("2.0", 2, 0)
        assert meta.jms_provider_name.strip()
        assert meta.provider_version.strip()
        assert meta.provider_version.startswith(f"{meta.provider_major_version}.{meta.provider_minor_version}")
        assert {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"} <= set(meta.jmsx_property_names)
