"""How lint puts findings together: unknown fields, scopes, targets, comments, costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from allot import features
from allot.lint.findings import Finding
from allot.lint.linter import Linter
from allot.lint.manifests import parse_manifests
from allot.lint.rule_table import RULES
from allot.lint.target import TargetCluster
from tests.unit.lint.worlds import CLASSES, SLICES, claim_yaml, findings, one_request

ROOT = Path(__file__).parents[3]


# --- fields ---


def test_fields_of_v1beta1_in_v1() -> None:
    flat = claim_yaml("requests:\n- name: r\n  deviceClassName: gpu.example.com\n  count: 2\n")

    class_name, count = findings(flat)

    assert class_name.rule == count.rule == "moved-field"
    assert class_name.message == (
        "`deviceClassName` moved under `exactly` in resource.k8s.io/v1: write exactly.deviceClassName"
    )
    assert class_name.fix
    assert not count.fix, "one fix moves both"


def test_exactly_in_v1beta1() -> None:
    found = findings(one_request("").replace("io/v1\n", "io/v1beta1\n"))

    moved = next(each for each in found if each.rule == "moved-field")
    assert "has no `exactly`: write apiVersion resource.k8s.io/v1" in moved.message


def test_devices_of_v1beta1_in_v1() -> None:
    basic = SLICES.replace("    capacity: {memory: {value: 40Gi}}", "    basic: {capacity: {}}")

    (found,) = findings(basic)

    assert "the fields of `basic` moved to the device itself" in found.message


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("deviceClassname: x", 'unknown field "deviceClassname"; did you mean "deviceClassName"?'),
        ("selector: []", 'unknown field "selector"; did you mean "selectors"?'),
        ("zzz: 1", 'unknown field "zzz"; known here: adminAccess, allocationMode, '),
    ],
)
def test_unknown_fields(field: str, message: str) -> None:
    (found,) = findings(one_request(field))

    assert found.rule == "unknown-field"
    assert found.message.startswith(message)


def test_a_constraint_on_a_request_that_is_not_there() -> None:
    (found,) = findings(
        one_request("", "constraints:\n- requests: [rr]\n  matchAttribute: a.b/c\n")
    )

    assert found.rule == "field-invalid"
    assert found.message.endswith('; did you mean "r"?')


def test_names_that_cannot_be_others() -> None:
    claim = claim_yaml(
        "requests:\n- name: nic\n  exactly: {deviceClassName: nic.example.com}\n"
        "constraints:\n- requests: [nik]\n  matchAttribute: a.b/c\n"
        "- requests: [disk]\n  matchAttribute: a.b/c\n"
    )
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
        "  resourceClaims: [{name: devices, resourceClaimName: c}]\n"
        "  containers: [{name: m, resources: {claims: [{name: device}]}}]\n"
    )

    near, far, in_pod = findings(claim + pod)

    assert near.message.endswith('; did you mean "nic"?')
    assert far.message.endswith("; available: nic")
    assert in_pod.message.endswith('; did you mean "devices"?')
    assert in_pod.fix == 'write "devices" at spec.containers[0].resources.claims[0].name'


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("numaNode", '; write "gpu.example.com/numaNode" or "nic.example.com/numaNode"'),
        ("rail", '; write "nic.example.com/rail"'),
    ],
)
def test_a_bare_name_in_a_constraint(name: str, hint: str) -> None:
    claim = one_request("", f"constraints:\n- distinctAttribute: {name}\n")

    (found,) = findings(claim, CLASSES, SLICES)

    assert found.field == "spec.devices.constraints[0].distinctAttribute"
    assert "a domain and a name separated by a slash" in found.message
    assert found.message.endswith(hint)
    assert bool(found.fix) == (name == "rail")


def test_a_key_twice() -> None:
    (found,) = findings(one_request("count: 1\ncount: 2"))

    assert (found.rule, found.line) == ("duplicate-field", 11)


# --- expressions ---


def test_an_expensive_expression_is_reported_once_with_a_way_out() -> None:
    split = 'device.attributes["d.example.com"].topology.split("-")[0]'
    derived = f"derivedAttributes: [{{name: numa, expression: '{split}.lowerAscii()'}}]"

    (found,) = findings(one_request(derived, "constraints:\n- matchAttribute: numa\n"))

    assert found.rule == "cel-cost"
    assert "the estimated cost is unbounded, the limit is 1,000,000" in found.message
    assert "use matches(), find(), replace() or substring() on the whole attribute" in found.message


def test_expressions_that_are_expensive_together() -> None:
    loop = 'device.attributes["d.example.com"].a.all(x, device.attributes["d.example.com"].b.all(y, device.attributes["d.example.com"].c.all(z, x < y && y < z)))'
    names = ["a", "b", "c", "d", "e", "f"]
    derived = "".join(f"- {{name: {name}, expression: '{loop}'}}\n" for name in names)
    constraints = "".join(f"- matchAttribute: {name}\n" for name in names)

    found = findings(one_request(f"derivedAttributes:\n{derived}", f"constraints:\n{constraints}"))

    assert {each.rule for each in found} == {"cel-cost"}
    assert all("the limit is 1,000,000" in each.message for each in found)


# --- scopes ---


def found_in(files: dict[str, str]) -> list[Finding]:
    """What lint finds in files by their path below a directory."""
    manifests = [
        manifest
        for path, text in files.items()
        for manifest in parse_manifests(path, text.encode(), path.rpartition("/")[0])
    ]
    return Linter(features.DEFAULTS).check(manifests).findings


def test_slices_of_one_directory_count_for_all() -> None:
    found = found_in(
        {"lab/slices.yaml": SLICES, "x/classes.yaml": CLASSES, "c.yaml": one_request("count: 3")}
    )

    assert [each.rule for each in found] == ["not-enough-devices"]


def test_slices_of_several_directories_count_there() -> None:
    more = SLICES.replace("gpu-1", "gpu-2\n  - name: gpu-3")
    files = {"lab/slices.yaml": SLICES, "prod/slices.yaml": more, "classes.yaml": CLASSES}

    assert found_in(files | {"prod/c.yaml": one_request("count: 3")}) == []
    assert [
        each.source for each in found_in(files | {"lab/a/c.yaml": one_request("count: 3")})
    ] == ["lab/a/c.yaml"]
    assert found_in(files | {"other/c.yaml": one_request("count: 9")}) == []


def test_near_misses_are_found_everywhere() -> None:
    typo = one_request("").replace("gpu.example.com", "gpu.exmaple.com")
    other = one_request("").replace("gpu.example.com", "fpga.example.com")
    files = {"a/classes.yaml": CLASSES, "b/classes.yaml": CLASSES, "c/c.yaml": typo}

    assert [each.rule for each in found_in(files)] == ["missing-class"]
    assert found_in(files | {"c/c.yaml": other}) == []


# --- comments ---


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(one_request("count: 33 # allot-lint: ignore too-many-devices"), id="same-line"),
        pytest.param(
            one_request("# allot-lint: ignore=old-version, too-many-devices\ncount: 33"), id="above"
        ),
        pytest.param("# allot-lint: ignore too-many-devices (why)\n" + one_request("count: 33"), id="file"),
    ],
)  # fmt: skip
def test_comments_leave_findings_out(text: str) -> None:
    assert findings(text) == []


def test_other_comments_do_not() -> None:
    assert findings(one_request("count: 33 # allot-lint: ignore old-version"))
    assert findings(one_request("count: 33\n# allot-lint: ignore too-many-devices"))


# --- targets ---


def test_what_another_cluster_refuses() -> None:
    derived = "derivedAttributes: [{name: numa, expression: device.name}]"
    claim = one_request(derived, "constraints:\n- matchAttribute: numa\n")

    found = findings(claim, target=TargetCluster.KUBERNETES_1_38)

    assert findings(claim) == []
    by_field = {each.field: each.rule for each in found}
    assert by_field["spec.devices.constraints[0].matchAttribute"] == "target-refuses"
    assert by_field["spec.devices.requests[0].exactly.derivedAttributes[0].expression"] == (
        "target-refuses"
    )
    assert by_field["spec.devices.requests[0].exactly.derivedAttributes"] == "target-drops"


def test_what_another_cluster_decides_otherwise() -> None:
    claim = claim_yaml(
        "requests:\n- name: r\n  firstAvailable:\n"
        "  - {name: a, deviceClassName: other}\n  - {name: b, deviceClassName: gpu.example.com}\n"
    )

    found = findings(claim, CLASSES, target=TargetCluster.KUBERNETES_1_38)

    assert {each.rule for each in found} == {"missing-alternative-class", "target-differs"}


def test_what_another_cluster_drops() -> None:
    slices = SLICES.replace("fast: {bool: true}", "list: {ints: [1, 2]}")

    found = findings(slices, target=TargetCluster.KUBERNETES_1_38)

    assert [each.rule for each in found if each.rule.startswith("target-")]
    assert findings(slices) == []


def test_ranges_that_another_cluster_rounds() -> None:
    found = findings(SLICES, target=TargetCluster.KUBERNETES_1_38)

    assert [each.rule for each in found] == ["target-refuses"] or found[0].rule.startswith(
        "target-"
    )
    assert "share" in found[0].field


def test_plain_claims_are_the_same_everywhere() -> None:
    assert findings(one_request("count: 2"), CLASSES, target=TargetCluster.KUBERNETES_1_38) == []


# --- documentation ---


def test_the_page_lists_every_rule() -> None:
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (error|warning) \| (.+) \| (.+) \|$", page, re.MULTILINE)

    assert rows == [(r.id, r.severity, r.summary, r.help) for r in RULES.values()]


def test_the_hooks_name_the_command() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))

    assert {hook["id"]: hook["entry"] for hook in hooks} == {
        "allot-lint": "allot lint",
        "allot-lint-fix": "allot lint --fix",
    }
    assert all(hook["name"] and hook["language"] == "python" for hook in hooks)
