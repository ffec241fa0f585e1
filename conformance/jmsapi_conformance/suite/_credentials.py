"""The user name and the password that the backend's URL has."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from jmsapi_conformance.backend import Backend

__all__ = ["credentials_of"]


def credentials_of(backend: Backend) -> tuple[str | None, str | None]:
    """Return the user name and the password, each None where the URL has none."""
    parts = urlsplit(backend.url)
    return (
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
    )
