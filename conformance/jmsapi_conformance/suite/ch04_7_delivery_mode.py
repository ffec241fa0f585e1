"""4.7 Message delivery mode."""

import pytest

from jmsapi import DeliveryMode, JMSContext, JMSException, JMSRuntimeException, Queue, Session
from jmsapi_conformance.kit import receive
from jmsapi_conformance.marks import requirement


@requirement("4.7-1")
def test_a_producer_takes_the_two_delivery_modes_and_no_other(session: Session, context: JMSContext, queue: Queue) -> None:
    assert (DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT) == (1, 2)
    producer, of_context = session.create_producer(queue), context.create_producer()
    for mode in (DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT):
        producer.delivery_mode = of_context.delivery_mode = mode
        assert (producer.delivery_mode, of_context.delivery_mode) == (mode, mode)
    for wrong in (0, 3, -1):
        with pytest.raises(JMSException):
            producer.delivery_mode = wrong
        with pytest.raises(JMSRuntimeException):
            of_context.delivery_mode = wrong
        with pytest.raises(JMSException):
            producer.send(session.create_message(), delivery_mode=wrong, priority=4, time_to_live_ms=0)
    assert (producer.delivery_mode, of_context.delivery_mode) == (2, 2)


@requirement("4.7-1")
@pytest.mark.parametrize("mode", [DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT])
def test_the_receiver_sees_the_delivery_mode(session: Session, queue: Queue, other_session: Session, mode: int) -> None:
    producer = session.create_producer(queue)
    producer.delivery_mode = mode
    producer.send(session.create_text_message("text"))
    assert receive(other_session.create_consumer(queue)).jms_delivery_mode == mode
