"""What ``readMode=consume`` has staged under a name, apart from Spark: where it is, and its end."""

from __future__ import annotations

import re
import time
from typing import Final

from jmsapi.errors import JMSException
from jmsapi.spark.batchlog import BatchLog, folder
from jmsapi.spark.option_values import NAME
from jmsapi.spark.staging import StagingStore, mark_of, open_store
from jmsapi.spark.stream import BatchPlan

__all__ = ["LOAD_SEQ", "load_store", "release_load"]

LOAD_SEQ: Final = 1
"""A load is a log with one batch."""


def load_store(location: str, load_id: str) -> StagingStore:
    """Return where the rows of a load are staged."""
    return open_store(f"{location.rstrip('/')}/load-{load_id}")


def release_load(location: str, load_id: str) -> None:
    """Delete the rows of a load; see ``jmsapi.spark.release``."""

    def no_ids(data: memoryview) -> list[str | None]:
        return []

    store = load_store(location, load_id) if re.fullmatch(NAME, load_id) else None
    if store is None or mark_of(store) is None:
        raise JMSException(f"there is no load {load_id!r} in {location!r}", "bad-staging")
    log = BatchLog(store, no_ids, lambda: time.time() * 1000)
    try:
        claims = BatchPlan.decode(store.read(f"{folder(LOAD_SEQ)}/plan.json")).claims
    except FileNotFoundError:
        claims = 0
    batch = log.kept(LOAD_SEQ)
    left = [claim for claim in range(claims) if not batch.ended(claim)]
    if left and not log.deleted(LOAD_SEQ):
        raise JMSException(
            f"the load {load_id!r} in {location!r} is not over: {len(left)} of its {claims} tasks have not ended, and what they "
            "have consumed is nowhere else. Run it again under its name, then release it",
            "bad-staging",
        )
    log.seal(LOAD_SEQ)
