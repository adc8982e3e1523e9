"""Names and other strings with a format: every function returns the problems of one.

Lengths count bytes. Messages say "characters" or "bytes" as the family of the rule does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from allot.validation.accepted import Accepted

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
LABEL_KEY_LENGTH: Final = SUBDOMAIN_LENGTH + 1 + LABEL_LENGTH

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME})?"
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"

is_label: Final = re.compile("[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?").fullmatch
"""Whether a string is a DNS label, also by its length: a match, or None."""
is_subdomain: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
).fullmatch
"""The same for a DNS subdomain."""
_is_label: Final = re.compile(_LABEL).fullmatch
_is_dns_1035_label: Final = re.compile(_DNS_1035_LABEL).fullmatch
_is_subdomain: Final = re.compile(_SUBDOMAIN).fullmatch
_is_c_identifier: Final = re.compile(_C_IDENTIFIER).fullmatch
_is_name: Final = re.compile(_NAME).fullmatch
_is_label_value: Final = re.compile(_LABEL_VALUE).fullmatch
_is_reason: Final = re.compile(_REASON).fullmatch
_is_uuid: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def _expected(rule: str, examples: list[str], pattern: str) -> str:
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{rule} (e.g. {shown}, regex used for validation is '{pattern}')"


LABEL_RULE: Final = _expected(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    ["my-name", "123-abc"],
    _LABEL,
)
DNS_1035_LABEL_RULE: Final = _expected(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    ["my-name", "abc-123"],
    _DNS_1035_LABEL,
)
SUBDOMAIN_RULE: Final = _expected(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    ["example.com"],
    _SUBDOMAIN,
)
CASELESS_SUBDOMAIN_RULE: Final = _expected(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    ["Example.com"],
    _SUBDOMAIN,
)
C_IDENTIFIER_RULE: Final = _expected(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    ["my_name", "MY_NAME", "MyName"],
    _C_IDENTIFIER,
)
_NAME_RULE: Final = _expected(
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    ["MyName", "my.name", "123-abc"],
    _NAME,
)
LABEL_VALUE_RULE: Final = _expected(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    ["MyValue", "my_value", "12345"],
    _LABEL_VALUE,
)
REASON_RULE: Final = _expected(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
    _REASON,
)
LABEL_KEY_RULE: Final = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
MUST_NOT_BE_EMPTY: Final = "must be non-empty"


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def label_problems(text: str, unit: str = "characters") -> list[str]:
    """A DNS label, such as the name of a request or a device."""
    if is_label(text):
        return []
    problems = []
    if byte_length(text) > LABEL_LENGTH:
        problems.append(f"must be no more than {LABEL_LENGTH} {unit}")
    if not _is_label(text):
        problems.append("must not contain dots" if _is_subdomain(text) else LABEL_RULE)
    return problems


def dns_1035_label_problems(text: str) -> list[str]:
    """A DNS label that begins with a letter, such as an API version."""
    problems = []
    if byte_length(text) > LABEL_LENGTH:
        problems.append(f"must be no more than {LABEL_LENGTH} characters")
    if not _is_dns_1035_label(text):
        problems.append(DNS_1035_LABEL_RULE)
    return problems


def subdomain_problems(text: str, unit: str = "characters") -> list[str]:
    """A DNS subdomain: labels joined by dots, as in most object names."""
    if is_subdomain(text):
        return []
    problems = []
    if byte_length(text) > SUBDOMAIN_LENGTH:
        problems.append(f"must be no more than {SUBDOMAIN_LENGTH} {unit}")
    if not _is_subdomain(text):
        problems.append(SUBDOMAIN_RULE)
    return problems


def caseless_subdomain_problems(text: str) -> list[str]:
    """A DNS subdomain that may have upper case."""
    problems = []
    if byte_length(text) > SUBDOMAIN_LENGTH:
        problems.append(f"must be no more than {SUBDOMAIN_LENGTH} bytes")
    if not _is_subdomain(text.lower()) or not text.isascii():
        problems.append(CASELESS_SUBDOMAIN_RULE)
    return problems


def is_c_identifier(text: str) -> bool:
    return _is_c_identifier(text) is not None


def label_key_problems(text: str) -> list[str]:
    """A label key: a name, optionally behind a DNS subdomain and a slash."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [LABEL_KEY_RULE]
    problems = []
    if slash:
        if not prefix:
            problems.append(f"prefix part {MUST_NOT_BE_EMPTY}")
        else:
            problems += [f"prefix part {why}" for why in subdomain_problems(prefix, "bytes")]
    if not name:
        problems.append(f"name part {MUST_NOT_BE_EMPTY}")
    elif byte_length(name) > LABEL_LENGTH:
        problems.append(f"name part must be no more than {LABEL_LENGTH} bytes")
    if not _is_name(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(text: str) -> list[str]:
    problems = []
    if byte_length(text) > LABEL_LENGTH:
        problems.append(f"must be no more than {LABEL_LENGTH} bytes")
    if not _is_label_value(text):
        problems.append(LABEL_VALUE_RULE)
    return problems


def _is_label_pair(key: str, value: str) -> bool:
    return not label_key_problems(key) and not label_value_problems(value)


def _is_annotation_key(key: str) -> bool:
    return not label_key_problems(key.lower())


_LABELS: Final = Accepted[tuple[str, str]](_is_label_pair, LABEL_KEY_LENGTH + LABEL_LENGTH)
_ANNOTATION_KEYS: Final = Accepted[str](_is_annotation_key, LABEL_KEY_LENGTH)


def are_labels(labels: Mapping[str, str]) -> bool:
    """Whether all keys and values are right."""
    pairs = labels.items()
    return pairs <= _LABELS or all(pair in _LABELS or _LABELS.accepts(*pair) for pair in pairs)


def are_annotation_keys(annotations: Mapping[str, str]) -> bool:
    """Whether all are names of annotations, in which case does not matter."""
    keys = annotations.keys()
    return keys <= _ANNOTATION_KEYS or all(
        key in _ANNOTATION_KEYS or _ANNOTATION_KEYS.accepts(key) for key in keys
    )


def is_condition_reason(text: str) -> bool:
    return _is_reason(text) is not None


def is_share_id(text: str) -> bool:
    return _is_uuid(text) is not None


def generated_name_problems(prefix: str) -> list[str]:
    """The problems of a `generateName`; it may end in a dash."""
    return subdomain_problems(prefix[:-2] + "a" if prefix[-1:] == "-" else prefix)


def shorten_key(key: str, limit: int) -> str:
    """A map key for a field path; long ones lose their middle."""
    data = key.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return key
    half = (limit - 3) // 2
    head = data[: limit - 3 - half].decode("utf-8", "ignore")
    return f"{head}...{data[-half:].decode('utf-8', 'ignore')}"
