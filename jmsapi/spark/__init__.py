"""Read and write JMS through PySpark. Needs the extra ``spark``."""

from __future__ import annotations

__all__: list[str] = []
