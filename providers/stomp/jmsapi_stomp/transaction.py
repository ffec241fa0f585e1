"""Local transactions. All of it runs on the I/O thread.

Classic has real ones: acknowledgements carry the transaction. A receipt makes it store a persistent message by itself, so only
the first SEND to a destination of a connection asks for one, each to a temporary destination, which may end at any time, and
each whose answer a completion listener is told. Of the others it tells a refusal twice: by an ERROR that names no frame, which
may come late, for another thread of the broker writes it, and by refusing COMMIT. What it cannot read it refuses by the ERROR
alone, which comes before the answer to the next frame; so a frame that changes nothing, the BEGIN of the transaction after this
one, is answered before COMMIT is written.

Artemis obeys a STOMP ACK at once whatever it carries, and RabbitMQ replays, so there (``?emulate=tx``) the sends are committed
first and the acknowledgements follow: a crash between the two repeats messages, it never loses one. Artemis tells which SEND it
has refused only where that asked for a receipt, for it may confirm a COMMIT without it before its ERROR.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from jmsapi.spi import Address, ErrorKind, ProviderError, SendResult
from jmsapi_stomp.answers import Done
from jmsapi_stomp.behaviour import SendsInTransaction
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.handles import StompTag, StompTxHandle
from jmsapi_stomp.settlement import StompSettlement

__all__ = ["StompTransactions"]

_REMEMBERED: Final = 1000
"""Destinations of which it is kept that the broker takes messages for them."""


class StompTransactions:
    """The transactions of a connection."""

    def __init__(self, context: StompContext, settlement: StompSettlement) -> None:
        self._context = context
        self._settlement = settlement
        self._native = context.behaviour.transactions == "native"
        self._asked: set[Address] = set()
        """Destinations to which a SEND with a receipt was written, and not refused."""
        self._trusting: set[StompTxHandle] = set()
        """Open transactions with sends that asked for no receipt."""
        self._late_errors = 0
        """How many ERRORs that name no frame may still come for sends of transactions that were rolled back."""
        self._begun: list[str] = []
        """Transactions that the broker has begun and that nothing is in."""
        self._fences = count(1)

    def send(self, tx: StompTxHandle, frame: bytes, token: object, address: Address) -> None:
        """Send one message in the transaction."""
        if tx.ended:
            self._context.events.on_sent([(token, _ended())])
            return
        how = self._context.behaviour.sends_in_transaction
        self._begin(tx)
        more = f"transaction:{tx.name}\n"
        connection = self._context.connection
        fenced = how is SendsInTransaction.FENCED
        asked = fenced and (self._is_to_be_asked(address) or bool(getattr(token, "wants_answer", False)))
        if asked or how is SendsInTransaction.CONFIRMED:
            connection.send(frame, _InTransaction(tx, token, address), more=more, confirm=True)
        elif how is SendsInTransaction.STORED:
            tx.open_receipts += 1
            connection.confirmed(b"SEND\n" + more.encode() + frame[5:], lambda cause: self._stored(tx, cause))
            self._context.events.on_sent([(token, connection.dead)])
        else:
            tx.unconfirmed += 1
            self._trusting.add(tx)
            connection.send(frame, token, more=more, confirm=False)

    def _is_to_be_asked(self, address: Address) -> bool:
        """Return whether a SEND to a destination needs a receipt, and record that it has one."""
        if address.kind.is_temporary:
            return True
        if address in self._asked:
            return False
        if len(self._asked) >= _REMEMBERED:
            self._asked.clear()
        self._asked.add(address)
        return True

    def _begin(self, tx: StompTxHandle) -> None:
        if tx.begun:
            return
        tx.begun = True
        if self._begun:
            tx.name = self._begun.pop()
        else:
            self._context.connection.write(command_frame("BEGIN", [("transaction", tx.name)]))

    def _stored(self, tx: StompTxHandle, cause: ProviderError | None) -> None:
        tx.open_receipts -= 1
        if cause is not None and tx.failed is None:
            tx.failed = cause
        if tx.open_receipts == 0 and tx.when_quiet is not None:
            call, tx.when_quiet = tx.when_quiet, None
            call()

    def answers(self, results: list[SendResult]) -> list[SendResult]:
        """Record failed sends in their transactions and return the tokens as the core knows them."""
        plain: list[SendResult] = []
        for token, cause in results:
            if isinstance(token, _InTransaction):
                if isinstance(cause, ProviderError):
                    self._asked.discard(token.address)
                    token.tx.failed = token.tx.failed or cause
                plain.append((token.token, cause))
            else:
                plain.append((token, cause))
        return plain

    def refused(self, text: str, error: ProviderError) -> bool:
        """Take an ERROR that names no frame for that of a send without a receipt; False when it may be about something else.

        It does not tell of which transaction, so all fail that it may be.
        """
        context = self._context
        if context.connection.sent_unconfirmed or not context.behaviour.may_refuse_send(text):
            return False
        self._asked.clear()
        if not self._trusting and not self._late_errors:
            return False
        for tx in self._trusting:
            tx.failed = tx.failed or error
        if not self._trusting:
            self._late_errors -= 1
        return True

    def settle(self, tx: StompTxHandle, tags: Sequence[StompTag]) -> None:
        """Acknowledge in the transaction; one that has ended takes nothing more, so the messages come again."""
        if tx.ended:
            return
        tx.acks += tags
        if self._native:
            self._begin(tx)
            self._settlement.acknowledge(tags, None, tx.name)

    def end(self, tx: StompTxHandle, commit: bool, done: Done) -> None:
        """Commit or roll back, once: Classic 6.3.1 answers the second end of a transaction in the middle of other frames.

        A session that is closed while another thread commits asks for both.
        """
        if tx.ended:
            done(_ended())
            return
        tx.ended = True
        if not commit:
            self._roll_back(tx, done)
        elif tx.unconfirmed and self._why_not(tx) is None:
            self._fence(tx, done)
        else:
            self._commit_whole(tx, done)

    def _fence(self, tx: StompTxHandle, done: Done) -> None:
        """Commit when the broker has answered a frame behind the sends: by then it has told which of them it could not read."""
        name = f"{self._context.identity}.f{next(self._fences)}"

        def answered(cause: ProviderError | None) -> None:
            if cause is None:
                self._begun.append(name)
                self._commit_whole(tx, done)
                return
            # COMMIT has not been written and never will be.
            text = f"rolled back, for it is not known whether the broker took all sends in it: {cause.message}"
            self._roll_back(tx, lambda _: None)
            done(ProviderError(ErrorKind.ROLLED_BACK, text, fatal=cause.fatal))

        self._context.connection.request("cannot commit", "BEGIN", [("transaction", name)], answered)

    def _commit_whole(self, tx: StompTxHandle, done: Done) -> None:
        """Commit, unless a part would be missing: then roll back."""
        why = self._why_not(tx)
        if why is None:
            self._commit(tx, done)
            return
        dead = self._context.connection.dead is not None
        cause = ProviderError(ErrorKind.ROLLED_BACK, f"rolled back, for {why}", fatal=dead)
        self._roll_back(tx, lambda _: done(cause))

    def _why_not(self, tx: StompTxHandle) -> str | None:
        """Return why a transaction cannot be committed as a whole."""
        if tx.failed is not None:
            return f"a send in it failed: {tx.failed.message}"
        if self._settlement.any_ended(tx.acks):
            return "a consumer whose message was received in it has ended: the message cannot be acknowledged, and comes again"
        return None

    def _roll_back(self, tx: StompTxHandle, done: Done) -> None:
        tx.acks = []
        self._trusting.discard(tx)
        self._late_errors += tx.unconfirmed
        if not tx.begun:
            done(None)
            return
        self._context.connection.request("cannot roll back", "ABORT", [("transaction", tx.name)], done)

    def _commit_refused(self, tx: StompTxHandle, cause: ProviderError) -> ProviderError:
        """Return the error of a commit that the broker has refused, when nothing of it can come to anything any more."""
        context, connection = self._context, self._context.connection
        text = f"rolled back by the broker: {cause.message}{context.behaviour.refused_commit_hint}"
        self._asked.clear()
        self._late_errors += tx.unconfirmed
        if tx.acks and context.behaviour.refused_commit_keeps and connection.dead is None:
            ended = f"the connection is closed so that what was received comes again, for {cause.message}"
            connection.end(ProviderError(ErrorKind.CONNECTION, ended, fatal=True))
        return ProviderError(ErrorKind.ROLLED_BACK, text, fatal=connection.dead is not None)

    def _commit(self, tx: StompTxHandle, done: Done) -> None:
        def committed(cause: ProviderError | None) -> None:
            self._trusting.discard(tx)
            if cause is not None:
                done(cause if cause.kind in (ErrorKind.IN_DOUBT, ErrorKind.TIMEOUT) else self._commit_refused(tx, cause))
            elif tx.open_receipts:
                tx.when_quiet = acknowledge
            else:
                acknowledge()

        def acknowledge() -> None:
            if tx.failed is not None:
                text = f"the broker stored only a part of the transaction: {tx.failed.message}"
                done(ProviderError(ErrorKind.IN_DOUBT, text, fatal=tx.failed.fatal))
                return
            acks, tx.acks = tx.acks, []
            self._late_errors = 0
            if self._native:
                self._settlement.forget(acks)
                done(None)
                return
            self._settlement.acknowledge(acks, acknowledged)

        def acknowledged(cause: ProviderError | None) -> None:
            if cause is not None:
                text = f"the sends are committed, the acknowledgements may be not: {cause.message}"
                cause = ProviderError(ErrorKind.IN_DOUBT, text, fatal=cause.fatal)
            done(cause)

        if tx.begun:
            self._context.connection.request("cannot commit", "COMMIT", [("transaction", tx.name)], committed, doubtful=True)
        else:
            acknowledge()


def _ended() -> ProviderError:
    return ProviderError(ErrorKind.CLOSED, "the transaction has been committed or rolled back already")


class _InTransaction:
    """A send's token with the transaction it belongs to."""

    __slots__ = ("address", "token", "tx")

    def __init__(self, tx: StompTxHandle, token: object, address: Address) -> None:
        self.tx = tx
        self.address = address
        self.token = token
