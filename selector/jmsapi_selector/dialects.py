"""What a broker makes of selectors, as data: in which ways one may differ from the standard, and how that is described.

The dialect of each broker and wire stands with the broker; a provider hands it over with its capabilities. The faults below
were seen on Artemis 2.56.0, ActiveMQ Classic 6.3.1 and RabbitMQ 4.0.5. Those of the first two are checked against their own
evaluators by ``tests/brokers/test_selector_evaluators.py``, thousands of random selectors and messages a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

__all__ = ["FAULTS", "Dialect", "Fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a broker's answer differs from the standard's.

    Attributes:
        word: A stable name.
        reason: What the broker does, and what follows.
    """

    word: str
    reason: str


_FAULTS: Final = (
    # What is rewritten so that the broker gives the standard's answer.
    Fault("not-binds-tighter", "NOT takes only what is next to it, so NOT a = 1 is (NOT a) = 1: its operand gets brackets"),
    Fault("notation", "literals with the suffix f or d, and hexadecimal ones beyond an int, are read otherwise or not at all"),
    Fault("constants", "whole numbers are divided in double: what is the same for every message is worked out here"),
    Fault("literal-left", "with the literal on the left a NULL property is taken for unequal, and a byte or short for unlike"),
    Fault("unlike-unequal", "values of unlike types are unequal, where the standard says that they do not compare"),
    Fault("negated-type", "IN and NOT IN of a property that is no string are unknown, where the standard says false"),
    Fault("unlike-not-like", "a property that is no string is NOT LIKE everything, where the standard says false"),
    Fault("nan", "NaN is greater than every number, as Double.compareTo has it"),
    Fault("negative-zero", "0.0 and -0.0 are two numbers, as Double.compareTo has it"),
    Fault("two-nulls", "two NULL operands are equal, where the standard says unknown"),
    Fault("escape", "an escaped escape character outside of Latin-1 breaks the pattern: another one is used"),
    Fault(
        "header-names",
        "header fields have other names and values; over AMQP Artemis translates them for queues, not for topics: we do",
    ),
    Fault("delivery-mode", "JMSDeliveryMode is translated by text, so only plain comparisons work: others are worked out"),
    Fault("selector-cache", "parsed selectors are cached by text, STOMP's converting ones as well: brackets keep ours apart"),
    Fault("whole-literal", "a string is converted to the type of the literal, so 7.5 is no number beside 5: it becomes 5.0"),
    Fault("bare-boolean", "a string is never a condition: b becomes b = TRUE"),
    Fault("conversion", "strings are converted only after the prefix convert_string_expressions:"),
    # What only we can evaluate.
    Fault("no-selectors", "the broker ignores selectors without a word"),
    Fault("arithmetic", "arithmetic on properties divides whole numbers in double, knows no float, and fails on a byte's sign"),
    Fault("two-properties", "two properties compare by Java class: int with byte is unlike, double with float may fail"),
    Fault("float-literal", "a float literal this large would round whole numbers, and the broker has no float literals"),
    Fault("whole-literal-size", "a whole number this large does not survive as a decimal literal"),
    Fault("name", "the broker gives this name another meaning, or cannot read it"),
    Fault("persistent-literal", "the literal 'PERSISTENT' is translated to 'DURABLE' wherever it stands"),
    Fault("escape-exhausted", "no character is left that could be the escape character"),
    Fault("too-long", "the selector for the broker is longer than it takes"),
    # What a broker answers otherwise, and nothing can be done about but asking for local evaluation.
    Fault("look-alike", "properties travel as strings: what looks like a number counts as one, all but true as FALSE, and back"),
    Fault("float-property", "a float property is compared as a double with a whole number this large"),
    Fault("broker-timestamp", "JMSTimestamp is the time at which the broker took the message"),
)

FAULTS: Final[Mapping[str, Fault]] = MappingProxyType({fault.word: fault for fault in _FAULTS})
"""All faults by name."""


def _no_names() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one broker evaluates selectors over one wire.

    Attributes:
        name: Wire and broker, such as ``amqp-artemis``.
        evaluates: It has selectors at all.
        standard: It answers as the standard says, but for ``names``, what is closed, and ``longest``; no other faults are
            looked for.
        typed: Properties keep their types; else they are strings, converted to the type of a literal.
        names: Header field to the broker's name of it.
        persistent: The broker's value of JMSDeliveryMode for PERSISTENT.
        non_persistent: The same for NON_PERSISTENT.
        prefix: Must stand before a selector that has strings converted.
        closed_names: Names that mean something else to the broker, or travel under another name.
        closed_prefixes: The same for all names that begin so.
        bracketed: Selectors are sent in double brackets, which no one else writes.
        translates_literals: The literal 'PERSISTENT' is changed anywhere in the text.
        stamps: JMSTimestamp is the broker's own.
        longest: Greatest size of a selector, in bytes of UTF-8.
    """

    name: str
    evaluates: bool = True
    standard: bool = False
    typed: bool = True
    names: Mapping[str, str] = field(default_factory=_no_names)
    persistent: str = "PERSISTENT"
    non_persistent: str = "NON_PERSISTENT"
    prefix: str = ""
    closed_names: frozenset[str] = frozenset()
    closed_prefixes: tuple[str, ...] = ()
    bracketed: bool = False
    translates_literals: bool = False
    stamps: bool = False
    longest: int = 60_000
