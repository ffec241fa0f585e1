"""The interface ``ConnectionMetaData``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["ConnectionMetaData"]


class ConnectionMetaData(ABC):
    """What provider and broker call themselves, and which JMS they offer.

    Threads: any number at once.
    Spec: 4.3.7-1.
    """

    @property
    @abstractmethod
    def jms_version(self) -> str:
        """Give the JMS version, ``2.0``.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def jms_major_version(self) -> int:
        """Give the first number of the JMS version.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def jms_minor_version(self) -> int:
        """Give the second number of the JMS version.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def jms_provider_name(self) -> str:
        """Give the provider's name; the broker's name is part of it where the wire tells it.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def provider_version(self) -> str:
        """Give the provider's version.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def provider_major_version(self) -> int:
        """Give the first number of the provider's version.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def provider_minor_version(self) -> int:
        """Give the second number of the provider's version.

        Spec: 4.3.7-1.
        """

    @property
    @abstractmethod
    def jmsx_property_names(self) -> Iterator[str]:
        """List the JMSX properties that this connection supports, in no particular order.

        Returns:
            A new iterator over names such as ``JMSXDeliveryCount``.
        Raises:
            JMSException: The connection is closed.
        Spec: 3.5.9-1, 3.5.9-2, 3.5.9-16, B.2.19-1, J11-11.
        """
