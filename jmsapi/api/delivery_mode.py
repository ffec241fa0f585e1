"""The interface ``DeliveryMode``."""

from __future__ import annotations

from typing import Final

__all__ = ["DeliveryMode"]


class DeliveryMode:
    """The two promises a send can ask for; plain numbers, as in Java.

    Attributes:
        NON_PERSISTENT: At most once: the message may be lost when the provider fails.
        PERSISTENT: Once and only once: the provider stores the message before the send is done.
    Spec: 4.7-1.
    """

    NON_PERSISTENT: Final[int] = 1
    PERSISTENT: Final[int] = 2
