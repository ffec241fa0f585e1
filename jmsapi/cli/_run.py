"""``jmsapi run``: listeners of a module, until a signal comes.

SIGTERM or SIGINT stops them in order: what runs is finished, the rest goes back unseen. A second one ends the process at once.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

if TYPE_CHECKING:
    from jmsapi.listener import Deployment

__all__ = ["run"]

_log = logging.getLogger("jmsapi.listener")
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


class _Told(BaseException):
    """A signal came while there was nothing to do but wait for it."""


class _Signals:
    """What the process is told."""

    def __init__(self) -> None:
        self.name = ""
        self.waiting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.name:
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
) -> None:
    """Run the listeners of a module until SIGTERM or SIGINT; a second signal ends at once. A line tells of each step."""
    _log_to_stderr()
    signals = _Signals()
    before = {number: signal.signal(number, signals) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        deployment = _deployment(app, url)
        _log.info("%s: starts %d endpoints", app, len(deployment.names))
        try:
            deployment.start()
            signals.wait(deployment)
        finally:
            _log.info("%s: stops, %s", app, signals.name or "as nothing is left to run")
            failed = [one for one in deployment.health.endpoints if one.state.value == "failed"]
            orderly = deployment.stop()
        _log.info("%s: has stopped%s", app, "" if orderly else "; a callback was left running, its message comes again")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failed or not orderly:
        raise typer.Exit(1)


def _deployment(app: str, url: str | None) -> Deployment:
    from jmsapi.listener import Deployment, deploy

    module, colon, name = app.partition(":")
    if not colon or not module or not name:
        raise typer.BadParameter(f"{app!r} is not of the form MODULE:NAME")
    # As for a script: what lies in the working directory can be imported.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module {error.name!r}") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise typer.BadParameter(f"{module!r} has no {name!r}") from None
    if isinstance(found, Deployment):
        return found
    targets = tuple(cast("Sequence[object]", found)) if isinstance(found, list | tuple) else (found,)
    return deploy(*targets, factory=url or "default", start=False)


def _log_to_stderr() -> None:
    logger = logging.getLogger("jmsapi")
    if not logger.hasHandlers() or all(isinstance(one, logging.NullHandler) for one in logger.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
