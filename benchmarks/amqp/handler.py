"""The same work with proton's MessagingHandler, encode and decode included: what run.py compares with.

Run by run.py in a process of its own; prints a line of rates for each round: send, receive, seconds of processor time each.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from proton import Message, byte, int32
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

BODY = "x" * 1024


class _ConnectingHandler(MessagingHandler):
    """What both directions share: the connection."""

    def __init__(self, host: str, user: str, password: str, queue: str, messages: int, **options: Any) -> None:
        super().__init__(**options)
        self._where = (host, user, password)
        self._queue = queue
        self._messages = messages
        self._begun: tuple[float, float] | None = None
        self.rate = 0.0
        self.cpu = 0.0

    def connect(self, event: Any) -> Any:
        host, user, password = self._where
        return event.container.connect(host, user=user, password=password, allowed_mechs="PLAIN", sasl_enabled=True)

    def begin(self) -> None:
        if self._begun is None:
            self._begun = (time.perf_counter(), time.process_time())

    def end(self, event: Any) -> None:
        assert self._begun is not None
        self.rate = self._messages / (time.perf_counter() - self._begun[0])
        self.cpu = time.process_time() - self._begun[1]
        event.connection.close()


class SendingHandler(_ConnectingHandler):
    """Sends as credit allows and counts what was accepted."""

    def on_start(self, event: Any) -> None:
        self._sent = self._accepted = 0
        event.container.create_sender(self.connect(event), self._queue)

    def on_sendable(self, event: Any) -> None:
        self.begin()
        while event.sender.credit and self._sent < self._messages:
            event.sender.send(
                Message(
                    body=BODY,
                    durable=True,
                    id=f"ID:{self._sent}",
                    properties={"a": int32(1), "b": "two", "c": 3.5},
                    annotations={"x-opt-jms-msg-type": byte(5)},
                    creation_time=time.time(),
                )
            )
            self._sent += 1

    def on_accepted(self, event: Any) -> None:
        self._accepted += 1
        if self._accepted == self._messages:
            self.end(event)


class Receiving(_ConnectingHandler):
    """Receives, reads body and properties, and lets the handler accept."""

    def on_start(self, event: Any) -> None:
        self._got = 0
        event.container.create_receiver(self.connect(event), self._queue)

    def on_message(self, event: Any) -> None:
        self.begin()
        if len(event.message.body) != len(BODY) or event.message.properties["a"] != 1:
            raise AssertionError("the wrong message")
        self._got += 1
        if self._got == self._messages:
            self.end(event)


def main() -> None:
    """Run the rounds, then measure single sends with the blocking sender."""
    host, user, password, queue, messages, rounds, single = sys.argv[1:]
    for _ in range(int(rounds)):
        sending = SendingHandler(host, user, password, queue, int(messages))
        Container(sending).run()
        receiving = Receiving(host, user, password, queue, int(messages), prefetch=1000)
        Container(receiving).run()
        print(f"{sending.rate:.1f} {receiving.rate:.1f} {sending.cpu:.4f} {receiving.cpu:.4f}", flush=True)
    connection = BlockingConnection(host, user=user, password=password, allowed_mechs="PLAIN")
    sender = connection.create_sender(f"{queue}.single")  # a queue that run.py has made
    took: list[float] = []
    for _ in range(int(single)):
        begin = time.perf_counter()
        sender.send(Message(body=BODY, durable=True))
        took.append(time.perf_counter() - begin)
    connection.close()
    print(f"{sorted(took)[len(took) // 2] * 1e6:.1f}", flush=True)


main()
