"""Options of the in-process provider. Imports pydantic, so it is loaded only when a factory is configured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from jmsapi.spi.options import ProviderOptions

__all__ = ["InprocOptions"]


class InprocOptions(ProviderOptions):
    """Options of a connection inside the process: ``inproc://name?option=value``, ``inproc:///path/file.db``."""

    scheme: str = Field(default="inproc", description="URL scheme; picks the provider")
    dead_letter: str = Field(
        default="DLQ.{name}",
        description="Queue for rejected messages; {name} stands for the queue's or topic's name; empty drops them",
    )
    max_shared_consumers: int = Field(default=-1, ge=-1, description="Most consumers of one shared subscription; -1 no limit")

    @model_validator(mode="after")
    def _has_only_a_name(self) -> Self:
        if self.port is not None or (self.path and self.host not in ("", ".", "..")):
            raise ValueError(
                "the address of an in-process broker is its name alone, inproc://name, or its file, inproc:///path/file.db or "
                "inproc://./file.db: no port, no path behind a name"
            )
        if self.path.endswith("/"):
            raise ValueError("a stored broker's path names a file, not a folder")
        try:
            usable = b"\0" not in os.fsencode(self.path)
        except UnicodeEncodeError:
            usable = False
        if not usable:
            raise ValueError(f"a stored broker's path cannot have NUL characters or halves of surrogate pairs: {self.path!r}")
        return self

    @property
    def store(self) -> Path | None:
        """The file of a stored broker: ``inproc:///path/file.db``, or from the working directory ``inproc://./file.db``."""
        if not self.path:
            return None
        if self.host or (os.name == "nt" and Path(self.path).is_absolute()):
            return Path(self.host, self.path)
        return Path("/", self.path)
