"""RabbitMQ's management node: queues and bindings declared over AMQP 1.0. Runs on the I/O thread.

A pair of links on a session of its own, settled as they go. What the node refuses outright ends that session, and no
other; the next request opens a new one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, cast
from urllib.parse import quote, unquote

from jmsapi.spi import Address, DestinationKind, ErrorKind, ProviderError
from jmsapi.wire import Promise
from jmsapi_amqp import engine
from jmsapi_amqp.attach import Source, Target, attach_receiver, attach_sender, open_wire_session
from jmsapi_amqp.codec import Described, decode_value, encode_value
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.links import ReceiverLink, SenderLink

__all__ = ["Management", "ManagementAnswer", "part"]

_NODE: Final = "/management"
_NAME: Final = "jmsapi-management"
_CREDIT: Final = 256
_STATUS: Final = re.compile("[1-5][0-9][0-9]")


class ManagementAnswer(NamedTuple):
    """The node's answer to one request."""

    status: int
    body: object

    @property
    def map(self) -> Mapping[str, object]:
        """The body when it is a map, else an empty one."""
        body = self.body
        return cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}

    @property
    def reason(self) -> str:
        """What the node says of a refusal."""
        return f"{self.body} ({self.status})" if isinstance(self.body, str) else str(self.status)


def part(name: str) -> str:
    """Return one part of a path, percent-encoded."""
    return quote(name, safe="")


class Management:
    """Requests to the management node, one answer each."""

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context
        self._sender: SenderLink | None = None
        self._receiver: ReceiverLink | None = None
        self._asked: dict[str, Promise[ManagementAnswer]] = {}
        self._serial = 0
        self._opening: Promise[None] | None = None
        self.max_message = 0
        """The largest message the broker takes, in bytes; 0 when it does not say."""

    async def _open(self) -> SenderLink:
        while self._opening is not None:
            await self._opening
        sender, receiver = self._sender, self._receiver
        if sender is not None and sender.pointer is not None and receiver is not None and receiver.pointer is not None:
            return sender
        opening = self._opening = self._context.add_promise(Promise())
        try:
            session = open_wire_session(self._context)
            near = Address(DestinationKind.QUEUE, _NODE)
            asked = "manage queues"
            sender = await attach_sender(self._context, session, Target(_NODE, name=_NAME, paired=True), asked)
            receiver = await attach_receiver(self._context, session, Source(_NODE, name=_NAME, paired=True), near, asked)
        finally:
            self._opening = None
            opening.resolve(None)
        receiver.raw_sink = self._take
        receiver.grant(_CREDIT)
        sender.on_end = receiver.on_end = self._ended
        self._sender, self._receiver = sender, receiver
        if sender.pointer is not None:
            self.max_message = engine.link_remote_max_message(sender.pointer)
        return sender

    async def ready(self) -> None:
        """Open the node's links, which tells how large a message may be; nothing is asked."""
        await self._open()

    def _ended(self, error: ProviderError) -> None:
        asked, self._asked = self._asked, {}
        for promise in asked.values():
            promise.fail(error)

    async def request(self, method: str, path: str, body: object = None) -> ManagementAnswer:
        """Ask the node.

        Args:
            method: GET, PUT, POST or DELETE.
            path: Of the resource, its parts percent-encoded.
            body: A map or None.
        Returns:
            Status and body.
        Raises:
            ProviderError: SECURITY when the user may not; the node's session has ended.
        """
        try:
            return await self._request(method, path, body)
        except ProviderError as error:
            # 4.0.5: of two connections that declare a queue in the same moment one gets a crash of the node for an answer.
            if error.kind is not ErrorKind.PROTOCOL or "badmatch" not in error.message:
                raise
        return await self._request(method, path, body)

    async def _request(self, method: str, path: str, body: object) -> ManagementAnswer:
        sender = await self._open()
        self._serial += 1
        number = str(self._serial)
        promise: Promise[ManagementAnswer] = self._context.add_promise(Promise())
        self._asked[number] = promise
        head = b"\x00\x53\x73" + encode_value([number, None, path, method, "$me"])
        sender.offer(head + b"\x00\x53\x77" + encode_value(body), None, None)
        return await promise

    def _take(self, raw: bytes) -> None:
        receiver = self._receiver
        if receiver is not None:
            receiver.grant(1)
        fields: object = None
        body: object = None
        position = 0
        while position < len(raw):
            section, position = decode_value(raw, position)
            if not isinstance(section, Described):
                break
            if section.descriptor == 0x73:
                fields = section.value
            elif section.descriptor == 0x77:
                body = section.value
        if not isinstance(fields, list) or len(fields) < 6:
            return
        promise = self._asked.pop(str(fields[5]), None)
        if promise is not None:
            status = str(fields[3])
            promise.resolve(ManagementAnswer(int(status) if _STATUS.fullmatch(status) else 0, body))

    # ------------------------------------------------------------------------------------------------ what is asked

    async def get_queue(self, name: str) -> ManagementAnswer:
        """Return what is known of a queue; status 404 when there is none."""
        return await self.request("GET", f"/queues/{part(name)}")

    async def put_queue(
        self,
        name: str,
        *,
        durable: bool = True,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, object] | None = None,
    ) -> ManagementAnswer:
        """Declare a queue: 201 new, 200 as it is, 409 other terms, 400 locked by another connection."""
        body = {"durable": durable, "exclusive": exclusive, "auto_delete": auto_delete, "arguments": dict(arguments or {})}
        return await self.request("PUT", f"/queues/{part(name)}", body)

    async def delete_queue(self, name: str) -> ManagementAnswer:
        """Delete a queue; no matter whether there is one."""
        return await self.request("DELETE", f"/queues/{part(name)}")

    async def bind(self, exchange: str, queue: str, key: str) -> ManagementAnswer:
        """Bind a queue to an exchange."""
        nothing: dict[str, object] = {}
        body = {"source": exchange, "destination_queue": queue, "binding_key": key, "arguments": nothing}
        return await self.request("POST", "/bindings", body)


def unpart(text: str) -> str:
    """Return the plain text of one part of a path."""
    return unquote(text)
