"""What the command ``jmsapi-conformance`` does."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from jmsapi import JMSError, connection_factory, redact_url
from jmsapi_conformance.brokers import INFO, KINDS, BrokerKind, LauncherError, Wire, launch, leased_folder
from jmsapi_conformance.certificate import Certificate, TestResult, as_document
from jmsapi_conformance.document import Column, Document, DocumentError, json_schema, merge, read, write
from jmsapi_conformance.html import render
from jmsapi_conformance.inventory import by_id, load, pick
from jmsapi_conformance.report import print_certificate, print_matrix, print_requirement, print_without_test
from jmsapi_conformance.runner import SuiteError, run, tested_ids
from jmsapi_conformance.sources import changed_since, code_of
from jmsapi_conformance.verdicts import Verdict

__all__ = ["certify", "ids", "report", "schema", "tell_of_older_code"]

# Most tests wait for a broker; with more, one broker and the deadlines of tests are what is too little.
_WORKERS = min(8, max(4, 3 * (os.cpu_count() or 1)))
_TOLD_EVERY_S = 20.0
"""How often a run without a terminal says how far it is."""
_INTERRUPTED = 130
"""As a shell has it for a process that Ctrl-C ended."""
_WIRES: tuple[Wire, ...] = ("amqp", "stomp")
_OPTIONS: Mapping[tuple[BrokerKind, Wire], str] = {
    ("artemis", "stomp"): "emulate=tx,shared-volatile",
    ("classic", "amqp"): "classic.scheduler=true&classic.virtual_topics=true",
    ("classic", "stomp"): "classic.scheduler=true&classic.virtual_topics=true&emulate=shared-volatile",
    ("rabbitmq", "amqp"): "emulate=tx,queue-selector",
    ("rabbitmq", "stomp"): "emulate=tx,queue-selector",
}
"""The options of a URL that make more possible on a broker, all at once; of the wires that have some."""


@dataclass(frozen=True, slots=True)
class _Target:
    """One column to be."""

    url: str
    broker: Path | None = None
    """Where the launcher noted the broker, when it is ours to restart."""


def certify(options: argparse.Namespace, console: Console) -> int:
    """Run the suite on each URL and each launched broker, and write what was found."""
    certificates: list[Certificate] = []
    # A backend that cannot be certified is told at once, and does not take the others' certificates with it.
    code = 0
    try:
        others = [read(path) for path in options.others]
        _prepare(options)
        if options.certificates is not None:
            options.certificates.mkdir(parents=True, exist_ok=True)
    except (DocumentError, OSError) as error:
        return _refused(error)
    try:
        with _interrupted_by_sigterm(), ExitStack() as stack:
            targets = [_Target(url) for url in options.urls]
            if options.containers is not None:
                targets += stack.enter_context(_containers(options.containers or KINDS, options.with_options))
            for target in targets:
                try:
                    certificates.append(_run_with_progress(target, options, console))
                except (JMSError, SuiteError) as error:
                    code = _refused(f"{redact_url(target.url)}: {error}" if len(targets) > 1 else error)
                    continue
                print_certificate(certificates[-1], console, verbose=options.verbose)
                _tell_if_gone(target, certificates[-1])
    except LauncherError as error:
        return _refused(error)
    except KeyboardInterrupt:
        _refused(
            f"interrupted; {len(certificates)} finished before, and stand in what is written" if certificates else "interrupted"
        )
        code = _INTERRUPTED
    if not certificates:
        return code
    ours = as_document(certificates, options.level)
    document = merge(ours, others)
    try:
        if options.certificates is not None:
            for name, column in _named(ours):
                write(replace(ours, certificates=(column.without_tests(),)), options.certificates / name)
            tell_of_older_code(ours.certificates, options.certificates)
        _write(document, options, console)
    except OSError as error:
        return _refused(error)
    return code or int(any(certificate.failures() for certificate in certificates))


def _prepare(options: argparse.Namespace) -> None:
    """Make the folders of the files to be written; what cannot be written is told before the run, not after it."""
    for path in filter(None, [options.json, options.html]):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder, and was to be written as a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(f"{path} may not be written")


@contextmanager
def _interrupted_by_sigterm() -> Generator[None]:
    """End as after Ctrl-C when the process is asked to end, so that brokers that were started end, too."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only that one may say what a signal does
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _named(document: Document) -> Generator[tuple[str, Column]]:
    """Give each column the name of its file; a second one of the same provider and broker gets a number."""
    seen: Counter[str] = Counter()
    for column in document.certificates:
        seen[column.file_name] += 1
        number = seen[column.file_name]
        yield column.file_name if number == 1 else column.file_name.replace(".json", f"-{number}.json"), column


def _tell_if_gone(target: _Target, certificate: Certificate) -> None:
    """Say so when failures may only mean that the backend ended during the run."""
    if not certificate.failures():
        return
    try:
        connection_factory(target.url).create_connection().close()
    except JMSError as error:
        _refused(f"{certificate.url} cannot be reached any more, so the failures may say only that: {error}")


def tell_of_older_code(ours: Sequence[Column], folder: Path) -> None:
    """Say which certificates, of this run and of earlier ones, are of other code than what is here now."""
    for column in ours:
        if column.commit.endswith("+"):
            _refused(f"{column.heading}: certified with changes that no commit has")
        if changed := changed_since(column):
            _refused(f"{column.heading}: the code changed during the run: {', '.join(changed)}")
    names = {column.file_name for column in ours}
    for path in sorted(folder.glob("*.json")):
        for column in read(path).certificates:
            if column.file_name not in names and column.kind == "provider" and (changed := changed_since(column)):
                _refused(f"{path.name} is older than the code: {', '.join(changed)} changed since {code_of(column)}")


@contextmanager
def _containers(kinds: Sequence[BrokerKind], with_options: bool) -> Generator[list[_Target]]:
    """Give a target for each wire of each broker, in containers that end with the block; with options a second one."""
    with leased_folder() as root, ExitStack() as stack:
        targets: list[_Target] = []
        for kind in dict.fromkeys(kinds):
            broker = launch(kind, "container", kept_in=root, own=True)
            stack.callback(broker.stop)
            print(f"{INFO[kind].title} {broker.version or ''} runs in a container of {INFO[kind].image}", flush=True)
            urls = [broker.url(wire) for wire in _WIRES]
            if with_options:
                urls += [f"{broker.url(wire)}?{more}" for wire in _WIRES if (more := _OPTIONS.get((kind, wire)))]
            targets += [_Target(url, root / kind) for url in urls]
        yield targets


def _run_with_progress(target: _Target, options: argparse.Namespace, console: Console) -> Certificate:
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console, transient=True) as progress:
        task = progress.add_task("running")
        failed = done = 0
        told = time.monotonic()

        def show(result: TestResult | None, count: int) -> None:
            nonlocal failed, done, told
            progress.update(task, total=count)
            if result is None:
                return
            failed += result.verdict is Verdict.FAIL and result.counts
            done += 1
            if not console.is_terminal and time.monotonic() - told >= _TOLD_EVERY_S:
                told = time.monotonic()
                console.print(f"{redact_url(target.url)}: {done} of {count} tests, {failed} FAIL", markup=False, highlight=False)
                console.file.flush()
            module = result.name.partition(".py")[0]
            progress.update(task, advance=1, description=f"{module[:30]:<30}" + (f" [red]{failed} FAIL[/]" if failed else ""))

        return run(
            target.url,
            keyword=options.keyword,
            workers=options.workers or (1 if options.keyword else _WORKERS),
            level=options.level,
            deadline_s=options.deadline,
            broker=target.broker,
            face=options.face,
            on_result=show,
        )


def report(options: argparse.Namespace, console: Console) -> int:
    """Make one report of several files."""
    try:
        first, *rest = [read(path) for path in (*options.files, *options.others)]
        document = merge(first, rest)
        if not document.certificates:
            return _refused("there is no certificate in what was given")
        _prepare(options)
        _write(document, options, console)
    except (DocumentError, OSError) as error:
        return _refused(error)
    # A certificate in short has no tests, only their verdicts over requirements.
    ours = [column for column in document.certificates if column.kind == "provider"]
    return int(any(column.failures() or Verdict.FAIL in column.verdicts().values() for column in ours))


def _write(document: Document, options: argparse.Namespace, console: Console) -> None:
    if len(document.certificates) > 1:
        print_matrix(document, console)
    if options.json is not None:
        write(document, options.json)
    if options.html is not None:
        options.html.write_text(render(document), encoding="utf-8")


def schema(_options: argparse.Namespace, _console: Console) -> int:
    """Print the form of a file of certificates."""
    print(json.dumps(json_schema(), indent=1))
    return 0


def ids(options: argparse.Namespace, console: Console) -> int:
    """List requirements, or show one."""
    if not (picked := pick(load(), options.group)):
        return _refused(f"no group and no id begins with {options.group!r}")
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
    chosen = [one for one in picked if options.level in (None, one.level) and options.scope in (None, one.scope)]
    found = [one for one in chosen if not options.without_test or one.id not in tested]
    with contextlib.suppress(BrokenPipeError):
        print_without_test(found, chosen, console)
    return 0


def _refused(why: object) -> int:
    print(f"jmsapi-conformance: {why}", file=sys.stderr)
    return 2
