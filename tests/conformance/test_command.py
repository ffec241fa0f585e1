"""The command ``jmsapi-conformance``."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jmsapi_conformance import commands, runner
from jmsapi_conformance.__main__ import main
from jmsapi_conformance.certificate import Certificate
from jmsapi_conformance.verdicts import Verdict

# Whole runs of the suite, in processes of their own.
pytestmark = pytest.mark.timeout(300)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "jmsapi_conformance", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.program
def test_a_run_prints_a_table_by_chapter_and_writes_a_certificate(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    done = command("inproc://x", "inproc://user-name:s3cret@y", "-k", "ch04_3_3", "--json", str(file))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "inproc on jmsapi in-process" in done.stdout
    assert "4 Common facilities" in done.stdout
    assert "tests in" in done.stdout
    written = json.loads(file.read_text())
    assert written["schema"] == 1
    first, second = written["certificates"]
    assert (first["url"], second["url"]) == ("inproc://x", "inproc://***@y")
    assert first["provider"] == "inproc"
    assert first["selection"] == "ch04_3_3"
    assert first["requirements"]["4.3.3-1"] == "pass"
    assert first["capabilities"]["transactions"]["level"] == "native"
    assert {test["verdict"] for test in first["tests"]} == {"pass"}
    assert "s3cret" not in file.read_text() + done.stdout


@pytest.mark.program
def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    found = []
    for workers in ("1", "3"):
        file = tmp_path / f"{workers}.json"
        assert command("inproc://x", "-k", "ch04_3_3 or ch04_3_4", "-n", workers, "--json", str(file)).returncode == 0
        (certificate,) = json.loads(file.read_text())["certificates"]
        found.append([(test["test"], test["verdict"], test["requirements"]) for test in certificate["tests"]])
    assert found[0] == found[1]
    assert len(found[0]) > 10


@pytest.mark.program
def test_a_test_under_which_its_process_dies_fails_and_the_rest_goes_on(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    # Workers are new processes; each has to be told that this folder is the suite.
    (suite / "conftest.py").write_text(
        "from pathlib import Path; from jmsapi_conformance import plugin\nplugin.SUITE = Path(__file__).parent\n"
    )
    (suite / "dying.py").write_text(
        "import os\n"
        "from jmsapi_conformance.marks import requirement\n"
        "@requirement('4.4.1-1')\n"
        "def test_dies():\n    os._exit(7)\n"
        "@requirement('4.4.1-2')\n"
        "def test_lives():\n    assert True\n"
    )
    program = (
        "import json, sys; from pathlib import Path; from jmsapi_conformance import plugin, runner\n"
        "runner.SUITE = Path(sys.argv[1])\n"
        "found = runner.run('inproc://x', workers=2)\n"
        "print(json.dumps({test.name: (test.verdict.value, test.reason) for test in found.tests}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(suite)], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {
        "dying.py::test_dies": ["fail", "the process that ran the test ended"],
        "dying.py::test_lives": ["pass", ""],
    }


@pytest.mark.program
@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_wrong_number_of_workers_is_refused(number: str) -> None:
    done = command("inproc://x", "-n", number)
    assert done.returncode == 2
    assert "--workers" in done.stderr


@pytest.mark.program
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stomp://user-name:s3cret@127.0.0.1:1",), "127.0.0.1:1"),
        (("stopm://x",), "did you mean 'stomp'?"),
        (("inproc://x", "-k", "nothing_is_called_so"), "no test has a name that fits"),
        (("ids", "--show", "9.9.9-9"), "there is no requirement '9.9.9-9'"),
        (("ids", "--group", "ch99"), "no group and no id begins with 'ch99'"),
        (("inproc://x", "-k", "ch04_7", "--json", "/proc/none/x.json"), "/proc/none"),
        (("inproc://x", "-k", "ch04_7", "--html", "/"), "/ is a folder"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line_with_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stderr + done.stdout


@pytest.mark.program
def test_requirements_without_a_test_are_listed_by_group_level_and_scope() -> None:
    listed = command("ids", "--group", "4.4.7")
    assert listed.returncode == 0
    assert "8 of 8 requirements" in listed.stdout
    missing = command("ids", "--without-test", "--group", "4.4.7", "--level", "must")
    assert missing.returncode == 0
    assert "0 of 7 requirements" in missing.stdout


@pytest.mark.program
def test_a_requirement_is_shown_with_its_tests() -> None:
    done = command("ids", "--show", "4.3.3-3")
    assert done.returncode == 0
    assert "Producers work on a stopped connection." in done.stdout
    assert done.stdout.count("tested by ch04_3_3_connection_setup.py::") == 1


@pytest.mark.program
@pytest.mark.parametrize("missing", ["pytest", "xdist", "rich"])
def test_without_the_extra_the_command_names_the_line_that_installs_it(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom jmsapi_conformance.__main__ import main\nsys.exit(main(['x://']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'jmsapi[conformance]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.program
def test_several_urls_and_other_files_give_one_table_and_one_report(tmp_path: Path) -> None:
    other, together, page = tmp_path / "other.json", tmp_path / "new" / "together.json", tmp_path / "new" / "page.html"
    first = command("inproc://x", "-k", "ch04_3_3", "--json", str(other))
    assert first.returncode == 0, first.stderr
    done = command("inproc://y", "-k", "ch04_7", "--with", str(other), "--json", str(together), "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "All backends" in done.stdout
    assert [one["selection"] for one in json.loads(together.read_text())["certificates"]] == ["ch04_7", "ch04_3_3"]
    assert page.read_text().startswith("<!doctype html>")
    assert main(["report", str(other), "--with", str(together), "--html", str(page)]) == 0
    assert page.read_text().count('<article class="card') == 3


@pytest.mark.program
def test_a_backend_that_cannot_be_reached_takes_no_certificate_of_another_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "written.json"
    urls = ["inproc://x", "stomp://user-name:s3cret@127.0.0.1:1", "inproc://y"]
    assert main([*urls, "-k", "ch04_7", "--json", str(file)]) == 2
    assert [one["url"] for one in json.loads(file.read_text())["certificates"]] == ["inproc://x", "inproc://y"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("jmsapi-conformance: stomp://***@127.0.0.1:1: ")


@pytest.mark.program
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so_and_writes_what_was_finished(
    signalled: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(url: str, **how: Any) -> Certificate:
        if url.endswith("y"):
            os.kill(os.getpid(), signalled)
            threading.Event().wait(20)
        return runner.run(url, **how)

    monkeypatch.setattr(commands, "run", run)
    file = tmp_path / "written.json"
    assert main(["inproc://x", "inproc://y", "inproc://z", "-k", "ch04_7", "--json", str(file)]) == 130
    assert [one["url"] for one in json.loads(file.read_text())["certificates"]] == ["inproc://x"]
    assert capsys.readouterr().err.splitlines() == [
        "jmsapi-conformance: interrupted; 1 finished before, and stand in what is written"
    ]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.program
def test_a_backend_that_ended_during_its_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(url: str, **how: Any) -> Certificate:
        found = runner.run("inproc://x", **how)
        return Certificate(url, found.capabilities, [replace(test, verdict=Verdict.FAIL) for test in found.tests])

    monkeypatch.setattr(commands, "run", run)
    assert main(["stomp://127.0.0.1:1", "-k", "ch04_7", "--json", str(tmp_path / "it.json")]) == 1
    assert "stomp://127.0.0.1:1 cannot be reached any more" in capsys.readouterr().err


def test_a_certificate_in_short_that_fails_is_no_success(tmp_path: Path) -> None:
    column: dict[str, Any] = {
        "url": "",
        "provider": "p",
        "broker": "b",
        "broker_version": "1",
        "tests": [],
        "requirements": {"4.7-1": "fail"},
    }
    document: dict[str, Any] = {"schema": 1, "suite": {"version": "0", "level": "2026.1"}, "certificates": [column]}
    file = tmp_path / "short.json"
    file.write_text(json.dumps(document))
    assert main(["report", str(file)]) == 1
    column["requirements"] = {"4.7-1": "pass"}
    file.write_text(json.dumps(document))
    assert main(["report", str(file)]) == 0
    file.write_text(json.dumps({**document, "certificates": []}))
    assert main(["report", str(file)]) == 2


@pytest.mark.program
def test_two_certificates_of_one_provider_and_broker_get_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(url: str, **how: Any) -> Certificate:
        return runner.run(url, only=["ch04_7_delivery_mode"], **how)

    monkeypatch.setattr(commands, "run", run)
    assert main(["inproc://x", "inproc://y", "-n", "1", "--certificates", str(tmp_path)]) == 0
    written = [json.loads(file.read_text())["certificates"] for file in tmp_path.iterdir()]
    assert sorted(column["url"] for (column,) in written) == ["inproc://x", "inproc://y"]


def test_names_in_brackets_are_printed_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    column: dict[str, Any] = {
        "url": "",
        "provider": "p",
        "broker": "b",
        "broker_version": "1",
        "tests": [],
        "title": "mine [/dev]",
    }
    file = tmp_path / "named.json"
    file.write_text(json.dumps({"schema": 1, "suite": {"version": "0"}, "certificates": [column, column]}))
    assert main(["report", str(file)]) == 0
    assert capsys.readouterr().out.count("mine [/dev]") == 2


def test_a_foreign_client_that_fails_is_shown_and_fails_no_run(tmp_path: Path) -> None:
    outcome = {"test": "ch04_7_delivery_mode.py::test_x", "requirements": ["4.7-1"], "verdict": "fail", "remark": "known"}
    column = {"url": "", "provider": "java", "broker": "b", "broker_version": "1", "kind": "foreign", "tests": [outcome]}
    document = {"schema": 1, "suite": {"version": "0", "level": "2026.1"}, "certificates": [column]}
    file, page = tmp_path / "java.json", tmp_path / "page.html"
    file.write_text(json.dumps(document))
    assert main(["report", str(file), "--html", str(page)]) == 0
    assert "another client, run through the same tests" in page.read_text()
    column["kind"] = "provider"
    file.write_text(json.dumps(document))
    assert main(["report", str(file)]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["inproc://x", "-k", "ch04_3_3", "--certificates", "."], "a part of the suite"),
        (["inproc://x", "--level", "2025.9"], "--level"),
        (["inproc://x", "--with-options"], "--with-options goes with --containers"),
        (["--containers", "artemis", "kafka"], "kafka is none of artemis, classic, rabbitmq"),
        ([], "give a URL"),
        *((["inproc://x", "--deadline", text], f"'{text}' is not a number of seconds") for text in ("abc", "0", "nan", "1e9")),
    ],
)
def test_arguments_that_say_nothing_sensible_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert said in capsys.readouterr().err


@pytest.mark.program
@pytest.mark.parametrize(("arguments", "seconds"), [([], "7.5"), (["--deadline", "3"], "3.0")])
def test_the_deadline_of_a_test_may_be_set(arguments: list[str], seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_CONFORMANCE_TEST_DEADLINE", "7.5")
    asked: list[float] = []

    def run(url: str, *, deadline_s: float, **how: Any) -> Certificate:
        asked.append(deadline_s)
        return runner.run(url, deadline_s=deadline_s, **how)

    monkeypatch.setattr(commands, "run", run)
    assert main(["inproc://x", "-k", "ch04_7", *arguments]) == 0
    assert asked == [float(seconds)]


@pytest.mark.program
def test_a_test_that_outlasts_the_deadline_fails() -> None:
    # Tests of delays wait for them.
    done = command("inproc://x", "-k", "ch04_12", "--deadline", "0.05")
    assert done.returncode == 1
    assert "not done after 0.05 s" in done.stdout


def test_a_deadline_in_the_environment_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JMSAPI_CONFORMANCE_TEST_DEADLINE", "abc")
    with pytest.raises(SystemExit, match="2"):
        main(["inproc://x", "-k", "ch04_7"])
    assert "'abc' is not a number of seconds" in capsys.readouterr().err


@pytest.mark.program
def test_a_run_without_a_terminal_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(commands, "_TOLD_EVERY_S", 0.0)
    assert main(["inproc://user-name:s3cret@x", "-k", "ch04_7"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.endswith(" 0 FAIL")]
    assert said
    assert said[-1].startswith("inproc://***@x: ")
    done, _, count, *_ = said[-1].removeprefix("inproc://***@x: ").split()
    assert done == count == str(len(said))


@pytest.mark.program
def test_urls_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_CONFORMANCE_URLS", "inproc://one inproc://two")
    done = command("-k", "ch04_7")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("inproc on jmsapi in-process, level") == 2


def test_the_form_of_a_file_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Document"
