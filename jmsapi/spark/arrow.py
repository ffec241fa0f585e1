"""PyArrow, which comes without types; the one place where that is said."""

from __future__ import annotations

import importlib
from typing import Any, Final, TypeAlias

__all__ = ["RecordBatch", "pa", "pc"]

pa: Final[Any] = importlib.import_module("pyarrow")
pc: Final[Any] = importlib.import_module("pyarrow.compute")
RecordBatch: TypeAlias = Any
"""A ``pyarrow.RecordBatch``."""
