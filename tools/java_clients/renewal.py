"""Puts tests that were run again into the certificates that are kept: ``python -m java_clients.renewal PART.json ...``.

A whole run takes an hour. Where only some tests of the suite have changed, those are run by ``-k``, and their outcomes take the
place of the older ones; each says in its remark on which day it was run. All others stay those of the whole run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from java_clients.reasons import explained, load
from jmsapi_conformance.document import Column, Document, read, write
from jmsapi_conformance.plugin import SUITE

__all__ = ["every_test", "main", "renewed"]

_INI: Final = SUITE.parent / "data" / "suite.ini"
_KEPT: Final = Path(__file__).parents[2] / "conformance" / "certificates" / "foreign"


def every_test() -> tuple[str, ...]:
    """Return the name of each test that the suite has now, in its order; nothing is run."""
    command = [sys.executable, "-m", "pytest", str(SUITE), f"--rootdir={SUITE}", f"--config-file={_INI}"]
    command += ["--collect-only", "--quiet", "--assert=plain", "-p", "jmsapi_conformance.plugin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"the suite cannot be collected: {done.stdout}{done.stderr}")
    return tuple(line for line in done.stdout.splitlines() if "::" in line)


def renewed(kept: Column, part: Column, suite: Sequence[str]) -> tuple[Column, list[str]]:
    """Return a certificate with the outcomes of a later run of some tests.

    Args:
        kept: Of the whole suite.
        part: Of the tests that were run again, by the same client on the same broker.
        suite: The tests that the suite has now; what it no longer has is left out.
    Returns:
        The certificate, and the failures that no reason is known for.
    Raises:
        ValueError: The two are not of one client and broker, or a test of the suite stands in neither.
    """
    theirs, ours = ((one.provider, one.broker, one.broker_version) for one in (part, kept))
    if theirs != ours:
        raise ValueError(f"{' '.join(theirs)} cannot renew the certificate of {' '.join(ours)}")
    day = f"Run on {part.started[:10]}."
    outcomes = {one.test: one for one in kept.tests} | {one.test: replace(one, remark=day) for one in part.tests}
    if missing := [name for name in suite if name not in outcomes]:
        raise ValueError(f"{len(missing)} tests of the suite were not run, the first of them {missing[0]}")
    told, unknown = explained(kept.url.partition("://")[0], [outcomes[name] for name in suite], load())
    whole = replace(kept, tests=told, capabilities=part.capabilities)
    return replace(whole, requirements=whole.verdicts()), unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when a test fails for which no reason is known."""
    parser = argparse.ArgumentParser(prog="java_clients.renewal", description="Put tests that were run by -k into what is kept.")
    parser.add_argument("parts", nargs="+", type=Path, metavar="PART", help="what `java_clients -k ... --out FOLDER` wrote")
    parser.add_argument("--kept", type=Path, default=_KEPT, metavar="FOLDER", help="the certificates that are renewed")
    options = parser.parse_args(arguments)
    suite = every_test()
    left: list[str] = []
    for path in options.parts:
        (part,) = read(path).certificates
        kept = options.kept / f"{part.url.partition('://')[0].replace('+', '-')}.json"
        document = read(kept)
        column, unknown = renewed(document.certificates[0], part, suite)
        write(Document(document.schema, document.suite, (column,)), kept, terse=True)
        print(f"{kept.name}: {len(part.tests)} tests of {part.started[:10]}, {len(column.tests)} in all")
        left += [f"{part.provider}: {one}" for one in unknown]
    if left:
        print(f"\n{len(left)} failures without a reason in reasons.toml:", *left, sep="\n  ")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
