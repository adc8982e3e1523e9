"""The spec of a ResourceClaim, which a ResourceClaimTemplate has too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from allot import features
from allot.api.claims import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from allot.api.resource import ALL, EXACT_COUNT
from allot.features import FeatureGates
from allot.rules import BARE_DERIVED_NAMES, MATCH_OR_DISTINCT
from allot.validation.context import Context
from allot.validation.derived_attributes import (
    bare_derived_names,
    referenced_attributes,
    validate_claim_cost,
    validate_derived_attributes,
)
from allot.validation.device_config import validate_opaque_configuration
from allot.validation.expressions import validate_selector
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
    not_supported,
    required,
)
from allot.validation.lists import duplicates, validate_items
from allot.validation.metadata import IMMUTABLE, validate_metadata, validate_metadata_update
from allot.validation.names import (
    NOT_FULLY_QUALIFIED,
    validate_fully_qualified_name,
    validate_label,
    validate_stored_fully_qualified_name,
    validate_subdomain,
)
from allot.validation.tolerations import validate_toleration

MAX_REQUESTS: Final = 32
MAX_ALTERNATIVES: Final = 8
MAX_SELECTORS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
ALLOCATION_MODES: Final = (EXACT_COUNT, ALL)

ONE_OF: Final = "exactly one of `exactly` or `firstAvailable` is required"
NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim "
    "or the name of a request and a subrequest separated by '/'"
)
ONE_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
NO_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'

BOTH: Final = f"{ONE_ATTRIBUTE}, but both are set; use two constraints"

SPEC: Final = FieldPath("spec")


class RequestNames(NamedTuple):
    """Every name in a claim that constraints, configs and results can refer to."""

    names: frozenset[str]

    @staticmethod
    def of(claim: DeviceClaim) -> RequestNames:
        if len(claim.requests) == 1 and not claim.requests[0].first_available:
            return RequestNames(frozenset((claim.requests[0].name,)))
        # Of requests with the same name, which is an error of its own, the last one counts.
        by_name = {request.name: request for request in claim.requests}
        alternatives = {
            f"{name}/{alternative.name}"
            for name, request in by_name.items()
            for alternative in request.first_available
        }
        return RequestNames(frozenset(by_name.keys() | alternatives))

    def validate_reference(self, name: str, path: FieldPath) -> Iterator[FieldError]:
        parts = name.split("/")
        if len(parts) <= 2:
            for part in parts:
                yield from validate_label(part, path)
        if name not in self.names or len(parts) > 2:
            yield invalid(path, name, NOT_A_REQUEST)


def validate_claim(claim: ResourceClaim, context: Context) -> Iterator[FieldError]:
    """A new claim. Its status is empty and not validated."""
    yield from validate_metadata(claim.metadata, namespaced=True)
    yield from validate_claim_spec(claim.spec, SPEC, context)


def validate_claim_update(new: ResourceClaim, old: ResourceClaim) -> Iterator[FieldError]:
    """An existing claim. A stored spec is not validated again."""
    yield from validate_metadata_update(new.metadata, old.metadata)
    if new.spec != old.spec:
        yield invalid(SPEC, None, IMMUTABLE)


def validate_claim_spec(
    spec: ResourceClaimSpec, path: FieldPath, context: Context, *, stored: bool = False
) -> Iterator[FieldError]:
    """`stored`: unchanged by an update, so hand-written rules apply, with their own messages."""
    claim, path = spec.devices, path / "devices"
    names = RequestNames.of(claim)
    bare_names = bare_derived_names(claim, context, stored=stored)

    def validate_request(request: DeviceRequest, request_path: FieldPath) -> Iterator[FieldError]:
        return _validate_request(request, request_path, claim, context, stored)

    def check_constraint(
        constraint: DeviceConstraint, constraint_path: FieldPath
    ) -> Iterator[FieldError]:
        return _validate_constraint(constraint, constraint_path, names, bare_names, context, stored)

    def check_config(
        config: DeviceClaimConfiguration, config_path: FieldPath
    ) -> Iterator[FieldError]:
        yield from validate_references(config.requests, config_path / "requests", names)
        yield from validate_opaque_configuration(config.opaque, config_path, stored=stored)

    requests_path = path / "requests"
    yield from validate_items(claim.requests, requests_path, MAX_REQUESTS, validate_request)
    if len(claim.requests) <= MAX_REQUESTS:
        yield from duplicates(claim.requests, requests_path, lambda request: request.name)
    yield from validate_items(
        claim.constraints, path / "constraints", MAX_CONSTRAINTS, check_constraint
    )
    yield from validate_items(claim.config, path / "config", MAX_CONFIGS, check_config)
    yield from validate_claim_cost(claim, path, context)


def validate_references(
    references: tuple[str, ...], path: FieldPath, names: RequestNames
) -> Iterator[FieldError]:
    """The requests a constraint or configuration is for; none means all."""
    yield from validate_items(references, path, MAX_REQUESTS, names.validate_reference)
    if len(references) <= MAX_REQUESTS:
        yield from duplicates(references, path, lambda name: name)


def _validate_request(
    request: DeviceRequest, path: FieldPath, claim: DeviceClaim, context: Context, stored: bool
) -> Iterator[FieldError]:
    yield from validate_label(request.name, path / "name")

    def check_alternative(
        alternative: DeviceSubRequest, alternative_path: FieldPath
    ) -> Iterator[FieldError]:
        return _validate_alternative(alternative, alternative_path, request, claim, context, stored)

    exactly_path, list_path = path / "exactly", path / "firstAvailable"
    alternatives = request.first_available
    match (request.exactly, alternatives):
        case (None, ()):
            yield required(path, ONE_OF)
        case (ExactDeviceRequest() as exactly, ()):
            yield from _validate_exactly(exactly, exactly_path, request, claim, context, stored)
        case (None, _):
            yield from validate_items(alternatives, list_path, MAX_ALTERNATIVES, check_alternative)
        case _:
            yield invalid(path, None, f"{ONE_OF}, but multiple fields are set")
            # Hand-written rules stop here, declared ones validate both.
            assert request.exactly is not None
            yield from _declared_only(
                _validate_exactly(request.exactly, exactly_path, request, claim, context, stored)
            )
            yield from _declared_only(
                validate_items(alternatives, list_path, MAX_ALTERNATIVES, check_alternative)
            )
    if len(alternatives) <= MAX_ALTERNATIVES:
        yield from duplicates(alternatives, list_path, lambda alternative: alternative.name)


def _declared_only(errors: Iterator[FieldError]) -> Iterator[FieldError]:
    return (error for error in errors if error.declared)


def _validate_exactly(
    exactly: ExactDeviceRequest,
    path: FieldPath,
    request: DeviceRequest,
    claim: DeviceClaim,
    context: Context,
    stored: bool,
) -> Iterator[FieldError]:
    if not exactly.device_class_name:
        yield required(path / "deviceClassName")
    else:
        yield from validate_subdomain(exactly.device_class_name, path / "deviceClassName")
    yield from _validate_common_fields(exactly, path, context)
    yield from validate_derived_attributes(
        exactly.derived_attributes,
        path / "derivedAttributes",
        referenced_attributes(claim, request.name),
        context,
        stored=stored,
    )


def _validate_alternative(
    alternative: DeviceSubRequest,
    path: FieldPath,
    request: DeviceRequest,
    claim: DeviceClaim,
    context: Context,
    stored: bool,
) -> Iterator[FieldError]:
    yield from validate_label(alternative.name, path / "name")
    class_path = path / "deviceClassName"
    if not alternative.device_class_name:
        yield required(class_path, declared=True)
    else:
        yield from validate_subdomain(
            alternative.device_class_name, class_path, declared=not stored
        )
    yield from _validate_common_fields(alternative, path, context)
    yield from validate_derived_attributes(
        alternative.derived_attributes,
        path / "derivedAttributes",
        referenced_attributes(claim, request.name, alternative.name),
        context,
        stored=stored,
    )


def _validate_common_fields(
    request: ExactDeviceRequest | DeviceSubRequest, path: FieldPath, context: Context
) -> Iterator[FieldError]:
    """What `exactly` and alternatives have in common. Capacity requests are not validated."""
    yield from validate_items(
        request.selectors,
        path / "selectors",
        MAX_SELECTORS,
        lambda selector, selector_path: validate_selector(
            selector, selector_path, context.expressions, context.gates
        ),
    )
    mode, count_path = request.allocation_mode, path / "count"
    if mode == ALL:
        if request.count:
            yield invalid(
                count_path, request.count, "must not be specified when allocationMode is 'All'"
            )
    elif mode == EXACT_COUNT:
        if request.count <= 0:
            yield invalid(count_path, request.count, "must be greater than zero")
    else:
        # v1beta1 may leave it out, and only a hand-written rule refuses that.
        yield not_supported(path / "allocationMode", mode, ALLOCATION_MODES, declared=bool(mode))
    for index, toleration in enumerate(request.tolerations):
        yield from validate_toleration(toleration, path / "tolerations" @ index)


def _how_to_qualify(name: str, gates: FeatureGates) -> str:
    """How to fix a name without a domain that no request of the claim derives."""
    advice = f"{NOT_FULLY_QUALIFIED}: write DRIVER/{name}, with the driver that publishes it"
    if features.DERIVED_ATTRIBUTES not in gates:
        return advice
    return (
        f"{advice}; a name without a domain is for derived attributes,"
        f" and no request of the claim derives {name}"
    )


def _validate_constraint(
    constraint: DeviceConstraint,
    path: FieldPath,
    names: RequestNames,
    bare_names: frozenset[str],
    context: Context,
    stored: bool,
) -> Iterator[FieldError]:
    yield from validate_references(constraint.requests, path / "requests", names)
    match, distinct = constraint.match_attribute, constraint.distinct_attribute
    gates = context.gates
    if match is None and distinct is None:
        if features.CONSUMABLE_CAPACITY in gates:
            yield required(path, ONE_ATTRIBUTE if MATCH_OR_DISTINCT in gates else NO_ATTRIBUTE)
        else:
            yield required(path / "matchAttribute")
    elif not (match is None or distinct is None or stored) and MATCH_OR_DISTINCT in gates:
        yield invalid(path, {"matchAttribute": match, "distinctAttribute": distinct}, BOTH)
    for name, attribute_path in ((match, "matchAttribute"), (distinct, "distinctAttribute")):
        # KEP-6080: a bare name is fine if a request of this claim derives an attribute of that name.
        if name is not None and name not in bare_names:
            if "/" not in name and not stored and BARE_DERIVED_NAMES in gates:
                yield invalid(path / attribute_path, name, _how_to_qualify(name, gates))
                continue
            check = (
                validate_stored_fully_qualified_name if stored else validate_fully_qualified_name
            )
            yield from check(name, path / attribute_path)
