"""The parts of stomp.py 9 that we stand on, with the types it does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["BaseConnection", "Connection12", "Protocol12", "Transport"]

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

    class Transport:
        """stomp.transport.Transport."""

        running: bool
        blocking: bool
        connected: bool
        socket: socket.socket | None
        current_host_and_port: tuple[str, int] | None
        vhost: str | None

        def __init__(
            self,
            host_and_ports: Sequence[tuple[str, int]],
            *,
            prefer_localhost: bool,
            try_loopback_connect: bool,
            reconnect_attempts_max: int,
            vhost: str | None,
            auto_decode: bool,
        ) -> None: ...
        def set_connected(self, connected: bool) -> None: ...
        def is_connected(self) -> bool: ...

    class BaseConnection:
        """stomp.connect.BaseConnection."""

        transport: Transport

        def __init__(self, transport: Transport) -> None: ...

    class Protocol12:
        """stomp.protocol.Protocol12."""

        def __init__(self, transport: Transport, *, heartbeats: tuple[int, int], auto_content_length: bool) -> None: ...

    class Connection12(BaseConnection, Protocol12):
        """stomp.Connection12."""

        def connect(
            self,
            username: str | None,
            passcode: str | None,
            *,
            wait: bool,
            headers: Mapping[str, str],
            with_connect_command: bool,
        ) -> None: ...
        def disconnect(self, receipt: str | None) -> None: ...

else:
    from stomp.connect import BaseConnection
    from stomp.connect import StompConnection12 as Connection12
    from stomp.protocol import Protocol12
    from stomp.transport import Transport
