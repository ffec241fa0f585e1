"""No requirement that one process can show is without a test, and what it cannot show says where it is shown."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jmsapi_conformance.inventory import load

ROOT = Path(__file__).parents[2]
REQUIREMENTS = [one for one in load() if one.level != "superseded"]


@pytest.fixture(scope="module")
def tested() -> dict[str, list[str]]:
    code = "import json; from jmsapi_conformance.runner import tested_ids; print(json.dumps(tested_ids()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.xdist_group("coverage")
@pytest.mark.program
def test_each_requirement_has_a_test_or_says_what_it_needs(tested: dict[str, list[str]]) -> None:
    assert len(REQUIREMENTS) > 1000
    assert [one.id for one in REQUIREMENTS if one.id not in tested and not one.elsewhere] == []


@pytest.mark.xdist_group("coverage")
@pytest.mark.program
def test_what_is_shown_elsewhere_has_no_test_in_the_suite(tested: dict[str, list[str]]) -> None:
    assert [one.id for one in load() if one.elsewhere and one.id in tested] == []


def test_tests_named_for_what_is_shown_elsewhere_exist() -> None:
    named = {word for one in load() for word in re.findall(r"tests/[\w/.:]+", one.elsewhere)}
    assert named
    for name in named:
        file, _, function = name.partition("::")
        assert (ROOT / file).is_file(), name
        assert not function or f"def {function}(" in (ROOT / file).read_text(), name


@pytest.mark.xdist_group("coverage")
@pytest.mark.program
def test_of_what_must_hold_nearly_everything_has_a_test_and_the_rest_is_shown_elsewhere(tested: dict[str, list[str]]) -> None:
    musts = [one for one in load() if one.level == "must"]
    without = [one for one in musts if one.id not in tested]
    assert len(without) < 0.03 * len(musts)
    assert [one.id for one in without if "tests/" not in one.elsewhere] == []


def test_a_reason_quotes_the_requirement_or_names_the_test_that_shows_it() -> None:
    for one in load():
        if one.elsewhere and "tests/" not in one.elsewhere:
            quoted = re.match(r'"(.+?)"', one.elsewhere)
            assert quoted, one.id
            for words in quoted[1].split(" ...; "):
                assert words.lower() in one.text.lower(), one.id
