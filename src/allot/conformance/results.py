"""Outcomes of checks, and their forms for people and machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring


class Level(Enum):
    """How much a rule binds, as in RFC 2119."""

    MUST = "must"
    SHOULD = "should"


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    """A rule that should be kept is not."""
    SKIPPED = "skipped"


class CheckFailedError(Exception):
    """The driver breaks the rule; the message says how."""


class CheckSkippedError(Exception):
    """The rule does not apply to this driver, or cannot be checked here."""


class CheckResult(NamedTuple):
    """What came out of one check."""

    name: str
    title: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]


class Report(NamedTuple):
    """All results of a driver."""

    driver: str
    results: Sequence[CheckResult]

    @property
    def is_conformant(self) -> bool:
        return not any(result.outcome is Outcome.FAILED for result in self.results)

    def summary(self) -> str:
        """One line."""
        counts = Counter(result.outcome for result in self.results)
        parts = [f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome]]
        verdict = "conformant" if self.is_conformant else "NOT conformant"
        return f"{self.driver or 'driver'}: {verdict} ({', '.join(parts) or 'no checks'})"

    def junit(self) -> bytes:
        """JUnit XML. Warnings are passed tests with output."""
        counts = Counter(result.outcome for result in self.results)
        suite = Element(
            "testsuite",
            name=f"DRA driver conformance: {self.driver}",
            tests=str(len(self.results)),
            failures=str(counts[Outcome.FAILED]),
            skipped=str(counts[Outcome.SKIPPED]),
            errors="0",
            time=f"{sum(result.seconds for result in self.results):.3f}",
        )
        for result in self.results:
            case = SubElement(
                suite,
                "testcase",
                classname=f"driver.{result.group}",
                name=result.name,
                time=f"{result.seconds:.3f}",
            )
            match result.outcome:
                case Outcome.FAILED:
                    SubElement(case, "failure", message=result.message).text = result.title
                case Outcome.SKIPPED:
                    SubElement(case, "skipped", message=result.message)
                case Outcome.WARNING:
                    SubElement(case, "system-out").text = f"warning: {result.message}"
        indent(suite)
        return b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suite) + b"\n"
