"""Named formats: checks such as `format.dns1123Label().validate(text)`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Final, NamedTuple

from allot.cel import types
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.regexes import compiled
from allot.cel.library.times import parse_timestamp
from allot.cel.library.urls import request_uri_problem
from allot.cel.values import NONE, Optional, optional_of, register_class


class Format(NamedTuple):
    """A named format. `max_regex_size` is the size of its pattern in the cost model."""

    name: str
    problems: Callable[[str], list[str]]
    max_regex_size: int


register_class(Format, types.FORMAT, "*cel.Format")


class _Pattern(NamedTuple):
    """A regular expression with Kubernetes' message for strings that do not match it."""

    regex: str
    sentence: str
    examples: tuple[str, ...]

    def problems(self, text: str) -> list[str]:
        if compiled(rf"\A(?:{self.regex})\z").is_in(text):
            return []
        shown = " or ".join(f"'{example}', " for example in self.examples)
        return [f"{self.sentence} (e.g. {shown}regex used for validation is '{self.regex}')"]


_LABEL: Final = _Pattern(
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character",
    ("my-name", "123-abc"),
)
_SUBDOMAIN: Final = _Pattern(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    ("example.com",),
)
_LABEL_1035: Final = _Pattern(
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    ("my-name", "abc-123"),
)
_QUALIFIED_PART: Final = _Pattern(
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    ("MyName", "my.name", "123-abc"),
)
_LABEL_VALUE: Final = _Pattern(
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    ("MyValue", "my_value", "12345"),
)


def _too_long(limit: int, text: str) -> list[str]:
    if len(text.encode("utf-8", "surrogatepass")) <= limit:
        return []
    return [f"must be no more than {limit} characters"]


def _limited(pattern: _Pattern, limit: int, *, prefix: bool = False) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        if prefix and text.endswith("-") and len(text) > 1:
            text = text[:-1] + "a"  # a prefix may end where a generated suffix begins
        return _too_long(limit, text) + pattern.problems(text)

    return problems


def _qualified_name_problems(text: str) -> list[str]:
    parts = text.split("/")
    problems: list[str] = []
    if len(parts) > 2:
        (message,) = _QUALIFIED_PART.problems("-")
        sentence = f"a qualified name {message} with an optional DNS subdomain prefix and '/'"
        return [f"{sentence} (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            found = _limited(_SUBDOMAIN, 253)(parts[0])
            problems += [f"prefix part {problem}" for problem in found]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    found = _too_long(63, name) + _QUALIFIED_PART.problems(name)
    return problems + [f"name part {problem}" for problem in found]


def _uri_problems(text: str) -> list[str]:
    problem = request_uri_problem(text)
    return [] if problem is None else [problem]


def _unless(is_valid: Callable[[str], object], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if is_valid(text) else [message]


_uuid: Final = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
).fullmatch
_base64: Final = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
).fullmatch
_date: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_time: Final = re.compile(
    r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
).fullmatch


def _is_date(text: str) -> bool:
    if not _date(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return text.startswith("0000-") and _is_date("0004" + text[4:])
    return True


def _is_datetime(text: str) -> bool:
    day, t, time = text.lower().partition("t")
    if not t or not _is_date(day) or not _time(time):
        return False
    try:
        return parse_timestamp(text.upper()) is not None
    except EvalError:
        return True


FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", _limited(_LABEL, 63), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _limited(_SUBDOMAIN, 253), 60),
    "dns1035Label": Format("DNS1035Label", _limited(_LABEL_1035, 63), 30),
    "qualifiedName": Format("QualifiedName", _qualified_name_problems, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _limited(_LABEL, 63, prefix=True), 30),
    "dns1123SubdomainPrefix": Format(
        "DNS1123SubdomainPrefix", _limited(_SUBDOMAIN, 253, prefix=True), 60
    ),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _limited(_LABEL_1035, 63, prefix=True), 30),
    "labelValue": Format("LabelValue", _limited(_LABEL_VALUE, 63), 40),
    "uri": Format("URI", _uri_problems, 1120),
    "uuid": Format("uuid", _unless(_uuid, "does not match the UUID format"), 70),
    "byte": Format("byte", _unless(_base64, "invalid base64"), 84),
    "date": Format("date", _unless(_is_date, "invalid date"), 71),
    "datetime": Format("datetime", _unless(_is_datetime, "invalid datetime"), 71),
}


def _named(name: str) -> Optional:
    return optional_of(FORMATS[name]) if name in FORMATS else NONE


def _validate(format_: Format, text: str) -> Optional:
    problems = format_.problems(text)
    return optional_of(problems) if problems else NONE


def _constant(format_: Format) -> Callable[[], Format]:
    return lambda: format_


FUNCTIONS: Final = (
    function("format.named", overload("format-named", "(string) -> optional(format)", _named)),
    function(
        "validate",
        overload("format-validate", "format.(string) -> optional(list(string))", _validate),
    ),
    *(
        function(f"format.{name}", overload(f"format.{name}", "() -> format", _constant(format_)))
        for name, format_ in FORMATS.items()
    ),
)
