"""A STOMP peer for benchmarks: an endless queue, each message with an id of its own, acknowledgements confirmed after 5 ms.

    python benchmarks/spark/double.py

Prints its port. It names itself the loopback server, so that its clients tell it their windows. It reads no frame whole: it
counts.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from itertools import count

BODY = b"x" * 1024
ACK_S = 0.005
_CONNECTIONS = count(1)


def main() -> None:
    """Serve for ever."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, next(_CONNECTIONS)), daemon=True).start()


def serve(sock: socket.socket, connection: int) -> None:
    """Answer every frame that wants an answer, and fill the windows of one subscription at a time."""
    sock.setblocking(False)
    selector = selectors.DefaultSelector()
    selector.register(sock, selectors.EVENT_READ)
    receipts: deque[tuple[float, bytes]] = deque()
    room, name, serial = 0, b"", 0
    rest, out = b"", b""
    while True:
        pause = max(0.0, receipts[0][0] - time.monotonic()) if receipts else None
        for _, events in selector.select(pause):
            if events & selectors.EVENT_READ:
                try:
                    data = sock.recv(1 << 18)
                except OSError:
                    data = b""
                if not data:
                    sock.close()
                    return
                *frames, rest = (rest + data).split(b"\0")
                for frame in frames:
                    frame = frame.lstrip(b"\n")
                    due = 0.0
                    if frame.startswith(b"ACK"):
                        room += 1
                        due = time.monotonic() + ACK_S
                    elif frame.startswith(b"CONNECT"):
                        out += b"CONNECTED\nversion:1.2\nserver:jmsapi-loopback/double\nheart-beat:0,0\n\n\0"
                    elif frame.startswith(b"SUBSCRIBE"):
                        window = int(value(frame, b"window"))
                        room = room + window if b"\nwiden:true" in frame else window
                        name = value(frame, b"id")
                    elif frame.startswith(b"UNSUBSCRIBE"):
                        room = 0
                    if b"\nreceipt:" in frame:
                        receipts.append((due, value(frame, b"receipt")))
        while receipts and receipts[0][0] <= time.monotonic():
            out += b"RECEIPT\nreceipt-id:%b\n\n\0" % receipts.popleft()[1]
        while room and len(out) < 1 << 18:
            serial += 1
            room -= 1
            out += (
                b"MESSAGE\nsubscription:%b\nmessage-id:%d\nack:%d\ndelivery-count:1\ndestination:/queue/q\nJMS_PY_type:Text\n"
                b"persistent:true\ntimestamp:1795842329749\npriority:4\nJMS_PY_id:ID\\c%d.%d\ncontent-length:1024\n\n%b\0"
                % (name, serial, serial, connection, serial, BODY)
            )
        if out:
            try:
                out = out[sock.send(out) :]
            except BlockingIOError:
                pass
            except OSError:
                sock.close()
                return
        selector.modify(sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if out or room else 0))


def value(frame: bytes, name: bytes) -> bytes:
    """Return a header's value."""
    return frame.split(b"\n" + name + b":", 1)[1].split(b"\n", 1)[0]


if __name__ == "__main__":
    main()
