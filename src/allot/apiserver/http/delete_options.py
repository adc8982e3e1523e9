"""The options of a delete, in its body or in its query."""

from __future__ import annotations

from typing import Final

import msgspec

from allot.api.identities import GroupVersionKind
from allot.apiserver.api_errors import bad_request
from allot.apiserver.http.negotiation import (
    BodyError,
    read_body,
)
from allot.apiserver.http.requests import (
    ApiRequest,
    options_error,
    write_options,
)
from allot.apiserver.http.type_checks import type_decoder
from allot.apiserver.registry.deletion import POLICIES, DeleteOptions
from allot.validation.fields import FieldPath, not_supported
from allot.validation.fields import invalid as invalid_field


def delete_options(request: ApiRequest, verb: str) -> DeleteOptions:
    """The options of a delete, from the body or, if that is empty, the query."""
    write_options(request, verb)  # checks what the query says
    if request.body.strip():
        options = _options_from_body(request)
    else:
        options = DeleteOptions(
            grace_period_seconds=request.number("gracePeriodSeconds"),
            propagation_policy=request.query.get("propagationPolicy") or None,
            orphan_dependents=(
                request.flag("orphanDependents") if "orphanDependents" in request.query else None
            ),
        )
    if request.query.get("dryRun"):
        options = msgspec.structs.replace(options, dry_run=("All",))
    check_options(options)
    return options


def _options_from_body(request: ApiRequest) -> DeleteOptions:
    try:
        body = read_body(request.body, request.header("content-type"), _DELETE_OPTIONS).json
        kind = type_decoder.decode(body).kind
        if kind not in (None, "", "DeleteOptions"):
            raise bad_request(f"the body of a delete must be DeleteOptions, not a {kind}")
        return msgspec.json.decode(body, type=DeleteOptions)
    except BodyError as error:
        raise error.api_error() from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the delete options cannot be read: {error}") from None


_DELETE_OPTIONS: Final = GroupVersionKind("", "v1", "DeleteOptions")


def check_options(options: DeleteOptions) -> None:
    errors = []
    policy = options.propagation_policy
    if policy is not None and policy not in POLICIES:
        shown = (*POLICIES, "nil")
        errors.append(not_supported(FieldPath("propagationPolicy"), policy, shown, is_ordered=True))
    if policy is not None and options.orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_field(FieldPath("propagationPolicy"), policy, detail))
    if any(value != "All" for value in options.dry_run):
        errors.append(not_supported(FieldPath("dryRun"), list(options.dry_run), ["All"]))
    if errors:
        raise options_error("DeleteOptions", errors)
