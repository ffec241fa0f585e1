"""3.8.1.2 Null values."""

from jmsapi import Session, Topic
from jmsapi_conformance.marks import needs
from jmsapi_conformance.suite._selecting import Table, check, each_table, one

TRUE, FALSE, UNKNOWN = "1 = 1", "1 = 2", "missing = 1"

TABLES = {
    "3.8.1.2-1": one(
        {"s": "x", "n": 1},
        {"missing + 1 = 1": "U", "-missing = 0": "U", "missing * 0 = 0": "U", "n + missing = 1": "U", "s + missing = 1": "U"},
    ),
    "3.8.1.2-2": one({}, {"missing IS NULL": "T", "missing IS NOT NULL": "F", "missing IS NULL AND 1 = 1": "T"}),
    "3.8.1.2-3": one({}, {f"{TRUE} AND {TRUE}": "T"}),
    "3.8.1.2-4": one({}, {f"{TRUE} AND {FALSE}": "F"}),
    "3.8.1.2-5": one({}, {f"{TRUE} AND {UNKNOWN}": "U"}),
    "3.8.1.2-6": one({}, {f"{FALSE} AND {TRUE}": "F"}),
    "3.8.1.2-7": one({}, {f"{FALSE} AND {FALSE}": "F"}),
    "3.8.1.2-8": one({}, {f"{FALSE} AND {UNKNOWN}": "F"}),
    "3.8.1.2-9": one({}, {f"{UNKNOWN} AND {TRUE}": "U"}),
    "3.8.1.2-10": one({}, {f"{UNKNOWN} AND {FALSE}": "F"}),
    "3.8.1.2-11": one({}, {f"{UNKNOWN} AND {UNKNOWN}": "U"}),
    "3.8.1.2-12": one({}, {f"{TRUE} OR {TRUE}": "T"}),
    "3.8.1.2-13": one({}, {f"{TRUE} OR {FALSE}": "T"}),
    "3.8.1.2-14": one({}, {f"{TRUE} OR {UNKNOWN}": "T"}),
    "3.8.1.2-15": one({}, {f"{FALSE} OR {TRUE}": "T"}),
    "3.8.1.2-16": one({}, {f"{FALSE} OR {FALSE}": "F"}),
    "3.8.1.2-17": one({}, {f"{FALSE} OR {UNKNOWN}": "U"}),
    "3.8.1.2-18": one({}, {f"{UNKNOWN} OR {TRUE}": "T"}),
    "3.8.1.2-19": one({}, {f"{UNKNOWN} OR {FALSE}": "U"}),
    "3.8.1.2-20": one({}, {f"{UNKNOWN} OR {UNKNOWN}": "U"}),
    "3.8.1.2-21": one({}, {TRUE: "T"}),
    "3.8.1.2-22": one({}, {FALSE: "F"}),
    "3.8.1.2-23": one({}, {UNKNOWN: "U"}),
}


@needs("topic_selector")
@each_table(TABLES)
def test_unknown_is_a_third_value(session: Session, other_session: Session, topic: Topic, table: Table) -> None:
    check(session, other_session, topic, table)
    nested = {f"NOT ({text})": "TFU"["FTU".index(letters)] for text, letters in table.answers.items()}
    check(session, other_session, topic, one(table.messages[0], nested))
