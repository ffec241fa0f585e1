"""Brokers in containers, through testcontainers and the engine's client that it brings along."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from ._folder import Folder, is_wanted
from ._kinds import HERE, INFO, BrokerKind, How, LauncherError, Wire
from ._ports import free_ports

# The two labels by which a later launch on the same machine knows a container as ours, and whose it was.
_LABEL_FOLDER = "jmsapi.broker.folder"
_LABEL_HOST = "jmsapi.broker.host"
_END_S = 30


class _Container(Protocol):
    id: str
    status: str
    labels: dict[str, str]

    def start(self) -> None: ...
    def kill(self) -> None: ...
    def stop(self, *, timeout: int) -> None: ...
    def wait(self, *, timeout: int) -> object: ...
    def remove(self, *, force: bool, v: bool) -> None: ...
    def reload(self) -> None: ...
    def logs(self) -> bytes: ...


class _Containers(Protocol):
    def get(self, container_id: str) -> _Container: ...
    def list(self, *, all: bool, filters: dict[str, list[str]], ignore_removed: bool) -> list[_Container]: ...


class _Images(Protocol):
    def get(self, name: str) -> object: ...
    def pull(self, name: str) -> object: ...


class _ContainerClient(Protocol):
    """The part of the engine's client that is used here; the library itself is untyped."""

    containers: _Containers
    images: _Images

    def ping(self) -> object: ...


class _Engine(Protocol):
    client: _ContainerClient

    def create(
        self,
        image: str,
        *,
        environment: dict[str, str],
        ports: dict[str, tuple[str, int]],
        labels: dict[str, str],
        volumes: dict[str, dict[str, str]],
        healthcheck: dict[str, list[str]],
    ) -> _Container: ...


@contextmanager
def _engine() -> Generator[_Engine]:
    """Open the engine's client; every failure of it comes out as LauncherError."""
    try:
        module: Any = importlib.import_module("testcontainers.core.docker_client")
        errors: Any = importlib.import_module("docker.errors")
        http: Any = importlib.import_module("requests.exceptions")
    except ImportError as error:
        raise LauncherError("testcontainers is not installed (pip install 'jmsapi[conformance]')") from error
    try:
        engine: Any = module.DockerClient()
        try:
            yield cast("_Engine", engine)
        finally:
            engine.client.close()
    except (errors.DockerException, http.RequestException) as error:
        raise LauncherError(f"container engine: {error}") from error


def why_not(kind: BrokerKind) -> str | None:
    """Say why this broker cannot run in a container here; pull its image if only that is missing.

    Returns:
        The reason, or None when all is there.
    """
    image = INFO[kind].image
    try:
        with _engine() as engine:
            engine.client.ping()
    except LauncherError as error:
        return f"no container engine ({error})"
    try:
        with _engine() as engine:
            _image(engine, image)
    except LauncherError as error:
        return f"no image {image} ({error})"
    return None


def sweep() -> None:
    """Remove the containers that ended programs on this machine left behind."""
    with _engine() as engine:
        label = f"{_LABEL_HOST}={socket.gethostname()}"
        for container in engine.client.containers.list(all=True, filters={"label": [label]}, ignore_removed=True):
            if not is_wanted(Path(container.labels.get(_LABEL_FOLDER, "/nowhere"))):
                _remove(container)


def _image(engine: _Engine, image: str) -> None:
    errors: Any = importlib.import_module("docker.errors")
    try:
        engine.client.images.get(image)
    except errors.ImageNotFound:
        engine.client.images.pull(image)


def _remove(container: _Container) -> None:
    errors: Any = importlib.import_module("docker.errors")
    try:
        container.remove(force=True, v=True)
    except errors.APIError as error:
        # Gone (404), or somebody else is removing it at this moment (409).
        if error.status_code not in (404, 409):
            raise


def _of_java() -> dict[str, str]:
    """Return the options of this process for Java machines, which hold for the brokers as for a broker that is a process."""
    options = os.environ.get("JAVA_TOOL_OPTIONS", "")
    return {"JAVA_TOOL_OPTIONS": options} if options else {}


class ContainerHost:
    """One broker's container, published on fixed ports of 127.0.0.1."""

    how: How = "container"

    def __init__(self, kind: BrokerKind, folder: Folder, ports: dict[Wire, int], mark: str = "") -> None:
        self.kind: BrokerKind = kind
        self.ports = ports
        self._folder = folder
        self.mark = mark

    @classmethod
    def new(cls, kind: BrokerKind, folder: Folder) -> ContainerHost:
        """Choose ports and create the container, without starting it."""
        info = INFO[kind]
        ports = dict(zip(info.inner_ports, free_ports(len(info.inner_ports)), strict=True))
        with _engine() as engine:
            container = engine.create(
                info.image,
                environment={**info.environment, **_of_java()},
                # Chosen here and not by the engine, which would choose others at the next start.
                ports={str(inner): ("127.0.0.1", ports[wire]) for wire, inner in info.inner_ports.items()},
                labels={_LABEL_FOLDER: str(folder.path.resolve()), _LABEL_HOST: socket.gethostname()},
                volumes={str(HERE / ours): {"bind": theirs, "mode": "ro"} for ours, theirs in info.mounts.items()},
                # Readiness is known by logging in. A check of the image starts a process in each container every few seconds.
                healthcheck={"test": ["NONE"]},
            )
            return cls(kind, folder, ports, container.id)

    def start(self) -> None:
        """Start the container."""
        with self._container() as container:
            container.start()

    def alive(self) -> bool:
        """Tell whether the container runs."""
        try:
            with self._container() as container:
                return container.status == "running"
        except LauncherError:
            return False

    def can_start_again(self) -> bool:
        """Tell whether there is still a container."""
        try:
            with self._container():
                return True
        except LauncherError:
            return False

    def kill(self) -> None:
        """End the broker with SIGKILL; its data stays in the container."""
        if not self.alive():
            return
        with self._container() as container:
            container.kill()
            container.wait(timeout=_END_S)

    def shut_down(self) -> None:
        """Ask the broker to end, and make it end if it does not."""
        with self._container() as container:
            container.stop(timeout=_END_S)

    def remove(self) -> None:
        """Remove the container and its volumes."""
        errors: Any = importlib.import_module("docker.errors")
        with _engine() as engine:
            try:
                _remove(engine.client.containers.get(self.mark))
            except errors.NotFound:
                return

    def log(self) -> str:
        """Read everything that the broker wrote since its first start."""
        try:
            with self._container() as container:
                return container.logs().decode("utf-8", "replace")
        except LauncherError as error:
            return f"(no log: {error})"

    @contextmanager
    def _container(self) -> Generator[_Container]:
        with _engine() as engine:
            yield engine.client.containers.get(self.mark)
