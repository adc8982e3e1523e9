"""Metrics: created claims, and existing claims.

Under the names of Kubernetes v1.38 and of the KEPs; the latter have a label for prioritized lists.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.api.resource import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME

FROM_TEMPLATE: Final = "resource_claim_template"
FROM_EXTENDED_RESOURCE: Final = "extended_resource"
_USES: Final = ("admin_access", "prioritized_list")


class Uses(NamedTuple):
    """The features that are labels of claims."""

    admin_access: bool
    prioritized_list: bool

    @property
    def labels(self) -> tuple[str, str]:
        return _text(self.admin_access), _text(self.prioritized_list)


class ClaimFacts(NamedTuple):
    """The labels of a claim in the gauges."""

    allocated: bool
    uses: Uses
    source: str


def claim_facts(claim: ResourceClaim) -> ClaimFacts:
    has_admin_access = has_prioritized_list = False
    for request in claim.spec.devices.requests:
        if request.first_available:
            has_prioritized_list = True
        if request.exactly is not None and request.exactly.admin_access:
            has_admin_access = True
    annotations = claim.metadata.annotations
    source = ""
    if POD_CLAIM_NAME in annotations:
        source = FROM_TEMPLATE
    elif annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
        source = FROM_EXTENDED_RESOURCE
    return _facts_of(
        claim.status.allocation is not None, has_admin_access, has_prioritized_list, source
    )


@cache
def _facts_of(
    allocated: bool, admin_access: bool, prioritized_list: bool, source: str
) -> ClaimFacts:
    """There are few, and each is counted by many claims."""
    return ClaimFacts(allocated, Uses(admin_access, prioritized_list), source)


class ClaimMetrics:
    """The metrics of one controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempts = _Attempts(registry)
        self._facts: dict[ObjectKey, ClaimFacts] = {}
        self._claims: Tally[ClaimFacts] = Tally()
        registry.register(_Claims(lambda: self._claims))

    def claim_seen(self, key: ObjectKey, claim: ResourceClaim | None) -> None:
        """A claim was added or updated; None: it was deleted."""
        if claim is None:
            facts, known = None, self._facts.pop(key, None)
        else:
            facts, known = claim_facts(claim), self._facts.get(key)
            self._facts[key] = facts
        if facts is known:
            return
        if known is not None:
            self._claims[known] -= 1
        if facts is not None:
            self._claims[facts] += 1


class _Tries:
    """How often something was tried, and when for the first time."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.number = 0


Series = dict[tuple[str, ...], _Tries]
"""The series of a counter, by their labels."""


class _Attempts(Collector):
    """Requests to create a claim. The counters are calculated when metrics are scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._since = time.time()
        self._tries: dict[tuple[Uses, bool], _Tries] = {}
        """By the features of the claim, and by whether it was created."""
        registry.register(self)

    def add(self, uses: Uses, *, worked: bool) -> None:
        tries = self._tries.get((uses, worked))
        if tries is None:
            tries = self._tries[uses, worked] = _Tries(time.time())
        tries.number += 1

    def describe(self) -> Iterator[Metric]:
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        creates: Series = {}
        created: Series = {("false", "false"): _Tries(self._since)}
        failed: Series = {("false", "false"): _Tries(self._since)}
        for (uses, worked), tries in tuple(self._tries.items()):
            status = "success" if worked else "failure"
            _count(tries, creates, (status, _text(uses.admin_access), "", "Pod"))
            _count(tries, created, uses.labels)
            if not worked:
                _count(tries, failed, uses.labels)
        yield _counter(
            "dynamic_resource_allocation_resourceclaim_creates",
            "Claims that were made, or could not be.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            creates,
        )
        yield _counter(
            "resourceclaim_controller_create", "Requests to create a claim.", _USES, created
        )
        yield _counter(
            "resourceclaim_controller_create_failures",
            "Requests to create a claim that failed.",
            _USES,
            failed,
        )


def _count(tries: _Tries, series: Series, labels: tuple[str, ...]) -> None:
    counted = series.setdefault(labels, _Tries(tries.since))
    counted.number += tries.number
    counted.since = min(counted.since, tries.since)


def _counter(name: str, what: str, labels: tuple[str, ...], series: Series) -> CounterMetricFamily:
    counter = CounterMetricFamily(name, what, labels=labels)
    for values, tries in series.items():
        counter.add_metric(values, tries.number, created=tries.since)
    return counter


class _Claims(Collector):
    """Gauges that are calculated when metrics are scraped."""

    def __init__(self, count: Callable[[], Tally[ClaimFacts]]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        by_state: Tally[tuple[str, ...]] = Tally()
        total: Tally[tuple[str, ...]] = Tally({("false", "false"): 0})
        allocated: Tally[tuple[str, ...]] = Tally({("false", "false"): 0})
        for facts, count in list(self._count().items()):
            state = (_text(facts.allocated), _text(facts.uses.admin_access), facts.source)
            by_state[state] += count
            total[facts.uses.labels] += count
            if facts.allocated:
                allocated[facts.uses.labels] += count
        yield _gauge(
            "dynamic_resource_allocation_resource_claims",
            "Claims there are.",
            ("allocated", "admin_access", "source"),
            by_state,
        )
        yield _gauge("resourceclaim_controller_resource_claims", "Claims there are.", _USES, total)
        yield _gauge(
            "resourceclaim_controller_allocated_resource_claims",
            "Claims that are allocated.",
            _USES,
            allocated,
        )


def _gauge(
    name: str, what: str, labels: tuple[str, ...], counts: Tally[tuple[str, ...]]
) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, what, labels=labels)
    for values, count in sorted(counts.items()):
        gauge.add_metric(values, count)
    return gauge


def _text(value: bool) -> str:
    return "true" if value else "false"
