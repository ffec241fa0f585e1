"""What a stored broker has when it is opened again, in order or after a crash."""

from __future__ import annotations

import pytest

import jmsapi_inproc
from jmsapi import DeliveryMode, JMSContext, JMSRuntimeException
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short


def test_persistent_messages_are_there_after_a_crash_and_others_are_not(file):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        for i in range(4):
            producer.delivery_mode = DeliveryMode.PERSISTENT if i % 2 else DeliveryMode.NON_PERSISTENT
            producer.send(queue, str(i))
        crashed = file.crashed()
    assert crashed.texts("q") == ["1", "3"]


def test_after_an_end_in_order_all_messages_are_there_once(file):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        context.create_shared_durable_consumer(context.create_topic("t"), "s").close()
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        producer.send(queue, "a").send(context.create_topic("t"), "b")
        producer.delivery_delay = 10
        producer.send(queue, "later")
    with file.context() as context:
        crashed = file.crashed()
        consumer = context.create_consumer(context.create_queue("q"))
        assert [consumer.receive_body(str, 20_000) for _ in range(2)] == ["a", "later"]
        assert context.create_shared_durable_consumer(context.create_topic("t"), "s").receive_body(str, 20_000) == "b"
    assert crashed.texts("q") == [], "what is not persistent came twice"
    assert file.texts("q") == []


def test_order_priority_expiry_and_delivery_time_survive(file):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        for i, priority in enumerate((4, 9, 4, 0, 9)):
            producer.priority = priority
            producer.send(queue, f"{priority}.{i}")
        producer.priority = 5
        producer.time_to_live = 1
        producer.send(queue, "dies")
        producer.time_to_live, producer.delivery_delay = 0, 3_600_000
        producer.send(queue, "not yet")
        producer.delivery_delay = 1
        producer.send(queue, "due meanwhile")
        crashed = file.crashed()
    with crashed.context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        found = [consumer.receive_body(str, 20_000) for _ in range(6)]
        assert consumer.receive_body_no_wait(str) is None, found
    assert sorted(found) == sorted(["9.1", "9.4", "4.0", "4.2", "0.3", "due meanwhile"])
    assert [text for text in found if text != "due meanwhile"] == ["9.1", "9.4", "4.0", "4.2", "0.3"]


def test_what_is_acknowledged_does_not_come_again_and_what_is_not_does(file, take_all):
    with file.context(JMSContext.CLIENT_ACKNOWLEDGE) as context:
        queue = context.create_queue("q")
        for i in range(4):
            context.create_producer().send(queue, str(i))
        consumer = context.create_consumer(queue)
        for _ in range(2):
            message = consumer.receive(20_000)
        message.acknowledge()
        consumer.receive(20_000)
        crashed = file.crashed()
    assert crashed.texts("q") == ["2", "3"]


def test_the_delivery_count_survives(file):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, "x")
        context.commit()
        consumer = context.create_consumer(queue)
        for expected in (1, 2):
            assert consumer.receive(20_000).get_int_property("JMSXDeliveryCount") == expected
            context.rollback()
        consumer.close()
    with file.context() as context:
        message = context.create_consumer(context.create_queue("q")).receive(20_000)
        assert message.get_int_property("JMSXDeliveryCount") == 3
        assert message.jms_redelivered


def test_durable_subscriptions_survive_with_backlog_and_selector(file, take_all):
    with file.context(client_id="me") as context:
        topic = context.create_topic("t")
        context.create_durable_consumer(topic, "own", "n >= 2", True).close()
        context.create_shared_durable_consumer(topic, "shared").close()
        with file.context() as other:
            for i in range(4):
                other.create_producer().set_property("n", i).send(topic, str(i))
        context.create_producer().set_property("n", 9).send(topic, "mine")
        crashed = file.crashed()
    with crashed.context() as other:
        other.create_producer().set_property("n", 7).send(other.create_topic("t"), "new")
    with crashed.context(client_id="me") as context:
        topic = context.create_topic("t")
        context.create_producer().set_property("n", 9).send(topic, "mine again")
        with pytest.raises(JMSRuntimeException):
            context.create_durable_consumer(topic, "shared")
        assert take_all(context.create_durable_consumer(topic, "own", "n >= 2", True)) == ["2", "3", "new"]
        assert take_all(context.create_shared_durable_consumer(topic, "shared")) == [
            "0",
            "1",
            "2",
            "3",
            "mine",
            "new",
            "mine again",
        ]


def test_a_subscription_that_was_ended_does_not_come_back(file):
    with file.context() as context:
        topic = context.create_topic("t")
        context.create_shared_durable_consumer(topic, "s").close()
        context.create_producer().send(topic, "x")
        context.unsubscribe("s")
        crashed = file.crashed()
    with crashed.context() as context:
        consumer = context.create_shared_durable_consumer(context.create_topic("t"), "s")
        assert consumer.receive_no_wait() is None


def test_every_kind_of_message_comes_back_as_it_was(file):
    properties = {
        "bool": True, "byte": Byte(-1), "short": Short(2), "int": Int(3), "long": Long(2**40), "plain": 7, "float": Float(1.5),
        "double": Double(2.5), "text": "ä\0€\N{PILE OF POO}", "JMSXGroupID": "g",
    }  # fmt: skip
    with file.context() as context:
        queue = context.create_queue("q")
        made = [
            context.create_message(),
            context.create_text_message(None),
            context.create_text_message("ä\0€"),
            context.create_bytes_message(),
            context.create_map_message(),
            context.create_stream_message(),
            context.create_object_message({"a": [1, 2]}),
        ]
        made[3].write_bytes(bytes(range(256)))
        made[4].set_bytes("raw", b"\0\xff")
        made[4].set_char("char", Char("\ud800"))
        made[4].set_short("short", 5)
        made[5].write_float(1.5)
        made[5].write_bytes(b"raw")
        made[5].write_string(None)
        for message in made:
            for name, value in properties.items():
                message.set_object_property(name, value)
            message.jms_type, message.jms_correlation_id, message.jms_reply_to = "T", "ID:x", context.create_topic("answers")
            context.create_producer().send(queue, message)
        ids = [message.jms_message_id for message in made]
        crashed = file.crashed()
    with crashed.context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        came = [consumer.receive(20_000) for _ in made]
        assert [message.jms_message_id for message in came] == ids
        for message, sent in zip(came, made, strict=True):
            assert (message.jms_type, message.jms_correlation_id, message.jms_reply_to.topic_name) == ("T", "ID:x", "answers")
            assert message.jms_timestamp == sent.jms_timestamp
            for name, value in properties.items():
                back = message.get_object_property(name)
                assert (back, type(back)) == (value, type(value)) or type(value) in (Int, Double), name
        assert came[1].text is None
        assert came[2].text == "ä\0€"
        assert came[3].get_body(bytes) == bytes(range(256))
        assert (came[4].get_bytes("raw"), came[4].get_char("char"), came[4].get_short("short")) == (b"\0\xff", "\ud800", 5)
        assert (came[5].read_float(), came[5].read_object(), came[5].read_string()) == (1.5, b"raw", None)
        assert came[6].get_body(dict) == {"a": [1, 2]}


def test_a_dead_letter_moves_once_over_a_crash(file):
    with file.context(max_redeliveries=0) as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, "bad")

        def refuse(_):
            raise ValueError("no")

        context.create_consumer(queue).message_listener = refuse
        with file.context(JMSContext.CLIENT_ACKNOWLEDGE) as other:
            assert other.create_consumer(other.create_queue("DLQ.q")).receive(20_000) is not None
            crashed = file.crashed()
    assert crashed.texts("q") == []
    assert crashed.texts("DLQ.q") == ["bad"]


def test_a_connection_that_is_open_when_the_store_is_closed_loses_its_link(file):
    with file.context() as context:
        context.create_producer().send(context.create_queue("q"), "x")
        assert jmsapi_inproc.discard(file.path)
        with pytest.raises(JMSRuntimeException, match="closed"):
            context.create_producer().send(context.create_queue("q"), "y")
    assert file.texts("q") == ["x"]


def test_a_path_from_the_working_directory_names_the_same_file(file, monkeypatch):
    monkeypatch.chdir(file.path.parent)
    import jmsapi

    with file.context() as context, jmsapi.connection_factory(f"inproc://./{file.path.name}").create_context() as other:
        context.create_producer().send(context.create_queue("q"), "x")
        assert other.create_consumer(other.create_queue("q")).receive_body(str, 20_000) == "x"
