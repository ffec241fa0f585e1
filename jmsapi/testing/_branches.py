"""Distributed transactions in the test kit: what a branch sends is received from its commit on, and its calls can go wrong."""

from __future__ import annotations

from concurrent.futures import Future

from jmsapi.spi import BranchId, Clock, Handle, Provider, XAProvider
from jmsapi.testing._faulty import Faulty
from jmsapi.testing._record import Record, TransactionWork
from jmsapi.testing._recording import Gone, Recording
from jmsapi.testing.provider_faults import ProviderFaults
from jmsapi.xa import XA_RDONLY

__all__ = ["faulty", "recording"]


class _XARecording(Recording):
    """A connection that has branches."""

    def __init__(self, provider: Provider, branches: XAProvider, record: Record, gone: Gone) -> None:
        super().__init__(provider, record, gone)
        self._branches = branches

    def start_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[Handle]:
        """Note what is done under the handle as the branch's work, whichever connection does it."""
        started = self._branches.start_branch(session, branch, flags)
        if started.exception() is None:
            self.enlist(started.result(), self._record.work_of(branch))
        return started

    def end_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[None]:
        """Pass down."""
        return self._branches.end_branch(session, branch, flags)

    def prepare_branch(self, branch: BranchId) -> Future[int]:
        """A branch that did nothing is over."""
        prepared = self._branches.prepare_branch(branch)
        if prepared.exception() is None and prepared.result() == XA_RDONLY:
            self._over(branch)
        return prepared

    def commit_branch(self, branch: BranchId, *, one_phase: bool) -> Future[None]:
        """Write down what the branch sent, before anybody can answer it."""
        sent = list(self._record.work_of(branch).sent)
        self._record.add(sent)
        committed = self._branches.commit_branch(branch, one_phase=one_phase)
        if committed.exception() is None:
            self._over(branch)
        else:
            self._record.withdraw(sent)
        return committed

    def roll_back_branch(self, branch: BranchId) -> Future[None]:
        """Nobody holds any more what it accepted."""
        rolled_back = self._branches.roll_back_branch(branch)
        if rolled_back.exception() is None:
            self._over(branch)
        return rolled_back

    def recover_branches(self) -> Future[list[BranchId]]:
        """Pass down."""
        return self._branches.recover_branches()

    def forget_branch(self, branch: BranchId) -> Future[None]:
        """Pass down."""
        return self._branches.forget_branch(branch)

    def _over(self, branch: BranchId) -> None:
        work: TransactionWork = self._record.work_done(branch)
        self._let_go(work.tags)
        self.delist(work)


class _XAFaulty(Faulty):
    """A connection that has branches: a call that fails leaves the branch as it is, and the next one may try again."""

    def __init__(self, tap: _XARecording, record: Record, faults: ProviderFaults, clock: Clock) -> None:
        super().__init__(tap, record, faults, clock)
        self._branches = tap

    def start_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[Handle]:
        """Pass down."""
        return self._ask("begin", None, lambda: self._branches.start_branch(session, branch, flags))

    def end_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[None]:
        """Pass down."""
        return self._in_line(lambda: self._branches.end_branch(session, branch, flags))

    def prepare_branch(self, branch: BranchId) -> Future[int]:
        """Pass down."""
        return self._ask("prepare", None, lambda: self._branches.prepare_branch(branch))

    def commit_branch(self, branch: BranchId, *, one_phase: bool) -> Future[None]:
        """Pass down."""
        return self._ask("commit", None, lambda: self._branches.commit_branch(branch, one_phase=one_phase))

    def roll_back_branch(self, branch: BranchId) -> Future[None]:
        """Pass down."""
        return self._ask("rollback", None, lambda: self._branches.roll_back_branch(branch))

    def recover_branches(self) -> Future[list[BranchId]]:
        """Pass down."""
        return self._in_line(self._branches.recover_branches)

    def forget_branch(self, branch: BranchId) -> Future[None]:
        """Pass down."""
        return self._in_line(lambda: self._branches.forget_branch(branch))


def recording(provider: Provider, record: Record, gone: Gone) -> Recording:
    """Return a decorator that writes down what goes through, with branches if the provider has them."""
    if isinstance(provider, XAProvider):
        return _XARecording(provider, provider, record, gone)
    return Recording(provider, record, gone)


def faulty(tap: Recording, record: Record, faults: ProviderFaults, clock: Clock) -> Faulty:
    """Return a decorator that lets faults come."""
    if isinstance(tap, _XARecording):
        return _XAFaulty(tap, record, faults, clock)
    return Faulty(tap, record, faults, clock)
