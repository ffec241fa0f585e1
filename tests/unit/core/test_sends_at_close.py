"""Asynchronous sends without an answer when their session closes: each says what is known of it."""

from __future__ import annotations

import uuid

import pytest

import jmsapi
from jmsapi import CompletionListener, JMSException, Message
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import Envelope, ErrorKind, Handle, Provider, ProviderError


class Unwritten(Forwarding):
    """Keeps sends back, as a broker without credit does; some of them are written all the same.

    Args:
        below: The provider.
        events: Of the connection.
        written: How many were written.
    """

    def __init__(self, below: Provider, events: jmsapi.spi.Events, written: int) -> None:
        super().__init__(below)
        self._told = events
        self.waiting: list[object] = []
        self.written = written

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        if self.written:
            self.written -= 1
        else:
            self.waiting.append(token)

    def take_back(self, token: object) -> None:
        if token in self.waiting:
            self.waiting.remove(token)
            self._told.on_sent([(token, ProviderError(ErrorKind.TIMEOUT, "it was not sent and will not be"))])


class Outcomes(CompletionListener):
    def __init__(self) -> None:
        self.codes: list[str | None] = []

    def on_completion(self, message: Message) -> None:
        self.codes.append("sent")

    def on_exception(self, message: Message, exception: JMSException) -> None:
        self.codes.append(exception.error_code)


@pytest.mark.parametrize("what", ["session", "connection"])
def test_what_was_never_written_is_taken_back_and_only_what_was_is_in_doubt(what: str) -> None:
    url = f"inproc://unwritten-{uuid.uuid4().hex}?close_timeout_ms=200"
    with jmsapi.connection_factory(url).create_connection() as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue("q"))
        link = connection.link  # type: ignore[attr-defined]
        link.provider = Unwritten(link.provider, link, written=1)
        outcomes = Outcomes()
        for text in ("written", "not written", "not written either"):
            producer.send(session.create_text_message(text), completion_listener=outcomes)
        (session if what == "session" else connection).close()
        assert outcomes.codes == ["in-doubt", "timeout", "timeout"]
