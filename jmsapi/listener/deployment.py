"""Deployment: from classes and functions to running containers, all of them or none.

    @JMSQueueListener(destination_lookup="orders")
    def on_order(order: Order) -> None: ...

    with deploy(on_order, factory="amqp://localhost"):
        ...

Spec: MDB-36, MDB-39, MDB-57, MDB-76, MDB-79, 12-1, 12.1-3, 12.1-4.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import jmsapi
from jmsapi._callbacks import check_callback
from jmsapi._calls_in_threads import finish_in_thread
from jmsapi._core.container import outside_container
from jmsapi._not_copied import NotCopied
from jmsapi.api import ConnectionFactory, Destination, Queue, Topic
from jmsapi.bindings import Bindings, bind_definitions
from jmsapi.errors import IllegalArgumentException, IllegalStateException, JMSException, UnsupportedFeatureException
from jmsapi.injection import Injector
from jmsapi.listener.callback_loop import CallbackLoop
from jmsapi.listener.container import ErrorHandler, ListenerContainer
from jmsapi.listener.definitions import definitions
from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.health import DeploymentHealth
from jmsapi.listener.runtime_context import ContainerTransactions
from jmsapi.listener.runtime_endpoint import InstancePool, MessageEndpoint
from jmsapi.listener.runtime_source import ActivationSource
from jmsapi.listener.server_instance import ServerInstance
from jmsapi.listener.subscription import subscription_of
from jmsapi.values import Timeout

if TYPE_CHECKING:
    from jmsapi.listener.endpoint_definition import EndpointDefinition

__all__ = ["Deployment", "deploy"]

_log = logging.getLogger("jmsapi.listener")
_UNREACHABLE: Final = ("connection", "timeout", "protocol")
"""Errors of a broker that may be back in a moment."""
_LONGEST_S: Final = 10 * 366 * 86_400.0
"""Longer waits are as long: the operating system knows no endless ones."""
Wrap = Callable[[MessageEndpoint], MessageEndpoint]


class Deployment(NotCopied):
    """Containers that live together; a context manager, which starts them and stops them. Made by ``deploy``.

    In an event loop it is ``async with``, or ``start_async`` and ``stop_async``.

    Args:
        containers: One for each endpoint.
        pools: The instances of their classes.
        bindings: What their classes have bound to names, until the deployment stops.
        callback_loop: Where asynchronous callbacks run.
        fail_fast: See ``deploy``.
    Threads: any.
    """

    def __init__(
        self,
        containers: list[ListenerContainer],
        pools: list[InstancePool],
        bindings: Bindings,
        callback_loop: CallbackLoop,
        *,
        fail_fast: bool,
    ) -> None:
        self._containers = containers
        self._pools = pools
        self._bindings = bindings
        self._callback_loop = callback_loop
        self._fail_fast = fail_fast
        self._lock = threading.Lock()
        self._started = self._stopping = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the endpoints."""
        return tuple(one.definition.name for one in self._containers)

    def start(self) -> None:
        """Connect all endpoints and let them take messages; started already, do nothing.

        A broker that cannot be reached is tried again in the background.

        Raises:
            DeploymentException: An endpoint cannot be activated, such as for a destination that the broker refuses; then
                nothing is active. With ``fail_fast=False`` that is tried again, too.
            UnsupportedFeatureException: The broker does not have what an endpoint needs, such as transactions.
            IllegalStateException: It was stopped.
        """
        with self._lock:
            if self._stopping:
                raise IllegalStateException("the deployment was stopped; deploy anew", "closed")
            if self._started:
                return
            self._started = True
        try:
            for one in self._containers:
                self._open(one)
        except BaseException:
            with self._lock:
                self._stopping = True
            for one in self._containers:
                one.discard()
            self._bindings.close()
            raise
        for one in self._containers:
            one.begin()

    def _open(self, one: ListenerContainer) -> None:
        try:
            # A callback may deploy, too; what is deployed is a container's, and not the callback's.
            with outside_container():
                one.open()
        except UnsupportedFeatureException:
            # It says what the broker cannot do, and time does not change that.
            raise
        except JMSException as error:
            if self._fail_fast and error.error_code not in _UNREACHABLE:
                name = one.definition.name
                raise DeploymentException(f"{name} cannot be activated: {error}", error_code="activation-failed") from error
            one.failed_to_open(error)

    def stop(self, deadline_ms: Timeout | None = None) -> bool:
        """Stop all endpoints: take no more, give back what no callback has seen, wait for callbacks that run.

        From inside of a callback, or of ``on_error``, it only begins that, since it cannot wait for itself.

        Args:
            deadline_ms: Longest time for all of it, in milliseconds or as a timedelta; None: the longest ``stop_deadline_ms``
                of the endpoints. A callback that still runs then is left alone, and its message comes again.
        Returns:
            Whether all has ended and no callback was left running.
        Raises:
            IllegalArgumentException: The deadline is no number.
        Threads: any. Stopping a stopped deployment does nothing more.
        """
        if deadline_ms is None:
            deadline_ms = max((one.definition.spec.stop_deadline_ms for one in self._containers), default=0)
        deadline = time.monotonic() + _seconds(deadline_ms, "stop: deadline_ms")
        with self._lock:
            began, self._stopping = self._started, True
        for one in self._containers:
            one.request_stop(deadline)
        for pool in self._pools:
            pool.close()
        self._bindings.close()
        if not began:
            for one in self._containers:
                one.discard()
            return True
        if any(one.runs_here() for one in self._containers):
            return False
        ended = [one.wait(max(0.0, deadline - time.monotonic())) for one in self._containers]
        return all(ended)

    def wait(self, timeout_ms: Timeout | None = None) -> bool:
        """Wait until all endpoints have ended: they were stopped, or have given up.

        Args:
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None for ever.
        Returns:
            Whether they have.
        Raises:
            IllegalArgumentException: The timeout is no number.
        """
        end = None if timeout_ms is None else time.monotonic() + _seconds(timeout_ms, "wait: timeout_ms")
        return all(one.ended(None if end is None else max(0.0, end - time.monotonic())) for one in self._containers)

    def close(self) -> None:
        """Stop; see ``stop``."""
        self.stop()

    @property
    def health(self) -> DeploymentHealth:
        """How all endpoints are."""
        return DeploymentHealth(tuple(one.health for one in self._containers))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- in an event loop -----------------------------------------------------------------------------------------
    async def start_async(self) -> None:
        """Start in an event loop: as ``start``, while the tasks of the loop go on. Asynchronous callbacks run in this loop.

        A task that is cancelled meanwhile goes on when the deployment has started and stopped again.

        Raises:
            JMSException: As ``start`` raises.
        """
        self._callback_loop.adopt(asyncio.get_running_loop())
        try:
            await finish_in_thread(self.start)
        except asyncio.CancelledError:
            await finish_in_thread(self.stop)
            raise

    async def stop_async(self, deadline_ms: Timeout | None = None) -> bool:
        """Stop in an event loop: as ``stop``, while the tasks of the loop go on.

        A task that is cancelled meanwhile goes on when the deployment has stopped, which the deadline bounds.

        Args:
            deadline_ms: As for ``stop``.
        Returns:
            As ``stop`` returns.
        Raises:
            IllegalArgumentException: The deadline is no number.
        """
        return await finish_in_thread(lambda: self.stop(deadline_ms))

    async def __aenter__(self) -> Self:
        await self.start_async()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop_async()

    def __repr__(self) -> str:
        return f"<Deployment of {', '.join(self.names)}>"


def _seconds(given_ms: object, what: str) -> float:
    if isinstance(given_ms, timedelta):
        given_ms = given_ms / timedelta(milliseconds=1)
    if isinstance(given_ms, bool) or not isinstance(given_ms, int | float) or given_ms != given_ms:
        raise IllegalArgumentException(f"{what} is a number of milliseconds or a timedelta, not {given_ms!r}")
    return max(0.0, min(given_ms, _LONGEST_S * 1000) / 1000)


def deploy(
    *targets: object,
    factory: ConnectionFactory | str = "default",
    injector: Injector | None = None,
    descriptor: Mapping[str, Mapping[str, object]] | None = None,
    server: ServerInstance | None = None,
    on_error: ErrorHandler | None = None,
    wrap: Wrap | None = None,
    fail_fast: bool = True,
    start: bool = True,
) -> Deployment:
    """Deploy classes and functions with listener annotations.

    Args:
        targets: Classes, functions, or a ``functools.partial`` of a class. What definition annotations of the classes ask for is
            bound to its names until the deployment stops (``jmsapi.bindings``).
        factory: For endpoints that name none: itself, a URL, or a name for ``jmsapi.lookup``.
        injector: Fills injected attributes and arguments; None for one whose contexts join the container's transactions.
        descriptor: Activation properties by name, for each endpoint or class by its name.
        server: Which server this is, for subscription names; None: as the environment says.
        on_error: Hears, with the name of the endpoint, what callbacks raise (an ``EJBException`` whose cause is the exception, or
            an application exception as it is), why a delivery could not be committed, why an endpoint has given up. None: the log
            does. Called on the threads of the containers.
        wrap: Puts an object around each endpoint of a worker, which is called in its place.
        fail_fast: Whether an endpoint that the broker refuses makes the deployment fail, instead of being tried again.
        start: Whether to start at once.
    Raises:
        IllegalArgumentException: One of the arguments that are no targets is of a wrong kind.
        DeploymentException: Something cannot be deployed; then nothing is active.
        UnsupportedFeatureException: The broker does not have what an endpoint needs; neither then.
    Threads: any.
    Spec: MDB-76, MDB-79, 12-1.
    """
    _check_arguments(factory, injector, descriptor, on_error, wrap)
    bindings = _bindings(targets)
    try:
        supplier = injector
        if supplier is None:
            default = _factory(factory, "deploy") if not isinstance(factory, str) or ":" in factory else factory
            supplier = Injector(default, transactions=ContainerTransactions())
        found = definitions(*targets, injector=supplier, descriptor=descriptor)
        here = ServerInstance.from_environment() if server is None else server
        pools: dict[str, InstancePool] = {}
        loop = CallbackLoop()
        containers = [_container(one, pools, factory, here, wrap, on_error, loop) for one in found]
    except BaseException:
        bindings.close()
        raise
    deployment = Deployment(containers, list(pools.values()), bindings, loop, fail_fast=fail_fast)
    if start:
        deployment.start()
    return deployment


def _check_arguments(factory: object, injector: object, descriptor: object, on_error: object, wrap: object) -> None:
    for name, given, fits, wanted in (
        ("factory", factory, isinstance(factory, str | ConnectionFactory), "a ConnectionFactory, a URL or a name for lookup"),
        ("injector", injector, injector is None or isinstance(injector, Injector), "an Injector, or None"),
        ("descriptor", descriptor, descriptor is None or isinstance(descriptor, Mapping), "a mapping of names, or None"),
        ("on_error", on_error, on_error is None or callable(on_error), "something to call, or None"),
        ("wrap", wrap, wrap is None or callable(wrap), "something to call, or None"),
    ):
        if not fits:
            raise IllegalArgumentException(f"deploy: {name} is {wanted}, not {given!r}")
    check_callback(on_error, "deploy: on_error")
    check_callback(wrap, "deploy: wrap")


def _bindings(targets: tuple[object, ...]) -> Bindings:
    """Bind what the definition annotations of classes ask for."""
    try:
        return bind_definitions(*(one.func if isinstance(one, functools.partial) else one for one in targets))
    except JMSException as error:
        raise DeploymentException(str(error), error_code="activation-failed") from error


def _container(
    definition: EndpointDefinition,
    pools: dict[str, InstancePool],
    factory: ConnectionFactory | str,
    server: ServerInstance,
    wrap: Wrap | None,
    on_error: ErrorHandler | None,
    callback_loop: CallbackLoop,
) -> ListenerContainer:
    spec = definition.spec
    if definition.group not in pools:
        pools[definition.group] = InstancePool(definition.make, spec.max_instances)
    named = spec.connection_factory_lookup
    dead = spec.dead_letter_destination
    source = ActivationSource(
        spec,
        _factory(factory if named is None else named, definition.name),
        None if spec.destination_lookup is None else _destination(definition, spec.destination_lookup),
        subscription_of(spec, definition.name, server),
        None if dead is None else _bound(dead),
    )
    if source.comes_back:
        raise DeploymentException(
            f"{definition.name}: deadLetterDestination: {dead!r} is where its messages come from, so none would ever be given up",
            error_code="activation-failed",
        )
    return ListenerContainer(definition, source, pools[definition.group], wrap, on_error, callback_loop)


def _factory(given: ConnectionFactory | str, what: str) -> ConnectionFactory:
    if not isinstance(given, str):
        return given
    try:
        return jmsapi.connection_factory(given) if "://" in given else jmsapi.lookup(given, ConnectionFactory)
    except JMSException as error:
        raise DeploymentException(f"{what}: its connection factory: {error}", error_code="activation-failed") from error


def _destination(definition: EndpointDefinition, name: str) -> Destination:
    kind = Topic if definition.spec.for_topic else Queue
    try:
        return jmsapi.lookup(name, kind)
    except JMSException as error:
        raise DeploymentException(f"{definition.name}: destinationLookup: {error}", error_code="activation-failed") from error


def _bound(name: str) -> Destination | None:
    """Return what has this name for ``lookup``, if anything has."""
    try:
        found = jmsapi.lookup(name)
    except JMSException as error:
        if error.error_code == "unknown-name":
            return None
        raise DeploymentException(f"deadLetterDestination: {error}", error_code="activation-failed") from error
    if isinstance(found, Destination):
        return found
    raise DeploymentException(f"deadLetterDestination: {name!r} is no destination, but {found!r}", error_code="activation-failed")
