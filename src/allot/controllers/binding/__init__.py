"""A framework for external controllers that prepare devices before a pod is bound (KEP-5007).

Implement `Attacher` for your driver: how one device is attached and detached. The framework does the rest:

    attachments   attachments of an allocation, as values
    attacher      the class to implement, and the error to raise
    decisions     the actions for a claim, as a function of its state
    conditions    reports in a claim's status
    controller    `BindingController`, the control loop
    attempts      timeouts and retries
    actual_state  attachments in progress
    quarantine    devices that failed permanently
    observer      callbacks for every event; `metrics` counts them
    simulation    an attacher for demonstrations, with scripted delays and failures
"""

from allot.controllers.binding.attacher import Attacher, AttachFailedError
from allot.controllers.binding.attachments import Attachment, AttachRequest
from allot.controllers.binding.attempts import AttemptLimits
from allot.controllers.binding.controller import BindingController, BindingSettings
from allot.controllers.binding.metrics import BindingMetrics
from allot.controllers.binding.observer import AttachOutcome, BindingObserver
from allot.controllers.binding.quarantine import Quarantine, SliceRemoval, TaintRules

__all__ = [
    "AttachFailedError",
    "AttachOutcome",
    "AttachRequest",
    "Attacher",
    "Attachment",
    "AttemptLimits",
    "BindingController",
    "BindingMetrics",
    "BindingObserver",
    "BindingSettings",
    "Quarantine",
    "SliceRemoval",
    "TaintRules",
]
