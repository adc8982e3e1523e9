"""Default roles and bindings, and their reconciliation at the start.

`bootstrap_roles.txt` has those of Kubernetes v1.38, which are stored. `component_roles.txt` has those of allot's own
components, which are in force without being stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from allot.apiserver.auth.rbac.escalation import uncovered
from allot.apiserver.auth.rbac.rules import PolicyRule
from allot.validation.parts import part, parts
from allot.validation.role_aggregation import aggregated_rules

GROUP: Final = "rbac.authorization.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
AUTO_UPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
CORE: Final = "core"

Document = dict[str, Any]


class BootstrapRole(NamedTuple):
    """A default role, and its binding if it has one."""

    role: Document
    binding: Document | None = None
    gate: str = ""
    """The feature gate without which it does not exist."""


@cache
def bootstrap_roles() -> tuple[BootstrapRole, ...]:
    """The default roles of Kubernetes. Aggregated roles have the rules of the roles they select."""
    found = _read_table("bootstrap_roles.txt")
    roles = [each.role for each in found]
    # Aggregated roles may be aggregated themselves: admin has edit, which has view.
    for _ in range(3):
        for role in roles:
            if "aggregationRule" in role:
                role["rules"] = aggregated_rules(role, roles)
    return found


@cache
def component_roles() -> tuple[BootstrapRole, ...]:
    """The roles of allot's own components."""
    return _read_table("component_roles.txt")


def _read_table(name: str) -> tuple[BootstrapRole, ...]:
    return tuple(read_roles(files(__package__).joinpath(name).read_text(encoding="utf-8")))


def read_roles(text: str) -> Iterator[BootstrapRole]:
    """The roles of a table; its first lines document the format."""
    current: BootstrapRole | None = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if not line.startswith(" "):
            if current is not None:
                yield current
            current = _role(words)
            continue
        assert current is not None, line
        if words[0] == "bound":
            current = current._replace(binding=_binding(current.role, words[1:]))
        else:
            current.role["rules"].append(_rule(words))
    if current is not None:
        yield current


def _role(words: list[str]) -> BootstrapRole:
    kind, place, *options = words
    namespace, _, name = place.rpartition("/") if kind == "Role" else ("", "", place)
    role: Document = {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": _metadata(namespace, name),
        "rules": [],
    }
    gate = ""
    for option in options:
        key, _, value = option.partition("=")
        match key:
            case "part":
                role["metadata"]["labels"][f"{GROUP}/{value}"] = "true"
            case "sum":
                labels = {f"{GROUP}/{value}": "true"}
                role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels}]}
            case "gate":
                gate = value
    return BootstrapRole(role, gate=gate)


def _metadata(namespace: str, name: str) -> Document:
    placed = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        **placed,
        "labels": dict(BOOTSTRAPPING),
        "annotations": {AUTO_UPDATE: "true"},
    }


def _rule(words: list[str]) -> Document:
    lists = [["" if each == CORE else each for each in word.split(",")] for word in words]
    if len(lists) == 2:
        return PolicyRule(tuple(lists[0]), non_resource_urls=tuple(lists[1])).to_document()
    return PolicyRule(*(tuple(each) for each in lists)).to_document()


def _binding(role: Document, words: list[str]) -> Document:
    metadata = role["metadata"]
    name = metadata["name"]
    if words and words[0].startswith("as="):
        name = words.pop(0).removeprefix("as=")
    kind = "RoleBinding" if role["kind"] == "Role" else "ClusterRoleBinding"
    subjects = {"subjects": [_subject(word) for word in words]} if words else {}
    return {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": _metadata(metadata.get("namespace", ""), name),
        **subjects,
        "roleRef": {"apiGroup": GROUP, "kind": role["kind"], "name": metadata["name"]},
    }


def _subject(word: str) -> Document:
    kind, _, name = word.partition(":")
    if kind == "ServiceAccount":
        namespace, _, account = name.partition("/")
        return {"kind": kind, "name": account, "namespace": namespace}
    return {"kind": kind, "apiGroup": GROUP, "name": name}


# --- reconciliation ---


def reconciled_role(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Document | None:
    """The stored role with missing rules added; None if nothing is missing or autoupdate is off.

    Rules that others added are kept.
    """
    metadata = _reconciled_metadata(stored, wanted)
    if metadata is None:
        return None
    found = dict(stored)
    found["metadata"] = metadata
    if "aggregationRule" in wanted:
        selectors = parts(part(stored, "aggregationRule"), "clusterRoleSelectors")
        lacking = [
            each
            for each in wanted["aggregationRule"]["clusterRoleSelectors"]
            if each not in selectors
        ]
        if lacking:
            found["aggregationRule"] = {"clusterRoleSelectors": selectors + lacking}
    else:
        rules = PolicyRule.all_of(stored)
        lacking_rules = [rule for rule in PolicyRule.all_of(wanted) if uncovered(rules, [rule])]
        if lacking_rules:
            added = [rule.to_document() for rule in lacking_rules]
            found["rules"] = [*parts(stored, "rules"), *added]
    return found if found != stored else None


def reconciled_binding(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Document | None:
    """The same for a binding. A binding to another role is replaced, because roleRef is immutable."""
    metadata = _reconciled_metadata(stored, wanted)
    if metadata is None:
        return None
    if stored.get("roleRef") != wanted["roleRef"]:
        return dict(wanted)
    found = dict(stored)
    found["metadata"] = metadata
    subjects = parts(stored, "subjects")
    lacking = [each for each in parts(wanted, "subjects") if each not in subjects]
    if lacking:
        found["subjects"] = subjects + lacking
    return found if found != stored else None


def _reconciled_metadata(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Document | None:
    metadata = dict(stored["metadata"])
    if (metadata.get("annotations") or {}).get(AUTO_UPDATE) == "false":
        return None
    for name in ("labels", "annotations"):
        kept = metadata.get(name) or {}
        lacking = {key: value for key, value in wanted["metadata"][name].items() if key not in kept}
        if lacking:
            metadata[name] = {**kept, **lacking}
    return metadata
