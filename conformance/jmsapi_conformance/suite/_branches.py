"""Branches of distributed transactions, and sessions that work in them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from jmsapi import (
    ConnectionFactory,
    Queue,
    Session,
    UnsupportedFeatureException,
    XAConnection,
    XAConnectionFactory,
    XASession,
    Xid,
)
from jmsapi.xa import XAException
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.kit import text_of

__all__ = ["code_of", "new_xid", "waiting", "xa_connection", "xa_factory", "xa_session"]

_numbers = itertools.count(1)


def new_xid() -> Xid:
    """Return a name that nobody else uses."""
    return Xid(4711, os.urandom(16), str(next(_numbers)).encode())


@pytest.fixture
def xa_factory(backend: Backend, factory: ConnectionFactory) -> XAConnectionFactory:
    """Give the factory as one of XA connections; where XA is not claimed it must be none, and there is no call to be refused."""
    claim = backend.capabilities.xa
    if not claim:
        assert not isinstance(factory, XAConnectionFactory), "claims that xa is NONE, yet its factory has it"
        # There is no call that could refuse: the factory is none of XA, and that is the refusal which 4.4.8 knows.
        has = backend.capabilities
        raise UnsupportedFeatureException("XA", has.provider, reason=f"no XA connection factory: {claim.note or 'not offered'}")
    assert isinstance(factory, XAConnectionFactory)
    return factory


@pytest.fixture
def xa_connection(xa_factory: XAConnectionFactory) -> Iterator[XAConnection]:
    """Give a started XA connection."""
    with xa_factory.create_xa_connection() as made:
        made.start()
        yield made


@pytest.fixture
def xa_session(xa_connection: XAConnection) -> XASession:
    """Give a session of it."""
    return xa_connection.create_xa_session()


def waiting(session: Session, queue: Queue) -> list[str | None]:
    with session.create_browser(queue) as browser:
        return [text_of(message) for message in browser]


def code_of(raised: pytest.ExceptionInfo[XAException]) -> int:
    return raised.value.xa_code
