"""Kinds of networking.k8s.io."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from allot.validation.formats import subdomain_problems
from allot.validation.ip_addresses import (
    NOT_A_CIDR,
    Network,
    parse_address,
    parse_network,
    validate_canonical_cidr,
)
from allot.validation.label_selector import validate_label_selector
from allot.validation.names import validate_label, validate_subdomain
from allot.validation.parts import Part, part, parts, text, texts

SPEC: Final = FieldPath("spec")
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PATH_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_PATH_ENDS: Final = ("/..", "/.")
_WILDCARD: Final = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_is_wildcard: Final = re.compile(_WILDCARD).fullmatch
_WILDCARD_RULE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must"
    " consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
    f" (e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
)


# --- ingresses ---


def validate_ingress(ingress: RawObject) -> Iterator[FieldError]:
    spec = ingress.get("spec", default={})
    default, rules = spec.get("defaultBackend"), parts(spec, "rules")
    if default is None and not rules:
        yield invalid(SPEC, None, "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _validate_backend(part(spec, "defaultBackend"), SPEC / "defaultBackend")
    for index, rule in enumerate(rules):
        yield from _validate_ingress_rule(rule, SPEC / "rules" @ index)
    for index, tls in enumerate(parts(spec, "tls")):
        path = SPEC / "tls" @ index
        for position, host in enumerate(texts(tls, "hosts")):
            yield from _validate_host(host, path / "hosts" @ position)
        if text(tls, "secretName"):
            yield from validate_subdomain(text(tls, "secretName"), path / "secretName")
    if spec.get("ingressClassName") is not None:
        yield from validate_subdomain(text(spec, "ingressClassName"), SPEC / "ingressClassName")


def _validate_ingress_rule(rule: Part, path: FieldPath) -> Iterator[FieldError]:
    host = text(rule, "host")
    if host:
        if parse_address(host) is not None:
            yield invalid(path / "host", host, "must be a DNS name, not an IP address")
        yield from _validate_host(host, path / "host")
    if rule.get("http") is None:
        return
    paths = parts(part(rule, "http"), "paths")
    if not paths:
        yield required(path / "http" / "paths")
    for index, item in enumerate(paths):
        yield from _validate_ingress_path(item, path / "http" / "paths" @ index)


def _validate_host(host: str, path: FieldPath) -> Iterator[FieldError]:
    if "*" not in host:
        yield from validate_subdomain(host, path)
    elif not _is_wildcard(host):
        yield invalid(path, host, _WILDCARD_RULE)


def _validate_ingress_path(item: Part, path: FieldPath) -> Iterator[FieldError]:
    type_, target = item.get("pathType"), text(item, "path")
    if type_ is None:
        yield required(path / "pathType", "pathType must be specified")
    elif type_ == "ImplementationSpecific":
        if target and not target.startswith("/"):
            yield invalid(path / "path", target, "must be an absolute path")
    elif type_ in _PATH_TYPES:
        if not target.startswith("/"):
            yield invalid(path / "path", target, "must be an absolute path")
        if target:
            for bad in _BAD_PATH_PARTS:
                if bad in target:
                    yield invalid(path / "path", target, f"must not contain '{bad}'")
            for bad in _BAD_PATH_ENDS:
                if target.endswith(bad):
                    yield invalid(path / "path", target, f"cannot end with '{bad}'")
    else:
        yield not_supported(path / "pathType", type_, _PATH_TYPES)
    yield from _validate_backend(part(item, "backend"), path / "backend")


def _validate_backend(backend: Part, path: FieldPath) -> Iterator[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _validate_local_reference(part(backend, "resource"), path / "resource")
    elif service is not None:
        yield from _validate_service_backend(part(backend, "service"), path)
    else:
        yield invalid(path, "", "resource or service backend is required")


def _validate_local_reference(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    if reference.get("apiGroup") is not None:
        yield from validate_subdomain(text(reference, "apiGroup"), path / "apiGroup")
    for field in ("kind", "name"):
        value = text(reference, field)
        if not value:
            yield required(path / field)
        else:
            for problem in path_segment_problems(value):
                yield invalid(path / field, value, problem)


def _validate_service_backend(service: Part, path: FieldPath) -> Iterator[FieldError]:
    name = text(service, "name")
    if not name:
        yield required(path / "service" / "name")
    else:
        yield from validate_label(name, path / "service" / "name")
    port = part(service, "port")
    port_name, number = text(port, "name"), port.get("number") or 0
    if port_name and number:
        yield invalid(path, "", "cannot set both port name & port number")
    elif port_name:
        yield from validate_port_name(port_name, path / "service" / "port" / "name")
    elif number:
        if not 1 <= number <= 65535:
            yield invalid(path / "service" / "port" / "number", number, PORT_RANGE)
    else:
        yield required(path, "port name or number is required")


_is_port_name: Final = re.compile(r"[-a-z0-9]+").fullmatch


def validate_port_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    """A name of IANA's form."""
    if len(name) > 15:
        yield invalid(path, name, "must be no more than 15 characters")
    if not _is_port_name(name):
        yield invalid(
            path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
        )
    if not any(letter in "abcdefghijklmnopqrstuvwxyz" for letter in name):
        yield invalid(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid(path, name, "must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        yield invalid(path, name, "must not begin or end with a hyphen")


# --- ingress classes ---

_MAX_CONTROLLER: Final = 250
_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path: Final = re.compile(_PATH).fullmatch


def validate_domain_path(text: str, path: FieldPath) -> Iterator[FieldError]:
    domain, _, rest = text.partition("/")
    if not domain or not rest:
        yield invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from validate_subdomain(domain, path)
    if not _is_path(rest):
        yield invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH}')")


def validate_ingress_class(ingress_class: RawObject) -> Iterator[FieldError]:
    spec = ingress_class.get("spec", default={})
    controller = text(spec, "controller")
    if not controller:
        yield required(SPEC / "controller")
    elif len(controller) > _MAX_CONTROLLER:
        yield too_long(SPEC / "controller", _MAX_CONTROLLER)
    else:
        yield from validate_domain_path(controller, SPEC / "controller")
    if spec.get("parameters") is not None:
        yield from _validate_class_parameters(part(spec, "parameters"), SPEC / "parameters")


def _validate_class_parameters(parameters: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from _validate_local_reference(parameters, path)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield required(path / "scope")
    elif scope not in ("Cluster", "Namespace"):
        yield not_supported(path / "scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace":
        if namespace is None:
            yield required(path / "namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            yield from validate_label(str(namespace), path / "namespace")
    elif namespace is not None:
        yield forbidden(path / "namespace", "`parameters.scope` is set to 'Cluster'")


def validate_ingress_class_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    controller = new.get("spec", "controller")
    if controller != old.get("spec", "controller"):
        yield invalid(SPEC / "controller", controller, "field is immutable")


# --- network policies ---

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_POLICY_TYPES: Final = ("Ingress", "Egress")


def validate_network_policy(policy: RawObject) -> Iterator[FieldError]:
    spec = policy.get("spec", default={})
    yield from validate_label_selector(part(spec, "podSelector"), SPEC / "podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(parts(spec, direction)):
            path = SPEC / direction @ index
            for position, port in enumerate(parts(rule, "ports")):
                yield from _validate_policy_port(port, path / "ports" @ position)
            for position, peer in enumerate(parts(rule, peers)):
                yield from _validate_peer(peer, path / peers @ position)
    types = texts(spec, "policyTypes")
    if len(types) > len(_POLICY_TYPES):
        yield invalid(
            SPEC / "policyTypes", list(types), "may not specify more than two policyTypes"
        )
        return
    for index, type_ in enumerate(types):
        if type_ not in _POLICY_TYPES:
            yield not_supported(SPEC / "policyTypes" @ index, type_, _POLICY_TYPES, is_ordered=True)


def _validate_policy_port(port: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    protocol = port.get("protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        yield not_supported(path / "protocol", protocol, _PROTOCOLS, is_ordered=True)
    value, end = port.get("port"), port.get("endPort")
    if value is None:
        if end is not None:
            yield invalid(
                path / "endPort", end, "may not be specified when `port` is not specified"
            )
        return
    if isinstance(value, int):
        if not 1 <= value <= 65535:
            yield invalid(path / "port", value, PORT_RANGE)
        elif end is not None:
            if end < value:
                yield invalid(path / "endPort", end, "must be greater than or equal to `port`")
            elif not 1 <= end <= 65535:
                yield invalid(path / "endPort", end, PORT_RANGE)
        return
    if end is not None:
        yield invalid(path / "endPort", end, "may not be specified when `port` is non-numeric")
    yield from validate_port_name(str(value), path / "port")


def _validate_peer(peer: Part, path: FieldPath) -> Iterator[FieldError]:
    found = 0
    for field in ("podSelector", "namespaceSelector"):
        if peer.get(field) is not None:
            found += 1
            yield from validate_label_selector(part(peer, field), path / field)
    if peer.get("ipBlock") is not None:
        if found:
            yield forbidden(path, "may not specify both ipBlock and another peer")
        found += 1
        yield from _validate_block(part(peer, "ipBlock"), path / "ipBlock")
    if not found:
        yield required(path, "must specify a peer")


def _validate_block(block: Part, path: FieldPath) -> Iterator[FieldError]:
    cidr = text(block, "cidr")
    if not cidr:
        yield required(path / "cidr")
        return
    network = parse_network(cidr)
    if network is None:
        yield invalid(path / "cidr", cidr, NOT_A_CIDR)
        return
    yield from validate_canonical_cidr(cidr, path / "cidr")
    for index, exception in enumerate(texts(block, "except")):
        place = path / "except" @ index
        inner = parse_network(exception)
        if inner is None:
            yield invalid(place, exception, NOT_A_CIDR)
        elif not _is_strict_subset(inner, network):
            yield invalid(place, exception, "must be a strict subset of `cidr`")


def _is_strict_subset(inner: Network, outer: Network) -> bool:
    if inner.version != outer.version or inner == outer:
        return False
    return inner.network_address in outer and inner.prefixlen > outer.prefixlen


# --- service CIDRs and addresses ---


def validate_service_cidr(service_cidr: RawObject) -> Iterator[FieldError]:
    path, cidrs = SPEC / "cidrs", texts(service_cidr.get("spec", default={}), "cidrs")
    if not cidrs:
        yield required(path, "at least one CIDR required")
        return
    if len(cidrs) > 2:
        yield invalid(path, {"CIDRs": list(cidrs)}, "may only hold up to 2 values")
        return
    networks = [parse_network(cidr) for cidr in cidrs]
    versions = [network.version for network in networks if network is not None]
    if len(versions) > len(set(versions)):
        yield invalid(
            path,
            list(cidrs),
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and"
            " 2001:db8::/64",
        )
    for index, cidr in enumerate(cidrs):
        yield from validate_canonical_cidr(cidr, path @ index)


def validate_ip_address(address: RawObject) -> Iterator[FieldError]:
    path, parent = SPEC / "parentRef", address.get("spec", "parentRef")
    if parent is None:
        yield required(path)
        return
    group = text(parent, "group")
    if group:
        for problem in subdomain_problems(group):
            yield invalid(path / "group", group, problem)
    for field, is_required in (("resource", True), ("name", True), ("namespace", False)):
        value = text(parent, field)
        if value:
            for problem in path_segment_problems(value):
                yield invalid(path / field, value, problem)
        elif is_required:
            yield required(path / field)
