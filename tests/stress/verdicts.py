"""The same verdict every time: the conformance suite again and again on one backend, and what differs between the runs.

    python -m tests.stress.verdicts URL [--runs 20] [-k EXPR] [--workers N]

Each run is one of ``jmsapi-conformance``. In the end each test is shown whose verdict was not the same in all of them, and each
that failed in all; the exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import jmsapi


def one_run(url: str, keyword: str, workers: int, file: Path) -> dict[str, tuple[str, str]]:
    """Return, by test, its verdict and the reason.

    Raises:
        SystemExit: The run wrote no certificate.
    """
    command = [sys.executable, "-m", "jmsapi_conformance", url, "--json", str(file)]
    command += ["-k", keyword] if keyword else []
    command += ["-n", str(workers)] if workers else []
    file.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not file.exists():
        raise SystemExit(
            f"a run ended with {done.returncode} and without a certificate: {done.stdout[-500:]}{done.stderr[-500:]}"
        )
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    (certificate,) = document["certificates"]
    return {test["test"]: (test["verdict"], test["reason"]) for test in certificate["tests"]}


def differences(runs: list[dict[str, tuple[str, str]]]) -> dict[str, Counter[str]]:
    """Return, of each test that was not judged alike in all runs, how often it had which verdict; ``missing`` is one, too."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for name in {name for run in runs for name in run}:
        for run in runs:
            found[name][run[name][0] if name in run else "missing"] += 1
    return {name: counts for name, counts in sorted(found.items()) if len(counts) > 1}


def main() -> int:
    """Run, compare, and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("-k", dest="keyword", default="", metavar="EXPR", help="only tests whose module or name fits")
    parser.add_argument("--workers", type=int, default=0, help="as -n of jmsapi-conformance")
    options = parser.parse_args()
    shown = jmsapi.redact_url(options.url)
    runs: list[dict[str, tuple[str, str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.runs + 1):
            began = time.monotonic()
            run = one_run(options.url, options.keyword, options.workers, Path(folder, "run.json"))
            runs.append(run)
            counts = Counter(verdict for verdict, _ in run.values())
            said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
            print(f"{shown}: run {number}, {time.monotonic() - began:.0f} s: {said}", flush=True)
    differ = differences(runs)
    for name, counts in differ.items():
        print(f"DIFFERS {name}: {', '.join(f'{count} times {verdict}' for verdict, count in counts.items())}")
        print(f"  {next((run[name][1] for run in runs if run.get(name, ('',))[0] == 'fail'), '')[:300]}")
    failed = sorted(name for name, (verdict, _) in runs[0].items() if verdict == "fail" and name not in differ)
    for name in failed:
        print(f"FAIL {name}: {runs[0][name][1][:300]}")
    print(f"{shown}: {len(runs)} runs of {len(runs[0])} tests, {len(differ)} verdicts differ, {len(failed)} always FAIL")
    return 1 if differ or failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
