"""Start a broker, in whatever way this machine allows."""

from __future__ import annotations

import atexit
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from . import _container, _process
from ._broker import Broker, Host
from ._container import ContainerHost
from ._folder import Folder, default_root
from ._given import given
from ._kinds import INFO, KINDS, BrokerKind, LauncherError
from ._process import ProcessHost

Way = Literal["container", "process"]
LaunchHow = Literal["auto", "container", "process"]
_TRIES = 3


class BrokerUnavailable(LauncherError):
    """This machine has no way to run the broker; the text says why for each way."""


def launch(
    kind: BrokerKind, how: LaunchHow = "auto", *, kept_in: Path | None = None, own: bool = False, ready_s: float = 90.0
) -> Broker:
    """Start a broker with empty data, listening on 127.0.0.1 only, and wait until every wire takes a log-in.

    A broker that is given in the environment (``JMSAPI_ARTEMIS_URLS``, ``JMSAPI_CLASSIC_URLS``, ``JMSAPI_RABBITMQ_URLS``)
    wins over starting one. What ended programs left behind on this machine is removed first.

    Args:
        kind: Which broker.
        how: A container, a local process, or (``auto``) the first of the two that works here. The environment variable
            ``JMSAPI_BROKERS_HOW`` says what ``auto`` means.
        kept_in: Let the broker outlive this program and note it in this folder, where ``found`` and ``python -m
            jmsapi_conformance.brokers down`` look; one that is noted there already is replaced. None: it ends with this
            program at the latest.
        own: Start one whatever the environment names.
        ready_s: Longest wait for it to be ready, in seconds.
    Returns:
        The broker; the caller stops it.
    Raises:
        BrokerUnavailable: No way to run it here.
        LauncherError: It did not start; the text ends with its log's last lines.
    """
    if not own and (broker := given(kind)) is not None:
        return broker
    return _start(kind, _choose(kind, how), kept_in, ready_s)


def available(how: LaunchHow = "auto") -> dict[BrokerKind, str | None]:
    """Find out which brokers can be had here, fetching images or files that are missing.

    Returns:
        For each kind None, or the reason why it cannot be had.
    """
    return {kind: _reason(kind, how) for kind in KINDS}


def found(root: Path, kind: BrokerKind) -> Broker | None:
    """Find a kept broker again.

    Args:
        root: The folder that was ``kept_in`` at its launch.
    Returns:
        The broker, running or not, or None when none is noted there.
    """
    folder = Folder(root / kind, None)
    record = folder.read()
    if record is None:
        return None
    make = ContainerHost if record["how"] == "container" else ProcessHost
    return Broker.run_by(kind, make(kind, folder, record["ports"], record["mark"]), folder)


def shared(kind: BrokerKind, root: Path, how: LaunchHow = "auto", *, ready_s: float = 90.0) -> Broker:
    """Find the broker that is kept in a folder, start it again if it has ended, or launch it there.

    One whose container somebody has removed is launched anew, with empty data.

    Safe to call from several processes: the first one launches, the others wait and find.

    Args:
        kind: Which broker; one that is given in the environment wins.
        root: The folder; ``leased_folder`` gives one that ends its brokers with the program.
        how: As for ``launch``.
        ready_s: Longest wait for it to be ready, in seconds.
    Raises:
        BrokerUnavailable: No way to run it here.
        LauncherError: It did not start; the text ends with its log's last lines.
    """
    if (broker := given(kind)) is not None:
        return broker
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{kind}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        broker = found(root, kind)
        if broker is None or not (broker.is_alive or broker.can_start_again):
            return launch(kind, how, kept_in=root, ready_s=ready_s)
        if broker.is_alive:
            broker.wait_until_ready(ready_s=ready_s)
        else:
            broker.restart(ready_s=ready_s)
        return broker


@contextmanager
def leased_folder() -> Generator[Path]:
    """Give a folder for ``shared`` brokers; they end with the block, or at the next launch after the program was killed."""
    folder = Folder.group(default_root())
    try:
        yield folder.path
    finally:
        for kind in KINDS:
            if (broker := found(folder.path, kind)) is not None:
                broker.stop()
        folder.remove()


_WAYS: dict[str, tuple[Way, ...]] = {
    "auto": ("container", "process"),
    "container": ("container",),
    "process": ("process",),
}
_WHY_NOT: dict[Way, Callable[[BrokerKind], str | None]] = {"container": _container.why_not, "process": _process.why_not}


def _ways(how: LaunchHow) -> tuple[Way, ...]:
    meaning = os.environ.get("JMSAPI_BROKERS_HOW") or "auto" if how == "auto" else how
    if meaning not in _WAYS:
        raise LauncherError(f"JMSAPI_BROKERS_HOW must be one of {', '.join(_WAYS)}, not {meaning!r}")
    return _WAYS[meaning]


def _choose(kind: BrokerKind, how: LaunchHow) -> Way:
    reasons: list[str] = []
    for way in _ways(how):
        reason = _WHY_NOT[way](kind)
        if reason is None:
            return way
        reasons.append(f"as {way}: {reason}")
    raise BrokerUnavailable(f"{INFO[kind].title} cannot be had. {'. '.join(reasons)}")


def _reason(kind: BrokerKind, how: LaunchHow) -> str | None:
    try:
        if given(kind) is None:
            _choose(kind, how)
    except LauncherError as error:
        return str(error)
    return None


def _start(kind: BrokerKind, way: Way, kept_in: Path | None, ready_s: float) -> Broker:
    root = kept_in or default_root()
    if kept_in is not None:
        _remove_kept(root, kind)
    _sweep(containers=way == "container")
    for attempt in range(_TRIES):
        folder = Folder.make(root, kind, kept=kept_in is not None)
        host: Host | None = None
        try:
            host = ContainerHost.new(kind, folder) if way == "container" else ProcessHost.new(kind, folder)
            broker = Broker.run_by(kind, host, folder)
            broker.start(ready_s=ready_s)
        except BaseException as error:
            if host is not None:
                host.remove()
            folder.remove()
            # Somebody else took one of the free ports just before the broker did.
            if "already" in str(error) and attempt + 1 < _TRIES:
                continue
            raise
        if kept_in is None:
            atexit.register(broker.stop)
        return broker
    raise AssertionError("the last attempt returns or raises")


def _remove_kept(root: Path, kind: BrokerKind) -> None:
    if (old := found(root, kind)) is not None:
        old.stop()
    # A launch that was cut off leaves a folder without a note in it.
    Folder(root / kind, None).remove()


def _sweep(*, containers: bool) -> None:
    for left in Folder.leftovers(default_root()):
        for folder in left.brokers():
            if (record := folder.read()) is not None and record["how"] == "process":
                ProcessHost(record["kind"], folder, record["ports"], record["mark"]).remove()
        left.remove()
    # A container's label names its folder: without the folder nobody wants it.
    if containers:
        _container.sweep()
