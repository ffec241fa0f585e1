"""What a container needs to know of one callback, whatever it was written as."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from jmsapi.api import Message
from jmsapi.listener.activation_spec import ActivationSpec
from jmsapi.listener.errors import rollback_of
from jmsapi.listener.transaction_attribute import TransactionAttribute

__all__ = ["EndpointDefinition"]


@dataclass(frozen=True, slots=True)
class EndpointDefinition:
    """One callback, ready to be called.

    Args:
        name: The endpoint's own name, unique in a deployment, such as ``shop.Orders.on_order``; also what generated
            subscription names are made from.
        group: The class of the callback (its name); callbacks of one class share its instances. A function is a group of its own.
        spec: Where its messages come from, and how.
        make: Makes an instance of the class, its injected attributes filled. For a function it returns None each time.
        call: Calls the callback of an instance (what ``make`` gave) with a message, or, if ``batch``, with a list of at least
            one; the arguments are converted here. What the callback raises comes out as it is. What cannot be converted is
            a ``MessageFormatException`` (``error_code`` ``callback-argument``), to be handled like any exception of it. What
            it returns is None, or something to await, which is always so if it is ``asynchronous``.
        batch: Whether the callback takes lists.
        asynchronous: Whether the callback is a coroutine function, or is known to stand for one.
        legacy: Whether it is the ``on_message`` of a ``MessageListener``.
        application_exceptions: Classes that are application exceptions for this callback without a mark of their own, to
            whether they roll back.
    Threads: any; it is frozen. ``make`` and ``call`` run user code, on the thread that calls them.
    Spec: MDB-1, MDB-37 to MDB-43.
    """

    name: str
    group: str
    spec: ActivationSpec
    make: Callable[[], object]
    call: Callable[[object, Message | Sequence[Message]], Awaitable[object] | None]
    batch: bool = False
    asynchronous: bool = False
    legacy: bool = False
    application_exceptions: Mapping[type[BaseException], bool] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def transaction(self) -> TransactionAttribute:
        """Who has a transaction around the callback."""
        return self.spec.transaction_attribute

    def rollback_of(self, error: BaseException) -> bool | None:
        """Tell whether what the callback raised is an application exception (not None), and then whether it rolls back."""
        return rollback_of(error, self.application_exceptions)
