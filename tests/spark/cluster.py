"""A standalone cluster of Spark on this machine: a master and two workers, each a process, of which one may lack a folder.

The second worker runs in a mount namespace of its own, in which a folder is covered by an empty one: the machine that does not
share the store.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_session import HERE, spark_home

_READY_S = 120.0
_JOB_S = 300.0


def can_hide_folders() -> bool:
    """Tell whether a process may have a mount namespace of its own here."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class Cluster:
    """A cluster that lives in a folder.

    Args:
        folder: For all it writes.
        private: A folder that only this machine's driver and the first worker see.
    """

    def __init__(self, folder: Path, private: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        private.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{self._port}"
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(spark_home(folder / "home")),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])),
            "PYTHONHASHSEED": "0",
            "SPARK_DAEMON_MEMORY": "256m",
            # Each lives for some seconds only.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        }
        try:
            self._start(
                "master", "master.Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", self._free_port()
            )
            self._until("master", lambda text: "I have been elected leader" in text or "Starting Spark master" in text)
            for name, hidden in (("worker-a", None), ("worker-b", private)):
                arguments = ("-c", "1", "-m", "700m", "--host", "127.0.0.1", "--webui-port", self._free_port())
                self._start(name, "worker.Worker", self.url, *arguments, "-d", str(folder / name), hidden=hidden)
            self._until("master", lambda text: text.count("Registering worker") >= 2)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, job: dict[str, Any], *, local: bool = False, **settings: str) -> dict[str, Any]:
        """Run one query to its end in a driver of its own, on the cluster or in one process; return what it came to."""
        given = {**job, "master": "local[2]" if local else self.url, "settings": settings, "place": str(self._folder)}
        program = [sys.executable, "-W", "ignore", str(HERE / "cluster_driver.py"), json.dumps(given)]
        with (self._folder / "driver.log").open("a") as log:
            told = subprocess.run(
                program, stdout=subprocess.PIPE, stderr=log, env=self._environment, timeout=_JOB_S, check=False, text=True
            )
        answers = [line for line in told.stdout.splitlines() if line.startswith("answer ")]
        assert answers, f"the driver ended with {told.returncode}; see {self._folder}/driver.log"
        found: dict[str, Any] = json.loads(answers[-1].removeprefix("answer "))
        return found

    def close(self) -> None:
        """End all its processes."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
        self._processes = []

    @staticmethod
    def _free_port() -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            return str(free.getsockname()[1])

    def _start(self, name: str, kind: str, *arguments: str, hidden: Path | None = None) -> None:
        program = [f"{self._environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *arguments]
        if hidden is not None:
            program = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden), *program]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(program, stdout=log, stderr=subprocess.STDOUT, env=self._environment, cwd=self._folder)
            )

    def _until(self, name: str, ready: Callable[[str], bool]) -> None:
        log = self._folder / f"{name}.log"
        until = time.monotonic() + _READY_S
        while time.monotonic() < until:
            with contextlib.suppress(FileNotFoundError):
                if ready(log.read_text(errors="replace")):
                    return
            for process in self._processes:
                assert process.poll() is None, f"a process of the cluster ended: {log.read_text(errors='replace')[-2000:]}"
            time.sleep(0.1)
        raise AssertionError(f"the cluster is not ready after {_READY_S:.0f} s: {log.read_text(errors='replace')[-2000:]}")
