"""JMSXUserID: who sends, as the client says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jmsapi.spi import Capabilities, emulated, none

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["with_user"]

_SAID: Final = emulated("the client says the user name that it has logged in with; the broker does not check it")
_SILENT: Final = none("user_id=false: messages do not say who sends them")
_NOBODY: Final = none("the connection has no user name")


def with_user(has: Capabilities, options: ProviderOptions) -> Capabilities:
    """Return what a broker can do, and what messages of a connection with these options say of their sender."""
    user = options.user or None
    if user is None:
        return replace(has, user_id=_NOBODY)
    return replace(has, user_id=_SAID, user=user) if options.user_id else replace(has, user_id=_SILENT)
