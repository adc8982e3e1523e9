"""Names that follow rules of their own: URL segments, keys of config data, the names of cron jobs."""

from __future__ import annotations

import re
from typing import Final

from allot.validation.formats import SUBDOMAIN_LENGTH, byte_length, subdomain_problems

MAX_CRON_JOB_NAME: Final = 52
"""The name of its jobs has a dash and the time appended, and at most 63 characters."""

_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_is_config_key: Final = re.compile(_CONFIG_KEY).fullmatch
CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def path_segment_problems(name: str) -> list[str]:
    """Anything that can be one segment of a URL, such as the name of a role."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def cron_job_name_problems(name: str) -> list[str]:
    problems = subdomain_problems(name)
    if byte_length(name) > MAX_CRON_JOB_NAME:
        problems.append(f"must be no more than {MAX_CRON_JOB_NAME} characters")
    return problems


def config_key_problems(key: str) -> list[str]:
    """A key of a ConfigMap or Secret, which may become the name of a file."""
    problems = []
    if byte_length(key) > SUBDOMAIN_LENGTH:
        problems.append(f"must be no more than {SUBDOMAIN_LENGTH} characters")
    if not _is_config_key(key):
        problems.append(CONFIG_KEY_RULE)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems
