"""``jmsapi run``: listeners of a module, until a signal comes.

SIGTERM or SIGINT stops them in order: what runs is finished, the rest goes back unseen. A second one ends the process at once.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from jmsapi.cli._supervisor import Supervisor, is_worker, stop_with_parent
from jmsapi.cli._terminal import printable, tell

if TYPE_CHECKING:
    from jmsapi.listener import Deployment

__all__ = ["run"]

_log = logging.getLogger("jmsapi.listener")
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


class LogLevel(Enum):
    """From which level on the log is shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _Printable(logging.Formatter):
    """Writes nothing that steers a terminal: a peer may have written what is logged."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _Told(BaseException):
    """A signal came while there was nothing to do but wait for it."""


class _Signals:
    """Handler of SIGTERM and SIGINT: the first asks for an orderly end."""

    def __init__(self) -> None:
        self.name = ""
        self.waiting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.name:
            # A service manager may signal every process of a service, and the one that watches a worker passes its signal on, so
            # a worker is told twice although it is to end in order. What ends it at once is a kill.
            if is_worker():
                return
            os._exit(128 + number)
        self.name = signal.Signals(number).name
        if self.waiting:
            raise _Told

    def wait(self, deployment: Deployment) -> None:
        """Wait for a signal, or until all endpoints have ended by themselves."""
        try:
            # In this order: a signal that comes in between is seen by one of the two.
            self.waiting = True
            if not self.name:
                deployment.wait()
        except _Told:
            pass
        finally:
            self.waiting = False


def run(
    app: Annotated[
        str,
        typer.Argument(metavar="MODULE:NAME", help="A listener class or function, a list of them, or a Deployment."),
    ],
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            "-u",
            envvar="JMSAPI_URL",
            show_envvar=True,
            help="Broker of listeners that name no connection factory; without it the factory named 'default' in jmsapi.toml.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the traceback when the module cannot be imported.")
    ] = False,
    log_level: Annotated[
        LogLevel,
        typer.Option(
            "--log-level",
            help="Write lines to standard error from here on, unless the module sets up logging: debug, info, warning, error.",
        ),
    ] = LogLevel.INFO,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            help="Serve /metrics, /health/live and /health/ready here; 0 for any port. With several workers each has the next.",
        ),
    ] = None,
    metrics_host: Annotated[str, typer.Option("--metrics-host", help="Address to serve them on; all by default.")] = "",
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="How many processes run the listeners; if one ends, all do.")
    ] = 1,
    reload: Annotated[
        bool, typer.Option("--reload", help="Start anew when a Python file below the working directory changes.")
    ] = False,
) -> None:
    """Run the listeners of a module until SIGTERM or SIGINT; a second signal ends at once. A line tells of each step."""
    if workers > 1 or reload:
        same = [app, "--log-level", log_level.value, "--metrics-host", metrics_host]
        same += ["--verbose"] if verbose else []
        with _log_on_stderr(log_level):
            orderly = Supervisor(same, url, workers, metrics_port, Path.cwd() if reload else None).run()
    else:
        # First: the module may set up logging.
        deployment = _deployment(app, url, verbose=verbose)
        with _log_on_stderr(log_level), _served(deployment, metrics_host, metrics_port):
            orderly = _run(app, deployment)
    if not orderly:
        raise typer.Exit(1)


@contextmanager
def _served(deployment: Deployment, host: str, port: int | None) -> Generator[None]:
    if port is None:
        yield
        return
    from jmsapi.cli._health_server import serving

    with ExitStack() as stack:
        try:
            taken = stack.enter_context(serving(deployment, host, port))
        except ImportError as error:
            raise typer.BadParameter(f"--metrics-port needs prometheus-client: pip install 'jmsapi[cli]' ({error})") from None
        except OSError as error:
            tell(f"metrics cannot be served on port {port}: {error.strerror or error}")
            raise typer.Exit(1) from None
        _log.info("serves /metrics and /health on port %d", taken)
        yield


def _run(app: str, deployment: Deployment) -> bool:
    """Run until a signal comes; return whether all has ended as it should."""
    signals = _Signals()
    before = {number: signal.signal(number, signals) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        stop_with_parent()
        _log.info("%s: starts %d endpoints", app, len(deployment.names))
        try:
            deployment.start()
            signals.wait(deployment)
        finally:
            _log.info("%s: stops, %s", app, signals.name or "as nothing is left to run")
            failed = any(one.state.value == "failed" for one in deployment.health.endpoints)
            orderly = deployment.stop()
        _log.info("%s: has stopped%s", app, "" if orderly else "; a callback was left running, its message comes again")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return orderly and not failed


def _deployment(app: str, url: str | None, *, verbose: bool) -> Deployment:
    from jmsapi.listener import Deployment, deploy

    module, colon, name = app.partition(":")
    if not colon or not module or not name:
        raise typer.BadParameter(f"{app!r} is not of the form MODULE:NAME")
    # As for a script: what lies in the working directory can be imported.
    sys.path.insert(0, str(Path.cwd()))
    found = _imported(module, verbose=verbose)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise typer.BadParameter(f"{module!r} has no {name!r}") from None
    if not isinstance(found, Deployment):
        targets = tuple(cast("Sequence[object]", found)) if isinstance(found, list | tuple) else (found,)
        found = deploy(*targets, factory=url or "default", start=False)
    if not found.names:
        found.stop()
        raise typer.BadParameter(f"{app!r} has no listeners, so there is nothing to run")
    return found


def _imported(module: str, *, verbose: bool) -> object:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise typer.BadParameter(f"there is no module {error.name!r}") from None
        if verbose:
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        last = traceback.extract_tb(error.__traceback__)[-1]
        at = "" if isinstance(error, SyntaxError) else f", in {last.filename}, line {last.lineno}"
        tell(" ".join(f"{module!r} cannot be imported: {what}{at}".split()))
        raise typer.Exit(1) from None


@contextmanager
def _log_on_stderr(level: LogLevel) -> Generator[None]:
    """Have a line for each step, unless the module has set up logging by itself."""
    logger = logging.getLogger("jmsapi")
    if any(not isinstance(one, logging.NullHandler) for one in (*logger.handlers, *logging.getLogger().handlers)):
        yield
        return
    handler, before = logging.StreamHandler(), logger.level
    handler.setFormatter(_Printable(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(level.value.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
