"""What is installed by which name, and what the source distribution has."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements_of(extra: str) -> set[str]:
    """Return the distributions that an extra installs, those of the extras that it names included."""
    found: set[str] = set()
    for line in PROJECT["project"]["optional-dependencies"][extra]:
        own = re.fullmatch(r"jmsapi\[(.*)\]", line)
        if own:
            found |= {name for part in own[1].split(",") for name in requirements_of(part)}
        else:
            found.add(re.split(r"[\[<>=]", line)[0].lower())
    return found


def test_all_is_what_an_application_needs() -> None:
    assert requirements_of("all") == {
        "stomp.py",
        "python-qpid-proton",
        "typer",
        "rich",
        "prometheus-client",
        "opentelemetry-api",
    }
    assert requirements_of("dev") >= requirements_of("all") | requirements_of("spark") | requirements_of("conformance")


@pytest.mark.program
def test_the_source_distribution_has_what_its_makefile_names(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    makefile = (ROOT / "Makefile").read_text()
    assert "Makefile" in names
    for path in re.findall(r"[\w./-]+/[\w./-]+\.(?:py|txt|toml|json)|\.ci/\w+", makefile):
        if path.startswith(("build/", "reports/", ".venv/")) or not (ROOT / path).exists():
            continue
        assert path in names, path
    for folder in ("jmsapi", "tests", "docs", "benchmarks", "examples", "tools", "conformance", "providers", "selector"):
        assert any(name.startswith(f"{folder}/") for name in names), folder
    assert not [name for name in names if "__pycache__" in name]


WITHOUT_PROTON = """
import sys
sys.modules.update(proton=None, cproton=None)
import jmsapi
try:
    jmsapi.connection_factory("amqp://127.0.0.1:1").create_connection()
except jmsapi.JMSException as error:
    print(error.error_code, error)
"""


@pytest.mark.program
def test_a_missing_proton_is_told_with_what_each_system_needs() -> None:
    # In a process of its own: in this one other tests have loaded parts of the provider, with proton.
    done = subprocess.run([sys.executable, "-c", WITHOUT_PROTON], capture_output=True, text=True, timeout=100)
    code, _, text = done.stdout.partition(" ")
    assert (code, done.returncode, done.stderr) == ("missing-extra", 0, "")
    for word in ("pip install 'jmsapi[amqp]'", "Debian", "apt-get install gcc", "Fedora", "Alpine", "macOS"):
        assert word in text
