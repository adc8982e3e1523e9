"""Bodies: the formats that are read and written, and which of them a request means.

Most of what is behind this module sees JSON. A further format to read is a further line in `_READERS`.
Objects in protobuf are read and written without a detour: see `watch_cache/codecs.py` and `protobuf_rendering.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from allot.api.identities import GroupVersionKind
from allot.api.json_limits import MAX_VALUES
from allot.api.protobuf.envelope import MEDIA_TYPE, decode_document
from allot.api.protobuf.wire import ProtobufError
from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.yaml_documents import YamlError, parse_documents

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = MEDIA_TYPE
APPLY: Final = "application/apply-patch+yaml"
PATCH_FORMATS: Final[Mapping[str, str]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    APPLY: "apply",
}
"""The kind of patch by content type."""


_USUAL_TYPES: Final = frozenset((JSON, YAML, PROTOBUF, *PATCH_FORMATS))


class BodyError(Exception):
    """The body cannot be read, or no answer would be acceptable. Carries what the Status will say."""

    def __init__(
        self, code: int, reason: str, message: str, details: Details | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def api_error(self) -> ApiError:
        return ApiError(self.code, self.reason, self.message, self.details)


# --- what comes in ---


class Body(msgspec.Struct, frozen=True):
    """A request's body as JSON, and the paths of keys that stood there twice in YAML.

    Duplicate keys in JSON are kept.
    """

    json: bytes
    duplicates: tuple[str, ...] = ()


def read_body(body: bytes, content_type: str, expected: GroupVersionKind | None = None) -> Body:
    """The body as JSON; `BodyError` 415 if we cannot read its format, 400 if it is not what it says.

    No content type means JSON. JSON is not parsed here: errors are reported by the decoder.
    Protobuf without a type is read as the expected type.
    """
    reader = _READERS.get(media_type(content_type) or JSON)
    if reader is None:
        raise unsupported()
    return reader(body, expected)


def patch_format(content_type: str, formats: Mapping[str, str] = PATCH_FORMATS) -> str:
    """`json`, `merge`, `strategic` or `apply`, from the patch's content type; `BodyError` 415 for others."""
    found = formats.get(media_type(content_type))
    if found is None and formats is PATCH_FORMATS:
        # Routes of built-in kinds refuse it before it is looked into.
        raise BodyError(415, "UnsupportedMediaType", "415: Unsupported Media Type", Details())
    if found is None:
        raise unsupported(formats)
    return found


def media_type(content_type: str) -> str:
    """The type without parameters, such as charset: JSON and YAML are UTF-8 whatever they say."""
    if content_type in _USUAL_TYPES:
        return content_type
    return content_type.partition(";")[0].strip().lower()


def _unchanged(body: bytes, _: GroupVersionKind | None) -> Body:
    return Body(body)


def protobuf_to_json(body: bytes, expected: GroupVersionKind | None = None) -> Body:
    """Protobuf as JSON; `BodyError` 400 if it cannot be read."""
    try:
        return Body(msgspec.json.encode(decode_document(body, expected)))
    except ProtobufError as error:
        raise BodyError(400, "BadRequest", str(error)) from None


def yaml_to_json(body: bytes, _: GroupVersionKind | None = None) -> Body:
    """One YAML document as JSON; `BodyError` 400 if it is not one."""
    if body.lstrip()[:1] == b"{" and _is_json(body):
        return Body(body)
    try:
        documents = list(parse_documents(body.decode(), 2 * MAX_VALUES, with_places=False))
        if len(documents) > 1:
            raise _malformed("there is more than one document")
        if not documents:
            return Body(b"null")
        encoded = msgspec.json.encode(documents[0].value)
    except YamlError as error:
        raise _malformed(f"line {error.line}: {error.problem}") from None
    except UnicodeError:
        raise _malformed("it is not UTF-8") from None
    return Body(encoded, tuple(path for path, _ in documents[0].duplicates))


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _malformed(problem: str) -> BodyError:
    return BodyError(400, "BadRequest", f"error converting YAML to JSON: yaml: {problem}")


def unsupported(accepted: Iterable[str] = (JSON, YAML, PROTOBUF)) -> BodyError:
    """415: the body has a format that cannot be read here."""
    return BodyError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}",
    )


_READERS: Final[Mapping[str, Callable[[bytes, GroupVersionKind | None], Body]]] = {
    JSON: _unchanged,
    YAML: yaml_to_json,
    PROTOBUF: protobuf_to_json,
}


# --- what goes out ---


class Transform(NamedTuple):
    """Another form of an answer, as asked for by `as=KIND;g=GROUP;v=VERSION`."""

    kind: str
    group: str
    version: str


class Accepted(NamedTuple):
    """How to answer: `json`, `yaml` or `protobuf`, and in which form; `transform` is empty for the object itself."""

    format: str
    transform: str = ""
    version: str = ""

    @property
    def content_type(self) -> str:
        """The header of the answer. Discovery repeats what it was asked for."""
        plain = _MEDIA_TYPES[self.format]
        if self.transform != DISCOVERY:
            return plain
        return f"{plain};g={_DISCOVERY_GROUP};v={self.version};as={DISCOVERY}"


PLAIN_JSON: Final = Accepted("json")
TABLE: Final = "Table"
METADATA: Final = "PartialObjectMetadata"
METADATA_LIST: Final = "PartialObjectMetadataList"
DISCOVERY: Final = "APIGroupDiscoveryList"
_META_GROUP: Final = "meta.k8s.io"
_DISCOVERY_GROUP: Final = "apidiscovery.k8s.io"


def _transforms(group: str, versions: Sequence[str], *kinds: str) -> frozenset[Transform]:
    return frozenset(Transform(kind, group, version) for kind in kinds for version in versions)


LIST_TRANSFORMS: Final = _transforms(_META_GROUP, ("v1", "v1beta1"), TABLE, METADATA_LIST)
"""What a list can be answered as."""
OBJECT_TRANSFORMS: Final = _transforms(_META_GROUP, ("v1", "v1beta1"), TABLE, METADATA)
"""What a single object, or a watch, can be answered as."""
DISCOVERY_TRANSFORMS: Final = _transforms(_DISCOVERY_GROUP, ("v2", "v2beta1"), DISCOVERY)
"""What /api and /apis can be answered as."""

STREAMED: Final = {"json": f"{JSON};stream=watch", "protobuf": f"{PROTOBUF};stream=watch"}
"""The media types of a watch's formats."""
_WRITTEN: Final = (JSON, YAML, PROTOBUF)
_MEDIA_TYPES: Final = {"json": JSON, "yaml": YAML, "protobuf": PROTOBUF}
_FORMATS: Final = {
    JSON: "json",
    YAML: "yaml",
    PROTOBUF: "protobuf",
    "application/*": "json",
    "*/*": "json",
}
MAX_REMEMBERED_ACCEPT: Final = 512
"""Clients send the same few headers again and again; a longer one is read every time."""
_ONLY_TEXT: Final = frozenset((TABLE,))
"""Forms that protobuf has no messages for."""


class _Clause(NamedTuple):
    """One alternative of an Accept header."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float

    @property
    def rank(self) -> tuple[float, int]:
        """Better ones are smaller: wanted more, then more specific."""
        return -self.quality, self.media_type.count("*")


def negotiate(
    accept: str,
    transforms: frozenset[Transform] = frozenset(),
    *,
    watch: bool = False,
    protobuf: bool = True,
) -> Accepted:
    """The best answer that the Accept header allows; `BodyError` 406 if it allows none.

    Alternatives in formats that we do not write are passed over, and so are forms that are not among `transforms`.
    `protobuf` says whether there is a message for the objects themselves; for their metadata there always is.
    """
    if len(accept) > MAX_REMEMBERED_ACCEPT:
        return _negotiate(accept, transforms, watch, protobuf)
    return _remembered(accept, transforms, watch, protobuf)


def _negotiate(
    accept: str, transforms: frozenset[Transform], watch: bool, protobuf: bool
) -> Accepted:
    if not accept.strip():
        return PLAIN_JSON
    is_known = is_streamed = False
    for clause in sorted(_clauses(accept), key=lambda clause: clause.rank):
        format_ = _FORMATS.get(clause.media_type)
        if format_ is None or clause.quality <= 0:
            continue
        is_known = True
        if watch and format_ not in STREAMED:
            continue
        parameters = clause.parameters
        if parameters.get("charset", "utf-8").lower() != "utf-8":
            continue
        if parameters.get("stream", "watch") != "watch":
            continue
        is_streamed = True
        asked = Transform(*(parameters.get(name, "") for name in ("as", "g", "v")))
        if not any(asked):
            if format_ != "protobuf" or protobuf:
                return Accepted(format_)
        elif asked in transforms and not (format_ == "protobuf" and asked.kind in _ONLY_TEXT):
            return Accepted(format_, asked.kind, asked.version)
    if is_known:
        accepted = STREAMED.values() if watch and not is_streamed else _WRITTEN
        message = f"only the following media types are accepted: {', '.join(accepted)}"
        raise BodyError(406, "NotAcceptable", message)
    can_be_watched = watch or transforms == LIST_TRANSFORMS
    available = ", ".join((*_WRITTEN, *(STREAMED.values() if can_be_watched else ())))
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    raise BodyError(406, "NotAcceptable", message, Details())


_remembered: Final = lru_cache(maxsize=1024)(_negotiate)


def error_format(accept: str) -> str:
    """The format of an error, for which no form can be asked: JSON if no other is acceptable."""
    try:
        return negotiate(accept).format
    except BodyError:
        return "json"


def _clauses(accept: str) -> Iterator[_Clause]:
    for text in accept.split(","):
        name, *rest = (part.strip() for part in text.split(";"))
        pairs = (part.partition("=") for part in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        if name:
            yield _Clause(name.lower(), parameters, _quality(parameters.pop("q", "1")))


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 1.0
