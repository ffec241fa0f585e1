"""A certificate says which code it is of, and none is of much older code than what it stands beside."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import jmsapi
from jmsapi_conformance import commands, sources
from jmsapi_conformance.document import Column, Document, Suite, read, write
from jmsapi_conformance.runner import run

CERTIFICATES = Path(__file__).parents[2] / "conformance" / "certificates"
GRACE = timedelta(days=7)
"""How long a certificate may be of older code.

To renew all of them takes half an hour of a quiet machine, so not every commit can bring new ones; a week is the longest that
the tables of the documentation may tell of code that is gone. The day is that of the commit that is tested, not today: what
passed once passes again. A release has no grace: its version is another, and that fails at once.
"""


@pytest.mark.program
def test_no_certificate_is_of_much_older_code_than_what_it_speaks_of(record_property: Callable[[str, object], None]) -> None:
    now = sources.date_of_commit()
    late: list[str] = []
    for path in sorted(CERTIFICATES.glob("*.json")):
        for column in read(path).certificates:
            if column.version not in ("", jmsapi.__version__):
                late.append(f"{path.name}: of version {column.version}")
            if changed := sources.changed_since(column):
                said = f"{path.name}: {', '.join(changed)} changed since {sources.code_of(column)}"
                record_property("older certificate", said)
                if is_late(column, now):
                    late.append(said)
    assert not late, "make certify renews:\n" + "\n".join(late)


def is_late(column: Column, now: datetime | None) -> bool:
    return now is not None and now - datetime.fromisoformat(column.started) > GRACE


@pytest.mark.parametrize(("days", "late"), [(6, False), (8, True)])
def test_older_code_is_let_pass_for_a_week(days: int, late: bool) -> None:
    now = datetime(2026, 5, 20, tzinfo=UTC)
    assert is_late(column_of(started=(now - timedelta(days=days)).isoformat()), now) == late


@pytest.mark.program
def test_a_run_writes_down_what_it_certifies(tmp_path: Path) -> None:
    found = run("inproc://age?prefetch=10&password=s3cret", only=["ch04_3_3_*"])
    column = found.column()
    assert (column.version, column.level, column.options) == (jmsapi.__version__, found.level, "prefetch=10&password=***")
    assert column.heading.endswith("?prefetch=10&password=***")
    assert column.commit == sources.commit()
    assert set(column.sources) == {"core", "provider", "suite"}
    assert column.started
    assert column.seconds > 0
    assert sources.changed_since(column) == []
    write(Document(1, Suite("1", found.level), (column.without_tests(),)), tmp_path / column.file_name)
    assert read(tmp_path / column.file_name).certificates == (column.without_tests(),)


def test_another_digest_of_a_part_is_told_by_the_part() -> None:
    now = sources.digests("inproc")
    assert sources.changed_since(column_of(sources=now)) == []
    assert sources.changed_since(column_of(sources={**now, "provider": "0"})) == ["provider"]
    assert sources.changed_since(column_of()) == ["core", "provider", "suite"]


def test_providers_have_digests_of_their_own_over_one_core() -> None:
    stomp, amqp = sources.digests("stomp"), sources.digests("amqp")
    assert (stomp["core"], stomp["suite"]) == (amqp["core"], amqp["suite"])
    assert stomp["provider"] != amqp["provider"]
    assert "provider" not in sources.digests("nobody's")


PLAIN = """
def half(number):
    return number / 2
"""


@pytest.mark.parametrize(
    "same",
    [
        '"""A module."""\n' + PLAIN,
        "def half(number):\n    # Not rounded.\n    return (\n        number / 2\n    )\n",
        'def half(number):\n    """Return the half."""\n    return number / 2\n',
    ],
    ids=["docstring of the module", "comment and layout", "docstring"],
)
def test_who_changes_documentation_only_changes_no_digest(same: str) -> None:
    assert sources.digest(same) == sources.digest(PLAIN)


@pytest.mark.parametrize(
    "other",
    [
        "def half(number):\n    return number / 3\n",
        "def half(number):\n    return number // 2\n",
        "def half(numbers):\n    return numbers / 2\n",
        "def half(number):\n    return number / 2.0\n",
        "def half(number):\n    return number / 2\nx = 'documentation'\n",
    ],
)
def test_who_changes_code_changes_the_digest(other: str) -> None:
    assert sources.digest(other) != sources.digest(PLAIN)


def test_the_digest_is_the_same_on_every_python() -> None:
    module = """
    from __future__ import annotations
    from a import b as c

    class K(dict[str, int]):
        x: int = 1
        def f(self, *a: int, y: float = 1e300, **k: object) -> str:
            with a as b, c: pass
            try: pass
            except* ValueError as e: raise e from None
            match x:
                case [1, *_] | {"a": 2}: return f"{x!r:>{y}} {1 + 1}" + b"\\xff".decode()
            return lambda z, /: (yield)
    """
    # A new field of the syntax tree that says something about old code would change this on the Python that brings it.
    assert sources.digest(textwrap.dedent(module)) == "585bbe83c8d837ae"


def test_a_run_names_the_certificates_beside_it_that_are_of_older_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = column_of(sources=sources.digests("inproc"), commit="b" * 40 + "+")
    old = column_of(sources={}, commit="a" * 40, started="2026-01-02T03:04:05+00:00", options="emulate=tx")
    for column in (replace(fresh, sources={}), old):
        write(Document(1, Suite("1"), (column,)), tmp_path / column.file_name)
    commands.tell_of_older_code([fresh], tmp_path)
    first, second = capsys.readouterr().err.splitlines()
    assert "inproc on here: certified with changes that no commit has" in first
    assert (
        "inproc-here-emulate-tx.json is older than the code: core, provider, suite changed since commit aaaaaaaaaa, 2026-01-02"
        in second
    )


def column_of(*, started: str = "", commit: str = "", options: str = "", sources: dict[str, str] | None = None) -> Column:
    return Column(
        "inproc://x", "inproc", "here", "", (), started=started, commit=commit, options=options, sources=dict(sources or {})
    )
