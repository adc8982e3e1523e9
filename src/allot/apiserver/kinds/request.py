"""A write request as strategies and admission plugins see it, apart from the object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from allot.api.meta import ObjectMeta
from allot.api.resource import ADMIN_ACCESS_LABEL
from allot.deadline import Deadline, no_deadline
from allot.features import FeatureGates
from allot.validation.context import Context
from allot.validation.expressions import ExpressionChecker


class Permission(NamedTuple):
    """Something a caller may be allowed to do. An empty namespace means the whole cluster."""

    verb: str
    resource: str
    namespace: str
    name: str


class Caller(msgspec.Struct, frozen=True):
    """The user who sends the request, and a check of the user's permissions."""

    name: str
    extra: Mapping[str, tuple[str, ...]]
    may: Callable[[Permission], bool]
    groups: tuple[str, ...] = ()
    uid: str = ""


class RequestInfo(msgspec.Struct, frozen=True):
    """A write request apart from its object: the caller, the verb, the version and the options."""

    caller: Caller
    version: str
    verb: str
    dry_run: bool = False
    size: int = 0
    """The work of handling the request, in bytes of a plain object, without that of the stored object."""
    subresource: str = ""
    query: Mapping[str, str] = {}
    """The parameters of the URL."""
    awaits_durability: bool = True
    """Whether a write returns when it is durable. Those of requests do not wait: their answers do."""


def _endless() -> Deadline:
    return no_deadline


NO_UID: Final = "00000000-0000-0000-0000-000000000000"


def _no_uid() -> str:
    return NO_UID


class WriteRequest(msgspec.Struct, frozen=True):
    """One create, update or status update."""

    gates: FeatureGates
    version: str
    expressions: ExpressionChecker
    now: datetime
    new_name_suffix: Callable[[], str]
    caller: Caller
    verb: str = "update"
    namespace: str = "default"
    namespace_labels: Mapping[str, str] = {}
    new_deadline: Callable[[], Deadline] = _endless
    """For the rules that objects bring along."""
    new_uid: Callable[[], str] = _no_uid
    """For new objects whose fields have their uid."""
    warnings: list[str] | None = None
    """Takes warnings of the validation, which come also if the object is refused."""
    stored_size: int = 0
    """The bytes of the stored object, if there is one."""
    subresource: str = ""
    dry_run: bool = False

    @property
    def context(self) -> Context:
        return Context(self.gates, self.version, self.expressions)

    @property
    def grants_admin_access(self) -> bool:
        """Whether claims in the namespace may ask for admin access."""
        return self.namespace_labels.get(ADMIN_ACCESS_LABEL) == "true"


MAX_GENERATED_PREFIX = 58


def generated_name(metadata: ObjectMeta, new_suffix: Callable[[], str]) -> str:
    """The object's name, generated from `generateName` if it is empty."""
    if metadata.name or not metadata.generate_name:
        return metadata.name
    return metadata.generate_name[:MAX_GENERATED_PREFIX] + new_suffix()
