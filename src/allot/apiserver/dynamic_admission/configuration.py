"""The policies, bindings and webhooks of the store, kept up to date, and which of them a write may be about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from allot.apiserver.admission.chain import Activity
from allot.apiserver.auth.cache_follower import CacheFollower
from allot.apiserver.dynamic_admission.matching import Match
from allot.apiserver.dynamic_admission.policies import (
    BoundPolicy,
    MutatingPolicy,
    PolicyBinding,
    ValidatingPolicy,
    read_binding,
)
from allot.apiserver.dynamic_admission.webhooks import Webhook
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE, Pacer, Workers, json_work
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.stored_objects import StoredObject

GROUP: Final = "admissionregistration.k8s.io"
POLICY_KINDS: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
)
REVIEW_GROUPS: Final = frozenset(("authentication.k8s.io", "authorization.k8s.io"))


class Candidates(NamedTuple):
    """Policies and webhooks that may match some requests, each in the order in which they are invoked."""

    mutating_policies: tuple[BoundPolicy, ...] = ()
    mutating_webhooks: tuple[Webhook, ...] = ()
    validating_policies: tuple[BoundPolicy, ...] = ()
    validating_webhooks: tuple[Webhook, ...] = ()

    @property
    def mutate(self) -> bool:
        return bool(self.mutating_policies or self.mutating_webhooks)

    @property
    def validate(self) -> bool:
        return bool(self.validating_policies or self.validating_webhooks)

    @property
    def call_webhooks(self) -> bool:
        return bool(self.mutating_webhooks or self.validating_webhooks)


NO_CANDIDATES: Final = Candidates()


class _Kept:
    """The objects of one kind, made once per version."""

    def __init__(self, follower: CacheFollower, make: Callable[[Mapping[str, Any]], Any]) -> None:
        self.follower = follower
        self._make = make
        self._made: dict[str, tuple[Any, Any]] = {}

    async def prepare(self, workers: Workers, pacer: Pacer) -> None:
        """Make what is new, so that `read` has little to do: one object may have thousands of rules."""
        async for stored in pacer.each(self.follower.objects()):
            if stored.decoding_work > LARGE:
                await workers.run(stored.decoding_work, partial(getattr, stored, "object"))
            if not self._is_made(stored):
                size = json_work(stored.entry.value)
                self._made[stored.key] = await workers.run(size, partial(self._versioned, stored))

    def read(self) -> list[Any]:
        """All objects in the order of their names; the same ones as long as they do not change."""
        self._made = {
            stored.key: self._made[stored.key] if self._is_made(stored) else self._versioned(stored)
            for stored in sorted(self.follower.objects(), key=_name_of)
        }
        return [made for _, made in self._made.values()]

    def _is_made(self, stored: StoredObject) -> bool:
        known = self._made.get(stored.key)
        return known is not None and known[0] == _version_of(stored)

    def _versioned(self, stored: StoredObject) -> tuple[Any, Any]:
        return _version_of(stored), self._make(stored.object.data)


def _version_of(stored: StoredObject) -> Any:
    """Another one whenever something changed that counts: a new status does not."""
    metadata = stored.object.metadata
    return (metadata.uid, metadata.generation) if metadata.generation else stored.revision


def _name_of(stored: StoredObject) -> str:
    return str(stored.object.metadata.name)


MAX_KNOWN: Final = 10_000
"""Operations on resources whose candidates are known."""
MAX_TRIES: Final = 3
"""So often a write looks for its candidates in short stretches while policies keep changing."""


Writes = tuple[str, Resource, str]
"""An operation on a resource or its subresource."""


class Configuration:
    """What users have registered."""

    def __init__(self, caches: Caches, workers: Workers) -> None:
        self._workers = workers
        self._preparing = asyncio.Lock()
        self._is_stale = True
        self._has_news = False
        """Whether something has changed that is not in the candidates."""
        self.activity = Activity(is_idle=False)

        def kept(plural: str, make: Callable[[Mapping[str, Any]], Any]) -> _Kept:
            return _Kept(CacheFollower(caches.of(resource_named(GROUP, plural))), make)

        self._kinds = {
            "validatingadmissionpolicies": kept("validatingadmissionpolicies", ValidatingPolicy),
            "validatingadmissionpolicybindings": kept(
                "validatingadmissionpolicybindings", _bound_name
            ),
            "mutatingadmissionpolicies": kept("mutatingadmissionpolicies", MutatingPolicy),
            "mutatingadmissionpolicybindings": kept("mutatingadmissionpolicybindings", _bound_name),
            "validatingwebhookconfigurations": kept("validatingwebhookconfigurations", _webhooks),
            "mutatingwebhookconfigurations": kept("mutatingwebhookconfigurations", _webhooks),
        }
        self._all = NO_CANDIDATES
        self._candidates: dict[Writes, Candidates] = {}

    async def start(self) -> None:
        for kept in self._kinds.values():
            await kept.follower.start()
            kept.follower.listen(self._look_again)
        await self._read_news()

    async def prepare(self, operation: str, resource: Resource, subresource: str) -> None:
        """Find the candidates of such writes in short stretches. To be awaited before `candidates`, which else does all at once."""
        if self._is_stale:
            await self._read_news()
        writes = (operation, resource, subresource)
        for _ in range(MAX_TRIES):
            if self._all is NO_CANDIDATES or writes in self._candidates:
                return
            everything, pacer = self._all, Pacer()
            found = [
                tuple([each async for each in pacer.each(registered) if _may_match(each, writes)])
                for registered in self._considered(resource)
            ]
            if everything is self._all:  # nothing has changed meanwhile
                self._keep(writes, Candidates(*found))

    async def _read_news(self) -> None:
        async with self._preparing:
            if self._look_for_news():
                pacer = Pacer()
                for kept in self._kinds.values():
                    await kept.prepare(self._workers, pacer)
            self._catch_up()

    def candidates(self, operation: str, resource: Resource, subresource: str) -> Candidates:
        """Those that may be about such writes."""
        if self._is_stale:
            self._catch_up()
        if self._all is NO_CANDIDATES:
            return NO_CANDIDATES
        writes = (operation, resource, subresource)
        found = self._candidates.get(writes)
        if found is None:
            considered = self._considered(resource)
            matching = (
                tuple(each for each in some if _may_match(each, writes)) for some in considered
            )
            found = Candidates(*matching)
            self._keep(writes, found)
        return found

    def _keep(self, writes: Writes, found: Candidates) -> None:
        if len(self._candidates) >= MAX_KNOWN:
            self._candidates.clear()  # custom resources come and go
        self._candidates[writes] = found

    def _considered(self, resource: Resource) -> tuple[tuple[Any, ...], ...]:
        """Those that may be about some writes of a resource, as in `Candidates`."""
        is_configuration = resource.group == GROUP
        skips_policies = resource.group in REVIEW_GROUPS and not resource.is_stored
        skips_policies |= is_configuration and resource.plural in POLICY_KINDS
        policies = NO_CANDIDATES if skips_policies else self._all
        webhooks = NO_CANDIDATES if is_configuration else self._all
        return (
            policies.mutating_policies,
            webhooks.mutating_webhooks,
            policies.validating_policies,
            webhooks.validating_webhooks,
        )

    def _look_again(self) -> None:
        """A cache has changed. It has what was written before the write is answered."""
        self._is_stale = True
        self.activity.is_idle = False

    def _look_for_news(self) -> bool:
        """Whether something has changed that has not been read."""
        news = [kept.follower.news() for kept in self._kinds.values()]
        self._has_news |= any(changes is None or changes for changes in news)
        return self._has_news

    def _catch_up(self) -> None:
        if self._look_for_news():
            self._read()
            self._has_news = False
        self._is_stale = False
        self.activity.is_idle = self._all is NO_CANDIDATES

    def _read(self) -> None:
        kinds = {plural: kept.read() for plural, kept in self._kinds.items()}
        found = Candidates(
            _bound(kinds["mutatingadmissionpolicies"], kinds["mutatingadmissionpolicybindings"]),
            tuple(hook for hooks in kinds["mutatingwebhookconfigurations"] for hook in hooks),
            _bound(
                kinds["validatingadmissionpolicies"], kinds["validatingadmissionpolicybindings"]
            ),
            tuple(hook for hooks in kinds["validatingwebhookconfigurations"] for hook in hooks),
        )
        if found != self._all:  # not if only a status has changed
            self._candidates.clear()
            self._all = found if any(found) else NO_CANDIDATES


def _may_match(registered: BoundPolicy | Webhook, writes: Writes) -> bool:
    source = registered if isinstance(registered, Webhook) else registered.policy
    match: Match = source.match
    return match.may_match(*writes)


def _bound_name(document: Mapping[str, Any]) -> tuple[str, PolicyBinding]:
    return (document.get("spec") or {}).get("policyName", ""), read_binding(document)


def _bound(
    policies: list[Any], bindings: list[tuple[str, PolicyBinding]]
) -> tuple[BoundPolicy, ...]:
    by_policy: dict[str, list[PolicyBinding]] = {}
    for name, binding in bindings:
        by_policy.setdefault(name, []).append(binding)
    return tuple(
        BoundPolicy(policy, tuple(by_policy[policy.name]))
        for policy in policies
        if policy.name in by_policy
    )


def _webhooks(document: Mapping[str, Any]) -> tuple[Webhook, ...]:
    name = document["metadata"]["name"]
    return tuple(Webhook(name, hook) for hook in document.get("webhooks") or ())
