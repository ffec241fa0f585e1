"""``jmsapi broker``: an in-process broker for development, served over STOMP on this machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

import jmsapi
from jmsapi.cli._terminal import say, tell

if TYPE_CHECKING:
    from jmsapi.testing import LoopbackServer

__all__ = ["broker"]


def broker(
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="[BROKER]",
            help="What is served: inproc:///path/file.db keeps its messages in a file, inproc://name in memory; "
            "left out, it is in memory.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 0,
    user: Annotated[str | None, typer.Option(help="User name that clients must give, with a password.")] = None,
    password: Annotated[
        str | None,
        typer.Option(
            envvar="JMSAPI_BROKER_PASSWORD",
            show_envvar=True,
            help="Password that clients must give. Other users of the machine can see a command line, so use the variable.",
        ),
    ] = None,
    max_frame: Annotated[int | None, typer.Option(min=1, help="Bytes of the largest frame.")] = None,
    max_connections: Annotated[int | None, typer.Option(min=1, help="How many clients may be connected.")] = None,
    max_waiting: Annotated[
        int | None, typer.Option(min=1, help="Bytes that clients may have sent and that are not dealt with yet, all together.")
    ] = None,
) -> None:
    """Serve a broker on 127.0.0.1 until interrupted, for development. The first line of output is its URL."""
    if where is not None and not where.startswith("inproc:"):
        raise typer.BadParameter(f"{where!r} is not of the form inproc://name or inproc:///path/file.db")
    if (user is None) != (password is None):
        raise typer.BadParameter("--user and --password go together")
    url = "inproc://jmsapi-broker" if where is None else where
    stop = threading.Event()
    before: dict[int, Any] = {}

    def end(number: int, frame: FrameType | None) -> None:
        # Whoever asks twice does not want to wait.
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    try:
        # Held open for as long as it is served: a store that cannot be opened is told now, and nobody else may have it.
        with jmsapi.connection_factory(url).create_connection():
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, end)
            limits = {"max_frame": max_frame, "max_connections": max_connections, "max_waiting": max_waiting}
            with _listening(url, port=port, user=user, password=password, limits=limits) as server:
                say(server.url)
                _tell(server.url, url, user, stored="/" in url.partition("?")[0].removeprefix("inproc://"))
                stop.wait()
                tell(f"stopping, {server.connections} clients are cut off")
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def _listening(url: str, *, port: int, user: str | None, password: str | None, limits: Mapping[str, Any]) -> LoopbackServer:
    # Loads the server and its wire, which no other command needs.
    from jmsapi.testing import LoopbackServer

    try:
        given = {name: limit for name, limit in limits.items() if limit is not None}
        return LoopbackServer(url, port=port, user=user, password=password, **given)
    except OSError as error:
        raise jmsapi.JMSException(f"broker: cannot listen on port {port}: {error.strerror}", "connection") from error


def _tell(url: str, served: str, user: str | None, *, stored: bool) -> None:
    login = "" if user is None else "   (with user name and password: stomp://USER:PASSWORD@...)"
    keeps = "keeps PERSISTENT messages in its file" if stored else "keeps everything in memory: it ends with this command"
    tell(
        f"{served} is served here, and {keeps}. Interrupt to stop.\n"
        f"  export JMSAPI_URL={url}{login}\n"
        f"  jmsapi send greetings hello; jmsapi browse greetings; jmsapi receive greetings\n"
        f'  in Python: jmsapi.connection_factory("{url}")'
    )
