"""The options of lists and watches: selectors, resource versions, limits and continue tokens."""

from __future__ import annotations

from typing import Final

from allot.apiserver.api_errors import bad_request
from allot.apiserver.http.requests import ApiRequest, options_error
from allot.apiserver.http.routes import Target
from allot.apiserver.pacing import SLOW, Workers
from allot.apiserver.registry.reading import ListOptions, revision_of
from allot.apiserver.registry.selection import Selection
from allot.apiserver.selectors import (
    EVERY_KIND,
    NOT_SUPPORTED,
    FieldRequirement,
    FieldSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
    require_supported,
)
from allot.apiserver.watch_cache.caches import key_prefix
from allot.validation.fields import FieldError, FieldPath, forbidden, not_supported

MATCHES: Final = ("Exact", "NotOlderThan")


async def read_selection(request: ApiRequest, target: Target, workers: Workers) -> Selection:
    """What the request selects. A long selector is parsed in a thread: an address may have 256 KB."""
    query = request.query
    length = len(query.get("labelSelector", "")) + len(query.get("fieldSelector", ""))
    return await workers.run(length * SLOW, lambda: selection_for(request, target))


def selection_for(request: ApiRequest, target: Target) -> Selection:
    """What the request selects; 400 for selectors that say nothing."""
    resource = target.resource
    try:
        labels = parse_label_selector(request.query.get("labelSelector", ""))
        fields = parse_field_selector(request.query.get("fieldSelector", ""))
        own = resource.selectable_fields
        if resource.custom is not None:
            require_supported(fields, (*own, *EVERY_KIND))
        else:
            require_supported(fields, own, _unsupported_field(target))
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if target.name:
        # A watch of one object by its path.
        named = FieldRequirement("metadata.name", target.name)
        fields = FieldSelector((*fields.requirements, named))
    return Selection(resource, key_prefix(resource, target.namespace), labels, fields)


def _unsupported_field(target: Target) -> str:
    """Kinds word it differently."""
    match target.resource.kind:
        case "Job":
            return 'field label "{field}" not supported for Job'
        case "ResourceSlice" as kind:
            gvk = f"{target.resource.group}/{target.version}, Kind={kind}"
            return f"field label not supported for {gvk}: {{field}}"
    return NOT_SUPPORTED


def list_options(request: ApiRequest) -> ListOptions:
    """The options of a list; 422 for combinations that mean nothing, 400 for versions that are none."""
    options = check_list_options(request)
    if options.resource_version:
        revision_of(options.resource_version)
    return options


def check_list_options(request: ApiRequest) -> ListOptions:
    """The options of a list of what has no versions; 422 for combinations that mean nothing."""
    query = request.query
    options = ListOptions(
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        max(request.number("limit") or 0, 0),
        query.get("continue", ""),
    )
    errors = list(_problems(options))
    if errors:
        raise options_error("ListOptions", errors)
    return options


def _problems(options: ListOptions) -> list[FieldError]:
    path = FieldPath("resourceVersionMatch")
    if not options.match:
        return []
    if options.match not in MATCHES:
        return [not_supported(path, options.match, ["", *MATCHES])]
    if options.continue_:
        return [forbidden(path, "resourceVersionMatch is forbidden when continue is provided")]
    if not options.resource_version:
        return [
            forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        ]
    if options.match == "Exact" and options.resource_version == "0":
        return [
            forbidden(path, 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
        ]
    return []
