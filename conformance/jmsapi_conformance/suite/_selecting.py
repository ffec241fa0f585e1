"""Selectors against messages, for the tests of 3.8: which of a few messages does a selector take?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from jmsapi import Destination, InvalidSelectorException, Session, Value
from jmsapi_conformance.kit import receive_text, send_texts
from jmsapi_conformance.marks import requirement

__all__ = ["Table", "check", "each_refused", "each_table", "is_refused", "one"]

_NEGATED: Final = {"T": "F", "F": "T", "U": "U"}


@dataclass(frozen=True)
class Table:
    """What selectors are to make of messages.

    Attributes:
        messages: The properties of each.
        answers: A letter a message for each selector: T for true, F for false, U for unknown.
    """

    messages: Sequence[Mapping[str, Value]]
    answers: Mapping[str, str]


def one(properties: Mapping[str, Value], answers: Mapping[str, str]) -> Table:
    """Make the table of a single message."""
    return Table([properties], answers)


def check(receiver: Session, sender: Session, destination: Destination, table: Table) -> None:
    """Send the messages of a table to a topic, and see that each selector takes the right ones; so must its negation.

    A last message, which each consumer also asks for, tells that no other one is to come.

    Args:
        receiver: Has a consumer for each selector and one for each negation.
        sender: Of another connection.
        destination: A topic.
        table: What is to come of it.
    """
    expected: dict[str, list[str | None]] = {}
    for selector, letters in table.answers.items():
        assert len(letters) == len(table.messages)
        for text, answers in ((selector, letters), (f"NOT ({selector})", [_NEGATED[letter] for letter in letters])):
            expected[text] = [str(number) for number, letter in enumerate(answers) if letter == "T"]
    consumers = {text: receiver.create_consumer(destination, f"({text}) OR is_last") for text in expected}
    for number, properties in enumerate(table.messages):
        send_texts(sender, destination, str(number), **properties)
    send_texts(sender, destination, "last", is_last=True)
    taken: dict[str, list[str | None]] = {}
    for text, consumer in consumers.items():
        taken[text] = []
        while (received := receive_text(consumer)) != "last":
            taken[text].append(received)
        consumer.close()
    assert taken == expected


def is_refused(session: Session, destination: Destination, selector: str) -> None:
    """See that a consumer with this selector is refused."""
    with pytest.raises(InvalidSelectorException):
        session.create_consumer(destination, selector)


def each_table(tables: Mapping[str, Table]) -> pytest.MarkDecorator:
    """Give a test each table.

    Args:
        tables: Under the ids of the requirements, with blanks between; what follows a colon tells tables of one id apart.
    """
    params = [pytest.param(table, marks=_named(key), id=key) for key, table in tables.items()]
    return pytest.mark.parametrize("table", params)


def each_refused(selectors: Mapping[str, Iterable[str]]) -> pytest.MarkDecorator:
    """Give a test each list of what is no selector; keys as above."""
    params = [pytest.param(list(texts), marks=_named(key), id=key) for key, texts in selectors.items()]
    return pytest.mark.parametrize("selectors", params)


def _named(key: str) -> pytest.MarkDecorator:
    return requirement(*key.partition(":")[0].split())
