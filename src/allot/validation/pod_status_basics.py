"""The status of a pod beside its claims: conditions, addresses, states of containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.raw import RawObject
from allot.validation.fields import FieldError, FieldPath, duplicate, forbidden, invalid
from allot.validation.formats import label_key_problems
from allot.validation.ip_addresses import NOT_AN_ADDRESS, has_leading_zeros, parse_address
from allot.validation.lists import repeated
from allot.validation.metadata import IMMUTABLE
from allot.validation.names import validate_subdomain
from allot.validation.parts import Part, as_part, part, parts, text

STATUS: Final = FieldPath("status")
ONE_PER_FAMILY: Final = "may specify no more than one IP for each IP family"


def validate_pod_status_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    status, before = as_part(new.rest.get("status")), as_part(old.rest.get("status"))
    if status == before:
        return
    if (
        status.keys().isdisjoint(_LOOKED_AT)
        and before.keys().isdisjoint(_LOOKED_AT)
        and status.get("qosClass") == before.get("qosClass")
    ):
        return  # as the status of a new pod
    if status.get("conditions"):
        yield from _validate_conditions(parts(status, "conditions"))
    if status.get("nominatedNodeName") != before.get("nominatedNodeName"):
        yield from _validate_nomination(text(status, "nominatedNodeName"), new)
    if status.get("qosClass") != before.get("qosClass"):
        quality = text(status, "qosClass")
        if quality != text(before, "qosClass"):
            yield invalid(STATUS / "qosClass", quality, IMMUTABLE)
    if any(map(before.get, _RESTARTED)):
        yield from _validate_states(status, before, new)
    if any(map(status.get, _WITH_USERS)):
        yield from _validate_users(status)
    if "observedGeneration" in status:
        yield from _validate_generation(status, STATUS)
    if status.get("podIPs"):
        yield from _validate_addresses(parts(status, "podIPs"), STATUS / "podIPs")
    if status.get("hostIPs"):
        yield from _validate_host_addresses(status)


_RESTARTED: Final = ("containerStatuses", "initContainerStatuses")
_WITH_USERS: Final = (*_RESTARTED, "ephemeralContainerStatuses")
_LOOKED_AT: Final = frozenset(
    (*_WITH_USERS, "conditions", "nominatedNodeName", "observedGeneration", "podIPs", "hostIPs")
)
"""Fields that have rules of their own."""


def _validate_nomination(node: str, pod: RawObject) -> Iterator[FieldError]:
    if not node:
        return
    path = STATUS / "nominatedNodeName"
    yield from validate_subdomain(node, path)
    if pod.get("spec", "nodeName"):
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _validate_conditions(conditions: list[Part]) -> Iterator[FieldError]:
    for index, condition in enumerate(conditions):
        type_ = text(condition, "type")
        for problem in label_key_problems(type_):
            yield invalid(STATUS / "conditions" @ index / "Type", type_, problem)
        yield from _validate_generation(condition, STATUS / "conditions" @ index)


def _validate_generation(owner: Part, path: FieldPath) -> Iterator[FieldError]:
    generation = owner.get("observedGeneration")
    if isinstance(generation, int) and generation < 0:
        yield invalid(path / "observedGeneration", generation, "must be a non-negative integer")


def _validate_states(status: Part, before: Part, pod: RawObject) -> Iterator[FieldError]:
    """A container that has ended does not run again if its pod does not restart."""
    policy = pod.get("spec", "restartPolicy", default="Always")
    if policy == "Always":
        return
    for field in _RESTARTED:
        now = {text(each, "name"): each for each in parts(status, field)}
        for index, old in enumerate(parts(before, field)):
            ended = part(old, "state").get("terminated")
            if not isinstance(ended, dict):
                continue
            if ended.get("exitCode") and policy == "OnFailure":
                continue
            new = now.get(text(old, "name"))
            if new is not None and part(new, "state").get("terminated") is None:
                yield forbidden(
                    STATUS / field @ index / "state",
                    "may not be transitioned to non-terminated state",
                )


def _validate_users(status: Part) -> Iterator[FieldError]:
    for field in _WITH_USERS:
        for index, container in enumerate(parts(status, field)):
            user, path = part(container, "user"), STATUS / field @ index / "user" / "linux"
            linux = part(user, "linux")
            for name in ("uid", "gid"):
                number = linux.get(name)
                if isinstance(number, int) and not 0 <= number <= MAX_USER_ID:
                    yield invalid(
                        path / name, number, f"must be between 0 and {MAX_USER_ID}, inclusive"
                    )


MAX_USER_ID: Final = 2**32 - 1


def _validate_host_addresses(status: Part) -> Iterator[FieldError]:
    addresses, path = parts(status, "hostIPs"), STATUS / "hostIPs"
    if not addresses:
        return
    first = text(addresses[0], "ip")
    if text(status, "hostIP") != first:
        yield invalid(path @ 0 / "ip", first, "must be equal to `hostIP`")
    yield from _validate_addresses(addresses, path)


def _validate_addresses(addresses: list[Part], path: FieldPath) -> Iterator[FieldError]:
    """One address of each family."""
    written = [text(each, "ip") for each in addresses]
    parsed = [parse_address(each) for each in written]
    for index, (address, found) in enumerate(zip(written, parsed, strict=True)):
        if found is None:
            yield invalid(path @ index, address, NOT_AN_ADDRESS)
        elif found.version == 4 and has_leading_zeros(address):
            yield invalid(path @ index, address, "must not have leading 0s")
    if len(addresses) < 2:
        return
    families = {found.version for found in parsed if found is not None}
    if len(addresses) > 2 or len(families) < 2:
        yield invalid(path, [{"IP": address} for address in written], ONE_PER_FAMILY)
    for index, (address, is_repeated) in enumerate(zip(written, repeated(written), strict=True)):
        if is_repeated:
            yield duplicate(path @ index, {"IP": address})
