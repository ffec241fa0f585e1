"""From classes and functions with annotations to endpoint definitions.

Spec: MDB-1 to MDB-6, MDB-37, MDB-38, MDB-76, MDB-78.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast, get_type_hints

from jmsapi._callbacks import check_returned, is_asynchronous, is_coroutine_function
from jmsapi._validation import closest
from jmsapi.api import JMSConnectionFactory, Message, MessageListener
from jmsapi.injection import Injector
from jmsapi.listener.activation_properties import merged_properties, notes_of
from jmsapi.listener.activation_spec import ActivationSpec
from jmsapi.listener.annotations import CallbackAnnotation, JMSListenerProperty, MessageDriven, PropertyAnnotation
from jmsapi.listener.arguments import CallPlan, injects, plan_call
from jmsapi.listener.endpoint_definition import EndpointDefinition
from jmsapi.listener.errors import DeploymentException
from jmsapi.listener.transaction_attribute import TransactionAttribute

__all__ = ["definitions"]

_Call = Callable[[object, Message | Sequence[Message]], Awaitable[object] | None]
_OF_CALLBACKS: Final = (PropertyAnnotation, JMSListenerProperty)
_HOW: Final = "decorate a method or function with JMSListener, JMSQueueListener or another of the listener annotations"


def definitions(
    *targets: object, injector: Injector | None = None, descriptor: Mapping[str, Mapping[str, object]] | None = None
) -> list[EndpointDefinition]:
    """Read the callbacks of classes and functions.

    Args:
        targets: Classes, functions, or a ``functools.partial`` of a class, which says what instances are made with.
        injector: Fills injected attributes and arguments; None for one of its own, without transactions.
        descriptor: Activation properties by name, for each endpoint or class by its name; they win over those in the source.
    Returns:
        One for each callback, in the order of the targets and of each source.
    Raises:
        DeploymentException: ``error_code`` is ``no-callback``, ``mixed-listeners``, ``bad-callback``, ``unknown-property`` or
            ``bad-activation``.
    Threads: any.
    Spec: MDB-1, MDB-3, MDB-6, MDB-22, MDB-76.
    """
    supplier = Injector() if injector is None else injector
    outside = {} if descriptor is None else dict(descriptor)
    found = [one for target in targets for one in _Read(target, supplier, outside).endpoints()]
    known = [name for one in found for name in (one.name, one.group)]
    for name in outside:
        if name not in known:
            raise DeploymentException(
                f"the descriptor configures {name!r}, which is not deployed{closest(name, known, 'names')}",
                error_code="bad-activation",
            )
    _check_together(found)
    return found


class _Read:
    """One class or function, read for its callbacks."""

    def __init__(self, target: object, injector: Injector, descriptor: Mapping[str, Mapping[str, object]]) -> None:
        self._injector = injector
        self._descriptor = descriptor
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        if isinstance(target, functools.partial):
            self._args, self._kwargs = target.args, target.keywords
            target = cast("object", target.func)
        if not (isinstance(target, type) or (inspect.isfunction(target) and not self._args and not self._kwargs)):
            raise DeploymentException(
                f"{target!r} cannot be deployed: give a class, a function, or a functools.partial of a class",
                error_code="no-callback",
            )
        self._target: type | Callable[..., object] = target
        self._whole = notes_of(target)
        drivens = [note for note in self._whole if isinstance(note, MessageDriven)]
        if len(drivens) > 1:
            raise DeploymentException(f"{target.__qualname__}: it has MessageDriven twice", error_code="bad-activation")
        self._driven = drivens[0] if drivens else MessageDriven()
        self._group = self._driven.name or f"{target.__module__}.{target.__qualname__}"

    def endpoints(self) -> list[EndpointDefinition]:
        """Return the definitions of its callbacks."""
        target = self._target
        if not isinstance(target, type):
            if not any(isinstance(note, CallbackAnnotation) for note in self._whole):
                raise self._no_callback()
            return [self._endpoint(self._group, target, self._whole, lambda: None, lambda _: target, bound=False)]
        for note in self._whole:
            if isinstance(note, _OF_CALLBACKS):
                raise DeploymentException(
                    f"{self._group}: {type(note).__name__} decorates the class; decorate a method, or use MessageDriven",
                    error_code="no-callback",
                )
            if isinstance(note, JMSConnectionFactory) and not self._injects(target):
                raise DeploymentException(
                    f"{self._group}: JMSConnectionFactory on the class is for injected attributes, and it has none; decorate"
                    " the callback, or give connectionFactoryLookup to MessageDriven",
                    error_code="no-callback",
                )
        methods = list(self._methods(target))
        if MessageListener in target.__mro__:
            return [self._legacy(target, methods)]
        callbacks = [(name, raw, notes) for name, raw, notes in methods if self._is_callback(name, notes)]
        if not callbacks:
            raise self._no_callback()
        make = self._maker(target)
        return [self._method(target, make, *callback) for callback in callbacks]

    def _no_callback(self) -> DeploymentException:
        further = ""
        if callable(getattr(self._target, "on_message", None)):
            further = "; or have the class derive from MessageListener"
        return DeploymentException(f"{self._group} has no callback: {_HOW}{further}", error_code="no-callback")

    @staticmethod
    def _methods(target: type) -> list[tuple[str, object, tuple[object, ...]]]:
        # As in Java: a method that overrides a callback is one only if it is annotated itself.
        names = {name: None for kind in reversed(target.__mro__) for name in vars(kind)}
        raws = {name: inspect.getattr_static(target, name) for name in names}
        return [(name, raw, notes_of(raw)) for name, raw in raws.items() if not isinstance(raw, type)]

    def _is_callback(self, name: str, notes: tuple[object, ...]) -> bool:
        if any(isinstance(note, MessageDriven) for note in notes):
            raise DeploymentException(
                f"{self._group}.{name}: it has MessageDriven, which is for the class; use JMSListenerProperty",
                error_code="no-callback",
            )
        if any(isinstance(note, CallbackAnnotation) for note in notes):
            return True
        for note in notes:
            if isinstance(note, _OF_CALLBACKS):
                raise DeploymentException(
                    f"{self._group}.{name}: it has {type(note).__name__} and is no callback; add JMSListener",
                    error_code="no-callback",
                )
        return False

    def _maker(self, target: type) -> Callable[[], object]:
        args, kwargs, injector = self._args, self._kwargs, self._injector
        fill = self._injects(target)
        self._check_can_be_made(target)

        def make() -> object:
            return cast("object", injector.make(target, *args, **kwargs) if fill else target(*args, **kwargs))

        return make

    def _check_can_be_made(self, target: type) -> None:
        """Refuse what would have every message come back, once there are messages."""
        if inspect.isabstract(target):
            missing = ", ".join(sorted(cast("frozenset[str]", vars(target)["__abstractmethods__"])))
            raise DeploymentException(
                f"{self._group} is abstract, so it cannot be made: it lacks {missing}", error_code="bad-callback"
            )
        try:
            signature = inspect.signature(target)
        except (TypeError, ValueError):
            # Such as one that is written in C: its first instance shows.
            return
        try:
            signature.bind(*self._args, **self._kwargs)
        except TypeError as error:
            raise DeploymentException(
                f"{self._group} cannot be made with the arguments it is deployed with: {error}; deploy"
                f" functools.partial({target.__name__}, ...), which gives it its arguments",
                error_code="bad-callback",
            ) from None

    def _injects(self, target: type) -> bool:
        try:
            return any(injects(hint) for hint in get_type_hints(target, include_extras=True).values())
        except (NameError, TypeError) as error:
            # A name that only type checkers import is no matter, unless something is to be injected.
            texts = [str(hint) for kind in target.__mro__ for hint in vars(kind).get("__annotations__", {}).values()]
            if not any("Annotated" in text for text in texts):
                return False
            raise DeploymentException(
                f"{self._group}: its annotations cannot be read: {error}", error_code="bad-callback"
            ) from error

    def _legacy(self, target: type, methods: list[tuple[str, object, tuple[object, ...]]]) -> EndpointDefinition:
        for name, _, notes in methods:
            for note in notes:
                if isinstance(note, (*_OF_CALLBACKS, JMSConnectionFactory, TransactionAttribute)):
                    raise DeploymentException(
                        f"{self._group}.{name} has {type(note).__name__}, and the class is a MessageListener, which is"
                        " configured as a whole: leave out the annotation, or MessageListener",
                        error_code="mixed-listeners",
                    )
        on_message = inspect.getattr_static(target, "on_message")
        asynchronous = is_coroutine_function(on_message)
        if not asynchronous and is_asynchronous(on_message):
            raise DeploymentException(
                f"{self._group}: on_message is a generator function, and nobody would iterate what it returns: write def or"
                " async def without yield",
                error_code="bad-callback",
            )
        properties = merged_properties(self._group, (), self._whole, self._descriptor.get(self._group, {}))

        def call(bean: object, message: Message | Sequence[Message]) -> Awaitable[object] | None:
            result: object = cast("MessageListener", bean).on_message(cast("Message", message))  # type: ignore[func-returns-value]
            return _awaited(result, f"{self._group}: on_message")

        return EndpointDefinition(
            name=self._group,
            group=self._group,
            spec=self._spec(self._group, properties, batch=False),
            make=self._maker(target),
            call=self._in_request(call, asynchronous=asynchronous) if self._injects(target) else call,
            legacy=True,
            asynchronous=asynchronous,
            application_exceptions=self._driven.application_exceptions,
        )

    def _method(
        self, target: type, make: Callable[[], object], name: str, raw: object, notes: tuple[object, ...]
    ) -> EndpointDefinition:
        bound = not isinstance(raw, staticmethod)
        function = getattr(raw, "__func__", raw)
        endpoint = f"{self._group}.{name}"
        if not inspect.isfunction(function):
            raise DeploymentException(f"{endpoint} is no method, but {raw!r}", error_code="bad-callback")
        return self._endpoint(
            endpoint, function, notes, make, operator.attrgetter(name), bound=bound, injected=self._injects(target)
        )

    def _endpoint(
        self,
        name: str,
        function: Callable[..., object],
        notes: tuple[object, ...],
        make: Callable[[], object],
        of_bean: Callable[[object], Callable[..., object]],
        *,
        bound: bool,
        injected: bool = False,
    ) -> EndpointDefinition:
        by_class = self._descriptor.get(self._group, {})
        by_name = self._descriptor.get(name, {})
        properties = merged_properties(name, notes, self._whole, by_class, by_name)
        plan = plan_call(function, name, bound=bound)
        if plan.injected:
            supplied = self._injector.inject(function)
            of_bean = (lambda bean: functools.partial(supplied, bean)) if bound else (lambda _: supplied)
        call = _caller(name, plan, of_bean)
        return EndpointDefinition(
            name=name,
            group=self._group,
            spec=self._spec(name, properties, batch=plan.batch),
            make=make,
            call=self._in_request(call, asynchronous=plan.asynchronous) if injected or plan.injected else call,
            batch=plan.batch,
            asynchronous=plan.asynchronous,
            application_exceptions=self._driven.application_exceptions,
        )

    def _in_request(self, call: _Call, *, asynchronous: bool) -> _Call:
        injector = self._injector

        async def in_request_awaited(bean: object, message: Message | Sequence[Message]) -> None:
            async with injector.request_async():
                returned = call(bean, message)
                if returned is not None:
                    await returned

        def in_request(bean: object, message: Message | Sequence[Message]) -> Awaitable[object] | None:
            with injector.request():
                return call(bean, message)

        return in_request_awaited if asynchronous else in_request

    @staticmethod
    def _spec(name: str, properties: Mapping[str, object], *, batch: bool) -> ActivationSpec:
        spec = ActivationSpec.from_properties(properties, name)
        if spec.batch_size > 1 and not batch:
            raise DeploymentException(
                f"{name}: batchSize is {spec.batch_size}, and the callback takes one message; have it take a list[Message]",
                error_code="bad-activation",
            )
        return spec


def _caller(name: str, plan: CallPlan, of_bean: Callable[[object], Callable[..., object]]) -> _Call:
    if len(plan.positional) == 1 and not plan.named:
        (only,) = plan.positional

        def call_with_one(bean: object, message: Message | Sequence[Message]) -> Awaitable[object] | None:
            return _awaited(of_bean(bean)(only(message)), name)

        return call_with_one

    def call(bean: object, message: Message | Sequence[Message]) -> Awaitable[object] | None:
        given = [make(message) for make in plan.positional]
        return _awaited(of_bean(bean)(*given, **{argument: make(message) for argument, make in plan.named}), name)

    return call


def _awaited(result: object, name: str) -> Awaitable[object] | None:
    """Return what is to be awaited of what a callback has returned; a generator, which nobody iterates, is refused."""
    if result is None:
        return None
    if inspect.isawaitable(result):
        return result
    check_returned(result, name)
    return None


def _check_together(found: list[EndpointDefinition]) -> None:
    """Refuse what would fail, or go wrong silently, only when two endpoints are active."""
    names: set[str] = set()
    clients: dict[tuple[str | None, str], str] = {}
    instances: dict[str, int | None] = {}
    for one in found:
        if one.name in names:
            raise DeploymentException(
                f"{one.name} is deployed twice: give one of the two another name", error_code="bad-activation"
            )
        names.add(one.name)
        client = one.spec.client_id
        other = None if client is None else clients.setdefault((one.spec.connection_factory_lookup, client), one.name)
        if other not in (None, one.name):
            raise DeploymentException(
                f"{one.name} and {other} have the client id {client!r}: each endpoint has a connection of its own, so"
                " give each its own clientId, or none",
                error_code="bad-activation",
            )
        if instances.setdefault(one.group, one.spec.max_instances) != one.spec.max_instances:
            raise DeploymentException(
                f"{one.group}: its callbacks differ in maxInstances, and share the instances: set it by MessageDriven",
                error_code="bad-activation",
            )
