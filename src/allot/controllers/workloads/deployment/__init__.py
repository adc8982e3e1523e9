"""Deployments: replica sets, one per version of the template, of which the newest takes over.

controller     the loop: which of the others comes when
replica_sets   which set is the new one, which are old; what is written on them
sizes          how many pods each set should have: rolling, recreating, scaling in between
progress       the status and its conditions
"""

from allot.controllers.workloads.deployment.controller import DeploymentController

__all__ = ["DeploymentController"]
