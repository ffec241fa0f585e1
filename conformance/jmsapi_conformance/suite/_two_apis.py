"""Sessions and contexts side by side: what the classic and the simplified API must do alike."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import pytest

from jmsapi import (
    JMSContext,
    JMSException,
    JMSRuntimeException,
    Session,
    UnsupportedFeatureException,
    UnsupportedFeatureRuntimeException,
)
from jmsapi_conformance.fixtures import Connect

__all__ = ["Client", "client_of", "client_within", "each_api", "refused"]

Client = Session | JMSContext
each_api = pytest.mark.parametrize("api", ["Session", "JMSContext"])
_FAMILY: Final[dict[type, type[Exception]]] = {Session: JMSException, JMSContext: JMSRuntimeException}


def client_of(connect: Connect, api: str, client_id: str | None = None, mode: int = Session.AUTO_ACKNOWLEDGE) -> Client:
    """Create a session or a context, with a started connection of its own."""
    if api == "Session":
        return connect(client_id=client_id).create_session(mode)
    return connect.context(client_id=client_id, session_mode=mode)


@contextmanager
def client_within(connect: Connect, api: str, client_id: str | None = None) -> Generator[Client]:
    """Create a session or a context for a while; at its end the connection is closed and the client id free."""
    if api == "Session":
        with connect(client_id=client_id) as connection:
            yield connection.create_session()
    else:
        with connect.context(client_id=client_id) as context:
            yield context


@contextmanager
def refused(client: Client) -> Generator[None]:
    """See that the calls inside are refused with an exception of the client's own family.

    That a whole feature is not there is no such refusal: it passes, for the verdict.
    """
    family = next(kind for api, kind in _FAMILY.items() if isinstance(client, api))
    try:
        yield
    except (UnsupportedFeatureException, UnsupportedFeatureRuntimeException):
        raise
    except family:
        return
    pytest.fail(f"a {family.__name__} was expected")
