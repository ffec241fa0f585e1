"""What the command ``jmsapi-conformance`` does."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from jmsapi import JMSError
from jmsapi_conformance.brokers import INFO, KINDS, BrokerKind, LauncherError, Wire, launch, leased_folder
from jmsapi_conformance.certificate import Certificate, TestResult, as_document
from jmsapi_conformance.document import Document, DocumentError, json_schema, merge, read, write
from jmsapi_conformance.html import render
from jmsapi_conformance.inventory import by_id, load, pick
from jmsapi_conformance.report import print_certificate, print_matrix, print_requirement, print_without_test
from jmsapi_conformance.runner import SuiteError, run, tested_ids
from jmsapi_conformance.verdicts import Verdict

__all__ = ["certify", "ids", "report", "schema"]

_WORKERS = 4
_WIRES: tuple[Wire, ...] = ("amqp", "stomp")


@dataclass(frozen=True, slots=True)
class _Target:
    """One column to be."""

    url: str
    broker: Path | None = None
    """Where the launcher noted the broker, when it is ours to restart."""


def certify(options: argparse.Namespace, console: Console) -> int:
    """Run the suite on each URL and each launched broker, and write what was found."""
    certificates: list[Certificate] = []
    try:
        others = [read(path) for path in options.others]
        with ExitStack() as stack:
            targets = [_Target(url) for url in options.urls]
            if options.containers is not None:
                targets += stack.enter_context(_containers(options.containers or KINDS))
            for target in targets:
                certificates.append(_run_with_progress(target, options, console))
                print_certificate(certificates[-1], console, verbose=options.verbose)
    except (JMSError, SuiteError, LauncherError, DocumentError) as error:
        return _refused(error)
    ours = as_document(certificates, options.level)
    if options.certificates is not None:
        for column in ours.certificates:
            write(replace(ours, certificates=(column.without_tests(),)), options.certificates / column.file_name)
    document = merge(ours, others)
    _write(document, options, console)
    return 1 if any(certificate.failures() for certificate in certificates) else 0


@contextmanager
def _containers(kinds: Sequence[BrokerKind]) -> Generator[list[_Target]]:
    """Give a target for each wire of each broker, in containers that end with the block."""
    with leased_folder() as root, ExitStack() as stack:
        targets: list[_Target] = []
        for kind in kinds:
            broker = launch(kind, "container", kept_in=root, own=True)
            stack.callback(broker.stop)
            print(f"{INFO[kind].title} {broker.version or ''} runs in a container of {INFO[kind].image}", flush=True)
            targets += [_Target(broker.url(wire), root / kind) for wire in _WIRES]
        yield targets


def _run_with_progress(target: _Target, options: argparse.Namespace, console: Console) -> Certificate:
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console, transient=True) as progress:
        task = progress.add_task("running")
        failed = 0

        def show(result: TestResult | None, count: int) -> None:
            nonlocal failed
            progress.update(task, total=count)
            if result is None:
                return
            failed += result.verdict is Verdict.FAIL and result.counts
            module = result.name.partition(".py")[0]
            progress.update(task, advance=1, description=f"{module[:30]:<30}" + (f" [red]{failed} FAIL[/]" if failed else ""))

        return run(
            target.url,
            keyword=options.keyword,
            workers=options.workers or (1 if options.keyword else _WORKERS),
            level=options.level,
            broker=target.broker,
            on_result=show,
        )


def report(options: argparse.Namespace, console: Console) -> int:
    """Make one report of several files."""
    try:
        first, *rest = [read(path) for path in (*options.files, *options.others)]
    except DocumentError as error:
        return _refused(error)
    document = merge(first, rest)
    _write(document, options, console)
    ours = [column for column in document.certificates if column.kind == "provider"]
    return 1 if any(column.failures() for column in ours) else 0


def _write(document: Document, options: argparse.Namespace, console: Console) -> None:
    if len(document.certificates) > 1:
        print_matrix(document, console)
    if options.json is not None:
        write(document, options.json)
    if options.html is not None:
        options.html.parent.mkdir(parents=True, exist_ok=True)
        options.html.write_text(render(document), encoding="utf-8")


def schema(_options: argparse.Namespace, _console: Console) -> int:
    """Print the form of a file of certificates."""
    print(json.dumps(json_schema(), indent=1))
    return 0


def ids(options: argparse.Namespace, console: Console) -> int:
    """List requirements, or show one."""
    try:
        tested = tested_ids()
    except SuiteError as error:
        return _refused(error)
    if options.show is not None:
        try:
            one = by_id(options.show)
        except KeyError:
            return _refused(f"there is no requirement {options.show!r}")
        print_requirement(one, tested.get(one.id, []), console)
        return 0
    chosen = [
        one for one in pick(load(), options.group) if options.level in (None, one.level) and options.scope in (None, one.scope)
    ]
    found = [one for one in chosen if not options.without_test or one.id not in tested]
    with contextlib.suppress(BrokenPipeError):
        print_without_test(found, chosen, console)
    return 0


def _refused(why: object) -> int:
    print(f"jmsapi-conformance: {why}", file=sys.stderr)
    return 2
