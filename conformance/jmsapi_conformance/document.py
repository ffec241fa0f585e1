"""The JSON file of certificates: what stands in it, and how it is read.

A column is one certificate: of a provider on a broker, or *foreign*, of another client that the same tests were run through.
Every file that keeps to this form can stand in a report beside others: ``jmsapi-conformance ... --with FILE.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from jmsapi_conformance.inventory import load
from jmsapi_conformance.levels import LEVEL
from jmsapi_conformance.verdicts import Verdict, combine

__all__ = [
    "SCHEMA",
    "CapabilityClaim",
    "Column",
    "Document",
    "DocumentError",
    "JudgedTest",
    "Suite",
    "json_schema",
    "merge",
    "read",
    "write",
]

SCHEMA: Final = 1
"""Version of the form; a change that breaks a reader raises it."""


class DocumentError(Exception):
    """A file is not a file of certificates, or not of a version that is understood here."""


@dataclass(frozen=True, slots=True)
class CapabilityClaim:
    """What a provider says of one capability: native, emulated or none."""

    level: str
    note: str = ""
    emulate: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """One test."""

    test: str
    """Module and function, parameters included: ``ch04_4_7_transactions.py::test_...[queue]``."""
    requirements: tuple[str, ...]
    verdict: Verdict
    reason: str = ""
    needs: tuple[str, ...] = ()
    seconds: float = 0.0
    counts: bool = True
    """False for a test that is new in the level: it reports, and decides nothing."""
    remark: str = ""
    """What is known about this outcome, by whoever made the file: why a foreign client fails where the test is right."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Which suite was run."""

    version: str
    level: str = LEVEL


@dataclass(frozen=True, slots=True)
class Column:
    """One run against one backend."""

    url: str
    """Without credentials."""
    provider: str
    broker: str
    broker_version: str
    tests: tuple[JudgedTest, ...]
    started: str = ""
    seconds: float = 0.0
    selection: str = ""
    """The ``-k`` expression; empty when everything ran."""
    capabilities: dict[str, CapabilityClaim] = field(default_factory=dict[str, CapabilityClaim])
    requirements: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    kind: Literal["provider", "foreign"] = "provider"
    title: str = ""
    """What it is called in a report; made of provider and broker when empty."""
    level: str = ""
    """What was certified; empty in older files, which say it once, for the whole document."""
    options: str = ""
    """The options of the URL, as they stand in one: ``emulate=tx&connect_timeout_ms=5000``; empty for a plain one."""
    face: str = ""
    """Through which API the tests went: empty for the blocking one."""
    version: str = ""
    """Of the library."""
    commit: str = ""
    """Of the library's repository, with a plus sign for changes that no commit has; empty where that was not known."""
    sources: dict[str, str] = field(default_factory=dict[str, str])
    """Digests of the code that was certified, by part: see ``sources.digests``."""

    @property
    def heading(self) -> str:
        """What it is called in a report."""
        made = " ".join(filter(None, [self.provider, "on", self.broker, self.broker_version, self.variant]))
        return self.title or made

    @property
    def variant(self) -> str:
        """What sets it apart from the plain column of its backend: the URL's options, and another API."""
        return " ".join(filter(None, [f"?{self.options}" if self.options else "", self.face]))

    def verdicts(self) -> dict[str, Verdict]:
        """Return the verdict over each requirement that a test of this run named, in the order of the inventory."""
        return verdicts_over(self.tests) if self.tests else self.requirements

    def without_tests(self) -> Column:
        """Return the certificate in short: claims and verdicts."""
        return replace(self, requirements=self.verdicts(), tests=())

    @property
    def file_name(self) -> str:
        """What a file of this certificate alone is called."""
        words = f"{self.provider} {self.broker} {self.variant}".lower()
        return re.sub(r"[^a-z0-9]+", "-", words).strip("-") + ".json"

    def failures(self) -> list[JudgedTest]:
        """Return the tests that failed, and count."""
        return [test for test in self.tests if test.verdict is Verdict.FAIL and test.counts]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole file."""

    schema: Literal[1]
    suite: Suite
    certificates: tuple[Column, ...]


def verdicts_over(tests: Iterable[JudgedTest]) -> dict[str, Verdict]:
    """Return the verdict over each requirement that a test named, in the order of the inventory.

    A test that only reports decides nothing; a requirement that has no other is not applicable in this level.
    """
    found: dict[str, list[Verdict]] = {}
    for test in tests:
        for one in test.requirements:
            verdicts = found.setdefault(one, [])
            if test.counts:
                verdicts.append(test.verdict)
    return {one.id: combine(found[one.id]) for one in load() if one.id in found}


_FORM: Final[TypeAdapter[Document]] = TypeAdapter(Document)


def read(path: Path) -> Document:
    """Read a file of certificates.

    Raises:
        DocumentError: It cannot be read, or is of another form; the text says where.
    """
    try:
        return _FORM.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise DocumentError(f"{path} is not a file of certificates, version {SCHEMA}: {where}: {first['msg']}") from error
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror}") from error


_GOES_WITHOUT_SAYING: Final[dict[str, object]] = {"reason": "", "needs": (), "counts": True, "remark": ""}


def write(document: Document, path: Path, *, terse: bool = False) -> None:
    """Write a file of certificates; folders are made as needed.

    Args:
        document: What to write.
        path: Where.
        terse: Leave out of each test how long it took, and what is empty or goes without saying: for files that are kept.
    """
    said = plain(document)
    for column in said["certificates"] if terse else ():
        column["tests"] = [{key: value for key, value in test.items() if _says_something(key, value)} for test in column["tests"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _says_something(key: str, value: object) -> bool:
    return key != "seconds" and (key not in _GOES_WITHOUT_SAYING or value != _GOES_WITHOUT_SAYING[key])


def plain(document: Document) -> dict[str, Any]:
    """Return what the JSON file says."""
    return asdict(document, dict_factory=_plain)


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: _value(value) for name, value in pairs}


def _value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _value(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def merge(document: Document, others: Iterable[Document]) -> Document:
    """Return one document with the columns of all, in their order; each says its level."""
    columns = [replace(one, level=one.level or each.suite.level) for each in (document, *others) for one in each.certificates]
    return Document(document.schema, document.suite, tuple(columns))


def json_schema() -> dict[str, Any]:
    """Return the form as a JSON Schema."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_FORM.json_schema()}
