"""A small broker over AMQP that does as a test says, on loopback: one queue, local transactions, and misdeeds on demand.

It is built on proton's engine. Whatever is proton's lives on the peer's thread: a test has things done there by ``do``.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from proton import Collector, Condition, Connection, Delivery, Event, Link, Message, Terminus, Transport, symbol

TRANSACTIONAL = 0x34
DECLARED = 0x33
_WAIT_S = 30.0


class _Client:
    """One connection of a client."""

    def __init__(self, sock: socket.socket, channels: int | None) -> None:
        self.socket = sock
        self.connection, self.collector, self.transport = Connection(), Collector(), Transport(Transport.SERVER)
        self.connection.collect(self.collector)
        self.transport.sasl().allowed_mechs("ANONYMOUS")
        if channels is not None:
            self.transport.channel_max = channels - 1
        self.transport.bind(self.connection)

    def write(self) -> None:
        while (pending := self.transport.pending()) > 0:
            self.socket.sendall(self.transport.peek(pending) or b"")
            self.transport.pop(pending)

    def end(self) -> None:
        self.transport.unbind()
        self.socket.close()


class AmqpPeer:
    """The broker. ``log`` says what it was told, in words; ``queue`` is what it holds for whoever comes."""

    def __init__(self, product: str = "apache-activemq-artemis") -> None:
        self.product = product
        self.channels: int | None = None
        """How many sessions a connection may have; None leaves it to the engine."""
        self.sessions = 0
        """How many are open."""
        self.log: list[str] = []
        self.queue: list[str] = []
        self.given: dict[str, tuple[Link, str]] = {}
        """What is with a consumer, by the delivery's tag."""
        self.transactions: dict[bytes, list[str]] = {}
        self.on_transfer: Callable[[Delivery], None] = self.accept
        """How a message that is sent is answered."""
        self.before_commit: Callable[[], None] = lambda: None
        """Done before a commit is answered."""
        self.keeps_drains = False
        """Whether consumers wait for the answers to their drains, until ``answer_drains``."""
        self.drains: list[Link] = []
        self.keeps_attaches = False
        """Whether links wait for the answers to their attaches, until ``answer_attaches``."""
        self.attaches: list[Link] = []
        self._read_last: Message | None = None
        self._numbers = 0
        self._consumers: list[Link] = []
        self._clients: list[_Client] = []
        self._asked: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._wake_in, self._wake_out = socket.socketpair()
        self.url = f"amqp://127.0.0.1:{self._server.getsockname()[1]}"
        self._ended = False
        self.sender_credit = 1000
        """The credit that a link for what others send gets at first."""
        self.senders: list[Link] = []
        self._thread = threading.Thread(target=self._run, name="amqp-peer", daemon=True)
        self._thread.start()

    # ---- from the test --------------------------------------------------------------------------------------------
    def do(self, call: Callable[[], Any]) -> Any:
        """Have something done on the peer's thread, and what follows written."""
        done: Future[Any] = Future()
        self._asked.append((call, done))
        self._wake_out.send(b"x")
        return done.result(_WAIT_S)

    def put(self, *bodies: str) -> None:
        """Put texts into the queue."""
        self.do(lambda: self.queue.extend(bodies))

    def end_consumers(self) -> None:
        """End every consumer with an error; what it has goes back. On the peer's thread."""
        for link in list(self._consumers):
            link.condition = Condition("amqp:resource-limit-exceeded", "slow consumer")
            link.close()
            self._drop(link)
        self._write()  # before anything else that is to be said: the engine has an order of its own

    def end_consumer_of(self, body: str) -> None:
        """End the consumer that has this message; see ``end_consumers``."""
        (holder,) = {holder for holder, held in self.given.values() if held == body}
        others = [link for link in self._consumers if link != holder]
        self._consumers = [holder]
        self.end_consumers()
        self._consumers += others

    @property
    def consumers(self) -> list[Link]:
        """The links on which messages are given out. In its thread."""
        return self._consumers

    def told(self, *words: str) -> list[str]:
        """Return the lines of the log that begin with one of these."""
        return self.do(lambda: [line for line in self.log if line.startswith(words)])

    def close(self) -> None:
        """End it."""
        self._ended = True
        self._wake_out.send(b"x")
        self._thread.join(_WAIT_S)
        for each in (self._server, self._wake_in, self._wake_out):
            each.close()
        assert not self._thread.is_alive()

    # ---- the thread -----------------------------------------------------------------------------------------------
    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._wake_in, selectors.EVENT_READ)
            while not self._ended:
                for key, _ in selector.select(_WAIT_S):
                    if key.fileobj is self._server:
                        client = _Client(self._server.accept()[0], self.channels)
                        self._clients.append(client)
                        selector.register(client.socket, selectors.EVENT_READ, client)
                    elif key.fileobj is self._wake_in:
                        self._wake_in.recv(64)
                    elif not self._read(key.data):
                        selector.unregister(key.fileobj)
                        self._gone(key.data)
                while self._asked:
                    call, done = self._asked.popleft()
                    done.set_result(call())
                self._turn()
        for client in self._clients:
            client.end()
        self._clients.clear()
        self._consumers.clear()
        self.given.clear()
        self._read_last = None

    def _read(self, client: _Client) -> bool:
        try:
            data = client.socket.recv(4096)
        except OSError:
            return False
        if data:
            client.transport.push(data)
        return bool(data)

    def _gone(self, client: _Client) -> None:
        self._clients.remove(client)
        for link in [link for link in self._consumers if link.connection == client.connection]:
            self._drop(link)
        client.end()

    def _turn(self) -> None:
        """Act on what has come, hand out what may go, write."""
        for client in self._clients:
            while (event := client.collector.peek()) is not None:
                self._on(event)
                client.collector.pop()
        self._pump()
        self._write()

    def _write(self) -> None:
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.write()

    def _on(self, event: Event) -> None:
        kind = event.type
        if kind == Event.CONNECTION_REMOTE_OPEN:
            event.connection.properties = {symbol("product"): self.product, symbol("version"): "2.56.0"}
            event.connection.open()
        elif kind == Event.CONNECTION_REMOTE_CLOSE:
            event.connection.close()
        elif kind == Event.SESSION_REMOTE_OPEN:
            self.sessions += 1
            event.session.open()
        elif kind == Event.SESSION_REMOTE_CLOSE:
            self.sessions -= 1
            event.session.close()
        elif kind == Event.LINK_REMOTE_OPEN:
            self.attaches.append(event.link)
            if not self.keeps_attaches:
                self.answer_attaches()
        elif kind in (Event.LINK_REMOTE_CLOSE, Event.LINK_REMOTE_DETACH):
            event.link.close()
            self._drop(event.link)
        elif kind == Event.LINK_FLOW and event.link.is_sender and event.link.drain_mode:
            self.drains.append(event.link)
            if not self.keeps_drains:
                self.answer_drains()
        elif kind == Event.DELIVERY and event.link.is_sender:
            self._outcome(event.delivery)
        elif kind == Event.DELIVERY and event.delivery.readable and not event.delivery.partial:
            if event.link.remote_target.type == Terminus.COORDINATOR:
                self._transaction(event.delivery)
            else:
                self.on_transfer(event.delivery)

    def answer_drains(self) -> None:
        """Answer what consumers have asked for; on the peer's thread."""
        self._pump()
        while self.drains:
            self.drains.pop().drained()

    def answer_attaches(self) -> None:
        """Open the links that have been asked for; on the peer's thread."""
        while self.attaches:
            self._attached(self.attaches.pop(0))

    # ---- links ----------------------------------------------------------------------------------------------------
    def _attached(self, link: Link) -> None:
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.open()
        if link.is_sender:
            self._consumers.append(link)
        else:
            self.senders.append(link)
            link.flow(self.sender_credit)

    def _drop(self, link: Link) -> None:
        """Take back what a consumer has."""
        if link in self._consumers:
            self._consumers.remove(link)
        back = [tag for tag, (holder, _) in self.given.items() if holder == link]
        self.queue[:0] = [self.given.pop(tag)[1] for tag in back]

    def _pump(self) -> None:
        for link in self._consumers:
            while self.queue and link.credit > 0:
                self._numbers += 1
                tag, body = str(self._numbers), self.queue.pop(0)
                link.delivery(tag)
                link.send(Message(body=body, durable=True, id=body).encode())
                link.advance()
                self.given[tag] = (link, body)

    def _outcome(self, delivery: Delivery) -> None:
        """Take what a client says of what it has."""
        if not delivery.updated or not delivery.remote_state or delivery.tag not in self.given:
            return
        _, body = self.given.pop(delivery.tag)
        if delivery.remote_state == Delivery.ACCEPTED:
            self.log.append(f"accepted {body}")
        elif delivery.remote_state == TRANSACTIONAL:
            self.transactions[bytes(_fields(delivery)[0])].append(body)
        else:
            self.log.append(f"{delivery.remote_state} {body}")
            self.queue.insert(0, body)
        delivery.settle()

    # ---- what is sent ---------------------------------------------------------------------------------------------
    def body(self, delivery: Delivery) -> Any:
        """Read a message's body; what is binary in it is good until the next one is read."""
        raw = delivery.link.recv(delivery.pending)
        delivery.link.advance()
        self._read_last = message = Message()
        message.decode(raw)
        return message.body

    def accept(self, delivery: Delivery) -> None:
        """Take a message into the queue."""
        self.queue.append(self.body(delivery))
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        delivery.link.flow(1)

    def _transaction(self, delivery: Delivery) -> None:
        """Declare or discharge."""
        asked = self.body(delivery)
        delivery.link.flow(1)
        if asked.descriptor in (0x31, symbol("amqp:declare:list")):
            self._numbers += 1
            name = b"tx%d" % self._numbers
            self.transactions[name] = []
            delivery.local.data = [name]
            delivery.update(DECLARED)
        else:
            name, fails = bytes(asked.value[0]), asked.value[1]
            if not fails:
                self.before_commit()
            bodies = self.transactions.pop(name)
            self.log.append(f"{'rolled back' if fails else 'committed'} {bodies}")
            if fails:
                self.queue[:0] = bodies
            delivery.update(Delivery.ACCEPTED)
        delivery.settle()


def _fields(delivery: Delivery) -> list[Any]:
    data = delivery.remote.data
    return list(data) if isinstance(data, list | tuple) else [data]
