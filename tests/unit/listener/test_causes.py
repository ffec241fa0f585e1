"""A failure in words: what the callback raised, where the container has wrapped it."""

from __future__ import annotations

import pytest

from jmsapi.listener import EJBException
from jmsapi.listener.causes import in_words


def caused(error: Exception, cause: Exception | None) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "unknown"),
        (ValueError("no number"), "ValueError: no number"),
        (caused(ValueError("no number"), KeyError("k")), "ValueError: no number"),
        (caused(EJBException("wrapped"), ValueError("no number")), "ValueError: no number"),
        (caused(EJBException("its own"), None), "EJBException: its own"),
    ],
)
def test_what_the_callback_raised_is_said_and_not_what_wraps_it(error: Exception | None, words: str) -> None:
    assert in_words(error) == words
