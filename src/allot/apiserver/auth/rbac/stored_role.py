"""One role as decisions read it. A role may have tens of thousands of rules, so they are indexed and answers are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from allot.apiserver.auth.authorization import Attributes
from allot.apiserver.auth.rbac.rules import ANY, PolicyRule, path_matches, resource_patterns

MAX_ANSWERS: Final = 512
"""The limit of kept answers of one role, which are cleared when there are more."""


class Allowed(NamedTuple):
    """What a role allows for a verb on a resource: all objects, or those with some names."""

    everything: bool
    names: frozenset[str]


NOTHING: Final = Allowed(False, frozenset())
EVERYTHING: Final = Allowed(True, frozenset())


class StoredRole:
    """The rules of a role, as they are stored."""

    def __init__(self, rules: Sequence[Mapping[str, Any]]) -> None:
        self._documents = rules
        self._answers: dict[tuple[str, str, str], Allowed] = {}
        self.work = 0
        """How many rules and names were read to answer, by all questions together."""

    def rules(self) -> Iterator[PolicyRule]:
        return map(PolicyRule.from_document, self._documents)

    def allowed(self, verb: str, group: str, resource: str) -> Allowed:
        """What is allowed for a verb on a resource with its subresource."""
        key = (verb, group, resource)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            answer = self._answers[key] = self._find(verb, group, resource)
        return answer

    def allows_path(self, attributes: Attributes) -> bool:
        """Whether it allows a request that is about a path."""
        verb, path = attributes.verb, attributes.path
        return any(
            _has(rule.get("verbs"), verb)
            and any(path_matches(pattern, path) for pattern in rule["nonResourceURLs"])
            for rule in self._about_paths
        )

    def _find(self, verb: str, group: str, resource: str) -> Allowed:
        names: set[str] = set()
        patterns = resource_patterns(resource)
        for rule in chain.from_iterable(self._by_resource.get(each, ()) for each in patterns):
            self.work += 1
            if _has(rule.get("verbs"), verb) and _has(rule.get("apiGroups"), group):
                named = rule.get("resourceNames")
                if not named:
                    return EVERYTHING
                names.update(named)
                self.work += len(named)
        return Allowed(False, frozenset(names)) if names else NOTHING

    @cached_property
    def _by_resource(self) -> dict[str, list[Mapping[str, Any]]]:
        """The rules about a resource, or about a pattern of resources."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for rule in self._documents:
            for resource in rule.get("resources") or ():
                found.setdefault(resource, []).append(rule)
        self.work += len(self._documents) + len(found)
        return found

    @cached_property
    def _about_paths(self) -> list[Mapping[str, Any]]:
        return [rule for rule in self._documents if rule.get("nonResourceURLs")]


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or ANY in values)
