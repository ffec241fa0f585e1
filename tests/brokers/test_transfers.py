"""``jmsapi move``, ``replay-dlq``, ``import``, ``export`` on every backend: what is equal afterwards, what a kill leaves."""

from __future__ import annotations

import importlib.util
import json
import logging
import random
import sys
import time
import uuid
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

import jmsapi
from jmsapi import JMSContext, Message, MessageListener
from jmsapi.cli import main
from jmsapi_conformance.brokers import Broker, Wire

KILLS: Final = 2
"""How often each command is killed; ``make transfer-proof`` does it fifty times."""
WAIT_MS: Final = 3_000
DEADLINE_MS: Final = 20_000


def _by_path(folder: str, name: str) -> ModuleType:
    path = Path(__file__).parents[1] / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks for its module there.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_texts: Final = _by_path("unit/cli", "message_texts")
_proof: Final = _by_path("stress", "transfer_proof")


def drained(url: str, name: str, wait_ms: int = WAIT_MS) -> list[Message]:
    with jmsapi.connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(name))
        found: list[Message] = []
        while (message := consumer.receive(wait_ms)) is not None:
            found.append(message)
        return found


def test_export_and_import_give_equal_messages(broker_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, target, file = f"jmsapi-a-{uuid.uuid4()}", f"jmsapi-b-{uuid.uuid4()}", str(tmp_path / "messages")
    with jmsapi.connection_factory(broker_url).create_context() as context:
        queue, producer = context.create_queue(source), context.create_producer().set_priority(6)
        sent = [message for seed in range(25) for message in _texts.messages_of(context, seed)]
        before = [_texts.settable(message) for message in sent]
        for message in sent:
            producer.send(queue, message)
        consume = ["--consume", "--wait", str(WAIT_MS)]
        assert main(["export", source, "--url", broker_url, "--file", file, *consume]) == 0
        assert main(["import", target, "--url", broker_url, "--file", file]) == 0
        capfd.readouterr()
        # What the broker made of the messages on their first way is what the second must keep.
        lines = [json.loads(line) for line in Path(file).read_text().splitlines()]
        assert len(lines) == len(before)
        after = drained(broker_url, target)
    assert [_texts.settable(message) for message in after] == before
    assert {message.jms_priority for message in after} == {6}


def test_a_name_that_does_not_exist_is_told_and_not_made(broker_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    name = f"jmsapi-none-{uuid.uuid4()}"
    with jmsapi.connection_factory(broker_url).create_context() as context:
        has = jmsapi.capabilities(context)
        knows = has.broker not in {"classic", "loopback"}
        for command in (
            ["receive", name, "--timeout", "500"],
            ["purge", name, "--yes", "--wait", "300"],
            ["move", name, "x", "--wait", "300"],
            *([["browse", name], ["stat", name], ["copy", name, "x"]] if has.browser else []),
        ):
            code = main([*command, "--url", broker_url])
            err = capfd.readouterr().err
            assert code == (4 if knows else 3 if command[0] == "receive" else 0), (command, err)
            assert ("--create makes it" in err) is knows
            # Who cannot tell says so, in so many words.
            assert ("does not tell which queues it has" in err) is not knows
        assert main(["receive", name, "--create", "--timeout", "100", "--url", broker_url]) == 3
        assert "does not tell" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["a\nb", " "], ids=["of two lines", "blank"])
def test_a_name_that_no_queue_can_have_is_refused_as_such(broker_url: str, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with jmsapi.connection_factory(broker_url).create_context() as context:
        has = jmsapi.capabilities(context)
    broker = has.broker
    commands = [["send", name, "x"], ["receive", name, "--create", "--timeout", "5000"]]
    if broker == "rabbitmq":  # which is asked by trying
        commands.append(["receive", name, "--timeout", "5000"])
    takes = has.provider == "inproc" or broker == "loopback" or (name == " " and broker != "classic")
    if takes:
        pytest.skip("any name will do there")
    codes = [main([*command, "--url", broker_url]) for command in commands]
    err = capfd.readouterr().err
    assert codes == [1] * len(commands), err
    assert len(err.splitlines()) == len(commands)
    assert "closed the connection" not in err
    assert "--create" not in err


def test_queues_are_listed_and_deleted_where_the_broker_can_tell(broker_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    name = f"jmsapi-listed-{uuid.uuid4()}"
    with jmsapi.connection_factory(broker_url).create_context() as context:
        has = jmsapi.capabilities(context)
        context.create_producer().send(context.create_queue(name), "x")
        code = main(["list", "--json", "--url", broker_url])
        out, err = capfd.readouterr()
        if has.broker in {"classic", "rabbitmq", "loopback"}:
            assert (code, out) == (1, "")
            assert f"{has.broker} over {has.provider} cannot list its queues" in err
            return
        assert code == 0
        assert json.dumps({"queue": name}) in out.splitlines()
        code = main(["delete", name, "--yes", "--url", broker_url])
        out, err = capfd.readouterr()
        if has.broker != "artemis":
            assert code == 1
            assert "has no way to delete a queue" in err
            return
        assert (code, out) == (0, f"queue {name} deleted\n")
        assert main(["stat", name, "--url", broker_url]) == 4
        assert main(["delete", name, "--yes", "--url", broker_url]) == 4


@pytest.mark.broker
@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_a_dead_letter_of_artemis_goes_back_to_where_it_was(
    artemis: Broker, wire: Wire, capfd: pytest.CaptureFixture[str]
) -> None:
    name = f"jmsapi-dead-{uuid.uuid4()}"
    only = ["--selector", f"of = '{name}'"]
    with jmsapi.connection_factory(artemis.url("amqp")).create_context(session_mode=JMSContext.SESSION_TRANSACTED) as context:
        queue = context.create_queue(name)
        context.create_producer().set_property("of", name).set_property("n", jmsapi.Byte(7)).send(queue, "x")
        context.commit()
        for again in (False, True):  # the second time with what the first has left in it
            with context.create_consumer(queue) as consumer:
                message = consumer.receive(DEADLINE_MS)
                assert message is not None
                found = {key: message.get_object_property(key) for key in message.property_names if not key.startswith("JMSX")}
                # Over STOMP the broker shows a number of an AMQP sender as text.
                assert found == {"of": name, "n": "7" if wire == "stomp" and again else 7}
                while message is not None:
                    context.rollback()
                    message = consumer.receive(WAIT_MS)
            assert main(["replay-dlq", "DLQ", "--url", artemis.url(wire), "--wait", "1000", *only]) == 0
            out, err = capfd.readouterr()
            assert (out.split(" in ")[0], err) == ("1 messages replayed", "")


@pytest.mark.broker
@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_a_dead_letter_sent_over_stomp_goes_back_to_where_it_was(
    artemis: Broker, wire: Wire, capfd: pytest.CaptureFixture[str]
) -> None:
    name = f"jmsapi-dead-{uuid.uuid4()}"
    with jmsapi.connection_factory(artemis.url("stomp")).create_context() as context:
        # A sender may write what it likes under the broker's name; the broker knows better.
        producer = context.create_producer().set_property("of", name).set_property("_AMQ_ORIG_QUEUE", "payroll")
        producer.send(context.create_queue(name), "x")
    with jmsapi.connection_factory(artemis.url("amqp")).create_context(session_mode=JMSContext.SESSION_TRANSACTED) as context:
        queue = context.create_queue(name)
        with context.create_consumer(queue) as consumer:
            message = consumer.receive(DEADLINE_MS)
            assert message is not None
            while message is not None:
                context.rollback()
                message = consumer.receive(WAIT_MS)
        only = ["--selector", f"of = '{name}'"]
        assert main(["replay-dlq", "DLQ", "--url", artemis.url(wire), "--wait", "1000", *only]) == 0
        out, err = capfd.readouterr()
        assert (out.split(" in ")[0], err) == ("1 messages replayed", "")
        with context.create_consumer(queue) as consumer:
            assert consumer.receive_body(str, DEADLINE_MS) == "x"
        context.commit()


@pytest.mark.broker
def test_a_dead_letter_of_a_subscription_names_no_queue(artemis: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    name = f"jmsapi-dead-{uuid.uuid4()}"
    with jmsapi.connection_factory(artemis.url("amqp")).create_context(session_mode=JMSContext.SESSION_TRANSACTED) as context:
        topic = context.create_topic(name)
        with context.create_shared_durable_consumer(topic, name) as consumer:
            context.create_producer().set_property("of", name).send(topic, "x")
            context.commit()
            while consumer.receive(WAIT_MS) is not None:
                context.rollback()
        context.unsubscribe(name)
    arguments = ["replay-dlq", "DLQ", "--url", artemis.url("amqp"), "--selector", f"of = '{name}'"]
    assert main([*arguments, "--dry-run", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"would_replay": {}, "left": {"they name no queue; --to gives one": 1}}
    assert main([*arguments, "--to", name]) == 0


@pytest.mark.program
@pytest.mark.timeout(900)
@pytest.mark.parametrize("command", _proof.COMMANDS)
def test_a_kill_at_any_moment_loses_nothing(broker_url: str, command: str) -> None:
    if broker_url.startswith("inproc"):
        pytest.skip("a broker in the process is killed with it")
    outcome = _proof.prove(broker_url, command, KILLS, random.Random(command))
    assert outcome.good, outcome.row()
    assert outcome.kills == KILLS


class Failing(MessageListener):
    """Takes nothing."""

    def on_message(self, message: Message) -> None:
        raise RuntimeError("not this one")


@pytest.mark.broker
@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_dead_letters_of_rabbitmq_name_their_queue_and_can_be_picked(
    rabbitmq: Broker, wire: Wire, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    name = f"jmsapi-dead-{uuid.uuid4()}"
    dead = f"{name}.dead"
    url, arguments = rabbitmq.url(wire), f"x-dead-letter-exchange:;x-dead-letter-routing-key:{dead}"
    factory = jmsapi.connection_factory(url, rabbit_queue_args=arguments, max_redeliveries=1)
    with jmsapi.connection_factory(url).create_context() as other, factory.create_context() as context:
        other.create_consumer(other.create_queue(dead)).close()
        queue, producer = context.create_queue(name), context.create_producer()
        with context.create_consumer(queue) as failing:
            failing.message_listener = Failing()
            for number in range(3):  # the last one has been in the queue of a delay before it died
                producer.set_property("n", number).set_delivery_delay(100 if number == 2 else 0).send(queue, str(number))
            end = time.monotonic() + DEADLINE_MS / 1000
            replay, none = ["replay-dlq", dead, "--url", url, "--wait", "1000", "--json"], [0]
            while none != [3] and time.monotonic() < end:
                assert main([*replay, "--dry-run"]) == 0
                none = list(json.loads(capfd.readouterr().out)["would_replay"].values())
        assert none == [3]
        for picking, count in ((["--cause", "expired"], 0), (["--older-than", "900"], 0), (["--selector", "n = 1"], 1)):
            assert main([*replay, *picking, "--cause" if count else "--limit", "reject" if count else "9"]) == 0
            out, err = capfd.readouterr()
            assert json.loads(out)["messages"] == count
            assert "this broker cannot browse" in err
        assert main([*replay, "--limit", "1", "--cause", "reject"]) == 0
        assert main(replay) == 0
        with context.create_consumer(queue) as consumer:
            back = [consumer.receive(DEADLINE_MS) for _ in range(3)]
    names = {key for message in back if message is not None for key in message.property_names}
    assert sorted(str(message and message.get_body(str)) for message in back) == ["0", "1", "2"]
    assert names <= {"n", "JMSXDeliveryCount", "JMSXUserID", "content-type"}


@pytest.mark.broker
@pytest.mark.parametrize("sender", ["amqp", "stomp"])
def test_a_message_that_expired_is_read_from_the_dead_letter_queue_of_rabbitmq_over_both_wires(
    rabbitmq: Broker, sender: Wire
) -> None:
    name = f"jmsapi-expired-{uuid.uuid4()}"
    dead = f"{name}.dead"
    arguments = f"x-dead-letter-exchange:;x-dead-letter-routing-key:{dead}"
    factory = jmsapi.connection_factory(rabbitmq.url(sender), rabbit_queue_args=arguments)
    with jmsapi.connection_factory(rabbitmq.url(sender)).create_context() as other, factory.create_context() as context:
        other.create_consumer(other.create_queue(dead)).close()
        producer = context.create_producer()
        producer.time_to_live = 50
        for text in ("amqp", "stomp"):
            producer.send(context.create_queue(name), text)
    for wire in ("amqp", "stomp"):
        with jmsapi.connection_factory(rabbitmq.url(wire)).create_context() as context:
            message = context.create_consumer(context.create_queue(dead)).receive(DEADLINE_MS)
            assert message is not None, wire
            assert (message.get_body(str), message.jms_expiration) == (wire, 0)
