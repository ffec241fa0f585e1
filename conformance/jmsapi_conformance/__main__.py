"""The command ``jmsapi-conformance``: reads the command line; ``commands`` does the work."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from jmsapi_conformance.brokers import KINDS
from jmsapi_conformance.levels import LEVEL, LEVELS

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["main"]

_INSTALL = "jmsapi-conformance needs pytest, pytest-xdist and rich: one is not installed: pip install 'jmsapi[conformance]'"
_URLS = "JMSAPI_CONFORMANCE_URLS"
_DEADLINE = "JMSAPI_CONFORMANCE_TEST_DEADLINE"
_MORE = """\
further commands, each with --help:
  ids       list requirements, their tests, and those without a test
  report    make one report of certificates that earlier runs wrote
  schema    print the form of a file of certificates, as JSON Schema
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Those of the command line; None takes them from the process.
    Returns:
        0 when nothing failed; 1 when a test failed; 2 when the suite could not be run, on one backend at least;
        130 when it was interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        import pytest  # noqa: F401  # pyright: ignore[reportUnusedImport]

        import_module("xdist")
        from rich.console import Console
    except ImportError:
        print(_INSTALL, file=sys.stderr)
        return 2
    from jmsapi_conformance import commands

    # Wide enough for names of tests when nobody says how wide the page is.
    console = Console(width=None if sys.stdout.isatty() else 150)
    others: dict[str, tuple[argparse.ArgumentParser, Callable[[argparse.Namespace, Console], int]]] = {
        "ids": (_ids_parser(), commands.ids),
        "report": (_report_parser(), commands.report),
        "schema": (argparse.ArgumentParser(prog="jmsapi-conformance schema"), commands.schema),
    }
    if given[:1] and given[0] in others:
        parser, command = others[given[0]]
        return command(parser.parse_args(given[1:]), console)
    parser = _parser()
    options = parser.parse_args(given)
    if not options.urls and options.containers is None:
        options.urls = os.environ.get(_URLS, "").split()
        if not options.urls:
            parser.error(f"give a URL, or --containers, or URLs in the environment variable {_URLS}")
    if unknown := set(options.containers or ()) - set(KINDS):
        parser.error(f"--containers: {', '.join(sorted(unknown))} is none of {', '.join(KINDS)}; URLs stand before it")
    if options.with_options and options.containers is None:
        parser.error("--with-options goes with --containers; in a URL of your own, write its options")
    if options.certificates is not None and options.keyword:
        parser.error("--certificates: a part of the suite, by -k, certifies nothing")
    return commands.certify(options, console)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jmsapi-conformance",
        description="Hold providers to JMS 2.0.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "urls",
        nargs="*",
        metavar="URL",
        help=f"backend, such as inproc://x or amqp://user:password@host; without any, those in {_URLS}",
    )
    parser.add_argument(
        "--containers",
        nargs="*",
        metavar="BROKER",
        help=f"start brokers in containers, run on every wire, and restart them where a test asks: {', '.join(KINDS)}; "
        "without a name, all of them",
    )
    parser.add_argument(
        "--with-options",
        action="store_true",
        help="with --containers: once more on each wire whose URL has options by which a broker can do more, with all of them",
    )
    parser.add_argument("-k", dest="keyword", metavar="EXPR", help="run only tests whose module or name fits, as pytest's -k")
    parser.add_argument(
        "--face",
        choices=["aio"],
        default="",
        help="run through jmsapi.aio the chapters of the simplified API, transactions, browsers and subscriptions",
    )
    says = "processes that run tests at once (3 for each processor, 4 to 8; with -k 1)"
    parser.add_argument("-n", "--workers", type=_positive, metavar="N", help=says)
    parser.add_argument(
        "--deadline",
        type=_seconds,
        default=os.environ.get(_DEADLINE, "60"),
        metavar="SECONDS",
        help=f"the longest that a test may take (%(default)s; environment variable {_DEADLINE})",
    )
    parser.add_argument("--level", choices=LEVELS, default=LEVEL, help="what is certified: newer tests only report (%(default)s)")
    _add_outputs(parser)
    parser.add_argument(
        "--certificates",
        type=Path,
        metavar="FOLDER",
        help="write each certificate in short, claims and verdicts, to a file of its own; not with -k",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print the tracebacks of failures")
    return parser


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the certificates to a file")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report, one file that needs no network")
    parser.add_argument(
        "--with",
        dest="others",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="put the certificates of a JSON file beside those of the run; may be given again",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, more than 0 and less than a day")
    return seconds


def _ids_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jmsapi-conformance ids", description="List requirements.")
    parser.add_argument("--without-test", action="store_true", help="only those that no test names")
    parser.add_argument("--group", metavar="START", help="begin of a group's name (ch3) or of an id (4.4.7)")
    parser.add_argument("--level", choices=["must", "should", "may", "optional"], help="only those of a level")
    parser.add_argument("--scope", choices=["api", "provider", "broker"], help="only those of a scope")
    parser.add_argument("--show", metavar="ID", help="print one requirement and its tests")
    return parser


def _report_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jmsapi-conformance report", description="Make one report of earlier certificates.")
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE.json", help="what --json wrote; a column for each certificate"
    )
    _add_outputs(parser)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
