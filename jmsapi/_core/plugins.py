"""Where providers come from: the entry point group ``jmsapi.providers``, and what a program registers at run time.

Nothing is loaded before a scheme is asked for. A provider written for another major version of the SPI is refused here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from jmsapi.errors import JMSException
from jmsapi.spi import VERSION, Clock, Provider, ProviderEntry, traits_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from jmsapi.spi.options import ProviderOptions

__all__ = ["GROUP", "Providers", "create_provider", "providers"]

GROUP: Final = "jmsapi.providers"


def _installed() -> Iterable[EntryPoint]:
    # Costs 30 ms, so not before a provider is looked up.
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


class Providers(Mapping[str, ProviderEntry]):
    """Provider entries by URL scheme; looking one up loads no more than it must.

    Args:
        discover: Gives the installed entry points; asked once.
    Threads: any.
    """

    def __init__(self, discover: Callable[[], Iterable[EntryPoint]] = _installed) -> None:
        self._discover = discover
        # A provider's module may register further ones while it is loaded.
        self._lock = threading.RLock()
        self._registered: dict[str, ProviderEntry] = {}
        self._found: dict[str, ProviderEntry] = {}
        self._unread: list[EntryPoint] | None = None
        self._broken: dict[str, JMSException] = {}

    def left_behind(self) -> None:
        """Let a forked child in, where no thread of its parent releases the lock."""
        self._lock = threading.RLock()

    def register(self, entry: ProviderEntry) -> None:
        """Add a provider; it comes before an installed one of the same scheme.

        Raises:
            JMSException: It is no provider entry, or was written for another major version of the SPI.
        """
        _check(entry, "register_provider")
        with self._lock:
            for scheme in entry.schemes:
                self._registered[scheme] = entry

    def __getitem__(self, scheme: str) -> ProviderEntry:
        with self._lock:
            if scheme in self._registered:
                return self._registered[scheme]
            # An entry point is named after its first scheme, so most often one is enough.
            self._load(scheme.startswith)
            if scheme not in self._found:
                self._load(lambda _: True)
            found = self._found.get(scheme)
            broken = next((error for name, error in self._broken.items() if scheme.startswith(name)), None)
        if found is None:
            if broken is not None:
                # A new one each time: an exception collects the traceback of everybody who raises it.
                raise JMSException(str(broken), broken.error_code) from broken.__cause__
            raise KeyError(scheme)
        return found

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            self._load(lambda _: True)
            return iter(sorted({*self._found, *self._registered}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def entries(self) -> tuple[ProviderEntry, ...]:
        """Return every provider once, by name."""
        found = {id(self[scheme]): self[scheme] for scheme in self}
        return tuple(sorted(found.values(), key=lambda entry: entry.name))

    def faults(self) -> dict[str, JMSException]:
        """Return the installed entry points that could not be used, by name, and why."""
        with self._lock:
            self._load(lambda _: True)
            return dict(self._broken)

    def _load(self, wanted: Callable[[str], bool]) -> None:
        if self._unread is None:
            self._unread = sorted(self._discover(), key=lambda point: (point.name, point.value))
        unread, self._unread = self._unread, []
        for point in unread:
            if not wanted(point.name):
                self._unread.append(point)
                continue
            try:
                entry = _loaded(point)
            except JMSException as error:
                # One bad distribution must not take the others away; whoever asks for its scheme gets the reason.
                self._broken[point.name] = error
                continue
            for scheme in entry.schemes:
                self._found.setdefault(scheme, entry)


def _loaded(point: EntryPoint) -> ProviderEntry:
    try:
        found: object = point.load()
    except Exception as error:
        raise JMSException(
            f"the provider {point.name!r} is installed as {point.value} but cannot be loaded: {error}", "provider-broken"
        ) from error
    _check(found, f"the entry point {point.name} = {point.value}")
    return cast("ProviderEntry", found)


def _check(entry: object, asked: str) -> None:
    parts = ("spi_version", "name", "schemes", "extra", "options", "create")
    missing = [part for part in parts if not hasattr(entry, part)]
    if missing:
        raise JMSException(f"{asked}: {entry!r} is no provider entry, it has no {', '.join(missing)}", "provider-broken")
    version = cast("ProviderEntry", entry).spi_version
    if version[0] != VERSION[0]:
        raise JMSException(
            f"{asked}: the provider {cast('ProviderEntry', entry).name!r} was written for version {_dotted(version)} of "
            f"jmsapi.spi, this jmsapi has {_dotted(VERSION)}; install versions of both that agree",
            "provider-version",
        )


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


providers: Final = Providers()
"""The providers that are installed, and those that this program has registered."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=providers.left_behind)


def create_provider(entry: ProviderEntry, options: ProviderOptions, clock: Clock) -> Provider:
    """Make an unopened provider.

    Raises:
        JMSException: Its wire library is not installed; the text has the line that installs it.
    """
    try:
        return entry.create(options, clock)
    except ImportError as error:
        install = f"pip install 'jmsapi[{entry.extra}]'" if entry.extra else "see its own documentation"
        raise JMSException(
            f"{options.scheme}:// needs the module {error.name or error}, which is not installed: {install}"
            + (f". {installing}" if (installing := traits_of(entry).installing) else ""),
            "missing-extra",
        ) from error
