"""Transaction branches of distributed transactions, by the names that a transaction manager gave them.

A session works in at most one branch at a time; a branch may have several sessions, and outlives them. Their work is collected
here and takes effect when the branch commits. In a stored broker a prepared branch is in the file and is there again after a
restart; one that is not prepared is forgotten then, as the standard's "presumed abort" has it. The broker decides nothing by
itself, so there are no heuristic outcomes.

Every method is called under the broker's lock.

Spec: 8.3.3-2, 8.3.3-3, 8.3.5-1 to 8.3.5-4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, NoReturn, Protocol, TypeVar

from jmsapi import xa
from jmsapi.spi import DONE, Address, BranchError, BranchId, Envelope, ErrorKind, ProviderError, answered, completed
from jmsapi_inproc.messages import QueuedMessage, SendingConnection
from jmsapi_inproc.queue import BrokerQueue, DeliveryContext
from jmsapi_inproc.session import InProcessSession
from jmsapi_inproc.subscriptions import BrokerTopic
from jmsapi_inproc.transaction import InProcessTransaction
from jmsapi_inproc.write_batch import BatchWriter, WriteBatch

__all__ = ["Accepted", "BranchSend", "BranchStorage", "Branches", "PreparedBranch", "StoredBranch"]

T = TypeVar("T")
_START_FLAGS: Final = (xa.TMNOFLAGS, xa.TMJOIN, xa.TMRESUME)
_END_FLAGS: Final = (xa.TMSUCCESS, xa.TMFAIL, xa.TMSUSPEND)


class BranchSend(NamedTuple):
    """A message that was sent in a branch."""

    envelope: Envelope
    sender: SendingConnection


Accepted = tuple[BrokerQueue, QueuedMessage]
"""A message that was acknowledged in a branch, and its queue."""


@dataclass
class StoredBranch:
    """What the file has of a prepared branch; in a broker in memory, nothing."""

    number: int = 0
    sent: list[int] = field(default_factory=list[int])
    """The keys of the messages it has sent."""


class PreparedBranch(NamedTuple):
    """A prepared branch that was found in the file."""

    name: BranchId
    stored: StoredBranch
    sent: list[BranchSend]
    accepted: list[Accepted]


class BranchStorage(Protocol):
    """Prepared branches in the file of a stored broker."""

    @property
    def writer(self) -> BatchWriter:
        """What writes batches."""
        ...

    def restored(self) -> Iterator[PreparedBranch]:
        """Return the branches of the file."""
        ...

    def add(
        self, batch: WriteBatch, name: BranchId, sent: Sequence[BranchSend], accepted: Sequence[Accepted]
    ) -> tuple[StoredBranch, list[Accepted]]:
        """Write a branch; return what the file has of it, and what it has acknowledged as that is once the batch is written."""
        ...

    def remove(self, batch: WriteBatch, branch: StoredBranch) -> None:
        """Remove a branch from the file."""


class _Branch:
    """The work done in one branch."""

    def __init__(self, name: BranchId) -> None:
        self.name = name
        self.working: dict[InProcessSession, InProcessTransaction] = {}
        self.suspended: set[InProcessSession] = set()
        self.sent: list[BranchSend] = []
        self.accepted: list[Accepted] = []
        self.rollback_only = False
        self.prepared: StoredBranch | None = None
        self.busy = False
        """Its prepare or its end is being written."""

    def take(self, work: InProcessTransaction) -> None:
        """Take over the work of a session."""
        sent, accepted = work.hand_over()
        self.sent += [BranchSend(envelope, work.sender) for _, envelope in sent]
        self.accepted += [(one.consumer.queue, one.message) for one in accepted]

    def set_prepared(self, stored: StoredBranch, accepted: list[Accepted]) -> None:
        """Mark it as prepared."""
        self.prepared = stored
        self.accepted = accepted


class Branches:
    """All branches of a broker that have begun and not ended.

    Args:
        context: Of the broker.
        resolve: Returns the queue or topic of an address.
    """

    def __init__(self, context: DeliveryContext, resolve: Callable[[Address], BrokerQueue | BrokerTopic]) -> None:
        self._context = context
        self._resolve = resolve
        self._storage: BranchStorage | None = None
        self._by_name: dict[BranchId, _Branch] = {}

    def __bool__(self) -> bool:
        """Whether there is a branch that only this process knows."""
        return any(branch.prepared is None for branch in self._by_name.values())

    def restore(self, storage: BranchStorage) -> None:
        """Keep prepared branches in a file from now on, and take up those that are there."""
        self._storage = storage
        for name, stored, sent, accepted in storage.restored():
            branch = self._by_name[name] = _Branch(name)
            branch.prepared = stored
            branch.sent = sent
            branch.accepted = accepted
            for queue, _ in accepted:
                queue.enlisted += 1

    def start(self, session: InProcessSession, name: BranchId, flags: int) -> InProcessTransaction:
        """Associate a session with a branch; see ``jmsapi.spi.XAProvider``."""
        if flags not in _START_FLAGS:
            raise BranchError(xa.XAER_INVAL, f"start: the flags {flags:#x} are none of TMNOFLAGS, TMJOIN, TMRESUME")
        if session.transaction is not None or not session.transacted:
            raise BranchError(xa.XAER_PROTO, "start: the session works in a transaction already, or has none at all")
        branch = self._by_name.get(name)
        if flags == xa.TMNOFLAGS:
            if branch is not None:
                raise BranchError(xa.XAER_DUPID, "start: there is a branch of that name; TMJOIN joins it")
            branch = self._by_name[name] = _Branch(name)
        else:
            branch = self._find(name, "start")
            if branch.prepared is not None:
                raise BranchError(xa.XAER_PROTO, "start: the branch is prepared")
            if flags == xa.TMRESUME and session not in branch.suspended:
                raise BranchError(xa.XAER_PROTO, "start: this session has not suspended its work in the branch")
            if branch.rollback_only:
                raise BranchError(xa.XA_RBROLLBACK, "start: the branch can only be rolled back")
            branch.suspended.discard(session)
        work = branch.working[session] = session.begin()
        return work

    def end(self, session: InProcessSession, name: BranchId, flags: int) -> Future[None]:
        """End the association; see ``jmsapi.spi.XAProvider``."""
        if flags not in _END_FLAGS:
            raise BranchError(xa.XAER_INVAL, f"end: the flags {flags:#x} are none of TMSUCCESS, TMFAIL, TMSUSPEND")
        branch = self._find(name, "end")
        work = branch.working.pop(session, None)
        if work is not None:
            branch.take(work)
            if flags == xa.TMSUSPEND:
                branch.suspended.add(session)
        elif session in branch.suspended and flags != xa.TMSUSPEND:
            branch.suspended.discard(session)
        else:
            raise BranchError(xa.XAER_PROTO, "end: the session does not work in the branch")
        if flags == xa.TMFAIL:
            branch.rollback_only = True
        elif branch.rollback_only:
            raise BranchError(xa.XA_RBROLLBACK, "end: the branch can only be rolled back")
        return DONE

    def leave(self, session: InProcessSession) -> None:
        """Detach a session that closes; the transaction manager decides later what becomes of its work."""
        for branch in self._by_name.values():
            work = branch.working.pop(session, None)
            if work is not None:
                branch.take(work)
            branch.suspended.discard(session)

    def prepare(self, name: BranchId) -> Future[int]:
        """Make sure that a branch can be committed; see ``jmsapi.spi.XAProvider``."""
        branch = self._idle(name, "prepare")
        if branch.prepared is not None:
            raise BranchError(xa.XAER_PROTO, "prepare: it is prepared already")
        if branch.rollback_only:
            self._undo(branch)
            raise BranchError(xa.XA_RBROLLBACK, "prepare: the branch could only be rolled back, which is done")
        if not branch.sent and not branch.accepted:
            del self._by_name[name]
            return completed(xa.XA_RDONLY)
        batch, stored, accepted = WriteBatch(), StoredBranch(), branch.accepted
        if self._storage is not None:
            stored, accepted = self._storage.add(batch, name, branch.sent, branch.accepted)
        batch.on_written(lambda: branch.set_prepared(stored, accepted))
        batch.on_failed(lambda: self._undo(branch))
        return self._answered(branch, batch, xa.XA_OK, xa.XA_RBOTHER, "prepare")

    def commit(self, name: BranchId, *, one_phase: bool) -> Future[None]:
        """Commit a branch; see ``jmsapi.spi.XAProvider``."""
        branch = self._idle(name, "commit")
        if (branch.prepared is None) != one_phase:
            state = "not prepared" if branch.prepared is None else "prepared, and not for one phase"
            raise BranchError(xa.XAER_PROTO, f"commit: the branch is {state}")
        if branch.rollback_only:
            self._undo(branch)
            raise BranchError(xa.XA_RBROLLBACK, "commit: the branch could only be rolled back, which is done")
        batch = WriteBatch()
        for envelope, sender in branch.sent:
            try:
                target = self._resolve(envelope.destination)
            except ProviderError as error:
                if error.kind is not ErrorKind.DESTINATION:
                    raise
                continue  # a temporary destination that is gone; what went there is lost with it
            target.stage(envelope, sender, batch)
        for queue, message in branch.accepted:
            queue.forget(message, batch)
        batch.on_written(lambda: self._forget(branch))
        if branch.prepared is not None:
            self._remove(branch.prepared, batch)
            # It stays prepared: the transaction manager asks again.
            return self._answered(branch, batch, None, xa.XA_RETRY, "commit")
        batch.on_failed(lambda: self._undo(branch))
        return self._answered(branch, batch, None, xa.XA_RBOTHER, "commit")

    def roll_back(self, name: BranchId) -> Future[None]:
        """Roll a branch back; see ``jmsapi.spi.XAProvider``."""
        branch = self._idle(name, "rollback")
        if branch.prepared is None:
            self._undo(branch)
            return DONE
        batch = WriteBatch()
        self._remove(branch.prepared, batch)
        batch.on_written(lambda: self._undo(branch))
        return self._answered(branch, batch, None, xa.XAER_RMERR, "rollback")

    def prepared(self) -> list[BranchId]:
        """Return the branches that are prepared."""
        return [branch.name for branch in self._by_name.values() if branch.prepared is not None]

    def forget(self, name: BranchId) -> NoReturn:
        """Refuse: nothing was ever finished by the broker's own decision."""
        self._find(name, "forget")
        raise BranchError(xa.XAER_PROTO, "forget: the branch was not finished heuristically")

    def _find(self, name: BranchId, asked: str) -> _Branch:
        branch = self._by_name.get(name)
        if branch is None:
            raise BranchError(xa.XAER_NOTA, f"{asked}: there is no branch of that name")
        if branch.busy:
            raise BranchError(xa.XAER_PROTO, f"{asked}: the branch is being prepared or ended by another call")
        return branch

    def _idle(self, name: BranchId, asked: str) -> _Branch:
        branch = self._find(name, asked)
        if branch.working or branch.suspended:
            raise BranchError(xa.XAER_PROTO, f"{asked}: a session still works in the branch, or has only suspended its work")
        return branch

    def _answered(self, branch: _Branch, batch: WriteBatch, value: T, full: int, asked: str) -> Future[T]:
        """Have a batch written, and answer when it is.

        Args:
            branch: Of which nothing else can be asked meanwhile.
            batch: Prepares or ends it.
            value: The answer.
            full: The XA error when there is no room.
            asked: The call, for error texts.
        """
        branch.busy = True
        idle = partial(setattr, branch, "busy", False)
        batch.on_written(idle)
        batch.on_failed(idle)
        if self._storage is None:
            with self._context.batched():
                batch.finish()
            return completed(value)

        def refused(error: BaseException) -> BaseException:
            room = isinstance(error, ProviderError) and error.kind is ErrorKind.RESOURCE
            failure = BranchError(full if room else xa.XAER_RMFAIL, f"{asked}: {error}")
            failure.__cause__ = error
            return failure

        answer = answered(batch.completion(), lambda _: value, refused)
        with self._context.batched():
            submitted = self._storage.writer.submit(batch)
        return answer if submitted else completed(value)

    def _remove(self, stored: StoredBranch, batch: WriteBatch) -> None:
        if self._storage is not None:
            self._storage.remove(batch, stored)

    def _forget(self, branch: _Branch) -> None:
        self._by_name.pop(branch.name, None)
        for queue, _ in branch.accepted:
            queue.enlisted -= 1

    def _undo(self, branch: _Branch) -> None:
        self._forget(branch)
        returned: dict[BrokerQueue, list[QueuedMessage]] = {}
        for queue, message in branch.accepted:
            message.count += 1
            queue.recount(message)
            returned.setdefault(queue, []).append(message)
        for queue, messages in returned.items():
            queue.return_messages(messages)
            queue.dispatch()
