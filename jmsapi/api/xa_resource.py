"""The two sides of a distributed transaction: its name, and what a transaction manager does with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jmsapi.errors import IllegalArgumentException

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["XAResource", "Xid"]

_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Xid:
    """The name of one branch of a distributed transaction.

    Args:
        format_id: How the transaction manager makes its names; not negative, as -1 means no name in XA.
        global_transaction_id: Name of the whole transaction, 1 to 64 bytes.
        branch_qualifier: Name of the branch within it, 0 to 64 bytes.
    Raises:
        IllegalArgumentException: A part is out of its limits.
    Threads: any number at once; it is frozen.
    Spec: 8.3.5-1, 8.3.5-2.
    """

    format_id: int
    global_transaction_id: bytes
    branch_qualifier: bytes = b""

    def __post_init__(self) -> None:
        if not 0 <= self.format_id < 2**31:
            raise IllegalArgumentException(f"the format id {self.format_id} is not 0 to 2147483647")
        if not 1 <= len(self.global_transaction_id) <= _LONGEST or len(self.branch_qualifier) > _LONGEST:
            raise IllegalArgumentException(
                "a transaction's name has 1 to 64 bytes, a branch's 0 to 64; these have "
                f"{len(self.global_transaction_id)} and {len(self.branch_qualifier)}"
            )


@runtime_checkable
class XAResource(Protocol):
    """What a transaction manager calls; flags and results are the numbers of the XA standard.

    Every method raises JMSException when the call fails or does not fit the branch's state.

    Threads: one at a time, the session's.
    Spec: 8.3.3-2, 8.3.3-3, 8.3.4-2, 8.3.5-1.
    """

    def start(self, xid: Xid, flags: int) -> None:
        """Make the session's work part of a branch.

        Args:
            xid: The branch.
            flags: 0 for a new branch, TMJOIN (0x200000) for one that exists, TMRESUME (0x8000000) for a suspended one.
        Spec: 8.3.3-2.
        """

    def end(self, xid: Xid, flags: int) -> None:
        """End the session's work on a branch.

        Args:
            xid: The branch.
            flags: TMSUCCESS (0x4000000), TMFAIL (0x20000000), after which the branch can only roll back, or TMSUSPEND
                (0x2000000).
        Spec: 8.3.3-2.
        """

    def prepare(self, xid: Xid) -> int:
        """Promise that the branch can be committed, whatever happens.

        Args:
            xid: The branch; its work is ended.
        Returns:
            0 (XA_OK), or 3 (XA_RDONLY) if the branch did nothing and is forgotten.
        Spec: 8.3.3-2, 8.3.5-2.
        """
        ...

    def commit(self, xid: Xid, one_phase: bool) -> None:
        """Commit a branch.

        Args:
            xid: The branch.
            one_phase: True if it was not prepared, as the only branch of its transaction.
        Spec: 8.3.3-2.
        """

    def rollback(self, xid: Xid) -> None:
        """Drop what a branch sent and have what it received delivered again.

        Args:
            xid: The branch, prepared or not.
        Spec: 8.3.3-3.
        """

    def recover(self, flag: int) -> Sequence[Xid]:
        """List branches that are prepared and not finished.

        Args:
            flag: TMSTARTRSCAN (0x1000000) to begin, TMENDRSCAN (0x800000) to end, both, or 0 to go on.
        Returns:
            The branches; empty when no more follow.
        Spec: 8.3.5-2.
        """
        ...

    def forget(self, xid: Xid) -> None:
        """Forget a branch that was finished without the transaction manager.

        Args:
            xid: The branch.
        Spec: 8.3.5-1.
        """
