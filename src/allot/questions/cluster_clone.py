"""A clone of a cluster: what scheduling reads of it and nothing else, so that it can be kept, sent, and run elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from allot.client import resources
from allot.client.resources import Resource
from allot.client.server_gates import ServerGates
from allot.client.snapshot import Snapshot
from allot.questions.field_rules import (
    CelExpression,
    Constant,
    EveryKey,
    Hashed,
    Kept,
    Name,
    Only,
    Uid,
    Values,
)
from allot.questions.scheduling_fields import SCHEDULING_FIELDS
from allot.rules import RuleSet

API_VERSION: Final = "allot.dev/v1"
KIND: Final = "ClusterClone"
"""The first item of a clone: how the cluster is configured."""
_PUBLIC_NAMES: Final = frozenset(
    {"default", "kube-system", "kube-public", "kube-node-lease", "kubernetes"}
)
"""Names that every cluster has."""
_UNUSED_LABELS: Final = frozenset({"controller-revision-hash"})
"""Labels that contain the names of workloads, and that scheduling does not read."""
_LOCAL_SOURCE: Final = {"path": "/"}
"""Of volumes that no CSI driver provides: a source is required, and scheduling does not read it."""
_LITERAL: Final = re.compile(r"""(["'])((?:(?!\1).)*)\1""")
_UID_PREFIX: Final = "00000000-0000-4000-8000"
_SCALARS: Final = (str, int, float, bool)


def clone_cluster(
    objects: Snapshot, *, anonymize: bool = False, salt: bytes = b""
) -> Iterator[dict[str, Any]]:
    """The objects with the fields that scheduling reads, as JSON values.

    `salt` is part of the hash of driver parameters, so that guesses of them cannot be tested.
    """
    aliases = None
    if anonymize:
        aliases = Aliases()
        for resource in OWNERS_FIRST:
            for obj in objects.of(resource):
                aliases.register(resource, obj)
    reduction = FieldReduction(aliases, salt)
    for resource in SCHEDULING_FIELDS:
        for obj in objects.of(resource):
            yield reduction.of(resource, obj)


def configuration_of(objects: Snapshot) -> dict[str, Any]:
    """The rules, the feature gates and the version of the cluster, as far as it shows them."""
    gates = objects.gates
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "clone"},
        "serverVersion": objects.server_version,
        "rules": gates.rules.value if gates.rules is not None else "",
        "featureGates": dict(gates.states),
    }


def read_configuration(document: Mapping[str, Any]) -> tuple[str, ServerGates]:
    """The server's version, and its gates and rules, from the first item of a clone; `ValueError` if they are damaged."""
    states, rules = document.get("featureGates") or {}, document.get("rules")
    if not isinstance(states, Mapping):
        raise ValueError("featureGates: must be a map")
    return str(document.get("serverVersion") or "unknown"), ServerGates(
        "cloned cluster" if states else "",
        {str(name): bool(state) for name, state in states.items()},
        RuleSet(str(rules)) if rules else None,
        "" if states else "the clone does not have them",
    )


class FieldReduction:
    """Reduces objects to the fields that scheduling reads."""

    def __init__(self, aliases: Aliases | None, salt: bytes) -> None:
        self._aliases = aliases
        self._salt = salt

    def of(self, resource: Resource[Any], obj: Any) -> dict[str, Any]:
        """The object as a JSON value, with other names if there are aliases."""
        data = msgspec.json.decode(resource.codec.encode(obj))
        reduced = self._table(data, SCHEDULING_FIELDS[resource])
        if resource is resources.PERSISTENT_VOLUMES and "csi" not in reduced.get("spec", {}):
            reduced.setdefault("spec", {})["hostPath"] = _LOCAL_SOURCE
        return {"apiVersion": resource.api_version, "kind": resource.kind, **reduced}

    def _table(self, data: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of an object that are in the table; empty ones are left out."""
        found = {}
        for name, rule in fields.items():
            if name in data and (value := self._value(data[name], rule)) not in (None, {}, []):
                found[name] = value
            elif data.get(name) in ({}, []):
                found[name] = data[name]
        return found

    def _value(self, value: Any, rule: Any) -> Any:
        if isinstance(rule, list):
            return self._items(value, rule[0])
        if isinstance(rule, Mapping):
            return self._table(value, rule) if isinstance(value, Mapping) else None
        if isinstance(rule, EveryKey):
            if not isinstance(value, Mapping):
                return None
            return {key: self._value(each, rule.fields) for key, each in value.items()}
        if isinstance(rule, Hashed):
            return self._hash(value)
        if isinstance(rule, Constant):
            return rule.value
        if isinstance(rule, Only):
            return (
                [each for each in value if each in rule.values] if isinstance(value, list) else None
            )
        return self._plain(value, rule)

    def _items(self, value: Any, fields: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        if not isinstance(value, list):
            return None
        items = [self._table(each, fields) for each in value if isinstance(each, Mapping)]
        if fields is SCHEDULING_FIELDS[resources.PODS]["spec"]["volumes"][0]:
            items = [each for each in items if len(each) > 1]  # other volumes have no claim
        return items

    def _plain(self, value: Any, rule: Any) -> Any:
        """A scalar, or a list or map of scalars; all else is dropped."""
        if isinstance(value, list):
            return [self._scalar(each, rule) for each in value if isinstance(each, _SCALARS)]
        if isinstance(value, Mapping):
            hidden = _UNUSED_LABELS if isinstance(rule, Values) else frozenset()
            return {
                key: self._scalar(each, rule)
                for key, each in value.items()
                if isinstance(each, _SCALARS) and key not in hidden
            }
        return self._scalar(value, rule) if isinstance(value, _SCALARS) else None

    def _scalar(self, value: Any, rule: Any) -> Any:
        aliases = self._aliases
        if aliases is None or isinstance(rule, Kept) or not isinstance(value, str):
            return value
        if isinstance(rule, Name):
            return aliases.alias(value, rule.prefix)
        if isinstance(rule, Uid):
            return aliases.uid(value)
        if isinstance(rule, CelExpression):
            return _LITERAL.sub(
                lambda found: f"{found[1]}{aliases.known(found[2])}{found[1]}", value
            )
        return aliases.known(value)

    def _hash(self, value: Any) -> dict[str, str]:
        body = msgspec.json.encode(value, order="sorted")
        return {"sha256": hashlib.sha256(self._salt + body).hexdigest()}


class Aliases:
    """Other names and uids for objects: one for each string, whatever kinds of objects have it."""

    def __init__(
        self, known: Iterable[tuple[str, str]] = (), numbers: Mapping[str, int] | None = None
    ) -> None:
        """`known` are names with their aliases, `numbers` the last number of each prefix."""
        self._aliases = dict(known)
        self._numbers = dict(numbers or {})
        for alias in self._aliases.values():
            prefix, _, number = alias.rpartition("-")
            if number.isdecimal():
                self._numbers[prefix] = max(self._numbers.get(prefix, 0), int(number))
        self._new: list[tuple[str, str]] = []

    @property
    def numbers(self) -> Mapping[str, int]:
        """The last number of each prefix."""
        return self._numbers

    def items(self) -> Iterable[tuple[str, str]]:
        """Names with their aliases."""
        return self._aliases.items()

    def keep_only(self, used: Container[str]) -> None:
        """Forget names whose aliases are not among these; their numbers are not given again."""
        self._aliases = {name: alias for name, alias in self.items() if alias in used}

    def take_new(self) -> list[tuple[str, str]]:
        """The aliases since the last call."""
        new, self._new = self._new, []
        return new

    def register(self, resource: Resource[Any], obj: Any) -> None:
        """Let the names of an object be known, so that they are replaced wherever they occur."""
        rule = SCHEDULING_FIELDS[resource]["metadata"]["name"]
        metadata = obj.metadata
        self.uid(metadata.uid)
        if not isinstance(rule, Name):
            return
        owners = [owner for owner in metadata.owner_references if owner.controller]
        if owners and owners[0].kind == "StatefulSet":
            self._register_ordinal(metadata.name, owners[0].name)
        self.alias(metadata.name, rule.prefix)
        if metadata.namespace:
            self.alias(metadata.namespace, "namespace")

    def _register_ordinal(self, name: str, owner: str) -> None:
        """A pod of a StatefulSet: its name is that of the set with a number."""
        ordinal = name.removeprefix(f"{owner}-")
        if ordinal.isdecimal() and name not in self._aliases:
            self._add(name, f"{self.alias(owner, 'workload')}-{ordinal}")

    def alias(self, name: str, prefix: str) -> str:
        if not name or name in _PUBLIC_NAMES:
            return name
        return self._aliases.get(name) or self._add(name, f"{prefix}-{self._next(prefix)}")

    def known(self, value: str) -> str:
        """The alias of a name or uid; anything else as it is."""
        return self._aliases.get(value, value)

    def uid(self, uid: str) -> str:
        if not uid:
            return uid
        return self._aliases.get(uid) or self._add(
            uid, f"{_UID_PREFIX}-{self._next(_UID_PREFIX):012d}"
        )

    def _next(self, prefix: str) -> int:
        number = self._numbers[prefix] = self._numbers.get(prefix, 0) + 1
        return number

    def _add(self, name: str, alias: str) -> str:
        self._aliases[name] = alias
        self._new.append((name, alias))
        return alias


_FIRST: Final = (resources.NAMESPACES, resources.NODES, resources.STATEFUL_SETS)
OWNERS_FIRST: Final[tuple[Resource[Any], ...]] = (
    *_FIRST,
    *(each for each in SCHEDULING_FIELDS if each not in _FIRST),
)
"""The order in which objects are registered: owners before what they own."""
