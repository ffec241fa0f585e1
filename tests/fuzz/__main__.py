"""Feed mutations of real bytes to the parsers of both wires and to the development broker: ``make fuzz ARGS="--count 10000000"``.

Whatever comes must end in values or in the documented errors, within the memory allowed. Each exception of another kind ends the
run with the bytes that caused it.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import time
from collections.abc import Callable
from typing import Final

from tests.fuzz import amqp_messages, loopback_frames
from tests.providers.stomp import frame_fuzz

TARGETS: Final[dict[str, Callable[[int, int], object]]] = {
    "stomp": frame_fuzz.fuzz,
    "amqp": amqp_messages.fuzz,
    "loopback": loopback_frames.fuzz,
}
_CHUNK: Final = 20_000


def main() -> int:
    """Run until all targets together have had so many."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=300_000, help="frames and messages, all targets together")
    parser.add_argument("--seed", type=int, default=1, help="of the first chunk; the next ones have the numbers after it")
    parser.add_argument("--memory", type=int, default=1024, help="MiB of address space that the run may take")
    parser.add_argument("targets", nargs="*", metavar="target", help=f"{', '.join(TARGETS)}; default: all")
    given = parser.parse_args()
    targets = {name: TARGETS[name] for name in given.targets or TARGETS}
    logging.getLogger("jmsapi").setLevel(logging.CRITICAL)
    logging.getLogger("jmsapi.testing").setLevel(logging.ERROR)
    logging.getLogger("jmsapi.testing").propagate = False
    resource.setrlimit(resource.RLIMIT_AS, (given.memory << 20, given.memory << 20))
    done, seed, begun = dict.fromkeys(targets, 0), given.seed, time.monotonic()
    while sum(done.values()) < given.count:
        for name, fuzz in targets.items():
            count = min(_CHUNK, given.count)
            fuzz(count, seed)
            done[name] += count
        seed += 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{sum(done.values())} {done}, next seed {seed}, {time.monotonic() - begun:.0f} s, peak {peak} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
