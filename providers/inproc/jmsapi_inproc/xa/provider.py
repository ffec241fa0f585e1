"""The calls of the SPI about distributed transactions; see ``branches``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from jmsapi import xa
from jmsapi.spi import BranchError, BranchId, Handle, ProviderError, completed, failed
from jmsapi_inproc.connection import InprocProvider
from jmsapi_inproc.session import InProcessSession
from jmsapi_inproc.xa.branches import Branches

__all__ = ["InprocXAProvider"]

T = TypeVar("T")


class InprocXAProvider(InprocProvider):
    """A connection to a broker of this process, with distributed transactions."""

    def start_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[Handle]:
        """Associate a session with a branch."""
        return self._ask(lambda branches: completed(branches.start(self._own(session), branch, flags)))

    def end_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[None]:
        """End the association."""
        return self._ask(lambda branches: branches.end(self._own(session), branch, flags))

    def prepare_branch(self, branch: BranchId) -> Future[int]:
        """Make sure that a branch can be committed: in a stored broker it is on disk."""
        return self._ask(lambda branches: branches.prepare(branch))

    def commit_branch(self, branch: BranchId, *, one_phase: bool) -> Future[None]:
        """Commit a branch."""
        return self._ask(lambda branches: branches.commit(branch, one_phase=one_phase))

    def roll_back_branch(self, branch: BranchId) -> Future[None]:
        """Roll a branch back."""
        return self._ask(lambda branches: branches.roll_back(branch))

    def recover_branches(self) -> Future[list[BranchId]]:
        """Return the prepared branches."""
        return self._ask(lambda branches: completed(branches.prepared()))

    def forget_branch(self, branch: BranchId) -> Future[None]:
        """Refuse: there are no heuristic outcomes."""
        return self._ask(lambda branches: branches.forget(branch))

    def _own(self, session: Handle) -> InProcessSession:
        if not isinstance(session, InProcessSession) or session.closed:
            raise BranchError(xa.XAER_PROTO, "the session is closed")
        return session

    def _ask(self, call: Callable[[Branches], Future[T]]) -> Future[T]:
        broker = self._broker
        if broker is None:
            return failed(BranchError(xa.XAER_RMFAIL, "the connection is closed"))
        try:
            with broker.lock:
                return call(broker.branches)
        except ProviderError as error:
            return failed(error)
