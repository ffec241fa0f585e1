"""A disk that is full, a folder that may not be written: whatever of the store fails, nothing is lost, doubled or silent."""

from __future__ import annotations

import errno
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.staging import LocalStore

TEXTS = [f"m{number}" for number in range(14)]
SMALL = {
    "pollTimeout": "3ms",
    "firstWait": "3ms",
    "idleGap": "3ms",
    "parallelism": "1",
    "leadMessages": "2",
    "roundMessages": "2",
    "maxMessagesPerBatch": "8",
    "dedup": "window",
}
OPERATIONS = ("publish", "put", "mark", "read", "list", "names", "make_folder", "delete", "remove")


class FailingStore:
    """A folder of which one operation fails once: ``after`` it was done, else before, and then half a file may be there."""

    def __init__(self, store: LocalStore, fails: int | None, *, after: bool) -> None:
        self._store = store
        self._fails = fails
        self._after = after
        self.calls: list[tuple[str, str]] = []
        """Each operation with the folder it is about."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real: Callable[..., Any] = getattr(self._store, name)
        return self._counted(name, real) if name in OPERATIONS else real

    def _counted(self, operation: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            number = len(self.calls)
            self.calls.append((operation, str(given[0]).partition("/")[0] if given else ""))
            if number != self._fails:
                return real(*given)
            if self._after:
                with suppress(FileNotFoundError):
                    real(*given)
            elif operation == "put":
                real(given[0], bytes(given[1])[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return called


class Query:
    """Spark's part: it numbers batches in its checkpoint, tries each task twice, and is started again when it fails."""

    def __init__(self, options: SourceOptions, store: Any) -> None:
        self._options, self._store = options, store
        self._offset: dict[str, Any] | None = None
        self._planned: dict[str, Any] | None = None
        self._idle = 0
        self.rows: dict[int, list[str]] = {}
        self.errors: list[BaseException] = []

    def run(self) -> None:
        for _ in range(10):
            engine = Engine(self._options, self._store)
            try:
                self._run(engine)
                return
            except Exception as error:
                self.errors.append(error)
            finally:
                engine.receivers.close()
        raise AssertionError(f"it does not recover: {self.errors[-1]!r}")

    def _run(self, engine: Engine) -> None:
        stream = engine.stream()
        if self._offset is None:
            self._offset = stream.initial()
        while self._idle < 2:
            if self._planned is None:
                end = stream.latest(self._offset)
                self._idle = self._idle + 1 if end == self._offset else 0
                if end == self._offset:
                    continue
                self._planned = end
            works = stream.partitions(self._offset, self._planned)
            self.rows[self._planned["seq"]] = [text for work in works for text in self._task(work)]
            self._offset, self._planned = self._planned, None
            stream.commit(self._offset)

    def _task(self, work: Any) -> list[str]:
        try:
            return self._attempt(work)
        except Exception as error:
            self.errors.append(error)
        return self._attempt(work)

    def _attempt(self, work: Any) -> list[str]:
        batches = Engine(self._options, self._store).read(work, ("text",))
        return [text for batch in batches for text in batch.column("text").to_pylist()]


@contextmanager
def queue() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Give a broker with a queue of texts, and what takes the rest of it."""
    url = f"inproc://failing-{uuid.uuid4().hex}"
    with jmsapi.connection_factory(url).create_context() as context:
        for text in TEXTS:
            context.create_producer().send(context.create_queue("q"), text)

        def rest() -> list[str]:
            consumer = context.create_consumer(context.create_queue("q"))
            return list(iter(lambda: consumer.receive_body(str, 5), None))

        yield url, rest


def ran(folder: Path, fails: int | None, *, after: bool) -> tuple[FailingStore, Query, Counter[str]]:
    """Run a query with a store that fails; return what became of all messages."""
    with queue() as (url, rest):
        store = FailingStore(LocalStore(folder), fails, after=after)
        query = Query(SourceOptions.model_validate({"url": url, "queue": "q", **SMALL}), store)
        query.run()
        return store, query, Counter([*(text for batch in query.rows.values() for text in batch), *rest()])


@pytest.mark.parametrize("after", [False, True], ids=["before it is done", "after it is done"])
def test_whichever_operation_of_the_store_fails_nothing_is_lost_doubled_or_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    whole, query, found = ran(tmp_path / "whole", None, after=after)
    assert found == Counter(TEXTS) and not query.errors
    # One of each kind, amid the stream.
    kinds: dict[tuple[str, str], list[int]] = {}
    for number, kind in enumerate(whole.calls):
        kinds.setdefault(kind, []).append(number)
    assert {operation for operation, _ in kinds} == set(OPERATIONS), "each operation is tried"
    for kind, numbers in kinds.items():
        number = numbers[len(numbers) // 2]
        _, query, found = ran(tmp_path / f"{number}", number, after=after)
        assert found == Counter(TEXTS), f"{kind}, operation {number}: {query.errors}"
        assert query.errors, f"{kind}, operation {number}: nobody was told"
