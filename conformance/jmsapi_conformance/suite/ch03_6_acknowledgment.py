"""3.6 Message acknowledgment, as far as the message has a part in it."""

import pytest

from jmsapi import Connection, Queue, Session
from jmsapi_conformance.kit import receive, receive_text, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("3.6-1")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_acknowledging_what_acknowledges_itself_does_nothing(
    connection: Connection, other_session: Session, queue: Queue, mode: int
) -> None:
    consumer = connection.create_session(mode).create_consumer(queue)
    send_texts(other_session, queue, "1", "2")
    first = receive(consumer)
    first.acknowledge()
    first.acknowledge()
    assert (text_of(first), receive_text(consumer)) == ("1", "2")


@requirement("3.6-1")
@needs("transactions")
def test_acknowledging_in_a_transaction_does_nothing(connection: Connection, other_session: Session, queue: Queue) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = transacted.create_consumer(queue)
    send_texts(other_session, queue, "1")
    receive(consumer).acknowledge()
    transacted.rollback()
    assert receive_text(consumer) == "1"
    transacted.commit()
