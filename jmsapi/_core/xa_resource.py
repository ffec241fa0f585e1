"""The resource of an XA session: what a transaction manager calls.

The session works in at most one branch at a time. What it receives is held, and accepted under the branch when its work
there ends; what becomes of it then is the provider's affair, so a rollback gives it to whoever comes next.

Spec: 8.3.3-2, 8.3.3-3, 8.3.5-1 to 8.3.5-4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from jmsapi import xa
from jmsapi._core.acknowledgement.transaction import NoTransaction
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.waiting import Deadline, Steps, run
from jmsapi._not_copied import NotCopied
from jmsapi.api import Xid
from jmsapi.errors import IllegalArgumentException, IllegalStateException, JMSException
from jmsapi.spi import BranchId, Handle, Outcome, ProviderError, XAProvider

__all__ = ["BranchTransaction", "XAResourceImpl", "xa_provider"]

T = TypeVar("T")


def xa_provider(provider: object) -> XAProvider:
    """Return a provider as one that has distributed transactions.

    Raises:
        XAException: XAER_RMERR, when something stands before it that has none.
    """
    if not isinstance(provider, XAProvider):
        raise xa.XAException("distributed transactions: what stands before the provider does not offer them", xa.XAER_RMERR)
    return provider


class BranchTransaction(NoTransaction):
    """The branch that a session works in.

    Args:
        session: The session's parts.
    """

    def __init__(self, session: SessionParts) -> None:
        self._session = session
        self.name: BranchId | None = None
        self.left: BranchId | None = None
        """The branch it worked in when it was closed."""
        self._handle: Handle | None = None

    def begun(self, name: BranchId, handle: Handle) -> None:
        """Take note that the session works in a branch."""
        self.name, self._handle = name, handle

    def handle(self) -> Handle:
        """Return the provider's transaction.

        Raises:
            IllegalStateException: No branch has been started.
        """
        if self._handle is None:
            raise IllegalStateException(
                "an XA session works inside a branch of a distributed transaction only: xa_resource.start comes first",
                "no-branch",
            )
        return self._handle

    def check_may_listen(self) -> None:
        """Refuse: a listener knows of no branches."""
        raise IllegalStateException(
            "an XA session has no message listener: its messages are received inside a branch, by receive", "no-branch"
        )

    def end_steps(self, flags: int, timeout: float | None = None) -> Steps[None]:
        """End the work in the branch: what was received in it is accepted in it."""
        session, handle, name = self._session, self._handle, self.name
        if handle is None or name is None:
            return
        link = session.link
        with session.state.lock:
            tags = session.ledger.held()
            plan = session.ledger.committed()
        settled = link.ask(lambda: link.provider.settle(tags, Outcome.ACCEPTED, handle)) if tags else None
        self.name = self._handle = None
        ended = link.ask(lambda: xa_provider(link.provider).end_branch(session.handle, name, flags))
        yield from session.settlement.carry_out_steps(plan)
        if settled is not None:
            yield link.awaiting(settled, "acknowledge in the branch", timeout)
        yield link.awaiting(ended, "end", timeout)

    def abandon_steps(self, timeout: float) -> Steps[None]:
        """The session is closed: what becomes of its work the transaction manager says later (4.4.1-3)."""
        self.left = self.name
        yield from self.end_steps(xa.TMSUCCESS, timeout)


class XAResourceImpl(NotCopied):
    """The resource of one XA session.

    Args:
        session: The session's parts.
        work: The branch it works in.
    """

    def __init__(self, session: SessionParts, work: BranchTransaction) -> None:
        self._session = session
        self._work = work
        self._scanning = False

    def start(self, xid: Xid, flags: int) -> None:
        """Make the session's work part of a branch; see XAResource."""
        name = _name(xid)
        self._work.begun(name, self._ask("start", lambda provider: provider.start_branch(self._session.handle, name, flags)))
        self._work.left = None

    def end(self, xid: Xid, flags: int) -> None:
        """End the session's work on a branch; see XAResource."""
        name, work, session = _name(xid), self._work, self._session
        if work.left is not None and work.left == name:
            work.left = None
            return
        if work.name != name or flags not in (xa.TMSUCCESS, xa.TMFAIL, xa.TMSUSPEND):
            self._ask("end", lambda provider: provider.end_branch(session.handle, name, flags))
            return
        timeout_ms = session.link.options.send_timeout_ms
        if not run(session.sends.quiet_steps(Deadline(timeout_ms))):
            raise xa.XAException(f"end: sends are still not confirmed after {timeout_ms} ms", xa.XAER_RMERR)
        reason = session.state.take_rollback_only()
        self._wrapped("end", lambda: run(work.end_steps(flags if reason is None else xa.TMFAIL)))
        if reason is not None and reason.deliveries_lost:
            text = f"end: what was received in the branch cannot be accepted any more ({_cause(reason.cause)})"
            raise xa.XAException(text, xa.XA_RBROLLBACK) from reason.cause
        if reason is not None:
            raise xa.XAException(
                f"end: a message of the branch was not sent ({reason.cause})", xa.XA_RBROLLBACK
            ) from reason.cause

    def prepare(self, xid: Xid) -> int:
        """Promise that a branch can be committed; see XAResource."""
        name = _name(xid)
        return self._ask("prepare", lambda provider: provider.prepare_branch(name))

    def commit(self, xid: Xid, one_phase: bool) -> None:
        """Commit a branch; see XAResource."""
        name = _name(xid)
        self._ask("commit", lambda provider: provider.commit_branch(name, one_phase=one_phase))

    def rollback(self, xid: Xid) -> None:
        """Roll a branch back; see XAResource."""
        name = _name(xid)
        self._ask("rollback", lambda provider: provider.roll_back_branch(name))

    def recover(self, flag: int) -> Sequence[Xid]:
        """List prepared branches; see XAResource. The first call of a scan gives all of them."""
        if flag & ~(xa.TMSTARTRSCAN | xa.TMENDRSCAN):
            raise xa.XAException(f"recover: the flags {flag:#x} are none of TMSTARTRSCAN, TMENDRSCAN, TMNOFLAGS", xa.XAER_INVAL)
        begins = bool(flag & xa.TMSTARTRSCAN)
        if not begins and not self._scanning:
            raise xa.XAException("recover: no scan is open; TMSTARTRSCAN begins one", xa.XAER_INVAL)
        names = self._ask("recover", lambda provider: provider.recover_branches()) if begins else []
        self._scanning = not flag & xa.TMENDRSCAN
        return [Xid(*name) for name in names]

    def forget(self, xid: Xid) -> None:
        """Forget a branch that was finished heuristically; see XAResource."""
        name = _name(xid)
        self._ask("forget", lambda provider: provider.forget_branch(name))

    def _ask(self, asked: str, call: Callable[[XAProvider], Future[T]]) -> T:
        link = self._session.link
        return self._wrapped(asked, lambda: link.call(lambda: call(xa_provider(link.provider)), asked))

    def _wrapped(self, asked: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except xa.XAException:
            raise
        except JMSException as error:
            raise xa.XAException(f"{asked}: the provider failed: {error}", xa.XAER_RMFAIL) from error


def _cause(error: Exception) -> str:
    return error.message if isinstance(error, ProviderError) else str(error)


def _name(xid: object) -> BranchId:
    if not isinstance(xid, Xid):
        raise IllegalArgumentException(f"the name of a branch is an Xid, not {xid!r}")
    return BranchId(xid.format_id, xid.global_transaction_id, xid.branch_qualifier)
