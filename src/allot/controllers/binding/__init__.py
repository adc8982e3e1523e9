"""External controllers that make devices ready while a pod waits for them (KEP-5007).

You say how one device is attached and let go (`Attacher`); this does the rest:

    attachments   what an allocation asks for, as values
    attacher      the class to write, and the error to raise
    decisions     what to do about a claim, as a function
    conditions    how reports get into a claim's status
    controller    the loop around it: `BindingController`
    attempts      timeouts and retries; `memory` what is under way
    quarantine    what becomes of broken devices
    observer      told of everything that happens; `metrics` counts it, `pages` shows that
    simulation    an attacher for demonstrations, that waits, fails and hangs as told
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
