"""Local transactions. All on the I/O thread.

Classic has real ones: acknowledgements carry the transaction. Artemis obeys a STOMP ACK at once whatever it carries, and
RabbitMQ replays, so there (``?emulate=tx``) the sends are committed first and the acknowledgements follow: a crash between
the two repeats messages, it never loses one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jmsapi.spi import ErrorKind, ProviderError, SendResult
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.control import Done
from jmsapi_stomp.frames import command_frame
from jmsapi_stomp.wiring import StompTag, TxHandle, Wiring

__all__ = ["Transactions"]

_DUPLICATE: Final = "; with artemis.dedup that is its answer when one of the messages has an id that it has seen before"


class Transactions:
    """The transactions of a connection."""

    def __init__(self, wiring: Wiring, consumers: Consumers) -> None:
        self._wiring = wiring
        self._consumers = consumers
        self._native = wiring.dialect.transactions == "native"

    def send(self, tx: TxHandle, frame: bytes, token: object) -> None:
        """Send one message in the transaction."""
        dialect = self._wiring.dialect
        self._begin(tx)
        more = f"transaction:{tx.name}\n"
        link = self._wiring.link
        if dialect.confirm_in_transaction:
            link.send(frame, _InTransaction(tx, token), more=more, confirm=True)
        elif dialect.receipts_after_commit:
            tx.open_receipts += 1
            link.confirmed(b"SEND\n" + more.encode() + frame[5:], lambda cause: self._stored(tx, cause))
            self._wiring.events.on_sent([(token, None if link.dead is None else link.dead)])
        else:
            link.send(frame, token, more=more, confirm=False)

    def _begin(self, tx: TxHandle) -> None:
        if not tx.begun:
            tx.begun = True
            self._wiring.link.write(command_frame("BEGIN", [("transaction", tx.name)]))

    def _stored(self, tx: TxHandle, cause: ProviderError | None) -> None:
        tx.open_receipts -= 1
        if cause is not None and tx.failed is None:
            tx.failed = cause
        if tx.open_receipts == 0 and tx.when_quiet is not None:
            call, tx.when_quiet = tx.when_quiet, None
            call()

    def answers(self, results: list[SendResult]) -> list[SendResult]:
        """Note failed sends in their transactions and give the tokens back as the core knows them."""
        plain: list[SendResult] = []
        for token, cause in results:
            if isinstance(token, _InTransaction):
                if isinstance(cause, ProviderError) and token.tx.failed is None:
                    token.tx.failed = cause
                plain.append((token.token, cause))
            else:
                plain.append((token, cause))
        return plain

    def settle(self, tx: TxHandle, tags: Sequence[StompTag]) -> None:
        """Acknowledge in the transaction."""
        tx.acks += tags
        if self._native:
            self._begin(tx)
            self._consumers.acknowledge(tags, None, tx.name)

    def end(self, tx: TxHandle, commit: bool, done: Done) -> None:
        """Commit or roll back."""
        why = self._why_not(tx) if commit else None
        if why is not None:
            dead = self._wiring.link.dead is not None
            cause = ProviderError(ErrorKind.ROLLED_BACK, f"rolled back, for {why}", fatal=dead)
            self._roll_back(tx, lambda _: done(cause))
        elif commit:
            self._commit(tx, done)
        else:
            self._roll_back(tx, done)

    def _why_not(self, tx: TxHandle) -> str | None:
        """Return why a transaction cannot be committed as a whole."""
        if tx.failed is not None:
            return f"a send in it failed: {tx.failed.message}"
        if self._consumers.ended(tx.acks):
            return "a consumer whose message was received in it has ended: the message cannot be acknowledged, and comes again"
        return None

    def _roll_back(self, tx: TxHandle, done: Done) -> None:
        tx.acks = []
        if not tx.begun:
            done(None)
            return
        self._wiring.link.request("cannot roll back", "ABORT", [("transaction", tx.name)], done)

    def _commit(self, tx: TxHandle, done: Done) -> None:
        def committed(cause: ProviderError | None) -> None:
            if cause is not None:
                if cause.kind not in (ErrorKind.IN_DOUBT, ErrorKind.TIMEOUT):
                    # Artemis 2.56 gives no reason in its ERROR.
                    why = _DUPLICATE if self._wiring.options.artemis_dedup else ""
                    text = f"rolled back by the broker: {cause.message}{why}"
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
                self._consumers.forget(acks)
                done(None)
                return
            self._consumers.acknowledge(acks, acknowledged)

        def acknowledged(cause: ProviderError | None) -> None:
            if cause is not None:
                text = f"the sends are committed, the acknowledgements may be not: {cause.message}"
                cause = ProviderError(ErrorKind.IN_DOUBT, text, fatal=cause.fatal)
            done(cause)

        if tx.begun:
            self._wiring.link.request("cannot commit", "COMMIT", [("transaction", tx.name)], committed, doubtful=True)
        else:
            acknowledge()


class _InTransaction:
    """A send's token with the transaction it belongs to."""

    __slots__ = ("token", "tx")

    def __init__(self, tx: TxHandle, token: object) -> None:
        self.tx = tx
        self.token = token
