"""Makes the capability tables of README.md and docs/brokers/ from the certificates in conformance/certificates.

``make certify`` writes the certificates, then the tables. ``test_pages.py`` fails when the files say something else than the
certificates, ``test_capability_table.py`` when these say something else than the brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jmsapi
from jmsapi.spi import Capabilities, Level, Support
from jmsapi_conformance.brokers import INFO, KINDS, BrokerKind
from jmsapi_conformance.document import Column, read
from jmsapi_conformance.verdicts import Verdict

ROOT = Path(__file__).parents[2]
CERTIFICATES = ROOT / "conformance" / "certificates"
FURTHER = CERTIFICATES / "further"
FURTHER_BROKERS = {"broker-j": "Apache Qpid Broker-J"}
BEGIN, END = "<!-- capabilities -->", "<!-- /capabilities -->"
WIRES = ("amqp", "stomp")
VERDICTS = {
    Verdict.PASS: "hold",
    Verdict.EMULATED: "hold, with something supplied by the client",
    Verdict.REFUSED: "not claimed, and refused by name",
    Verdict.FAIL: "FAIL",
    Verdict.NOT_APPLICABLE: "cannot be said there",
}
# What every provider has is left out, and what only one has in mind to say of itself.
TITLES = {
    "transactions": "local transactions",
    "transactions_atomic": "... sends and acknowledgements atomic",
    "queue_selector": "selectors on queues",
    "topic_selector": "selectors on topics",
    "no_local": "noLocal",
    "durable_subscription": "durable subscriptions",
    "shared_subscription": "shared subscriptions, non-durable",
    "shared_durable_subscription": "shared subscriptions, durable",
    "unsubscribe": "unsubscribe",
    "shared_unsubscribe": "... a shared subscription",
    "browser": "queue browser",
    "temporary_queue": "temporary queues",
    "temporary_topic": "temporary topics",
    "delivery_delay": "delivery delay",
    "map_message": "MapMessage",
    "stream_message": "StreamMessage",
    "object_message": "ObjectMessage",
    "plain_message": "Message without body",
    "xa": "XA",
    "client_id_exclusive": "client id exclusive between processes",
    "delivery_count_exact": "exact delivery count",
    "redelivered_flag": "JMSRedelivered after a failure",
    "delay_keeps_subscribers": "delayed topic message keeps its subscribers",
    "priority_order": "priority order",
    "message_groups": "message groups",
    "receive_no_wait_exact": "receive_no_wait exact",
    "temporary_owner_only": "temporary queue closed to others",
    "missing_queue_reported": "send to a missing queue reported",
    "dead_letter": "dead letter queue",
    "durable_exclusive": "durable subscription has one consumer at a time",
    "subscription_change_detected": "changed subscription replaced or refused",
    "unknown_subscription_reported": "unsubscribe of an unknown name reported",
    "same_name_queue_and_topic": "one name for a queue and a topic",
    "expiry_in_broker": "expiry in the broker",
    "user_id": "JMSXUserID",
    "duplicate_detection": "copy of a known message dropped by its id",
}


def asked(url: str) -> Capabilities:
    """Return what a backend says it can do."""
    with jmsapi.connection_factory(url).create_connection() as connection:
        return jmsapi.capabilities(connection)


def mark(support: Support) -> str:
    """Return the mark of one cell."""
    if support.level is Level.NATIVE:
        return "N"
    if support.level is Level.EMULATED:
        return "E"
    return "(E)" if support.emulate else "-"


def readme_table(columns: dict[str, Capabilities]) -> str:
    """Return the table of all backends."""
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, title in TITLES.items():
        lines.append(f"| {title} | " + " | ".join(mark(has.of(name)) for has in columns.values()) + " |")
    return "\n".join(lines)


def page_table(columns: dict[str, Capabilities]) -> str:
    """Return the table of one broker, with the reasons."""
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, title in TITLES.items():
        cells = [cell(has.of(name)) for has in columns.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(support: Support) -> str:
    """Return a mark with its reason."""
    way_out = f" `?emulate={support.emulate}`" if support.emulate else ""
    note = support.note.replace("|", "\\|")
    return f"{mark(support)} {note}{way_out}".strip()


def replaced(text: str, table: str, begin: str = BEGIN, end: str = END) -> str:
    """Return a page with what stands between two marks renewed."""
    changed, n = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n{table}\n{end}", text, flags=re.DOTALL)
    if n != 1:
        raise SystemExit(f"{begin} stands {n} times")
    return changed


def certificates() -> dict[str, Column]:
    """Return the certificates of plain URLs, by heading of their column."""
    found = {(column.provider, column.broker): column for column in kept() if not column.variant}
    columns = {"in process": found["inproc", "jmsapi in-process"]}
    for wire in WIRES:
        for kind in KINDS:
            columns[heading(kind, wire)] = found[wire, kind]
    return columns


def certificates_with_options() -> dict[str, Column]:
    """Return those of URLs with options, by heading of their column."""
    found = {(column.provider, column.broker): column for column in kept() if column.options and not column.face}
    places = [(wire, kind) for wire in WIRES for kind in KINDS]
    return {heading(kind, wire): found[wire, kind] for wire, kind in places if (wire, kind) in found}


def further() -> dict[str, Column]:
    """Return those of brokers beside the three, by heading of their column."""
    columns = [column for path in sorted(FURTHER.glob("*.json")) for column in read(path).certificates]
    return {f"{FURTHER_BROKERS[column.broker]} {column.provider.upper()}": column for column in columns}


def kept() -> Iterator[Column]:
    """Give every certificate of the three brokers, and of that in process."""
    for path in sorted(CERTIFICATES.glob("*.json")):
        yield from read(path).certificates


def heading(kind: BrokerKind, wire: str) -> str:
    """Return what a column is called."""
    return f"{INFO[kind].title} {wire.upper()}"


def claims(column: Column) -> Capabilities:
    """Return what a certificate says of capabilities, in the form that a provider gives."""
    supports = {name: Support(Level(claim.level), claim.note, claim.emulate) for name, claim in column.capabilities.items()}
    return Capabilities(column.provider, column.broker, column.broker_version).with_(**supports)


def verdict_lines(columns: dict[str, Column]) -> str:
    """Return the rows that count requirements by verdict."""
    verdicts = [list(column.verdicts().values()) for column in columns.values()]
    return "".join(
        f"\n| *requirements: {word}* | " + " | ".join(str(found.count(verdict)) for found in verdicts) + " |"
        for verdict, word in VERDICTS.items()
    )


def pages() -> dict[Path, str]:
    """Return the text of each page as it should be."""
    columns = certificates()
    has = {title: claims(column) for title, column in columns.items()}
    result = {ROOT / "README.md": readme_table(has) + verdict_lines(columns)}
    for kind in KINDS:
        page = ROOT / "docs" / "brokers" / f"{kind}.md"
        result[page] = page_table({wire.upper(): has[heading(kind, wire)] for wire in WIRES})
    for title, column in further().items():
        page = ROOT / "docs" / "brokers" / f"{column.broker}.md"
        result[page] = page_table({title: claims(column)}) + verdict_lines({title: column})
    return {path: replaced(path.read_text(encoding="utf-8"), table) for path, table in result.items()}
