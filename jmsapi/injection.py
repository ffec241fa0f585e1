"""Contexts as arguments: made at their first use, shared by all who ask alike, closed when the request or transaction ends.

    from typing import Annotated
    from jmsapi.injection import inject

    @inject
    def place(order: str, jms: Annotated[JMSContext, JMSConnectionFactory("shop")]) -> None:
        jms.create_producer().send(jms.create_queue("orders"), order)

    place("one kettle")

Spec: 11.3.1 to 11.3.5.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Hashable
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NoReturn, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

import jmsapi
from jmsapi._calls_in_threads import finish_in_thread
from jmsapi._core.container import injecting, rules_here
from jmsapi.api import ConnectionFactory, JMSConnectionFactory, JMSContext, JMSPasswordCredential, JMSSessionMode
from jmsapi.api._annotation import annotations_of
from jmsapi.errors import IllegalStateRuntimeException, JMSException, JMSRuntimeException, to_runtime
from jmsapi.transactions import Transaction, Transactions

__all__ = ["Inject", "Injector", "inject", "marks_of", "request"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
_ALIAS: Final = re.compile(r"\$\{ALIAS=([^}]+)\}")
_MARKS: Final = (JMSConnectionFactory, JMSSessionMode, JMSPasswordCredential)
_CONTAINER_MODES: Final = (JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE)
_FORBIDDEN: Final = ("start", "stop", "close", "commit", "rollback", "recover", "acknowledge")
_MOVES: Final = (
    "create_producer",
    "request",
    *(f"create_{kind}consumer" for kind in ("", "durable_", "shared_", "shared_durable_")),
)
"""Calls that send or receive messages."""


@dataclass(frozen=True, slots=True)
class Inject:
    """Marks an argument or attribute that no other annotation marks: ``Annotated[JMSContext, Inject()]``."""


def marks_of(hint: Any) -> tuple[object, ...] | None:
    """Return the marks of an annotation that asks for an injected context; None for another annotation.

    Args:
        hint: The annotation, evaluated.
    Raises:
        TypeError: Something else than a context is marked, which nobody injects.
    """
    marks: list[object] = []
    kind = hint
    while get_origin(kind) in (Annotated, Union, UnionType):
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            marks += more
            continue
        kinds = [one for one in get_args(kind) if one is not NoneType]
        if len(kinds) > 1:
            marks += [mark for one in kinds for mark in marks_of(one) or ()]
            break
        (kind,) = kinds
    for mark in marks:
        if isinstance(mark, type) and issubclass(mark, (Inject, *_MARKS)):
            raise TypeError(f"{mark.__name__} in an annotation is a class: write {mark.__name__}(...)")
    if not any(isinstance(mark, (Inject, *_MARKS)) for mark in marks):
        return None
    if kind is not JMSContext:
        shown = kind.__name__ if isinstance(kind, type) else str(kind)
        raise TypeError(f"{shown} is marked as injected, and only a JMSContext is: write Annotated[JMSContext, ...]")
    return tuple(marks)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How a context is annotated; those that are annotated alike are one in each scope."""

    factory: str | None = None
    mode: int = JMSContext.AUTO_ACKNOWLEDGE
    credential: JMSPasswordCredential | None = None

    @classmethod
    def by(cls, marks: tuple[object, ...]) -> _Wanted:
        """Read annotations; of one kind the first counts."""
        found: dict[type, Any] = {}
        for mark in marks:
            for kind in _MARKS:
                if isinstance(mark, kind):
                    found.setdefault(kind, mark)
        factory, mode = found.get(JMSConnectionFactory), found.get(JMSSessionMode)
        return cls(
            None if factory is None else factory.value,
            JMSContext.AUTO_ACKNOWLEDGE if mode is None else mode.value,
            found.get(JMSPasswordCredential),
        )


class _Scope:
    """The contexts of one request or transaction, by how they are annotated."""

    def __init__(self) -> None:
        self._contexts: dict[Hashable, JMSContext] = {}
        self._lock = threading.Lock()
        self._over = False

    def get(self, wanted: Hashable, make: Callable[[], JMSContext]) -> JMSContext:
        """Return the context of an annotation, made at its first use."""
        with self._lock:
            if self._over:
                raise IllegalStateRuntimeException("the request of this context has ended", "closed")
            found = self._contexts.get(wanted)
            if found is None:
                found = self._contexts[wanted] = make()
            return found

    @property
    def is_used(self) -> bool:
        """Whether there is a context to close."""
        return bool(self._contexts)

    def end(self) -> None:
        """Close them all, the youngest first; what the first failure raises is raised when all are done."""
        with self._lock:
            self._over = True
            contexts = list(self._contexts.values())
            self._contexts.clear()
        with ExitStack() as stack:
            for context in contexts:
                stack.callback(context.close)


class Injector:
    """Supplies contexts to functions and classes.

    Args:
        default: The factory where no ``JMSConnectionFactory`` names one: itself, or a name for ``jmsapi.lookup``.
        transactions: Who knows of transactions; with it this is a container, in which a context has AUTO_ACKNOWLEDGE or
            DUPS_OK_ACKNOWLEDGE unless there is a transaction, whose mode then is the only one.
        aliases: Gives the password that stands for the name in ``${ALIAS=name}``; without it the environment variable
            ``JMSAPI_ALIAS_<name>`` does.
    Threads: any; a request belongs to the thread or task in which it began, and so do its contexts.
    Spec: 11.3.1 to 11.3.5.
    """

    def __init__(
        self,
        default: ConnectionFactory | str = "default",
        *,
        transactions: Transactions | None = None,
        aliases: Callable[[str], str] | None = None,
    ) -> None:
        self._default = default
        self._transactions = transactions
        self._aliases = aliases or _from_environment
        self._request: ContextVar[_Scope | None] = ContextVar("jmsapi-request", default=None)
        self._lock = threading.Lock()
        self._in_transactions: WeakKeyDictionary[Transaction, dict[_Wanted, JMSContext]] = WeakKeyDictionary()

    # ---- scopes ---------------------------------------------------------------------------------------------------
    @contextmanager
    def request(self) -> Generator[None]:
        """Have a request for a ``with`` block: its contexts are closed at its end. One inside another has its own."""
        scope = _Scope()
        token = self._request.set(scope)
        try:
            yield
        finally:
            self._request.reset(token)
            scope.end()

    def dependency(self, *marks: object) -> Callable[[], Generator[JMSContext]]:
        """Return a generator function that yields a context for one request, as web frameworks take for a dependency.

        Args:
            marks: ``JMSConnectionFactory``, ``JMSSessionMode``, ``JMSPasswordCredential``, each or none.
        """
        wanted = _Wanted.by(marks)

        def context() -> Generator[JMSContext]:
            scope = _Scope()
            try:
                yield _Injected(self, wanted, scope)
            finally:
                scope.end()

        return context

    # ---- what is supplied -----------------------------------------------------------------------------------------
    def context(self, *marks: object) -> JMSContext:
        """Return a context that stands for that of whatever request or transaction it is used in.

        Args:
            marks: ``JMSConnectionFactory``, ``JMSSessionMode``, ``JMSPasswordCredential``, each or none.
        """
        return _Injected(self, _Wanted.by(marks), None)

    def inject(self, function: Callable[P, R]) -> Callable[..., R]:
        """Supply the arguments that are annotated and not given; a call outside a request is a request of its own.

        Args:
            function: Plain or ``async``. What decorates it counts for each of its contexts that says nothing itself. The
                contexts of a coroutine are closed in a thread; a call of theirs that goes to the broker blocks as anywhere,
                so it is left to ``asyncio.to_thread``.
        Raises:
            TypeError: It is a generator function, or something else than a context is marked.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"inject: {function.__qualname__} is a generator function, whose call ends, and the request with it, before it"
                " runs; iterate inside of an injected function, with the context as an argument, or use context() and request()"
            )
        names = self._wanted_of(function, annotations_of(function, object))

        def supplied(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            given = inspect.signature(function).bind_partial(*args, **kwargs).arguments
            return {name: _Injected(self, wanted, None) for name, wanted in names.items() if name not in given}

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: Any, **kwargs: Any) -> Any:
                async with self._request_if_none_here():
                    return await cast("Any", function)(*args, **kwargs, **supplied(args, kwargs))

            return cast("Callable[..., R]", later)

        @functools.wraps(function)
        def now(*args: Any, **kwargs: Any) -> R:
            with self._request_if_none():
                return cast("Callable[..., R]", function)(*args, **kwargs, **supplied(args, kwargs))

        return now

    def make(self, kind: type[C], *args: object, **kwargs: object) -> C:
        """Make an object and fill the attributes that its class annotates, its bases' too.

        Args:
            kind: The class.
            args: For it.
            kwargs: For it.
        """
        made = kind(*args, **kwargs)
        for name, wanted in self._wanted_of(kind, annotations_of(kind, object)).items():
            setattr(made, name, _Injected(self, wanted, None))
        return made

    def _wanted_of(self, target: Any, whole: tuple[object, ...]) -> dict[str, _Wanted]:
        found: dict[str, _Wanted] = {}
        for name, hint in get_type_hints(target, include_extras=True).items():
            try:
                marks = None if name == "return" else marks_of(hint)
            except TypeError as error:
                raise TypeError(f"{getattr(target, '__qualname__', target)}, {name!r}: {error}") from None
            if marks is not None:
                found[name] = _Wanted.by((*marks, *whole))
        return found

    @contextmanager
    def _request_if_none(self) -> Generator[None]:
        if self._request.get() is not None:
            yield
            return
        with self.request():
            yield

    @asynccontextmanager
    async def _request_if_none_here(self) -> AsyncGenerator[None]:
        """Have a request for a coroutine, whose event loop is not kept waiting while contexts are closed."""
        if self._request.get() is not None:
            yield
            return
        async with self.request_async():
            yield

    @asynccontextmanager
    async def request_async(self) -> AsyncGenerator[None]:
        """Have a request for an ``async with`` block, as ``request``; its contexts are closed in a thread."""
        scope = _Scope()
        token = self._request.set(scope)
        try:
            yield
        finally:
            self._request.reset(token)
            if scope.is_used:
                await finish_in_thread(scope.end)
            else:
                scope.end()

    # ---- behind an injected context -------------------------------------------------------------------------------
    def found(self, wanted: _Wanted, scope: _Scope | None, *, moves: bool = False) -> JMSContext:
        """Return the context for here and now, which ``moves`` messages; for ``_Injected``."""
        transaction = None if self._transactions is None else self._transactions.current
        if transaction is not None:
            return self._joined(transaction, wanted)
        scope = scope or self._request.get()
        if scope is None:
            raise IllegalStateRuntimeException(
                "an injected context is used outside of a request and a transaction; call inside a function that is decorated"
                " with inject, or inside a with block of request()",
                "no-request",
            )
        if self._transactions is not None and wanted.mode not in _CONTAINER_MODES:
            raise JMSRuntimeException(
                "a container has AUTO_ACKNOWLEDGE and DUPS_OK_ACKNOWLEDGE outside of transactions", "session-mode"
            )
        if moves and wanted.mode == JMSContext.SESSION_TRANSACTED and rules_here() is None:
            raise JMSRuntimeException(
                "an injected context of SESSION_TRANSACTED would lose what it does, since nobody may commit it (11.3.5): leave"
                " the mode at AUTO_ACKNOWLEDGE or DUPS_OK_ACKNOWLEDGE, or give the Injector transactions",
                "session-mode",
            )
        return scope.get(wanted, lambda: self._create(wanted, wanted.mode))

    def _joined(self, transaction: Transaction, wanted: _Wanted) -> JMSContext:
        # The mode that is asked for has no meaning in a transaction (11.3.3-8).
        wanted = replace(wanted, mode=JMSContext.SESSION_TRANSACTED)
        with self._lock:
            contexts = self._in_transactions.setdefault(transaction, {})
        found = contexts.get(wanted)
        if found is None:
            found = contexts[wanted] = self._create(wanted, JMSContext.SESSION_TRANSACTED)
            transaction.join(found)
        return found

    def _create(self, wanted: _Wanted, mode: int) -> JMSContext:
        named = self._default if wanted.factory is None else wanted.factory
        try:
            factory = jmsapi.lookup(named, ConnectionFactory) if isinstance(named, str) else named
        except JMSException as error:
            raise to_runtime(error) from error
        credential = wanted.credential
        # In a container this context is the injector's to join and commit, if it knows of transactions; else it joins by itself.
        with nullcontext() if self._transactions is None else injecting():
            if credential is None:
                return factory.create_context(session_mode=mode)
            alias = _ALIAS.fullmatch(credential.password)
            password = credential.password if alias is None else self._aliases(alias[1])
            return factory.create_context(credential.user_name, password, mode)


def _from_environment(alias: str) -> str:
    variable = f"JMSAPI_ALIAS_{alias}"
    try:
        return os.environ[variable]
    except KeyError:
        raise JMSRuntimeException(f"the alias {alias!r} of a password has no variable {variable}", "missing-variable") from None


def _forbidden(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise IllegalStateRuntimeException(
            f"{name}: an injected context is the container's to start, stop, close, commit and set up (11.3.5)"
            + ("; acknowledge by the message: message.acknowledge()" if name == "acknowledge" else ""),
            "injected",
        )

    return refuse


def _passed_on(name: str) -> Callable[..., object]:
    moves = name in _MOVES

    def call(self: Any, *args: object, **kwargs: object) -> object:
        return getattr(self._found(moves=moves), name)(*args, **kwargs)

    # Not functools.wraps: that would make it abstract, too.
    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(JMSContext, name).__doc__
    return call


def _read(name: str) -> Callable[[Any], object]:
    return lambda self: getattr(self._found(), name)


class _Stands:
    """The settings that each injected context keeps for itself."""

    def __init__(self, injector: Injector, wanted: _Wanted, scope: _Scope | None) -> None:
        self._injector = injector
        self._wanted = wanted
        self._scope = scope

    def _found(self, *, moves: bool = False) -> JMSContext:
        return self._injector.found(self._wanted, self._scope, moves=moves)

    def __repr__(self) -> str:
        return f"<injected context: {self._wanted}>"


def _members() -> dict[str, object]:
    """Return every abstract member of a context, passed on or forbidden."""
    members: dict[str, object] = {"__enter__": _forbidden("with")}
    for name in JMSContext.__abstractmethods__:
        if isinstance(getattr(JMSContext, name), property):
            members[name] = property(_read(name), _forbidden(name))
        else:
            members[name] = _forbidden(name) if name in _FORBIDDEN else _passed_on(name)
    return members


_Injected = cast("Callable[[Injector, _Wanted, _Scope | None], JMSContext]", type("_Injected", (_Stands, JMSContext), _members()))

_default: Final = Injector()
inject: Final = _default.inject
"""``Injector.inject`` of an injector of its own: no transactions, and the factory that is bound to ``default``."""
request: Final = _default.request
"""``Injector.request`` of the same one."""
