"""What one participant of a transaction raises keeps no other one from its end."""

from __future__ import annotations

import pytest

from jmsapi.listener.runtime_transactions import RunningTransaction
from jmsapi.transactions import LocalTransactions

WHAT = [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError]


class Part:
    """A participant that notes what it is asked for, and may raise there."""

    def __init__(self, raises_in: str = "", what: type[BaseException] = ValueError) -> None:
        self.asked: list[str] = []
        self._raises_in = raises_in
        self._what = what

    def _note(self, asked: str) -> None:
        self.asked.append(asked)
        if asked == self._raises_in:
            raise self._what

    def commit(self) -> None:
        """Be committed."""
        self._note("commit")

    def rollback(self) -> None:
        """Be rolled back."""
        self._note("rollback")

    def close(self) -> None:
        """Be closed."""
        self._note("close")


@pytest.mark.parametrize("what", WHAT)
def test_when_one_cannot_be_committed_the_others_are_rolled_back_and_closed(what: type[BaseException]) -> None:
    first, failing, last = Part(), Part("commit", what), Part()
    with pytest.raises(what), LocalTransactions().begin() as transaction:
        for part in (first, failing, last):
            transaction.join(part)
    assert [first.asked, failing.asked, last.asked] == [["commit", "close"], ["commit", "close"], ["rollback", "close"]]

    first, failing, last = Part(), Part("commit", what), Part()
    undone: list[str] = []
    running = RunningTransaction(lambda: undone.append("commit"), lambda: undone.append("rollback"))
    for part in (first, failing, last):
        running.join(part)
    with pytest.raises(what):
        running.commit()
    assert [first.asked, failing.asked, last.asked] == [["commit", "close"], ["commit", "close"], ["rollback", "close"]]
    assert undone == ["rollback"]


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("where", ["rollback", "close"])
def test_when_one_cannot_be_undone_the_others_are(where: str, what: type[BaseException]) -> None:
    failing, last = Part(where, what), Part()
    transactions = LocalTransactions()
    with (
        pytest.raises(ZeroDivisionError if issubclass(what, Exception) else what),
        transactions.begin() as transaction,
    ):
        transaction.join(failing)
        transaction.join(last)
        raise ZeroDivisionError
    assert failing.asked == last.asked == ["rollback", "close"]
    assert transactions.current is None

    failing, last = Part(where, what), Part()
    undone: list[str] = []
    running = RunningTransaction(lambda: undone.append("commit"), lambda: undone.append("rollback"))
    running.join(failing)
    running.join(last)
    running.rollback()
    assert failing.asked == last.asked == ["rollback", "close"]
    assert undone == ["rollback"]
