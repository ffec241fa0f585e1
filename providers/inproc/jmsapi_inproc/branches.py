"""Branches of distributed transactions, by the names that a transaction manager gave them.

A session works in at most one branch at a time; a branch may have several sessions, and outlives them. What they do in it is
gathered here, and takes effect at its commit. A prepared branch of a stored broker is in its file, and there again after a
restart; one that is not prepared is forgotten then, which the standard calls presumed abort. The broker decides nothing by
itself, so there are no heuristic outcomes.

Every method is called under the broker's lock.

Spec: 8.3.3-2, 8.3.3-3, 8.3.5-1 to 8.3.5-4.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar

from jmsapi import xa
from jmsapi.spi import DONE, BranchError, BranchId, Envelope, ErrorKind, ProviderError, answered, completed
from jmsapi_inproc.filing import forget, recount
from jmsapi_inproc.handles import Session
from jmsapi_inproc.messages import Message
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.store_branches import PreparedWork, keep, remove, restored, written
from jmsapi_inproc.store_filing import Filing
from jmsapi_inproc.transactions import Transaction

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.topics import Sender

__all__ = ["Branches", "Sent"]

T = TypeVar("T")
_START_FLAGS: Final = (xa.TMNOFLAGS, xa.TMJOIN, xa.TMRESUME)
_END_FLAGS: Final = (xa.TMSUCCESS, xa.TMFAIL, xa.TMSUSPEND)


class Sent(NamedTuple):
    """A message that was sent in a branch."""

    envelope: Envelope
    sender: Sender


class _Branch:
    """What was done in one branch."""

    def __init__(self, name: BranchId) -> None:
        self.name = name
        self.working: dict[Session, Transaction] = {}
        self.suspended: set[Session] = set()
        self.sent: list[Sent] = []
        self.accepted: list[tuple[Queue, Message]] = []
        self.failed = False
        """It can only be rolled back."""
        self.prepared: PreparedWork | None = None
        self.busy = False
        """Its end is being written."""

    def take(self, work: Transaction) -> None:
        """Take over what a session did."""
        sent, accepted = work.hand_over()
        self.sent += [Sent(envelope, work.session.connection) for _, envelope in sent]
        self.accepted += [(one.consumer.queue, one.message) for one in accepted]

    def keep(self, work: PreparedWork, accepted: list[tuple[Queue, Message]]) -> None:
        """Take note that it is prepared, and of what it has accepted, as it is then."""
        self.prepared = work
        self.accepted = accepted


class Branches:
    """All branches of a broker that have begun and not ended.

    Args:
        broker: The broker.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_name: dict[BranchId, _Branch] = {}

    def __bool__(self) -> bool:
        """Whether there is a branch that only this process knows."""
        return any(branch.prepared is None for branch in self._by_name.values())

    def restore(self) -> None:
        """Take up the prepared branches of the file."""
        store = self._broker.store
        for name, work, sent, accepted in restored(self._broker, store) if store is not None else ():
            branch = self._by_name[name] = _Branch(name)
            branch.prepared = work
            branch.sent = [Sent(envelope, sender) for envelope, sender in sent]
            branch.accepted = accepted
            for queue, _ in accepted:
                queue.enlisted += 1

    def start(self, session: Session, name: BranchId, flags: int) -> Transaction:
        """Associate a session with a branch; see the seam."""
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
            if branch.failed:
                raise BranchError(xa.XA_RBROLLBACK, "start: the branch can only be rolled back")
            branch.suspended.discard(session)
        session.transaction = branch.working[session] = Transaction(session)
        return session.transaction

    def end(self, session: Session, name: BranchId, flags: int) -> Future[None]:
        """End the association; see the seam."""
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
            branch.failed = True
        elif branch.failed:
            raise BranchError(xa.XA_RBROLLBACK, "end: the branch can only be rolled back")
        return DONE

    def leave(self, session: Session) -> None:
        """Take note that a session is closed; what becomes of its work the transaction manager says later."""
        for branch in self._by_name.values():
            work = branch.working.pop(session, None)
            if work is not None:
                branch.take(work)
            branch.suspended.discard(session)

    def prepare(self, name: BranchId) -> Future[int]:
        """Make sure that a branch can be committed; see the seam."""
        branch = self._idle(name, "prepare")
        if branch.prepared is not None:
            raise BranchError(xa.XAER_PROTO, "prepare: it is prepared already")
        if branch.failed:
            self._undo(branch)
            raise BranchError(xa.XA_RBROLLBACK, "prepare: the branch could only be rolled back, which is done")
        if not branch.sent and not branch.accepted:
            del self._by_name[name]
            return completed(xa.XA_RDONLY)
        store = self._broker.store
        filing = Filing()
        accepted = branch.accepted if store is None else written(filing, branch.accepted)
        work = PreparedWork() if store is None else keep(store, filing, name, branch.sent, accepted)
        filing.then(lambda: branch.keep(work, accepted))
        filing.otherwise(lambda: self._undo(branch))
        return self._answered(branch, filing, xa.XA_OK, xa.XA_RBOTHER, "prepare")

    def commit(self, name: BranchId, *, one_phase: bool) -> Future[None]:
        """Commit a branch; see the seam."""
        branch = self._idle(name, "commit")
        if (branch.prepared is None) != one_phase:
            state = "not prepared" if branch.prepared is None else "prepared, and not for one phase"
            raise BranchError(xa.XAER_PROTO, f"commit: the branch is {state}")
        if branch.failed:
            self._undo(branch)
            raise BranchError(xa.XA_RBROLLBACK, "commit: the branch could only be rolled back, which is done")
        broker, filing = self._broker, Filing()
        for envelope, sender in branch.sent:
            try:
                target = broker.resolve(envelope.destination)
            except ProviderError as error:
                if error.kind is not ErrorKind.DESTINATION:
                    raise
                continue  # a temporary destination that is gone; what went there is lost with it
            target.plan(envelope, sender, filing)
        for queue, message in branch.accepted:
            forget(queue, message, filing)
        filing.then(lambda: self._forget(branch))
        if branch.prepared is not None:
            remove(filing, branch.prepared)
            # It stays prepared: the transaction manager asks again.
            return self._answered(branch, filing, None, xa.XA_RETRY, "commit")
        filing.otherwise(lambda: self._undo(branch))
        return self._answered(branch, filing, None, xa.XA_RBOTHER, "commit")

    def roll_back(self, name: BranchId) -> Future[None]:
        """Roll a branch back; see the seam."""
        branch = self._idle(name, "rollback")
        if branch.prepared is None:
            self._undo(branch)
            return DONE
        filing = Filing()
        remove(filing, branch.prepared)
        filing.then(lambda: self._undo(branch))
        return self._answered(branch, filing, None, xa.XAER_RMERR, "rollback")

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

    def _answered(self, branch: _Branch, filing: Filing, value: T, full: int, asked: str) -> Future[T]:
        """Have it written, and answer."""
        branch.busy = True
        idle = partial(setattr, branch, "busy", False)
        filing.then(idle)
        filing.otherwise(idle)
        store = self._broker.store
        if store is None:
            with self._broker.batched():
                filing.take_effect()
            return completed(value)

        def refused(error: BaseException) -> BaseException:
            room = isinstance(error, ProviderError) and error.kind is ErrorKind.RESOURCE
            failure = BranchError(full if room else xa.XAER_RMFAIL, f"{asked}: {error}")
            failure.__cause__ = error
            return failure

        answer = answered(filing.awaited(), lambda _: value, refused)
        with self._broker.batched():
            submitted = store.submit(filing)
        return answer if submitted else completed(value)

    def _forget(self, branch: _Branch) -> None:
        self._by_name.pop(branch.name, None)
        for queue, _ in branch.accepted:
            queue.enlisted -= 1

    def _undo(self, branch: _Branch) -> None:
        self._forget(branch)
        returned: dict[Queue, list[Message]] = {}
        for queue, message in branch.accepted:
            message.count += 1
            recount(message, queue)
            returned.setdefault(queue, []).append(message)
        for queue, messages in returned.items():
            queue.give_back(messages)
            queue.share()
