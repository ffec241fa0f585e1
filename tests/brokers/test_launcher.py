"""The launcher against the real brokers."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jmsapi_conformance.brokers import (
    KINDS,
    Broker,
    BrokerKind,
    LauncherError,
    LaunchHow,
    available,
    found,
    launch,
    leased_folder,
    shared,
)
from jmsapi_conformance.brokers._handshake import stomp_server


def _stomp(broker: Broker, *frames: str, replies: int) -> list[str]:
    """Log in, send frames, and read so many replies."""
    host, port = broker.stomp_url.removeprefix("stomp://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as link, link.makefile("rb") as answers:
        login = f"CONNECT\naccept-version:1.2\nhost:/\nlogin:{broker.user}\npasscode:{broker.password}\n\n\0"
        link.sendall("".join((login, *frames)).encode())
        seen: list[str] = []
        while len(seen) < replies + 1:
            frame = b""
            while not frame.endswith(b"\0"):
                byte = answers.read(1)
                assert byte, f"the broker closed the link after {seen}"
                frame += byte
            seen.append(frame.decode().strip("\n\0"))
        return seen[1:]


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _destination(kind: BrokerKind, name: str) -> str:
    # Artemis knows queues by the anycast prefix or the header only; the header is ignored by the others.
    return f"destination:{name if kind == 'artemis' else '/queue/' + name}\ndestination-type:ANYCAST\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_broker_comes_back_on_the_same_ports_with_the_messages_it_had_confirmed(
    kind: BrokerKind, own_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker = own_broker(kind)
    urls = broker.stomp_url, broker.amqp_url
    where = _destination(kind, "jmsapi.launcher.kept")

    def send(text: str) -> None:
        answers = _stomp(broker, f"SEND\n{where}persistent:true\nreceipt:1\n\n{text}\0", replies=1)
        assert answers == ["RECEIPT\nreceipt-id:1"]

    send("early")
    # RabbitMQ writes a new queue's declaration down a moment after it has confirmed the first message in it, and tells nobody
    # when: killed within that moment it forgets the queue, message and all (docs/brokers/rabbitmq.md).
    time.sleep(3 if kind == "rabbitmq" else 0)
    send("still here")
    broker.kill()
    assert not broker.is_alive
    with pytest.raises(ConnectionRefusedError):
        stomp_server("127.0.0.1", _port(urls[0]), broker.user, broker.password)

    broker.restart()
    assert (broker.stomp_url, broker.amqp_url) == urls
    subscribe = f"SUBSCRIBE\nid:1\n{where}subscription-type:ANYCAST\nack:auto\n\n\0"
    messages = _stomp(broker, subscribe, replies=2)
    assert all(message.startswith("MESSAGE\n") for message in messages)
    assert [message.splitlines()[-1] for message in messages] == ["early", "still here"]
    assert broker.log()


def test_a_wrong_password_is_refused(each_broker: Broker) -> None:
    port = _port(each_broker.stomp_url)
    with pytest.raises(ConnectionError, match="ERROR"):
        stomp_server("127.0.0.1", port, each_broker.user, "not the password")
    with pytest.raises(ConnectionError):
        stomp_server("127.0.0.1", port, None, None)


def test_artemis_gives_a_lock_queue_to_one_consumer_only(artemis: Broker) -> None:
    subscribe = "SUBSCRIBE\nid:1\ndestination:jmsapi.lock.launcher\nsubscription-type:ANYCAST\nreceipt:1\n\n\0"
    twice = subscribe + subscribe.replace("id:1", "id:2").replace("receipt:1", "receipt:2")
    first, second = _stomp(artemis, twice, replies=2)
    assert first == "RECEIPT\nreceipt-id:1"
    assert second.startswith("ERROR\n")


def test_classic_holds_a_message_back_for_its_delay(classic: Broker) -> None:
    # Without schedulerSupport Classic 6.3 delivers at once, and the marker would come second.
    where = _destination("classic", "jmsapi.launcher.delay")
    frames = (
        f"SEND\n{where}AMQ_SCHEDULED_DELAY:300\nreceipt:1\n\nlate\0",
        f"SEND\n{where}receipt:2\n\nearly\0",
        f"SUBSCRIBE\nid:1\n{where}ack:auto\n\n\0",
    )
    replies = _stomp(classic, *frames, replies=4)
    assert [reply.splitlines()[-1] for reply in replies if reply.startswith("MESSAGE")] == ["early", "late"]


@pytest.mark.broker
@pytest.mark.parametrize("way", ["process", "container"])
def test_what_a_killed_program_left_running_is_removed_by_the_next_launch(
    way: LaunchHow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JMSAPI_CLASSIC_URLS", raising=False)
    if why := available(way)["classic"]:
        pytest.skip(f"LEFT OUT: {why}")
    program = f"""
        import os, signal
        from jmsapi_conformance.brokers import launch
        print(launch("classic", {way!r}).stomp_url, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = _port(killed.stdout.strip())
    assert stomp_server("127.0.0.1", left, "admin", "admin")

    with launch("classic", way), pytest.raises(OSError):
        stomp_server("127.0.0.1", left, "admin", "admin")


@pytest.mark.broker
def test_a_kept_broker_is_found_again_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMSAPI_CLASSIC_URLS", raising=False)
    if why := available()["classic"]:
        pytest.skip(f"LEFT OUT: {why}")
    try:
        url = launch("classic", kept_in=tmp_path).url("stomp")
    finally:
        again = found(tmp_path, "classic")
        assert again is not None
        with again:
            assert again.is_alive
            assert again.url("stomp") == url
    assert found(tmp_path, "classic") is None
    assert not again.is_alive
    with pytest.raises(LauncherError):
        again.wait_until_ready(ready_s=1)


@pytest.mark.broker
def test_processes_share_a_broker_that_ends_with_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMSAPI_CLASSIC_URLS", raising=False)
    if why := available()["classic"]:
        pytest.skip(f"LEFT OUT: {why}")
    with leased_folder() as folder:
        program = f"""
            from pathlib import Path
            from jmsapi_conformance.brokers import shared
            print(shared("classic", Path({str(folder)!r})).stomp_url)
        """
        command = [sys.executable, "-c", textwrap.dedent(program)]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        urls = {process.communicate(timeout=100)[0].strip() for process in both}
        here = shared("classic", folder)
        assert urls == {here.stomp_url}
        here.kill()
        assert shared("classic", folder).stomp_url == here.stomp_url
        assert here.is_alive
        # Somebody has tidied up: a container that is gone is launched anew.
        assert here._host is not None
        here._host.remove()
        assert not here.can_start_again
        with shared("classic", folder) as anew:
            assert anew.is_alive
    assert not here.is_alive
    assert not folder.exists()
