"""One thing to certify: a URL, how to get factories for it, and what it says it can do."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import unquote

import jmsapi
from jmsapi import ConnectionFactory
from jmsapi.spi import Capabilities, ProviderEntry, traits_of
from jmsapi_conformance.brokers import Broker
from jmsapi_conformance.native import WIRES

__all__ = ["Backend", "Restart", "installed", "restart_of", "stored_file"]

Restart = Callable[[bool], None]
"""Ends the broker and starts it again on its data; True: as by kill -9. Returns when it takes connections again."""


_READY_S = 300.0


def restart_of(broker: Broker) -> Restart:
    """Return how a broker that is ours is restarted."""

    def restart(kill: bool) -> None:
        if kill:
            broker.kill()
        # A busy machine takes minutes to start a container; the tests' own deadlines say how long all may take.
        broker.restart(ready_s=_READY_S)

    return restart


def stored_file(url: str) -> Path | None:
    """Return the file of a stored in-process broker, or None: the URL is of something else."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    return Path(unquote(rest)) if scheme == "inproc" and "/" in rest else None


def _reopening(file: Path) -> Restart:
    def restart(_kill: bool) -> None:
        # What is on the disk is what a process that is killed leaves there; nothing else of the broker is kept.
        import jmsapi_inproc

        jmsapi_inproc.discard(file)

    return restart


def installed(scheme: str) -> ProviderEntry:
    """Return the provider that is installed for a scheme.

    Raises:
        LookupError: There is none; one that the process registered by itself is not looked for.
    """
    for point in entry_points(group="jmsapi.providers"):
        # One that cannot be loaded is reported by whoever asks for its scheme.
        with contextlib.suppress(ImportError):
            entry: ProviderEntry = point.load()
            if scheme in entry.schemes:
                return entry
    raise LookupError(f"no installed provider has the scheme {scheme!r}")


def _in_process(scheme: str) -> bool:
    """Return whether a provider says that its brokers live in this process, where other processes cannot reach them."""
    with contextlib.suppress(LookupError):
        return traits_of(installed(scheme)).in_process
    return False


class Backend:
    """A provider on a broker, reached by URL.

    Args:
        url: As for ``jmsapi.connection_factory``, credentials included.
        environment: Which of ``marks.ENVIRONMENT`` is there, beyond what the URL tells.
        title: What it is called in a summary; made of its capabilities when left out.
        restart: How to restart the broker, where it is the caller's own and nobody else uses it. None: it may not be.
    """

    def __init__(
        self, url: str, environment: Iterable[str] = (), title: str | None = None, restart: Restart | None = None
    ) -> None:
        self._url = url
        self._title = title
        file = stored_file(url)
        if restart is None and file is not None:
            restart = _reopening(file)
        self.restart = restart
        beyond = set(environment)
        if restart is not None:
            beyond.add("broker_restart")
        scheme = url.partition("://")[0]
        beyond.add("in_process" if _in_process(scheme) else "second_process")
        if scheme in WIRES:
            beyond.add("native_client")
        self.environment = frozenset(beyond)
        self._run = f"{os.getpid():x}{secrets.token_hex(3)}"
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """The URL with its credentials, for a second process of a test."""
        return self._url

    @property
    def title(self) -> str:
        """Provider, broker and version."""
        has = self.capabilities
        return self._title or f"{has.provider} on {has.broker} {has.version}".strip()

    def factory(self, **options: object) -> ConnectionFactory:
        """Return a new factory; options are those of ``jmsapi.connection_factory``. The SPI's contract is asserted."""
        return jmsapi.connection_factory(self._url, **{"checked": True, **options})

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the provider says once it is connected; asked once."""
        with self.factory().create_connection() as connection:
            return jmsapi.capabilities(connection)

    def unique(self, word: str) -> str:
        """Return a name that no other test and no other run uses: letters, digits and dots only."""
        return f"conformance.{word}.{self._run}.{next(self._numbers)}"

    def __repr__(self) -> str:
        return f"Backend({jmsapi.redact_url(self._url)!r})"
