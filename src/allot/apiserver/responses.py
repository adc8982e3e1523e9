"""Answers: their bytes, their headers, and how errors look."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from allot.apiserver.api_errors import ApiError

GZIP_FROM: Final = 128 * 1024
"""Smaller answers are not worth compressing."""
GZIP_LEVEL: Final = 1

Header = tuple[bytes, bytes]


class Response(NamedTuple):
    """An answer that is known as a whole."""

    code: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[Header, ...] = ()


class StreamResponse(NamedTuple):
    """An answer that goes on: each item is sent when it comes."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"
    headers: tuple[Header, ...] = ()


def json_response(code: int, value: Any) -> Response:
    return Response(code, msgspec.json.encode(value))


def text_response(code: int, text: str) -> Response:
    return Response(code, text.encode(), "text/plain; charset=utf-8")


def error_response(error: ApiError) -> Response:
    headers: tuple[Header, ...] = ()
    if error.details is not None and error.details.retry_after_seconds:
        headers = ((b"retry-after", str(error.details.retry_after_seconds).encode()),)
    return json_response(error.code, error.status())._replace(headers=headers)


def in_format(response: Response, format_: str, *, pretty: bool = False) -> Response:
    """The same answer as YAML, or as JSON for people."""
    if format_ == "yaml":
        text = yaml.dump(
            msgspec.json.decode(response.body),
            Dumper=_Dumper,
            sort_keys=True,
            allow_unicode=True,
        )
        return response._replace(body=text.encode(), content_type="application/yaml")
    if pretty:
        return response._replace(body=msgspec.json.format(response.body, indent=2) + b"\n")
    return response


_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def warning_headers(warnings: Iterable[str]) -> tuple[Header, ...]:
    """One header per warning, as RFC 7234 has them and kubectl prints them."""
    return tuple(
        (b"warning", f'299 - "{_escaped(text)}"'.encode("ascii", "backslashreplace"))
        for text in dict.fromkeys(warnings)
    )


def _escaped(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def compressed(response: Response) -> Response:
    """The answer in gzip. Takes a while: call it beside the event loop."""
    return response._replace(
        body=gzip.compress(response.body, GZIP_LEVEL, mtime=0),
        headers=(*response.headers, (b"content-encoding", b"gzip")),
    )
