"""What a connection tells about the API and the provider behind it.

Spec: 4.3.7-1, B.2.19-1, 3.5.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jmsapi._version import __version__
from jmsapi.api import ConnectionMetaData
from jmsapi.spi import Capabilities

__all__ = ["MetaDataImpl"]

_NAMES: Final = ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")


class MetaDataImpl(ConnectionMetaData):
    """Metadata of one open connection.

    Args:
        capabilities: What the provider said when it opened.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    @property
    def capabilities(self) -> Capabilities:
        """Return what this provider on this broker can do; beyond JMS."""
        return self._capabilities

    @property
    def jms_version(self) -> str:
        """Return the version of the specification."""
        return "2.0"

    @property
    def jms_major_version(self) -> int:
        """Return its major number."""
        return 2

    @property
    def jms_minor_version(self) -> int:
        """Return its minor number."""
        return 0

    @property
    def jms_provider_name(self) -> str:
        """Return the name of the provider and of its broker."""
        has = self._capabilities
        return f"jmsapi {has.provider} on {has.broker} {has.version}".rstrip()

    @property
    def provider_version(self) -> str:
        """Return the version of jmsapi."""
        return __version__

    @property
    def provider_major_version(self) -> int:
        """Return its major number."""
        return self._part(0)

    @property
    def provider_minor_version(self) -> int:
        """Return its minor number."""
        return self._part(1)

    @property
    def jmsx_property_names(self) -> Iterator[str]:
        """Return the JMSX properties that the connection knows."""
        return iter((*_NAMES, "JMSXUserID") if self._capabilities.user_id else _NAMES)

    def _part(self, index: int) -> int:
        return int(re.findall(r"\d+", __version__)[index])
