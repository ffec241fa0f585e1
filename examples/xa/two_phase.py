"""A transaction manager in small, and a SQLite database that takes part in its transactions.

``Coordinator`` runs two-phase commit over any number of resources with the methods of ``jmsapi.XAResource``. It writes down that
a transaction is to be committed between the two phases; after a crash ``recover`` commits what is written down and rolls back
the rest. ``SQLiteResource`` keeps the statements of a prepared branch in a table of the database, so that they can be run however
often the process dies in between, and once.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from jmsapi import XAResource, Xid
from jmsapi.xa import TMENDRSCAN, TMNOFLAGS, TMSTARTRSCAN, TMSUCCESS, XA_OK, XA_RDONLY, XAER_NOTA, XAER_PROTO, XAException

FORMAT_ID = 0x4A4D53


class SQLiteResource:
    """The branches of one database.

    Args:
        path: The database. It gets a table ``xa_prepared``.
        schema: Run when it is opened.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {schema};"
            "CREATE TABLE IF NOT EXISTS xa_prepared (format_id, global_id, branch, work,"
            "  PRIMARY KEY (format_id, global_id, branch))"
        )
        self._working: Xid | None = None
        self._work: dict[Xid, list[tuple[str, Sequence[object]]]] = {}

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def execute(self, statement: str, values: Sequence[object]) -> None:
        """Have a statement run when the branch commits. Values are text and numbers."""
        if self._working is None:
            raise XAException("execute: no branch has been started", XAER_PROTO)
        self._work[self._working].append((statement, values))

    def query(self, statement: str) -> list[tuple[str]]:
        """Return what is committed."""
        return self._database.execute(statement).fetchall()

    def start(self, xid: Xid, flags: int) -> None:
        """Begin to work in a branch."""
        self._work[xid] = []
        self._working = xid

    def end(self, xid: Xid, flags: int) -> None:
        """Stop working in it."""
        self._working = None

    def prepare(self, xid: Xid) -> int:
        """Write down what is to be done."""
        work = self._work.pop(xid)
        if not work:
            return XA_RDONLY
        self._database.execute("INSERT INTO xa_prepared VALUES (?, ?, ?, ?)", (*_key(xid), json.dumps(work)))
        return XA_OK

    def commit(self, xid: Xid, one_phase: bool) -> None:
        """Do it, and forget it, in one transaction of the database."""
        if one_phase:
            self.prepare(xid)
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for statement, values in self._prepared(xid):
                self._database.execute(statement, values)
            self._forget(xid)
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def rollback(self, xid: Xid) -> None:
        """Forget it."""
        if self._work.pop(xid, None) is None:
            self._forget(xid)

    def recover(self, flag: int) -> Sequence[Xid]:
        """List what is written down and not done."""
        if not flag & TMSTARTRSCAN:
            return []
        return [Xid(*row) for row in self._database.execute("SELECT format_id, global_id, branch FROM xa_prepared")]

    def forget(self, xid: Xid) -> None:
        """Refuse: this database decides nothing by itself."""
        raise XAException("forget: there is no such branch", XAER_NOTA)

    def _prepared(self, xid: Xid) -> list[tuple[str, Sequence[object]]]:
        row = self._database.execute(f"SELECT work FROM xa_prepared WHERE {_WHERE}", _key(xid)).fetchone()
        if row is None:
            raise XAException("commit: there is no such branch", XAER_NOTA)
        return [(statement, values) for statement, values in json.loads(row[0])]

    def _forget(self, xid: Xid) -> None:
        self._database.execute(f"DELETE FROM xa_prepared WHERE {_WHERE}", _key(xid))


_WHERE = "format_id = ? AND global_id = ? AND branch = ?"


def _key(xid: Xid) -> tuple[int, bytes, bytes]:
    return xid.format_id, xid.global_transaction_id, xid.branch_qualifier


class Coordinator:
    """A transaction manager.

    Args:
        log: A file of its own, in which it writes what it has decided.
        resources: All that may take part, the same ones in the same order each time; recovery asks each of them.
    """

    def __init__(self, log: Path, resources: Sequence[XAResource]) -> None:
        self._log = sqlite3.connect(log, isolation_level=None)
        self._log.executescript("PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS decided (global_id PRIMARY KEY)")
        self._resources = resources

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def run(self, work: Callable[[], None], between: Callable[[int], None] = lambda _: None) -> None:
        """Do something in all resources or in none.

        Args:
            work: What is done, while all resources work in the transaction.
            between: Called after each step of the second phase, with how many are committed: the place for an accident.
        """
        name = os.urandom(16)
        branches = [(resource, Xid(FORMAT_ID, name, bytes([number]))) for number, resource in enumerate(self._resources)]
        for resource, xid in branches:
            resource.start(xid, TMNOFLAGS)
        try:
            try:
                work()
            finally:
                for resource, xid in branches:
                    resource.end(xid, TMSUCCESS)
            voted = [(resource, xid) for resource, xid in branches if resource.prepare(xid) == XA_OK]
        except BaseException:
            for resource, xid in branches:
                try:
                    resource.rollback(xid)
                except XAException as error:
                    if error.xa_code != XAER_NOTA:
                        raise
            raise
        self._log.execute("INSERT INTO decided VALUES (?)", (name,))
        for done, (resource, xid) in enumerate(voted):
            between(done)
            resource.commit(xid, False)
        self._log.execute("DELETE FROM decided WHERE global_id = ?", (name,))

    def recover(self) -> tuple[int, int]:
        """Finish what a crash left: return how many branches were committed and rolled back."""
        decided = {row[0] for row in self._log.execute("SELECT global_id FROM decided")}
        committed = rolled_back = 0
        for resource in self._resources:
            for xid in resource.recover(TMSTARTRSCAN | TMENDRSCAN):
                if xid.format_id != FORMAT_ID:
                    continue
                if xid.global_transaction_id in decided:
                    resource.commit(xid, False)
                    committed += 1
                else:
                    resource.rollback(xid)
                    rolled_back += 1
        self._log.execute("DELETE FROM decided")
        return committed, rolled_back
