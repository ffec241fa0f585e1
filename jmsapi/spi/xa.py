"""Distributed transactions at the provider interface: a second Protocol, which a provider may have beside ``Provider``.

The core translates: a session is associated with a branch or not, and what it accepts while it is, it settles under the handle
that ``start_branch`` gave. A provider keeps the branches, of all its connections together; each call says the rest.

Spec: 8.3.3-2, 8.3.5-1, 8.3.5-2.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple, Protocol, runtime_checkable

from jmsapi.spi._errors import ErrorKind, ProviderError
from jmsapi.spi.model import Handle

__all__ = ["BranchError", "BranchId", "XAProvider"]


class BranchId(NamedTuple):
    """The name of one branch."""

    format_id: int
    transaction: bytes
    qualifier: bytes


class BranchError(ProviderError):
    """A call about a branch failed.

    Args:
        code: A number of the standard, ``XAER_`` or ``XA_``; see ``jmsapi.xa``.
        message: What was asked, what is so.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(ErrorKind.PROTOCOL, message)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return BranchError, (self.code, self.message)


@runtime_checkable
class XAProvider(Protocol):
    """What a provider with XA offers beside the fourteen calls. Errors are ``BranchError``."""

    def start_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[Handle]:
        """Associate a transacted session with a branch: TMNOFLAGS, TMJOIN or TMRESUME.

        The handle stands for the transaction in ``send`` and ``settle``, until ``end_branch``.
        """
        ...

    def end_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[None]:
        """End the association: TMSUCCESS, TMFAIL or TMSUSPEND."""
        ...

    def prepare_branch(self, branch: BranchId) -> Future[int]:
        """Make sure that it can be committed; XA_OK, or XA_RDONLY when there was nothing to do."""
        ...

    def commit_branch(self, branch: BranchId, *, one_phase: bool) -> Future[None]:
        """Commit."""
        ...

    def roll_back_branch(self, branch: BranchId) -> Future[None]:
        """Drop what was sent, and give what was accepted to others, its count one higher."""
        ...

    def recover_branches(self) -> Future[list[BranchId]]:
        """Return the branches that are prepared."""
        ...

    def forget_branch(self, branch: BranchId) -> Future[None]:
        """Forget a branch that was finished by a decision of the provider's own."""
        ...
