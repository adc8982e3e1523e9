"""Whether the body of a request is of the kind that the path names, by its kind and apiVersion."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.json_syntax import syntax_problem
from allot.api.scheme import is_typed_group
from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, bad_request
from allot.apiserver.kinds.resources import RESOURCES, find_kind
from allot.apiserver.object_limits import check_json_limits
from allot.apiserver.registry.patches.documents import kind_of
from allot.validation.fields import FieldPath, invalid

MAX_SUMMARY: Final = 30
"""Bytes of a body that is no object."""
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)


class TypeMeta(msgspec.Struct, rename="camel"):
    """The kind and apiVersion in a body."""

    kind: str | None = None
    api_version: str | None = None


type_decoder: Final = msgspec.json.Decoder(TypeMeta)


def check_type(body: bytes, expected: GroupVersionKind) -> None:
    """400 if the body says it is of another kind or version. It need not say anything."""
    check_json_limits(body)
    try:
        body.decode()  # decoders pass over what is in fields they do not know
    except UnicodeDecodeError as error:
        raise bad_request(f"json: invalid UTF-8 at byte {error.start}") from None
    try:
        found = type_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = syntax_problem(body) or type_problem(body) or str(error)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {expected.kind}): "
            f"couldn't get version/kind; json parse error: {problem} ({shown_body(body)})"
        ) from None
    if found.kind == expected.kind and found.api_version == _api_version(expected):
        return
    if found.api_version and found.api_version.count("/") > 1:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {expected.kind}): "
            f"unexpected GroupVersion string: {found.api_version} ({shown_body(body)})"
        )
    check_kind(found.api_version, found.kind, expected)


def type_problem(body: bytes) -> str:
    """Why no kind and apiVersion can be read from JSON; empty if that is not the problem."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return f"json: cannot unmarshal {kind_of(document)} into Go value of type {_TYPE_META}"
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name), str | None):
            found = kind_of(document[name])
            return f"json: cannot unmarshal {found} into Go struct field .{name} of type string"
    return ""


def no_object(patched: bytes) -> api_errors.ApiError:
    """A patch makes something else of an object, such as a list."""
    return api_errors.bad_patch(
        patched, f"couldn't get version/kind; json parse error: {type_problem(patched)}"
    )


def check_custom_kind(body: bytes, expected: GroupVersionKind) -> None:
    """422 if the body is of another kind of the same version: to a custom resource the kind is a field."""
    try:
        found = _named_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # which is explained later
    if found.api_version != str(expected.group_version) or found.kind in (None, "", expected.kind):
        return
    error = invalid(FieldPath("kind"), found.kind, f"must be {expected.kind}")
    name = found.metadata.name if found.metadata is not None else ""
    raise api_errors.invalid(expected.group, str(found.kind), name, [error])


class _Named(msgspec.Struct):
    name: str = ""


class _NamedType(TypeMeta):
    metadata: _Named | None = None


_named_decoder: Final = msgspec.json.Decoder(_NamedType)


@cache
def _api_version(gvk: GroupVersionKind) -> str:
    return str(gvk.group_version)


def check_kind(api_version: str | None, kind: str | None, expected: GroupVersionKind) -> None:
    """400 if what a body says about itself, which may be nothing, is not what is expected."""
    if (not kind or kind == expected.kind) and (
        not api_version or api_version == _api_version(expected)
    ):
        return
    written = GroupVersion.parse(api_version) if api_version else expected.group_version
    kind = kind or expected.kind
    if (written, kind) == (expected.group_version, expected.kind):
        return
    found = GroupVersionKind(*written, kind)
    is_same_kind = (found.group, found.kind) == (expected.group, expected.kind)
    is_known = find_kind(found) is not None or found in PART_KINDS
    if expected.group not in _groups() or (is_same_kind and is_known) or found in OTHER_SCALES:
        if written != expected.group_version:
            raise bad_request(
                f"the API version in the data ({written}) does not match the expected "
                f"API version ({expected.group_version})"
            )
        is_known = True
    if is_known:
        source = f"{written.version}.{kind}"
        problem = f"converting ({source}) to ({internal_type(expected)}): unknown conversion"
    else:
        problem = _unregistered(kind, written)
    raise bad_request(
        f'{kind} in version "{written.version}" cannot be handled as a {expected.kind}: {problem}'
    )


def _unregistered(kind: str, written: GroupVersion) -> str:
    return f'no kind "{kind}" is registered for version "{written}" in scheme "{_SCHEME}"'


PART_KINDS: Final = frozenset(
    GroupVersionKind.parse(written)
    for written in (
        "v1/Binding", "policy/v1/Eviction", "autoscaling/v1/Scale", "authentication.k8s.io/v1/TokenRequest",
    )
)  # fmt: skip
"""Kinds that exist as parts of others only."""
OTHER_SCALES: Final = frozenset(
    GroupVersionKind(group, version, "Scale")
    for group, version in (
        ("apps", "v1beta1"), ("apps", "v1beta2"), ("extensions", "v1beta1"),
    )
)  # fmt: skip
"""Versions of Scale that Kubernetes still knows."""


def checked_patched(body: bytes, expected: GroupVersionKind, *, is_strategic: bool) -> bytes:
    """A patched document of the kind that is expected; 422 if the patch makes another one of it.

    A strategic merge patch cannot change the kind.
    """
    try:
        check_type(body, expected)
    except ApiError as error:
        if error.code != BAD_REQUEST:
            raise
        if not is_strategic and type_problem(body):
            raise no_object(body) from None
        found = _changed_type(body, expected)
        if found is None:
            raise
        if not is_strategic:
            raise api_errors.bad_patch(body, _unregistered(*found)) from None
        document = msgspec.json.decode(body)
        typed = {"kind": expected.kind, "apiVersion": str(expected.group_version)}
        return msgspec.json.encode(document | typed)
    return body


def other_version(body: bytes, expected: GroupVersionKind) -> str | None:
    """The version to which a patch changed a document, if its kind has several and this is another."""
    if not is_typed_group(expected.group):
        return None
    found = _changed_type(body, expected)
    if found is None or found[0] != expected.kind or found[1].group != expected.group:
        return None
    version = found[1].version
    return version if find_kind(GroupVersionKind(*found[1], expected.kind)) is not None else None


def _changed_type(body: bytes, expected: GroupVersionKind) -> tuple[str, GroupVersion] | None:
    """The kind and version in a document of a built-in group, if Kubernetes does not know these."""
    try:
        found = type_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if expected.group not in _groups():
        return None
    version = found.api_version or str(expected.group_version)
    kind = found.kind or expected.kind
    if version.count("/") > 1 or (kind, version) == (expected.kind, str(expected.group_version)):
        return None
    return kind, GroupVersion.parse(version)


BAD_REQUEST: Final = 400
_SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"


@cache
def _groups() -> frozenset[str]:
    """The groups of built-in kinds. To a server of custom resources all kinds are known."""
    return frozenset(resource.group for resource in RESOURCES)


def internal_type(gvk: GroupVersionKind) -> str:
    """What Kubernetes calls the type of a kind that is not in any version: `core.Binding`."""
    return f"{gvk.group.partition('.')[0] or 'core'}.{gvk.kind}"


def shown_body(body: bytes) -> str:
    """As much of a body as an error shows: text if it looks like JSON."""
    if not body:
        return "<empty>"
    start = body[:MAX_SUMMARY]
    shown = start.decode(errors="replace") if body[:1] == b"{" else start.hex()
    return shown if len(body) <= MAX_SUMMARY else f"{shown} ..."
