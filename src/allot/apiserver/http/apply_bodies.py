"""The body of a server-side apply: one YAML document, which may be JSON."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from allot.api.json_limits import MAX_VALUES
from allot.api.strictness import has_no_duplicates
from allot.apiserver.api_errors import ApiError, bad_request
from allot.apiserver.http.claim_names import ClaimNames, read_claim_names
from allot.apiserver.object_limits import check_json_limits
from allot.apiserver.pacing import release_interpreter
from allot.apiserver.yaml_documents import YamlError, parse_documents


class AppliedConfiguration(NamedTuple):
    """What a client applies, and keys that its document has twice."""

    document: dict[str, Any]
    duplicates: list[str]
    claim_names: ClaimNames | None = None
    """The same, if it is nothing but the names of a pod's claims."""


def read_configuration(body: bytes) -> AppliedConfiguration:
    """The first document of a body; 400 if it is not an object."""
    claim_names = read_claim_names(body)
    if claim_names is not None:
        return AppliedConfiguration(msgspec.json.decode(body), [], claim_names)
    found = _from_json(body) if body.lstrip()[:1] == b"{" else None
    value, duplicates = _from_yaml(body) if found is None else (found, [])
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {_json_type(value)} into Go value of type map[string]interface {{}}"
        )
    return AppliedConfiguration(value, duplicates)


def _from_json(body: bytes) -> Any:
    """The value of JSON without duplicate keys; None for anything else, which YAML has to explain."""
    check_json_limits(body)
    try:
        document = msgspec.json.decode(body)
        release_interpreter(len(body))
        if has_no_duplicates(body, document):
            return document
        return json.loads(body.decode(), object_pairs_hook=_distinct)
    except (ValueError, RecursionError):  # of msgspec and of UTF-8 too
        return None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate keys")
    return found


def _from_yaml(body: bytes) -> tuple[Any, list[str]]:
    try:
        first = next(parse_documents(body.decode(), 2 * MAX_VALUES, with_places=True), None)
    except YamlError as error:
        raise bad_request(
            f"error encoding patch: yaml: line {error.line}: {error.problem}"
        ) from None
    except UnicodeError:
        raise bad_request("error encoding patch: yaml: invalid UTF-8") from None
    if first is None:
        return None, []
    duplicates = [
        f'line {place.line}: key "{_last_name(path)}" already set in map'
        for path, place in first.duplicates
    ]
    return first.value, duplicates


def _last_name(path: str) -> str:
    return path.rpartition(".")[2]


def refuse_duplicates(duplicates: list[str]) -> ApiError:
    lines = "".join(f"\n  {line}" for line in duplicates)
    return bad_request(
        f"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:{lines}"
    )


def _json_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case list():
            return "array"
        case _:
            return "number"
