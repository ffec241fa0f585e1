"""The command ``jmsapi-conformance``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from jmsapi_conformance.certificate import Certificate

__all__ = ["main"]

_INSTALL = "jmsapi-conformance needs pytest, pytest-xdist and rich: one is not installed: pip install 'jmsapi[conformance]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Those of the command line; None takes them from the process.
    Returns:
        0 when nothing failed; 1 when a test failed; 2 when the suite could not be run.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        import pytest  # noqa: F401  # pyright: ignore[reportUnusedImport]

        import_module("xdist")
        from rich.console import Console
    except ImportError:
        print(_INSTALL, file=sys.stderr)
        return 2
    # Wide enough for names of tests when nobody says how wide the page is.
    console = Console(width=None if sys.stdout.isatty() else 150)
    if given[:1] == ["ids"]:
        return _ids(_ids_parser().parse_args(given[1:]), console)
    return _certify(_parser().parse_args(given), console)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jmsapi-conformance",
        description="Hold a provider to JMS 2.0.",
        epilog="'jmsapi-conformance ids' lists requirements; see 'jmsapi-conformance ids --help'.",
    )
    parser.add_argument("urls", nargs="+", metavar="URL", help="backend, such as inproc://x or amqp://user:password@host")
    parser.add_argument("-k", dest="keyword", metavar="EXPR", help="run only tests whose module or name fits, as pytest's -k")
    parser.add_argument("-n", "--workers", type=_positive, metavar="N", help="processes that run tests at once (4; with -k 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the certificates to a file")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the tracebacks of failures")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _ids_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jmsapi-conformance ids", description="List requirements.")
    parser.add_argument("--without-test", action="store_true", help="only those that no test names")
    parser.add_argument("--group", metavar="START", help="begin of a group's name (ch3) or of an id (4.4.7)")
    parser.add_argument("--level", choices=["must", "should", "may", "optional"], help="only those of a level")
    parser.add_argument("--scope", choices=["api", "provider", "broker"], help="only those of a scope")
    parser.add_argument("--show", metavar="ID", help="print one requirement and its tests")
    return parser


def _certify(options: argparse.Namespace, console: Console) -> int:
    from jmsapi import JMSError
    from jmsapi_conformance.certificate import as_json
    from jmsapi_conformance.report import print_certificate
    from jmsapi_conformance.runner import SuiteError

    certificates: list[Certificate] = []
    for url in options.urls:
        try:
            certificate = _run_with_progress(url, options.keyword, options.workers or (1 if options.keyword else 4), console)
        except (JMSError, SuiteError) as error:
            print(f"jmsapi-conformance: {error}", file=sys.stderr)
            return 2
        certificates.append(certificate)
        print_certificate(certificate, console, verbose=options.verbose)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(certificates), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if any(certificate.failures() for certificate in certificates) else 0


def _run_with_progress(url: str, keyword: str | None, workers: int, console: Console) -> Certificate:
    from rich.progress import MofNCompleteColumn, Progress

    from jmsapi_conformance.certificate import TestResult
    from jmsapi_conformance.runner import run

    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console, transient=True) as progress:
        task = progress.add_task("running")

        def show(result: TestResult | None, count: int) -> None:
            progress.update(task, total=count)
            if result is not None:
                progress.advance(task)

        return run(url, keyword=keyword, workers=workers, on_result=show)


def _ids(options: argparse.Namespace, console: Console) -> int:
    from jmsapi_conformance.inventory import by_id, load, pick
    from jmsapi_conformance.report import print_requirement, print_without_test
    from jmsapi_conformance.runner import SuiteError, tested_ids

    try:
        tested = tested_ids()
    except SuiteError as error:
        print(f"jmsapi-conformance: {error}", file=sys.stderr)
        return 2
    if options.show is not None:
        try:
            one = by_id(options.show)
        except KeyError:
            print(f"jmsapi-conformance: there is no requirement {options.show!r}", file=sys.stderr)
            return 2
        print_requirement(one, tested.get(one.id, []), console)
        return 0
    chosen = [
        one for one in pick(load(), options.group) if options.level in (None, one.level) and options.scope in (None, one.scope)
    ]
    found = [one for one in chosen if not options.without_test or one.id not in tested]
    print_without_test(found, len(chosen), console)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
