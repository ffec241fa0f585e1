"""``jmsapi browse``, ``stat`` and ``purge`` on every backend: they do it, or say why not."""

from __future__ import annotations

import json
import time
import uuid

import pytest

import jmsapi
from jmsapi.cli import main

DEADLINE_S = 60


def test_a_queue_is_looked_at_and_emptied(broker_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    name = f"jmsapi-cli-{uuid.uuid4()}"
    with jmsapi.connection_factory(broker_url).create_context() as context:
        queue = context.create_queue(name)
        can_browse = bool(jmsapi.capabilities(context).browser)
        for number in range(120):
            context.create_producer().set_property("number", number).send(queue, f"\x1b[31mtext {number}")
    for command in ("browse", "stat"):
        code = main([command, name, "--url", broker_url, "--json", *(["-n", "0"] if command == "browse" else [])])
        out, err = capfd.readouterr()
        if not can_browse:
            assert (code, out) == (1, "")
            assert "browse" in err and "does not offer it" in err
            assert len(err.splitlines()) == 1
        elif command == "browse":
            assert [json.loads(line)["body"] for line in out.splitlines()] == [f"\x1b[31mtext {number}" for number in range(120)]
        else:
            assert json.loads(out)["waiting"] == 120
    # A broker may be slow to give back what another connection held, so more than one purge may be needed.
    removed, end = 0, time.monotonic() + DEADLINE_S
    while removed < 120 and time.monotonic() < end:
        assert main(["purge", name, "--url", broker_url, "--yes", "--wait", "1000"]) == 0
        out, _ = capfd.readouterr()
        removed += int(out.split()[0])
    assert removed == 120
    with jmsapi.connection_factory(broker_url).create_context() as context:
        context.create_producer().send(context.create_queue(name), "marker")
        assert context.create_consumer(context.create_queue(name)).receive_body(str, 20_000) == "marker"
