"""Brokers as local processes: Artemis and ActiveMQ Classic from Maven, each in a process group of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ._folder import Folder
from ._kinds import HERE, PASSWORD, USER, BrokerKind, How, LauncherError, Wire
from ._ports import free_ports

_FETCH_S = 900
_CREATE_S = 120
_END_S = 30


def cache() -> Path:
    """Name the folder that fetch.sh fills."""
    return Path(os.environ.get("BROKER_CACHE") or Path.home() / ".cache" / "jmsapi-brokers")


def _artemis_home() -> Path:
    return cache() / f"apache-artemis-{os.environ.get('ARTEMIS_VERSION') or '2.56.0'}"


def _classic_home() -> Path:
    return cache() / f"classic-{os.environ.get('CLASSIC_VERSION') or '6.3.1'}"


def why_not(kind: BrokerKind) -> str | None:
    """Say what is missing to run this broker as a local process; fetch its files if only they are.

    Returns:
        The reason, or None when all is there.
    """
    if kind == "rabbitmq":
        return "RabbitMQ runs in a container only"
    if shutil.which("java") is None:
        return "no Java (`java` is not on the PATH)"
    home = _artemis_home() if kind == "artemis" else _classic_home()
    if home.is_dir():
        return None
    if shutil.which("mvn") is None:
        return f"{home} is missing and there is no Maven (`mvn`) to fetch it"
    try:
        done = subprocess.run(
            ["bash", str(HERE / "fetch.sh"), str(cache())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_S,
        )
    except subprocess.TimeoutExpired:
        return f"Maven did not fetch it within {_FETCH_S} s"
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return f"Maven could not fetch it: {' '.join(last)}"
    return None


class ProcessHost:
    """One broker process, started, killed and started again on the same ports and data."""

    how: How = "process"

    def __init__(self, kind: BrokerKind, folder: Folder, ports: dict[Wire, int], mark: str = "") -> None:
        self.kind: BrokerKind = kind
        self.ports = ports
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None
        pid, _, self._born = mark.partition(" ")
        self._pid = int(pid or 0)

    @classmethod
    def new(cls, kind: BrokerKind, folder: Folder) -> ProcessHost:
        """Choose ports and lay out what the broker needs, without starting it."""
        if kind == "artemis":
            (port,) = free_ports(1)
            host = cls(kind, folder, {"stomp": port, "amqp": port, "openwire": port})
            host._create_artemis(port)
            return host
        stomp, amqp, openwire = free_ports(3)
        return cls(kind, folder, {"stomp": stomp, "amqp": amqp, "openwire": openwire})

    @property
    def mark(self) -> str:
        """What is noted to find the process again: its id, and when it was born, as ids are used again."""
        return f"{self._pid} {self._born}"

    def start(self) -> None:
        """Start the broker; its output is added to the folder's log."""
        command, environment = self._artemis() if self.kind == "artemis" else self._classic()
        with self._folder.log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder.path,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._pid = self._child.pid
        self._born = _birth(self._pid)

    def alive(self) -> bool:
        """Tell whether the process runs."""
        if self._child is not None:
            return self._child.poll() is None
        return self._pid > 0 and _birth(self._pid) == self._born != ""

    def can_start_again(self) -> bool:
        """Tell whether its folder is still there."""
        return self._folder.path.is_dir()

    def kill(self) -> None:
        """End the process group with SIGKILL and wait until it is gone."""
        self._end(signal.SIGKILL)

    def shut_down(self) -> None:
        """Ask the broker to end, and make it end if it does not."""
        try:
            self._end(signal.SIGTERM)
        except LauncherError:
            self._end(signal.SIGKILL)

    def remove(self) -> None:
        """End the process; the folder is the caller's."""
        self.kill()

    def log(self) -> str:
        """Read everything that the broker wrote since its first start."""
        return self._folder.log.read_text(encoding="utf-8", errors="replace") if self._folder.log.exists() else ""

    def _end(self, how: signal.Signals) -> None:
        if not self.alive():
            return
        os.killpg(self._pid, how)
        _wait(lambda: not self.alive(), _END_S, f"{self.kind} (process {self._pid}) did not end after {how.name}")

    def _create_artemis(self, port: int) -> None:
        instance = self._folder.path / "instance"
        # One acceptor for all protocols, on one port.
        done = subprocess.run(
            [
                *(str(_artemis_home() / "bin" / "artemis"), "create", str(instance), "--silent", "--require-login"),
                *("--user", USER, "--password", PASSWORD, "--host", "127.0.0.1", "--default-port", str(port)),
                *("--no-web", "--no-amqp-acceptor", "--no-stomp-acceptor", "--no-hornetq-acceptor", "--no-mqtt-acceptor"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CREATE_S,
        )
        if done.returncode:
            raise LauncherError(f"artemis create: {(done.stdout + done.stderr).strip()}")
        for file in (HERE / "images" / "artemis" / "etc-override").iterdir():
            shutil.copy(file, instance / "etc")

    def _artemis(self) -> tuple[list[str], dict[str, str]]:
        return [str(self._folder.path / "instance" / "bin" / "artemis"), "run"], {}

    def _classic(self) -> tuple[list[str], dict[str, str]]:
        return ["sh", str(HERE / "images" / "classic" / "run.sh")], {
            "CLASSIC_HOME": str(_classic_home()),
            "CLASSIC_CONF": str(HERE / "images" / "classic"),
            "CLASSIC_DATA": str(self._folder.path / "data"),
            "CLASSIC_HOST": "127.0.0.1",
            "CLASSIC_STOMP": str(self.ports["stomp"]),
            "CLASSIC_AMQP": str(self.ports["amqp"]),
            "CLASSIC_OPENWIRE": str(self.ports["openwire"]),
            "ACTIVEMQ_CONNECTION_USER": USER,
            "ACTIVEMQ_CONNECTION_PASSWORD": PASSWORD,
        }


def _wait(done: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            raise LauncherError(f"{otherwise} within {timeout_s:.0f} s")
        time.sleep(0.02)


def _birth(pid: int) -> str:
    """Tell when a process began, in the system's own words; empty when it is gone or dead and not yet buried."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        # The name, in brackets, may hold anything; after it comes the state, and the start time as the twentieth field.
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, born = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else born.strip()
