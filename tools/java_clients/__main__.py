"""Runs the suite through Java's clients, and writes a certificate for each: ``python -m java_clients``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from java_clients import plugin
from java_clients.clients import CLIENTS, JavaBackend
from java_clients.reasons import explained, load
from jmsapi import __version__
from jmsapi_conformance.brokers import INFO, Broker, BrokerKind, launch
from jmsapi_conformance.certificate import SCHEMA, TestResult
from jmsapi_conformance.document import Column, Document, Suite, write
from jmsapi_conformance.runner import run
from jmsapi_conformance.verdicts import Verdict

__all__ = ["certify", "main"]


def certify(backend: JavaBackend, keyword: str | None = None, title: str = "") -> tuple[Column, list[str]]:
    """Run the suite, or a part of it, through one client.

    Args:
        backend: The client on its broker.
        keyword: As pytest's ``-k``.
        title: What the column is called.
    Returns:
        The column, and the failures that no reason is known for.
    """
    plugin.put(backend)
    # Both pytest's and the JVM's handlers want the same signals.
    plugins = ["no:faulthandler", "java_clients.plugin"]
    found = run(backend.url, keyword=keyword, backend=backend, plugins=plugins, title=title, on_result=_show)
    column = found.column()
    told, unknown = explained(backend.url.partition("://")[0], column.tests, load())
    return replace(column, tests=told, kind="foreign"), unknown


def _show(result: TestResult | None, _count: int) -> None:
    if result is not None and result.verdict is Verdict.FAIL:
        print(f"  {result.name}: {result.reason}", flush=True)


@contextmanager
def _backends(urls: Sequence[str], only: Sequence[str]) -> Generator[list[tuple[JavaBackend, str]]]:
    """Give each client on its broker, with a title; without URLs on brokers that end with the block."""
    with ExitStack() as stack:
        found = [(JavaBackend(url), "") for url in urls]
        brokers: dict[BrokerKind, Broker] = {}
        for scheme in only if not urls else ():
            client = CLIENTS[scheme]
            kind = client.broker
            if kind not in brokers:
                brokers[kind] = stack.enter_context(launch(kind))
            broker = brokers[kind]
            url = f"{scheme}://{broker.url(client.wire).partition('://')[2]}"
            title = f"{client.name} {client.version} (Java) on {INFO[kind].title} {broker.version or ''}".strip()
            found.append((JavaBackend(url, broker.version or ""), title))
        yield found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when a test fails for which no reason is known."""
    parser = argparse.ArgumentParser(prog="java_clients", description="Hold Java's own JMS clients to the suite.")
    parser.add_argument(
        "urls", nargs="*", metavar="URL", help="java+qpid://, java+core:// or java+openwire://user:password@host:port"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for the certificates (reports/foreign; with -k none)")
    parser.add_argument("--client", action="append", choices=list(CLIENTS), help="only this one, on a broker that is started")
    parser.add_argument("-k", dest="keyword", metavar="EXPR", help="only tests whose module or name fits, as pytest's -k")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write them tersely there, too; not with -k")
    options = parser.parse_args(arguments)
    if options.keep is not None and options.keyword:
        parser.error("--keep: a part of the suite, by -k, is no certificate; java_clients.renewal puts it into one")
    out = options.out or (None if options.keyword else Path("reports/foreign"))
    left: list[str] = []
    with _backends(options.urls, options.client or list(CLIENTS)) as backends:
        for backend, title in backends:
            print(title or backend.title, flush=True)
            column, unknown = certify(backend, options.keyword, title)
            counts = {verdict.value: sum(one.verdict is verdict for one in column.tests) for verdict in Verdict}
            print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count), flush=True)
            left += [f"{backend.client.name}: {one}" for one in unknown]
            document = Document(SCHEMA, Suite(__version__), (column,))
            if out is not None:
                write(document, out / column.file_name)
            if options.keep is not None:
                # Without versions: a newer client's certificate takes the place of the older one's.
                name = f"{backend.url.partition('://')[0].replace('+', '-')}.json"
                write(document, options.keep / name, terse=True)
    if left:
        print(f"\n{len(left)} failures without a reason in reasons.toml:", *left, sep="\n  ")
    return 1 if left else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads that a test gave up inside a Java call would keep the process.
    os._exit(code)
