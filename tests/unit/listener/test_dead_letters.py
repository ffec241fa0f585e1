"""Dead letters: whatever the message bears and whatever was raised, it is forwarded, with what was raised for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi import Message
from jmsapi.listener import ApplicationException, JMSQueueListener, MessageDriven, deploy
from jmsapi.testing import EmbeddedBroker

from .bench import WAIT_S, ignore, wait_until

CAUSE = "jmsapi_dead_letter_cause"
LEFT_OUT = "jmsapi_dead_letter_left_out"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as made:
        yield made


@pytest.fixture
def deployed(broker: EmbeddedBroker) -> Iterator[Callable[..., Any]]:
    made: list[Any] = []

    def run(call: Callable[[str], object], **terms: Any) -> Any:
        def on_message(message: Message) -> None:
            call(str(message.get_body(str)))

        terms = {"destination": "q", "redeliveryLimit": 1, "deadLetterDestination": "dead", **terms}
        target = MessageDriven(terms, name="listener")(JMSQueueListener()(on_message))
        made.append(deploy(target, factory=broker.connection_factory(), on_error=ignore))
        return made[-1]

    yield run
    for one in made:
        assert one.stop(WAIT_S * 1000)


def letters(broker: EmbeddedBroker, number: int) -> dict[str, Message]:
    with broker.connection_factory().create_context() as context:
        consumer = context.create_consumer(context.create_queue("dead"))
        found = [consumer.receive(WAIT_S * 1000) for _ in range(number)]
        assert consumer.receive_no_wait() is None
    return {str(one.get_body(str)): one for one in found if one is not None}


def raising(error: BaseException) -> Callable[[str], object]:
    def call(text: str) -> None:
        raise error

    return call


@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
def test_a_property_that_no_jms_client_can_set_is_named_and_does_not_keep_the_letter(
    broker: EmbeddedBroker, deployed: Callable[..., Any], attribute: str
) -> None:
    foreign = {"content-type": "text/plain", "x-opt.foo": 1, "NULL": 2, "": "nothing", "JMSXGroupSeq": "first"}
    with broker.connection_factory().create_context() as context:
        message: Any = context.create_text_message("foreign")
        message.set_string_property("plain", "kept")
        # As senders of other kinds do it.
        message._properties.update(foreign)
        context.create_producer().send(context.create_queue("q"), message)
    deployed(raising(ValueError("bad")), transactionAttribute=attribute)
    letter = letters(broker, 1)["foreign"]
    assert letter.get_string_property("plain") == "kept"
    assert sorted(str(letter.get_string_property(LEFT_OUT)).split("\n")) == sorted(foreign)
    assert not set(foreign) & set(letter.property_names)


def test_a_letter_of_which_nothing_is_left_out_says_nothing_of_it(broker: EmbeddedBroker, deployed: Callable[..., Any]) -> None:
    broker.queue("q").send("m", properties={"plain": 1, "JMSXGroupSeq": 7})
    deployed(raising(ValueError("bad")))
    letter = letters(broker, 1)["m"]
    assert not letter.property_exists(LEFT_OUT)
    assert (letter.get_int_property("plain"), letter.get_int_property("JMSXGroupSeq")) == (1, 7)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@ApplicationException(rollback=True)
class MuteOfTheApplication(Mute):
    pass


@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("half \udcff of a pair"), "ValueError: half \\udcff of a pair"),
        (Mute(), "Mute: (its text cannot be had: RuntimeError)"),
        (MuteOfTheApplication(), "MuteOfTheApplication: (its text cannot be had: RuntimeError)"),
        (ValueError("x" * 5000), "ValueError: " + "x" * 988),
    ],
    ids=["surrogate", "mute", "mute-application", "long"],
)
def test_a_cause_that_cannot_be_told_as_it_is_does_not_keep_the_letter(
    broker: EmbeddedBroker, deployed: Callable[..., Any], attribute: str, error: BaseException, words: str
) -> None:
    broker.queue("q").send("m")
    deployment = deployed(raising(error), transactionAttribute=attribute)
    assert letters(broker, 1)["m"].get_string_property(CAUSE) == words
    wait_until(lambda: deployment.health.endpoints[0].given_up == 1, "it is counted")


def test_what_another_exception_led_to_is_the_cause_and_not_what_led_to_it(
    broker: EmbeddedBroker, deployed: Callable[..., Any]
) -> None:
    error = ValueError("bad order")
    error.__cause__ = KeyError("price")
    broker.queue("q").send("m")
    deployed(raising(error))
    assert letters(broker, 1)["m"].get_string_property(CAUSE) == "ValueError: bad order"


def test_a_letter_that_is_late_bears_what_was_raised_for_it(broker: EmbeddedBroker, deployed: Callable[..., Any]) -> None:
    def call(text: str) -> None:
        raise ValueError(f"cannot do {text}")

    broker.faults.fail("send", times=1, destination="dead")
    for text in ("A", "B"):
        broker.queue("q").send(text)
    deployed(call, redeliveryLimit=0)
    found = letters(broker, 2)
    assert {text: one.get_string_property(CAUSE) for text, one in found.items()} == {
        "A": "ValueError: cannot do A",
        "B": "ValueError: cannot do B",
    }
