"""Privilege escalation: the rights that a role grants beyond those of its author, and the message that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.rbac.policy_index import RoleRef
from allot.apiserver.auth.rbac.rules import ANY, PolicyRule


def uncovered(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The atomic rules of `wanted` that no single rule of `owned` covers."""
    return [
        part
        for rule in wanted
        for part in _parts(rule)
        if not any(_covers(owner, part) for owner in owned)
    ]


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


def _covers(owner: PolicyRule, part: PolicyRule) -> bool:
    (verb,) = part.verbs
    if not owner.has_verb(verb):
        return False
    if part.non_resource_urls:
        (path,) = part.non_resource_urls
        return owner.has_path(path)
    (group,), (resource,) = part.api_groups, part.resources
    if group not in owner.api_groups and ANY not in owner.api_groups:
        return False
    if not owner.has_resource(resource):
        return False
    if not owner.resource_names:
        return True
    return bool(part.resource_names) and part.resource_names[0] in owner.resource_names


def compacted(parts: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Rules that differ only in their verb, merged; sorted by their string form."""
    verbs: dict[PolicyRule, list[str]] = {}
    others: list[PolicyRule] = []
    for part in parts:
        if part.non_resource_urls:
            others.append(part)
            continue
        found = verbs.setdefault(part._replace(verbs=()), [])
        found += [verb for verb in part.verbs if verb not in found]
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
    parts = uncovered(owned, wanted)
    if not parts:
        return None
    rules = "\n".join(shown(rule) for rule in compacted(parts))
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
