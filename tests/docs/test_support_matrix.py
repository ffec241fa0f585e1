"""Each cell of the brokers' table is met, or its deviation is told; what is told of it is so."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jmsapi
from jmsapi.spi import Capabilities
from jmsapi_conformance.brokers import Broker
from jmsapi_conformance.inventory import load as load_inventory
from jmsapi_conformance.verdicts import Verdict

if TYPE_CHECKING:
    import support_matrix_page
else:
    for _name in ("capability_table", "support_matrix_page"):
        if _name not in sys.modules:
            _spec = importlib.util.spec_from_file_location(_name, Path(__file__).with_name(f"{_name}.py"))
            sys.modules[_name] = importlib.util.module_from_spec(_spec)
            _spec.loader.exec_module(sys.modules[_name])
    support_matrix_page = sys.modules["support_matrix_page"]

ROWS, BEHAVIOURS = support_matrix_page.load()
BY_FEATURE = {row.feature: row for row in ROWS}
SELECTORS = BY_FEATURE["selector on queues"]
CLIENT_IDS = BY_FEATURE["client id exclusive between processes"]
DELAY = BY_FEATURE["delivery delay"]
ACKS = BY_FEATURE["AUTO, DUPS_OK, CLIENT acknowledge"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.anchor)
def test_every_cell_is_met_or_its_deviation_is_told_and_something_shows_it(row: support_matrix_page.Row) -> None:
    assert support_matrix_page.wrong(row, BEHAVIOURS) == []


@pytest.mark.parametrize("row", [*ROWS, *BEHAVIOURS], ids=lambda row: getattr(row, "anchor", "") or row.name)
def test_what_shows_a_row_is_there(row: support_matrix_page.Row | support_matrix_page.Behaviour) -> None:
    known = {one.id for one in load_inventory()}
    assert set(row.requirements) <= known
    for test in row.tests:
        assert set(support_matrix_page.columns_of(test)) <= set(support_matrix_page.COLUMNS)
    assert row.requirements or row.tests or getattr(row, "capability", None)


def test_the_rows_are_of_different_features_and_their_letters_are_known() -> None:
    assert len({row.anchor for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert set(row.expected.values()) <= set("NEX-"), row.feature
        assert {*row.option, *row.deviation} <= set(support_matrix_page.COLUMNS), row.feature


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (replace(SELECTORS, expected={**SELECTORS.expected, "Ra": "E"}), "Ra: found X, not E, and no deviation says so"),
        (replace(SELECTORS, deviation={"Aa": ("X", "the broker answers nothing")}), "Aa: the deviation is none"),
        (
            replace(SELECTORS, expected={**SELECTORS.expected, "Aa": "E"}, deviation={"Aa": ("X", "the broker has none at all")}),
            "Aa: found N, which the deviation does not say",
        ),
        (
            replace(SELECTORS, expected={**SELECTORS.expected, "Aa": "E"}, deviation={"Aa": ("N", " ")}),
            "Aa: found N, which the deviation does not say",
        ),
        (replace(SELECTORS, capability=[], tests=[]), "Cs: nothing shows it"),
        (replace(CLIENT_IDS, option={}), "As: found X, not E, and no deviation says so"),
        (replace(DELAY, option={**DELAY.option, "Ra": "rabbit.declare=true"}), "Ra: found E without ?rabbit.declare=true"),
        (replace(ACKS, expected=dict.fromkeys(ACKS.expected, "X")), "Aa: found X, and 4.4.11-2 holds"),
        (replace(ACKS, requirements=["4.4.7-8"], tests=SELECTORS.tests), "Ra: found N, and none of 4.4.7-8 holds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cell_that_is_told_wrong_is_found(row: support_matrix_page.Row, complaint: str) -> None:
    assert complaint in support_matrix_page.wrong(row, BEHAVIOURS)


def test_a_requirement_that_fails_in_a_certificate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = support_matrix_page.certificates()
    failing = {**columns["Cs"].requirements, "4.4.11-3": Verdict.FAIL}
    changed = {**columns, "Cs": replace(columns["Cs"], requirements=failing)}
    monkeypatch.setattr(support_matrix_page, "certificates", lambda: changed)
    assert support_matrix_page.wrong(ACKS, BEHAVIOURS) == ["Cs: 4.4.11-3 FAILs"]


def test_a_test_that_is_not_there_is_found() -> None:
    for test in ("tests/docs/test_support_matrix.py::test_of_nothing", "tests/docs/test_nothing.py::test_of_nothing"):
        with pytest.raises(support_matrix_page.MatrixError, match="no such"):
            support_matrix_page.columns_of(test)


def test_a_message_that_the_matrix_of_clients_does_not_keep_is_no_native_cell() -> None:
    row = replace(BY_FEATURE["MapMessage towards Java"], deviation={})
    assert [support_matrix_page.found(row, column, BEHAVIOURS) for column in ("Aa", "Ca", "As", "Cs")] == ["N", "N", "X", "X"]


def test_options_and_manners_are_what_the_brokers_answer(artemis: Broker, classic: Broker, rabbitmq: Broker) -> None:
    brokers = {broker.kind: broker for broker in (artemis, classic, rabbitmq)}
    for column, (kind, wire) in support_matrix_page.COLUMNS.items():
        url = brokers[kind].url("amqp" if wire == "amqp" else "stomp")
        has = _asked(url)
        for behaviour in BEHAVIOURS:
            if behaviour.is_field:
                assert (getattr(has, behaviour.name) or 0) == behaviour.found[column], (column, behaviour.name)
        for row in ROWS:
            if column in row.option:
                with_it = _asked(f"{url}?{row.option[column]}")
                letters = {support_matrix_page.LETTERS[with_it.of(name).level] for name in row.capability}
                assert letters <= {"N", row.expected[column]}, (column, row.feature)


def _asked(url: str) -> Capabilities:
    with jmsapi.connection_factory(url).create_connection() as connection:
        return jmsapi.capabilities(connection)
