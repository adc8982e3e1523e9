"""ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from allot.api.raw import RawObject
from allot.validation.admission_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    validate_choice,
    validate_match_conditions,
    validate_rule,
)
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import dns_1035_label_problems, subdomain_problems
from allot.validation.label_selector import validate_label_selector
from allot.validation.parts import Part, part, parts, text, texts

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""The versions of AdmissionReview that the server speaks."""
SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
ALL_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
MAX_TIMEOUT_SECONDS: Final = 30

_WEBHOOKS: Final = FieldPath("webhooks")
_URL_FORMAT: Final = "; desired format: https://host[/path]"


def validate_webhooks(
    configuration: RawObject, old: RawObject | None = None
) -> Iterator[FieldError]:
    """`old` is the stored configuration of an update: what it may do wrong, the new one may, too."""
    hooks = _hooks(configuration)
    stored = _hooks(old) if old is not None else []
    rules = _Leniency(stored, hooks, is_update=old is not None)
    seen: set[str] = set()
    for index, hook in enumerate(hooks):
        path = _WEBHOOKS @ index
        yield from _validate_webhook(hook, path, rules)
        yield from _validate_review_versions(hook, path / "admissionReviewVersions", rules)
        name = text(hook, "name")
        if name and rules.unique_names:
            if name in seen:
                yield duplicate(path / "name", name)
            seen.add(name)


def _hooks(configuration: RawObject) -> list[Part]:
    return parts({"webhooks": configuration.get("webhooks", default=[])}, "webhooks")


class _Leniency:
    """What an update need not fulfil because the stored configuration does not."""

    def __init__(self, stored: list[Part], hooks: list[Part], *, is_update: bool) -> None:
        names = [text(hook, "name") for hook in stored]
        self.unique_names = len(set(names)) == len(names)
        self.known_versions = all(
            not texts(hook, "admissionReviewVersions")
            or not set(REVIEW_VERSIONS).isdisjoint(texts(hook, "admissionReviewVersions"))
            for hook in stored
        )
        harmless = all(hook.get("sideEffects") in SIDE_EFFECTS for hook in stored)
        self.side_effects = SIDE_EFFECTS if harmless else ALL_SIDE_EFFECTS
        self.skips_conditions = (
            is_update
            and len(stored) == len(hooks)
            and all(
                new.get("matchConditions") == old.get("matchConditions")
                for new, old in zip(hooks, stored, strict=True)
            )
        )


def _validate_webhook(hook: Part, path: FieldPath, rules: _Leniency) -> Iterator[FieldError]:
    yield from _validate_name(text(hook, "name"), path / "name")
    for index, rule in enumerate(parts(hook, "rules")):
        yield from validate_rule(rule, path / "rules" @ index)
    yield from validate_choice(hook, "failurePolicy", path, FAILURE_POLICIES, FAILURE_POLICIES)
    yield from validate_choice(hook, "matchPolicy", path, MATCH_POLICIES, MATCH_POLICIES)
    effects = hook.get("sideEffects")
    if effects is None:
        listed = ", ".join(rules.side_effects)
        yield required(path / "sideEffects", f"must specify one of {listed}")
    elif effects not in rules.side_effects:
        yield not_supported(path / "sideEffects", effects, rules.side_effects)
    seconds = hook.get("timeoutSeconds")
    if isinstance(seconds, int) and not 1 <= seconds <= MAX_TIMEOUT_SECONDS:
        problem = f"the timeout value must be between 1 and {MAX_TIMEOUT_SECONDS} seconds"
        yield invalid(path / "timeoutSeconds", seconds, problem)
    for name in ("namespaceSelector", "objectSelector"):
        yield from validate_label_selector(hook.get(name) or {}, path / name)
    yield from validate_choice(
        hook, "reinvocationPolicy", path, REINVOCATION_POLICIES, REINVOCATION_POLICIES
    )
    yield from _validate_client(part(hook, "clientConfig"), path / "clientConfig")
    if not rules.skips_conditions:
        conditions = parts(hook, "matchConditions")
        place = path / "matchConditions"
        yield from validate_match_conditions(conditions, place, has_params=False)


def _validate_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    problems = subdomain_problems(name)
    if problems:
        yield invalid(path, name, ",".join(problems))
    elif name.count(".") < 2:
        problem = "should be a domain with at least three segments separated by dots"
        yield invalid(path, name, problem)


def _validate_review_versions(
    hook: Part, path: FieldPath, rules: _Leniency
) -> Iterator[FieldError]:
    versions, known = texts(hook, "admissionReviewVersions"), ", ".join(REVIEW_VERSIONS)
    if not versions:
        yield required(path, f"must specify one of {known}")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(path @ index, version, "duplicate version")
            continue
        seen.add(version)
        for problem in dns_1035_label_problems(version):
            yield invalid(path @ index, version, problem)
    if rules.known_versions and seen.isdisjoint(REVIEW_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {known}")


# --- where the webhook is ---


def _validate_client(client: Part, path: FieldPath) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from validate_webhook_url(url, path / "url")
    else:
        yield from _validate_service(service, path / "service")


def validate_webhook_url(url: str, path: FieldPath) -> Iterator[FieldError]:
    problem = _parse_problem(url)
    if problem:
        parsing = f'url must be a valid URL: parse "{url}": {problem}'
        yield required(path, parsing + _URL_FORMAT)
        return
    parsed = urlsplit(url)
    user, _, _ = parsed.netloc.rpartition("@")
    if parsed.scheme != "https":
        allowed = "'https' is the only allowed URL scheme"
        yield invalid(path, parsed.scheme, allowed + _URL_FORMAT)
    if not parsed.netloc:
        yield invalid(path, "", "host must be specified" + _URL_FORMAT)
    if user:
        yield invalid(path, user, "user information is not permitted in the URL")
    if parsed.fragment:
        yield invalid(path, parsed.fragment, "fragments are not permitted in the URL")
    if parsed.query:
        yield invalid(path, parsed.query, "query parameters are not permitted in the URL")


def _parse_problem(url: str) -> str:
    """Why it is not a URL."""
    start = url.find("%")
    while start >= 0:
        escape = url[start : start + 3]
        if len(escape) < 3 or any(digit not in "0123456789abcdefABCDEF" for digit in escape[1:]):
            return f'invalid URL escape "{escape}"'
        start = url.find("%", start + 1)
    if any(ord(character) < 32 or ord(character) == 127 for character in url):
        return "net/url: invalid control character in URL"
    try:
        parsed = urlsplit(url)
        _ = parsed.port
    except ValueError as error:
        return str(error)
    return ""


def _validate_service(service: Any, path: FieldPath) -> Iterator[FieldError]:
    for name in ("name", "namespace"):
        if not text(service, name):
            yield required(path / name)
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= 65535:
        problem = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid(path / "port", port, problem)
    if service.get("path") is not None:
        yield from validate_service_path(service["path"], path / "path")


def validate_service_path(url_path: str, path: FieldPath) -> Iterator[FieldError]:
    if url_path == "/":
        return
    if not url_path.startswith("/"):
        yield invalid(path, url_path, "must start with a '/'")
    # As in Kubernetes the first character is left out, whatever it is.
    segments = url_path[1:].removesuffix("/").split("/")
    for index, segment in enumerate(segments):
        if not segment:
            yield invalid(path, url_path, f"segment[{index}] may not be empty")
            continue
        for problem in subdomain_problems(segment):
            yield invalid(path, url_path, f"segment[{index}]: {problem}")
