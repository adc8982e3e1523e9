"""Lint rules: mistakes that the API server accepts, and what lint says about each."""

from __future__ import annotations

import pytest

from allot.lint.findings import Severity
from allot.lint.known_objects import KnownObjects
from allot.lint.manifests import Manifest, parse_manifests
from allot.lint.subjects import subject_of
from tests.unit.lint.worlds import CLASSES, SLICES, claim_yaml, findings, indented, one_request

ERROR, WARNING = Severity.ERROR, Severity.WARNING
REQUEST = "spec.devices.requests[0].exactly"

MODEL = 'device.attributes["gpu.example.com"]'


def selector(expression: str) -> str:
    return f"selectors:\n- cel:\n    expression: {expression}\n"


def two_requests(gpu: str, nic: str, constraint: str) -> str:
    return claim_yaml(
        "requests:\n- name: gpu\n  exactly:\n    deviceClassName: gpu.example.com\n"
        + indented(gpu, 4)
        + "- name: nic\n  exactly:\n    deviceClassName: nic.example.com\n"
        + indented(nic, 4)
        + f"constraints:\n- {constraint}\n"
    )


def derived(expression: str, name: str = "numa") -> str:
    return f"derivedAttributes:\n- name: {name}\n  expression: {expression}\n"


def alternatives(*texts: str) -> str:
    listed = "".join(f"  - {indented(text, 4).lstrip()}" for text in texts)
    return claim_yaml(f"requests:\n- name: r\n  firstAvailable:\n{listed}")


def alternative(name: str, fields: str = "", class_: str = "gpu.example.com") -> str:
    return f"name: {name}\ndeviceClassName: {class_}\n{fields}"


def nic_capacity(name: str, amount: str) -> str:
    return claim_yaml(
        "requests:\n- name: r\n  exactly:\n    deviceClassName: nic.example.com\n"
        f"    capacity: {{requests: {{{name}: {amount}}}}}\n"
    )


def slice_yaml(capacity: str) -> str:
    return (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n"
        "  driver: d.example.com\n  allNodes: true\n"
        "  pool: {name: p, generation: 1, resourceSliceCount: 1}\n"
        f"  devices: [{{name: d, allowMultipleAllocations: true, capacity: {{m: {capacity}}}}}]\n"
    )


MEMORY = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("{}")) >= 0'

CASES = [
    pytest.param(
        one_request("").replace("gpu.example.com", "gup.example.com"),
        "missing-class",
        ERROR,
        f"{REQUEST}.deviceClassName",
        'did you mean "gpu.example.com"?',
        id="class-typo",
    ),
    pytest.param(
        one_request("").replace("gpu.example.com", "fpga.example.com"),
        "missing-class",
        WARNING,
        f"{REQUEST}.deviceClassName",
        "available: gpu.example.com, nic.example.com",
        id="class-that-may-be-elsewhere",
    ),
    pytest.param(
        alternatives(alternative("a", class_="fpga.example.com"), alternative("b")),
        "missing-alternative-class",
        WARNING,
        "spec.devices.requests[0].firstAvailable[0].deviceClassName",
        "allot skips this alternative; kube-scheduler v1.38 leaves the pod pending",
        id="class-of-an-alternative",
    ),
    pytest.param(
        one_request("count: 33"),
        "too-many-devices",
        WARNING,
        f"{REQUEST}.count",
        "asks for 33 devices, and a claim gets at most 32",
        id="count-above-the-limit",
    ),
    pytest.param(
        one_request("count: 3"),
        "not-enough-devices",
        WARNING,
        f"{REQUEST}.count",
        "asks for 3 devices, and at most 2 of those in these files match on one node, on node server-1",
        id="count-above-what-exists",
    ),
    pytest.param(
        one_request(selector(MEMORY.format("50Gi")) + "count: 2"),
        "not-enough-devices",
        WARNING,
        f"{REQUEST}.count",
        "at most 1",
        id="count-above-what-selectors-leave",
    ),
    pytest.param(
        alternatives(alternative("any"), alternative("big", selector(MEMORY.format("80Gi")))),
        "unreachable-alternative",
        WARNING,
        "spec.devices.requests[0].firstAvailable[1]",
        '"big" is never used: "any" comes first and accepts every device that it accepts',
        id="unreachable-narrower",
    ),
    pytest.param(
        alternatives(alternative("one"), alternative("two", "count: 2\n")),
        "unreachable-alternative",
        WARNING,
        "spec.devices.requests[0].firstAvailable[1]",
        '"two" is never used',
        id="unreachable-larger-count",
    ),
    pytest.param(
        alternatives(
            alternative("small", selector(MEMORY.format("40Gi"))),
            alternative("big", selector(MEMORY.format("80Gi"))),
        ),
        "unreachable-alternative",
        WARNING,
        "spec.devices.requests[0].firstAvailable[1]",
        "accepts every device in these files that it accepts",
        id="unreachable-on-these-devices",
    ),
    pytest.param(
        one_request(selector(f"{MODEL}.fast")),
        "selector-error",
        WARNING,
        f"{REQUEST}.selectors[0].cel.expression",
        "fails on 1 device (gpu.example.com/server-1/gpu-1): no such key: fast",
        id="selector-fails-on-some-devices",
    ),
    pytest.param(
        one_request(selector(f"{MODEL}.model > 3")),
        "selector-error",
        WARNING,
        f"{REQUEST}.selectors[0].cel.expression",
        "no such overload. The scheduler stops there and the pod stays pending; correct the expression",
        id="selector-compares-types",
    ),
    pytest.param(
        one_request(selector(f'{MODEL}.model == "B200"')),
        "selector-never",
        WARNING,
        f"{REQUEST}.selectors[0].cel.expression",
        'true for none of the 2 devices of class gpu.example.com in these files. Their values: gpu.example.com/model: "A100", "H100"',
        id="selector-true-for-no-device",
    ),
    pytest.param(
        one_request(selector(f'{MODEL}.modle == "A100"')),
        "unknown-attribute",
        WARNING,
        f"{REQUEST}.selectors[0].cel.expression",
        'no device in these files has the attribute "gpu.example.com/modle"; did you mean "gpu.example.com/model"?',
        id="attribute-typo-in-a-selector",
    ),
    pytest.param(
        CLASSES.replace('device.driver == "nic.example.com"', "'device.attributes[\"nic.example.com\"].rail == 7'"),
        "selector-error",
        WARNING,
        "spec.selectors[0].cel.expression",
        "fails on 2 devices (gpu.example.com/server-1/gpu-0, gpu.example.com/server-1/gpu-1)",
        id="class-without-a-driver",
    ),
    pytest.param(
        one_request("", "constraints:\n- matchAttribute: gpu.example.com/numaNodee\n"),
        "constraint-attribute",
        WARNING,
        "spec.devices.constraints[0].matchAttribute",
        'has the attribute "gpu.example.com/numaNodee"; did you mean "gpu.example.com/numaNode"?',
        id="constraint-on-an-attribute-no-device-has",
    ),
    pytest.param(
        one_request("count: 2", "constraints:\n- distinctAttribute: gpu.example.com/zone\n"),
        "constraint-attribute",
        WARNING,
        "spec.devices.constraints[0].distinctAttribute",
        'none of the devices of r in these files has the attribute "gpu.example.com/zone"',
        id="distinct-on-an-attribute-no-device-has",
    ),
    pytest.param(
        two_requests("", "", "matchAttribute: gpu.example.com/numaNode"),
        "constraint-attribute",
        WARNING,
        "spec.devices.constraints[0].matchAttribute",
        "none of the devices of nic",
        id="attribute-of-the-other-driver",
    ),
    pytest.param(
        two_requests(
            derived("'device.attributes[\"gpu.example.com\"].numaNode'"),
            derived("'device.attributes[\"nic.example.com\"].numa'"),
            "matchAttribute: numa",
        ),
        "constraint-types",
        WARNING,
        "spec.devices.constraints[0].matchAttribute",
        'gpu has int (0 on gpu-0) and nic has string ("0" on eth0)',
        id="derived-types-differ-on-devices",
    ),
    pytest.param(
        two_requests(
            derived("'device.attributes[\"gpu.example.com\"].numaNode'", "node"),
            "",
            "matchAttribute: node",
        ),
        "one-sided-derivation",
        WARNING,
        "spec.devices.constraints[0].matchAttribute",
        '"node" is derived by gpu, but not by nic',
        id="only-one-side-derives",
    ),
    pytest.param(
        two_requests(
            derived("'device.attributes[\"gpu.example.com\"].numaNode'"),
            derived("'device.attributes[\"nic.example.com\"].rail'"),
            "matchAttribute: numa",
        ),
        "constraint-values",
        WARNING,
        "spec.devices.constraints[0].matchAttribute",
        "no devices in these files match: gpu has 0, 1 and nic has 7",
        id="nothing-in-common",
    ),
    pytest.param(
        claim_yaml(
            "requests:\n- name: a\n  exactly: {deviceClassName: gpu.example.com, count: 2}\n"
            "- name: b\n  exactly: {deviceClassName: gpu.example.com}\n"
            "constraints:\n- distinctAttribute: gpu.example.com/numaNode\n"
        ),
        "constraint-values",
        WARNING,
        "spec.devices.constraints[0].distinctAttribute",
        "needs 3 different values of gpu.example.com/numaNode, and the devices in these files have 2: 0, 1",
        id="fewer-values-than-devices",
    ),
    pytest.param(
        one_request(
            "count: 2",
            "constraints:\n- matchAttribute: gpu.example.com/numaNode\n"
            "- distinctAttribute: gpu.example.com/numaNode\n",
        ),
        "match-and-distinct",
        WARNING,
        "spec.devices.constraints[1].distinctAttribute",
        "must match and be distinct for the 2 devices of r",
        id="match-and-distinct-of-one-attribute",
    ),
    pytest.param(
        one_request("tolerations: [{key: example.com/brokn, operator: Exists}]"),
        "unknown-taint",
        WARNING,
        f"{REQUEST}.tolerations[0].key",
        'did you mean "example.com/broken"?',
        id="toleration-of-no-taint",
    ),
    pytest.param(
        nic_capacity("nic.example.com/bandwidth", "1Gi"),
        "capacity-name",
        WARNING,
        f"{REQUEST}.capacity.requests[nic.example.com/bandwidth]",
        'publish this capacity as "bandwidth", not as "nic.example.com/bandwidth"',
        id="capacity-with-a-domain",
    ),
    pytest.param(
        nic_capacity("bandwith", "1Gi"),
        "capacity-name",
        WARNING,
        f"{REQUEST}.capacity.requests[bandwith]",
        'did you mean "bandwidth"?',
        id="capacity-typo",
    ),
    pytest.param(
        nic_capacity("bandwidth", "6Gi"),
        "capacity-request",
        WARNING,
        f"{REQUEST}.capacity.requests[bandwidth]",
        "no device in these files provides 6Gi: nic.example.com/server-1/eth0: the maximum of its request policy is 5Gi",
        id="above-the-policys-maximum",
    ),
    pytest.param(
        nic_capacity("queues", "9"),
        "capacity-request",
        WARNING,
        f"{REQUEST}.capacity.requests[queues]",
        "the valid values of its request policy are 2, 4, 8",
        id="above-all-valid-values",
    ),
    pytest.param(
        one_request("capacity: {requests: {memory: 100Gi}}"),
        "capacity-request",
        WARNING,
        f"{REQUEST}.capacity.requests[memory]",
        "gpu-0: it has 40Gi, and 1 more device does not",
        id="above-the-capacity",
    ),
    pytest.param(
        one_request("capacity: {requests: {memory: -1Gi}}"),
        "capacity-request",
        WARNING,
        f"{REQUEST}.capacity.requests[memory]",
        "-1Gi is negative",
        id="negative-amount",
    ),
    pytest.param(
        nic_capacity("share", "250m"),
        "capacity-rounding",
        WARNING,
        f"{REQUEST}.capacity.requests[share]",
        "consumes 300m with DRAFractionalCapacityRange (on by default in allot), and 1 without it",
        id="rounded-differently-elsewhere",
    ),
    pytest.param(
        slice_yaml("{value: 10, requestPolicy: {default: 1, validRange: {min: -1}}}"),
        "negative-minimum",
        WARNING,
        "spec.devices[0].capacity[m].requestPolicy.validRange.min",
        "the minimum -1 is negative",
        id="negative-minimum",
    ),
    pytest.param(
        slice_yaml("{value: 10, requestPolicy: {default: 20}}"),
        "default-above-value",
        WARNING,
        "spec.devices[0].capacity[m].requestPolicy.default",
        "the default 20 is more than the capacity 10",
        id="default-above-the-value",
    ),
    pytest.param(
        slice_yaml("{value: -10}"),
        "negative-capacity",
        WARNING,
        "spec.devices[0].capacity[m].value",
        "the capacity m of d is -10",
        id="negative-capacity",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "severity", "field", "message"), CASES)
def test_mistake(text: str, rule: str, severity: Severity, field: str, message: str) -> None:
    world = (SLICES,) if "kind: DeviceClass" in text else (CLASSES, SLICES)
    found = findings(text, *world)

    assert [(each.rule, each.severity, each.field) for each in found] == [(rule, severity, field)]
    assert message in found[0].message
    assert found[0].source == "file-0.yaml"
    assert found[0].line > 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(one_request("count: 2"), id="all-that-exist"),
        pytest.param(one_request(selector(f"has({MODEL}.fast) && {MODEL}.fast")), id="guarded"),
        pytest.param(
            one_request(selector('device.attributes["other.example.com"].x == 1 || true')),
            id="driver-that-is-not-here",
        ),
        pytest.param(
            alternatives(
                alternative("big", selector(MEMORY.format("80Gi"))),
                alternative("small", selector(MEMORY.format("40Gi"))),
            ),
            id="narrow-first",
        ),
        pytest.param(
            alternatives(alternative("two", "count: 2\n"), alternative("one")), id="many-first"
        ),
        pytest.param(
            alternatives(
                alternative("all", "allocationMode: All\n"), alternative("two", "count: 2\n")
            ),
            id="all-then-some",
        ),
        pytest.param(
            alternatives(
                alternative("plain"),
                alternative("tolerant", "tolerations: [{key: example.com/broken, operator: Exists}]\n"),
            ),
            id="a-later-alternative-tolerates-more",
        ),
        pytest.param(
            two_requests(
                derived("'device.attributes[\"gpu.example.com\"].numaNode'"),
                derived("'device.attributes[\"nic.example.com\"].numaNode'"),
                "matchAttribute: numa",
            ),
            id="both-derive",
        ),
        pytest.param(
            one_request("", "constraints:\n- matchAttribute: gpu.example.com/model\n"),
            id="published-without-domain",
        ),
        pytest.param(
            one_request(
                "",
                "constraints:\n- matchAttribute: gpu.example.com/numaNode\n"
                "- distinctAttribute: gpu.example.com/numaNode\n",
            ),
            id="one-device-matches-and-is-distinct",
        ),
        pytest.param(nic_capacity("bandwidth", "2500M"), id="rounded-up"),
        pytest.param(nic_capacity("queues", "3"), id="next-valid-value"),
        pytest.param(one_request("tolerations: [{operator: Exists}]"), id="tolerates-everything"),
        pytest.param(
            alternatives(alternative("six", "count: 6\n"), alternative("one")), id="as-many-as-possible"
        ),
        pytest.param(
            alternatives(
                alternative("other", selector(f'\'{MODEL}.model == "B200"\'')), alternative("any")
            ),
            id="the-best-there-is",
        ),
        pytest.param(
            alternatives(
                alternative("much", "capacity: {requests: {memory: 200Gi}}\n"), alternative("some")
            ),
            id="more-memory-than-any-has",
        ),
        pytest.param(
            claim_yaml(
                "requests:\n- name: nic\n  exactly: {deviceClassName: nic.example.com}\n"
                "- name: gpu\n  firstAvailable:\n"
                "  - name: far\n    deviceClassName: gpu.example.com\n    selectors:\n"
                f"    - cel: {{expression: '{MODEL}.numaNode == 1'}}\n    derivedAttributes: &d\n"
                "    - {name: node, expression: 'device.attributes[device.driver].numaNode'}\n"
                "  - name: near\n    deviceClassName: gpu.example.com\n    derivedAttributes: *d\n"
                "constraints:\n- matchAttribute: node\n"
            ).replace(
                "exactly: {deviceClassName: nic.example.com}",
                "exactly:\n        deviceClassName: nic.example.com\n        derivedAttributes:\n"
                "        - {name: node, expression: 'device.attributes[device.driver].numaNode'}",
            ),
            id="one-alternative-has-a-value-in-common",
        ),
    ],
)  # fmt: skip
def test_no_false_alarm(text: str) -> None:
    assert findings(text, CLASSES, SLICES) == []


def test_no_alternative_can_be_satisfied() -> None:
    found = findings(
        alternatives(alternative("six", "count: 6\n"), alternative("four", "count: 4\n")),
        CLASSES,
        SLICES,
    )

    assert [each.rule for each in found] == ["not-enough-devices", "not-enough-devices"]


def test_kinds_that_were_not_given_are_not_judged() -> None:
    pod = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: a, resourceClaimTemplateName: t}, {name: b, resourceClaimName: c}]
  containers: [{name: m, resources: {claims: [{name: a, request: x}]}}]
"""

    assert findings(one_request("count: 8")) == []
    assert findings(one_request("count: 8"), CLASSES) == []
    assert findings(pod) == []


def test_all_requests_together_ask_for_too_much() -> None:
    request = "- name: r{}\n  exactly: {{deviceClassName: gpu.example.com, count: 20}}\n"

    (found,) = findings(claim_yaml("requests:\n" + request.format(0) + request.format(1)))

    assert (found.rule, found.field) == ("too-many-devices", "spec.devices.requests")
    assert "all requests together ask for 40 devices" in found.message


def test_requests_that_cannot_be_satisfied_together() -> None:
    """Nothing is wrong with any of them; the allocator decides, with all devices free and without taints."""
    requests = "".join(
        f"- name: {name}\n  exactly: {{deviceClassName: gpu.example.com, count: {count}}}\n"
        for name, count in (("a", 2), ("b", 1))
    )
    template = claim_yaml(f"requests:\n{requests}").replace(
        "kind: ResourceClaim\n", "kind: ResourceClaimTemplate\n"
    )
    body = indented(template.split("spec:\n", 1)[1].removesuffix("---\n"), 2)
    template = f"{template.split('spec:', 1)[0]}spec:\n  spec:\n{body}---\n"

    for text, field in (
        (claim_yaml(f"requests:\n{requests}"), "spec.devices.requests"),
        (template, "spec.spec.devices.requests"),
    ):
        (found,) = findings(text, CLASSES + SLICES)
        assert (found.rule, found.field) == ("unsatisfiable-claim", field)
        assert found.message == (
            "no node in these files can satisfy it, even if all devices are free: requests a and b of"
            " claim c cannot be satisfied together: b finds 0 of 1 device; gpu-0, gpu-1: taken by"
            " request a of claim c"
        )
        assert findings(text, CLASSES) == []


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param(
            CLASSES.split("---\n", 1)[0]
            .replace('"gpu.ex', '"gpu.xe')
            .replace("{name: gpu", "{name: other"),
            "spec.selectors[0].cel.expression",
            id="class",
        ),
        pytest.param(
            one_request(selector("device.driver == 'gpu.xeample.com'")),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            id="request",
        ),
        pytest.param(
            one_request("", "config:\n- opaque: {driver: gpu.xeample.com, parameters: {a: 1}}\n"),
            "spec.devices.config[0].opaque.driver",
            id="configuration",
        ),
    ],
)
def test_a_driver_with_a_typo(text: str, field: str) -> None:
    (found,) = findings(text, CLASSES + SLICES)

    assert (found.rule, found.field) == ("unknown-driver", field)
    assert found.message == (
        'no ResourceSlice in these files is of driver "gpu.xeample.com"; did you mean "gpu.example.com"?'
    )
    other = findings(text.replace("gpu.xeample.com", "fpga.other.org"), CLASSES + SLICES)
    assert "unknown-driver" not in [each.rule for each in other]


def pool_yaml(name: str, content: str, slices: int = 2) -> str:
    return (
        f"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {name}}}\nspec:\n"
        "  driver: d.example.com\n  nodeName: server-1\n"
        f"  pool: {{name: p, generation: 1, resourceSliceCount: {slices}}}\n{indented(content, 2)}---\n"
    )


COUNTERS = pool_yaml("counters", "sharedCounters: [{name: gpu0, counters: {mem: {value: 10Gi}}}]")


def using(counter_set: str, counter: str = "mem", amount: str = "10Gi", slices: int = 2) -> str:
    used = f"{{counterSet: {counter_set}, counters: {{{counter}: {{value: {amount}}}}}}}"
    return pool_yaml("devices", f"devices: [{{name: d, consumesCounters: [{used}]}}]", slices)


USE = "spec.devices[0].consumesCounters[0]"


@pytest.mark.parametrize(
    ("text", "rule", "field", "message"),
    [
        pytest.param(
            using("gpu1x"),
            "pool-contradiction",
            f"{USE}.counterSet",
            'no slice of the pool has the counter set "gpu1x"',
            id="counter-set",
        ),
        pytest.param(
            using("gpu0", "memory"),
            "pool-contradiction",
            f"{USE}.counters[memory]",
            "the pool has no counter gpu0/memory",
            id="counter",
        ),
        pytest.param(
            using("gpu0", amount="20Gi"),
            "counter-amount",
            f"{USE}.counters[mem].value",
            "d consumes 20Gi of gpu0/mem, which has 10Gi: it is never allocated",
            id="amount",
        ),
        pytest.param(
            using("gpu0") + pool_yaml("more", "devices: [{name: e}]"),
            "pool-contradiction",
            "spec.pool.resourceSliceCount",
            "pool p has 3 slices, and 2 announced",
            id="too-many-slices",
        ),
        pytest.param(
            using("gpu0").replace("Count: 2", "Count: 3")
            + pool_yaml("more", "devices: [{name: d}]"),
            "pool-contradiction",
            "spec.devices[0].name",
            "device d is also in slice more of the same pool",
            id="device-twice",
        ),
    ],
)
def test_slices_of_a_pool_that_contradict_each_other(
    text: str, rule: str, field: str, message: str
) -> None:
    found = findings(COUNTERS, text)

    assert (rule, field, message) in [
        (each.rule, each.field, each.message.partition("; did you mean")[0]) for each in found
    ]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([COUNTERS, using("gpu0")], id="complete"),
        pytest.param([using("elsewhere", slices=2)], id="incomplete"),
    ],
)
def test_pools_without_contradictions(texts: list[str]) -> None:
    assert findings(*texts) == []


def test_types_that_expressions_show_without_devices() -> None:
    claim = two_requests(derived("string(1)"), derived("1 + 1"), "matchAttribute: numa")

    (found,) = findings(claim)

    assert found.rule == "constraint-types"
    assert "gpu has string and nic has int" in found.message


def test_a_class_without_devices() -> None:
    gone = CLASSES.replace(
        'device.driver == "nic.example.com"', 'device.driver == "gone.example.com"'
    )

    (found,) = findings(gone, live=SLICES)

    assert (found.rule, found.field) == ("selector-never", "spec.selectors[0].cel.expression")
    assert findings(gone, SLICES) == [], "files need not have the devices of every class"


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims:
  - name: mine
    resourceClaimTemplateName: one-gpuu
  - name: shared
    resourceClaimName: c
  containers:
  - name: main
    resources:
      claims:
      - {name: mine, request: r}
      - {name: shared, request: rr}
"""
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests:
      - name: r
        exactly: {deviceClassName: gpu.example.com}
---
"""


def test_names_in_a_pod() -> None:
    template, request = findings(TEMPLATE + one_request("") + POD)

    assert (template.rule, template.severity) == ("missing-template", ERROR)
    assert template.field == "spec.resourceClaims[0].resourceClaimTemplateName"
    assert 'did you mean "one-gpu"?' in template.message
    assert template.fix == f'write "one-gpu" at {template.field}'
    assert (request.rule, request.severity) == ("missing-request", ERROR)
    assert request.field == "spec.containers[0].resources.claims[1].request"
    assert 'the claim "shared" has no request "rr"; did you mean "r"?' in request.message


@pytest.mark.parametrize("kind", ["Deployment", "Job", "StatefulSet", "DaemonSet", "CronJob"])
def test_names_in_workloads(kind: str) -> None:
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    spec = POD[POD.index("spec:") :]
    inner = f"template:\n{indented(spec, 2)}"
    path = "spec.template.spec"
    if kind == "CronJob":
        inner, path = f"jobTemplate:\n  spec:\n{indented(inner, 4)}", f"spec.jobTemplate.{path}"
    workload = (
        f"apiVersion: {group}\nkind: {kind}\nmetadata: {{name: w}}\nspec:\n{indented(inner, 2)}"
    )

    found = findings(TEMPLATE + one_request("") + workload)

    assert [each.rule for each in found] == ["missing-template", "missing-request"]
    assert found[0].field == f"{path}.resourceClaims[0].resourceClaimTemplateName"


def test_a_template_in_another_namespace_or_of_another_kind() -> None:
    elsewhere = TEMPLATE.replace("{name: one-gpu}", "{name: one-gpuu, namespace: team-a}")
    a_claim_instead = one_request("").replace("name: c}", "name: one-gpuu}")
    pod = POD.replace("  - name: shared\n    resourceClaimName: c\n", "").replace(
        "      - {name: shared, request: rr}\n", ""
    )

    (other_namespace,) = findings(elsewhere + pod)
    (other_kind,) = findings(a_claim_instead + pod)

    assert "is in namespace team-a, and the pod in default" in other_namespace.message
    assert '"one-gpuu" is a ResourceClaim; write resourceClaimName' in other_kind.message


def test_what_a_cluster_does_not_have_does_not_exist() -> None:
    (found,) = findings(
        one_request("").replace("gpu.example.com", "fpga.example.com"), live=CLASSES + SLICES
    )

    assert (found.rule, found.severity) == ("missing-class", ERROR)
    assert found.message.startswith('no DeviceClass "fpga.example.com" in the cluster')


def test_both_attributes_in_one_constraint() -> None:
    constraint = "constraints:\n- {matchAttribute: a.b/c, distinctAttribute: a.b/c}\n"

    found = findings(one_request("", constraint))

    assert len(found) == 1, "the API server and lint do not both say it"
    assert found[0].field.startswith("spec.devices.constraints[0]")


def test_old_shapes_have_their_own_paths() -> None:
    old = claim_yaml("requests:\n- {name: r, deviceClassName: gpu.example.com, count: 33}").replace(
        "io/v1\n", "io/v1beta1\n"
    )

    version, count = findings(old)

    assert version.rule == "old-version"
    assert (count.rule, count.field) == ("too-many-devices", "spec.devices.requests[0].count")


def test_what_is_known_about_devices_is_computed_once() -> None:
    known = KnownObjects()
    known.add_subjects(
        subject_of(manifest)
        for manifest in parse_manifests("f", (CLASSES + SLICES).encode())
        if isinstance(manifest, Manifest)
    )
    claims = [
        subject_of(manifest).claim
        for manifest in parse_manifests("f", (one_request("") + one_request("count: 2")).encode())
        if isinstance(manifest, Manifest)
    ]
    asked = [next(claim.alternatives()) for claim in claims if claim is not None]

    first, second = map(known.candidates, asked)

    assert first is not None
    assert first is second
    values = [known.values(each, "gpu.example.com/model") for each in asked]
    assert values[0] is values[1]
