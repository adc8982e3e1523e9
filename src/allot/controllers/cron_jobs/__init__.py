"""The CronJob controller: jobs at scheduled times.

`decisions` says which job is due and what happens to finished ones, `controller` watches and writes. Schedules are in
`allot.api.cron_schedule`.
"""

from allot.controllers.cron_jobs.controller import CronJobController

__all__ = ["CronJobController"]
