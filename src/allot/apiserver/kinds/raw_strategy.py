"""The strategy of raw kinds: one class, configured by rules.

The rules of a kind say how its name is validated, what its status starts as, which changes count as a new generation,
and what else is validated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from allot.api.base import replace
from allot.api.kinds import Kind
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import StatusStrategy
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import FieldError
from allot.validation.formats import is_label, subdomain_problems
from allot.validation.metadata import validate_metadata, validate_metadata_update
from allot.validation.pod_warnings import label_name_warning

Rule = Callable[[RawObject], Iterator[FieldError]]
UpdateRule = Callable[[RawObject, RawObject], Iterator[FieldError]]
Path = tuple[str, ...]


def _nothing(_: RawObject) -> list[str]:
    return []


def _written_metadata(new: ObjectMeta, _: ObjectMeta) -> ObjectMeta:
    return new


def with_stored_labels(new: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    return replace(new, labels=old.labels)


class Generation(NamedTuple):
    """A count of the changes at these paths."""

    paths: tuple[Path, ...] = (("spec",),)
    first: int = 1


COUNTED: Final = Generation()


class KindRules(NamedTuple):
    """What is special about a kind."""

    name_problems: Callable[[str], list[str]] = subdomain_problems
    validate: Rule | None = None
    """Of a new object, and of an updated one."""
    validate_change: UpdateRule | None = None
    status: Mapping[str, Any] | None = None
    """What the status of a new object is; None if the kind has no status of its own."""
    status_metadata: Callable[[ObjectMeta, ObjectMeta], ObjectMeta] = _written_metadata
    """The metadata after a status update, of what was sent and what is stored."""
    generation: Generation | None = None
    needs_resource_version: bool = False
    """Whether an update has to say which version it is based on."""
    warnings: Callable[[RawObject], list[str]] = _nothing
    """About an object that is accepted."""
    name_is_used_in: str = ""
    """Where the name has to be a DNS label, to be warned about if it is none."""


class RawStrategy(StatusStrategy[RawObject]):
    """The steps of a write that differ between kinds. All of them are pure.

    The write pipeline sets names, uids, times and namespaces before or after these steps.
    """

    def __init__(self, rules: KindRules, kind: Kind) -> None:
        super().__init__(kind)
        self.rules = rules

    def warnings(self, new: RawObject) -> list[str]:
        used_in, name = self.rules.name_is_used_in, new.metadata.name
        if used_in and not is_label(name):
            return [label_name_warning(name, used_in), *self.rules.warnings(new)]
        return self.rules.warnings(new)

    def update_warnings(self, new: RawObject) -> list[str]:
        return self.rules.warnings(new)

    # --- create ---

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        """`new` with the initial status and the first generation."""
        if self.rules.status is not None:
            new = new.with_value(dict(self.rules.status), "status")
        if self.rules.generation is not None:
            new = new.with_metadata(replace(new.metadata, generation=self.rules.generation.first))
        return new

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        rules = self.rules
        of_metadata = validate_metadata(
            new.metadata,
            namespaced=self.kind.namespaced,
            check_generate_name=rules.name_problems is not path_segment_problems,
            name_problems=rules.name_problems,
        )
        return of_metadata if rules.validate is None else chain(of_metadata, rules.validate(new))

    # --- update ---

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        """`new` with the stored status, and a new generation if counted fields changed."""
        if self.rules.status is not None:
            new = new.with_value(old.get("status"), "status")
        return self._with_generation(new, old)

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from self._validate_metadata_update(new, old)
        if self.rules.validate is not None:
            yield from self.rules.validate(new)
        if self.rules.validate_change is not None:
            yield from self.rules.validate_change(new, old)

    # --- status ---

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        """`new` with everything but the status taken from `old`."""
        metadata = self.rules.status_metadata(new.metadata, old.metadata)
        kept = {name: value for name, value in old.data.items() if name != "status"}
        kept |= {"metadata": new.get("metadata", default={})}
        # Zeros of a new object are in every status. Others, such as a phase, are not given a second time.
        zeros = {name: value for name, value in (self.rules.status or {}).items() if not value}
        whole = type(new)(kept | {"status": zeros | new.get("status", default={})})
        return whole.with_metadata(metadata)

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from self._validate_metadata_update(new, old)

    # --- the rest ---

    def accepts_unconditional_update(self, version: str) -> bool:
        """Whether an update may come without a resourceVersion."""
        return not self.rules.needs_resource_version

    def with_metadata(self, obj: RawObject, metadata: ObjectMeta) -> RawObject:
        return obj.with_metadata(metadata)

    def as_listed(self, errors: list[FieldError], request: WriteRequest) -> list[FieldError]:
        return errors

    def _validate_metadata_update(self, new: RawObject, old: RawObject) -> Iterator[FieldError]:
        yield from validate_metadata_update(new.metadata, old.metadata)

    def _with_generation(self, new: RawObject, old: RawObject) -> RawObject:
        generation = self.rules.generation
        if generation is None:
            return new
        changed = any(new.get(*path) != old.get(*path) for path in generation.paths)
        count = old.metadata.generation + changed
        return new.with_metadata(replace(new.metadata, generation=count))
