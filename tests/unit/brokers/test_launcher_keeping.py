"""Who keeps a broker, on which ports it listens, when it counts as ready."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jmsapi_conformance.brokers import BrokerUnavailable, __main__, available, found, launch
from jmsapi_conformance.brokers import _launch as launching
from jmsapi_conformance.brokers._folder import BrokerRecord, Folder, is_wanted
from jmsapi_conformance.brokers._handshake import stomp_server, wait_until_gone, wait_until_ready
from jmsapi_conformance.brokers._kinds import LauncherError
from jmsapi_conformance.brokers._ports import free_ports, refuses


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("ARTEMIS", "CLASSIC", "RABBITMQ"):
        monkeypatch.delenv(f"JMSAPI_{kind}_URLS", raising=False)
    monkeypatch.delenv("JMSAPI_BROKERS_HOW", raising=False)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def _port(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def test_a_folder_is_wanted_while_its_program_holds_the_lease(tmp_path: Path) -> None:
    folder = Folder.make(tmp_path, "artemis", kept=False)
    assert is_wanted(folder.path)
    assert list(Folder.leftovers(tmp_path)) == []
    assert folder._lease is not None
    folder._lease.close()
    assert not is_wanted(folder.path)
    (left,) = Folder.leftovers(tmp_path)
    assert left.path == folder.path
    left.remove()
    assert not is_wanted(folder.path)


def test_a_kept_folder_is_wanted_without_a_lease(tmp_path: Path) -> None:
    folder = Folder.make(tmp_path, "artemis", kept=True)
    assert folder.path == tmp_path / "artemis"
    assert is_wanted(folder.path)
    assert list(Folder.leftovers(tmp_path)) == []


def test_a_kept_folder_in_a_group_is_wanted_while_the_group_has_its_lease(tmp_path: Path) -> None:
    group = Folder.group(tmp_path)
    folder = Folder.make(group.path, "artemis", kept=True)
    assert is_wanted(folder.path)
    assert group._lease is not None
    group._lease.close()
    assert not is_wanted(folder.path)
    folder.write({"kind": "artemis", "how": "container", "ports": {}, "mark": ""})
    (left,) = Folder.leftovers(tmp_path)
    assert [inner.path for inner in left.brokers()] == [folder.path]
    left.remove()


def test_what_was_noted_is_read_again(tmp_path: Path) -> None:
    folder = Folder.make(tmp_path, "classic", kept=True)
    assert folder.read() is None
    assert found(tmp_path, "classic") is None
    record: BrokerRecord = {"kind": "classic", "how": "process", "ports": {"stomp": 1, "amqp": 2}, "mark": "0 "}
    folder.write(record)
    assert folder.read() == record
    broker = found(tmp_path, "classic")
    assert broker is not None
    assert (broker.stomp_url, broker.amqp_url) == ("stomp://127.0.0.1:1", "amqp://127.0.0.1:2")
    assert not broker.is_alive


def test_ports_are_free_different_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(refuses(port) for port in ports)
    assert max(ports) < 32768


def test_a_port_with_a_listener_does_not_refuse(listener: socket.socket) -> None:
    assert not refuses(_port(listener))
    with pytest.raises(LauncherError, match="still listens"):
        wait_until_gone({"stomp": _port(listener)}, timeout_s=0)


def test_a_listener_that_only_hangs_up_is_not_ready(listener: socket.socket) -> None:
    # What the proxy of a container engine does while the broker inside is still starting.
    hung_up = threading.Event()

    def hang_up() -> None:
        listener.accept()[0].close()
        hung_up.set()

    proxy = threading.Thread(target=hang_up)
    proxy.start()
    try:
        with pytest.raises(OSError):
            stomp_server("127.0.0.1", _port(listener), "admin", "admin")
    finally:
        proxy.join(10)
    assert hung_up.is_set()


def test_waiting_ends_when_the_broker_has_ended() -> None:
    (port,) = free_ports(1)
    with pytest.raises(LauncherError, match="it fell over"):
        wait_until_ready({"stomp": port}, "a", "b", timeout_s=60, ended=lambda: "it fell over")


def test_waiting_ends_when_time_is_up_and_says_what_was_seen() -> None:
    (port,) = free_ports(1)
    with pytest.raises(LauncherError, match=r"not ready within 0 s: .*refused"):
        wait_until_ready({"stomp": port}, "a", "b", timeout_s=0, ended=lambda: None)


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(launching._WHY_NOT, "container", lambda kind: "no engine")
    monkeypatch.setitem(launching._WHY_NOT, "process", lambda kind: f"no files of {kind}")


@pytest.mark.usefixtures("nothing_here")
def test_a_broker_that_cannot_be_had_is_refused_with_every_reason() -> None:
    with pytest.raises(BrokerUnavailable, match=r"as container: no engine\. as process: no files of artemis"):
        launch("artemis")
    with pytest.raises(BrokerUnavailable, match=r"as process: no files of artemis$"):
        launch("artemis", "process")
    assert set(available()) == {"artemis", "classic", "rabbitmq"}
    assert all(reason and "no engine" in reason for reason in available().values())


@pytest.mark.usefixtures("nothing_here")
def test_the_environment_says_what_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAPI_BROKERS_HOW", "container")
    with pytest.raises(BrokerUnavailable, match=r"as container: no engine$"):
        launch("artemis")
    monkeypatch.setenv("JMSAPI_BROKERS_HOW", "somehow")
    with pytest.raises(LauncherError, match="'somehow'"):
        launch("artemis")


@pytest.mark.usefixtures("nothing_here")
def test_the_command_says_loudly_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["up", "artemis", "--state", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("LEFT OUT: Artemis cannot be had.")
    assert __main__.main(["status", "artemis", "--state", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "Artemis: not running\n"
    assert __main__.main(["env", "--state", str(tmp_path)]) == 0
    assert __main__.main(["down", "--state", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_the_command_refuses_an_unknown_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        __main__.main(["up", "kafka"])
    assert "unknown broker: kafka" in capsys.readouterr().err


@pytest.mark.usefixtures("nothing_here")
def test_a_check_fails_only_where_brokers_are_required(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JMSAPI_REQUIRE_BROKERS", raising=False)
    assert __main__.main(["check"]) == 0
    assert capsys.readouterr().out.count("LEFT OUT: ") == 3
    monkeypatch.setenv("JMSAPI_REQUIRE_BROKERS", "1")
    assert __main__.main(["check", "classic"]) == 1
    monkeypatch.setitem(launching._WHY_NOT, "process", lambda kind: None)
    assert __main__.main(["check"]) == 0
