"""Start and end a set of brokers that outlives the command: ``python -m jmsapi_conformance.brokers up``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from . import INFO, KINDS, Broker, BrokerKind, LauncherError, LaunchHow, Wire, available, found, shared

_STATE = Path(".brokers")
_URL_WIRES: tuple[Wire, ...] = ("stomp", "amqp", "openwire")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code: 1 when a broker that was asked for is not there afterwards (``check``: only if it is required).
    """
    parser = argparse.ArgumentParser(prog="python -m jmsapi_conformance.brokers", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "status", "env", "check"))
    parser.add_argument("kinds", nargs="*", metavar="broker", help=f"{', '.join(KINDS)}; default: all")
    parser.add_argument("--how", choices=get_args(LaunchHow), default="auto")
    parser.add_argument("--state", type=Path, default=_STATE, help="folder that holds what runs (default: %(default)s)")
    given = parser.parse_args(arguments)
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"unknown broker: {', '.join(sorted(unknown))}")
    kinds = cast("Sequence[BrokerKind]", given.kinds or KINDS)
    state = cast("Path", given.state).resolve()
    if given.command == "up":
        return _up(kinds, cast("LaunchHow", given.how), state)
    if given.command == "down":
        return _down(kinds, state)
    if given.command == "check":
        return _check(kinds, cast("LaunchHow", given.how))
    return _status(kinds, state) if given.command == "status" else _env(kinds, state)


def _up(kinds: Sequence[BrokerKind], how: LaunchHow, state: Path) -> int:
    missing = 0
    for kind in kinds:
        try:
            broker = shared(kind, state, how)
        except LauncherError as error:
            missing += 1
            print(f"LEFT OUT: {error}", file=sys.stderr)
        else:
            _show(broker)
    return 1 if missing else 0


def _down(kinds: Sequence[BrokerKind], state: Path) -> int:
    for kind in kinds:
        if (broker := found(state, kind)) is not None:
            broker.stop()
            print(f"{INFO[kind].title}: ended")
    return 0


def _status(kinds: Sequence[BrokerKind], state: Path) -> int:
    missing = 0
    for kind in kinds:
        broker = found(state, kind)
        if broker is None or not broker.is_alive:
            missing += 1
            print(f"{INFO[kind].title}: not running")
            continue
        broker.wait_until_ready(ready_s=10)
        _show(broker)
    return 1 if missing else 0


def _env(kinds: Sequence[BrokerKind], state: Path) -> int:
    for kind in kinds:
        broker = found(state, kind)
        if broker is not None and broker.is_alive:
            print(f"export {INFO[kind].urls_env}={','.join(_urls(broker))}")
    return 0


def _check(kinds: Sequence[BrokerKind], how: LaunchHow) -> int:
    reasons = available(how)
    for kind in kinds:
        reason = reasons[kind]
        print(f"{INFO[kind].title}: can be had" if reason is None else f"LEFT OUT: {reason}", flush=True)
    missing = any(reasons[kind] for kind in kinds)
    return 1 if missing and os.environ.get("JMSAPI_REQUIRE_BROKERS", "") not in ("", "0") else 0


def _show(broker: Broker) -> None:
    urls = " ".join(_urls(broker))
    print(f"{INFO[broker.kind].title} {broker.version or ''} ({broker.how}): {urls}", flush=True)


def _urls(broker: Broker) -> list[str]:
    return [broker.url(wire) for wire in _URL_WIRES if wire in broker.wires]


if __name__ == "__main__":
    sys.exit(main())
