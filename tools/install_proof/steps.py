"""What runs in the container: the commands and programs of the pages, as they stand. Only the standard library is here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Final

PAGES: Final = Path("/pages")
WHEEL: Final = next(Path("/wheel").glob("*.whl"))
README: Final = (PAGES / "README.md").read_text(encoding="utf-8")
INSTALLING: Final = (PAGES / "docs" / "installing.md").read_text(encoding="utf-8")


def said(title: str, command: list[str], *, folder: Path, expected: str = "", fails: bool = False) -> None:
    """Run a command, and end the proof when its exit code or what it prints is not what the pages promise."""
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    printed = done.stdout + done.stderr
    if (done.returncode != 0) is not fails or expected not in " ".join(printed.split()):
        sys.exit(f"FAILED: {title}\n{' '.join(command)}\nexit code {done.returncode}; expected to read: {expected!r}\n{printed}")
    print(f"holds: {title} ({time.monotonic() - began:.0f} s)", flush=True)


def environment(name: str) -> Path:
    """Make a virtual environment, and return the folder of its commands."""
    subprocess.run([sys.executable, "-m", "venv", f"/environments/{name}"], check=True)
    return Path("/environments") / name / "bin"


def check_origin(commands: Path) -> None:
    """End the proof when the jmsapi that was installed is another than the mounted one."""
    with zipfile.ZipFile(WHEEL) as wheel:
        record = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
        expected = {line for line in wheel.read(record).decode().splitlines() if line.startswith("jmsapi/")}
    installed = next((commands.parent / "lib").glob(f"python*/site-packages/{record}")).read_text(encoding="utf-8")
    if not expected <= set(installed.splitlines()):
        sys.exit("FAILED: pip took a jmsapi that is not the one built here")


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def without_extras(folder: Path) -> None:
    """Hold the plain installation to its word: in process it works, and what is missing is named."""
    commands = environment("plain")
    said("pip install jmsapi", [str(commands / "pip"), "install", "--quiet", "jmsapi"], folder=folder)
    check_origin(commands)
    (folder / "jmsapi.toml").write_text(blocks(README, "toml")[0], encoding="utf-8")
    for number, program in enumerate(blocks(README, "python")[:2], 1):
        (folder / "program.py").write_text(program, encoding="utf-8")
        expected = "one kettle to DE" if number == 1 else ""
        said(f"program {number} of the README", [str(commands / "python"), "program.py"], folder=folder, expected=expected)
    for wire in ("amqp", "stomp"):
        program = f"import jmsapi; jmsapi.connection_factory('{wire}://127.0.0.1:1').create_connection()"
        missing = f"jmsapi[{wire}]"
        said(f"{wire}:// names {missing}", [str(commands / "python"), "-c", program], folder=folder, expected=missing, fails=True)
    said("the command names jmsapi[cli]", [str(commands / "jmsapi"), "--help"], folder=folder, expected="jmsapi[cli]", fails=True)


def with_all(folder: Path) -> None:
    """Install what the page says for this system, then everything an application needs, and use it."""
    row = next(line for line in INSTALLING.splitlines() if "`python:3.13-slim`" in line and line.startswith("|"))
    needed = re.findall(r"`([^`]*install[^`]*)`", row)[0]
    said(needed, ["sh", "-c", needed], folder=folder)
    commands = environment("all")
    for line in blocks(INSTALLING, "sh")[0].splitlines():
        said(line, ["sh", "-c", f"PATH={commands}:$PATH; {line}"], folder=folder)
    check_origin(commands)
    jmsapi = str(commands / "jmsapi")
    said("jmsapi demo", [jmsapi, "demo"], folder=folder)
    said("jmsapi providers", [jmsapi, "providers"], folder=folder, expected="amqp")
    for wire in ("amqp", "stomp"):
        said(
            f"the provider {wire} is there, and nobody answers",
            [jmsapi, "ping", "--url", f"{wire}://127.0.0.1:1"],
            folder=folder,
            fails=True,
            expected="refused",
        )
    for shell in ("bash", "zsh", "fish"):
        told = ["env", f"_JMSAPI_COMPLETE=source_{shell}", jmsapi]
        said(f"completion for {shell}", told, folder=folder, expected="_JMSAPI_COMPLETE=complete_")
    said("the test fixtures", [str(commands / "python"), "-c", "import jmsapi.testing"], folder=folder)


def main() -> None:
    """Run all steps; pip finds the mounted wheel beside what its index has."""
    os.environ |= {"PIP_FIND_LINKS": str(WHEEL.parent), "DEBIAN_FRONTEND": "noninteractive", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    folder = Path("/application")
    folder.mkdir()
    without_extras(folder)
    with_all(folder)


if __name__ == "__main__":
    main()
