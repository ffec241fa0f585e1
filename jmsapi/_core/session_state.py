"""The state of one session, which its parts share: lock, ledger, consumers, flags, and why its transaction can only roll back.

One lock guards all of it. It is never held while a provider, user code or a future's result is called.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from jmsapi._core.acknowledgement.ledger import Entry, Inbox, Ledger
from jmsapi._core.provider_connection import ProviderConnection
from jmsapi._core.waiting import StateCondition, Steps
from jmsapi.api import Message, MessageListener
from jmsapi.spi import ConsumerSpec, Handle, Level, ProviderError

__all__ = ["Listener", "RollbackReason", "SessionConsumer", "SessionState"]

Listener = MessageListener | Callable[[Message], None]


class SessionConsumer(Protocol):
    """What a session's parts know of a consumer."""

    inbox: Inbox
    handle: Handle
    spec: ConsumerSpec
    listener: Listener | None
    closed: bool
    receiving: int
    """Threads that wait in a receive call."""
    in_line: bool
    """Whether the consumer waits in line for its listener to be called."""
    cause: ProviderError | None
    """Why the broker has ended it."""

    @property
    def exclusive(self) -> bool:
        """Whether no other consumer can have its messages: it is that of an unshared durable subscription."""
        ...

    def run_listener(self, listener: Listener, entry: Entry) -> None:
        """Give one entry to the listener. Without any lock held."""

    def make_room(self) -> None:
        """Let more messages come, since some are acknowledged."""

    def take_credit_back_steps(self) -> Steps[None]:
        """Have nothing more on its way."""
        ...

    def stop_credit_steps(self, timeout: float) -> Steps[None]:
        """Take its credit back for good, before it ends; ``timeout`` in seconds."""
        ...

    def detach(self) -> None:
        """Let nothing come here any more."""

    def let_go(self) -> Future[None] | None:
        """End it at the provider."""


@dataclass(frozen=True, slots=True)
class RollbackReason:
    """Why a transaction can only be rolled back.

    Args:
        cause: What went wrong.
        deliveries_lost: Something that was received in it cannot be accepted any more; else a message of it was not sent.
    """

    cause: Exception
    deliveries_lost: bool


class SessionState:
    """What the parts of one session share; guarded by ``lock`` unless an attribute says otherwise.

    Args:
        link: The connection to the provider.
        mode: One of the four session modes.
        name: For threads and the log.
        lock: Shared with another session; None for one of its own.
    """

    def __init__(self, link: ProviderConnection, mode: int, name: str, lock: threading.Lock | None = None) -> None:
        self.link = link
        self.mode = mode
        self.name = name
        self.lock = lock or threading.Lock()
        self.changed = StateCondition(self.lock)
        self.ledger = Ledger(
            mode,
            max_redeliveries=link.options.max_redeliveries,
            keeps_rejected=link.capabilities.dead_letter.level is Level.NATIVE,
        )
        self.flowing = False
        """The connection is started and this session open: messages may be handed out."""
        self.closing = False
        self.closed = False
        self.consumers: dict[Inbox, SessionConsumer] = {}
        """Consumers the provider knows: open ones, and closed ones that still have something unsettled."""
        self.listening: set[SessionConsumer] = set()
        """Consumers with a listener."""
        self.ready: deque[SessionConsumer] = deque()
        """Consumers whose listener is to be called, in order."""
        self.rollback_only: RollbackReason | None = None
        """Why the running transaction can only be rolled back; None when it can be committed."""
        self.turn: AbstractContextManager[object] = nullcontext()
        """Held while a transaction ends; see ProviderConnection. Not guarded."""

    def offer(self, consumer: SessionConsumer) -> None:
        """Put a consumer in line when it is open and has a listener and something for it. With the lock held."""
        if not consumer.in_line and has_work(consumer):
            consumer.in_line = True
            self.ready.append(consumer)
            self.changed.notify_all()

    def next_ready(self) -> SessionConsumer | None:
        """Take the next consumer out of the line. With the lock held."""
        while self.ready and self.flowing:
            consumer = self.ready.popleft()
            consumer.in_line = False
            if has_work(consumer):
                return consumer
        return None

    def deliveries_lost(self, cause: ProviderError) -> None:
        """What was received in the running transaction cannot be accepted any more. With the lock held."""
        if self.rollback_only is None or not self.rollback_only.deliveries_lost:
            self.rollback_only = RollbackReason(cause, deliveries_lost=True)

    def not_sent(self, error: Exception) -> None:
        """A message of the running transaction was not sent. With the lock held."""
        if self.rollback_only is None:
            self.rollback_only = RollbackReason(error, deliveries_lost=False)

    def take_rollback_only(self) -> RollbackReason | None:
        """Return and forget why the running transaction can only be rolled back. Without the lock."""
        with self.lock:
            reason, self.rollback_only = self.rollback_only, None
            return reason


def has_work(consumer: SessionConsumer) -> bool:
    """Return whether a consumer is open and has a listener and something for it."""
    return consumer.listener is not None and bool(consumer.inbox.buffer) and not consumer.closed
