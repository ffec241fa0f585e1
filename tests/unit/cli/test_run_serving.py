"""``jmsapi run``: its web pages, its log level, and several processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest

pytestmark = pytest.mark.program

WAIT_S = 60
PROGRAM = """
import os, threading
import jmsapi
from jmsapi.listener import *

factory = jmsapi.connection_factory("inproc://run")


@JMSQueueListener()
@JMSListenerProperty("destination", "q")
def slow(text: str):
    print("called", os.getpid(), flush=True)
    threading.Event().wait(1)


@JMSQueueListener()
@JMSListenerProperty("destination", "q")
def quick(text: str):
    os.write(1, b"called %d\\n" % os.getpid())


@JMSQueueListener()
@JMSListenerProperty("destination", "q")
@JMSListenerProperty("connectionRetryDelayMs", "600000")
@JMSListenerProperty("connectionFactoryLookup", "stomp://127.0.0.1:1")
def unreachable(text: str):
    pass


@JMSQueueListener()
@JMSListenerProperty("destination", "q")
def dies(text: str):
    os._exit(3)


with factory.create_context() as context:
    context.create_producer().send(context.create_queue("q"), "text")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "jmsapi.cli", "run", *arguments],
        cwd=folder,
        env={**os.environ, "JMSAPI_URL": "inproc://run"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def called(program: subprocess.Popen[str]) -> int:
    """Wait until a listener was called; return the number of its process."""
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line.startswith("called "), program.communicate(timeout=WAIT_S)
    return int(line.split()[1])


def lines_until(program: subprocess.Popen[str], text: str) -> list[str]:
    assert program.stderr is not None
    lines: list[str] = []
    for line in program.stderr:
        lines.append(line.rstrip("\n"))
        if text in line:
            return lines
    raise AssertionError(f"no {text!r} in {lines}")


def page(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_and_probes_of_what_is_well(folder: Path) -> None:
    with running(folder, "shop:quick", "--metrics-port", "0", "--metrics-host", "127.0.0.1") as program:
        port = int(re.findall(r"on port (\d+)", lines_until(program, "on port")[-1])[0])
        called(program)
        assert page(port, "/health/live") == (200, "ok\n")
        assert page(port, "/health/ready") == (200, "ok\n")
        end = time.monotonic() + WAIT_S
        while 'jmsapi_endpoint_delivered_total{endpoint="shop.quick"} 1.0' not in (text := page(port, "/metrics")[1]):
            assert time.monotonic() < end, text
        assert 'jmsapi_endpoint_state{endpoint="shop.quick",state="running"} 1.0' in text
        assert 'jmsapi_endpoint_healthy{endpoint="shop.quick"} 1.0' in text
        assert "process_resident_memory_bytes" in text
        assert page(port, "/else") == (404, "/metrics, /health/live, /health/ready\n")
        program.send_signal(signal.SIGTERM)
        assert program.wait(WAIT_S) == 0


def test_an_endpoint_without_its_broker_lives_and_is_not_ready(folder: Path) -> None:
    with running(folder, "shop:unreachable", "--metrics-port", "0") as program:
        port = int(re.findall(r"on port (\d+)", lines_until(program, "on port")[-1])[0])
        lines_until(program, "takes no messages")
        assert page(port, "/health/live") == (200, "ok\n")
        status, text = page(port, "/health/ready")
        assert status == 503
        assert text.startswith("shop.unreachable: retrying: ")
        program.send_signal(signal.SIGTERM)
        assert program.wait(WAIT_S) == 0


def test_a_port_that_is_taken_is_one_line(folder: Path) -> None:
    with running(folder, "shop:quick", "--metrics-port", "0") as first:
        port = re.findall(r"on port (\d+)", lines_until(first, "on port")[-1])[0]
        with running(folder, "shop:quick", "--metrics-port", port) as second:
            _, err = second.communicate(timeout=WAIT_S)
            assert (second.returncode, err.count("\n")) == (1, 1), err
            assert f"metrics cannot be served on port {port}" in err


@pytest.mark.parametrize(("level", "levels"), [("warning", set()), ("info", {"INFO"})])
def test_the_log_level_is_chosen(folder: Path, level: str, levels: set[str]) -> None:
    with running(folder, "shop:quick", "--log-level", level) as program:
        called(program)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=WAIT_S)
    assert {line.split()[2] for line in err.splitlines()} == levels


def test_workers_are_processes_that_stop_together(folder: Path) -> None:
    with running(folder, "shop:quick", "--workers", "2", "--metrics-port", "0") as program:
        processes = {called(program), called(program)}
        assert len(processes) == 2
        assert program.pid not in processes
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=WAIT_S)
    assert program.returncode == 0, err
    assert err.count("has stopped\n") == 4, err


def test_workers_that_are_told_twice_still_finish_what_runs(folder: Path) -> None:
    with running(folder, "shop:slow", "--workers", "2") as program:
        processes = {called(program), called(program)}
        # As a service manager does that signals the whole service; the watching process then passes its signal on.
        for number in processes:
            os.kill(number, signal.SIGTERM)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=WAIT_S)
    assert program.returncode == 0, err
    assert err.count("shop:slow: has stopped\n") == 2, err


def test_a_worker_that_ends_by_itself_ends_them_all(folder: Path) -> None:
    with running(folder, "shop:dies", "--workers", "2") as program:
        program.communicate(timeout=WAIT_S)
        assert program.returncode == 1


def test_workers_end_when_the_one_that_watches_them_is_killed(folder: Path) -> None:
    with running(folder, "shop:quick", "--workers", "2") as program:
        called(program)
        called(program)
        program.kill()
        # The pipe ends with the last process that holds it.
        _, err = program.communicate(timeout=WAIT_S)
    assert err.count("shop:quick: has stopped") == 2, err


def test_a_change_of_the_source_starts_the_listeners_anew(folder: Path) -> None:
    with running(folder, "shop:quick", "--reload") as program:
        first = called(program)
        (folder / "shop.py").write_text(PROGRAM + "\n# changed\n", encoding="utf-8")
        assert called(program) != first
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=WAIT_S)
    assert program.returncode == 0, err
    assert "shop.py has changed: the listeners start anew" in err
