"""URLs, parsed as Go's net/url does, with its error messages."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from allot.cel import types
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.formatting import go_quoted
from allot.cel.library.memoize import memoized
from allot.cel.steps import in_steps
from allot.cel.values import Value, register_class
from allot.deadline import Deadline

_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_UNRESERVED: Final = _LETTERS | _DIGITS | frozenset("-_.~")
_IN_HOST: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_IN_PATH: Final = _UNRESERVED | frozenset("$&+,/:;=@")
_IN_ENCODED_PATH: Final = _IN_PATH | frozenset("!'()*[]%")
_IN_USERINFO: Final = _UNRESERVED | frozenset(":!$&'()*+,;=%@")


class Url(NamedTuple):
    """A URL in its parts. `path` is as written."""

    scheme: str
    user: str
    host: str
    path: str
    query: str
    fragment: str

    def hostname(self) -> str:
        host = self.host
        colon = host.rfind(":")
        if colon >= 0 and _is_port(host[colon:]):
            host = host[:colon]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    def port(self) -> str:
        colon = self.host.rfind(":")
        return self.host[colon + 1 :] if colon >= 0 and _is_port(self.host[colon:]) else ""


register_class(Url, types.URL, "cel.URL")


class _ParseError(ValueError):
    pass


def _escape(deadline: Deadline, text: str, allowed: frozenset[str]) -> str:
    encoded = list(text.encode("utf-8", "surrogateescape"))
    return "".join(
        chr(byte) if chr(byte) in allowed else f"%{byte:02X}"
        for byte in in_steps(encoded, deadline)
    )


_wrong_escape: Final = re.compile("%(?![0-9a-fA-F]{2})").search
_NOT_IN_HOST: Final = "".join(sorted(set(map(chr, range(128))) - _IN_HOST - {"%"}))
_wrong_in_host: Final = re.compile(
    rf"%(?:(?![0-9a-fA-F]{{2}})|(?!25)[0-7])|[{re.escape(_NOT_IN_HOST)}]"
).search


def _unescape(text: str, where: str) -> str:
    """The string without %-escapes; _ParseError names the invalid escape or character."""
    wrong = _wrong_in_host(text) if where == "host" else _wrong_escape(text)
    if wrong is not None:
        if wrong[0].startswith("%"):
            escape = text[wrong.start() : wrong.start() + 3]
            raise _ParseError(f"invalid URL escape {go_quoted(escape)}")
        raise _ParseError(f"invalid character {go_quoted(wrong[0])} in host name")
    if where == "query":
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    encoded = unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
    return encoded.decode("utf-8", "surrogateescape")


def _is_port(text: str) -> bool:
    """A colon and digits, or nothing at all."""
    return not text or (text[0] == ":" and _DIGITS.issuperset(text[1:]))


_scheme: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):").match


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise _ParseError("missing protocol scheme")
    match = _scheme(text)
    return ("", text) if match is None else (match[1].lower(), text[match.end() :])


def _parse_host(text: str) -> str:
    if text.startswith("["):
        end = text.rfind("]")
        if end < 0:
            raise _ParseError("missing ']' in host")
        port = text[end + 1 :]
    else:
        colon = text.rfind(":")
        port = text[colon:] if colon >= 0 else ""
    if not _is_port(port):
        raise _ParseError(f"invalid port {go_quoted(port)} after host")
    return _unescape(text, "host")


def _parse_authority(text: str) -> tuple[str, str]:
    user, at, host_text = text.rpartition("@")
    host = _parse_host(host_text)
    if at and not _IN_USERINFO.issuperset(user):
        raise _ParseError("net/url: invalid userinfo")
    return user, host


_control_character: Final = re.compile(r"[\x00-\x1f\x7f]").search


def _parse(text: str, *, is_request: bool) -> Url:
    if _control_character(text):
        raise _ParseError("net/url: invalid control character in URL")
    if not text and is_request:
        raise _ParseError("empty url")
    if text == "*":
        return Url("", "", "", "*", "", "")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", "", query, "")
        if is_request:
            raise _ParseError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _ParseError("first path segment in URL cannot contain colon")
    user = host = ""
    has_authority = scheme or (not is_request and not rest.startswith("///"))
    if has_authority and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _parse_authority(authority)
    _unescape(rest, "path")
    return Url(scheme, user, host, rest, query, "")


def _with_go_prefix(text: str, error: _ParseError) -> str:
    return f"parse {go_quoted(text)}: {error}"


def request_uri_problem(text: str) -> str | None:
    """Why a string is not an absolute URI or path; None if it is one."""
    try:
        _parse(text, is_request=True)
    except _ParseError as error:
        return _with_go_prefix(text, error)
    return None


def _is_url(text: str) -> bool:
    try:
        _parse(text, is_request=True)
    except _ParseError:
        return False
    return True


@memoized
def _url(text: str) -> Url:
    prefix = "URL parse error during conversion from string: "
    problem = request_uri_problem(text)
    if problem is not None:
        raise EvalError(prefix + problem)
    before, _, fragment = text.partition("#")
    try:
        return _parse(before, is_request=False)._replace(fragment=_unescape(fragment, "path"))
    except _ParseError as error:
        raise EvalError(prefix + _with_go_prefix(text, error)) from None


def _escaped_path(deadline: Deadline, url: Url) -> str:
    if _IN_ENCODED_PATH.issuperset(url.path):
        return url.path
    return _escape(deadline, _unescape(url.path, "path"), _IN_PATH)


def _parameters(deadline: Deadline, url: Url) -> dict[Value, Value]:
    """The query, as lists of values by name. Invalid parameters are left out."""
    found: dict[Value, list[Value]] = {}
    for pair in in_steps(url.query.split("&"), deadline):
        if not pair or ";" in pair:
            continue
        name, _, value = pair.partition("=")
        try:
            found.setdefault(_unescape(name, "query"), []).append(_unescape(value, "query"))
        except _ParseError:
            continue
    return dict(found)


FUNCTIONS: Final = (
    function("url", overload("string_to_url", "(string) -> url", _url)),
    function("isURL", overload("is_url_string", "(string) -> bool", _is_url)),
    function("getScheme", overload("url_get_scheme", "url.() -> string", lambda u: u.scheme)),
    function("getHost", overload("url_get_host", "url.() -> string", lambda u: u.host)),
    function("getHostname", overload("url_get_hostname", "url.() -> string", Url.hostname)),
    function("getPort", overload("url_get_port", "url.() -> string", Url.port)),
    function(
        "getEscapedPath",
        overload("url_get_escaped_path", "url.() -> string", _escaped_path, takes_deadline=True),
    ),
    function(
        "getQuery",
        overload(
            "url_get_query", "url.() -> map(string, list(string))", _parameters, takes_deadline=True
        ),
    ),
)
