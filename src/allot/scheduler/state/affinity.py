"""Pod affinity terms and topology spread constraints of a pod, parsed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from allot.api.selectors import LabelSelector, Requirement, label_selector

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"


class PodTerm(NamedTuple):
    """Selects pods by label and namespace, in the domains of a topology key."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None = None

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term selects a pod with these labels in this namespace."""
        if self.selector is None:
            return False
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector.matches(labels)


class WeightedTerm(NamedTuple):
    """A preferred term; the weight is negative for anti-affinity."""

    term: PodTerm
    weight: int


class SpreadConstraint(NamedTuple):
    """How evenly matching pods are spread over the domains of a topology key."""

    max_skew: int
    topology_key: str
    is_required: bool
    selector: LabelSelector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


def read_pod_terms(
    raw: Iterable[Mapping[str, Any]] | None, namespace: str, labels: Mapping[str, str]
) -> tuple[PodTerm, ...]:
    return tuple(_pod_term(term, namespace, labels) for term in raw or ())


def read_weighted_terms(
    raw: Iterable[Mapping[str, Any]] | None,
    namespace: str,
    labels: Mapping[str, str],
    sign: int,
) -> Iterator[WeightedTerm]:
    for one in raw or ():
        weight = one.get("weight") or 0
        if weight:
            term = _pod_term(one.get("podAffinityTerm") or {}, namespace, labels)
            yield WeightedTerm(term, sign * weight)


def _pod_term(raw: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> PodTerm:
    namespaces = frozenset(raw.get("namespaces") or ())
    raw_selector = raw.get("namespaceSelector")
    if not namespaces and raw_selector is None:
        namespaces = frozenset((namespace,))
    selector = label_selector(raw.get("labelSelector"))
    if selector is not None:
        selector = _with_label_keys(selector, raw.get("matchLabelKeys"), labels, "In")
        selector = _with_label_keys(selector, raw.get("mismatchLabelKeys"), labels, "NotIn")
    return PodTerm(raw.get("topologyKey") or "", selector, namespaces, label_selector(raw_selector))


def _with_label_keys(
    selector: LabelSelector, keys: Iterable[str] | None, labels: Mapping[str, str], operator: str
) -> LabelSelector:
    """The selector, and the pod's own values of some labels. API servers may have added them already."""
    more = [
        Requirement(key, operator, frozenset((labels[key],))) for key in keys or () if key in labels
    ]
    missing = [one for one in more if one not in selector.requirements]
    return selector.and_requirements(missing) if missing else selector


def read_spread_constraints(
    raw: Iterable[Mapping[str, Any]] | None, labels: Mapping[str, str]
) -> tuple[SpreadConstraint, ...]:
    return tuple(spread_constraint(one, labels) for one in raw or ())


def spread_constraint(raw: Mapping[str, Any], labels: Mapping[str, str]) -> SpreadConstraint:
    selector = label_selector(raw.get("labelSelector"))
    if selector is not None:
        selector = _with_label_keys(selector, raw.get("matchLabelKeys"), labels, "In")
    return SpreadConstraint(
        max_skew=raw.get("maxSkew") or 1,
        topology_key=raw.get("topologyKey") or "",
        is_required=raw.get("whenUnsatisfiable", "DoNotSchedule") != "ScheduleAnyway",
        selector=selector,
        min_domains=raw.get("minDomains") or 1,
        honors_affinity=raw.get("nodeAffinityPolicy", "Honor") != "Ignore",
        honors_taints=raw.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )
