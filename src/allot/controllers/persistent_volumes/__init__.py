"""The persistentvolume-binder: claims for volumes get volumes, and volumes of deleted claims are released.

`matching` finds the volume of a claim, `claim_decisions` and `volume_decisions` say what to do about one claim or one
volume, `controller` watches and writes.
"""

from allot.controllers.persistent_volumes.controller import PersistentVolumeController

__all__ = ["PersistentVolumeController"]
