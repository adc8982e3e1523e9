"""Fields that do not exist: typos, and fields that are elsewhere in this API version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from allot.api.claims import ExactDeviceRequest
from allot.api.decoding import fields_of
from allot.api.slices import Device
from allot.api.strictness import StrictIssue
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.fixes import MoveUnder, MoveUp, RenameKey
from allot.lint.spelling import did_you_mean, only_typo
from allot.lint.subjects import LintSubject

_EXACTLY: Final = "exactly"
_BASIC: Final = "basic"
_EXACT_FIELDS: Final = frozenset(fields_of(ExactDeviceRequest))
_DEVICE_FIELDS: Final = frozenset(fields_of(Device))


def unknown_field_problems(
    subject: LintSubject, issues: Iterable[StrictIssue]
) -> Iterator[Problem]:
    """One problem for each unknown field; duplicate fields are reported elsewhere."""
    unknown = [issue for issue in issues if issue.problem == "unknown"]
    moved_in: dict[str, list[str]] = {}
    for issue in unknown:
        parent, _, name = issue.path.rpartition(".")
        if _moved_under_exactly(issue, parent, name):
            moved_in.setdefault(parent, []).append(name)
    for issue in unknown:
        parent, _, name = issue.path.rpartition(".")
        if name in moved_in.get(parent, ()):
            yield _moved_down(subject, parent, name, moved_in[parent])
        elif name == _BASIC and set(issue.known) >= _DEVICE_FIELDS:
            yield _moved_up(subject, parent)
        elif name == _EXACTLY and "deviceClassName" in issue.known:
            yield _not_yet_there(subject, issue.path)
        else:
            yield _unknown(subject, issue, parent, name)


def _moved_under_exactly(issue: StrictIssue, parent: str, name: str) -> bool:
    return _EXACTLY in issue.known and parent.endswith("]") and name in _EXACT_FIELDS


def _moved_down(subject: LintSubject, parent: str, name: str, names: list[str]) -> Problem:
    request = subject.manifest.value_at(parent)
    is_free = isinstance(request, dict) and not request.keys() & {_EXACTLY, "firstAvailable"}
    fix = MoveUnder(parent, tuple(names), _EXACTLY) if is_free and name == names[0] else None
    where = f"`{name}` moved under `exactly` in {subject.gvk.group_version}"
    return Problem(rules.MOVED_FIELD, f"{parent}.{name}", f"{where}: write exactly.{name}", fix)


def _moved_up(subject: LintSubject, parent: str) -> Problem:
    device = subject.manifest.value_at(parent)
    inner = device.get(_BASIC) if isinstance(device, dict) else None
    is_free = isinstance(inner, dict) and not inner.keys() & device.keys()
    message = (
        f"the fields of `basic` moved to the device itself in {subject.gvk.group_version}: "
        "write them beside `name`"
    )
    fix = MoveUp(parent, _BASIC) if is_free else None
    return Problem(rules.MOVED_FIELD, f"{parent}.{_BASIC}", message, fix)


def _not_yet_there(subject: LintSubject, path: str) -> Problem:
    message = (
        f"{subject.gvk.group_version} has no `exactly`: write apiVersion resource.k8s.io/v1, or the "
        "fields of `exactly` in the request itself"
    )
    return Problem(rules.MOVED_FIELD, path, message)


def _unknown(subject: LintSubject, issue: StrictIssue, parent: str, name: str) -> Problem:
    present = subject.manifest.value_at(parent) if parent else subject.manifest.data
    free = [field for field in issue.known if not isinstance(present, dict) or field not in present]
    meant = only_typo(name, free)
    fix = RenameKey(issue.path, meant) if meant is not None else None
    hint = did_you_mean(name, issue.known)
    if not hint and issue.known:
        hint = f"; known here: {', '.join(sorted(issue.known))}"
    return Problem(rules.UNKNOWN_FIELD, issue.path, f'unknown field "{name}"{hint}', fix)
