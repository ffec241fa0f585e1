"""Local transactions. All of it runs on the I/O thread.

Classic has real ones: acknowledgements carry the transaction. Artemis obeys a STOMP ACK at once whatever it carries, and
RabbitMQ replays, so there (``?emulate=tx``) the sends are committed first and the acknowledgements follow: a crash between
the two repeats messages, it never loses one.
"""

from __future__ import annotations

from collections.abc import Sequence

from jmsapi.spi import ErrorKind, ProviderError, SendResult
from jmsapi_stomp.answers import Done
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.handles import StompTag, StompTxHandle
from jmsapi_stomp.settlement import StompSettlement

__all__ = ["StompTransactions"]


class StompTransactions:
    """The transactions of a connection."""

    def __init__(self, context: StompContext, settlement: StompSettlement) -> None:
        self._context = context
        self._settlement = settlement
        self._native = context.behaviour.transactions == "native"

    def send(self, tx: StompTxHandle, frame: bytes, token: object) -> None:
        """Send one message in the transaction."""
        if tx.ended:
            self._context.events.on_sent([(token, _ended())])
            return
        behaviour = self._context.behaviour
        self._begin(tx)
        more = f"transaction:{tx.name}\n"
        connection = self._context.connection
        if behaviour.confirm_in_transaction:
            connection.send(frame, _InTransaction(tx, token), more=more, confirm=True)
        elif behaviour.receipts_after_commit:
            tx.open_receipts += 1
            connection.confirmed(b"SEND\n" + more.encode() + frame[5:], lambda cause: self._stored(tx, cause))
            self._context.events.on_sent([(token, connection.dead)])
        else:
            connection.send(frame, token, more=more, confirm=False)

    def _begin(self, tx: StompTxHandle) -> None:
        if not tx.begun:
            tx.begun = True
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
                if isinstance(cause, ProviderError) and token.tx.failed is None:
                    token.tx.failed = cause
                plain.append((token.token, cause))
            else:
                plain.append((token, cause))
        return plain

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
        why = self._why_not(tx) if commit else None
        if why is not None:
            dead = self._context.connection.dead is not None
            cause = ProviderError(ErrorKind.ROLLED_BACK, f"rolled back, for {why}", fatal=dead)
            self._roll_back(tx, lambda _: done(cause))
        elif commit:
            self._commit(tx, done)
        else:
            self._roll_back(tx, done)

    def _why_not(self, tx: StompTxHandle) -> str | None:
        """Return why a transaction cannot be committed as a whole."""
        if tx.failed is not None:
            return f"a send in it failed: {tx.failed.message}"
        if self._settlement.any_ended(tx.acks):
            return "a consumer whose message was received in it has ended: the message cannot be acknowledged, and comes again"
        return None

    def _roll_back(self, tx: StompTxHandle, done: Done) -> None:
        tx.acks = []
        if not tx.begun:
            done(None)
            return
        self._context.connection.request("cannot roll back", "ABORT", [("transaction", tx.name)], done)

    def _commit(self, tx: StompTxHandle, done: Done) -> None:
        def committed(cause: ProviderError | None) -> None:
            if cause is not None:
                if cause.kind not in (ErrorKind.IN_DOUBT, ErrorKind.TIMEOUT):
                    text = f"rolled back by the broker: {cause.message}{self._context.behaviour.refused_commit_hint}"
                    cause = ProviderError(ErrorKind.ROLLED_BACK, text, fatal=cause.fatal)
                done(cause)
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

    __slots__ = ("token", "tx")

    def __init__(self, tx: StompTxHandle, token: object) -> None:
        self.tx = tx
        self.token = token
