"""Runs a suite of a few tests against providers that claim less than the in-process broker can do, and prints the certificate.

A program of its own, since the run is a pytest run: ``python limited.py SUITE_FOLDER CLAIM...``, a claim being
``feature=none`` or ``feature=emulated``.
"""

import json
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import jmsapi
import jmsapi_inproc
from jmsapi.spi import Capabilities, Clock, Events, Provider, ProviderEntry, Support, emulated, none
from jmsapi.spi.options import ProviderOptions
from jmsapi_conformance import plugin, runner
from jmsapi_conformance.certificate import as_json


class Limited:
    """An in-process provider that claims less than it can do."""

    def __init__(self, inner: Provider, claims: dict[str, Support]) -> None:
        self._inner, self._claims = inner, claims

    def open(self, events: Events) -> Future[Capabilities]:
        opened = self._inner.open(events).result(5)
        changed: Future[Capabilities] = Future()
        changed.set_result(opened.with_(**self._claims))
        return changed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Entry:
    spi_version = jmsapi_inproc.entry.spi_version
    name, schemes, extra = "limited", ("limited",), None

    def __init__(self, entry: ProviderEntry, claims: dict[str, Support]) -> None:
        self._entry, self._claims = entry, claims

    def options(self) -> type[ProviderOptions]:
        return self._entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return Limited(self._entry.create(options, clock), self._claims)


def main(folder: Path, claims: list[str]) -> None:
    kinds = {"none": none, "emulated": emulated}
    parsed = (claim.split("=") for claim in claims)
    supports = {name: kinds[kind](f"{name} is {kind} for a test") for name, kind in parsed}
    jmsapi.register_provider(Entry(jmsapi_inproc.entry, supports))
    runner.SUITE = plugin.SUITE = folder  # type: ignore[misc]
    print(json.dumps(as_json([runner.run("limited://x")])))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
