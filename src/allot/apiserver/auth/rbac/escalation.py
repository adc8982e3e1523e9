"""Privilege escalation: the rights that a role grants beyond those of its author, and the message that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.rbac.policy_index import RoleRef
from allot.apiserver.auth.rbac.rules import ANY, PolicyRule, resource_patterns

MAX_CHECKS: Final = 50_000
"""How often rights are compared for one request: a short rule with long lists has billions of parts."""
MAX_OWNED: Final = 10_000
"""How many rules of a user are compared with those of a role."""
MAX_SHOWN: Final = 500
TOO_MANY: Final = (
    "the rules have too many combinations of groups, resources, verbs and names to be checked"
)


class TooManyChecksError(Exception):
    """The rules are too many to be compared."""


class RuleIndex:
    """Rules by what they are about."""

    def __init__(self, rules: Iterable[PolicyRule]) -> None:
        self.all = tuple(dict.fromkeys(rules))
        self._by_resource: dict[str, list[int]] = {}
        for index, rule in enumerate(self.all):
            for resource in dict.fromkeys(rule.resources):
                self._by_resource.setdefault(resource, []).append(index)

    def about(self, resource: str) -> Iterable[PolicyRule]:
        """The rules that may be about a resource, in their order."""
        places = [self._by_resource.get(each, ()) for each in resource_patterns(resource)]
        return [self.all[index] for index in sorted(set(chain.from_iterable(places)))]


class _Owned:
    """The rights of a user, and how often they may still be looked at."""

    def __init__(self, rules: Sequence[PolicyRule], limit: int) -> None:
        self._rules = RuleIndex(rules)
        self._left = limit

    def cover(self, wanted: PolicyRule) -> bool:
        """Whether a single rule covers all of it."""
        first = next(iter(wanted.resources), "")
        for owner in self._rules.about(first) if first else self._rules.all:
            self.spend(_work(owner, wanted))
            if _covers(owner, wanted):
                return True
        return False

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooManyChecksError(TOO_MANY)


def uncovered(
    owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule], limit: int = MAX_CHECKS
) -> list[PolicyRule]:
    """The atomic rules of `wanted` that no single rule of `owned` covers. `TooManyChecksError` if there are too many."""
    rights = _Owned(owned, limit)
    found: list[PolicyRule] = []
    for rule in wanted:
        is_plain = bool(rule.resources) != bool(rule.non_resource_urls)
        is_plain &= "" not in rule.resource_names
        if is_plain and rights.cover(rule):
            continue
        for part in _parts(rule):
            rights.spend(1)
            if not rights.cover(part):
                found.append(part)
    return found


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    """The rule split into rules with one group, one resource, one verb and at most one name; or one path and one verb."""
    for group in rule.api_groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.resource_names or ("",):
                    names = (name,) if name else ()
                    yield PolicyRule((verb,), (group,), (resource,), names)
    for path in rule.non_resource_urls:
        for verb in rule.verbs:
            yield PolicyRule((verb,), non_resource_urls=(path,))


def _covers(owner: PolicyRule, wanted: PolicyRule) -> bool:
    """Whether a rule covers all of another one, which is about resources or about paths."""
    if not _has_all(owner.verbs, wanted.verbs):
        return False
    if wanted.non_resource_urls:
        return all(map(owner.has_path, wanted.non_resource_urls))
    if not _has_all(owner.api_groups, wanted.api_groups):
        return False
    resources = set(owner.resources)
    if any(resources.isdisjoint(resource_patterns(each)) for each in wanted.resources):
        return False
    if not owner.resource_names:
        return True
    return bool(wanted.resource_names) and set(wanted.resource_names) <= set(owner.resource_names)


def _has_all(owned: Sequence[str], wanted: Sequence[str]) -> bool:
    return ANY in owned or set(wanted) <= set(owned)


def _work(owner: PolicyRule, wanted: PolicyRule) -> int:
    """What comparing two rules costs."""
    paths = len(owner.non_resource_urls) * len(wanted.non_resource_urls)
    lists = (*owner[:4], *wanted[:4])
    return 1 + paths + sum(map(len, lists)) // 16


def compacted(parts: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Rules that differ only in their verb, merged; sorted by their string form."""
    verbs: dict[PolicyRule, dict[str, None]] = {}
    others: list[PolicyRule] = []
    for part in parts:
        if part.non_resource_urls:
            others.append(part)
            continue
        verbs.setdefault(part._replace(verbs=()), {}).update(dict.fromkeys(part.verbs))
    rules = [place._replace(verbs=tuple(found)) for place, found in verbs.items()]
    return sorted(rules + others, key=shown)


def shown(rule: PolicyRule) -> str:
    """A rule in one line, as Kubernetes writes it."""
    lists = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    fields = (f"{name}:{quoted(values)}" for name, values in lists if values)
    return f"{{{', '.join(fields)}}}"


def quoted(values: Iterable[str]) -> str:
    return f"[{' '.join(_quote(value) for value in values)}]"


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def escalation_problem(
    user: User,
    owned: Sequence[PolicyRule],
    missing: Sequence[RoleRef],
    wanted: Iterable[PolicyRule],
) -> str | None:
    """Why a user may not grant these rules; None if they may."""
    try:
        parts = uncovered(owned, wanted)
    except TooManyChecksError as error:
        return str(error)
    if not parts:
        return None
    lacking = compacted(parts)
    rules = "\n".join(shown(rule) for rule in lacking[:MAX_SHOWN])
    if len(lacking) > MAX_SHOWN:
        rules += f"\nand {len(lacking) - MAX_SHOWN} more"
    text = (
        f"user {_quote(user.name)} (groups={quoted(user.groups)}) is attempting to grant RBAC permissions "
        f"not currently held:\n{rules}"
    )
    if missing:
        names = ", ".join(dict.fromkeys(_missing(role) for role in missing))
        text += f"; resolution errors: [{names}]"
    return text


def _missing(role: RoleRef) -> str:
    return f'{role.kind.lower()}s.rbac.authorization.k8s.io "{role.name}" not found'
