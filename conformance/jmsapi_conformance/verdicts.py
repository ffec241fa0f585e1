"""From what a test did to what that says of a provider."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from jmsapi import UnsupportedFeatureException, UnsupportedFeatureRuntimeException
from jmsapi.spi import Capabilities, Level
from jmsapi_conformance.marks import ENVIRONMENT

__all__ = ["Applicability", "Verdict", "applicability", "combine", "is_refusal", "judge"]


class Verdict(Enum):
    """What one test, or all tests of a requirement, say."""

    PASS = "pass"
    EMULATED = "emulated"
    """Holds, with something supplied by the client."""
    REFUSED = "refused"
    """The feature is not claimed, and asking for it raises UnsupportedFeatureException."""
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Applicability:
    """How the needs of a test meet a backend."""

    missing: tuple[str, ...] = ()
    """Needed features that are NONE: the test must end in a refusal."""
    emulated: tuple[str, ...] = ()
    not_applicable: str | None = None
    """Why the test cannot say anything here."""


def applicability(needed: Iterable[str], capabilities: Capabilities, environment: frozenset[str]) -> Applicability:
    """Compare what a test needs with what a backend and its surroundings have."""
    missing: list[str] = []
    emulated: list[str] = []
    for name in needed:
        if name in ENVIRONMENT:
            if name not in environment:
                return Applicability(not_applicable=f"{name}: {ENVIRONMENT[name]}")
            continue
        support = capabilities.of(name)
        if support.level is Level.EMULATED:
            emulated.append(name)
        elif support.level is Level.NONE:
            if capabilities.is_quality(name):
                return Applicability(not_applicable=f"{name}: {support.note or 'not promised by this broker'}")
            missing.append(name)
    return Applicability(tuple(missing), tuple(emulated))


def is_refusal(error: BaseException | None) -> bool:
    """Return whether an exception is the refusal of a feature, in either family."""
    return isinstance(error, UnsupportedFeatureException | UnsupportedFeatureRuntimeException)


def judge(applies: Applicability, error: BaseException | None) -> tuple[Verdict, str]:
    """Return the verdict over a test that ran to its end, and the reason for it.

    Args:
        applies: What ``applicability`` said of it.
        error: What the test raised; None when it passed.
    """
    if applies.missing:
        names = ", ".join(applies.missing)
        if is_refusal(error):
            return Verdict.REFUSED, str(error)
        if error is None:
            return Verdict.FAIL, f"claims that {names} is NONE, yet it works: claim it, or refuse it"
        return Verdict.FAIL, f"{names} is NONE and must be refused with UnsupportedFeatureException, got {_short(error)}"
    if error is not None:
        return Verdict.FAIL, _short(error)
    if applies.emulated:
        return Verdict.EMULATED, "emulated: " + ", ".join(applies.emulated)
    return Verdict.PASS, ""


def _short(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over a requirement from those of its tests: the worst that says something."""
    found = set(verdicts)
    for verdict in (Verdict.FAIL, Verdict.REFUSED, Verdict.EMULATED, Verdict.PASS):
        if verdict in found:
            return verdict
    return Verdict.NOT_APPLICABLE
