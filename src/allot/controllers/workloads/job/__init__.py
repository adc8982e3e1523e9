"""Jobs: pods until enough of them have succeeded.

controller    the loop
spec          what a job asks for
indexes       sets of completion indexes as `0,2-4`
failures      what a failed pod means: count it, ignore it, give up; how long to wait for the next
tally         where a job stands, from its status and its pods
decision      what to do next: create, delete, call it done
tracking      the finalizer that keeps finished pods until they are counted, once
pods          the pods of a job
"""

from allot.controllers.workloads.job.controller import JobController

__all__ = ["JobController"]
