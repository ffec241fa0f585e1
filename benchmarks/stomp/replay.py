"""A STOMP peer for benchmarks: gives each subscriber the same message again and again, at most 1000 unacknowledged.

    python benchmarks/stomp/replay.py MESSAGES

Prints its port. It reads no frame whole: it counts.
"""

from __future__ import annotations

import selectors
import socket
import sys
import threading

WINDOW = 1000
BODY = b"x" * 1024


def main(messages: int) -> None:
    """Serve for ever."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, messages), daemon=True).start()


def serve(sock: socket.socket, messages: int) -> None:
    """Answer CONNECT, SUBSCRIBE and DISCONNECT; count ACKs."""
    sock.setblocking(False)
    selector = selectors.DefaultSelector()
    selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
    left, room, name = 0, WINDOW, b""
    rest = b""
    out = b""
    serial = 0
    while True:
        events = selector.select()[0][1]
        if events & selectors.EVENT_READ:
            try:
                data = sock.recv(1 << 18)
            except BlockingIOError:
                data = b"\n"
            except OSError:
                return
            if not data:
                return
            *frames, rest = (rest + data).split(b"\0")
            for frame in frames:
                frame = frame.lstrip(b"\n")
                if frame.startswith(b"ACK"):
                    room += 1
                elif frame.startswith((b"CONNECT", b"STOMP")):
                    out += b"CONNECTED\nversion:1.2\nserver:ActiveMQ-Artemis/replay\nheart-beat:0,0\n\n\0"
                elif frame.startswith(b"SUBSCRIBE"):
                    name, left, room = value(frame, b"id"), messages, WINDOW
                if b"\nreceipt:" in frame:
                    out += b"RECEIPT\nreceipt-id:%b\n\n\0" % value(frame, b"receipt")
        while left and room and len(out) < 1 << 18:
            serial += 1
            left -= 1
            room -= 1
            out += (
                b"MESSAGE\nsubscription:%b\ncontent-length:1024\nmessage-id:%d\ndestination:q\nexpires:0\nredelivered:false\n"
                b"priority:4\npersistent:false\ntimestamp:1795842329749\nack:c1,%d\nJMS_PY_type:Text\nJMS_PY_id:ID:%d\n"
                b"JMS_PY_time:1795842329749\ndestination-type:ANYCAST\n\n%b\0\n" % (name, serial, serial, serial, BODY)
            )
        if out:
            try:
                out = out[sock.send(out) :]
            except BlockingIOError:
                continue
            except OSError:
                return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if out or (left and room) else 0)
        selector.modify(sock, wanted)


def value(frame: bytes, name: bytes) -> bytes:
    """Return a header's value."""
    return frame.split(b"\n" + name + b":", 1)[1].split(b"\n", 1)[0]


if __name__ == "__main__":
    main(int(sys.argv[1]))
