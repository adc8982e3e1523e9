"""How fast expressions are compiled and evaluated, beside cel-expr-python in the same run.

    ./scripts/bench cel
    ./scripts/bench cel prices      what every function costs, beside its price

The other engine has neither quantities nor versions; it gets them as Python functions on plain
values, which is how one would use it. Its devices are dictionaries, ours are prepared: that is done
once per published device, and its cost is shown on its own line.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel import (
    AttributeValue,
    CelDevice,
    CelError,
    Origin,
    cel_device,
    compile_derived,
)
from allot.cel import program as programs
from allot.cel.program import Use
from allot.features import FeatureGates

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.cel import prices

try:
    from cel_expr_python import cel  # type: ignore[import-untyped]
    from cel_expr_python.ext import ext_strings  # type: ignore[import-untyped]
except ImportError:
    cel = None

EXPRESSIONS: Final = {
    "driver and model equality": 'device.driver == "gpu.example.com" && '
    'device.attributes["gpu.example.com"].model == "A100"',
    "capacity.compareTo(quantity())": 'device.capacity["gpu.example.com"].memory'
    '.compareTo(quantity("40Gi")) >= 0',
    "semver compareTo": 'device.attributes["gpu.example.com"].driverVersion'
    '.compareTo(semver("550.0.0")) >= 0',
    'topology.split("-")[0]': 'device.attributes["vendor.com"].topology.split("-")[0]',
    "memory_gb >= 80 ? a : b": 'device.attributes["gpu.example.com"].memory_gb >= 80 '
    '? "tier-1" : "tier-2"',
    "has() and matches()": '"vendor.com" in device.attributes && '
    'has(device.attributes["vendor.com"].y) && '
    'device.attributes["vendor.com"].y.matches("^[a-z]+$")',
    "allowMultipleAllocations": "device.allowMultipleAllocations == true",
}
ATTRIBUTES: Final = {
    "model": AttributeValue(string="A100"),
    "driverVersion": AttributeValue(version="550.54.15"),
    "memory_gb": AttributeValue(int_=80),
    "index": AttributeValue(int_=3),
    "ecc": AttributeValue(bool_=True),
    "pcieRoot": AttributeValue(string="pci0000:17"),
    "numa": AttributeValue(int_=1),
    "vendor.com/zone": AttributeValue(string="z1"),
    "vendor.com/fw": AttributeValue(version="1.2.3"),
    "vendor.com/topology": AttributeValue(string="rack1-node3"),
    "vendor.com/y": AttributeValue(string="abc"),
}

WANTED_FRESH: Final = 10
WANTED_REUSED: Final = 3
WANTED_COMPILE_MS: Final = 2.0

PATHOLOGICAL: Final = {
    "a million steps": "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
    "nested macros": "[1, 2].all(a, " * 90 + "true" + ")" * 90,
    "nested lists": "[" * 249 + "]" * 249 + " == []",
    "lists of themselves": "cel.bind(a, [1], " + "cel.bind(a, [a, a], " * 90 + "a == a" + ")" * 91,
    "evil regex": "lists.range(30000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join()"
    ".matches('(a*)*(a|aa)+b')",
}


class Amount:
    def __init__(self, text: str) -> None:
        self.value = Quantity.parse(text)


def our_device(name: str = "gpu-0", model: str = "A100") -> CelDevice:
    attributes = {
        **ATTRIBUTES,
        "model": AttributeValue(string=model),
        "uuid": AttributeValue(string=f"GPU-{name}"),
    }
    capacity = {
        "memory": Amount("80Gi"),
        "cores": Amount("108"),
        "vendor.com/bandwidth": Amount("2Ti"),
    }
    return cel_device("gpu.example.com", name, attributes, capacity, True)


def their_device() -> dict[str, Any]:
    return {
        "driver": "gpu.example.com",
        "allowMultipleAllocations": True,
        "attributes": {
            "gpu.example.com": {
                "model": "A100",
                "driverVersion": "550.54.15",
                "memory_gb": 80,
                "index": 3,
                "ecc": True,
                "uuid": "GPU-gpu-0",
                "pcieRoot": "pci0000:17",
                "numa": 1,
            },
            "vendor.com": {"topology": "rack1-node3", "y": "abc", "zone": "z1", "fw": "1.2.3"},
        },
        "capacity": {
            "gpu.example.com": {"cores": 108, "memory": Quantity.parse("80Gi").value()},
            "vendor.com": {"bandwidth": Quantity.parse("2Ti").value()},
        },
    }


def their_environment() -> Any:
    kinds = cel.Type

    def compare(left: str, right: str) -> int:
        a, b = Semver.parse(left), Semver.parse(right)
        return (a > b) - (a < b)

    def overload(
        result: Any, parameters: list[Any], is_member: bool, implementation: Callable[..., Any]
    ) -> Any:
        return cel.Overload(
            f"{implementation.__name__}_{len(parameters)}",
            return_type=result,
            parameters=parameters,
            is_member=is_member,
            impl=implementation,
        )

    def compare_numbers(left: int, right: int) -> int:
        return (left > right) - (left < right)

    def quantity(text: str) -> int:
        return Quantity.parse(text).value()

    def semver(text: str) -> str:
        return text

    return cel.NewEnv(
        variables={"device": kinds.Map(kinds.STRING, kinds.DYN)},
        extensions=[ext_strings.ExtStrings()],
        functions=[
            cel.FunctionDecl("quantity", [overload(kinds.INT, [kinds.STRING], False, quantity)]),
            cel.FunctionDecl("semver", [overload(kinds.STRING, [kinds.STRING], False, semver)]),
            cel.FunctionDecl(
                "compareTo",
                [
                    overload(kinds.INT, [kinds.INT, kinds.INT], True, compare_numbers),
                    overload(kinds.INT, [kinds.STRING, kinds.STRING], True, compare),
                ],
            ),
        ],
    )


def microseconds_of(
    calls: dict[str, Callable[[], object]], repeat: int = 2_000, rounds: int = 9
) -> dict[str, float]:
    """Per call, the best of several rounds. All take turns, so that they share the machine's moods."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: seconds / repeat * 1e6 for name, seconds in best.items()}


def microseconds(call: Callable[[], object], repeat: int) -> float:
    return microseconds_of({"": call}, repeat)[""]


def compile_milliseconds(expression: str) -> float:
    def compile_anew() -> None:
        programs._compile(expression, Use.DERIVED, Origin.STORED, FeatureGates(()))

    return microseconds(compile_anew, repeat=50) / 1e3


def measure() -> dict[str, dict[str, float]]:
    environment = their_environment() if cel is not None else None
    return {name: measured(text, environment) for name, text in EXPRESSIONS.items()}


def measured(text: str, environment: Any) -> dict[str, float]:
    device, data = our_device(), their_device()
    program = compile_derived(text)
    evaluate = program.evaluator.value
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: evaluate(device),
        "counted": lambda: program.evaluate(device),
        "remembered": lambda: program.answer(device),
    }
    if environment is not None:
        theirs = environment.compile(text)
        activation = environment.Activation({"device": data})
        assert theirs.eval(activation).plain_value() == evaluate(device), text
        calls["fresh"] = lambda: theirs.eval(data={"device": data})
        calls["reused"] = lambda: theirs.eval(activation)
    return {**microseconds_of(calls), "compile": compile_milliseconds(text)}


def evaluations_of_many_devices() -> tuple[int, float]:
    """10,000 devices of 3 models, every one with a name and a uuid of its own."""
    devices = [our_device(f"gpu-{i}", ("A100", "H100", "L40")[i % 3]) for i in range(10_000)]
    text = (
        'device.attributes["gpu.example.com"].model == "H100" && "vendor.com" in device.attributes'
    )
    program = compile_derived(text)
    start = time.perf_counter()
    for device in devices:
        program.answer(device)
    return program.evaluations, (time.perf_counter() - start) / len(devices) * 1e6


def pathological_seconds(expression: str) -> float:
    start = time.perf_counter()
    with contextlib.suppress(CelError):
        compile_derived(expression).evaluate(our_device())
    return time.perf_counter() - start


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def ratio(theirs: float | None, ours: float, wanted: int) -> str:
    if theirs is None:
        return "-"
    return f"{theirs / ours:.0f}x" + ("" if theirs / ours >= wanted else f" (wanted {wanted}x)")


def main() -> None:
    if cel is None:
        print("cel-expr-python is not installed: only our own figures follow.")
        print("To compare: .venv/bin/pip install cel-expr-python==0.1.3\n")
    figures = measure()
    print("Microseconds per evaluation; ratios to `plain`; compile in milliseconds.\n")
    print(
        "| expression | plain | counting cost | remembered | theirs, fresh | theirs, reused "
        "| fresh | reused | compile |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, row in figures.items():
        slow = "" if row["compile"] < WANTED_COMPILE_MS else " (wanted < 2)"
        columns = ("ours", "counted", "remembered", "fresh", "reused")
        cells = [name, *(shown(row.get(column)) for column in columns)]
        cells += [ratio(row.get("fresh"), row["ours"], WANTED_FRESH)]
        cells += [ratio(row.get("reused"), row["ours"], WANTED_REUSED)]
        cells += [shown(row["compile"]) + slow]
        print("| " + " | ".join(cells) + " |")
    print(f"\nPreparing a device: {microseconds(our_device, repeat=500):.1f} us, once per device.")
    evaluations, each = evaluations_of_many_devices()
    print(f"10,000 devices of 3 models: {evaluations} evaluations, {each:.2f} us per device.")
    for name, expression in PATHOLOGICAL.items():
        print(f"Pathological, {name}: {pathological_seconds(expression):.2f} s.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["prices"]:
        prices.main(sys.argv[2:])
    else:
        main()
