"""Message selectors on their own: check a text, try it on values, ask why something did not match.

    >>> selector = compile_selector("color = 'blue' AND weight > 2500")
    >>> selector.matches({"color": "blue", "weight": 3000})
    True
    >>> print(selector.explain({"color": "red", "weight": 3000}))
    FALSE    color = 'blue' AND weight > 2500
      FALSE    color = 'blue'
        'red' (string) color
      TRUE     weight > 2500
        3000 (int) weight

Values are plain Python values or the typed ones of ``jmsapi.values``; header fields go by their JMS names.

Spec: 3.8.
"""

from __future__ import annotations

import jmsapi_selector
from jmsapi.errors import InvalidSelectorException
from jmsapi_selector import Explanation, InvalidSelector, Selector, SelectorValues, Truth

__all__ = ["Explanation", "InvalidSelector", "Selector", "SelectorValues", "Truth", "compile_selector"]


def compile_selector(text: str | None) -> Selector:
    """Turn selector text into a test over one message's values.

    Args:
        text: One condition, at most 65,536 characters, nested no deeper than 256. None and blank text select everything.
    Returns:
        The selector, safe to share between threads.
    Raises:
        InvalidSelectorException: Bad grammar, or what can be seen from the text alone to have no meaning. Its text marks
            the place; ``__cause__`` is an InvalidSelector with ``reason`` and ``span``.
    Threads: any.
    Spec: 3.8.1.1-52, 3.8.1.1-54.
    """
    try:
        return jmsapi_selector.compile_selector(text)
    except InvalidSelector as error:
        raise InvalidSelectorException(str(error)) from error
