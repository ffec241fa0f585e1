"""How much a batch asks of its store, by the number of claims: real claims on a store that counts and a queue without an end.

    python benchmarks/spark/limits.py [--claims N ...] [--rounds N] [--round N]

Nothing is measured but numbers of operations, so the figures are the same on any machine. From them and from what a store takes
for each follows how many claims one staging location carries; docs/spark.md does the sum.
"""

from __future__ import annotations

import argparse
import threading
from collections import Counter
from collections.abc import Sequence

from jmsapi.spark.batchlog import BatchLog, folder
from jmsapi.spark.claim import Claim, Limits


class CountingStore:
    """Objects in memory; counts what is asked for."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._guard = threading.Lock()
        self.asked: Counter[str] = Counter()

    def _count(self, what: str, number: int = 1) -> None:
        self.asked[what] += number

    def publish(self, name: str, data: bytes) -> bool:
        """Create; see Store."""
        with self._guard:
            self._count("create")
            if name in self._objects:
                self._count("lost race")
                return False
            self._objects[name] = data
            return True

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write; see Store."""
        with self._guard:
            self._count("write")
            self._objects[name] = bytes(data)

    def mark(self, name: str) -> None:
        """Write nothing; see Store."""
        self.put(name, b"")

    def read(self, name: str) -> memoryview:
        """Read; see Store."""
        with self._guard:
            self._count("read")
            if name not in self._objects:
                raise FileNotFoundError(name)
            return memoryview(self._objects[name])

    def list(self, folder: str) -> list[str]:
        """List; see Store."""
        with self._guard:
            start = f"{folder}/"
            found = [name[len(start) :] for name in self._objects if name.startswith(start)]
            self._count("list")
            self._count("entries listed", len(found))
            return found

    def names(self) -> Sequence[str]:
        """Return nothing: it is nobody's."""
        return []

    def make_folder(self, folder: str) -> None:
        """Do nothing."""

    def delete(self, name: str) -> None:
        """Delete; see Store."""
        with self._guard:
            self._objects.pop(name, None)

    def remove(self, folder: str) -> None:
        """Do nothing."""


class Endless:
    """A consumer of a queue without an end: messages are numbers."""

    def __init__(self, claim: int) -> None:
        self._claim = claim
        self._number = 0

    def receive(self, most: int, most_bytes: int, timeout_ms: float) -> Sequence[str]:
        """Return the next message."""
        self._number += 1
        return [f"{self._claim}-{self._number}"]

    def acknowledge(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class MessageIds:
    """Messages as their ids."""

    def message_id(self, message: str) -> str:
        """Return the id."""
        return message

    def size(self, message: str) -> int:
        """Return the size."""
        return 1

    def encode(self, messages: Sequence[str]) -> bytes:
        """Return a file."""
        return "\n".join(messages).encode()


def ids_of(data: memoryview) -> list[str | None]:
    """Return the ids in a file."""
    return list(bytes(data).decode().splitlines())


def batch(claims: int, rounds: int, size: int) -> Counter[str]:
    """Run all claims of one batch at once and return what they asked of the store."""
    store = CountingStore()
    limits = Limits(round_messages=size)

    def run(number: int) -> None:
        log = BatchLog(store, ids_of, lambda: 0.0)
        claim: Claim[str] = Claim(log, MessageIds(), lambda limit: Endless(number), limits, lambda: 0.0)
        claim.run(1, number, rounds * size, first_wait_ms=0)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(claims)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = BatchLog(store, ids_of, lambda: 0.0).look().batch(1)
    assert sum(rows.rows(claim) for claim in range(claims)) == claims * rounds * size, folder(1)
    return store.asked


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--claims", nargs="*", type=int, default=[1, 2, 4, 8, 16, 32, 64, 100])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--round", type=int, default=20)
    asked = parser.parse_args()
    print("Operations for each round; a round is as many messages as roundMessages says, whatever that is.")
    kinds = ("create", "lost race", "write", "read", "list", "entries listed")
    print("| claims | " + " | ".join(kinds) + " |")
    print("|---|" + "---|" * len(kinds))
    for claims in asked.claims:
        found = batch(claims, asked.rounds, asked.round)
        print(f"| {claims} | " + " | ".join(f"{found[kind] / (claims * asked.rounds):.1f}" for kind in kinds) + " |")


if __name__ == "__main__":
    main()
