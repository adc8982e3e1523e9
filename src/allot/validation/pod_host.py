"""What a whole pod has: names, DNS, the node's namespaces, its operating system, its security context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from allot.validation.container_resources import validate_container_resources
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from allot.validation.formats import byte_length, label_key_problems
from allot.validation.ip_addresses import NOT_AN_ADDRESS, has_leading_zeros, parse_address
from allot.validation.names import validate_label, validate_subdomain
from allot.validation.parts import Part, part, parts, text, texts
from allot.validation.security_context import (
    ID_RULE,
    MAX_ID,
    validate_app_armor,
    validate_seccomp,
)

MAX_NAMESERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_LENGTH: Final = 2048
MAX_SEARCH_NAME: Final = 253
MAX_HOST_NAME: Final = 64
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_is_search: Final = re.compile(_SEARCH).fullmatch
_SEARCH_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SEARCH}')"
)
OPERATING_SYSTEMS: Final = ("linux", "windows")
_SYSCTL: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl: Final = re.compile(_SYSCTL).fullmatch
_POLICIES: Final = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}


def validate_pod_host(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The spec of a pod or of a pod template."""
    yield from _validate_security(spec, path / "securityContext")
    yield from _validate_host_namespaces(spec, path)
    for index, gate in enumerate(parts(spec, "readinessGates")):
        type_ = text(gate, "conditionType")
        for problem in label_key_problems(type_):
            yield invalid(path / "readinessGates" @ index / "conditionType", type_, problem)
    for field in ("hostname", "subdomain"):
        if text(spec, field):
            yield from validate_label(text(spec, field), path / field)
    if spec.get("hostnameOverride") is not None:
        yield from _validate_host_name(spec, path / "hostnameOverride")
    if text(spec, "serviceAccountName"):
        yield from validate_subdomain(text(spec, "serviceAccountName"), path / "serviceAccountName")
    for index, alias in enumerate(parts(spec, "hostAliases")):
        yield from _validate_alias(alias, path / "hostAliases" @ index)
    yield from _validate_dns(spec, path / "dnsConfig")
    if spec.get("overhead"):
        yield from validate_container_resources({"limits": spec["overhead"]}, path / "overhead")
    yield from _validate_operating_system(spec, path)


def _validate_host_name(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """`hostnameOverride`."""
    name = text(spec, "hostnameOverride")
    for field in ("hostNetwork", "setHostnameAsFQDN"):
        if spec.get(field):
            yield forbidden(path, f"may not be specified when {field} is true")
    if byte_length(name) > MAX_HOST_NAME:
        yield too_long(path, MAX_HOST_NAME)
    yield from validate_subdomain(name, path)


def _validate_alias(alias: Part, path: FieldPath) -> Iterator[FieldError]:
    address = text(alias, "ip")
    if parse_address(address) is None:
        yield invalid(path / "ip", address, NOT_AN_ADDRESS)
    elif ":" not in address and has_leading_zeros(address):
        yield invalid(path / "ip", address, "must not have leading 0s")
    for index, name in enumerate(texts(alias, "hostnames")):
        yield from validate_subdomain(name, path / "hostnames" @ index)


def _validate_dns(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    config = part(spec, "dnsConfig")
    servers = texts(config, "nameservers")
    if spec.get("dnsPolicy") == "None":
        if spec.get("dnsConfig") is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not servers:
            yield required(
                path / "nameservers",
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            )
    if len(servers) > MAX_NAMESERVERS:
        rule = f"must not have more than {MAX_NAMESERVERS} nameservers"
        yield invalid(path / "nameservers", list(servers), rule)
    for index, server in enumerate(servers):
        if parse_address(server) is None:
            yield invalid(path / "nameservers" @ index, server, NOT_AN_ADDRESS)
    yield from _validate_searches(texts(config, "searches"), path / "searches")
    for index, option in enumerate(parts(config, "options")):
        if not text(option, "name"):
            yield required(path / "options" @ index, "must not be empty")


def _validate_searches(searches: Sequence[str], path: FieldPath) -> Iterator[FieldError]:
    if len(searches) > MAX_SEARCHES:
        rule = f"must not have more than {MAX_SEARCHES} search paths"
        yield invalid(path, list(searches), rule)
    if len(" ".join(searches)) > MAX_SEARCH_LENGTH:
        rule = f"must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        yield invalid(path, list(searches), rule)
    for index, search in enumerate(searches):
        if search == ".":
            continue
        name = search.removesuffix(".")
        if len(name) > MAX_SEARCH_NAME:
            rule = f"must be no more than {MAX_SEARCH_NAME} characters"
            yield invalid(path @ index, name, rule)
        elif not _is_search(name):
            yield invalid(path @ index, name, _SEARCH_RULE)


def _validate_host_namespaces(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    if spec.get("hostNetwork"):
        for field in ("containers", "initContainers"):
            for index, container in enumerate(parts(spec, field)):
                for number, port in enumerate(parts(container, "ports")):
                    host = port.get("hostPort")
                    if host and host != port.get("containerPort"):
                        where = path / field @ index / "ports" @ number / "hostPort"
                        rule = "must match `containerPort` when `hostNetwork` is true"
                        yield invalid(where, host, rule)
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        rule = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(path / "shareProcessNamespace", spec["shareProcessNamespace"], rule)
    if spec.get("hostUsers") is False:
        for field, shown in (
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ):
            if spec.get(field):
                yield forbidden(path / shown, "when `hostUsers` is false")


def _validate_operating_system(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    if spec.get("os") is None:
        return
    name = text(part(spec, "os"), "name")
    if not name:
        yield required(path / "os" / "name")
    elif name not in OPERATING_SYSTEMS:
        yield not_supported(path / "os", name, OPERATING_SYSTEMS)


def _validate_security(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    context = part(spec, "securityContext")
    if not context:
        return
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        number = context.get(field)
        if isinstance(number, int) and not 0 <= number <= MAX_ID:
            yield invalid(path / field, number, ID_RULE)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if isinstance(group, int) and not 0 <= group <= MAX_ID:
            yield invalid(path / "supplementalGroups" @ index, group, ID_RULE)
    seen: set[str] = set()
    for index, sysctl in enumerate(parts(context, "sysctls")):
        where, name = path / "sysctls" @ index / "name", text(sysctl, "name")
        if not name:
            yield required(where)
        elif not _is_sysctl(name):
            yield invalid(
                where, name, f"must have at most 253 characters and match regex {_SYSCTL}"
            )
        elif name in seen:
            yield duplicate(where, name)
        else:
            yield from _validate_shared_sysctl(name, spec, where)
        seen.add(name)
    for field, allowed in _POLICIES.items():
        policy = context.get(field)
        if policy is not None and policy not in allowed:
            yield not_supported(path / field, policy, allowed)
    if context.get("seccompProfile") is not None:
        yield from validate_seccomp(part(context, "seccompProfile"), path / "seccompProfile")
    if context.get("appArmorProfile") is not None:
        yield from validate_app_armor(part(context, "appArmorProfile"), path / "appArmorProfile")


def _validate_shared_sysctl(name: str, spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """A pod does not change what it shares with the node."""
    dotted = name.replace("/", ".")
    if spec.get("hostNetwork") and dotted.startswith("net."):
        yield invalid(path, name, "may not be specified when 'hostNetwork' is true")
    if spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
        yield invalid(path, name, "may not be specified when 'hostIPC' is true")


_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
