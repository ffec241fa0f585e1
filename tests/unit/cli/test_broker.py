"""``jmsapi broker``: what it says, whom it lets in, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsapi
from jmsapi.cli import main

DEADLINE_S = 60
DEADLINE_MS = 20_000


@contextlib.contextmanager
def served(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; give the process and the URL that it prints."""
    command = [sys.executable, "-m", "jmsapi.cli", "broker", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("stomp://127.0.0.1:"), process.communicate(timeout=DEADLINE_S)
            yield process, url
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.program
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(number: signal.Signals) -> None:
    with served() as (process, url), jmsapi.connection_factory(url).create_context() as context:
        queue = context.create_queue("greetings")
        context.create_producer().send(queue, "hello")
        assert [message.get_body(str) for message in context.create_browser(queue)] == ["hello"]
        assert context.create_consumer(queue).receive_body(str, DEADLINE_MS) == "hello"
        lost: list[jmsapi.JMSException] = []
        context.exception_listener = lost.append
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0
        assert out == ""
        assert "Traceback" not in err
        assert f"export JMSAPI_URL={url}" in err
        assert "ends with this command" in err
        assert "1 clients are cut off" in err


@pytest.mark.program
def test_who_does_not_know_the_password_is_not_let_in() -> None:
    with served("--user", "me", JMSAPI_BROKER_PASSWORD="s3cret") as (process, url):
        with pytest.raises(jmsapi.JMSSecurityException):
            jmsapi.connection_factory(url).create_connection()
        jmsapi.connection_factory(url, user="me", password="s3cret").create_connection().close()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert "s3cret" not in out + err


@pytest.mark.program
def test_what_is_kept_in_a_file_outlives_the_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.db"
    with served(f"inproc://{file}") as (process, url):
        with jmsapi.connection_factory(url).create_context() as context:
            for number in range(3):
                context.create_producer().send(context.create_queue("q"), str(number))
        # The file is this process's alone, and another one hears so.
        assert main(["broker", f"inproc://{file}"]) == 1
        out, err = capfd.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert "shop.db" in err
        process.kill()
        _, err = process.communicate(timeout=DEADLINE_S)
        assert "in its file" in err
    with served(f"inproc://{file}") as (process, url):
        assert main(["purge", "q", "--yes", "--url", url]) == 0
        assert capfd.readouterr().out.startswith("3 messages removed in ")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0


def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("do not lose me\n" * 100, encoding="utf-8")
    assert main(["broker", f"inproc://{file}"]) == 1
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert file.read_text(encoding="utf-8") == "do not lose me\n" * 100


def test_a_port_that_is_taken_is_one_line_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["broker", "--port", str(port)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"jmsapi: broker: cannot listen on port {port}: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["stomp://127.0.0.1"], 2),
        (["shop.db"], 2),
        (["--port", "70000"], 2),
        (["--port", "x"], 2),
        (["--user", "me"], 2),
        (["inproc://name:7"], 1),
        (["inproc://name?colour=red"], 1),
    ],
)
def test_wrong_use_is_told_before_anything_is_served(
    arguments: list[str], code: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JMSAPI_BROKER_PASSWORD", raising=False)
    assert main(["broker", *arguments]) == code
    out, err = capfd.readouterr()
    assert "stomp://127" not in out
    assert err
    assert "Traceback" not in err
