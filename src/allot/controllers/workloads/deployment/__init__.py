"""The Deployment controller: one replica set per version of the template; rollouts shift pods to the newest.

controller     the control loop
replica_sets   new and old replica sets, and their annotations
sizes          the replicas of each set: rolling update, recreate, proportional scaling
progress       the status and its conditions
"""

from allot.controllers.workloads.deployment.controller import DeploymentController

__all__ = ["DeploymentController"]
