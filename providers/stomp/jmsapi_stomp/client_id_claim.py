"""A connection's hold on its client id."""

from __future__ import annotations

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers.subscriptions import CLIENT_IDS
from jmsapi_stomp.context import StompContext

__all__ = ["ClientIdClaim"]


class ClientIdClaim:
    """A connection's hold on its client id, as far as the broker has means for it."""

    def __init__(self) -> None:
        self._held: tuple[int, str] | None = None

    async def take(self, context: StompContext) -> None:
        """Make sure that no other connection has the client id.

        Raises:
            ProviderError: CLIENT_ID; another one has it, or the broker cannot have it.
        """
        client_id, behaviour = context.client_id, context.behaviour
        if client_id is None:
            return
        headers = behaviour.client_id_lock(client_id)
        if not behaviour.checks_client_ids:
            CLIENT_IDS.claim(context.broker, client_id)
            self._held = (context.broker, client_id)
        if headers is not None:
            try:
                await context.connection.command(f"cannot use the client id {client_id!r}", "SUBSCRIBE", headers)
            except ProviderError as cause:
                kind = ErrorKind.CLIENT_ID if cause.kind is ErrorKind.IN_USE else cause.kind
                raise ProviderError(kind, cause.message, fatal=True) from cause

    def drop(self) -> None:
        """Let go of the client id in this process; the broker's lock ends with the connection."""
        held, self._held = self._held, None
        if held is not None:
            CLIENT_IDS.release(*held)
