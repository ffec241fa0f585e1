"""The in-process provider: a message broker inside the process, the embedded default and a test double.

``inproc://name`` names a broker; all connections of the process with that name share it. It is created by its first connection,
whose clock it takes, and then lives as long as the process: queues, PERSISTENT and NON_PERSISTENT messages and durable
subscriptions outlive the connections. ``discard(name)`` ends it. ``inproc:///path/file.db`` names a broker that keeps PERSISTENT
messages and durable subscriptions in a file, whatever happens to the process; ``discard(Path(...))`` closes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from jmsapi.spi import VERSION, Clock, Provider, ProviderTraits
from jmsapi_inproc.embedding import Embedding, embed, embedding_of

if TYPE_CHECKING:
    from jmsapi.spi import ProviderEntry
    from jmsapi.spi.options import ProviderOptions

__all__ = ["Embedding", "discard", "embed", "embedding_of", "entry", "queue_names"]


class _InProcessEntry:
    """The object that the entry point names."""

    spi_version = VERSION
    name = "inproc"
    schemes = ("inproc",)
    extra = None
    traits = ProviderTraits(in_process=True, xa=True, exact_selectors=True)

    def options(self) -> type[ProviderOptions]:
        """Return the pydantic model of the options."""
        from jmsapi_inproc.options import InprocOptions

        return InprocOptions

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        """Make a connection that is not open yet."""
        from jmsapi_inproc.options import InprocOptions
        from jmsapi_inproc.xa.provider import InprocXAProvider

        if not isinstance(options, InprocOptions):
            raise TypeError(f"options of the in-process provider are InprocOptions, not {type(options).__name__}")
        embedding = embedding_of(options.host)
        if embedding is None:
            return InprocXAProvider(options, clock)
        return embedding.wrap(InprocXAProvider(options, embedding.clock))

    def clock(self, options: ProviderOptions) -> Clock | None:
        """Return the clock of an embedded broker's connections; see ``jmsapi.spi.KeepsTime``."""
        embedding = embedding_of(options.host)
        return None if embedding is None else embedding.connection_clock


def discard(name: str | Path) -> bool:
    """Forget the in-process broker of that name with all it holds; close the store of a file.

    A broker otherwise lives as long as the process. Connections that are still open lose their link, as if a server had
    died; the next connection to the name meets an empty broker, the next one to the file what is kept there.

    Args:
        name: As it stands in the URL, ``inproc://name``; empty for ``inproc://``. The file of a stored broker as a ``Path``.
    Returns:
        Whether there was such a broker.
    Threads: any.
    """
    from jmsapi_inproc import registry

    return registry.discard(name)


def queue_names(name: str | Path) -> list[str] | None:
    """Return the names of a broker's queues; temporary ones and those of subscriptions are not among them.

    In a file only queues with messages outlast the broker.

    Args:
        name: As for ``discard``.
    Returns:
        The names, in no order; None if there is no such broker.
    Threads: any.
    """
    from jmsapi_inproc import registry

    return registry.queue_names(name)


entry: Final[ProviderEntry] = _InProcessEntry()
