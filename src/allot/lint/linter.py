"""Checks manifests together: the API server's answers, then what rules find in what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from allot.apiserver.yaml_documents import YamlLocation
from allot.driver.hardware import Hardware
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.expressions import point_at
from allot.lint.findings import Finding, Problem, Report, Severity
from allot.lint.fixes import Fix
from allot.lint.hardware import check_hardware, is_hardware, published_objects
from allot.lint.known_objects import KnownObjects
from allot.lint.manifests import Manifest, Unreadable
from allot.lint.rules import CHECKS
from allot.lint.rules.satisfiability import unsatisfiable_claim
from allot.lint.scopes import KnownByScope
from allot.lint.server import server_problems
from allot.lint.subjects import LintSubject, subject_of
from allot.lint.suppression import is_suppressed
from allot.lint.target import TargetCluster, target_problems


class FixableManifest(NamedTuple):
    """A manifest and the fixes for it."""

    manifest: Manifest
    fixes: tuple[Fix, ...]


class Linter:
    """Checks manifests by the API server's rules and by lint's own.

    `new_known` returns the objects of the cluster. Which manifests see each other is decided in `scopes`.
    """

    def __init__(
        self,
        gates: FeatureGates,
        *,
        new_known: Callable[[], KnownObjects] = KnownObjects,
        target: TargetCluster = TargetCluster.ALLOT,
        ignored: Iterable[str] = (),
    ) -> None:
        self._gates = gates
        self._new_known = new_known
        self._target = target
        self._ignored = frozenset(ignored)

    def check(self, manifests: Iterable[Manifest | Unreadable]) -> Report:
        """Findings in the order of the files."""
        return self.check_for_fixes(manifests)[0]

    def check_for_fixes(
        self, manifests: Iterable[Manifest | Unreadable]
    ) -> tuple[Report, list[FixableManifest]]:
        """Findings, and the fixes for each manifest."""
        findings: list[Finding] = []
        fixable: list[FixableManifest] = []
        subjects = []
        described: list[Hardware] = []
        checked = 0
        for manifest in manifests:
            if isinstance(manifest, Unreadable):
                findings.append(_unreadable(manifest))
            elif is_hardware(manifest):
                checked += 1
                found = check_hardware(manifest)
                described += [found.hardware] if found.hardware is not None else []
                findings += self._shown(found.finding, manifest)
            else:
                subjects.append(subject_of(manifest))
        known = KnownByScope(subjects, partial(self._known_with, described))
        objects = len(subjects) + checked
        for subject in subjects:
            problems = self._problems(subject, known.of(subject))
            if problems is None:
                continue
            checked += 1
            fixes: list[Fix] = []
            for problem in problems:
                finding = _finding(subject, problem)
                if is_suppressed(finding, subject.manifest.lines):
                    continue
                findings.append(finding)
                if problem.fix is not None:
                    fixes.append(problem.fix)
            if fixes:
                fixable.append(FixableManifest(subject.manifest, tuple(fixes)))
        findings.sort(key=lambda finding: (finding.source, finding.line, finding.column))
        return Report(findings, checked, objects - checked), fixable

    def _known_with(self, described: Iterable[Hardware]) -> KnownObjects:
        known = self._new_known()
        for hardware in described:
            for obj in published_objects(hardware):
                known.add(obj)
        return known

    def _shown(self, finding: Finding | None, manifest: Manifest) -> list[Finding]:
        if finding is None or finding.rule in self._ignored:
            return []
        return [] if is_suppressed(finding, manifest.lines) else [finding]

    def _problems(self, subject: LintSubject, known: KnownObjects) -> list[Problem] | None:
        """The problems of one object; None if objects of its kind are not checked."""
        answers = server_problems(subject, known, self._gates)
        if answers is None:
            return None
        problems = [*_duplicates(subject), *answers]
        refused = {problem.path for problem in problems}
        for check in CHECKS:
            for problem in check(subject, known, self._gates):
                # Already reported by the API server or another rule.
                if problem.path not in refused:
                    problems.append(problem)
                    refused.add(problem.path)
        if not problems:
            problems += unsatisfiable_claim(subject, known, self._gates)
        if self._target is TargetCluster.KUBERNETES_1_38:
            problems += target_problems(subject, known, self._gates)
        return [problem for problem in problems if problem.rule.id not in self._ignored]


def _duplicates(subject: LintSubject) -> Iterator[Problem]:
    for path, _ in subject.manifest.duplicates:
        yield Problem(
            rules.DUPLICATE_FIELD, path, "this key occurs twice here; only the last one counts"
        )


def _finding(subject: LintSubject, problem: Problem) -> Finding:
    manifest = subject.manifest
    path = subject.written_path(problem.path)
    snippet = ""
    place = _place(manifest, problem, path)
    if problem.issue is not None:
        expression = str(manifest.value_at(path) or "")
        place, snippet = point_at(manifest, path, expression, problem.issue)
    return Finding(
        rule=problem.rule.id,
        severity=problem.severity or problem.rule.severity,
        source=manifest.source,
        line=place.line,
        column=place.column,
        object=f"{manifest.kind}/{manifest.name}" if manifest.name else manifest.kind,
        field=path,
        message=problem.message,
        snippet=snippet,
        fix=str(problem.fix) if problem.fix is not None else "",
    )


def _place(manifest: Manifest, problem: Problem, path: str) -> YamlLocation:
    if problem.rule is rules.DUPLICATE_FIELD:
        return next(place for where, place in manifest.duplicates if where == problem.path)
    return manifest.locate(path)


def _unreadable(problem: Unreadable) -> Finding:
    return Finding(
        rules.UNREADABLE.id,
        Severity.ERROR,
        problem.source,
        problem.line,
        problem.column,
        "",
        "",
        problem.problem,
    )
