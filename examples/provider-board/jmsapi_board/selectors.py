"""How a board reads selectors: as the specification says, but with names of its own for two header fields, and short ones only.

``SELECTORS`` tells the library so. It then asks in the board's words, and evaluates itself what the board could not read.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from jmsapi.spi import Envelope, ErrorKind, ProviderError
from jmsapi.spi.view import HeaderView
from jmsapi_selector import InvalidSelector, Selector, Value, compile_selector
from jmsapi_selector.dialects import Dialect

__all__ = ["SELECTORS", "Filter"]

_PREFIX: Final = "board_"
_NAMES: Final = MappingProxyType({"JMSPriority": "board_urgency", "JMSType": "board_kind"})
_FIELDS: Final = {own: field for field, own in _NAMES.items()}

SELECTORS: Final = Dialect("board", standard=True, names=_NAMES, closed_prefixes=(_PREFIX,), longest=400)
"""How a board's selectors differ from the standard's."""


class Filter:
    """A consumer's selector.

    Raises:
        ProviderError: SELECTOR when the board cannot read it.
    """

    def __init__(self, text: str) -> None:
        if len(text.encode()) > SELECTORS.longest:
            raise ProviderError(ErrorKind.SELECTOR, f"a board reads selectors of at most {SELECTORS.longest} bytes")
        try:
            self._selector: Selector = compile_selector(text)
        except InvalidSelector as error:
            raise ProviderError(ErrorKind.SELECTOR, f"selector refused: {error}") from error

    def wants(self, envelope: Envelope) -> bool:
        """Whether the message is one of those."""
        return self._selector.matches(_Note(envelope))


class _Note:
    """A message as it hangs on a board: header fields have the board's names."""

    def __init__(self, envelope: Envelope) -> None:
        self._view = HeaderView(envelope)

    def selector_value(self, name: str) -> Value:
        """Return what stands under a name; a field's standard name is none of the board's."""
        if name in _NAMES:
            return None
        return self._view.selector_value(_FIELDS.get(name, name))
