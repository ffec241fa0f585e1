"""The in-process brokers of this process, by name.

One in memory lives as long as the process, one with a store as long as it has connections. A forked child has none of its
parent's: another thread may have been in the middle of a call and hold locks that nothing in the child would ever release, and
what waits in a queue would be delivered in both processes. The child's connections are lost, and a new one of its own meets an
empty broker, or for a file the error that the parent has it.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from jmsapi.spi import Clock, ErrorKind, ProviderError
from jmsapi_inproc.broker import CLOSE_S, BrokerClient, InProcessBroker
from jmsapi_inproc.queue import BrokerQueue

__all__ = ["connect", "discard", "queue_names", "real_path", "retire"]

_brokers: Final[dict[str | Path, InProcessBroker]] = {}
_lock = threading.RLock()
_left_to_parent: Final[list[InProcessBroker]] = []
"""Brokers that came by a fork. They are kept so that nothing of them is closed: files and queues are the parent's."""


def connect(connection: BrokerClient, name: str | Path, clock: Clock) -> InProcessBroker:
    """Add a connection to the broker of that name, which is created if there is none.

    Raises:
        ProviderError: CLIENT_ID when another connection has this client id; for a stored one CONNECTION when its file cannot be
            used, IN_USE when another process has it.
    """
    with _lock:
        broker = _brokers.get(name)
        if broker is None:
            broker = _brokers[name] = InProcessBroker(name, clock, end)
        with broker.lock:
            broker.join(connection)
    return broker


def _called(name: str | Path) -> InProcessBroker | None:
    with _lock:
        return _brokers.get(real_path(name) if isinstance(name, Path) else name)


def queue_names(name: str | Path) -> list[str] | None:
    """Return the names of a broker's queues; see ``jmsapi_inproc.queue_names``."""
    broker = _called(name)
    if broker is None:
        return None
    with broker.lock:
        return [one.name for one in broker.destinations() if isinstance(one, BrokerQueue) and one.owner is None]


def discard(name: str | Path) -> bool:
    """Forget the in-process broker of that name with all it holds; close the store of a file. See ``jmsapi_inproc.discard``."""
    broker = _called(name)
    if broker is None:
        return False
    what = f"inproc broker {name!r} was discarded" if broker.store is None else f"the store {broker.name} was closed"
    return end(broker, ProviderError(ErrorKind.CONNECTION, what, fatal=True))


def end(broker: InProcessBroker, cause: ProviderError) -> bool:
    """Forget a broker, for a reason that is reported to its connections; False when another thread does.

    Threads: any.
    """
    with _lock:
        if _brokers.get(broker.name) is not broker:
            return False
        del _brokers[broker.name]
    broker.discard(cause)
    return True


def retire(broker: InProcessBroker) -> None:
    """Close the store of a broker whose last connection has left, so that another process can have it.

    Threads: any.
    """
    store = broker.store
    with _lock, broker.lock:
        if store is None or broker.connections or _brokers.get(broker.name) is not broker:
            return
        ends = not broker.branches
        if ends:
            del _brokers[broker.name]
            store.close_in_order(broker.queues())
    if ends:
        store.close(CLOSE_S)
    else:
        store.writer.rest(CLOSE_S)


def real_path(path: Path) -> Path:
    """Return the one name of a file, whatever it is called in a URL."""
    return Path(os.path.realpath(path))


def _after_fork() -> None:
    """Cut a child's connections to its parent's brokers. Takes no lock: the thread that has it may not be here."""
    global _lock
    _lock = threading.RLock()
    _left_to_parent.extend(_brokers.values())
    for name, broker in _brokers.items():
        what = f"in-process broker {name!r}" if broker.store is None else f"store {name}"
        for connection in broker.connections:
            connection.sever(f"the connection belongs to process {broker.process}, which has the {what}; this is its child")
    _brokers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
