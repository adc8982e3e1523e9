"""The options of `allot up`, also for its other processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from allot.cli.audit_options import AuditArguments
from allot.cli.driver_options import DriverOptions
from allot.rules import RuleSet


class ClusterOptions(NamedTuple):
    """The cluster to run, from the command line."""

    data_dir: Path
    port: int
    storage: str
    hardware: tuple[str, ...]
    scheduler_config: Path | None
    feature_gates: str
    rules: RuleSet
    controllers: str
    """Empty: no controllers."""
    has_scheduler: bool
    has_nodes: bool
    all_nodes: bool
    complete_annotation: str
    verbose: int
    audit: AuditArguments = AuditArguments()
    drivers: DriverOptions = DriverOptions()

    def to_json(self) -> str:
        """For another process of the same cluster."""
        return json.dumps(self._asdict(), default=str)

    @classmethod
    def from_json(cls, text: str) -> ClusterOptions:
        fields: dict[str, Any] = json.loads(text)
        config = fields["scheduler_config"]
        fields |= {
            "data_dir": Path(fields["data_dir"]),
            "hardware": tuple(fields["hardware"]),
            "rules": RuleSet(fields["rules"]),
            "audit": AuditArguments(*fields["audit"]),
            "drivers": DriverOptions(*fields["drivers"]),
            "scheduler_config": None if config is None else Path(config),
        }
        return cls(**fields)
