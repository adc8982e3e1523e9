"""The Job controller: runs pods until enough of them have succeeded.

controller    the control loop
spec          the parsed spec of a job
indexes       sets of completion indexes as `0,2-4`
failures      the pod failure policy, and the backoff after failures
tally         the counts of a job, from its status and its pods
decision      what to do next: create pods, delete pods, finish
tracking      the finalizer that keeps finished pods until they are counted
pods          the pods of a job
"""

from allot.controllers.workloads.job.controller import JobController

__all__ = ["JobController"]
