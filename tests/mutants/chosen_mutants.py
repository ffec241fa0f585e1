"""The mutants that a seed chooses, each against the tests that run the line it changes.

    python -m tests.mutants.chosen_mutants [--seed 23] [--only GROUP] [--most N] [--workers 2] [--again]

One process collects the tests that need no broker, and forks for all that follows. First they run once with a probe in front of
each line that is to change, which tells what tests run it and how long they take. Then, for each mutant, a child changes the code
of one function, and runs the tests of the line until one fails, the quick ones first and of each module in turn. A test that also
fails without the change proves nothing and is left out. Verdicts stand in ``RESULTS.md`` beside this file as they are found, so
that a run which is cut short goes on there, with the lines that it would have come to: what has been tried counts as long as its
line stands in the source.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.mutants.choosing import GROUPS, Chosen, choose, group_of_each_file
from tests.mutants.probes import replace_functions, watch
from tests.mutants.results import RESULTS, ROOT, Result, page, read

KEPT: Final = ROOT / "build" / "mutants"
TESTS: Final = (
    *(
        "tests/unit/core",
        "tests/unit/aio",
        "tests/unit/emulation",
        "tests/unit/listener",
        "tests/unit/selector",
        "tests/unit/message",
        "tests/unit/otel",
    ),
    *("tests/unit/inproc_store", "tests/unit/wire", "tests/providers/inproc", "tests/providers/stomp", "tests/loopback"),
    *("tests/conformance/test_inproc.py", "tests/conformance/test_loopback.py"),
)
_MANY: Final = 200
"""The most tests of a mutant: a line of the core is run by thousands."""
_LONG_S: Final = 150.0
_NO_END: Final = "no end"
_UNCHANGED: Final = "nothing was changed"
"""A line that no test imports: looked at by hand, as one that survived."""
_WAITS: Final = {"JMSAPI_CONFORMANCE_TEST_DEADLINE": "25", "JMSAPI_CONFORMANCE_PATIENCE_MS": "6000"}
_PLAIN: Final = ("-q", "-p", "no:cacheprovider", "--timeout", "40", "-m", "not broker")

Items = dict[str, pytest.Item]


# ---- runs of tests in children --------------------------------------------------------------------------------------


@dataclass
class Run:
    """What became of a run of tests: the first that failed, or the one that it hung in."""

    over: bool = False
    failed: str = ""
    words: str = ""


class _First:
    """Keeps the first test that fails."""

    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def _run(items: Sequence[pytest.Item], before: Callable[[str], object], *, all_of_them: bool = False) -> str:
    """Run tests in this process, which has collected them, until one fails; return its name."""
    first, config = _First(), items[0].config
    config.pluginmanager.register(first)
    config.get_terminal_writer()._file = io.StringIO()
    for item, following in zip(items, (*items[1:], None), strict=True):
        before(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if first.failed and not all_of_them:
            break
    return first.failed


def _fork(work: Callable[[], object]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        # What tests print that nobody captures.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            work()
        finally:
            os._exit(0)
    return child


def _try(mutant: Chosen | None, items: Sequence[pytest.Item], answer: Path) -> None:
    """Run tests with a mutant, and write down what became of them."""
    run = Run()

    def keep(test: str = "") -> None:
        run.failed = test or run.failed
        answer.write_text(json.dumps(vars(run)), encoding="utf-8")

    try:
        if mutant is not None and not replace_functions(mutant.file, mutant.source):
            run.words = _UNCHANGED
        else:
            run.failed = _run(items, keep)
    except BaseException as error:
        run.words = repr(error)
    run.over = True
    keep()


# ---- which tests run a line -----------------------------------------------------------------------------------------


@dataclass
class Map:
    """Which tests run the lines of the mutants, and how long each takes; kept, so that it is asked once."""

    lines: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def _file(self) -> Path:
        return KEPT / "lines.json"

    def ask(self, mutants: Sequence[Chosen], items: Items) -> None:
        """Run all tests once, as far as they were not."""
        with contextlib.suppress(FileNotFoundError):
            vars(self).update(json.loads(self._file.read_text(encoding="utf-8")))
        if not {_key(one.file, one.line) for one in mutants} <= set(self.lines):
            self.lines, self.seconds = {_key(one.file, one.line): [] for one in mutants}, {}
        while left := [item for test, item in items.items() if test not in self.seconds]:
            known = len(self.seconds)
            os.waitpid(_fork(lambda left=left: self._trace(left)), 0)  # type: ignore[misc]
            vars(self).update(json.loads(self._file.read_text(encoding="utf-8")))
            if len(self.seconds) == known:
                raise SystemExit(f"the tests cannot be traced: they end at {left[0].nodeid}")

    def _trace(self, items: Sequence[pytest.Item]) -> None:
        test, began = "", time.monotonic()

        def met(file: str, line: int) -> None:
            tests = self.lines[_key(file, line)]
            if test and test not in tests[-1:]:
                tests.append(test)

        def before(following: str) -> None:
            nonlocal test, began
            if test:
                self.seconds[test] = time.monotonic() - began
            test, began = following, time.monotonic()
            if len(self.seconds) % 50 == 0 or not following:
                self._file.write_text(json.dumps(vars(self)), encoding="utf-8")

        by_file: dict[str, list[int]] = defaultdict(list)
        for key in self.lines:
            file, _, line = key.rpartition(":")
            by_file[file].append(int(line))
        for file, lines in by_file.items():
            watch(file, lines, met)
        _run(items, before, all_of_them=True)
        before("")

    def tests(self, mutant: Chosen) -> list[str]:
        """Return the tests that run the line, of each module in turn the quickest."""
        modules: dict[str, list[str]] = defaultdict(list)
        for test in sorted(set(self.lines[_key(mutant.file, mutant.line)]), key=lambda test: (self.seconds.get(test, 0), test)):
            modules[test.rpartition("::")[0]].append(test)
        # The turn of the modules is by chance, as the first by name have nothing to do with most mutants.
        turns = sorted(modules)
        random.Random(mutant.file).shuffle(turns)
        rounds = [modules[name] for name in turns]
        return [one[at] for at in range(max(map(len, rounds), default=0)) for one in rounds if at < len(one)][:_MANY]


def _key(file: str, line: int) -> str:
    return f"{file}:{line}"


# ---- from tests to a verdict ----------------------------------------------------------------------------------------

Asked = tuple[Chosen | None, Sequence[str]]
Judging = Generator[Asked, Run, tuple[str, str]]


class Judge:
    """Knows which tests fail without any change."""

    def __init__(self) -> None:
        self._sound: dict[str, bool] = {}

    def judging(self, mutant: Chosen, tests: Sequence[str]) -> Judging:
        """Ask for runs until it is known what becomes of a mutant; return the verdict, and the test that caught it."""
        left, hung = list(tests), ""
        while left:
            run = yield mutant, left
            if run.words == _UNCHANGED or (run.over and not run.failed and not run.words):
                break
            if not run.over and run.failed not in ("", hung):
                # Many tests, or one that hangs: once more from there on tells.
                hung = run.failed
                left = left[left.index(hung) :]
            elif run.failed and not (yield from self._is_sound(run.failed)):
                left = left[left.index(run.failed) + 1 :]
            else:
                return "caught", run.failed or run.words
        return "survived", ""

    def _is_sound(self, test: str) -> Generator[Asked, Run, bool]:
        if test not in self._sound:
            run = yield None, [test]
            self._sound[test] = run.over and not run.failed and not run.words
        return self._sound[test]


class Runner:
    """Has several mutants judged side by side, each run in a child of its own."""

    def __init__(self, workers: int, items: Items) -> None:
        self._workers = workers
        self._items = items
        self._running: dict[int, tuple[Judging, Path, float, Any]] = {}

    def run(self, judgings: deque[tuple[Any, Judging]]) -> Generator[tuple[Any, tuple[str, str]]]:
        """Give each verdict as it is found, with what it was asked of."""
        places = [KEPT / f"answer{number}.json" for number in range(self._workers)]
        while judgings or self._running:
            while judgings and places:
                what, judging = judgings.popleft()
                yield from self._go_on(what, judging, None, places.pop(), places)
            for child, (judging, answer, end, what) in list(self._running.items()):
                done, _ = os.waitpid(child, os.WNOHANG)
                if not done and time.monotonic() < end:
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                if not done:
                    os.waitpid(child, 0)
                del self._running[child]
                yield from self._go_on(what, judging, _answer(answer), answer, places)
            time.sleep(0.05)

    def _go_on(
        self, what: Any, judging: Judging, run: Run | None, answer: Path, places: list[Path]
    ) -> Generator[tuple[Any, tuple[str, str]]]:
        try:
            mutant, tests = next(judging) if run is None else judging.send(run)
        except StopIteration as over:
            places.append(answer)
            yield what, over.value
            return
        answer.unlink(missing_ok=True)
        items = [self._items[test] for test in tests]
        child = _fork(lambda: _try(mutant, items, answer))
        self._running[child] = judging, answer, time.monotonic() + _LONG_S, what


def _answer(file: Path) -> Run:
    try:
        return Run(**json.loads(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return Run(words=_NO_END)


class _InPlaceOfTests:
    """Has the tests collected, and does something else than run them."""

    def __init__(self, work: Callable[[Items], None]) -> None:
        self._work = work

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._work({item.nodeid: item for item in session.items})
        return True


# ---- the command ----------------------------------------------------------------------------------------------------


def main() -> int:
    """Try the mutants, write the page, and tell how many survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--only", default="", metavar="GROUP")
    parser.add_argument("--most", type=int, default=sum(count for count, _ in GROUPS.values()), metavar="N")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="ask anew which tests run which lines, and try all mutants again")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    if options.again:
        (KEPT / "lines.json").unlink(missing_ok=True)
    began = time.monotonic()
    results = [] if options.again else read(RESULTS.read_text(encoding="utf-8"), group_of_each_file())
    chosen = choose(options.seed, {(one.file, one.line) for one in results})
    total = len(results) + len(chosen)
    # In turn, so that a run that is cut short has tried some of each group.
    random.Random(options.seed).shuffle(chosen)
    left = [one for one in chosen if options.only in ("", one.group)][: options.most]

    def work(items: Items) -> None:
        tests, judge = Map(), Judge()
        tests.ask(chosen, items)
        print(f"{len(tests.seconds)} tests were traced, {time.monotonic() - began:.0f} s after the start", flush=True)
        judgings = deque((one, judge.judging(one, [test for test in tests.tests(one) if test in items])) for one in left)
        for mutant, (verdict, by) in Runner(options.workers, items).run(judgings):
            print(f"{verdict:<9} {mutant.file}:{mutant.line}  {mutant.before}  ->  {mutant.after}  [{by}]", flush=True)
            results.append(Result(mutant.group, mutant.file, mutant.line, mutant.before, mutant.after, verdict, by))
            RESULTS.write_text(page(results, total, options.seed), encoding="utf-8")

    RESULTS.write_text(page(results, total, options.seed), encoding="utf-8")
    if left:
        os.chdir(ROOT)
        os.environ.update(_WAITS)
        pytest.main([*_PLAIN, *TESTS], plugins=[_InPlaceOfTests(work)])
    survived = [one for one in results if one.verdict == "survived" and not (one.equivalent or one.mended or one.by_hand)]
    print(f"{len(survived)} of {len(results)} mutants survived, in {time.monotonic() - began:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    raise SystemExit(main())
