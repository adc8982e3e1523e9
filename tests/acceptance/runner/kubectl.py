"""The kubectl step: the real program, with a home of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.acceptance.runner.expectations import one_or_many, unmet
from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.steps import KubectlCall

TIMEOUT_SECONDS = 90


class Output(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Kubectl(NamedTuple):
    program: Path
    kubeconfig: Path
    home: Path
    """Keeps its cache of what the server can do."""

    def run(self, call: KubectlCall, namespace: str) -> Output:
        arguments = call.args.split() if isinstance(call.args, str) else map(str, call.args)
        scope = ["-n", namespace] if call.namespace else []
        done = subprocess.run(
            [self.program, "--kubeconfig", self.kubeconfig, *scope, *arguments],
            input=_stdin(call.stdin),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            env={
                **os.environ,
                "HOME": str(self.home),
                **{name: str(value) for name, value in call.env.items()},
            },
        )
        return Output(done.returncode, done.stdout, done.stderr)


def unmet_by(output: Output, call: KubectlCall) -> list[str]:
    """What the call expects and the output does not show."""
    return list(_unmet_by(output, call))


def _unmet_by(output: Output, call: KubectlCall) -> Iterator[str]:
    if output.code != call.rc:
        yield f"expected exit code {call.rc}, got {output.code}"
    for part in call.stdout:
        if part not in output.stdout:
            yield f"standard output lacks {part!r}"
    for part in call.stdout_not:
        if part in output.stdout:
            yield f"standard output has {part!r}"
    for pattern in call.stdout_re:
        if not re.search(pattern, output.stdout, re.MULTILINE):
            yield f"standard output has nothing like {pattern!r}"
    if call.stdout_eq is not None and output.stdout.strip() != str(call.stdout_eq).strip():
        yield f"standard output is not {call.stdout_eq!r}"
    for part in call.stderr:
        if part not in output.stderr:
            yield f"standard error lacks {part!r}"
    if call.json:
        try:
            document = json.loads(output.stdout)
        except ValueError:
            yield "standard output is no JSON"
        else:
            yield from unmet(document, call.json)


def manifests_in(stdin: Json) -> list[Json]:
    """The manifests a call passes on; a string is not looked into."""
    return [] if stdin is None or isinstance(stdin, str) else one_or_many(stdin)


def _stdin(stdin: Json) -> str:
    """Empty without manifests, so that kubectl does not wait for input."""
    if isinstance(stdin, str):
        return stdin
    return yaml.safe_dump_all(manifests_in(stdin)) if stdin is not None else ""
