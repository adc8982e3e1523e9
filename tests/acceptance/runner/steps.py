"""The steps a scenario is told in: one verb each, and what belongs to it.

A reference is `[version:]resource[/name[/subresource]][@namespace]`; `@*` means all namespaces.
Steps are read anew each time they are performed, when their placeholders have values; the steps
inside others are kept as they are written until their turn comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from tests.acceptance.runner.expectations import ErrorExpectation
from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.placeholders import fill_in

RawStep: TypeAlias = dict[str, Json]
INNER_STEPS = ("steps", "parallel")
"""Where a step holds other steps."""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What every step may say."""

    name: str = ""
    retries: int = 0
    """How often it is tried again, half a second apart, before it counts as failed."""


class Asking(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A step that sends requests and judges the answers."""

    query: dict[str, Json] = {}
    headers: dict[str, str] = {}
    impersonate: str = msgspec.field(name="as", default="")
    code: int | None = None
    expect: list[dict[str, Json]] = []
    expect_error: ErrorExpectation | None = None
    save: dict[str, str] = {}
    """Variables, and the paths in the answer that their values come from."""


class Create(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One manifest, or a list of them."""

    create: Json


class Apply(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Server-side apply of one manifest, or a list of them."""

    apply: Json
    manager: str = "accept"
    force: bool = True
    subresource: str = ""


class Put(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    put: str
    body: Json


class Update(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Read, change at these paths, write back."""

    update: str
    set: dict[str, Json] = {}
    unset: list[str] = []


class Patch(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    patch: str
    body: Json
    type: Literal["merge", "json", "strategic", "apply"] = "merge"


class Delete(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One reference, or a list of them; that of a collection deletes all it selects."""

    delete: str | list[str]
    options: Json = None


class Get(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    get: str


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A body that is a string is sent as it is."""

    path: str
    method: str = "GET"
    body: Json = None
    content_type: str = "application/json"


class Raw(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    raw: Request
    expect_headers: list[dict[str, Json]] = []
    text_contains: list[str] = []


class Wait(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Until all expectations hold at once, or until it is gone."""

    wait: str
    query: dict[str, Json] = {}
    expect: list[dict[str, Json]] = []
    gone: bool = False
    timeout: float | None = None
    save: dict[str, str] = {}


class Hold(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The expectations hold all the time."""

    hold: str
    query: dict[str, Json] = {}
    expect: list[dict[str, Json]]
    seconds: float = msgspec.field(name="for", default=3)


class AwaitedEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    expect: list[dict[str, Json]] = []
    save: dict[str, str] = {}


class Watch(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Steps run while it is open; afterwards the awaited events must have come, in this order."""

    watch: str
    query: dict[str, Json] = {}
    headers: dict[str, str] = {}
    impersonate: str = msgspec.field(name="as", default="")
    until: list[AwaitedEvent] = []
    steps: list[RawStep] = []
    forbid_types: list[str] = []
    expect_error: ErrorExpectation | None = None
    settle: float = 0.3
    """Seconds between opening the watch and the first step."""
    timeout: float = 15


class KubectlCall(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    args: str | list[Json]
    namespace: bool = True
    """Whether it gets `-n` with the scenario's namespace."""
    stdin: Json = None
    """A string, or one or many manifests."""
    env: dict[str, Json] = {}
    retries: int = 0
    rc: int = 0
    stdout: list[str] = []
    stdout_not: list[str] = []
    stdout_re: list[str] = []
    stdout_eq: Json = None
    stderr: list[str] = []
    json: list[dict[str, Json]] = []
    """Expectations of standard output, read as JSON."""
    save_stdout: str = ""


class KubectlStep(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    kubectl: KubectlCall | str | list[Json]

    @property
    def call(self) -> KubectlCall:
        return (
            self.kubectl
            if isinstance(self.kubectl, KubectlCall)
            else KubectlCall(args=self.kubectl)
        )


class Sleep(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    sleep: float


class Assert(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Expectations of the variables."""

    expectations: list[dict[str, Json]] = msgspec.field(name="assert")


class Parallel(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """All at the same time."""

    parallel: list[RawStep]


class Repeat(Step, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """So many times, with `${i}` counting from 0."""

    repeat: int
    steps: list[RawStep]


STEP_BY_VERB: Mapping[str, type[Step]] = {
    "create": Create,
    "apply": Apply,
    "put": Put,
    "update": Update,
    "patch": Patch,
    "delete": Delete,
    "get": Get,
    "raw": Raw,
    "wait": Wait,
    "hold": Hold,
    "watch": Watch,
    "kubectl": KubectlStep,
    "sleep": Sleep,
    "assert": Assert,
    "parallel": Parallel,
    "repeat": Repeat,
}


def verb_of(raw: RawStep) -> str:
    verbs = [verb for verb in STEP_BY_VERB if verb in raw]
    if len(verbs) != 1:
        raise ValueError(f"a step needs exactly one verb: {sorted(raw)}")
    return verbs[0]


def read_step(raw: RawStep, variables: Mapping[str, Json]) -> Step:
    """The step with its placeholders filled in."""
    filled = {
        key: value if key in INNER_STEPS else fill_in(value, variables)
        for key, value in raw.items()
    }
    return msgspec.convert(filled, STEP_BY_VERB[verb_of(raw)])


def inner_steps(raw: RawStep) -> list[RawStep]:
    return [step for key in INNER_STEPS for step in raw.get(key, ())]
