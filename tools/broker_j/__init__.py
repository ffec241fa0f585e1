"""Apache Qpid Broker-J as a local process: a fourth broker, to show what a further one needs.

Its jars come from Maven, once; it listens on 127.0.0.1 only and ends with the block that started it.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from jmsapi_conformance.brokers._kinds import PASSWORD, USER, LauncherError
from jmsapi_conformance.brokers._ports import free_ports
from jmsapi_conformance.brokers._process import cache

__all__ = ["VERSION", "launch", "why_not"]

VERSION = "9.2.0"
_HERE = Path(__file__).resolve().parent
_FETCH_S = 600
_START_S = 60.0
_END_S = 20.0
# Queues are made when they are used; what the broker names itself is not taken for one of them.
_MADE_WHEN_USED = "(?!TempTopic|TempQueue|amq[.]|qpidsub_).+"


def why_not() -> str | None:
    """Say what is missing to run the broker here, or None."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            return f"there is no `{program}` on the PATH"
    return None


@contextmanager
def launch() -> Generator[str]:
    """Start the broker with an empty store, and give its URL.

    Raises:
        LauncherError: It cannot be had, or did not start.
    """
    reason = why_not()
    if reason is not None:
        raise LauncherError(f"Broker-J: {reason}")
    jars = _fetched()
    with tempfile.TemporaryDirectory(prefix="broker-j-") as name:
        folder = Path(name)
        (port,) = free_ports(1)
        (folder / "config.json").write_text(json.dumps(_configuration(port, folder)), encoding="utf-8")
        command = ["java", "-Xmx512m", "-cp", f"{jars}/*", "org.apache.qpid.server.Main"]
        command += ["--initial-config-path", str(folder / "config.json"), "--config-property", f"qpid.work_dir={folder}/work"]
        with (folder / "log").open("wb") as log:
            broker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _await_port(broker, port, folder / "log")
            yield f"amqp://{USER}:{PASSWORD}@127.0.0.1:{port}"
        finally:
            broker.terminate()
            try:
                broker.wait(_END_S)
            except subprocess.TimeoutExpired:
                broker.kill()
                broker.wait(_END_S)


def _fetched() -> Path:
    place = cache() / f"broker-j-{VERSION}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # Made under another name and moved at the end, so that a folder under its own name is whole.
    with tempfile.TemporaryDirectory(dir=place.parent) as part:
        command = ["mvn", "-q", "-B", "-f", str(_HERE / "pom.xml"), "dependency:copy-dependencies"]
        command += [f"-Dqpid.version={VERSION}", f"-DoutputDirectory={part}/lib"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_S)
        if done.returncode:
            raise LauncherError(f"Maven could not fetch Broker-J: {' '.join((done.stdout + done.stderr).splitlines()[-1:])}")
        try:
            (Path(part) / "lib").rename(place)
        except OSError:
            if not place.is_dir():  # else another process was first
                raise
    return place


def _configuration(port: int, folder: Path) -> dict[str, object]:
    host: dict[str, object] = {
        "type": "DERBY",
        "storePath": f"{folder}/store",
        "nodeAutoCreationPolicies": [
            {
                "pattern": _MADE_WHEN_USED,
                "createdOnPublish": "true",
                "createdOnConsume": "true",
                "nodeType": "queue",
                "attributes": {},
            }
        ],
    }
    user = {"name": USER, "type": "managed", "password": PASSWORD}
    return {
        "name": "jmsapi",
        "modelVersion": "9.1",
        "authenticationproviders": [{"name": "plain", "type": "Plain", "secureOnlyMechanisms": [], "users": [user]}],
        "ports": [
            {
                "name": "AMQP",
                "port": str(port),
                "bindingAddress": "127.0.0.1",
                "authenticationProvider": "plain",
                "protocols": ["AMQP_1_0"],
                "virtualhostaliases": [
                    {"name": "any", "type": "patternMatchingAlias", "pattern": ".*", "virtualHostNode": "default"}
                ],
            }
        ],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": "Memory",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps(host),
            }
        ],
    }


def _await_port(broker: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while broker.poll() is None and time.monotonic() < deadline:
        # The port is open a moment before the virtual host is.
        if "BRK-1004" in log.read_text(encoding="utf-8", errors="replace"):
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        time.sleep(0.1)
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
    raise LauncherError(f"Broker-J did not start: {' '.join(last)}")
