"""Answers: their bytes, their headers, and how errors look."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import replace
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.protobuf.envelope import MEDIA_TYPE, encode_document, has_protobuf
from allot.apiserver.api_errors import ApiError
from allot.apiserver.yaml_writing import to_yaml

GZIP_FROM: Final = 128 * 1024
"""Smaller answers are not worth compressing."""
GZIP_LEVEL: Final = 1
MAX_WARNINGS: Final = 80
"""Python's client accepts 100 headers in all."""
MAX_WARNINGS_LENGTH: Final = 4096
MAX_WARNING_LENGTH: Final = 256
"""Characters, of all warnings of an answer and, if those are too many, of each."""

Header = tuple[bytes, bytes]
NOT_CACHED: Final = b"no-cache, private"


class Response(msgspec.Struct, frozen=True):
    """An answer that is known as a whole, or at least how it begins."""

    code: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[Header, ...] = ()
    more: AsyncIterator[bytes] | None = None
    """What follows the body, made while it is sent."""
    cache_control: bytes = NOT_CACHED
    revision: int = 0
    """The revision of the object, if the answer shows nothing but a stored object."""


class StreamResponse(NamedTuple):
    """An answer that goes on: each item is sent when it comes."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"
    headers: tuple[Header, ...] = ()


def json_response(code: int, value: Any) -> Response:
    return Response(code, msgspec.json.encode(value) + b"\n")


def indented_response(code: int, value: Any) -> Response:
    """A document outside the API, which Kubernetes writes for people."""
    return Response(code, msgspec.json.format(msgspec.json.encode(value), indent=2))


def text_response(code: int, text: str) -> Response:
    return Response(code, text.encode(), "text/plain; charset=utf-8")


def error_response(error: ApiError) -> Response:
    headers: tuple[Header, ...] = ()
    if error.details is not None and error.details.retry_after_seconds:
        headers = ((b"retry-after", str(error.details.retry_after_seconds).encode()),)
    if error.warnings:
        headers = (*headers, *warning_headers(error.warnings))
    return replace(json_response(error.code, error.status()), headers=headers)


def in_format(response: Response, format_: str, *, pretty: bool = False) -> Response:
    """The same answer as YAML, as protobuf, or as JSON for people."""
    if format_ == "yaml":
        text = to_yaml(msgspec.json.decode(response.body))
        return replace(response, body=text, content_type="application/yaml")
    if format_ == "protobuf":
        return _as_protobuf(response)
    if pretty:
        return replace(response, body=msgspec.json.format(response.body, indent=2) + b"\n")
    return response


def _as_protobuf(response: Response) -> Response:
    """A document in protobuf; in JSON if it is of a kind that has no message."""
    document = msgspec.json.decode(response.body)
    group, version = GroupVersion.parse(document.get("apiVersion", ""))
    gvk = GroupVersionKind(group, version, document.get("kind", ""))
    if not has_protobuf(gvk):
        return response
    return replace(response, body=encode_document(document, gvk), content_type=MEDIA_TYPE)


def warning_headers(warnings: Iterable[str]) -> tuple[Header, ...]:
    """One header per warning, as RFC 7234 has them and kubectl prints them.

    As in Kubernetes, long warnings are cut if they are too much together, and the last ones left out. Of many
    short ones some are left out too: clients refuse answers with too many headers.
    """
    texts = list(dict.fromkeys(text for text in warnings if text))
    if sum(map(len, texts)) > MAX_WARNINGS_LENGTH:
        texts = [text[:MAX_WARNING_LENGTH] for text in texts]
    headers: list[Header] = []
    written = 0
    for text in texts[:MAX_WARNINGS]:
        if written >= MAX_WARNINGS_LENGTH:
            break
        written += len(text)
        header = f'299 - "{_escaped(text)}"'.encode("ascii", "backslashreplace")
        headers.append((b"warning", header))
    return tuple(headers)


def _escaped(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def compressed(response: Response) -> Response:
    """The answer in gzip. Takes a while: call it beside the event loop."""
    return replace(
        response,
        body=gzip.compress(response.body, GZIP_LEVEL, mtime=0),
        headers=(*response.headers, (b"content-encoding", b"gzip")),
    )


class Gzip:
    """The pieces of one answer in gzip."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(GZIP_LEVEL, wbits=_GZIP_FORMAT)

    def piece(self, body: bytes) -> bytes:
        return self._compressor.compress(body)

    def end(self) -> bytes:
        return self._compressor.flush()


_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
