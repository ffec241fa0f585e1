"""The contract of the provider interface for a provider with distributed transactions; see ``checked``."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi._emulation.checked import Checked
from jmsapi.spi import BranchId, Handle, Provider, XAProvider

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["CheckedXA", "checked"]


class CheckedXA(Checked):
    """Watches the calls about branches, too.

    Args:
        provider: The one that does the work.
        branches: The same one.
        options: As for Checked.
    """

    def __init__(self, provider: Provider, branches: XAProvider, options: ProviderOptions) -> None:
        super().__init__(provider, options)
        self._branches = branches

    def start_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[Handle]:
        """Check that there are distributed transactions."""
        self._calling("start_branch")
        self._need("xa")
        return self._watched("start_branch", self._branches.start_branch(session, branch, flags))

    def end_branch(self, session: Handle, branch: BranchId, flags: int) -> Future[None]:
        """Pass on."""
        self._calling("end_branch")
        return self._watched("end_branch", self._branches.end_branch(session, branch, flags))

    def prepare_branch(self, branch: BranchId) -> Future[int]:
        """Pass on."""
        self._calling("prepare_branch")
        return self._watched("prepare_branch", self._branches.prepare_branch(branch))

    def commit_branch(self, branch: BranchId, *, one_phase: bool) -> Future[None]:
        """Pass on."""
        self._calling("commit_branch")
        return self._watched("commit_branch", self._branches.commit_branch(branch, one_phase=one_phase))

    def roll_back_branch(self, branch: BranchId) -> Future[None]:
        """Pass on."""
        self._calling("roll_back_branch")
        return self._watched("roll_back_branch", self._branches.roll_back_branch(branch))

    def recover_branches(self) -> Future[list[BranchId]]:
        """Pass on."""
        self._calling("recover_branches")
        return self._watched("recover_branches", self._branches.recover_branches())

    def forget_branch(self, branch: BranchId) -> Future[None]:
        """Pass on."""
        self._calling("forget_branch")
        return self._watched("forget_branch", self._branches.forget_branch(branch))


def checked(provider: Provider, options: ProviderOptions) -> Checked:
    """Return a provider that is watched."""
    return CheckedXA(provider, provider, options) if isinstance(provider, XAProvider) else Checked(provider, options)
