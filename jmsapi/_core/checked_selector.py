"""Selector text from the application: checked before any traffic.

Spec: 3.8.1.1-1, 7.3-16, B.3.1-2.
"""

from __future__ import annotations

from jmsapi._core.options_check import encodable
from jmsapi.errors import InvalidSelectorException
from jmsapi_selector import InvalidSelector, compile_selector

__all__ = ["checked_selector"]


def checked_selector(text: object) -> str | None:
    """Return a valid selector's text, or None when everything is selected (None, empty or blank).

    Raises:
        InvalidSelectorException: Not a selector; the text marks where.
    """
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidSelectorException(f"a message selector is text, not {type(text).__name__}")
    if not encodable(text):
        raise InvalidSelectorException(f"a message selector holds half of a surrogate pair: {text!r}")
    try:
        return None if compile_selector(text).is_empty else text
    except InvalidSelector as error:
        raise InvalidSelectorException(str(error)) from error
