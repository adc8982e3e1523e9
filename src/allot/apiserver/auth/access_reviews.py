"""Access and token reviews: SubjectAccessReview and its variants, SelfSubjectRulesReview, TokenReview.

They are created like objects and answered, but not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from allot.api.times import written_time
from allot.apiserver.api_errors import ApiError, bad_request, invalid
from allot.apiserver.auth.authentication import Authentication, Credentials, User
from allot.apiserver.auth.authorization import Attributes, Authorizer
from allot.apiserver.auth.node_authorizer import node_of
from allot.apiserver.auth.rbac.authorizer import Policies, listed
from allot.apiserver.auth.service_account_tokens import ISSUER
from allot.apiserver.pacing import SLOW, Workers
from allot.apiserver.selectors import SelectorError, parse_field_selector
from allot.validation.fields import FieldError, FieldPath, required
from allot.validation.fields import invalid as invalid_field

SPEC: Final = FieldPath("spec")
ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"

MAX_RULES: Final = 5_000
"""Rules in the answer to a SelfSubjectRulesReview; with more of them it is incomplete."""
NODES_HAVE_NO_RULES: Final = "node authorizer does not support user rule resolution"

Document = dict[str, Any]


class AccessReviews:
    """Answers reviews of all kinds."""

    def __init__(
        self,
        authorizer: Authorizer,
        policies: Policies,
        authentication: Authentication,
        clock: Callable[[], datetime],
        workers: Workers,
    ) -> None:
        self._authorizer = authorizer
        self._policies = policies
        self._authentication = authentication
        self._clock = clock
        self._workers = workers

    async def answer(
        self, kind: str, namespace: str, review: Document, user: User, size: int = 0
    ) -> Document:
        """The review with its status; 400 or 422 if it is invalid. `size` is that of the request's body."""
        review = await self._workers.run(size, lambda: _without_nulls(review))
        match kind:
            case "SelfSubjectReview":
                return self._self(review, user)
            case "TokenReview":
                return await self._token(review)
            case "SelfSubjectRulesReview":
                return self._rules(review, user)
            case "SelfSubjectAccessReview":
                return await self._access(review, list(_attribute_errors(review)), user, size)
            case "LocalSubjectAccessReview":
                review = {**review, "metadata": {"namespace": namespace}}
                errors = [*_subject_errors(review), *_local_errors(review, namespace)]
                return await self._access(review, errors, _reviewed_user(review), size)
            case _:
                errors = list(_subject_errors(review))
                return await self._access(review, errors, _reviewed_user(review), size)

    async def _access(
        self, review: Document, errors: list[FieldError], user: User, size: int
    ) -> Document:
        metadata = review.get("metadata") or {}
        if set(metadata) - {"namespace", "managedFields"}:
            errors.append(invalid_field(FieldPath("metadata"), metadata, "must be empty"))
        if errors:
            raise invalid("authorization.k8s.io", "", "", errors)
        attributes = await self._workers.run(size * SLOW, lambda: _attributes(review["spec"]))
        decision = self._authorizer.authorize(user, attributes)
        status: Document = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return _reviewed(review, status)

    def _rules(self, review: Document, user: User) -> Document:
        namespace = (review.get("spec") or {}).get("namespace")
        if not namespace:
            raise bad_request("no namespace on request")
        self._policies.catch_up()
        rules, missing = self._policies.index.rules_for(user, namespace, MAX_RULES + 1)
        is_cut = len(rules) + len(missing) > MAX_RULES
        rules = rules[:MAX_RULES]
        status: Document = {
            "resourceRules": [rule.to_document() for rule in rules if rule.resources],
            "nonResourceRules": [rule.to_document() for rule in rules if rule.non_resource_urls],
            "incomplete": is_cut,
        }
        if node_of(user) is not None:
            status |= {"incomplete": True, "evaluationError": NODES_HAVE_NO_RULES}
        elif is_cut:
            status["evaluationError"] = f"the user has more than {MAX_RULES} rules"
        elif missing:
            status["evaluationError"] = listed([role.not_found for role in missing])
        return {**_reviewed(review, status), "spec": {}}

    def _self(self, review: Document, user: User) -> Document:
        metadata = {"creationTimestamp": written_time(self._clock())}
        return {**_reviewed(review, {"userInfo": user_info(user)}), "metadata": metadata}

    async def _token(self, review: Document) -> Document:
        spec = review.get("spec") or {}
        token = spec.get("token")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        wanted = tuple(spec.get("audiences") or ())
        audiences = [each for each in wanted or (ISSUER,) if each == ISSUER]
        user: User | None = None
        if audiences:
            try:
                user = await self._authentication.user_for(Credentials(token))
            except ApiError as error:
                if error.code != 401:
                    raise
        if user is None:
            return _reviewed(review, {"user": {}, "error": "invalid bearer token"})
        status = {"authenticated": True, "user": user_info(user), "audiences": audiences}
        return _reviewed(review, status)


def _without_nulls(value: Any) -> Any:
    """The document without null values: a field that is null is not set."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value


def user_info(user: User) -> Document:
    """A user as reviews and audit events show it."""
    shown: Document = {"username": user.name} if user.name else {}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown


def _reviewed(review: Document, status: Document) -> Document:
    """The review with its fields in the usual order."""
    shown: Document = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
    shown["metadata"] = review.get("metadata") or {}
    if "spec" in review:
        shown["spec"] = review["spec"]
    return {**shown, "status": status}


def _reviewed_user(review: Document) -> User:
    spec = review.get("spec") or {}
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(spec.get("user") or "", spec.get("uid") or "", groups, extra)


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    asked = spec.get("resourceAttributes")
    if asked is None:
        asked = spec["nonResourceAttributes"]
        return Attributes(asked.get("verb", ""), asked.get("path", ""))
    resource, part = asked.get("resource", ""), asked.get("subresource", "")
    return Attributes(
        asked.get("verb", ""),
        "",
        asked.get("group", ""),
        f"{resource}/{part}" if part else resource or "*",
        asked.get("namespace", ""),
        asked.get("name", ""),
        tuple(_field_values(asked.get("fieldSelector") or {})),
    )


def _field_values(selector: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The values that a field selector requires. An invalid requirement is ignored."""
    if raw := selector.get("rawSelector"):
        try:
            yield from parse_field_selector(raw).values
        except SelectorError:
            return
    for requirement in selector.get("requirements") or ():
        values: list[str] = requirement.get("values") or []
        if requirement.get("operator") == "In" and len(values) == 1:
            yield requirement.get("key", ""), values[0]


# --- validation ---


def _subject_errors(review: Document) -> Iterator[FieldError]:
    spec = review.get("spec") or {}
    yield from _attribute_errors(review)
    if not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        yield invalid_field(SPEC / "user", spec.get("user") or "", detail)


def _attribute_errors(review: Document) -> Iterator[FieldError]:
    spec = review.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (other is None):
        yield invalid_field(SPEC, None if other is None else _path_value(other), ONE_OF)
    if resource is not None:
        for name in ("fieldSelector", "labelSelector"):
            if resource.get(name) is not None:
                yield from _selector_errors(resource[name], SPEC / "resourceAttributes" / name)


def _selector_errors(selector: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        yield invalid_field(path / "rawSelector", raw, detail)
    elif not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        yield required(path / "requirements", detail)


def _local_errors(review: Document, namespace: str) -> Iterator[FieldError]:
    spec = review.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if other is not None:
        path = SPEC / "nonResourceAttributes"
        yield invalid_field(path, _path_value(other), "disallowed on this kind of request")
    elif resource is not None and resource.get("namespace", "") != namespace:
        path = SPEC / "resourceAttributes" / "namespace"
        yield invalid_field(path, resource.get("namespace", ""), "must match metadata.namespace")


def _path_value(attributes: Mapping[str, Any]) -> Document:
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}
