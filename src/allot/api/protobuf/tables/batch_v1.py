"""Messages of batch.v1; written by scripts/protobuf_tables.py."""

TABLE = """
CronJob kind
  1 metadata meta.v1.ObjectMeta
  2 spec CronJobSpec
  3 status CronJobStatus

CronJobList kind
  1 metadata meta.v1.ListMeta
  2 items []CronJob

CronJobSpec
  1 schedule string
  2 startingDeadlineSeconds *int64?
  3 concurrencyPolicy string?
  4 suspend *bool?
  5 jobTemplate JobTemplateSpec
  6 successfulJobsHistoryLimit *int32?
  7 failedJobsHistoryLimit *int32?
  8 timeZone *string?

CronJobStatus
  1 active []core.v1.ObjectReference?
  4 lastScheduleTime *time?
  5 lastSuccessfulTime *time?

Job kind
  1 metadata meta.v1.ObjectMeta
  2 spec JobSpec
  3 status JobStatus

JobCondition
  1 type string
  2 status string
  3 lastProbeTime time
  4 lastTransitionTime time
  5 reason string?
  6 message string?

JobList kind
  1 metadata meta.v1.ListMeta
  2 items []Job

JobSchedulingConfiguration
  1 schedulingPolicy *scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy?
  2 schedulingConstraints *scheduling.v1alpha3.WorkloadPodGroupSchedulingConstraints?
  3 disruptionMode *scheduling.v1alpha3.WorkloadPodGroupDisruptionMode?
  4 resourceClaims []scheduling.v1alpha3.WorkloadPodGroupResourceClaim?

JobSpec
  1 parallelism *int32?
  2 completions *int32?
  3 activeDeadlineSeconds *int64?
  4 selector *meta.v1.LabelSelector?
  5 manualSelector *bool?
  6 template core.v1.PodTemplateSpec
  7 backoffLimit *int32?
  8 ttlSecondsAfterFinished *int32?
  9 completionMode *string?
  10 suspend *bool?
  11 podFailurePolicy *PodFailurePolicy?
  12 backoffLimitPerIndex *int32?
  13 maxFailedIndexes *int32?
  14 podReplacementPolicy *string?
  15 managedBy *string?
  16 successPolicy *SuccessPolicy?
  17 scheduling *JobSchedulingConfiguration?

JobStatus
  1 conditions []JobCondition?
  2 startTime *time?
  3 completionTime *time?
  4 active int32?
  5 succeeded int32?
  6 failed int32?
  7 completedIndexes string?
  8 uncountedTerminatedPods *UncountedTerminatedPods?
  9 ready *int32?
  10 failedIndexes *string?
  11 terminating *int32?

JobTemplateSpec
  1 metadata meta.v1.ObjectMeta
  2 spec JobSpec

PodFailurePolicy
  1 rules []PodFailurePolicyRule

PodFailurePolicyOnExitCodesRequirement
  1 containerName *string?
  2 operator string
  3 values []int32

PodFailurePolicyOnPodConditionsPattern
  1 type string
  2 status string

PodFailurePolicyRule
  1 action string
  2 onExitCodes *PodFailurePolicyOnExitCodesRequirement?
  3 onPodConditions []PodFailurePolicyOnPodConditionsPattern?

SuccessPolicy
  1 rules []SuccessPolicyRule

SuccessPolicyRule
  1 succeededIndexes *string?
  2 succeededCount *int32?

UncountedTerminatedPods
  1 succeeded []string?
  2 failed []string?
"""
