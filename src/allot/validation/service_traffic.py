"""How traffic reaches the pods of Services: policies, load balancers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.validation.fields import FieldError, FieldPath, forbidden, invalid, not_supported
from allot.validation.ip_addresses import NOT_A_CIDR, parse_network

SPEC: Final = FieldPath("spec")
_POLICIES: Final = ("Cluster", "Local")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_ONLY_LOAD_BALANCERS: Final = "may only be used when `type` is 'LoadBalancer'"


def validate_traffic(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    type_ = spec.get("type")
    yield from _validate_policies(spec)
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and type_ != "LoadBalancer":
        yield forbidden(SPEC / "LoadBalancerSourceRanges", _ONLY_LOAD_BALANCERS)
    for index, text in enumerate(ranges):
        if parse_network(str(text).strip()) is None:
            yield invalid(SPEC / "LoadBalancerSourceRanges" @ index, text, NOT_A_CIDR)
    if type_ == "LoadBalancer":
        return
    for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(name) is not None:
            yield forbidden(SPEC / name, _ONLY_LOAD_BALANCERS)


def _validate_policies(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    type_, external = spec.get("type"), spec.get("externalTrafficPolicy")
    is_external = type_ in _WITH_NODE_PORTS or (type_ == "ClusterIP" and spec.get("externalIPs"))
    if external and not is_external:
        rule = "may only be set for externally-accessible services"
        yield invalid(SPEC / "externalTrafficPolicy", external, rule)
    elif external and external not in _POLICIES:
        yield not_supported(SPEC / "externalTrafficPolicy", external, _POLICIES)
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in _POLICIES:
        yield not_supported(SPEC / "internalTrafficPolicy", internal, _POLICIES)
    if spec.get("healthCheckNodePort") and (type_, external) != ("LoadBalancer", "Local"):
        yield invalid(
            SPEC / "healthCheckNodePort",
            spec["healthCheckNodePort"],
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        )
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        path = SPEC / "trafficDistribution"
        yield not_supported(path, distribution, _DISTRIBUTIONS, is_ordered=True)
